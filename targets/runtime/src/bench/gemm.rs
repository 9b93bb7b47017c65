//! Candidate packages of a GEMM beside cuBLASLt: the same operands in one process, everything
//! checked, then a contest of the fastest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axe_package::{Env, Package, TensorType};

use super::case::Case;
use super::compare::Comparer;
use super::contest::{self, Limits, Outcome, Who};
use super::cublaslt::{CublasLt, Planned};
use super::document::{Baseline, Ours, Row, Tried, Verdict};
use super::fill::Filler;
use super::operands::OperandSet;
use super::packages::{self, Candidate, Role};
use super::problem::Gemm;
use super::runner::Runner;
use super::stats::drift;
use super::truth::Truth;
use crate::device::{Device, DeviceMemory};
use crate::error::RuntimeError;
use crate::loaded::{Code, Loaded};
use crate::prepared::Prepared;
use crate::timing::{Times, rotating_sets};

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The wall time for one GEMM, set-up and checks included. At least a few pairs are timed even
    /// when set-up took all of it.
    pub budget: Duration,
    /// Pairs of samples at most.
    pub pairs: usize,
    /// How many of cuBLASLt's proposals to try; the fastest is the one measured against.
    pub proposals: usize,
    /// cuBLASLt promotes sums of 8-bit products to f32 as it goes (`FAST_ACCUM` off).
    pub precise: bool,
    /// How long a candidate may take when it is checked, before it is said to hang.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            budget: Duration::from_millis(5000),
            pairs: 31,
            proposals: 16,
            precise: false,
            patience: Duration::from_secs(20),
        }
    }
}

/// The time that one sample should take, in microseconds: long against the clock of events.
const SAMPLE_US: f64 = 2000.0;

/// The least time for the contest, in microseconds, whatever set-up took.
const LEAST_US: f64 = 200_000.0;

/// The bench on one device.
#[derive(Debug)]
pub struct Bench {
    device: Device,
    cublaslt: CublasLt,
    filler: Filler,
    comparer: Comparer,
}

/// cuBLASLt's plan, its result for the first set, and that result's error.
struct Reference<'a> {
    planned: Planned<'a>,
    c: DeviceMemory,
    norm_error: f64,
}

impl Bench {
    /// Opens cuBLASLt on a device.
    ///
    /// # Errors
    /// No cuBLASLt.
    pub fn new(device: &Device) -> Result<Self, RuntimeError> {
        Ok(Bench {
            device: device.clone(),
            cublaslt: CublasLt::new(device)?,
            filler: Filler::new(device)?,
            comparer: Comparer::new(device)?,
        })
    }

    /// cuBLASLt's version.
    #[must_use]
    pub fn cublaslt_version(&self) -> usize {
        self.cublaslt.version()
    }

    /// Measures one case.
    ///
    /// # Errors
    /// Out of memory, or one after which nothing runs. A candidate that does not run or is wrong is
    /// no error but listed in the row, and so is a GEMM that cuBLASLt does not have.
    pub fn measure(&self, case: &Case, options: &Options) -> Result<Row, RuntimeError> {
        let (start, gemm) = (Instant::now(), &case.gemm);
        let mut sets = Vec::new();
        for i in 0..rotating_sets(gemm.bytes(), self.device.properties().l2_bytes) {
            sets.push(OperandSet::new(&self.device, &self.filler, gemm, i as u32)?);
        }
        let first = sets
            .first()
            .ok_or_else(|| RuntimeError::Usage("no operands".into()))?;
        let truth = Truth::of(gemm, first)?;
        let (reference, no_cublaslt) = match self.reference(&truth, options) {
            Ok(reference) => (Some(reference), None),
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => (None, Some(error.to_string())),
        };
        let mut tried = Vec::new();
        let mut loaded = Vec::new();
        for path in &case.candidates {
            let (entry, code) = self.load(path, gemm);
            tried.push(entry);
            loaded.push(code);
        }
        let mut ours = Vec::new();
        for (entry, code) in tried.iter_mut().zip(&loaded) {
            ours.push(self.qualify(entry, code.as_ref(), &sets, &truth, &reference, options)?);
        }
        let setup = start.elapsed();
        let limits = Limits {
            budget_us: (options.budget.saturating_sub(setup).as_secs_f64() * 1e6).max(LEAST_US),
            sample_us: SAMPLE_US,
            pairs: options.pairs,
        };
        let planned = reference.as_ref().map(|r| &r.planned);
        let sides = (planned.map_or(0, Planned::algorithms), ours.len());
        let mut runner = Runner::new(&self.device, &sets, planned, ours);
        let mut outcome = contest::hold(sides, &limits, |who, count| runner.time(who, count))?;
        if let Some(winner) = outcome.winners.1
            && let (Some(entry), Some(prepared)) = (tried.get_mut(winner), runner.ours.get(winner))
            && !self.holds(entry, prepared, &truth, reference.as_ref(), options)?
        {
            outcome.winners.1 = None;
        }
        for (who, error) in runner.problems {
            if let Who::Ours(i) = who
                && let Some(entry) = tried.get_mut(i)
                && entry.verdict == Verdict::Right
            {
                (entry.verdict, entry.problem) = (Verdict::Failed, Some(error.to_string()));
            }
        }
        for (entry, standing) in tried.iter_mut().zip(&outcome.ours) {
            entry.time_us = standing.time();
        }
        Ok(Row {
            gemm: *gemm,
            label: case.label.clone(),
            cublaslt: reference.and_then(|r| baseline(gemm, &r, &outcome)),
            no_cublaslt,
            ours: side(gemm, &tried, &outcome),
            candidates: tried,
            seconds: (setup.as_secs_f64(), (start.elapsed() - setup).as_secs_f64()),
        })
    }

    /// Opens a package and loads its code.
    fn load(&self, path: &std::path::Path, gemm: &Gemm) -> (Tried, Option<(Candidate, Loaded)>) {
        let mut tried = Tried {
            package: path.display().to_string(),
            plan: String::new(),
            chip: String::new(),
            verdict: Verdict::Failed,
            time_us: None,
            problem: None,
            against_cublaslt: None,
            against_f64: None,
        };
        let mut load = || -> Result<(Candidate, Loaded), RuntimeError> {
            let mut candidate = packages::candidate(path)?.map_err(RuntimeError::Usage)?;
            (tried.plan, tried.chip) = (candidate.plan.clone(), candidate.chip.clone());
            let interface = &mut candidate.interface;
            if interface.square {
                interface.gemm.transposed = gemm.transposed;
            }
            if !interface.computes(gemm) {
                let it = interface.gemm;
                return Err(RuntimeError::Usage(format!("it computes {it}, not {gemm}")));
            }
            let loaded = Loaded::new(&self.device, Package::open(path)?, Code::Best)?;
            Ok((candidate, loaded))
        };
        match load() {
            Ok(loaded) => (tried, Some(loaded)),
            Err(error) => {
                tried.problem = Some(error.to_string());
                (tried, None)
            }
        }
    }

    /// Checks a candidate and prepares it for all sets; nothing for one that fails or is wrong.
    fn qualify<'a>(
        &self,
        tried: &mut Tried,
        loaded: Option<&'a (Candidate, Loaded)>,
        sets: &[OperandSet],
        truth: &Truth<'_>,
        reference: &Option<Reference<'_>>,
        options: &Options,
    ) -> Result<Vec<Prepared<'a>>, RuntimeError> {
        let Some((candidate, loaded)) = loaded else {
            return Ok(Vec::new());
        };
        let mut work = || -> Result<Vec<Prepared<'a>>, RuntimeError> {
            let first = self.prepare(truth.gemm, candidate, loaded, truth.set)?;
            self.check(tried, &first, truth, reference.as_ref(), options)?;
            if tried.verdict != Verdict::Right {
                return Ok(Vec::new());
            }
            let mut all = vec![first];
            for set in sets.iter().skip(1) {
                all.push(self.prepare(truth.gemm, candidate, loaded, set)?);
            }
            Ok(all)
        };
        match work() {
            Err(RuntimeError::OutOfBounds {
                memory,
                side,
                bytes,
            }) => {
                tried.verdict = Verdict::Wrong;
                tried.problem = Some(format!("it wrote {side} `{memory}` of {bytes} bytes"));
                Ok(Vec::new())
            }
            Err(error) if error.is_fatal() => Err(RuntimeError::Candidate {
                package: tried.package.clone(),
                error: Box::new(error),
            }),
            Err(error) => {
                (tried.verdict, tried.problem) = (Verdict::Failed, Some(error.to_string()));
                Ok(Vec::new())
            }
            done => done,
        }
    }

    fn prepare<'a>(
        &self,
        gemm: &Gemm,
        candidate: &Candidate,
        loaded: &'a Loaded,
        set: &OperandSet,
    ) -> Result<Prepared<'a>, RuntimeError> {
        let manifest = loaded.package().manifest();
        let of_inputs = manifest.inputs.iter().zip(&candidate.interface.roles);
        // The dimensions of A and W define all symbols.
        let mut env = Env::default();
        for (input, role) in of_inputs.clone() {
            let extents = match role {
                Role::A => [gemm.m, gemm.k],
                Role::W => gemm.w_shape(),
                _ => continue,
            };
            for (dim, extent) in input.shape.iter().zip(extents) {
                if let axe_package::Expr::Sym(name) = dim {
                    env.set(name, extent as i64);
                }
            }
        }
        let (mut types, mut shared) = (BTreeMap::new(), BTreeMap::new());
        for (input, role) in of_inputs {
            let extent = |e: &axe_package::Expr| {
                let value = e.eval(&env).ok().and_then(|v| u64::try_from(v).ok());
                value.ok_or_else(|| RuntimeError::Usage(format!("`{e}` has no value")))
            };
            let shape = input.shape.iter().map(extent).collect::<Result<_, _>>()?;
            let dtype = input.dtype;
            types.insert(input.name.clone(), TensorType { dtype, shape });
            let memory = set
                .input(*role)
                .ok_or_else(|| RuntimeError::Usage(format!("no operand for `{}`", input.name)))?;
            shared.insert(input.name.clone(), Arc::clone(memory));
        }
        for output in &manifest.outputs {
            shared.insert(output.name.clone(), Arc::clone(set.c()));
        }
        let sms = self.device.properties().sm_count;
        let env = manifest.bind(&types, &BTreeMap::new(), sms)?;
        Prepared::sharing(loaded, &env, &shared)
    }

    /// Runs a candidate once on poisoned memory and compares.
    fn check(
        &self,
        tried: &mut Tried,
        prepared: &Prepared<'_>,
        truth: &Truth<'_>,
        reference: Option<&Reference<'_>>,
        options: &Options,
    ) -> Result<(), RuntimeError> {
        prepared.poison()?;
        prepared.launch()?;
        let running = || format!("running `{}`", tried.package);
        self.device.wait(options.patience, running)?;
        prepared.check_guards()?;
        truth.set.check_guards()?;
        self.judge(tried, truth, reference)
    }

    /// Compares what lies in the first set's C.
    fn judge(
        &self,
        tried: &mut Tried,
        truth: &Truth<'_>,
        reference: Option<&Reference<'_>>,
    ) -> Result<(), RuntimeError> {
        let gemm = truth.gemm;
        let mut reports = vec![truth.against_f64()?];
        tried.against_f64 = reports.first().cloned();
        if let Some(reference) = reference {
            let c = truth.set.c();
            let report = self
                .comparer
                .compare(gemm.out(), gemm.m * gemm.n, c, &reference.c)?;
            tried.against_cublaslt = Some(report.clone());
            reports.push(report);
        }
        let wrong = reports.iter().find(|r| !r.passed());
        tried.verdict = wrong.map_or(Verdict::Right, |_| Verdict::Wrong);
        tried.problem = wrong.map(ToString::to_string);
        Ok(())
    }

    /// True if the fastest candidate's result is still right when its runs follow each other closely,
    /// over all sets, as they did when it was timed: what a race gets away with alone, it may not there.
    fn holds(
        &self,
        tried: &mut Tried,
        prepared: &[Prepared<'_>],
        truth: &Truth<'_>,
        reference: Option<&Reference<'_>>,
        options: &Options,
    ) -> Result<bool, RuntimeError> {
        let Some(first) = prepared.first() else {
            return Ok(false);
        };
        first.poison()?;
        prepared.iter().rev().try_for_each(Prepared::launch)?;
        let running = || format!("running `{}` again", tried.package);
        self.device.wait(options.patience, running)?;
        self.judge(tried, truth, reference)?;
        if tried.verdict == Verdict::Wrong {
            let problem = tried.problem.take().unwrap_or_default();
            tried.problem = Some(format!("right at first, but not in a row: {problem}"));
        }
        Ok(tried.verdict == Verdict::Right)
    }

    /// Plans cuBLASLt and runs its first algorithm on the first set.
    fn reference<'a>(
        &'a self,
        truth: &Truth<'_>,
        options: &Options,
    ) -> Result<Reference<'a>, RuntimeError> {
        let (gemm, operands) = (truth.gemm, truth.set.operands());
        let planned = self
            .cublaslt
            .plan(gemm, &operands, options.proposals, options.precise)?;
        truth.set.c().fill(axe_package::POISON)?;
        // SAFETY: the set's memory has the GEMM's sizes.
        unsafe { planned.launch(&operands, 0) }?;
        self.device
            .wait(options.patience, || "running cuBLASLt".into())?;
        let report = truth.against_f64()?;
        if !report.passed() {
            return Err(RuntimeError::CublasLt(format!(
                "its result disagrees with f64: {report}"
            )));
        }
        let bytes = truth.set.c().bytes();
        let c = DeviceMemory::new(&self.device, "cuBLASLt's result", bytes, 256)?;
        c.copy_from(truth.set.c())?;
        Ok(Reference {
            planned,
            c,
            norm_error: report.norm_rel,
        })
    }
}

/// TFLOP/s of a GEMM that takes `us` microseconds.
fn tflops(gemm: &Gemm, us: f64) -> f64 {
    gemm.flop() / us / 1e6
}

fn baseline(gemm: &Gemm, reference: &Reference<'_>, outcome: &Outcome) -> Option<Baseline> {
    let algorithm = outcome.winners.0?;
    let samples: Vec<f64> = outcome.pairs.iter().map(|p| p.0).collect();
    let of = |i: usize| outcome.theirs.get(i)?.time();
    let (first, best) = (of(0), of(algorithm));
    let drift = drift(&samples);
    let times = Times::of(samples)?;
    Some(Baseline {
        tflops: tflops(gemm, times.median_us),
        times,
        algorithm,
        first_over_best: first.zip(best).map(|(first, best)| first / best),
        algorithms: outcome.theirs.iter().filter(|s| !s.failed).count(),
        norm_error: reference.norm_error,
        drift,
    })
}

fn side(gemm: &Gemm, tried: &[Tried], outcome: &Outcome) -> Option<Ours> {
    let entry = tried.get(outcome.winners.1?)?;
    let pairs = outcome.pairs.iter();
    let (samples, ratios): (Vec<f64>, Vec<f64>) = match outcome.winners.0 {
        Some(_) => pairs
            .filter_map(|(theirs, ours)| Some(((*ours)?, theirs / (*ours)?)))
            .unzip(),
        None => (pairs.map(|p| p.0).collect(), Vec::new()),
    };
    let times = Times::of(samples)?;
    let ratios = Times::of(ratios);
    Some(Ours {
        package: entry.package.clone(),
        plan: entry.plan.clone(),
        tflops: tflops(gemm, times.median_us),
        times,
        ratio: ratios.as_ref().map(|r| r.median_us),
        ratio_p10_p90: ratios.map(|r| (r.p10_us, r.p90_us)),
    })
}
