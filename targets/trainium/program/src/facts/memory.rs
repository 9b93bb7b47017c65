//! The on-chip memories and what an access pattern may be: the same on every generation.

/// Partitions of SBUF and of PSUM (A1).
pub const PARTITIONS: i64 = 128;
/// Bytes of PSUM in a partition (A1).
pub const PSUM_BYTES: i64 = 16 * 1024;
/// Bytes of one PSUM bank in a partition: 512 values of f32 (A1).
pub const BANK_BYTES: i64 = 2 * 1024;
/// Banks of PSUM (A1).
pub const BANKS: i64 = PSUM_BYTES / BANK_BYTES;
/// Free dimensions of an access pattern at most (A1, AP).
pub const FREE_DIMENSIONS: usize = 4;
/// The most that an access pattern steps through in one dimension: a `uint16` (A1, AP).
pub const MOST_SIZE: i64 = u16::MAX as i64;
/// The largest step of an access pattern, in elements: an `int16` (A1, AP).
pub const MOST_STEP: i64 = i16::MAX as i64;
/// Elements of one SBUF operand in a partition at most (A1).
pub const SBUF_ELEMENTS: i64 = 64 * 1024;
/// Rows of the moving tile at most on trn1 and trn2: one bank of f32 (ISA `nc_matmul`).
pub const MOVING_COLUMNS: i64 = 512;
/// Columns of the stationary tile at most (ISA `nc_matmul`).
pub const STATIONARY_COLUMNS: i64 = 128;
/// Partitions within which `nc_stream_shuffle` moves data, and the side of the vector engine's transpose (ISA).
pub const QUADRANT: i64 = 32;

/// The partitions at which an operand of so many partitions may begin (A1): any quadrant up to 32, either half up to
/// 64, the first partition beyond.
#[must_use]
pub const fn start_step(partitions: i64) -> i64 {
    match partitions {
        ..=32 => 32,
        33..=64 => 64,
        _ => 128,
    }
}

/// Whether an operand of so many partitions may begin at `start`.
#[must_use]
pub const fn may_start(start: i64, partitions: i64) -> bool {
    start >= 0 && start < PARTITIONS && start % start_step(partitions) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_partitions_are_the_documented_ones() {
        let starts = |count| {
            (0..128)
                .filter(|s| may_start(*s, count))
                .collect::<Vec<_>>()
        };
        for count in [1, 32] {
            assert_eq!(starts(count), [0, 32, 64, 96], "{count}");
        }
        for count in [33, 64] {
            assert_eq!(starts(count), [0, 64], "{count}");
        }
        for count in [65, 128] {
            assert_eq!(starts(count), [0], "{count}");
        }
    }
}
