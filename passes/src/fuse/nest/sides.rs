//! Branches whose two sides compute the same of other places. The halves of a rotated row are such: `-x[c + 64]` in front and `x[c - 64]`
//! behind. A warp that has columns of both would go through one side after the other, and wait for each; it computes one of them here, at
//! the place that the condition chooses.

use super::is_nest;
use crate::PassResult;
use crate::ir::value::{defining, identity, name, operands, replace_all_uses, results};
use crate::ir::{Builder, Op, Val, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// Operations that are computed for a side that is not taken, at most.
const MOST_OPERATIONS: usize = 8;

/// Joins the sides of such branches in the bodies of loops.
///
/// # Errors
/// When an operation cannot be built.
pub fn join_sides<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for nest in ops.iter().filter(|op| is_nest(**op)) {
        let mut branches = walk::nested(*nest, &|_| true);
        branches.retain(|op| name(*op) == "scf.if");
        // Those in a branch come before it.
        for branch in branches.into_iter().rev() {
            join(branch)?;
        }
    }
    Ok(())
}

fn join(branch: Op<'_>) -> PassResult<'_> {
    let (Some(&condition), [then, other]) = (operands(branch).first(), &walk::blocks(branch)[..])
    else {
        return Ok(());
    };
    let yielded = |block| {
        let last = walk::operations(block).last().copied();
        last.map(operands).unwrap_or_default()
    };
    let pairs: Vec<_> = yielded(*then).into_iter().zip(yielded(*other)).collect();
    let inside = walk::nested(branch, &|_| true);
    let inside = inside.into_iter().flat_map(results).map(identity).collect();
    let mut sides = Sides {
        inside,
        known: HashMap::new(),
    };
    let reads: Option<Vec<_>> = pairs.iter().map(|pair| sides.reads(*pair)).collect();
    if reads.is_none_or(|reads| reads.iter().all(|reads| *reads == 0)) {
        return Ok(());
    }
    let mut joined = Joined {
        sides,
        builder: Builder::before(branch),
        condition,
        made: HashMap::new(),
    };
    for (result, pair) in results(branch).into_iter().zip(pairs) {
        let value = joined.value(pair)?;
        replace_all_uses(result, value);
    }
    walk::erase(branch);
    Ok(())
}

/// A value of each side.
type Pair<'c> = (Val<'c>, Val<'c>);

/// How two values become one.
#[derive(Clone, Copy)]
enum Way<'c> {
    /// They are one.
    Same,
    /// By the same operation, on what becomes of the operands.
    Both(Op<'c>, Op<'c>),
    /// The first side has a sign more, or the second.
    Signed(Op<'c>, bool),
    /// Both are computed, and one is chosen.
    Chosen,
}

/// The two sides of a branch.
struct Sides<'c> {
    inside: HashSet<usize>,
    /// How pairs of values become one, and how many elements of tensors are read for both sides together.
    known: HashMap<(usize, usize), Option<(Way<'c>, usize)>>,
}

impl<'c> Sides<'c> {
    /// Elements of tensors that both sides read together; none where two values cannot become one.
    fn reads(&mut self, pair: Pair<'c>) -> Option<usize> {
        self.way(pair).map(|(_, reads)| reads)
    }

    fn way(&mut self, (a, b): Pair<'c>) -> Option<(Way<'c>, usize)> {
        let key = (identity(a), identity(b));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let found = self.find((a, b));
        self.known.insert(key, found);
        found
    }

    fn find(&mut self, (a, b): Pair<'c>) -> Option<(Way<'c>, usize)> {
        if a == b {
            return Some((Way::Same, 0));
        }
        if let Some((own, other)) = defining(a)
            .zip(defining(b))
            .filter(|(a, b)| is_like(*a, *b))
        {
            let pairs = operands(own).into_iter().zip(operands(other));
            let reads = pairs
                .map(|pair| self.reads(pair))
                .collect::<Option<Vec<_>>>();
            if let Some(reads) = reads {
                let own_reads = usize::from(is_read(own));
                let all = reads.iter().fold(own_reads, |all, reads| all + reads);
                return Some((Way::Both(own, other), all));
            }
        }
        let sign = |value| defining(value).filter(|op| name(*op) == "arith.negf");
        for (signed, is_first) in [(sign(a), true), (sign(b), false)] {
            let Some(op) = signed else { continue };
            let of = operands(op).first().copied()?;
            let pair = if is_first { (of, b) } else { (a, of) };
            if let Some(reads) = self.reads(pair).filter(|reads| *reads > 0) {
                return Some((Way::Signed(op, is_first), reads));
            }
        }
        let computed = |value| self.computed(value, MOST_OPERATIONS);
        let few = a.r#type() == b.r#type() && computed(a).is_some() && computed(b).is_some();
        few.then_some((Way::Chosen, 0))
    }

    /// Of so many operations those that are left when a value is computed of what is outside; none where these are too few, or where it
    /// reads a tensor or divides integers, which only the side that is taken may.
    fn computed(&self, value: Val<'c>, left: usize) -> Option<usize> {
        let Some(op) = defining(value).filter(|_| self.inside.contains(&identity(value))) else {
            return Some(left);
        };
        let left = left
            .checked_sub(1)
            .filter(|_| is_scalar(op) && !divides(op))?;
        let mut all = operands(op).into_iter();
        all.try_fold(left, |left, value| self.computed(value, left))
    }
}

/// Values that both sides' become.
struct Joined<'c> {
    sides: Sides<'c>,
    builder: Builder<'c>,
    condition: Val<'c>,
    made: HashMap<(usize, usize), Val<'c>>,
}

impl<'c> Joined<'c> {
    fn value(&mut self, pair: Pair<'c>) -> PassResult<'c, Val<'c>> {
        let (a, b) = pair;
        let key = (identity(a), identity(b));
        if let Some(made) = self.made.get(&key) {
            return Ok(*made);
        }
        let way = self.sides.way(pair).map(|(way, _)| way);
        let made = match way.unwrap_or(Way::Chosen) {
            Way::Same => a,
            Way::Both(own, other) => {
                let pairs = operands(own).into_iter().zip(operands(other));
                let of = pairs.map(|pair| self.value(pair));
                let of = of.collect::<PassResult<'c, Vec<_>>>()?;
                self.copy(own, &of)?
            }
            Way::Signed(op, is_first) => {
                let of = operands(op).first().copied().unwrap_or(a);
                let plain = self.value(if is_first { (of, b) } else { (a, of) })?;
                let signed = self.copy(op, &[plain])?;
                let (a, b) = if is_first {
                    (signed, plain)
                } else {
                    (plain, signed)
                };
                self.choose(a, b)?
            }
            Way::Chosen => {
                let (a, b) = (self.outside(a)?, self.outside(b)?);
                self.choose(a, b)?
            }
        };
        self.made.insert(key, made);
        Ok(made)
    }

    fn choose(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let of = [self.condition, a, b];
        self.builder.value("arith.select", &of, a.r#type(), &[])
    }

    /// A value of one side, computed in front of the branch.
    fn outside(&mut self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let Some(op) = defining(value).filter(|_| self.sides.inside.contains(&identity(value)))
        else {
            return Ok(value);
        };
        let of = operands(op).into_iter().map(|value| self.outside(value));
        let of = of.collect::<PassResult<'c, Vec<_>>>()?;
        self.copy(op, &of)
    }

    /// An operation in front of the branch, on these operands.
    fn copy(&self, op: Op<'c>, of: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let copy = self.builder.clone_of(op);
        for (at, value) in (0..).zip(of) {
            // SAFETY: the copy is live, the positions are those of its own operands, and the types are the same.
            unsafe { sys::mlirOperationSetOperand(copy.to_raw(), at, value.to_raw()) };
        }
        self.builder.result_of(copy)
    }
}

/// Whether two operations are the same but for their operands.
fn is_like<'c>(a: Op<'c>, b: Op<'c>) -> bool {
    let types = |op: Op<'c>| -> Vec<_> {
        let all = operands(op).into_iter().chain(results(op));
        all.map(|value| value.r#type()).collect()
    };
    let attributes = |op: Op<'c>| op.attributes().collect::<Vec<_>>();
    let is_known = is_scalar(a) || is_read(a) && operands(a).first() == operands(b).first();
    is_known && name(a) == name(b) && types(a) == types(b) && attributes(a) == attributes(b)
}

/// Whether an operation reads an element of a tensor.
fn is_read(op: Op<'_>) -> bool {
    name(op) == "tensor.extract"
}

/// Whether an operation computes one scalar and has no effects.
fn is_scalar(op: Op<'_>) -> bool {
    let name = name(op);
    let known = ["arith.", "math.", "linalg.index"];
    op.region_count() == 0
        && op.result_count() == 1
        && known.iter().any(|known| name.starts_with(known))
}

/// Whether an operation divides integers, which may be by zero.
fn divides(op: Op<'_>) -> bool {
    let name = name(op);
    let kinds = ["div", "rem"];
    name.ends_with('i') && kinds.iter().any(|kind| name.contains(kind))
}
