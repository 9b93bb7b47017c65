//! Steps to and of elements that have few operations: bits, and floats of 8 bits.

use super::{Chain, Held};
use crate::array::{Array, mlir};
use crate::case::ELEMENTS;
use axe_package::DType;

impl Chain<'_> {
    /// A step of elements that have no arithmetic: bits, and floats of 8 bits.
    pub(super) fn step_of_few(&mut self, held: &Held) -> Held {
        match self.random.below(8) {
            0 => self.relayout(held),
            1 => self.transpose(held),
            2 => self.through_shared(held),
            3 if held.dtype == DType::Bool => self.mask(held),
            4 | 5 if held.dtype == DType::Bool => self.reduce_bits(held),
            _ => self.widen(held),
        }
    }

    /// A reduction by bits and its broadcast.
    pub(super) fn reduce_bits(&mut self, held: &Held) -> Held {
        if held.shape.len() != 2 {
            return held.clone();
        }
        let combiner = self.random.pick(&["and", "or", "xor"]);
        self.reduce_by(held, combiner, move |values| {
            let values = values.map(|value| value as i64);
            let bits = match combiner {
                "and" => values.fold(-1, |a, b| a & b),
                "or" => values.fold(0, |a, b| a | b),
                _ => values.fold(0, |a, b| a ^ b),
            };
            bits as f64
        })
    }

    /// Whether each element is less than a number.
    pub(super) fn compare(&mut self, held: &Held) -> Held {
        let dtype = held.dtype;
        let limit = self.random.pick(&[-1.0, 0.0, 2.0]);
        let name = self.constant(limit, dtype);
        let op = match dtype.is_float() {
            true => "arith.cmpf olt,",
            false => "arith.cmpi slt,",
        };
        let less = |value| f64::from(u8::from(value < limit));
        self.map_to(
            held,
            DType::Bool,
            &format!("{op} %e, {name} : {}", mlir(dtype)),
            less,
        )
    }

    /// 8-bit floats of elements that they hold.
    pub(super) fn narrow(&mut self, held: &Held) -> Held {
        let most = held
            .tiles
            .iter()
            .flat_map(|tile| &tile.data)
            .fold(0.0, |most: f64, x| most.max(x.abs()));
        if held.dtype == DType::F64 || most > 240.0 {
            return held.clone();
        }
        let to = self.random.pick(&[DType::F8E4M3, DType::F8E5M2]);
        self.cast_to(held, to)
    }

    /// Elements with arithmetic of bits or of 8-bit floats.
    fn widen(&mut self, held: &Held) -> Held {
        if held.dtype != DType::Bool {
            let to = self.random.pick(&[DType::F16, DType::F32, DType::BF16]);
            return self.cast_to(held, to);
        }
        let to = self.random.pick(&ELEMENTS);
        let [yes, no] = [3.0, -2.0];
        let [yes_name, no_name] = [yes, no].map(|value| self.constant(value, to));
        let op = format!("arith.select %e, {yes_name}, {no_name} : {}", mlir(to));
        self.map_to(held, to, &op, |value| if value == 0.0 { no } else { yes })
    }

    /// A map of one operation to another type.
    fn map_to(&mut self, held: &Held, to: DType, op: &str, apply: impl Fn(f64) -> f64) -> Held {
        let mapped =
            |tile: &Array| Array::from_fn(&tile.shape, to, |at| apply(tile.get(at).unwrap_or(0.0)));
        let tiles = held.tiles.iter().map(mapped).collect();
        let made = self.held(&held.shape, to, held.distribution.clone(), tiles);
        let (of, scalar) = (held.r#type(), mlir(held.dtype));
        let head = format!(
            "{} = axe.map ins({} : {of}) -> {} {{",
            made.name,
            held.name,
            made.r#type()
        );
        self.line(&head);
        self.line(&format!("^bb0(%e: {scalar}):"));
        self.line(&format!("  %s = {op}"));
        self.line(&format!("  axe.yield %s : {}", mlir(to)));
        self.line("}");
        made
    }
}
