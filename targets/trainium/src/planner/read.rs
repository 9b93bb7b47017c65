//! A group of operators as a graph of values.

use super::body::Body;
use axe_dialect::{Combiner, ops};
use axe_package::DType;
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::operators::{is_product, is_reshape, splat, start_of};
use axe_passes::fuse::space::{Kind as Lies, Place, place_of, source};
use axe_passes::ir::value::{defining, identity, name, operands};
use axe_passes::ir::{Op, TensorType, Val, attribute, types};
use axe_passes::{PassError, PassResult};
use axe_trn::plan::graph::{Graph, Id, Kind};
use axe_trn::program::Alu;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, TypeLike};
use std::collections::HashMap;

/// The type of an element; `None` for one that packages do not have.
pub(crate) fn dtype(element: Type<'_>) -> Option<DType> {
    let raw = element.to_raw();
    if types::is_integer(element) {
        return Some(match types::bits(element)? {
            1 => DType::Bool,
            8 => DType::I8,
            16 => DType::I16,
            32 => DType::I32,
            64 => DType::I64,
            _ => return None,
        });
    }
    // SAFETY: each function takes any type.
    unsafe {
        let known = [
            (mlir_sys::mlirTypeIsAF32(raw), DType::F32),
            (mlir_sys::mlirTypeIsAF16(raw), DType::F16),
            (mlir_sys::mlirTypeIsABF16(raw), DType::BF16),
            (mlir_sys::mlirTypeIsAF64(raw), DType::F64),
            (mlir_sys::mlirTypeIsAFloat8E4M3FN(raw), DType::F8E4M3),
            (mlir_sys::mlirTypeIsAFloat8E5M2(raw), DType::F8E5M2),
        ];
        known
            .into_iter()
            .find_map(|(is, dtype)| is.then_some(dtype))
    }
}

/// The type of a tensor's elements.
///
/// # Errors
/// At the value's user, for one that no package has.
pub(super) fn element<'c>(user: Op<'c>, value: Val<'c>) -> PassResult<'c, DType> {
    let tensor = TensorType::of_value(value);
    let known = tensor.and_then(|tensor| dtype(tensor.element));
    known.ok_or_else(|| {
        PassError::new(
            user.location(),
            format!("'{}': its elements have no type on Trainium", name(user)),
        )
    })
}

/// The function by which a reduction combines elements of a type.
///
/// # Errors
/// At the reduction, for one that no engine has.
pub(crate) fn combined<'c>(op: Op<'c>, combiner: Combiner, own: DType) -> PassResult<'c, Alu> {
    let alu = match combiner {
        _ if !own.is_float() => None,
        Combiner::Add => Some(Alu::Add),
        Combiner::Mul => Some(Alu::Multiply),
        Combiner::Max => Some(Alu::Maximum),
        Combiner::Min => Some(Alu::Minimum),
        _ => None,
    };
    alu.ok_or_else(|| {
        PassError::new(
            op.location(),
            format!(
                "'{}' of {own}: the engines reduce floats by add, mul, max and min",
                name(op)
            ),
        )
    })
}

const fn kind(lies: Lies) -> Kind {
    match lies {
        // A product's kernel neither reduces blocks here nor forms elements of pairs.
        Lies::Full | Lies::Blocks(_) | Lies::Pairs(_) => Kind::Full,
        Lies::Row => Kind::Row,
        Lies::Column => Kind::Column,
    }
}

/// Reads a group.
pub(super) struct Reader<'c> {
    pub graph: Graph,
    user: Op<'c>,
    inputs: HashMap<(usize, Lies), Id>,
    known: HashMap<(usize, Lies), Id>,
}

impl<'c> Reader<'c> {
    /// A group whose values are those of `fusion`, over rows of so many columns; `user` is where errors are.
    ///
    /// # Errors
    /// At an operator that has no form on the engines.
    pub fn read(fusion: &Fusion<'c>, user: Op<'c>, columns: i64) -> PassResult<'c, Self> {
        let rows = fusion.total.known / columns.max(1);
        let mut reader = Self {
            graph: Graph::new(rows, columns),
            user,
            inputs: HashMap::new(),
            known: HashMap::new(),
        };
        for (at, (value, lies)) in fusion.inputs.iter().enumerate() {
            let dtype = element(user, *value)?;
            let id = reader.graph.input(&format!("in{at}"), kind(*lies), dtype);
            reader.inputs.insert((identity(*value), *lies), id);
        }
        for (at, (value, lies)) in fusion.outputs.iter().enumerate() {
            let dtype = element(user, *value)?;
            let id = reader.value(*value, *lies)?;
            reader
                .graph
                .output(&format!("out{at}"), kind(*lies), dtype, id);
        }
        Ok(reader)
    }

    /// The value that an operator's result is, where it was read.
    pub fn found(&self, value: Val<'c>) -> Option<Id> {
        let kinds = [Lies::Full, Lies::Row, Lies::Column].into_iter();
        kinds
            .filter_map(|lies| self.known.get(&(identity(value), lies)))
            .copied()
            .next()
    }

    fn value(&mut self, value: Val<'c>, lies: Lies) -> PassResult<'c, Id> {
        let key = (identity(value), lies);
        if let Some(known) = self.inputs.get(&key).or_else(|| self.known.get(&key)) {
            return Ok(*known);
        }
        let op = defining(value).ok_or_else(|| self.lost())?;
        let id = self.form(op, value, lies)?;
        self.known.insert(key, id);
        Ok(id)
    }

    const fn body(&mut self) -> Body<'_> {
        Body {
            graph: &mut self.graph,
        }
    }

    fn lost(&self) -> PassError<'c> {
        PassError::new(
            self.user.location(),
            format!(
                "'{}': its kernel has no way to form a value",
                name(self.user)
            ),
        )
    }

    fn form(&mut self, op: Op<'c>, value: Val<'c>, lies: Lies) -> PassResult<'c, Id> {
        let own = element(op, value)?;
        if let Some(scalar) = splat(op) {
            let is_bit = own == DType::Bool;
            let bit = || attribute::integer(scalar).filter(|_| is_bit);
            let number = attribute::float(scalar).or_else(|| bit().map(|n| (n & 1) as f64));
            let number = number.ok_or_else(|| {
                let message = "a constant of integers has no form on Trainium's engines";
                PassError::new(op.location(), message)
            })?;
            return Ok(self.graph.number(number));
        }
        if is_product(op) {
            let sums = self.graph.product();
            let sums = match start_of(op) {
                None => sums,
                Some(start) => {
                    let start = self.value(start, Lies::Full)?;
                    self.graph.binary(Alu::Add, sums, start, DType::F32)
                }
            };
            return Ok(self.graph.cast(sums, own));
        }
        let from = source(op).ok_or_else(|| self.lost())?;
        match name(op).as_str() {
            _ if is_reshape(op) => self.value(from, lies),
            ops::FILL => self.body().captured(op, from),
            ops::CAST => self.cast(op, from, own, lies),
            ops::BROADCAST => match place_of(op, value) {
                Place::Unit => self.value(from, lies),
                Place::Inner(_) => self.value(from, Lies::Row),
                Place::Outer(_) => self.value(from, Lies::Column),
                Place::Mixed => Err(self.lost()),
            },
            ops::MAP => {
                let mut inputs = Vec::new();
                for operand in operands(op) {
                    inputs.push(self.value(operand, lies)?);
                }
                let id = self.body().map(op, &inputs)?;
                Ok(self.graph.cast(id, own))
            }
            ops::REDUCE => self.reduce(op, from, own),
            other => Err(PassError::new(
                op.location(),
                format!("'{other}' has no form in a kernel of rows"),
            )),
        }
    }

    fn cast(&mut self, op: Op<'c>, from: Val<'c>, own: DType, lies: Lies) -> PassResult<'c, Id> {
        let given = element(op, from)?;
        if !given.is_float() || !own.is_float() {
            return Err(PassError::new(
                op.location(),
                format!("a conversion from {given} to {own} is not planned: values are floats"),
            ));
        }
        let from = self.value(from, lies)?;
        Ok(self.graph.cast(from, own))
    }

    fn reduce(&mut self, op: Op<'c>, from: Val<'c>, own: DType) -> PassResult<'c, Id> {
        let alu = combined(op, Fold::of_reduction(op)?.combiner, own)?;
        let from = self.value(from, Lies::Full)?;
        Ok(self.graph.reduce(alu, from, own))
    }
}
