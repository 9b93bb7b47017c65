//! Plans: what a schedule decided for one operator, as plain data.

pub mod bulk;
pub mod copy;
pub mod gather;
pub mod ldmatrix;
pub mod mma;
pub mod nest;
pub mod owner;
pub mod reduce;
pub mod shuffle;
pub mod swap;
pub mod tma;
pub mod transfer;
pub mod wgmma;

pub use axe_passes::dispatch::Decline;
pub(crate) use axe_passes::ir::facts::gcd;

/// A plan as it stands in the IR; it is read as it was written.
#[cfg(test)]
pub(crate) fn written<P>(plan: &P) -> String
where
    P: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let text = serde_json::to_string(plan).unwrap();
    let read: P = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, plan, "{text}");
    text
}
