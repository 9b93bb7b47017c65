//! Rules of buffers: what fits where.

use super::Violation;
use crate::facts::chip::Chip;
use crate::facts::memory::{BANK_BYTES, PARTITIONS, PSUM_BYTES};
use crate::program::{Buffer, Program, Space};
use axe_package::DType;

/// Everything that the buffers break.
#[must_use]
pub fn check(program: &Program, chip: &Chip) -> Vec<Violation> {
    program
        .buffers
        .iter()
        .flat_map(|buffer| check_buffer(buffer, chip))
        .collect()
}

/// Everything that one buffer breaks.
#[must_use]
pub fn check_buffer(buffer: &Buffer, chip: &Chip) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, rule: &'static str, message: String| {
        if !holds {
            found.push(Violation {
                rule,
                message,
                subject: format!("'{}'", buffer.name),
                location: buffer.location.clone(),
            });
        }
    };
    let wide = matches!(
        buffer.dtype,
        DType::F64 | DType::I64 | DType::U64 | DType::Bool
    );
    expect(
        !wide,
        "B5",
        format!(
            "expected elements of 8, 16 or 32 bits, got {}",
            buffer.dtype
        ),
    );
    if !buffer.space.has_partitions() {
        return found;
    }
    let (first, byte) = buffer
        .place
        .map_or((0, 0), |place| (place.partition, place.byte));
    let last = first.saturating_add(buffer.partitions());
    expect(
        first >= 0 && last <= PARTITIONS,
        "B1",
        format!("expected partitions of 0 to 128, got {first} to {last}"),
    );
    let (rule, room) = match buffer.space {
        Space::Psum => ("B4", PSUM_BYTES),
        _ => ("B2", chip.sbuf_bytes),
    };
    let end = byte.saturating_add(copy_bytes(buffer).saturating_mul(buffer.copies));
    expect(
        byte >= 0 && end <= room,
        rule,
        format!(
            "expected at most {room} bytes a partition in {} of {}, got {end}",
            buffer.space, chip.name
        ),
    );
    expect(
        buffer.space != Space::Psum || byte % BANK_BYTES == 0,
        "B3",
        format!("expected a multiple of {BANK_BYTES} bytes, the beginning of a bank, got {byte}"),
    );
    found
}

/// Bytes of a partition from one copy of a buffer to the next: whole banks in PSUM.
#[must_use]
pub fn copy_bytes(buffer: &Buffer) -> i64 {
    match buffer.space {
        Space::Psum => {
            (buffer.bytes().saturating_add(BANK_BYTES - 1) / BANK_BYTES).saturating_mul(BANK_BYTES)
        }
        _ => buffer.bytes(),
    }
}
