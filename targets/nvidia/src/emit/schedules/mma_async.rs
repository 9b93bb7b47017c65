//! Products with A in shared memory that add to sums, by NVVM's operation of `wgmma.mma_async` (PTX ISA 9.7.15.5).

use crate::emit::emitter::Emitter;
use crate::facts::wgmma::{Element, Major, UNIT_BYTES, Wgmma};
use crate::plan::wgmma::{Instruction, InstructionA, Source, WgmmaPlan};
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use axe_passes::ir::{Int, Ints};
use melior::ir::{Attribute, Type};
use std::collections::BTreeMap;

/// The products of a plan, and what all of its operations have in common.
pub(super) struct Products<'p, 'c> {
    plan: &'p WgmmaPlan,
    /// The type of one 32-bit accumulator.
    word: Type<'c>,
    /// The instruction: everything but where it starts.
    attributes: Vec<(&'static str, Attribute<'c>)>,
}

impl<'p, 'c> Products<'p, 'c> {
    pub(super) fn new(
        emitter: &Emitter<'c>,
        plan: &'p WgmmaPlan,
        word: Type<'c>,
    ) -> PassResult<'c, Self> {
        Ok(Self {
            plan,
            word,
            attributes: attributes(emitter, plan)?,
        })
    }

    /// `wgmma.fence`, the products of the two tiles, and `wgmma.commit_group`; gives the accumulators after them, as
    /// [`WgmmaPlan::accumulators`] counts them.
    pub(super) fn emit(
        &self,
        emitter: &Emitter<'c>,
        [a, b]: [Val<'c>; 2],
        before: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        emitter.effect("nvvm.wgmma.fence.aligned", &[])?;
        let known = self.plan.accumulators();
        let mut sums: BTreeMap<Vec<usize>, Val<'c>> = BTreeMap::new();
        for instruction in &self.plan.instructions {
            let words = self
                .words(instruction, &known)
                .ok_or_else(|| emitter.error("a register of the plan does not exist"))?;
            let so_far = match sums.get(&words) {
                Some(sums) => *sums,
                None => self.structure(emitter, &words, before)?,
            };
            let InstructionA::Offset(of_a) = instruction.a else {
                return Err(emitter.error("expected A in shared memory"));
            };
            let operands = [
                so_far,
                moved(emitter, a, of_a)?,
                moved(emitter, b, instruction.b)?,
            ];
            let r#type = types::structure(emitter.builder, words.len(), self.word);
            let name = "nvvm.wgmma.mma_async";
            let made = emitter
                .builder
                .value(name, &operands, r#type, &self.attributes)?;
            sums.insert(words, made);
        }
        emitter.effect("nvvm.wgmma.commit.group.sync.aligned", &[])?;
        self.fields(emitter, &sums, known.len())
    }

    /// The accumulators of an instruction, by their place among all.
    fn words(&self, instruction: &Instruction, known: &[Vec<i64>]) -> Option<Vec<usize>> {
        let packed = usize::try_from(self.plan.atom.types.d.packed()).ok()?;
        let place = |word: &[i64]| known.iter().position(|known| known == word);
        instruction.d.chunks(packed).map(place).collect()
    }

    /// Some of `all` as one structure.
    fn structure(
        &self,
        emitter: &Emitter<'c>,
        words: &[usize],
        all: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let r#type = types::structure(emitter.builder, words.len(), self.word);
        let mut made = emitter.builder.value("llvm.mlir.undef", &[], r#type, &[])?;
        for (field, word) in (0..).zip(words) {
            let value = all.get(*word).copied();
            let value = value.ok_or_else(|| emitter.error("too few accumulators"))?;
            let position = [("position", emitter.builder.i64s(&[field]))];
            let name = "llvm.insertvalue";
            made = emitter
                .builder
                .value(name, &[made, value], r#type, &position)?;
        }
        Ok(made)
    }

    /// The accumulators out of the last sums of each run.
    fn fields(
        &self,
        emitter: &Emitter<'c>,
        sums: &BTreeMap<Vec<usize>, Val<'c>>,
        count: usize,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut values = vec![None; count];
        for (words, sums) in sums {
            for (field, word) in words.iter().enumerate() {
                let value = emitter.field(*sums, field, self.word)?;
                match values.get_mut(*word) {
                    Some(place @ None) => *place = Some(value),
                    _ => {
                        return Err(emitter.error(
                            "the steps of a product differ in the registers of their instructions",
                        ));
                    }
                }
            }
        }
        values
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| emitter.error("an accumulator that no instruction writes"))
    }
}

/// The descriptor `bytes` further on.
fn moved<'c>(emitter: &Emitter<'c>, descriptor: Val<'c>, bytes: i64) -> PassResult<'c, Val<'c>> {
    let wide = Ints::new(emitter.builder, 64);
    wide.value(wide.add(Int::Value(descriptor), Int::Known(bytes / UNIT_BYTES))?)
}

/// Shape, types and major orders as NVVM's attributes.
fn attributes<'c>(
    emitter: &Emitter<'c>,
    plan: &WgmmaPlan,
) -> PassResult<'c, Vec<(&'static str, Attribute<'c>)>> {
    let Wgmma { n, types } = plan.atom;
    let of = |kind: &str, text: &str| emitter.builder.parsed(&format!("#nvvm.{kind}<{text}>"));
    let element = |element: Element| of("wgmma_type", element.ptx());
    // NVVM's B is [K, N]: its columns are K's when K is contiguous, as A's rows are.
    let (of_a, of_b) = match (&plan.a, types.may_transpose()) {
        (Source::Shared(a), true) => (a.strides.major, plan.b.strides.major),
        _ => (Major::K, Major::K),
    };
    let row_if = |row: bool| of("mma_layout", if row { "row" } else { "col" });
    Ok(vec![
        (
            "shape",
            of("shape", &format!("m = 64, n = {n}, k = {}", types.k()))?,
        ),
        ("typeA", element(types.a)?),
        ("typeB", element(types.b)?),
        ("typeD", of("wgmma_type", types.d.ptx())?),
        ("scaleD", of("wgmma_scale_out", "one")?),
        ("scaleA", of("wgmma_scale_in", "one")?),
        ("scaleB", of("wgmma_scale_in", "one")?),
        ("layoutA", row_if(of_a == Major::K)?),
        ("layoutB", row_if(of_b != Major::K)?),
    ])
}
