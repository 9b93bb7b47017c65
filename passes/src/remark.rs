//! MLIR's optimization remarks, and the same as records for a caller in the same process.

use axe_dialect::place;
use melior::StringRef;
use melior::ir::Location;
use mlir_sys::{MlirLocation, MlirStringRef};
use std::cell::RefCell;

unsafe extern "C" {
    fn axeEmitRemark(
        location: MlirLocation,
        kind: i32,
        name: MlirStringRef,
        category: MlirStringRef,
        function: MlirStringRef,
        message: MlirStringRef,
    );
}

/// What a remark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// Something was done.
    Passed = 0,
    /// Something was declined.
    Missed = 1,
    /// A fact.
    Analysis = 2,
}

/// A remark as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it says: that something was done, that it was declined, or a fact.
    pub kind: Kind,
    /// The pass that says it: `axe-dispatch`, `axe-plan`, ...
    pub category: String,
    /// The schedule, the source of a plan, or the operation that it is about.
    pub name: String,
    /// The kernel or function; empty where there is none.
    pub function: String,
    /// What was chosen, or why not.
    pub message: String,
    /// The plan of a schedule that was chosen, as `axe.plan` has it; empty for the rest.
    pub plan: String,
    /// Where: `file.mlir:3:5`.
    pub place: String,
}

thread_local! {
    /// Where the remarks of this thread go beside MLIR's engine, while somebody collects them.
    static COLLECTED: RefCell<Option<Vec<Remark>>> = const { RefCell::new(None) };
}

/// Does `work` and gives the remarks that passes emitted on this thread meanwhile, in order. Passes run on the calling
/// thread when the context is not multi-threaded, as those of `axe_context::context` are. Collecting inside `work` again
/// takes the inner remarks away from the outer list.
pub fn collect<T>(work: impl FnOnce() -> T) -> (T, Vec<Remark>) {
    /// Puts back what was there, also when `work` unwinds.
    struct Restore(Option<Vec<Remark>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            COLLECTED.with(|sink| sink.replace(self.0.take()));
        }
    }
    let restore = Restore(COLLECTED.with(|sink| sink.replace(Some(Vec::new()))));
    let done = work();
    let remarks = COLLECTED.with(RefCell::take).unwrap_or_default();
    drop(restore);
    (done, remarks)
}

/// Emits a remark of `category` where the user's remark options ask for it, and to those who [`collect`].
pub fn emit(
    location: Location,
    kind: Kind,
    category: &str,
    name: &str,
    function: &str,
    message: &str,
) {
    emit_plan(location, kind, category, name, function, message, "");
}

/// [`emit`] with the plan of what was chosen, which records alone have.
pub fn emit_plan(
    location: Location,
    kind: Kind,
    category: &str,
    name: &str,
    function: &str,
    message: &str,
    plan: &str,
) {
    COLLECTED.with_borrow_mut(|sink| {
        if let Some(sink) = sink {
            sink.push(Remark {
                kind,
                category: category.to_owned(),
                name: name.to_owned(),
                function: function.to_owned(),
                message: message.to_owned(),
                plan: plan.to_owned(),
                place: place(location),
            });
        }
    });
    // SAFETY: all arguments are valid for the call.
    unsafe {
        axeEmitRemark(
            location.to_raw(),
            kind as i32,
            StringRef::new(name).to_raw(),
            StringRef::new(category).to_raw(),
            StringRef::new(function).to_raw(),
            StringRef::new(message).to_raw(),
        );
    }
}
