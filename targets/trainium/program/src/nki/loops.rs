//! Which loops of the old generation are `affine_range`: their iterations depend on each other through nothing but sums of
//! products.

use crate::program::{Expr, Loop, Op, Program, Statement, View};
use std::collections::{BTreeMap, BTreeSet};

/// Whether the iterations of a loop are independent. What cannot be told apart counts as dependent.
pub fn is_affine(program: &Program, inner: &Loop) -> bool {
    let mut uses = Uses::default();
    uses.body(&inner.body);
    uses.accesses.iter().all(|(buffer, accesses)| {
        if uses.made.contains(buffer) {
            return true;
        }
        let written = accesses.iter().any(|access| access.writes);
        let sums = accesses.iter().all(|access| access.accumulates);
        !written || sums || apart(program, *buffer, accesses, inner)
    })
}

/// How a loop uses one buffer once.
struct Access<'a> {
    view: &'a View,
    writes: bool,
    accumulates: bool,
}

#[derive(Default)]
struct Uses<'a> {
    made: BTreeSet<usize>,
    accesses: BTreeMap<usize, Vec<Access<'a>>>,
}

impl<'a> Uses<'a> {
    fn body(&mut self, body: &'a [Statement]) {
        for statement in body {
            match statement {
                Statement::Comment(_) => {}
                Statement::Alloc(buffer) => {
                    self.made.insert(*buffer);
                }
                Statement::Loop(inner) => self.body(&inner.body),
                Statement::Instruction(instruction) => {
                    for operand in instruction.op.operands() {
                        let accumulates =
                            operand.writes && matches!(instruction.op, Op::NcMatmul { .. });
                        self.accesses
                            .entry(operand.view.buffer)
                            .or_default()
                            .push(Access {
                                view: operand.view,
                                writes: operand.writes,
                                accumulates,
                            });
                    }
                }
            }
        }
    }
}

/// Whether all accesses of a buffer begin, in one and the same dimension, at one and the same multiple of the loop's index
/// and reach no further than to the next iteration's.
fn apart(program: &Program, buffer: usize, accesses: &[Access<'_>], inner: &Loop) -> bool {
    let rank = program.buffers[buffer].shape.len();
    (0..rank).any(|dimension| {
        accesses.iter().all(|access| {
            let Some(by) = access
                .view
                .origin
                .get(dimension)
                .and_then(|origin| multiple(origin, inner.index))
            else {
                return false;
            };
            let reach: i64 = access
                .view
                .axes
                .iter()
                .filter(|axis| axis.of == Some(dimension))
                .map(|axis| (axis.size - 1) * axis.step.abs())
                .sum();
            by.saturating_mul(inner.step) > reach
        })
    })
}

/// The factor of an index in an expression that is that product alone; `None` for other expressions.
fn multiple(expr: &Expr, index: usize) -> Option<i64> {
    match expr {
        Expr::Index(known) if *known == index => Some(1),
        Expr::Mul(of, by) => multiple(of, index)?.checked_mul(*by),
        _ => None,
    }
}
