//! The host function as steps on buffers: sizes, constants, reshapes, and [`launch`]es.

mod launch;

use crate::error::CompileError;
use axe_cpu::dtype;
use axe_dialect::ops;
use axe_package::{Arg, Buffer, BufferInit, DType, Expr, Kernel, MemRef, Step, Symbol, TensorSpec};
use axe_passes::ir::value::{identity, name, operands, results};
use axe_passes::ir::walk::{blocks, operations};
use axe_passes::ir::{DYNAMIC, Op, TensorType, Val, attribute};
use axe_passes::{PassError, PassResult};
use axe_toolchain::Toolchain;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{AttributeLike, BlockLike, ValueLike};
use mlir_sys as sys;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A tensor of the host function.
#[derive(Clone, Debug)]
struct Place {
    /// The memory; none for a `tensor.empty`, which is a type and sizes: whoever writes to it gets memory of
    /// its own.
    memory: Option<String>,
    shape: Vec<Expr>,
    dtype: DType,
}

/// What a value of the host function is.
#[derive(Clone, Debug)]
enum Known {
    Int(Expr),
    /// A comparison of two integers, by `arith.cmpi`'s predicate.
    Comparison(i64, Expr, Expr),
    Float(f64),
    Tensor(Place),
}

/// `arith.cmpi eq`.
const EQUAL: i64 = 0;
/// `arith.cmpi sge`.
const AT_LEAST: i64 = 5;

/// What a host function does.
pub(crate) struct Host {
    toolchain: &'static dyn Toolchain,
    pub symbols: Vec<Symbol>,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    pub buffers: Vec<Buffer>,
    pub kernels: Vec<Kernel>,
    pub steps: Vec<Step>,
    pub files: BTreeMap<String, Vec<u8>>,
    values: HashMap<usize, Known>,
    /// Values of operations that have no form in a package.
    unknown: HashSet<usize>,
    made: usize,
}

fn error<'c>(op: Op<'c>, message: impl Into<String>) -> PassError<'c> {
    PassError::new(op.location(), message)
}

/// Reads a host function.
///
/// # Errors
/// At each operation that a package cannot hold.
pub(crate) fn read(
    toolchain: &'static dyn Toolchain,
    function: Op<'_>,
) -> Result<Host, CompileError> {
    let mut host = Host {
        toolchain,
        symbols: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        buffers: Vec::new(),
        kernels: Vec::new(),
        steps: Vec::new(),
        files: BTreeMap::new(),
        values: HashMap::new(),
        unknown: HashSet::new(),
        made: 0,
    };
    match host.function(function).as_slice() {
        [] => Ok(host),
        failures => Err(CompileError::host(failures)),
    }
}

impl Host {
    /// Reads the function; every failure.
    fn function<'c>(&mut self, function: Op<'c>) -> Vec<PassError<'c>> {
        let all = blocks(function);
        let [body] = all.as_slice() else {
            return vec![error(function, "expected a function of one block")];
        };
        let mut failures = Vec::new();
        for at in 0..body.argument_count() {
            // SAFETY: the position is below the count.
            let argument = unsafe {
                Val::from_raw(sys::mlirBlockGetArgument(
                    body.to_raw(),
                    isize::try_from(at).unwrap_or(0),
                ))
            };
            failures.extend(self.input(function, argument, at).err());
        }
        for op in operations(*body) {
            let Err(why) = self.operation(op) else {
                continue;
            };
            // What follows from a failure is not one of its own.
            let follows = operands(op)
                .iter()
                .any(|operand| self.unknown.contains(&identity(*operand)));
            failures.extend((!follows).then_some(why));
            self.unknown.extend(results(op).into_iter().map(identity));
        }
        failures
    }

    fn input<'c>(&mut self, function: Op<'c>, argument: Val<'c>, at: usize) -> PassResult<'c> {
        let (shape, dtype) = tensor_type(function, argument)?;
        let name = format!("arg{at}");
        let mut extents = Vec::new();
        for (dim, extent) in shape.into_iter().enumerate() {
            if extent != DYNAMIC {
                extents.push(Expr::Const(extent));
                continue;
            }
            let symbol = format!("{name}_dim{dim}");
            self.symbols
                .push(Symbol::of_dim(symbol.clone(), name.clone(), dim));
            extents.push(Expr::sym(symbol));
        }
        self.inputs
            .push(TensorSpec::new(name.clone(), dtype, extents.clone()));
        self.set(
            argument,
            Known::Tensor(Place {
                memory: Some(name),
                shape: extents,
                dtype,
            }),
        );
        Ok(())
    }

    fn set(&mut self, value: Val<'_>, known: Known) {
        self.values.insert(identity(value), known);
    }

    fn int<'c>(&self, op: Op<'c>, value: Val<'c>) -> PassResult<'c, Expr> {
        match self.values.get(&identity(value)) {
            Some(Known::Int(expr)) => Ok(expr.clone()),
            _ => Err(error(
                op,
                "expected an integer that the launch's arguments give",
            )),
        }
    }

    fn tensor<'c>(&self, op: Op<'c>, value: Val<'c>) -> PassResult<'c, Place> {
        match self.values.get(&identity(value)) {
            Some(Known::Tensor(place)) => Ok(place.clone()),
            _ => Err(error(op, "expected a tensor that is in memory")),
        }
    }

    fn operation<'c>(&mut self, op: Op<'c>) -> PassResult<'c> {
        let (name, operands, results) = (name(op), operands(op), results(op));
        let known = match (name.as_str(), operands.as_slice(), results.as_slice()) {
            ("arith.constant", [], [result]) => self.constant(op, *result)?,
            ("arith.index_cast" | "arith.index_castui", [a], _) => Known::Int(self.int(op, *a)?),
            ("tensor.dim", [tensor, dim], _) => self.dim(op, *tensor, *dim)?,
            ("tensor.empty", sizes, [result]) => self.empty(op, sizes, *result)?,
            (
                "tensor.expand_shape" | "tensor.collapse_shape" | "tensor.cast",
                [source, ..],
                [result],
            ) => self.reshape(op, *source, *result)?,
            ("arith.cmpi", [a, b], _) => {
                let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
                Known::Comparison(
                    predicate.unwrap_or(-1),
                    self.int(op, *a)?,
                    self.int(op, *b)?,
                )
            }
            ("cf.assert", [condition], _) => return self.assert(op, *condition),
            (ops::LAUNCH, ..) => return self.launch(op),
            ("func.return", values, _) => return self.finish(op, values),
            (_, [a, b], [_]) => match binary(&name) {
                Some(apply) => Known::Int(apply(self.int(op, *a)?, self.int(op, *b)?)),
                None => return Err(unsupported(op, &name)),
            },
            _ => return Err(unsupported(op, &name)),
        };
        if let Some(result) = results.first() {
            self.set(*result, known);
        }
        Ok(())
    }

    /// Dimensions that must be equal are one symbol, which the launch's arguments then agree on; what else must be
    /// equal is compared before the first launch.
    fn assert<'c>(&mut self, op: Op<'c>, condition: Val<'c>) -> PassResult<'c> {
        match self.values.get(&identity(condition)).cloned() {
            Some(Known::Int(Expr::Const(1 | -1))) => Ok(()),
            Some(Known::Comparison(EQUAL, a, b)) if a == b => Ok(()),
            // An extent is never negative.
            Some(Known::Comparison(AT_LEAST, own, Expr::Const(least)))
                if own.least().is_some_and(|own| own >= least) =>
            {
                Ok(())
            }
            Some(Known::Comparison(EQUAL, Expr::Sym(one), Expr::Sym(other))) => {
                self.unify(&one, &other);
                Ok(())
            }
            Some(Known::Comparison(EQUAL, a, b)) => {
                let message = op.attribute("msg").ok();
                let message = message.and_then(|text| StringAttribute::try_from(text).ok());
                self.steps.push(Step::Assert {
                    equal: [a, b],
                    message: message.map_or_else(String::new, |text| text.value().to_owned()),
                });
                Ok(())
            }
            _ => Err(error(
                op,
                "expected an assertion that two extents are equal",
            )),
        }
    }

    /// Puts the symbol `one` in the place of `other`.
    fn unify(&mut self, one: &str, other: &str) {
        self.symbols.retain(|symbol| symbol.name != other);
        let change = |expr: &mut Expr| expr.rename(other, one);
        let shapes = self.inputs.iter_mut().map(|input| &mut input.shape);
        let shapes = shapes.chain(self.buffers.iter_mut().map(|buffer| &mut buffer.shape));
        shapes.flatten().for_each(change);
        for step in &mut self.steps {
            step.for_each_expr_mut(change);
        }
        for known in self.values.values_mut() {
            match known {
                Known::Tensor(place) => place.shape.iter_mut().for_each(change),
                Known::Int(expr) => change(expr),
                Known::Comparison(_, a, b) => [a, b].into_iter().for_each(change),
                Known::Float(_) => {}
            }
        }
    }

    fn constant<'c>(&mut self, op: Op<'c>, result: Val<'c>) -> PassResult<'c, Known> {
        let value = op
            .attribute("value")
            .map_err(|_| error(op, "expected a value"))?;
        if let Some(number) = attribute::integer(value) {
            return Ok(Known::Int(Expr::Const(number)));
        }
        if let Some(number) = attribute::float(value) {
            return Ok(Known::Float(number));
        }
        let (shape, dtype) = tensor_type(op, result)?;
        let bytes = dense_bytes(value, &shape, dtype).ok_or_else(|| {
            error(
                op,
                "expected a dense constant of a number of bytes an element",
            )
        })?;
        let name = self.unused("constant");
        let file = format!("{name}.bin");
        let shape: Vec<_> = shape.into_iter().map(Expr::Const).collect();
        self.buffers.push(buffer(
            &name,
            dtype,
            &shape,
            BufferInit::Data { file: file.clone() },
        ));
        self.files.insert(file, bytes);
        Ok(Known::Tensor(Place {
            memory: Some(name),
            shape,
            dtype,
        }))
    }

    fn dim<'c>(&self, op: Op<'c>, tensor: Val<'c>, dim: Val<'c>) -> PassResult<'c, Known> {
        let at = self
            .int(op, dim)?
            .as_const()
            .and_then(|dim| usize::try_from(dim).ok());
        let place = self.tensor(op, tensor)?;
        let extent = at.and_then(|at| place.shape.get(at).cloned());
        extent
            .map(Known::Int)
            .ok_or_else(|| error(op, "expected a known dimension of the tensor"))
    }

    fn empty<'c>(&self, op: Op<'c>, sizes: &[Val<'c>], result: Val<'c>) -> PassResult<'c, Known> {
        let (extents, dtype) = tensor_type(op, result)?;
        let mut sizes = sizes.iter();
        let mut shape = Vec::new();
        for extent in extents {
            shape.push(match extent {
                DYNAMIC => {
                    let size = sizes
                        .next()
                        .ok_or_else(|| error(op, "expected a size for each dynamic extent"))?;
                    self.int(op, *size)?
                }
                extent => Expr::Const(extent),
            });
        }
        Ok(Known::Tensor(Place {
            memory: None,
            shape,
            dtype,
        }))
    }

    /// The same memory under another shape.
    fn reshape<'c>(&self, op: Op<'c>, source: Val<'c>, result: Val<'c>) -> PassResult<'c, Known> {
        let place = self.tensor(op, source)?;
        let (extents, _) = tensor_type(op, result)?;
        let dynamic = extents.iter().filter(|extent| **extent == DYNAMIC).count();
        let known = match dynamic {
            // One extent follows from the number of elements.
            ..2 => remaining(&place.shape, &extents),
            _ => self.reshaped(op, &place.shape)?,
        };
        let mut known = known.into_iter();
        let mut shape = Vec::new();
        for extent in extents {
            shape.push(match extent {
                DYNAMIC => known
                    .next()
                    .ok_or_else(|| error(op, "expected a size for each dynamic extent"))?,
                extent => Expr::Const(extent),
            });
        }
        Ok(Known::Tensor(Place { shape, ..place }))
    }

    /// The dynamic extents of a reshape's result: those that an expansion names, those of a collapse's groups.
    fn reshaped<'c>(&self, op: Op<'c>, from: &[Expr]) -> PassResult<'c, Vec<Expr>> {
        let result = results(op).first().copied();
        let extents = result
            .and_then(TensorType::of_value)
            .map(|found| found.shape);
        let extents = extents.unwrap_or_default();
        let dynamic = |at: &usize| extents.get(*at) == Some(&DYNAMIC);
        match name(op).as_str() {
            "tensor.expand_shape" => {
                let sizes = operands(op).into_iter().skip(1);
                sizes.map(|size| self.int(op, size)).collect()
            }
            "tensor.collapse_shape" => {
                let groups = op.attribute("reassociation").ok();
                let groups = groups.and_then(attribute::read_groups).unwrap_or_default();
                let extent = |dim: &i64| {
                    usize::try_from(*dim)
                        .ok()
                        .and_then(|dim| from.get(dim).cloned())
                };
                let product = |group: &Vec<i64>| {
                    group
                        .iter()
                        .filter_map(extent)
                        .fold(Expr::Const(1), product)
                };
                let found = groups.iter().enumerate().filter(|(at, _)| dynamic(at));
                Ok(found.map(|(_, group)| product(group)).collect())
            }
            _ => Ok((0..extents.len())
                .filter(dynamic)
                .filter_map(|at| from.get(at).cloned())
                .collect()),
        }
    }

    /// A name that no memory has yet.
    fn unused(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}{}", self.made - 1)
    }

    /// A buffer of the size of a tensor, for its name.
    fn reserve(&mut self, place: &Place) -> String {
        let name = self.unused("buffer");
        let shape = &place.shape;
        self.buffers
            .push(buffer(&name, place.dtype, shape, BufferInit::Undefined));
        name
    }

    /// A buffer with the content of a tensor, for its name.
    fn copied(&mut self, place: &Place) -> String {
        let name = self.reserve(place);
        self.copy(place, &name);
        name
    }

    /// Copies a tensor; of an empty one, which has any value, nothing.
    fn copy(&mut self, from: &Place, to: &str) {
        let Some(memory) = from.memory.clone() else {
            return;
        };
        let elements = from.shape.iter().cloned().fold(Expr::Const(1), product);
        let bytes = product(
            elements,
            Expr::Const(i64::try_from(from.dtype.bytes()).unwrap_or(0)),
        );
        self.steps.push(Step::Copy {
            from: MemRef::start_of(memory),
            to: MemRef::start_of(to),
            bytes,
        });
    }

    /// The results become outputs: a buffer by its new name, other memory by a copy.
    fn finish<'c>(&mut self, op: Op<'c>, values: &[Val<'c>]) -> PassResult<'c> {
        for (at, value) in values.iter().enumerate() {
            let place = self.tensor(op, *value)?;
            let name = format!("out{at}");
            self.outputs.push(TensorSpec::new(
                name.clone(),
                place.dtype,
                place.shape.clone(),
            ));
            let Some(memory) = place.memory.clone() else {
                return Err(error(op, format!("nothing writes result {at}")));
            };
            let own = self
                .buffers
                .iter()
                .position(|buffer| buffer.name == memory && buffer.init == BufferInit::Undefined);
            let again = values.iter().skip(at + 1).any(|other| {
                matches!(self.values.get(&identity(*other)), Some(Known::Tensor(other)) if other.memory.as_ref() == Some(&memory))
            });
            match own.filter(|_| !again) {
                None => self.copy(&place, &name),
                Some(buffer) => {
                    self.buffers.remove(buffer);
                    self.rename(&memory, &name);
                }
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) {
        let change = |memory: &mut MemRef| {
            if memory.name == from {
                to.clone_into(&mut memory.name);
            }
        };
        for step in &mut self.steps {
            match step {
                Step::Launch(launch) => {
                    for arg in &mut launch.args {
                        if let Arg::Memory(memory) | Arg::Tensor { at: memory, .. } = arg {
                            change(memory);
                        }
                    }
                }
                Step::Fill { to, .. } => change(to),
                Step::Copy { from, to, .. } => {
                    change(from);
                    change(to);
                }
                Step::Assert { .. } => {}
            }
        }
    }
}

fn unsupported<'c>(op: Op<'c>, name: &str) -> PassError<'c> {
    error(
        op,
        format!(
            "'{name}' on the host has no form in a package: expected launches, sizes, constants and reshapes; write it as an operation of linalg, or compile for the host (--target cpu)"
        ),
    )
}

fn binary(name: &str) -> Option<fn(Expr, Expr) -> Expr> {
    Some(match name {
        "arith.addi" => |a, b| a.add(b),
        "arith.subi" => |a, b| a.sub(b),
        "arith.muli" => product,
        "arith.divui" | "arith.divsi" | "arith.floordivsi" => |a, b| a.floor_div(b),
        "arith.ceildivui" | "arith.ceildivsi" => |a, b| a.ceil_div(b),
        "arith.remui" | "arith.remsi" => |a, b| a.modulo(b),
        "arith.minui" | "arith.minsi" => |a, b| a.min(b),
        "arith.maxui" | "arith.maxsi" => |a, b| a.max(b),
        _ => return None,
    })
}

/// The dynamic one of `extents`, for as many elements as `shape` has.
fn remaining(shape: &[Expr], extents: &[i64]) -> Vec<Expr> {
    let fixed = extents.iter().filter(|extent| **extent != DYNAMIC);
    let fixed = fixed.fold(1i64, |product, extent| product.saturating_mul(*extent));
    let total = shape.iter().cloned().fold(Expr::Const(1), product);
    match fixed {
        1 => vec![total],
        // Without elements there is no telling, and no need to.
        0 => vec![Expr::Const(0)],
        _ => vec![total.floor_div(fixed)],
    }
}

/// `a b`, without factors of one.
fn product(a: Expr, b: Expr) -> Expr {
    match (a.as_const(), b.as_const()) {
        (Some(1), _) => b,
        (_, Some(1)) => a,
        _ => a.mul(b),
    }
}

fn buffer(name: &str, dtype: DType, shape: &[Expr], init: BufferInit) -> Buffer {
    Buffer {
        name: name.to_owned(),
        dtype,
        shape: shape.to_vec(),
        align: axe_package::DEFAULT_ALIGNMENT,
        init,
    }
}

fn tensor_type<'c>(op: Op<'c>, value: Val<'c>) -> PassResult<'c, (Vec<i64>, DType)> {
    let found = TensorType::of_value(value);
    let typed = found.and_then(|found| Some((found.shape, dtype(found.element)?)));
    typed.ok_or_else(|| {
        error(
            op,
            format!("expected a tensor of numbers, got {}", value.r#type()),
        )
    })
}

/// The elements of a dense constant, little-endian; a splat repeated.
fn dense_bytes(value: melior::ir::Attribute<'_>, shape: &[i64], dtype: DType) -> Option<Vec<u8>> {
    let total = |count: usize, extent: &i64| count.checked_mul(usize::try_from(*extent).ok()?);
    let count = shape.iter().try_fold(1, total)?;
    count.checked_mul(dtype.bytes())?;
    let raw = value.to_raw();
    if let Some(bytes) = axe_passes::ir::attribute::resource(value) {
        return (bytes.len() == count * dtype.bytes()).then(|| bytes.to_vec());
    }
    // SAFETY: the kind is checked; the data has one element for a splat, and all of them otherwise.
    unsafe {
        if !sys::mlirAttributeIsADenseElements(raw) {
            return None;
        }
        let splat = sys::mlirDenseElementsAttrIsSplat(raw);
        if dtype == DType::Bool {
            // Held in bits, or in bytes: the accessor knows.
            let element = |at: usize| {
                let at = if splat {
                    0
                } else {
                    isize::try_from(at).unwrap_or(0)
                };
                u8::from(sys::mlirDenseElementsAttrGetBoolValue(raw, at))
            };
            return Some((0..count).map(element).collect());
        }
        let data = sys::mlirDenseElementsAttrGetRawData(raw).cast::<u8>();
        let held = if splat { 1 } else { count };
        let bytes = std::slice::from_raw_parts(data, held * dtype.bytes());
        Some(if splat {
            bytes.repeat(count)
        } else {
            bytes.to_vec()
        })
    }
}
