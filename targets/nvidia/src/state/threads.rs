//! The threads that execute an operator together: the CTA, or what an `axe.scope` selects of it.

use crate::vocabulary::WARPGROUP_WARPS;
use axe_dialect::{Level, ops};
use axe_passes::ir::value::name;
use axe_passes::ir::{Op, attribute};
use melior::ir::operation::OperationLike;

/// Threads of a warp.
pub(crate) const WARP_THREADS: i64 = crate::vocabulary::WARP;

/// `axe.scope`'s level and range.
pub(crate) struct Selection {
    /// Warps of a member of the level; 0 for the CTA and what is around it.
    pub unit: i64,
    /// Members from and to.
    pub range: Option<(i64, i64)>,
}

impl Selection {
    /// What a scope selects; `None` for a level that holds no whole warps.
    pub(crate) fn of(scope: Op<'_>) -> Option<Self> {
        let unit = Self::unit_of(scope.attribute("level").ok().and_then(Level::cast)?)?;
        let range = scope.attribute("range").ok().and_then(attribute::read_i64s);
        let range = range.and_then(|range| Some((*range.first()?, *range.get(1)?)));
        Some(Self { unit, range })
    }

    /// Warps of a member of a level; 0 for the CTA and what is around it, `None` for a level that holds no whole warps.
    pub(crate) fn unit_of(level: Level) -> Option<i64> {
        match level {
            Level::Device | Level::Cluster | Level::Cta => Some(0),
            Level::Warpgroup => Some(WARPGROUP_WARPS),
            Level::Warp => Some(1),
            Level::Thread => None,
        }
    }
}

/// The operations around one, from inside out.
pub(crate) fn parents<'c>(op: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    let parent = |op: &Op<'c>| {
        let parent = op.parent_operation()?;
        // SAFETY: the parent lives as long as the operation.
        Some(unsafe { Op::from_raw(parent.to_raw()) })
    };
    std::iter::successors(parent(&op), parent)
}

/// Consecutive warps of a CTA. A scope without a range makes several groups of one size, of which a thread knows at run time to
/// which it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadGroup {
    /// The first warp of each group, ascending and evenly apart.
    pub firsts: Vec<i64>,
    /// Warps of a group.
    pub warps: i64,
}

impl ThreadGroup {
    /// All warps of a CTA.
    pub(crate) fn cta(threads: i64) -> Self {
        Self {
            firsts: vec![0],
            warps: threads / WARP_THREADS,
        }
    }

    /// Threads of a group.
    pub(crate) fn threads(&self) -> i64 {
        self.warps * WARP_THREADS
    }

    /// Warps from the first of one group to the first of the next.
    pub(crate) fn spacing(&self) -> i64 {
        match self.firsts[..] {
            [first, second, ..] => second - first,
            _ => self.warps,
        }
    }

    /// How many groups there are.
    pub(crate) fn count(&self) -> i64 {
        i64::try_from(self.firsts.len()).unwrap_or(1)
    }

    /// Whether a warp is in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.firsts.iter().any(|first| {
            let mut others = other.firsts.iter();
            others.any(|from| *first < from + other.warps && *from < first + self.warps)
        })
    }

    /// What a scope selects of it.
    pub(crate) fn select(&self, selection: &Selection) -> Self {
        match (selection.unit, selection.range) {
            (0, _) => self.clone(),
            (unit, Some((begin, end))) => Self {
                firsts: self
                    .firsts
                    .iter()
                    .map(|first| first + begin * unit)
                    .collect(),
                warps: (end - begin) * unit,
            },
            (unit, None) => Self {
                firsts: self
                    .firsts
                    .iter()
                    .flat_map(|first| (0..self.warps / unit).map(move |at| first + at * unit))
                    .collect(),
                warps: unit,
            },
        }
    }

    /// The group that executes an operator of a kernel of so many threads.
    pub(crate) fn around(op: Op<'_>, threads: i64) -> Self {
        let scopes = parents(op).filter(|parent| name(*parent) == ops::SCOPE);
        let scopes: Vec<_> = scopes.filter_map(Selection::of).collect();
        scopes
            .iter()
            .rev()
            .fold(Self::cta(threads), |group, scope| group.select(scope))
    }
}

/// A named barrier, by those who meet at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NamedBarrier {
    /// A thread group.
    Group {
        /// Its first warp.
        first: i64,
        /// How many warps it has.
        warps: i64,
    },
    /// A thread group that waits for its turn, and the one before it.
    Turn {
        /// The first warp of the one that waits.
        first: i64,
        /// How many warps it has.
        warps: i64,
    },
}

/// Whether the thread groups around a loop over tiles take turns at them.
pub(crate) fn is_pingpong(for_tiles: Op<'_>) -> bool {
    for_tiles.attribute("pingpong").is_ok()
}

/// How many of the groups around an operator execute it for one tile.
pub(crate) fn groups_of_a_tile(op: Op<'_>, threads: i64) -> i64 {
    let groups = ThreadGroup::around(op, threads).count();
    let mut loops =
        parents(op).filter(|parent| name(*parent) == ops::FOR_TILES && is_pingpong(*parent));
    match loops.next() {
        Some(shared) => groups / ThreadGroup::around(shared, threads).count().max(1),
        None => groups,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(unit: i64, range: Option<(i64, i64)>) -> Selection {
        Selection { unit, range }
    }

    #[test]
    fn scopes_select_warps() {
        let cta = ThreadGroup::cta(384);
        let consumers = cta.select(&selection(4, Some((1, 3))));
        assert_eq!((consumers.firsts.clone(), consumers.warps), (vec![4], 8));
        let each = consumers.select(&selection(4, None));
        assert_eq!((each.firsts.clone(), each.warps), (vec![4, 8], 4));
        let second = each.select(&selection(1, Some((1, 2))));
        assert_eq!((second.firsts, second.warps), (vec![5, 9], 1));
    }

    #[test]
    fn groups_with_gaps_keep_their_distance() {
        let each = ThreadGroup::cta(256).select(&selection(4, None));
        let three = each.select(&selection(1, Some((1, 4))));
        assert_eq!((three.firsts.clone(), three.warps), (vec![1, 5], 3));
        assert_eq!((three.spacing(), three.count()), (4, 2));
        assert_eq!(ThreadGroup::cta(256).spacing(), 8);
    }
}
