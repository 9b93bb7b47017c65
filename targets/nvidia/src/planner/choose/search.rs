//! The configurations that are worth timing, best first as the cost model has it.
//!
//! One is worth it unless the model thinks it much slower than the best. Of one tile some differ in what the model has no opinion
//! on: further ones of a tile take turns with further tiles.

use std::collections::HashSet;
use std::hash::Hash;

/// How much slower than the best a configuration may be predicted to be and still be tried. The model is no better than
/// that for small products, where latencies count that it does not know.
const WORTH: f64 = 1.75;
/// What a further configuration of a tile costs in the ranking: as much as a tile that is this much slower.
const PATIENCE: f64 = 0.012;

/// A configuration and the clocks that it is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<C> {
    /// The configuration.
    pub config: C,
    /// Predicted clocks.
    pub clocks: f64,
}

/// A configuration to try, and its number among those that the model cannot tell apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Tried<C> {
    pub config: C,
    pub number: usize,
}

/// The one configuration of a family that has no choice, where `limit` has room for it.
pub(in crate::planner) fn only<C>(config: C, clocks: f64, limit: usize) -> Vec<Candidate<C>> {
    let only = std::iter::once(Candidate { config, clocks });
    only.take(limit).collect()
}

/// At most `limit` of the configurations, the cost model's own choice first. Clocks are compared within a `kind`; the best of
/// each `way` to share the work come before others, for the model is surer within a way.
pub(in crate::planner) fn ranked<C: Copy + PartialEq, K: PartialEq, W: Eq + Hash>(
    own: Option<C>,
    all: Vec<Tried<C>>,
    limit: usize,
    clocks: impl Fn(&C) -> f64,
    kind: impl Fn(&C) -> K,
    way: impl Fn(&C) -> W,
) -> Vec<Candidate<C>> {
    // Each is predicted once: they are thousands.
    let timed: Vec<(Tried<C>, f64)> = all
        .iter()
        .map(|tried| (*tried, clocks(&tried.config)))
        .collect();
    let mut bests: Vec<(K, f64)> = Vec::new();
    for (tried, own) in &timed {
        let of = kind(&tried.config);
        match bests.iter_mut().find(|(kind, _)| *kind == of) {
            Some((_, best)) => *best = best.min(*own),
            None => bests.push((of, *own)),
        }
    }
    let best = |config: &C| {
        let of = kind(config);
        let found = bests.iter().find(|(kind, _)| *kind == of);
        found.map_or(f64::INFINITY, |(_, best)| *best)
    };
    let mut worth: Vec<_> = timed
        .iter()
        .map(|(Tried { config, number }, own)| {
            let slower = own / best(config);
            (*config, slower, slower + PATIENCE * *number as f64)
        })
        .filter(|(_, slower, _)| *slower <= WORTH)
        .collect();
    worth.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut ways = HashSet::new();
    let (firsts, others): (Vec<_>, Vec<_>) = worth
        .into_iter()
        .map(|(config, ..)| config)
        .partition(|config| ways.insert(way(config)));
    let others = firsts.into_iter().chain(others);
    let all = own
        .into_iter()
        .chain(others.filter(|config| Some(*config) != own));
    all.take(limit)
        .map(|config| Candidate {
            clocks: clocks(&config),
            config,
        })
        .collect()
}
