//! Kernels that load a tile, change it in several steps, and store it.

use crate::array::{Array, literal, mlir, round};
use crate::case::{Case, ELEMENTS, FEW, Parameter};
use crate::layouts::{Distribution, shared};
use crate::maps;
use crate::random::Random;
use axe_package::DType;
use std::fmt::Write;

mod few;

/// A register tensor of the kernel: its name, its type and, for each CTA, its value.
#[derive(Clone)]
struct Held {
    name: String,
    shape: Vec<i64>,
    dtype: DType,
    distribution: Distribution,
    tiles: Vec<Array>,
}

impl Held {
    fn r#type(&self) -> String {
        type_of(&self.shape, self.dtype, &self.distribution)
    }
}

fn type_of(shape: &[i64], dtype: DType, distribution: &Distribution) -> String {
    let extents: String = shape.iter().map(|extent| format!("{extent}x")).collect();
    format!("tensor<{extents}{}, {distribution}>", mlir(dtype))
}

/// A kernel under construction.
struct Chain<'a> {
    random: &'a mut Random,
    threads: i64,
    body: String,
    next: usize,
}

/// Most registers of a thread that a tensor of a chain has.
const REGISTERS: i64 = 48;

impl Chain<'_> {
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }

    fn distribution(&mut self, shape: &[i64]) -> Distribution {
        Distribution::random(shape, self.threads, REGISTERS, self.random)
    }

    fn constant(&mut self, value: f64, dtype: DType) -> String {
        let name = self.fresh();
        self.line(&format!(
            "{name} = arith.constant {} : {}",
            literal(value, dtype),
            mlir(dtype)
        ));
        name
    }

    fn held(
        &mut self,
        shape: &[i64],
        dtype: DType,
        distribution: Distribution,
        tiles: Vec<Array>,
    ) -> Held {
        let name = self.fresh();
        Held {
            name,
            shape: shape.to_vec(),
            dtype,
            distribution,
            tiles,
        }
    }

    /// A random step.
    fn step(&mut self, held: &Held) -> Held {
        if !ELEMENTS.contains(&held.dtype) {
            return self.step_of_few(held);
        }
        match self.random.below(14) {
            11 => self.compare(held),
            12 if held.dtype.is_float() => self.narrow(held),
            13 if !held.dtype.is_float() => self.reduce_bits(held),
            9 | 10 => self.other_map(held),
            0 => self.relayout(held),
            1 => self.cast(held),
            2 | 3 => self.map(held),
            4 => self.transpose(held),
            5 => self.reduce(held),
            6 => self.mask(held),
            7 => self.through_shared(held),
            _ => self.repeat(held),
        }
    }

    fn relayout(&mut self, held: &Held) -> Held {
        let distribution = match self.random.once_in(4) {
            true => held.distribution.renamed(self.random),
            false => self.distribution(&held.shape),
        };
        let made = self.held(&held.shape, held.dtype, distribution, held.tiles.clone());
        self.line(&format!(
            "{} = axe.copy {} : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    fn cast(&mut self, held: &Held) -> Held {
        let to = self.random.pick(&ELEMENTS);
        if to == held.dtype {
            return held.clone();
        }
        self.cast_to(held, to)
    }

    fn cast_to(&mut self, held: &Held, to: DType) -> Held {
        // An integer in fewer bits keeps the low ones.
        let wraps = held.dtype.unit_roundoff().is_none();
        let convert = |tile: &Array| {
            Array::from_fn(&tile.shape, to, |at| {
                let value = tile.get(at).unwrap_or(0.0);
                if wraps { wrap(value, to) } else { value }
            })
        };
        let tiles = held.tiles.iter().map(convert).collect();
        let made = self.held(&held.shape, to, held.distribution.clone(), tiles);
        self.line(&format!(
            "{} = axe.cast {} : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    /// `x * a + b`.
    fn map(&mut self, held: &Held) -> Held {
        let is_float = held.dtype.unit_roundoff().is_some();
        let a = if is_float {
            self.random.pick(&[0.5, 2.0, -1.0])
        } else {
            self.random.pick(&[1.0, -1.0])
        };
        let b = self.random.pick(&[1.0, -2.0, 3.0]);
        let (a_name, b_name) = (self.constant(a, held.dtype), self.constant(b, held.dtype));
        let dtype = held.dtype;
        let apply = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                wrap(round(tile.get(at).unwrap_or(0.0) * a, dtype) + b, dtype)
            })
        };
        let tiles = held.tiles.iter().map(apply).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (suffix, scalar) = (if is_float { "f" } else { "i" }, mlir(dtype));
        self.line(&format!(
            "{} = axe.map ins({} : {}) -> {} {{",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        self.line(&format!("^bb0(%e: {scalar}):"));
        self.line(&format!("  %p = arith.mul{suffix} %e, {a_name} : {scalar}"));
        self.line(&format!("  %s = arith.add{suffix} %p, {b_name} : {scalar}"));
        self.line(&format!("  axe.yield %s : {scalar}"));
        self.line("}");
        made
    }

    /// A map with another body than `x * a + b`.
    fn other_map(&mut self, held: &Held) -> Held {
        let dtype = held.dtype;
        let body = maps::body(dtype, self.random);
        let names: Vec<_> = body
            .constants
            .iter()
            .map(|value| self.constant(*value, dtype))
            .collect();
        let apply = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                wrap((body.apply)(tile.get(at).unwrap_or(0.0)), dtype)
            })
        };
        let tiles = held.tiles.iter().map(apply).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (of, scalar) = (held.r#type(), mlir(dtype));
        let (name, source) = (&made.name, &held.name);
        self.line(&format!("{name} = axe.map ins({source} : {of}) -> {of} {{"));
        self.line(&format!("^bb0(%e: {scalar}):"));
        for line in &body.lines {
            let line = names
                .iter()
                .enumerate()
                .fold(line.clone(), |line, (at, name)| {
                    line.replace(&format!("{{{at}}}"), name)
                });
            self.line(&format!("  {line}"));
        }
        self.line(&format!("  axe.yield %s : {scalar}"));
        self.line("}");
        made
    }

    fn transpose(&mut self, held: &Held) -> Held {
        if held.shape.len() != 2 {
            return held.clone();
        }
        let shape = [held.shape[1], held.shape[0]];
        let distribution = match self.random.once_in(2) {
            true => held.distribution.permuted(&[1, 0]),
            false => self.distribution(&shape),
        };
        let flip = |tile: &Array| {
            Array::from_fn(&shape, held.dtype, |at| {
                tile.get(&[at[1], at[0]]).unwrap_or(0.0)
            })
        };
        let tiles = held.tiles.iter().map(flip).collect();
        let made = self.held(&shape, held.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.transpose {} [1, 0] : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    /// A reduction and its broadcast.
    fn reduce(&mut self, held: &Held) -> Held {
        if held.shape.len() != 2 {
            return held.clone();
        }
        let combiner = self.random.pick(&["add", "max", "min"]);
        let dtype = held.dtype;
        self.reduce_by(held, combiner, move |values| match combiner {
            "add" => wrap(values.sum(), dtype),
            "max" => values.fold(f64::NEG_INFINITY, f64::max),
            _ => values.fold(f64::INFINITY, f64::min),
        })
    }

    fn reduce_by(
        &mut self,
        held: &Held,
        combiner: &str,
        combine_values: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
    ) -> Held {
        let dim = self.random.below(2);
        let kept = [held.shape[1 - dim]];
        let natural = !self.random.once_in(3);
        let distribution = if natural {
            held.distribution.reduced(dim)
        } else {
            self.distribution(&kept)
        };
        let combine = |tile: &Array| {
            Array::from_fn(&kept, held.dtype, |at| {
                combine_values(&mut (0..held.shape[dim]).map(|k| {
                    let index = if dim == 0 { [k, at[0]] } else { [at[0], k] };
                    tile.get(&index).unwrap_or(0.0)
                }))
            })
        };
        let tiles = held.tiles.iter().map(combine).collect();
        let reduced = self.held(&kept, held.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.reduce <{combiner}> {} dims [{dim}] : {} -> {}",
            reduced.name,
            held.name,
            held.r#type(),
            reduced.r#type()
        ));
        self.broadcast(&reduced, dim, held)
    }

    fn broadcast(&mut self, reduced: &Held, dim: usize, like: &Held) -> Held {
        let spread = |tile: &Array| {
            Array::from_fn(&like.shape, reduced.dtype, |at| {
                tile.get(&[at[1 - dim]]).unwrap_or(0.0)
            })
        };
        let tiles = reduced.tiles.iter().map(spread).collect();
        let distribution = if self.random.once_in(3) {
            self.distribution(&like.shape)
        } else {
            like.distribution.clone()
        };
        let made = self.held(&like.shape, reduced.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.broadcast {} dims [{dim}] : {} -> {}",
            made.name,
            reduced.name,
            reduced.r#type(),
            made.r#type()
        ));
        made
    }

    fn mask(&mut self, held: &Held) -> Held {
        let limits: Vec<_> = held
            .shape
            .iter()
            .map(|&extent| self.random.range(0, extent))
            .collect();
        let value = match held.dtype {
            DType::Bool => self.random.pick(&[0.0, 1.0]),
            _ => self.random.pick(&[0.0, -5.0]),
        };
        let other = self.constant(value, held.dtype);
        let (mut origins, mut ends) = (Vec::new(), Vec::new());
        for limit in &limits {
            let shift = self.random.range(0, 9);
            for (number, into) in [(shift, &mut origins), (limit + shift, &mut ends)] {
                let name = self.fresh();
                self.line(&format!("{name} = arith.constant {number} : index"));
                into.push(name);
            }
        }
        let cover = |tile: &Array| {
            Array::from_fn(&tile.shape, tile.dtype, |at| {
                match at.iter().zip(&limits).all(|(at, limit)| at < limit) {
                    true => tile.get(at).unwrap_or(0.0),
                    false => value,
                }
            })
        };
        let tiles = held.tiles.iter().map(cover).collect();
        let made = self.held(&held.shape, held.dtype, held.distribution.clone(), tiles);
        self.line(&format!(
            "{} = axe.mask {} at ({}) in ({}) else {other} : {}, {} -> {}",
            made.name,
            held.name,
            origins.join(", "),
            ends.join(", "),
            mlir(held.dtype),
            held.r#type(),
            made.r#type()
        ));
        made
    }

    fn through_shared(&mut self, held: &Held) -> Held {
        let &[rows, columns] = held.shape.as_slice() else {
            return held.clone();
        };
        let layout = shared(rows, columns, held.dtype.bytes() as i64, self.random);
        let storage = format!(
            "memref<{rows}x{columns}x{}, {layout}, #axe.space<shared>>",
            mlir(held.dtype)
        );
        let name = self.fresh();
        self.line(&format!("{name} = axe.alloc : {storage}"));
        self.line(&format!(
            "axe.copy {} to {name} : {} to {storage}",
            held.name,
            held.r#type()
        ));
        self.line("axe.barrier");
        let distribution = self.distribution(&held.shape);
        let made = self.held(&held.shape, held.dtype, distribution, held.tiles.clone());
        self.line(&format!(
            "{} = axe.copy {name} : {storage} -> {}",
            made.name,
            made.r#type()
        ));
        made
    }

    /// A loop that carries the tensor.
    fn repeat(&mut self, held: &Held) -> Held {
        let turns = self.random.range(1, 3);
        let add = self.constant(1.0, held.dtype);
        let [low, high, one] = [0, turns, 1].map(|number| {
            let name = self.fresh();
            self.line(&format!("{name} = arith.constant {number} : index"));
            name
        });
        let dtype = held.dtype;
        let count = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                (0..turns).fold(tile.get(at).unwrap_or(0.0), |value, _| {
                    wrap(value + 1.0, dtype)
                })
            })
        };
        let tiles = held.tiles.iter().map(count).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (suffix, scalar) = (
            if dtype.unit_roundoff().is_some() {
                "f"
            } else {
                "i"
            },
            mlir(dtype),
        );
        let r#type = held.r#type();
        self.line(&format!(
            "{} = scf.for %i = {low} to {high} step {one} iter_args(%t = {}) -> ({type}) {{",
            made.name, held.name
        ));
        self.line(&format!("  %u = axe.map ins(%t : {type}) -> {type} {{"));
        self.line(&format!("  ^bb0(%e: {scalar}):"));
        self.line(&format!("    %s = arith.add{suffix} %e, {add} : {scalar}"));
        self.line(&format!("    axe.yield %s : {scalar}"));
        self.line("  }");
        self.line(&format!("  scf.yield %u : {type}"));
        self.line("}");
        made
    }
}

/// Integers wrap; other types round.
fn wrap(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::I8 => f64::from(value as i64 as i8),
        DType::I16 => f64::from(value as i64 as i16),
        DType::I32 => f64::from(value as i64 as i32),
        DType::I64 => value as i64 as f64,
        _ => round(value, dtype),
    }
}

/// Where the tiles of a matrix start.
struct Grid {
    rows: i64,
    columns: i64,
    tile: [i64; 2],
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

/// A random chain.
#[must_use]
pub fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    let threads = random.pick(&[32, 64, 128, 256]);
    let odd = random.once_in(4);
    let extents: &[i64] = if odd {
        &[1, 3, 6, 12, 20]
    } else {
        &[8, 16, 32, 64]
    };
    let tile = [
        random.pick(extents),
        random.pick(&[8, 16, 32, 64, if odd { 24 } else { 128 }]),
    ];
    let ragged = |tile: i64, random: &mut Random| match random.below(3) {
        0 => tile,
        1 => tile * 2,
        _ => tile + random.range(0, tile),
    };
    let grid = Grid {
        rows: ragged(tile[0], random),
        columns: ragged(tile[1], random),
        tile,
    };
    let dtype = match random.once_in(6) {
        true => random.pick(&FEW),
        false => random.pick(&ELEMENTS),
    };
    let input = {
        let mut source = Random::new(seed ^ 0x5eed);
        Array::from_fn(&[grid.rows, grid.columns], dtype, |_| {
            source.range(if dtype == DType::Bool { 0 } else { -8 }, 8) as f64
                * if dtype.unit_roundoff().is_some() {
                    0.25
                } else {
                    1.0
                }
        })
    };
    let dynamic = random.once_in(2);
    let mut chain = Chain {
        random,
        threads,
        body: String::new(),
        next: 0,
    };
    let mut held = load(&mut chain, &grid, &input, dynamic);
    for _ in 0..chain.random.range(1, 5) {
        held = chain.step(&held);
    }
    finish(chain, &grid, &held, input, dynamic, seed)
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
fn load(chain: &mut Chain<'_>, grid: &Grid, input: &Array, dynamic: bool) -> Held {
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
    chain.line(&format!(
        "{} = axe.copy %stage : {storage} -> {}",
        made.name,
        made.r#type()
    ));
    made
}

/// Stores the tile, transposed where the chain left it so.
fn finish(
    mut chain: Chain<'_>,
    grid: &Grid,
    held: &Held,
    input: Array,
    dynamic: bool,
    seed: u64,
) -> Case {
    let flipped = held.shape != grid.tile && held.shape == [grid.tile[1], grid.tile[0]];
    let mut expected = Array::from_fn(
        &if flipped {
            [grid.columns, grid.rows]
        } else {
            [grid.rows, grid.columns]
        },
        held.dtype,
        |_| 0.0,
    );
    for (origin, tile) in grid.origins().iter().zip(&held.tiles) {
        let origin = if flipped {
            [origin[1], origin[0]]
        } else {
            *origin
        };
        for row in 0..held.shape[0] {
            for column in 0..held.shape[1] {
                expected.set(
                    &[origin[0] + row, origin[1] + column],
                    tile.get(&[row, column]).unwrap_or(0.0),
                );
            }
        }
    }
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
