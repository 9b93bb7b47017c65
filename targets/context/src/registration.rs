//! What a context has to know before a module is read.

use melior::Context;
use melior::dialect::DialectRegistry;
use melior::utility::{register_all_llvm_translations, register_all_passes};
use mlir_sys::MlirDialectRegistry;
use std::sync::Once;

/// Registers all that a program needs that lowers through Axe: MLIR's passes and Axe's, its pipelines and targets for the
/// process; MLIR's dialects and Axe's with the models that pipelines need in the registry. `axe::registerAll` and
/// `axeRegisterAll` do the same. Call it before contexts are made of the registry.
pub fn register_all(registry: &DialectRegistry) {
    // SAFETY: the registry is live.
    unsafe { register_all_raw(registry.to_raw()) };
}

/// [`register_all`] for a registry of MLIR's C API.
///
/// # Safety
/// The registry is live.
pub unsafe fn register_all_raw(registry: MlirDialectRegistry) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        axe_targets::register();
        register_all_passes();
        axe_passes::abi::register_passes();
    });
    // SAFETY: promised by the caller; the handle is of a dialect that is linked in.
    unsafe {
        mlir_sys::mlirRegisterAllDialects(registry);
        mlir_sys::mlirDialectHandleInsertDialect(axe_dialect::handle().to_raw(), registry);
        axe_passes::abi::axeTargetDialects(registry);
    }
}

/// A context with all that [`register_all`] registers, and torch-mlir's `tm_tensor`, loaded, and LLVM's translations. It runs passes on the calling
/// thread, which [`crate::decisions`] needs.
#[must_use]
pub fn context() -> Context {
    let registry = DialectRegistry::new();
    register_all(&registry);
    axe_dialect::tm_tensor().insert_dialect(&registry);
    let context = Context::new_with_registry(&registry, false);
    context.load_all_available_dialects();
    register_all_llvm_translations(&context);
    context
}
