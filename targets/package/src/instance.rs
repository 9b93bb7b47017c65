//! From a manifest and the values of its symbols to concrete numbers: the sizes of memory, the grids
//! and arguments of each launch. What the runtime and the simulator execute.

use thiserror::Error;

use crate::dtype::DType;
use crate::expr::{Env, Expr, ExprError};
use crate::manifest::{
    Arg, BufferInit, DEFAULT_ALIGNMENT, Kernel, Launch, Manifest, MemRef, Param, ParamKind,
    ScalarType, Step,
};
use crate::tensor::dense_bytes;
use crate::tensor_map::TensorMapType;

/// Why a manifest has no concrete form for some values of its symbols.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct InstanceError {
    /// The step, kernel and parameter, or the piece of memory.
    pub at: String,
    /// What is wrong.
    pub problem: String,
}

/// What a piece of memory is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The caller's input.
    Input,
    /// An output.
    Output,
    /// The package's own.
    Buffer(BufferInit),
}

/// A piece of memory of known size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// What it is for.
    pub role: Role,
}

/// A place in memory: index into [`Instance::memory`] and offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Instance::memory`].
    pub memory: usize,
    /// Offset in bytes.
    pub offset: u64,
}

/// A step with all numbers known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConcreteStep {
    /// Launch a kernel.
    Launch {
        /// Index into [`Manifest::kernels`].
        kernel: usize,
        /// Blocks in x, y, z, all at least 1 and multiples of the cluster.
        grid: [u32; 3],
        /// One for each parameter.
        args: Vec<ConcreteArg>,
        /// Programmatic dependent launch.
        overlaps_previous: bool,
    },
    /// Set bytes.
    Fill {
        /// Where.
        to: Place,
        /// How many.
        bytes: u64,
        /// The byte.
        value: u8,
    },
    /// Copy bytes.
    Copy {
        /// From where.
        from: Place,
        /// To where.
        to: Place,
        /// How many.
        bytes: u64,
    },
}

/// An argument with all numbers known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConcreteArg {
    /// An address.
    Address(Place),
    /// The little-endian bytes of a scalar, 4 or 8.
    Scalar(Vec<u8>),
    /// A tensor for the tensor map that the kernel's parameter describes.
    Tensor {
        /// Its first element.
        at: Place,
        /// Extents in elements, innermost first.
        dims: Vec<u64>,
        /// Strides in bytes of the dimensions from 1 on.
        strides_bytes: Vec<u64>,
    },
}

/// A manifest for one set of values of its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Inputs, then outputs, then buffers, each in the manifest's order.
    pub memory: Vec<Memory>,
    /// The steps; launches with an empty grid and fills and copies of no bytes are left out.
    pub steps: Vec<ConcreteStep>,
}

impl Manifest {
    /// The manifest for one set of values.
    ///
    /// # Errors
    /// A size that overflows or is negative, an access outside its memory, a grid, alignment or
    /// tensor map that the hardware does not take.
    pub fn instantiate(&self, env: &Env) -> Result<Instance, InstanceError> {
        let memory = self.concrete_memory(env)?;
        let builder = Builder {
            manifest: self,
            env,
            memory: &memory,
        };
        let mut steps = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            steps.extend(builder.step(&format!("steps[{i}]"), step)?);
        }
        Ok(Instance { memory, steps })
    }

    fn concrete_memory(&self, env: &Env) -> Result<Vec<Memory>, InstanceError> {
        let inputs = self
            .inputs
            .iter()
            .map(|t| (&t.name, t.dtype, &t.shape, DEFAULT_ALIGNMENT, Role::Input));
        let outputs = self
            .outputs
            .iter()
            .map(|t| (&t.name, t.dtype, &t.shape, DEFAULT_ALIGNMENT, Role::Output));
        let buffers = self.buffers.iter();
        let buffers = buffers.map(|b| {
            (
                &b.name,
                b.dtype,
                &b.shape,
                b.align,
                Role::Buffer(b.init.clone()),
            )
        });
        let mut memory = Vec::new();
        for (name, dtype, shape, align, role) in inputs.chain(outputs).chain(buffers) {
            let shape = shape
                .iter()
                .map(|d| unsigned(name, d, env))
                .collect::<Result<Vec<_>, _>>()?;
            let Some(bytes) = dense_bytes(dtype, &shape) else {
                return fail(name, format!("shape {shape:?} is too large"));
            };
            memory.push(Memory {
                name: name.clone(),
                dtype,
                shape,
                bytes: bytes as u64,
                align,
                role,
            });
        }
        Ok(memory)
    }
}

impl Instance {
    /// The index of a piece of memory by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.memory.iter().position(|m| m.name == name)
    }
}

fn fail<T>(at: &str, problem: impl Into<String>) -> Result<T, InstanceError> {
    Err(InstanceError {
        at: at.to_owned(),
        problem: problem.into(),
    })
}

fn value(at: &str, expr: &Expr, env: &Env) -> Result<i64, InstanceError> {
    expr.eval(env)
        .or_else(|e: ExprError| fail(at, e.to_string()))
}

fn unsigned(at: &str, expr: &Expr, env: &Env) -> Result<u64, InstanceError> {
    let value = value(at, expr, env)?;
    u64::try_from(value)
        .or_else(|_| fail(at, format!("`{expr}` is {value}; it cannot be negative")))
}

/// The largest grid in x, y, z (CUDA C++ programming guide, "Technical specifications per compute
/// capability").
const MAX_GRID: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];

struct Builder<'a> {
    manifest: &'a Manifest,
    env: &'a Env,
    memory: &'a [Memory],
}

impl Builder<'_> {
    fn step(&self, at: &str, step: &Step) -> Result<Option<ConcreteStep>, InstanceError> {
        match step {
            Step::Launch(launch) => self.launch(at, launch),
            Step::Fill { to, bytes, value } => {
                let bytes = unsigned(at, bytes, self.env)?;
                let to = self.place(at, to, bytes)?;
                Ok((bytes > 0).then_some(ConcreteStep::Fill {
                    to,
                    bytes,
                    value: *value,
                }))
            }
            Step::Copy { from, to, bytes } => {
                let bytes = unsigned(at, bytes, self.env)?;
                let (from, to) = (self.place(at, from, bytes)?, self.place(at, to, bytes)?);
                if from.memory == to.memory && from.offset.abs_diff(to.offset) < bytes {
                    return fail(at, "the two pieces of memory overlap");
                }
                Ok((bytes > 0).then_some(ConcreteStep::Copy { from, to, bytes }))
            }
            Step::Assert {
                equal: [a, b],
                message,
            } => {
                let (left, right) = (value(at, a, self.env)?, value(at, b, self.env)?);
                if left != right {
                    return fail(at, format!("{message}: `{a}` is {left}, `{b}` is {right}"));
                }
                Ok(None)
            }
        }
    }

    /// The place of `bytes` bytes inside a piece of memory.
    fn place(&self, at: &str, place: &MemRef, bytes: u64) -> Result<Place, InstanceError> {
        let Some(memory) = self.memory.iter().position(|m| m.name == place.name) else {
            return fail(
                at,
                format!("no input, output or buffer is named `{}`", place.name),
            );
        };
        let offset = unsigned(at, &place.offset_bytes, self.env)?;
        let size = self.memory.get(memory).map_or(0, |m| m.bytes);
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return fail(
                at,
                format!(
                    "bytes {offset} to {offset} + {bytes} of `{}`, which has {size}",
                    place.name
                ),
            );
        }
        Ok(Place { memory, offset })
    }

    fn launch(&self, at: &str, launch: &Launch) -> Result<Option<ConcreteStep>, InstanceError> {
        let position = self
            .manifest
            .kernels
            .iter()
            .position(|k| k.name == launch.kernel);
        let Some((index, kernel)) = position.and_then(|i| Some((i, self.manifest.kernels.get(i)?)))
        else {
            return fail(at, format!("no kernel is named `{}`", launch.kernel));
        };
        let at = format!("{at} kernel `{}`", kernel.name);
        let Some(grid) = self.grid(&at, kernel, launch)? else {
            return Ok(None);
        };
        if kernel.params.len() != launch.args.len() {
            return fail(
                &at,
                format!(
                    "{} parameters, {} arguments",
                    kernel.params.len(),
                    launch.args.len()
                ),
            );
        }
        let mut args = Vec::new();
        for (param, arg) in kernel.params.iter().zip(&launch.args) {
            args.push(self.arg(&format!("{at} parameter `{}`", param.name), param, arg)?);
        }
        let overlaps_previous = launch.overlaps_previous;
        Ok(Some(ConcreteStep::Launch {
            kernel: index,
            grid,
            args,
            overlaps_previous,
        }))
    }

    fn grid(
        &self,
        at: &str,
        kernel: &Kernel,
        launch: &Launch,
    ) -> Result<Option<[u32; 3]>, InstanceError> {
        let cluster = kernel.cluster.unwrap_or([1; 3]);
        let mut grid = [0u32; 3];
        for (((out, expr), max), cluster) in
            grid.iter_mut().zip(&launch.grid).zip(MAX_GRID).zip(cluster)
        {
            let extent = unsigned(at, expr, self.env)?;
            if extent > max {
                return fail(at, format!("a grid extent of {extent} exceeds {max}"));
            }
            if !extent.is_multiple_of(u64::from(cluster.max(1))) {
                return fail(
                    at,
                    format!("a grid extent of {extent} is no multiple of the cluster's {cluster}"),
                );
            }
            *out = extent as u32;
        }
        Ok((!grid.contains(&0)).then_some(grid))
    }

    fn arg(&self, at: &str, param: &Param, arg: &Arg) -> Result<ConcreteArg, InstanceError> {
        match (&param.kind, arg) {
            (ParamKind::Pointer { align, .. }, Arg::Memory(place)) => {
                self.pointer(at, place, *align)
            }
            (ParamKind::Scalar { ty }, Arg::Int(expr)) => {
                scalar(at, *ty, value(at, expr, self.env)?)
            }
            (ParamKind::Scalar { ty }, Arg::Float(v)) if *ty == ScalarType::F32 => {
                Ok(ConcreteArg::Scalar((*v as f32).to_le_bytes().to_vec()))
            }
            (ParamKind::Scalar { ty }, Arg::Float(v)) if *ty == ScalarType::F64 => {
                Ok(ConcreteArg::Scalar(v.to_le_bytes().to_vec()))
            }
            (
                ParamKind::TensorMap { map, .. },
                Arg::Tensor {
                    at: place,
                    dims,
                    strides_bytes,
                },
            ) => self.tensor(at, map, place, (dims, strides_bytes)),
            _ => fail(at, "the argument does not fit the parameter"),
        }
    }

    /// The address of a place, which must have the alignment (bytes) that the kernel relies on.
    fn pointer(&self, at: &str, place: &MemRef, align: u64) -> Result<ConcreteArg, InstanceError> {
        let place = self.place(at, place, 0)?;
        let base = self.memory.get(place.memory).map_or(1, |m| m.align);
        if align > base || !place.offset.is_multiple_of(align) {
            let offset = place.offset;
            return fail(
                at,
                format!("needs {align}-byte alignment, gets {base} plus {offset} bytes"),
            );
        }
        Ok(ConcreteArg::Address(place))
    }

    /// The tensor that a tensor map describes, all of it within its memory.
    fn tensor(
        &self,
        at: &str,
        map: &TensorMapType,
        place: &MemRef,
        (dims, strides_bytes): (&[Expr], &[Expr]),
    ) -> Result<ConcreteArg, InstanceError> {
        let numbers = |exprs: &[Expr]| -> Result<Vec<u64>, _> {
            exprs.iter().map(|e| unsigned(at, e, self.env)).collect()
        };
        let (dims, strides_bytes) = (numbers(dims)?, numbers(strides_bytes)?);
        let bytes = map.extent_bytes(&dims, &strides_bytes).unwrap_or(u64::MAX);
        let found = self.place(at, place, bytes)?;
        map.check_tensor(found.offset, &dims, &strides_bytes)
            .or_else(|e| fail(at, e.0))?;
        let memory = self.memory.get(found.memory);
        if memory.is_some_and(|m| m.align < 32) {
            return fail(
                at,
                format!("a tensor map needs 32-byte alignment of `{}`", place.name),
            );
        }
        Ok(ConcreteArg::Tensor {
            at: found,
            dims,
            strides_bytes,
        })
    }
}

fn scalar(at: &str, ty: ScalarType, value: i64) -> Result<ConcreteArg, InstanceError> {
    let bytes = match ty {
        ScalarType::I64 => value.to_le_bytes().to_vec(),
        ScalarType::F32 => (value as f32).to_le_bytes().to_vec(),
        ScalarType::F64 => (value as f64).to_le_bytes().to_vec(),
        // Both readings of the 32 bits are in use: sizes are often unsigned.
        ScalarType::I32 => match (i32::try_from(value), u32::try_from(value)) {
            (Ok(v), _) => v.to_le_bytes().to_vec(),
            (_, Ok(v)) => v.to_le_bytes().to_vec(),
            _ => return fail(at, format!("{value} does not fit in 32 bits")),
        },
    };
    Ok(ConcreteArg::Scalar(bytes))
}
