//! How operators of a kernel are bound to instructions: first decided, then lowered.
//!
//! * [`schedule`]: what a way to execute an operator is, and how one is chosen;
//! * [`plan`]: plans as attributes of the IR, and back;
//! * [`sequence`]: lists of numbers as short text;
//! * [`record`]: what `--axe-dispatch-schedules` leaves on operators and kernels;
//! * [`report`]: what was decided, for people.
//!
//! A target gives the schedules; nothing here knows one.

mod decline;
pub mod plan;
pub mod record;
pub mod report;
pub mod schedule;
pub mod sequence;

pub use decline::Decline;
pub use report::Decision;
pub use schedule::{Match, Schedule};
