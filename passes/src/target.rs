//! What a target gives to the target-neutral passes.

use crate::error::{PassError, PassResult};
use crate::registry::PassContext;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use std::sync::{PoisonError, RwLock};

/// A family of chips: how kernels are planned for it, and how operators are bound to its schedules.
pub trait Target: Sync {
    /// The name of the family: `nvidia`.
    fn name(&self) -> &'static str;

    /// Whether `chip` (`sm_90a`) belongs to the family.
    fn has_chip(&self, chip: &str) -> bool;

    /// The chips of the family, for messages.
    fn chips(&self) -> Vec<&'static str>;

    /// `--axe-plan-kernels` on a module.
    ///
    /// # Errors
    /// At the operator that cannot be planned.
    fn plan_kernels<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;

    /// `--axe-dispatch-schedules` on a module.
    ///
    /// # Errors
    /// At the operator that no schedule takes, with every schedule's decline.
    fn dispatch<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;

    /// `--axe-verify-schedules` on a module.
    ///
    /// # Errors
    /// At the operator whose plan does not do what its layouts say.
    fn verify<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;
}

static TARGETS: RwLock<Vec<&'static dyn Target>> = RwLock::new(Vec::new());

/// Registers a target; a second registration under the same name is ignored.
pub fn register(target: &'static dyn Target) {
    let mut targets = TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    if targets.iter().all(|known| known.name() != target.name()) {
        targets.push(target);
    }
}

/// The target that has the chip.
///
/// # Errors
/// A message that lists the chips of all registered targets.
pub fn for_chip(chip: &str) -> Result<&'static dyn Target, String> {
    let targets = TARGETS.read().unwrap_or_else(PoisonError::into_inner);
    targets
        .iter()
        .copied()
        .find(|target| target.has_chip(chip))
        .ok_or_else(|| {
            let chips: Vec<_> = targets.iter().flat_map(|target| target.chips()).collect();
            format!(
                "unknown target '{chip}': expected one of {}",
                chips.join(", ")
            )
        })
}

/// The target that the pass's option names.
fn chosen<'c>(
    module: OperationRef<'c, 'c>,
    pass: &PassContext,
) -> PassResult<'c, &'static dyn Target> {
    for_chip(pass.option("target")).map_err(|message| PassError::new(module.location(), message))
}

/// The body of `--axe-plan-kernels`.
pub(crate) fn plan_kernels<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    chosen(module, pass)?.plan_kernels(module, pass.option("target"), pass)
}

/// The body of `--axe-dispatch-schedules`.
pub(crate) fn dispatch_schedules<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    chosen(module, pass)?.dispatch(module, pass.option("target"), pass)
}

/// The body of `--axe-verify-schedules`.
pub(crate) fn verify_schedules<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    chosen(module, pass)?.verify(module, pass.option("target"), pass)
}
