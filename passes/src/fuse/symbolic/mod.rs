//! Extents that are known at run time only, as symbols: attention is looked for in a copy of a function whose extents are numbers.
//!
//! The algebra of [`index`](super::attention::index) works on digits of known extents. In the copy each dynamic extent is a prime of
//! its own that divides nothing else ([`infer`]), so that each number there is a product of known numbers and extents in one way only,
//! and views, digits and strides are products that can be read back ([`Symbols`]). Extents that are equal are one prime; of others
//! nothing is assumed. The copy is only read ([`copy`]): what is found in it is told in values of the function.

mod copy;
mod infer;
mod scalars;
mod simplify;

pub use simplify::simplify;

use super::attention::{Attention, Backward, Found};
use super::reshape::extent_of;
use crate::PassResult;
use crate::ir::value::{identity, operands, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, walk};
use copy::Copy;
use infer::{Extents, Source};
use melior::ir::r#type::IntegerType;
use std::collections::HashMap;
use std::rc::Rc;

/// Extents as primes, and what each is in the function.
#[derive(Clone, Debug, Default)]
pub struct Symbols<'c> {
    primes: Rc<Vec<(i64, Source<'c>)>>,
    /// Extents of a tensor's dimensions as numbers, by tensor.
    extents: Rc<HashMap<usize, Vec<i64>>>,
    /// Pairs that programs take for equal, which a launch is asked about.
    equal: Rc<Vec<[Source<'c>; 2]>>,
}

impl<'c> Symbols<'c> {
    /// Whether all extents are known when compiling.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.primes.is_empty()
    }

    /// Whether a number depends on an extent that is known at run time only.
    #[must_use]
    pub fn has(&self, number: i64) -> bool {
        number != 0 && self.primes.iter().any(|(prime, _)| number % prime == 0)
    }

    /// The part of a number that is known when compiling.
    #[must_use]
    pub fn known(&self, number: i64) -> i64 {
        self.with(number, |_| 1)
    }

    /// A number with these in the place of its extents.
    #[must_use]
    pub fn with(&self, number: i64, of: impl Fn(i64) -> i64) -> i64 {
        let (mut rest, mut other) = (number, 1i64);
        for (prime, _) in self.primes.iter() {
            while rest != 0 && rest % prime == 0 {
                rest /= prime;
                other = other.saturating_mul(of(*prime));
            }
        }
        rest.saturating_mul(other)
    }

    /// The extents of a tensor of the function, as numbers.
    #[must_use]
    pub fn extents(&self, tensor: Val<'c>) -> Option<&Vec<i64>> {
        self.extents.get(&identity(tensor))
    }

    /// A number as a value of the function.
    ///
    /// # Errors
    /// When an extent is not known before the kernel that gives it.
    pub fn value(&self, builder: &Builder<'c>, number: i64) -> PassResult<'c, Val<'c>> {
        let index = builder.index_type();
        let mut found = None;
        let mut rest = number;
        for (prime, source) in self.primes.iter() {
            while rest != 0 && rest % prime == 0 {
                rest /= prime;
                let own = source.value(builder)?;
                found = Some(match found {
                    None => own,
                    Some(found) => builder.value("arith.muli", &[found, own], index, &[])?,
                });
            }
        }
        match (found, rest) {
            (Some(found), 1) => Ok(found),
            (Some(found), rest) => {
                builder.value("arith.muli", &[found, builder.index(rest)?], index, &[])
            }
            (None, rest) => builder.index(rest),
        }
    }

    /// The sizes of a tensor's dynamic extents, in order.
    ///
    /// # Errors
    /// As for [`Self::value`].
    pub fn sizes(&self, builder: &Builder<'c>, tensor: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let shape = builder.tensor_of(tensor)?.shape;
        let mut sizes = Vec::new();
        for (dim, extent) in shape.into_iter().enumerate() {
            if extent == DYNAMIC {
                let number = self.extents(tensor).and_then(|own| own.get(dim).copied());
                sizes.push(match number {
                    Some(number) => self.value(builder, number)?,
                    None => extent_of(builder, tensor, dim)?,
                });
            }
        }
        Ok(sizes)
    }

    /// Asserts that extents of arguments that are taken for equal are: `cf.assert`, which a launch checks.
    ///
    /// # Errors
    /// As for [`Self::value`].
    pub fn assert(&self, builder: &Builder<'c>) -> PassResult<'c> {
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        let predicate = [("predicate", builder.parsed("0 : i64")?)];
        let message = "\"extents of arguments that are used as one\"";
        let message = [("msg", builder.parsed(message)?)];
        for [a, b] in self.equal.iter() {
            let both = [a.value(builder)?, b.value(builder)?];
            let equal = builder.value("arith.cmpi", &both, bit, &predicate)?;
            builder.operation("cf.assert", &[equal], &[], &message, Vec::new())?;
        }
        Ok(())
    }
}

/// Whether some tensor of a function has an extent that is known at run time only.
fn is_dynamic(ops: &[Op<'_>]) -> bool {
    let values = ops.iter().flat_map(|op| {
        let all = operands(*op).into_iter().chain(results(*op));
        all.filter_map(TensorType::of_value).collect::<Vec<_>>()
    });
    values
        .into_iter()
        .any(|tensor| tensor.shape.contains(&DYNAMIC))
}

/// Looks for attention of dynamic extents in a function with one block, and adds it to what was found.
///
/// # Errors
/// When the copy cannot be built.
pub fn find<'c>(
    func: Op<'c>,
    found: &mut Found<'c>,
    takes: &impl Fn(&Attention<'c>) -> Result<(), String>,
) -> PassResult<'c> {
    let all = walk::blocks(func);
    let [block] = all.as_slice() else {
        return Ok(());
    };
    let ops = walk::operations(*block);
    if !is_dynamic(&ops) || !copy::has_exponential(&ops) {
        return Ok(());
    }
    let Some(extents) = Extents::of(func, *block) else {
        return Ok(());
    };
    let symbols = extents.symbols();
    let copy = Copy::new(func, &extents)?;
    let own = copy.operations();
    let taken = |attention: &Attention<'c>| takes(&copy.told(attention, &symbols)?);
    let none = |_: &Backward<'c>| Err("its extents are dynamic".to_owned());
    let in_copy = Found::of(&own, &symbols, &taken, &none);
    found.declined.extend(in_copy.declined);
    for attention in in_copy.taken.values() {
        if let Ok(told) = copy.told(attention, &symbols)
            && let Some(last) = copy.last(&told, &ops)
        {
            found.taken.insert(last, Rc::new(told));
        }
    }
    Ok(())
}
