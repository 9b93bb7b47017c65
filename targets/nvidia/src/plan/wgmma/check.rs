//! The plan against a model of the hardware, element by element.

use super::order::Order;
use super::{Decline, InstructionA, Matrix, Operand, Product, Shared, Source, WgmmaPlan};
use crate::facts::wgmma::Major;
use axe_layout::{Axis, Layout};

/// What the hardware makes of the 64 bits of a descriptor (PTX ISA 9.7.15.5.1.2, "Shared Memory Matrix
/// Layout" and "Matrix Descriptor Format"), in bytes.
struct Descriptor {
    start: i64,
    leading: i64,
    stride: i64,
    /// Address bits from 4 on that the bits from 7 on are xored into.
    swizzled_bits: u32,
}

impl Descriptor {
    fn decode(bits: u64) -> Self {
        let field = |from: u32| i64::try_from(bits >> from & 0x3fff).unwrap_or(0) * 16;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            swizzled_bits: [0, 3, 2, 1][(bits >> 62 & 3) as usize],
        }
    }

    /// The address of byte `byte` of line `line`: a line is a row of M or N whose bytes run along K, or, for the
    /// other major order, a row of K whose bytes run along M or N.
    fn address(&self, major: Major, line: i64, byte: i64) -> i64 {
        let width = 16 << self.swizzled_bits;
        let (group, row) = (line / 8, line % 8);
        let (across, within) = (byte / width, byte % width);
        let (by_group, by_run) = match (major, self.swizzled_bits) {
            (Major::K, _) | (Major::Mn, 1..) => (self.stride, self.leading),
            (Major::Mn, 0) => (self.leading, self.stride),
        };
        let linear = self.start + group * by_group + row * width + across * by_run + within;
        let mask = (1 << self.swizzled_bits) - 1;
        (linear ^ (linear >> 7 & mask) << 4) & 0x3_ffff
    }
}

/// Where a thread's accumulator `i` of an instruction is, from the instruction's first row and column
/// (9.7.15.5.1.1, figure of D).
fn place_in_d(thread: i64, i: i64) -> (i64, i64) {
    let row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    (row, i / 4 * 8 + thread % 4 * 2 + i % 2)
}

/// Where a thread's element `i` of A in registers is, `packed` to a register (9.7.15.5.1.1, figures of A).
fn place_in_a(thread: i64, i: i64, packed: i64) -> (i64, i64) {
    let (register, part) = (i / packed, i % packed);
    let row = thread / 32 * 16 + thread % 32 / 4 + register % 2 * 8;
    (row, register / 2 * 4 * packed + thread % 4 * packed + part)
}

/// Rows and columns of D that one instruction of one warpgroup computes, by the instruction's numbers.
struct Computed {
    rows: Vec<i64>,
    columns: Vec<i64>,
}

impl WgmmaPlan {
    /// Checks by enumeration: every register of D gets, over all steps, each product `A[m, k] * B[n, k]` of its
    /// element once, as the hardware reads operands through the descriptors, with a base at an odd multiple
    /// of the alignment that [`Shared`] asks for.
    ///
    /// # Errors
    /// The first element for which that is not so.
    pub fn check(&self, product: &Product<'_>) -> Result<(), Decline> {
        let warpgroups = product.d.threads() / 128;
        let order = Order::of(product)?;
        let mut seen = vec![0u32; self.steps * usize::try_from(self.registers).unwrap_or(0)];
        for instruction in &self.instructions {
            for register in &instruction.d {
                let at = usize::try_from(*register).unwrap_or(usize::MAX);
                match at
                    .checked_mul(self.steps)
                    .and_then(|at| seen.get_mut(at + instruction.step))
                {
                    Some(times) => *times += 1,
                    None => return Err(Decline::new(format!("D has no register {register}"))),
                }
            }
        }
        if seen.iter().any(|&times| times != 1) {
            return Err(Decline::new(
                "a register of D is not in one instruction of each step",
            ));
        }
        for warpgroup in 0..warpgroups {
            let mut known: Option<(&[i64], Computed)> = None;
            for instruction in &self.instructions {
                if known.as_ref().is_none_or(|(d, _)| *d != instruction.d) {
                    let computed = self.computed(product, warpgroup, &instruction.d)?;
                    known = Some((&instruction.d, computed));
                }
                let Some((_, computed)) = &known else {
                    continue;
                };
                let k = i64::try_from(instruction.step).unwrap_or(0) * self.atom.types.k();
                self.check_a(
                    product,
                    warpgroup,
                    &instruction.a,
                    &computed.rows,
                    (k, &order),
                )?;
                self.check_shared(
                    "B",
                    &product.b,
                    &self.b,
                    instruction.b,
                    warpgroup,
                    &computed.columns,
                    (k, &order),
                )?;
            }
        }
        Ok(())
    }

    /// The element of D in each register, which must be `(row of the instruction's row, column of its column)`.
    fn computed(
        &self,
        product: &Product<'_>,
        warpgroup: i64,
        registers: &[i64],
    ) -> Result<Computed, Decline> {
        let n = usize::try_from(self.atom.n).unwrap_or(0);
        let (mut rows, mut columns) = (vec![-1; 64], vec![-1; n]);
        if registers.len() * 2 != n {
            return Err(Decline::new(
                "an instruction has another number of accumulators",
            ));
        }
        for thread in 0..128 {
            for (i, &register) in (0..).zip(registers) {
                let held = product.d.index(warpgroup * 128 + thread, register);
                let Some(&[m, n]) = held.as_deref() else {
                    return Err(Decline::new(format!(
                        "register {register} of D holds nothing"
                    )));
                };
                let (row, column) = place_in_d(thread, i);
                if !agree(&mut rows, row, m) || !agree(&mut columns, column, n) {
                    return Err(Decline::new(format!(
                        "register {register} of thread {thread} of warpgroup {warpgroup} holds D[{m}, {n}], not the instruction's element"
                    )));
                }
            }
        }
        Ok(Computed { rows, columns })
    }

    fn check_a(
        &self,
        product: &Product<'_>,
        warpgroup: i64,
        a: &InstructionA,
        rows: &[i64],
        (k, order): (i64, &Order),
    ) -> Result<(), Decline> {
        match (&self.a, a, &product.a) {
            (Source::Shared(shared), InstructionA::Offset(offset), Operand::Shared(matrix)) => {
                self.check_shared("A", matrix, shared, *offset, warpgroup, rows, (k, order))
            }
            (
                Source::Registers,
                InstructionA::Registers(registers),
                Operand::Registers(fragment),
            ) => {
                let packed = 4 / self.atom.types.a.bytes();
                let full = registers.len() == usize::try_from(4 * packed).unwrap_or(0);
                for thread in 0..128 {
                    for (i, &register) in (0..).zip(registers) {
                        let (row, column) = place_in_a(thread, i, packed);
                        let m = usize::try_from(row).ok().and_then(|row| rows.get(row));
                        let held = fragment.index(warpgroup * 128 + thread, register);
                        if !full
                            || held.as_deref()
                                != m.map(|&m| [m, order.at(k + column)])
                                    .as_ref()
                                    .map(|x| &x[..])
                        {
                            return Err(Decline::new(format!(
                                "register {register} of A in thread {thread} of warpgroup {warpgroup} holds {held:?}"
                            )));
                        }
                    }
                }
                Ok(())
            }
            _ => Err(Decline::new("A is not where the plan has it")),
        }
    }

    /// Row `lines[i]` and the k at place `k + j` of an operand is where the instruction reads its row `i`, column `j`.
    #[allow(clippy::too_many_arguments, reason = "one read, in full")]
    fn check_shared(
        &self,
        name: &str,
        matrix: &Matrix<'_>,
        shared: &Shared,
        offset: i64,
        warpgroup: i64,
        lines: &[i64],
        (k, order): (i64, &Order),
    ) -> Result<(), Decline> {
        let bytes = self.atom.types.a.bytes();
        let base = shared.strides.swizzle.alignment();
        let start = base + offset + shared.warpgroup(warpgroup);
        let descriptor = Descriptor::decode(shared.strides.descriptor(start));
        for (i, &line) in (0..).zip(lines) {
            for j in 0..self.atom.types.k() {
                let read = match shared.strides.major {
                    Major::K => descriptor.address(Major::K, i, j * bytes),
                    Major::Mn => descriptor.address(Major::Mn, j, i * bytes),
                };
                let own = order.at(k + j);
                let x = match (matrix.k_first, matrix.shape) {
                    (false, [_, columns]) => line * columns + own,
                    (true, [_, columns]) => own * columns + line,
                };
                let lives = base + address(matrix.layout, x)? * bytes;
                if read != lives {
                    return Err(Decline::new(format!(
                        "{name}: warpgroup {warpgroup} reads byte {read} for row {line}, k {}, which lives at {lives}",
                        own
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The element's address in the tile, swizzled.
fn address(layout: &Layout, x: i64) -> Result<i64, Decline> {
    let place = layout
        .origin(x)
        .map_err(|error| Decline::new(error.to_string()))?
        .get(Axis::M);
    Ok(layout
        .swizzle()
        .map_or(place, |swizzle| swizzle.apply(place)))
}

/// Notes that number `at` stands for `value`; false when it stands for another.
fn agree(known: &mut [i64], at: i64, value: i64) -> bool {
    match usize::try_from(at).ok().and_then(|at| known.get_mut(at)) {
        Some(slot) if *slot < 0 || *slot == value => {
            *slot = value;
            true
        }
        _ => false,
    }
}
