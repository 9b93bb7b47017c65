//! `relayout`: from one register distribution to another.

use std::collections::BTreeMap;

use super::CliError;
use crate::linear::{
    Columns, Distribution3, Table, distribution_of_layout, relayout_tables, shared_plan,
    shared_tables, table_of_layout, warp_shuffle,
};
use crate::{Axis, Layout};

/// Lanes of a warp, and the bits of their numbers.
const WARP: i64 = 32;
const WARP_BITS: usize = 5;

/// Shuffles inside of a warp, shared memory across warps; the general methods where a side is not
/// linear.
pub(super) fn run(src: &Layout, dst: &Layout, elem_bits: u32) -> Result<String, CliError> {
    let warp = Axis::new("warp")?;
    if src.axes().contains(&warp) || dst.axes().contains(&warp) {
        return across_warps(src, dst, elem_bits);
    }
    let (reg, lane) = (Axis::new("reg")?, Axis::new("lane")?);
    let sides = [src, dst].map(|layout| distribution_of_layout(layout, reg, lane));
    let plan = if let [Ok(src), Ok(dst)] = &sides {
        warp_shuffle(src, dst, elem_bits)?
    } else {
        let (src, dst) = tables(src, dst)?;
        relayout_tables(&src, &dst, elem_bits)?
    };
    let mut text = format!("{} shuffles, {} steps\n", plan.shuffles(), plan.steps.len());
    for step in &plan.steps {
        text.push_str(&serde_json::to_string(step)?);
        text.push('\n');
    }
    Ok(text)
}

fn span(layout: &Layout, axis: Axis) -> Result<usize, CliError> {
    Ok(usize::try_from(layout.cosize(axis)?)?)
}

/// The tables of both sides, with as many lanes.
fn tables(src: &Layout, dst: &Layout) -> Result<(Table, Table), CliError> {
    let (reg, lane) = (Axis::new("reg")?, Axis::new("lane")?);
    let lanes = span(src, lane)?.max(span(dst, lane)?);
    let table = |layout: &Layout| -> Result<Table, CliError> {
        let registers = span(layout, reg)?;
        Ok(table_of_layout(layout, (reg, registers), (lane, lanes))?)
    };
    Ok((table(src)?, table(dst)?))
}

fn across_warps(src: &Layout, dst: &Layout, elem_bits: u32) -> Result<String, CliError> {
    let (reg, lane, warp) = (Axis::new("reg")?, Axis::new("lane")?, Axis::new("warp")?);
    // Lanes of all warps in a row: 32 a warp.
    let rules = BTreeMap::from([(warp, (lane, WARP))]);
    for layout in [src, dst] {
        let lanes = layout.cosize(lane)?;
        if lanes > WARP {
            return Err(format!("a warp has {WARP} lanes, the layout names {lanes}").into());
        }
    }
    let (src, dst) = (src.fuse_axes(&rules)?, dst.fuse_axes(&rules)?);
    let linear = |layout: &Layout| -> Option<Distribution3> {
        let both = distribution_of_layout(layout, reg, lane).ok()?;
        let (lane, warp) = both.lane.as_slice().split_at_checked(WARP_BITS)?;
        let columns = |c: &[u64]| -> Option<Columns> {
            let signed = c.iter().map(|&c| i64::try_from(c).ok());
            Columns::try_from(signed.collect::<Option<Vec<i64>>>()?).ok()
        };
        Some(Distribution3 {
            reg: both.reg.clone(),
            lane: columns(lane)?,
            warp: columns(warp)?,
        })
    };
    if let (Some(src), Some(dst)) = (linear(&src), linear(&dst))
        && let Ok(plan) = shared_plan(&src, &dst, elem_bits)
    {
        let side = |name: &str, access: &crate::linear::Access| {
            let bytes = access.vector * (elem_bits / 8) as usize;
            let (count, passes) = (access.registers.len(), access.wavefronts);
            format!("{name}: {count} a lane, {bytes} bytes each, {passes} passes a warp\n")
        };
        let (store, load) = (side("stores", &plan.store), side("loads", &plan.load));
        return Ok(format!(
            "shared memory: {} bytes\n{store}{load}",
            plan.bytes
        ));
    }
    let (src, dst) = tables(&src, &dst)?;
    let warps =
        |table: Table| -> Vec<Table> { table.chunks(WARP as usize).map(<[_]>::to_vec).collect() };
    let plan = shared_tables(&warps(src), &warps(dst), elem_bits)?;
    let (store, load) = plan.cost()?;
    let side = |name: &str, cost: crate::analysis::BankCost| {
        format!(
            "{name}: {} passes, {} without conflicts\n",
            cost.passes, cost.ideal
        )
    };
    let (store, load) = (side("stores", store), side("loads", load));
    Ok(format!(
        "shared memory: {} bytes\n{store}{load}",
        plan.bytes
    ))
}
