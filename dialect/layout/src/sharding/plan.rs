//! From one distribution to another by the cheapest sequence of collectives.
//!
//! Mesh axes are cut into the digits that both distributions speak of, and those into primes; a state says
//! which digits split which dimension in which order, which hold pending sums, which hold the data at one
//! position, and the rest hold copies. A* over states, with cost (bytes that a device receives, number of
//! steps) and the bytes that the busiest device still lacks as the bound, finds the sequence; `minimal`
//! says whether it ran to the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::collective::{Collective, Step};
use super::error::{Result, ShardingError, invalid};
use super::moves::{Atom, Cut, Move, Space, State, merged};
use super::spec::{AxisRef, Reduction, Sharding};

/// Bytes, and steps: eight for what communicates, one for what a device does by itself.
type Cost = (u64, u32);

/// The cheapest way known to a state: its cost, and the state and move before it.
type Reached = (Cost, Option<(usize, Move)>);

/// States that the search may settle before it falls back.
const MAX_STATES: usize = 20_000;
/// Assignments that one permutation may lead to.
const MAX_PERMUTATIONS: usize = 6_000;

/// A sequence of collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The steps in order; empty when the distributions agree.
    pub steps: Vec<Step>,
    /// Whether no sequence of these collectives over prime digits of the mesh moves fewer bytes per
    /// device. False only for meshes too large to search.
    pub minimal: bool,
    /// Bytes that the busiest device lacks at the start: no communication of any kind moves fewer.
    pub lower_bound: u64,
}

impl Plan {
    /// Bytes that the busiest device receives in all steps together.
    #[must_use]
    pub fn bytes_per_device(&self) -> u64 {
        self.steps
            .iter()
            .fold(0, |sum, step| sum.saturating_add(step.bytes_per_device))
    }
}

/// The collectives that take `from` to `to`, for elements of `elem_bytes` bytes.
///
/// ```
/// use axe_layout::sharding::{Mesh, Sharding, plan};
/// let mesh = Mesh::linear("gpu", &[("x", 4)])?;
/// let rows = Sharding::from_alpa(mesh.clone(), vec![64, 64], "S0R")?;
/// let columns = Sharding::from_alpa(mesh, vec![64, 64], "RS0")?;
/// let found = plan(&rows, &columns, 2)?;
/// assert_eq!(found.steps[0].collective.name(), "all-to-all");
/// assert_eq!(found.bytes_per_device(), 64 * 64 / 4 * 2 * 3 / 4);
/// # Ok::<(), axe_layout::sharding::ShardingError>(())
/// ```
///
/// # Errors
/// [`ShardingError::Invalid`] when mesh or shape differ; [`ShardingError::Inexpressible`] when both cut a
/// mesh axis where no digits of one are digits of the other.
pub fn plan(from: &Sharding, to: &Sharding, elem_bytes: u64) -> Result<Plan> {
    if from.mesh().axes() != to.mesh().axes() || from.mesh().offset() != to.mesh().offset() {
        return invalid("the distributions are over different meshes");
    }
    if from.shape() != to.shape() {
        return invalid(format!(
            "shapes differ: {:?} and {:?}",
            from.shape(),
            to.shape()
        ));
    }
    let bytes = from.shape().iter().try_fold(elem_bytes, |bytes, n| {
        bytes.checked_mul(u64::try_from(*n).ok()?)
    });
    if bytes
        .and_then(|b| b.checked_mul(u64::try_from(from.mesh().devices()).ok()?))
        .is_none()
    {
        return Err(ShardingError::Overflow("the tensor's bytes"));
    }
    let mut best: Option<Plan> = None;
    let (mut minimal, mut before) = (true, None);
    for cut in [Cut::Ascending, Cut::Descending, Cut::Coarse] {
        let space = Space::new(from, to, elem_bytes, cut)?;
        // Coarse digits are for what is too large in primes.
        let known = best.is_some() && cut == Cut::Coarse;
        if known || before.as_ref() == Some(&space.atoms) {
            continue;
        }
        let found = search(&space, space.state_of(from)?, &space.state_of(to)?)?;
        before = Some(space.atoms);
        match found {
            None => minimal = false,
            Some((found, complete)) => {
                minimal &= complete;
                let fewer = |last: &Plan| found.bytes_per_device() < last.bytes_per_device();
                if best.as_ref().is_none_or(fewer) {
                    best = Some(found);
                }
            }
        }
    }
    let mut found = match best {
        Some(found) => found,
        None => {
            let space = Space::new(from, to, elem_bytes, Cut::Coarse)?;
            let (start, goal) = (space.state_of(from)?, space.state_of(to)?);
            let moves = space.fallback(&start, &goal);
            finished(&space, start, &goal, moves)?
        }
    };
    found.minimal = minimal;
    Ok(found)
}

fn finished(space: &Space, start: State, goal: &State, moves: Vec<Move>) -> Result<Plan> {
    Ok(Plan {
        lower_bound: space.lacking(&start, goal),
        steps: steps(space, start, moves)?,
        minimal: false,
    })
}

/// The cheapest sequence, and whether nothing was left out; `None` when there are too many states.
fn search(space: &Space, start: State, goal: &State) -> Result<Option<(Plan, bool)>> {
    let mut search = Search::new(space, start.clone(), goal);
    match search.run() {
        Some(moves) => Ok(Some((
            finished(space, start, goal, moves)?,
            search.complete,
        ))),
        None => Ok(None),
    }
}

/// What a permutation does not change, of a state.
type Class = (Vec<i64>, Vec<(Atom, Reduction)>, i64);

struct Search<'a> {
    space: &'a Space,
    goal: &'a State,
    ids: HashMap<State, usize>,
    states: Vec<State>,
    /// Bytes that a state lacks.
    bounds: Vec<u64>,
    best: Vec<Reached>,
    heap: BinaryHeap<Reverse<(Cost, usize)>>,
    /// The least cost at which a class of states was left by a permutation.
    permuted: HashMap<Class, Cost>,
    complete: bool,
}

impl<'a> Search<'a> {
    fn new(space: &'a Space, start: State, goal: &'a State) -> Self {
        let bound = space.lacking(&start, goal);
        Self {
            space,
            goal,
            ids: HashMap::from([(start.clone(), 0)]),
            states: vec![start],
            bounds: vec![bound],
            best: vec![((0, 0), None)],
            heap: BinaryHeap::from([Reverse(((bound, 0), 0))]),
            permuted: HashMap::new(),
            complete: true,
        }
    }

    fn run(&mut self) -> Option<Vec<Move>> {
        let mut settled = 0;
        while let Some(Reverse((estimate, id))) = self.heap.pop() {
            let cost = self.best.get(id)?.0;
            let bound = *self.bounds.get(id)?;
            if (cost.0.saturating_add(bound), cost.1) < estimate {
                continue;
            }
            let state = self.states.get(id)?.clone();
            if state == *self.goal {
                return trace(&self.best, id);
            }
            settled += 1;
            if settled > MAX_STATES {
                return None;
            }
            self.expand(id, &state, cost)?;
        }
        None
    }

    fn expand(&mut self, id: usize, state: &State, cost: Cost) -> Option<()> {
        for (next, taken, bytes) in self.space.neighbours(state, self.goal) {
            let steps = if matches!(
                taken,
                Move::Slice { .. } | Move::Part { .. } | Move::Drop { .. }
            ) {
                1
            } else {
                8
            };
            self.reach(
                next,
                (cost.0.saturating_add(bytes), cost.1 + steps),
                (id, taken),
            )?;
        }
        let class = self.space.class(state);
        if self
            .permuted
            .get(&class)
            .is_some_and(|known| *known <= cost)
        {
            return Some(());
        }
        self.permuted.insert(class, cost);
        let mut others = Vec::new();
        self.complete &= self
            .space
            .permutations(state, self.goal, MAX_PERMUTATIONS, &mut others);
        for next in others {
            let taken = Move::Permute {
                dims: next.dims.clone(),
                held: next.held.clone(),
            };
            if let Some((next, bytes)) = self.space.apply(state, &taken) {
                self.reach(
                    next,
                    (cost.0.saturating_add(bytes), cost.1 + 8),
                    (id, taken),
                )?;
            }
        }
        Some(())
    }

    fn reach(&mut self, next: State, cost: Cost, way: (usize, Move)) -> Option<()> {
        let id = match self.ids.get(&next) {
            Some(id) => *id,
            None => {
                let id = self.states.len();
                self.bounds.push(self.space.lacking(&next, self.goal));
                self.best.push(((u64::MAX, u32::MAX), None));
                self.states.push(next.clone());
                self.ids.insert(next, id);
                id
            }
        };
        let slot = self.best.get_mut(id)?;
        if cost < slot.0 {
            *slot = (cost, Some(way));
            let bound = *self.bounds.get(id)?;
            self.heap
                .push(Reverse(((cost.0.saturating_add(bound), cost.1), id)));
        }
        Some(())
    }
}

fn trace(best: &[Reached], mut id: usize) -> Option<Vec<Move>> {
    let mut moves = Vec::new();
    while let Some((before, taken)) = &best.get(id)?.1 {
        moves.push(taken.clone());
        id = *before;
    }
    moves.reverse();
    Some(moves)
}

/// Replays moves as collectives, joining neighbours of one kind that one collective does.
fn steps(space: &Space, start: State, moves: Vec<Move>) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut state = start;
    for taken in moves {
        let Some((next, bytes)) = space.apply(&state, &taken) else {
            return invalid("a planned move does not apply");
        };
        let after = space.sharding_of(&next)?;
        let collective = space.collective(&state, &next, &taken)?;
        let joined = steps
            .last_mut()
            .is_some_and(|last| join(&mut last.collective, &collective));
        match steps.last_mut() {
            Some(last) if joined => {
                last.bytes_per_device = last.bytes_per_device.saturating_add(bytes);
                last.after = after;
            }
            _ => steps.push(Step {
                collective,
                bytes_per_device: bytes,
                after,
            }),
        }
        state = next;
    }
    Ok(steps)
}

fn join(last: &mut Collective, next: &Collective) -> bool {
    let append = |axes: &mut Vec<AxisRef>, more: &[AxisRef]| {
        *axes = merged(axes.iter().chain(more).copied());
        true
    };
    match (last, next) {
        (
            Collective::Slice { dim, axes },
            Collective::Slice {
                dim: same,
                axes: more,
            },
        ) if dim == same => append(axes, more),
        (
            Collective::ReduceScatter {
                dim,
                axes,
                reduction,
            },
            Collective::ReduceScatter {
                dim: same,
                axes: more,
                reduction: kind,
            },
        ) if dim == same && reduction == kind => append(axes, more),
        (
            Collective::Drop { axis, at },
            Collective::Drop {
                axis: next,
                at: there,
            },
        ) if axis.axis == next.axis && axis.pre * axis.size == next.pre => {
            (axis.size, *at) = (axis.size * next.size, *at * next.size + there);
            true
        }
        (
            Collective::Part {
                dim,
                axes,
                reduction,
            },
            Collective::Part {
                dim: same,
                axes: more,
                reduction: kind,
            },
        ) if dim == same && reduction == kind => {
            // The last digits of a dimension go first.
            let backward = dim.is_some();
            let (first, then) = if backward {
                (more, &*axes)
            } else {
                (&*axes, more)
            };
            *axes = merged(first.iter().chain(then).copied());
            true
        }
        _ => false,
    }
}
