//! `ldmatrix` and `stmatrix`: 8 x 8 matrices of 16-bit elements between shared memory and the fragments of
//! matrix instructions (PTX ISA 9.7.14.5.15 and 9.7.14.5.16).

use super::Decline;
use super::copy::{Memory, Steps, Term, steps, thread_offset};
use crate::fragment::Fragment;
use crate::vocabulary::WARP;
use axe_layout::Axis;
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a row of a matrix: what one lane's address points to.
const ROW_BYTES: i64 = 16;

/// Matrices that each warp moves, `count` with one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixPlan {
    /// Matrices of one instruction: 1, 2 or 4.
    pub count: i64,
    /// Whether rows of memory are columns of the fragment.
    pub transposed: bool,
    /// Elements in a 32-bit register.
    pub packed: i64,
    /// The address, in elements, of the row that a thread points to.
    #[serde(rename = "thread")]
    pub terms: Vec<Term>,
    /// What each instruction adds to it.
    #[serde(with = "sequence")]
    pub offsets: Vec<i64>,
}

impl MatrixPlan {
    /// The plan that moves `fragment` to or from `memory`.
    ///
    /// # Errors
    /// Lanes and registers that are not a matrix's, rows that are not 16 aligned bytes, memory that may end inside.
    pub fn new(fragment: &Fragment, memory: Memory) -> Result<Self, Decline> {
        if memory.ends.iter().any(|&end| end != 0) {
            return Err(Decline::new("the box may reach outside its source"));
        }
        let packed = 4 / memory.element_bytes;
        if !matches!(packed, 1 | 2) || fragment.registers() % packed != 0 {
            return Err(Decline::new(format!(
                "expected elements of 2 or 4 bytes, got {}",
                memory.element_bytes
            )));
        }
        let (thread, register) = steps(fragment, memory.layout)?;
        let (transposed, row_step) = orientation(&thread, &register, packed)?;
        let offset_of = |register_number: i64| -> i64 {
            register
                .iter()
                .map(|(digit, step)| register_number / digit.stride % digit.extent * step)
                .sum()
        };
        let words: Vec<_> = (0..fragment.registers() / packed)
            .map(|word| offset_of(word * packed) + memory.layout.offset().get(Axis::M))
            .collect();
        let mut terms: Vec<_> = thread
            .iter()
            .filter(|(digit, _)| digit.stride >= WARP)
            .map(|(digit, step)| Term {
                divisor: digit.stride,
                modulus: digit.extent,
                step: *step,
            })
            .collect();
        terms.push(Term {
            divisor: 1,
            modulus: 8,
            step: row_step,
        });
        let plan = widest(&words, &terms, transposed, packed)?;
        plan.check_rows(memory, fragment.threads())?;
        plan.check(fragment, memory)?;
        Ok(plan)
    }

    /// The address of the row that a thread points to, before any swizzle and offset.
    #[must_use]
    pub fn row(&self, thread: i64) -> i64 {
        thread_offset(&self.terms, thread)
    }

    /// Every row starts at a multiple of 16 bytes and is not torn by the swizzle.
    fn check_rows(&self, memory: Memory, threads: i64) -> Result<(), Decline> {
        let row = ROW_BYTES / memory.element_bytes;
        let torn = memory
            .layout
            .swizzle()
            .is_some_and(|swizzle| (1 << swizzle.base()) < row);
        let aligned = memory.alignment % row == 0
            && self.offsets.iter().all(|offset| offset % row == 0)
            && (0..threads).all(|thread| self.row(thread) % row == 0);
        match aligned && !torn {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "expected rows of {row} elements at multiples of 16 bytes"
            ))),
        }
    }

    /// Checks a plan that someone wrote: as [`MatrixPlan::check`], and the instruction's limits.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(&self, fragment: &Fragment, memory: Memory) -> Result<(), Decline> {
        if memory.ends.iter().any(|&end| end != 0) {
            return Err(Decline::new("the box may reach outside its source"));
        }
        let instructions = i64::try_from(self.offsets.len()).unwrap_or(0);
        let moved = instructions
            .saturating_mul(self.count)
            .saturating_mul(self.packed);
        if !matches!(self.count, 1 | 2 | 4) || self.packed * memory.element_bytes != 4 {
            return Err(Decline::new(format!(
                "expected 1, 2 or 4 matrices of {} elements a register, got {} of {}",
                4 / memory.element_bytes,
                self.count,
                self.packed
            )));
        }
        if moved != fragment.registers() {
            return Err(Decline::new(format!(
                "the instructions move {moved} registers of {}",
                fragment.registers()
            )));
        }
        self.check_rows(memory, fragment.threads())?;
        self.check(fragment, memory)
    }

    /// Checks by enumeration: what the instructions bring to each register is its element.
    ///
    /// # Errors
    /// The first element for which that is not so.
    pub fn check(&self, fragment: &Fragment, memory: Memory) -> Result<(), Decline> {
        let swizzled = |address: i64| {
            memory
                .layout
                .swizzle()
                .map_or(address, |swizzle| swizzle.apply(address))
        };
        for thread in 0..fragment.threads() {
            let (warp, lane) = (thread / WARP * WARP, thread % WARP);
            for register in 0..fragment.registers() {
                let (word, part) = (register / self.packed, register % self.packed);
                let (instruction, matrix) = (word / self.count, word % self.count);
                let (row, column) = match self.transposed {
                    false => (lane / 4, lane % 4 * self.packed + part),
                    true => (lane % 4 * 2 + part, lane / 4),
                };
                let offset = usize::try_from(instruction)
                    .ok()
                    .and_then(|at| self.offsets.get(at));
                let address = self.row(warp + 8 * matrix + row) + offset.copied().unwrap_or(0);
                let got = swizzled(address) + column;
                let x = fragment
                    .linear(thread, register)
                    .ok_or_else(|| Decline::new("expected an element in every register"))?;
                let place = memory
                    .layout
                    .origin(x)
                    .map_err(|error| Decline::new(error.to_string()))?;
                if swizzled(place.get(Axis::M)) != got {
                    return Err(Decline::new(format!(
                        "register {register} of thread {thread} would hold another element than {x}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Whether the matrices are transposed, and the step from row to row of memory.
fn orientation(thread: &Steps, register: &Steps, packed: i64) -> Result<(bool, i64), Decline> {
    let lane = |stride: i64, extent: i64| {
        let found = thread
            .iter()
            .find(|(digit, _)| digit.stride == stride && digit.extent == extent);
        found.map(|(_, step)| *step)
    };
    let others = thread.iter().any(|(digit, _)| {
        digit.stride < WARP && !matches!((digit.stride, digit.extent), (1, 4) | (4, 8))
    });
    let (Some(column), Some(row), false) = (lane(1, 4), lane(4, 8), others) else {
        return Err(Decline::new("lanes do not hold 4 columns of 8 rows"));
    };
    let first = register
        .iter()
        .find(|(digit, _)| digit.stride == 1 && digit.extent % packed == 0)
        .map(|(_, step)| *step);
    match (first, packed) {
        (_, 1) if column == 1 => Ok((false, row)),
        (Some(1), 2) if column == 2 => Ok((false, row)),
        (Some(step), 2) if row == 1 && column == 2 * step => Ok((true, step)),
        _ => Err(Decline::new(
            "lanes and registers do not follow the rows of memory",
        )),
    }
}

/// As many matrices an instruction as the words' offsets allow: lanes 8 to 15, 16 to 23 and 24 to 31 point
/// to the rows of the second, third and fourth.
fn widest(
    words: &[i64],
    terms: &[Term],
    transposed: bool,
    packed: i64,
) -> Result<MatrixPlan, Decline> {
    for count in [4usize, 2, 1] {
        let Some(displacements) = displacements(words, count) else {
            continue;
        };
        let mut terms = terms.to_vec();
        for (at, step) in (0..).zip(displacements) {
            terms.push(Term {
                divisor: 8 << at,
                modulus: 2,
                step,
            });
        }
        return Ok(MatrixPlan {
            count: i64::try_from(count).unwrap_or(1),
            transposed,
            packed,
            terms,
            offsets: words.iter().step_by(count).copied().collect(),
        });
    }
    Err(Decline::new("there are no registers"))
}

/// The steps to the second and to the third matrix, when they are the same for each group of `count` words.
fn displacements(words: &[i64], count: usize) -> Option<Vec<i64>> {
    if words.is_empty() || !words.len().is_multiple_of(count) {
        return None;
    }
    let first = words.get(..count)?;
    let steps: Vec<_> = match first {
        [_] => vec![],
        [a, b] => vec![b - a],
        [a, b, c, d] if d - c == b - a => vec![b - a, c - a],
        _ => return None,
    };
    let same = |group: &[i64]| {
        group
            .iter()
            .zip(first)
            .all(|(x, y)| x - group[0] == y - first[0])
    };
    (steps.iter().all(|&step| step >= 0) && words.chunks(count).all(same)).then_some(steps)
}

impl fmt::Display for MatrixPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transposed = if self.transposed { ".trans" } else { "" };
        let row: Vec<_> = self.terms.iter().map(ToString::to_string).collect();
        writeln!(f, "row of thread t = {}", row.join(" + "))?;
        for (at, offset) in self.offsets.iter().enumerate() {
            writeln!(
                f,
                "w[{}..] <-> m8n8.x{}{transposed} [row + {offset}]",
                at as i64 * self.count,
                self.count
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::matrix::{M16N8K8, M16N8K16};
    use axe_layout::Layout;

    fn plan(
        fragment: &Layout,
        shape: &[i64],
        memory: &str,
        bytes: i64,
    ) -> Result<MatrixPlan, Decline> {
        let layout: Layout = memory.parse().unwrap();
        let fragment = Fragment::new(fragment, shape, 32).unwrap();
        MatrixPlan::new(
            &fragment,
            Memory {
                layout: &layout,
                alignment: 64,
                element_bytes: bytes,
                ends: &[],
                widest: i64::MAX,
            },
        )
    }

    #[test]
    fn fragments_of_mma_load_as_four_matrices() {
        let a = plan(
            &M16N8K16.a().unwrap(),
            &[16, 16],
            "Sw<3, 3, 3> o S[(16, 16) : (64, 1)]",
            2,
        )
        .unwrap();
        assert_eq!((a.count, a.transposed, a.offsets.len()), (4, false, 1));
        super::super::written(&a);
        let b = plan(&M16N8K16.b().unwrap(), &[8, 16], "S[(8, 16) : (64, 1)]", 2).unwrap();
        assert_eq!((b.count, b.transposed), (2, false));
        let tf32 = plan(&M16N8K8.a().unwrap(), &[16, 8], "S[(16, 8) : (32, 1)]", 4).unwrap();
        assert_eq!((tf32.count, tf32.packed), (4, 1));
    }

    #[test]
    fn the_other_major_order_loads_transposed() {
        let b = plan(&M16N8K16.b().unwrap(), &[8, 16], "S[(8, 16) : (1, 64)]", 2).unwrap();
        assert!(b.transposed);
        let tf32 = plan(&M16N8K8.b().unwrap(), &[8, 8], "S[(8, 8) : (1, 32)]", 4);
        assert!(tf32.is_err(), "{tf32:?}");
    }

    #[test]
    fn declines_say_what_is_in_the_way() {
        let reason = |fragment: &str, memory: &str| {
            plan(&fragment.parse().unwrap(), &[8, 8], memory, 2)
                .unwrap_err()
                .to_string()
        };
        let matrix = "S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]";
        assert!(reason(matrix, "S[(8, 8) : (60, 1)]").contains("16 bytes"));
        assert!(
            reason("S[(2, 32) : (1@reg, 1@lane)]", "S[(8, 8) : (8, 1)]")
                .contains("4 columns of 8 rows")
        );
        assert!(reason(matrix, "Sw<1, 1, 3> o S[(8, 8) : (64, 1)]").contains("16 bytes"));
    }
}
