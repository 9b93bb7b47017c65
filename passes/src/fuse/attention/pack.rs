//! Queries that share their keys and values, as rows of one problem: the heads of a group (GQA), or of a batch. Keys and values are
//! read once for all of them.

use super::index::{Digit, Step, Var, merged};
use super::read::{Extents, Read};
use super::term::{Id, Scalar, Term, Terms};
use super::visible::{Edge, Visible};
use super::{Attention, RowSums};
use std::collections::HashMap;

/// Which of a row's digits runs faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The row of a problem: `problem * rows + row`.
    Rows,
    /// The problem of those that are packed: `row * problems + problem`.
    Problems,
}

/// Problems that are packed, of a number of rows each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pack {
    /// Problems whose rows are those of one.
    pub problems: i64,
    /// Rows of each.
    pub rows: i64,
    /// How rows are numbered.
    pub order: Order,
}

impl Pack {
    /// What the numbers of packed rows count: rows of a problem, and problems.
    #[must_use]
    pub const fn strides(self) -> [i64; 2] {
        match self.order {
            Order::Rows => [1, self.rows],
            Order::Problems => [self.problems, 1],
        }
    }

    /// The steps of a tensor by problem and row, as those by packed problem and packed row; none, where a digit does not fall apart.
    #[must_use]
    pub fn steps(self, steps: &[Step]) -> Option<Vec<Step>> {
        let [row, problem] = self.strides();
        let mut found = Vec::new();
        for &step in steps {
            let Step { digit, elements } = step;
            let Digit { extent, stride, .. } = digit;
            let own = |var, extent, stride, elements| Step {
                digit: Digit {
                    var,
                    extent,
                    stride,
                },
                elements,
            };
            match digit.var {
                Var::Row => found.push(own(Var::Row, extent, stride.checked_mul(row)?, elements)),
                Var::Batch => {
                    let [low, high] = apart([extent, stride], self.problems)?;
                    let above = elements.checked_mul(low)?;
                    found.push(own(Var::Row, low, stride.checked_mul(problem)?, elements));
                    // What counts whole packs counts packed problems.
                    let whole = stride.checked_mul(low)? / self.problems;
                    found.push(own(Var::Batch, high, whole.max(1), above));
                }
                _ => found.push(step),
            }
        }
        Some(merged(found))
    }
}

/// The extents of a digit's parts below and above a number that it counts over.
fn apart([extent, stride]: [i64; 2], number: i64) -> Option<[i64; 2]> {
    if stride % number == 0 {
        return Some([1, extent]);
    }
    let low = (number % stride == 0).then(|| number / stride)?;
    match (extent <= low, extent % low, low % extent) {
        (true, _, 0) => Some([extent, 1]),
        (false, 0, _) => Some([low, extent / low]),
        _ => None,
    }
}

impl<'c> Attention<'c> {
    /// Problems that follow each other and have the same keys and values: as many as no digit of either tells apart.
    #[must_use]
    pub fn repeats(&self) -> i64 {
        let tables = self.tables().flat_map(|own| &own.steps);
        let steps = self.keys.steps.iter().chain(&self.values.steps);
        let steps = steps.chain(tables);
        let batch = steps.filter(|step| step.digit.var == Var::Batch);
        let least = batch.map(|step| step.digit.stride).min();
        least.unwrap_or(self.extents.batch)
    }

    /// The same with packed problems.
    #[must_use]
    pub fn packed(&self, pack: Pack) -> Option<Self> {
        let of = |read: &Read<'c>| {
            Some(Read {
                tensor: read.tensor,
                steps: pack.steps(&read.steps)?,
                first: read.first,
            })
        };
        let Extents { batch, rows, .. } = self.extents;
        let extents = Extents {
            batch: batch / pack.problems,
            rows: rows.checked_mul(pack.problems)?,
            ..self.extents
        };
        let mut packed = Self {
            extents,
            queries: of(&self.queries)?,
            keys: of(&self.keys)?,
            values: of(&self.values)?,
            result: of(&self.result)?,
            inputs: self.inputs.iter().map(of).collect::<Option<_>>()?,
            lengths: self.lengths.iter().map(of).collect::<Option<_>>()?,
            sums: match &self.sums {
                None => None,
                Some(sums) => Some(RowSums {
                    read: of(&sums.read)?,
                    ..sums.clone()
                }),
            },
            ..self.clone()
        };
        for pages in packed.pages.iter_mut().flatten() {
            pages.table = of(&pages.table)?;
        }
        // Problems of a pack have one length, and the same pages.
        let others = packed.lengths.iter().chain(packed.tables());
        if others
            .flat_map(|own| &own.steps)
            .any(|step| step.digit.var == Var::Row)
        {
            return None;
        }
        let values = self.weights.values.iter();
        let mut values = values.filter_map(|own| packed.inputs.get(own.number));
        if values.any(|read| read.steps.iter().any(|step| step.digit.var == Var::Row)) {
            return None;
        }
        // Labels of keys are those of the keys of all problems of a pack.
        let labels = self.visible.segments.iter();
        let mut labels = labels.filter_map(|own| packed.inputs.get(own.keys));
        let is_row = |read: &Read<'_>| read.steps.iter().any(|step| step.digit.var == Var::Row);
        if labels.any(is_row) {
            return None;
        }
        if rows > 1 {
            let own = &self.visible;
            if own.all_where_none || !own.rows.is_empty() {
                return None;
            }
            packed.number_rows(pack, self.visible.some(0, rows, extents.keys));
        }
        Some(packed)
    }

    /// Rows in scores as what they are of packed rows, of which some see these keys: where blocks are skipped, it is for all rows.
    fn number_rows(&mut self, pack: Pack, [from, to]: [i64; 2]) {
        let mut terms = Terms::default();
        let mut known = HashMap::new();
        let score = copied(
            &self.terms,
            self.weights.score,
            pack,
            (&mut terms, &mut known),
        );
        self.terms = terms;
        self.weights.score = score;
        if self.visible.edges().next().is_some() {
            let of = |edges: &[Edge], start, greatest: usize| {
                let own = edges.iter().filter(|edge| edge.length.is_some());
                let own = own.map(|edge| Edge {
                    per_row: 0,
                    start: edge.over(0, pack.rows)[greatest],
                    ..*edge
                });
                own.chain([Edge::of(0, start)]).collect()
            };
            self.visible = Visible {
                from: of(&self.visible.from, from, 0),
                to: of(&self.visible.to, to, 1),
                segments: std::mem::take(&mut self.visible.segments),
                ..Visible::default()
            };
        }
        self.bare = score;
    }
}

/// A term with the row of a problem in the place of that of the pack.
fn copied(from: &Terms, id: Id, pack: Pack, to: (&mut Terms, &mut HashMap<Id, Id>)) -> Id {
    let (terms, known) = to;
    if let Some(own) = known.get(&id) {
        return *own;
    }
    let scalar = from.scalar(id);
    let mut of = |part: Id, terms: &mut Terms| copied(from, part, pack, (terms, &mut *known));
    let own = match from.get(id) {
        Term::Index(Var::Row) => {
            let row = terms.add(Term::Index(Var::Row), scalar);
            let bits = match scalar {
                Scalar::Int(bits) => bits,
                Scalar::Float => 64,
            };
            let (name, by) = match pack.order {
                Order::Rows => ("arith.remui", pack.rows),
                Order::Problems => ("arith.divui", pack.problems),
            };
            let by = terms.int(by, bits);
            terms.add(Term::Apply(name.to_owned(), None, vec![row, by]), scalar)
        }
        Term::Apply(name, predicate, operands) => {
            let operands = operands.iter().map(|part| of(*part, terms)).collect();
            terms.add(Term::Apply(name.clone(), *predicate, operands), scalar)
        }
        Term::Fold(combiner, part) => {
            let part = of(*part, terms);
            terms.add(Term::Fold(*combiner, part), scalar)
        }
        Term::Product(part) => {
            let part = of(*part, terms);
            terms.add(Term::Product(part), scalar)
        }
        other => terms.add(other.clone(), scalar),
    };
    known.insert(id, own);
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(var: Var, [extent, stride]: [i64; 2], elements: i64) -> Step {
        let digit = Digit {
            var,
            extent,
            stride,
        };
        Step { digit, elements }
    }

    fn place(steps: &[Step], [batch, row]: [i64; 2]) -> i64 {
        let value = |digit: Digit| match digit.var {
            Var::Batch => batch / digit.stride % digit.extent,
            _ => row / digit.stride % digit.extent,
        };
        steps
            .iter()
            .map(|step| value(step.digit) * step.elements)
            .sum()
    }

    #[test]
    fn one_row_of_each_head_has_one_stride() {
        // [2, 1, 8, 64] and [2, 8, 1, 64], four heads of each of K and V.
        let queries = [step(Var::Batch, [16, 1], 64)];
        for order in [Order::Rows, Order::Problems] {
            let pack = Pack {
                problems: 4,
                rows: 1,
                order,
            };
            let packed = pack.steps(&queries).expect("16 is 4 times 4");
            assert_eq!(
                packed,
                [step(Var::Batch, [4, 1], 256), step(Var::Row, [4, 1], 64)]
            );
        }
    }

    #[test]
    fn what_does_not_fall_apart_is_refused() {
        let pack = Pack {
            problems: 4,
            rows: 1,
            order: Order::Rows,
        };
        for digit in [[6, 1], [4, 3], [3, 1]] {
            assert_eq!(pack.steps(&[step(Var::Batch, digit, 1)]), None, "{digit:?}");
        }
    }

    proptest! {
        /// Against the places themselves, of tensors whose problems lie in some order in memory, some of them repeated.
        #[test]
        fn packed_rows_lie_where_rows_do(
            extents in prop::array::uniform3(1i64..4), rows in 1i64..5, repeated in prop::array::uniform3(any::<bool>()),
            packed in 0usize..3, problems_first in any::<bool>(),
        ) {
            let [a, b, c] = extents;
            let digits = [[a, b * c], [b, c], [c, 1]];
            let kept = digits.into_iter().zip(repeated).enumerate();
            let steps: Vec<_> = kept
                .filter(|(_, (_, repeated))| !repeated)
                .map(|(at, (digit, _))| step(Var::Batch, digit, [700, 11, 90_000][at]))
                .chain([step(Var::Row, [rows, 1], 1_000_000)])
                .collect();
            let problems = [1, c, b * c][packed];
            let order = if problems_first { Order::Problems } else { Order::Rows };
            let pack = Pack { problems, rows, order };
            let own = pack.steps(&merged(steps.clone())).expect("whole digits");
            let [by_row, by_problem] = pack.strides();
            for batch in 0..a * b * c {
                for row in 0..rows {
                    let at = [batch / problems, row * by_row + batch % problems * by_problem];
                    prop_assert_eq!(place(&own, at), place(&steps, [batch, row]));
                }
            }
        }
    }
}
