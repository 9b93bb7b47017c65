//! Kernels that load a tile, change it in several steps, and store it.

use crate::array::{Array, literal, mlir, round};
use crate::case::{Case, ELEMENTS, FEW};
use crate::layouts::Distribution;
use crate::random::Random;
use axe_package::DType;
use std::fmt::Write;

mod elements;
mod few;
mod places;
mod reduce;
mod tiles;

use tiles::{Grid, finish, load};

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
