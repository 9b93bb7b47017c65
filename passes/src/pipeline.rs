//! Pipelines by name: the text of the passes that each target runs.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Gives the passes of a pipeline, as `--pass-pipeline` takes them, for options given by name.
pub type Text = fn(options: &[(&str, &str)]) -> Result<String, String>;

static PIPELINES: RwLock<BTreeMap<&'static str, Text>> = RwLock::new(BTreeMap::new());

/// Registers the text of the pipeline `name`.
pub fn register(name: &'static str, text: Text) {
    PIPELINES
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(name, text);
}

/// The passes of the pipeline `name`.
///
/// # Errors
/// A message, when no target registered the pipeline or an option does not fit.
pub fn text(name: &str, options: &[(&str, &str)]) -> Result<String, String> {
    let found = PIPELINES
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(name)
        .copied();
    found.ok_or_else(|| format!("no registered target has a pipeline '{name}'"))?(options)
}
