//! What a result is checked against: f64 sums of the operands of one set, sampled on the host.

use axe_package::Report;

use super::operands::OperandSet;
use super::packages::Role;
use super::problem::{BLOCK, Gemm, Scaling};
use super::reference::{HostOperands, Sample, check, gather};
use crate::device::DeviceMemory;
use crate::error::RuntimeError;

/// A set of operands on the device and its sample on the host.
pub struct Truth<'a> {
    /// The GEMM.
    pub gemm: &'a Gemm,
    /// The set; its C is what is checked.
    pub set: &'a OperandSet,
    sample: Sample,
    host: HostOperands,
}

impl<'a> Truth<'a> {
    /// Copies the sample from the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn of(gemm: &'a Gemm, set: &'a OperandSet) -> Result<Self, RuntimeError> {
        let sample = Sample::of(gemm);
        Ok(Truth {
            host: host_operands(gemm, &sample, set)?,
            gemm,
            set,
            sample,
        })
    }

    /// The set's C against f64.
    ///
    /// # Errors
    /// The driver's.
    pub fn against_f64(&self) -> Result<Report, RuntimeError> {
        let row = self.gemm.n * self.gemm.out().bytes() as u64;
        let c = rows(self.set.c(), &self.sample.rows, row)?;
        let failed = |error| RuntimeError::Compare {
            output: "C".into(),
            error,
        };
        check(self.gemm, &self.sample, &self.host, &c).map_err(failed)
    }
}

/// The sampled rows and columns of the operands.
fn host_operands(
    gemm: &Gemm,
    sample: &Sample,
    set: &OperandSet,
) -> Result<HostOperands, RuntimeError> {
    let row = gemm.k * gemm.dtype.bytes() as u64;
    let memory = |role| {
        let missing = || RuntimeError::Usage("an operand is missing".into());
        set.input(role).ok_or_else(missing)
    };
    let w = memory(Role::W)?;
    let w = if gemm.transposed {
        rows(w, &sample.columns, row)?
    } else {
        let elements = sample
            .columns
            .iter()
            .flat_map(|c| (0..gemm.k).map(move |k| k * gemm.n + c));
        gather(&w.download()?, elements, gemm.dtype.bytes())
    };
    let kb = gemm.k.div_ceil(BLOCK);
    let (of_a, of_w) = (Role::ScalesOfA, Role::ScalesOfW);
    let scales = match gemm.scaling {
        Scaling::None => (Vec::new(), Vec::new()),
        Scaling::Tensor => (memory(of_a)?.download()?, memory(of_w)?.download()?),
        Scaling::Row => (
            rows(memory(of_a)?, &sample.rows, 4)?,
            rows(memory(of_w)?, &sample.columns, 4)?,
        ),
        Scaling::Block => (
            rows(memory(of_a)?, &sample.rows, 4 * kb)?,
            memory(of_w)?.download()?,
        ),
    };
    Ok(HostOperands {
        a: rows(memory(Role::A)?, &sample.rows, row)?,
        w,
        scales,
    })
}

/// Rows, of `bytes` bytes each, of a matrix.
fn rows(memory: &DeviceMemory, rows: &[u64], bytes: u64) -> Result<Vec<u8>, RuntimeError> {
    // All rows in one copy where they are all wanted.
    if rows.iter().copied().eq(0..rows.len() as u64) {
        return memory.part(0, rows.len() as u64 * bytes);
    }
    let mut out = Vec::new();
    for row in rows {
        out.extend(memory.part(row * bytes, bytes)?);
    }
    Ok(out)
}
