//! Operations that run on operands that nobody chose.
//!
//! A tile may reach beyond its tensor. Its registers hold padding there, or what was computed from padding, and the body
//! of a map runs on them as on the others; what it makes of them is stored nowhere. Poison does no harm then: a shift by
//! too much, a conversion of what does not fit, a broken promise of `nsw`. Undefined behaviour does: LLVM concludes that
//! it does not happen, and deletes the bounds checks that would lead to it. So an operation that is undefined for some
//! operands gets harmless ones in their place, and poison is frozen on the way there. On all other operands it computes
//! what it did.

use crate::error::{PassError, PassResult};
use crate::ir::value::{defined_by, defining, name, operands, parent};
use crate::ir::{Builder, Op, Val, attribute, types, walk};
use axe_dialect::Typed;
use axe_dialect::ops::IndexOp;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

unsafe extern "C" {
    fn axeIsSpeculatable(operation: mlir_sys::MlirOperation) -> bool;
}

/// What an operation is undefined for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undefined {
    /// A divisor of zero.
    Unsigned,
    /// A divisor of zero, and -1 where the dividend is the least value.
    Signed,
    /// A negative power of zero.
    Power,
}

/// The operations that compute scalars and are undefined for some. Upstream's own account of it,
/// `ConditionallySpeculatable`, does not know the remainders, the division that rounds down and those of `llvm`: they
/// are `Pure` (ArithOps.td and LLVMOps.td of MLIR 22.1).
const UNDEFINED: [(&str, Undefined); 19] = [
    ("arith.divui", Undefined::Unsigned),
    ("arith.remui", Undefined::Unsigned),
    ("arith.ceildivui", Undefined::Unsigned),
    ("arith.divsi", Undefined::Signed),
    ("arith.remsi", Undefined::Signed),
    ("arith.ceildivsi", Undefined::Signed),
    ("arith.floordivsi", Undefined::Signed),
    ("index.divu", Undefined::Unsigned),
    ("index.remu", Undefined::Unsigned),
    ("index.ceildivu", Undefined::Unsigned),
    ("index.divs", Undefined::Signed),
    ("index.rems", Undefined::Signed),
    ("index.ceildivs", Undefined::Signed),
    ("index.floordivs", Undefined::Signed),
    ("llvm.udiv", Undefined::Unsigned),
    ("llvm.urem", Undefined::Unsigned),
    ("llvm.sdiv", Undefined::Signed),
    ("llvm.srem", Undefined::Signed),
    ("math.ipowi", Undefined::Power),
];

/// Integer operations that are poison of poison alone, whatever else their operands are.
const DEFINED: [&str; 12] = [
    "arith.andi",
    "arith.extsi",
    "arith.extui",
    "arith.index_cast",
    "arith.index_castui",
    "arith.maxsi",
    "arith.maxui",
    "arith.minsi",
    "arith.minui",
    "arith.ori",
    "arith.trunci",
    "arith.xori",
];

/// Operations that say where an element or a thread is.
const PLACES: [&str; 4] = [
    IndexOp::NAME,
    "gpu.block_id",
    "gpu.cluster_block_id",
    "gpu.thread_id",
];

/// Operations that are looked at behind each other for whether an integer may be poison.
const DEEPEST: usize = 12;

/// The operations that branch, and by how many operands, their first: they are undefined for poison.
const BRANCHES: [(&str, usize); 3] = [("scf.if", 1), ("scf.for", 3), ("scf.condition", 1)];

/// Makes an operation that computes scalars one that is defined on all of them: what it is undefined for is
/// replaced, in front of it. Others stay as they are.
///
/// # Errors
/// When an operation cannot be built.
pub fn define<'c>(op: Op<'c>) -> PassResult<'c> {
    let own = name(op);
    let Some((_, undefined)) = UNDEFINED.iter().find(|(name, _)| *name == own) else {
        return Ok(());
    };
    let all = operands(op);
    let Some(operand) = all.last() else {
        return Ok(());
    };
    let scalars = Scalars {
        builder: Builder::before(op),
        r#type: operand.r#type(),
    };
    match (*undefined, all.as_slice()) {
        _ if !is_scalar(&scalars.builder, scalars.r#type) => {}
        (Undefined::Power, &[base, exponent]) => scalars.power(op, base, exponent)?,
        (kind, &[dividend, divisor]) => {
            scalars.divide(op, dividend, divisor, kind == Undefined::Signed)?;
        }
        _ => {}
    }
    Ok(())
}

/// Freezes what an operation of a map's body branches by. Others stay as they are.
///
/// # Errors
/// When an operation cannot be built.
pub fn define_branch<'c>(op: Op<'c>) -> PassResult<'c> {
    let own = name(op);
    let found = BRANCHES.iter().find(|(name, _)| *name == own);
    let count = found.map_or(0, |(_, count)| *count);
    for (at, value) in operands(op).into_iter().take(count).enumerate() {
        set(op, at, freeze(&Builder::before(op), value)?);
    }
    Ok(())
}

/// Checks that an operation of a map's body can run where there is no element.
///
/// # Errors
/// At an operation that may be undefined there, and that [`define`] knows no harmless operands for.
pub fn check<'c>(op: Op<'c>) -> PassResult<'c> {
    let own = name(op);
    let known = UNDEFINED.iter().any(|(name, _)| *name == own);
    // SAFETY: the operation is live.
    if known
        || loads_anywhere(op)
        || op.region_count() > 0
        || unsafe { axeIsSpeculatable(op.to_raw()) }
    {
        return Ok(());
    }
    Err(PassError::new(
        op.location(),
        format!(
            "'{own}' cannot be in a map's body: it is not defined for all operands, and the body runs on the padding of tiles as well"
        ),
    )
    .note("compute it outside the map, or from operations of arith and math"))
}

/// Whether an operation loads an element whatever its indices are: they are brought into extents that are known, of which none is zero.
fn loads_anywhere(op: Op<'_>) -> bool {
    let from = operands(op).first().copied();
    let shape = from.and_then(|from| types::shape(from.r#type()));
    name(op) == "memref.load" && shape.is_some_and(|shape| shape.iter().all(|extent| *extent > 0))
}

fn set<'c>(op: Op<'c>, at: usize, value: Val<'c>) {
    // SAFETY: the operation is live, and no other reference to it is used while this one is.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_operand(at, value);
}

fn is_scalar<'c>(builder: &Builder<'c>, r#type: Type<'c>) -> bool {
    types::is_integer(r#type) || r#type == builder.index_type()
}

/// The value, or any one where it is poison.
///
/// # Errors
/// When an operation cannot be built.
pub fn freeze<'c>(builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    if defined_by(value, "arith.constant").is_some() {
        return Ok(value);
    }
    let own = value.r#type();
    if types::is_integer(own) {
        return builder.value("llvm.freeze", &[value], own, &[]);
    }
    // To LLVM's dialect an index is no type.
    let i64 = builder.r#type(|context| IntegerType::new(context, 64).into());
    let cast = builder.value("arith.index_cast", &[value], i64, &[])?;
    let frozen = builder.value("llvm.freeze", &[cast], i64, &[])?;
    builder.value("arith.index_cast", &[frozen], own, &[])
}

/// Whether an integer of a kernel is not poison, whatever tensors hold: it is formed of places of elements and threads, and turns of
/// loops. To freeze it would hide from LLVM what it knows of its bits.
#[must_use]
pub fn is_defined(value: Val<'_>) -> bool {
    is_defined_within(value, DEEPEST)
}

fn is_defined_within(value: Val<'_>, depth: usize) -> bool {
    let all_defined = |values: &[Val<'_>]| {
        let mut values = values.iter();
        depth > 0 && values.all(|value| is_defined_within(*value, depth - 1))
    };
    let Some(op) = defining(value) else {
        let Some(turns) = parent(value).filter(|op| name(*op) == "scf.for") else {
            return false;
        };
        let own = walk::blocks(turns).first().copied();
        let first = own.and_then(|block| walk::block_arguments(block).first().copied());
        let bounds = operands(turns);
        return first == Some(value) && all_defined(bounds.get(..3).unwrap_or_default());
    };
    let own = name(op);
    match own.as_str() {
        "arith.constant" => true,
        "arith.divui" | "arith.remui" => {
            let divisor = operands(op).last().copied().and_then(known);
            divisor.is_some_and(|divisor| divisor > 0) && all_defined(&operands(op))
        }
        "arith.addi" | "arith.subi" | "arith.muli" => {
            let flags = op.attribute("overflowFlags").ok();
            let wraps = flags.is_none_or(|flags| flags.to_string() == "#arith.overflow<none>");
            wraps && all_defined(&operands(op))
        }
        _ if DEFINED.contains(&own.as_str()) => all_defined(&operands(op)),
        _ => PLACES.contains(&own.as_str()),
    }
}

/// The integer that a constant is.
fn known(value: Val<'_>) -> Option<i64> {
    let constant = defined_by(value, "arith.constant")?;
    constant
        .attribute("value")
        .ok()
        .and_then(attribute::integer)
}

/// `arith.cmpi`'s predicates that are used here.
#[derive(Clone, Copy)]
enum Predicate {
    Equal = 0,
}

/// Arithmetic in one integer type.
struct Scalars<'c> {
    builder: Builder<'c>,
    r#type: Type<'c>,
}

impl<'c> Scalars<'c> {
    fn number(&self, value: i64) -> PassResult<'c, Val<'c>> {
        let value = IntegerAttribute::new(self.r#type, value);
        self.builder.constant(value.into())
    }

    fn apply(&self, name: &str, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.builder.value(name, &[a, b], a.r#type(), &[])
    }

    fn equal(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let integer = |bits| {
            self.builder
                .r#type(|context| IntegerType::new(context, bits).into())
        };
        let predicate = IntegerAttribute::new(integer(64), Predicate::Equal as i64).into();
        self.builder.value(
            "arith.cmpi",
            &[a, b],
            integer(1),
            &[("predicate", predicate)],
        )
    }

    fn select(&self, condition: Val<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let operands = [condition, a, b];
        self.builder
            .value("arith.select", &operands, a.r#type(), &[])
    }

    /// The least value: the highest bit alone.
    fn least(&self) -> PassResult<'c, Val<'c>> {
        // An index has the 64 bits of the targets' addresses.
        let bits = i64::from(types::bits(self.r#type).unwrap_or(64));
        if bits <= 64 {
            return self.number(i64::MIN >> (64 - bits));
        }
        self.apply("arith.shli", self.number(1)?, self.number(bits - 1)?)
    }

    /// Divides by 1 what cannot be divided: that also is what the quotient of the least value and -1 wraps to.
    fn divide(
        &self,
        op: Op<'c>,
        dividend: Val<'c>,
        divisor: Val<'c>,
        signed: bool,
    ) -> PassResult<'c> {
        if known(divisor).is_some_and(|by| by != 0 && !(signed && by == -1)) {
            return Ok(());
        }
        if signed && types::bits(self.r#type) == Some(1) {
            // The one signed quotient of an i1 that is defined: 0 / -1.
            set(op, 0, self.number(0)?);
            set(op, 1, self.number(-1)?);
            return Ok(());
        }
        let divisor = freeze(&self.builder, divisor)?;
        let mut harmful = self.equal(divisor, self.number(0)?)?;
        if signed {
            let dividend = freeze(&self.builder, dividend)?;
            set(op, 0, dividend);
            let least = self.equal(dividend, self.least()?)?;
            let negated = self.equal(divisor, self.number(-1)?)?;
            let wraps = self.apply("arith.andi", least, negated)?;
            harmful = self.apply("arith.ori", harmful, wraps)?;
        }
        set(op, 1, self.select(harmful, self.number(1)?, divisor)?);
        Ok(())
    }

    /// A negative power of zero becomes its zeroth.
    fn power(&self, op: Op<'c>, base: Val<'c>, exponent: Val<'c>) -> PassResult<'c> {
        if known(exponent).is_some_and(|power| power >= 0) {
            return Ok(());
        }
        let base = freeze(&self.builder, base)?;
        let exponent = freeze(&self.builder, exponent)?;
        let natural = self.apply("arith.maxsi", exponent, self.number(0)?)?;
        let zero = self.equal(base, self.number(0)?)?;
        set(op, 0, base);
        set(op, 1, self.select(zero, natural, exponent)?);
        Ok(())
    }
}
