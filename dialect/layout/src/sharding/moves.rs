//! The states and moves that the planner searches.

mod proposals;

use super::collective::Collective;
use super::error::{Result, inexpressible, invalid};
use super::spec::{AxisRef, Reduction, Sharding};

/// Devices whose tiles are compared one by one.
const MAX_DEVICES: i64 = 1 << 12;

/// Index of a mesh digit in [`Space::atoms`].
pub(crate) type Atom = usize;

/// What every digit does; digits in no list hold copies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// Digits that split each dimension, major to minor.
    pub dims: Vec<Vec<Atom>>,
    /// Digits with pending reductions, sorted.
    pub partial: Vec<(Atom, Reduction)>,
    /// Digits with data at one position, sorted.
    pub held: Vec<(Atom, i64)>,
}

/// One move; applying it to a state is [`Space::apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    Slice {
        dim: usize,
        atom: Atom,
    },
    Drop {
        atom: Atom,
        at: i64,
    },
    /// The last `count` digits of `dim` become copies.
    Gather {
        dim: usize,
        count: usize,
    },
    Scatter {
        dim: usize,
        atoms: Vec<Atom>,
    },
    Reduce {
        atoms: Vec<Atom>,
    },
    /// The last `count` digits of `from` move behind those of `to`.
    Exchange {
        from: usize,
        to: usize,
        count: usize,
    },
    /// Same tile sizes, other owners.
    Permute {
        dims: Vec<Vec<Atom>>,
        held: Vec<(Atom, i64)>,
    },
    /// Held digits become copies.
    Broadcast {
        atoms: Vec<Atom>,
    },
    /// A digit becomes pending: copies, or the last digit of `dim`.
    Part {
        dim: Option<usize>,
        atom: Atom,
        reduction: Reduction,
    },
}

/// How digits that no side cuts are taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Not at all.
    Coarse,
    /// Into primes, the smallest first.
    Ascending,
    /// Into primes, the largest first.
    Descending,
}

impl Cut {
    fn factors(self, size: i64) -> Vec<i64> {
        if self == Self::Coarse {
            return vec![size];
        }
        let (mut rest, mut primes, mut p) = (size, Vec::new(), 2);
        while rest > 1 {
            // Beyond the root of what is left, that is a prime.
            if p > rest / p {
                p = rest;
            }
            while rest % p == 0 {
                primes.push(p);
                rest /= p;
            }
            p += 1;
        }
        if self == Self::Descending {
            primes.reverse();
        }
        primes
    }
}

/// The digits that both ends of a plan speak of, and the tensor.
pub(crate) struct Space {
    model: Sharding,
    /// Digits, in mesh order.
    pub atoms: Vec<AxisRef>,
    elem_bytes: u64,
}

impl Space {
    /// The coarsest digits that refine those of both distributions, cut further as `cut` says.
    pub(crate) fn new(from: &Sharding, to: &Sharding, elem_bytes: u64, cut: Cut) -> Result<Self> {
        let mut atoms = Vec::new();
        for (index, axis) in from.mesh().axes().iter().enumerate() {
            let mut cuts = vec![1, axis.size];
            for sharding in [from, to] {
                let dims = sharding.dims().iter().flatten().copied();
                let partial = sharding.partial().iter().map(|(role, _)| *role);
                let held = sharding.held().iter().map(|(role, _)| *role);
                for role in dims
                    .chain(partial)
                    .chain(held)
                    .filter(|role| role.axis == index)
                {
                    cuts.extend([role.pre, role.pre * role.size]);
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
            for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
                if high % low != 0 {
                    return inexpressible(
                        "a sequence over common digits",
                        format!("mesh axis {} is cut at {low} and at {high}", axis.name),
                    );
                }
                let mut pre = *low;
                for size in cut.factors(high / low) {
                    atoms.push(AxisRef {
                        axis: index,
                        pre,
                        size,
                    });
                    pre *= size;
                }
            }
        }
        Ok(Self {
            model: from.clone(),
            atoms,
            elem_bytes,
        })
    }

    fn size(&self, atom: Atom) -> i64 {
        self.atoms.get(atom).map_or(1, |axis| axis.size)
    }

    fn product(&self, atoms: &[Atom]) -> i64 {
        atoms.iter().map(|atom| self.size(*atom)).product()
    }

    fn atoms_of(&self, role: &AxisRef) -> Vec<Atom> {
        let end = role.pre * role.size;
        let inside = |axis: &AxisRef| {
            axis.axis == role.axis && axis.pre >= role.pre && axis.pre * axis.size <= end
        };
        (0..self.atoms.len())
            .filter(|atom| self.atoms.get(*atom).is_some_and(inside))
            .collect()
    }

    pub(crate) fn state_of(&self, sharding: &Sharding) -> Result<State> {
        let dims = sharding.dims().iter();
        let dims = dims.map(|refs| refs.iter().flat_map(|role| self.atoms_of(role)).collect());
        let partial = sharding.partial().iter().flat_map(|(role, reduction)| {
            self.atoms_of(role)
                .into_iter()
                .map(|atom| (atom, *reduction))
        });
        let mut held = Vec::new();
        for (role, at) in sharding.held() {
            let mut rest = *at;
            for atom in self.atoms_of(role).into_iter().rev() {
                held.push((atom, rest % self.size(atom)));
                rest /= self.size(atom);
            }
        }
        let mut state = State {
            dims: dims.collect(),
            partial: partial.collect(),
            held,
        };
        state.partial.sort_unstable();
        state.held.sort_unstable();
        Ok(state)
    }

    pub(crate) fn sharding_of(&self, state: &State) -> Result<Sharding> {
        let axis = |atom: &Atom| self.atoms.get(*atom).copied();
        let dims = state
            .dims
            .iter()
            .map(|atoms| atoms.iter().filter_map(axis).collect());
        let partial = state
            .partial
            .iter()
            .filter_map(|(atom, r)| Some((axis(atom)?, *r)));
        let held = state
            .held
            .iter()
            .filter_map(|(atom, at)| Some((axis(atom)?, *at)));
        Sharding::new(
            self.model.mesh().clone(),
            self.model.shape().to_vec(),
            dims.collect(),
            partial.collect(),
            held.collect(),
        )
    }

    fn local(&self, state: &State, dim: usize) -> i64 {
        let size = self.model.shape().get(dim).copied().unwrap_or(1);
        size / state.dims.get(dim).map_or(1, |atoms| self.product(atoms))
    }

    /// Bytes that the busiest device lacks of its tile in `goal`: no way from `state` moves fewer. 0 where
    /// that is not known, for pending targets and meshes of more than 4096 devices.
    pub(crate) fn lacking(&self, state: &State, goal: &State) -> u64 {
        let mesh = self.model.mesh();
        if !goal.partial.is_empty() || mesh.devices() > MAX_DEVICES {
            return 0;
        }
        let wanted = self.tile_bytes(goal);
        if !state.partial.is_empty() {
            return wanted;
        }
        let begin = |of: &State, dim: usize, at: &[i64]| {
            let digits = of
                .dims
                .get(dim)
                .into_iter()
                .flatten()
                .filter_map(|atom| self.atoms.get(*atom));
            digits.fold(0, |part, digit| part * digit.size + digit.digit(mesh, at))
                * self.local(of, dim)
        };
        let has_data = |of: &State, at: &[i64]| {
            of.held.iter().all(|(atom, place)| {
                self.atoms
                    .get(*atom)
                    .is_none_or(|digit| digit.digit(mesh, at) == *place)
            })
        };
        let held = |at: &[i64]| -> u64 {
            let common = |dim: usize| {
                let (mine, want) = (begin(state, dim, at), begin(goal, dim, at));
                let end = (mine + self.local(state, dim)).min(want + self.local(goal, dim));
                u64::try_from(end - mine.max(want)).unwrap_or(0)
            };
            (0..state.dims.len()).map(common).product::<u64>() * self.elem_bytes
        };
        let lack = mesh
            .coordinates()
            .filter(|at| has_data(goal, at))
            .map(|at| match has_data(state, &at) {
                true => wanted - held(&at),
                false => wanted,
            });
        lack.max().unwrap_or(0)
    }

    /// Bytes of one device's tile. The planner has checked that the whole tensor fits 64 bits.
    fn tile_bytes(&self, state: &State) -> u64 {
        let tile: i64 = (0..state.dims.len())
            .map(|dim| self.local(state, dim))
            .product();
        u64::try_from(tile)
            .unwrap_or(0)
            .saturating_mul(self.elem_bytes)
    }

    fn free(&self, state: &State) -> Vec<Atom> {
        let used = |atom: &Atom| {
            state.dims.iter().flatten().any(|a| a == atom)
                || state.partial.iter().any(|(a, _)| a == atom)
                || state.held.iter().any(|(a, _)| a == atom)
        };
        (0..self.atoms.len()).filter(|atom| !used(atom)).collect()
    }

    /// The state after a move and the bytes that a device receives, or `None` where it does not apply.
    pub(crate) fn apply(&self, state: &State, taken: &Move) -> Option<(State, u64)> {
        let mut next = state.clone();
        let tile = self.tile_bytes(state);
        let share = |parts: i64| tile - tile / u64::try_from(parts).unwrap_or(1).max(1);
        let bytes = match taken {
            Move::Slice { dim, atom } => {
                self.push(&mut next, *dim, &[*atom])?;
                0
            }
            Move::Drop { atom, at } => {
                next.held.push((*atom, *at));
                next.held.sort_unstable();
                0
            }
            Move::Gather { dim, count } => {
                let gone = pop(&mut next, *dim, *count)?;
                let parts = u64::try_from(self.product(&gone)).ok()?;
                tile.checked_mul(parts.checked_sub(1)?)?
            }
            Move::Scatter { dim, atoms } => {
                next.partial.retain(|(atom, _)| !atoms.contains(atom));
                self.push(&mut next, *dim, atoms)?;
                share(self.product(atoms))
            }
            Move::Reduce { atoms } => {
                next.partial.retain(|(atom, _)| !atoms.contains(atom));
                share(self.product(atoms)).checked_mul(2)?
            }
            Move::Exchange { from, to, count } => {
                let moved = pop(&mut next, *from, *count)?;
                self.push(&mut next, *to, &moved)?;
                share(self.product(&moved))
            }
            Move::Permute { dims, held } => {
                if state.dims == *dims && state.held == *held {
                    return None;
                }
                next.dims = dims.clone();
                next.held = held.clone();
                tile
            }
            Move::Broadcast { atoms } => {
                next.held.retain(|(held, _)| !atoms.contains(held));
                tile
            }
            Move::Part {
                dim,
                atom,
                reduction,
            } => {
                if let Some(dim) = dim {
                    pop(&mut next, *dim, 1)?;
                }
                next.partial.push((*atom, *reduction));
                next.partial.sort_unstable();
                0
            }
        };
        Some((next, bytes))
    }

    fn push(&self, state: &mut State, dim: usize, atoms: &[Atom]) -> Option<()> {
        if self.local(state, dim) % self.product(atoms) != 0 {
            return None;
        }
        state.dims.get_mut(dim)?.extend_from_slice(atoms);
        Some(())
    }

    /// The collective that a move stands for.
    pub(crate) fn collective(
        &self,
        before: &State,
        after: &State,
        taken: &Move,
    ) -> Result<Collective> {
        let axes = |atoms: &[Atom]| self.axes(atoms);
        let last = |dim: usize, count: usize| self.axes(last(before, dim, count));
        Ok(match taken {
            Move::Slice { dim, atom } => Collective::Slice {
                dim: *dim,
                axes: axes(&[*atom]),
            },
            Move::Drop { atom, at } => Collective::Drop {
                axis: self.axis(*atom)?,
                at: *at,
            },
            Move::Gather { dim, count } => Collective::AllGather {
                dim: *dim,
                axes: last(*dim, *count),
            },
            Move::Scatter { dim, atoms } => Collective::ReduceScatter {
                dim: *dim,
                axes: axes(atoms),
                reduction: pending(before, atoms),
            },
            Move::Reduce { atoms } => Collective::AllReduce {
                axes: axes(atoms),
                reduction: pending(before, atoms),
            },
            Move::Exchange { from, to, count } => Collective::AllToAll {
                split: *to,
                concat: *from,
                axes: last(*from, *count),
            },
            Move::Broadcast { atoms } => Collective::Broadcast {
                axes: axes(atoms),
                root: self.holder(before, atoms),
            },
            Move::Part {
                dim,
                atom,
                reduction,
            } => Collective::Part {
                dim: *dim,
                axes: axes(&[*atom]),
                reduction: *reduction,
            },
            Move::Permute { .. } => {
                let (before, after) = (self.sharding_of(before)?, self.sharding_of(after)?);
                Collective::Permute {
                    pairs: super::permute::pairs(&before, &after)?,
                }
            }
        })
    }

    fn axis(&self, atom: Atom) -> Result<AxisRef> {
        match self.atoms.get(atom) {
            Some(axis) => Ok(*axis),
            None => invalid("a digit that the mesh lacks"),
        }
    }

    fn axes(&self, atoms: &[Atom]) -> Vec<AxisRef> {
        let axis = |atom: &Atom| self.atoms.get(*atom).copied();
        merged(atoms.iter().filter_map(axis))
    }

    /// The coordinate along some digits of the devices that hold the values.
    fn holder(&self, state: &State, atoms: &[Atom]) -> i64 {
        atoms.iter().fold(0, |root, atom| {
            let place = state.held.iter().find(|(held, _)| held == atom);
            root * self.size(*atom) + place.map_or(0, |(_, at)| *at)
        })
    }

    /// Always possible: reduce, broadcast, gather everything, then cut and part.
    pub(crate) fn fallback(&self, start: &State, goal: &State) -> Vec<Move> {
        let mut moves = Vec::new();
        for part in start
            .partial
            .iter()
            .filter(|part| !goal.partial.contains(part))
        {
            moves.push(Move::Reduce {
                atoms: vec![part.0],
            });
        }
        let held = start.held.iter().filter(|held| !goal.held.contains(held));
        let atoms: Vec<Atom> = held.map(|(atom, _)| *atom).collect();
        if !atoms.is_empty() {
            moves.push(Move::Broadcast { atoms });
        }
        let common = |have: &[Atom], want: &[Atom]| {
            have.iter().zip(want).take_while(|(a, b)| a == b).count()
        };
        for (dim, (have, want)) in start.dims.iter().zip(&goal.dims).enumerate() {
            let count = have.len() - common(have, want);
            if count > 0 {
                moves.push(Move::Gather { dim, count });
            }
        }
        for (dim, (have, want)) in start.dims.iter().zip(&goal.dims).enumerate() {
            let new = want.iter().skip(common(have, want));
            moves.extend(new.map(|&atom| Move::Slice { dim, atom }));
        }
        for &(atom, at) in goal.held.iter().filter(|held| !start.held.contains(held)) {
            moves.push(Move::Drop { atom, at });
        }
        for &(atom, reduction) in goal
            .partial
            .iter()
            .filter(|part| !start.partial.contains(part))
        {
            moves.push(Move::Part {
                dim: None,
                atom,
                reduction,
            });
        }
        moves
    }
}

/// Digits in their order, those that continue each other as one.
pub(crate) fn merged(digits: impl IntoIterator<Item = AxisRef>) -> Vec<AxisRef> {
    let mut merged: Vec<AxisRef> = Vec::new();
    for digit in digits {
        match merged.last_mut() {
            Some(last) if last.axis == digit.axis && last.pre * last.size == digit.pre => {
                last.size *= digit.size;
            }
            _ => merged.push(digit),
        }
    }
    merged
}

/// The last digits of a dimension.
fn last(state: &State, dim: usize, count: usize) -> &[Atom] {
    let atoms = state.dims.get(dim).map_or(&[][..], Vec::as_slice);
    atoms
        .get(atoms.len().saturating_sub(count)..)
        .unwrap_or(&[])
}

/// The reduction that is pending over some digits.
fn pending(state: &State, atoms: &[Atom]) -> Reduction {
    let found = state.partial.iter().find(|(atom, _)| atoms.contains(atom));
    found.map_or(Reduction::Sum, |(_, reduction)| *reduction)
}

fn pop(state: &mut State, dim: usize, count: usize) -> Option<Vec<Atom>> {
    let atoms = state.dims.get_mut(dim)?;
    let keep = atoms.len().checked_sub(count)?;
    Some(atoms.split_off(keep))
}
