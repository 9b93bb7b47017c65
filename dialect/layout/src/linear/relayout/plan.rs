//! The fewest shuffles between two linear distributions.
//!
//! Notation: the source holds `S_r r + S_l l` and the destination is to hold `D_r t + D_l m` (register
//! `t` of lane `m`), all vectors over F2 and `+` their xor. Registers that hold copies of others are
//! left out first, so that `S_r` and `D_r` are injective.
//!
//! A lane holds the coset `S_l l + Im S_r`; so modulo `Im S_r` (written `[.]`) a lane is what it holds.
//! Lane `m` needs, for register `t`, any lane `l` with `[S_l] l = [D_r] t + [D_l] m`.
//!
//! **Plan.** In round `t`, lane `m` receives its register `t + phi m` from lane `L m + Y t`, where
//! `[S_l] Y = [D_r]` and `[S_l] L = [E]`, `E = D_l + D_r phi`. A selection before the rounds puts the
//! element that is asked for into register `t`, one after them moves register `t` to `t + phi m`; both
//! are linear. A source lane must serve all its readers with one element: `ker L` is in `ker E`.
//!
//! **Choice of phi.** If `[D_r] phi = [D_l] + [S_l]` has a solution, then `L = 1`, and the rounds with
//! `Y t = 0` need no shuffle. Otherwise `phi` is chosen to make `[E]` onto; the readers of a source
//! class then are as many as its lanes, and `L` can tell apart what `E` does.
//!
//! **It is optimal** for elements of 32 bits and more. Let `k` be the rank of `[D_r]`: a lane needs
//! elements from `2^k` classes, `2^(n-k)` from each, and each shuffle brings it one. In the first case
//! one of the classes is its own, which saves `2^(n-k)` rounds, exactly those with `Y t = 0`. In the
//! second case there is a lane whose own class is not among them, and it needs all `2^n`.
//!
//! If the destination holds only a part of the tile, `[E]` may not be onto, and there is such an `L` only
//! if the lanes of one class suffice for what is asked of them: `rank E - rank [E]` is at most the
//! dimension of the lanes of class 0. A search looks for a `phi` that makes it so. In the second case
//! still some lane's own class is not among those that it needs, so that `2^n` rounds are the fewest. Where
//! the search finds none, a few source lanes are asked for too much, and the general method plans.
//!
//! **Narrow elements.** The rounds of one `Y t` share their lanes, and so up to `32 / elem_bits` of them
//! share a word; see `stages` for going by more than one hop when there are fewer.

use super::stages::{Route, emit};
use super::{
    Distribution, RelayoutPlan, Step, apply, composed, elements_per_word, is_identity,
    relayout_tables,
};
use crate::error::{Error, Result};
use crate::linear::basis::Basis;
use crate::linear::columns::Columns;

/// Most steps of the search for a choice of registers.
const MAX_STEPS: usize = 1 << 14;

/// The steps that turn the distribution `src` into `dst`, with the fewest shuffles.
///
/// Either side may broadcast: a source element is read wherever it is, and all copies are filled. The
/// number of shuffles is proven minimal for elements of 32 bits or more if `dst` holds the whole tile
/// that `src` holds, and where the linear scheme reaches a part of it; for narrower elements it is the least over one or more hops of this scheme.
///
/// # Errors
/// `Invalid` when the numbers of lanes differ or `elem_bits` is no power of two up to 128; `None` when
/// `dst` has an element that `src` has not; `Unsupported` above 12 register bits or 10 lane bits.
pub fn warp_shuffle(
    src: &Distribution,
    dst: &Distribution,
    elem_bits: u32,
) -> Result<RelayoutPlan> {
    let per_word = elements_per_word(elem_bits)?;
    src.check_size()?;
    dst.check_size()?;
    if src.lane.len() != dst.lane.len() {
        return Err(Error::invalid(format!(
            "a warp relayout: the source has {} lanes, the destination {}",
            src.lanes(),
            dst.lanes()
        )));
    }
    let problem = Problem::new(src, dst)?;
    let Some(rounds) = problem.rounds() else {
        return relayout_tables(&src.table(), &dst.table(), elem_bits);
    };
    let shuffles = emit(&rounds.route(&problem), per_word);
    let (before, after) = (problem.before(&rounds), problem.after(&rounds));
    let (old, middle, new) = (src.reg.len(), problem.wanted.len(), dst.reg.len());
    let steps = if shuffles.is_empty() {
        let both = before.then(&after);
        both.step(new, old).into_iter().collect()
    } else {
        let (first, last) = (before.step(middle, old), after.step(new, middle));
        first.into_iter().chain(shuffles).chain(last).collect()
    };
    Ok(RelayoutPlan { elem_bits, steps })
}

/// A linear choice of registers: new register `r` of lane `l` is old `reg(r) xor lane(l)`.
struct Selection {
    reg: Vec<u64>,
    lane: Vec<u64>,
}

impl Selection {
    /// First `self`, then `later`.
    fn then(&self, later: &Self) -> Self {
        let lanes = self.lane.iter().zip(&later.lane);
        Self {
            reg: composed(|r| apply(&self.reg, r), &later.reg),
            lane: lanes.map(|(&own, &r)| own ^ apply(&self.reg, r)).collect(),
        }
    }

    /// The step from registers of `old` bits to registers of `new` bits, unless it changes nothing.
    fn step(self, new: usize, old: usize) -> Option<Step> {
        let same = new == old && is_identity(&self.reg, new);
        (!same || self.lane.iter().any(|&column| column != 0)).then(|| Step::SelectLinear {
            regs: 1 << new,
            from_reg: Columns::from_raw(self.reg),
            from_lane: Columns::from_raw(self.lane),
            constant: 0,
        })
    }
}

/// The two distributions with duplicate registers left out, and the source classes.
struct Problem<'a> {
    src: &'a Distribution,
    dst: &'a Distribution,
    /// `S_r`; its generators are source register bits.
    held: Basis,
    /// `D_r` on the registers `t` that are no copies.
    wanted: Vec<u64>,
    /// For each bit of a destination register, the register `t` that it copies.
    copied: Vec<u64>,
    /// `[S_l]`; its generators are lane bits.
    classes: Basis,
    /// Lanes of class 0: a basis.
    same_class: Vec<u64>,
}

/// What the rounds do.
struct Rounds {
    /// `phi`: for each lane bit, a register `t`.
    phi: Vec<u64>,
    /// `E`: for each lane bit, the element of round 0.
    first: Vec<u64>,
    /// `L`: for each lane bit, a source lane.
    lane: Vec<u64>,
    /// `Y`: for each bit of the round, a source lane.
    turn: Vec<u64>,
}

impl<'a> Problem<'a> {
    fn new(src: &'a Distribution, dst: &'a Distribution) -> Result<Self> {
        let held = Basis::of(src.reg.as_slice());
        let mut all = held.clone();
        super::super::basis::extend(&mut all, src.lane.as_slice().iter().copied());
        let needed = dst.reg.as_slice().iter().chain(dst.lane.as_slice());
        if let Some(missing) = needed.into_iter().find(|&&element| !all.contains(element)) {
            return Err(Error::none(format!(
                "a warp relayout: the destination holds element {missing}, the source does not"
            )));
        }
        let (mut classes, mut same_class) = (Basis::default(), Vec::new());
        for (k, &element) in src.lane.as_slice().iter().enumerate() {
            let (class, _) = held.reduce(element);
            if !classes.insert(class, 1 << k) {
                same_class.push(classes.reduce(class).1 | 1 << k);
            }
        }
        let (mut distinct, mut wanted) = (Basis::default(), Vec::new());
        let mut copied = Vec::new();
        for &element in dst.reg.as_slice() {
            if distinct.insert(element, 1 << wanted.len()) {
                copied.push(1 << wanted.len());
                wanted.push(element);
            } else {
                copied.push(distinct.reduce(element).1);
            }
        }
        Ok(Self {
            src,
            dst,
            held,
            wanted,
            copied,
            classes,
            same_class,
        })
    }

    /// `[element]`.
    fn class(&self, element: u64) -> u64 {
        self.held.reduce(element).0
    }

    /// A lane of the class given.
    fn lane_of(&self, class: u64) -> u64 {
        self.classes.reduce(class).1
    }

    /// None when the readers of a source class ask for more elements at once than it has lanes.
    fn rounds(&self) -> Option<Rounds> {
        match self.stationary() {
            Some(phi) => self.rounds_with(phi),
            None => self
                .rounds_with(self.spreading())
                .or_else(|| self.rounds_with(self.fitting()?)),
        }
    }

    fn rounds_with(&self, phi: Vec<u64>) -> Option<Rounds> {
        let turn = composed(|element| self.lane_of(self.class(element)), &self.wanted);
        let lanes = self.dst.lane.as_slice().iter();
        let first: Vec<u64> = lanes
            .zip(&phi)
            .map(|(&element, &t)| element ^ apply(&self.wanted, t))
            .collect();
        let local = self.src.lane.as_slice().iter().zip(&first);
        let stays = { local }.all(|(&own, &element)| self.class(own ^ element) == 0);
        let lane = if stays {
            (0..phi.len()).map(|k| 1 << k).collect()
        } else {
            self.source_lanes(&first)?
        };
        Some(Rounds {
            phi,
            first,
            lane,
            turn,
        })
    }

    /// `phi` with `[D_r] phi = [D_l] + [S_l]`, if there is one.
    fn stationary(&self) -> Option<Vec<u64>> {
        let reachable = Basis::of(&composed(|element| self.class(element), &self.wanted));
        let lanes = self
            .dst
            .lane
            .as_slice()
            .iter()
            .zip(self.src.lane.as_slice());
        lanes
            .map(
                |(&wanted, &own)| match reachable.reduce(self.class(wanted ^ own)) {
                    (0, t) => Some(t),
                    _ => None,
                },
            )
            .collect()
    }

    /// `phi` that makes `[D_l + D_r phi]` onto: lane bits whose class depends on the others are moved
    /// by a register of a class that is missing.
    fn spreading(&self) -> Vec<u64> {
        let lanes = self.dst.lane.as_slice();
        let mut span = Basis::default();
        let fresh: Vec<bool> = lanes
            .iter()
            .map(|&element| span.insert(self.class(element), 0))
            .collect();
        let mut missing = (0..self.wanted.len()).filter(|&t| {
            self.wanted
                .get(t)
                .is_some_and(|&e| span.insert(self.class(e), 0))
        });
        let move_by = |fresh: &bool| {
            if *fresh {
                0
            } else {
                missing.next().map_or(0, |t| 1 << t)
            }
        };
        fresh.iter().map(move_by).collect()
    }

    /// `phi` that asks no class for more than its lanes can send, if the search finds one.
    fn fitting(&self) -> Option<Vec<u64>> {
        let mut search = Fitting {
            problem: self,
            steps: 0,
            phi: Vec::new(),
        };
        let spare = self.same_class.len();
        search
            .extend(&Basis::default(), &Basis::default(), spare)
            .then_some(search.phi)
    }

    /// `L` with `[S_l] L = [E]` and `ker L` in `ker E`.
    fn source_lanes(&self, first: &[u64]) -> Option<Vec<u64>> {
        // Lane bits with independent classes, and the element that each is the first to ask for.
        let mut by_class = Basis::default();
        let mut by_element = Basis::default();
        let mut spare = self.same_class.iter();
        let mut lanes = Vec::with_capacity(first.len());
        for (k, &element) in first.iter().enumerate() {
            let class = self.class(element);
            if by_class.insert(class, 1 << k) {
                lanes.push(self.lane_of(class));
                continue;
            }
            // Asks the class of others for this element beside theirs.
            let others = by_class.reduce(class).1;
            let beside = element ^ apply(first, others);
            let mut lane = apply(&lanes, others);
            match by_element.reduce(beside) {
                (0, known) => lane ^= known,
                _ => {
                    let fresh = spare.next().copied()?;
                    by_element.insert(beside, fresh);
                    lane ^= fresh;
                }
            }
            lanes.push(lane);
        }
        Some(lanes)
    }

    /// Puts into register `t` of each lane what its readers ask for in round `t`.
    fn before(&self, rounds: &Rounds) -> Selection {
        let reader = Basis::of(&rounds.lane);
        let asked = |lane: u64| apply(&rounds.first, reader.reduce(lane).1);
        let register = |element: u64| self.held.reduce(element).1;
        let rounds = self.wanted.iter().zip(&rounds.turn);
        let lanes = self.src.lane.as_slice().iter().enumerate();
        Selection {
            reg: rounds
                .map(|(&element, &lane)| register(element ^ asked(lane)))
                .collect(),
            lane: lanes
                .map(|(k, &element)| register(asked(1 << k) ^ element))
                .collect(),
        }
    }

    /// Moves register `t` of each lane to `t + phi m`, and fills the copies.
    fn after(&self, rounds: &Rounds) -> Selection {
        Selection {
            reg: self.copied.clone(),
            lane: rounds.phi.clone(),
        }
    }
}

/// The search for `phi`, a lane bit after the other.
struct Fitting<'a> {
    problem: &'a Problem<'a>,
    steps: usize,
    phi: Vec<u64>,
}

impl Fitting<'_> {
    /// Whether the lane bits from here on can be chosen, with `asked` and `classes` the spans of `E` and
    /// `[E]` so far, when `spare` more elements may be asked of classes that are asked already.
    fn extend(&mut self, asked: &Basis, classes: &Basis, spare: usize) -> bool {
        let problem = self.problem;
        let Some(&own) = problem.dst.lane.as_slice().get(self.phi.len()) else {
            return true;
        };
        let element = |t: u64| own ^ apply(&problem.wanted, t);
        let all = 0..1_u64 << problem.wanted.len();
        if let Some(t) = all.clone().find(|&t| asked.contains(element(t))) {
            return self.choose(t, asked, classes, spare);
        }
        let fresh = |t: &u64| !classes.contains(problem.class(element(*t)));
        let others = all
            .clone()
            .filter(|t| !fresh(t))
            .take(if spare > 0 { usize::MAX } else { 0 });
        for t in all.filter(fresh).chain(others) {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return false;
            }
            let (mut asked, mut classes) = (asked.clone(), classes.clone());
            asked.insert(element(t), 0);
            let fresh = classes.insert(problem.class(element(t)), 0);
            if self.choose(t, &asked, &classes, spare - usize::from(!fresh)) {
                return true;
            }
        }
        false
    }

    fn choose(&mut self, t: u64, asked: &Basis, classes: &Basis, spare: usize) -> bool {
        self.phi.push(t);
        let found = self.extend(asked, classes, spare);
        if !found {
            self.phi.pop();
        }
        found
    }
}

impl Rounds {
    fn route(&self, problem: &Problem<'_>) -> Route {
        Route {
            round_bits: problem.wanted.len(),
            lane: self.lane.clone(),
            turn: self.turn.clone(),
        }
    }
}
