//! Pipelines by name, as flags of mlir-opt's command line: the text of the passes that each target runs.

use melior::StringRef;
use mlir_sys::MlirStringRef;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Gives the passes of a pipeline, as `--pass-pipeline` takes them, for options given by name.
pub type Text = fn(options: &[(&str, &str)]) -> Result<String, String>;

/// A pipeline: `--axe-nvidia="target=sm_90a until=scheduled"`.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// Its flag.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub summary: &'static str,
    /// What it takes and leaves, for the reference, as Markdown.
    pub description: &'static str,
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

static PIPELINES: RwLock<BTreeMap<&'static str, Pipeline>> = RwLock::new(BTreeMap::new());

/// Registers a pipeline, here and with MLIR; a second registration under the same name is ignored.
pub fn register(pipeline: &Pipeline) {
    let mut pipelines = PIPELINES.write().unwrap_or_else(PoisonError::into_inner);
    if pipelines.contains_key(pipeline.name) {
        return;
    }
    pipelines.insert(pipeline.name, *pipeline);
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

/// From functions of linalg to operators of axe, and `linalg.generic` for what they do not say. Calls are inlined, and
/// extents are those of arguments, before anything is fused away. `options` are more of the conversion's.
#[must_use]
pub fn logical(options: &str) -> String {
    format!(
        "inline,resolve-ranked-shaped-type-result-dims,func.func(convert-elementwise-to-linalg),\
         axe-simplify-gathers,convert-linalg-to-axe{{for-kernels=true{options}}},\
         func.func(linalg-generalize-named-ops),axe-generalize,axe-simplify-powers,canonicalize,cse"
    )
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
    let found = found.ok_or_else(|| format!("no registered target has a pipeline '{name}'"))?;
    (found.text)(options)
}

/// The page of the reference on pipelines, as Markdown: of each what it takes and leaves, its options, and its passes with
/// their defaults.
#[must_use]
pub fn documentation() -> String {
    let pipelines = PIPELINES.read().unwrap_or_else(PoisonError::into_inner);
    let mut page = "<!-- Written by tools/docs.sh from the registered pipelines. Do not edit. -->\n# Pipelines\n\n\
         A pipeline is a list of passes under one name: `axe-opt --NAME=\"option=value\"`, and `NAME{option=value}` inside \
         `--pass-pipeline=\"builtin.module(...)\"`.\n"
        .to_owned();
    for pipeline in pipelines.values() {
        page += &section(pipeline);
    }
    page
}

fn section(pipeline: &Pipeline) -> String {
    let Pipeline {
        name,
        summary,
        description,
        ..
    } = pipeline;
    let mut text = format!("\n## `--{name}`\n\n_{summary}_\n\n{}\n", description.trim());
    if !pipeline.options.is_empty() {
        text += "\n| option | default | |\n| --- | --- | --- |\n";
    }
    for PipelineOption { name, help, value } in pipeline.options {
        let value = match *value {
            "" => String::new(),
            value => format!("`{value}`"),
        };
        text += &format!("| `{name}` | {value} | {help} |\n");
    }
    let defaults: Vec<_> = (pipeline.options.iter())
        .map(|option| (option.name, option.value))
        .collect();
    let passes = (pipeline.text)(&defaults).unwrap_or_else(|reason| reason);
    text + "\nIts passes:\n\n```\n" + &one_a_line(&passes) + "```\n"
}

/// The passes of a list, one a line.
fn one_a_line(passes: &str) -> String {
    let (mut lines, mut depth) = (String::new(), 0_i32);
    for character in passes.chars() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        lines.push(character);
        if character == ',' && depth == 0 {
            lines.push('\n');
        }
    }
    lines + "\n"
}
