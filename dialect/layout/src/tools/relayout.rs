//! From one register distribution to another: inside of the warps where each has what it needs, else
//! through shared memory.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::linear::{
    Access, Columns, Distribution, Distribution3, RelayoutPlan, SharedPlan, SharedSide,
    SharedTablePlan, Table, check_tables, distribution_of_layout, relayout_tables, shared_plan,
    shared_tables, table_of_layout, warp_shuffle,
};
use crate::{Axis, Layout, WARP};

/// A way from one distribution to another.
#[derive(Debug)]
pub(crate) enum Relayout {
    /// The same shuffles in each of so many warps.
    Warp(RelayoutPlan, usize),
    /// Shuffles, warp by warp.
    Warps(Vec<RelayoutPlan>),
    /// Through shared memory, wide accesses.
    Shared(Box<SharedPlan>),
    /// Through shared memory, word by word.
    SharedTables(SharedTablePlan),
}

/// The axes of a distribution.
#[derive(Clone, Copy)]
struct Axes {
    reg: Axis,
    lane: Axis,
    warp: Axis,
}

/// Both sides, with as many warps and as many lanes a warp.
struct Sides {
    axes: Axes,
    layouts: [Layout; 2],
    lanes: usize,
    warps: usize,
}

/// The way from `src` to `dst`, layouts over the axes `reg`, `lane` and `warp`.
///
/// # Errors
/// `Invalid` for other axes, more than 32 lanes and registers that hold two elements; `None` when `dst` has
/// an element that `src` has not.
pub(crate) fn relayout(src: &Layout, dst: &Layout, elem_bits: u32) -> Result<Relayout> {
    let sides = Sides::new(src, dst)?;
    if let Some(plan) = sides.linear_shuffles(elem_bits)? {
        return Ok(Relayout::Warp(plan, sides.warps));
    }
    let (src, dst) = sides.tables()?;
    let inside = |(src, dst): (&Table, &Table)| relayout_tables(src, dst, elem_bits);
    let plans: Result<Vec<RelayoutPlan>> = src.iter().zip(&dst).map(inside).collect();
    match plans {
        Ok(plans) => return Ok(same_in_all(plans, &src, &dst)),
        Err(Error::None(_)) if sides.warps > 1 => {}
        Err(error) => return Err(error),
    }
    if let Some(plan) = sides.linear_shared(elem_bits) {
        return Ok(Relayout::Shared(Box::new(plan)));
    }
    Ok(Relayout::SharedTables(shared_tables(
        &src, &dst, elem_bits,
    )?))
}

/// One plan for all warps where one serves all.
fn same_in_all(mut plans: Vec<RelayoutPlan>, src: &[Table], dst: &[Table]) -> Relayout {
    let fits = |plan: &RelayoutPlan| {
        src.iter()
            .zip(dst)
            .all(|(src, dst)| check_tables(src, dst, plan).is_ok())
    };
    match plans.iter().position(fits) {
        Some(at) => Relayout::Warp(plans.swap_remove(at), src.len()),
        None => Relayout::Warps(plans),
    }
}

impl Sides {
    fn new(src: &Layout, dst: &Layout) -> Result<Self> {
        let axes = Axes {
            reg: Axis::new("reg")?,
            lane: Axis::new("lane")?,
            warp: Axis::new("warp")?,
        };
        let count = |axis: Axis| -> Result<usize> {
            let most = src.cosize(axis)?.max(dst.cosize(axis)?);
            usize::try_from(most).map_err(|_| Error::overflow("a number of lanes"))
        };
        let (lanes, warps) = (count(axes.lane)?, count(axes.warp)?);
        if lanes > WARP {
            return Err(Error::invalid(format!(
                "a warp has {WARP} lanes, the layouts name {lanes}"
            )));
        }
        Ok(Self {
            axes,
            layouts: [src.clone(), dst.clone()],
            lanes,
            warps,
        })
    }

    /// The lanes of all warps in a row, so many a warp.
    fn fused(&self, lanes: usize) -> Result<[Layout; 2]> {
        let rules = [(self.axes.warp, (self.axes.lane, lanes as i64))].into();
        let [src, dst] = &self.layouts;
        Ok([src.fuse_axes(&rules)?, dst.fuse_axes(&rules)?])
    }

    /// Both sides as linear maps, where they are, with `lane_bits` of lane.
    fn linear(&self, lane_bits: u32) -> Option<[Distribution3; 2]> {
        let [src, dst] = self.fused(1 << lane_bits).ok()?;
        let side = |layout: &Layout| -> Option<Distribution3> {
            let both = distribution_of_layout(layout, self.axes.reg, self.axes.lane).ok()?;
            let columns = |c: &[u64]| -> Option<Columns> {
                let signed = c.iter().map(|&c| i64::try_from(c).ok());
                Columns::try_from(signed.collect::<Option<Vec<i64>>>()?).ok()
            };
            let all = both.lane.as_slice();
            let (lane, warp) = all
                .split_at_checked(lane_bits as usize)
                .unwrap_or((all, &[]));
            Some(Distribution3 {
                reg: both.reg.clone(),
                lane: columns(lane)?,
                warp: columns(warp)?,
            })
        };
        Some([side(&src)?, side(&dst)?])
    }

    /// The shuffles, where both sides are linear and warps hold the same on both.
    fn linear_shuffles(&self, elem_bits: u32) -> Result<Option<RelayoutPlan>> {
        let bits = self.lanes.next_power_of_two().trailing_zeros();
        let Some([src, dst]) = self
            .linear(bits)
            .filter(|[src, dst]| src.warp == dst.warp && src.lane.len() == dst.lane.len())
        else {
            return Ok(None);
        };
        let warp = |of: Distribution3| Distribution {
            reg: of.reg,
            lane: of.lane,
        };
        match warp_shuffle(&warp(src), &warp(dst), elem_bits) {
            // Another warp may have it.
            Err(Error::None(_)) if self.warps > 1 => Ok(None),
            other => other.map(Some),
        }
    }

    fn linear_shared(&self, elem_bits: u32) -> Option<SharedPlan> {
        let [src, dst] = self.linear(WARP.trailing_zeros())?;
        shared_plan(&src, &dst, elem_bits).ok()
    }

    /// The tables of both sides, one a warp.
    fn tables(&self) -> Result<(Vec<Table>, Vec<Table>)> {
        let lanes = self.lanes.max(1);
        let [src, dst] = self.fused(lanes)?;
        let side = |layout: &Layout| -> Result<Vec<Table>> {
            let (reg, lane) = (self.axes.reg, self.axes.lane);
            let registers = usize::try_from(layout.cosize(reg)?)
                .map_err(|_| Error::overflow("a number of registers"))?;
            let table = table_of_layout(
                layout,
                (reg, registers),
                (lane, lanes.saturating_mul(self.warps)),
            )?;
            Ok(table.chunks(lanes).map(<[_]>::to_vec).collect())
        };
        Ok((side(&src)?, side(&dst)?))
    }
}

impl Relayout {
    /// The answer of `eval`. Offsets and addresses are in bytes, but those of wide accesses in elements.
    pub(crate) fn to_json(&self) -> Value {
        let warp = |plan: &RelayoutPlan| json!({"shuffles": plan.shuffles(), "steps": plan.steps});
        match self {
            Self::Warp(plan, warps) => {
                json!({"kind": "warp", "warps": warps, "shuffles": plan.shuffles(), "steps": plan.steps})
            }
            Self::Warps(plans) => {
                json!({"kind": "warps", "plans": plans.iter().map(warp).collect::<Vec<_>>()})
            }
            Self::Shared(plan) => json!({
                "kind": "shared", "bytes": plan.bytes, "offset": plan.offset,
                "store": access(&plan.store), "load": access(&plan.load), "copies": plan.copies,
            }),
            Self::SharedTables(plan) => json!({
                "kind": "shared_tables", "bytes": plan.bytes,
                "store": addresses(plan, &plan.store), "load": addresses(plan, &plan.load),
                "store_accesses": plan.store.accesses, "load_accesses": plan.load.accesses,
            }),
        }
    }
}

fn access(of: &Access) -> Value {
    json!({
        "vector": of.vector, "registers": of.registers, "offset": of.offset, "lane": of.lane, "warp": of.warp,
        "exchange_lane": of.exchange_lane, "exchange_warp": of.exchange_warp, "wavefronts": of.wavefronts,
    })
}

/// `[warp][register][lane]`: the byte address of each register, null where it is not moved.
pub(crate) fn addresses(plan: &SharedTablePlan, side: &SharedSide) -> Vec<Vec<Vec<Option<usize>>>> {
    let byte = |slot: &Option<usize>| slot.map(|slot| slot.saturating_mul(plan.slot_bytes));
    let lanes = |lanes: &Vec<Option<usize>>| lanes.iter().map(byte).collect();
    side.slots
        .iter()
        .map(|warp| warp.iter().map(lanes).collect())
        .collect()
}
