//! The graph of a seed.

use crate::graph::{Graph, Value};
use axe_cases::random::Random;
use axe_package::Tensor;

/// A module with inputs and how exact its results must be.
pub struct Sample {
    /// The module; its function is `main`.
    pub module: String,
    /// The arguments.
    pub inputs: Vec<Tensor>,
    /// For each result, how far two right implementations may be apart, and the largest magnitude.
    pub results: Vec<(f64, f64)>,
    /// How far a result may be from another right one, as a part of it, by the norms of both.
    pub norm: Option<f64>,
}

/// Of programs that round to 16 bits a few times.
const NORM: f64 = 0.02;

/// The graph of a seed; `fused`: one that is to become few kernels.
pub fn sample(seed: u64, fused: bool) -> Sample {
    let mut random = Random::new(seed);
    let mut graph = Graph::new(&mut random);
    let results = match fused {
        true => graph.fused(),
        false => staged(&mut graph),
    };
    Sample {
        module: graph.module(&results),
        inputs: graph
            .inputs
            .iter()
            .map(|(_, tensor)| tensor.clone())
            .collect(),
        results: results
            .iter()
            .map(|value| (value.error, value.bound))
            .collect(),
        norm: fused.then_some(NORM),
    }
}

/// A value that goes through some stages; sometimes one on its way as a second result.
fn staged(graph: &mut Graph<'_>) -> Vec<Value> {
    let mut values = vec![first(graph)];
    for _ in 0..graph.random.below(3) {
        let next = stage(graph, &values);
        values.push(next);
    }
    let last = values.pop();
    let mut results: Vec<Value> = last.into_iter().collect();
    if graph.random.once_in(5)
        && let Some(other) = values.pop()
    {
        results.push(other);
    }
    results
}

/// What a graph begins with: never an argument, which a result would be the same memory as.
fn first(graph: &mut Graph<'_>) -> Value {
    match graph.random.below(3) {
        0 => graph.product(None),
        _ => {
            let start = graph.seed_tensor();
            graph.elementwise(&start)
        }
    }
}

fn stage(graph: &mut Graph<'_>, values: &[Value]) -> Value {
    let value = graph.random.pick(values);
    if value.shape.is_empty() {
        return first(graph);
    }
    let rows = !(value.open && value.shape.len() == 1) && value.shape.last() != Some(&1);
    let float = value.element.is_float() && rows;
    match graph.random.below(14) {
        0..=2 => graph.elementwise(&value),
        3..=5 => graph.reduction(&value),
        6 => graph.reshaped(&value),
        7 => graph.product(Some(&value)),
        kind @ 8..=9 if float => {
            let last = value.shape.len() - 1;
            let first = usize::from(value.open).min(last);
            let dim = graph.random.pick(&[last, last, first]);
            match kind {
                8 => graph.softmax_along(&value, dim),
                _ => graph.norm_along(&value, dim),
            }
        }
        10..=13 => graph.moved(&value),
        _ => graph.elementwise(&value),
    }
}
