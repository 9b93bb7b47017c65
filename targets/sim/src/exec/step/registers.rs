//! Instructions that touch the registers of their warp only.

use super::generic_space;
use crate::decode::lanes::{LaneFn, Lanes};
use crate::decode::{
    Inst, MOD_FTZ, MOD_FTZ_BF16, MOD_FTZ_F16, MOD_SAT, MOD_SAT64, Op, RANK_SHIFT, Setp,
};
use crate::exec::warp::Warp;
use crate::units::convert::{Convert, Type, pack2, unpack2};
use crate::units::float::Format;

/// Runs an instruction that touches the warp's registers only; `false` for any other.
pub(super) fn simple(warp: &mut Warp, inst: &Inst, base: usize, preds: usize, mask: u32) -> bool {
    match &inst.op {
        Op::Alu { f, d, s, mods } => {
            let out = alu(*f, s.map(|slot| warp.reg(base, slot)), *mods);
            warp.write(base, *d, &out, mask);
        }
        Op::Mov { d, a } => {
            let out = *warp.reg(base, *a);
            warp.write(base, *d, &out, mask);
        }
        Op::Setp(_) | Op::Set { .. } | Op::PredLogic { .. } | Op::PredMov { .. } => {
            predicate(warp, &inst.op, base, preds, mask);
        }
        Op::Selp { .. } | Op::Slct { .. } => select(warp, &inst.op, base, preds, mask),
        Op::Cvt { .. } | Op::CvtPack { .. } | Op::CvtUnpack { .. } => {
            convert(warp, &inst.op, base, mask);
        }
        Op::Pack { .. } | Op::Unpack { .. } => pack(warp, &inst.op, base, mask),
        Op::Carry { .. } | Op::MadCarry { .. } => carry(warp, &inst.op, base, mask),
        Op::IsSpace { .. } | Op::Mapa { .. } | Op::GetRank { .. } => {
            address(warp, &inst.op, base, preds, mask);
        }
        Op::CvtSat(form) => {
            let get = |s| warp.reg(base, s);
            let out = form.apply(get(form.a), get(form.b), get(form.c));
            warp.write(base, form.d, &out, mask);
        }
        Op::Video(form) => {
            let get = |s| warp.reg(base, s);
            let out = form.apply(get(form.a), get(form.b), get(form.c));
            warp.write(base, form.d, &out, mask);
        }
        Op::Nop => {}
        _ => return false,
    }
    true
}

/// Comparisons, and logic on predicates.
fn predicate(warp: &mut Warp, op: &Op, base: usize, preds: usize, mask: u32) {
    match op {
        Op::Setp(setp) => {
            let [value, other] = compare(warp, setp, base, preds);
            warp.write_pred(preds, setp.d, value, mask);
            if let Some(q) = setp.q {
                warp.write_pred(preds, q, other, mask);
            }
        }
        Op::Set { setp, d, value } => {
            let [hit, high] = compare(warp, setp, base, preds);
            let part = |hits: u32, i: usize| if hits >> i & 1 == 1 { *value } else { 0 };
            let out = if setp.packed {
                std::array::from_fn(|i| part(hit, i) | part(high, i) << 16)
            } else {
                std::array::from_fn(|i| part(hit, i))
            };
            warp.write(base, *d, &out, mask);
        }
        Op::PredLogic { op, d, a, b } => {
            let value = op.apply(warp.pred(preds, *a), warp.pred(preds, *b));
            warp.write_pred(preds, *d, value, mask);
        }
        Op::PredMov { d, a } => {
            let value = warp.pred(preds, *a);
            warp.write_pred(preds, *d, value, mask);
        }
        _ => {}
    }
}

/// `selp` and `slct`.
fn select(warp: &mut Warp, op: &Op, base: usize, preds: usize, mask: u32) {
    let (d, a, b, p) = match op {
        Op::Selp { d, a, b, p } => (d, a, b, warp.pred(preds, *p)),
        Op::Slct { d, a, b, c, f } => (d, a, b, f(warp.reg(base, *c), &[0; 32])),
        _ => return,
    };
    let (x, y) = (warp.reg(base, *a), warp.reg(base, *b));
    let out = std::array::from_fn(|i| if p >> i & 1 == 1 { x[i] } else { y[i] });
    warp.write(base, *d, &out, mask);
}

fn convert(warp: &mut Warp, op: &Op, base: usize, mask: u32) {
    match op {
        Op::Cvt {
            convert,
            d,
            a,
            extend,
        } => {
            let keep = if *extend >= 8 {
                u64::MAX
            } else {
                (1 << (8 * extend)) - 1
            };
            let out = converted(convert, warp.reg(base, *a), keep);
            warp.write(base, *d, &out, mask);
        }
        Op::CvtPack {
            to,
            round,
            satfinite,
            relu,
            d,
            high,
            low,
        } => {
            let (x, y) = (warp.reg(base, *high), warp.reg(base, *low));
            let f = |v: u64| f32::from_bits(v as u32);
            let out = std::array::from_fn(|i| {
                u64::from(pack2(*to, f(x[i]), f(y[i]), *round, *satfinite, *relu))
            });
            warp.write(base, *d, &out, mask);
        }
        Op::CvtUnpack {
            from,
            to,
            relu,
            d,
            a,
        } => {
            let out = warp.reg(base, *a).map(|v| {
                let (high, low) = unpack2(*from, *to, v as u32, *relu);
                u64::from(high) << 16 | u64::from(low)
            });
            warp.write(base, *d, &out, mask);
        }
        _ => {}
    }
}

/// Integer and f16 conversions, which are frequent, have ways of their own.
fn converted(convert: &Convert, x: &Lanes, keep: u64) -> Lanes {
    match (convert.from, convert.to) {
        (Type::Unsigned(from), Type::Unsigned(to) | Type::Signed(to)) if !convert.sat => {
            let low = u64::MAX >> (64 - from.min(to));
            let signed = matches!(convert.to, Type::Signed(_)) && to <= from;
            x.map(|v| {
                let v = v & low;
                if signed {
                    ((v << (64 - to)) as i64 >> (64 - to)) as u64 & keep
                } else {
                    v & keep
                }
            })
        }
        (Type::Float(Format::F16), Type::Float(Format::F32))
            if !convert.ftz && !convert.sat && !convert.integral =>
        {
            x.map(|v| {
                let value = half::f16::from_bits(v as u16).to_f32();
                if value.is_nan() {
                    0x7fff_ffff
                } else {
                    u64::from(value.to_bits())
                }
            })
        }
        _ => x.map(|v| convert.apply(v) & keep),
    }
}

/// `mov` between a register and its elements.
fn pack(warp: &mut Warp, op: &Op, base: usize, mask: u32) {
    let low = |bits: u32| {
        if bits >= 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        }
    };
    match op {
        Op::Pack { d, parts, bits } => {
            let mut out = [0u64; 32];
            for (i, part) in parts.iter().enumerate() {
                for (o, v) in out.iter_mut().zip(warp.reg(base, *part)) {
                    *o |= (v & low(*bits)) << (i as u32 * bits);
                }
            }
            warp.write(base, *d, &out, mask);
        }
        Op::Unpack { parts, a, bits } => {
            let x = *warp.reg(base, *a);
            for (i, part) in parts.iter().enumerate() {
                let out = x.map(|v| v >> (i as u32 * bits) & low(*bits));
                warp.write(base, *part, &out, mask);
            }
        }
        _ => {}
    }
}

/// Questions about addresses, and addresses in other CTAs.
fn address(warp: &mut Warp, op: &Op, base: usize, preds: usize, mask: u32) {
    match op {
        Op::IsSpace { space, d, a } => {
            let x = warp.reg(base, *a);
            let value = (0..32).fold(0, |m, i| {
                m | u32::from(generic_space(x[i]).0 == *space) << i
            });
            warp.write_pred(preds, *d, value, mask);
        }
        Op::Mapa { d, a, rank } => {
            let (x, r) = (warp.reg(base, *a), warp.reg(base, *rank));
            let out =
                std::array::from_fn(|i| x[i] & !(0xff << RANK_SHIFT) | (r[i] & 0xff) << RANK_SHIFT);
            warp.write(base, *d, &out, mask);
        }
        Op::GetRank { d, a } => {
            let out = warp.reg(base, *a).map(|v| v >> RANK_SHIFT & 0xff);
            warp.write(base, *d, &out, mask);
        }
        _ => {}
    }
}

/// What `setp` writes to p and q: the outcome and its negation, or those of the low and high halves.
fn compare(warp: &Warp, setp: &Setp, base: usize, preds: usize) -> [u32; 2] {
    let operands = [setp.a, setp.b].map(|slot| {
        let lanes = warp.reg(base, slot);
        if setp.ftz == 0 {
            *lanes
        } else {
            flush(lanes, setp.ftz)
        }
    });
    let [a, b] = &operands;
    let low = (setp.f)(a, b);
    let other = if setp.packed {
        (setp.f)(&a.map(|v| v >> 16), &b.map(|v| v >> 16))
    } else {
        !low
    };
    [low, other].map(|outcome| match setp.combine {
        Some((op, p)) => op.apply(outcome, warp.pred(preds, p)),
        None => outcome,
    })
}

/// Makes subnormal numbers zeros of their sign.
fn flush(x: &Lanes, mods: u8) -> Lanes {
    /// Every number of a register, `bits` apart, whose exponent under `exponent` is zero.
    fn parts(v: u64, bits: u32, exponent: u64) -> u64 {
        let sign = 1 << (bits - 1);
        (0..64).step_by(bits as usize).fold(0, |out, shift| {
            let part = v >> shift & (2 * sign - 1);
            let kept = if part & exponent == 0 {
                part & sign
            } else {
                part
            };
            out | kept << shift
        })
    }
    if mods & MOD_FTZ_F16 != 0 {
        x.map(|v| parts(v, 16, 0x7c00))
    } else if mods & MOD_FTZ_BF16 != 0 {
        x.map(|v| parts(v, 16, 0x7f80))
    } else {
        x.map(|v| parts(v, 32, 0x7f80_0000))
    }
}

/// Arithmetic of four registers under its modifiers.
pub(in crate::exec) fn alu(f: LaneFn, s: [&Lanes; 4], mods: u8) -> Lanes {
    if mods == 0 {
        return f(s[0], s[1], s[2], s[3]);
    }
    let mut out = if mods & (MOD_FTZ | MOD_FTZ_F16 | MOD_FTZ_BF16) != 0 {
        let [a, b, c] = [s[0], s[1], s[2]].map(|x| flush(x, mods));
        flush(&f(&a, &b, &c, s[3]), mods)
    } else {
        f(s[0], s[1], s[2], s[3])
    };
    if mods & MOD_SAT != 0 {
        out = out.map(|v| {
            let x = f32::from_bits(v as u32);
            u64::from((if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) } + 0.0).to_bits())
        });
    }
    if mods & MOD_SAT64 != 0 {
        out = out.map(|v| {
            let x = f64::from_bits(v);
            (if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) } + 0.0).to_bits()
        });
    }
    out
}

/// Extended-precision arithmetic, which reads and writes the carry bit of each lane (PTX ISA 9.7.2).
fn carry(warp: &mut Warp, op: &Op, base: usize, mask: u32) {
    let old = warp.carry;
    let carried = |i: usize, read: bool| u128::from(read && old >> i & 1 == 1);
    let get = |slot| warp.reg(base, slot);
    let (d, bits, writes, wide): (_, _, _, [u128; 32]) = match *op {
        Op::Carry {
            d,
            a,
            b,
            subtract,
            carry_in,
            carry_out,
            bits,
        } => {
            let [x, y] = [a, b].map(|slot| get(slot).map(|v| low(v, bits)));
            let sum = |i: usize| {
                let c = carried(i, carry_in);
                // For subtraction the carry bit is a borrow (PTX ISA `sub.cc`).
                if subtract {
                    x[i].wrapping_sub(y[i]).wrapping_sub(c)
                } else {
                    x[i] + y[i] + c
                }
            };
            (d, bits, carry_out, std::array::from_fn(sum))
        }
        Op::MadCarry {
            d,
            a,
            b,
            c,
            high,
            carry_in,
            carry_out,
            bits,
            signed,
        } => {
            let (x, y, z) = (get(a), get(b), get(c));
            let sum = |i: usize| {
                let product = product(x[i], y[i], bits, signed);
                let half = if high { product >> bits } else { product } as u64;
                low(half, bits) + low(z[i], bits) + carried(i, carry_in)
            };
            (d, bits, carry_out, std::array::from_fn(sum))
        }
        _ => return,
    };
    warp.write(base, d, &wide.map(|sum| low(sum as u64, bits) as u64), mask);
    if writes {
        let new = (0..32).fold(0, |m, i| m | u32::from(wide[i] >> bits & 1 == 1) << i);
        warp.carry = old & !mask | new & mask;
    }
}

/// The low `bits` (at most 64) of a register.
fn low(v: u64, bits: u32) -> u128 {
    u128::from(v & (u64::MAX >> (64 - bits)))
}

/// The product of two numbers of `bits`, modulo 2^128.
fn product(x: u64, y: u64, bits: u32, signed: bool) -> u128 {
    let wide = |v: u64| {
        if signed {
            (((v << (64 - bits)) as i64) >> (64 - bits)) as i128 as u128
        } else {
            low(v, bits)
        }
    };
    wide(x).wrapping_mul(wide(y))
}
