//! The moves that are worth trying in a state.

use super::*;

impl Space {
    /// Everything one collective can reach, with its bytes.
    pub(crate) fn neighbours(&self, state: &State, goal: &State) -> Vec<(State, Move, u64)> {
        let mut moves = Vec::new();
        let free = self.free(state);
        for dim in 0..state.dims.len() {
            moves.extend(free.iter().map(|&atom| Move::Slice { dim, atom }));
            let len = state.dims.get(dim).map_or(0, Vec::len);
            for count in 1..=len {
                moves.push(Move::Gather { dim, count });
                let others = (0..state.dims.len()).filter(|to| *to != dim);
                moves.extend(others.map(|to| Move::Exchange {
                    from: dim,
                    to,
                    count,
                }));
            }
            moves.extend(state.partial.iter().map(|(atom, _)| Move::Scatter {
                dim,
                atoms: vec![*atom],
            }));
        }
        for &(atom, at) in &goal.held {
            if free.contains(&atom) {
                moves.push(Move::Drop { atom, at });
            }
        }
        let held: Vec<Atom> = state.held.iter().map(|(atom, _)| *atom).collect();
        moves.extend(
            subsets(&held)
                .into_iter()
                .map(|atoms| Move::Broadcast { atoms }),
        );
        self.reductions(state, &mut moves);
        self.parts(state, goal, &free, &mut moves);
        let reach = |taken: Move| {
            let (next, bytes) = self.apply(state, &taken)?;
            Some((next, taken, bytes))
        };
        moves.into_iter().filter_map(reach).collect()
    }

    /// Any subset of the pending digits of one reduction.
    fn reductions(&self, state: &State, moves: &mut Vec<Move>) {
        let mut kinds: Vec<Reduction> = state.partial.iter().map(|(_, kind)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let of_kind = state.partial.iter().filter(|(_, k)| *k == kind);
            let atoms: Vec<Atom> = of_kind.map(|(atom, _)| *atom).collect();
            moves.extend(
                subsets(&atoms)
                    .into_iter()
                    .map(|atoms| Move::Reduce { atoms }),
            );
        }
    }

    /// Digits that the goal has pending become so: copies, and the last digits of dimensions.
    fn parts(&self, state: &State, goal: &State, free: &[Atom], moves: &mut Vec<Move>) {
        for &(atom, reduction) in &goal.partial {
            let last = |atoms: &Vec<Atom>| atoms.last() == Some(&atom);
            let dim = state.dims.iter().position(last);
            if dim.is_some() || free.contains(&atom) {
                moves.push(Move::Part {
                    dim,
                    atom,
                    reduction,
                });
            }
        }
    }

    /// What decides which states a permutation leads to: tile sizes, pending digits, the number of holders.
    pub(crate) fn class(&self, state: &State) -> (Vec<i64>, Vec<(Atom, Reduction)>, i64) {
        let local = (0..state.dims.len())
            .map(|dim| self.local(state, dim))
            .collect();
        let held = state
            .held
            .iter()
            .map(|(atom, _)| self.size(*atom))
            .product();
        (local, state.partial.clone(), held)
    }

    /// Every state that one permutation leads to: tiles of the same sizes on other devices, held where
    /// `state` or `goal` holds them. False when there are more than `limit`.
    pub(crate) fn permutations(
        &self,
        state: &State,
        goal: &State,
        limit: usize,
        into: &mut Vec<State>,
    ) -> bool {
        let mut holders = vec![&state.held];
        if goal.held != state.held && self.as_many_copies(state, goal) {
            holders.push(&goal.held);
        }
        let parts: Vec<i64> = state.dims.iter().map(|atoms| self.product(atoms)).collect();
        for held in holders {
            let taken = |atom: &Atom| {
                state.partial.iter().any(|(a, _)| a == atom) || held.iter().any(|(a, _)| a == atom)
            };
            let mut next = State {
                dims: vec![Vec::new(); parts.len()],
                partial: state.partial.clone(),
                held: held.clone(),
            };
            let mut free: Vec<Atom> = (0..self.atoms.len()).filter(|atom| !taken(atom)).collect();
            if !self.arrange(&parts, 0, &mut free, &mut next, limit, into) {
                return false;
            }
        }
        true
    }

    /// All orders of digits in `free` with the products `parts`, from dimension `dim` on.
    fn arrange(
        &self,
        parts: &[i64],
        dim: usize,
        free: &mut Vec<Atom>,
        state: &mut State,
        limit: usize,
        into: &mut Vec<State>,
    ) -> bool {
        let Some(&part) = parts.get(dim) else {
            into.push(state.clone());
            return into.len() <= limit;
        };
        let have = state.dims.get(dim).map_or(1, |atoms| self.product(atoms));
        if have == part {
            return self.arrange(parts, dim + 1, free, state, limit, into);
        }
        for at in 0..free.len() {
            let Some(&atom) = free
                .get(at)
                .filter(|atom| part % (have * self.size(**atom)) == 0)
            else {
                continue;
            };
            free.remove(at);
            if let Some(atoms) = state.dims.get_mut(dim) {
                atoms.push(atom);
            }
            let all = self.arrange(parts, dim, free, state, limit, into);
            if let Some(atoms) = state.dims.get_mut(dim) {
                atoms.pop();
            }
            free.insert(at, atom);
            if !all {
                return false;
            }
        }
        true
    }

    /// A permutation keeps the number of devices that hold each tile.
    fn as_many_copies(&self, a: &State, b: &State) -> bool {
        let held =
            |state: &State| -> i64 { state.held.iter().map(|(h, _)| self.size(*h)).product() };
        held(a) == held(b)
    }
}

/// Subsets of at least one digit; single ones and all of them when there are many.
fn subsets(atoms: &[Atom]) -> Vec<Vec<Atom>> {
    if atoms.len() > 6 {
        let each = atoms.iter().map(|atom| vec![*atom]);
        return each.chain([atoms.to_vec()]).collect();
    }
    let chosen = |subset: usize| {
        let chosen = atoms
            .iter()
            .enumerate()
            .filter(|(i, _)| subset >> i & 1 == 1);
        chosen.map(|(_, atom)| *atom).collect()
    };
    (1..1usize << atoms.len()).map(chosen).collect()
}
