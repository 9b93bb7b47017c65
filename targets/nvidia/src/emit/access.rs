//! Addresses, bounds, and the loads and stores themselves.

use super::emitter::Emitter;
use super::value::Memory;
use crate::fragment::{Digit, Fragment, Source};
use crate::plan::copy::{CopyPlan, Term};
use crate::plan::owner::Owner;
use crate::plan::swap::Swap;
use crate::state::types;
use axe_layout::Swizzle;
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Int, Ints, Predicate};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;
use std::collections::{BTreeMap, HashMap};

/// The registers' part of an access's index, for each dimension whose bounds it must be compared with.
type Key = Vec<(usize, Option<i64>)>;

/// Accesses of the same bounds, by their position in a plan.
pub(crate) type Groups = BTreeMap<Key, Vec<usize>>;

/// A register's part of a fragment's index along a dimension.
pub(crate) fn register_index(dim: &[Digit], register: i64) -> i64 {
    let own = dim.iter().filter(|digit| digit.source == Source::Register);
    own.map(|digit| digit.value(0, register)).sum()
}

impl<'c> Emitter<'c> {
    /// What an operator reads: its first operand.
    pub(crate) fn source(&self, op: Op<'c>) -> PassResult<'c, Val<'c>> {
        let first = operands(op).first().copied();
        first.ok_or_else(|| self.error("expected a source"))
    }

    /// `sum over terms of (thread / divisor mod modulus) * step`.
    pub(crate) fn thread_part(&self, terms: &[Term]) -> PassResult<'c, Int<'c>> {
        let ints = self.ints();
        let mut sum = Int::ZERO;
        for term in terms {
            let digit = ints.div(Int::Value(self.thread), term.divisor)?;
            // The outermost digit of the thread's number needs no modulus.
            let digit = match term.divisor * term.modulus >= self.threads {
                true => digit,
                false => ints.rem(digit, term.modulus)?,
            };
            sum = ints.add(sum, ints.mul(digit, term.step)?)?;
        }
        Ok(sum)
    }

    /// The thread's part of a fragment's index along a dimension.
    pub(crate) fn thread_index(&self, dim: &[Digit]) -> PassResult<'c, Int<'c>> {
        let digits = dim.iter().filter(|digit| digit.source == Source::Thread);
        let terms: Vec<_> = digits
            .map(|digit| Term {
                divisor: digit.stride,
                modulus: digit.extent,
                step: digit.weight,
            })
            .collect();
        self.thread_part(&terms)
    }

    /// The index along a dimension of a fragment that a register of this thread holds.
    pub(crate) fn index_along(&self, dim: &[Digit], register: i64) -> PassResult<'c, Int<'c>> {
        let part = Int::Known(register_index(dim, register));
        self.ints().add(self.thread_index(dim)?, part)
    }

    /// The index that a register of this thread holds.
    pub(crate) fn index_of(
        &self,
        fragment: &Fragment,
        register: i64,
    ) -> PassResult<'c, Vec<Int<'c>>> {
        let dims = fragment.dims().iter();
        dims.map(|dim| self.index_along(dim, register)).collect()
    }

    /// The pointers of a plan's accesses by this thread.
    pub(crate) fn pointers(
        &self,
        plan: &CopyPlan,
        memory: &Memory<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let thread = self.thread_part(&plan.terms)?;
        let offsets: Vec<_> = plan.accesses.iter().map(|access| access.offset).collect();
        self.pointers_at(memory, thread, &offsets, |at| plan.thread_offset(at))
    }

    /// The same where lanes swap accesses, for a lane whose digit is `odd`, of memory with this swizzle.
    pub(crate) fn swapped_pointers(
        &self,
        (plan, swap): (&CopyPlan, &Swap),
        (memory, swizzle): (&Memory<'c>, Swizzle),
        odd: Int<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = Ints::new(self.builder, memory.space.offset_bits());
        let thread = ints.cast(self.thread_part(&plan.terms)?)?;
        let step = ints.mul(ints.cast(odd)?, swap.step)?;
        let offsets: Vec<_> = plan.accesses.iter().map(|access| access.offset).collect();
        self.disjoint_pointers((memory, swizzle), ints.xor(thread, step)?, &offsets)
    }

    /// The pointers at `thread + offset` elements, for each offset; `at` gives the thread's part for a thread.
    pub(crate) fn pointers_at(
        &self,
        memory: &Memory<'c>,
        thread: Int<'c>,
        offsets: &[i64],
        at: impl Fn(i64) -> i64,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = Ints::new(self.builder, memory.space.offset_bits());
        let thread = ints.cast(thread)?;
        let Some(swizzle) = memory.swizzle else {
            let base =
                self.offset_pointer(memory, memory.base, ints.add(thread, memory.pending)?)?;
            let pointer = |&offset: &i64| self.offset_pointer(memory, base, Int::Known(offset));
            return offsets.iter().map(pointer).collect();
        };
        let period = swizzle.period();
        let low = |offset: i64| offset.rem_euclid(period);
        // Where the parts share no bit, the swizzle of the sum is the xor of the swizzles.
        let disjoint = memory.pending.known() == Some(0)
            && offsets
                .iter()
                .all(|&offset| (0..self.threads).all(|thread| at(thread) & low(offset) == 0));
        if !disjoint {
            let sum = ints.add(thread, memory.pending)?;
            let pointer = |&offset: &i64| {
                let address = ints.add(sum, Int::Known(offset))?;
                self.offset_pointer(memory, memory.base, ints.swizzle(swizzle, address)?)
            };
            return offsets.iter().map(pointer).collect();
        }
        self.disjoint_pointers((memory, swizzle), thread, offsets)
    }

    /// The pointers at the swizzle of `thread + offset` elements, where the two share no bit.
    fn disjoint_pointers(
        &self,
        (memory, swizzle): (&Memory<'c>, Swizzle),
        thread: Int<'c>,
        offsets: &[i64],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = Ints::new(self.builder, memory.space.offset_bits());
        let low = |offset: i64| offset.rem_euclid(swizzle.period());
        let swizzled = ints.swizzle(swizzle, thread)?;
        let mut rows: HashMap<i64, Val<'c>> = HashMap::new();
        let mut pointers = Vec::new();
        for &offset in offsets {
            let row = match rows.get(&low(offset)) {
                Some(row) => *row,
                None => {
                    let address = ints.xor(swizzled, Int::Known(swizzle.apply(low(offset))))?;
                    let row = self.offset_pointer(memory, memory.base, address)?;
                    rows.insert(low(offset), row);
                    row
                }
            };
            pointers.push(self.offset_pointer(memory, row, Int::Known(offset - low(offset)))?);
        }
        Ok(pointers)
    }

    /// The address of an index of the box in elements, swizzled: whatever the layout.
    pub(crate) fn address_of(
        &self,
        memory: &Memory<'c>,
        index: &[Int<'c>],
    ) -> PassResult<'c, Int<'c>> {
        let ints = Ints::new(self.builder, memory.space.offset_bits());
        let mut address = ints.add(memory.pending, Int::Known(memory.offset))?;
        for (dim, &at) in memory.dims.iter().zip(index) {
            let mut rest = ints.cast(at)?;
            for (position, iter) in dim.iter().enumerate().rev() {
                let digit = if position == 0 {
                    rest
                } else {
                    ints.rem(rest, iter.extent)?
                };
                address = ints.add(address, ints.mul(digit, iter.stride)?)?;
                rest = ints.div(rest, iter.extent)?;
            }
        }
        match memory.swizzle {
            Some(swizzle) => ints.swizzle(swizzle, address),
            None => Ok(address),
        }
    }

    /// Groups accesses, given by their first registers, by what their bounds depend on.
    pub(crate) fn groups(
        &self,
        fragment: &Fragment,
        memory: &Memory<'c>,
        registers: impl Iterator<Item = i64>,
    ) -> Groups {
        let mut groups = Groups::new();
        for (position, register) in registers.enumerate() {
            let part = |dim: usize| {
                let digits = fragment.dims().get(dim).into_iter().flatten();
                let digits = digits.filter(|digit| digit.source == Source::Register);
                digits.map(|digit| digit.value(0, register)).sum::<i64>()
            };
            let bounded = memory.guards.iter().enumerate().filter_map(|(dim, guard)| {
                let uniform = (*guard)?.is_uniform(*memory.shape.get(dim)?);
                Some((dim, (!uniform).then(|| part(dim))))
            });
            groups.entry(bounded.collect()).or_default().push(position);
        }
        groups
    }

    /// Whether the elements of a group exist; `None` when they always do.
    pub(crate) fn exist(
        &self,
        fragment: &Fragment,
        memory: &Memory<'c>,
        key: &Key,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let ints = self.ints();
        let mut condition = None;
        for &(dim, part) in key {
            let room = self.room(memory, dim)?;
            let first = match part {
                None => Int::ZERO,
                Some(part) => ints.add(
                    self.thread_index(fragment.dims().get(dim).map_or(&[], Vec::as_slice))?,
                    Int::Known(part),
                )?,
            };
            let exists = ints.less(first, room)?;
            condition = Some(self.both(condition, exists)?);
        }
        Ok(condition)
    }

    /// Elements of a dimension that exist, at most its extent: 32 bits.
    pub(crate) fn room(&self, memory: &Memory<'c>, dim: usize) -> PassResult<'c, Int<'c>> {
        let extent = Int::Known(memory.shape.get(dim).copied().unwrap_or(0));
        match memory.remaining.get(dim).copied().flatten() {
            None => Ok(extent),
            Some(remaining) => {
                let least = Int::Known(i64::from(i32::MIN));
                let wide = Ints::new(self.builder, 64);
                let clamped = wide.max(wide.min(remaining, extent)?, least)?;
                self.ints().cast(clamped)
            }
        }
    }

    /// Whether this thread is the one that stores its elements; `None` when every thread is.
    pub(crate) fn owns(&self, owner: &Owner) -> PassResult<'c, Option<Val<'c>>> {
        let ints = self.ints();
        let thread = Int::Value(self.thread);
        let mut condition = None;
        for &(divisor, modulus) in &owner.zero_digits {
            let digit = ints.rem(ints.div(thread, divisor)?, modulus)?;
            let zero = ints.compare(Predicate::Equal, digit, Int::ZERO)?;
            condition = Some(self.both(condition, zero)?);
        }
        if owner.first > 0 {
            let after = ints.less(Int::Known(owner.first - 1), thread)?;
            condition = Some(self.both(condition, after)?);
        }
        if owner.end < self.threads {
            let before = ints.less(thread, Int::Known(owner.end))?;
            condition = Some(self.both(condition, before)?);
        }
        Ok(condition)
    }

    /// `a and b`, or `b` alone.
    pub(crate) fn both(&self, a: Option<Val<'c>>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        match a {
            None => Ok(b),
            Some(a) => {
                let bool = types::integer(self.builder, 1);
                self.builder.value("arith.andi", &[a, b], bool, &[])
            }
        }
    }

    fn alignment(&self, bytes: i64) -> melior::ir::Attribute<'c> {
        let i64 = types::integer(self.builder, 64);
        IntegerAttribute::new(i64, bytes).into()
    }

    /// Loads `width` consecutive elements.
    pub(crate) fn load(
        &self,
        memory: &Memory<'c>,
        pointer: Val<'c>,
        width: i64,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let loaded = self.load_vector(memory, pointer, width)?;
        self.elements_of(loaded, width, memory.element)
    }

    /// Loads them as a vector, or what stands for one element in memory.
    pub(crate) fn load_vector(
        &self,
        memory: &Memory<'c>,
        pointer: Val<'c>,
        width: i64,
    ) -> PassResult<'c, Val<'c>> {
        let alignment = [("alignment", self.alignment(width * memory.bytes))];
        let loaded = match width {
            1 => types::stored(self.builder, memory.element),
            _ => types::vector(width, memory.element),
        };
        self.builder
            .value("llvm.load", &[pointer], loaded, &alignment)
    }

    /// The elements of what [`Emitter::load_vector`] loads.
    pub(crate) fn elements_of(
        &self,
        loaded: Val<'c>,
        width: i64,
        element: melior::ir::Type<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        match width {
            1 => Ok(vec![self.bitcast(loaded, element)?]),
            _ => self.unpack(loaded, width, element),
        }
    }

    /// As many times the same element, as [`Emitter::load_vector`] would load it.
    pub(crate) fn padded_vector(&self, pad: Val<'c>, width: i64) -> PassResult<'c, Val<'c>> {
        let element = melior::ir::ValueLike::r#type(&pad);
        match usize::try_from(width) {
            Ok(width) if width > 1 => self.pack(&vec![pad; width], element),
            _ => self.bitcast(pad, types::stored(self.builder, element)),
        }
    }

    /// Stores consecutive elements.
    pub(crate) fn store(
        &self,
        memory: &Memory<'c>,
        pointer: Val<'c>,
        values: &[Val<'c>],
    ) -> PassResult<'c> {
        let width = i64::try_from(values.len()).unwrap_or(1);
        let alignment = [("alignment", self.alignment(width * memory.bytes))];
        let value = match values {
            [value] => self.bitcast(*value, types::stored(self.builder, memory.element))?,
            _ => self.pack(values, memory.element)?,
        };
        self.builder
            .operation("llvm.store", &[value, pointer], &[], &alignment, Vec::new())?;
        Ok(())
    }

    /// The elements of a vector.
    pub(crate) fn unpack(
        &self,
        vector: Val<'c>,
        width: i64,
        element: melior::ir::Type<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let stored = types::stored(self.builder, element);
        let part = |at| {
            let position = self.ints().value(Int::Known(at))?;
            let operands = [vector, position];
            let part = self
                .builder
                .value("llvm.extractelement", &operands, stored, &[])?;
            self.bitcast(part, element)
        };
        (0..width).map(part).collect()
    }

    /// A field of a structure.
    pub(crate) fn field(
        &self,
        structure: Val<'c>,
        at: usize,
        r#type: melior::ir::Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let position = i64::try_from(at).unwrap_or(0);
        let position = self.builder.i64s(&[position]);
        self.builder.value(
            "llvm.extractvalue",
            &[structure],
            r#type,
            &[("position", position)],
        )
    }

    /// A vector of elements.
    pub(crate) fn pack(
        &self,
        values: &[Val<'c>],
        element: melior::ir::Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let r#type = types::vector(i64::try_from(values.len()).unwrap_or(1), element);
        let mut vector = self.builder.value("llvm.mlir.poison", &[], r#type, &[])?;
        for (at, value) in (0..).zip(values) {
            let position = self.ints().value(Int::Known(at))?;
            let value = self.bitcast(*value, types::stored(self.builder, element))?;
            vector = self.builder.value(
                "llvm.insertelement",
                &[vector, value, position],
                r#type,
                &[],
            )?;
        }
        Ok(vector)
    }

    /// Elements of 32 bits together as an `i32`.
    pub(crate) fn word_of(&self, elements: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let i32 = types::integer(self.builder, 32);
        match elements {
            [] => Err(self.error("a word without elements")),
            [one] => self.bitcast(*one, i32),
            [first, ..] => {
                let element = melior::ir::ValueLike::r#type(first);
                self.bitcast(self.pack(elements, element)?, i32)
            }
        }
    }

    /// A bit pattern of another type of the same width; an i1 and the byte that it is in memory.
    pub(crate) fn bitcast(
        &self,
        value: Val<'c>,
        to: melior::ir::Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let from = melior::ir::ValueLike::r#type(&value);
        if from == to {
            return Ok(value);
        }
        match (types::is_bit(from), types::is_bit(to)) {
            (true, _) => return self.builder.value("arith.extui", &[value], to, &[]),
            (_, true) => return self.is_not_zero(value),
            _ => {}
        }
        // LLVM has no floats of 8 bits: to its dialect they are bytes.
        let name = match [from, to].iter().any(|r#type| types::is_float8(*r#type)) {
            true => "arith.bitcast",
            false => "llvm.bitcast",
        };
        self.builder.value(name, &[value], to, &[])
    }

    /// Whether an integer is not zero.
    fn is_not_zero(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let ints = |bits| types::integer(self.builder, bits);
        let zero = IntegerAttribute::new(melior::ir::ValueLike::r#type(&value), 0).into();
        let zero = self.builder.constant(zero)?;
        // `arith.cmpi ne`.
        let predicate = IntegerAttribute::new(ints(64), 1).into();
        self.builder.value(
            "arith.cmpi",
            &[value, zero],
            ints(1),
            &[("predicate", predicate)],
        )
    }

    /// The number zero of an element type.
    pub(crate) fn zero(&self, element: melior::ir::Type<'c>) -> PassResult<'c, Val<'c>> {
        let zero = match axe_passes::ir::types::is_float(element) {
            true if types::is_float8(element) => {
                let byte = types::integer(self.builder, 8);
                let zero = self
                    .builder
                    .constant(IntegerAttribute::new(byte, 0).into())?;
                return self.bitcast(zero, element);
            }
            true => self.builder.float(element, 0.0),
            false => IntegerAttribute::new(element, 0).into(),
        };
        self.builder.constant(zero)
    }
}
