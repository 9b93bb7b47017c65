//! Where a gradient is stored: what follows its product, through conversions, factors, views, transposes and a sum over the heads
//! that share what it is of.

use crate::fuse::attention::index::{self, Digit, Index, Place, Step, Var, merged};
use crate::fuse::attention::read::{Read, Reader, dims, number, static_shape, through};
use crate::fuse::operators::is_reshape;
use crate::fuse::space::source;
use crate::ir::value::{defining, name, only_result, users};
use crate::ir::{Op, TensorType, Val, types};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;

/// A result that is stored: where, times which number, and over how many problems that follow each other it is added up.
type Stored<'c> = (Read<'c>, f64, i64);

impl<'c> Reader<'c> {
    /// The last 16-bit tensor that a product's result alone becomes. `rows` are the result's rows, which are its columns where
    /// the weights are not operand A.
    pub(super) fn result(&mut self, op: Op<'c>, weights_are_a: bool) -> Option<Stored<'c>> {
        let mut chain = vec![only_result(op)?];
        let (mut factor, mut found) = (1.0, None);
        let mut passed = vec![number(op)];
        loop {
            let value = *chain.last()?;
            let tensor = TensorType::of_value(value)?;
            let half = types::is_float(tensor.element) && types::bits(tensor.element) == Some(16);
            let view = defining(value).is_none_or(is_reshape);
            if half && !view {
                found = Some((chain.clone(), factor, passed.clone()));
            }
            let &[user] = users(value).as_slice() else {
                break;
            };
            let own = match name(user).as_str() {
                _ if is_reshape(user) => 1.0,
                ops::TRANSPOSE => 1.0,
                ops::REDUCE if is_sum(user) => 1.0,
                _ => match self.scaled(user) {
                    Some((_, own)) => own,
                    None => break,
                },
            };
            let Some(next) = only_result(user) else { break };
            passed.push(number(user));
            factor *= own;
            chain.push(next);
        }
        let (chain, factor, passed) = found?;
        let place = place_of_product(&chain)?;
        let (last, batch) = place
            .split_last_chunk::<2>()
            .map(|(batch, last)| (last, batch))?;
        let [outer, free] = if weights_are_a {
            [&last[0], &last[1]]
        } else {
            [&last[1], &last[0]]
        };
        let batch = index::canonical(batch.iter().flatten().copied());
        // Rows of dQ are queries, and those of others keys: which is the caller's to know, by the name of the variable.
        let (steps, group) = steps([(Var::Batch, &batch), (Var::Row, outer), (Var::Column, free)])?;
        self.inner.extend(passed);
        let tensor = *chain.last()?;
        Some((Read::whole(tensor, steps), factor, group))
    }
}

fn is_sum(op: Op<'_>) -> bool {
    let combiner = op.attribute("combiner").ok();
    combiner.and_then(|own| Combiner::cast(own)) == Some(Combiner::Add)
}

/// The place of a product's result where the last value of its chain is stored. What is added up has the variable `Depth`.
fn place_of_product(chain: &[Val<'_>]) -> Option<Place> {
    let shape = static_shape(*chain.last()?)?;
    let total = shape
        .iter()
        .try_fold(1i64, |total, extent| total.checked_mul(*extent))?;
    let mut place = index::regrouped(&[index::whole(Var::Element, total)], &shape)?;
    for pair in chain.windows(2).rev() {
        let &[from, value] = pair else { return None };
        let op = defining(value)?;
        place = match name(op).as_str() {
            ops::CAST | ops::MAP => place,
            ops::REDUCE => {
                let shape = static_shape(source(op)?)?;
                let dropped = dims(op, "dims")?;
                let mut kept = place.into_iter();
                let own = shape.iter().enumerate().map(|(dim, extent)| {
                    if dropped.contains(&dim) {
                        Some(index::whole(Var::Depth, *extent))
                    } else {
                        kept.next()
                    }
                });
                own.collect::<Option<_>>()?
            }
            _ => through(op, &place).filter(|(own, _)| *own == from)?.1,
        };
    }
    Some(place)
}

/// The steps in memory of indices that are digits of a row-major tensor's elements, and what the first one's last digits add up.
fn steps(indices: [(Var, &Index); 3]) -> Option<(Vec<Step>, i64)> {
    let (mut found, mut group) = (Vec::new(), 1);
    for (var, index) in indices {
        let mut stride = 1i64;
        for digit in index.iter().rev() {
            let Digit { extent, .. } = *digit;
            match digit.var {
                Var::Element => found.push(Step {
                    digit: Digit {
                        var,
                        extent,
                        stride,
                    },
                    elements: digit.stride,
                }),
                Var::Depth if var == Var::Batch && stride == 1 => group = extent,
                _ => return None,
            }
            stride = stride.checked_mul(extent)?;
        }
    }
    Some((merged(found), group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digit(var: Var, extent: i64, stride: i64) -> Digit {
        Digit {
            var,
            extent,
            stride,
        }
    }

    #[test]
    fn a_sum_over_heads_is_the_last_digit_of_the_problem() {
        // dK of [2 batches, 3 heads, 16 keys, 8], of 4 queries' heads for each.
        let batch = vec![digit(Var::Element, 6, 128), digit(Var::Depth, 4, 1)];
        let (row, column) = (
            vec![digit(Var::Element, 16, 8)],
            vec![digit(Var::Element, 8, 1)],
        );
        let (found, group) = steps([
            (Var::Batch, &batch),
            (Var::Row, &row),
            (Var::Column, &column),
        ])
        .expect("digits");
        assert_eq!(group, 4);
        let own = found.iter().find(|step| step.digit.var == Var::Batch);
        let expected = Step {
            digit: digit(Var::Batch, 6, 4),
            elements: 128,
        };
        assert_eq!(own, Some(&expected));
    }

    #[test]
    fn a_sum_over_what_is_not_last_is_refused() {
        let batch = vec![digit(Var::Depth, 4, 1), digit(Var::Element, 6, 128)];
        let (row, column) = (
            vec![digit(Var::Element, 16, 8)],
            vec![digit(Var::Element, 8, 1)],
        );
        let of = |batch, row| steps([(Var::Batch, batch), (Var::Row, row), (Var::Column, &column)]);
        assert_eq!(of(&batch, &row), None);
        assert_eq!(of(&Vec::new(), &batch), None);
    }
}
