//! Candidate packages of a GEMM beside cuBLASLt: the same operands in one process, everything
//! checked, then a contest of the fastest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axe_package::Package;

use super::case::Case;
use super::check::Checks;
use super::compare::Comparer;
use super::contest::{self, Limits, OURS, Outcome, Who};
use super::cublaslt::{CublasLt, Planned};
use super::document::{Row, Tried, Verdict};
use super::fill::Filler;
use super::operands::OperandSet;
use super::packages::{self, Candidate};
use super::problem::Gemm;
use super::result;
use super::runner::Runner;
use super::truth::Truth;
use crate::device::{Device, DeviceMemory};
use crate::error::RuntimeError;
use crate::loaded::{Code, Loaded};
use crate::prepared::Prepared;
use crate::timing::rotating_sets;

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

impl Options {
    /// The limits of the contest, when `setup` is over.
    fn limits(&self, setup: Duration) -> Limits {
        Limits {
            budget_us: (self.budget.saturating_sub(setup).as_secs_f64() * 1e6).max(LEAST_US),
            sample_us: SAMPLE_US,
            turns: self.pairs,
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
    pub(super) device: Device,
    cublaslt: CublasLt,
    filler: Filler,
    pub(super) comparer: Comparer,
}

/// cuBLASLt's plan, its result for the first set, and that result's error.
pub(super) struct Reference<'a> {
    planned: Planned<'a>,
    pub(super) c: DeviceMemory,
    norm_error: f64,
}

/// The packages of our side and of the rivals', in order.
fn sides(case: &Case) -> impl Iterator<Item = &Vec<PathBuf>> {
    let rivals = case.rivals.iter().map(|r| &r.candidates);
    std::iter::once(&case.candidates).chain(rivals)
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
        let sets = self.operand_sets(gemm)?;
        let first = sets
            .first()
            .ok_or_else(|| RuntimeError::Usage("no operands".into()))?;
        let truth = Truth::of(gemm, first)?;
        let (reference, no_cublaslt) = match self.reference(&truth, options) {
            Ok(reference) => (Some(reference), None),
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => (None, Some(error.to_string())),
        };
        let checks = Checks {
            truth: &truth,
            reference: reference.as_ref(),
            patience: options.patience,
        };
        let of = |path: &PathBuf| self.load(path, gemm);
        let (mut tried, loaded): (Vec<Vec<_>>, Vec<Vec<_>>) = sides(case)
            .map(|paths| paths.iter().map(of).unzip::<_, _, Vec<_>, Vec<_>>())
            .unzip();
        let packages = self.qualify_all(&mut tried, &loaded, &sets, &checks)?;
        let setup = start.elapsed();
        let planned = reference.as_ref().map(|r| &r.planned);
        let mut counts = vec![planned.map_or(0, Planned::algorithms)];
        counts.extend(packages.iter().map(Vec::len));
        let mut runner = Runner::new(&self.device, &sets, planned, packages);
        let limits = options.limits(setup);
        let mut outcome = contest::hold(&counts, &limits, |who, n| runner.time(who, n))?;
        self.check_winners(&mut tried, &mut outcome, &runner, &checks)?;
        note_problems(&mut tried, &runner.problems);
        note_times(&mut tried, &outcome);
        let mut row = result::row(case, tried, &outcome);
        let norm_error = reference.as_ref().map(|r| r.norm_error);
        row.cublaslt = norm_error.and_then(|e| result::baseline(gemm, e, &outcome));
        row.no_cublaslt = no_cublaslt;
        row.seconds = (setup.as_secs_f64(), (start.elapsed() - setup).as_secs_f64());
        Ok(row)
    }

    /// As many sets of operands as keep them from staying in the cache.
    fn operand_sets(&self, gemm: &Gemm) -> Result<Vec<OperandSet>, RuntimeError> {
        let count = rotating_sets(gemm.bytes(), self.device.properties().l2_bytes);
        (0..count)
            .map(|i| OperandSet::new(&self.device, &self.filler, gemm, i as u32))
            .collect()
    }

    /// What [`Bench::qualify`] gives for each candidate of each side.
    fn qualify_all<'a>(
        &self,
        tried: &mut [Vec<Tried>],
        loaded: &'a [Vec<Option<(Candidate, Loaded)>>],
        sets: &[OperandSet],
        checks: &Checks<'_>,
    ) -> Result<Vec<Vec<Vec<Prepared<'a>>>>, RuntimeError> {
        let mut sides = Vec::new();
        for (entries, codes) in tried.iter_mut().zip(loaded) {
            let candidates = entries.iter_mut().zip(codes);
            let prepared =
                candidates.map(|(entry, code)| self.qualify(entry, code.as_ref(), sets, checks));
            sides.push(prepared.collect::<Result<_, _>>()?);
        }
        Ok(sides)
    }

    /// Disqualifies the winners whose results are wrong when they run in a row.
    fn check_winners(
        &self,
        tried: &mut [Vec<Tried>],
        outcome: &mut Outcome,
        runner: &Runner<'_>,
        checks: &Checks<'_>,
    ) -> Result<(), RuntimeError> {
        for (i, entries) in tried.iter_mut().enumerate() {
            let side = OURS + i;
            let Some(number) = outcome.winner(side) else {
                continue;
            };
            let prepared = runner.prepared(Who { side, number }).unwrap_or_default();
            if let Some(entry) = entries.get_mut(number)
                && !self.holds(entry, prepared, checks)?
            {
                outcome.disqualify(side);
            }
        }
        Ok(())
    }

    /// Opens a package and loads its code.
    fn load(&self, path: &Path, gemm: &Gemm) -> (Tried, Option<(Candidate, Loaded)>) {
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

/// Why a candidate that was right did not run in the contest.
fn note_problems(tried: &mut [Vec<Tried>], problems: &[(Who, RuntimeError)]) {
    for (who, error) in problems {
        let side = who.side.checked_sub(OURS).and_then(|i| tried.get_mut(i));
        if let Some(entry) = side.and_then(|s| s.get_mut(who.number))
            && entry.verdict == Verdict::Right
        {
            (entry.verdict, entry.problem) = (Verdict::Failed, Some(error.to_string()));
        }
    }
}

fn note_times(tried: &mut [Vec<Tried>], outcome: &Outcome) {
    for (entries, side) in tried.iter_mut().zip(outcome.sides.iter().skip(OURS)) {
        for (entry, standing) in entries.iter_mut().zip(&side.standings) {
            entry.time_us = standing.time();
        }
    }
}
