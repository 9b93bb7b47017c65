//! Scalars of a `linalg.generic`'s body, each with what is known of its values.

use crate::element::Element;
use std::fmt::Write;

/// A scalar.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: Element,
    /// The largest magnitude that it may have.
    pub bound: f64,
    /// How far two right implementations may be apart.
    pub error: f64,
    /// Whether it is never 0.
    pub nonzero: bool,
}

/// The body of a `linalg.generic`.
#[derive(Default)]
pub struct Body {
    /// Its operations.
    pub text: String,
    next: usize,
}

impl Body {
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%s{}", self.next)
    }

    /// An operation's result: `text` is what stands to the right of `=`.
    pub fn emit(&mut self, text: &str, element: Element, bound: f64, error: f64) -> Scalar {
        let name = self.fresh();
        let _ = writeln!(self.text, "    {name} = {text}");
        Scalar {
            name,
            element,
            bound,
            error,
            nonzero: false,
        }
    }

    /// A constant that is exact in its type.
    pub fn constant(&mut self, value: f64, element: Element) -> Scalar {
        let literal = match (element, element.is_float()) {
            (Element::I1, _) => (if value == 0.0 { "false" } else { "true" }).to_owned(),
            (_, true) if value == f64::NEG_INFINITY => {
                format!("{} : {}", element.least(), element.name())
            }
            (_, true) => format!("{value:.8e} : {}", element.name()),
            (_, false) => format!("{} : {}", value as i64, element.name()),
        };
        let mut made = self.emit(
            &format!("arith.constant {literal}"),
            element,
            value.abs(),
            0.0,
        );
        made.nonzero = value != 0.0;
        made
    }

    /// `op x : type`.
    pub fn unary(&mut self, op: &str, x: &Scalar, bound: f64, error: f64) -> Scalar {
        let text = format!("{op} {} : {}", x.name, x.element.name());
        self.emit(&text, x.element, bound, error)
    }

    /// `op a, b : type`.
    pub fn binary(&mut self, op: &str, a: &Scalar, b: &Scalar, bound: f64, error: f64) -> Scalar {
        let text = format!("{op} {}, {} : {}", a.name, b.name, a.element.name());
        self.emit(&text, a.element, bound, error)
    }

    /// `op x : from to to`.
    pub fn convert(&mut self, op: &str, x: &Scalar, to: Element, error: f64) -> Scalar {
        let text = format!("{op} {} : {} to {}", x.name, x.element.name(), to.name());
        self.emit(&text, to, x.bound.min(to.limit()), error)
    }

    /// The number of the iteration along a loop.
    pub fn index(&mut self, dim: usize) -> Scalar {
        self.emit(
            &format!("linalg.index {dim} : index"),
            Element::Index,
            0.0,
            0.0,
        )
    }

    /// An index and some more.
    pub fn plus(&mut self, x: &Scalar, more: i64) -> Scalar {
        let more = self.constant(more as f64, Element::Index);
        self.binary("arith.addi", x, &more, 0.0, 0.0)
    }

    /// `arith.cmpi` of integers.
    pub fn compare(&mut self, predicate: &str, a: &Scalar, b: &Scalar) -> Scalar {
        let name = a.element.name();
        let text = format!("arith.cmpi {predicate}, {}, {} : {name}", a.name, b.name);
        self.emit(&text, Element::I1, 1.0, 0.0)
    }

    /// Whether an index is at most a number.
    pub fn at_most(&mut self, x: &Scalar, most: i64) -> Scalar {
        let most = self.constant(most as f64, Element::Index);
        self.compare("ule", x, &most)
    }

    /// A float where a bit says so, else the least one.
    pub fn seen(&mut self, bit: &Scalar, x: &Scalar) -> Scalar {
        let name = x.element.name();
        let bits = match x.element {
            Element::F16 => "0xFC00",
            Element::BF16 => "0xFF80",
            Element::F64 => "0xFFF0000000000000",
            _ => "0xFF800000",
        };
        let least = self.emit(
            &format!("arith.constant {bits} : {name}"),
            x.element,
            x.bound,
            0.0,
        );
        let text = format!(
            "arith.select {}, {}, {} : {name}",
            bit.name, x.name, least.name
        );
        self.emit(&text, x.element, x.bound, x.error)
    }

    /// `a + b` of floats.
    pub fn addf(&mut self, a: &Scalar, b: &Scalar) -> Scalar {
        self.sum("arith.addf", a, b)
    }

    /// `a - b` of floats.
    pub fn subf(&mut self, a: &Scalar, b: &Scalar) -> Scalar {
        self.sum("arith.subf", a, b)
    }

    fn sum(&mut self, op: &str, a: &Scalar, b: &Scalar) -> Scalar {
        let bound = a.bound + b.bound;
        let error = a.error + b.error + a.element.roundoff() * bound;
        self.binary(op, a, b, bound, error)
    }

    /// `a b` of floats.
    pub fn mulf(&mut self, a: &Scalar, b: &Scalar) -> Scalar {
        let bound = a.bound * b.bound;
        let error = a.error * b.bound
            + b.error * a.bound
            + a.error * b.error
            + a.element.roundoff() * bound;
        self.binary("arith.mulf", a, b, bound, error)
    }

    /// `a / b` of floats, where |b| is at least `least`.
    pub fn divf(&mut self, a: &Scalar, b: &Scalar, least: f64) -> Scalar {
        let bound = a.bound / least;
        let least = (least - b.error).max(least / 2.0);
        let error = (a.error + bound * b.error) / least + a.element.approximation() * bound;
        self.binary("arith.divf", a, b, bound, error)
    }

    /// `|x| + more`.
    pub fn away_from_zero(&mut self, x: &Scalar, more: f64) -> Scalar {
        let magnitude = self.unary("math.absf", x, x.bound, x.error);
        let more = self.constant(more, x.element);
        self.addf(&magnitude, &more)
    }

    /// A value scaled by a power of two to a magnitude of 2 at most.
    pub fn tamed(&mut self, x: &Scalar, most: f64) -> Scalar {
        if x.bound <= most {
            return x.clone();
        }
        let factor = 2f64.powi(-(x.bound / most).log2().ceil() as i32);
        let factor = self.constant(factor, x.element);
        self.mulf(x, &factor)
    }

    /// Another type's value; by way of f32 between the two types of 16 bits.
    pub fn cast(&mut self, x: &Scalar, to: Element) -> Scalar {
        use Element::{F32, I1, I64, Index};
        let from = x.element;
        if from == to {
            return x.clone();
        }
        match (from.is_float(), to.is_float()) {
            (true, true) if from.bits() == to.bits() => {
                let wide = self.cast(x, F32);
                self.cast(&wide, to)
            }
            (true, true) if from.bits() < to.bits() => self.convert("arith.extf", x, to, x.error),
            (true, true) => {
                let tame = self.tamed(x, to.limit());
                let error = tame.error + to.roundoff() * tame.bound;
                self.convert("arith.truncf", &tame, to, error)
            }
            (false, true) if from == Index => {
                let long = self.convert("arith.index_cast", x, I64, 0.0);
                self.cast(&long, to)
            }
            (false, true) => {
                let x = self.small(x, to.limit());
                let op = if from == I1 {
                    "arith.uitofp"
                } else {
                    "arith.sitofp"
                };
                let error = if x.bound * to.roundoff() <= 1.0 {
                    0.0
                } else {
                    to.roundoff() * x.bound
                };
                self.convert(op, &x, to, error)
            }
            (true, false) => self.round_to_integer(x, to),
            (false, false) => self.between_integers(x, to),
        }
    }

    /// An integer whose magnitude is at most `most`.
    fn small(&mut self, x: &Scalar, most: f64) -> Scalar {
        if x.bound <= most {
            return x.clone();
        }
        let mask = self.constant(15.0, x.element);
        self.binary("arith.andi", x, &mask, 15.0, 0.0)
    }

    /// The integer of a float whose value is certain, or else whether it is above an input's reach.
    fn round_to_integer(&mut self, x: &Scalar, to: Element) -> Scalar {
        use Element::{I1, I32, Index};
        if to == I1 || x.error > 0.0 || x.bound >= to.limit() {
            // A comparison that no rounding can turn.
            let far = self.constant(
                2f64.powi(x.bound.max(1.0).log2().ceil() as i32 + 2),
                x.element,
            );
            let text = format!(
                "arith.cmpf olt, {}, {} : {}",
                x.name,
                far.name,
                x.element.name()
            );
            let below = self.emit(&text, I1, 1.0, 0.0);
            return self.between_integers(&below, to);
        }
        if to == Index {
            let whole = self.convert("arith.fptosi", x, I32, 0.0);
            return self.between_integers(&whole, to);
        }
        self.convert("arith.fptosi", x, to, 0.0)
    }

    fn between_integers(&mut self, x: &Scalar, to: Element) -> Scalar {
        use Element::{I1, I32, Index};
        match (x.element, to) {
            (from, to) if from == to => x.clone(),
            (I1, Index) => {
                let wide = self.convert("arith.extui", x, I32, 0.0);
                self.between_integers(&wide, to)
            }
            (Index, I1) => {
                let narrow = self.convert("arith.index_cast", x, I32, 0.0);
                self.between_integers(&narrow, to)
            }
            (Index, _) | (_, Index) => self.convert("arith.index_cast", x, to, 0.0),
            (I1, _) => self.convert("arith.extui", x, to, 0.0),
            (_, I1) => {
                let zero = self.constant(0.0, x.element);
                let name = x.element.name();
                let text = format!("arith.cmpi ne, {}, {} : {name}", x.name, zero.name);
                self.emit(&text, I1, 1.0, 0.0)
            }
            (from, to) if from.bits() < to.bits() => self.convert("arith.extsi", x, to, 0.0),
            _ => self.convert("arith.trunci", x, to, 0.0),
        }
    }
}
