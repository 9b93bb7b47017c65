//! From a module's text to a kernel package.
//!
//! Who stops on the way, at operators, kernels or PTX in a module, takes the crate `axe-context`: its contexts, modules and
//! pipelines. [`compile`] runs the pipeline of a target on a module with tensors, reads what is left of the host function
//! (launches, sizes, constants, reshapes) as the steps of an [`axe_package::Package`], and has the target's
//! assembler make machine code of the kernels ([`axe_toolchain::Toolchain`]). The source goes with the package, so that the CPU reference can be
//! computed from it anywhere ([`reference`]).

mod error;
mod host;
mod module;
mod options;
mod results;
mod signs;
mod trainium;
pub mod tune;

pub use axe_context::{ModuleError, Remark, RemarkKind, Source};
pub use axe_cpu::{Part, Recovery, exit_where_the_parser_crashes, set_recovery};
pub use error::CompileError;
pub use module::compile_module;
pub use options::Options;
pub use trainium::{trainium_kernels, trainium_programs};

use axe_context::{context, decisions, parse, run_passes};
use axe_package::{MANIFEST_VERSION, Manifest, Package, Target, Tensor};
use axe_passes::ir::Op;
use axe_passes::ir::value::name;
use axe_passes::ir::walk;
use axe_toolchain::Toolchain;
use melior::Context;
use melior::ir::Module;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use signs::Signs;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The package's file that holds the module it was compiled from.
pub const SOURCE_FILE: &str = "source.mlir";
/// The target that runs a module's source on the host.
pub const CPU: &str = "cpu";

/// A package and what the user should know of how it was made.
#[derive(Debug)]
pub struct Compiled {
    /// The package.
    pub package: Package,
    /// Warnings of the assembler, or that there is none.
    pub warnings: Vec<String>,
    /// What was chosen and what was declined, in order: configurations of kernels, schedules of operators with their
    /// plans.
    pub decisions: Vec<Remark>,
    /// How long it took.
    pub elapsed: Elapsed,
}

/// The wall time of a compilation's parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// From the module's text to PTX, or to a program of the host.
    pub compiler: Duration,
    /// The assembler, a process of its own; zero without one.
    pub assembler: Duration,
}

/// The chip that is compiled for where none is named.
#[must_use]
pub fn default_target() -> &'static str {
    axe_targets::default_chip()
}

/// The targets that there are: `cpu` and the chips.
#[must_use]
pub fn targets() -> Vec<&'static str> {
    std::iter::once(CPU).chain(axe_targets::chips()).collect()
}

/// Compiles the function `function` (or the only one, or the only public one) of a module for a target: a chip, or `cpu`.
///
/// # Errors
/// The diagnostics of MLIR, a host function that a package cannot hold, what the assembler says.
pub fn compile<'s>(
    source: impl Into<Source<'s>>,
    function: Option<&str>,
    target: &str,
) -> Result<Compiled, CompileError> {
    compile_with(
        source,
        Options {
            function,
            ..Options::for_target(target)
        },
    )
}

/// [`compile`] with all that can be asked for.
///
/// # Errors
/// As [`compile`]; an assembler that is named and is not there.
pub fn compile_with<'s>(
    source: impl Into<Source<'s>>,
    options: Options<'_>,
) -> Result<Compiled, CompileError> {
    let source = source.into();
    compile_read(source, |context| parse(context, source), options)
}

/// Compiles the module that `read` makes in the compiler's context; `source` is what the package says it is from.
fn compile_read(
    source: Source<'_>,
    read: impl for<'c> FnOnce(&'c Context) -> Result<Module<'c>, ModuleError>,
    options: Options<'_>,
) -> Result<Compiled, CompileError> {
    let (compiled, decisions) = decisions(|| compiled(source, read, options));
    compiled.map(|compiled| Compiled {
        decisions,
        ..compiled
    })
}

/// [`compile`] for a chip without an assembler: the package has the code alone, as text.
///
/// # Errors
/// As [`compile`].
pub fn translate<'s>(
    source: impl Into<Source<'s>>,
    function: Option<&str>,
    chip: &str,
) -> Result<Package, CompileError> {
    let options = Options {
        function,
        assemble: false,
        ..Options::for_target(chip)
    };
    compile_with(source, options).map(|compiled| compiled.package)
}

fn compiled(
    source: Source<'_>,
    read: impl for<'c> FnOnce(&'c Context) -> Result<Module<'c>, ModuleError>,
    options: Options<'_>,
) -> Result<Compiled, CompileError> {
    let start = Instant::now();
    let target = options.target;
    let toolchain = axe_targets::toolchain(target);
    if target != CPU && toolchain.is_none() {
        return Err(CompileError::unknown_target(target));
    }
    let context = context();
    let mut module = read(&context)?;
    let main = main_name(&module, options.function)?;
    let Some(toolchain) = toolchain else {
        let mut compiled = for_cpu(source, &main)?;
        compiled.elapsed.compiler = start.elapsed();
        return Ok(compiled);
    };
    axe_cpu::assert_dimensions(&module)?;
    let signs = Signs::of(find(&module, "func.func", &main)?);
    run_passes(&context, &mut module, &toolchain.pipeline(target))?;
    let mut host = host::read(toolchain, find(&module, "func.func", &main)?)?;
    signs.restore(&mut host);
    let code = toolchain.code(&module).map_err(CompileError::Function)?;
    if let Some(code) = &code {
        let complete = toolchain.complete(code, &results::kernels(&host));
        complete.map_err(CompileError::Assembler)?;
    }
    let mut manifest = empty_manifest(source.text, &main, toolchain.kind(), target);
    manifest.candidate = options.candidate.map(str::to_owned);
    let compiler = start.elapsed();
    let mut compiled = for_chip(toolchain, options, manifest, source.text, host, code)?;
    compiled.elapsed.compiler = compiler;
    Ok(compiled)
}

/// The results of a package's function on the host, computed from its source.
///
/// # Errors
/// A package without its source, and what the CPU target says.
pub fn reference(package: &Package, inputs: &[Tensor]) -> Result<Vec<Tensor>, CompileError> {
    let name = &package.manifest().name;
    Ok(axe_cpu::run(source_of(package)?, name, inputs)?)
}

/// Parts of the results of a package's function on the host; none where none is wanted.
///
/// # Errors
/// As [`reference`].
pub fn reference_parts(
    package: &Package,
    inputs: &[Tensor],
    parts: &[Option<Part>],
) -> Result<Vec<Option<Tensor>>, CompileError> {
    let name = &package.manifest().name;
    let source = source_of(package)?;
    Ok(axe_cpu::run_parts(source, name, inputs, parts)?)
}

/// The module that a package was compiled from.
fn source_of(package: &Package) -> Result<Source<'_>, CompileError> {
    let text = package
        .file(SOURCE_FILE)
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    let missing = "the package does not hold the module it was compiled from";
    Ok(Source {
        name: SOURCE_FILE,
        text: text.ok_or_else(|| CompileError::Function(missing.to_owned()))?,
    })
}

/// The decisions and plans of every kernel of a module, for people, and the kernels themselves.
///
/// # Errors
/// The diagnostics of MLIR.
pub fn explain<'s>(source: impl Into<Source<'s>>, chip: &str) -> Result<(), CompileError> {
    let context = context();
    let mut module = parse(&context, source)?;
    let Some(toolchain) = axe_targets::toolchain(chip) else {
        return Err(CompileError::unknown_target(chip));
    };
    let logical = toolchain.explained_to_logical(chip);
    let passes = format!(
        "{logical},axe-plan-kernels{{target={chip} explain}},axe-dispatch-schedules{{target={chip} explain}}"
    );
    Ok(run_passes(&context, &mut module, &passes)?)
}

fn for_cpu(source: Source<'_>, main: &str) -> Result<Compiled, CompileError> {
    // Compiling once shows every error now rather than when the package runs.
    let signature = axe_cpu::Program::compile(source, main)?.signature().clone();
    let text = source.text;
    let manifest = cpu_manifest(text, main, &signature)?;
    let files = BTreeMap::from([(SOURCE_FILE.to_owned(), text.as_bytes().to_vec())]);
    Ok(Compiled {
        package: Package::new(manifest, files)?,
        warnings: Vec::new(),
        decisions: Vec::new(),
        elapsed: Elapsed::default(),
    })
}

fn cpu_manifest(
    text: &str,
    main: &str,
    signature: &axe_cpu::Signature,
) -> Result<Manifest, CompileError> {
    let mut manifest = empty_manifest(text, main, CPU, "host");
    for (at, input) in signature.inputs.iter().enumerate() {
        let name = format!("arg{at}");
        let mut shape = Vec::new();
        for (dim, extent) in input.shape.iter().enumerate() {
            let fixed = extent
                .and_then(|extent| i64::try_from(extent).ok())
                .map(axe_package::Expr::Const);
            shape.push(fixed.unwrap_or_else(|| {
                let symbol = format!("{name}_dim{dim}");
                manifest.symbols.push(axe_package::Symbol::of_dim(
                    symbol.clone(),
                    name.clone(),
                    dim,
                ));
                axe_package::Expr::sym(symbol)
            }));
        }
        manifest
            .inputs
            .push(axe_package::TensorSpec::new(name, input.dtype, shape));
    }
    Ok(manifest)
}

fn for_chip(
    toolchain: &dyn Toolchain,
    options: Options<'_>,
    mut manifest: Manifest,
    text: &str,
    host: host::Host,
    code: Option<String>,
) -> Result<Compiled, CompileError> {
    let mut files = host.files;
    files.insert(SOURCE_FILE.to_owned(), text.as_bytes().to_vec());
    let mut warnings = Vec::new();
    let mut elapsed = Elapsed::default();
    let mut kernels = host.kernels;
    if let Some(code) = code.filter(|_| !kernels.is_empty()) {
        if options.assemble {
            let chip = &manifest.target.chip;
            let assembled = toolchain.assemble(&code, chip, &mut kernels, options.assembler);
            let assembled = assembled.map_err(CompileError::Assembler)?;
            elapsed.assembler = assembled.elapsed;
            warnings.extend(assembled.warnings);
            files.extend(assembled.files);
        }
        files.insert(toolchain.code_file().to_owned(), code.into_bytes());
    }
    manifest.symbols = host.symbols;
    manifest.inputs = host.inputs;
    manifest.outputs = host.outputs;
    manifest.buffers = host.buffers;
    manifest.kernels = kernels;
    manifest.steps = host.steps;
    Ok(Compiled {
        package: Package::new(manifest, files)?,
        warnings,
        decisions: Vec::new(),
        elapsed,
    })
}

fn empty_manifest(text: &str, main: &str, kind: &str, chip: &str) -> Manifest {
    Manifest {
        version: MANIFEST_VERSION,
        name: main.to_owned(),
        target: Target {
            kind: kind.to_owned(),
            chip: chip.to_owned(),
        },
        tools: BTreeMap::from([("axe".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
        candidate: None,
        source_sha256: axe_package::sha256_hex(text.as_bytes()),
        source: Some(SOURCE_FILE.to_owned()),
        symbols: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        buffers: Vec::new(),
        kernels: Vec::new(),
        steps: Vec::new(),
        files: BTreeMap::new(),
    }
}

/// The operations of a module's body.
fn body<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let module = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    walk::blocks(module)
        .into_iter()
        .flat_map(walk::operations)
        .collect()
}

fn symbol(op: Op<'_>) -> Option<String> {
    let name = op.attribute("sym_name").ok()?;
    Some(StringAttribute::try_from(name).ok()?.value().to_owned())
}

/// Whether others may call a function: all may unless it says `private` or `nested`.
fn is_public(op: Op<'_>) -> bool {
    let visibility = op.attribute("sym_visibility").ok();
    let visibility = visibility.and_then(|text| StringAttribute::try_from(text).ok());
    visibility.is_none_or(|text| text.value() == "public")
}

fn main_name(module: &Module<'_>, wanted: Option<&str>) -> Result<String, CompileError> {
    let functions = body(module)
        .into_iter()
        .filter(|op| name(*op) == "func.func");
    let defined: Vec<_> = functions
        .filter(|op| !walk::blocks(*op).is_empty())
        .collect();
    let names: Vec<_> = defined.iter().copied().filter_map(symbol).collect();
    let public = defined.iter().copied().filter(|op| is_public(*op));
    let public: Vec<_> = public.filter_map(symbol).collect();
    match (wanted, names.as_slice()) {
        (Some(wanted), _) if names.iter().any(|name| name == wanted) => Ok(wanted.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, _) if public.len() == 1 => Ok(public.concat()),
        (Some(wanted), _) => Err(CompileError::Function(format!(
            "there is no function `{wanted}`; there are: {}",
            names.join(", ")
        ))),
        (None, []) => Err(CompileError::Function(
            "the module has no function to compile".to_owned(),
        )),
        (None, _) => Err(CompileError::Function(format!(
            "name one of the functions {} with --function",
            names.join(", ")
        ))),
    }
}

fn find<'c>(module: &Module<'c>, kind: &str, wanted: &str) -> Result<Op<'c>, CompileError> {
    let mut found = body(module).into_iter().filter(|op| name(*op) == kind);
    let found = found.find(|op| symbol(*op).as_deref() == Some(wanted));
    found.ok_or_else(|| CompileError::Function(format!("the pipeline left no function `{wanted}`")))
}
