//! Matrix products by `wgmma`: which instructions each warpgroup issues, on which shared memory and registers.
//!
//! The accumulator's fragment decides who computes what: it falls into blocks of 64 x 8, and an instruction
//! takes a run of them. Where A and B are follows from their layouts: the slice that an instruction reads
//! is grouped as the descriptor's canonical layouts are, and the strides of its blocks are the descriptor's
//! offsets. No list of known tile shapes takes part.

mod accumulators;
mod check;
mod operand;
mod order;
mod text;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

pub use text::{Inline, Start};

use super::Decline;
use crate::facts::wgmma::{ADDRESS_BYTES, Major, Strides, Types, UNIT_BYTES, Wgmma};
use crate::fragment::Fragment;
use accumulators::Blocks;
use axe_layout::Layout;
use axe_passes::dispatch::sequence;
use operand::Tile;
use order::Order;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An operand in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// Its layout on the axis `m`, in elements from the tile's base, with its swizzle.
    pub layout: &'a Layout,
    /// Its shape: `[M, K]` of A and `[N, K]` of B, or `[K, M]` and `[K, N]` when `k_first`.
    pub shape: [i64; 2],
    /// Whether the contracted dimension is the first.
    pub k_first: bool,
}

/// Operand A.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// In shared memory.
    Shared(Matrix<'a>),
    /// In registers of the scope that computes, shape `[M, K]`.
    Registers(&'a Fragment),
}

/// `D[m, n] += A[m, k] * B[n, k]` of a scope of whole warpgroups.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Element types.
    pub types: Types,
    /// A.
    pub a: Operand<'a>,
    /// B.
    pub b: Matrix<'a>,
    /// The accumulators, shape `[M, N]`, on the scope's threads.
    pub d: &'a Fragment,
}

/// `(warpgroup / divisor mod modulus) * bytes`, the warpgroup counted within the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The divisor of the warpgroup's number.
    pub divisor: i64,
    /// The modulus.
    pub modulus: i64,
    /// Bytes of shared memory that one step moves; a multiple of 16.
    pub bytes: i64,
}

/// How descriptors of an operand in shared memory are made: `strides.descriptor(address)`, where the address is
/// the tile's base + the sum of `terms` + the instruction's offset.
///
/// The base must be aligned to `strides.swizzle.alignment()` bytes: 16 without a swizzle, 256, 512 or 1024
/// with 32, 64 or 128 bytes. So must what a caller adds to it, as the offset of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Everything but the address.
    pub strides: Strides,
    /// The warpgroup's part of the address; empty when all read the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<Term>,
}

/// Where A comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Source {
    /// Shared memory.
    Shared(Shared),
    /// Registers.
    Registers,
}

/// What an instruction takes as A.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum InstructionA {
    /// Bytes from the tile's base.
    Offset(i64),
    /// Registers of A's fragment, in the instruction's order: `4 / element bytes` share a 32-bit register.
    Registers(#[serde(with = "sequence")] Vec<i64>),
}

/// One instruction of every warpgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Its step along the contracted dimension; the first may start from zero.
    #[serde(rename = "k")]
    pub step: usize,
    /// A.
    pub a: InstructionA,
    /// B: bytes from the tile's base.
    pub b: i64,
    /// Registers of D's fragment, in the instruction's order.
    #[serde(with = "sequence")]
    pub d: Vec<i64>,
}

/// The instructions of each warpgroup, in order of issue: steps of k outermost, so that successive ones are
/// independent where a warpgroup has several; then blocks of 64 rows, then runs of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WgmmaPlan {
    /// The instruction.
    pub atom: Wgmma,
    /// Where A comes from.
    pub a: Source,
    /// Where B comes from.
    pub b: Shared,
    /// Steps of k.
    pub steps: usize,
    /// Registers (elements) of D's fragment, each in one instruction of each step.
    pub registers: i64,
    /// One after the other.
    pub instructions: Vec<Instruction>,
}

impl Shared {
    /// Checks that the descriptor's fields hold the strides, and an address the terms.
    fn check_fields(&self) -> Result<(), Decline> {
        let fits = |bytes: &i64| (0..ADDRESS_BYTES).contains(bytes) && bytes % UNIT_BYTES == 0;
        let strides = [self.strides.leading, self.strides.stride];
        let mut terms = self.terms.iter();
        let digit = |term: &Term| {
            fits(&term.bytes)
                && (1..=32).contains(&term.divisor)
                && (1..=32).contains(&term.modulus)
        };
        match strides.iter().all(fits) && terms.all(digit) {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "expected multiples of {UNIT_BYTES} below {ADDRESS_BYTES} bytes, got {self}"
            ))),
        }
    }

    /// The sum of the terms for a warpgroup, in bytes.
    #[must_use]
    pub fn warpgroup(&self, warpgroup: i64) -> i64 {
        let value =
            |term: &Term| warpgroup / term.divisor.max(1) % term.modulus.max(1) * term.bytes;
        self.terms.iter().map(value).sum()
    }
}

impl WgmmaPlan {
    /// The plan with the widest instruction that the accumulators and B's layout allow, checked by
    /// [`WgmmaPlan::check`].
    ///
    /// # Errors
    /// Types without an instruction; accumulators that are not the instruction's; shapes that do not fit
    /// together; a layout that no descriptor expresses (strides that are not even, rows of another length
    /// than the swizzle's, rows of m or n for other types than 16-bit ones, offsets of more than 18 bits); A in
    /// registers that are not the instruction's; warpgroups that would need different instructions.
    pub fn new(product: &Product<'_>) -> Result<Self, Decline> {
        if !product.types.is_valid() {
            return Err(Decline::new(format!(
                "there is no wgmma of types {}",
                product.types
            )));
        }
        let blocks = Blocks::new(product.d)?;
        let k = contracted(product)?;
        let mut reason = None;
        for n in product.types.columns() {
            let atom = Wgmma {
                types: product.types,
                n,
            };
            let Some(runs) = blocks.runs(n) else { continue };
            match Self::with(atom, product, &runs, k) {
                Ok(plan) => return plan.check(product).map(|()| plan),
                Err(decline) => reason = reason.or(Some(decline)),
            }
        }
        Err(reason.unwrap_or_else(|| {
            Decline::new(
                "D: no number of columns of the instruction divides what a warpgroup holds",
            )
        }))
    }

    /// Checks a plan that someone wrote: as [`WgmmaPlan::check`], and the instruction's limits.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(&self, product: &Product<'_>) -> Result<(), Decline> {
        let types = self.atom.types;
        if types != product.types || !types.is_valid() {
            return Err(Decline::new(format!(
                "expected an instruction of types {}, got {types}",
                product.types
            )));
        }
        if !types.columns().any(|n| n == self.atom.n) {
            return Err(Decline::new(format!(
                "there is no {}",
                self.atom.mnemonic()
            )));
        }
        let steps = contracted(product)? / types.k();
        let planned = (i64::try_from(self.steps), self.registers);
        if planned != (Ok(steps), product.d.registers()) {
            return Err(Decline::new(format!(
                "expected {steps} steps of k and {} registers of D, got {} and {}",
                product.d.registers(),
                self.steps,
                self.registers
            )));
        }
        let a_is_shared = matches!(product.a, Operand::Shared(_));
        let shared = match &self.a {
            Source::Shared(shared) if a_is_shared => Some(shared),
            Source::Registers if !a_is_shared => None,
            _ => return Err(Decline::new("A is read from where it is not")),
        };
        for operand in shared.into_iter().chain([&self.b]) {
            operand.check_fields()?;
            if operand.strides.major == Major::Mn && !types.may_transpose() {
                return Err(Decline::new(format!(
                    "{} allows rows of k alone",
                    types.a.ptx()
                )));
            }
        }
        self.check_issue(a_is_shared)?;
        self.check(product)
    }

    /// Checks what the instructions take, one by one.
    fn check_issue(&self, a_is_shared: bool) -> Result<(), Decline> {
        let place = |bytes: i64| (0..ADDRESS_BYTES).contains(&bytes) && bytes % UNIT_BYTES == 0;
        for instruction in &self.instructions {
            let a = match &instruction.a {
                InstructionA::Offset(bytes) => a_is_shared && place(*bytes),
                InstructionA::Registers(_) => !a_is_shared,
            };
            if !a || !place(instruction.b) || instruction.step >= self.steps {
                return Err(Decline::new(format!(
                    "expected A as the plan says, offsets that are multiples of {UNIT_BYTES} below {ADDRESS_BYTES} bytes and steps below {}, got {instruction:?}",
                    self.steps
                )));
            }
        }
        Ok(())
    }

    fn with(
        atom: Wgmma,
        product: &Product<'_>,
        runs: &[accumulators::Run],
        k: i64,
    ) -> Result<Self, Decline> {
        let steps = k / atom.types.k();
        let issued = || (0..steps).flat_map(|step| runs.iter().map(move |run| (step, run)));
        let order = Order::of(product)?;
        let b = Tile::new("B", &product.b, atom.types)?.in_order(&order)?;
        let reads: Vec<Vec<_>> = issued()
            .map(|(step, run)| run.origins.iter().map(|&(_, n)| (n, step)).collect())
            .collect();
        let (b, b_offsets) = b.read(&reads, atom.n)?;
        let (source, a_parts) = match product.a {
            Operand::Shared(matrix) => {
                let reads: Vec<Vec<_>> = issued()
                    .map(|(step, run)| run.origins.iter().map(|&(m, _)| (m, step)).collect())
                    .collect();
                let tile = Tile::new("A", &matrix, atom.types)?;
                let (shared, offsets) = tile.read(&reads, crate::facts::wgmma::M)?;
                let offsets = offsets.into_iter().map(InstructionA::Offset).collect();
                (Source::Shared(shared), offsets)
            }
            Operand::Registers(fragment) => {
                let held = accumulators::Held::new(fragment);
                let parts: Result<Vec<_>, Decline> = issued()
                    .map(|(step, run)| {
                        held.block(atom, &run.origins, (step * atom.types.k(), &order))
                    })
                    .map(|registers| registers.map(InstructionA::Registers))
                    .collect();
                (Source::Registers, parts?)
            }
        };
        let instructions = issued()
            .zip(a_parts)
            .zip(b_offsets)
            .map(|(((step, run), a), b)| Instruction {
                step: usize::try_from(step).unwrap_or(0),
                a,
                b,
                d: run.registers.clone(),
            })
            .collect();
        Ok(Self {
            atom,
            a: source,
            b,
            steps: usize::try_from(steps).unwrap_or(0),
            registers: product.d.registers(),
            instructions,
        })
    }
}

/// The contracted extent, when all shapes fit together.
fn contracted(product: &Product<'_>) -> Result<i64, Decline> {
    let oriented = |matrix: &Matrix<'_>| match (matrix.k_first, matrix.shape) {
        (false, [mn, k]) | (true, [k, mn]) => [mn, k],
    };
    let [n, k] = oriented(&product.b);
    let [m, k_of_a] = match product.a {
        Operand::Shared(matrix) => oriented(&matrix),
        Operand::Registers(fragment) => match *fragment.shape() {
            [m, k] => [m, k],
            _ => return Err(Decline::new("A: expected a matrix in registers")),
        },
    };
    if k != k_of_a || *product.d.shape() != [m, n] {
        return Err(Decline::new(format!(
            "expected D[m, n] += A[m, k] * B[n, k], got {:?}, {:?} and {:?}",
            product.d.shape(),
            [m, k_of_a],
            [n, k]
        )));
    }
    let step = product.types.k();
    if k <= 0 || k % step != 0 {
        return Err(Decline::new(format!(
            "expected k in steps of {step} (32 bytes), got {k}"
        )));
    }
    if let Operand::Registers(fragment) = product.a
        && fragment.threads() != product.d.threads()
    {
        return Err(Decline::new(format!(
            "A is on {} threads and D on {}",
            fragment.threads(),
            product.d.threads()
        )));
    }
    Ok(k)
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Strides {
            major,
            swizzle,
            leading,
            stride,
        } = self.strides;
        write!(
            f,
            "{major:?}-major, swizzle {swizzle}, leading {leading} B, stride {stride} B"
        )?;
        for term in &self.terms {
            write!(
                f,
                " + (g / {} mod {}) * {} B",
                term.divisor, term.modulus, term.bytes
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for WgmmaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} x {} a warpgroup",
            self.instructions.len(),
            self.atom.mnemonic()
        )?;
        match &self.a {
            Source::Shared(shared) => writeln!(f, "A: {shared}")?,
            Source::Registers => writeln!(f, "A: registers")?,
        }
        writeln!(f, "B: {}", self.b)?;
        for Instruction { step, a, b, d } in &self.instructions {
            let a = match a {
                InstructionA::Offset(bytes) => format!("[A + {bytes}]"),
                InstructionA::Registers(registers) => {
                    format!("a[{}..]", registers.first().unwrap_or(&0))
                }
            };
            let first = d.first().unwrap_or(&0);
            writeln!(f, "k{step}: d[{first}..] += {a} * [B + {b}]")?;
        }
        Ok(())
    }
}
