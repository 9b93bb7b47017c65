//! MLIR's execution engine, and what LLVM's code generator cannot do as an error.

use crate::recovery::recovery;
use crate::symbols;
use melior::StringRef;
use melior::ir::Module;
use mlir_sys as sys;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The packed form of a function: an array of pointers to arguments and results.
pub(crate) type Packed = unsafe extern "C-unwind" fn(*mut *mut c_void);

/// LLVM's optimisation levels, in the order that they are tried: scalar loops profit from the common passes, and compile
/// fast; vectors that come of them can be what the host's backend has no instruction for (compares of bf16 with AVX-512), and
/// without optimisation there are none.
const OPTIMIZATIONS: [i32; 2] = [2, 0];

unsafe extern "C" {
    /// Does `work` on `data`; false, with a message given to `tell`, where LLVM would have ended the process and the
    /// [`recovery`] covers it.
    fn axeProtected(
        recovery: c_int,
        work: extern "C" fn(*mut c_void),
        data: *mut c_void,
        tell: unsafe extern "C" fn(sys::MlirStringRef, *mut c_void),
        user: *mut c_void,
    ) -> bool;
}

/// Does `work` on `data`, or says why LLVM would have ended the process in it: an instruction that the host's backend
/// cannot select, or a crash of its own, as far as [`recovery`] says.
///
/// # Safety
/// `work` leaves nothing to be dropped in its frames: a failure jumps over them.
pub(crate) unsafe fn protected<T>(
    work: extern "C" fn(*mut c_void),
    data: &mut T,
) -> Result<(), String> {
    unsafe extern "C" fn tell(message: sys::MlirStringRef, user: *mut c_void) {
        // A crash says nothing.
        if message.length == 0 {
            return;
        }
        // SAFETY: the text is live during the call, and `user` is the string below.
        let (message, reason) = unsafe {
            let message = StringRef::from_raw(message);
            (
                message.as_str().unwrap_or_default(),
                &mut *user.cast::<String>(),
            )
        };
        message.clone_into(reason);
    }
    let mut reason = String::new();
    let data: *mut T = data;
    // SAFETY: both pointers are to locals that outlive the call.
    let done = unsafe {
        let user = (&raw mut reason).cast();
        axeProtected(recovery() as c_int, work, data.cast(), tell, user)
    };
    match done {
        true => Ok(()),
        // What follows the first line is LLVM's graph of instructions.
        false => Err(reason.lines().next().unwrap_or("it crashed").to_owned()),
    }
}

/// An engine until a program owns it.
struct Engine(sys::MlirExecutionEngine);

/// What [`create`] is given and gives.
struct Creation {
    module: sys::MlirModule,
    optimization: i32,
    engine: sys::MlirExecutionEngine,
}

extern "C" fn create(data: *mut c_void) {
    // SAFETY: the data is a [`Creation`] with a live module in LLVM's dialect.
    unsafe {
        let creation = data.cast::<Creation>();
        (*creation).engine = sys::mlirExecutionEngineCreate(
            (*creation).module,
            (*creation).optimization,
            0,
            std::ptr::null(),
            false,
            false,
        );
    }
}

/// What [`look_up`] is given and gives.
struct LookUp {
    engine: sys::MlirExecutionEngine,
    name: sys::MlirStringRef,
    found: *mut c_void,
}

extern "C" fn look_up(data: *mut c_void) {
    // SAFETY: the data is a [`LookUp`] with a live engine and name.
    unsafe {
        let look_up = data.cast::<LookUp>();
        (*look_up).found = sys::mlirExecutionEngineLookupPacked((*look_up).engine, (*look_up).name);
    }
}

/// An engine and a function of it.
pub(crate) type Compiled = (sys::MlirExecutionEngine, Packed);

/// The engine of a module in LLVM's dialect, owned by the caller, and the packed form of a function of it; `None` where MLIR
/// makes no engine, or it has no such function.
///
/// # Errors
/// What LLVM says where it would have ended the process.
pub(crate) fn compile(module: &Module<'_>, function: &str) -> Result<Option<Compiled>, String> {
    let mut result = Ok(None);
    for optimization in OPTIMIZATIONS {
        let engine = Engine::new(module, optimization);
        result = engine.and_then(|engine| engine.map_or(Ok(None), |engine| engine.entry(function)));
        if result.is_ok() {
            break;
        }
    }
    result
}

impl Engine {
    fn new(module: &Module<'_>, optimization: i32) -> Result<Option<Self>, String> {
        let mut creation = Creation {
            module: module.to_raw(),
            optimization,
            engine: sys::MlirExecutionEngine { ptr: null_mut() },
        };
        // SAFETY: `create` has nothing to drop.
        unsafe { protected(create, &mut creation)? };
        let raw = creation.engine;
        if raw.ptr.is_null() {
            return Ok(None);
        }
        for (name, pointer) in symbols::all() {
            let name = StringRef::new(&name);
            // SAFETY: the engine is live; symbols are functions that outlive the process's code.
            unsafe { sys::mlirExecutionEngineRegisterSymbol(raw, name.to_raw(), pointer.cast()) };
        }
        Ok(Some(Self(raw)))
    }

    /// The engine and a function of it. Where LLVM fails the engine is leaked: locks in it may be held.
    fn entry(self, function: &str) -> Result<Option<Compiled>, String> {
        let name = format!("_mlir_ciface_{function}");
        let engine = self.into_raw();
        let mut wanted = LookUp {
            engine,
            name: StringRef::new(&name).to_raw(),
            found: null_mut(),
        };
        // SAFETY: `look_up` has nothing to drop.
        unsafe { protected(look_up, &mut wanted)? };
        if wanted.found.is_null() {
            drop(Self(engine));
            return Ok(None);
        }
        // SAFETY: a packed function takes one array of pointers.
        let entry = unsafe { std::mem::transmute::<*mut c_void, Packed>(wanted.found) };
        Ok(Some((engine, entry)))
    }

    fn into_raw(self) -> sys::MlirExecutionEngine {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the engine is owned here and not used again.
        unsafe { sys::mlirExecutionEngineDestroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{Recovery, set_recovery};
    use std::ffi::c_char;

    unsafe extern "C" {
        fn LLVMCreateTargetData(text: *const c_char) -> *mut c_void;
    }

    /// A layout of data that is none is a fatal error of LLVM's.
    extern "C" fn fatal(_: *mut c_void) {
        // SAFETY: the text ends in a NUL.
        unsafe { LLVMCreateTargetData(c"nonsense".as_ptr()) };
    }

    extern "C" fn crash(_: *mut c_void) {
        std::process::abort();
    }

    extern "C" fn add(data: *mut c_void) {
        // SAFETY: the data is a number.
        unsafe { *data.cast::<i32>() += 1 };
    }

    fn run(work: extern "C" fn(*mut c_void), data: &mut i32) -> Result<(), String> {
        // SAFETY: none of them has anything to drop.
        unsafe { protected(work, data) }
    }

    fn fails(recovery: Recovery, work: extern "C" fn(*mut c_void)) -> String {
        set_recovery(recovery);
        run(work, &mut 0).unwrap_err()
    }

    // One test: what is chosen holds for the process.
    #[test]
    fn failures_of_llvm_are_errors_as_far_as_the_program_says() {
        let mut number = 0;
        for recovery in [Recovery::Errors, Recovery::Crashes, Recovery::Errors] {
            for _ in 0..2 {
                let reason = fails(recovery, fatal);
                assert!(!reason.is_empty() && reason != "it crashed", "{reason}");
                run(add, &mut number).unwrap();
            }
        }
        assert_eq!(number, 6);
        assert_eq!(fails(Recovery::Crashes, crash), "it crashed");
        set_recovery(Recovery::None);
        run(add, &mut number).unwrap();
        set_recovery(Recovery::default());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mut number = 0;
                        assert!(run(fatal, &mut number).is_err());
                        assert!(run(add, &mut number).is_ok());
                    }
                });
            }
        });
    }
}
