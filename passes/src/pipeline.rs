//! Pipelines by name, as flags of mlir-opt's command line: the text of the passes that each target runs.

use melior::StringRef;
use mlir_sys::MlirStringRef;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Gives the passes of a pipeline, as `--pass-pipeline` takes them, for options given by name.
pub type Text = fn(options: &[(&str, &str)]) -> Result<String, String>;

/// A pipeline: `--axe-nvidia="chip=sm_90a until=scheduled"`.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// Its flag.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [PipelineOption],
    /// Writes the passes for values of all options.
    pub text: Text,
}

/// An option of a pipeline, which is text.
#[derive(Clone, Copy, Debug)]
pub struct PipelineOption {
    /// Its name.
    pub name: &'static str,
    /// What it is, for `--help`.
    pub help: &'static str,
    /// What it is where it is not given.
    pub value: &'static str,
}

/// An option in C's form; `AxePipelineOption` in cpp/PassAbi.h.
#[repr(C)]
struct RawOption {
    name: MlirStringRef,
    help: MlirStringRef,
    value: MlirStringRef,
}

unsafe extern "C" {
    fn axeRegisterPipeline(
        name: MlirStringRef,
        summary: MlirStringRef,
        option_count: isize,
        options: *const RawOption,
    );
}

static PIPELINES: RwLock<BTreeMap<&'static str, Text>> = RwLock::new(BTreeMap::new());

/// Registers a pipeline, here and with MLIR; a second registration under the same name is ignored.
pub fn register(pipeline: &Pipeline) {
    let mut pipelines = PIPELINES.write().unwrap_or_else(PoisonError::into_inner);
    if pipelines.contains_key(pipeline.name) {
        return;
    }
    pipelines.insert(pipeline.name, pipeline.text);
    let raw = |text: &'static str| StringRef::new(text).to_raw();
    let options: Vec<_> = pipeline
        .options
        .iter()
        .map(|option| RawOption {
            name: raw(option.name),
            help: raw(option.help),
            value: raw(option.value),
        })
        .collect();
    // SAFETY: pointer and length agree; the strings live as long as the program.
    unsafe {
        axeRegisterPipeline(
            raw(pipeline.name),
            raw(pipeline.summary),
            isize::try_from(options.len()).unwrap_or(0),
            options.as_ptr(),
        );
    }
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
