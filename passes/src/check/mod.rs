//! What is checked of a kernel whatever the target: the protocol of its rings, and the places of its storage.

pub mod lifetime;
pub mod ring;
pub mod times;

use crate::dispatch::Decline;
