//! A register tensor as its threads see it: which element each register of each thread holds.
//!
//! A layout on `lane`, `warp`, `warpgroup`, `thread` and `reg` is read as a layout on two axes: the
//! thread, counted within the scope (`lane + 32 warp + 128 warpgroup`), and the register. Where the
//! layout is unambiguous (no register holds two elements), the element that register `r` of thread `t`
//! holds is a sum of digits of `t` and of `r`: an expression that code can compute, and whose register
//! part is known when it is compiled.

use crate::plan::Decline;
use crate::vocabulary::{WARP, WARPGROUP};
use axe_layout::address::AddressMap;
use axe_layout::{Axis, Iter, Layout};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// More registers a thread than this are not a register tensor (PTX ISA: 255 of 32 bits; elements of
/// one byte share a register).
const MAX_REGISTERS: i64 = 1024;

/// What a digit is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The thread's number in the scope: known at run time.
    Thread,
    /// The register's number: known when compiled.
    Register,
}

/// `(number / stride) mod extent`, which counts `weight` elements along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digit {
    /// What it is read from.
    pub source: Source,
    /// The divisor.
    pub stride: i64,
    /// The modulus.
    pub extent: i64,
    /// The step along the dimension.
    pub weight: i64,
}

impl Digit {
    /// Its contribution to the index, for a thread and a register.
    #[must_use]
    pub fn value(&self, thread: i64, register: i64) -> i64 {
        let number = match self.source {
            Source::Thread => thread,
            Source::Register => register,
        };
        number / self.stride % self.extent * self.weight
    }
}

/// A register tensor of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    shape: Vec<i64>,
    threads: i64,
    registers: i64,
    first_thread: i64,
    dims: Vec<Vec<Digit>>,
    replicas: Vec<Iter>,
    /// The linear index in each register of each thread, thread-major; -1 where nothing is held.
    table: Vec<i64>,
}

impl Fragment {
    /// The fragment of `layout` for `shape`, held by a scope of `threads` threads.
    ///
    /// # Errors
    /// A decline that says what is in the way: another axis, a swizzle, a thread outside the scope, too many
    /// registers, a register that would hold two elements, an iter that straddles dimensions.
    pub fn new(layout: &Layout, shape: &[i64], threads: i64) -> Result<Self, Decline> {
        let fused = fuse(layout)?;
        let grouped = fused
            .group(shape)
            .map_err(|error| Decline::new(error.to_string()))?;
        let (thread, register) = (axis("thread")?, axis("reg")?);
        let (registers, first_thread) = extents(&fused, threads)?;
        let mut dims = Vec::new();
        for block in grouped.blocks() {
            dims.push(digits(block, thread, register)?);
        }
        let mut fragment = Self {
            shape: shape.to_vec(),
            threads,
            registers,
            first_thread,
            dims,
            replicas: fused.replica().to_vec(),
            table: Vec::new(),
        };
        fragment.table = fragment.enumerate(&fused)?;
        Ok(fragment)
    }

    /// The fragment of a layout that someone wrote, of which nothing is known.
    ///
    /// # Errors
    /// As [`Fragment::new`], and for sizes that no CTA holds.
    pub fn read(layout: &Layout, shape: &[i64], threads: i64) -> Result<Self, Decline> {
        let most = 1024 * MAX_REGISTERS;
        let size = shape
            .iter()
            .try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        let fits = size.is_some_and(|size| (1..=most).contains(&size));
        if !fits || layout.size() > most || !(1..=1024).contains(&threads) {
            return Err(Decline::new(format!(
                "expected at most {most} elements in at most 1024 threads, got {shape:?} in {threads}"
            )));
        }
        Self::new(layout, shape, threads)
    }

    /// The tensor's shape.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Threads of the scope.
    #[must_use]
    pub fn threads(&self) -> i64 {
        self.threads
    }

    /// Registers (elements) of each thread.
    #[must_use]
    pub fn registers(&self) -> i64 {
        self.registers
    }

    /// The digits of each dimension, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[Vec<Digit>] {
        &self.dims
    }

    /// The row-major index of the element in a register; `None` where the register holds nothing.
    #[must_use]
    pub fn linear(&self, thread: i64, register: i64) -> Option<i64> {
        let inside = (0..self.threads).contains(&thread) && (0..self.registers).contains(&register);
        let at = usize::try_from(thread * self.registers + register)
            .ok()
            .filter(|_| inside)?;
        self.table.get(at).copied().filter(|&index| index >= 0)
    }

    /// The index of the element in a register, one number a dimension.
    #[must_use]
    pub fn index(&self, thread: i64, register: i64) -> Option<Vec<i64>> {
        let mut rest = self.linear(thread, register)?;
        let mut index = vec![0; self.shape.len()];
        for (at, extent) in index.iter_mut().zip(&self.shape).rev() {
            *at = rest % extent;
            rest /= extent;
        }
        Some(index)
    }

    /// Whether every register of every thread holds the same element as in `other`.
    #[must_use]
    pub fn holds_as(&self, other: &Self) -> bool {
        self.shape == other.shape && self.threads == other.threads && self.table == other.table
    }

    /// A matrix's fragment with rows and columns exchanged.
    ///
    /// # Errors
    /// When it is no matrix.
    pub fn transposed(&self) -> Result<Self, Decline> {
        let &[rows, columns] = self.shape.as_slice() else {
            return Err(Decline::new(format!(
                "expected a matrix, got rank {}",
                self.shape.len()
            )));
        };
        let exchange = |&x: &i64| match x {
            0.. => x % columns * rows + x / columns,
            none => none,
        };
        Ok(Self {
            shape: vec![columns, rows],
            dims: self.dims.iter().rev().cloned().collect(),
            table: self.table.iter().map(exchange).collect(),
            ..self.clone()
        })
    }

    /// Where else each element is: displacements on `thread` and `reg`.
    #[must_use]
    pub fn replicas(&self) -> &[Iter] {
        &self.replicas
    }

    /// Whether every register of every thread holds an element.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.table.iter().all(|&index| index >= 0)
    }

    /// The table of elements, checked: every element is somewhere, no register holds two, and the digits say
    /// the same as the layout.
    fn enumerate(&self, fused: &Layout) -> Result<Vec<i64>, Decline> {
        let size = self.threads * self.registers;
        let mut table =
            vec![-1; usize::try_from(size).map_err(|_| Decline::new("too many registers"))?];
        let (origins, copies) = self
            .slots(fused)
            .map_err(|error| Decline::new(error.to_string()))?;
        let mut clash = None;
        for (x, origin) in (0..).zip(origins) {
            for copy in &copies {
                let at = origin + copy;
                match usize::try_from(at).ok().and_then(|at| table.get_mut(at)) {
                    Some(slot) if *slot < 0 || *slot == x => *slot = x,
                    _ => clash = Some((at / self.registers, at % self.registers)),
                }
            }
        }
        if let Some((thread, register)) = clash {
            return Err(Decline::new(format!(
                "register {register} of thread {thread} would hold two elements"
            )));
        }
        self.check_digits(&table)?;
        Ok(table)
    }

    /// The slot (`thread * registers + register`) of each element, and how far its replicas are from it.
    fn slots(&self, fused: &Layout) -> axe_layout::Result<(Vec<i64>, Vec<i64>)> {
        let slots = [("thread", self.registers), ("reg", 1)];
        let slots = slots.map(|(name, scale)| Ok((Axis::new(name)?, (Axis::M, scale))));
        let slots = slots.into_iter().collect::<axe_layout::Result<_>>()?;
        let slots = fused.fuse_axes(&slots)?;
        let shard = slots.shard().iter().copied();
        let elements = Layout::new(shard, [], slots.offset().clone(), None)?;
        let origins: Vec<i64> = AddressMap::new(&elements, Axis::M)?.iter().collect();
        let first = elements.origin(0)?.get(Axis::M);
        let mut copies = Vec::new();
        slots.visit_points(0, |point| {
            copies.push(point.get(Axis::M) - first);
            ControlFlow::Continue(())
        })?;
        Ok((origins, copies))
    }

    fn check_digits(&self, table: &[i64]) -> Result<(), Decline> {
        let mut slots = table.iter();
        for thread in 0..self.threads {
            for register in 0..self.registers {
                let Some(&held) = slots.next() else { break };
                if held >= 0 && held != self.computed(thread, register) {
                    return Err(Decline::new(
                        "the element of a register is not a sum of digits of the thread and the register",
                    ));
                }
            }
        }
        Ok(())
    }

    /// The row-major index that the digits give.
    fn computed(&self, thread: i64, register: i64) -> i64 {
        let thread = thread - self.first_thread;
        let along = |dim: &Vec<Digit>| {
            dim.iter()
                .map(|digit| digit.value(thread, register))
                .sum::<i64>()
        };
        self.dims
            .iter()
            .zip(&self.shape)
            .fold(0, |index, (dim, extent)| index * extent + along(dim))
    }
}

fn axis(name: &str) -> Result<Axis, Decline> {
    Axis::new(name).map_err(|error| Decline::new(error.to_string()))
}

/// The layout on `thread` and `reg` alone.
fn fuse(layout: &Layout) -> Result<Layout, Decline> {
    if layout.swizzle().is_some() {
        return Err(Decline::new("a register tensor has no swizzle"));
    }
    let (thread, register) = (axis("thread")?, axis("reg")?);
    let mut rules = BTreeMap::new();
    for (name, scale) in [("lane", 1), ("warp", WARP), ("warpgroup", WARPGROUP)] {
        rules.insert(axis(name)?, (thread, scale));
    }
    for axis in layout.axes() {
        if !rules.contains_key(&axis) && axis != thread && axis != register {
            return Err(Decline::new(format!(
                "a register tensor lives on lane, warp, warpgroup, thread and reg, and this one on '{axis}'"
            )));
        }
    }
    layout
        .fuse_axes(&rules)
        .map_err(|error| Decline::new(error.to_string()))
}

/// Registers of a thread and the first thread that holds anything; both axes start at 0 or above.
fn extents(fused: &Layout, threads: i64) -> Result<(i64, i64), Decline> {
    let reach = |name: &str| -> Result<(i64, i64), Decline> {
        let axis = axis(name)?;
        let mut low = fused.offset().get(axis);
        for iter in fused
            .shard()
            .iter()
            .chain(fused.replica())
            .filter(|iter| iter.axis == axis)
        {
            low += (iter.extent - 1) * iter.stride.min(0);
        }
        let span = fused
            .span(axis)
            .map_err(|error| Decline::new(error.to_string()))?;
        Ok((low, low + span))
    };
    let ((first, end), (low, registers)) = (reach("thread")?, reach("reg")?);
    if first < 0 || end > threads {
        return Err(Decline::new(format!(
            "threads {first} to {} are not all among the scope's {threads}",
            end - 1
        )));
    }
    if low < 0 || registers > MAX_REGISTERS {
        return Err(Decline::new(format!(
            "registers {low} to {} are not among 0 to {MAX_REGISTERS}",
            registers - 1
        )));
    }
    Ok((registers, first))
}

/// The digits of one dimension's iters.
fn digits(block: &[Iter], thread: Axis, register: Axis) -> Result<Vec<Digit>, Decline> {
    let mut digits = Vec::new();
    let mut weight = 1;
    for iter in block.iter().rev() {
        let source = match iter.axis {
            axis if axis == thread => Source::Thread,
            axis if axis == register => Source::Register,
            other => {
                return Err(Decline::new(format!(
                    "'{other}' is no axis of a register tensor"
                )));
            }
        };
        if iter.extent > 1 {
            if iter.stride <= 0 {
                return Err(Decline::new(format!(
                    "stride {} on '{}': expected a positive one",
                    iter.stride, iter.axis
                )));
            }
            digits.push(Digit {
                source,
                stride: iter.stride,
                extent: iter.extent,
                weight,
            });
        }
        weight *= iter.extent;
    }
    digits.reverse();
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str, shape: &[i64], threads: i64) -> Result<Fragment, Decline> {
        Fragment::new(&text.parse().unwrap(), shape, threads)
    }

    #[test]
    fn a_row_a_warp() {
        let rows = fragment(
            "S[(4, 8, 32, 4) : (1@warp, 4@reg, 1@lane, 1@reg)]",
            &[4, 1024],
            128,
        )
        .unwrap();
        assert_eq!((rows.registers(), rows.is_full()), (32, true));
        assert_eq!(rows.index(33, 5), Some(vec![1, 128 + 4 + 1]));
    }

    #[test]
    fn replicas_hold_the_same_element() {
        let sums = fragment("S[4 : 1@warp] + R[32 : 1@lane]", &[4], 128).unwrap();
        assert_eq!(sums.registers(), 1);
        for lane in 0..32 {
            assert_eq!(sums.index(64 + lane, 0), Some(vec![2]));
        }
    }

    #[test]
    fn an_offset_leaves_threads_without_elements() {
        let some = fragment("S[32 : 1@lane] + 1@warp", &[32], 128).unwrap();
        assert_eq!(
            (some.linear(31, 0), some.linear(40, 0), some.linear(64, 0)),
            (None, Some(8), None)
        );
        assert!(!some.is_full());
    }

    #[test]
    fn declines_say_what_is_in_the_way() {
        let reason = |text: &str, shape: &[i64]| fragment(text, shape, 64).unwrap_err().to_string();
        assert!(reason("S[8 : 1]", &[8]).contains("this one on 'm'"));
        assert!(
            reason("S[128 : 1@thread]", &[128])
                .contains("threads 0 to 127 are not all among the scope's 64")
        );
        assert!(reason("S[8 : -1@lane]", &[8]).contains("-7"));
        assert!(reason("S[(4, 4) : (1@lane, 1@lane)]", &[16]).contains("two elements"));
        assert!(reason("S[4096 : 1@reg]", &[4096]).contains("registers"));
        assert!(reason("S[6 : 1@lane]", &[4, 2]).contains("expected"));
    }
}
