//! Timing the contenders of one GEMM: launches that rotate over the sets of operands, replayed from
//! a graph where they are so short that the host could not keep up.

use std::collections::HashMap;

use cudarc::driver::{CudaGraph, sys};

use super::contest::{LIBRARY, Who};
use super::cublaslt::Planned;
use super::operands::OperandSet;
use crate::device::Device;
use crate::error::{Doing, RuntimeError};
use crate::prepared::Prepared;
use crate::timing::elapsed_us;

/// From so many launches a sample on, they come from a graph: samples of 2 ms have as many when a
/// launch takes less than about 60 microseconds.
const GRAPH_FROM: usize = 32;

/// A launch that is this short, in microseconds, is timed again as one of several.
const SHORT_US: f64 = 100.0;

/// The contenders.
pub struct Runner<'a> {
    /// The device.
    pub device: &'a Device,
    /// The operands, in rotation.
    pub sets: &'a [OperandSet],
    /// The library's side.
    pub planned: Option<&'a Planned<'a>>,
    /// Our side and the rivals': for each candidate a launch for each set; none for one that is out.
    pub packages: Vec<Vec<Vec<Prepared<'a>>>>,
    graphs: HashMap<Who, (usize, CudaGraph)>,
    next: HashMap<Who, usize>,
    /// Why a contender did not run.
    pub problems: Vec<(Who, RuntimeError)>,
}

impl<'a> Runner<'a> {
    /// A runner that has run nothing yet.
    #[must_use]
    pub fn new(
        device: &'a Device,
        sets: &'a [OperandSet],
        planned: Option<&'a Planned<'a>>,
        packages: Vec<Vec<Vec<Prepared<'a>>>>,
    ) -> Self {
        Runner {
            device,
            sets,
            planned,
            packages,
            graphs: HashMap::new(),
            next: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Microseconds of one of `count` launches; `None` for a contender that does not run.
    ///
    /// # Errors
    /// One after which nothing runs.
    pub fn time(&mut self, who: Who, count: usize) -> Result<Option<f64>, RuntimeError> {
        match self.sample(who, count) {
            Ok(us) => Ok(Some(us)),
            Err(error) if error.is_fatal() => Err(error),
            Err(error) => {
                self.problems.push((who, error));
                Ok(None)
            }
        }
    }

    fn sample(&mut self, who: Who, count: usize) -> Result<f64, RuntimeError> {
        let from = self.next.get(&who).copied();
        let start = from.unwrap_or(0);
        self.next.insert(who, start + count);
        if from.is_none() {
            // The first launch loads code and sets up.
            self.launch(who, 0)?;
            let us = elapsed_us(self.device, start, count, |i| self.launch(who, i))? / count as f64;
            if count == 1 && us < SHORT_US {
                let again = elapsed_us(self.device, start, 10, |i| self.launch(who, i))?;
                return Ok(again / 10.0);
            }
            return Ok(us);
        }
        if count >= GRAPH_FROM {
            self.capture(who, count)?;
            if let Some((_, graph)) = self.graphs.get(&who) {
                let replay = |_| graph.launch().doing(|| "launching a graph".into());
                return Ok(elapsed_us(self.device, 0, 1, replay)? / count as f64);
            }
        }
        Ok(elapsed_us(self.device, start, count, |i| self.launch(who, i))? / count as f64)
    }

    fn launch(&self, who: Who, i: usize) -> Result<(), RuntimeError> {
        let set = i % self.sets.len().max(1);
        if who.side == LIBRARY {
            return match (self.planned, self.sets.get(set)) {
                // SAFETY: the set's memory has the sizes that the GEMM was planned with.
                (Some(planned), Some(set)) => unsafe {
                    planned.launch(&set.operands(), who.number)
                },
                _ => Err(RuntimeError::CublasLt("nothing is planned".into())),
            };
        }
        match self.prepared(who).and_then(|p| p.get(set)) {
            Some(prepared) => prepared.launch(),
            None => Err(RuntimeError::Usage("the candidate is out".into())),
        }
    }

    /// A candidate's launches.
    #[must_use]
    pub fn prepared(&self, who: Who) -> Option<&[Prepared<'a>]> {
        let side = self.packages.get(who.side.checked_sub(1)?)?;
        side.get(who.number).map(Vec::as_slice)
    }

    /// Has a graph of `count` launches ready, uploaded and run once.
    fn capture(&mut self, who: Who, count: usize) -> Result<(), RuntimeError> {
        if self.graphs.get(&who).is_some_and(|(n, _)| *n == count) {
            return Ok(());
        }
        let stream = self.device.stream();
        let doing = || "capturing launches as a graph".to_owned();
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).doing(doing)?;
        let launched = (0..count).try_for_each(|i| self.launch(who, i));
        // Capture ends whatever came of the launches, or nothing would run any more.
        let graph = stream
            .end_capture(sys::CUgraphInstantiate_flags(0))
            .doing(doing);
        launched?;
        if let Some(graph) = graph? {
            graph.upload().doing(doing)?;
            graph.launch().doing(doing)?;
            self.graphs.insert(who, (count, graph));
        }
        Ok(())
    }
}
