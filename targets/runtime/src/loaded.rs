//! A package's code on a device: modules loaded, parameters checked against the code, limits set.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};

use axe_package::{Kernel, Package, ParamKind};
use cudarc::driver::sys::{self, CUfunction_attribute_enum as FunctionAttribute};

use crate::chip::{Fit, fit};
use crate::device::Device;
use crate::error::{Doing, RuntimeError};

/// A loaded module; unloaded when dropped.
#[derive(Debug)]
pub struct Module {
    device: Device,
    raw: sys::CUmodule,
}

// SAFETY: module handles may be used from any thread with a current context (CUDA driver API,
// "Difference between the driver and runtime APIs", contexts are thread-safe).
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        if !self.device.hangs() && self.device.context().bind_to_thread().is_ok() {
            // SAFETY: loaded in `load`, unloaded nowhere else.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// The bytes of the driver compiler's messages that are kept.
const LOG_BYTES: usize = 8192;

impl Module {
    /// Loads a cubin, or compiles PTX with the driver.
    ///
    /// # Errors
    /// The driver's, with its compiler's messages.
    pub fn load(device: &Device, name: &str, code: &[u8]) -> Result<Module, RuntimeError> {
        let context = device.context();
        let doing = || format!("loading `{name}`");
        context.bind_to_thread().doing(doing)?;
        // PTX is text and has to end in a zero; a cubin does not mind one.
        let mut image = code.to_vec();
        image.push(0);
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let mut raw = std::ptr::null_mut();
        // SAFETY: `image` is zero-terminated and lives through the call; options and values pair
        // up as the driver API defines, the size being passed in the pointer itself.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut raw,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let log =
            String::from_utf8_lossy(log.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
        status.result().doing(|| {
            if log.trim().is_empty() {
                doing()
            } else {
                format!("{} ({})", doing(), log.trim())
            }
        })?;
        Ok(Module {
            device: device.clone(),
            raw,
        })
    }

    /// The entry `symbol`.
    ///
    /// # Errors
    /// There is none.
    pub fn function(&self, symbol: &str) -> Result<sys::CUfunction, RuntimeError> {
        let doing = || format!("looking up the entry `{symbol}`");
        let name = CString::new(symbol).map_err(|e| RuntimeError::Usage(e.to_string()))?;
        self.device.context().bind_to_thread().doing(doing)?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded and the name is zero-terminated.
        unsafe { sys::cuModuleGetFunction(&raw mut function, self.raw, name.as_ptr()) }
            .result()
            .doing(doing)?;
        Ok(function)
    }
}

/// A package whose code is on a device.
#[derive(Debug)]
pub struct Loaded {
    device: Device,
    package: Package,
    functions: Vec<sys::CUfunction>,
    via_ptx: bool,
    _modules: BTreeMap<String, Module>,
}

// SAFETY: function handles belong to the modules that travel with them; see `Module`.
unsafe impl Send for Loaded {}
// SAFETY: nothing changes once it is loaded.
unsafe impl Sync for Loaded {}

/// Which of a package's code to load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Code {
    /// The cubin where it fits the device, else the PTX.
    #[default]
    Best,
    /// The PTX, through the driver's compiler.
    Ptx,
}

impl Loaded {
    /// Loads a package's code.
    ///
    /// # Errors
    /// A package for another chip, code that the driver refuses, an entry that is missing or has
    /// other parameters than the manifest says, more shared memory than the device has.
    pub fn new(device: &Device, package: Package, code: Code) -> Result<Self, RuntimeError> {
        let how = how_to_run(device, &package)?;
        let how = if code == Code::Ptx { Fit::Ptx } else { how };
        let mut modules = BTreeMap::new();
        let mut functions = Vec::new();
        let mut via_ptx = false;
        for kernel in &package.manifest().kernels {
            let kernel_error = |problem: String| RuntimeError::Kernel {
                kernel: kernel.name.clone(),
                problem,
            };
            let file = match (how, &kernel.cubin, &kernel.ptx) {
                (Fit::Cubin, Some(cubin), _) => cubin,
                (_, _, Some(ptx)) => {
                    via_ptx = true;
                    ptx
                }
                _ => {
                    return Err(kernel_error(
                        "its cubin does not fit this GPU and it has no PTX".into(),
                    ));
                }
            };
            if !modules.contains_key(file) {
                let bytes = package
                    .file(file)
                    .ok_or_else(|| kernel_error(format!("`{file}` is missing")))?;
                let module =
                    Module::load(device, file, bytes).map_err(|e| in_kernel(&kernel.name, e))?;
                modules.insert(file.clone(), module);
            }
            let module = modules
                .get(file)
                .ok_or_else(|| kernel_error("its module is gone".into()))?;
            let function = module
                .function(&kernel.symbol)
                .map_err(|e| in_kernel(&kernel.name, e))?;
            check_params(kernel, function)?;
            set_limits(device, kernel, function)?;
            functions.push(function);
        }
        Ok(Loaded {
            device: device.clone(),
            package,
            functions,
            via_ptx,
            _modules: modules,
        })
    }

    /// The package.
    #[must_use]
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// True if the driver compiled PTX for any kernel.
    #[must_use]
    pub fn via_ptx(&self) -> bool {
        self.via_ptx
    }

    /// The function of the kernel of that index.
    pub(crate) fn function(&self, kernel: usize) -> Option<sys::CUfunction> {
        self.functions.get(kernel).copied()
    }
}

fn how_to_run(device: &Device, package: &Package) -> Result<Fit, RuntimeError> {
    let target = &package.manifest().target;
    let properties = device.properties();
    let (major, minor) = properties.compute_capability;
    let unfit = |reason| RuntimeError::Unfit {
        chip: format!("{} {}", target.kind, target.chip),
        device: format!("{} (compute capability {major}.{minor})", properties.name),
        reason,
    };
    if target.kind != "nvidia" {
        return Err(unfit("this program runs packages for NVIDIA GPUs".into()));
    }
    fit(&target.chip, properties.compute_capability).map_err(unfit)
}

fn in_kernel(kernel: &str, error: RuntimeError) -> RuntimeError {
    match error {
        RuntimeError::Cuda {
            doing,
            error,
            fatal,
        } => RuntimeError::Cuda {
            doing: format!("kernel `{kernel}`: {doing}"),
            error,
            fatal,
        },
        other => other,
    }
}

/// Compares the manifest's parameters with those in the code.
fn check_params(kernel: &Kernel, function: sys::CUfunction) -> Result<(), RuntimeError> {
    let fail = |problem: String| fail(kernel, problem);
    for (i, param) in kernel.params.iter().enumerate() {
        let want = match &param.kind {
            ParamKind::Pointer { .. } => 8,
            ParamKind::Scalar { ty } => ty.bytes(),
            ParamKind::TensorMap { .. } => 128,
        };
        match param_bytes(function, i) {
            Some(got) if got == want => {}
            Some(got) => {
                return fail(format!(
                    "parameter {i} `{}` has {want} bytes, in the code {got}",
                    param.name
                ));
            }
            None => return fail(format!("parameter {i} `{}` is not in the code", param.name)),
        }
    }
    let count = kernel.params.len();
    match param_bytes(function, count) {
        Some(bytes) => fail(format!(
            "the code has a parameter {count} of {bytes} bytes that the manifest lacks"
        )),
        None => Ok(()),
    }
}

fn param_bytes(function: sys::CUfunction, index: usize) -> Option<usize> {
    let (mut offset, mut bytes) = (0, 0);
    // SAFETY: the function belongs to a loaded module; an index past the end is an error value.
    let status =
        unsafe { sys::cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut bytes) };
    status.result().ok().map(|()| bytes)
}

/// Asks for what the kernel needs beyond what every kernel has.
fn set_limits(
    device: &Device,
    kernel: &Kernel,
    function: sys::CUfunction,
) -> Result<(), RuntimeError> {
    check_limits(device, kernel, function)?;
    let set = |which, value: u32, what: &str| {
        // SAFETY: the function belongs to a loaded module.
        unsafe { sys::cuFuncSetAttribute(function, which, value as i32) }
            .result()
            .doing(|| format!("kernel `{}`: {what}", kernel.name))
    };
    let dynamic = kernel.dynamic_shared_bytes;
    if dynamic > 0 {
        let which = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let what = format!("asking for {dynamic} bytes of dynamic shared memory");
        set(which, dynamic, &what)?;
    }
    // Over 8 blocks is allowed only on request (CUDA C++ programming guide, "Thread block clusters").
    if kernel
        .cluster
        .is_some_and(|c| c.iter().product::<u32>() > 8)
    {
        let which = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        set(which, 1, "asking for a cluster of over 8 blocks")?;
    }
    Ok(())
}

/// Whether a block of the kernel has room on the device.
fn check_limits(
    device: &Device,
    kernel: &Kernel,
    function: sys::CUfunction,
) -> Result<(), RuntimeError> {
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: the function belongs to a loaded module.
        unsafe { sys::cuFuncGetAttribute(&raw mut value, which, function) }
            .result()
            .doing(|| format!("kernel `{}`: reading its attributes", kernel.name))?;
        Ok::<u32, RuntimeError>(u32::try_from(value).unwrap_or(0))
    };
    let fixed = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let (dynamic, most) = (
        kernel.dynamic_shared_bytes,
        device.properties().max_shared_bytes,
    );
    if fixed.checked_add(dynamic).is_none_or(|sum| sum > most) {
        return fail(
            kernel,
            format!("needs {fixed} + {dynamic} bytes of shared memory, a block may have {most}"),
        );
    }
    let threads = kernel.block.iter().product::<u32>();
    let most = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    if threads > most {
        return fail(
            kernel,
            format!("is launched with {threads} threads a block, its registers allow {most}"),
        );
    }
    Ok(())
}

fn fail(kernel: &Kernel, problem: String) -> Result<(), RuntimeError> {
    Err(RuntimeError::Kernel {
        kernel: kernel.name.clone(),
        problem,
    })
}
