//! A kernel without a package: PTX text, a launch, and arguments that are written down in a line each.
//!
//! ```
//! use axe_sim::bare::{Bare, Value};
//! let text = ".version 8.0 .target sm_80 .address_size 64
//!     .visible .entry scale(.param .u64 x, .param .f32 by) { .reg .b64 %a<4>; .reg .b32 %r; .reg .f32 %f<3>;
//!     ld.param.u64 %a0, [x]; ld.param.f32 %f0, [by]; mov.u32 %r, %tid.x; mul.wide.u32 %a1, %r, 4; add.s64 %a0, %a0, %a1;
//!     ld.global.f32 %f1, [%a0]; mul.f32 %f1, %f1, %f0; st.global.f32 [%a0], %f1; ret; }";
//! let mut kernel = Bare::new(text, [1, 1, 1], [32, 1, 1])?;
//! kernel.arg("x", "f32[32]:arange".parse()?);
//! kernel.arg("by", "0.5".parse()?);
//! let run = kernel.run(&axe_sim::Simulator::default())?;
//! assert!(run.report.findings.is_empty());
//! assert_eq!(run.arrays["x"].iter_f64().last(), Some(15.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod memory;
mod triton;
mod value;

pub use triton::Triton;
pub use value::{Fill, Pointer, Value};

use crate::device::KernelParam;
use crate::{Arg, Device, Launch, Module, RunReport, SimError, Simulator};
use axe_package::{NpyError, Tensor, TensorError};
use memory::Memory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use thiserror::Error;

/// Why a bare kernel was not run to its end.
#[derive(Debug, Error)]
pub enum BareError {
    /// A file that cannot be read.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// An array's file that is no `.npy` of a type that is known.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// An array that no memory holds.
    #[error("argument `{0}`: {1}")]
    Tensor(String, TensorError),
    /// An argument that does not fit.
    #[error("argument `{0}`: {1}")]
    Arg(String, String),
    /// The text has several kernels, or none.
    #[error("{0}")]
    Kernel(String),
    /// The PTX text, the launch, or what ended the kernel.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// A kernel, its launch and its arguments.
#[derive(Debug)]
pub struct Bare {
    module: Module,
    /// Kernel's name.
    pub kernel: String,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads a CTA.
    pub block: [u32; 3],
    /// CTAs a cluster.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub smem: u64,
    args: Vec<(String, Value)>,
    /// Arrays that arguments point to and that are none themselves.
    arrays: Vec<(String, Value)>,
    /// Values of the module's variables.
    variables: Vec<(String, Value)>,
}

/// What a run leaves.
#[derive(Debug)]
pub struct BareRun {
    /// Findings, counters, printed text.
    pub report: RunReport,
    /// Every array by its name, as it is after the run.
    pub arrays: BTreeMap<String, Tensor>,
}

impl Bare {
    /// The kernel of `text`, where there is one only.
    ///
    /// # Errors
    /// [`BareError::Sim`] for text that is no PTX, [`BareError::Kernel`] if it holds no kernel or several.
    pub fn new(text: &str, grid: [u32; 3], block: [u32; 3]) -> Result<Self, BareError> {
        Self::of(Module::parse(text)?, None, grid, Some(block))
    }

    /// A kernel of a module; `block` may be left to the kernel's `.reqntid`.
    ///
    /// # Errors
    /// [`BareError::Kernel`] if the kernel, or its block, is not determined.
    pub fn of(
        module: Module,
        kernel: Option<&str>,
        grid: [u32; 3],
        block: Option<[u32; 3]>,
    ) -> Result<Self, BareError> {
        let kernel = pick(&module, kernel)?;
        let block = block.or_else(|| module.required_threads(&kernel));
        let block = block.ok_or_else(|| {
            let message = format!("`{kernel}` names no .reqntid: give the block's dimensions");
            BareError::Kernel(message)
        })?;
        Ok(Self {
            module,
            kernel,
            grid,
            block,
            cluster: [1, 1, 1],
            smem: 0,
            args: Vec::new(),
            arrays: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// The next argument.
    pub fn arg(&mut self, name: &str, value: Value) {
        self.args.push((name.into(), value));
    }

    /// An array that other arguments point to.
    pub fn array(&mut self, name: &str, value: Value) {
        self.arrays.push((name.into(), value));
    }

    /// What a `.const` or `.global` variable of the module holds, as by `cudaMemcpyToSymbol`: an array's
    /// contents, or a value as of an argument. The name may be demangled.
    pub fn variable(&mut self, name: &str, value: Value) {
        self.variables.push((name.into(), value));
    }

    /// The kernel's parameters.
    #[must_use]
    pub fn params(&self) -> Vec<KernelParam> {
        self.module.params(&self.kernel).unwrap_or_default()
    }

    /// Instructions of the module that are not supported: a kernel that reaches one stops.
    pub fn unsupported(&self) -> impl Iterator<Item = &crate::ptx::PtxError> {
        self.module.unsupported()
    }

    /// Fills memory, launches, and reads all arrays back.
    ///
    /// # Errors
    /// Arguments that do not fit, and what ends the kernel.
    pub fn run(&self, simulator: &Simulator) -> Result<BareRun, BareError> {
        let params = self.params();
        if self.args.len() != params.len() {
            let all: Vec<String> = params.iter().map(describe).collect();
            return Err(BareError::Kernel(format!(
                "`{}` takes {} arguments, got {}: {}",
                self.kernel,
                params.len(),
                self.args.len(),
                all.join(", ")
            )));
        }
        let mut device = Device::new();
        let mut memory = Memory::default();
        for (name, value) in self.arrays.iter().chain(&self.args) {
            memory.allocate(&mut device, name, value)?;
        }
        for (name, value) in &self.variables {
            memory.variable(&mut device, &self.module, name, value)?;
        }
        let mut args = Vec::new();
        for ((name, value), param) in self.args.iter().zip(&params) {
            let bytes = memory.argument(&mut device, name, value, param)?;
            args.push(Arg::Bytes(bytes));
        }
        let launch = Launch {
            kernel: self.kernel.clone(),
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            smem: self.smem,
            args,
        };
        let report = simulator.run(&mut device, &self.module, &launch)?;
        Ok(BareRun {
            report,
            arrays: memory.read_back(&device)?,
        })
    }
}

/// A parameter in words.
fn describe(param: &KernelParam) -> String {
    let size = if param.ty == "b8" {
        format!("[{}]", param.bytes)
    } else {
        String::new()
    };
    format!("{} .{}{size}", param.name, param.ty)
}

fn pick(module: &Module, kernel: Option<&str>) -> Result<String, BareError> {
    let all = module.kernels();
    let names = || {
        let short = all.iter().map(|k| crate::names::short(k));
        short.collect::<Vec<_>>().join(", ")
    };
    let fits = |k: &&&str| kernel.is_none_or(|want| **k == want || crate::names::short(k) == want);
    let mut found = all.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok((*one).to_string()),
        (None, _) if all.is_empty() => Err(BareError::Kernel("the module holds no kernel".into())),
        (None, _) => {
            let wanted = kernel.unwrap_or_default();
            Err(BareError::Kernel(format!(
                "no kernel `{wanted}`; there are: {}",
                names()
            )))
        }
        _ => Err(BareError::Kernel(format!(
            "several kernels fit; name one: {}",
            names()
        ))),
    }
}
