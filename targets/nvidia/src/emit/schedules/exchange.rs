//! Register tensors from register tensors: relayout, broadcast, transpose and boxes.

use super::load::{load, with_memory};
use super::store::store;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::gather::GatherPlan;
use crate::plan::owner::Owner;
use crate::plan::shuffle::ShufflePlan;
use axe_layout::{Axis, Iter};
use axe_passes::PassResult;
use axe_passes::ir::value::name;
use axe_passes::ir::{Op, Val};
use std::rc::Rc;

/// Every thread holds what it needs: registers get other names.
pub(super) struct Move;
/// `shfl.sync` within each warp.
pub(super) struct Shuffle;
/// Through shared memory.
pub(super) struct Shared;

/// Which source element a result element is.
#[derive(Clone, Debug)]
enum Map {
    Same,
    /// The result's dimensions that are new.
    Broadcast(Vec<usize>),
    /// Result dimension `i` is source dimension `permutation[i]`.
    Transpose(Vec<usize>),
    /// Result element 0 is the source's at this index.
    Box(Vec<usize>),
}

impl Map {
    fn of(site: Site<'_, '_>) -> Self {
        match name(site.op).as_str() {
            "axe.broadcast" => Self::Broadcast(site.dims("dims")),
            "axe.transpose" => Self::Transpose(site.dims("permutation")),
            "axe.extract_slice" => Self::Box(site.dims("origin")),
            _ => Self::Same,
        }
    }

    /// For each result dimension, the source's.
    fn dims(&self, rank: usize) -> Vec<Option<usize>> {
        match self {
            Self::Same | Self::Box(_) => (0..rank).map(Some).collect(),
            Self::Transpose(permutation) => permutation.iter().copied().map(Some).collect(),
            Self::Broadcast(new) => {
                let mut next = 0..;
                (0..rank)
                    .map(|dim| {
                        if new.contains(&dim) {
                            None
                        } else {
                            next.next()
                        }
                    })
                    .collect()
            }
        }
    }

    /// Where the result begins in the source.
    fn origin(&self) -> impl Iterator<Item = i64> {
        let origin = match self {
            Self::Box(origin) => origin.as_slice(),
            _ => &[],
        };
        let known = origin.iter().map(|at| i64::try_from(*at).unwrap_or(0));
        known.chain(std::iter::repeat(0))
    }

    /// The row-major source index of a row-major result index.
    fn source(&self, x: i64, result: &[i64], source: &[i64]) -> i64 {
        let (mut rest, mut index) = (x, vec![0; source.len()]);
        for (dim, extent) in self.dims(result.len()).into_iter().zip(result).rev() {
            if let Some(slot) = dim.and_then(|dim| index.get_mut(dim)) {
                *slot = rest % extent;
            }
            rest /= extent;
        }
        let moved = index
            .iter()
            .zip(self.origin())
            .map(|(at, first)| at + first);
        moved
            .zip(source)
            .fold(0, |linear, (at, extent)| linear * extent + at)
    }
}

/// Source and result, and how their elements correspond.
fn sides(site: Site<'_, '_>) -> Result<(Rc<Fragment>, Rc<Fragment>, Map), Decline> {
    Ok((
        site.registers(0)?.fragment.clone(),
        site.result()?,
        Map::of(site),
    ))
}

fn source_values<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
    let source = emitter.source(op)?;
    Ok(emitter.registers(source)?.values)
}

impl<'c> Schedule<'c> for Move {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let (source, result, map) = sides(site)?;
        let of = |x| map.source(x, result.shape(), source.shape());
        Ok(Box::new(GatherPlan::new(&source, &result, of)?))
    }
}

impl<'c> Plan<'c> for GatherPlan {
    fn describe(&self) -> String {
        self.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let values = source_values(emitter, op)?;
        let pick = |from: &i64| {
            usize::try_from(*from)
                .ok()
                .and_then(|from| values.get(from).copied())
        };
        let picked = self.from.iter().map(pick).collect::<Option<_>>();
        picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
    }
}

impl<'c> Schedule<'c> for Shuffle {
    fn name(&self) -> &'static str {
        "shfl.sync"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let (source, result, map) = sides(site)?;
        let bits = axe_passes::ir::types::bits(site.registers(0)?.element);
        let bits = bits
            .filter(|bits| matches!(bits, 16 | 32))
            .ok_or_else(|| Decline::new("expected elements of 16 or 32 bits"))?;
        let of = |x| map.source(x, result.shape(), source.shape());
        Ok(Box::new(ShufflePlan::new(&source, &result, of, bits)?))
    }
}

struct Exchange {
    map: Map,
    source: Rc<Fragment>,
    result: Rc<Fragment>,
    owner: Owner,
}

impl<'c> Schedule<'c> for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let (source, result, map) = sides(site)?;
        let owner = Owner::new(&source)?;
        Ok(Box::new(Exchange {
            map,
            source,
            result,
            owner,
        }))
    }
}

impl<'c> Plan<'c> for Exchange {
    fn describe(&self) -> String {
        format!(
            "st.shared {:?}\nbar.sync\nld.shared {:?} ({:?})\nbar.sync\n",
            self.source.shape(),
            self.result.shape(),
            self.map
        )
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let source = emitter.source(op)?;
        let source = emitter.registers(source)?;
        let scratch = emitter.scratch(self.source.shape(), source.element)?;
        put(emitter, &scratch, &self.source, &source.values, &self.owner)?;
        emitter.barrier()?;
        let view = self.view(&scratch);
        let values = take(emitter, &view, &self.result)?;
        emitter.barrier()?;
        Ok(values)
    }
}

impl Exchange {
    /// The scratch storage with the result's dimensions.
    fn view<'c>(&self, scratch: &Memory<'c>) -> Memory<'c> {
        let shape = self.result.shape();
        // Scratch storage is row-major: a dimension is one iter.
        let stride = |dim: usize| {
            let iters = scratch.dims.get(dim).map(Vec::as_slice);
            iters
                .unwrap_or_default()
                .last()
                .map_or(0, |iter| iter.stride)
        };
        let from = self.map.dims(shape.len());
        let iters = from
            .iter()
            .zip(shape)
            .map(|(dim, &extent)| vec![Iter::new(extent, dim.map_or(0, stride), Axis::M)]);
        let moved = (0..scratch.dims.len()).zip(self.map.origin());
        let moved = moved.map(|(dim, first)| first * stride(dim));
        Memory {
            dims: iters.collect(),
            offset: scratch.offset + moved.sum::<i64>(),
            shape: shape.to_vec(),
            guards: vec![None; shape.len()],
            ..scratch.clone()
        }
    }
}

/// Stores a register tensor into storage of its shape.
pub(super) fn put<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    fragment: &Fragment,
    values: &[Val<'c>],
    owner: &Owner,
) -> PassResult<'c> {
    let owns = emitter.owns(owner)?;
    match with_memory(memory, |memory| CopyPlan::new(fragment, memory)) {
        Ok(plan) => store(emitter, fragment, &plan, memory, values, owns),
        Err(_) => super::scalar::store(emitter, fragment, memory, values, owns),
    }
}

/// Loads a register tensor from storage of its shape.
pub(super) fn take<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    fragment: &Fragment,
) -> PassResult<'c, Vec<Val<'c>>> {
    let pad = emitter.zero(memory.element)?;
    match with_memory(memory, |memory| CopyPlan::new(fragment, memory)) {
        Ok(plan) => load(emitter, fragment, &plan, memory, pad),
        Err(_) => super::scalar::load(emitter, fragment, memory, pad),
    }
}
