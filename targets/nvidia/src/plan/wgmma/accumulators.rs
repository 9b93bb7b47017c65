//! Register tensors as the instruction's fragments.

use super::Decline;
use super::order::Order;
use crate::facts::wgmma::{Accumulator, Element, M, Types, Wgmma};
use crate::fragment::Fragment;
use crate::vocabulary::WARPGROUP;
use std::collections::HashMap;

/// Columns of the smallest instruction.
const COLUMNS: i64 = 8;

/// The accumulators that one instruction updates: registers in its order, and for each warpgroup the row and
/// column of the first.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub registers: Vec<i64>,
    pub origins: Vec<(i64, i64)>,
}

/// A fragment as blocks of 64 x 8, the same registers in each warpgroup; in order of warpgroup 0's rows, then
/// its columns.
pub(super) struct Blocks(Vec<Run>);

/// Which register of the first thread of each warpgroup holds an element, and the fragment to compare with.
pub(super) struct Held<'a> {
    fragment: &'a Fragment,
    of_warpgroup: Vec<HashMap<(i64, i64), i64>>,
}

impl<'a> Held<'a> {
    pub(super) fn new(fragment: &'a Fragment) -> Self {
        let of_warpgroup = (0..fragment.threads() / WARPGROUP)
            .map(|warpgroup| {
                let mut held = HashMap::new();
                for register in 0..fragment.registers() {
                    if let Some([row, column]) =
                        fragment.index(warpgroup * WARPGROUP, register).as_deref()
                    {
                        held.entry((*row, *column)).or_insert(register);
                    }
                }
                held
            })
            .collect();
        Self {
            fragment,
            of_warpgroup,
        }
    }

    /// The registers that hold the instruction's A at the rows of `origins` and columns from `k` on, in their order.
    pub(super) fn block(
        &self,
        atom: Wgmma,
        origins: &[(i64, i64)],
        (k, order): (i64, &Order),
    ) -> Result<Vec<i64>, Decline> {
        let layout = atom.a().map_err(|error| Decline::new(error.to_string()))?;
        let atom = Fragment::new(&layout, &[M, atom.types.k()], WARPGROUP)?;
        let mut found = None;
        for (warpgroup, &(row, _)) in (0..).zip(origins) {
            let registers = self
                .registers(warpgroup, &atom, (row, k), order)
                .ok_or_else(|| {
                    Decline::new(format!(
                        "A: rows from {row}, columns from {k} are not the instruction's fragment in warpgroup {warpgroup}"
                    ))
                })?;
            if found.get_or_insert_with(|| registers.clone()) != &registers {
                return Err(Decline::new(format!(
                    "A: warpgroup {warpgroup} would use other registers than warpgroup 0"
                )));
            }
        }
        found.ok_or_else(|| Decline::new("there is no warpgroup"))
    }

    /// The registers in which a warpgroup holds the block at `origin` as `atom` has it.
    fn registers(
        &self,
        warpgroup: i64,
        atom: &Fragment,
        origin: (i64, i64),
        order: &Order,
    ) -> Option<Vec<i64>> {
        let held = self.of_warpgroup.get(usize::try_from(warpgroup).ok()?)?;
        let expected = |thread: i64, i: i64| match atom.index(thread, i)?.as_slice() {
            [row, column] => Some((origin.0 + row, order.at(origin.1 + column))),
            _ => None,
        };
        let registers: Option<Vec<i64>> = (0..atom.registers())
            .map(|i| held.get(&expected(0, i)?).copied())
            .collect();
        let registers = registers?;
        let same = (0..WARPGROUP).all(|thread| {
            (0..).zip(&registers).all(|(i, &register)| {
                let found = self
                    .fragment
                    .index(warpgroup * WARPGROUP + thread, register);
                match (found.as_deref(), expected(thread, i)) {
                    (Some(&[row, column]), Some(at)) => (row, column) == at,
                    _ => false,
                }
            })
        });
        same.then_some(registers)
    }
}

impl Blocks {
    pub(super) fn new(d: &Fragment) -> Result<Self, Decline> {
        if d.shape().len() != 2 {
            return Err(Decline::new(format!(
                "D: expected a matrix, got rank {}",
                d.shape().len()
            )));
        }
        if d.threads() <= 0 || d.threads() % WARPGROUP != 0 {
            return Err(Decline::new(format!(
                "expected whole warpgroups of {WARPGROUP} threads, got {} threads",
                d.threads()
            )));
        }
        // The place of a register in D does not depend on the operands' type.
        let types = Types {
            a: Element::F16,
            b: Element::F16,
            d: Accumulator::F32,
        };
        let layout = Wgmma { types, n: COLUMNS }
            .d()
            .map_err(|error| Decline::new(error.to_string()))?;
        let atom = Fragment::new(&layout, &[M, COLUMNS], WARPGROUP)?;
        let held = Held::new(d);
        let mut blocks: Vec<Run> = Vec::new();
        let mut taken = vec![false; usize::try_from(d.registers()).unwrap_or(0)];
        for register in 0..d.registers() {
            let at = usize::try_from(register).unwrap_or(usize::MAX);
            if taken.get(at).copied().unwrap_or(true) {
                continue;
            }
            let block = block_from(d, &held, &atom, register)?;
            for &register in &block.registers {
                match usize::try_from(register)
                    .ok()
                    .and_then(|at| taken.get_mut(at))
                {
                    Some(taken) if !*taken => *taken = true,
                    _ => {
                        return Err(Decline::new(format!(
                            "D: register {register} would belong to two blocks"
                        )));
                    }
                }
            }
            blocks.push(block);
        }
        blocks.sort_by_key(|block| block.origins.first().copied());
        Ok(Self(blocks))
    }

    /// Runs of `n` columns, when the blocks fall into such; `None` otherwise.
    pub(super) fn runs(&self, n: i64) -> Option<Vec<Run>> {
        let count = usize::try_from(n / COLUMNS)
            .ok()
            .filter(|&count| count > 0)?;
        let chunks = self.0.chunks(count);
        chunks.map(|blocks| fuse(blocks, count)).collect()
    }
}

/// The block whose first register is `register`, in every warpgroup.
fn block_from(
    d: &Fragment,
    held: &Held<'_>,
    atom: &Fragment,
    register: i64,
) -> Result<Run, Decline> {
    let not_one = |warpgroup: i64| {
        Decline::new(format!(
            "D: register {register} of warpgroup {warpgroup} begins no 64 x 8 block of the instruction"
        ))
    };
    let mut run: Option<Run> = None;
    for warpgroup in 0..d.threads() / WARPGROUP {
        let Some(&[row, column]) = d.index(warpgroup * WARPGROUP, register).as_deref() else {
            return Err(not_one(warpgroup));
        };
        let registers = held
            .registers(warpgroup, atom, (row, column), &Order::default())
            .filter(|registers| registers.first() == Some(&register))
            .ok_or_else(|| not_one(warpgroup))?;
        let run = run.get_or_insert_with(|| Run {
            registers: registers.clone(),
            origins: Vec::new(),
        });
        if run.registers != registers {
            return Err(Decline::new(format!(
                "D: warpgroup {warpgroup} would use other registers than warpgroup 0"
            )));
        }
        run.origins.push((row, column));
    }
    run.ok_or_else(|| not_one(0))
}

/// `count` blocks side by side in every warpgroup as one run.
fn fuse(blocks: &[Run], count: usize) -> Option<Run> {
    let first = blocks.first().filter(|_| blocks.len() == count)?;
    for (at, block) in (0..).zip(blocks) {
        let beside = |(&(row, column), &(m, n)): (&(i64, i64), &(i64, i64))| {
            row == m && column == n + at * COLUMNS
        };
        if !block.origins.iter().zip(&first.origins).all(beside) {
            return None;
        }
    }
    Some(Run {
        registers: blocks
            .iter()
            .flat_map(|block| &block.registers)
            .copied()
            .collect(),
        origins: first.origins.clone(),
    })
}
