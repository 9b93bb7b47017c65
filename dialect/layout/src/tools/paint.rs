//! The colour of every cell of a picture.

use std::collections::BTreeMap;

use super::grid::{Colouring, Grid};
use super::palette::{Rgb, address_colour, owner_colour};

/// The colours of a grid, by what they stand for ([`Grid::key`]).
pub(super) struct Paint {
    pub(super) colours: BTreeMap<Vec<i64>, Rgb>,
}

impl Paint {
    pub(super) fn new(grid: &Grid) -> Self {
        let keys = keys(grid);
        let plain = grid.owners == 0 && grid.colouring == Colouring::Owner;
        let colours = if plain {
            by_address(keys)
        } else {
            by_owner(keys)
        };
        Self { colours }
    }

    pub(super) fn of(&self, key: &[i64]) -> Rgb {
        self.colours.get(key).copied().unwrap_or(Rgb(255, 255, 255))
    }
}

/// Those of the cells that hold something, ascending.
fn keys(grid: &Grid) -> Vec<Vec<i64>> {
    let mut keys: Vec<Vec<i64>> = Vec::new();
    for row in 0..grid.rows {
        for col in 0..grid.cols {
            let key = grid.key(row, col);
            if !grid.is_hole(row, col) && keys.last() != Some(&key) {
                keys.push(key);
            }
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

fn by_address(keys: Vec<Vec<i64>>) -> BTreeMap<Vec<i64>, Rgb> {
    let address = |key: Option<&Vec<i64>>| key.and_then(|k| k.first()).copied().unwrap_or(0);
    let (low, high) = (address(keys.first()), address(keys.last()));
    let colour = |key: Vec<i64>| {
        let colour = address_colour(address(Some(&key)), low, high);
        (key, colour)
    };
    keys.into_iter().map(colour).collect()
}

/// The coordinate that takes most values has a hue each; the others shift it.
fn by_owner(keys: Vec<Vec<i64>>) -> BTreeMap<Vec<i64>, Rgb> {
    let width = keys.first().map_or(0, Vec::len);
    let fastest = (0..width)
        .max_by_key(|at| (distinct(&keys, *at), *at))
        .unwrap_or(0);
    let values = || keys.iter().filter_map(|key| key.get(fastest)).copied();
    let first = values().min().unwrap_or(0);
    let last = values().max().unwrap_or(0);
    let count = last.saturating_sub(first).saturating_add(1);
    let colour = |key: Vec<i64>| {
        let value = key.get(fastest).copied().unwrap_or(0);
        let others = key.iter().enumerate().filter(|(at, _)| *at != fastest);
        // Any number that tells them apart; coordinates may be as large as 64 bits allow.
        let outer = others.fold(0_i64, |sum, (_, v)| sum.wrapping_mul(5).wrapping_add(*v));
        let colour = owner_colour(value.wrapping_sub(first), count, outer);
        (key, colour)
    };
    keys.iter().cloned().map(colour).collect()
}

fn distinct(keys: &[Vec<i64>], at: usize) -> usize {
    let mut values: Vec<i64> = keys.iter().filter_map(|key| key.get(at)).copied().collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}
