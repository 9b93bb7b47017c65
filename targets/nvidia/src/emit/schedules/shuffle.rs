//! Emits the shuffles of a relayout.

use super::exchange::Shuffle;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::plan::shuffle::ShufflePlan;
use crate::state::types;
use crate::vocabulary::WARP;
use axe_layout::linear::{Columns, Lanes, Step};
use axe_passes::PassResult;
use axe_passes::ir::types::bits;
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;

impl<'c> Emit<'c> for Shuffle {
    fn emit(
        &self,
        plan: &ShufflePlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let source = emitter.source(op)?;
        let mut values = emitter.registers(source)?.values;
        let lane = emitter.ints().rem(Int::Value(emitter.thread), WARP)?;
        for step in &plan.plan.steps {
            values = match step {
                Step::SelectLinear {
                    regs,
                    from_reg,
                    from_lane,
                    constant,
                } => {
                    let renamed = select(&values, *regs, |register| {
                        from_reg.apply(register) ^ constant
                    });
                    let renamed = renamed
                        .ok_or_else(|| emitter.error("a register of the plan does not exist"))?;
                    by_lane(emitter, &values, renamed, from_lane, lane)?
                }
                Step::Shfl {
                    src,
                    dst,
                    lane: Lanes::Linear { columns, constant },
                } => {
                    let from = linear(emitter, columns, *constant, lane)?;
                    let butterfly = Lanes::Linear {
                        columns: columns.clone(),
                        constant: *constant,
                    }
                    .butterfly();
                    shuffle(emitter, values, (src, dst), butterfly, from)?
                }
                _ => return Err(emitter.error("a step that is no expression of the lane's bits")),
            };
        }
        Ok(values)
    }
}

/// Values and the old register that each is.
type Renamed<'c> = Vec<(u64, Val<'c>)>;

fn select<'c>(
    values: &[Val<'c>],
    registers: usize,
    from: impl Fn(u64) -> u64,
) -> Option<Renamed<'c>> {
    (0..registers as u64)
        .map(|register| {
            let from = from(register);
            Some((from, *values.get(usize::try_from(from).ok()?)?))
        })
        .collect()
}

/// Registers that depend on the lane too: one conditional exchange for each bit of the lane that matters.
fn by_lane<'c>(
    emitter: &Emitter<'c>,
    old: &[Val<'c>],
    renamed: Renamed<'c>,
    from_lane: &Columns,
    lane: Int<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let columns: Vec<_> = (0u64..)
        .zip(from_lane.as_slice())
        .filter(|(_, column)| **column != 0)
        .collect();
    // What each old register is worth on the way: start from all of them, exchange bit by bit.
    let mut current = old.to_vec();
    for (bit, &column) in columns {
        let set = bit_is_set(emitter, lane, bit)?;
        let exchanged = |register: usize| -> PassResult<'c, Val<'c>> {
            let partner = usize::try_from(register as u64 ^ column)
                .ok()
                .and_then(|partner| current.get(partner));
            let (Some(own), Some(partner)) = (current.get(register), partner) else {
                return Err(emitter.error("a register of the plan does not exist"));
            };
            emitter
                .builder
                .value("arith.select", &[set, *partner, *own], own.r#type(), &[])
        };
        current = (0..current.len())
            .map(exchanged)
            .collect::<PassResult<'c, Vec<_>>>()?;
    }
    let pick = |(from, _): &(u64, Val<'c>)| {
        usize::try_from(*from)
            .ok()
            .and_then(|from| current.get(from).copied())
    };
    let picked: Option<Vec<_>> = renamed.iter().map(pick).collect();
    picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
}

fn bit_is_set<'c>(emitter: &Emitter<'c>, lane: Int<'c>, bit: u64) -> PassResult<'c, Val<'c>> {
    let ints = emitter.ints();
    let digit = ints.rem(ints.div(lane, 1 << bit)?, 2)?;
    ints.less(Int::ZERO, digit)
}

/// The source lane.
fn linear<'c>(
    emitter: &Emitter<'c>,
    columns: &Columns,
    constant: u64,
    lane: Int<'c>,
) -> PassResult<'c, Int<'c>> {
    let ints = emitter.ints();
    let mut from = Int::Known(i64::try_from(constant).unwrap_or(0));
    for (bit, &column) in (0..).zip(columns.as_slice()) {
        let digit = ints.rem(ints.div(lane, 1 << bit)?, 2)?;
        from = ints.xor(from, ints.mul(digit, i64::try_from(column).unwrap_or(0))?)?;
    }
    Ok(from)
}

/// One shuffle: several 16-bit registers share its word.
fn shuffle<'c>(
    emitter: &Emitter<'c>,
    mut values: Vec<Val<'c>>,
    (src, dst): (&[usize], &[usize]),
    butterfly: Option<u64>,
    from: Int<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let picked: Option<Vec<_>> = src
        .iter()
        .map(|&register| values.get(register).copied())
        .collect();
    let picked = picked
        .filter(|picked| !picked.is_empty())
        .ok_or_else(|| emitter.error("a register of the plan does not exist"))?;
    let element = picked[0].r#type();
    let i32 = types::integer(emitter.builder, 32);
    let narrow = bits(element) == Some(16);
    let word = match narrow {
        false => emitter.bitcast(picked[0], i32)?,
        true => {
            let pair = [picked[0], *picked.get(1).unwrap_or(&picked[0])];
            emitter.bitcast(emitter.pack(&pair, element)?, i32)?
        }
    };
    let ints = Ints::new(emitter.builder, 32);
    let (kind, lane) = match butterfly {
        Some(mask) => ("bfly", Int::Known(i64::try_from(mask).unwrap_or(0))),
        None => ("idx", from),
    };
    let operands = [
        ints.value(Int::Known(-1))?,
        word,
        ints.value(lane)?,
        ints.value(Int::Known(31))?,
    ];
    let kind = emitter
        .builder
        .parsed(&format!("#nvvm<shfl_kind {kind}>"))?;
    let moved = emitter
        .builder
        .value("nvvm.shfl.sync", &operands, i32, &[("kind", kind)])?;
    let moved = match narrow {
        false => vec![emitter.bitcast(moved, element)?],
        true => emitter.unpack(
            emitter.bitcast(moved, types::vector(2, element))?,
            2,
            element,
        )?,
    };
    for (&register, value) in dst.iter().zip(moved) {
        if values.len() <= register {
            values.resize(register + 1, value);
        }
        values[register] = value;
    }
    Ok(values)
}
