//! What rows have all of whose keys are hidden.

use crate::fuse::attention::Attention;
use crate::fuse::attention::term::Term;
use crate::fuse::attention::visible::HIDDEN;

/// The weights of a row that sees no key, and what its scores' gradients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// Weights are 0, and so are gradients.
    Zero,
    /// Both are NaN.
    Nan,
    /// Keys are hidden by a low number, and each has the same weight.
    Mean {
        /// Whether the scores' gradients are 0.
        chosen: bool,
    },
}

impl Empty {
    /// That of these weights; `chosen`, where the gradients of hidden keys are chosen to be 0.
    ///
    /// # Errors
    /// Where no kernel of gradients has it.
    pub(super) fn of(
        attention: &Attention<'_>,
        chosen: bool,
        has_logs: bool,
    ) -> Result<Self, String> {
        let score = attention.weights.score;
        let has = |value: f64| {
            let is = |term: &Term| *term == Term::Float(value.to_bits());
            attention.terms.any(score, true, &is)
        };
        if !has(HIDDEN) {
            return Ok(match attention.weights.empty_is_zero {
                true => Self::Zero,
                false => Self::Nan,
            });
        }
        if has(f64::NEG_INFINITY) {
            return Err("low numbers hide some of its keys, and minus infinity others".to_owned());
        }
        match has_logs {
            true => Err(
                "low numbers hide its keys, and logarithms of its rows' sums are given".to_owned(),
            ),
            false => Ok(Self::Mean { chosen }),
        }
    }
}
