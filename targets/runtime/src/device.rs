//! The GPU: finding it, its properties, its memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{CudaContext, CudaStream, result};

use crate::error::{Doing, RuntimeError};
use crate::foreign;

/// The oldest CUDA version of a driver that has all calls used here (`cuFuncGetParamInfo`).
const OLDEST_CUDA: i32 = 12_040;

/// An opened GPU with one stream.
#[derive(Debug, Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    properties: Properties,
    hangs: Arc<AtomicBool>,
}

/// What kernels and the benchmark need to know of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub compute_capability: (i32, i32),
    /// Multiprocessors.
    pub sm_count: u32,
    /// The L2 cache in bytes.
    pub l2_bytes: u64,
    /// The most shared memory that a block may have, in bytes.
    pub max_shared_bytes: u32,
    /// The CUDA version that the driver supports, 1000 major + 10 minor.
    pub driver_cuda: i32,
}

impl Device {
    /// Opens GPU `ordinal`.
    ///
    /// # Errors
    /// No driver, one that is too old, no such GPU, or one that the driver cannot open.
    pub fn open(ordinal: usize) -> Result<Self, RuntimeError> {
        let driver_cuda = usable_driver()?;
        let count = match result::init().and_then(|()| result::device::get_count()) {
            Ok(count) => count,
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => 0,
            Err(e) => return Err(e).doing(|| "starting the driver".into()),
        };
        if i32::try_from(ordinal).map_or(true, |n| n >= count) {
            return Err(RuntimeError::NoDevice {
                wanted: ordinal,
                count,
            });
        }
        let context = CudaContext::new(ordinal).doing(|| format!("opening GPU {ordinal}"))?;
        Self::in_context(context, driver_cuda)
    }

    /// [`Device::open`] for callers with contexts of their own: the context that is current on the thread stays. A GPU is
    /// opened once in a process.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn shared(ordinal: usize) -> Result<Self, RuntimeError> {
        static OPEN: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = open.get(&ordinal) {
            return Ok(device.clone());
        }
        usable_driver()?;
        result::init().doing(|| "starting the driver".into())?;
        let _keep = foreign::Keep::new()?;
        let device = Self::open(ordinal)?;
        open.insert(ordinal, device.clone());
        Ok(device)
    }

    /// The device of the context that is current on the calling thread: code and memory go there, whoever made it.
    ///
    /// # Errors
    /// As [`Device::open`]; [`RuntimeError::NoContext`].
    ///
    /// # Safety
    /// A context that is not its device's primary one lives as long as this process uses Axe.
    pub unsafe fn current() -> Result<Self, RuntimeError> {
        let driver_cuda = usable_driver()?;
        // SAFETY: by this function's contract.
        let context = unsafe { foreign::current_context() }?;
        let _keep = foreign::Keep::new()?;
        Self::in_context(context, driver_cuda)
    }

    fn in_context(context: Arc<CudaContext>, driver_cuda: i32) -> Result<Self, RuntimeError> {
        let stream = context.new_stream().doing(|| "creating a stream".into())?;
        let properties =
            properties(&context, driver_cuda).doing(|| "asking for the GPU's properties".into())?;
        Ok(Device {
            context,
            stream,
            properties,
            hangs: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Its properties.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The stream that everything runs on.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The CUDA context.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Waits for everything on the stream; `doing` names what an error came from.
    ///
    /// # Errors
    /// Whatever a kernel or copy on the stream failed with.
    pub fn synchronize(&self, doing: impl FnOnce() -> String) -> Result<(), RuntimeError> {
        self.stream.synchronize().doing(doing)
    }

    /// Waits for everything on the stream, but not longer than `limit`. After that the device is
    /// given up: its memory stays allocated, because freeing it would wait too.
    ///
    /// # Errors
    /// [`RuntimeError::Hangs`], or whatever a kernel or copy on the stream failed with.
    pub fn wait(&self, limit: Duration, doing: impl Fn() -> String) -> Result<(), RuntimeError> {
        let start = Instant::now();
        self.context.bind_to_thread().doing(&doing)?;
        loop {
            // SAFETY: the stream lives as long as `self`.
            match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
                sys::CUresult::CUDA_ERROR_NOT_READY if start.elapsed() < limit => {
                    std::thread::sleep(Duration::from_micros(20));
                }
                sys::CUresult::CUDA_ERROR_NOT_READY => {
                    self.hangs.store(true, Ordering::Relaxed);
                    return Err(RuntimeError::Hangs {
                        doing: doing(),
                        seconds: limit.as_secs_f64(),
                    });
                }
                done => return done.result().doing(doing),
            }
        }
    }

    /// True once [`Device::wait`] has given up.
    #[must_use]
    pub fn hangs(&self) -> bool {
        self.hangs.load(Ordering::Relaxed)
    }

    /// An event that takes times.
    ///
    /// # Errors
    /// The driver's.
    pub fn event(&self) -> Result<cudarc::driver::CudaEvent, RuntimeError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.context
            .new_event(flags)
            .doing(|| "creating an event".into())
    }
}

/// The CUDA version of the driver, if it has all that is needed.
fn usable_driver() -> Result<i32, RuntimeError> {
    // SAFETY: loads libcuda.so by its system name and unloads it; its constructors have no
    // preconditions.
    if !unsafe { sys::is_culib_present() } {
        return Err(RuntimeError::NoDriver);
    }
    let driver_cuda = driver_version()?;
    if driver_cuda < OLDEST_CUDA {
        let (major, minor) = (driver_cuda / 1000, driver_cuda % 1000 / 10);
        return Err(RuntimeError::OldDriver { major, minor });
    }
    Ok(driver_cuda)
}

fn driver_version() -> Result<i32, RuntimeError> {
    let mut version = 0;
    // SAFETY: writes one integer; needs no initialisation (CUDA driver API, cuDriverGetVersion).
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .doing(|| "asking for the driver's version".into())?;
    Ok(version)
}

fn properties(
    context: &CudaContext,
    driver_cuda: i32,
) -> Result<Properties, cudarc::driver::DriverError> {
    let get = |attribute| {
        context
            .attribute(attribute)
            .map(|v| u32::try_from(v).unwrap_or(0))
    };
    Ok(Properties {
        name: context.name()?,
        compute_capability: context.compute_capability()?,
        sm_count: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: u64::from(get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        max_shared_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        driver_cuda,
    })
}

/// Global memory, freed when dropped. A guard zone on each side shows writes out of bounds.
#[derive(Debug)]
pub struct DeviceMemory {
    device: Device,
    allocation: sys::CUdeviceptr,
    address: sys::CUdeviceptr,
    bytes: u64,
}

/// The size of each guard zone in bytes.
const GUARD_BYTES: u64 = 512;

/// What guard zones hold.
const GUARD: u8 = 0xA5;

impl DeviceMemory {
    /// Allocates `bytes` bytes aligned to `align`, a power of two. `name` is for messages.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(device: &Device, name: &str, bytes: u64, align: u64) -> Result<Self, RuntimeError> {
        let doing = || format!("allocating {bytes} bytes for `{name}`");
        let too_large = || RuntimeError::Cuda {
            doing: doing(),
            error: "too large".into(),
            fatal: false,
        };
        let align = align.max(256);
        let front = GUARD_BYTES.max(align);
        let total = bytes
            .checked_add(front)
            .and_then(|n| n.checked_add(align + GUARD_BYTES));
        let total = total
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(too_large)?;
        device.context.bind_to_thread().doing(doing)?;
        // SAFETY: the allocation is owned by the value made here and freed once, in `drop`.
        let allocation = unsafe { result::malloc_sync(total) }.doing(doing)?;
        let address = (allocation + front).next_multiple_of(align);
        let memory = DeviceMemory {
            device: device.clone(),
            allocation,
            address,
            bytes,
        };
        memory.set(memory.address - GUARD_BYTES, GUARD, GUARD_BYTES)?;
        memory.set(memory.address + bytes, GUARD, GUARD_BYTES)?;
        Ok(memory)
    }

    /// The address of its first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn set(&self, address: u64, byte: u8, bytes: u64) -> Result<(), RuntimeError> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: callers stay inside the allocation, guards included.
        unsafe {
            result::memset_d8_async(
                address,
                byte,
                bytes as usize,
                self.device.stream.cu_stream(),
            )
        }
        .doing(|| "filling memory".into())
    }

    /// Sets every byte, in stream order.
    ///
    /// # Errors
    /// The driver's.
    pub fn fill(&self, byte: u8) -> Result<(), RuntimeError> {
        self.set(self.address, byte, self.bytes)
    }

    /// Copies from host memory of the same size and waits.
    ///
    /// # Errors
    /// A size that differs, or the driver's.
    pub fn upload(&self, bytes: &[u8]) -> Result<(), RuntimeError> {
        if bytes.len() as u64 != self.bytes {
            return Err(RuntimeError::Usage(format!(
                "{} bytes for memory of {}",
                bytes.len(),
                self.bytes
            )));
        }
        if !bytes.is_empty() {
            // SAFETY: the size was checked; the stream is waited for while `bytes` is borrowed.
            unsafe {
                result::memcpy_htod_async(self.address, bytes, self.device.stream.cu_stream())
            }
            .doing(|| "copying to the GPU".into())?;
        }
        self.device.synchronize(|| "copying to the GPU".into())
    }

    /// Waits for the stream and copies to host memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn download(&self) -> Result<Vec<u8>, RuntimeError> {
        self.read(self.address, self.bytes)
    }

    /// As [`DeviceMemory::download`], `bytes` bytes from `offset`.
    ///
    /// # Errors
    /// A part that is not inside, or the driver's.
    pub fn part(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, RuntimeError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let have = self.bytes;
            return Err(RuntimeError::Usage(format!(
                "bytes {offset} to {offset} + {bytes} of memory of {have}"
            )));
        }
        self.read(self.address + offset, bytes)
    }

    /// Copies from other memory of the same size, in stream order.
    ///
    /// # Errors
    /// A size that differs, or the driver's.
    pub fn copy_from(&self, from: &DeviceMemory) -> Result<(), RuntimeError> {
        if from.bytes != self.bytes {
            return Err(RuntimeError::Usage(format!(
                "{} bytes for memory of {}",
                from.bytes, self.bytes
            )));
        }
        let stream = self.device.stream.cu_stream();
        // SAFETY: the sizes were checked; two allocations do not overlap.
        unsafe {
            result::memcpy_dtod_async(self.address, from.address, self.bytes as usize, stream)
        }
        .doing(|| "copying on the GPU".into())
    }

    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, RuntimeError> {
        let mut host = vec![0u8; bytes as usize];
        if !host.is_empty() {
            // SAFETY: callers stay inside the allocation; the stream is waited for below.
            unsafe {
                result::memcpy_dtoh_async(&mut host, address, self.device.stream.cu_stream())
            }
            .doing(|| "copying from the GPU".into())?;
        }
        self.device.synchronize(|| "copying from the GPU".into())?;
        Ok(host)
    }

    /// Waits for the stream and checks that nothing was written just outside.
    ///
    /// # Errors
    /// A guard zone that changed, or the driver's.
    pub fn check_guards(&self, name: &str) -> Result<(), RuntimeError> {
        for (address, side) in [
            (self.address - GUARD_BYTES, "before"),
            (self.address + self.bytes, "behind"),
        ] {
            if self.read(address, GUARD_BYTES)?.iter().any(|b| *b != GUARD) {
                return Err(RuntimeError::OutOfBounds {
                    memory: name.to_owned(),
                    side,
                    bytes: self.bytes,
                });
            }
        }
        Ok(())
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // A lost context refuses this too; there is nobody left to tell.
        if !self.device.hangs() && self.device.context.bind_to_thread().is_ok() {
            // SAFETY: allocated in `new`, freed nowhere else; cuMemFree waits for work that uses it.
            let _ = unsafe { result::free_sync(self.allocation) };
        }
    }
}
