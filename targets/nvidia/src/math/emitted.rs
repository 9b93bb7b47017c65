//! The machine that builds operations.

use super::machine::{Binary, Machine, Order, Unary, Whole};
use crate::state::types;
use axe_passes::ir::{Builder, Val, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::Type;
use melior::ir::attribute::IntegerAttribute;
use std::cell::{Cell, RefCell};

/// Operations of `arith`, `scf` and `llvm` at a builder's place. What cannot be built is told at the end
/// ([`Emitted::finish`]), where another value has stood for it.
pub(crate) struct Emitted<'c> {
    builder: Cell<Builder<'c>>,
    /// Any value, which stands for what could not be built.
    any: Val<'c>,
    failed: RefCell<Option<PassError<'c>>>,
}

impl<'c> Emitted<'c> {
    /// Operations at this place, of functions of `any` and others.
    pub(crate) fn new(builder: Builder<'c>, any: Val<'c>) -> Self {
        Self {
            builder: Cell::new(builder),
            any,
            failed: RefCell::new(None),
        }
    }

    /// The value, unless one before it could not be built.
    ///
    /// # Errors
    /// The first that there was.
    pub(crate) fn finish(self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }

    fn keep(&self, built: PassResult<'c, Val<'c>>) -> Val<'c> {
        built.unwrap_or_else(|error| {
            self.failed.borrow_mut().get_or_insert(error);
            self.any
        })
    }

    fn f64(&self) -> Type<'c> {
        self.builder.get().r#type(|context| Type::float64(context))
    }

    fn i(&self, bits: u32) -> Type<'c> {
        types::integer(self.builder.get(), bits)
    }

    fn build(&self, name: &str, operands: &[Val<'c>], r#type: Type<'c>) -> Val<'c> {
        self.keep(self.builder.get().value(name, operands, r#type, &[]))
    }

    fn compared(&self, name: &str, predicate: i64, operands: [Val<'c>; 2]) -> Val<'c> {
        let predicate = IntegerAttribute::new(self.i(64), predicate).into();
        let attributes = [("predicate", predicate)];
        let built = self
            .builder
            .get()
            .value(name, &operands, self.i(1), &attributes);
        self.keep(built)
    }

    /// A call of LLVM's intrinsic: the conversion of `gpu` to `nvvm` would turn the operations of math into calls of a
    /// device library.
    fn intrinsic(&self, name: &str, operands: &[Val<'c>]) -> Val<'c> {
        self.keep(intrinsic(
            self.builder.get(),
            name,
            operands,
            self.f64(),
            "none",
        ))
    }

    /// A region that yields what is built in it.
    fn side(&self, build: impl FnOnce() -> [Val<'c>; 3]) -> melior::ir::Region<'c> {
        let outside = self.builder.get();
        let (region, _, inner) = outside.region(&[]);
        self.builder.set(inner);
        let values = build();
        let yielded = self
            .builder
            .get()
            .operation("scf.yield", &values, &[], &[], Vec::new());
        if let Err(error) = yielded {
            self.failed.borrow_mut().get_or_insert(error);
        }
        self.builder.set(outside);
        region
    }
}

/// A call of an intrinsic of LLVM, with these of its flags of fast math.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn intrinsic<'c>(
    builder: Builder<'c>,
    name: &str,
    operands: &[Val<'c>],
    r#type: Type<'c>,
    flags: &str,
) -> PassResult<'c, Val<'c>> {
    let count = i32::try_from(operands.len()).unwrap_or(0);
    let attributes = [
        (
            "fastmathFlags",
            builder.parsed(&format!("#llvm.fastmath<{flags}>"))?,
        ),
        ("intrin", builder.parsed(&format!("\"{name}\""))?),
        (
            "op_bundle_sizes",
            builder.attribute(|context| attribute::i32s(context, &[])),
        ),
        builder.segments(&[count, 0]),
    ];
    builder.value("llvm.call_intrinsic", operands, r#type, &attributes)
}

impl<'c> Machine for Emitted<'c> {
    type Float = Val<'c>;
    type Int = Val<'c>;
    type Bit = Val<'c>;

    fn float(&self, value: f64) -> Val<'c> {
        let builder = self.builder.get();
        self.keep(builder.constant(builder.float(self.f64(), value)))
    }

    fn int(&self, value: i64) -> Val<'c> {
        let value = IntegerAttribute::new(self.i(64), value).into();
        self.keep(self.builder.get().constant(value))
    }

    fn unary(&self, op: Unary, a: Val<'c>) -> Val<'c> {
        match op {
            Unary::Abs => self.intrinsic("llvm.fabs.f64", &[a]),
            Unary::Neg => self.build("arith.negf", &[a], self.f64()),
            Unary::Sqrt => self.intrinsic("llvm.nvvm.sqrt.rn.d", &[a]),
            Unary::RoundEven => self.intrinsic("llvm.rint.f64", &[a]),
        }
    }

    fn binary(&self, op: Binary, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let name = match op {
            Binary::Add => "arith.addf",
            Binary::Sub => "arith.subf",
            Binary::Mul => "arith.mulf",
            Binary::Div => "arith.divf",
            Binary::CopySign => return self.intrinsic("llvm.copysign.f64", &[a, b]),
        };
        self.build(name, &[a, b], self.f64())
    }

    fn fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        self.build("llvm.intr.fma", &[a, b, c], self.f64())
    }

    fn whole(&self, op: Whole, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let name = match op {
            Whole::Add => "arith.addi",
            Whole::Sub => "arith.subi",
            Whole::Mul => "arith.muli",
            Whole::And => "arith.andi",
            Whole::Or => "arith.ori",
            Whole::Shl => "arith.shli",
            Whole::Shr => "arith.shrui",
            Whole::Sar => "arith.shrsi",
            Whole::MulHigh => return self.mul_high(a, b),
        };
        self.build(name, &[a, b], self.i(64))
    }

    fn compare(&self, order: Order, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        // `arith.cmpf`'s oeq, olt and uno.
        let predicate = match order {
            Order::Equal => 1,
            Order::Less | Order::Below => 4,
            Order::Unordered => 14,
        };
        self.compared("arith.cmpf", predicate, [a, b])
    }

    fn compare_int(&self, order: Order, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        // `arith.cmpi`'s eq, slt and ult.
        let predicate = match order {
            Order::Equal | Order::Unordered => 0,
            Order::Less => 2,
            Order::Below => 6,
        };
        self.compared("arith.cmpi", predicate, [a, b])
    }

    fn and(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.build("arith.andi", &[a, b], self.i(1))
    }

    fn or(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.build("arith.ori", &[a, b], self.i(1))
    }

    fn not(&self, a: Val<'c>) -> Val<'c> {
        let one = IntegerAttribute::new(self.i(1), 1).into();
        let one = self.keep(self.builder.get().constant(one));
        self.build("arith.xori", &[a, one], self.i(1))
    }

    fn choose(&self, condition: Val<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.build("arith.select", &[condition, a, b], self.f64())
    }

    fn choose_int(&self, condition: Val<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.build("arith.select", &[condition, a, b], self.i(64))
    }

    fn bits(&self, a: Val<'c>) -> Val<'c> {
        self.build("arith.bitcast", &[a], self.i(64))
    }

    fn of_bits(&self, a: Val<'c>) -> Val<'c> {
        self.build("arith.bitcast", &[a], self.f64())
    }

    fn to_float(&self, a: Val<'c>) -> Val<'c> {
        self.build("arith.sitofp", &[a], self.f64())
    }

    fn branch(
        &self,
        condition: Val<'c>,
        yes: impl FnOnce() -> [Val<'c>; 3],
        no: impl FnOnce() -> [Val<'c>; 3],
    ) -> [Val<'c>; 3] {
        // On elements that no tensor has, the operand may be poison, on which no branch may depend.
        let condition = self.build("llvm.freeze", &[condition], self.i(1));
        let regions = vec![self.side(yes), self.side(no)];
        let types = [self.f64(); 3];
        let built = self
            .builder
            .get()
            .operation("scf.if", &[condition], &types, &[], regions);
        match built {
            Ok(op) => {
                let results = axe_passes::ir::value::results(op);
                std::array::from_fn(|at| results.get(at).copied().unwrap_or(self.any))
            }
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
                [self.any; 3]
            }
        }
    }
}

impl<'c> Emitted<'c> {
    /// `arith.mului_extended`'s upper half.
    fn mul_high(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let types = [self.i(64); 2];
        let built =
            self.builder
                .get()
                .operation("arith.mului_extended", &[a, b], &types, &[], Vec::new());
        self.keep(built.and_then(|op| {
            let high = axe_passes::ir::value::results(op).get(1).copied();
            high.ok_or_else(|| {
                PassError::new(self.any_location(), "a product without its upper half")
            })
        }))
    }

    fn any_location(&self) -> melior::ir::Location<'c> {
        self.builder.get().location
    }
}
