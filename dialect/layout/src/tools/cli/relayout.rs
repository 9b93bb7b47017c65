//! `relayout`: from one register distribution to another.

use std::fmt::Write as _;

use super::CliError;
use crate::Layout;
use crate::analysis::BankCost;
use crate::linear::{Access, Columns, RelayoutPlan, SharedPlan, SharedTablePlan};
use crate::tools::relayout::{Relayout, addresses, relayout};

pub(super) fn run(
    src: &Layout,
    dst: &Layout,
    elem_bits: u32,
    json: bool,
) -> Result<String, CliError> {
    let found = relayout(src, dst, elem_bits)?;
    if json {
        return Ok(format!("{}\n", found.to_json()));
    }
    let mut text = String::new();
    match &found {
        Relayout::Warp(plan, warps) => {
            if *warps > 1 {
                writeln!(text, "in each of {warps} warps:")?;
            }
            shuffles(&mut text, plan)?;
        }
        Relayout::Warps(plans) => {
            for (warp, plan) in plans.iter().enumerate() {
                writeln!(text, "in warp {warp}:")?;
                shuffles(&mut text, plan)?;
            }
        }
        Relayout::Shared(plan) => wide(&mut text, plan, elem_bits)?,
        Relayout::SharedTables(plan) => by_words(&mut text, plan)?,
    }
    Ok(text)
}

fn shuffles(text: &mut String, plan: &RelayoutPlan) -> Result<(), CliError> {
    writeln!(
        text,
        "{} shuffles, {} steps",
        plan.shuffles(),
        plan.steps.len()
    )?;
    for step in &plan.steps {
        writeln!(text, "{}", serde_json::to_string(step)?)?;
    }
    Ok(())
}

fn wide(text: &mut String, plan: &SharedPlan, elem_bits: u32) -> Result<(), CliError> {
    let elem_bytes = (elem_bits / 8) as usize;
    writeln!(text, "shared memory: {} bytes", plan.bytes)?;
    for (name, access) in [("stores", &plan.store), ("loads", &plan.load)] {
        let bytes = access.vector * elem_bytes;
        let (count, passes) = (access.registers.len(), access.wavefronts);
        writeln!(
            text,
            "{name}: {count} a lane, {bytes} bytes each, {passes} passes a warp"
        )?;
        formulas(text, access, elem_bytes as u64)?;
    }
    Ok(())
}

/// The byte address of each access: a constant xor one for each bit of lane and warp.
fn formulas(text: &mut String, access: &Access, elem_bytes: u64) -> Result<(), CliError> {
    let bytes = |columns: &Columns| -> Vec<u64> {
        columns.as_slice().iter().map(|c| c * elem_bytes).collect()
    };
    writeln!(
        text,
        "  address: constant xor lane {:?} xor warp {:?}",
        bytes(&access.lane),
        bytes(&access.warp)
    )?;
    let moves = |columns: &Columns| columns.as_slice().iter().any(|column| *column != 0);
    if moves(&access.exchange_lane) || moves(&access.exchange_warp) {
        let (lane, warp) = (&access.exchange_lane, &access.exchange_warp);
        writeln!(
            text,
            "  register: number xor lane {:?} xor warp {:?}",
            lane.as_slice(),
            warp.as_slice()
        )?;
    }
    for (registers, offset) in access.registers.iter().zip(&access.offset) {
        writeln!(
            text,
            "  registers {registers:?}: constant {}",
            offset * elem_bytes
        )?;
    }
    Ok(())
}

fn by_words(text: &mut String, plan: &SharedTablePlan) -> Result<(), CliError> {
    writeln!(text, "shared memory: {} bytes", plan.bytes)?;
    let (store, load) = plan.cost()?;
    let sides: [(&str, BankCost, _); 2] =
        [("stores", store, &plan.store), ("loads", load, &plan.load)];
    for (name, cost, side) in sides {
        writeln!(
            text,
            "{name}: {} passes, {} without conflicts",
            cost.passes, cost.ideal
        )?;
        let addresses = addresses(plan, side);
        for (warp, accesses) in side.accesses.iter().enumerate() {
            for (number, access) in accesses.iter().enumerate() {
                let at = |lane: usize, register: usize| {
                    addresses.get(warp)?.get(register)?.get(lane).copied()?
                };
                writeln!(text, "  warp {warp} {}", one_access(number, access, at))?;
            }
        }
    }
    Ok(())
}

/// The byte address of each lane's word; its registers too where lanes move different ones.
fn one_access(
    number: usize,
    access: &[Vec<usize>],
    at: impl Fn(usize, usize) -> Option<usize>,
) -> String {
    let mut moving = access.iter().filter(|registers| !registers.is_empty());
    let first = moving.next();
    let same = moving.all(|registers| Some(registers) == first);
    let lane = |(lane, registers): (usize, &Vec<usize>)| {
        let addresses = registers.iter().filter_map(|&register| at(lane, register));
        match addresses.min() {
            None => "-".to_owned(),
            Some(address) if same => address.to_string(),
            Some(address) => format!("{address}:{registers:?}"),
        }
    };
    let lanes: Vec<String> = access.iter().enumerate().map(lane).collect();
    match first {
        Some(registers) if same => format!("registers {registers:?}: {}", lanes.join(" ")),
        _ => format!("access {number}: {}", lanes.join(" ")),
    }
}
