//! Random ways to hold a tensor in the registers of a CTA, and to store one in shared memory.

use crate::random::Random;
use std::fmt::Write;

/// Where a digit of an index is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By threads.
    Thread,
    /// By registers.
    Register,
}

/// A digit of an index.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    /// How many values it takes.
    pub extent: i64,
    /// Where.
    pub place: Place,
    /// Threads or registers from one value to the next.
    pub stride: i64,
}

/// How a tensor is held: digits of each dimension, and copies.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Outermost digit first.
    pub dims: Vec<Vec<Digit>>,
    /// Copies: how many, and threads from one to the next.
    pub copies: Vec<(i64, i64)>,
}

/// The prime factors of a number, each a digit; sometimes joined.
fn digits(mut extent: i64, random: &mut Random) -> Vec<i64> {
    let mut factors = Vec::new();
    for prime in [2, 3, 5, 7] {
        while extent % prime == 0 {
            factors.push(prime);
            extent /= prime;
        }
    }
    if extent > 1 {
        factors.push(extent);
    }
    while factors.len() > 1 && !random.once_in(3) {
        let at = random.below(factors.len() - 1);
        let joined = factors.remove(at);
        factors[at] *= joined;
    }
    factors
}

impl Distribution {
    /// A random distribution over `threads` threads, a power of two, with at most `registers` registers.
    #[must_use]
    pub fn random(shape: &[i64], threads: i64, registers: i64, random: &mut Random) -> Self {
        let mut best = None;
        for _ in 0..64 {
            let made = Self::attempt(shape, threads, random);
            let used = made.registers();
            if used <= registers {
                return made;
            }
            if best
                .as_ref()
                .is_none_or(|best: &Self| used < best.registers())
            {
                best = Some(made);
            }
        }
        best.unwrap_or(Self {
            dims: vec![Vec::new(); shape.len()],
            copies: Vec::new(),
        })
    }

    fn attempt(shape: &[i64], threads: i64, random: &mut Random) -> Self {
        let mut dims: Vec<Vec<Digit>> = shape
            .iter()
            .map(|&extent| {
                let digit = |extent| Digit {
                    extent,
                    place: Place::Register,
                    stride: 0,
                };
                digits(extent, random).into_iter().map(digit).collect()
            })
            .collect();
        let mut order: Vec<(usize, usize)> = dims
            .iter()
            .enumerate()
            .flat_map(|(dim, digits)| (0..digits.len()).map(move |at| (dim, at)))
            .collect();
        if random.once_in(2) {
            // As kernels do: the last dimension's last digits first.
            order.reverse();
        } else {
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
        }
        // Sometimes the first digit is a vector in registers.
        let vector = random.once_in(2);
        let (mut thread, mut register) = (1, 1);
        for (turn, &(dim, at)) in order.iter().enumerate() {
            let digit = &mut dims[dim][at];
            let power = digit.extent & (digit.extent - 1) == 0;
            let fits = power && thread * digit.extent <= threads;
            if fits && !(vector && turn == 0) && !random.once_in(6) {
                (digit.place, digit.stride) = (Place::Thread, thread);
                thread *= digit.extent;
            } else {
                (digit.place, digit.stride) = (Place::Register, register);
                register *= digit.extent;
            }
        }
        let copies = match threads / thread {
            1 => Vec::new(),
            left if random.once_in(4) => vec![(left / 2, thread)]
                .into_iter()
                .filter(|copy| copy.0 > 1)
                .collect(),
            left => vec![(left, thread)],
        };
        Self { dims, copies }
    }

    /// Registers of each thread.
    #[must_use]
    pub fn registers(&self) -> i64 {
        let digits = self.dims.iter().flatten();
        digits
            .filter(|digit| digit.place == Place::Register)
            .map(|digit| digit.extent)
            .product()
    }

    /// What a reduction along `dim` leaves: its threads hold copies, and the other registers are dense.
    #[must_use]
    pub fn reduced(&self, dim: usize) -> Self {
        let mut made = self.clone();
        let gone = made.dims.remove(dim);
        let threads = gone.iter().filter(|digit| digit.place == Place::Thread);
        made.copies
            .extend(threads.map(|digit| (digit.extent, digit.stride)));
        let mut registers: Vec<&mut Digit> = made
            .dims
            .iter_mut()
            .flatten()
            .filter(|digit| digit.place == Place::Register)
            .collect();
        registers.sort_by_key(|digit| digit.stride);
        let mut next = 1;
        for digit in registers {
            digit.stride = next;
            next *= digit.extent;
        }
        made
    }

    /// The same threads, with registers numbered in another order.
    #[must_use]
    pub fn renamed(&self, random: &mut Random) -> Self {
        let mut made = self.clone();
        let digits = made.dims.iter_mut().flatten();
        let mut registers: Vec<&mut Digit> = digits
            .filter(|digit| digit.place == Place::Register)
            .collect();
        for at in (1..registers.len()).rev() {
            registers.swap(at, random.below(at + 1));
        }
        let mut next = 1;
        for digit in registers {
            digit.stride = next;
            next *= digit.extent;
        }
        made
    }

    /// With dimensions in another order.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        Self {
            dims: order.iter().map(|&dim| self.dims[dim].clone()).collect(),
            copies: self.copies.clone(),
        }
    }
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut extents, mut strides) = (Vec::new(), Vec::new());
        for digit in self.dims.iter().flatten() {
            extents.push(digit.extent.to_string());
            let axis = if digit.place == Place::Thread {
                "thread"
            } else {
                "reg"
            };
            strides.push(format!("{}@{axis}", digit.stride));
        }
        if extents.is_empty() {
            extents.push("1".into());
            strides.push("0@reg".into());
        }
        let mut text = format!(
            "#axe.layout<S[({}) : ({})]",
            extents.join(", "),
            strides.join(", ")
        );
        if !self.copies.is_empty() {
            let copies: Vec<_> = self.copies.iter().map(|copy| copy.0.to_string()).collect();
            let apart: Vec<_> = self
                .copies
                .iter()
                .map(|copy| format!("{}@thread", copy.1))
                .collect();
            let _ = write!(
                text,
                " + R[({}) : ({})]",
                copies.join(", "),
                apart.join(", ")
            );
        }
        write!(f, "{text}>")
    }
}

/// A random layout of shared memory for a matrix.
#[must_use]
pub fn shared(rows: i64, columns: i64, bytes: i64, random: &mut Random) -> String {
    let row_bytes = columns * bytes;
    match random.below(4) {
        0 => format!(
            "#axe.layout<S[({rows}, {columns}) : ({}, 1)]>",
            columns + 16 / bytes
        ),
        1 => format!("#axe.layout<S[({rows}, {columns}) : (1, {rows})]>"),
        2 if matches!(row_bytes, 64 | 128) && bytes <= 4 => {
            let (bits, base) = ((row_bytes / 16).ilog2(), (16 / bytes).ilog2());
            format!("#axe.layout<Sw<{bits}, {base}, 3> o S[({rows}, {columns}) : ({columns}, 1)]>")
        }
        _ => format!("#axe.layout<S[({rows}, {columns}) : ({columns}, 1)]>"),
    }
}
