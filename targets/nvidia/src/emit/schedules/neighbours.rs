//! Points of loops that a thread has at once, neighbours along the last parallel loops. Each operation of the body is there once a point,
//! next to each other, and a branch that all of them take together once for all: LLVM makes vectors of neighbours' accesses. Of branches
//! that they take by themselves each has its own, and stores are one all the same.

use super::nest::{Loops, pointer};
use super::reduce;
use crate::emit::emitter::Emitter;
use crate::emit::value::{Bound, Memory};
use crate::facts::chip::ACCESS_BYTES;
use crate::state::branches::{are_together, counts_from_multiple, is_same};
use axe_passes::PassResult;
use axe_passes::fuse::nest::RowFold;
use axe_passes::ir::value::{defining, identity, name, operands, results};
use axe_passes::ir::walk::{block_arguments, blocks, nested, operations};
use axe_passes::ir::{DYNAMIC, Int, Ints, Op, Val, attribute, types};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};
use std::collections::HashMap;

/// One point: its index, and what the kernel's values are there.
#[derive(Clone)]
struct Lane<'c> {
    at: Vec<Int<'c>>,
    indices: Vec<Val<'c>>,
    values: HashMap<usize, Bound<'c>>,
}

/// How points lie next to each other.
struct Points<'a, 'c> {
    /// Loops, and how many neighbours there are along each.
    along: &'a [(usize, i64)],
    /// Loops over rows, whose turns are shared out by so many lanes.
    folds: Vec<RowFold<'c>>,
    lanes: i64,
    /// In such a loop, its index: each point's own along the row.
    turn: Option<Val<'c>>,
}

impl<'c> Loops<'_, 'c> {
    /// The points of a thread, of which there are these shares along the parallel loops; the index counts shares. Results are
    /// stored together.
    pub(super) fn neighbours(
        &self,
        emitter: &mut Emitter<'c>,
        at: &[Int<'c>],
        shares: &[i64],
    ) -> PassResult<'c> {
        let body = blocks(self.op).first().copied();
        let body = body.ok_or_else(|| emitter.error("expected a body"))?;
        let along = self.plan.parallel.iter().zip(shares);
        let along = along.filter_map(|(at, share)| Some((usize::try_from(*at).ok()?, *share)));
        let along: Vec<_> = along.filter(|(_, share)| *share > 1).collect();
        let mut lanes = self.lanes(emitter, at, &along)?;
        for lane in &mut lanes {
            emitter.exchange(&mut lane.values);
            let bound = self.bind(emitter, &lane.at);
            emitter.exchange(&mut lane.values);
            bound?;
        }
        let points = Points {
            along: &along,
            folds: match self.plan.lanes {
                1 => Vec::new(),
                _ => self.nest.row_folds(),
            },
            lanes: self.plan.lanes,
            turn: None,
        };
        emitter.loads_vectors = loads_vectors(emitter, self.op, &points)?;
        let values = together(emitter, body, &mut lanes, &points)?;
        emitter.loads_vectors = false;
        for number in 0..self.nest.initial.len() {
            let own = values.iter().map(|values| values.get(number).copied());
            let own = own.collect::<Option<Vec<_>>>();
            let own = own.ok_or_else(|| emitter.error("the body yields too little"))?;
            let operand = self.nest.inputs + number;
            let width = self.stored_at_once(emitter, operand, &along)?;
            for (lanes, values) in lanes.chunks(width).zip(own.chunks(width)) {
                if let Some(first) = lanes.first() {
                    self.store(emitter, operand, &first.at, values)?;
                }
            }
        }
        Ok(())
    }

    /// How many neighbours are a vector of a result in memory: those along its last dimension, from a boundary on. What loops of a thread carry is stored one by one:
    /// LLVM would carry vectors of it, and compute less quickly with them (an argmax of columns 46.9 us for 44.9).
    fn stored_at_once(
        &self,
        emitter: &Emitter<'c>,
        operand: usize,
        along: &[(usize, i64)],
    ) -> PassResult<'c, usize> {
        let memory = self.memory(emitter, operand)?;
        let map = self.nest.maps.get(operand).and_then(|map| map.last());
        let last = map.filter(|own| own.is_dim()).map(|own| own.dim_position());
        let mut body = nested(self.op, &|_| true).into_iter();
        let has_loops = self.plan.lanes == 1 && body.any(|op| name(op) == "scf.for");
        let own = along
            .last()
            .filter(|(dim, _)| Some(*dim) == last && !has_loops);
        Ok(own.map_or(1, |(_, share)| {
            usize::try_from(width(memory, *share)).unwrap_or(1)
        }))
    }

    /// The points, the last loop's next to each other.
    fn lanes(
        &self,
        emitter: &mut Emitter<'c>,
        at: &[Int<'c>],
        along: &[(usize, i64)],
    ) -> PassResult<'c, Vec<Lane<'c>>> {
        let ints = Ints::index(emitter.builder);
        let mut points = vec![at.to_vec()];
        for &(dim, share) in along {
            let place = at.get(dim).copied();
            let place =
                place.ok_or_else(|| emitter.error("neighbours along a loop that is not there"))?;
            let first = ints.times(place, Int::Known(share))?;
            let mut next = Vec::new();
            for point in points {
                for number in 0..share {
                    let mut point = point.clone();
                    point[dim] = ints.add(first, Int::Known(number))?;
                    next.push(point);
                }
            }
            points = next;
        }
        let lane = |at: Vec<Int<'c>>| {
            let indices = at.iter().map(|at| ints.value(*at));
            Ok(Lane {
                indices: indices.collect::<PassResult<'c, _>>()?,
                at,
                values: emitter.known().clone(),
            })
        };
        points.into_iter().map(lane).collect()
    }

    /// Binds the body's arguments to what is at an index.
    fn bind(&self, emitter: &mut Emitter<'c>, at: &[Int<'c>]) -> PassResult<'c> {
        let starts = 0..self.nest.initial.len();
        let starts = starts.map(|number| self.start(emitter, number, at));
        let starts = starts.collect::<PassResult<'c, Vec<_>>>()?;
        self.bind_arguments(emitter, at, &starts)
    }
}

/// What a block yields at each point.
fn together<'c>(
    emitter: &mut Emitter<'c>,
    block: BlockRef<'c, 'c>,
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c, Vec<Vec<Val<'c>>>> {
    let mut all = operations(block);
    let last = all.pop();
    each(emitter, &all, lanes, points)?;
    values_of(emitter, &last.map(operands).unwrap_or_default(), lanes)
}

/// Operations at each point.
fn each<'c>(
    emitter: &mut Emitter<'c>,
    all: &[Op<'c>],
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c> {
    for &op in all {
        match name(op).as_str() {
            "scf.if" if is_common(op, points.along) => branch(emitter, op, lanes, points)?,
            "scf.for" => match points.folds.iter().find(|fold| fold.op == op) {
                Some(fold) => row(emitter, *fold, lanes, points)?,
                None => turns(emitter, op, lanes, points)?,
            },
            "memref.load" if in_vectors(emitter, op, lanes, points)? => {}
            _ => {
                for lane in lanes.iter_mut() {
                    in_lane(emitter, lane, |emitter| emitter.operation(op))?;
                }
            }
        }
    }
    Ok(())
}

/// What values are at each point.
fn values_of<'c>(
    emitter: &mut Emitter<'c>,
    wanted: &[Val<'c>],
    lanes: &mut [Lane<'c>],
) -> PassResult<'c, Vec<Vec<Val<'c>>>> {
    let values = lanes.iter_mut().map(|lane| {
        in_lane(emitter, lane, |emitter| {
            let values = wanted.iter().map(|value| emitter.scalar(*value));
            values.collect::<PassResult<'c, Vec<_>>>()
        })
    });
    values.collect()
}

/// A loop over the row of the points: each thread has the turns of its own, and the lanes of the row combine what these give.
fn row<'c>(
    emitter: &mut Emitter<'c>,
    fold: RowFold<'c>,
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c> {
    let missing = || emitter.error("expected a loop over a row");
    let body = blocks(fold.op).first().copied().ok_or_else(missing)?;
    let &[(dim, _)] = points.along else {
        return Err(missing());
    };
    let &[turn, carried] = block_arguments(body).as_slice() else {
        return Err(missing());
    };
    let mut inside = operations(body);
    let combined = inside
        .pop()
        .and_then(|last| defining(*operands(last).first()?));
    let combined = combined.ok_or_else(missing)?;
    inside.retain(|op| *op != combined);
    let mut own = lanes.to_vec();
    for lane in &mut own {
        let place = lane.indices.get(dim).copied().ok_or_else(missing)?;
        lane.values.insert(identity(turn), Bound::Scalar(place));
    }
    let in_row = Points {
        along: points.along,
        folds: Vec::new(),
        lanes: points.lanes,
        turn: Some(turn),
    };
    each(emitter, &inside, &mut own, &in_row)?;
    let elements = operands(combined)
        .into_iter()
        .filter(|value| *value != carried);
    let elements = values_of(emitter, &elements.collect::<Vec<_>>(), &mut own)?.concat();
    let mut sum = reduce::chain(emitter, fold.combiner, elements.iter())?;
    let masks = std::iter::successors(Some(1), |mask| Some(mask * 2));
    for mask in masks.take_while(|mask| *mask < points.lanes) {
        let other = reduce::shuffle(emitter, sum, mask)?;
        sum = reduce::combine(emitter, fold.combiner, sum, other)?;
    }
    for lane in lanes {
        let result = results(fold.op).first().copied();
        lane.values
            .extend(result.map(|result| (identity(result), Bound::Scalar(sum))));
    }
    Ok(())
}

/// Loads the elements of all points in vectors, where they are neighbours from a boundary on; false where nothing is loaded. LLVM would have to
/// find the boundary in the pointer, which it does not behind as many sums as a branch's index is of.
fn in_vectors<'c>(
    emitter: &mut Emitter<'c>,
    op: Op<'c>,
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c, bool> {
    let width = vector_of(emitter, op, points)?;
    let all = operands(op);
    let (Some((&source, index)), Some(&result), 2..) =
        (all.split_first(), results(op).first(), width)
    else {
        return Ok(false);
    };
    let memory = emitter.memory(source)?;
    for vector in lanes.chunks_mut(usize::try_from(width).unwrap_or(1)) {
        let Some(first) = vector.first_mut() else {
            continue;
        };
        let values = in_lane(emitter, first, |emitter| {
            let at = index.iter().map(|at| emitter.int(*at));
            let at = at.collect::<PassResult<'c, Vec<_>>>()?;
            let pointer = pointer(emitter, &memory, &at)?;
            emitter.load(&memory, pointer, width)
        })?;
        for (lane, value) in vector.iter_mut().zip(values) {
            lane.values.insert(identity(result), Bound::Scalar(value));
        }
    }
    Ok(true)
}

/// Whether some load of loops has the elements of several points in a vector.
fn loads_vectors<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
    points: &Points<'_, 'c>,
) -> PassResult<'c, bool> {
    let loads = nested(op, &|_| true).into_iter();
    for load in loads.filter(|op| name(*op) == "memref.load") {
        if vector_of(emitter, load, points)? > 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many points' elements a load has in a vector; 1 where each has its own.
fn vector_of<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
    points: &Points<'_, 'c>,
) -> PassResult<'c, i64> {
    let all = operands(op);
    let (&[(dim, share)], Some((&source, index))) = (points.along, all.split_first()) else {
        return Ok(1);
    };
    let Some((last, others)) = index.split_last() else {
        return Ok(1);
    };
    let is_own = points.turn == Some(*last);
    let is_outside = |at: Val<'c>| {
        is_own
            && points.turn != Some(at)
            && defining(at).is_none_or(|own| own.block() != op.block())
    };
    let counts = is_own || counts_from_multiple(*last, (dim, share));
    let mut others = others.iter();
    if !counts || !others.all(|at| is_same(*at, points.along) || is_outside(*at)) {
        return Ok(1);
    }
    Ok(width(&emitter.memory(source)?, share))
}

/// Elements of the widest access to row-major memory that so many neighbours fill, which begin at a multiple of their number; 1 where rows do not.
fn width(memory: &Memory<'_>, share: i64) -> i64 {
    let row = memory.shape.last().copied().unwrap_or(DYNAMIC);
    let width = share.min(ACCESS_BYTES / memory.bytes.max(1));
    let is_vector = width > 1 && width.count_ones() == 1 && share % width == 0;
    let is_whole = types::bits(memory.element).map(i64::from) == Some(memory.bytes * 8);
    match row != DYNAMIC && row % width == 0 && is_vector && is_whole {
        true => width,
        false => 1,
    }
}

/// Emits something as it is at a point.
fn in_lane<'c, T>(
    emitter: &mut Emitter<'c>,
    lane: &mut Lane<'c>,
    emit: impl FnOnce(&mut Emitter<'c>) -> PassResult<'c, T>,
) -> PassResult<'c, T> {
    emitter.exchange(&mut lane.values);
    let outside = emitter.nest.replace(lane.indices.clone());
    let emitted = emit(emitter);
    emitter.nest = outside;
    emitter.exchange(&mut lane.values);
    emitted
}

/// Whether all points go the same way at a branch.
fn is_common<'c>(op: Op<'c>, along: &[(usize, i64)]) -> bool {
    let condition = operands(op).first().copied();
    condition.is_some_and(|condition| are_together(condition, along)) && blocks(op).len() == 2
}

/// A branch that all points take together, with what it gives at each.
fn branch<'c>(
    emitter: &mut Emitter<'c>,
    op: Op<'c>,
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c> {
    let condition = operands(op).first().copied();
    let condition = condition.ok_or_else(|| emitter.error("expected a condition"))?;
    let first = lanes.first().map(|lane| lane.indices.clone());
    let condition = condition_at(emitter, condition, &first.unwrap_or_default())?;
    let (mut regions, mut types) = (Vec::new(), Vec::new());
    for side in blocks(op) {
        let (region, _, inner) = emitter.builder.region(&[]);
        let outside = std::mem::replace(&mut emitter.builder, inner);
        let values = together(emitter, side, &mut lanes.to_vec(), points)?.concat();
        let none = Vec::new();
        emitter
            .builder
            .operation("scf.yield", &values, &[], &[], none)?;
        emitter.builder = outside;
        types = values.iter().map(Val::r#type).collect();
        regions.push(region);
    }
    let emitted = emitter
        .builder
        .operation("scf.if", &[condition], &types, &[], regions)?;
    give(lanes, &results(op), &results(emitted));
    Ok(())
}

/// A loop that all points run together: its bounds are the same (`state/nest.rs`), and it carries what each of them does.
fn turns<'c>(
    emitter: &mut Emitter<'c>,
    op: Op<'c>,
    lanes: &mut [Lane<'c>],
    points: &Points<'_, 'c>,
) -> PassResult<'c> {
    let values = operands(op);
    let parts = values.split_at_checked(3).zip(blocks(op).first().copied());
    let ((bounds, starts), body) = parts.ok_or_else(|| emitter.error("expected a loop"))?;
    let mut operands = Vec::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        let own = if number == 0 { &values[..] } else { starts };
        operands.extend(in_lane(emitter, lane, |emitter| {
            let own = own.iter().map(|value| emitter.scalar(*value));
            own.collect::<PassResult<'c, Vec<_>>>()
        })?);
    }
    let types: Vec<_> = operands
        .iter()
        .skip(bounds.len())
        .map(Val::r#type)
        .collect();
    let index = emitter.builder.index_type();
    let (region, arguments, inner) = emitter.builder.region(&[&[index], &types[..]].concat());
    let outside = std::mem::replace(&mut emitter.builder, inner);
    let mut inside = lanes.to_vec();
    let own = block_arguments(body);
    for (number, lane) in inside.iter_mut().enumerate() {
        let carried = arguments.iter().skip(1 + number * starts.len());
        for (argument, value) in own.iter().zip(arguments.first().into_iter().chain(carried)) {
            lane.values
                .insert(identity(*argument), Bound::Scalar(*value));
        }
    }
    let yielded = together(emitter, body, &mut inside, points)?.concat();
    let none = Vec::new();
    emitter
        .builder
        .operation("scf.yield", &yielded, &[], &[], none)?;
    emitter.builder = outside;
    let emitted = emitter
        .builder
        .operation("scf.for", &operands, &types, &[], vec![region])?;
    give(lanes, &results(op), &results(emitted));
    Ok(())
}

/// Gives points the results of a branch or a loop.
fn give<'c>(lanes: &mut [Lane<'c>], own: &[Val<'c>], emitted: &[Val<'c>]) {
    for (lane, values) in lanes.iter_mut().zip(emitted.chunks(own.len().max(1))) {
        for (result, value) in own.iter().zip(values) {
            lane.values.insert(identity(*result), Bound::Scalar(*value));
        }
    }
}

/// A branch's condition at an index of the loops: comparisons of sums of indices (`state/branches.rs`).
fn condition_at<'c>(
    emitter: &Emitter<'c>,
    value: Val<'c>,
    at: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let missing = || emitter.error("a condition that is no comparison of indices");
    let op = defining(value).ok_or_else(missing)?;
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    let builder = emitter.builder;
    match name(op).as_str() {
        "linalg.index" => {
            let dim = number("dim").and_then(|dim| usize::try_from(dim).ok());
            dim.and_then(|dim| at.get(dim).copied()).ok_or_else(missing)
        }
        "arith.constant" => builder.index(number("value").ok_or_else(missing)?),
        own => {
            let parts = operands(op).into_iter();
            let parts = parts.map(|part| condition_at(emitter, part, at));
            let parts = parts.collect::<PassResult<'c, Vec<_>>>()?;
            let predicate = op.attribute("predicate").ok();
            let attributes: Vec<_> = predicate
                .into_iter()
                .map(|own| ("predicate", own))
                .collect();
            builder.value(own, &parts, value.r#type(), &attributes)
        }
    }
}
