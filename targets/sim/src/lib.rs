//! A simulator that executes PTX and checks it for races, bounds and barrier misuse.
//!
//! ```
//! use axe_sim::{Arg, Device, Launch, Module, Simulator};
//! let module = Module::parse(
//!     ".version 9.0 .target sm_90a .address_size 64
//!      .visible .entry twice(.param .u64 p) {
//!        .reg .b64 %a<3>; .reg .b32 %r<3>;
//!        ld.param.b64 %a0, [p];  mov.u32 %r0, %tid.x;  mul.wide.u32 %a1, %r0, 4;
//!        add.s64 %a2, %a0, %a1;  ld.global.b32 %r1, [%a2];  add.s32 %r1, %r1, %r1;
//!        st.global.b32 [%a2], %r1;  ret; }",
//! )?;
//! let mut device = Device::new();
//! let buffer = device.alloc("p", 128)?;
//! device.copy_in(buffer, &[1; 128])?;
//! let report = Simulator::default().run(&mut device, &module, &Launch::new("twice", 1, 32, vec![Arg::Ptr(buffer)]))?;
//! assert!(report.findings.is_empty());
//! let mut out = [0; 4];
//! device.copy_out(buffer + 64, &mut out)?;
//! assert_eq!(out, [2; 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bare;
mod check;
mod decode;
mod device;
mod exec;
mod fault;
mod names;
pub mod package;
mod partial;
mod ptx;
mod report;
mod sarif;
pub mod units;

pub use device::{Arg, Device, KernelParam, Launch, Module, Simulator};
pub use exec::counters::{Counters, Executed};
pub use exec::launch::Options;
pub use fault::Fault;
pub use report::{Finding, FindingKind, Place, RunReport, Severity, SimError};
pub use sarif::sarif;
