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
}

/// The graph of a seed.
pub fn sample(seed: u64) -> Sample {
    let mut random = Random::new(seed);
    let mut graph = Graph::new(&mut random);
    let mut values = vec![first(&mut graph)];
    for _ in 0..graph.random.below(3) {
        let next = stage(&mut graph, &values);
        values.push(next);
    }
    let last = values.pop();
    let mut results: Vec<Value> = last.into_iter().collect();
    if graph.random.once_in(5)
        && let Some(other) = values.pop()
    {
        results.push(other);
    }
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
    }
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
        8 if float => graph.softmax(&value),
        9 if float => graph.norm(&value),
        10..=13 => graph.moved(&value),
        _ => graph.elementwise(&value),
    }
}
