//! Arguments and results in the form that MLIR's C interface has them.
//!
//! A memref is a structure of words: allocated pointer, aligned pointer, offset in elements, sizes, strides in
//! elements (MLIR, "Target/LLVMIR", "Ranked MemRef types").

use crate::signature::ValueType;
use axe_package::{DType, Tensor};

/// Words of a descriptor in front of sizes and strides.
const HEAD: usize = 3;

/// Memory of one argument, which machine code may write.
pub(crate) struct Argument {
    /// The elements, in words so that they are aligned; or the scalar.
    elements: Vec<u64>,
    /// The descriptor; empty for a scalar.
    words: Vec<u64>,
    /// What the packed call points to.
    pointer: *mut u64,
}

impl Argument {
    /// An argument with a copy of a tensor's elements.
    pub(crate) fn new(r#type: &ValueType, tensor: &Tensor) -> Self {
        let mut elements = vec![0_u64; tensor.bytes().len().div_ceil(8).max(1)];
        for (word, bytes) in elements.iter_mut().zip(tensor.bytes().chunks(8)) {
            let mut whole = [0; 8];
            for (to, from) in whole.iter_mut().zip(bytes) {
                // An i1 in memory is 0 or 1.
                *to = match r#type.dtype {
                    DType::Bool => u8::from(*from != 0),
                    _ => *from,
                };
            }
            *word = u64::from_ne_bytes(whole);
        }
        let mut argument = Self {
            elements,
            words: Vec::new(),
            pointer: std::ptr::null_mut(),
        };
        if !r#type.scalar {
            let start = argument.elements.as_mut_ptr() as u64;
            argument.words = vec![start, start, 0];
            argument.words.extend(tensor.shape());
            let mut strides = vec![1_u64; tensor.shape().len()];
            for at in (1..strides.len()).rev() {
                strides[at - 1] = strides[at].saturating_mul(tensor.shape()[at]);
            }
            argument.words.extend(strides);
        }
        argument
    }

    /// The pointer for a packed call: to the scalar, or to the pointer to the descriptor.
    pub(crate) fn packed(&mut self) -> *mut std::ffi::c_void {
        if self.words.is_empty() {
            return self.elements.as_mut_ptr().cast();
        }
        self.pointer = self.words.as_mut_ptr();
        (&raw mut self.pointer).cast()
    }
}

/// The structure that a function fills with its results.
pub(crate) struct Results {
    words: Vec<u64>,
    pointer: *mut u64,
    /// The byte where each result starts.
    starts: Vec<usize>,
}

impl Results {
    /// Room for results of these types.
    pub(crate) fn new(types: &[ValueType]) -> Self {
        let mut at = 0_usize;
        let mut starts = Vec::new();
        for r#type in types {
            let (size, align) = match r#type.scalar {
                true => (r#type.dtype.bytes(), r#type.dtype.bytes()),
                false => ((HEAD + 2 * r#type.shape.len()) * 8, 8),
            };
            at = at.next_multiple_of(align);
            starts.push(at);
            at += size;
        }
        Self {
            words: vec![0; at.div_ceil(8).max(1)],
            pointer: std::ptr::null_mut(),
            starts,
        }
    }

    /// Whether a function gives them through a pointer, its first argument: not one scalar, and not nothing.
    pub(crate) fn by_pointer(types: &[ValueType]) -> bool {
        match types {
            [] => false,
            [one] => !one.scalar,
            _ => true,
        }
    }

    /// The pointer for a packed call: to the pointer to the structure, or to the scalar itself.
    pub(crate) fn packed(&mut self, by_pointer: bool) -> *mut std::ffi::c_void {
        self.pointer = self.words.as_mut_ptr();
        match by_pointer {
            true => (&raw mut self.pointer).cast(),
            false => self.pointer.cast(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    /// The scalar at a position as little-endian bytes.
    pub(crate) fn scalar(&self, index: usize, dtype: DType) -> Option<Vec<u8>> {
        let start = *self.starts.get(index)?;
        let bytes = self.bytes();
        Some(bytes.get(start..start + dtype.bytes())?.to_vec())
    }

    /// The memref at a position.
    pub(crate) fn memref(&self, index: usize, rank: usize) -> Option<Memref> {
        let start = *self.starts.get(index)? / 8;
        let words = self.words.get(start..start + HEAD + 2 * rank)?;
        let signed = |words: &[u64]| words.iter().map(|word| *word as i64).collect::<Vec<_>>();
        Some(Memref {
            allocated: *words.first()? as usize,
            aligned: *words.get(1)? as usize,
            offset: *words.get(2)? as i64,
            sizes: signed(words.get(HEAD..HEAD + rank)?),
            strides: signed(words.get(HEAD + rank..)?),
        })
    }
}

/// A memref that a function gave.
pub(crate) struct Memref {
    /// What `free` takes.
    pub(crate) allocated: usize,
    aligned: usize,
    offset: i64,
    /// Its extents.
    pub(crate) sizes: Vec<i64>,
    strides: Vec<i64>,
}

impl Memref {
    /// The elements in row-major order; `None` when the sizes are no shape of memory.
    ///
    /// # Safety
    /// The descriptor is one that machine code made for elements of this type, and its memory is not freed.
    pub(crate) unsafe fn read(&self, dtype: DType) -> Option<Tensor> {
        let shape: Option<Vec<u64>> = self
            .sizes
            .iter()
            .map(|size| u64::try_from(*size).ok())
            .collect();
        let shape = shape?;
        let size = dtype.bytes();
        let total = axe_package::dense_bytes(dtype, &shape)?;
        let mut bytes = Vec::with_capacity(total);
        let mut at = vec![0_i64; shape.len()];
        for _ in 0..total / size {
            let place: i64 = at
                .iter()
                .zip(&self.strides)
                .map(|(index, stride)| index * stride)
                .sum();
            let address = (self.aligned as i64) + (self.offset + place) * size as i64;
            // SAFETY: promised by the caller: indices are inside the memref's extents.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(address as usize as *const u8, size)
            });
            for (index, extent) in at.iter_mut().zip(&self.sizes).rev() {
                *index += 1;
                if *index < *extent {
                    break;
                }
                *index = 0;
            }
        }
        Tensor::new(dtype, shape, bytes).ok()
    }
}
