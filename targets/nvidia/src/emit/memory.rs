//! Storage: kernel arguments, shared memory, and their slices and views.

use super::boxes;
use super::int::{Int, Ints};
use super::kernel::Emitter;
use super::types;
use super::value::{Guard, Memory, Origin, Space};
use crate::plan::gcd;
use axe_dialect::{element_type, layout_of, memory_space, strides_of};
use axe_layout::{Axis, Iter, Layout, Offset, Swizzle};
use axe_passes::PassResult;
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{DYNAMIC, Op, Val};
use melior::ir::{Type, ValueLike};

/// Bytes that descriptors of shared memory count in (PTX ISA 9.7.15.5.1.2.2, "matrix-descriptor-encode").
const QUANTUM: i64 = 16;

/// Bytes to which the runtime aligns a kernel's pointer arguments.
pub(crate) const ARGUMENT_ALIGNMENT: i64 = 16;

/// More rows than any tensor has: the extent of a dimension that is known at run time only.
const MOST_ROWS: i64 = 1 << 40;

/// The place of each element in a memref type.
struct Places {
    dims: Vec<Vec<Iter>>,
    offset: i64,
    swizzle: Option<Swizzle>,
}

impl Memory<'_> {
    /// The layout of the box, on `m`.
    pub(crate) fn layout(&self) -> axe_layout::Result<Layout> {
        let mut offset = Offset::new();
        offset.set(Axis::M, self.offset);
        Layout::new(
            self.dims.iter().flatten().copied(),
            [],
            offset,
            self.swizzle,
        )
    }
}

impl<'c> Emitter<'c> {
    /// The storage at `base` that a memref type describes.
    pub(crate) fn storage(
        &self,
        r#type: Type<'c>,
        base: Val<'c>,
        alignment: i64,
        extent: Option<Val<'c>>,
    ) -> PassResult<'c, Memory<'c>> {
        let space = match memory_space(r#type) {
            Some("global") => Space::Global,
            Some("shared") => Space::Shared,
            _ => return Err(self.error(format!("expected global or shared memory, got {type}"))),
        };
        let element = element_type(r#type);
        let bytes = types::bytes(element).ok_or_else(|| {
            self.error(format!(
                "elements of type {element} have no place in memory: expected 8, 16, 32 or 64 bits"
            ))
        })?;
        let shape = types::memref_shape(r#type)
            .ok_or_else(|| self.error(format!("expected a memref, got {type}")))?;
        self.addressable(r#type, &shape, bytes)?;
        let places = self.places(r#type, &shape)?;
        Ok(Memory {
            space,
            element,
            bytes,
            base,
            root: base,
            moved: Some(Int::ZERO),
            pending: Int::ZERO,
            dims: places.dims,
            offset: places.offset,
            swizzle: places.swizzle,
            guards: vec![None; shape.len()],
            shape,
            alignment: (alignment / bytes).max(1),
            extent,
            origin: None,
        })
    }

    /// Checks that the known extents of a memref are of fewer bytes than an address counts.
    fn addressable(&self, r#type: Type<'c>, shape: &[i64], bytes: i64) -> PassResult<'c> {
        let mut known = shape.iter().filter(|extent| **extent != DYNAMIC);
        let total = known.try_fold(bytes, |total, &extent| total.checked_mul(extent));
        match total {
            Some(_) => Ok(()),
            None => Err(self.error(format!(
                "expected storage of fewer than 2^63 bytes, got {type}"
            ))),
        }
    }

    fn places(&self, r#type: Type<'c>, shape: &[i64]) -> PassResult<'c, Places> {
        if shape.iter().skip(1).any(|&extent| extent == DYNAMIC) {
            return Err(self.error(format!(
                "only the outermost extent may be dynamic, got {type}"
            )));
        }
        let Some(attribute) = layout_of(r#type) else {
            let (strides, offset) = strides_of(r#type)
                .filter(|(strides, _)| !strides.contains(&DYNAMIC))
                .ok_or_else(|| self.error(format!("expected static strides, got {type}")))?;
            let iter = |(&extent, &stride): (&i64, &i64)| {
                let extent = if extent == DYNAMIC { MOST_ROWS } else { extent };
                vec![Iter::new(extent.max(1), stride, Axis::M)]
            };
            return Ok(Places {
                dims: shape.iter().zip(&strides).map(iter).collect(),
                // The pointer of a kernel's argument is that of its first element.
                offset: if offset == DYNAMIC { 0 } else { offset },
                swizzle: None,
            });
        };
        let layout = attribute
            .layout()
            .map_err(|error| self.error(error.to_string()))?;
        if layout.axes().iter().any(|&axis| axis != Axis::M) || !layout.replica().is_empty() {
            return Err(self.error(format!(
                "expected storage on the axis m without replicas, got {layout}"
            )));
        }
        let grouped = layout
            .group(shape)
            .map_err(|error| self.error(error.to_string()))?;
        Ok(Places {
            dims: grouped.blocks().map(<[Iter]>::to_vec).collect(),
            offset: layout.offset().get(Axis::M),
            swizzle: layout.swizzle(),
        })
    }

    /// `axe.slice`: a box at a run-time origin.
    pub(crate) fn slice(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let Some((&source_value, origins)) = operands.split_first() else {
            return Err(self.error("expected a source"));
        };
        let source = self.memory(source_value)?;
        let result = only_result(op).map_or(source_value.r#type(), |result| result.r#type());
        let shape = types::memref_shape(result).unwrap_or_default();
        self.addressable(result, &shape, source.bytes)?;
        let dropped = source.shape.len().saturating_sub(shape.len());
        let extents: Vec<_> = std::iter::repeat_n(1, dropped).chain(shape).collect();
        let mut sliced = Memory {
            dims: Vec::new(),
            guards: Vec::new(),
            shape: extents.clone(),
            extent: None,
            ..source.clone()
        };
        for (dim, (&origin, &extent)) in origins.iter().zip(&extents).enumerate() {
            self.slice_dimension(&mut sliced, &source, dim, origin, extent)?;
            self.move_origin(&mut sliced, &source, dim, origin)?;
        }
        self.drop_units(sliced, dropped)
    }

    fn slice_dimension(
        &self,
        sliced: &mut Memory<'c>,
        source: &Memory<'c>,
        dim: usize,
        origin: Val<'c>,
        extent: i64,
    ) -> PassResult<'c> {
        let fact = self.facts.of(origin);
        let number = self.int(origin)?;
        let cut = boxes::cut(
            source.dims.get(dim).map_or(&[][..], Vec::as_slice),
            extent,
            fact.divisor,
        )
        .map_err(|reason| self.error(format!("dimension {dim} of the box: {reason}")))?;
        sliced.dims.push(cut.iters);
        let ints = Ints::new(self.builder, source.space.offset_bits());
        let wide = ints.cast(number)?;
        let mut offset = Int::ZERO;
        let mut moved = sliced.moved.filter(|_| source.space == Space::Shared);
        for step in &cut.steps {
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
        sliced.alignment = gcd(sliced.alignment, cut.multiple).max(1);
        self.displace(sliced, offset, cut.multiple)?;
        sliced.guards.push(self.guard(source, dim, extent, origin)?);
        Ok(())
    }

    /// Moves the origin of a box along a dimension. A box whose bounds are another slice's has none.
    fn move_origin(
        &self,
        sliced: &mut Memory<'c>,
        source: &Memory<'c>,
        dim: usize,
        by: Val<'c>,
    ) -> PassResult<'c> {
        let bounded = |memory: &Memory<'c>| memory.guards.get(dim).is_some_and(Option::is_some);
        let Some(mut origin) = sliced.origin.take() else {
            return Ok(());
        };
        if !origin.whole && bounded(sliced) && !bounded(source) {
            return Ok(());
        }
        let Some(&of) = origin.kept.get(dim) else {
            return Ok(());
        };
        if let Some(at) = origin.at.get_mut(of) {
            let ints = self.ints();
            *at = ints.add(*at, ints.cast(self.int(by)?)?)?;
        }
        if let Some(divisor) = origin.divisors.get_mut(of) {
            *divisor = gcd(*divisor, self.facts.of(by).divisor);
        }
        if dim + 1 == source.shape.len() {
            origin.whole = false;
        }
        sliced.origin = Some(origin);
        Ok(())
    }

    /// Moves a box by an offset of elements, a multiple of `multiple`.
    fn displace(&self, memory: &mut Memory<'c>, offset: Int<'c>, multiple: i64) -> PassResult<'c> {
        let period = memory.swizzle.map_or(1, |swizzle| swizzle.period());
        if multiple % period == 0 {
            memory.base = self.offset_pointer(memory, memory.base, offset)?;
        } else {
            let ints = Ints::new(self.builder, memory.space.offset_bits());
            memory.pending = ints.add(memory.pending, offset)?;
        }
        Ok(())
    }

    /// The bounds of a box along a dimension; `None` when all of it always exists.
    fn guard(
        &self,
        source: &Memory<'c>,
        dim: usize,
        extent: i64,
        origin: Val<'c>,
    ) -> PassResult<'c, Option<Guard<'c>>> {
        let (fact, number) = (self.facts.of(origin), self.int(origin)?);
        let ints = Ints::new(self.builder, 64);
        let outer = source.guards.get(dim).copied().flatten();
        let (limit, divisor) = match (outer, source.shape.get(dim).copied()) {
            (Some(guard), _) => (guard.remaining, guard.divisor),
            (None, Some(DYNAMIC)) => (source.extent.map_or(Int::ZERO, Int::Value), 1),
            (None, limit) => (Int::Known(limit.unwrap_or(0)), limit.unwrap_or(0)),
        };
        let inside = limit.known().zip(fact.high).is_some_and(|(limit, high)| {
            fact.low >= Some(0) && high.checked_add(extent).is_some_and(|end| end <= limit)
        });
        if inside {
            return Ok(None);
        }
        let remaining = ints.sub(ints.cast(limit)?, ints.cast(number)?)?;
        Ok(Some(Guard {
            remaining,
            divisor: gcd(divisor, fact.divisor),
        }))
    }

    /// Without its leading unit dimensions. A guard on one of them decides for the whole box: where it
    /// fails, the first dimension is empty.
    fn drop_units(&self, mut memory: Memory<'c>, dropped: usize) -> PassResult<'c, Memory<'c>> {
        let units: Vec<_> = memory.guards.drain(..dropped).flatten().collect();
        memory.shape.drain(..dropped);
        memory.dims.drain(..dropped);
        if let Some(origin) = &mut memory.origin {
            origin.kept.drain(..dropped);
        }
        let ints = Ints::new(self.builder, 64);
        for unit in units {
            let (Some(&extent), Some(first)) = (memory.shape.first(), memory.guards.first_mut())
            else {
                return Err(self.error("a box without dimensions may not lie outside its source"));
            };
            let whole = ints.mul(ints.min(unit.remaining, Int::Known(1))?, extent)?;
            *first = Some(match first {
                Some(old) => Guard {
                    remaining: ints.min(old.remaining, whole)?,
                    divisor: gcd(old.divisor, extent),
                },
                None => Guard {
                    remaining: whole,
                    divisor: extent,
                },
            });
        }
        Ok(memory)
    }

    /// `axe.view`: the same storage through another layout.
    pub(crate) fn view(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let result = only_result(op).ok_or_else(|| self.error("expected a result"))?;
        let source = self.memory(operands(op).first().copied().unwrap_or(result))?;
        let mut view = self.storage(result.r#type(), source.base, 1, None)?;
        if view.shape.contains(&DYNAMIC) {
            return Err(self.error(format!(
                "expected a view of static shape, got {}",
                result.r#type()
            )));
        }
        view.guards = boxes::guards_of_view(&source, &view).ok_or_else(|| {
            self.error(
                "the view of a box that may reach outside its source must keep its bounded dimensions: \
                 expected dimensions of the same extent and stride",
            )
        })?;
        view.root = source.root;
        view.moved = source.moved;
        view.pending = source.pending;
        view.alignment = source.alignment;
        let whole = source.origin.filter(|origin| origin.whole);
        view.origin = whole.map(|origin| Origin::of(origin.argument, &view));
        Ok(view)
    }

    /// `axe.peer`: the same storage of another CTA (PTX ISA 9.7.9.23, `mapa`).
    pub(crate) fn peer(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let operands = operands(op);
        let &[source, rank] = operands.as_slice() else {
            return Err(self.error("expected storage and a rank"));
        };
        if !self.chip.has_tma {
            return Err(self.error(format!(
                "{} has no clusters: expected sm_90 or up",
                self.chip.name
            )));
        }
        let own = self.memory(source)?;
        let ints = self.ints();
        let rank = ints.value(ints.cast(self.int(rank)?)?)?;
        let pointer = types::pointer(self.builder, Space::ClusterShared.number());
        let base = self
            .builder
            .value("nvvm.mapa", &[own.base, rank], pointer, &[])?;
        Ok(Memory {
            space: Space::ClusterShared,
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
}
