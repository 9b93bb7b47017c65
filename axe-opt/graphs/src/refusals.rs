//! What the compiler refuses of these graphs: a short list, and a test that it does not grow.

/// A reason: a part of the compiler's message, and what it means.
pub struct Refusal {
    /// What the message contains.
    pub message: &'static str,
    /// What is refused.
    pub what: &'static str,
}

/// The reasons.
pub const REFUSALS: &[Refusal] = &[
    Refusal {
        message: "has no form on this target",
        what: "a function of math on f64 or integers, or log1p",
    },
    Refusal {
        message: "in a kernel's tensors, got i1",
        what: "tensors of i1",
    },
    Refusal {
        message: "'linalg.index' in its body is not a scalar operation",
        what: "linalg.index",
    },
    Refusal {
        message: "expected a reduction of neighbouring dimensions",
        what: "a reduction of dimensions that are apart",
    },
    Refusal {
        message: "expected a body that yields a sum, product, maximum, minimum, and or or",
        what: "a reduction by an unsigned maximum or by xor",
    },
    Refusal {
        message: "no tile fits in shared memory",
        what: "a product of i8 with rows of 16 bytes or fewer on Hopper",
    },
];

/// The number of the reason that a message gives.
pub fn reason(message: &str) -> Option<usize> {
    REFUSALS
        .iter()
        .position(|refusal| message.contains(refusal.message))
}
