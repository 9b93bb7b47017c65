//! The arrays of a bare launch and the bytes of its arguments.

use super::{BareError, Fill, Pointer, Value};
use crate::device::{Device, KernelParam, Module};
use crate::units::swizzle::Swizzle;
use crate::units::tensor_map::{DataType, TensorMap};
use axe_package::{DType, Tensor, npy};
use std::collections::BTreeMap;

/// An array on the device.
#[derive(Debug)]
struct Placed {
    addr: u64,
    dtype: DType,
    shape: Vec<u64>,
    bytes: usize,
}

/// All arrays, by name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    arrays: BTreeMap<String, Placed>,
}

fn fail(name: &str, message: impl Into<String>) -> BareError {
    BareError::Arg(name.into(), message.into())
}

/// The bytes of a number of a type.
fn scalar(dtype: DType, value: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    dtype.push_f64(value, &mut bytes);
    bytes
}

fn integer(name: &str, value: i128, bytes: u64) -> Result<Vec<u8>, BareError> {
    let bits = 8 * bytes.min(16) as u32;
    let fits = bits >= 127 || (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
    if !fits {
        return Err(fail(
            name,
            format!("{value} does not fit into {bytes} bytes"),
        ));
    }
    Ok(value.to_le_bytes()[..bytes.min(16) as usize].to_vec())
}

impl Memory {
    /// Makes the array of a value that is one, filled.
    pub(super) fn allocate(
        &mut self,
        device: &mut Device,
        name: &str,
        value: &Value,
    ) -> Result<(), BareError> {
        let tensor = match value {
            Value::File(path) => Some(npy::read(path)?),
            Value::Array { dtype, shape, fill } => {
                let bytes = axe_package::dense_bytes(*dtype, shape);
                let bytes = bytes.ok_or_else(|| fail(name, "the array is too large"))?;
                if *fill == Fill::Unwritten {
                    return self.place(device, name, (*dtype, shape, bytes)).map(drop);
                }
                Some(filled(name, *dtype, shape, fill)?)
            }
            _ => None,
        };
        let Some(tensor) = tensor else { return Ok(()) };
        let about = (tensor.dtype(), tensor.shape(), tensor.bytes().len());
        let addr = self.place(device, name, about)?;
        (device.copy_in(addr, tensor.bytes())).map_err(|f| fail(name, f.to_string()))
    }

    fn place(
        &mut self,
        device: &mut Device,
        name: &str,
        (dtype, shape, bytes): (DType, &[u64], usize),
    ) -> Result<u64, BareError> {
        let addr = device.alloc(name, bytes.max(1) as u64);
        let addr = addr.map_err(|f| fail(name, f.to_string()))?;
        let placed = Placed {
            addr,
            dtype,
            shape: shape.to_vec(),
            bytes,
        };
        match self.arrays.insert(name.into(), placed) {
            None => Ok(addr),
            Some(_) => Err(fail(name, "two arrays have this name")),
        }
    }

    fn find(&self, name: &str, array: &str) -> Result<&Placed, BareError> {
        let all = || self.arrays.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = self.arrays.get(array);
        found.ok_or_else(|| fail(name, format!("no array `{array}`; there are: {}", all())))
    }

    fn address(&self, name: &str, pointer: &Pointer) -> Result<u64, BareError> {
        Ok(self.find(name, &pointer.array)?.addr + pointer.offset)
    }

    /// The bytes of an argument for a parameter.
    pub(super) fn argument(
        &self,
        device: &mut Device,
        name: &str,
        value: &Value,
        param: &KernelParam,
    ) -> Result<Vec<u8>, BareError> {
        let bytes = match value {
            Value::Number(value, whole) => number(name, (*value, *whole), param)?,
            other => self.bytes(device, name, other)?.0,
        };
        if bytes.len() as u64 == param.bytes {
            return Ok(bytes);
        }
        // A structure may end in padding.
        if matches!(value, Value::Struct(_)) && (bytes.len() as u64) < param.bytes {
            let mut padded = bytes;
            padded.resize(param.bytes as usize, 0);
            return Ok(padded);
        }
        let (got, want) = (bytes.len(), param.bytes);
        let message = format!(
            "it has {got} bytes, parameter `{}` .{} has {want}",
            param.name, param.ty
        );
        Err(fail(name, message))
    }

    /// Writes a value to a `.const` or `.global` variable of the module; an array's contents, not its address.
    pub(super) fn variable(
        &self,
        device: &mut Device,
        module: &Module,
        name: &str,
        value: &Value,
    ) -> Result<(), BareError> {
        let mut all = module.variables();
        let fits = |v: &&&str| **v == name || crate::names::short(v) == name;
        let Some(found) = all.iter().find(fits).copied() else {
            all.sort_unstable();
            let names: Vec<String> = all.into_iter().map(crate::names::short).collect();
            let message = format!("no such variable; there are: {}", names.join(", "));
            return Err(fail(name, message));
        };
        let Some((addr, size)) = device.variable(module, found)? else {
            return Err(fail(name, "the module gives it no memory"));
        };
        let bytes = match value {
            Value::File(path) => npy::read(path)?.bytes().to_vec(),
            Value::Array { dtype, shape, fill } => {
                axe_package::dense_bytes(*dtype, shape)
                    .ok_or_else(|| fail(name, "the array is too large"))?;
                filled(name, *dtype, shape, fill)?.bytes().to_vec()
            }
            Value::Number(value, whole) => {
                let param = KernelParam {
                    name: name.into(),
                    ty: format!("b{}", 8 * size),
                    align: size,
                    offset: 0,
                    bytes: size,
                };
                number(name, (*value, *whole), &param)?
            }
            other => self.bytes(device, name, other)?.0,
        };
        if bytes.len() as u64 > size {
            let message = format!("{} bytes, the variable has {size}", bytes.len());
            return Err(fail(name, message));
        }
        (device.copy_in(addr, &bytes)).map_err(|f| fail(name, f.to_string()))
    }

    /// The bytes of a value, and their alignment.
    fn bytes(
        &self,
        device: &mut Device,
        name: &str,
        value: &Value,
    ) -> Result<(Vec<u8>, usize), BareError> {
        let natural = |bytes: Vec<u8>| {
            let align = bytes.len().max(1);
            Ok((bytes, align))
        };
        match value {
            Value::File(_) | Value::Array { .. } => {
                natural(self.find(name, name)?.addr.to_le_bytes().to_vec())
            }
            Value::Scalar(dtype, value) => natural(scalar(*dtype, *value)),
            Value::Integer(dtype, value) => natural(integer(name, *value, dtype.bytes() as u64)?),
            Value::Number(..) => Err(fail(name, "a member needs its type, such as i32:1")),
            Value::Pointer(pointer) => natural(self.address(name, pointer)?.to_le_bytes().to_vec()),
            Value::Table(pointers) => {
                natural(self.table(device, name, pointers)?.to_le_bytes().to_vec())
            }
            Value::Struct(members) => {
                let (mut out, mut most) = (Vec::<u8>::new(), 1);
                for member in members {
                    let (bytes, align) = self.bytes(device, name, member)?;
                    out.resize(out.len().next_multiple_of(align), 0);
                    out.extend(bytes);
                    most = most.max(align);
                }
                out.resize(out.len().next_multiple_of(most), 0);
                Ok((out, most))
            }
            Value::Bytes(bytes) => Ok((bytes.clone(), 1)),
            Value::Raw(path) => {
                let bytes = std::fs::read(path).map_err(|error| BareError::File {
                    path: path.clone(),
                    error,
                })?;
                Ok((bytes, 1))
            }
            Value::Map {
                array,
                extents,
                swizzle,
            } => Ok((self.map(name, array, extents, *swizzle)?, 64)),
        }
    }

    /// Writes a table of addresses to memory of its own.
    fn table(&self, device: &mut Device, name: &str, all: &[Pointer]) -> Result<u64, BareError> {
        let mut bytes = Vec::new();
        for pointer in all {
            bytes.extend(self.address(name, pointer)?.to_le_bytes());
        }
        let written = device
            .alloc(name, bytes.len().max(1) as u64)
            .and_then(|at| {
                device.copy_in(at, &bytes)?;
                Ok(at)
            });
        written.map_err(|f| fail(name, f.to_string()))
    }

    /// A tensor map of a whole array in row-major order.
    fn map(
        &self,
        name: &str,
        array: &str,
        extents: &[u32],
        swizzle: u32,
    ) -> Result<Vec<u8>, BareError> {
        let placed = self.find(name, array)?;
        let rank = placed.shape.len();
        if extents.len() != rank || !(1..=5).contains(&rank) {
            let message = format!(
                "a box of {} dimensions of an array of {rank}",
                extents.len()
            );
            return Err(fail(name, message));
        }
        let data_type = data_type(placed.dtype);
        let data_type =
            data_type.ok_or_else(|| fail(name, "no tensor map has this element type"))?;
        let mut map = TensorMap {
            data_type,
            rank,
            address: placed.addr,
            dims: [1; 5],
            strides: [16; 4],
            box_dims: [1; 5],
            element_strides: [1; 5],
            swizzle: match swizzle {
                32 => Swizzle::B32,
                64 => Swizzle::B64,
                128 => Swizzle::B128,
                _ => Swizzle::None,
            },
            nan_fill: false,
            im2col: None,
        };
        let mut stride = data_type.bytes();
        for (i, (&extent, &size)) in placed.shape.iter().zip(extents).rev().enumerate() {
            (map.dims[i], map.box_dims[i]) = (extent, size);
            stride = stride.saturating_mul(extent);
            if i + 1 < rank {
                map.strides[i] = stride;
            }
        }
        let bytes = map.encode().map_err(|e| fail(name, e.to_string()))?;
        Ok(bytes.to_vec())
    }

    /// Every array as it is now.
    pub(super) fn read_back(&self, device: &Device) -> Result<BTreeMap<String, Tensor>, BareError> {
        let read = |(name, placed): (&String, &Placed)| {
            let mut bytes = vec![0; placed.bytes];
            if !bytes.is_empty() {
                (device.copy_out(placed.addr, &mut bytes))
                    .map_err(|f| fail(name, f.to_string()))?;
            }
            let tensor = Tensor::new(placed.dtype, placed.shape.clone(), bytes);
            let tensor = tensor.map_err(|e| BareError::Tensor(name.clone(), e))?;
            Ok((name.clone(), tensor))
        };
        self.arrays.iter().map(read).collect()
    }
}

/// A number without a type, of the parameter's.
fn number(
    name: &str,
    (value, whole): (f64, Option<i128>),
    param: &KernelParam,
) -> Result<Vec<u8>, BareError> {
    let ty = param.ty.as_str();
    let dtype = match (ty, param.bytes) {
        ("f16", _) => Some(DType::F16),
        ("bf16", _) => Some(DType::BF16),
        ("f32", _) => Some(DType::F32),
        ("f64", _) => Some(DType::F64),
        // Types without a sign may hold floats.
        (_, 4) if whole.is_none() => Some(DType::F32),
        (_, 8) if whole.is_none() => Some(DType::F64),
        _ => None,
    };
    match (dtype, whole) {
        (Some(dtype), _) => Ok(scalar(dtype, value)),
        (None, Some(whole)) => integer(name, whole, param.bytes),
        (None, None) => Err(fail(name, format!("{value} for a parameter of type .{ty}"))),
    }
}

fn filled(name: &str, dtype: DType, shape: &[u64], fill: &Fill) -> Result<Tensor, BareError> {
    let count = shape.iter().product::<u64>() as usize;
    let tensor = match fill {
        Fill::Random(random) => Tensor::random(dtype, shape.to_vec(), *random),
        Fill::Arange => Tensor::from_f64(dtype, shape.to_vec(), (0..count).map(|i| i as f64)),
        Fill::Constant(value) => {
            Tensor::from_f64(dtype, shape.to_vec(), std::iter::repeat_n(*value, count))
        }
        Fill::Unwritten => Tensor::filled(dtype, shape.to_vec(), 0),
    };
    tensor.map_err(|e| BareError::Tensor(name.into(), e))
}

fn data_type(dtype: DType) -> Option<DataType> {
    Some(match dtype {
        DType::F16 => DataType::F16,
        DType::BF16 => DataType::Bf16,
        DType::F32 => DataType::F32,
        DType::F64 => DataType::F64,
        DType::I32 => DataType::S32,
        DType::U32 => DataType::U32,
        DType::I64 => DataType::S64,
        DType::U64 => DataType::U64,
        DType::U16 | DType::I16 => DataType::U16,
        other if other.bytes() == 1 => DataType::U8,
        _ => return None,
    })
}
