//! Reading a structured operation of linalg: its operands, its loops and its body.

use super::{Replacements, computes, unsupported};
use crate::error::PassResult;
use crate::ir::value::{defining, identity, is_used, name, operands, results};
use crate::ir::{Op, TensorType, Val, attribute, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, BlockLike, BlockRef, ValueLike};
use std::collections::HashSet;

/// What a dimension of an operand is indexed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// A loop, by its position.
    Loop(usize),
    /// The constant 0.
    Zero,
}

/// A structured operation on tensors: `body` at each point of the loops, on the elements that `maps` name.
#[derive(Clone, Debug)]
pub(super) struct Structured<'c> {
    pub(super) op: Op<'c>,
    pub(super) inputs: Vec<Val<'c>>,
    /// The initial values of the results.
    pub(super) inits: Vec<Val<'c>>,
    /// For each input, then each init, what its dimensions are indexed with.
    pub(super) maps: Vec<Vec<Index>>,
    /// For each loop, whether it is a reduction.
    pub(super) reductions: Vec<bool>,
    block: BlockRef<'c, 'c>,
    yields: Vec<Val<'c>>,
}

/// `linalg` operations whose operands and result are all indexed by the loops in order.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "add",
    "ceil",
    "copy",
    "div",
    "erf",
    "exp",
    "floor",
    "log",
    "map",
    "max",
    "min",
    "mul",
    "negf",
    "powf",
    "reciprocal",
    "round",
    "rsqrt",
    "select",
    "sqrt",
    "square",
    "sub",
    "tanh",
];

/// The loops of operations that do not print their maps: how many, each operand's, which are reductions.
type Loops = (usize, &'static [&'static [usize]], &'static [usize]);

fn named_contraction(name: &str) -> Option<Loops> {
    Some(match name {
        "matmul" => (3, &[&[0, 2], &[2, 1], &[0, 1]], &[2]),
        "batch_matmul" => (4, &[&[0, 1, 3], &[0, 3, 2], &[0, 1, 2]], &[3]),
        "matvec" => (2, &[&[0, 1], &[1], &[0]], &[1]),
        "vecmat" => (2, &[&[1], &[1, 0], &[0]], &[1]),
        "batch_matvec" => (3, &[&[0, 1, 2], &[0, 2], &[0, 1]], &[2]),
        "batch_vecmat" => (3, &[&[0, 2], &[0, 2, 1], &[0, 1]], &[2]),
        "dot" => (1, &[&[0], &[0], &[]], &[0]),
        _ => return None,
    })
}

/// Whether the loops of an operation are known here: by its maps, or by its name.
pub(super) fn has_loops(op: Op<'_>) -> bool {
    let full = name(op);
    let short = full.strip_prefix("linalg.").unwrap_or(&full);
    let simple = ["fill", "transpose", "broadcast", "reduce", "index", "yield"];
    op.attribute("indexing_maps").is_ok()
        || named_contraction(short).is_some()
        || ELEMENTWISE.contains(&short)
        || simple.contains(&short)
}

impl<'c> Structured<'c> {
    /// Reads the operation.
    ///
    /// # Errors
    /// At an operation on memrefs, with encoded tensors, or whose maps are not projections.
    pub(super) fn read(op: Op<'c>) -> PassResult<'c, Self> {
        let mut inputs = operands(op);
        let Some(first_init) = inputs
            .len()
            .checked_sub(op.result_count())
            .filter(|_| op.result_count() > 0)
        else {
            return Err(unsupported(
                op,
                "it is not on tensors; bufferize after this pass",
            ));
        };
        let inits = inputs.split_off(first_init);
        let encoded =
            |value: &Val<'c>| TensorType::of_value(*value).is_some_and(|tensor| tensor.encoded);
        if inputs.iter().chain(&inits).any(encoded) {
            return Err(unsupported(
                op,
                "a logical operand has no layout yet, but one of its tensors has an encoding",
            ));
        }
        let (maps, reductions) = loops(op, &inits)?;
        let Some(block) = walk::blocks(op).first().copied() else {
            return Err(unsupported(op, "it has no body"));
        };
        // What no result depends on is left out, so nothing in the body may do more than compute.
        if let Some(inner) = walk::operations(block)
            .into_iter()
            .find(|inner| !computes(&name(*inner)))
        {
            return Err(foreign(op, inner));
        }
        let yields = walk::operations(block)
            .last()
            .map_or_else(Vec::new, |last| operands(*last));
        if maps.len() != inputs.len() + inits.len() || yields.len() != inits.len() {
            return Err(unsupported(
                op,
                "its maps, operands and yielded values do not match",
            ));
        }
        Ok(Self {
            op,
            inputs,
            inits,
            maps,
            reductions,
            block,
            yields,
        })
    }

    /// The operand that argument `number` of the body stands for, and its indices.
    pub(super) fn operand(&self, number: usize) -> Option<(Val<'c>, &[Index])> {
        let value = self.inputs.iter().chain(&self.inits).nth(number)?;
        Some((*value, self.maps.get(number)?))
    }

    /// The indices of result `number`.
    pub(super) fn result_map(&self, number: usize) -> &[Index] {
        self.maps
            .get(self.inputs.len() + number)
            .map_or(&[], Vec::as_slice)
    }

    /// The value that the body yields for result `number`.
    pub(super) fn yielded(&self, number: usize) -> Option<Val<'c>> {
        self.yields.get(number).copied()
    }

    /// The argument of the body that stands for the running value of result `number`.
    pub(super) fn is_running(&self, value: Val<'c>, number: usize) -> bool {
        self.argument(value) == Some(self.inputs.len() + number)
    }

    /// The position of `value` among the body's arguments.
    pub(super) fn argument(&self, value: Val<'c>) -> Option<usize> {
        crate::ir::value::argument_number(value).filter(|_| {
            // SAFETY: the block is read of the argument of a block.
            let owner = unsafe { mlir_sys::mlirBlockArgumentGetOwner(value.to_raw()) };
            owner.ptr == BlockLike::to_raw(&self.block).ptr
        })
    }

    /// The operation of the body that defines `value`; `None` for arguments and captured values.
    pub(super) fn inner(&self, value: Val<'c>) -> Option<Op<'c>> {
        defining(value).filter(|op| op.block() == Some(self.block))
    }

    /// The operations of the body that `root` depends on, in order.
    ///
    /// # Errors
    /// At one that has no place in the body of an `axe.map`.
    pub(super) fn slice(&self, root: Val<'c>) -> PassResult<'c, Vec<Op<'c>>> {
        let mut needed = HashSet::from([identity(root)]);
        let mut slice = Vec::new();
        for op in walk::operations(self.block).into_iter().rev() {
            if results(op)
                .into_iter()
                .any(|result| needed.contains(&identity(result)))
            {
                scalar(self.op, op)?;
                needed.extend(operands(op).into_iter().map(identity));
                slice.push(op);
            }
        }
        slice.reverse();
        Ok(slice)
    }

    /// The results that have a use, by position.
    pub(super) fn used_results(&self) -> Vec<(usize, Val<'c>)> {
        results(self.op)
            .into_iter()
            .enumerate()
            .filter(|(_, result)| is_used(*result))
            .collect()
    }

    /// The replacements of the used results, each of them what `convert` makes of its position.
    ///
    /// # Errors
    /// Those of `convert`.
    pub(super) fn convert_used(
        &self,
        mut convert: impl FnMut(usize) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Replacements<'c>> {
        let mut replacements = vec![None; self.inits.len()];
        for (number, _) in self.used_results() {
            let value = convert(number)?;
            if let Some(replacement) = replacements.get_mut(number) {
                *replacement = Some(value);
            }
        }
        Ok(replacements)
    }
}

/// Checks that an operation of a body computes scalars from scalars.
fn scalar<'c>(op: Op<'c>, inner: Op<'c>) -> PassResult<'c> {
    let name = name(inner);
    let known = ["arith.", "math."]
        .iter()
        .any(|dialect| name.starts_with(dialect));
    match known && inner.region_count() == 0 {
        true => Ok(()),
        false => Err(foreign(op, inner)),
    }
}

/// The error for an operation that has no place in the body of a map.
fn foreign<'c>(op: Op<'c>, inner: Op<'c>) -> crate::PassError<'c> {
    unsupported(
        op,
        &format!(
            "'{}' in its body is not a scalar operation of arith or math",
            name(inner)
        ),
    )
}

/// The indices of all operands, and which loops are reductions.
fn loops<'c>(op: Op<'c>, inits: &[Val<'c>]) -> PassResult<'c, (Vec<Vec<Index>>, Vec<bool>)> {
    let full = name(op);
    let short = full.strip_prefix("linalg.").unwrap_or(&full);
    if let Ok(maps) = op.attribute("indexing_maps") {
        let maps = attribute::elements(maps).unwrap_or_default();
        let maps: Option<Vec<_>> = maps.into_iter().map(attribute::affine_map).collect();
        let maps = maps.unwrap_or_default();
        let loops = maps.first().map_or(0, AffineMap::dim_count);
        let read: Option<Vec<_>> = maps.iter().map(|map| indices(*map)).collect();
        let Some(read) = read else {
            return Err(unsupported(
                op,
                "an operand is indexed by more than loops and zeros",
            ));
        };
        return Ok((read, reductions(op, loops)));
    }
    if let Some((loops, maps, reduced)) = named_contraction(short) {
        let maps = maps
            .iter()
            .map(|map| map.iter().map(|at| Index::Loop(*at)).collect())
            .collect();
        return Ok((maps, (0..loops).map(|at| reduced.contains(&at)).collect()));
    }
    let rank = |value: Option<Val<'c>>| {
        value
            .and_then(TensorType::of_value)
            .map_or(0, |tensor| tensor.shape.len())
    };
    let identity = |rank: usize| (0..rank).map(Index::Loop).collect::<Vec<_>>();
    if ELEMENTWISE.contains(&short) {
        let loops = rank(inits.first().copied());
        let of = |value: Val<'c>| {
            if TensorType::of_value(value).is_some() {
                identity(loops)
            } else {
                Vec::new()
            }
        };
        return Ok((
            operands(op).into_iter().map(of).collect(),
            vec![false; loops],
        ));
    }
    if short == "reduce" {
        let inputs = op.operand_count() - inits.len();
        return Ok(loops_of_reduce(op, rank(op.operand(0).ok()), inputs));
    }
    Err(unsupported(op, "axe has no operator for it"))
}

/// Those of `linalg.reduce` over so many loops.
fn loops_of_reduce(op: Op<'_>, loops: usize, inputs: usize) -> (Vec<Vec<Index>>, Vec<bool>) {
    let dims = op.attribute("dimensions").ok();
    let dims = dims.and_then(attribute::read_i64s).unwrap_or_default();
    let reduced: Vec<bool> = (0..loops)
        .map(|at| dims.iter().any(|dim| usize::try_from(*dim) == Ok(at)))
        .collect();
    let kept = |all: bool| {
        let loops = reduced.iter().enumerate();
        let kept = loops.filter(|(_, reduced)| all || !**reduced);
        kept.map(|(at, _)| Index::Loop(at)).collect()
    };
    let maps = (0..op.operand_count()).map(|at| kept(at < inputs));
    (maps.collect(), reduced)
}

/// The indices of a map whose results are distinct loops and zeros.
fn indices(map: AffineMap<'_>) -> Option<Vec<Index>> {
    if map.symbol_count() > 0 {
        return None;
    }
    let read = |at: usize| {
        let expression = map.result(at).ok()?;
        match expression {
            loop_ if loop_.is_dim() => Some(Index::Loop(loop_.dim_position())),
            zero if zero.is_constant() && zero.constant_value() == 0 => Some(Index::Zero),
            _ => None,
        }
    };
    let read: Vec<_> = (0..map.result_count()).map(read).collect::<Option<_>>()?;
    let mut seen = HashSet::new();
    let distinct = read.iter().all(|index| match index {
        Index::Loop(at) => seen.insert(*at),
        Index::Zero => true,
    });
    distinct.then_some(read)
}

/// Which loops are reductions: by `iterator_types`, or as of a contraction those that no result has.
fn reductions(op: Op<'_>, loops: usize) -> Vec<bool> {
    match op
        .attribute("iterator_types")
        .ok()
        .and_then(attribute::elements)
    {
        Some(kinds) => kinds
            .iter()
            .map(|kind| kind.to_string().contains("reduction"))
            .collect(),
        None => {
            let maps = op
                .attribute("indexing_maps")
                .ok()
                .and_then(attribute::elements)
                .unwrap_or_default();
            let result = maps
                .last()
                .copied()
                .and_then(attribute::affine_map)
                .and_then(indices)
                .unwrap_or_default();
            (0..loops)
                .map(|at| !result.contains(&Index::Loop(at)))
                .collect()
        }
    }
}
