//! Elements as terms: what one element of a result is of elements of other tensors, indices and folds. Equal terms have one
//! number, so that algebra can compare them. Floats that are narrower than f32, and f64 that came of them, are f32 throughout.

use super::index::Var;
use axe_dialect::Combiner;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The number of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// What a term's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// f32.
    Float,
    /// An integer of so many bits; an index has 64.
    Int(u32),
}

/// An integer of rows or of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// What has it: [`Var::Row`] or [`Var::Key`].
    pub var: Var,
    /// The number of its tensor among those of [`Term::Input`].
    pub number: usize,
    /// What rows and keys of the same number have in common: row `i` has the label of key `i` where these are equal.
    pub class: usize,
}

/// A term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// An element of the first product, without what its operands are scaled by.
    Score,
    /// An element of the product of the result's gradient and the values, without what its operands are scaled by.
    Gradient,
    /// The sum of a row of the result's gradient times the result, where both are read.
    RowProduct,
    /// A value of a row that is read where gradients are looked for, by its tensor's number among those.
    RowValue(usize),
    /// An element of the second product, whose weights are a term.
    Product(Id),
    /// An element of a tensor that is read, by the tensor's number.
    Input(usize),
    /// A float that is one value a problem, by its tensor's number among those of [`Term::Input`]: what quantized values are multiplied by, say.
    Value(usize),
    /// An integer that is one value a problem, by its tensor's number among those: the length of a sequence, say.
    Length(usize),
    /// An integer that is one value a row, or one a key: the segment that it is of, say.
    Label(Label),
    /// A row or a key, by its number.
    Index(Var),
    /// A float, by its bits.
    Float(u64),
    /// An integer.
    Int(i64),
    /// A term combined over all keys.
    Fold(Combiner, Id),
    /// A scalar operation of arith or math, the number of its predicate where it has one, and its operands.
    Apply(String, Option<i64>, Vec<Id>),
}

/// Terms, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    all: Vec<(Term, Scalar)>,
    known: HashMap<(Term, Scalar), Id>,
}

impl Terms {
    /// The number of a term.
    pub fn add(&mut self, term: Term, scalar: Scalar) -> Id {
        if let Some(id) = self.known.get(&(term.clone(), scalar)) {
            return *id;
        }
        let id = Id(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push((term.clone(), scalar));
        self.known.insert((term, scalar), id);
        id
    }

    /// How many terms there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The term of a number.
    #[must_use]
    pub fn get(&self, id: Id) -> &Term {
        // A number is only made by `add`.
        &self.all[id.0 as usize].0
    }

    /// What its values are.
    #[must_use]
    pub fn scalar(&self, id: Id) -> Scalar {
        self.all[id.0 as usize].1
    }

    /// A float.
    pub fn float(&mut self, value: f64) -> Id {
        self.add(Term::Float(value.to_bits()), Scalar::Float)
    }

    /// An integer.
    pub fn int(&mut self, value: i64, bits: u32) -> Id {
        // A bit that is set reads as -1 of some attributes.
        let value = if bits == 1 { value & 1 } else { value };
        self.add(Term::Int(value), Scalar::Int(bits))
    }

    /// The float that a term is.
    #[must_use]
    pub fn as_float(&self, id: Id) -> Option<f64> {
        match self.get(id) {
            Term::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// The integer that a term is.
    #[must_use]
    pub fn as_int(&self, id: Id) -> Option<i64> {
        match self.get(id) {
            Term::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The operands of a term that is this operation.
    #[must_use]
    pub fn operands(&self, id: Id, name: &str) -> Option<&[Id]> {
        match self.get(id) {
            Term::Apply(own, _, operands) if own == name => Some(operands),
            _ => None,
        }
    }

    /// What a term is formed from directly.
    #[must_use]
    pub fn parts(&self, id: Id) -> Vec<Id> {
        match self.get(id) {
            Term::Product(of) | Term::Fold(_, of) => vec![*of],
            Term::Apply(_, _, operands) => operands.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether something in a term is so. Where `folds` is not set, the terms that are combined over keys do not count.
    pub fn any(&self, id: Id, folds: bool, is: &impl Fn(&Term) -> bool) -> bool {
        let (mut seen, mut next) = (vec![false; self.all.len()], vec![id]);
        while let Some(id) = next.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            if is(self.get(id)) {
                return true;
            }
            if folds || !matches!(self.get(id), Term::Fold(..)) {
                next.extend(self.parts(id));
            }
        }
        false
    }

    /// A scalar operation, simplified.
    pub fn apply(
        &mut self,
        name: &str,
        predicate: Option<i64>,
        operands: &[Id],
        scalar: Scalar,
    ) -> Id {
        if let Some(id) = self.constant(name, predicate, operands, scalar) {
            return id;
        }
        if let Some(id) = self.simpler(name, predicate, operands, scalar) {
            return id;
        }
        self.add(
            Term::Apply(name.to_owned(), predicate, operands.to_vec()),
            scalar,
        )
    }

    /// The same operation of other operands.
    pub fn with_operands(&mut self, id: Id, operands: &[Id]) -> Id {
        let scalar = self.scalar(id);
        match self.get(id).clone() {
            Term::Apply(name, predicate, _) => self.apply(&name, predicate, operands, scalar),
            _ => id,
        }
    }

    /// The value of an operation on constants.
    fn constant(
        &mut self,
        name: &str,
        predicate: Option<i64>,
        operands: &[Id],
        scalar: Scalar,
    ) -> Option<Id> {
        let floats: Option<Vec<f64>> = operands.iter().map(|id| self.as_float(*id)).collect();
        let ints: Option<Vec<i64>> = operands.iter().map(|id| self.as_int(*id)).collect();
        let bits = match scalar {
            Scalar::Int(bits) => bits,
            Scalar::Float => 0,
        };
        if let Some(floats) = floats.filter(|floats| !floats.is_empty()) {
            let value = match (name, floats.as_slice()) {
                ("arith.addf", &[a, b]) => a + b,
                ("arith.subf", &[a, b]) => a - b,
                ("arith.mulf", &[a, b]) => a * b,
                ("arith.divf", &[a, b]) => a / b,
                ("arith.negf", &[a]) => -a,
                ("math.sqrt", &[a]) => a.sqrt(),
                ("math.rsqrt", &[a]) => 1.0 / a.sqrt(),
                ("arith.maximumf" | "arith.maxnumf", &[a, b]) => a.max(b),
                ("arith.minimumf" | "arith.minnumf", &[a, b]) => a.min(b),
                _ => return None,
            };
            return Some(self.float(value));
        }
        let ints = ints.filter(|ints| !ints.is_empty())?;
        let value = match (name, ints.as_slice()) {
            ("arith.sitofp", &[a]) => return Some(self.float(a as f64)),
            ("arith.uitofp", &[a]) if a >= 0 => return Some(self.float(a as f64)),
            ("arith.addi", &[a, b]) => a.checked_add(b)?,
            ("arith.subi", &[a, b]) => a.checked_sub(b)?,
            ("arith.muli", &[a, b]) => a.checked_mul(b)?,
            ("arith.andi", &[a, b]) => a & b,
            ("arith.ori", &[a, b]) => a | b,
            ("arith.xori", &[a, b]) => a ^ b,
            ("arith.cmpi", &[a, b]) => i64::from(compare(predicate?, a, b)?),
            ("arith.extsi" | "arith.extui" | "arith.trunci", &[a])
                if (0..=i64::from(i32::MAX)).contains(&a) && bits >= 32 =>
            {
                a
            }
            _ => return None,
        };
        Some(self.int(value, bits))
    }

    /// What an operation is that changes nothing, or does nothing to one side.
    fn simpler(
        &mut self,
        name: &str,
        predicate: Option<i64>,
        operands: &[Id],
        scalar: Scalar,
    ) -> Option<Id> {
        let float = |at: usize| operands.get(at).and_then(|id| self.as_float(*id));
        let int = |at: usize| operands.get(at).and_then(|id| self.as_int(*id));
        let bit = scalar == Scalar::Int(1);
        match (name, operands) {
            ("arith.extf" | "arith.truncf", &[a]) => Some(a),
            // Indices are integers of 64 bits.
            ("arith.index_cast" | "arith.index_castui", &[a]) => {
                let bits = |scalar| match scalar {
                    Scalar::Int(bits) => bits,
                    Scalar::Float => 0,
                };
                Some(match bits(self.scalar(a)).cmp(&bits(scalar)) {
                    Ordering::Equal => a,
                    Ordering::Greater => self.apply("arith.trunci", None, &[a], scalar),
                    Ordering::Less if name == "arith.index_cast" => {
                        self.apply("arith.extsi", None, &[a], scalar)
                    }
                    Ordering::Less => self.apply("arith.extui", None, &[a], scalar),
                })
            }
            ("arith.mulf", &[a, b]) if float(0) == Some(1.0) || float(1) == Some(1.0) => {
                Some(if float(0) == Some(1.0) { b } else { a })
            }
            ("arith.addf", &[a, b]) if float(0) == Some(0.0) || float(1) == Some(0.0) => {
                Some(if float(0) == Some(0.0) { b } else { a })
            }
            ("arith.divf", &[a, _]) if float(1) == Some(1.0) => Some(a),
            ("arith.subf", &[a, _]) if float(1) == Some(0.0) => Some(a),
            ("arith.addi" | "arith.ori" | "arith.xori", &[a, b])
                if int(0) == Some(0) || int(1) == Some(0) =>
            {
                Some(if int(0) == Some(0) { b } else { a })
            }
            ("arith.subi", &[a, _]) if int(1) == Some(0) => Some(a),
            ("arith.muli", &[a, b]) if int(0) == Some(1) || int(1) == Some(1) => {
                Some(if int(0) == Some(1) { b } else { a })
            }
            ("arith.andi", &[a, b]) if bit && (int(0) == Some(1) || int(1) == Some(1)) => {
                Some(if int(0) == Some(1) { b } else { a })
            }
            ("arith.andi", _) if int(0) == Some(0) || int(1) == Some(0) => {
                Some(self.add(Term::Int(0), scalar))
            }
            ("arith.andi" | "arith.ori", &[a, b]) if a == b => Some(a),
            ("arith.select", &[_, a, b]) if a == b => Some(a),
            ("arith.select", &[_, a, b]) if int(0).is_some() => {
                Some(if int(0) == Some(0) { b } else { a })
            }
            // A bit that is widened and compared with zero is the bit.
            ("arith.cmpi", &[a, _]) if predicate == Some(1) && int(1) == Some(0) => {
                let from = ["arith.extui", "arith.extsi"]
                    .into_iter()
                    .find_map(|name| self.operands(a, name))
                    .and_then(|operands| operands.first().copied())
                    .unwrap_or(a);
                (self.scalar(from) == Scalar::Int(1)).then_some(from)
            }
            _ => None,
        }
    }
}

/// `a predicate b`, by the numbers of arith.cmpi; `None` for one without a sign where a number has one.
fn compare(predicate: i64, a: i64, b: i64) -> Option<bool> {
    let unsigned = (a >= 0 && b >= 0).then_some(());
    Some(match predicate {
        0 => a == b,
        1 => a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => unsigned.map(|()| a < b)?,
        7 => unsigned.map(|()| a <= b)?,
        8 => unsigned.map(|()| a > b)?,
        9 => unsigned.map(|()| a >= b)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_have_one_number() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let two = terms.float(2.0);
        let a = terms.apply("arith.mulf", None, &[score, two], Scalar::Float);
        let b = terms.apply("arith.mulf", None, &[score, two], Scalar::Float);
        assert_eq!(a, b);
        assert_ne!(a, score);
    }

    #[test]
    fn what_changes_nothing_is_dropped() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let (zero, one) = (terms.float(0.0), terms.float(1.0));
        for (name, operands) in [
            ("arith.addf", vec![score, zero]),
            ("arith.mulf", vec![one, score]),
            ("arith.divf", vec![score, one]),
            ("arith.truncf", vec![score]),
        ] {
            assert_eq!(
                terms.apply(name, None, &operands, Scalar::Float),
                score,
                "{name}"
            );
        }
        let input = terms.add(Term::Input(0), Scalar::Int(1));
        let set = terms.int(-1, 1);
        assert_eq!(
            terms.apply("arith.andi", None, &[input, set], Scalar::Int(1)),
            input
        );
        let wide = terms.apply("arith.extui", None, &[input], Scalar::Int(32));
        let none = terms.int(0, 32);
        assert_eq!(
            terms.apply("arith.cmpi", Some(1), &[wide, none], Scalar::Int(1)),
            input
        );
    }

    #[test]
    fn constants_are_computed() {
        let mut terms = Terms::default();
        let (a, b) = (terms.int(7, 64), terms.int(3, 64));
        for (predicate, holds) in [
            (0, 0),
            (1, 1),
            (2, 0),
            (3, 0),
            (4, 1),
            (5, 1),
            (6, 0),
            (9, 1),
        ] {
            let found = terms.apply("arith.cmpi", Some(predicate), &[a, b], Scalar::Int(1));
            assert_eq!(terms.as_int(found), Some(holds), "{predicate}");
        }
        let most = terms.int(i64::MAX, 64);
        let over = terms.apply("arith.addi", None, &[most, b], Scalar::Int(64));
        assert_eq!(terms.as_int(over), None);
        let (x, y) = (terms.float(6.0), terms.float(4.0));
        let z = terms.apply("arith.divf", None, &[x, y], Scalar::Float);
        assert_eq!(terms.as_float(z), Some(1.5));
    }
}
