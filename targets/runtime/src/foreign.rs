//! Contexts and streams of a caller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, result, sys};

use crate::error::{Doing, RuntimeError};

/// A stream of the caller's: the handle that `CUstream` and `cudaStream_t` are. 0 is the default stream of the context,
/// 1 the legacy one, 2 the one of the thread (CUDA driver API, "Stream synchronization behavior").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub usize);

impl Stream {
    pub(crate) fn raw(self) -> sys::CUstream {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// The number of the capture that the stream is in; `None` when it is in none.
    ///
    /// # Errors
    /// A handle that is no stream, a capture that is broken.
    ///
    /// # Safety
    /// It is a stream of the current context.
    pub(crate) unsafe fn capture(self) -> Result<Option<u64>, RuntimeError> {
        use sys::CUstreamCaptureStatus_enum as Status;
        let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: by this function's contract.
        unsafe { sys::cuStreamIsCapturing(self.raw(), &raw mut status) }
            .result()
            .doing(|| "asking whether the stream is captured".into())?;
        match status {
            Status::CU_STREAM_CAPTURE_STATUS_NONE => Ok(None),
            Status::CU_STREAM_CAPTURE_STATUS_ACTIVE => capture_number(self).map(Some),
            _ => Err(RuntimeError::Cuda {
                doing: "launching on a stream that is captured".into(),
                error: "the capture is invalidated".into(),
                fatal: false,
            }),
        }
    }
}

fn capture_number(stream: Stream) -> Result<u64, RuntimeError> {
    let (mut status, mut number) = (
        sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE,
        0,
    );
    // SAFETY: the stream was just asked for its status; the pointers that may be null are (CUDA driver API,
    // cuStreamGetCaptureInfo_v3).
    unsafe {
        sys::cuStreamGetCaptureInfo_v3(
            stream.raw(),
            &raw mut status,
            &raw mut number,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    }
    .result()
    .doing(|| "asking for the stream's capture".into())?;
    Ok(number)
}

/// While it lives, this thread may allocate although some stream is captured in the mode that forbids it to everybody
/// (CUDA driver API, cuThreadExchangeStreamCaptureMode).
pub(crate) struct Relaxed(sys::CUstreamCaptureMode);

impl Relaxed {
    pub(crate) fn new() -> Result<Self, RuntimeError> {
        let mut mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: exchanges this thread's mode with `mode`.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }
            .result()
            .doing(|| "relaxing the capture mode".into())?;
        Ok(Self(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: puts back what was there; a context that is lost has no captures.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.0) };
    }
}

/// While it lives, a context is current on this thread; then the caller's is again.
pub(crate) struct Current(bool);

impl Current {
    pub(crate) fn new(context: &CudaContext) -> Result<Self, RuntimeError> {
        let current = result::ctx::get_current().doing(|| "asking for the context".into())?;
        if current == Some(context.cu_ctx()) {
            return Ok(Self(false));
        }
        // SAFETY: the context is live.
        unsafe { sys::cuCtxPushCurrent_v2(context.cu_ctx()) }
            .result()
            .doing(|| "making the context current".into())?;
        Ok(Self(true))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.0 {
            let mut popped = std::ptr::null_mut();
            // SAFETY: pushed in `new`, on this thread: the value is not `Send`.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        }
    }
}

/// Puts back, when dropped, the context that was current on this thread.
pub(crate) struct Keep(sys::CUcontext);

impl Keep {
    pub(crate) fn new() -> Result<Self, RuntimeError> {
        let current = result::ctx::get_current().doing(|| "asking for the context".into())?;
        Ok(Self(current.unwrap_or(std::ptr::null_mut())))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // SAFETY: it was current, or is null, which leaves none current.
        let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
    }
}

/// The contexts of callers that are not a device's primary one, by handle. They are kept: dropping one would destroy what
/// is the caller's.
static FOREIGN: Mutex<BTreeMap<usize, Arc<CudaContext>>> = Mutex::new(BTreeMap::new());

/// The context that is current on this thread.
///
/// # Safety
/// As [`crate::Device::current`].
pub(crate) unsafe fn current_context() -> Result<Arc<CudaContext>, RuntimeError> {
    result::init().doing(|| "starting the driver".into())?;
    let current = result::ctx::get_current().doing(|| "asking for the context".into())?;
    let current = current.ok_or(RuntimeError::NoContext)?;
    let mut device = 0;
    // SAFETY: a context is current.
    unsafe { sys::cuCtxGetDevice(&raw mut device) }
        .result()
        .doing(|| "asking for the context's device".into())?;
    let ordinal = usize::try_from(device).map_err(|_| RuntimeError::NoContext)?;
    let opening = || format!("opening the context of GPU {ordinal}");
    let keep = Keep::new()?;
    let primary = CudaContext::new(ordinal).doing(opening)?;
    drop(keep);
    if primary.cu_ctx() == current {
        return Ok(primary);
    }
    let mut known = FOREIGN.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = current.expose_provenance();
    if let Some(context) = known.get(&handle) {
        return Ok(context.clone());
    }
    // SAFETY: it is current, thus live; it is never dropped, so that it stays the caller's.
    let context =
        unsafe { CudaContext::from_raw_context(ordinal, device, current) }.doing(opening)?;
    known.insert(handle, context.clone());
    Ok(context)
}
