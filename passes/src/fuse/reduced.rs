//! What a product could form in its epilogue and only reductions read that it cannot take: squares of rows that no tile holds. It would store
//! them for the kernel that reduces.

use super::group::{Group, Root};
use super::groups::Choices;
use super::operators::{bases, has, is_lazy, is_widening};
use super::reshape::element_bytes;
use crate::ir::value::{name, operands, results, users};
use crate::ir::{Op, TensorType, Val};
use axe_dialect::ops::{self, Trait};

/// Whether a product has no use for an operator, which only reductions read that it cannot take: their kernel forms it too, of what is no
/// wider, and which the product would store for it otherwise.
pub(super) fn reduced_apart<'c>(
    op: Op<'c>,
    product: &Group<'c>,
    choices: &Choices<'_, 'c>,
) -> bool {
    let bytes = |value: Val<'c>| TensorType::of_value(value).map(|own| element_bytes(own.element));
    let mut chain = Vec::new();
    let is_product = matches!(product.root, Root::Gemm(_));
    if !is_product || name(op) == ops::REDUCE || !is_reduced(op, &mut chain) {
        return false;
    }
    let own = results(op).first().copied().and_then(bytes);
    let mut read = operands(op).into_iter().flat_map(bases);
    if !read.all(|base| bytes(base) <= own) {
        return false;
    }
    let mut trial = product.clone();
    let mut joins = chain.into_iter().map(|op| {
        let of = trial.reduced(op);
        of.is_none_or(|(product, columns)| (choices.reduces_blocks)(product, columns))
            && trial.join(op)
    });
    joins.any(|joined| !joined)
}

/// Whether nothing but reductions read an operator, and operators of which that holds too; all of them are added, in order.
fn is_reduced<'c>(op: Op<'c>, chain: &mut Vec<Op<'c>>) -> bool {
    const MOST: usize = 8;
    chain.push(op);
    let mut readers = results(op).into_iter().flat_map(readers_of).peekable();
    readers.peek().is_some()
        && readers.all(|reader| match chain.contains(&reader) {
            true => true,
            false if name(reader) == ops::REDUCE => {
                chain.push(reader);
                true
            }
            false => {
                chain.len() < MOST && has(reader, Trait::Elementwise) && is_reduced(reader, chain)
            }
        })
}

/// The operations that read a value, through what is formed again by each of them.
fn readers_of<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let all = users(value).into_iter();
    let read = |op: Op<'c>| match is_lazy(op) || is_widening(op) {
        true => results(op).into_iter().flat_map(readers_of).collect(),
        false => vec![op],
    };
    all.flat_map(read).collect()
}
