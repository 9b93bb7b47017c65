//! Runs a kernel package in the simulator: memory, constants, launches in order, outputs.

use crate::device::{Arg, Device, Launch, Module, Simulator};
use crate::fault::Fault;
use crate::partial::Partial;
use crate::report::{Finding, FindingKind, RunReport, SimError};
use crate::units::swizzle::Swizzle;
use crate::units::tensor_map::{DataType, TensorMap};
use axe_package::{
    BindError, BufferInit, ConcreteArg, ConcreteStep, Instance, InstanceError, Kernel, Memory,
    OobFill, Package, Param, ParamKind, Place, Role, Tensor, TensorError, TensorMapDType,
    TensorMapType, TensorType, Unwritten,
};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use thiserror::Error;

/// Why a package does not run.
#[derive(Debug, Error)]
pub enum PackageRunError {
    /// The inputs do not fit the package.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The package has no concrete form for these sizes.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// A tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An input that nobody gave.
    #[error("input `{0}` is missing")]
    MissingInput(String),
    /// The package lacks something that the simulator needs.
    #[error("kernel `{kernel}`: {problem}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// Memory of the package.
    #[error("`{name}`: {fault}")]
    Memory {
        /// The piece of memory.
        name: String,
        /// What is wrong.
        fault: Fault,
    },
    /// A kernel failed.
    #[error("kernel `{kernel}`: {error}")]
    Sim {
        /// The kernel.
        kernel: String,
        /// What happened.
        error: SimError,
    },
}

/// The result of one run.
#[derive(Debug)]
pub struct PackageRun {
    /// Outputs by name.
    pub outputs: BTreeMap<String, Output>,
    /// Kernel and report of each launch, in order.
    pub launches: Vec<(String, RunReport)>,
}

/// What a run left in the memory of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The elements; those that nothing wrote are poison.
    pub tensor: Tensor,
    /// What nothing wrote.
    pub unwritten: Unwritten,
    /// Whether some of it was computed from memory that CTAs write which were not run
    /// ([`crate::Options::max_ctas`]): its values then mean nothing.
    pub lacks_input: bool,
}

struct Runner<'a> {
    package: &'a Package,
    simulator: &'a Simulator,
    instance: Instance,
    device: Device,
    addresses: Vec<u64>,
    modules: HashMap<String, Module>,
    partial: Partial,
}

/// Runs a package on `inputs` (all of them, by name); `dims` gives symbols that no input defines.
///
/// # Errors
/// Inputs that do not fit, a kernel without PTX, and what a kernel does wrong.
pub fn run_package(
    package: &Package,
    inputs: &BTreeMap<String, Tensor>,
    dims: &BTreeMap<String, i64>,
    simulator: &Simulator,
) -> Result<PackageRun, PackageRunError> {
    let manifest = package.manifest();
    let types = inputs
        .iter()
        .map(|(name, t)| {
            (
                name.clone(),
                TensorType {
                    dtype: t.dtype(),
                    shape: t.shape().to_vec(),
                },
            )
        })
        .collect();
    let env = manifest.bind(&types, dims, simulator.options.sms)?;
    let instance = manifest.instantiate(&env)?;
    let mut runner = Runner {
        package,
        simulator,
        instance,
        device: Device::new(),
        addresses: Vec::new(),
        modules: HashMap::new(),
        partial: Partial::default(),
    };
    runner.fill_memory(inputs)?;
    let mut launches = Vec::new();
    for step in runner.instance.steps.clone() {
        launches.extend(runner.step(&step)?);
    }
    let outputs = runner.outputs()?;
    Ok(PackageRun { outputs, launches })
}

fn at_memory(memory: &Memory) -> impl Fn(Fault) -> PackageRunError {
    let name = memory.name.clone();
    move |fault| PackageRunError::Memory {
        name: name.clone(),
        fault,
    }
}

fn problem(kernel: &Kernel, problem: String) -> PackageRunError {
    PackageRunError::Kernel {
        kernel: kernel.name.clone(),
        problem,
    }
}

fn sim_error(kernel: &Kernel) -> impl Fn(SimError) -> PackageRunError {
    let kernel = kernel.name.clone();
    move |error| PackageRunError::Sim {
        kernel: kernel.clone(),
        error,
    }
}

impl Runner<'_> {
    fn fill_memory(&mut self, inputs: &BTreeMap<String, Tensor>) -> Result<(), PackageRunError> {
        for memory in &self.instance.memory {
            let fail = at_memory(memory);
            // Allocations are aligned to 4096 bytes, more than a manifest may ask for in practice.
            let at = self
                .device
                .alloc(&memory.name, memory.bytes.max(1))
                .map_err(&fail)?;
            if at % memory.align.max(1) != 0 {
                return Err(fail(Fault::Misaligned {
                    addr: at,
                    align: memory.align,
                }));
            }
            self.addresses.push(at);
            let bytes = match &memory.role {
                Role::Buffer(BufferInit::Zero | BufferInit::ZeroOnLoad) => {
                    set(&mut self.device, at, memory.bytes, 0).map_err(&fail)?;
                    continue;
                }
                Role::Input => {
                    let tensor = inputs
                        .get(&memory.name)
                        .ok_or_else(|| PackageRunError::MissingInput(memory.name.clone()))?;
                    tensor.bytes().to_vec()
                }
                Role::Buffer(BufferInit::Data { file }) => {
                    self.package.file(file).unwrap_or_default().to_vec()
                }
                Role::Output | Role::Buffer(BufferInit::Undefined) => continue,
            };
            if bytes.len() as u64 != memory.bytes {
                let message = format!("{} bytes given, {} needed", bytes.len(), memory.bytes);
                return Err(fail(Fault::Invalid(message)));
            }
            if !bytes.is_empty() {
                self.device.copy_in(at, &bytes).map_err(&fail)?;
            }
        }
        Ok(())
    }

    fn fault(&self, place: Place) -> impl Fn(Fault) -> PackageRunError {
        let name = self
            .instance
            .memory
            .get(place.memory)
            .map_or(String::new(), |m| m.name.clone());
        move |fault| PackageRunError::Memory {
            name: name.clone(),
            fault,
        }
    }

    fn step(
        &mut self,
        step: &ConcreteStep,
    ) -> Result<Option<(String, RunReport)>, PackageRunError> {
        match step {
            ConcreteStep::Fill { to, bytes, value } => {
                let at = address(&self.addresses, *to);
                let done = set(&mut self.device, at, *bytes, *value);
                done.map_err(self.fault(*to))?;
            }
            ConcreteStep::Copy { from, to, bytes } => {
                let [source, destination] =
                    [from, to].map(|place| address(&self.addresses, *place));
                for (offset, length) in pieces(*bytes) {
                    let (from_at, to_at) = (source + offset, destination + offset);
                    let done = self.device.copy_within(from_at, to_at, length);
                    done.map_err(self.fault(*from))?;
                }
                self.partial.copied(from.memory, to.memory);
            }
            ConcreteStep::Launch {
                kernel, grid, args, ..
            } => {
                let Some(kernel) = self.package.manifest().kernels.get(*kernel) else {
                    return Ok(None);
                };
                let mut report = self.launch(kernel, *grid, args)?;
                let ctas = grid.iter().map(|extent| u64::from(*extent)).product();
                let stopped = self
                    .simulator
                    .options
                    .max_ctas
                    .is_some_and(|most| most < ctas);
                if self.partial.launched(kernel, args, stopped) {
                    // Other CTAs would have written it.
                    let real = |finding: &Finding| finding.kind != FindingKind::Unwritten;
                    report.findings.retain(real);
                }
                return Ok(Some((kernel.name.clone(), report)));
            }
        }
        Ok(None)
    }

    fn launch(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        args: &[ConcreteArg],
    ) -> Result<RunReport, PackageRunError> {
        let file = kernel
            .ptx
            .as_ref()
            .ok_or_else(|| problem(kernel, "the package has no PTX of it".into()))?;
        let module = match self.modules.entry(file.clone()) {
            Entry::Occupied(decoded) => decoded.into_mut(),
            Entry::Vacant(place) => place.insert(decode(self.package, kernel, file)?),
        };
        let args = args
            .iter()
            .zip(&kernel.params)
            .map(|(arg, param)| argument(arg, param, &self.addresses))
            .collect::<Result<_, _>>()
            .map_err(|e| problem(kernel, e))?;
        let launch = Launch {
            kernel: kernel.symbol.clone(),
            grid,
            block: kernel.block,
            cluster: kernel.cluster.unwrap_or([1; 3]),
            smem: u64::from(kernel.dynamic_shared_bytes),
            args,
        };
        self.simulator
            .run(&mut self.device, module, &launch)
            .map_err(sim_error(kernel))
    }

    fn outputs(&self) -> Result<BTreeMap<String, Output>, PackageRunError> {
        let mut all = BTreeMap::new();
        let memory = self.instance.memory.iter().zip(&self.addresses);
        for (index, (memory, &at)) in memory.enumerate() {
            if memory.role == Role::Output {
                let mut tensor = Tensor::filled(memory.dtype, memory.shape.clone(), 0)?;
                let mut unwritten = Vec::new();
                if !tensor.is_empty() {
                    let fail = at_memory(memory);
                    let copied = self.device.copy_out(at, tensor.bytes_mut());
                    copied.map_err(&fail)?;
                    let (bytes, each) = (tensor.bytes().len(), memory.dtype.bytes());
                    let found = self.device.unwritten(at, bytes as u64, each as u64);
                    unwritten = found.map_err(&fail)?;
                }
                let output = Output {
                    tensor,
                    unwritten: Unwritten::new(unwritten),
                    lacks_input: self.partial.lacks_input(index),
                };
                all.insert(memory.name.clone(), output);
            }
        }
        Ok(all)
    }
}

/// Where a place of the package's memory lies on the device.
fn address(addresses: &[u64], place: Place) -> u64 {
    addresses.get(place.memory).map_or(0, |a| a + place.offset)
}

/// The module of a kernel's PTX.
fn decode(package: &Package, kernel: &Kernel, file: &str) -> Result<Module, PackageRunError> {
    let bytes = package
        .file(file)
        .ok_or_else(|| problem(kernel, format!("no file `{file}`")))?;
    let text = std::str::from_utf8(bytes).map_err(|e| problem(kernel, format!("`{file}`: {e}")))?;
    Module::parse(text.trim_end_matches('\0')).map_err(sim_error(kernel))
}

/// What a launch passes for a parameter.
fn argument(arg: &ConcreteArg, param: &Param, addresses: &[u64]) -> Result<Arg, String> {
    match (arg, &param.kind) {
        (ConcreteArg::Address(place), _) => Ok(Arg::Ptr(address(addresses, *place))),
        (ConcreteArg::Scalar(bytes), _) => Ok(Arg::Bytes(bytes.clone())),
        (
            ConcreteArg::Tensor {
                at,
                dims,
                strides_bytes,
            },
            ParamKind::TensorMap { map, .. },
        ) => tensor_map(map, address(addresses, *at), dims, strides_bytes)
            .map(Arg::Bytes)
            .map_err(|e| format!("parameter `{}`: {e}", param.name)),
        (ConcreteArg::Tensor { .. }, _) => {
            Err(format!("parameter `{}` is no tensor map", param.name))
        }
    }
}

/// Bytes that are moved at a time: as many as memory has are too many to hold twice.
const PIECE: u64 = 1 << 20;

/// The offset and length of each piece of so many bytes.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let count = bytes.div_ceil(PIECE);
    (0..count).map(move |at| {
        let length = PIECE.min(bytes - at * PIECE);
        (at * PIECE, length as usize)
    })
}

/// Sets every byte of a piece of the device's memory.
fn set(device: &mut Device, at: u64, bytes: u64, value: u8) -> Result<(), Fault> {
    for (offset, length) in pieces(bytes) {
        device.copy_in(at + offset, &vec![value; length])?;
    }
    Ok(())
}

/// The 128 bytes that a kernel gets for a tensor.
fn tensor_map(
    ty: &TensorMapType,
    address: u64,
    dims: &[u64],
    strides: &[u64],
) -> Result<Vec<u8>, String> {
    if ty.interleave != axe_package::Interleave::None {
        return Err("interleaved tensor maps are not supported".into());
    }
    let mut map = TensorMap {
        data_type: data_type(ty.dtype),
        rank: ty.rank(),
        address,
        dims: [1; 5],
        strides: [0; 4],
        box_dims: [1; 5],
        element_strides: [1; 5],
        swizzle: match ty.swizzle {
            axe_package::Swizzle::None => Swizzle::None,
            axe_package::Swizzle::B32 => Swizzle::B32,
            axe_package::Swizzle::B64 => Swizzle::B64,
            axe_package::Swizzle::B128 => Swizzle::B128,
        },
        nan_fill: ty.oob_fill == OobFill::Nan,
        im2col: None,
    };
    fill(&mut map.dims, dims)?;
    fill(&mut map.strides, strides)?;
    fill(&mut map.box_dims, &ty.box_dims)?;
    fill(&mut map.element_strides, &ty.element_strides)?;
    map.encode()
        .map(|bytes| bytes.to_vec())
        .map_err(|e| e.to_string())
}

fn fill<T: Copy>(to: &mut [T], from: &[T]) -> Result<(), String> {
    let len = from.len();
    let part = to
        .get_mut(..len)
        .ok_or_else(|| format!("{len} dimensions; at most 5 are valid"))?;
    part.copy_from_slice(from);
    Ok(())
}

fn data_type(ty: TensorMapDType) -> DataType {
    match ty {
        TensorMapDType::U8 => DataType::U8,
        TensorMapDType::U16 => DataType::U16,
        TensorMapDType::U32 => DataType::U32,
        TensorMapDType::I32 => DataType::S32,
        TensorMapDType::U64 => DataType::U64,
        TensorMapDType::I64 => DataType::S64,
        TensorMapDType::F16 => DataType::F16,
        TensorMapDType::F32 => DataType::F32,
        TensorMapDType::F64 => DataType::F64,
        TensorMapDType::BF16 => DataType::Bf16,
        TensorMapDType::Tf32 => DataType::Tf32,
    }
}
