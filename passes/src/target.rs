//! What a target gives to the target-neutral passes.

use crate::dispatch::record;
use crate::error::{PassError, PassResult};
use crate::nested;
use crate::registry::PassContext;
use melior::dialect::DialectHandle;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use mlir_sys::MlirDialectRegistry;
use std::sync::{PoisonError, RwLock};

/// A family of chips: how kernels are planned for it, and how operators are bound to its schedules.
pub trait Target: Sync {
    /// The name of the family: `nvidia`.
    fn name(&self) -> &'static str;

    /// Whether `chip` (`sm_90a`) belongs to the family.
    fn has_chip(&self, chip: &str) -> bool;

    /// The chips of the family, for messages.
    fn chips(&self) -> Vec<&'static str>;

    /// The chip that is meant where none is named.
    fn default_chip(&self) -> &'static str {
        self.chips().first().copied().unwrap_or_default()
    }

    /// The dialects that planning and dispatch build operations of, beside those that the passes themselves name.
    fn dialects(&self) -> Vec<DialectHandle> {
        Vec::new()
    }

    /// Adds the models of interfaces by which the passes of the target's pipeline find what to do with dialects of MLIR.
    fn models(&self, _registry: MlirDialectRegistry) {}

    /// The target's page of the reference (`docs/reference/NAME.md`), in Markdown: its keys of `axe.plan`. Empty for none.
    fn documentation(&self) -> String {
        String::new()
    }

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

    /// `--axe-dispatch-schedules` on a module: leaves a schedule and a plan on every operator of every kernel.
    ///
    /// # Errors
    /// At the operator that no schedule takes, with every schedule's decline.
    fn dispatch<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;

    /// `--axe-lower-schedules` on a module: kernels as their plans say, in the target's own dialects.
    ///
    /// # Errors
    /// At the operator whose plan is missing or wrong, or that has no form on the target.
    fn lower<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;

    /// `--axe-verify-schedules` on a module.
    ///
    /// # Errors
    /// At the operator whose plan is missing, or does not do what its layouts say.
    fn verify<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c>;

    /// `--axe-verify-code` on a module: the code of its binaries for chips of the family.
    ///
    /// # Errors
    /// At code that calls what nobody defines, or has results and writes none.
    fn verify_code<'c>(&self, module: OperationRef<'c, 'c>) -> PassResult<'c>;
}

static TARGETS: RwLock<Vec<&'static dyn Target>> = RwLock::new(Vec::new());

/// Registers a target; a second registration under the same name is ignored.
pub fn register(target: &'static dyn Target) {
    let mut targets = TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    if targets.iter().all(|known| known.name() != target.name()) {
        targets.push(target);
    }
}

/// All registered targets.
fn registered() -> Vec<&'static dyn Target> {
    TARGETS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// The pages of the reference that targets have, by name.
#[must_use]
pub fn documentation() -> Vec<(&'static str, String)> {
    let pages = registered()
        .into_iter()
        .map(|target| (target.name(), target.documentation()));
    pages.filter(|(_, page)| !page.is_empty()).collect()
}

/// The chip that is meant where none is named: that of the first registered target; empty without one.
#[must_use]
pub fn default_chip() -> &'static str {
    registered()
        .first()
        .map_or("", |target| target.default_chip())
}

/// Adds the dialects of all registered targets to a registry, and the models that their pipelines need.
pub(crate) fn add_dialects(registry: MlirDialectRegistry) {
    for target in registered() {
        for dialect in target.dialects() {
            // SAFETY: the registry is live, and the dialect linked in.
            unsafe { mlir_sys::mlirDialectHandleInsertDialect(dialect.to_raw(), registry) };
        }
        target.models(registry);
    }
}

/// The target that has the chip.
///
/// # Errors
/// A message that lists the chips of all registered targets.
pub fn for_chip(chip: &str) -> Result<&'static dyn Target, String> {
    let targets = registered();
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

/// The target and the chip that the pass's option names; the first target's default without one.
fn chosen<'c, 'a>(
    module: OperationRef<'c, 'c>,
    pass: &PassContext<'a>,
) -> PassResult<'c, (&'static dyn Target, &'a str)> {
    nested::refuse(module)?;
    let chip = match pass.option("target") {
        "" => default_chip(),
        chip => chip,
    };
    let target = for_chip(chip);
    let target = target.map_err(|message| PassError::new(module.location(), message))?;
    Ok((target, chip))
}

/// The target and the chip that the kernels' plans are for, which the option names too where it is given; `None` for a module
/// without kernels.
fn recorded<'c>(
    module: OperationRef<'c, 'c>,
    pass: &PassContext,
) -> PassResult<'c, Option<(&'static dyn Target, String)>> {
    nested::refuse(module)?;
    let Some(chip) = record::common_chip(
        module,
        pass.option("target"),
        pass.flag("allow-unsupported"),
    )?
    else {
        return Ok(None);
    };
    let target = for_chip(&chip);
    let target = target.map_err(|message| PassError::new(module.location(), message))?;
    Ok(Some((target, chip)))
}

/// The body of `--axe-plan-kernels`.
pub(crate) fn plan_kernels<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    let (target, chip) = chosen(module, pass)?;
    target.plan_kernels(module, chip, pass)
}

/// The body of `--axe-dispatch-schedules`.
pub(crate) fn dispatch_schedules<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    let (target, chip) = chosen(module, pass)?;
    target.dispatch(module, chip, pass)
}

/// The body of `--axe-verify-schedules`.
pub(crate) fn verify_schedules<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    match recorded(module, pass)? {
        Some((target, chip)) => target.verify(module, &chip, pass),
        None => Ok(()),
    }
}

/// The body of `--axe-verify-code`.
pub(crate) fn verify_code<'c>(
    module: OperationRef<'c, 'c>,
    _: &mut PassContext<'_>,
) -> PassResult<'c> {
    registered()
        .into_iter()
        .try_for_each(|target| target.verify_code(module))
}

/// The body of `--axe-lower-schedules`.
pub(crate) fn lower_schedules<'c>(
    module: OperationRef<'c, 'c>,
    pass: &mut PassContext<'_>,
) -> PassResult<'c> {
    match recorded(module, pass)? {
        Some((target, chip)) => target.lower(module, &chip, pass),
        None => Ok(()),
    }
}
