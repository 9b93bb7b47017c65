//! Shared memory seen from the hardware: one row for each 128 bytes, one column for each bank, and in
//! each word the logical elements that live there.

use std::collections::BTreeMap;

use crate::{Axis, Error, Layout, Result};

use super::grid::{Colouring, Grid};

/// Shared memory has 32 banks of four bytes (CUDA C++ programming guide, "Shared Memory").
const BANKS: i64 = 32;
/// Bytes of the widest access of one thread; swizzles permute pieces of this size.
const CHUNK_BYTES: i64 = 16;

/// The physical picture of a layout on `m`: a row is 128 bytes, a column a bank. A word is coloured by
/// the 16-byte chunk of the logical row that it belongs to, and says which chunk and row that is.
///
/// # Errors
/// As [`Grid::new`]; `Invalid` when `elem_bytes` is not 1, 2, 4, 8 or 16.
pub fn bank_grid(layout: &Layout, shape: &[i64], elem_bytes: i64) -> Result<Grid> {
    if ![1, 2, 4, 8, 16].contains(&elem_bytes) {
        let message = format!("elements of {elem_bytes} bytes: expected 1, 2, 4, 8 or 16");
        return Err(Error::invalid(message));
    }
    let logical = Grid::new(layout, shape, Some(&[]), Colouring::Bank { elem_bytes })?;
    let mut lines: BTreeMap<i64, [Option<(i64, i64)>; BANKS as usize]> = BTreeMap::new();
    for row in 0..logical.rows {
        for col in 0..logical.cols {
            let byte = logical
                .memory(logical.point(row, col))
                .saturating_mul(elem_bytes);
            let chunk = i64::try_from(col).unwrap_or(0) * elem_bytes / CHUNK_BYTES;
            for word in byte.div_euclid(4)..=byte.saturating_add(elem_bytes - 1).div_euclid(4) {
                let line = lines
                    .entry(word.div_euclid(BANKS))
                    .or_insert([None; BANKS as usize]);
                let bank = usize::try_from(word.rem_euclid(BANKS)).unwrap_or(0);
                if let Some(slot) = line.get_mut(bank).filter(|slot| slot.is_none()) {
                    *slot = Some((chunk, i64::try_from(row).unwrap_or(0)));
                }
            }
        }
    }
    let place = |slot: &Option<(i64, i64)>| slot.map_or([-1, -1], |(chunk, row)| [chunk, row]);
    Ok(Grid {
        title: logical.title,
        shape: vec![i64::try_from(lines.len()).unwrap_or(0), BANKS],
        rows: lines.len(),
        cols: BANKS as usize,
        axes: vec![Axis::new("chunk")?, Axis::new("row")?],
        owners: 1,
        points: lines.values().flatten().flat_map(place).collect(),
        copies: vec![vec![0, 0]],
        copy_count: 1,
        extents: Vec::new(),
        holes: lines.values().flatten().map(Option::is_none).collect(),
        row_numbers: lines.keys().copied().collect(),
        colouring: Colouring::Owner,
        note: note(&lines),
    })
}

/// The line under the title; rows without an element are not drawn, and counted here.
fn note<T>(lines: &BTreeMap<i64, T>) -> String {
    let mut note = "a row is 128 bytes of shared memory, a column is a bank; c: 16-byte chunk of the logical row r"
        .to_owned();
    let ends = lines.keys().next().zip(lines.keys().next_back());
    let span = ends.map_or(0, |(low, high)| high.saturating_sub(*low).saturating_add(1));
    let absent = span.saturating_sub(i64::try_from(lines.len()).unwrap_or(span));
    if absent > 0 {
        note += &format!("; {absent} rows between hold nothing and are left out");
    }
    note
}
