//! Copies between memory and registers: which vectors each thread moves.

use super::Decline;
use crate::fragment::{Digit, Fragment, Source};
use axe_layout::{Axis, Layout};
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The widest access of one thread, in bytes (PTX ISA, ld and st: `.v4.b32`).
const MAX_BYTES: i64 = 16;

/// A digit of the thread's number and the address step that it counts; in text `(t / divisor mod modulus) * step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Term {
    /// The divisor of the thread's number.
    pub divisor: i64,
    /// The modulus.
    pub modulus: i64,
    /// Elements of memory that one step moves.
    pub step: i64,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "(t / {} mod {}) * {}",
            self.divisor, self.modulus, self.step
        )
    }
}

impl From<Term> for String {
    fn from(term: Term) -> Self {
        term.to_string()
    }
}

impl TryFrom<String> for Term {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Term {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (divisor, rest) = text.strip_prefix("(t / ")?.split_once(" mod ")?;
            let (modulus, step) = rest.split_once(") * ")?;
            let term = Self {
                divisor: divisor.parse().ok()?,
                modulus: modulus.parse().ok()?,
                step: step.parse().ok()?,
            };
            let small = term.divisor < 1 << 20 && term.modulus < 1 << 20;
            let small = small && term.step.unsigned_abs() < 1 << 40;
            (small && term.divisor > 0 && term.modulus > 0).then_some(term)
        };
        parse().ok_or_else(|| format!("expected \"(t / 4 mod 8) * 64\", got \"{text}\""))
    }
}

/// One access of every thread: consecutive registers, consecutive memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first register.
    pub register: i64,
    /// The register's part of the address, in elements.
    pub offset: i64,
}

/// The accesses that move a register tensor to or from memory. The address of an access, in elements, is
/// `sum over terms of (thread / divisor mod modulus) * step + offset`, then swizzled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct CopyPlan {
    /// Elements of one access.
    pub width: i64,
    /// The thread's part of every address.
    pub terms: Vec<Term>,
    /// The accesses of one thread.
    pub accesses: Vec<Access>,
}

/// As the plan stands in the IR: accesses follow each other in the registers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "CopyPlan")]
struct Written {
    width: i64,
    thread: Vec<Term>,
    #[serde(with = "sequence")]
    offsets: Vec<i64>,
}

impl From<CopyPlan> for Written {
    fn from(plan: CopyPlan) -> Self {
        Self {
            width: plan.width,
            thread: plan.terms,
            offsets: plan.accesses.iter().map(|access| access.offset).collect(),
        }
    }
}

impl TryFrom<Written> for CopyPlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if !(1..=MAX_BYTES).contains(&written.width) {
            return Err(format!(
                "expected a width of 1 to {MAX_BYTES} elements, got {}",
                written.width
            ));
        }
        let registers = (0..).map(|number| number * written.width);
        Ok(Self {
            width: written.width,
            terms: written.thread,
            accesses: registers
                .zip(written.offsets)
                .map(|(register, offset)| Access { register, offset })
                .collect(),
        })
    }
}

/// Memory as a copy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// Its layout, on the axis `m` alone.
    pub layout: &'a Layout,
    /// Elements to which the base address is known to be aligned.
    pub alignment: i64,
    /// Bytes of an element.
    pub element_bytes: i64,
    /// For each dimension that ends at run time, what divides the number of elements that exist; 0 for the
    /// others. An access lies inside or outside as a whole.
    pub ends: &'a [i64],
    /// The most elements of an access.
    pub widest: i64,
}

impl CopyPlan {
    /// The widest accesses that move `fragment` to or from `memory`.
    ///
    /// # Errors
    /// Memory with replicas or another axis; an address that is not a sum of the fragment's digits.
    pub fn new(fragment: &Fragment, memory: Memory) -> Result<Self, Decline> {
        let (thread, register) = steps(fragment, memory.layout)?;
        let width = width(fragment, &register, &thread, memory);
        let accesses = (0..fragment.registers() / width).map(|k| k * width);
        let offset = |at: i64| {
            register
                .iter()
                .map(|(digit, step)| digit_of(digit, at) * step)
                .sum::<i64>()
        };
        let plan = Self {
            width,
            terms: thread
                .iter()
                .map(|(digit, step)| Term {
                    divisor: digit.stride,
                    modulus: digit.extent,
                    step: *step,
                })
                .collect(),
            accesses: accesses
                .map(|at| Access {
                    register: at,
                    offset: offset(at) + memory.layout.offset().get(Axis::M),
                })
                .collect(),
        };
        plan.check(fragment, memory.layout)?;
        Ok(plan)
    }

    /// The address of an access by a thread, in elements, before any swizzle.
    #[must_use]
    pub fn address(&self, access: &Access, thread: i64) -> i64 {
        self.thread_offset(thread) + access.offset
    }

    /// The thread's part of every address.
    #[must_use]
    pub fn thread_offset(&self, thread: i64) -> i64 {
        thread_offset(&self.terms, thread)
    }

    /// Checks a plan that someone wrote: as [`CopyPlan::check`], and that its accesses are all, no wider than they may be.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(&self, fragment: &Fragment, memory: Memory) -> Result<(), Decline> {
        let (thread, register) = steps(fragment, memory.layout)?;
        let widest = width(fragment, &register, &thread, memory);
        if widest % self.width != 0 {
            return Err(Decline::new(format!(
                "accesses of {} elements: expected a part of {widest}",
                self.width
            )));
        }
        let moved = i64::try_from(self.accesses.len()).unwrap_or(0) * self.width;
        if moved != fragment.registers() {
            return Err(Decline::new(format!(
                "the accesses move {moved} registers of {}",
                fragment.registers()
            )));
        }
        self.check(fragment, memory.layout)
    }

    /// Checks by enumeration that each element moves between its register and its place in memory.
    ///
    /// # Errors
    /// The first element for which that is not so.
    pub fn check(&self, fragment: &Fragment, layout: &Layout) -> Result<(), Decline> {
        let failed = |error: axe_layout::Error| Decline::new(error.to_string());
        let swizzled = |address: i64| {
            layout
                .swizzle()
                .map_or(address, |swizzle| swizzle.apply(address))
        };
        for thread in 0..fragment.threads() {
            for access in &self.accesses {
                for lane in 0..self.width {
                    let Some(x) = fragment.linear(thread, access.register + lane) else {
                        continue;
                    };
                    let wanted = swizzled(layout.origin(x).map_err(failed)?.get(Axis::M));
                    let got = swizzled(self.address(access, thread)) + lane;
                    if got != wanted {
                        return Err(Decline::new(format!(
                            "element {x} lives at {wanted} and thread {thread} would access {got}"
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The sum of the terms for a thread.
pub(crate) fn thread_offset(terms: &[Term], thread: i64) -> i64 {
    let term = |term: &Term| thread / term.divisor % term.modulus * term.step;
    terms.iter().map(term).sum()
}

fn digit_of(digit: &Digit, register: i64) -> i64 {
    register / digit.stride % digit.extent
}

pub(crate) type Steps = Vec<(Digit, i64)>;

/// The memory step of each digit: first those of the thread, then those of the register.
pub(crate) fn steps(fragment: &Fragment, layout: &Layout) -> Result<(Steps, Steps), Decline> {
    if !layout.replica().is_empty() || layout.axes().iter().any(|&axis| axis != Axis::M) {
        return Err(Decline::new(format!(
            "expected memory on the axis m without replicas, got {layout}"
        )));
    }
    let (mut thread, mut register) = (Vec::new(), Vec::new());
    let mut below = fragment.shape().iter().product::<i64>();
    let at = |x: i64| -> Result<i64, Decline> {
        let point = layout
            .origin(x)
            .map_err(|error| Decline::new(error.to_string()))?;
        Ok(point.get(Axis::M) - layout.offset().get(Axis::M))
    };
    for (dim, extent) in fragment.dims().iter().zip(fragment.shape()) {
        below /= extent;
        for digit in dim {
            // `check` finds memory whose own digits do not line up with these.
            let step = at(digit.weight * below)?;
            match digit.source {
                Source::Thread => thread.push((*digit, step)),
                Source::Register => register.push((*digit, step)),
            }
        }
    }
    Ok((thread, register))
}

/// Elements that one access can move: the fastest register digit is contiguous, and nothing else
/// disturbs the alignment.
fn width(fragment: &Fragment, register: &Steps, thread: &Steps, memory: Memory) -> i64 {
    let fastest = register
        .iter()
        .find(|(digit, step)| digit.stride == 1 && *step == 1);
    let mut width = fastest.map_or(1, |(digit, _)| digit.extent);
    let block = memory
        .layout
        .swizzle()
        .map_or(i64::MAX, |swizzle| 1 << swizzle.base());
    let most = (MAX_BYTES / memory.element_bytes)
        .max(1)
        .min(block)
        .min(memory.widest);
    let end = fastest.map_or(0, |(digit, _)| end_of(fragment, digit, memory.ends));
    let others = register
        .iter()
        .chain(thread)
        .filter(|(digit, _)| fastest.is_none_or(|(first, _)| first != digit));
    let divides = |width: i64| {
        others.clone().all(|(_, step)| step % width == 0)
            && memory.layout.offset().get(Axis::M) % width == 0
            && memory.alignment % width == 0
            && end % width == 0
            && fragment.registers() % width == 0
    };
    // A width is a power of two; a digit of extent 6 gives vectors of 2.
    width &= width.wrapping_neg();
    width = width.min(most);
    while width > 1 && !divides(width) {
        width /= 2;
    }
    width
}

/// What divides the end of the dimension that a register's digit counts along.
fn end_of(fragment: &Fragment, digit: &Digit, ends: &[i64]) -> i64 {
    let along = fragment.dims().iter().position(|dim| dim.contains(digit));
    along.and_then(|dim| ends.get(dim).copied()).unwrap_or(0)
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<_> = self.terms.iter().map(ToString::to_string).collect();
        let base = if terms.is_empty() {
            "0".to_owned()
        } else {
            terms.join(" + ")
        };
        writeln!(f, "address = {base}")?;
        for access in &self.accesses {
            writeln!(
                f,
                "r[{}..{}] <-> m[address + {}]",
                access.register,
                access.register + self.width,
                access.offset
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(
        fragment: &str,
        shape: &[i64],
        memory: &str,
        alignment: i64,
    ) -> Result<CopyPlan, Decline> {
        let fragment = Fragment::new(&fragment.parse().unwrap(), shape, 128).unwrap();
        let layout = memory.parse().unwrap();
        CopyPlan::new(
            &fragment,
            Memory {
                layout: &layout,
                alignment,
                element_bytes: 2,
                ends: &[],
                widest: i64::MAX,
            },
        )
    }

    const ROWS: &str = "S[(4, 4, 32, 8) : (1@warp, 8@reg, 1@lane, 1@reg)]";

    #[test]
    fn rows_move_in_16_bytes() {
        let plan = plan(ROWS, &[4, 1024], "S[(4, 1024) : (4096, 1)]", 8).unwrap();
        assert_eq!((plan.width, plan.accesses.len()), (8, 4));
        assert_eq!(
            super::super::written(&plan),
            r#"{"width":8,"thread":["(t / 32 mod 4) * 4096","(t / 1 mod 32) * 8"],"offsets":[0,256,512,768]}"#
        );
        assert_eq!(plan.address(&plan.accesses[2], 37), 4096 + 2 * 256 + 5 * 8);
    }

    #[test]
    fn alignment_and_odd_strides_narrow_the_access() {
        assert_eq!(
            plan(ROWS, &[4, 1024], "S[(4, 1024) : (4096, 1)]", 2)
                .unwrap()
                .width,
            2
        );
        assert_eq!(
            plan(ROWS, &[4, 1024], "S[(4, 1024) : (1028, 1)]", 8)
                .unwrap()
                .width,
            4
        );
        assert_eq!(
            plan(ROWS, &[4, 1024], "S[(4, 1024) : (1, 4)]", 8)
                .unwrap()
                .width,
            1
        );
        assert_eq!(
            plan(ROWS, &[4, 1024], "S[(4, 1024) : (1024, 1)] + 3", 8)
                .unwrap()
                .width,
            1
        );
    }

    #[test]
    fn swizzled_memory_moves_in_its_blocks() {
        let plan = plan(
            "S[(16, 8, 8) : (8@thread, 1@thread, 1@reg)]",
            &[16, 64],
            "Sw<3, 3, 3> o S[(16, 64) : (64, 1)]",
            64,
        );
        assert_eq!(plan.unwrap().width, 8);
    }

    #[test]
    fn broadcast_memory_is_read_by_all() {
        let plan = plan(ROWS, &[4, 1024], "S[(4, 1024) : (0, 1)]", 8).unwrap();
        assert_eq!(plan.width, 8);
        assert_eq!(
            plan.address(&plan.accesses[0], 0),
            plan.address(&plan.accesses[0], 64)
        );
    }

    #[test]
    fn memory_that_does_not_line_up_is_declined() {
        let reason = plan(ROWS, &[4, 1024], "S[(64, 16, 4) : (1, 64, 1024)]", 8)
            .err()
            .map(|d| d.to_string());
        assert!(reason.is_none_or(|reason| reason.contains("lives at")));
        let replicated = plan(
            ROWS,
            &[4, 1024],
            "S[(4, 1024) : (1024, 1)] + R[2 : 8192]",
            8,
        );
        assert!(
            replicated
                .unwrap_err()
                .to_string()
                .contains("without replicas")
        );
    }
}
