//! Loops that read few elements of what is computed element by element, as the loss of a row reads one of its logarithms of
//! probabilities: what those are computed of is read instead, and what is computed of it is computed of few elements. What a row has
//! one value of is at hand in the row's kernel.

use super::computed::{is_computed, kept, units};
use super::extremes;
use super::inline::{all_readers, elements, follows_product};
use super::pointwise::{Pointwise, parallel_generic};
use crate::PassResult;
use crate::build::Code;
use crate::fuse::operators::{is_operator, is_product, is_reshape, is_widening, splat};
use crate::fuse::reshape::reshape;
use crate::fuse::space::source;
use crate::ir::value::{
    defining, identity, is_used, name, only_result, operands, replace_all_uses, results, users,
};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, walk};
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{BlockRef, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// Makes operators of rows of a function's loops, for a chip that so many rows are enough for, before operators are grouped: of places of
/// extremes ([`super::extremes`]), and of loops that read few computed elements. What is left of the operations, without those that
/// nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn to_rows<'c>(ops: &[Op<'c>], enough: i64) -> PassResult<'c, Vec<Op<'c>>> {
    for &op in ops.iter().filter(|op| super::is_nest(**op)) {
        if let Some(hoist) = Hoist::of(op) {
            hoist.replace()?;
        } else {
            extremes::to_reductions(op, enough)?;
        }
    }
    let mut kept = Vec::new();
    for &op in ops.iter().rev() {
        let computes = is_operator(op) || super::is_nest(op);
        if computes && !results(op).into_iter().any(is_used) {
            walk::erase(op);
        } else {
            kept.push(op);
        }
    }
    kept.reverse();
    Ok(kept)
}

/// How many times as many elements as are read a tensor has at the least.
const LEAST_LEFT: i64 = 4;

/// What a dimension of a tensor is read at.
#[derive(Clone, Copy, Debug)]
enum At<'c> {
    /// The only index that there is.
    Zero,
    /// A value of the body.
    Value(Val<'c>),
}

/// Loops that read elements of computed tensors.
struct Hoist<'c> {
    nest: Pointwise<'c>,
    block: BlockRef<'c, 'c>,
    /// The operations that read them.
    extracts: Vec<Op<'c>>,
    builder: Builder<'c>,
}

impl<'c> Hoist<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let nest = Pointwise::of(op)?;
        let block = walk::blocks(op).first().copied()?;
        let reads = |op: &Op<'c>| {
            let table = source(*op).filter(|_| name(*op) == "tensor.extract");
            table.is_some_and(is_computed)
        };
        let extracts: Vec<_> = walk::operations(block).into_iter().filter(reads).collect();
        let known = !nest.shape.contains(&DYNAMIC) && nest.reads_few();
        let few = || {
            extracts
                .iter()
                .filter_map(|op| source(*op))
                .all(few_are_read)
        };
        (known && !extracts.is_empty() && few()).then_some(Self {
            nest,
            block,
            extracts,
            builder: Builder::before(op),
        })
    }

    /// Puts what is computed of the elements that are read in the place of the loops' result.
    fn replace(&self) -> PassResult<'c> {
        let mut formed = HashMap::new();
        let mut known = HashMap::new();
        for extract in &self.extracts {
            let all = operands(*extract);
            let (Some((table, at)), Some(own)) = (all.split_first(), only_result(*extract)) else {
                return Ok(());
            };
            let at: Vec<_> = at.iter().map(|at| At::Value(*at)).collect();
            formed.insert(identity(own), self.elements(*table, &at, &mut known)?);
        }
        let yielded = walk::operations(self.block)
            .last()
            .map(|last| operands(*last));
        let yielded = yielded.and_then(|yielded| yielded.first().copied());
        let (Some(yielded), Some(result)) = (yielded, only_result(self.nest.op)) else {
            return Ok(());
        };
        let made = match formed.get(&identity(yielded)) {
            Some(whole) => *whole,
            None => self.rest(yielded, &formed)?,
        };
        replace_all_uses(result, made);
        Ok(())
    }

    /// A tensor of the loops' shape, with the elements of `value` that they read at this index.
    fn elements(
        &self,
        value: Val<'c>,
        at: &[At<'c>],
        known: &mut HashMap<(usize, Vec<usize>), Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let place = |at: &At<'c>| match at {
            At::Zero => 0,
            At::Value(at) => identity(*at),
        };
        let key = (identity(value), at.iter().map(place).collect());
        if let Some(formed) = known.get(&key) {
            return Ok(*formed);
        }
        let computed = defining(value).filter(|op| is_computed(value) && !is_stored(*op, value));
        let formed = match computed {
            Some(op) => self.computed(op, at, known)?,
            None if self.is_own(value, at) => {
                reshape(&self.builder, value, &self.nest.shape, None)?
            }
            None => self.gather(value, at)?,
        };
        known.insert(key, formed);
        Ok(formed)
    }

    /// The same of the result of an operator.
    fn computed(
        &self,
        op: Op<'c>,
        at: &[At<'c>],
        known: &mut HashMap<(usize, Vec<usize>), Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let builder = &self.builder;
        let Some((result, tensor)) = only_result(op).and_then(|result| {
            let tensor = TensorType::of_value(result)?;
            Some((result, tensor))
        }) else {
            return builder.result_of(op);
        };
        let r#type = builder.tensor(&self.nest.shape, tensor.element)?;
        if let Some(number) = splat(op) {
            let number = builder.constant(number)?;
            return builder.operator_value(&FillOp::operands(number, None, &[]), r#type, &[]);
        }
        if let Some(fill) = FillOp::of(op) {
            return builder.operator_value(&FillOp::operands(fill.value, None, &[]), r#type, &[]);
        }
        let mut read = Vec::new();
        for operand in operands(op) {
            let at = match name(op).as_str() {
                ops::BROADCAST => kept(op, at),
                _ if is_reshape(op) => units(operand, &tensor.shape, at, At::Zero),
                _ => at.to_vec(),
            };
            read.push(self.elements(operand, &at, known)?);
        }
        if name(op) == ops::BROADCAST || is_reshape(op) {
            return Ok(read.first().copied().unwrap_or(result));
        }
        let copy = builder.clone_of(op);
        for (number, value) in read.into_iter().enumerate() {
            // SAFETY: the copy is live, and no other reference to it is used while this one is.
            unsafe { OperationRefMut::from_raw(copy.to_raw()) }.set_operand(number, value);
        }
        let result = builder.result_of(copy)?;
        // SAFETY: an elementwise operator has one shape, which its operands now have.
        unsafe { sys::mlirValueSetType(result.to_raw(), r#type.to_raw()) };
        Ok(result)
    }

    /// Whether each element is read where the loops have their own.
    fn is_own(&self, value: Val<'c>, at: &[At<'c>]) -> bool {
        let Some(tensor) = TensorType::of_value(value) else {
            return false;
        };
        let wide = |shape: &[i64]| -> Vec<(usize, i64)> {
            let dims = shape.iter().copied().enumerate();
            dims.filter(|(_, extent)| *extent != 1).collect()
        };
        let (here, there) = (wide(&self.nest.shape), wide(&tensor.shape));
        let is_index = |at: Option<&At<'c>>, wanted: usize| {
            let Some(At::Value(at)) = at else {
                return false;
            };
            let op = defining(*at).filter(|op| name(*op) == "linalg.index");
            let dim = op
                .and_then(|op| op.attribute("dim").ok())
                .and_then(attribute::integer);
            dim.is_some_and(|dim| usize::try_from(dim) == Ok(wanted))
        };
        here.len() == there.len()
            && here
                .iter()
                .zip(&there)
                .all(|((own, extent), (dim, other))| {
                    extent == other && is_index(at.get(*dim), *own)
                })
    }

    /// Loops that read elements of a tensor, and do nothing else.
    fn gather(&self, table: Val<'c>, at: &[At<'c>]) -> PassResult<'c, Val<'c>> {
        let element = self.builder.tensor_of(table)?.element;
        parallel_generic(
            &self.builder,
            &self.nest.inputs,
            (&self.nest.shape, element),
            |inner, arguments| {
                let roots = at.iter().filter_map(|at| match at {
                    At::Zero => None,
                    At::Value(at) => Some(*at),
                });
                let values = self.copied(inner, arguments, roots.collect(), HashMap::new());
                let mut index = vec![table];
                for at in at {
                    index.push(match at {
                        At::Zero => inner.index(0)?,
                        At::Value(at) => values.get(&identity(*at)).copied().unwrap_or(*at),
                    });
                }
                inner.value("tensor.extract", &index, element, &[])
            },
        )
    }

    /// What the body computes of what was read: a map, or loops where it asks for places or reads other tensors.
    fn rest(&self, yielded: Val<'c>, formed: &HashMap<usize, Val<'c>>) -> PassResult<'c, Val<'c>> {
        let element = yielded.r#type();
        let mut inputs = self.nest.inputs.clone();
        let mut read = Vec::new();
        for (own, tensor) in formed {
            read.push((*own, inputs.len()));
            inputs.push(*tensor);
        }
        let body = |inner: &Builder<'c>, arguments: &[Val<'c>]| {
            let values = read
                .iter()
                .filter_map(|(own, at)| Some((*own, *arguments.get(*at)?)));
            let values = self.copied(inner, arguments, vec![yielded], values.collect());
            Ok(values.get(&identity(yielded)).copied().unwrap_or(yielded))
        };
        let stays = |op: &Op<'c>| {
            let own = name(*op);
            op.region_count() > 0 || own == "linalg.index" || own == "tensor.extract"
        };
        let needed = self.needed(vec![yielded], formed);
        if needed.iter().any(stays) {
            return parallel_generic(&self.builder, &inputs, (&self.nest.shape, element), body);
        }
        let r#type = self.builder.tensor(&self.nest.shape, element)?;
        let code = Code {
            builder: self.builder,
        };
        code.map(&inputs, r#type, |inner, arguments| {
            body(&inner.builder, arguments)
        })
    }

    /// Copies the operations of the body that these values take; what stands for its values.
    fn copied(
        &self,
        inner: &Builder<'c>,
        arguments: &[Val<'c>],
        roots: Vec<Val<'c>>,
        mut values: inline::Values<'c>,
    ) -> inline::Values<'c> {
        let own = walk::block_arguments(self.block).into_iter().map(identity);
        values.extend(
            own.take(self.nest.inputs.len())
                .zip(arguments.iter().copied()),
        );
        for op in self.needed(roots, &values) {
            inline::copy_operation(inner, op, &mut values);
        }
        values
    }

    /// The operations of the body that values take, in order, but for what is formed already.
    fn needed(&self, roots: Vec<Val<'c>>, formed: &HashMap<usize, Val<'c>>) -> Vec<Op<'c>> {
        let mut wanted: HashSet<usize> = roots.into_iter().map(identity).collect();
        let mut found = Vec::new();
        for op in walk::operations(self.block).into_iter().rev() {
            let is_wanted = |result: Val<'c>| {
                wanted.contains(&identity(result)) && !formed.contains_key(&identity(result))
            };
            if results(op).into_iter().any(is_wanted) {
                let inner = walk::nested(op, &|_| true).into_iter().flat_map(operands);
                wanted.extend(operands(op).into_iter().chain(inner).map(identity));
                found.push(op);
            }
        }
        found.reverse();
        found
    }
}

/// Whether a product's kernel stores what an operator forms of its result, since that is narrower or others read it.
fn is_stored<'c>(op: Op<'c>, value: Val<'c>) -> bool {
    let is_cast = name(op) == ops::CAST;
    let is_wider = is_cast && is_widening(op);
    let of_product = || source(op).and_then(defining).is_some_and(is_product);
    !is_wider && (is_cast && of_product() || users(value).len() > 1 && follows_product(value))
}

/// Whether all loops that read few elements of a tensor read few of them together: slices next to each other are all of it.
fn few_are_read(table: Val<'_>) -> bool {
    let readers = all_readers(table).into_iter().filter_map(Pointwise::of);
    let mut read = HashMap::new();
    for reader in readers.filter(Pointwise::reads_few) {
        read.extend(only_result(reader.op).map(|result| (identity(result), elements(result))));
    }
    let all = read.into_values().fold(0i64, i64::saturating_add);
    all.saturating_mul(LEAST_LEFT) <= elements(table)
}
