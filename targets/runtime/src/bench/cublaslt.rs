//! A GEMM through cuBLASLt (cuBLAS documentation, "Using the cuBLASLt API").

use std::ffi::c_void;

use axe_package::DType;
use cudarc::cublaslt::{result as lt, sys};

use super::problem::{Gemm, Operands, Scaling};
use crate::device::{Device, DeviceMemory};
use crate::error::RuntimeError;

/// The workspace that algorithms may use, in bytes: what the documentation recommends for Hopper
/// (32 MiB), doubled so that no algorithm is left out for it.
const WORKSPACE_BYTES: u64 = 64 << 20;

/// cuBLASLt on a device.
#[derive(Debug)]
pub struct CublasLt {
    device: Device,
    handle: sys::cublasLtHandle_t,
    workspace: DeviceMemory,
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // Destroying the handle waits for the device; nothing comes of waiting for one that hangs.
        if !self.device.hangs() {
            // SAFETY: created in `new`, destroyed nowhere else.
            let _ = unsafe { lt::destroy_handle(self.handle) };
        }
    }
}

/// A planned GEMM: descriptors and the algorithms that the library proposes, best first.
#[derive(Debug)]
pub struct Planned<'a> {
    lt: &'a CublasLt,
    desc: sys::cublasLtMatmulDesc_t,
    layouts: Vec<sys::cublasLtMatrixLayout_t>,
    algorithms: Vec<sys::cublasLtMatmulHeuristicResult_t>,
}

impl Drop for Planned<'_> {
    fn drop(&mut self) {
        for layout in &self.layouts {
            // SAFETY: created in `plan`, destroyed nowhere else.
            let _ = unsafe { lt::destroy_matrix_layout(*layout) };
        }
        // SAFETY: as above.
        let _ = unsafe { lt::destroy_matmul_desc(self.desc) };
    }
}

fn failed(doing: &str) -> impl Fn(lt::CublasError) -> RuntimeError {
    move |e| RuntimeError::CublasLt(format!("{doing}: {:?}", e.0))
}

fn data_type(dtype: DType) -> Result<sys::cudaDataType, RuntimeError> {
    use sys::cudaDataType_t as T;
    match dtype {
        DType::F16 => Ok(T::CUDA_R_16F),
        DType::BF16 => Ok(T::CUDA_R_16BF),
        DType::F32 => Ok(T::CUDA_R_32F),
        DType::F8E4M3 => Ok(T::CUDA_R_8F_E4M3),
        DType::F8E5M2 => Ok(T::CUDA_R_8F_E5M2),
        other => Err(RuntimeError::CublasLt(format!(
            "it has no type for {other}"
        ))),
    }
}

impl CublasLt {
    /// Loads the library and creates a handle.
    ///
    /// # Errors
    /// No library in the loader's path, or its refusal.
    pub fn new(device: &Device) -> Result<Self, RuntimeError> {
        // SAFETY: loads libcublasLt.so by its system name; its constructors have no preconditions.
        if !unsafe { sys::is_culib_present() } {
            let hint = "libcublasLt.so cannot be loaded; add its folder to LD_LIBRARY_PATH";
            return Err(RuntimeError::CublasLt(hint.into()));
        }
        let workspace = DeviceMemory::new(device, "cuBLASLt's workspace", WORKSPACE_BYTES, 256)?;
        let handle = lt::create_handle().map_err(failed("creating a handle"))?;
        Ok(CublasLt {
            device: device.clone(),
            handle,
            workspace,
        })
    }

    /// The library's version, for example 130002.
    #[must_use]
    pub fn version(&self) -> usize {
        // SAFETY: takes nothing and returns a number.
        unsafe { sys::cublasLtGetVersion() }
    }

    /// Plans a GEMM, asking for up to `proposals` algorithms. Sums of 8-bit products, but for block
    /// scales, stay in the tensor cores' shorter accumulators (`FAST_ACCUM`) unless `precise`.
    ///
    /// # Errors
    /// A GEMM that the library does not have.
    pub fn plan(
        &self,
        gemm: &Gemm,
        operands: &Operands,
        proposals: usize,
        precise: bool,
    ) -> Result<Planned<'_>, RuntimeError> {
        let scale_type = sys::cudaDataType_t::CUDA_R_32F;
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let desc =
            lt::create_matmul_desc(compute, scale_type).map_err(failed("describing the GEMM"))?;
        let mut planned = Planned {
            lt: self,
            desc,
            layouts: Vec::new(),
            algorithms: Vec::new(),
        };
        // The library is column-major: C^T = op(W) * A^T, where row-major W[n, k] is its k x n.
        let op = if gemm.transposed { 1i32 } else { 0 };
        planned.set(
            sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
            &op,
        )?;
        planned.set_scales(gemm.scaling, operands)?;
        if matches!(gemm.scaling, Scaling::Tensor | Scaling::Row) {
            let which = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_FAST_ACCUM;
            planned.set(which, &i8::from(!precise))?;
        }
        let (m, n, k) = (gemm.m, gemm.n, gemm.k);
        let (dtype, out) = (data_type(gemm.dtype)?, data_type(gemm.out())?);
        let w = if gemm.transposed { (k, n) } else { (n, k) };
        for (ty, rows, columns) in [(dtype, w.0, w.1), (dtype, k, m), (out, n, m)] {
            let layout = lt::create_matrix_layout(ty, rows, columns, rows as i64);
            planned
                .layouts
                .push(layout.map_err(failed("describing a matrix"))?);
        }
        planned.propose(proposals)?;
        Ok(planned)
    }
}

impl Planned<'_> {
    fn set<T>(
        &self,
        which: sys::cublasLtMatmulDescAttributes_t,
        value: &T,
    ) -> Result<(), RuntimeError> {
        let pointer = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: the descriptor lives; the attribute's type is what callers pass (cublasLt.h).
        unsafe { lt::set_matmul_desc_attribute(self.desc, which, pointer, size_of::<T>()) }
            .map_err(failed(&format!("setting {which:?}")))
    }

    /// W is the library's A, so that its scales go there.
    fn set_scales(&self, scaling: Scaling, operands: &Operands) -> Result<(), RuntimeError> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        use sys::cublasLtMatmulMatrixScale_t as S;
        let (of_w, of_a) = match scaling {
            Scaling::None => return Ok(()),
            Scaling::Tensor => (
                S::CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                S::CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
            ),
            Scaling::Row => (
                S::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
                S::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
            ),
            Scaling::Block => (
                S::CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                S::CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
            ),
        };
        if operands.scales.is_none() {
            return Err(RuntimeError::CublasLt("8-bit operands need scales".into()));
        }
        self.set(D::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &(of_w as i32))?;
        self.set(D::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &(of_a as i32))?;
        self.point_to_scales(operands)
    }

    fn point_to_scales(&self, operands: &Operands) -> Result<(), RuntimeError> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        let Some((of_a, of_w)) = operands.scales else {
            return Ok(());
        };
        self.set(D::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &of_w)?;
        self.set(D::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &of_a)
    }

    fn propose(&mut self, proposals: usize) -> Result<(), RuntimeError> {
        let [a, b, c] = self.layouts.as_slice() else {
            return Err(RuntimeError::CublasLt("three matrices are needed".into()));
        };
        let preference = lt::create_matmul_pref().map_err(failed("creating a preference"))?;
        let which =
            sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let bytes = WORKSPACE_BYTES as usize;
        // SAFETY: all zeros is a valid value of this plain C structure.
        let blank: sys::cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        let mut found = vec![blank; proposals.max(1)];
        let mut count = 0;
        // SAFETY: all handles live; the array has as many places as are asked for.
        let status = unsafe {
            let set = lt::set_matmul_pref_attribute(
                preference,
                which,
                (&raw const bytes).cast(),
                size_of::<usize>(),
            );
            let status = set.and_then(|()| {
                sys::cublasLtMatmulAlgoGetHeuristic(
                    self.lt.handle,
                    self.desc,
                    *a,
                    *b,
                    *c,
                    *c,
                    preference,
                    found.len() as i32,
                    found.as_mut_ptr(),
                    &raw mut count,
                )
                .result()
            });
            let _ = lt::destroy_matmul_pref(preference);
            status
        };
        status.map_err(failed("asking for an algorithm"))?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|f| f.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        if found.is_empty() {
            return Err(RuntimeError::CublasLt(
                "it has no algorithm for this GEMM".into(),
            ));
        }
        self.algorithms = found;
        Ok(())
    }

    /// The number of algorithms.
    #[must_use]
    pub fn algorithms(&self) -> usize {
        self.algorithms.len()
    }

    /// Puts the GEMM on the stream with algorithm `index`.
    ///
    /// # Errors
    /// No such algorithm, or the library's refusal.
    ///
    /// # Safety
    /// The operands must be device memory of the sizes that the GEMM was planned with.
    pub unsafe fn launch(&self, operands: &Operands, index: usize) -> Result<(), RuntimeError> {
        let ([a, b, c], Some(algorithm)) = (self.layouts.as_slice(), self.algorithms.get(index))
        else {
            return Err(RuntimeError::CublasLt(format!(
                "there is no algorithm {index}"
            )));
        };
        self.point_to_scales(operands)?;
        let (alpha, beta) = (1f32, 0f32);
        // SAFETY: the descriptors live, the caller vouches for the operands, and scalars are read
        // before the call returns (host pointer mode).
        unsafe {
            lt::matmul(
                self.lt.handle,
                self.desc,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                operands.w as *const c_void,
                *a,
                operands.a as *const c_void,
                *b,
                operands.c as *const c_void,
                *c,
                operands.c as *mut c_void,
                *c,
                &raw const algorithm.algo,
                self.lt.workspace.address() as *mut c_void,
                WORKSPACE_BYTES as usize,
                self.lt.device.stream().cu_stream().cast(),
            )
        }
        .map_err(failed("multiplying"))
    }
}
