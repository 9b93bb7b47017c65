//! Loads kernel packages, checks the device and the arguments, launches and times.
//!
//! [`Device`] is a GPU, [`Loaded`] a package's code on it, [`Prepared`] a set of memory and
//! arguments that launches; [`run::Job`] does all of it for one request. Inside of another program,
//! [`Executable`] launches on that program's memory, streams and context. The driver is loaded when
//! first used, so programs start without a GPU and get a [`RuntimeError`] that says so.

// Of the drivers, which compare products with cuBLASLt's.
#[doc(hidden)]
pub mod bench;
mod chip;
#[doc(hidden)]
pub mod cli;
mod device;
mod encode;
mod error;
mod executable;
mod foreign;
mod loaded;
mod prepared;
pub mod run;
mod step;
mod timing;
mod workspace;

pub use device::{Device, DeviceMemory, Properties};
pub use error::{RuntimeError, exit_code};
pub use executable::{Executable, Specialization};
pub use foreign::Stream;
pub use loaded::{Code, Loaded};
pub use prepared::Prepared;
pub use timing::Times;
