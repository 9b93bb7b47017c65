//! Arithmetic on `index`, and where a thread is.

use super::Code;
use crate::PassResult;
use crate::ir::Val;
use crate::ir::value::{defining, name, operands};
use melior::ir::ValueLike;
use melior::ir::r#type::IntegerType;

impl<'c> Code<'c> {
    fn index_binary(&self, name: &str, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.builder
            .value(name, &[a, b], self.builder.index_type(), &[])
    }

    /// A constant of type `index`.
    pub fn index(&self, value: i64) -> PassResult<'c, Val<'c>> {
        self.builder.index(value)
    }

    /// `a + b`.
    pub fn add(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.addi", a, b)
    }

    /// `a - b`.
    pub fn sub(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        // Of a place in a part, counted from where the part begins, more is known than of a difference.
        let sum = defining(a).filter(|op| name(*op) == "arith.addi");
        match sum.map(operands).as_deref() {
            Some(&[first, rest]) if first == b => Ok(rest),
            _ => self.index_binary("arith.subi", a, b),
        }
    }

    /// `a - b`, zero where that is less.
    pub fn above(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.sub(a, self.min(a, b)?)
    }

    /// `a * b`.
    pub fn mul(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.muli", a, b)
    }

    /// `a * b` for a number that is known.
    pub fn times(&self, a: Val<'c>, b: i64) -> PassResult<'c, Val<'c>> {
        self.mul(a, self.index(b)?)
    }

    /// `a / b` for numbers without a sign, rounded down.
    pub fn div(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.divui", a, b)
    }

    /// The rest of `a / b`.
    pub fn rem(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.remui", a, b)
    }

    /// The smaller of two numbers without a sign.
    pub fn min(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.minui", a, b)
    }

    /// Whether `a` is at most `b`, both without a sign.
    pub fn at_most(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let bit = self
            .builder
            .r#type(|context| IntegerType::new(context, 1).into());
        let at_most = [("predicate", self.builder.parsed("7 : i64")?)];
        self.builder.value("arith.cmpi", &[a, b], bit, &at_most)
    }

    /// `value` where a condition holds; else `other`.
    pub fn choose(
        &self,
        condition: Val<'c>,
        [value, other]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let operands = [condition, value, other];
        self.builder
            .value("arith.select", &operands, value.r#type(), &[])
    }

    /// `value` where `a` is at most `b`, both without a sign; else `other`.
    pub fn where_at_most(
        &self,
        [a, b]: [Val<'c>; 2],
        values: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        self.choose(self.at_most(a, b)?, values)
    }

    /// `a / b` for a number that is known, rounded up.
    pub fn ceil_div(&self, a: Val<'c>, b: i64) -> PassResult<'c, Val<'c>> {
        self.index_binary("arith.ceildivui", a, self.index(b)?)
    }

    /// `gpu.block_id` along `x`, `y` or `z`.
    pub fn block(&self, dimension: &str) -> PassResult<'c, Val<'c>> {
        self.along("gpu.block_id", dimension)
    }

    /// `gpu.thread_id` along `x`, `y` or `z`: the number of the thread in its CTA.
    pub fn thread(&self, dimension: &str) -> PassResult<'c, Val<'c>> {
        self.along("gpu.thread_id", dimension)
    }

    /// `gpu.grid_dim` along `x`, `y` or `z`: how many blocks there are.
    pub fn blocks(&self, dimension: &str) -> PassResult<'c, Val<'c>> {
        self.along("gpu.grid_dim", dimension)
    }

    fn along(&self, name: &str, dimension: &str) -> PassResult<'c, Val<'c>> {
        let dimension = self.builder.parsed(&format!("#gpu<dim {dimension}>"))?;
        let r#type = self.builder.index_type();
        self.builder
            .value(name, &[], r#type, &[("dimension", dimension)])
    }
}
