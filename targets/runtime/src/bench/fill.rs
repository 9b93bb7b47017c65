//! Random data made on the device: large operands would take longer to copy than to measure.

use std::ffi::c_void;

use axe_package::DType;
use cudarc::driver::sys;

use crate::device::Device;
use crate::error::{Doing, RuntimeError};
use crate::loaded::Module;

const PTX: &str = include_str!("fill.ptx");
const PTX_F8: &str = include_str!("fill_f8.ptx");

/// What the elements are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Operands, standard normal, rounded to the type.
    Operand(DType),
    /// f32 scales, uniform in [0.5, 1.5).
    Scale,
}

/// The kernels that fill memory.
#[derive(Debug)]
pub struct Filler {
    device: Device,
    module: Module,
}

impl Filler {
    /// Compiles them for a device.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(device: &Device) -> Result<Self, RuntimeError> {
        // 8-bit floats are made by hardware from 8.9 on (PTX ISA, "cvt", PTX 8.1).
        let header = |v, t| format!(".version {v}\n.target {t}\n.address_size 64\n");
        let text = if device.properties().compute_capability >= (8, 9) {
            format!("{}{PTX}{PTX_F8}", header("8.1", "sm_89"))
        } else {
            format!("{}{PTX}", header("7.0", "sm_80"))
        };
        let module = Module::load(device, "the random fill kernels", text.as_bytes())?;
        Ok(Filler {
            device: device.clone(),
            module,
        })
    }

    /// Fills the `bytes` bytes from `address`, both multiples of 4, in stream order.
    ///
    /// # Errors
    /// A type that is not made here, or the driver's.
    ///
    /// # Safety
    /// `address` must point to at least `bytes` bytes of the device's memory.
    pub unsafe fn fill(
        &self,
        numbers: Numbers,
        address: u64,
        bytes: u64,
        seed: u32,
    ) -> Result<(), RuntimeError> {
        let entry = match numbers {
            Numbers::Operand(DType::F16) => "fill_f16",
            Numbers::Operand(DType::BF16) => "fill_bf16",
            Numbers::Operand(DType::F8E4M3) => "fill_f8e4m3",
            Numbers::Operand(DType::F8E5M2) => "fill_f8e5m2",
            Numbers::Scale => "fill_scale",
            Numbers::Operand(other) => {
                return Err(RuntimeError::Usage(format!(
                    "there is no random fill for {other}"
                )));
            }
        };
        if !bytes.is_multiple_of(4) || !address.is_multiple_of(4) {
            return Err(RuntimeError::Usage(format!(
                "{bytes} bytes at {address:#x} are no 32-bit words"
            )));
        }
        let function = self.module.function(entry)?;
        let (mut address, mut words, mut seed) =
            (address, bytes / 4, seed.wrapping_mul(0x9E37_79B9));
        let mut params: [*mut c_void; 3] = [
            (&raw mut address).cast(),
            (&raw mut words).cast(),
            (&raw mut seed).cast(),
        ];
        let blocks = u32::try_from(words.div_ceil(256))
            .unwrap_or(u32::MAX)
            .clamp(1, 4096);
        let stream = self.device.stream().cu_stream();
        // SAFETY: three parameters as the entries declare them, copied before the call returns;
        // the caller vouches for the memory.
        unsafe {
            sys::cuLaunchKernel(
                function,
                blocks,
                1,
                1,
                256,
                1,
                1,
                0,
                stream,
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .result()
        .doing(|| format!("launching {entry}"))
    }
}
