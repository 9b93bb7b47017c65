//! The C API of the runtime, `include/axert.h`: what each function does, what it takes and who owns what stands there.
//!
//! Every function checks its pointers, turns errors into values and lets no panic out.

mod error;
mod tensor;

use axe_package::Package;
use axe_runtime::{Code, Device, Executable, RuntimeError, Specialization, Stream};
use error::{AxertError, Failure, guarded, text};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;
use std::sync::Arc;
use tensor::AxertTensor;

/// `AXERT_CURRENT_CONTEXT`.
const CURRENT_CONTEXT: c_int = -1;

/// A package whose code is loaded.
pub struct AxertExecutable(Executable);

/// An executable for one set of shapes, with what C reads of its outputs.
pub struct AxertSpecialization {
    specialization: Arc<Specialization>,
    outputs: Vec<Output>,
}

struct Output {
    name: CString,
    ty: CString,
    shape: Vec<i64>,
    bytes: u64,
}

/// `AxertShape`.
#[repr(C)]
pub struct AxertShape {
    extents: *const i64,
    rank: usize,
}

/// `AxertDim`.
#[repr(C)]
pub struct AxertDim {
    name: *const c_char,
    value: i64,
}

/// `AxertOutput`.
#[repr(C)]
pub struct AxertOutput {
    name: *const c_char,
    ty: *const c_char,
    shape: AxertShape,
    bytes: u64,
}

/// `count` values at `at`; none may be at NULL.
unsafe fn slice<'a, T>(at: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    match (at.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::Argument(format!(
            "{what}: expected {count} of them, got NULL"
        ))),
        // SAFETY: the caller of the API says that there are so many.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at, count) }),
    }
}

unsafe fn object<'a, T>(at: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: NULL, or an object of this API that is not destroyed.
    unsafe { at.as_ref() }.ok_or_else(|| Failure::Argument(format!("{what} is NULL")))
}

/// Gives a new object to the caller.
unsafe fn give<T>(
    out: *mut *mut T,
    what: &str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::Argument(format!(
            "there is no place for {what}: NULL"
        )));
    }
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: not NULL, and the caller's to write to.
    unsafe { *out = made };
    Ok(())
}

unsafe fn destroy<T>(at: *mut T) {
    if !at.is_null() {
        // SAFETY: made by `give`, destroyed once.
        drop(unsafe { Box::from_raw(at) });
    }
}

fn load(package: Package, device: c_int) -> Result<AxertExecutable, Failure> {
    let device = match usize::try_from(device) {
        Ok(ordinal) => Device::shared(ordinal)?,
        // SAFETY: the header says how long the context has to live.
        Err(_) if device == CURRENT_CONTEXT => unsafe { Device::current() }?,
        Err(_) => return Err(Failure::Argument(format!("there is no device {device}"))),
    };
    Ok(AxertExecutable(Executable::new(
        &device,
        package,
        Code::Best,
    )?))
}

/// See axert.h.
#[unsafe(no_mangle)]
pub extern "C" fn axertVersion() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertLoad(
    bytes: *const c_void,
    size: usize,
    device: c_int,
    executable: *mut *mut AxertExecutable,
) -> *mut AxertError {
    guarded(|| unsafe {
        give(executable, "the executable", || {
            let bytes = slice(bytes.cast::<u8>(), size, "bytes of a package")?;
            load(
                Package::from_bytes(bytes).map_err(RuntimeError::from)?,
                device,
            )
        })
    })
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertLoadFile(
    path: *const c_char,
    device: c_int,
    executable: *mut *mut AxertExecutable,
) -> *mut AxertError {
    use std::os::unix::ffi::OsStrExt;
    guarded(|| unsafe {
        give(executable, "the executable", || {
            object(path, "the path")?;
            let path = std::ffi::OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
            load(Package::open(path).map_err(RuntimeError::from)?, device)
        })
    })
}

/// See axert.h.
///
/// # Safety
/// NULL, or an executable that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertExecutableDestroy(executable: *mut AxertExecutable) {
    // SAFETY: by this function's contract.
    unsafe { destroy(executable) }
}

/// See axert.h.
///
/// # Safety
/// NULL, or an executable that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertNumInputs(executable: *const AxertExecutable) -> usize {
    // SAFETY: by this function's contract.
    unsafe { executable.as_ref() }.map_or(0, |it| it.0.package().manifest().inputs.len())
}

/// See axert.h.
///
/// # Safety
/// NULL, or an executable that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertNumOutputs(executable: *const AxertExecutable) -> usize {
    // SAFETY: by this function's contract.
    unsafe { executable.as_ref() }.map_or(0, |it| it.0.package().manifest().outputs.len())
}

/// The dimensions that a caller gives.
unsafe fn named(dims: *const AxertDim, count: usize) -> Result<BTreeMap<String, i64>, Failure> {
    // SAFETY: by the API's contract.
    let dims = unsafe { slice(dims, count, "dimensions") }?;
    let named = dims.iter().map(|dim| {
        // SAFETY: as above.
        let name = unsafe { text(dim.name, "the name of a dimension") }?;
        Ok((name.to_owned(), dim.value))
    });
    named.collect()
}

/// The extents of a shape.
unsafe fn extents(shape: &AxertShape) -> Result<Vec<u64>, Failure> {
    // SAFETY: by the API's contract.
    let extents = unsafe { slice(shape.extents, shape.rank, "extents") }?;
    tensor::extents(extents)
}

fn described(specialization: Arc<Specialization>) -> Result<AxertSpecialization, Failure> {
    let outputs = specialization.outputs().map(|(name, dtype, shape)| {
        let string =
            |text: &str| CString::new(text).map_err(|error| Failure::Argument(error.to_string()));
        let bytes = axe_package::dense_bytes(dtype, shape).unwrap_or(0);
        Ok(Output {
            name: string(name)?,
            ty: string(dtype.name())?,
            shape: shape
                .iter()
                .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
                .collect(),
            bytes: bytes as u64,
        })
    });
    let outputs = outputs.collect::<Result<_, Failure>>()?;
    Ok(AxertSpecialization {
        specialization,
        outputs,
    })
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertSpecialize(
    executable: *const AxertExecutable,
    inputs: *const AxertShape,
    num_inputs: usize,
    dims: *const AxertDim,
    num_dims: usize,
    specialization: *mut *mut AxertSpecialization,
) -> *mut AxertError {
    guarded(|| unsafe {
        give(specialization, "the specialization", || {
            let executable = object(executable, "the executable")?;
            let shapes = slice(inputs, num_inputs, "shapes of inputs")?;
            let shapes = shapes
                .iter()
                .map(|shape| extents(shape))
                .collect::<Result<Vec<_>, _>>()?;
            let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
            let dims = named(dims, num_dims)?;
            described(executable.0.specialize(&shapes, &dims)?)
        })
    })
}

/// See axert.h.
///
/// # Safety
/// NULL, or a specialization that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertSpecializationDestroy(specialization: *mut AxertSpecialization) {
    // SAFETY: by this function's contract.
    unsafe { destroy(specialization) }
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertOutput(
    specialization: *const AxertSpecialization,
    index: usize,
    output: *mut AxertOutput,
) -> *mut AxertError {
    guarded(|| {
        // SAFETY: by this function's contract.
        let specialization = unsafe { object(specialization, "the specialization") }?;
        let count = specialization.outputs.len();
        let missing =
            || Failure::Argument(format!("there is no output {index}: there are {count}"));
        let found = specialization.outputs.get(index).ok_or_else(missing)?;
        // SAFETY: as above.
        let place = unsafe { output.as_mut() };
        let place = place
            .ok_or_else(|| Failure::Argument("there is no place for the output: NULL".into()))?;
        *place = AxertOutput {
            name: found.name.as_ptr(),
            ty: found.ty.as_ptr(),
            shape: AxertShape {
                extents: if found.shape.is_empty() {
                    null()
                } else {
                    found.shape.as_ptr()
                },
                rank: found.shape.len(),
            },
            bytes: found.bytes,
        };
        Ok(())
    })
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says, and the addresses of device memory and the stream are live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertLaunch(
    specialization: *const AxertSpecialization,
    inputs: *const *mut c_void,
    num_inputs: usize,
    outputs: *const *mut c_void,
    num_outputs: usize,
    stream: *mut c_void,
) -> *mut AxertError {
    let addresses = |list: &[*mut c_void]| -> Vec<u64> {
        list.iter()
            .map(|at| at.expose_provenance() as u64)
            .collect()
    };
    guarded(|| unsafe {
        let specialization = object(specialization, "the specialization")?;
        let inputs = addresses(slice(inputs, num_inputs, "inputs")?);
        let outputs = addresses(slice(outputs, num_outputs, "outputs")?);
        let stream = Stream(stream.expose_provenance());
        Ok(specialization
            .specialization
            .launch(&inputs, &outputs, stream)?)
    })
}

/// See axert.h.
///
/// # Safety
/// The pointers are as axert.h says, and the tensors and the stream are live.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "C has arrays as pointer and count"
)]
pub unsafe extern "C" fn axertCall(
    executable: *const AxertExecutable,
    inputs: *const AxertTensor,
    num_inputs: usize,
    outputs: *const AxertTensor,
    num_outputs: usize,
    dims: *const AxertDim,
    num_dims: usize,
    stream: *mut c_void,
) -> *mut AxertError {
    guarded(|| unsafe {
        let executable = &object(executable, "the executable")?.0;
        let inputs = slice(inputs, num_inputs, "inputs")?;
        let outputs = slice(outputs, num_outputs, "outputs")?;
        let specs = &executable.package().manifest().inputs;
        if specs.len() != inputs.len() {
            let (want, got) = (specs.len(), inputs.len());
            return Err(Failure::Argument(format!(
                "expected {want} inputs, got {got}"
            )));
        }
        let device = executable.device().context().ordinal();
        let read =
            |tensor: &AxertTensor, name: &str, dtype| tensor::read(tensor, name, dtype, device);
        let given = specs.iter().zip(inputs);
        let given = given.map(|(spec, tensor)| read(tensor, &spec.name, spec.dtype));
        let (addresses, shapes): (Vec<_>, Vec<_>) =
            given.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
        let specialization = executable.specialize(&shapes, &named(dims, num_dims)?)?;
        if specialization.outputs().count() != outputs.len() {
            let (want, got) = (specialization.outputs().count(), outputs.len());
            return Err(Failure::Argument(format!(
                "expected {want} outputs, got {got}"
            )));
        }
        let mut places = Vec::new();
        for ((name, dtype, shape), tensor) in specialization.outputs().zip(outputs) {
            let (address, got) = read(tensor, name, dtype)?;
            if got != shape {
                return Err(Failure::Argument(format!(
                    "`{name}`: expected shape {shape:?}, got {got:?}"
                )));
            }
            places.push(address);
        }
        let stream = Stream(stream.expose_provenance());
        Ok(specialization.launch(&addresses, &places, stream)?)
    })
}
