//! A function as machine code.

use crate::assertion::{self, Failed};
use crate::compile::{PIPELINE, assert_dimensions, find, undefined};
use crate::descriptor::{Argument, Results};
use crate::engine::{self, Packed};
use crate::error::CpuError;
use crate::signature::Signature;
use axe_context::{ModuleError, Source, context, parse, run_passes};
use axe_package::Tensor;
use melior::Context;
use melior::ir::Module;
use melior::ir::attribute::TypeAttribute;
use melior::ir::operation::OperationLike;
use mlir_sys as sys;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A compiled function, which can be run many times.
pub struct Program {
    engine: sys::MlirExecutionEngine,
    entry: Packed,
    function: String,
    signature: Signature,
    assertions: Vec<String>,
}

impl Program {
    /// Compiles a module for the host, to run the function `function` of it.
    ///
    /// # Errors
    /// When the text is no module, the function is not in it or has types that are no tensors, or a pass fails.
    pub fn compile<'s>(source: impl Into<Source<'s>>, function: &str) -> Result<Self, CpuError> {
        let context = context();
        let module = parse(&context, source)?;
        Self::of(&context, module, function)
    }

    /// As [`Program::compile`], by passes of the caller's, as `--pass-pipeline` takes them, to LLVM's dialect: tensors
    /// must become memrefs with an identity layout, and functions get the wrappers of MLIR's C interface.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_through<'s>(
        source: impl Into<Source<'s>>,
        function: &str,
        passes: &str,
    ) -> Result<Self, CpuError> {
        let context = context();
        let module = parse(&context, source)?;
        Self::lowered(&context, module, function, passes)
    }

    /// Compiles a module of a context that [`context`] made.
    pub(crate) fn of(
        context: &Context,
        module: Module<'_>,
        function: &str,
    ) -> Result<Self, CpuError> {
        assert_dimensions(&module)?;
        Self::lowered(context, module, function, PIPELINE)
    }

    /// [`Program::of`] by these passes, without assertions that the module does not make itself.
    pub(crate) fn lowered(
        context: &Context,
        mut module: Module<'_>,
        function: &str,
        passes: &str,
    ) -> Result<Self, CpuError> {
        let op = find(&module, "func.func", "function", function)?;
        let r#type = op
            .attribute("function_type")
            .ok()
            .and_then(|attribute| TypeAttribute::try_from(attribute).ok());
        let Some(r#type) = r#type else {
            let message = format!("'{function}' has no type");
            return Err(ModuleError::Parse(message.into()).into());
        };
        let signature = Signature::of(function, r#type.value())?;
        let place = axe_dialect::place(op.location());
        let undefined = undefined(&module);
        let assertions = assertion::replace(&module).map_err(ModuleError::from)?;
        run_passes(context, &mut module, passes)?;
        let fail = || CpuError::Engine {
            function: function.to_owned(),
            undefined,
        };
        let compiled = engine::compile(&module, function).map_err(|reason| CpuError::Backend {
            place,
            function: function.to_owned(),
            reason,
        })?;
        let (engine, entry) = compiled.ok_or_else(fail)?;
        Ok(Self {
            engine,
            entry,
            function: function.to_owned(),
            signature,
            assertions,
        })
    }

    /// What the function takes and gives.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Runs the function.
    ///
    /// # Errors
    /// When an input does not fit its argument, or an assertion of the module fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, CpuError> {
        self.signature.check(&self.function, inputs)?;
        let types = self.signature.inputs.iter().zip(inputs);
        let mut arguments: Vec<_> = types
            .map(|(r#type, tensor)| Argument::new(r#type, tensor))
            .collect();
        let mut results = Results::new(&self.signature.outputs);
        let by_pointer = Results::by_pointer(&self.signature.outputs);
        let mut packed: Vec<*mut c_void> = arguments.iter_mut().map(Argument::packed).collect();
        let result = results.packed(by_pointer);
        packed.insert(if by_pointer { 0 } else { packed.len() }, result);
        // SAFETY: the pointers are to arguments of the types that the function was compiled for, as its signature
        // was checked, and to room for its results; all outlive the call.
        let call = AssertUnwindSafe(|| unsafe { (self.entry)(packed.as_mut_ptr()) });
        match catch_unwind(call) {
            Ok(()) => self.collect(&results),
            Err(payload) => match payload.downcast::<Failed>() {
                Ok(failed) => Err(CpuError::Assertion {
                    function: self.function.clone(),
                    message: self.assertions.get(failed.0).cloned().unwrap_or_default(),
                }),
                Err(payload) => resume_unwind(payload),
            },
        }
    }

    /// The results as tensors; frees the memory that they were given in.
    fn collect(&self, results: &Results) -> Result<Vec<Tensor>, CpuError> {
        let mut tensors = Vec::new();
        let mut memory = BTreeSet::new();
        for (index, r#type) in self.signature.outputs.iter().enumerate() {
            let (tensor, sizes) = if r#type.scalar {
                let bytes = results.scalar(index, r#type.dtype);
                (
                    bytes.and_then(|bytes| Tensor::new(r#type.dtype, Vec::new(), bytes).ok()),
                    Vec::new(),
                )
            } else {
                let memref = results.memref(index, r#type.shape.len());
                let tensor = memref.as_ref().and_then(|memref| {
                    memory.insert(memref.allocated);
                    // SAFETY: the function gave a memref of this type.
                    unsafe { memref.read(r#type.dtype) }
                });
                (tensor, memref.map_or_else(Vec::new, |memref| memref.sizes))
            };
            tensors.push(tensor.ok_or_else(|| CpuError::Result {
                function: self.function.clone(),
                index,
                dtype: r#type.dtype,
                sizes,
            }));
        }
        for allocated in memory {
            // SAFETY: buffer deallocation gives each result to the caller, in memory that malloc made; results that
            // share it are freed once.
            unsafe { free(allocated as *mut c_void) };
        }
        tensors.into_iter().collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the engine is owned here and not used again.
        unsafe { sys::mlirExecutionEngineDestroy(self.engine) };
    }
}

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// Compiles a module and runs one of its functions once.
///
/// # Errors
/// As for [`Program::compile`] and [`Program::run`].
pub fn run<'s>(
    source: impl Into<Source<'s>>,
    function: &str,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, CpuError> {
    Program::compile(source, function)?.run(inputs)
}
