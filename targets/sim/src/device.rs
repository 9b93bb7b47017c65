//! The simulator's public face: modules, devices and launches.

use crate::decode::{Func, Preload, Program, Special, decode};
use crate::exec::global::{AtomicLocks, GlobalChecks, GlobalMemory};
use crate::exec::launch::{self, LaunchState, Options};
use crate::exec::shared::SharedLayout;
use crate::fault::Fault;
use crate::ptx::ast::Init;
use crate::report::{RunReport, SimError};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A parsed and decoded PTX module.
#[derive(Debug)]
pub struct Module {
    program: Program,
    /// Tells modules apart, so that a device knows whose variables it holds.
    id: u64,
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelParam {
    /// Name.
    pub name: String,
    /// Element type, such as `f32`; `b8` for structures.
    pub ty: String,
    /// Alignment in bytes.
    pub align: u64,
    /// Offset in the parameter block, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl Module {
    /// Names of the `.const` and `.global` variables.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let all = self.program.globals.iter();
        all.map(|variable| variable.name.as_str()).collect()
    }

    /// Parses and decodes PTX text. An instruction that is not supported is no error here: it ends the
    /// kernel that executes it, and [`Module::unsupported`] lists it.
    ///
    /// # Errors
    /// The first place that is no PTX, with its line.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        Ok(Self {
            program: decode(&crate::ptx::parse(text)?)?,
            id,
        })
    }

    /// Names of the kernels, in order.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        self.program
            .functions
            .iter()
            .filter(|f| f.entry)
            .map(|f| f.name.as_str())
            .collect()
    }

    /// Instructions that the simulator does not execute, in order of the text.
    pub fn unsupported(&self) -> impl Iterator<Item = &crate::ptx::PtxError> {
        self.program.unsupported.iter()
    }

    /// The parameters of a kernel.
    #[must_use]
    pub fn params(&self, kernel: &str) -> Option<Vec<KernelParam>> {
        let func = self
            .program
            .functions
            .get(*self.program.by_name.get(kernel)?)?;
        Some(
            func.params
                .iter()
                .map(|p| KernelParam {
                    name: p.name.clone(),
                    ty: p.ty.clone(),
                    align: p.align,
                    offset: p.offset,
                    bytes: p.bytes,
                })
                .collect(),
        )
    }

    /// `.reqntid` of a kernel, if it has one.
    #[must_use]
    pub fn required_threads(&self, kernel: &str) -> Option<[u32; 3]> {
        self.program
            .functions
            .get(*self.program.by_name.get(kernel)?)?
            .required_threads
    }
}

/// A kernel argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A device pointer.
    Ptr(u64),
    /// 32-bit integer.
    U32(u32),
    /// 64-bit integer.
    U64(u64),
    /// binary32.
    F32(f32),
    /// binary64.
    F64(f64),
    /// Bytes by value: structures and tensor maps.
    Bytes(Vec<u8>),
}

impl Arg {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ptr(v) | Self::U64(v) => v.to_le_bytes().to_vec(),
            Self::U32(v) => v.to_le_bytes().to_vec(),
            Self::F32(v) => v.to_le_bytes().to_vec(),
            Self::F64(v) => v.to_le_bytes().to_vec(),
            Self::Bytes(v) => v.clone(),
        }
    }
}

/// What to launch.
#[derive(Debug, Clone)]
pub struct Launch {
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
    /// Arguments, in order of the kernel's parameters.
    pub args: Vec<Arg>,
}

impl Launch {
    /// A launch of `grid` CTAs of `block` threads in one dimension, without clusters.
    #[must_use]
    pub fn new(kernel: &str, grid: u32, block: u32, args: Vec<Arg>) -> Self {
        Self {
            kernel: kernel.into(),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: [1, 1, 1],
            smem: 0,
            args,
        }
    }
}

/// A simulated GPU: global memory that outlives launches.
#[derive(Debug, Default)]
pub struct Device {
    memory: GlobalMemory,
    /// Addresses of module variables by module, so that they keep their values between launches.
    globals: BTreeMap<u64, Vec<u64>>,
}

/// Runs kernels on a device.
#[derive(Debug, Clone, Default)]
pub struct Simulator {
    /// How to run.
    pub options: Options,
}

impl Device {
    /// A device without allocations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates `bytes` bytes of unwritten global memory; the address is 4096-byte aligned and the
    /// allocation is surrounded by addresses that belong to nothing.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for more than a tebibyte.
    pub fn alloc(&mut self, name: &str, bytes: u64) -> Result<u64, Fault> {
        self.memory.alloc(bytes, name.to_string())
    }

    /// Frees an allocation; later accesses are reported as use after free.
    ///
    /// # Errors
    /// [`Fault::Invalid`] if `addr` is the base of no live allocation.
    pub fn free(&mut self, addr: u64) -> Result<(), Fault> {
        self.memory.free(addr)
    }

    /// Copies host bytes to the device.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] if the range leaves its allocation.
    pub fn copy_in(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let index = self.memory.find(addr, data.len() as u64)?;
        if let Some(a) = self.memory.get(index) {
            a.store(addr - a.base, data);
            a.mark_written(addr - a.base, data.len() as u64);
        }
        Ok(())
    }

    /// Copies device bytes to the host; bytes that nothing wrote are [`axe_package::POISON`].
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] if the range leaves its allocation.
    pub fn copy_out(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let index = self.memory.find(addr, out.len() as u64)?;
        if let Some(a) = self.memory.get(index) {
            a.load(addr - a.base, out);
        }
        Ok(())
    }

    /// For each element of `each` bytes in `[addr, addr + bytes)`, whether nothing wrote some byte of it.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] if the range leaves its allocation.
    pub fn unwritten(&self, addr: u64, bytes: u64, each: u64) -> Result<Vec<bool>, Fault> {
        let index = self.memory.find(addr, bytes)?;
        let Some(a) = self.memory.get(index) else {
            return Ok(Vec::new());
        };
        let starts = (0..bytes / each.max(1)).map(|i| addr - a.base + i * each);
        Ok(starts
            .map(|at| a.first_unwritten(at, each).is_some())
            .collect())
    }

    /// Copies device bytes to another place on the device; what nothing wrote stays unwritten there.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] if a range leaves its allocation.
    pub fn copy_within(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), Fault> {
        let n = bytes as u64;
        let (source, destination) = (self.memory.find(from, n)?, self.memory.find(to, n)?);
        let places = self.memory.get(source).zip(self.memory.get(destination));
        let Some((source, destination)) = places else {
            return Ok(());
        };
        let mut data = vec![0; bytes];
        source.load(from - source.base, &mut data);
        destination.store(to - destination.base, &data);
        if source.first_unwritten(from - source.base, n).is_none() {
            destination.mark_written(to - destination.base, n);
            return Ok(());
        }
        for at in 0..n {
            if source.first_unwritten(from - source.base + at, 1).is_none() {
                destination.mark_written(to - destination.base + at, 1);
            }
        }
        Ok(())
    }

    /// Address and size in bytes of a module's `.global` or `.const` variable, which keeps its value between
    /// launches; `None` if the module has none of this name.
    ///
    /// # Errors
    /// [`SimError::Launch`] if the module's variables do not fit into memory.
    pub fn variable(
        &mut self,
        module: &Module,
        name: &str,
    ) -> Result<Option<(u64, u64)>, SimError> {
        let addresses = self.load_globals(module)?;
        let all = module.program.globals.iter().zip(addresses);
        let mut found = all.filter(|(v, _)| v.name == name);
        Ok(found.next().map(|(v, at)| (at, v.bytes())))
    }

    /// Memory for cooperative groups' grid barrier: its size and a counter (`driver_abi.h` of the CUDA
    /// toolkit, `grid_workspace`), where a program reads its address; else 0.
    fn grid_workspace(&mut self, program: &Program) -> Result<u64, SimError> {
        let envreg = |p: &Preload| matches!(p, Preload::Special(Special::Envreg(_)));
        let mut preloads = program.functions.iter().flat_map(|f| &f.preload);
        if !preloads.any(|(_, p)| envreg(p)) {
            return Ok(0);
        }
        let fail = |fault: Fault| SimError::Launch(fault.to_string());
        let name = "workspace of the grid barrier";
        let at = self.memory.alloc(8, name.into()).map_err(fail)?;
        self.copy_in(at, &8u64.to_le_bytes()).map_err(fail)?;
        Ok(at)
    }

    fn load_globals(&mut self, module: &Module) -> Result<Vec<u64>, SimError> {
        let key = module.id;
        if let Some(known) = self.globals.get(&key) {
            return Ok(known.clone());
        }
        let fail = |fault: Fault| SimError::Launch(fault.to_string());
        let mut addresses = Vec::new();
        for v in &module.program.globals {
            addresses.push(
                self.memory
                    .alloc(v.bytes().max(1), v.name.clone())
                    .map_err(fail)?,
            );
        }
        for (v, &addr) in module.program.globals.iter().zip(&addresses) {
            // Variables without initialisers are zero (PTX ISA 5.4.4).
            let mut bytes = vec![0u8; v.bytes() as usize];
            let each = v.element as usize;
            for (i, init) in v.init.iter().enumerate() {
                let value = initial(init, &module.program, &addresses);
                for (j, byte) in value.to_le_bytes().iter().enumerate().take(each) {
                    if let Some(to) = bytes.get_mut(i * each + j) {
                        *to = *byte;
                    }
                }
            }
            if !bytes.is_empty() {
                self.copy_in(addr, &bytes).map_err(fail)?;
            }
        }
        self.globals.insert(key, addresses.clone());
        Ok(addresses)
    }
}

fn initial(init: &Init, program: &Program, addresses: &[u64]) -> u64 {
    match init {
        Init::Bits(bits) => *bits,
        Init::Address {
            name, offset, mask, ..
        } => {
            let at = program
                .globals
                .iter()
                .position(|v| v.name == *name)
                .and_then(|i| addresses.get(i))
                .copied();
            let function = program.by_name.get(name).map(|&i| i as u64 + 1);
            let value = at.or(function).unwrap_or(0).wrapping_add_signed(*offset);
            match mask {
                Some(mask) => (value & mask) >> mask.trailing_zeros().min(63),
                None => value,
            }
        }
    }
}

/// The kernel of this name, and its index among the functions.
fn entry<'a>(module: &'a Module, name: &str) -> Result<(usize, &'a Func), SimError> {
    let program = &module.program;
    program
        .by_name
        .get(name)
        .and_then(|&index| Some((index, program.functions.get(index)?)))
        .filter(|(_, func)| func.entry)
        .ok_or_else(|| {
            let kernels = module.kernels();
            SimError::Launch(format!("no kernel `{name}`; there are {kernels:?}"))
        })
}

/// The bytes of a launch's arguments, as the kernel's parameters lie.
fn parameter_block(func: &Func, launch: &Launch) -> Result<Vec<u8>, SimError> {
    let (got, want) = (launch.args.len(), func.params.len());
    if got != want {
        let kernel = &launch.kernel;
        let message = format!("`{kernel}` takes {want} arguments, got {got}");
        return Err(SimError::Launch(message));
    }
    let mut block = vec![0; func.param_bytes as usize];
    for (i, (arg, param)) in launch.args.iter().zip(&func.params).enumerate() {
        let bytes = arg.bytes();
        if bytes.len() as u64 != param.bytes {
            let (got, want) = (bytes.len(), param.bytes);
            let message = format!("argument {i} has {got} bytes, the parameter {want}");
            return Err(SimError::Launch(message));
        }
        let at = param.offset as usize;
        block[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}

impl Simulator {
    /// A simulator with these options.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options }
    }

    /// Runs one launch to its end.
    ///
    /// # Errors
    /// [`SimError::Launch`] if the launch does not fit the kernel, [`SimError::Fault`] for what ends a
    /// kernel: an access out of bounds or misaligned, a deadlock, a trap, misuse of a barrier.
    pub fn run(
        &self,
        device: &mut Device,
        module: &Module,
        launch: &Launch,
    ) -> Result<RunReport, SimError> {
        let program = &module.program;
        let globals = device.load_globals(module)?;
        let (kernel, func) = entry(module, &launch.kernel)?;
        launch::check_dims(func, launch.grid, launch.block, launch.cluster)?;
        let params = parameter_block(func, launch)?;
        let shared = SharedLayout::new(program, kernel, launch.smem);
        launch::check_shared(shared.used)?;
        let workspace = device.grid_workspace(program)?;
        if program.by_name.contains_key("malloc") {
            let made = device.memory.make_heap();
            made.map_err(|f| SimError::Launch(f.to_string()))?;
        }
        let state = LaunchState {
            program,
            kernel,
            memory: &device.memory,
            globals: &globals,
            params,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared: launch.smem,
            shared,
            workspace,
            output: Mutex::default(),
            changes: AtomicU64::new(0),
            checks: self.options.checks.then(GlobalChecks::new),
            options: self.options.clone(),
            locks: AtomicLocks::new(),
            findings: Mutex::default(),
        };
        let result = launch::run(&state);
        if workspace != 0 {
            (device.memory.free(workspace)).map_err(|f| SimError::Launch(f.to_string()))?;
        }
        result
    }
}
