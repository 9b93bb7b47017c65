//! Register tensors from register tensors: relayout, broadcast, transpose and boxes.

use super::load::load;
use super::store::{owns, store};
use super::text::expect;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::gather::GatherPlan;
use crate::plan::owner::Owner;
use crate::plan::shuffle::ShufflePlan;
use crate::state::cursor::{Scratch, Taken};
use crate::state::form::Storage;
use crate::state::site::Site;
use crate::state::site::dims;
use crate::state::storage::with_memory;
use axe_dialect::ops;
use axe_layout::{Axis, Iter};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::name;
use axe_passes::ir::{Op, Val};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::rc::Rc;

/// Every thread holds what it needs: registers get other names.
#[derive(Clone, Copy)]
pub(super) struct Move;
/// `shfl.sync` within each warp.
#[derive(Clone, Copy)]
pub(super) struct Shuffle;
/// Through shared memory.
#[derive(Clone, Copy)]
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
    fn of(op: Op<'_>) -> Self {
        match name(op).as_str() {
            ops::BROADCAST => Self::Broadcast(dims(op, "dims")),
            ops::TRANSPOSE => Self::Transpose(dims(op, "permutation")),
            ops::EXTRACT_SLICE => Self::Box(dims(op, "origin")),
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
        Map::of(site.op),
    ))
}

fn source_values<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
    let source = emitter.source(op)?;
    Ok(emitter.registers(source)?.values)
}

impl Schedule for Move {
    type Plan = GatherPlan;

    fn name(&self) -> &'static str {
        "registers"
    }
}

impl<'c> Match<Site<'_, 'c>> for Move {
    fn plan(&self, site: Site<'_, 'c>) -> Result<GatherPlan, Decline> {
        let (source, result, map) = sides(site)?;
        let of = |x| map.source(x, result.shape(), source.shape());
        GatherPlan::new(&source, &result, of)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &GatherPlan) -> Result<(), Decline> {
        let (source, result, map) = sides(site)?;
        let of = |x| map.source(x, result.shape(), source.shape());
        plan.check(&source, &result, of)
    }
}

impl<'c> Emit<'c> for Move {
    fn emit(
        &self,
        plan: &GatherPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let values = source_values(emitter, op)?;
        let pick = |from: &i64| {
            usize::try_from(*from)
                .ok()
                .and_then(|from| values.get(from).copied())
        };
        let picked = plan.from.iter().map(pick).collect::<Option<_>>();
        picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
    }
}

/// Bits of the elements that are shuffled.
fn shuffled_bits(site: Site<'_, '_>) -> Result<u32, Decline> {
    let bits = axe_passes::ir::types::bits(site.registers(0)?.element);
    bits.filter(|bits| matches!(bits, 16 | 32))
        .ok_or_else(|| Decline::new("expected elements of 16 or 32 bits"))
}

impl Schedule for Shuffle {
    type Plan = ShufflePlan;

    fn name(&self) -> &'static str {
        "shfl.sync"
    }
}

impl<'c> Match<Site<'_, 'c>> for Shuffle {
    fn plan(&self, site: Site<'_, 'c>) -> Result<ShufflePlan, Decline> {
        let (source, result, map) = sides(site)?;
        let bits = shuffled_bits(site)?;
        let of = |x| map.source(x, result.shape(), source.shape());
        ShufflePlan::new(&source, &result, of, bits)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &ShufflePlan) -> Result<(), Decline> {
        let (source, result, map) = sides(site)?;
        let bits = shuffled_bits(site)?;
        if plan.plan.elem_bits != bits {
            return Err(Decline::new(format!(
                "expected elements of {bits} bits, got {}",
                plan.plan.elem_bits
            )));
        }
        let of = |x| map.source(x, result.shape(), source.shape());
        plan.check(&source, &result, of)
    }
}

/// The shapes that are stored and loaded, and where.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    stored: Vec<i64>,
    loaded: Vec<i64>,
    scratch: Scratch,
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "st.shared {:?}", self.stored)?;
        writeln!(f, "bar.sync\nld.shared {:?}\nbar.sync", self.loaded)
    }
}

impl Schedule for Shared {
    type Plan = Exchange;

    fn name(&self) -> &'static str {
        "shared"
    }
}

impl<'c> Match<Site<'_, 'c>> for Shared {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Exchange, Decline> {
        let (source, result, _) = sides(site)?;
        Owner::new(&source)?;
        let element = site.registers(0)?.element;
        Ok(Exchange {
            stored: source.shape().to_vec(),
            loaded: result.shape().to_vec(),
            scratch: Scratch::at(site.cursor, source.shape(), element, (1, 0))?,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Exchange) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Shared {
    fn taken(&self, plan: &Exchange) -> Taken {
        Taken::Scratch(plan.scratch.bytes)
    }

    fn emit(
        &self,
        plan: &Exchange,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let source = emitter.source(op)?;
        let source = emitter.registers(source)?;
        let result = emitter.result_fragment(op)?;
        let scratch = emitter.scratch(plan.scratch, source.fragment.shape(), source.element)?;
        put(emitter, &scratch, &source.fragment, &source.values)?;
        emitter.barrier()?;
        let view = view(&scratch, &Map::of(op), result.shape());
        let values = take(emitter, &view, &result)?;
        emitter.barrier()?;
        Ok(values)
    }
}

/// The scratch storage with the result's dimensions.
fn view<'c>(scratch: &Memory<'c>, map: &Map, shape: &[i64]) -> Memory<'c> {
    // Scratch storage is row-major: a dimension is one iter.
    let stride = |dim: usize| {
        let iters = scratch.dims.get(dim).map(Vec::as_slice);
        iters
            .unwrap_or_default()
            .last()
            .map_or(0, |iter| iter.stride)
    };
    let from = map.dims(shape.len());
    let iters = from
        .iter()
        .zip(shape)
        .map(|(dim, &extent)| vec![Iter::new(extent, dim.map_or(0, stride), Axis::M)]);
    let moved = (0..scratch.dims.len()).zip(map.origin());
    let moved = moved.map(|(dim, first)| first * stride(dim));
    let storage = Storage {
        dims: iters.collect(),
        offset: scratch.offset + moved.sum::<i64>(),
        shape: shape.to_vec(),
        guards: vec![None; shape.len()],
        ..scratch.storage.clone()
    };
    Memory::new(storage, scratch.base)
}

/// Stores a register tensor into storage of its shape.
pub(super) fn put<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    fragment: &Fragment,
    values: &[Val<'c>],
) -> PassResult<'c> {
    let owns = owns(emitter, fragment)?;
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
