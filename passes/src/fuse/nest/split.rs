//! Long reductions of several results with few points, in parts: argmax of a whole tensor is not one thread's.
//!
//! One operation folds each part of the reduced dimension from what the results start from; a second one merges the states of
//! parts, in order ([`super::merge`] says which bodies allow it, and how).

mod turns;

use super::merge::{Body, Merge, start_numbers};
use super::{Nest, is_nest, maps};
use crate::PassResult;
use crate::fuse::reshape::extent_of;
use crate::ir::value::{operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, Val, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, BlockRef, Region, ValueLike};
use turns::Part;

/// Turns of a reduction below which it is not split.
const FEW_TURNS: i64 = 256;
/// Elements that a turn folds where it can.
const STEP: i64 = 8;
/// Parts of a reduction whose extent is known at run time only.
const PARTS: i64 = 256;
/// Parts that a turn merges where it can: their states are loaded before the first is looked at.
const MERGED: i64 = 8;
/// Threads' worth of parts, of all that compute at once: more only lengthen the merge.
const WAVES: i64 = 32;

/// Splits reductions whose points are fewer than `threads`.
///
/// # Errors
/// When an operation cannot be built.
pub fn split_long<'c>(ops: &[Op<'c>], threads: i64) -> PassResult<'c> {
    for &op in ops
        .iter()
        .filter(|op| is_nest(**op) && op.result_count() > 1)
    {
        if let Some(split) = Split::of(op, threads) {
            split.replace()?;
        }
    }
    Ok(())
}

/// A reduction that is split.
struct Split<'c> {
    nest: Nest<'c>,
    body: BlockRef<'c, 'c>,
    merge: Merge,
    /// The loop that reduces.
    dim: usize,
    maps: Vec<AffineMap<'c>>,
    /// What each result starts from.
    starts: Vec<Attribute<'c>>,
    parts: i64,
    /// Elements of a part that a turn of its loop folds: those of every part are a multiple.
    step: i64,
}

impl<'c> Split<'c> {
    /// Reads a reduction; none where splitting is not worth while, or would change what it gives.
    fn of(op: Op<'c>, threads: i64) -> Option<Self> {
        let nest = Nest::read(op).ok()?;
        let maps = maps(op)?;
        let mut reduced =
            (0..nest.reductions.len()).filter(|at| nest.reductions.get(*at) == Some(&true));
        let (dim, None) = (reduced.next()?, reduced.next()) else {
            return None;
        };
        let parallel = nest.parallel();
        let points = parallel.iter().try_fold(1i64, |points, at| {
            let extent = *nest.extents.get(*at)?;
            (extent != DYNAMIC).then(|| points.saturating_mul(extent))
        })?;
        let turns = *nest.extents.get(dim)?;
        let few = turns != DYNAMIC && turns < FEW_TURNS;
        if points == 0 || points >= threads || few || !projected(&maps, nest.inits.len(), &parallel)
        {
            return None;
        }
        let body = walk::blocks(op).first().copied()?;
        let inputs = operands(op).len().checked_sub(nest.inits.len())?;
        let (starts, data) = start_numbers(&nest.starts)?;
        let merge = Body::read(body, inputs, dim)?.merge(body, &data)?;
        let (parts, step) = match turns {
            DYNAMIC => (PARTS, 1),
            turns => shares(turns, threads.saturating_mul(WAVES) / points),
        };
        Some(Self {
            nest,
            body,
            merge,
            dim,
            maps,
            starts,
            parts,
            step,
        })
    }

    /// Builds both operations, whose results take the place of the reduction's.
    fn replace(&self) -> PassResult<'c> {
        let op = self.nest.op;
        let builder = Builder::before(op);
        let turns = self.nest.extent(&builder, self.dim)?;
        let parts = builder.index(self.parts)?;
        let length = builder.value(
            "arith.ceildivui",
            &[turns, parts],
            builder.index_type(),
            &[],
        )?;
        let states = self.states(&builder, (turns, length))?;
        let merged = self.merged(&builder, &states, (turns, length))?;
        for (old, new) in results(op).into_iter().zip(merged) {
            replace_all_uses(old, new);
        }
        walk::erase(op);
        Ok(())
    }

    fn inputs(&self) -> usize {
        operands(self.nest.op)
            .len()
            .saturating_sub(self.nest.inits.len())
    }

    /// The map of a result with the parts before its own dimensions, or with groups of parts and a place in them: neighbouring lanes have
    /// neighbours along the last of those.
    fn map_of_parts(&self, result: usize, place: Option<i64>) -> Option<String> {
        let map = self.maps.get(self.inputs() + result)?;
        let indices = (0..map.result_count()).filter_map(|at| map.result(at).ok());
        let indices = indices.map(|index| format!("d{}", index.dim_position()));
        let all: Vec<_> = std::iter::once(format!("d{}", self.dim))
            .chain(place.map(|place| place.to_string()))
            .chain(indices)
            .collect();
        Some(self.affine(&all.join(", ")))
    }

    fn affine(&self, indices: &str) -> String {
        let dims: Vec<_> = (0..self.nest.reductions.len())
            .map(|dim| format!("d{dim}"))
            .collect();
        format!("affine_map<({}) -> ({indices})>", dims.join(", "))
    }

    /// The states of the parts: for each result a tensor with the parts as its first dimension.
    fn states(
        &self,
        builder: &Builder<'c>,
        (turns, length): (Val<'c>, Val<'c>),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut empty = Vec::new();
        for (result, init) in results(self.nest.op).into_iter().zip(&self.nest.inits) {
            let tensor = builder.tensor_of(result)?;
            let mut sizes = Vec::new();
            for (dim, extent) in tensor.shape.iter().enumerate() {
                if *extent == DYNAMIC {
                    sizes.push(extent_of(builder, *init, dim)?);
                }
            }
            let shape = [vec![self.parts], tensor.shape].concat();
            let r#type = builder.tensor(&shape, tensor.element)?;
            empty.push(builder.value("tensor.empty", &sizes, r#type, &[])?);
        }
        let elements: Vec<_> = self.arguments().into_iter().skip(self.inputs()).collect();
        let (region, _, inner) = builder.region(&elements);
        let part = self.part(&inner, (0, 1), (turns, length))?;
        let mut starts = Vec::new();
        for start in &self.starts {
            starts.push(inner.constant(*start)?);
        }
        let yielded = self.fold(&inner, &part, &starts)?;
        inner.operation("linalg.yield", &yielded, &[], &[], Vec::new())?;
        let maps = (0..empty.len())
            .filter_map(|result| self.map_of_parts(result, None))
            .collect();
        self.generic(builder, (&[], &empty), maps, false, region)
    }

    /// The reduction of the states of parts, several a turn.
    fn merged(
        &self,
        builder: &Builder<'c>,
        states: &[Val<'c>],
        (turns, length): (Val<'c>, Val<'c>),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let own: Vec<_> = self.arguments().into_iter().skip(self.inputs()).collect();
        let together = self.together();
        let parts = usize::try_from(together).unwrap_or(1);
        let (region, arguments, inner) = builder.region(&own.repeat(parts + 1));
        let (elements, before) = arguments.split_at(states.len() * parts);
        let values = self.merge_parts(&inner, (elements, before), (turns, length))?;
        inner.operation("linalg.yield", &values, &[], &[], Vec::new())?;
        let mut grouped = Vec::new();
        for state in states {
            grouped.push(self.in_groups(builder, *state)?);
        }
        let (mut maps, mut ins) = (Vec::new(), Vec::new());
        for at in 0..together {
            for (result, state) in grouped.iter().enumerate() {
                let place = (together > 1).then_some(at);
                maps.extend(self.map_of_parts(result, place));
                ins.push(*state);
            }
        }
        let outs = self.maps.iter().skip(self.inputs());
        maps.extend(outs.map(|map| format!("affine_map<{map}>")));
        self.generic(builder, (&ins, &self.nest.inits), maps, true, region)
    }

    /// Parts that a turn merges.
    fn together(&self) -> i64 {
        if self.parts % MERGED == 0 { MERGED } else { 1 }
    }

    /// The states of parts with those of a turn, where it has several, in a dimension of their own.
    fn in_groups(&self, builder: &Builder<'c>, states: Val<'c>) -> PassResult<'c, Val<'c>> {
        let mut shape = builder.tensor_of(states)?.shape;
        let together = self.together();
        if together == 1 {
            return Ok(states);
        }
        let rank = i64::try_from(shape.len()).unwrap_or(0);
        shape.splice(..1, [self.parts / together, together]);
        let groups: Vec<_> = std::iter::once(vec![0, 1])
            .chain((1..rank).map(|dim| vec![dim + 1]))
            .collect();
        let mut sizes = Vec::new();
        for dim in (1..)
            .zip(shape.iter().skip(2))
            .filter(|(_, extent)| **extent == DYNAMIC)
        {
            sizes.push(extent_of(builder, states, dim.0)?);
        }
        builder.expand(states, &shape, &groups, &sizes)
    }

    /// What the parts of a turn make of the values before them. Whether any has to be folded again is asked once, so that nothing
    /// waits for an answer but where one has.
    fn merge_parts(
        &self,
        inner: &Builder<'c>,
        (own, before): (&[Val<'c>], &[Val<'c>]),
        extents: (Val<'c>, Val<'c>),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let each = || (0..).zip(own.chunks(before.len().max(1)));
        let mut once = before.to_vec();
        for (_, own) in each() {
            once = self.merge_once(inner, own, &once)?;
        }
        let Some(again) = self.again(inner, own, before)? else {
            return Ok(once);
        };
        let mut parts = Vec::new();
        for (at, own) in each() {
            parts.push((self.part(inner, (at, self.together()), extents)?, own));
        }
        let one_by_one = |builder: &Builder<'c>| {
            let mut values = before.to_vec();
            for (part, own) in &parts {
                values = self.merge_part(builder, part, (own, &values))?;
            }
            Ok(values)
        };
        inner.choose_all(again, one_by_one, |_| Ok(once))
    }

    /// What a part makes of the values before it.
    fn merge_part(
        &self,
        builder: &Builder<'c>,
        part: &Part<'c>,
        (own, before): (&[Val<'c>], &[Val<'c>]),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let once = |builder: &Builder<'c>| self.merge_once(builder, own, before);
        let Some(again) = self.again(builder, own, before)? else {
            return once(builder);
        };
        let fold = |builder: &Builder<'c>| self.fold(builder, part, before);
        builder.choose_all(again, fold, once)
    }

    /// A `linalg.generic` of the reduction's loops, of which that over parts reduces or does not.
    fn generic(
        &self,
        builder: &Builder<'c>,
        (ins, outs): (&[Val<'c>], &[Val<'c>]),
        maps: Vec<String>,
        reduces: bool,
        region: Region<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let kind = |reduction: &bool| match *reduction && reduces {
            true => "#linalg.iterator_type<reduction>",
            false => "#linalg.iterator_type<parallel>",
        };
        let kinds: Vec<_> = self.nest.reductions.iter().map(kind).collect();
        let sizes = [ins, outs].map(|values| i32::try_from(values.len()).unwrap_or(0));
        let attributes = [
            (
                "indexing_maps",
                builder.parsed(&format!("[{}]", maps.join(", ")))?,
            ),
            (
                "iterator_types",
                builder.parsed(&format!("[{}]", kinds.join(", ")))?,
            ),
            builder.segments(&sizes),
        ];
        let types: Vec<_> = outs.iter().map(ValueLike::r#type).collect();
        let operands = [ins, outs].concat();
        builder
            .operation(
                "linalg.generic",
                &operands,
                &types,
                &attributes,
                vec![region],
            )
            .map(results)
    }
}

/// Parts of a reduction of so many turns, about as many as each has turns but `most` at the most, and how many turns are one. Best are
/// parts that are all as long, and as many as are merged together.
fn shares(turns: i64, most: i64) -> (i64, i64) {
    let most = turns.isqrt().min(most.max(MERGED));
    let of = |wanted: i64| {
        let parts = (most / 2..=most).rev();
        let mut even = parts.filter(|parts| *parts > 0 && turns % (parts * STEP) == 0);
        even.find(|parts| parts % wanted == 0)
    };
    let even = of(MERGED).or_else(|| of(1));
    even.map_or((most, 1), |parts| (parts, STEP))
}

/// Whether inputs are indexed with loops and numbers alone, and every result with each parallel loop, once.
fn projected(maps: &[AffineMap<'_>], results: usize, parallel: &[usize]) -> bool {
    let indices = |map: &AffineMap<'_>| {
        let all = (0..map.result_count()).filter_map(|at| map.result(at).ok());
        all.map(|index| {
            (
                index.is_dim().then(|| index.dim_position()),
                index.is_constant(),
            )
        })
        .collect::<Vec<_>>()
    };
    let Some((ins, outs)) = maps
        .len()
        .checked_sub(results)
        .and_then(|inputs| maps.split_at_checked(inputs))
    else {
        return false;
    };
    let plain = ins
        .iter()
        .flat_map(indices)
        .all(|(dim, constant)| dim.is_some() || constant);
    plain
        && outs.iter().all(|map| {
            let dims: Option<Vec<_>> = indices(map).into_iter().map(|(dim, _)| dim).collect();
            dims.is_some_and(|mut dims| {
                let mut wanted = parallel.to_vec();
                dims.sort_unstable();
                wanted.sort_unstable();
                dims == wanted
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_whole_turns_where_there_are_such() {
        let shares_of = |turns| shares(turns, i64::MAX);
        assert_eq!(shares_of(16_384), (128, STEP));
        assert_eq!(shares_of(8192), (64, STEP));
        assert_eq!(shares_of(1000), (25, STEP));
        assert_eq!(shares_of(1001), (31, 1));
        assert_eq!(shares_of(256), (16, STEP));
        assert_eq!(shares(16_384, 66), (64, STEP));
        assert_eq!(shares(16_384, 1), (8, STEP));
    }
}
