//! What a timed program shows: how busy each engine is, and how much of it at the same time.

use super::cost::Cost;
use crate::facts::chip::{Chip, Engine};
use crate::program::Program;
use serde::Serialize;
use std::fmt;

/// One execution in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// The engine.
    pub engine: Engine,
    /// The number of the instruction in the program's text.
    pub instruction: u32,
    /// Seconds from the beginning.
    pub start: f64,
    /// Seconds from the beginning.
    pub end: f64,
}

/// How long a program takes, and what its engines do meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The program's name.
    pub name: String,
    /// The chip's.
    pub chip: &'static str,
    /// Seconds from the first instruction to the last result.
    pub seconds: f64,
    /// For each engine, in the order of [`Engine::ALL`], the seconds in which it is busy.
    pub busy: [f64; 5],
    /// For each engine, the instructions executed.
    pub executed: [usize; 5],
    /// Seconds in which at least one engine is busy while DMA is.
    pub overlapped: f64,
    /// Bytes moved by DMA.
    pub dma_bytes: f64,
    /// The least time of the products, were the whole array used all the time, over the time of the program.
    pub tensor_utilisation: f64,
    /// The most that any engine must work: no order of the same instructions is faster.
    pub bound: f64,
    /// The names of the instructions, by number.
    pub instructions: Vec<&'static str>,
    /// Every execution.
    #[serde(skip)]
    pub segments: Vec<Segment>,
}

impl Timing {
    pub(super) fn new(
        program: &Program,
        chip: &'static Chip,
        segments: Vec<Segment>,
        kinds: Vec<(&'static str, Cost)>,
    ) -> Self {
        let mut timing = Self {
            name: program.name.clone(),
            chip: chip.name,
            seconds: 0.0,
            busy: [0.0; 5],
            executed: [0; 5],
            overlapped: 0.0,
            dma_bytes: 0.0,
            tensor_utilisation: 0.0,
            bound: 0.0,
            instructions: kinds.iter().map(|(name, _)| *name).collect(),
            segments,
        };
        let mut product_cycles = 0.0;
        let mut dma_work = 0.0;
        for segment in &timing.segments {
            let row = row(segment.engine);
            timing.executed[row] += 1;
            timing.seconds = timing.seconds.max(segment.end);
            let cost = kinds[segment.instruction as usize].1;
            product_cycles += cost.product_cycles;
            timing.dma_bytes += cost.dma_bytes;
            dma_work += cost.seconds * cost.dma_engines as f64 / crate::facts::dma::ENGINES as f64;
        }
        let spans = Engine::ALL.map(|engine| timing.spans(engine));
        for (busy, spans) in timing.busy.iter_mut().zip(&spans) {
            *busy = spans.iter().fold(0.0, |sum, span| sum + span.1 - span.0);
        }
        let computing = union(spans[..4].iter().flatten().copied().collect());
        timing.overlapped = common(&computing, &spans[4]);
        let [tensor, vector, scalar, gpsimd, _] = timing.busy;
        timing.bound = [tensor, vector, scalar, gpsimd, dma_work]
            .into_iter()
            .fold(0.0, f64::max);
        let clock = chip.clock(Engine::Tensor).unwrap_or(f64::INFINITY);
        if timing.seconds > 0.0 {
            timing.tensor_utilisation = product_cycles / clock / timing.seconds;
        }
        timing
    }

    /// When an engine is busy: spans in order, apart from each other.
    #[must_use]
    pub fn spans(&self, engine: Engine) -> Vec<(f64, f64)> {
        union(
            self.segments
                .iter()
                .filter(|segment| segment.engine == engine)
                .map(|segment| (segment.start, segment.end))
                .collect(),
        )
    }
}

/// The row of an engine.
pub(super) fn row(engine: Engine) -> usize {
    Engine::ALL
        .iter()
        .position(|known| *known == engine)
        .unwrap_or(0)
}

/// The union of spans, in order.
fn union(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => merged.push(span),
        }
    }
    merged
}

/// How long two lists of spans are both there.
fn common(a: &[(f64, f64)], b: &[(f64, f64)]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += (x.1.min(y.1) - x.0.max(y.0)).max(0.0);
        if x.1 <= y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    sum
}

/// Seconds as people read them.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| 100.0 * part / self.seconds.max(f64::MIN_POSITIVE);
        writeln!(
            f,
            "{} on {}: {}",
            self.name,
            self.chip,
            duration(self.seconds)
        )?;
        for (row, engine) in Engine::ALL.iter().enumerate() {
            writeln!(
                f,
                "  {:<7} {:>6.2} % busy, {} in {} instructions",
                engine.name(),
                percent(self.busy[row]),
                duration(self.busy[row]),
                self.executed[row]
            )?;
        }
        writeln!(
            f,
            "  DMA moves {:.3} MB at {:.1} GB/s; {:.2} % of its time an engine computes",
            self.dma_bytes / 1e6,
            self.dma_bytes / self.busy[4].max(f64::MIN_POSITIVE) / 1e9,
            100.0 * self.overlapped / self.busy[4].max(f64::MIN_POSITIVE),
        )?;
        write!(
            f,
            "  tensor engine: {:.2} % of its peak; bound {} ({:.2} % of it reached)",
            100.0 * self.tensor_utilisation,
            duration(self.bound),
            percent(self.bound)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_joined_and_intersected() {
        let a = union(vec![(2.0, 3.0), (0.0, 1.0), (0.5, 1.5)]);
        assert_eq!(a, [(0.0, 1.5), (2.0, 3.0)]);
        assert!((common(&a, &[(1.0, 2.5)]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(6.97e-3), "6.970 ms");
        assert_eq!(duration(1.3e-6), "1.30 us");
        assert_eq!(duration(5e-8), "50 ns");
    }
}
