//! Labels of rows and keys, where a mask compares them: a row sees the keys of its own segment.

use super::super::index::Var;
use super::super::term::{Id, Label, Term, Terms};
use super::Visible;

/// A comparison of a label of rows with one of keys: the documents of packed sequences, say. Nothing is known of the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    /// The label of rows, by the number of its tensor among the inputs.
    pub rows: usize,
    /// That of keys.
    pub keys: usize,
}

impl Visible {
    pub(super) fn take(&mut self, [row, key]: [Label; 2]) {
        let own = Segments {
            rows: row.number,
            keys: key.number,
        };
        if !self.segments.contains(&own) {
            self.segments.push(own);
        }
    }
}

/// The comparison of a row's label with a key's: whether it holds where they are equal, too.
fn both(terms: &Terms, id: Id) -> Option<([Label; 2], bool)> {
    let Term::Apply(name, Some(predicate @ (0 | 1)), operands) = terms.get(id) else {
        return None;
    };
    let &[a, b] = operands.as_slice() else {
        return None;
    };
    // What is widened is as equal, or not, as it was, where both are in the same way.
    let inner = |id: Id| match terms.get(id) {
        Term::Apply(name, _, of) if name == "arith.extsi" || name == "arith.extui" => {
            (of.first().copied().unwrap_or(id), Some(name.as_str()))
        }
        _ => (id, None),
    };
    let (a, b) = (inner(a), inner(b));
    let same = a.1 == b.1 && terms.scalar(a.0) == terms.scalar(b.0);
    let (Term::Label(a), Term::Label(b)) = (terms.get(a.0), terms.get(b.0)) else {
        return None;
    };
    let labels = match (a.var, b.var) {
        (Var::Row, Var::Key) => [*a, *b],
        (Var::Key, Var::Row) => [*b, *a],
        _ => return None,
    };
    (name == "arith.cmpi" && same).then_some((labels, *predicate == 0))
}

/// The labels that are equal where the condition holds (or fails).
pub(super) fn equal(terms: &Terms, id: Id, holding: bool) -> Option<[Label; 2]> {
    let (labels, equal) = both(terms, id)?;
    (equal == holding).then_some(labels)
}

/// Whether a term reads labels.
pub(super) fn some(terms: &Terms, id: Id) -> bool {
    terms.any(id, true, &|term| matches!(term, Term::Label(_)))
}

/// Whether row `i` has the label of key `i`, of all that are compared in a condition.
pub(super) fn are_shared(terms: &Terms, condition: Id) -> bool {
    let mut next = vec![condition];
    while let Some(id) = next.pop() {
        if both(terms, id).is_some_and(|([row, key], _)| row.class != key.class) {
            return false;
        }
        next.extend(terms.parts(id));
    }
    true
}
