//! From a module to a package: `axe_compile`, and `axeCompileModule` of `axe-c/Compile.h`.

use crate::failure::{Failure, Status, call};
use crate::handle::Opaque;
use crate::package::PackageObject;
use crate::text::{give_new, option, options, text};
use axe_compile::{
    Compiled, Options, Recovery, Source, compile_module, compile_with, default_target, set_recovery,
};
use melior::ir::Module;
use mlir_sys::MlirModule;
use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::path::Path;

/// `axe_compile_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions {
    struct_size: usize,
    target: *const c_char,
    function: *const c_char,
    file_name: *const c_char,
    ptxas: *const c_char,
    no_assembler: bool,
}

impl CompileOptions {
    const NONE: Self = Self {
        struct_size: size_of::<Self>(),
        target: std::ptr::null(),
        function: std::ptr::null(),
        file_name: std::ptr::null(),
        ptxas: std::ptr::null(),
        no_assembler: false,
    };
}

/// The options as the compiler takes them, and the name of the module's file.
///
/// # Safety
/// `raw` is null or valid, and so is what it points to, as long as `'a`.
unsafe fn asked<'a>(raw: *const CompileOptions) -> Result<(Options<'a>, &'a str), Failure> {
    // SAFETY: promised by the caller.
    unsafe {
        let raw = options(raw, CompileOptions::NONE, "options")?;
        let target = option(raw.target, "options->target")?;
        let mut asked = Options::for_target(target.unwrap_or_else(default_target));
        asked.function = option(raw.function, "options->function")?;
        asked.assemble = !raw.no_assembler;
        asked.assembler = option(raw.ptxas, "options->ptxas")?.map(Path::new);
        let name = option(raw.file_name, "options->file_name")?;
        Ok((asked, name.unwrap_or("-")))
    }
}

/// Chooses what becomes of failures of LLVM's code generator, by the number of an `axe_recovery`.
#[unsafe(no_mangle)]
pub extern "C" fn axe_set_recovery(recovery: u32) -> Status {
    call(std::ptr::null_mut(), || {
        set_recovery(match recovery {
            0 => Recovery::None,
            1 => Recovery::Errors,
            2 => Recovery::Crashes,
            _ => return Err(Failure::argument("`recovery` is no axe_recovery")),
        });
        Ok(())
    })
}

/// Compiles the text of a module.
///
/// # Safety
/// `module` is null or valid for `length` bytes, `options` null or valid with all that it points to; `package` and
/// `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_compile(
    module: *const c_char,
    length: usize,
    options: *const CompileOptions,
    package: *mut *mut Opaque<PackageObject>,
    error: *mut *mut Opaque<Failure>,
) -> Status {
    call(error, || {
        // SAFETY: promised by the caller.
        unsafe {
            give_new(package, "package", || {
                let text = text(module, length, "module")?;
                let (options, name) = asked(options)?;
                made(compile_with(Source { name, text }, options))
            })
        }
    })
}

/// Compiles a module of the caller's, which stays as it is.
///
/// # Safety
/// The module is null or valid; the rest is as for [`axe_compile`].
#[unsafe(export_name = "axeCompileModule")]
pub unsafe extern "C" fn compile_mlir_module(
    module: MlirModule,
    options: *const CompileOptions,
    package: *mut *mut Opaque<PackageObject>,
    error: *mut *mut Opaque<Failure>,
) -> Status {
    call(error, || {
        // SAFETY: promised by the caller.
        unsafe {
            give_new(package, "package", || {
                if module.ptr.is_null() {
                    return Err(Failure::argument("`module` is null"));
                }
                // The module is the caller's.
                let module = ManuallyDrop::new(Module::from_raw(module));
                let (options, name) = asked(options)?;
                made(compile_module(&module, name, options))
            })
        }
    })
}

fn made(compiled: Result<Compiled, axe_compile::CompileError>) -> Result<PackageObject, Failure> {
    PackageObject::compiled(compiled?)
}
