//! Tensors of other libraries, through DLPack (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use crate::errors;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The head of `DLManagedTensorVersioned`, up to its tensor.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
}

const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// The versions whose tensor lies where [`Versioned`] has it.
const MAJOR: u32 = 1;

/// Address, device type, device number, type code, bits, lanes, shape, strides in elements.
type Described = (u64, i32, i32, u8, u8, u16, Vec<i64>, Option<Vec<i64>>);

/// What a capsule of `__dlpack__` holds. The capsule keeps it: it is read, not taken.
#[pyfunction]
pub(crate) fn describe(capsule: &Bound<'_, PyAny>) -> PyResult<Described> {
    let pointer = |name: &CStr| {
        // SAFETY: both arguments are valid; a capsule of another name, or no capsule, gives 0.
        unsafe {
            match ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) {
                0 => None,
                _ => Some(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr())),
            }
        }
    };
    // SAFETY: a capsule of these names holds what DLPack says, and lives as long as `capsule` is borrowed.
    let tensor = unsafe {
        if let Some(managed) = pointer(PLAIN) {
            &*managed.cast::<DlTensor>()
        } else if let Some(managed) = pointer(VERSIONED) {
            let managed = managed.cast::<Versioned>();
            let (major, minor) = ((*managed).major, (*managed).minor);
            if major != MAJOR {
                let problem = format!("DLPack {major}.{minor}: expected version {MAJOR}");
                return Err(errors::call(problem));
            }
            &(*managed).tensor
        } else {
            return Err(PyTypeError::new_err("expected a capsule of __dlpack__"));
        }
    };
    let rank = usize::try_from(tensor.ndim).map_err(errors::call)?;
    let numbers = |at: *const i64| match at.is_null() || rank == 0 {
        true => None,
        // SAFETY: DLPack's arrays have `ndim` entries.
        false => Some(unsafe { std::slice::from_raw_parts(at, rank) }.to_vec()),
    };
    let address = tensor.data.expose_provenance() as u64;
    Ok((
        address.wrapping_add(tensor.byte_offset),
        tensor.device_type,
        tensor.device_id,
        tensor.code,
        tensor.bits,
        tensor.lanes,
        numbers(tensor.shape).unwrap_or_default(),
        numbers(tensor.strides),
    ))
}
