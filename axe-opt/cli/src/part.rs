//! What the first CTAs computed (`axe sim --ctas`), beside the reference for those elements alone.

use axe_package::{DType, Report, Tensor, TensorSpec, Unwritten, compare};
use axe_runtime::RuntimeError;
use axe_runtime::run::Job;
use axe_sim::package::{Output, PackageRun};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

use crate::reference::{self, Part};

/// How the elements of one output that were written came out.
#[derive(Debug, Serialize)]
pub struct PartResult {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    /// The number of elements that were written.
    written: usize,
    /// The box around them.
    part: Option<Part>,
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
        let Some(part) = &self.part else {
            return f.write_str("WRONG: these CTAs wrote nothing of it");
        };
        write!(f, "{} elements written, in {part}: ", self.written)?;
        match &self.report {
            Some(report) => report.fmt(f),
            None if self.lacks_input => {
                f.write_str("not compared: computed from what other CTAs write")
            }
            None => f.write_str("nothing expected"),
        }
    }
}

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
            .map(|(output, written)| around(&output.tensor, written))
            .collect();
        let wanted: Vec<_> = specs
            .iter()
            .zip(&outputs)
            .zip(&boxes)
            .map(|((spec, output), part)| {
                let computed =
                    self.reference && !output.lacks_input && !self.job.expects(&spec.name);
                part.clone().filter(|_| computed)
            })
            .collect();
        let references = self.references(&wanted)?;
        let mut results = Vec::new();
        for (at, (spec, output)) in specs.iter().zip(&outputs).enumerate() {
            let mut result = PartResult {
                name: spec.name.clone(),
                dtype: spec.dtype,
                shape: output.tensor.shape().to_vec(),
                written: written[at].len(),
                part: boxes[at].clone(),
                lacks_input: output.lacks_input,
                report: None,
            };
            if let Some(part) = result.part.as_ref().filter(|_| !output.lacks_input) {
                let reference = references.get(at).and_then(Option::as_ref);
                let reference = reference.map(|tensor| (tensor, Some(part)));
                let want = self.job.expected(&spec.name).map(|tensor| (tensor, None));
                if let Some(want) = want.or(reference) {
                    result.report = Some(self.compared(spec, output, &written[at], want)?);
                }
            }
            results.push(result);
        }
        Ok(results)
    }

    fn references(&mut self, wanted: &[Option<Part>]) -> Result<Vec<Option<Tensor>>, RuntimeError> {
        if wanted.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        if let Some(known) = self.known.get(wanted) {
            return Ok(known.clone());
        }
        let computed = reference::parts(self.job.package(), self.inputs, wanted)?;
        self.known.insert(wanted.to_vec(), computed.clone());
        Ok(computed)
    }

    /// Compares the elements that were written with those of a tensor, which is the whole output or a part of it.
    fn compared(
        &self,
        spec: &TensorSpec,
        output: &Output,
        written: &[usize],
        (want, part): (&Tensor, Option<&Part>),
    ) -> Result<Report, RuntimeError> {
        let got = gathered(&output.tensor, written.iter().copied());
        let places = written.iter().map(|element| {
            let mut index = output.tensor.coordinates(*element);
            if let Some(part) = part {
                index
                    .iter_mut()
                    .zip(&part.origin)
                    .for_each(|(i, o)| *i -= o);
            }
            let extents = index.iter().zip(want.shape());
            extents.fold(0, |at, (i, extent)| at * *extent as usize + *i as usize)
        });
        let want = gathered(want, places);
        let failed = |error| RuntimeError::Compare {
            output: spec.name.clone(),
            error,
        };
        let mut report = compare(&got?, &want?, self.job.tolerance(spec.dtype)).map_err(failed)?;
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

/// The smallest box around elements; none around none.
fn around(tensor: &Tensor, elements: &[usize]) -> Option<Part> {
    let mut all = elements.iter().map(|element| tensor.coordinates(*element));
    let first = all.next()?;
    let (mut low, mut high) = (first.clone(), first);
    for index in all {
        low.iter_mut()
            .zip(&index)
            .for_each(|(low, i)| *low = (*low).min(*i));
        high.iter_mut()
            .zip(&index)
            .for_each(|(high, i)| *high = (*high).max(*i));
    }
    let shape = low
        .iter()
        .zip(&high)
        .map(|(low, high)| high - low + 1)
        .collect();
    Some(Part { origin: low, shape })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_holds_all_elements_and_no_more() {
        let tensor = Tensor::filled(DType::I8, vec![4, 6], 0).unwrap();
        let part = around(&tensor, &[9, 14, 13]).unwrap();
        assert_eq!((part.origin, part.shape), (vec![1, 1], vec![2, 3]));
        assert_eq!(around(&tensor, &[]), None);
    }
}
