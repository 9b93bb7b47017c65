//! What the compiler refuses of these graphs: a short list, and a test that it does not grow.

/// A reason: a part of the compiler's message, and what it means.
pub struct Refusal {
    /// What the message contains.
    pub message: &'static str,
    /// What is refused.
    pub what: &'static str,
}

/// The reasons.
pub const REFUSALS: &[Refusal] = &[];

/// The number of the reason that a message gives.
pub fn reason(message: &str) -> Option<usize> {
    REFUSALS
        .iter()
        .position(|refusal| message.contains(refusal.message))
}
