//! Folds of rows whose elements a kernel reads once: all of a round in one walk through the row, from global memory.
//!
//! A thread group takes every so many of the row's tiles. Of what comes, some tiles are on their way while one is folded. A sum
//! of `exp(x - m)` with `m` the maximum of `x` is one below the group's maximum so far: where a tile raises that from `m` to `m'`,
//! the sum is scaled by `exp(m - m')`, as in an online softmax. What groups have at the end are states as [`super::rounds`] merges
//! them.
//!
//! Tiles begin at boundaries of memory whatever the row's length is, so that loads are vectors: the first begins at the boundary
//! in front of the row, and elements of it and of the last ones that are other rows' change no state. What lies behind the last
//! boundary of a tensor is read element by element.

use super::arguments::Argument;
use super::below::{Peak, converted};
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::fusion::needs;
use super::registers::Registers;
use super::rounds::Round;
use super::space::{Kind, source};
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, identity};
use crate::ir::{Int, Val, types};
use axe_dialect::{element_type, ops};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// How a thread group goes through a row. Places are elements of row-major memory.
#[derive(Debug)]
pub struct Walk<'c> {
    /// Where its first tile begins: a multiple of what a load takes at once.
    pub first: Val<'c>,
    /// From one of its tiles to the next.
    pub step: i64,
    /// The row's first element, and the one behind its last.
    pub row: [Val<'c>; 2],
    /// Elements of the tensors.
    pub elements: i64,
    /// Those of them that whole loads have.
    pub whole: i64,
    /// Tiles that are on their way.
    pub ahead: i64,
    /// Values of the row that take no fold: what they load comes behind the first tiles, and is waited for with them.
    pub early: Vec<Val<'c>>,
    /// Whether a row may begin inside of a tile.
    pub begins_inside: bool,
    /// Where elements are in no whole load.
    pub rest: Option<Rest<'c>>,
}

/// What lies behind the last whole load of the tensors.
#[derive(Debug)]
pub struct Rest<'c> {
    /// A tile with room for it.
    pub registers: Registers,
    /// The element behind the last that the thread group is to take.
    pub end: Val<'c>,
}

/// Elements of a tensor, loaded.
type Loaded<'c> = Vec<((usize, Kind), Val<'c>)>;

impl<'c> Round<'c> {
    /// Whether states are formed in one walk.
    #[must_use]
    pub const fn is_online(&self) -> bool {
        self.moments.is_empty()
    }

    fn is_peak(&self, at: usize) -> bool {
        self.below.iter().any(|below| below.of == at)
    }

    /// Its folds, and whether each is the maximum of another.
    fn folds(&self) -> impl Iterator<Item = (Val<'c>, Fold, bool)> {
        let alone = self.alone.iter().enumerate();
        let alone = alone.map(|(at, (value, fold))| (*value, *fold, self.is_peak(at)));
        let below = self.below.iter();
        alone.chain(below.map(|below| (below.value, below.fold, false)))
    }
}

impl<'c> Walk<'c> {
    /// The place of a tile that is wanted at `at`, where it is loaded: never behind the tensors' end.
    fn place(&self, code: Code<'c>, at: Val<'c>, columns: i64) -> PassResult<'c, Val<'c>> {
        code.min(at, code.index(self.whole - columns)?)
    }

    /// The place of so many tiles behind another.
    fn after(&self, code: Code<'c>, at: Val<'c>, tiles: i64) -> PassResult<'c, Val<'c>> {
        code.add(at, code.index(tiles.saturating_mul(self.step))?)
    }
}

/// What is folded of a walk, and the tensors that it goes through: as arguments, and as one row of all whole loads.
struct Course<'a, 'c> {
    round: &'a Round<'c>,
    walk: &'a Walk<'c>,
    inputs: Vec<((usize, Kind), Argument<'c>)>,
    flat: Vec<Val<'c>>,
}

impl<'c> Course<'_, 'c> {
    /// Tiles, of the values of one after the other.
    fn loaded(&self, values: &[Val<'c>]) -> Vec<Loaded<'c>> {
        let tile = |values: &[Val<'c>]| {
            let keys = self.inputs.iter().map(|(key, _)| *key);
            keys.zip(values.iter().copied()).collect()
        };
        values.chunks(self.inputs.len().max(1)).map(tile).collect()
    }
}

/// A tile: where it was loaded, and the elements that are to be taken of it, where those are not all.
#[derive(Clone, Copy)]
struct Tile<'c> {
    at: Val<'c>,
    taken: Option<[Val<'c>; 2]>,
}

impl<'c> Evaluator<'_, 'c> {
    /// A thread group's states of a round.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn states_of_walk(
        &mut self,
        round: &Round<'c>,
        walk: &Walk<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let inputs = self.walked(round)?;
        let flat = self.flat(&inputs, walk.whole, walk.elements)?;
        let course = Course {
            round,
            walk,
            inputs,
            flat,
        };
        let code = self.code;
        let mut queue = Vec::new();
        for tile in 0..walk.ahead {
            queue.push(self.load(code, &course, walk.after(code, walk.first, tile)?)?);
        }
        for value in &walk.early {
            self.value(*value, Kind::Row)?;
        }
        for (value, _) in &round.alone {
            self.form_rows(self.folded(*value)?, Kind::Full)?;
        }
        // The first tile may begin before the row.
        let [begin, end] = walk.row;
        let from = code.where_at_most([begin, walk.first], [walk.first, begin])?;
        let first = Tile {
            at: walk.first,
            taken: walk.begins_inside.then_some([from, end]),
        };
        let mut states = self.starts(&course)?;
        if let Some(loaded) = queue.first_mut() {
            states = self.take(code, &course, (first, loaded), &states)?;
            let next = walk.after(code, walk.first, walk.ahead)?;
            *loaded = self.load(code, &course, next)?;
        }
        queue.rotate_left(1);
        let states = self.walk_on(&course, states, queue)?;
        self.ends(round, states)
    }

    /// The states after all tiles but the first: as many at a time as are on their way while those lie in the row, then the
    /// last ones.
    fn walk_on(
        &self,
        course: &Course<'_, 'c>,
        states: Vec<Val<'c>>,
        queue: Vec<Loaded<'c>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (code, walk) = (self.code, course.walk);
        let (columns, end) = (self.registers.shape[1], walk.row[1]);
        let turn = walk.step.saturating_mul(walk.ahead);
        let start = walk.after(code, walk.first, 1)?;
        let stop = code.sub(end, code.index(turn - walk.step + columns - 1)?)?;
        let count = states.len();
        let values = queue.into_iter().flatten().map(|(_, value)| value);
        let carried: Vec<_> = states.into_iter().chain(values).collect();
        let bounds = [start, stop, code.index(turn)?];
        let results = code.for_range(bounds, &carried, |code, at, carried| {
            let (states, queue) = carried.split_at(count.min(carried.len()));
            let (mut states, mut next) = (states.to_vec(), Vec::new());
            for (own, loaded) in (0..).zip(course.loaded(queue)) {
                let at = walk.after(code, at, own)?;
                let whole = Tile { at, taken: None };
                states = self.take(code, course, (whole, &loaded), &states)?;
                next.extend(self.load(code, course, walk.after(code, at, walk.ahead)?)?);
            }
            states.extend(next.into_iter().map(|(_, value)| value));
            Ok(states)
        })?;
        // The last tiles, of which none or all may be left.
        let turns = code.ceil_div(code.sub(stop, start)?, turn)?;
        let next = code.add(start, code.times(turns, turn)?)?;
        let bounds = [next, end, code.index(walk.step)?];
        let mut results = code.for_range(bounds, &results, |code, wanted, carried| {
            let (states, queue) = carried.split_at(count.min(carried.len()));
            let mut queue = course.loaded(queue);
            let last = Tile {
                at: walk.place(code, wanted, columns)?,
                taken: Some([wanted, end]),
            };
            let mut states = match queue.first() {
                Some(loaded) => self.take(code, course, (last, loaded), states)?,
                None => states.to_vec(),
            };
            queue.rotate_left(1);
            let values = queue.into_iter().flatten();
            states.extend(values.map(|(_, value)| value));
            Ok(states)
        })?;
        results.truncate(count);
        Ok(results)
    }

    /// What a reduction is of.
    fn folded(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let from = defining(value).and_then(source);
        from.ok_or_else(|| self.lost(value))
    }

    /// The tensors whose elements the folds of a round take, in an order that is always the same.
    fn walked(&self, round: &Round<'c>) -> PassResult<'c, Vec<((usize, Kind), Argument<'c>)>> {
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        let mut next = Vec::new();
        for (value, ..) in round.folds() {
            next.push((self.folded(value)?, Kind::Full));
        }
        next.reverse();
        while let Some((value, kind)) = next.pop() {
            let key = (identity(value), kind);
            if kind != Kind::Full || seen.contains(&key) {
                continue;
            }
            seen.push(key);
            match (self.arguments.get(&key), defining(value)) {
                (Some(argument), _) => found.push((key, argument.clone())),
                (None, Some(op)) => {
                    next.extend(needs(op, (value, kind), Some(self.cut)));
                }
                (None, None) => {}
            }
        }
        Ok(found)
    }

    /// Tensors as one row of so many of their elements.
    fn flat(
        &self,
        inputs: &[((usize, Kind), Argument<'c>)],
        extent: i64,
        elements: i64,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let sizes = [Int::Known(1), Int::Known(extent)];
        let strides = [Int::Known(elements), Int::Known(1)];
        let flat = |(_, argument): &(_, Argument<'c>)| {
            self.code
                .reinterpret(argument.memref, &sizes, &strides, &[1, 1])
        };
        inputs.iter().map(flat).collect()
    }

    /// Loads the tile that is wanted at a place.
    fn load(
        &self,
        code: Code<'c>,
        course: &Course<'_, 'c>,
        at: Val<'c>,
    ) -> PassResult<'c, Loaded<'c>> {
        let Course {
            walk, inputs, flat, ..
        } = course;
        let at = walk.place(code, at, self.registers.shape[1])?;
        self.load_at(code, inputs, (flat, walk.whole), at, self.registers)
    }

    fn load_at(
        &self,
        code: Code<'c>,
        inputs: &[((usize, Kind), Argument<'c>)],
        (flat, extent): (&[Val<'c>], i64),
        at: Val<'c>,
        registers: &Registers,
    ) -> PassResult<'c, Loaded<'c>> {
        let zero = code.index(0)?;
        let load = |((key, _), memref): (&((usize, Kind), _), &Val<'c>)| {
            let own = code.global_box(*memref, &[1, extent], &[zero, at], &registers.shape)?;
            let element = element_type(memref.r#type());
            let r#type = registers.r#type(code, Kind::Full, element)?;
            Ok((*key, code.load(own, r#type)?))
        };
        inputs.iter().zip(flat).map(load).collect()
    }

    /// The states before the first tile: of no elements, or of those behind the last whole load.
    fn starts(&self, course: &Course<'_, 'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let Course {
            round,
            walk,
            inputs,
            ..
        } = course;
        let code = self.code;
        let starts = self.neutrals(round)?;
        let Some(rest) = &walk.rest else {
            return Ok(starts);
        };
        let at = code.index(walk.whole)?;
        let flat = self.flat(inputs, walk.elements, walk.elements)?;
        let flat = (&flat[..], walk.elements);
        let loaded = self.load_at(code, inputs, flat, at, &rest.registers)?;
        let taken = Some([at, rest.end]);
        let part = self.at_part(&rest.registers, at);
        let own = part.neutrals(round)?;
        let own = part.take(code, course, (Tile { at, taken }, &loaded), &own)?;
        let own = part.ends(round, own)?;
        let folds = round.folds().zip(own).zip(starts);
        let start = |(((_, fold, is_peak), own), start): ((_, Val<'c>), Val<'c>)| match is_peak {
            true => Ok(own),
            false => self.in_first(own, fold, start.r#type()),
        };
        folds.map(start).collect()
    }

    /// States of no elements: a value a row of a maximum that sums are below, of others one an element of the tile.
    fn neutrals(&self, round: &Round<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let neutral = |(value, fold, is_peak): (Val<'c>, Fold, bool)| {
            let kind = if is_peak { Kind::Row } else { Kind::Full };
            let neutral = self.code.scalar(self.element(value)?, fold.neutral())?;
            self.code.fill(neutral, self.r#type(value, kind)?)
        };
        round.folds().map(neutral).collect()
    }

    /// A tile of which one element is a value of the row, and all others change no state.
    fn in_first(&self, row: Val<'c>, fold: Fold, tile: Type<'c>) -> PassResult<'c, Val<'c>> {
        let all = self.code.broadcast(row, 1, tile)?;
        let element = element_type(tile);
        self.code.map(&[all], tile, |inner, of| {
            let column = column(&inner)?;
            let is_first = inner.at_most(column, inner.index(0)?)?;
            let neutral = inner.scalar(element, fold.neutral())?;
            inner.choose(is_first, [of[0], neutral])
        })
    }

    /// The states with one more tile.
    fn take(
        &self,
        code: Code<'c>,
        course: &Course<'_, 'c>,
        (tile, loaded): (Tile<'c>, &Loaded<'c>),
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Course { round, walk, .. } = course;
        let mut own = self.at_column(code, code.sub(tile.at, walk.row[0])?);
        own.known.extend(loaded.iter().copied());
        let (alone, below) = states.split_at(round.alone.len().min(states.len()));
        let mut next = Vec::new();
        for (at, ((value, fold), state)) in round.alone.iter().zip(alone).enumerate() {
            let element = own.element(*value)?;
            let mut piece = own.taken(*value, *fold, tile)?;
            if round.is_peak(at) {
                piece = code.reduce(fold.combiner, piece, 1, state.r#type())?;
            }
            next.push(fold.merge(code, element, *state, piece)?);
        }
        for (of, sum) in round.below.iter().zip(below) {
            let (Some((peak, _)), Some(before), Some(now)) =
                (round.alone.get(of.of), alone.get(of.of), next.get(of.of))
            else {
                continue;
            };
            let shift = of.peak.shift(code, *now)?;
            own.known.insert((identity(*peak), Kind::Row), shift);
            let piece = own.taken(of.value, of.fold, tile)?;
            next.push(own.raised(of.peak, *sum, [*before, shift], piece)?);
        }
        Ok(next)
    }

    /// What a fold is to take of a tile.
    fn taken(&mut self, value: Val<'c>, fold: Fold, tile: Tile<'c>) -> PassResult<'c, Val<'c>> {
        let from = self.folded(value)?;
        let whole = self.value(from, Kind::Full)?;
        let Some([from, end]) = tile.taken else {
            return Ok(whole);
        };
        let (code, columns) = (self.code, self.registers.shape[1]);
        let from = code.min(from, end)?;
        let count = code.min(code.sub(end, from)?, code.index(columns)?)?;
        let first = code.sub(tile.at, from)?;
        let element = element_type(whole.r#type());
        code.map(&[whole], whole.r#type(), |inner, of| {
            let builder = &inner.builder;
            let i32 = builder.r#type(|context| IntegerType::new(context, 32).into());
            let narrow = |value| builder.value("arith.index_cast", &[value], i32, &[]);
            let (column, first) = (narrow(column(&inner)?)?, narrow(first)?);
            let place = builder.value("arith.addi", &[first, column], i32, &[])?;
            // Without a sign: what lies before the first is far behind the last.
            let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
            let below = [("predicate", builder.parsed("6 : i64")?)];
            let is_taken = builder.value("arith.cmpi", &[place, narrow(count)?], bit, &below)?;
            let neutral = inner.scalar(element, fold.neutral())?;
            inner.choose(is_taken, [of[0], neutral])
        })
    }

    /// The states as values a row.
    fn ends(&self, round: &Round<'c>, states: Vec<Val<'c>>) -> PassResult<'c, Vec<Val<'c>>> {
        let end = |((value, fold, is_peak), state): ((Val<'c>, Fold, bool), Val<'c>)| match is_peak
        {
            true => Ok(state),
            false => {
                let row = self.r#type(value, Kind::Row)?;
                self.code.reduce(fold.combiner, state, 1, row)
            }
        };
        round.folds().zip(states).map(end).collect()
    }

    /// `s exp(m - m') + t` of sums `s` below a maximum `m` and `t` below `m'`, which is not below `m`.
    fn raised(
        &self,
        stands: Peak,
        sums: Val<'c>,
        [before, now]: [Val<'c>; 2],
        added: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let code = self.code;
        let own = element_type(sums.r#type());
        let elements = [own, element_type(before.r#type())];
        let is_wide = elements.iter().any(|own| types::bits(*own) == Some(64));
        let wide = code.builder.r#type(|context| match is_wide {
            true => Type::float64(context),
            false => Type::float32(context),
        });
        let row = self.registers.r#type(code, Kind::Row, wide)?;
        let factor = code.map(&[before, now], row, |inner, of| {
            let builder = &inner.builder;
            let [before, now] = [of[0], of[1]].map(|value| converted(builder, value, wide));
            stands.factor(&inner, [before?, now?])
        })?;
        let full = self.registers.r#type(code, Kind::Full, wide)?;
        let factor = code.broadcast(factor, 1, full)?;
        code.map(&[sums, factor, added], sums.r#type(), |inner, of| {
            let builder = &inner.builder;
            let [sum, added] = [of[0], of[2]].map(|value| converted(builder, value, wide));
            let scaled = builder.value("arith.mulf", &[sum?, of[1]], wide, &[])?;
            let sum = builder.value("arith.addf", &[scaled, added?], wide, &[])?;
            converted(builder, sum, own)
        })
    }
}

/// The column of the element that a map's body computes, in its tile.
fn column<'c>(code: &Code<'c>) -> PassResult<'c, Val<'c>> {
    let builder = &code.builder;
    let dim = [("dim", builder.parsed("1 : i64")?)];
    builder.value(ops::INDEX, &[], builder.index_type(), &dim)
}
