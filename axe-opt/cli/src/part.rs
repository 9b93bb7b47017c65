//! What the first CTAs computed (`axe sim --ctas`), beside the reference for those elements alone.

use axe_package::{DType, Report, Tensor, TensorSpec, Unwritten, compare};
use axe_runtime::RuntimeError;
use axe_runtime::run::Job;
use axe_sim::package::{Output, PackageRun};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

use crate::boxes::{self, Part};
use crate::reference;

/// How the elements of one output that were written came out.
#[derive(Debug, Serialize)]
pub struct PartResult {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    /// The number of elements that were written.
    written: usize,
    /// The boxes that they lie in, one for each tile.
    parts: Vec<Part>,
    /// Whether they were computed from memory that other CTAs write: they are then not compared.
    lacks_input: bool,
    /// The comparison, where something was expected.
    report: Option<Report>,
}

impl PartResult {
    /// False where something was compared and wrong, or something was wanted and nothing written.
    pub fn passed(&self) -> bool {
        self.written > 0 && self.report.as_ref().is_none_or(Report::passed)
    }
}

impl std::fmt::Display for PartResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "output {} {} {:?}: ", self.name, self.dtype, self.shape)?;
        let Some(first) = self.parts.first() else {
            return f.write_str("WRONG: these CTAs wrote nothing of it");
        };
        write!(f, "{} elements written, in {first}", self.written)?;
        match self.parts.len() - 1 {
            0 => {}
            1 => write!(f, " and {}", self.parts[1])?,
            more => write!(f, " and {more} other boxes")?,
        }
        f.write_str(": ")?;
        match &self.report {
            Some(report) => report.fmt(f),
            None if self.lacks_input => {
                f.write_str("not compared: computed from what other CTAs write")
            }
            None => f.write_str("nothing expected"),
        }
    }
}

/// A box of an output, as the reference computed it.
type Computed = (Part, Tensor);

/// Judges runs of the first CTAs; keeps what it computed of the reference.
pub struct Judge<'a> {
    job: &'a Job,
    inputs: &'a BTreeMap<String, Tensor>,
    /// Whether to compare with the CPU reference.
    reference: bool,
    known: HashMap<Vec<Option<Part>>, Vec<Option<Tensor>>>,
}

impl<'a> Judge<'a> {
    /// A judge of runs on these inputs.
    pub fn new(job: &'a Job, inputs: &'a BTreeMap<String, Tensor>, reference: bool) -> Self {
        Judge {
            job,
            inputs,
            reference,
            known: HashMap::new(),
        }
    }

    /// How the outputs of a run came out.
    ///
    /// # Errors
    /// A reference that does not run.
    pub fn judge(&mut self, run: &PackageRun) -> Result<Vec<PartResult>, RuntimeError> {
        let specs = self.job.package().manifest().outputs.clone();
        let outputs: Vec<_> = specs
            .iter()
            .filter_map(|spec| run.outputs.get(&spec.name))
            .collect();
        let written: Vec<_> = outputs.iter().map(|output| elements(output)).collect();
        let boxes: Vec<_> = outputs
            .iter()
            .zip(&written)
            .map(|(output, written)| {
                let indices = written.iter().map(|at| output.tensor.coordinates(*at));
                boxes::around(indices)
            })
            .collect();
        let compared = specs.iter().zip(&outputs).zip(&boxes);
        let asked: Vec<_> = compared
            .map(|((spec, output), parts)| {
                let computed =
                    self.reference && !output.lacks_input && !self.job.expects(&spec.name);
                if computed { parts.as_slice() } else { &[] }
            })
            .collect();
        let references = self.references(&asked)?;
        let mut results = Vec::new();
        for (at, (spec, output)) in specs.iter().zip(&outputs).enumerate() {
            let mut result = PartResult {
                name: spec.name.clone(),
                dtype: spec.dtype,
                shape: output.tensor.shape().to_vec(),
                written: written[at].len(),
                parts: boxes[at].clone(),
                lacks_input: output.lacks_input,
                report: None,
            };
            if !result.parts.is_empty() && !output.lacks_input {
                let want = match self.job.expected(&spec.name) {
                    Some(whole) => Some(gathered(whole, written[at].iter().copied())?),
                    None => wanted(output, &written[at], &references[at])?,
                };
                if let Some(want) = want {
                    result.report = Some(self.compared(spec, output, &written[at], &want)?);
                }
            }
            results.push(result);
        }
        Ok(results)
    }

    /// The boxes of each output, computed: the first of every output together, and so on.
    fn references(&mut self, wanted: &[&[Part]]) -> Result<Vec<Vec<Computed>>, RuntimeError> {
        let mut references = vec![Vec::new(); wanted.len()];
        let turns = wanted.iter().map(|parts| parts.len()).max().unwrap_or(0);
        for turn in 0..turns {
            let parts: Vec<_> = wanted.iter().map(|own| own.get(turn).cloned()).collect();
            let computed = match self.known.get(&parts) {
                Some(known) => known.clone(),
                None => reference::parts(self.job.package(), self.inputs, &parts)?,
            };
            for ((own, part), tensor) in references.iter_mut().zip(&parts).zip(&computed) {
                own.extend(part.clone().zip(tensor.clone()));
            }
            self.known.insert(parts, computed);
        }
        Ok(references)
    }

    /// Compares the elements that were written with what they should be.
    fn compared(
        &self,
        spec: &TensorSpec,
        output: &Output,
        written: &[usize],
        want: &Tensor,
    ) -> Result<Report, RuntimeError> {
        let got = gathered(&output.tensor, written.iter().copied())?;
        let failed = |error| RuntimeError::Compare {
            output: spec.name.clone(),
            error,
        };
        let mut report = compare(&got, want, self.job.tolerance(spec.dtype)).map_err(failed)?;
        for mismatch in &mut report.first {
            let element = mismatch
                .index
                .first()
                .and_then(|at| written.get(*at as usize));
            mismatch.index = output.tensor.coordinates(element.copied().unwrap_or(0));
        }
        Ok(report)
    }
}

/// The elements that something wrote.
fn elements(output: &Output) -> Vec<usize> {
    let unwritten: &Unwritten = &output.unwritten;
    (0..output.tensor.len())
        .filter(|at| !unwritten.at(*at))
        .collect()
}

/// What the reference has for the elements that were written; none where it was not computed.
fn wanted(
    output: &Output,
    written: &[usize],
    computed: &[Computed],
) -> Result<Option<Tensor>, RuntimeError> {
    let size = output.tensor.dtype().bytes();
    let mut bytes = Vec::with_capacity(written.len() * size);
    for element in written {
        let index = output.tensor.coordinates(*element);
        let place = |(part, tensor): &Computed| {
            let at = part.place(&index)? * size;
            tensor.bytes().get(at..at + size).map(<[u8]>::to_vec)
        };
        match computed.iter().find_map(place) {
            Some(element) => bytes.extend(element),
            None => return Ok(None),
        }
    }
    let count = written.len() as u64;
    Ok(Some(Tensor::new(
        output.tensor.dtype(),
        vec![count],
        bytes,
    )?))
}

/// Elements of a tensor as a tensor of one dimension; those outside are left out.
fn gathered(
    tensor: &Tensor,
    elements: impl Iterator<Item = usize>,
) -> Result<Tensor, RuntimeError> {
    let size = tensor.dtype().bytes();
    let pieces = elements.filter_map(|at| tensor.bytes().get(at * size..(at + 1) * size));
    let bytes: Vec<u8> = pieces.flatten().copied().collect();
    let count = (bytes.len() / size) as u64;
    Ok(Tensor::new(tensor.dtype(), vec![count], bytes)?)
}
