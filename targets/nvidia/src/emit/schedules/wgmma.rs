//! `axe.gemm async` by `wgmma`, and the wait for its groups (PTX ISA 9.7.15).

use super::mma_async;
use super::text::{Instruction, expect};
use crate::emit::assembly::Assembly;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::facts::wgmma::{Accumulator, Element, Types};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::wgmma::{Inline, Matrix, Operand, Product, Shared, Source, Start, WgmmaPlan};
use crate::state::form::{Form, Space, Storage};
use crate::state::site::Site;
use crate::state::site::pending;
use crate::state::threads::parents;
use crate::state::types;
use crate::vocabulary::WARPGROUP_WARPS;
use axe_dialect::{element_type, ops};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::{name, only_result, operands};
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use melior::ir::{Type, ValueLike};
use std::rc::Rc;

/// Tensor cores, by warpgroup: f16, bf16, tf32, 8-bit floats and integers.
#[derive(Clone, Copy)]
pub(super) struct Wgmma;

/// Operand A, with the layout of shared memory that it borrows.
enum OperandA {
    Shared(Box<Layout>, [i64; 2], bool),
    Registers(Rc<Fragment>),
}

/// What a product by warpgroups takes.
struct Taken {
    types: Types,
    a: OperandA,
    b: (Layout, [i64; 2], bool),
    d: Rc<Fragment>,
}

impl Taken {
    fn of(site: Site<'_, '_>) -> Result<Self, Decline> {
        if !site.chip().has_wgmma {
            return Err(Decline::new(format!("{} has no wgmma", site.chip().name)));
        }
        if !site.flag("isAsync") {
            return Err(Decline::new("the product is not asynchronous"));
        }
        let types = types_of(site)?;
        let b = site.memory(1)?;
        let b = (matrix_layout(b)?, matrix_shape(b)?, !site.flag("trans_b"));
        let d = site.result()?;
        let a = match site.operand(0)? {
            Form::Memory(storage) => OperandA::Shared(
                Box::new(matrix_layout(storage)?),
                matrix_shape(storage)?,
                site.flag("trans_a"),
            ),
            Form::Registers(held) if !site.flag("trans_a") => {
                OperandA::Registers(held.fragment.clone())
            }
            _ => {
                return Err(Decline::new(
                    "A: expected shared memory, or registers as [M, K]",
                ));
            }
        };
        Ok(Self { types, a, b, d })
    }

    fn product(&self) -> Product<'_> {
        let matrix = |layout, shape, k_first| Matrix {
            layout,
            shape,
            k_first,
        };
        let (layout, shape, k_first) = &self.b;
        Product {
            types: self.types,
            a: match &self.a {
                OperandA::Shared(layout, shape, k_first) => {
                    Operand::Shared(matrix(layout, *shape, *k_first))
                }
                OperandA::Registers(fragment) => Operand::Registers(fragment),
            },
            b: matrix(layout, *shape, *k_first),
            d: &self.d,
        }
    }
}

impl Schedule for Wgmma {
    type Plan = WgmmaPlan;

    fn name(&self) -> &'static str {
        "wgmma"
    }
}

impl<'c> Match<Site<'_, 'c>> for Wgmma {
    fn plan(&self, site: Site<'_, 'c>) -> Result<WgmmaPlan, Decline> {
        WgmmaPlan::new(&Taken::of(site)?.product())
    }

    fn check(&self, site: Site<'_, 'c>, plan: &WgmmaPlan) -> Result<(), Decline> {
        plan.verify(&Taken::of(site)?.product())
    }
}

/// The instruction's types.
fn types_of(site: Site<'_, '_>) -> Result<Types, Decline> {
    let operands = operands(site.op);
    let element = |at: usize| -> Result<Element, Decline> {
        let r#type = operands.get(at).map(|value| element_type(value.r#type()));
        let name = r#type.map(|r#type| r#type.to_string()).unwrap_or_default();
        match name.as_str() {
            "f16" => Ok(Element::F16),
            "bf16" => Ok(Element::Bf16),
            "f32" if super::mma::allows_tf32(site.op) => Ok(Element::Tf32),
            "f8E4M3FN" => Ok(Element::E4m3),
            "f8E5M2" => Ok(Element::E5m2),
            "i8" => Ok(Element::S8),
            "f32" => Err(Decline::new(
                "f32 operands would be rounded to tf32: allow it with options = {precision = \"tf32\"}",
            )),
            other => Err(Decline::new(format!("there is no wgmma of {other}"))),
        }
    };
    let result = only_result(site.op).map(|result| element_type(result.r#type()).to_string());
    let d = match result.as_deref() {
        Some("f32") => Accumulator::F32,
        Some("f16") => Accumulator::F16,
        Some("i32") => Accumulator::S32,
        _ => return Err(Decline::new("expected sums in f32, f16 or i32")),
    };
    Ok(Types {
        a: element(0)?,
        b: element(1)?,
        d,
    })
}

fn matrix_layout(memory: &Storage<'_>) -> Result<Layout, Decline> {
    if memory.space != Space::Shared {
        return Err(Decline::new("expected shared memory"));
    }
    if memory.is_guarded() {
        return Err(Decline::new("the tile may reach outside its source"));
    }
    if !memory.begins_period() {
        return Err(Decline::new(
            "the tile begins inside the period of its swizzle",
        ));
    }
    memory
        .layout()
        .map_err(|error| Decline::new(error.to_string()))
}

fn matrix_shape(memory: &Storage<'_>) -> Result<[i64; 2], Decline> {
    memory
        .shape
        .as_slice()
        .try_into()
        .map_err(|_| Decline::new("expected matrices"))
}

/// A plan on its way to instructions.
struct Products<'a> {
    plan: &'a WgmmaPlan,
}

impl<'c> Emit<'c> for Wgmma {
    fn emit(
        &self,
        plan: &WgmmaPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        Products { plan }.emit(emitter, op)
    }
}

impl Products<'_> {
    fn emit<'c>(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let all = operands(op);
        let &[a, b, ref rest @ ..] = all.as_slice() else {
            return Err(emitter.error("expected two operands"));
        };
        let before = match rest.first() {
            Some(acc) => Some(self.pack(emitter, &emitter.registers(*acc)?.values)?),
            None => None,
        };
        let stays = is_the_same_in_all_tiles(emitter, op);
        let b = descriptor(emitter, &self.plan.b, (b, stays))?;
        let words = match (&self.plan.a, before) {
            (Source::Shared(shared), Some(before)) => {
                let a = descriptor(emitter, shared, (a, stays))?;
                let word = self.word_type(emitter);
                mma_async::Products::new(emitter, self.plan, word)?.emit(
                    emitter,
                    [a, b],
                    &before,
                )?
            }
            (_, before) => self.inline(emitter, (a, stays), b, before)?,
        };
        self.unpack(emitter, &words, op)
    }

    /// The products as inline PTX; gives the accumulators after them.
    fn inline<'c>(
        &self,
        emitter: &Emitter<'c>,
        (a, stays): (Val<'c>, bool),
        b: Val<'c>,
        before: Option<Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let start = match before {
            Some(_) => Start::Keep,
            None => Start::Zero,
        };
        let inline = self.plan.block(start);
        let mut inputs = before.unwrap_or_default();
        match &self.plan.a {
            Source::Shared(shared) => inputs.push(descriptor(emitter, shared, (a, stays))?),
            Source::Registers => inputs.extend(self.a_words(emitter, &inline, a)?),
        }
        inputs.push(b);
        let outputs = vec![self.word_type(emitter); inline.outputs];
        let assembly = Assembly {
            text: inline.text,
            constraints: inline.constraints,
        };
        emitter.assembly(&assembly, &inputs, &outputs)
    }

    /// The type of one 32-bit accumulator.
    fn word_type<'c>(&self, emitter: &Emitter<'c>) -> Type<'c> {
        match self.plan.atom.types.d {
            Accumulator::F32 => emitter.builder.r#type(|context| Type::float32(context)),
            Accumulator::F16 | Accumulator::S32 => types::integer(emitter.builder, 32),
        }
    }

    /// Registers as the instruction's 32-bit accumulators.
    fn pack<'c>(&self, emitter: &Emitter<'c>, values: &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>> {
        let missing = || emitter.error("a register of the plan does not exist");
        let word = |registers: Vec<i64>| {
            let own: Option<Vec<_>> = registers
                .iter()
                .map(|register| values.get(usize::try_from(*register).ok()?).copied())
                .collect();
            match own.ok_or_else(missing)?.as_slice() {
                [value] => Ok(*value),
                several => emitter.word_of(several),
            }
        };
        self.plan.accumulators().into_iter().map(word).collect()
    }

    /// The registers of the result, from 32-bit accumulators.
    fn unpack<'c>(
        &self,
        emitter: &Emitter<'c>,
        words: &[Val<'c>],
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let element = only_result(op).map(|result| element_type(result.r#type()));
        let element = element.ok_or_else(|| emitter.error("expected a result"))?;
        let mut values = vec![None; usize::try_from(self.plan.registers).unwrap_or(0)];
        for (registers, word) in self.plan.accumulators().into_iter().zip(words) {
            let parts = match registers.len() {
                1 => vec![*word],
                _ => {
                    let count = i64::try_from(registers.len()).unwrap_or(1);
                    let vector = emitter.bitcast(*word, types::vector(count, element))?;
                    emitter.unpack(vector, count, element)?
                }
            };
            for (register, part) in registers.into_iter().zip(parts) {
                if let Some(place) = usize::try_from(register)
                    .ok()
                    .and_then(|register| values.get_mut(register))
                {
                    *place = Some(part);
                }
            }
        }
        values
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| emitter.error("an accumulator that no instruction writes"))
    }

    /// A's fragment as 32-bit operands.
    fn a_words<'c>(
        &self,
        emitter: &Emitter<'c>,
        inline: &Inline,
        a: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let values = emitter.registers(a)?.values;
        let missing = || emitter.error("a register of the plan does not exist");
        let word = |registers: &Vec<i64>| {
            let own: Option<Vec<_>> = registers
                .iter()
                .map(|register| values.get(usize::try_from(*register).ok()?).copied())
                .collect();
            emitter.word_of(&own.ok_or_else(missing)?)
        };
        inline.a_words.iter().map(word).collect()
    }
}

/// Whether LLVM would form a product's descriptors in front of a loop over tiles: it unrolls loops of few known steps, and where these
/// are the ring's stages once or several times, each tile begins with the same stage. Registers that all of them are kept in are more
/// than a thread has beside its sums, and what forms them again is one instruction each.
fn is_the_same_in_all_tiles<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> bool {
    for parent in parents(op) {
        match name(parent).as_str() {
            ops::FOR_TILES => return true,
            "scf.for" if emitter.trips(parent).is_none() => return false,
            _ => {}
        }
    }
    false
}

/// The descriptor of a tile in shared memory for this thread's warpgroup, formed where the product is if it `stays` there.
fn descriptor<'c>(
    emitter: &Emitter<'c>,
    shared: &Shared,
    (tile, stays): (Val<'c>, bool),
) -> PassResult<'c, Val<'c>> {
    let memory = emitter.memory(tile)?;
    let i32 = types::integer(emitter.builder, 32);
    // The way to the stage is added last, so that a loop over stages adds nothing else.
    let (root, moved) = match memory.moved {
        Some(moved) => (memory.root, moved),
        None => (memory.base, Int::ZERO),
    };
    let address = emitter.builder.value("llvm.ptrtoint", &[root], i32, &[])?;
    let ints = emitter.ints();
    let mut address = Int::Value(address);
    if !shared.terms.is_empty() {
        let group = ints.div(emitter.warp_in_group()?, WARPGROUP_WARPS)?;
        for term in &shared.terms {
            let digit = ints.rem(ints.div(group, term.divisor)?, term.modulus)?;
            address = ints.add(address, ints.mul(digit, term.bytes)?)?;
        }
    }
    // The field counts 16 bytes of the CTA's own memory: in a cluster an address says the CTA too, above bit 18
    // (PTX ISA 9.7.15.5.1.2.2, "matrix-descriptor-encode").
    let field = ints.and(ints.shift(address, 4)?, 0x3FFF)?;
    let constant = shared.strides.descriptor(0);
    let [low, high] = [constant & 0xFFFF_FFFF, constant & !0xFFFF_FFFF].map(u64::cast_signed);
    let field = ints.add(ints.add(field, Int::Known(low))?, ints.cast(moved)?)?;
    let wide = Ints::new(emitter.builder, 64);
    let i64 = types::integer(emitter.builder, 64);
    let mut field = ints.value(field)?;
    if stays {
        let here = emitter.after("", &[field])?;
        field = here.first().copied().unwrap_or(field);
    }
    let field = emitter.builder.value("arith.extui", &[field], i64, &[])?;
    wide.value(wide.add(Int::Value(field), Int::Known(high))?)
}

/// Waits until at most so many products are pending.
#[derive(Clone, Copy)]
pub(super) struct Wait;

impl Schedule for Wait {
    type Plan = Instruction;

    fn name(&self) -> &'static str {
        "wgmma.wait_group"
    }
}

impl<'c> Match<Site<'_, 'c>> for Wait {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Instruction, Decline> {
        match site.chip().has_wgmma {
            true => Ok(Instruction {}),
            false => Err(Decline::new(format!("{} has no wgmma", site.chip().name))),
        }
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Instruction) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Wait {
    fn emit(
        &self,
        _plan: &Instruction,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut values = Vec::new();
        for operand in operands(op) {
            values.extend(emitter.registers(operand)?.values);
        }
        let text = format!("wgmma.wait_group.sync.aligned {};", pending(op));
        emitter.after(&text, &values)
    }
}
