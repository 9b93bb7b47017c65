//! Where the tiles of a matrix are, and how a chain loads and stores its own.

use super::{Chain, Held};
use crate::array::{Array, mlir};
use crate::case::{Case, Parameter};
use crate::layouts::shared;
use crate::random::Random;
use axe_package::DType;

/// Where the tiles of a matrix start.
pub(super) struct Grid {
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) tile: [i64; 2],
}

impl Grid {
    fn counts(&self) -> [i64; 2] {
        let count = |extent: i64, tile: i64| (extent + tile - 1) / tile;
        [
            count(self.rows, self.tile[0]),
            count(self.columns, self.tile[1]),
        ]
    }

    fn origins(&self) -> Vec<[i64; 2]> {
        let [rows, columns] = self.counts();
        (0..rows)
            .flat_map(|row| {
                (0..columns).map(move |column| [row * self.tile[0], column * self.tile[1]])
            })
            .collect()
    }
}

fn memref(rows: i64, columns: i64, dtype: DType, dynamic: bool) -> String {
    let rows = if dynamic {
        "?".to_owned()
    } else {
        rows.to_string()
    };
    format!("memref<{rows}x{columns}x{}>", mlir(dtype))
}

fn boxed(tile: [i64; 2], columns: i64, dtype: DType) -> String {
    format!(
        "memref<{}x{}x{}, strided<[{columns}, 1]>>",
        tile[0],
        tile[1],
        mlir(dtype)
    )
}

/// Sometimes asks for the schedule that takes any layout, which better ones would hide.
fn forced(random: &mut Random, schedule: &str) -> String {
    match random.once_in(6) {
        true => format!(" schedule = \"{schedule}\""),
        false => String::new(),
    }
}

/// Loads this CTA's tile: at once, or through shared memory.
pub(super) fn load(chain: &mut Chain<'_>, grid: &Grid, input: &Array, dynamic: bool) -> Held {
    let dtype = input.dtype;
    let global = memref(grid.rows, grid.columns, dtype, dynamic);
    let source = boxed(grid.tile, grid.columns, dtype);
    for line in [
        "%by = gpu.block_id y".to_owned(),
        "%bx = gpu.block_id x".to_owned(),
        format!("%tr = arith.constant {} : index", grid.tile[0]),
        format!("%tc = arith.constant {} : index", grid.tile[1]),
        "%r = arith.muli %by, %tr : index".to_owned(),
        "%c = arith.muli %bx, %tc : index".to_owned(),
        format!("%in = axe.slice %x[%r, %c] : {global} to {source}"),
    ] {
        chain.line(&line);
    }
    let pad = match (chain.random.once_in(4), dtype) {
        (true, DType::Bool) => 1.0,
        (true, _) => 7.0,
        _ => 0.0,
    };
    let tiles = grid
        .origins()
        .iter()
        .map(|origin| input.slice(origin, &grid.tile, pad))
        .collect();
    let distribution = chain.distribution(&grid.tile);
    let made = chain.held(&grid.tile, dtype, distribution, tiles);
    let padding = match pad == 0.0 {
        true => String::new(),
        false => {
            let name = chain.constant(pad, dtype);
            format!(" pad {name} : {}", mlir(dtype))
        }
    };
    if chain.random.once_in(2) {
        let schedule = forced(chain.random, "ld.scalar");
        chain.line(&format!(
            "{} = axe.copy %in{padding}{schedule} : {source} -> {}",
            made.name,
            made.r#type()
        ));
        return made;
    }
    let storage = stage(chain, grid, dtype, &source, &padding);
    chain.line(&format!(
        "{} = axe.copy %stage : {storage} -> {}",
        made.name,
        made.r#type()
    ));
    made
}

/// Copies the tile to shared memory, at once or asynchronously; the type of the storage.
fn stage(chain: &mut Chain<'_>, grid: &Grid, dtype: DType, source: &str, padding: &str) -> String {
    let layout = shared(
        grid.tile[0],
        grid.tile[1],
        dtype.bytes() as i64,
        chain.random,
    );
    let storage = format!(
        "memref<{}x{}x{}, {layout}, #axe.space<shared>>",
        grid.tile[0],
        grid.tile[1],
        mlir(dtype)
    );
    chain.line(&format!("%stage = axe.alloc : {storage}"));
    if chain.random.once_in(3) {
        let zero = chain.constant(0.0, dtype);
        chain.line(&format!(
            "axe.fill {zero} to %stage : {} to {storage}",
            mlir(dtype)
        ));
        chain.line("axe.barrier");
    }
    if chain.random.once_in(2) {
        chain.line(&format!(
            "axe.copy async %in to %stage{padding} : {source} to {storage}"
        ));
        chain.line("%group = axe.commit : !axe.token");
        chain.line("axe.wait");
    } else {
        let schedule = forced(chain.random, "ld.st.scalar");
        chain.line(&format!(
            "axe.copy %in to %stage{padding}{schedule} : {source} to {storage}"
        ));
    }
    chain.line("axe.barrier");
    storage
}

/// The tiles in their places, transposed where they are.
fn assembled(grid: &Grid, held: &Held, flipped: bool) -> Array {
    let flip = |pair: [i64; 2]| if flipped { [pair[1], pair[0]] } else { pair };
    let mut whole = Array::from_fn(&flip([grid.rows, grid.columns]), held.dtype, |_| 0.0);
    for (origin, tile) in grid.origins().iter().zip(&held.tiles) {
        let [first_row, first_column] = flip(*origin);
        for row in 0..held.shape[0] {
            for column in 0..held.shape[1] {
                let value = tile.get(&[row, column]).unwrap_or(0.0);
                whole.set(&[first_row + row, first_column + column], value);
            }
        }
    }
    whole
}

/// Stores the tile, transposed where the chain left it so.
pub(super) fn finish(
    mut chain: Chain<'_>,
    grid: &Grid,
    held: &Held,
    input: Array,
    dynamic: bool,
    seed: u64,
) -> Case {
    let flipped = held.shape != grid.tile && held.shape == [grid.tile[1], grid.tile[0]];
    let expected = assembled(grid, held, flipped);
    let out_dynamic = dynamic && !flipped;
    let tile = [held.shape[0], held.shape[1]];
    let global = memref(
        expected.shape[0],
        expected.shape[1],
        held.dtype,
        out_dynamic,
    );
    let target = boxed(tile, expected.shape[1], held.dtype);
    let origin = if flipped { "%c, %r" } else { "%r, %c" };
    chain.line(&format!(
        "%out = axe.slice %y[{origin}] : {global} to {target}"
    ));
    let schedule = forced(chain.random, "st.scalar");
    chain.line(&format!(
        "axe.copy {} to %out{schedule} : {} to {target}",
        held.name,
        held.r#type()
    ));
    let source = memref(grid.rows, grid.columns, input.dtype, dynamic);
    let [rows, columns] = grid.counts();
    let mlir = format!(
        "axe.kernel @k(%x: {source}, %y: {global}) threads({}) {{\n{}  axe.return\n}}\n",
        chain.threads, chain.body
    );
    Case {
        name: format!("chain {seed}"),
        mlir,
        host: None,
        threads: chain.threads,
        grid: [columns, rows, 1],
        parameters: vec![Parameter::Input(0, dynamic), Parameter::Output(out_dynamic)],
        inputs: vec![input],
        expected,
    }
}
