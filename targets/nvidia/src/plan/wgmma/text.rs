//! A plan as inline PTX: the emission supplies values, in the order given here.

use super::{InstructionA, Source, WgmmaPlan};
use crate::facts::wgmma::{Accumulator, Major, Swizzle};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the accumulators are before the first instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// What is in them counts.
    Keep,
    /// Zero, whatever is in them.
    Zero,
}

/// The body of an `llvm.inline_asm` with side effects, and its operands.
///
/// In order:
/// 1. outputs `$0` to `$(outputs - 1)`: the accumulators, one 32-bit value for each entry of
///    [`WgmmaPlan::accumulators`] (f32 as `f`; i32 or two packed f16 as `r`). They are the fields of the structure
///    that the operation returns; each is the accumulator that the next product or wait takes;
/// 2. unless `zeroed`, as many inputs, tied to the outputs: the accumulators before;
/// 3. A: with A in shared memory one i64 (`l`), the descriptor `strides.descriptor(0)` with the address of the
///    tile's base and the warpgroup's terms, in units of 16 bytes, added in; else one i32 (`r`) for each entry
///    of `a_words`, `4 / element bytes` elements packed, the first in the lowest bits;
/// 4. B: one i64 (`l`), made alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    /// The text, with `$n` for operand `n`.
    pub text: String,
    /// LLVM's constraints.
    pub constraints: String,
    /// How many outputs there are.
    pub outputs: usize,
    /// Whether the accumulators before are no operands.
    pub zeroed: bool,
    /// For A in registers: the registers of its fragment in each 32-bit operand.
    pub a_words: Vec<Vec<i64>>,
}

/// The numbers of a block's operands.
struct Operands {
    outputs: usize,
    zeroed: bool,
    a_words: Vec<Vec<i64>>,
    shared_a: bool,
}

impl Operands {
    fn a(&self) -> usize {
        self.outputs * if self.zeroed { 1 } else { 2 }
    }

    fn b(&self) -> usize {
        self.a() + if self.shared_a { 1 } else { self.a_words.len() }
    }

    fn constraints(&self, register: &str) -> String {
        // Outputs are written before the last input is read; tied ones are inputs themselves.
        let output = if self.zeroed { "=&" } else { "=" };
        let mut parts = vec![format!("{output}{register}"); self.outputs];
        if !self.zeroed {
            parts.extend((0..self.outputs).map(|at| at.to_string()));
        }
        match self.shared_a {
            true => parts.push("l".to_string()),
            false => parts.extend(self.a_words.iter().map(|_| "r".to_string())),
        }
        parts.push("l".to_string());
        parts.push("~{memory}".to_string());
        parts.join(",")
    }
}

/// Most descriptors of one operand that do not change in a loop for which ptxas has uniform registers: it forms them ahead of the
/// loop, and of more it keeps the threads' registers, from which each product waits for a move (R2UR).
const MOST_CONSTANT: usize = 8;

/// Descriptors at constant distances from one operand, in order of first use.
struct Addresses {
    operand: String,
    name: &'static str,
    known: BTreeMap<i64, usize>,
}

impl Addresses {
    /// The descriptor `bytes` further on; adds to `text` what computes it.
    fn at(&mut self, bytes: i64, text: &mut String) -> String {
        if bytes == 0 {
            return self.operand.clone();
        }
        let (next, name) = (self.known.len(), self.name);
        let number = *self.known.entry(bytes).or_insert_with(|| {
            let _ = writeln!(text, ".reg .b64 {name}{next};");
            let _ = writeln!(
                text,
                "add.s64 {name}{next}, {}, {};",
                self.operand,
                bytes / 16
            );
            next
        });
        format!("{name}{number}")
    }
}

impl WgmmaPlan {
    /// The accumulators as the 32-bit values that blocks take and give: the registers of D's fragment in each,
    /// one, or two for f16, in order of the first.
    #[must_use]
    pub fn accumulators(&self) -> Vec<Vec<i64>> {
        let packed = usize::try_from(self.atom.types.d.packed()).unwrap_or(1);
        let first = self
            .instructions
            .iter()
            .filter(|instruction| instruction.step == 0);
        let mut words: Vec<_> = first
            .flat_map(|instruction| instruction.d.chunks(packed))
            .map(<[i64]>::to_vec)
            .collect();
        words.sort_unstable();
        words
    }

    fn register(&self) -> &'static str {
        match self.atom.types.d {
            Accumulator::F32 => "f",
            Accumulator::F16 | Accumulator::S32 => "r",
        }
    }

    /// `wgmma.fence`, the instructions, and `wgmma.commit_group`.
    #[must_use]
    pub fn block(&self, start: Start) -> Inline {
        let words = self.accumulators();
        let packed = self.packed_a();
        let a_words = self.a_words();
        let operands = Operands {
            outputs: words.len(),
            zeroed: start == Start::Zero,
            a_words,
            shared_a: matches!(self.a, Source::Shared(_)),
        };
        let (mut before, mut body) = (String::new(), String::new());
        let of_a = self.changing_a(operands.a(), operands.b(), &mut before);
        let of_b = format!("${}", operands.b());
        let mut addresses = [("da", of_a), ("db", of_b)].map(|(name, operand)| Addresses {
            operand,
            name,
            known: BTreeMap::new(),
        });
        for instruction in &self.instructions {
            let [of_a, of_b] = &mut addresses;
            let a = match &instruction.a {
                InstructionA::Offset(bytes) => of_a.at(*bytes, &mut before),
                InstructionA::Registers(registers) => {
                    list(registers.chunks(packed), &operands.a_words, operands.a())
                }
            };
            let b = of_b.at(instruction.b, &mut before);
            let d = list(instruction.d.chunks(self.packed_d()), &words, 0);
            let first = instruction.step == 0 && start == Start::Zero;
            let scale = if first { "first" } else { "more" };
            let _ = writeln!(
                body,
                "{} {d}, {a}, {b}, {scale}{};",
                self.atom.mnemonic(),
                self.immediates()
            );
        }
        let scale = match start {
            Start::Keep => 1,
            Start::Zero => 0,
        };
        let mut text = String::from("{\n.reg .pred first, more;\n");
        let _ = writeln!(
            text,
            "setp.ne.b32 first, {scale}, 0;\nsetp.ne.b32 more, 1, 0;"
        );
        let _ = write!(
            text,
            "{before}wgmma.fence.sync.aligned;\n{body}wgmma.commit_group.sync.aligned;\n}}"
        );
        Inline {
            text,
            constraints: operands.constraints(self.register()),
            outputs: operands.outputs,
            zeroed: operands.zeroed,
            a_words: operands.a_words,
        }
    }

    /// A's descriptor. Where A has many and may be the same for all turns of a loop, a bit of B's that is never set is added, so
    /// that ptxas forms them in each turn: its address is a multiple of what the swizzle repeats after, 256 bytes at least.
    fn changing_a(&self, a: usize, b: usize, text: &mut String) -> String {
        let mut distances: Vec<_> = self
            .instructions
            .iter()
            .filter_map(|instruction| match instruction.a {
                InstructionA::Offset(bytes) => Some(bytes),
                InstructionA::Registers(_) => None,
            })
            .collect();
        distances.sort_unstable();
        distances.dedup();
        if distances.len() <= MOST_CONSTANT || self.b.strides.swizzle == Swizzle::None {
            return format!("${a}");
        }
        let _ = writeln!(
            text,
            ".reg .b64 none, da;\nand.b64 none, ${b}, 1;\nadd.s64 da, ${a}, none;"
        );
        "da".to_owned()
    }

    /// The registers of A that instructions read, by words, each once.
    fn a_words(&self) -> Vec<Vec<i64>> {
        let mut words: Vec<Vec<i64>> = Vec::new();
        for instruction in &self.instructions {
            if let InstructionA::Registers(registers) = &instruction.a {
                for word in registers.chunks(self.packed_a()) {
                    if !words.iter().any(|known| known == word) {
                        words.push(word.to_vec());
                    }
                }
            }
        }
        words
    }

    fn packed_a(&self) -> usize {
        usize::try_from(4 / self.atom.types.a.bytes()).unwrap_or(1)
    }

    fn packed_d(&self) -> usize {
        usize::try_from(self.atom.types.d.packed()).unwrap_or(1)
    }

    /// `imm-scale-a, imm-scale-b` of floating-point types, `imm-trans-a` and `imm-trans-b` of 16-bit ones (PTX ISA
    /// 9.7.15.5.2, "wgmma.mma_async", syntax).
    fn immediates(&self) -> String {
        let types = self.atom.types;
        if types.d == Accumulator::S32 {
            return String::new();
        }
        let mut text = ", 1, 1".to_string();
        if types.may_transpose() {
            let flag = |major: Major| if major == Major::Mn { ", 1" } else { ", 0" };
            if let Source::Shared(shared) = &self.a {
                text.push_str(flag(shared.strides.major));
            }
            text.push_str(flag(self.b.strides.major));
        }
        text
    }
}

/// `{$i, $j, ...}`: operands from `first` on, by their place among `words`.
fn list<'w>(wanted: impl Iterator<Item = &'w [i64]>, words: &[Vec<i64>], first: usize) -> String {
    let place: BTreeMap<&[i64], usize> = (0..)
        .zip(words)
        .map(|(at, word)| (word.as_slice(), at))
        .collect();
    let names: Vec<_> = wanted
        .filter_map(|word| place.get(word).map(|at| format!("${}", first + at)))
        .collect();
    format!("{{{}}}", names.join(", "))
}
