//! A program as a `trn.kernel`: what [`crate::read`] reads back.

use crate::instruction::roles;
use axe_package::DType;
use axe_passes::ir::{Builder, Val};
use axe_passes::{PassError, PassResult};
use axe_trn::program::{
    Accumulate, Alu, Expr, Instruction, Location as Place, Loop, Op, Program, Reduction, Role,
    Scalar, Space, Statement, Step, View,
};
use axe_trn::rules::engine::default_engine;
use melior::ir::attribute::{ArrayAttribute, IntegerAttribute, StringAttribute};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, BlockRef, Location, Type};

/// An origin that is a value, among the static ones (`ShapedType::kDynamic`).
const DYNAMIC: i64 = i64::MIN;

/// The name of an element type in MLIR.
fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::BF16 => "bf16",
        DType::F16 => "f16",
        DType::F8E4M3 => "f8E4M3FN",
        DType::F8E5M2 => "f8E5M2",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::U8 | DType::Bool => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        // No tile has wider ones (B5).
        DType::F32 | DType::F64 | DType::I64 | DType::U64 => "f32",
    }
}

/// A place in a source file as a location; `around` where there is none.
pub(crate) fn location<'c>(around: Location<'c>, place: Option<&Place>) -> Location<'c> {
    let Some(place) = place else { return around };
    let (line, column) = (place.line as usize, place.column as usize);
    let context = around.context();
    // SAFETY: the location is of the same context, which outlives it.
    unsafe {
        Location::from_raw(Location::new(context.to_ref(), &place.file, line, column).to_raw())
    }
}

/// Adds a program as a kernel at the end of a module.
///
/// # Errors
/// When MLIR does not build an operation.
pub(crate) fn kernel<'c>(
    module: BlockRef<'c, 'c>,
    location: Location<'c>,
    program: &Program,
) -> PassResult<'c> {
    let builder = Builder::at_end(module, location);
    let arguments = program
        .buffers
        .iter()
        .filter(|buffer| buffer.role != Role::Local);
    let types: Vec<_> = arguments
        .clone()
        .map(|buffer| tile(&builder, buffer.space, &buffer.shape, buffer.dtype))
        .collect::<PassResult<_>>()?;
    let (region, values, inner) = builder.region(&types);
    let mut writer = Writer {
        program,
        buffers: vec![None; program.buffers.len()],
        indices: vec![None; program.indices.len()],
        comment: None,
    };
    let numbers = program.buffers.iter().enumerate();
    let numbers = numbers.filter(|(_, buffer)| buffer.role != Role::Local);
    for ((number, _), value) in numbers.zip(values) {
        writer.buffers[number] = Some(value);
    }
    writer.statements(&inner, &program.body)?;
    let names: Vec<_> = arguments
        .map(|buffer| text(&builder, &buffer.name))
        .collect();
    let inputs = program.with_role(Role::Input).count();
    let attributes = [
        ("sym_name", text(&builder, &program.name)),
        ("chip", text(&builder, &program.chip)),
        ("inputs", integer(&builder, 64, inputs as i64)),
        (
            "arg_names",
            builder.attribute(|context| {
                // SAFETY: the names are of the same context.
                let names: Vec<_> = names
                    .iter()
                    .map(|name| unsafe { Attribute::from_raw(raw(*name)) })
                    .collect();
                ArrayAttribute::new(context, &names).into()
            }),
        ),
    ];
    builder.operation("trn.kernel", &[], &[], &attributes, vec![region])?;
    Ok(())
}

fn raw(attribute: Attribute<'_>) -> mlir_sys::MlirAttribute {
    use melior::ir::AttributeLike;
    attribute.to_raw()
}

fn text<'c>(builder: &Builder<'c>, text: &str) -> Attribute<'c> {
    builder.attribute(|context| StringAttribute::new(context, text).into())
}

fn integer<'c>(builder: &Builder<'c>, bits: u32, value: i64) -> Attribute<'c> {
    builder.attribute(|context| {
        IntegerAttribute::new(IntegerType::new(context, bits).into(), value).into()
    })
}

fn number<'c>(builder: &Builder<'c>, value: f64) -> Attribute<'c> {
    let f64 = builder.r#type(|context| Type::float64(context));
    builder.float(f64, value)
}

fn tile<'c>(
    builder: &Builder<'c>,
    space: Space,
    shape: &[i64],
    dtype: DType,
) -> PassResult<'c, Type<'c>> {
    let extents: String = shape.iter().map(|extent| format!("{extent}x")).collect();
    let name = format!("!trn.{space}<{extents}{}>", element(dtype));
    let parsed = builder
        .r#type(|context| Type::parse(context, &name).unwrap_or_else(|| Type::none(context)));
    match parsed == builder.r#type(|context| Type::none(context)) {
        false => Ok(parsed),
        true => Err(PassError::new(
            builder.location,
            format!("cannot build the type {name}"),
        )),
    }
}

/// A builder for what comes from a place in the source.
fn located<'c>(builder: &Builder<'c>, place: Option<&Place>) -> Builder<'c> {
    let mut located = *builder;
    located.location = location(builder.location, place);
    located
}

type Attributes<'c> = Vec<(&'static str, Attribute<'c>)>;

struct Writer<'a, 'c> {
    program: &'a Program,
    buffers: Vec<Option<Val<'c>>>,
    indices: Vec<Option<Val<'c>>>,
    /// What the next operation says.
    comment: Option<String>,
}

impl<'c> Writer<'_, 'c> {
    fn statements(&mut self, builder: &Builder<'c>, body: &[Statement]) -> PassResult<'c> {
        for statement in body {
            match statement {
                Statement::Comment(text) => self.comment = Some(text.clone()),
                Statement::Alloc(buffer) => self.alloc(builder, *buffer)?,
                Statement::Instruction(instruction) => self.instruction(builder, instruction)?,
                Statement::Loop(inner) => self.repeat(builder, inner)?,
            }
        }
        Ok(())
    }

    /// The attributes that any operation has.
    fn remarked(&mut self, builder: &Builder<'c>) -> Attributes<'c> {
        let comment = self.comment.take();
        let comment = comment.map(|comment| ("trn.comment", text(builder, &comment)));
        comment.into_iter().collect()
    }

    fn lost(builder: &Builder<'c>, what: &str) -> PassError<'c> {
        PassError::new(
            builder.location,
            format!("{what} is used before it is made"),
        )
    }

    fn alloc(&mut self, builder: &Builder<'c>, number: usize) -> PassResult<'c> {
        let mut attributes = self.remarked(builder);
        let Some(buffer) = self.program.buffers.get(number) else {
            return Err(Self::lost(builder, "a buffer"));
        };
        let builder = &located(builder, buffer.location.as_ref());
        attributes.push(("copies", integer(builder, 64, buffer.copies)));
        attributes.push(("name", text(builder, &buffer.name)));
        if let Some(place) = buffer.place {
            attributes.push(("partition", integer(builder, 64, place.partition)));
            attributes.push(("byte", integer(builder, 64, place.byte)));
        }
        let r#type = tile(builder, buffer.space, &buffer.shape, buffer.dtype)?;
        let value = builder.value("trn.alloc", &[], r#type, &attributes)?;
        self.buffers[number] = Some(value);
        Ok(())
    }

    fn repeat(&mut self, builder: &Builder<'c>, inner: &Loop) -> PassResult<'c> {
        let mut attributes = self.remarked(builder);
        if let Some(name) = self.program.indices.get(inner.index) {
            attributes.push(("trn.index", text(builder, name)));
        }
        let bounds = [inner.lower, inner.upper, inner.step].map(|bound| builder.index(bound));
        let bounds: Vec<_> = bounds.into_iter().collect::<PassResult<_>>()?;
        let (region, arguments, body) = builder.region(&[builder.index_type()]);
        if let Some(index) = self.indices.get_mut(inner.index) {
            *index = arguments.first().copied();
        }
        self.statements(&body, &inner.body)?;
        body.operation("scf.yield", &[], &[], &[], Vec::new())?;
        builder.operation("scf.for", &bounds, &[], &attributes, vec![region])?;
        Ok(())
    }

    fn index(&self, builder: &Builder<'c>, expr: &Expr) -> PassResult<'c, Val<'c>> {
        let (name, a, b) = match expr {
            Expr::Const(value) => return builder.index(*value),
            Expr::Index(index) => {
                let known = self.indices.get(*index).copied().flatten();
                return known.ok_or_else(|| Self::lost(builder, "an index"));
            }
            Expr::Add(a, b) => ("arith.addi", a, self.index(builder, b)?),
            Expr::Mul(a, by) => ("arith.muli", a, builder.index(*by)?),
            Expr::Div(a, by) => ("arith.divui", a, builder.index(*by)?),
            Expr::Mod(a, by) => ("arith.remui", a, builder.index(*by)?),
        };
        let a = self.index(builder, a)?;
        builder.value(name, &[a, b], builder.index_type(), &[])
    }

    /// A view as a value: the buffer itself where it is all of it.
    fn view(&self, builder: &Builder<'c>, view: &View) -> PassResult<'c, Val<'c>> {
        let known = self.buffers.get(view.buffer).copied().flatten();
        let source = known.ok_or_else(|| Self::lost(builder, "a buffer"))?;
        let buffer = &self.program.buffers[view.buffer];
        let sizes = view.shape();
        let plain = view.axes.len() == buffer.shape.len()
            && (view.axes.iter().enumerate())
                .all(|(at, axis)| axis.of == Some(at) && axis.step == 1);
        let at_start = view.origin.iter().all(|origin| *origin == Expr::Const(0));
        if plain && at_start && sizes == buffer.shape {
            return Ok(source);
        }
        let (mut operands, mut origins) = (vec![source], Vec::new());
        for origin in &view.origin {
            origins.push(match origin.constant() {
                Some(constant) => constant,
                None => {
                    operands.push(self.index(builder, origin)?);
                    DYNAMIC
                }
            });
        }
        let mut attributes = vec![
            ("static_origin", builder.i64s(&origins)),
            ("sizes", builder.i64s(&sizes)),
        ];
        if !plain {
            let dims = view
                .axes
                .iter()
                .map(|axis| axis.of.map_or(-1, |of| of as i64));
            let dims: Vec<_> = dims.collect();
            let steps: Vec<_> = view.axes.iter().map(|axis| axis.step).collect();
            attributes.push(("dims", builder.i64s(&dims)));
            attributes.push(("steps", builder.i64s(&steps)));
        }
        let r#type = tile(builder, buffer.space, &sizes, buffer.dtype)?;
        builder.value("trn.view", &operands, r#type, &attributes)
    }

    fn instruction(&mut self, builder: &Builder<'c>, instruction: &Instruction) -> PassResult<'c> {
        let builder = &located(builder, instruction.location.as_ref());
        let op = &instruction.op;
        let name = format!("trn.{}", op.name());
        let mut attributes = self.remarked(builder);
        let (mut values, mut present) = (Vec::new(), Vec::new());
        let own = op.operands();
        for role in roles(&name) {
            let wanted = role.trim_end_matches('?');
            let found = own.iter().find(|operand| operand.role == wanted);
            present.push(i32::from(found.is_some()));
            if let Some(operand) = found {
                values.push(self.view(builder, operand.view)?);
            }
        }
        if SEGMENTED.contains(&op.name()) {
            attributes.push(builder.segments(&present));
        }
        attributes.extend(self.attributes(builder, op));
        let chip = self.program.chip();
        let usual = chip.and_then(|chip| default_engine(op, self.program, chip));
        if usual != Some(instruction.engine) {
            let engines = axe_trn::facts::chip::Engine::ALL;
            let case = engines
                .iter()
                .position(|engine| *engine == instruction.engine);
            attributes.push(("engine", integer(builder, 32, case.unwrap_or(0) as i64)));
        }
        builder.operation(&name, &values, &[], &attributes, Vec::new())?;
        Ok(())
    }

    fn attributes(&self, builder: &Builder<'c>, op: &Op) -> Attributes<'c> {
        let alu = |op: Alu| {
            let case = Alu::ALL.iter().position(|known| *known == op);
            integer(builder, 32, case.unwrap_or(0) as i64)
        };
        let list = |values: &[i64]| builder.i64s(values);
        match op {
            Op::NcMatmul { accumulate, .. } => match accumulate {
                Accumulate::Auto => Vec::new(),
                Accumulate::Always => vec![("accumulate", integer(builder, 32, 1))],
                Accumulate::Never => vec![("accumulate", integer(builder, 32, 2))],
            },
            Op::Memset { value, .. } => vec![("value", number(builder, *value))],
            Op::TensorCopyPredicated { reverse, .. } => flag(builder, "reverse", *reverse),
            Op::NcStreamShuffle { mask, .. } => vec![("mask", list(mask))],
            Op::Activation {
                function,
                scale,
                command,
                ..
            } => {
                let all = axe_trn::program::Function::ALL;
                let case = all.iter().position(|known| known == function);
                let mut attributes =
                    vec![("function", integer(builder, 32, case.unwrap_or(0) as i64))];
                match scale {
                    Scalar::Number(1.0) | Scalar::Tile(_) => {}
                    Scalar::Number(value) => {
                        attributes.push(("scale_value", number(builder, *value)))
                    }
                }
                let command = command.map(|command| i64::from(command == Reduction::ResetReduce));
                attributes.extend(command.map(|case| ("command", integer(builder, 32, case))));
                attributes
            }
            Op::TensorTensor { op, .. } | Op::TensorPartitionReduce { op, .. } => {
                vec![("op", alu(*op))]
            }
            Op::TensorScalar { first, second, .. } => {
                let mut attributes = step(builder, first, ["op0", "value0", "reverse0"]);
                if let Some(second) = second {
                    attributes.extend(step(builder, second, ["op1", "value1", "reverse1"]));
                }
                attributes
            }
            Op::ScalarTensorTensor {
                first,
                op1,
                reverse1,
                ..
            } => {
                let mut attributes = step(builder, first, ["op0", "value0", "reverse0"]);
                attributes.push(("op1", alu(*op1)));
                attributes.extend(flag(builder, "reverse1", *reverse1));
                attributes
            }
            Op::TensorReduce {
                op, axes, negate, ..
            } => {
                let mut attributes = vec![
                    ("op", alu(*op)),
                    ("axes", integer(builder, 64, *axes as i64)),
                ];
                attributes.extend(flag(builder, "negate", *negate));
                attributes
            }
            Op::TensorScalarReduce {
                first, reduce_op, ..
            } => {
                let mut attributes = step(builder, first, ["op0", "value0", "reverse0"]);
                attributes.push(("reduce_op", alu(*reduce_op)));
                attributes
            }
            Op::AffineSelect {
                on_false,
                pattern,
                offset,
                channel_multiplier,
                compare,
                ..
            } => vec![
                ("on_false_value", number(builder, *on_false)),
                ("pattern", list(pattern)),
                ("offset", integer(builder, 64, *offset)),
                (
                    "channel_multiplier",
                    integer(builder, 64, *channel_multiplier),
                ),
                ("cmp_op", alu(*compare)),
            ],
            Op::RangeSelect {
                on_false,
                compare0,
                compare1,
                start,
                ..
            } => vec![
                ("on_false_value", number(builder, *on_false)),
                ("comp_op0", alu(*compare0)),
                ("comp_op1", alu(*compare1)),
                ("range_start", integer(builder, 64, *start)),
            ],
            Op::Iota {
                pattern,
                offset,
                channel_multiplier,
                ..
            } => vec![
                ("pattern", list(pattern)),
                ("offset", integer(builder, 64, *offset)),
                (
                    "channel_multiplier",
                    integer(builder, 64, *channel_multiplier),
                ),
            ],
            Op::TensorTensorScan {
                initial, op0, op1, ..
            } => {
                let mut attributes = vec![("op0", alu(*op0)), ("op1", alu(*op1))];
                if let Scalar::Number(value) = initial {
                    attributes.push(("initial_value", number(builder, *value)));
                }
                attributes
            }
            Op::NcMatchReplace8 { imm, .. } => vec![("imm", number(builder, *imm))],
            Op::NcTranspose { .. }
            | Op::DmaTranspose { .. }
            | Op::DmaCopy { .. }
            | Op::TensorCopy { .. }
            | Op::Reciprocal { .. }
            | Op::BnStats { .. }
            | Op::BnAggr { .. }
            | Op::Max8 { .. }
            | Op::NcFindIndex8 { .. } => Vec::new(),
        }
    }
}

/// Operations with several operands that may be absent (`AttrSizedOperandSegments`).
const SEGMENTED: [&str; 2] = ["activation", "tensor_scalar"];

fn flag<'c>(builder: &Builder<'c>, key: &'static str, set: bool) -> Attributes<'c> {
    set.then(|| (key, builder.unit())).into_iter().collect()
}

fn step<'c>(
    builder: &Builder<'c>,
    step: &Step,
    [op, value, reverse]: [&'static str; 3],
) -> Attributes<'c> {
    let case = Alu::ALL.iter().position(|known| *known == step.op);
    let mut attributes = vec![(op, integer(builder, 32, case.unwrap_or(0) as i64))];
    if let Scalar::Number(given) = step.operand {
        attributes.push((value, number(builder, given)));
    }
    attributes.extend(flag(builder, reverse, step.reverse));
    attributes
}
