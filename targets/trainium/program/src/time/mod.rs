//! How long a program takes.
//!
//! [`cost`] gives the time of each instruction from the documented formulas; [`regions`] finds which instruction waits for
//! which; [`schedule`] lets every engine execute its instructions in order, each as early as its data, the ports and the
//! DMA engines allow; [`report`] and [`svg`] show it.

pub mod cost;
pub mod regions;
pub mod report;
pub mod schedule;
pub mod svg;

pub use report::Timing;
pub use schedule::simulate;
