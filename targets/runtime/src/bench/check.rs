//! Whether a candidate computes what it should.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axe_package::{Env, TensorType};

use super::document::{Tried, Verdict};
use super::gemm::{Bench, Reference};
use super::operands::OperandSet;
use super::packages::{Candidate, Role};
use super::problem::Gemm;
use super::truth::Truth;
use crate::error::RuntimeError;
use crate::loaded::Loaded;
use crate::prepared::Prepared;

/// What the candidates of a GEMM are held against.
pub(super) struct Checks<'a> {
    pub(super) truth: &'a Truth<'a>,
    /// cuBLASLt's result, where it has one.
    pub(super) reference: Option<&'a Reference<'a>>,
    /// How long a candidate may take, before it is said to hang.
    pub(super) patience: Duration,
}

impl Bench {
    /// Checks a candidate and prepares it for all sets; nothing for one that fails or is wrong.
    pub(super) fn qualify<'a>(
        &self,
        tried: &mut Tried,
        loaded: Option<&'a (Candidate, Loaded)>,
        sets: &[OperandSet],
        checks: &Checks<'_>,
    ) -> Result<Vec<Prepared<'a>>, RuntimeError> {
        let Some((candidate, loaded)) = loaded else {
            return Ok(Vec::new());
        };
        let mut work = || -> Result<Vec<Prepared<'a>>, RuntimeError> {
            let Truth { gemm, set, .. } = *checks.truth;
            let first = self.prepare(gemm, candidate, loaded, set)?;
            self.check(tried, &first, checks)?;
            if tried.verdict != Verdict::Right {
                return Ok(Vec::new());
            }
            let mut all = vec![first];
            for set in sets.iter().skip(1) {
                all.push(self.prepare(gemm, candidate, loaded, set)?);
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
        checks: &Checks<'_>,
    ) -> Result<(), RuntimeError> {
        prepared.poison()?;
        prepared.launch()?;
        let running = || format!("running `{}`", tried.package);
        self.device.wait(checks.patience, running)?;
        prepared.check_guards()?;
        checks.truth.set.check_guards()?;
        self.judge(tried, checks)
    }

    /// Compares what lies in the first set's C.
    fn judge(&self, tried: &mut Tried, checks: &Checks<'_>) -> Result<(), RuntimeError> {
        let truth = checks.truth;
        let gemm = truth.gemm;
        let mut reports = vec![truth.against_f64()?];
        tried.against_f64 = reports.first().cloned();
        if let Some(reference) = checks.reference {
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
    pub(super) fn holds(
        &self,
        tried: &mut Tried,
        prepared: &[Prepared<'_>],
        checks: &Checks<'_>,
    ) -> Result<bool, RuntimeError> {
        let Some(first) = prepared.first() else {
            return Ok(false);
        };
        first.poison()?;
        prepared.iter().rev().try_for_each(Prepared::launch)?;
        let running = || format!("running `{}` again", tried.package);
        self.device.wait(checks.patience, running)?;
        self.judge(tried, checks)?;
        if tried.verdict == Verdict::Wrong {
            let problem = tried.problem.take().unwrap_or_default();
            tried.problem = Some(format!("right at first, but not in a row: {problem}"));
        }
        Ok(tried.verdict == Verdict::Right)
    }
}
