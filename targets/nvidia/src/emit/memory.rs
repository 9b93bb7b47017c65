//! Storage at run time: kernel arguments, shared memory, and their slices and views.

use super::emitter::Emitter;
use super::value::Memory;
use crate::state::boxes;
use crate::state::cursor::{Scratch, scratch_storage};
use crate::state::form::{Space, Storage};
use crate::state::storage::{self, cut, guard, moves_base, origin_along};
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{DYNAMIC, Op, Val};
use axe_passes::ir::{Int, Ints};
use melior::ir::{Type, ValueLike};

/// Bytes that descriptors of shared memory count in (PTX ISA 9.7.15.5.1.2.2, "matrix-descriptor-encode").
const QUANTUM: i64 = 16;

impl<'c> Emitter<'c> {
    /// The storage that a value of the kernel is, as far as it is known when compiling.
    fn storage_of(&self, value: Val<'c>) -> PassResult<'c, Storage<'c>> {
        let storage = self.kernel.storage(value);
        storage.cloned().map_err(|reason| self.error(reason))
    }

    /// An argument, at its parameter.
    pub(crate) fn argument(
        &self,
        argument: Val<'c>,
        base: Val<'c>,
        extents: Vec<Option<Val<'c>>>,
    ) -> PassResult<'c, Memory<'c>> {
        Ok(Memory {
            moved: Some(Int::ZERO),
            extents,
            ..Memory::new(self.storage_of(argument)?, base)
        })
    }

    /// `axe.alloc`, at its byte of shared memory.
    pub(crate) fn alloc(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let result = only_result(op).ok_or_else(|| self.error("expected a result"))?;
        let at = self.place_of(op)?.first;
        let storage = self.storage_of(result)?;
        let offset = Int::Known(at / storage.bytes);
        let base = self.pointer_at(storage.space, storage.element, self.shared, offset)?;
        Ok(Memory {
            moved: Some(Int::ZERO),
            ..Memory::new(storage, base)
        })
    }

    /// `axe.slice`: a box at a run-time origin.
    pub(crate) fn slice(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let Some((&source, origins)) = operands.split_first() else {
            return Err(self.error("expected a source"));
        };
        let source = self.memory(source)?;
        let result = only_result(op).ok_or_else(|| self.error("expected a result"))?;
        let shape = types::memref_shape(result.r#type()).unwrap_or_default();
        let (extents, dropped) = storage::extents(&source, shape);
        // Guards grow with the dimensions, as where the slice was read.
        let mut sliced = Memory {
            remaining: Vec::new(),
            extents: Vec::new(),
            strides: Vec::new(),
            ..source.clone()
        };
        sliced.storage.guards.clear();
        for (dim, (&origin, &extent)) in origins.iter().zip(&extents).enumerate() {
            self.slice_dimension(&mut sliced, &source, dim, (origin, extent))?;
            self.move_origin(&mut sliced, &source, dim, origin)?;
        }
        self.drop_units(&mut sliced, dropped, extents.get(dropped).copied())?;
        sliced.storage = self.storage_of(result)?;
        Ok(sliced)
    }

    fn slice_dimension(
        &self,
        sliced: &mut Memory<'c>,
        source: &Memory<'c>,
        dim: usize,
        (origin, extent): (Val<'c>, i64),
    ) -> PassResult<'c> {
        let fact = self.kernel.facts.of(origin);
        let number = self.int(origin)?;
        let cut = cut(source, dim, extent, &fact).map_err(|reason| self.error(reason))?;
        let ints = Ints::new(self.builder, source.space.offset_bits());
        let wide = ints.cast(number)?;
        let mut offset = Int::ZERO;
        let mut moved = sliced.moved.filter(|_| source.space == Space::Shared);
        let stride = source.strides.get(dim).copied().flatten();
        if let Some(stride) = stride {
            offset = ints.times(wide, Int::Value(stride))?;
            moved = None;
        }
        for step in cut.steps.iter().filter(|_| stride.is_none()) {
            let digit = ints.div(wide, step.divisor)?;
            let digit = step
                .modulus
                .map_or(Ok(digit), |modulus| ints.rem(digit, modulus))?;
            offset = ints.add(offset, ints.mul(digit, step.stride)?)?;
            let bytes = step.stride.saturating_mul(source.bytes);
            moved = match moved {
                _ if digit.known() == Some(0) => moved,
                Some(moved) if bytes % QUANTUM == 0 => {
                    Some(ints.add(moved, ints.mul(digit, bytes / QUANTUM)?)?)
                }
                _ => None,
            };
        }
        sliced.moved = moved;
        if moves_base(sliced, cut.multiple) {
            sliced.base = self.offset_pointer(sliced, sliced.base, offset)?;
        } else {
            sliced.pending = ints.add(sliced.pending, offset)?;
        }
        let guard = guard(source, dim, extent, &fact);
        sliced.storage.guards.push(guard);
        let remaining = guard.map(|_| self.remaining(source, dim, number));
        sliced.remaining.push(remaining.transpose()?);
        Ok(())
    }

    /// Elements from an origin to the end of the source along a dimension.
    fn remaining(
        &self,
        source: &Memory<'c>,
        dim: usize,
        origin: Int<'c>,
    ) -> PassResult<'c, Int<'c>> {
        let ints = Ints::new(self.builder, 64);
        let outer = source.remaining.get(dim).copied().flatten();
        let limit = match (outer, source.shape.get(dim).copied()) {
            (Some(remaining), _) => remaining,
            (None, Some(DYNAMIC)) => source.extent_at(dim).map_or(Int::ZERO, Int::Value),
            (None, limit) => Int::Known(limit.unwrap_or(0)),
        };
        ints.sub(ints.cast(limit)?, ints.cast(origin)?)
    }

    /// Moves the origin of a box along a dimension.
    fn move_origin(
        &self,
        sliced: &mut Memory<'c>,
        source: &Memory<'c>,
        dim: usize,
        by: Val<'c>,
    ) -> PassResult<'c> {
        let Some(along) = origin_along(sliced, source, dim) else {
            sliced.storage.origin = None;
            return Ok(());
        };
        if let Some(at) = sliced.at.get_mut(along) {
            let ints = self.ints();
            *at = ints.add(*at, ints.cast(self.int(by)?)?)?;
        }
        if let Some(origin) = &mut sliced.storage.origin
            && dim + 1 == source.shape.len()
        {
            origin.whole = false;
        }
        Ok(())
    }

    /// Without its leading unit dimensions. A guard on one of them decides for the whole box: where it
    /// fails, the first dimension, of this extent, is empty.
    fn drop_units(
        &self,
        memory: &mut Memory<'c>,
        dropped: usize,
        extent: Option<i64>,
    ) -> PassResult<'c> {
        let units: Vec<_> = memory.remaining.drain(..dropped).flatten().collect();
        let ints = Ints::new(self.builder, 64);
        for unit in units {
            let (Some(extent), Some(first)) = (extent, memory.remaining.first_mut()) else {
                return Err(self.error("a box without dimensions may not lie outside its source"));
            };
            let whole = ints.mul(ints.min(unit, Int::Known(1))?, extent)?;
            *first = Some(match first {
                Some(old) => ints.min(*old, whole)?,
                None => whole,
            });
        }
        Ok(())
    }

    /// `axe.view`: the same storage through another layout.
    pub(crate) fn view(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let result = only_result(op).ok_or_else(|| self.error("expected a result"))?;
        let source = self.memory(operands(op).first().copied().unwrap_or(result))?;
        let storage = self.storage_of(result)?;
        let kept = boxes::guards_of_view(&source, &storage)
            .ok_or_else(|| self.error("a view without its source's bounds"))?;
        let remaining = |from: &Option<usize>| source.remaining.get((*from)?).copied().flatten();
        Ok(Memory {
            root: source.root,
            moved: source.moved,
            pending: source.pending,
            remaining: kept.iter().map(remaining).collect(),
            ..Memory::new(storage, source.base)
        })
    }

    /// `memref.subview`: the first rows of an argument. There are no more than it has.
    pub(crate) fn first_rows(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let (&[source, rows], Some(result)) = (operands.as_slice(), only_result(op)) else {
            return Err(self.error("expected storage and its rows"));
        };
        let source = self.memory(source)?;
        let all = match (source.extent_at(0), source.shape.first()) {
            (Some(extent), _) => Int::Value(extent),
            (None, extent) => Int::Known(extent.copied().unwrap_or(0)),
        };
        let ints = Ints::new(self.builder, 64);
        let rows = ints.min(ints.cast(self.int(rows)?)?, ints.cast(all)?)?;
        Ok(Memory {
            storage: self.storage_of(result)?,
            extents: vec![Some(ints.value(rows)?)],
            ..source.clone()
        })
    }

    /// `memref.reinterpret_cast`: an argument under extents and strides that are other arguments.
    pub(crate) fn reinterpreted(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let (Some((&source, values)), Some(result)) = (operands.split_first(), only_result(op))
        else {
            return Err(self.error("expected storage and its sizes"));
        };
        let storage = self.storage_of(result)?;
        let ints = Ints::new(self.builder, 64);
        let mut values = values.iter();
        let mut next = |argument: Option<usize>| -> PassResult<'c, Option<Val<'c>>> {
            let value = argument.and_then(|_| values.next());
            let value = value.map(|value| ints.value(ints.cast(self.int(*value)?)?));
            value.transpose()
        };
        let mut own = Memory {
            moved: Some(Int::ZERO),
            ..Memory::new(storage, self.memory(source)?.base)
        };
        let sizes = own.storage.sizes.clone();
        for size in &sizes {
            own.extents.push(next(size.extent)?);
        }
        for size in &sizes {
            own.strides.push(next(size.stride)?);
        }
        Ok(own)
    }

    /// `axe.peer`: the same storage of another CTA (PTX ISA 9.7.9.23, `mapa`).
    pub(crate) fn peer(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let (&[source, rank], Some(result)) = (operands.as_slice(), only_result(op)) else {
            return Err(self.error("expected storage and a rank"));
        };
        let own = self.memory(source)?;
        let ints = self.ints();
        let rank = ints.value(ints.cast(self.int(rank)?)?)?;
        let pointer = types::pointer(self.builder, Space::ClusterShared.number());
        let base = self
            .builder
            .value("nvvm.mapa", &[own.base, rank], pointer, &[])?;
        Ok(Memory {
            storage: self.storage_of(result)?,
            base,
            root: base,
            moved: Some(Int::ZERO),
            ..own
        })
    }

    /// `pointer + offset` elements of `memory`.
    pub(crate) fn offset_pointer(
        &self,
        memory: &Memory<'c>,
        pointer: Val<'c>,
        offset: Int<'c>,
    ) -> PassResult<'c, Val<'c>> {
        self.pointer_at(memory.space, memory.element, pointer, offset)
    }

    /// `pointer + offset` elements.
    pub(crate) fn pointer_at(
        &self,
        space: Space,
        element: Type<'c>,
        pointer: Val<'c>,
        offset: Int<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let mut operands = vec![pointer];
        let constant = match offset.known().map(i32::try_from) {
            Some(Ok(0)) => return Ok(pointer),
            Some(Ok(known)) => known,
            _ => {
                let ints = Ints::new(self.builder, space.offset_bits());
                operands.push(ints.value(offset)?);
                // LLVM::GEPOp's mark of a dynamic index.
                i32::MIN
            }
        };
        let indices = self
            .builder
            .attribute(|context| axe_passes::ir::attribute::i32s(context, &[constant]));
        let element = self.builder.of_type(types::stored(self.builder, element));
        let result = types::pointer(self.builder, space.number());
        self.builder.value(
            "llvm.getelementptr",
            &operands,
            result,
            &[("rawConstantIndices", indices), ("elem_type", element)],
        )
    }

    /// A pointer to shared memory plus bytes.
    pub(crate) fn shared_address(&self, base: Val<'c>, at: Int<'c>) -> PassResult<'c, Val<'c>> {
        let byte = types::integer(self.builder, 8);
        self.pointer_at(Space::Shared, byte, base, at)
    }

    /// Scratch storage of an operator: this thread group's.
    pub(crate) fn scratch(
        &self,
        place: Scratch,
        shape: &[i64],
        element: Type<'c>,
    ) -> PassResult<'c, Memory<'c>> {
        let (storage, _) =
            scratch_storage(shape, element).map_err(|decline| self.error(decline.to_string()))?;
        let ints = self.ints();
        let bytes = storage.bytes;
        let of_group = ints.mul(self.group_number()?, place.bytes / bytes)?;
        let first = ints.add(of_group, Int::Known(place.first / bytes))?;
        let base = self.pointer_at(Space::Shared, element, self.shared, first)?;
        Ok(Memory::new(storage, base))
    }
}
