//! One step of a package with its arguments encoded: a launch, a fill or a copy.

use std::ffi::c_void;

use axe_package::{ConcreteArg, ConcreteStep, ParamKind, Place};
use cudarc::driver::{result, sys};

use crate::encode::encode;
use crate::error::{Doing, RuntimeError};
use crate::loaded::Loaded;

/// The bytes of one argument, aligned for the largest, a tensor map.
#[repr(C, align(128))]
pub(crate) struct ArgBytes([u8; 128]);

/// A step with its arguments encoded.
pub(crate) enum Step {
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

// SAFETY: the handles and addresses may be used from any thread with the context current (CUDA driver API, "Stream
// synchronization behavior": contexts are thread-safe); attributes hold numbers, no pointers.
unsafe impl Send for Step {}

impl Step {
    /// The step with the memory of the instance at `addresses`.
    ///
    /// # Errors
    /// An address that a parameter does not take, a tensor map that the driver refuses.
    pub(crate) fn new(
        loaded: &Loaded,
        addresses: &[u64],
        step: &ConcreteStep,
    ) -> Result<Self, RuntimeError> {
        Ok(match step {
            ConcreteStep::Fill { to, bytes, value } => Step::Fill {
                address: address(addresses, *to)?,
                bytes: *bytes as usize,
                value: *value,
            },
            ConcreteStep::Copy { from, to, bytes } => Step::Copy {
                from: address(addresses, *from)?,
                to: address(addresses, *to)?,
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
                    bytes.push(arg_bytes(addresses, &param.kind, arg, &doing)?);
                }
                Step::Launch {
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

    /// Puts the memory of the instance at other addresses; `step` is what this one was made of.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub(crate) fn rebind(
        &mut self,
        loaded: &Loaded,
        addresses: &[u64],
        step: &ConcreteStep,
    ) -> Result<(), RuntimeError> {
        let (
            Step::Launch { args, .. },
            ConcreteStep::Launch {
                kernel,
                args: given,
                ..
            },
        ) = (&mut *self, step)
        else {
            *self = Step::new(loaded, addresses, step)?;
            return Ok(());
        };
        let Some(kernel) = loaded.package().manifest().kernels.get(*kernel) else {
            return Err(RuntimeError::Usage(format!("there is no kernel {kernel}")));
        };
        for ((slot, param), arg) in args.iter_mut().zip(&kernel.params).zip(given) {
            if !matches!(arg, ConcreteArg::Scalar(_)) {
                let doing = || format!("kernel `{}`, parameter `{}`", kernel.name, param.name);
                *slot = arg_bytes(addresses, &param.kind, arg, &doing)?;
            }
        }
        Ok(())
    }

    /// What is being done when step number `number` runs.
    pub(crate) fn describe(&self, number: usize) -> String {
        match self {
            Step::Launch {
                name, grid, block, ..
            } => {
                format!("running kernel `{name}` (step {number}, grid {grid:?}, block {block:?})")
            }
            Step::Fill { .. } => format!("filling memory (step {number})"),
            Step::Copy { .. } => format!("copying memory (step {number})"),
        }
    }

    /// Puts the step on a stream, without waiting.
    ///
    /// # Errors
    /// What the driver refuses.
    ///
    /// # Safety
    /// The addresses that the step was made with are of device memory as large as the instance says, which lives until
    /// the step has run; the stream is of the context that the code is loaded in, which is current.
    pub(crate) unsafe fn enqueue(&self, stream: sys::CUstream) -> Result<(), RuntimeError> {
        match self {
            Step::Launch { .. } => launch_kernel(self, stream),
            // SAFETY: instantiation checked that it lies inside its memory.
            Step::Fill {
                address,
                bytes,
                value,
            } => unsafe { result::memset_d8_async(*address, *value, *bytes, stream) }
                .doing(|| "filling memory".into()),
            // SAFETY: as above for both, and that they do not overlap.
            Step::Copy { from, to, bytes } => {
                unsafe { result::memcpy_dtod_async(*to, *from, *bytes, stream) }
                    .doing(|| "copying memory".into())
            }
        }
    }
}

fn address(addresses: &[u64], place: Place) -> Result<u64, RuntimeError> {
    let base = addresses.get(place.memory);
    base.and_then(|base| base.checked_add(place.offset))
        .ok_or_else(|| RuntimeError::Usage("memory that does not exist".into()))
}

fn arg_bytes(
    addresses: &[u64],
    kind: &ParamKind,
    arg: &ConcreteArg,
    doing: &dyn Fn() -> String,
) -> Result<ArgBytes, RuntimeError> {
    let mut out = ArgBytes([0; 128]);
    let mut put = |bytes: &[u8]| out.0.iter_mut().zip(bytes).for_each(|(o, b)| *o = *b);
    match (kind, arg) {
        (ParamKind::Pointer { align, .. }, ConcreteArg::Address(place)) => {
            let address = address(addresses, *place)?;
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
            let encoded = encode(map, address(addresses, *at)?, dims, strides_bytes, doing)?;
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

fn launch_kernel(step: &Step, stream: sys::CUstream) -> Result<(), RuntimeError> {
    let Step::Launch {
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
