//! What is known of a kernel without emitting it.
//!
//! [`kernel::Kernel`] reads a kernel once and knows the [`form::Form`] of every value: of storage its layout, alignment, bounds
//! and origin, of a register tensor its fragment. An operator as a schedule reads it is a [`site::Site`]: the kernel, the
//! threads that execute it, and what of shared memory is taken there. Emission adds the values that are known at run time.

pub(crate) mod boxes;
pub(crate) mod branches;
pub(crate) mod cursor;
pub(crate) mod form;
pub(crate) mod gathering;
pub(crate) mod kernel;
pub(crate) mod nest;
pub(crate) mod places;
pub(crate) mod protocol;
pub(crate) mod rings;
pub(crate) mod scattering;
pub(crate) mod site;
pub(crate) mod slots;
pub(crate) mod storage;
pub(crate) mod threads;
pub(crate) mod types;
pub(crate) mod visit;
