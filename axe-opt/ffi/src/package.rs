//! Kernel packages in memory: `axe_package_*`.

use crate::failure::{Failure, Status, call, item};
use crate::handle::{self, Object, Opaque};
use crate::text::{bytes, c_string, give, give_new, option, view};
use axe_compile::{Compiled, Remark, RemarkKind};
use axe_package::{MANIFEST_FILE, Package, TensorSpec};
use std::ffi::{CString, c_char};
use std::path::Path;

/// A package and what is known of how it was made; as an object, `axe_package`.
pub struct PackageObject {
    pub(crate) package: Package,
    tar: Vec<u8>,
    manifest: CString,
    inputs: Vec<Signature>,
    outputs: Vec<Signature>,
    warnings: Vec<CString>,
    decisions: Vec<Decision>,
    files: Vec<CString>,
}

impl Object for PackageObject {
    const NAME: &'static str = "axe_package";
}

/// The type of an input or an output.
struct Signature {
    name: CString,
    dtype: CString,
    shape: Vec<i64>,
}

/// An extent that is known at run time.
const DYNAMIC: i64 = -1;

impl Signature {
    fn of(spec: &TensorSpec) -> Self {
        let shape = spec.shape.iter();
        Self {
            name: c_string(&spec.name),
            dtype: c_string(spec.dtype.name()),
            shape: shape
                .map(|extent| extent.as_const().unwrap_or(DYNAMIC))
                .collect(),
        }
    }
}

/// `axe_tensor_type`.
#[repr(C)]
#[derive(Debug)]
pub struct RawTensorType {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const i64,
    rank: usize,
}

struct Decision {
    kind: i32,
    category: CString,
    name: CString,
    kernel: CString,
    message: CString,
    plan: CString,
    location: CString,
}

impl Decision {
    fn of(remark: &Remark) -> Self {
        Self {
            kind: match remark.kind {
                RemarkKind::Passed => 0,
                RemarkKind::Missed => 1,
                RemarkKind::Analysis => 2,
            },
            category: c_string(&remark.category),
            name: c_string(&remark.name),
            kernel: c_string(&remark.function),
            message: c_string(&remark.message),
            plan: c_string(&remark.plan),
            location: c_string(&remark.place),
        }
    }
}

/// `axe_decision`.
#[repr(C)]
#[derive(Debug)]
pub struct RawDecision {
    kind: i32,
    category: *const c_char,
    name: *const c_char,
    kernel: *const c_char,
    message: *const c_char,
    plan: *const c_char,
    location: *const c_char,
}

impl PackageObject {
    /// A package that nothing is known of but what it holds.
    ///
    /// # Errors
    /// A manifest that has no text.
    pub(crate) fn new(package: Package) -> Result<Self, Failure> {
        let manifest = serde_json::to_string_pretty(package.manifest())
            .map_err(|error| Failure::new(Status::Internal, error.to_string()))?;
        let signatures = |specs: &[TensorSpec]| specs.iter().map(Signature::of).collect();
        Ok(Self {
            tar: package.to_bytes()?,
            manifest: c_string(&manifest),
            inputs: signatures(&package.manifest().inputs),
            outputs: signatures(&package.manifest().outputs),
            warnings: Vec::new(),
            decisions: Vec::new(),
            files: package.files().map(|(name, _)| c_string(name)).collect(),
            package,
        })
    }

    /// A package that was just compiled.
    ///
    /// # Errors
    /// As [`PackageObject::new`].
    pub(crate) fn compiled(compiled: Compiled) -> Result<Self, Failure> {
        let warnings = compiled.warnings.iter();
        Ok(Self {
            warnings: warnings.map(|warning| c_string(warning)).collect(),
            decisions: compiled.decisions.iter().map(Decision::of).collect(),
            ..Self::new(compiled.package)?
        })
    }

    fn file(&self, name: &str) -> Option<&[u8]> {
        match name {
            MANIFEST_FILE => Some(self.manifest.to_bytes()),
            name => self.package.file(name),
        }
    }
}

type Handle = *const Opaque<PackageObject>;
type Out = *mut *mut Opaque<PackageObject>;
type Error = *mut *mut Opaque<Failure>;

/// Reads a package, a tar file or a folder.
///
/// # Safety
/// `path` is null or a text that a NUL ends; `package` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_open(
    path: *const c_char,
    package: Out,
    error: Error,
) -> Status {
    call(error, || {
        // SAFETY: promised by the caller.
        unsafe {
            give_new(package, "package", || {
                let path =
                    option(path, "path")?.ok_or_else(|| Failure::argument("`path` is NULL"))?;
                PackageObject::new(Package::open(Path::new(path))?)
            })
        }
    })
}

/// Reads the bytes of a package's tar file.
///
/// # Safety
/// `data` is null or valid for `size` bytes; `package` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_from_bytes(
    data: *const u8,
    size: usize,
    package: Out,
    error: Error,
) -> Status {
    call(error, || {
        // SAFETY: promised by the caller.
        unsafe {
            give_new(package, "package", || {
                PackageObject::new(Package::from_bytes(bytes(data, size, "data")?)?)
            })
        }
    })
}

/// Writes a package as one tar file.
///
/// # Safety
/// `path` is null or a text that a NUL ends; `error` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_save(
    package: Handle,
    path: *const c_char,
    error: Error,
) -> Status {
    call(error, || {
        let package = handle::get(package, "package")?;
        // SAFETY: promised by the caller.
        let path = unsafe { option(path, "path")? };
        let path = path.ok_or_else(|| Failure::argument("`path` is NULL"))?;
        Ok(package.package.write_file(Path::new(path))?)
    })
}

/// Frees a package.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_free(package: *mut Opaque<PackageObject>) {
    handle::free(package.cast_const());
}

/// # Safety
/// `size` is null or a place for a result.
unsafe fn sized(found: Option<&[u8]>, size: *mut usize) -> *const u8 {
    let (data, length) = found.map_or((std::ptr::null(), 0), |all| (all.as_ptr(), all.len()));
    if !size.is_null() {
        // SAFETY: promised by the caller.
        unsafe { size.write_unaligned(length) };
    }
    data
}

/// The bytes of the package's tar file; null and 0 for what is no package.
///
/// # Safety
/// `size` is null or a place for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_bytes(package: Handle, size: *mut usize) -> *const u8 {
    let package = handle::find(package);
    // SAFETY: promised by the caller.
    unsafe { sized(package.as_deref().map(|all| all.tar.as_slice()), size) }
}

/// The bytes of a file of the package; null and 0 where there is none.
///
/// # Safety
/// `name` is null or a text that a NUL ends, `size` null or a place for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_file(
    package: Handle,
    name: *const c_char,
    size: *mut usize,
) -> *const u8 {
    let package = handle::find(package);
    // SAFETY: promised by the caller.
    unsafe {
        let name = option(name, "name").ok().flatten();
        let found = package
            .as_deref()
            .and_then(|package| package.file(name.unwrap_or("")));
        sized(found, size)
    }
}

/// The number of files beside the manifest.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_file_count(package: Handle) -> usize {
    handle::find(package).map_or(0, |package| package.files.len())
}

/// The name of a file, in the order of names; null for an index that is out of range.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_file_name(package: Handle, index: usize) -> *const c_char {
    let package = handle::find(package);
    view(package.and_then(|package| Some(package.files.get(index)?.as_ptr())))
}

/// The manifest as JSON, which a NUL ends.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_manifest(package: Handle) -> *const c_char {
    view(handle::find(package).map(|package| package.manifest.as_ptr()))
}

/// A file that a kernel of the package names.
fn code(
    package: &PackageObject,
    name: fn(&axe_package::Kernel) -> Option<&String>,
) -> Option<&[u8]> {
    let kernels = &package.package.manifest().kernels;
    package.file(kernels.iter().find_map(name)?)
}

/// The PTX of the kernels; null and 0 for a package that has none.
///
/// # Safety
/// `size` is null or a place for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_ptx(package: Handle, size: *mut usize) -> *const c_char {
    let package = handle::find(package);
    let found = package
        .as_deref()
        .and_then(|package| code(package, |kernel| kernel.ptx.as_ref()));
    // SAFETY: promised by the caller.
    unsafe { sized(found, size).cast() }
}

/// The machine code of the kernels; null and 0 for a package that has none.
///
/// # Safety
/// `size` is null or a place for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_cubin(package: Handle, size: *mut usize) -> *const u8 {
    let package = handle::find(package);
    let found = package
        .as_deref()
        .and_then(|package| code(package, |kernel| kernel.cubin.as_ref()));
    // SAFETY: promised by the caller.
    unsafe { sized(found, size) }
}

/// # Safety
/// `place` is null or has room for a result.
unsafe fn signature(
    package: Handle,
    index: usize,
    place: *mut RawTensorType,
    which: fn(&PackageObject) -> &[Signature],
    what: &str,
) -> Status {
    call(std::ptr::null_mut(), || {
        let package = handle::get(package, "package")?;
        let found = item(which(&package), index, what)?;
        let raw = RawTensorType {
            name: found.name.as_ptr(),
            dtype: found.dtype.as_ptr(),
            shape: found.shape.as_ptr(),
            rank: found.shape.len(),
        };
        // SAFETY: promised by the caller.
        unsafe { give(place, raw, "type") }
    })
}

/// The number of inputs.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_input_count(package: Handle) -> usize {
    handle::find(package).map_or(0, |package| package.inputs.len())
}

/// The number of outputs.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_output_count(package: Handle) -> usize {
    handle::find(package).map_or(0, |package| package.outputs.len())
}

/// The type of an input.
///
/// # Safety
/// `type` is null or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_input(
    package: Handle,
    index: usize,
    r#type: *mut RawTensorType,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe { signature(package, index, r#type, |package| &package.inputs, "input") }
}

/// The type of an output.
///
/// # Safety
/// `type` is null or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_output(
    package: Handle,
    index: usize,
    r#type: *mut RawTensorType,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe { signature(package, index, r#type, |package| &package.outputs, "output") }
}

/// The number of warnings.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_warning_count(package: Handle) -> usize {
    handle::find(package).map_or(0, |package| package.warnings.len())
}

/// A warning; null for an index that is out of range.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_warning(package: Handle, index: usize) -> *const c_char {
    let package = handle::find(package);
    view(package.and_then(|package| Some(package.warnings.get(index)?.as_ptr())))
}

/// The number of decisions.
#[unsafe(no_mangle)]
pub extern "C" fn axe_package_decision_count(package: Handle) -> usize {
    handle::find(package).map_or(0, |package| package.decisions.len())
}

/// A decision, in the order in which they were made.
///
/// # Safety
/// `decision` is null or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_package_decision(
    package: Handle,
    index: usize,
    decision: *mut RawDecision,
) -> Status {
    call(std::ptr::null_mut(), || {
        let package = handle::get(package, "package")?;
        let found = item(&package.decisions, index, "decision")?;
        let raw = RawDecision {
            kind: found.kind,
            category: found.category.as_ptr(),
            name: found.name.as_ptr(),
            kernel: found.kernel.as_ptr(),
            message: found.message.as_ptr(),
            plan: found.plan.as_ptr(),
            location: found.location.as_ptr(),
        };
        // SAFETY: promised by the caller.
        unsafe { give(decision, raw, "decision") }
    })
}
