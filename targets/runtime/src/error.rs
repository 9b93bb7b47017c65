//! What can go wrong between a package and its results, and the exit code of each.

use axe_package::{
    BindError, CompareError, InstanceError, NpyError, PackageError, TensorError, TunedError,
};
use cudarc::driver::DriverError;
use thiserror::Error;

/// A failure of the runtime. Messages name the kernel, parameter or tensor concerned.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The NVIDIA driver's library cannot be loaded.
    #[error("no NVIDIA driver: libcuda.so.1 cannot be loaded; this machine has no usable GPU")]
    NoDriver,
    /// The driver is too old for tensor maps and clusters.
    #[error("the NVIDIA driver supports CUDA {major}.{minor}; 12.4 or newer is needed")]
    OldDriver {
        /// CUDA's major version.
        major: i32,
        /// CUDA's minor version.
        minor: i32,
    },
    /// There is a driver but no device of that number.
    #[error("there is no GPU {wanted}; the driver sees {count}")]
    NoDevice {
        /// The device number asked for.
        wanted: usize,
        /// The number of devices.
        count: i32,
    },
    /// The calling thread has no CUDA context.
    #[error(
        "no CUDA context is current on this thread: make one current, or open a device by its number"
    )]
    NoContext,
    /// The package is for another machine.
    #[error("the package is for {chip}, this GPU is {device}: {reason}")]
    Unfit {
        /// The chip the package was compiled for.
        chip: String,
        /// The GPU, with its compute capability.
        device: String,
        /// Why it does not run there.
        reason: String,
    },
    /// A kernel and its code contradict each other.
    #[error("kernel `{kernel}`: {problem}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// The driver refused something.
    #[error("{doing}: {error}")]
    Cuda {
        /// What was being done.
        doing: String,
        /// The error's CUDA name and text.
        error: String,
        /// True if the CUDA context is lost: nothing else can run in this process.
        fatal: bool,
    },
    /// The device does not finish.
    #[error("{doing}: not finished after {seconds} s; the kernel hangs")]
    Hangs {
        /// What was being done.
        doing: String,
        /// How long was waited.
        seconds: f64,
    },
    /// A candidate of a benchmark did it.
    #[error("{package}: {error}")]
    Candidate {
        /// The package.
        package: String,
        /// What happened.
        error: Box<RuntimeError>,
    },
    /// A kernel wrote outside a piece of memory.
    #[error("a kernel wrote {side} `{memory}`, which has {bytes} bytes")]
    OutOfBounds {
        /// The memory.
        memory: String,
        /// "before" or "behind".
        side: &'static str,
        /// Its size in bytes.
        bytes: u64,
    },
    /// cuBLASLt is missing or refused something.
    #[error("cuBLASLt: {0}")]
    CublasLt(String),
    /// The package cannot be read.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Memory of a caller that a call cannot use.
    #[error("`{memory}`: {problem}")]
    Memory {
        /// The input or output.
        memory: String,
        /// What is wrong.
        problem: String,
    },
    /// The arguments do not fit the package.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The package has no concrete form for these arguments.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// A `.npy` file cannot be read or written.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A tensor is too large.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An expectation has another shape.
    #[error("output `{output}`: {error}")]
    Compare {
        /// The output.
        output: String,
        /// What differs.
        error: CompareError,
    },
    /// A database of tuned plans cannot be read or written.
    #[error("{path}: {error}")]
    Tuned {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: TunedError,
    },
    /// The command line or a list makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// What the operating system said.
        error: std::io::Error,
    },
}

/// The exit codes of `axe-run`.
pub mod exit_code {
    /// Everything ran and compared equal within tolerance.
    pub const OK: u8 = 0;
    /// A result is wrong, or a case of a batch failed.
    pub const WRONG: u8 = 1;
    /// The command line is wrong.
    pub const USAGE: u8 = 2;
    /// A package, an argument or a file is wrong.
    pub const INPUT: u8 = 3;
    /// No driver, no GPU, or not one that the package fits.
    pub const NO_DEVICE: u8 = 4;
    /// The driver or a library failed while running.
    pub const CUDA: u8 = 5;
}

impl RuntimeError {
    /// The exit code that `axe-run` ends with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            RuntimeError::Candidate { error, .. } => error.exit_code(),
            RuntimeError::NoDriver
            | RuntimeError::OldDriver { .. }
            | RuntimeError::NoDevice { .. }
            | RuntimeError::NoContext
            | RuntimeError::Unfit { .. } => exit_code::NO_DEVICE,
            RuntimeError::Cuda { .. } | RuntimeError::Hangs { .. } | RuntimeError::CublasLt(_) => {
                exit_code::CUDA
            }
            RuntimeError::OutOfBounds { .. } => exit_code::WRONG,
            RuntimeError::Usage(_) => exit_code::USAGE,
            _ => exit_code::INPUT,
        }
    }

    /// True if nothing else can run on the GPU in this process.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            RuntimeError::Candidate { error, .. } => error.is_fatal(),
            RuntimeError::Cuda { fatal, .. } => *fatal,
            RuntimeError::Hangs { .. } => true,
            _ => false,
        }
    }
}

/// Attaches what was being done to a driver error.
pub(crate) trait Doing<T> {
    /// Names the action that failed.
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, RuntimeError>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, RuntimeError> {
        self.map_err(|e| {
            let name = e.error_name().map(|n| n.to_string_lossy().into_owned());
            let text = e.error_string().map(|n| n.to_string_lossy().into_owned());
            let error = match (name, text) {
                (Ok(name), Ok(text)) => format!("{name} ({text})"),
                _ => format!("CUDA error {}", e.0 as u32),
            };
            RuntimeError::Cuda {
                doing: doing(),
                error,
                fatal: is_fatal(e),
            }
        })
    }
}

/// Errors that leave the process unable to use CUDA (CUDA driver API, `CUresult`: "the process
/// must be terminated and relaunched").
fn is_fatal(error: DriverError) -> bool {
    use cudarc::driver::sys::CUresult as R;
    matches!(
        error.0,
        R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_LAUNCH_FAILED
            | R::CUDA_ERROR_ECC_UNCORRECTABLE
            | R::CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}
