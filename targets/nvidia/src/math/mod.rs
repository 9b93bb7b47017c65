//! Elementary functions in f64, without a device library.
//!
//! | function | error, units in the last place of f64 |
//! | --- | --- |
//! | exp, exp2, expm1, log, log1p, sin, cos, pow, cbrt, rsqrt | 1 |
//! | log2, log10, atan, atan2, erf | 2 |
//! | tan, asin, acos, sinh, cosh, tanh, asinh, acosh, atanh | 3 |
//! | erfc | 4 |
//!
//! as tests measure it against libm's, over all exponents and where functions bend; special cases are C's. Functions of
//! narrower floats are those of f64, rounded once: half a unit in their last place, but for the rarest of ties; of sin and cos
//! (`near_sine`) another hundredth of a unit of f32 is wrong. Those that f32 has forms of its own for are in [`crate::emit`]
//! (`emit/math.rs`).

mod emitted;
mod erf;
mod exponential;
mod machine;
mod power;
#[cfg(test)]
mod tests;
mod trigonometric;

pub(crate) use emitted::{Emitted, intrinsic};
pub(crate) use machine::{Float, Machine};
pub(crate) use power::whole_power;
pub(crate) use trigonometric::{far_sine, near_sine};

/// The function of the math dialect of this name, of one or two operands; `None` when it is none of these.
pub(crate) fn of<'m, M: Machine>(name: &str, operands: &[Float<'m, M>]) -> Option<Float<'m, M>> {
    use exponential as e;
    use trigonometric as t;
    Some(match (name, operands) {
        ("math.exp", &[x]) => e::exp(x),
        ("math.exp2", &[x]) => e::exp2(x),
        ("math.expm1", &[x]) => e::expm1(x),
        ("math.log", &[x]) => e::log(x),
        ("math.log2", &[x]) => e::log2(x),
        ("math.log10", &[x]) => e::log10(x),
        ("math.log1p", &[x]) => e::log1p(x),
        ("math.sinh", &[x]) => e::sinh(x),
        ("math.cosh", &[x]) => e::cosh(x),
        ("math.tanh", &[x]) => e::tanh(x),
        ("math.asinh", &[x]) => e::asinh(x),
        ("math.acosh", &[x]) => e::acosh(x),
        ("math.atanh", &[x]) => e::atanh(x),
        ("math.sin", &[x]) => t::sin(x),
        ("math.cos", &[x]) => t::cos(x),
        ("math.tan", &[x]) => t::tan(x),
        ("math.asin", &[x]) => t::asin(x),
        ("math.acos", &[x]) => t::acos(x),
        ("math.atan", &[x]) => t::atan(x),
        ("math.atan2", &[y, x]) => t::atan2(y, x),
        ("math.powf", &[x, y]) => power::pow(x, y),
        ("math.cbrt", &[x]) => power::cbrt(x),
        ("math.rsqrt", &[x]) => power::rsqrt(x),
        ("math.round", &[x]) => power::round(x),
        ("math.erf", &[x]) => erf::erf(x),
        ("math.erfc", &[x]) => erf::erfc(x),
        _ => return None,
    })
}
