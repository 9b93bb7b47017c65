//! A loaded package with memory and arguments, ready to launch again and again.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use axe_package::{
    BufferInit, ConcreteArg, ConcreteStep, Env, Instance, POISON, ParamKind, Place, Role,
};
use cudarc::driver::{result, sys};

use crate::device::DeviceMemory;
use crate::encode::encode;
use crate::error::{Doing, RuntimeError};
use crate::loaded::Loaded;

/// The bytes of one argument, aligned for the largest, a tensor map.
#[repr(C, align(128))]
struct ArgBytes([u8; 128]);

enum Ready {
    Launch {
        name: String,
        function: sys::CUfunction,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        attributes: Vec<sys::CUlaunchAttribute>,
        args: Vec<ArgBytes>,
    },
    Fill {
        address: u64,
        bytes: usize,
        value: u8,
    },
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
}

/// One set of memory for a package and the steps that use it.
pub struct Prepared<'a> {
    loaded: &'a Loaded,
    instance: Instance,
    memory: Vec<Arc<DeviceMemory>>,
    steps: Vec<Ready>,
}

impl<'a> Prepared<'a> {
    /// Allocates memory for the values of `env`, loads constants and encodes arguments. Inputs
    /// and outputs are poisoned.
    ///
    /// # Errors
    /// Numbers that do not fit, out of memory, tensor maps that the driver refuses.
    pub fn new(loaded: &'a Loaded, env: &Env) -> Result<Self, RuntimeError> {
        Self::sharing(loaded, env, &BTreeMap::new())
    }

    /// As [`Prepared::new`], with inputs and outputs in memory of the caller, by name. Shared memory
    /// is left as it is.
    ///
    /// # Errors
    /// As [`Prepared::new`]; shared memory that is too small or not aligned enough.
    pub fn sharing(
        loaded: &'a Loaded,
        env: &Env,
        shared: &BTreeMap<String, Arc<DeviceMemory>>,
    ) -> Result<Self, RuntimeError> {
        let instance = loaded.package().manifest().instantiate(env)?;
        let mut memory = Vec::new();
        for m in &instance.memory {
            if let Some(given) = shared.get(&m.name) {
                if given.bytes() < m.bytes || !given.address().is_multiple_of(m.align) {
                    let (have, want) = (given.bytes(), m.bytes);
                    return Err(RuntimeError::Usage(format!(
                        "`{}` needs {want} bytes aligned to {}, it is given {have}",
                        m.name, m.align
                    )));
                }
                memory.push(given.clone());
                continue;
            }
            let device_memory = DeviceMemory::new(loaded.device(), &m.name, m.bytes, m.align)?;
            match &m.role {
                Role::Buffer(BufferInit::Data { file }) => {
                    device_memory.upload(loaded.package().file(file).unwrap_or_default())?;
                }
                Role::Buffer(BufferInit::ZeroOnLoad) => device_memory.fill(0)?,
                _ => device_memory.fill(POISON)?,
            }
            memory.push(Arc::new(device_memory));
        }
        let mut steps = Vec::new();
        for step in &instance.steps {
            steps.push(ready(loaded, &memory, step)?);
        }
        Ok(Prepared {
            loaded,
            instance,
            memory,
            steps,
        })
    }

    /// The concrete sizes.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The memory of that name.
    #[must_use]
    pub fn memory(&self, name: &str) -> Option<&DeviceMemory> {
        self.memory.get(self.instance.find(name)?).map(Arc::as_ref)
    }

    /// Poisons outputs and undefined buffers, so that what a run leaves unwritten shows.
    ///
    /// # Errors
    /// The driver's.
    pub fn poison(&self) -> Result<(), RuntimeError> {
        self.poison_with(POISON)
    }

    /// [`Self::poison`] with another byte.
    ///
    /// # Errors
    /// The driver's.
    pub fn poison_with(&self, byte: u8) -> Result<(), RuntimeError> {
        for (m, device) in self.instance.memory.iter().zip(&self.memory) {
            if matches!(m.role, Role::Output | Role::Buffer(BufferInit::Undefined)) {
                device.fill(byte)?;
            }
        }
        Ok(())
    }

    /// Puts all steps on the stream, without waiting.
    ///
    /// # Errors
    /// A launch that the driver refuses.
    pub fn launch(&self) -> Result<(), RuntimeError> {
        self.zero()?;
        self.steps.iter().try_for_each(|step| self.enqueue(step))
    }

    /// Runs all steps and waits after each, so that an error names the kernel it came from.
    ///
    /// # Errors
    /// A launch that the driver refuses, or a kernel that faults.
    pub fn run_step_by_step(&self) -> Result<(), RuntimeError> {
        self.zero()?;
        for (i, step) in self.steps.iter().enumerate() {
            self.enqueue(step)?;
            self.loaded.device().synchronize(|| match step {
                Ready::Launch {
                    name, grid, block, ..
                } => {
                    format!("running kernel `{name}` (step {i}, grid {grid:?}, block {block:?})")
                }
                Ready::Fill { .. } => format!("filling memory (step {i})"),
                Ready::Copy { .. } => format!("copying memory (step {i})"),
            })?;
        }
        Ok(())
    }

    /// Zeroes the buffers that start every run as zeros.
    fn zero(&self) -> Result<(), RuntimeError> {
        let pairs = self.instance.memory.iter().zip(&self.memory);
        let zeros = pairs.filter(|(m, _)| m.role == Role::Buffer(BufferInit::Zero));
        zeros.into_iter().try_for_each(|(_, device)| device.fill(0))
    }

    fn enqueue(&self, step: &Ready) -> Result<(), RuntimeError> {
        let stream = self.loaded.device().stream().cu_stream();
        match step {
            Ready::Launch { .. } => launch_kernel(step, stream),
            // SAFETY: instantiation checked that it lies inside its memory.
            Ready::Fill {
                address,
                bytes,
                value,
            } => unsafe { result::memset_d8_async(*address, *value, *bytes, stream) }
                .doing(|| "filling memory".into()),
            // SAFETY: as above for both, and that they do not overlap.
            Ready::Copy { from, to, bytes } => {
                unsafe { result::memcpy_dtod_async(*to, *from, *bytes, stream) }
                    .doing(|| "copying memory".into())
            }
        }
    }

    /// Checks that nothing was written outside any memory.
    ///
    /// # Errors
    /// The memory whose neighbourhood changed.
    pub fn check_guards(&self) -> Result<(), RuntimeError> {
        let pairs = self.instance.memory.iter().zip(&self.memory);
        pairs
            .into_iter()
            .try_for_each(|(m, device)| device.check_guards(&m.name))
    }
}

fn address(memory: &[Arc<DeviceMemory>], place: Place) -> Result<u64, RuntimeError> {
    let base = memory.get(place.memory).map(|m| m.address());
    base.map(|a| a + place.offset)
        .ok_or_else(|| RuntimeError::Usage("memory that does not exist".into()))
}

fn ready(
    loaded: &Loaded,
    memory: &[Arc<DeviceMemory>],
    step: &ConcreteStep,
) -> Result<Ready, RuntimeError> {
    Ok(match step {
        ConcreteStep::Fill { to, bytes, value } => Ready::Fill {
            address: address(memory, *to)?,
            bytes: *bytes as usize,
            value: *value,
        },
        ConcreteStep::Copy { from, to, bytes } => Ready::Copy {
            from: address(memory, *from)?,
            to: address(memory, *to)?,
            bytes: *bytes as usize,
        },
        ConcreteStep::Launch {
            kernel,
            grid,
            args,
            overlaps_previous,
        } => {
            let missing = || RuntimeError::Usage(format!("there is no kernel {kernel}"));
            let function = loaded.function(*kernel).ok_or_else(missing)?;
            let kernel = loaded
                .package()
                .manifest()
                .kernels
                .get(*kernel)
                .ok_or_else(missing)?;
            let mut bytes = Vec::new();
            for (param, arg) in kernel.params.iter().zip(args) {
                let doing = || format!("kernel `{}`, parameter `{}`", kernel.name, param.name);
                bytes.push(arg_bytes(memory, &param.kind, arg, &doing)?);
            }
            Ready::Launch {
                name: kernel.name.clone(),
                function,
                grid: *grid,
                block: kernel.block,
                shared_bytes: kernel.dynamic_shared_bytes,
                attributes: attributes(kernel.cluster, *overlaps_previous),
                args: bytes,
            }
        }
    })
}

fn arg_bytes(
    memory: &[Arc<DeviceMemory>],
    kind: &ParamKind,
    arg: &ConcreteArg,
    doing: &dyn Fn() -> String,
) -> Result<ArgBytes, RuntimeError> {
    let mut out = ArgBytes([0; 128]);
    let mut put = |bytes: &[u8]| out.0.iter_mut().zip(bytes).for_each(|(o, b)| *o = *b);
    match (kind, arg) {
        (ParamKind::Pointer { align, .. }, ConcreteArg::Address(place)) => {
            let address = address(memory, *place)?;
            if !address.is_multiple_of(*align) {
                let problem = format!("the address {address:#x} is no multiple of {align}");
                return Err(RuntimeError::Kernel {
                    kernel: doing(),
                    problem,
                });
            }
            put(&address.to_le_bytes());
        }
        (
            ParamKind::TensorMap { map, .. },
            ConcreteArg::Tensor {
                at,
                dims,
                strides_bytes,
            },
        ) => {
            let encoded = encode(map, address(memory, *at)?, dims, strides_bytes, doing)?;
            let words: Vec<u8> = encoded
                .opaque
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect();
            put(&words);
        }
        (_, ConcreteArg::Scalar(bytes)) => put(bytes),
        _ => {
            let problem = "the argument does not fit the parameter".into();
            return Err(RuntimeError::Kernel {
                kernel: doing(),
                problem,
            });
        }
    }
    Ok(out)
}

fn attributes(cluster: Option<[u32; 3]>, overlaps_previous: bool) -> Vec<sys::CUlaunchAttribute> {
    use sys::CUlaunchAttributeID_enum as Id;
    let mut attributes = Vec::new();
    let mut push = |id, value| {
        attributes.push(sys::CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        })
    };
    if let Some([x, y, z]) = cluster {
        let dims = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        value.clusterDim = dims;
        push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value);
    }
    if overlaps_previous {
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        value.programmaticStreamSerializationAllowed = 1;
        push(
            Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            value,
        );
    }
    attributes
}

fn launch_kernel(step: &Ready, stream: sys::CUstream) -> Result<(), RuntimeError> {
    let Ready::Launch {
        name,
        function,
        grid,
        block,
        shared_bytes,
        attributes,
        args,
    } = step
    else {
        return Ok(());
    };
    let mut pointers: Vec<*mut c_void> = args
        .iter()
        .map(|a| std::ptr::from_ref(a).cast_mut().cast::<c_void>())
        .collect();
    let config = sys::CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: *shared_bytes,
        hStream: stream,
        attrs: attributes.as_ptr().cast_mut(),
        numAttrs: attributes.len() as u32,
    };
    // SAFETY: the number and sizes of parameters were compared with the code when it was loaded;
    // the driver copies arguments and attributes before it returns.
    unsafe { sys::cuLaunchKernelEx(&raw const config, *function, pointers.as_mut_ptr(), std::ptr::null_mut()) }
        .result()
        .doing(|| {
            format!("launching kernel `{name}` (grid {grid:?}, block {block:?}, {shared_bytes} bytes shared)")
        })
}
