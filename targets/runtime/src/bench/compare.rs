//! Comparing two results on the device: a GEMM of a language model has gigabytes of them, and
//! copying them to the host takes longer than everything else.

use std::ffi::c_void;

use axe_package::{DType, Report, Tolerance};
use cudarc::driver::sys;

use crate::device::{Device, DeviceMemory};
use crate::error::{Doing, RuntimeError};
use crate::loaded::Module;

const PTX: &str = include_str!("compare.ptx");

/// Bytes that the kernel writes: eight 64-bit words.
const OUT_BYTES: u64 = 64;

/// The kernel that compares.
#[derive(Debug)]
pub struct Comparer {
    device: Device,
    module: Module,
    out: DeviceMemory,
}

impl Comparer {
    /// Compiles it for a device.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(device: &Device) -> Result<Self, RuntimeError> {
        let text = format!(".version 7.0\n.target sm_80\n.address_size 64\n{PTX}");
        Ok(Comparer {
            device: device.clone(),
            module: Module::load(device, "the comparing kernel", text.as_bytes())?,
            out: DeviceMemory::new(device, "the comparison", OUT_BYTES, 256)?,
        })
    }

    /// Compares `elements` elements, f16 or bf16, of `got` with those of `want`, as
    /// [`axe_package::compare()`] does, but for the list of mismatches, which stays empty. Waits.
    ///
    /// # Errors
    /// Another type, memory that is too small, or the driver's.
    pub fn compare(
        &self,
        dtype: DType,
        elements: u64,
        got: &DeviceMemory,
        want: &DeviceMemory,
    ) -> Result<Report, RuntimeError> {
        let bytes = elements.saturating_mul(2);
        if dtype.bytes() != 2 || got.bytes() < bytes || want.bytes() < bytes {
            let what = format!("{elements} elements of {dtype} cannot be compared");
            return Err(RuntimeError::Usage(what));
        }
        let tolerance = Tolerance::for_dtype(dtype);
        let launch = |absolute: f32| {
            let (g, w) = (got.address(), want.address());
            // SAFETY: both have `elements` elements, checked above.
            unsafe {
                self.launch(
                    dtype,
                    elements,
                    (g, w),
                    (tolerance.element as f32, absolute),
                )
            }
        };
        let first = launch(f32::INFINITY)?;
        if first.differing == 0 {
            return Ok(first.report(tolerance, elements));
        }
        let rms = (first.squares / elements.max(1) as f64).sqrt();
        Ok(launch((tolerance.element * rms) as f32)?.report(tolerance, elements))
    }

    /// # Safety
    /// Both addresses must be those of `elements` 16-bit elements.
    unsafe fn launch(
        &self,
        dtype: DType,
        elements: u64,
        (mut got, mut want): (u64, u64),
        (mut relative, mut absolute): (f32, f32),
    ) -> Result<Counts, RuntimeError> {
        self.out.fill(0)?;
        let function = self.module.function("compare16")?;
        let (mut elements, mut out) = (elements, self.out.address());
        let mut bf16 = u32::from(dtype == DType::BF16);
        let mut params: [*mut c_void; 7] = [
            (&raw mut got).cast(),
            (&raw mut want).cast(),
            (&raw mut elements).cast(),
            (&raw mut out).cast(),
            (&raw mut relative).cast(),
            (&raw mut absolute).cast(),
            (&raw mut bf16).cast(),
        ];
        let blocks = (8 * self.device.properties().sm_count).max(1);
        let (stream, none) = (self.device.stream().cu_stream(), std::ptr::null_mut());
        let params = params.as_mut_ptr();
        // SAFETY: seven parameters as the entry declares them, copied before the call returns; the
        // caller vouches for the memory.
        unsafe { sys::cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, params, none) }
            .result()
            .doing(|| "launching the comparison".into())?;
        Ok(Counts::of(&self.out.download()?))
    }
}

/// What the kernel wrote.
#[derive(Debug, Clone, PartialEq)]
struct Counts {
    errors: f64,
    squares: f64,
    differing: usize,
    mismatches: usize,
    unwritten: usize,
    nans: usize,
    max_abs: f64,
    max_rel: f64,
}

impl Counts {
    fn of(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |i: usize| words.get(i).map_or(0, |w| u64::from_le_bytes(*w));
        let float = |i| f64::from(f32::from_bits(word(i) as u32));
        Counts {
            errors: f64::from_bits(word(0)),
            squares: f64::from_bits(word(1)),
            differing: word(2) as usize,
            mismatches: word(3) as usize,
            unwritten: word(4) as usize,
            nans: word(5) as usize,
            max_abs: float(6),
            max_rel: float(7),
        }
    }

    fn report(&self, tolerance: Tolerance, elements: u64) -> Report {
        let ratio = if self.squares > 0.0 {
            self.errors / self.squares
        } else {
            self.errors
        };
        Report {
            tolerance,
            elements: elements as usize,
            mismatches: self.mismatches,
            unwritten: self.unwritten,
            unexpected_nans: self.nans,
            max_abs: self.max_abs,
            max_rel: self.max_rel,
            norm_rel: ratio.sqrt(),
            identical: self.differing == 0,
            first: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_report() {
        let mut bytes = Vec::new();
        for word in [
            4f64.to_bits(),
            16f64.to_bits(),
            7,
            2,
            1,
            0,
            u64::from(0.5f32.to_bits()),
            u64::from(0.25f32.to_bits()),
        ] {
            bytes.extend(word.to_le_bytes());
        }
        let report = Counts::of(&bytes).report(Tolerance::for_dtype(DType::BF16), 100);
        assert_eq!(
            (report.mismatches, report.unwritten, report.norm_rel),
            (2, 1, 0.5)
        );
        assert_eq!((report.max_abs, report.max_rel), (0.5, 0.25));
        assert!(!report.passed() && !report.identical);
        let same = Counts::of(&[0; 64]).report(Tolerance::for_dtype(DType::F16), 100);
        assert!(same.passed() && same.identical);
    }
}
