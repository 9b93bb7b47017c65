//! Exponentials below a maximum, `exp(x - m)` with `m` the maximum of `x`, whose sums are formed of those of parts of `x`: a part's own is
//! below its own maximum, `s' = sum exp(x - m')`. States `(m', s')` are merged by `m = max m'`, `s = sum s' exp(m' - m)`, as an
//! online softmax does.

use super::element::Element;
use super::peaks::REACHES_ONE;
use super::space::source;
use crate::PassResult;
use crate::build::{Code, Number};
use crate::ir::value::{defining, name};
use crate::ir::{Builder, Op, Val, attribute, types};
use crate::precision::constant;
use axe_dialect::{element_type, ops};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// `oeq` of `arith.cmpf`.
const ORDERED_EQUAL: i64 = 1;

/// The maximum that exponentials are below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peak {
    /// As it is.
    Plain,
    /// Zero in its place where it is infinite, as torch's logsumexp has it.
    Finite,
}

/// Exponentials `exp(x - m)`, where `m` is of one value for many `x`.
pub(super) struct Exponentials<'c> {
    /// `x`.
    pub x: Element<'c>,
    /// What repeats `m`, and the result of that.
    pub broadcast: Op<'c>,
    pub repeated: Val<'c>,
    /// What `m` stands for.
    pub peak: Val<'c>,
    /// How it does so.
    pub stands: Peak,
}

impl<'c> Exponentials<'c> {
    /// What a tensor's elements are, where they are such.
    pub(super) fn of(terms: Val<'c>) -> Option<Self> {
        let term = Element::of(terms).resolved();
        let &[difference] = &term.operands_of("math.exp")?[..] else {
            return None;
        };
        let &[x, m] = &difference.operands_of("arith.subf")?[..] else {
            return None;
        };
        let repeated = m.narrow().value;
        let broadcast = defining(repeated).filter(|op| name(*op) == ops::BROADCAST)?;
        let own = Element::of(source(broadcast)?).narrow();
        let (own, stands) = match finite(own) {
            Some(own) => (own, Peak::Finite),
            None => (own, Peak::Plain),
        };
        Some(Self {
            x,
            broadcast,
            repeated,
            peak: own.value,
            stands,
        })
    }
}

/// What an element is where that is finite, of one that is zero elsewhere: `select(|m| == inf, 0, m)`.
fn finite(element: Element<'_>) -> Option<Element<'_>> {
    let &[is_infinite, zero, own] = &element.operands_of("arith.select")?[..] else {
        return None;
    };
    let compare = defining(is_infinite.value)?;
    let &[size, infinity] = &is_infinite.operands_of("arith.cmpf")?[..] else {
        return None;
    };
    let &[of] = &size.narrow().operands_of("math.absf")?[..] else {
        return None;
    };
    let equal = compare.attribute("predicate").ok();
    let equal = equal.and_then(attribute::integer) == Some(ORDERED_EQUAL);
    let constants = [zero, infinity].map(|own| constant(own.value));
    let own = own.narrow();
    let same = equal && of.narrow().value == own.value;
    (same && constants == [Some(0.0), Some(f64::INFINITY)]).then_some(own)
}

impl Peak {
    /// `exp` of how far a maximum is below that of more elements, or what stands for it; that of the largest is one.
    pub(super) fn factor<'c>(
        self,
        code: &Code<'c>,
        [own, of_more]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let (builder, r#type) = (&code.builder, own.r#type());
        let mut apart = builder.value("arith.subf", &[own, of_more], r#type, &[])?;
        if self == Self::Finite {
            // Of infinity, whose sums are infinite: sums that are zero stay that.
            let zero = code.scalar(r#type, Number::Of(0))?;
            apart = builder.value("arith.minimumf", &[apart, zero], r#type, &[])?;
        }
        let reaches_one = [(REACHES_ONE, builder.unit())];
        builder.value("math.exp", &[apart], r#type, &reaches_one)
    }

    /// A part's maximum, from which all that it is the maximum of has a distance. Minus infinity has none, and all that it is the
    /// maximum of is as far from zero; nor has infinity, which is left where the program leaves it.
    pub(super) fn shift<'c>(self, code: Code<'c>, peak: Val<'c>) -> PassResult<'c, Val<'c>> {
        let element = element_type(peak.r#type());
        code.map(&[peak], peak.r#type(), |inner, of| {
            let zero = inner.scalar(element, Number::Of(0))?;
            let builder = &inner.builder;
            let (size, far) = match self {
                Self::Plain => (of[0], Number::Least),
                Self::Finite => {
                    let size = builder.value("math.absf", &[of[0]], element, &[])?;
                    (size, Number::Greatest)
                }
            };
            let far = inner.scalar(element, far)?;
            let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
            let equal = [(
                "predicate",
                builder.parsed(&format!("{ORDERED_EQUAL} : i64"))?,
            )];
            let is_far = builder.value("arith.cmpf", &[size, far], bit, &equal)?;
            inner.choose(is_far, [zero, of[0]])
        })
    }

    /// `s exp(m' - m)` of a sum below a maximum `m'`, which another `m` of more elements is not below.
    pub(super) fn scaled<'c>(
        self,
        code: &Code<'c>,
        sum: Val<'c>,
        [own, of_more]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let (builder, element) = (&code.builder, sum.r#type());
        let types = [element, own.r#type()];
        let is_wide = types.iter().any(|own| types::bits(*own) == Some(64));
        let wide = builder.r#type(|context| match is_wide {
            true => Type::float64(context),
            false => Type::float32(context),
        });
        let [sum, own, of_more] = [sum, own, of_more].map(|value| converted(builder, value, wide));
        let factor = self.factor(code, [own?, of_more?])?;
        let scaled = builder.value("arith.mulf", &[sum?, factor], wide, &[])?;
        converted(builder, scaled, element)
    }
}

/// A float of another width.
pub(super) fn converted<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    to: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    match types::bits(value.r#type()).cmp(&types::bits(to)) {
        std::cmp::Ordering::Less => builder.value("arith.extf", &[value], to, &[]),
        std::cmp::Ordering::Equal => Ok(value),
        std::cmp::Ordering::Greater => builder.value("arith.truncf", &[value], to, &[]),
    }
}
