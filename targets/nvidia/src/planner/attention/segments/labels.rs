//! A row of labels, gone through by a warp: the keys whose labels are between those of a tile's rows.

use super::super::memory::Strides;
use super::super::score::{self, compare};
use super::{STEP, Seen};
use axe_dialect::{Combiner, element_type};
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{Int, Ints, Val, types};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// What goes through labels: a row of them in registers.
pub(super) struct Own<'a, 'c> {
    pub code: Code<'c>,
    pub registers: &'a Registers,
    pub i32: Type<'c>,
    /// Whether labels are of more bits than i32, whose last numbers stand for those beyond them.
    pub saturates: bool,
}

/// The labels of a tensor in memory.
type Labels<'a, 'c> = (&'a Strides, Val<'c>);

impl<'c> Own<'_, 'c> {
    fn r#type(&self, kind: Kind) -> PassResult<'c, Type<'c>> {
        self.registers.r#type(self.code, kind, self.i32)
    }

    /// Labels from one on, as i32.
    fn load(
        &self,
        (strides, memref): Labels<'_, 'c>,
        batch: Val<'c>,
        first: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let (code, registers) = (self.code, self.registers);
        let zero = code.index(0)?;
        let view = strides.view(code, memref)?;
        let from = view.boxed(code, batch, [zero, first], registers.shape)?;
        let element = element_type(memref.r#type());
        let value = code.load(from, registers.r#type(code, Kind::Column, element)?)?;
        let wide = registers.r#type(code, Kind::Full, element)?;
        let value = code.broadcast(value, 0, wide)?;
        let bits = types::bits(element);
        if bits == Some(32) {
            return Ok(value);
        }
        code.map(&[value], self.r#type(Kind::Full)?, |code, own| {
            let builder = code.builder;
            if bits < Some(32) {
                return builder.value("arith.extsi", own, self.i32, &[]);
            }
            // Labels of the same order: what is beyond i32 is its last number.
            let ints = Ints::new(builder, 64);
            let lost = || layout_error(builder.location, "a label");
            let own = Int::Value(own.first().copied().ok_or_else(lost)?);
            let own = ints.min(own, Int::Known(i32::MAX.into()))?;
            let own = ints.value(ints.max(own, Int::Known(i32::MIN.into()))?)?;
            builder.value("arith.trunci", &[own], self.i32, &[])
        })
    }

    /// The number of an element, counted from one on, as i32.
    fn number(&self, code: Code<'c>, first: Val<'c>) -> PassResult<'c, Val<'c>> {
        let own = score::place(code, 1)?;
        let first = score::i32_of(code, first)?;
        self.apply(code, "arith.addi", &[first, own])
    }

    fn apply(&self, code: Code<'c>, name: &str, own: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        code.builder.value(name, own, self.i32, &[])
    }

    /// All elements of a row combined, in each of its columns.
    fn reduced(&self, combiner: Combiner, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.code
            .reduce(combiner, value, 1, self.r#type(Kind::Row)?)
    }

    fn wide(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.code.broadcast(value, 1, self.r#type(Kind::Full)?)
    }

    /// The least and the greatest label of so many rows from one on.
    pub(super) fn ends(
        &self,
        labels: Labels<'_, 'c>,
        batch: Val<'c>,
        [first, rows]: [Val<'c>; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let code = self.code;
        let all = code.index(labels.0.columns())?;
        let rows = code.min(rows, code.sub(all, first)?)?;
        let rows = score::i32_of(code, rows)?;
        let labels = self.load(labels, batch, first)?;
        let zero = code.index(0)?;
        let of = |combiner, none| {
            let own = code.map(&[labels], self.r#type(Kind::Full)?, |code, own| {
                let is = compare(code, 2, self.number(code, zero)?, rows)?;
                let none = code.scalar(self.i32, none)?;
                self.apply(code, "arith.select", &[is, own[0], none])
            })?;
            self.wide(self.reduced(combiner, own)?)
        };
        Ok([
            of(Combiner::Min, Number::Greatest)?,
            of(Combiner::Max, Number::Least)?,
        ])
    }

    /// The keys whose labels are between two.
    pub(super) fn seen(
        &self,
        labels: Labels<'_, 'c>,
        batch: Val<'c>,
        [least, greatest]: [Val<'c>; 2],
    ) -> PassResult<'c, Seen<'c>> {
        let code = self.code;
        let keys = labels.0.columns();
        let full = self.r#type(Kind::Full)?;
        let start = |value| code.fill(code.scalar(self.i32, Number::Of(value))?, full);
        let starts = [start(keys)?, start(0)?, start(0)?];
        let all = code.index(keys)?;
        let found = code.for_each(all, STEP, &starts, |code, at, carried| {
            let own = Self { code, ..*self };
            let labels = own.load(labels, batch, at)?;
            own.next(labels, [least, greatest], [at, all], carried)
        })?;
        let &[first, end, same] = found.as_slice() else {
            return Err(layout_error(
                code.builder.location,
                "a loop carries three numbers",
            ));
        };
        let first = self.reduced(Combiner::Min, first)?;
        let end = self.reduced(Combiner::Max, end)?;
        let same = self.reduced(Combiner::Add, same)?;
        let ends = [least, greatest].map(|own| self.reduced(Combiner::Min, own));
        let [least, greatest] = ends;
        self.whole([first, end, same], [least?, greatest?])
    }

    /// The numbers of the first and the last key so far, and of those that have the least label.
    fn next(
        &self,
        labels: Val<'c>,
        [least, greatest]: [Val<'c>; 2],
        [at, all]: [Val<'c>; 2],
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let code = self.code;
        let all = score::i32_of(code, all)?;
        let i1 = code
            .builder
            .r#type(|context| IntegerType::new(context, 1).into());
        let mut next = Vec::new();
        for (which, before) in carried.iter().enumerate() {
            let inputs = [labels, least, greatest, *before];
            let own = code.map(&inputs, before.r#type(), |code, own| {
                let &[label, least, greatest, before] = own else {
                    return Err(layout_error(code.builder.location, "four inputs"));
                };
                let builder = code.builder;
                let number = self.number(code, at)?;
                let both = |a, b| builder.value("arith.andi", &[a, b], i1, &[]);
                let is = both(
                    compare(code, 3, least, label)?,
                    compare(code, 3, label, greatest)?,
                )?;
                let is = both(is, compare(code, 2, number, all)?)?;
                let one = code.scalar(self.i32, Number::Of(1))?;
                let value = match which {
                    0 => self.apply(code, "arith.minsi", &[before, number])?,
                    1 => self.apply(code, "arith.addi", &[number, one])?,
                    _ => self.apply(code, "arith.addi", &[before, one])?,
                };
                let is = match which {
                    2 => both(is, compare(code, 0, label, least)?)?,
                    _ => is,
                };
                self.apply(code, "arith.select", &[is, value, before])
            })?;
            next.push(own);
        }
        Ok(next)
    }

    /// The keys that some rows see, and those that all do, of the number of keys with the least label.
    fn whole(
        &self,
        [first, end, same]: [Val<'c>; 3],
        [least, greatest]: [Val<'c>; 2],
    ) -> PassResult<'c, Seen<'c>> {
        let inputs = [first, end, same, least, greatest];
        let of = |at: usize| {
            self.code.map(&inputs, first.r#type(), |code, own| {
                let &[first, end, same, least, greatest] = own else {
                    return Err(layout_error(code.builder.location, "five inputs"));
                };
                let i1 = code
                    .builder
                    .r#type(|context| IntegerType::new(context, 1).into());
                let keys = self.apply(code, "arith.subi", &[end, first])?;
                let both = [
                    compare(code, 0, least, greatest)?,
                    compare(code, 0, keys, same)?,
                ];
                let mut is = code.builder.value("arith.andi", &both, i1, &[])?;
                // The last numbers of i32 stand for several labels.
                let last = [Number::Least, Number::Greatest].into_iter();
                for last in last.filter(|_| self.saturates) {
                    let own = compare(code, 1, least, code.scalar(self.i32, last)?)?;
                    is = code.builder.value("arith.andi", &[is, own], i1, &[])?;
                }
                let zero = code.scalar(self.i32, Number::Of(0))?;
                self.apply(code, "arith.select", &[is, [first, end][at], zero])
            })
        };
        Ok([first, end, of(0)?, of(1)?])
    }

    /// The keys that are seen by two comparisons.
    pub(super) fn both(&self, a: Seen<'c>, b: Seen<'c>) -> PassResult<'c, Seen<'c>> {
        let of = |at: usize| {
            let name = ["arith.maxsi", "arith.minsi"][at % 2];
            self.code.map(&[a[at], b[at]], a[at].r#type(), |code, own| {
                self.apply(code, name, own)
            })
        };
        Ok([of(0)?, of(1)?, of(2)?, of(3)?])
    }
}
