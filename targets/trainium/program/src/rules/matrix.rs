//! Rules of the tensor engine's products, and of transposes.

use super::Checker;
use crate::facts::chip::{Engine, Generation};
use crate::facts::memory::{BANK_BYTES, MOVING_COLUMNS, PARTITIONS, QUADRANT, STATIONARY_COLUMNS};
use crate::program::view::Access;
use crate::program::{Buffer, Op, View};
use axe_package::DType;

pub(super) fn check(checker: &mut Checker<'_>) {
    match &checker.instruction.op {
        Op::NcMatmul {
            dst,
            stationary,
            moving,
            ..
        } => product(checker, dst, stationary, moving),
        Op::NcTranspose { dst, data } => {
            let most = match checker.instruction.engine {
                Engine::Vector => QUADRANT,
                _ => PARTITIONS,
            };
            transpose(checker, dst, data, most);
        }
        Op::DmaTranspose { dst, src } => transpose(checker, dst, src, PARTITIONS),
        _ => {}
    }
}

fn product(checker: &mut Checker<'_>, dst: &View, stationary: &View, moving: &View) {
    let (k, m) = (stationary.partitions(), stationary.free());
    let (k2, n) = (moving.partitions(), moving.free());
    checker.expect(k == k2, "MM1", || {
        format!("expected stationary and moving with the same partitions, got {k} and {k2}")
    });
    checker.expect(m <= STATIONARY_COLUMNS, "MM2", || {
        format!("expected at most {STATIONARY_COLUMNS} columns of stationary, got {m}")
    });
    checker.expect(n <= MOVING_COLUMNS, "MM3", || {
        format!("expected at most {MOVING_COLUMNS} columns of moving, got {n}")
    });
    let got = (dst.partitions(), dst.free());
    checker.expect(got == (m, n), "MM4", || {
        format!("expected dst of {m} x {n}, got {} x {}", got.0, got.1)
    });
    let (a, b) = (checker.dtype(stationary), checker.dtype(moving));
    let mixed = (a == DType::F32) != (b == DType::F32);
    checker.expect(a.is_float() && b.is_float() && !mixed, "MM6", || {
        format!("expected two floats, f32 with f32 alone, got {a} and {b}")
    });
    let to = checker.dtype(dst);
    checker.expect(to == DType::F32, "MM7", || {
        format!("expected dst of f32, got {to}")
    });
    let Some(buffer) = checker.program.buffers.get(dst.buffer) else {
        return;
    };
    if let Some(access) = dst.access(buffer, &[])
        && let Some(message) = crosses_bank(&access, buffer)
    {
        checker.report("MM5", message);
    }
}

/// Why the destination of a product is in more than one bank; `None` when it is in one.
#[must_use]
pub fn crosses_bank(access: &Access, buffer: &Buffer) -> Option<String> {
    let bytes = buffer.dtype.bytes() as i64;
    let (mut first, mut last) = (access.offset, access.offset);
    for axis in &access.axes {
        let reach = axis.elements.saturating_mul(axis.size - 1);
        first = first.saturating_add(reach.min(0));
        last = last.saturating_add(reach.max(0));
    }
    let banks = (
        first * bytes / BANK_BYTES,
        (last * bytes + bytes - 1) / BANK_BYTES,
    );
    (banks.0 != banks.1).then(|| {
        format!(
            "expected dst inside one bank of {BANK_BYTES} bytes, got bytes {} to {} of '{}'",
            first * bytes,
            last * bytes + bytes - 1,
            buffer.name
        )
    })
}

fn transpose(checker: &mut Checker<'_>, dst: &View, data: &View, most: i64) {
    let (p, f) = (data.partitions(), data.free());
    let got = (dst.partitions(), dst.free());
    checker.expect(got == (f, p), "TR1", || {
        format!("expected dst of {f} x {p}, got {} x {}", got.0, got.1)
    });
    checker.expect(p <= most && f <= most, "TR2", || {
        format!("expected at most {most} x {most}, got {p} x {f}")
    });
    let (from, to) = (checker.dtype(data), checker.dtype(dst));
    let by_product = checker.instruction.engine == Engine::Tensor;
    let sums = by_product && checker.chip.generation == Generation::Gen2;
    let expected = if sums { DType::F32 } else { from };
    checker.expect(to == expected, "TR3", || {
        format!("expected dst of {expected}, got {to}")
    });
    checker.expect(!by_product || from.is_float(), "MM6", || {
        format!("expected floats for the tensor engine, got {from}")
    });
}
