//! `axe.gemm` by `mma.sync` (PTX ISA 9.7.14.5).

use super::fma::Shape;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::facts::matrix::{M16N8K8, M16N8K16, Mma};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::mma::{Instruction, MmaPlan};
use crate::state::site::Site;
use crate::state::types;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Type, ValueLike};
use std::rc::Rc;

/// Tensor cores, by warp: f16 and bf16 with m16n8k16, and tf32 with m16n8k8 where the operator allows it.
#[derive(Clone, Copy)]
pub(super) struct MmaSync;

/// A plan on its way to instructions.
struct Product<'a> {
    plan: &'a MmaPlan,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F16,
    Bf16,
    Tf32,
}

impl Kind {
    fn of(op: Op<'_>, element: Type) -> Result<Self, Decline> {
        match element.to_string().as_str() {
            "f16" => Ok(Self::F16),
            "bf16" => Ok(Self::Bf16),
            "f32" if allows_tf32(op) => Ok(Self::Tf32),
            "f32" => Err(Decline::new(
                "f32 operands would be rounded to tf32: allow it with options = {precision = \"tf32\"}",
            )),
            other => Err(Decline::new(format!(
                "expected operands of f16, bf16 or f32, got {other}"
            ))),
        }
    }

    fn atom(self) -> Mma {
        match self {
            Self::F16 | Self::Bf16 => M16N8K16,
            Self::Tf32 => M16N8K8,
        }
    }
}

/// Whether the operator's options allow tf32.
pub(super) fn allows_tf32(op: Op<'_>) -> bool {
    let options = op.attribute("options").ok();
    let precision = options.and_then(|options| types::entry(options, "precision"));
    precision
        .and_then(|precision| StringAttribute::try_from(precision).ok())
        .is_some_and(|precision| precision.value() == "tf32")
}

/// What a product by warps takes.
struct Taken {
    atom: Mma,
    a: Fragment,
    b: Fragment,
    d: Rc<Fragment>,
}

impl Taken {
    fn of(site: Site<'_, '_>) -> Result<Self, Decline> {
        let (a, b) = (site.registers(0)?, site.registers(1)?);
        let kind = Kind::of(site.op, a.element)?;
        if a.element != b.element {
            return Err(Decline::new(format!(
                "expected operands of one type, got {} and {}",
                a.element, b.element
            )));
        }
        let d = site.result()?;
        let result = only_result(site.op).map(|result| element_type(result.r#type()));
        if result.is_none_or(|element| element.to_string() != "f32") {
            return Err(Decline::new("expected sums in f32"));
        }
        let oriented = |fragment: &Fragment, transposed: bool| match transposed {
            true => fragment.transposed(),
            false => Ok(fragment.clone()),
        };
        Ok(Self {
            atom: kind.atom(),
            a: oriented(&a.fragment, site.flag("trans_a"))?,
            b: oriented(&b.fragment, !site.flag("trans_b"))?,
            d,
        })
    }
}

impl Schedule for MmaSync {
    type Plan = MmaPlan;

    fn name(&self) -> &'static str {
        "mma.sync"
    }
}

impl<'c> Match<Site<'_, 'c>> for MmaSync {
    fn plan(&self, site: Site<'_, 'c>) -> Result<MmaPlan, Decline> {
        let Taken { atom, a, b, d } = Taken::of(site)?;
        MmaPlan::new(atom, &a, &b, &d)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &MmaPlan) -> Result<(), Decline> {
        let Taken { atom, a, b, d } = Taken::of(site)?;
        match plan.atom == atom {
            true => plan.check(&a, &b, &d),
            false => Err(Decline::new(format!(
                "expected the instruction {atom}, got {}",
                plan.atom
            ))),
        }
    }
}

impl<'c> Emit<'c> for MmaSync {
    fn emit(
        &self,
        plan: &MmaPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let a = emitter.registers(emitter.source(op)?)?;
        let kind = Kind::of(op, a.element);
        let kind = kind.map_err(|decline| emitter.error(decline.to_string()))?;
        Product { plan, kind }.emit(emitter, op)
    }
}

impl Product<'_> {
    fn emit<'c>(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let shape = Shape::of(emitter, op)?;
        let (a, b) = match operands(op).as_slice() {
            [a, b, ..] => (emitter.registers(*a)?, emitter.registers(*b)?),
            _ => return Err(emitter.error("expected two operands")),
        };
        let (a_words, b_words) = (
            self.words(emitter, &a.values, a.element)?,
            self.words(emitter, &b.values, b.element)?,
        );
        let mut sums = shape.start(emitter, op)?;
        let attributes = self.attributes(emitter)?;
        for instruction in &self.plan.instructions {
            self.multiply(
                emitter,
                instruction,
                &a_words,
                &b_words,
                &mut sums,
                &attributes,
            )?;
        }
        Ok(sums)
    }

    fn packed(&self) -> usize {
        usize::try_from(4 / self.plan.atom.element_bytes).unwrap_or(1)
    }

    /// The 32-bit registers of an operand, as the instruction takes them.
    fn words<'c>(
        &self,
        emitter: &Emitter<'c>,
        values: &[Val<'c>],
        element: Type<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let i32 = types::integer(emitter.builder, 32);
        let word = |elements: &[Val<'c>]| match (self.kind, elements) {
            (Kind::Tf32, [value]) => emitter.bitcast(*value, i32),
            (Kind::F16, _) => emitter.pack(elements, element),
            _ => emitter.bitcast(emitter.pack(elements, element)?, i32),
        };
        values.chunks(self.packed()).map(word).collect()
    }

    fn attributes<'c>(
        &self,
        emitter: &Emitter<'c>,
    ) -> PassResult<'c, Vec<(&'static str, Attribute<'c>)>> {
        let Mma { m, n, k, .. } = self.plan.atom;
        let builder = emitter.builder;
        let mut attributes = vec![
            (
                "shape",
                builder.parsed(&format!("#nvvm.shape<m = {m}, n = {n}, k = {k}>"))?,
            ),
            ("layoutA", builder.parsed("#nvvm.mma_layout<row>")?),
            ("layoutB", builder.parsed("#nvvm.mma_layout<col>")?),
        ];
        let named = match self.kind {
            Kind::F16 => "f16",
            Kind::Bf16 => "bf16",
            Kind::Tf32 => "tf32",
        };
        let r#type = builder.parsed(&format!("#nvvm.mma_type<{named}>"))?;
        attributes.extend([
            ("multiplicandAPtxType", r#type),
            ("multiplicandBPtxType", r#type),
        ]);
        Ok(attributes)
    }

    fn multiply<'c>(
        &self,
        emitter: &Emitter<'c>,
        instruction: &Instruction,
        a: &[Val<'c>],
        b: &[Val<'c>],
        sums: &mut [Val<'c>],
        attributes: &[(&'static str, Attribute<'c>)],
    ) -> PassResult<'c> {
        let (a_count, b_count, d_count) = self.plan.atom.registers();
        let packed = self.packed();
        let range = |first: i64, packed: usize, count: i64| {
            let (first, count) = (
                usize::try_from(first).unwrap_or(0),
                usize::try_from(count).unwrap_or(0),
            );
            first / packed..first / packed + count
        };
        let (a, b) = (
            a.get(range(instruction.a, packed, a_count)),
            b.get(range(instruction.b, packed, b_count)),
        );
        let (Some(a), Some(b), Some(sums)) = (a, b, sums.get_mut(range(instruction.d, 1, d_count)))
        else {
            return Err(emitter.error("a register of the plan does not exist"));
        };
        let builder = emitter.builder;
        let f32 = builder.r#type(|context| Type::float32(context));
        let operands: Vec<_> = a.iter().chain(b).chain(sums.iter()).copied().collect();
        let sizes = [a.len(), b.len(), sums.len()].map(|size| i32::try_from(size).unwrap_or(0));
        let mut attributes = attributes.to_vec();
        attributes.push(builder.segments(&sizes));
        let result = types::structure(builder, sums.len(), f32);
        let product = builder.value("nvvm.mma.sync", &operands, result, &attributes)?;
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = emitter.field(product, at, f32)?;
        }
        Ok(())
    }
}
