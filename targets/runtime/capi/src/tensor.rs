//! Tensors as DLPack describes them (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use crate::error::Failure;
use crate::slice;
use axe_package::DType;
use std::ffi::c_void;

/// `AxertTensor`, which is DLPack's `DLTensor`.
#[repr(C)]
pub struct AxertTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `kDLCUDA` and `kDLCUDAManaged`.
const CUDA: [i32; 2] = [2, 13];

/// DLPack's code and bits of a type: `DLDataTypeCode`.
fn dl_type(dtype: DType) -> (u8, u8) {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::Bool => 6,
        DType::F8E4M3 => 10,
        DType::F8E5M2 => 12,
    };
    (code, 8 * dtype.bytes() as u8)
}

/// Extents as the runtime takes them.
pub(crate) fn extents(of: &[i64]) -> Result<Vec<u64>, Failure> {
    let unsigned = |extent: &i64| {
        u64::try_from(*extent).map_err(|_| Failure::Argument(format!("an extent is {extent}")))
    };
    of.iter().map(unsigned).collect()
}

/// Address and shape of a tensor that is `name` and has to have this type.
///
/// # Safety
/// The arrays are as long as the tensor's rank.
pub(crate) unsafe fn read(
    tensor: &AxertTensor,
    name: &str,
    dtype: DType,
    device: usize,
) -> Result<(u64, Vec<u64>), Failure> {
    let wrong = |problem: String| Failure::Argument(format!("`{name}`: {problem}"));
    let on_device =
        CUDA.contains(&tensor.device_type) && usize::try_from(tensor.device_id) == Ok(device);
    if !on_device {
        let (kind, id) = (tensor.device_type, tensor.device_id);
        return Err(wrong(format!(
            "expected memory of GPU {device} (DLPack device 2), got device {kind}, number {id}"
        )));
    }
    let got = (tensor.type_code, tensor.type_bits);
    if got != dl_type(dtype) || tensor.type_lanes != 1 {
        let lanes = tensor.type_lanes;
        return Err(wrong(format!(
            "expected {dtype} (DLPack's {:?}), got DLPack's {got:?}, {lanes} lanes",
            dl_type(dtype)
        )));
    }
    let rank =
        usize::try_from(tensor.ndim).map_err(|_| wrong(format!("a rank of {}", tensor.ndim)))?;
    // SAFETY: by this function's contract.
    let shape = extents(unsafe { slice(tensor.shape, rank, "extents") }?)?;
    if !tensor.strides.is_null() {
        // SAFETY: as above.
        let strides = unsafe { slice(tensor.strides, rank, "strides") }?;
        if !is_dense(&shape, strides) {
            return Err(wrong(format!(
                "expected a dense row-major tensor, got strides {strides:?}"
            )));
        }
    }
    let address = (tensor.data.expose_provenance() as u64).checked_add(tensor.byte_offset);
    let address = address.ok_or_else(|| wrong("there is no memory at its offset".into()))?;
    Ok((address, shape))
}

/// Row-major without gaps; dimensions of one element have any stride.
fn is_dense(shape: &[u64], strides: &[i64]) -> bool {
    let mut expected = Some(1_u64);
    shape.contains(&0)
        || shape.iter().zip(strides).rev().all(|(extent, stride)| {
            let fits = *extent == 1 || u64::try_from(*stride).ok() == expected;
            expected = expected.and_then(|product| product.checked_mul(*extent));
            fits
        })
}
