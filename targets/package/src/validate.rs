//! Static checks of a manifest: every reference resolves, every kind fits, every number that the
//! machine bounds is in bounds. What depends on the values of symbols is checked by `instantiate`.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::kernel_check::check_kernel;

use crate::expr::{Expr, MAX_DEPTH, SM_COUNT};
use crate::manifest::{
    Arg, Buffer, BufferInit, Kernel, Launch, MANIFEST_VERSION, Manifest, MemRef, Param, ParamKind,
    ScalarType, Step,
};

/// Something wrong in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct ManifestError {
    /// The place, as a path into the JSON, for example `steps[2].args[0]`.
    pub at: String,
    /// Expected, got, and what to do.
    pub problem: String,
}

pub(crate) type Check = Result<(), ManifestError>;

pub(crate) fn fail<T>(
    at: impl Into<String>,
    problem: impl Into<String>,
) -> Result<T, ManifestError> {
    Err(ManifestError {
        at: at.into(),
        problem: problem.into(),
    })
}

impl Manifest {
    /// Checks everything that does not depend on the values of symbols.
    ///
    /// # Errors
    /// The first problem found, with its place.
    pub fn validate(&self) -> Check {
        if self.version != MANIFEST_VERSION {
            return fail(
                "version",
                format!("expected {MANIFEST_VERSION}, got {}", self.version),
            );
        }
        check_name("name", &self.name)?;
        check_name("target.kind", &self.target.kind)?;
        check_name("target.chip", &self.target.chip)?;
        check_sha256("source_sha256", &self.source_sha256)?;
        for (file, info) in &self.files {
            check_file_name("files", file)?;
            check_sha256(&format!("files.{file}"), &info.sha256)?;
        }
        let scope = Scope::new(self)?;
        scope.check_symbols()?;
        scope.check_tensors()?;
        for (i, kernel) in self.kernels.iter().enumerate() {
            check_kernel(&format!("kernels[{i}]"), kernel)?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            scope.check_step(&format!("steps[{i}]"), step)?;
        }
        scope.check_outputs_written()
    }

    /// The names of all files that kernels and buffers refer to.
    #[must_use]
    pub fn referenced_files(&self) -> BTreeSet<&str> {
        let code = self
            .kernels
            .iter()
            .flat_map(|k| [k.cubin.as_deref(), k.ptx.as_deref(), k.program.as_deref()])
            .flatten();
        let data = self.buffers.iter().filter_map(|b| match &b.init {
            BufferInit::Data { file } => Some(file.as_str()),
            _ => None,
        });
        let kernels = self.kernels.iter();
        let sources = kernels.flat_map(|kernel| kernel.sources.iter().map(String::as_str));
        let files = code.chain(sources).chain(data);
        files.chain(self.source.as_deref()).collect()
    }
}

/// What names mean in one manifest.
struct Scope<'a> {
    manifest: &'a Manifest,
    symbols: BTreeSet<&'a str>,
    kernels: BTreeMap<&'a str, &'a Kernel>,
    memory: BTreeMap<&'a str, bool>,
}

impl<'a> Scope<'a> {
    fn new(manifest: &'a Manifest) -> Result<Self, ManifestError> {
        let mut scope = Scope {
            manifest,
            symbols: BTreeSet::new(),
            kernels: BTreeMap::new(),
            memory: BTreeMap::new(),
        };
        for (i, symbol) in manifest.symbols.iter().enumerate() {
            check_name(&format!("symbols[{i}].name"), &symbol.name)?;
            if !scope.symbols.insert(&symbol.name) {
                return fail(
                    format!("symbols[{i}]"),
                    format!("`{}` is declared twice", symbol.name),
                );
            }
        }
        let inputs = manifest
            .inputs
            .iter()
            .map(|t| ("inputs", t.name.as_str(), false));
        let outputs = manifest
            .outputs
            .iter()
            .map(|t| ("outputs", t.name.as_str(), true));
        let buffers = manifest
            .buffers
            .iter()
            .map(|b| ("buffers", b.name.as_str(), b.writable()));
        for (list, name, writable) in inputs.chain(outputs).chain(buffers) {
            check_name(list, name)?;
            if scope.memory.insert(name, writable).is_some() {
                return fail(list, format!("`{name}` names two pieces of memory"));
            }
        }
        for (i, kernel) in manifest.kernels.iter().enumerate() {
            check_name(&format!("kernels[{i}].name"), &kernel.name)?;
            if scope.kernels.insert(&kernel.name, kernel).is_some() {
                return fail(
                    format!("kernels[{i}]"),
                    format!("`{}` is declared twice", kernel.name),
                );
            }
        }
        Ok(scope)
    }

    fn check_symbols(&self) -> Check {
        for (i, symbol) in self.manifest.symbols.iter().enumerate() {
            let at = format!("symbols[{i}] `{}`", symbol.name);
            if symbol.multiple_of < 1 {
                return fail(
                    at,
                    format!("multiple_of is at least 1, got {}", symbol.multiple_of),
                );
            }
            if symbol.max.is_some_and(|max| max < symbol.min) {
                return fail(at, "max is below min");
            }
            let Some(from) = &symbol.from else { continue };
            let input = self.manifest.inputs.iter().find(|t| t.name == from.input);
            let Some(dim) = input.and_then(|t| t.shape.get(from.dim)) else {
                return fail(
                    at,
                    format!(
                        "there is no dimension {} of an input `{}`",
                        from.dim, from.input
                    ),
                );
            };
            if *dim != Expr::Sym(symbol.name.clone()) {
                return fail(
                    at,
                    format!("dimension {} of `{}` is `{dim}`", from.dim, from.input),
                );
            }
        }
        Ok(())
    }

    fn check_tensors(&self) -> Check {
        for tensor in &self.manifest.inputs {
            let at = format!("inputs `{}`", tensor.name);
            self.check_shape(&at, &tensor.shape)?;
            if let Some(dim) = tensor.shape.iter().find(|d| matches!(d, Expr::Op(..))) {
                return fail(
                    at,
                    format!("a dimension is a constant or one symbol, got `{dim}`"),
                );
            }
            if tensor
                .shape
                .iter()
                .any(|d| matches!(d, Expr::Sym(s) if s == SM_COUNT))
            {
                return fail(at, format!("a dimension cannot be `{SM_COUNT}`"));
            }
        }
        for tensor in &self.manifest.outputs {
            self.check_shape(&format!("outputs `{}`", tensor.name), &tensor.shape)?;
        }
        for buffer in &self.manifest.buffers {
            let at = format!("buffers `{}`", buffer.name);
            self.check_shape(&at, &buffer.shape)?;
            check_align(&at, buffer.align)?;
            if let BufferInit::Data { file } = &buffer.init {
                check_file_name(&at, file)?;
                if buffer.shape.iter().any(|d| d.as_const().is_none()) {
                    return fail(at, "a buffer with data has a constant shape");
                }
            }
        }
        Ok(())
    }

    fn check_shape(&self, at: &str, shape: &[Expr]) -> Check {
        if shape.len() > 32 {
            return fail(
                at,
                format!("a shape has at most 32 dimensions, got {}", shape.len()),
            );
        }
        for dim in shape {
            self.check_expr(at, dim)?;
            if let Expr::Const(extent) = dim
                && *extent < 0
            {
                return fail(at, format!("a dimension is not negative, got {extent}"));
            }
        }
        Ok(())
    }

    fn check_expr(&self, at: &str, expr: &Expr) -> Check {
        if expr.depth() > MAX_DEPTH {
            return fail(at, format!("an expression nests at most {MAX_DEPTH} deep"));
        }
        let mut undeclared = None;
        expr.for_each_symbol(&mut |name| {
            if name != SM_COUNT && !self.symbols.contains(name) {
                undeclared = Some(name.to_owned());
            }
        });
        match undeclared {
            Some(name) => fail(at, format!("`{expr}` uses the undeclared symbol `{name}`")),
            None => Ok(()),
        }
    }

    fn check_memory(&self, at: &str, place: &MemRef, writes: bool) -> Check {
        self.check_expr(at, &place.offset_bytes)?;
        match self.memory.get(place.name.as_str()) {
            None => fail(
                at,
                format!("no input, output or buffer is named `{}`", place.name),
            ),
            Some(false) if writes => fail(
                at,
                format!("`{}` is an input or a constant and is written", place.name),
            ),
            Some(_) => Ok(()),
        }
    }

    fn check_step(&self, at: &str, step: &Step) -> Check {
        match step {
            Step::Launch(launch) => self.check_launch(at, launch),
            Step::Fill { to, bytes, .. } => {
                self.check_expr(at, bytes)?;
                self.check_memory(at, to, true)
            }
            Step::Copy { from, to, bytes } => {
                self.check_expr(at, bytes)?;
                self.check_memory(at, from, false)?;
                self.check_memory(at, to, true)
            }
            Step::Assert { equal: [a, b], .. } => {
                self.check_expr(at, a)?;
                self.check_expr(at, b)
            }
        }
    }

    fn check_launch(&self, at: &str, launch: &Launch) -> Check {
        let Some(kernel) = self.kernels.get(launch.kernel.as_str()) else {
            return fail(at, format!("no kernel is named `{}`", launch.kernel));
        };
        for extent in &launch.grid {
            self.check_expr(at, extent)?;
        }
        if launch.args.len() != kernel.params.len() {
            let (want, got) = (kernel.params.len(), launch.args.len());
            return fail(
                at,
                format!(
                    "kernel `{}` has {want} parameters, got {got} arguments",
                    kernel.name
                ),
            );
        }
        for (i, (param, arg)) in kernel.params.iter().zip(&launch.args).enumerate() {
            let at = format!(
                "{at}.args[{i}] (kernel `{}`, parameter `{}`)",
                kernel.name, param.name
            );
            self.check_arg(&at, param, arg)?;
        }
        Ok(())
    }

    fn check_arg(&self, at: &str, param: &Param, arg: &Arg) -> Check {
        match (&param.kind, arg) {
            (ParamKind::Pointer { access, .. }, Arg::Memory(place)) => {
                self.check_memory(at, place, access.writes())
            }
            (ParamKind::Scalar { .. }, Arg::Int(expr)) => self.check_expr(at, expr),
            (
                ParamKind::Scalar {
                    ty: ScalarType::F32 | ScalarType::F64,
                },
                Arg::Float(value),
            ) => {
                if value.is_finite() {
                    Ok(())
                } else {
                    fail(at, "a number in a manifest is finite")
                }
            }
            (
                ParamKind::TensorMap { access, map },
                Arg::Tensor {
                    at: place,
                    dims,
                    strides_bytes,
                },
            ) => {
                if dims.len() != map.rank() || strides_bytes.len() + 1 != map.rank() {
                    let (d, s) = (dims.len(), strides_bytes.len());
                    return fail(
                        at,
                        format!(
                            "the box has rank {}, got {d} extents and {s} strides",
                            map.rank()
                        ),
                    );
                }
                for expr in dims.iter().chain(strides_bytes) {
                    self.check_expr(at, expr)?;
                }
                self.check_memory(at, place, access.writes())
            }
            (kind, arg) => fail(
                at,
                format!("expected {}, got {}", kind.describe(), arg.describe()),
            ),
        }
    }

    fn check_outputs_written(&self) -> Check {
        let mut written = BTreeSet::new();
        for step in &self.manifest.steps {
            match step {
                Step::Fill { to, .. } | Step::Copy { to, .. } => {
                    written.insert(to.name.as_str());
                }
                Step::Assert { .. } => {}
                Step::Launch(launch) => {
                    let kernel = self.kernels.get(launch.kernel.as_str());
                    let params = kernel.map_or(&[][..], |k| &k.params);
                    for (param, arg) in params.iter().zip(&launch.args) {
                        match (&param.kind, arg) {
                            (ParamKind::Pointer { access, .. }, Arg::Memory(at))
                            | (ParamKind::TensorMap { access, .. }, Arg::Tensor { at, .. })
                                if access.writes() =>
                            {
                                written.insert(at.name.as_str());
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
        match self
            .manifest
            .outputs
            .iter()
            .find(|t| !written.contains(t.name.as_str()))
        {
            Some(tensor) => fail(format!("outputs `{}`", tensor.name), "no step writes it"),
            None => Ok(()),
        }
    }
}

impl Buffer {
    /// True unless it holds a constant.
    #[must_use]
    pub fn writable(&self) -> bool {
        !matches!(self.init, BufferInit::Data { .. })
    }
}

impl ParamKind {
    fn describe(&self) -> String {
        match self {
            ParamKind::Pointer { .. } => "memory for a pointer".into(),
            ParamKind::Scalar { ty } => format!("a number of type {ty:?}").to_lowercase(),
            ParamKind::TensorMap { .. } => "a tensor for a tensor map".into(),
        }
    }
}

impl Arg {
    fn describe(&self) -> &'static str {
        match self {
            Arg::Memory(_) => "memory",
            Arg::Int(_) => "an integer",
            Arg::Float(_) => "a floating-point number",
            Arg::Tensor { .. } => "a tensor",
        }
    }
}

pub(crate) fn check_align(at: &str, align: u64) -> Check {
    if align.is_power_of_two() && align <= 1 << 21 {
        return Ok(());
    }
    fail(
        at,
        format!("an alignment is a power of two up to 2 MiB, got {align}"),
    )
}

pub(crate) fn check_name(at: &str, name: &str) -> Check {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let starts = name
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && name.len() <= 128 && name.chars().all(fits) {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    fail(
        at,
        format!(
            "a name is 1 to 128 letters, digits, `_`, `.` or `-`, got `{}`",
            shown.escape_debug()
        ),
    )
}

/// File names stay inside the package: relative, no `..`, and short enough for a tar header.
pub(crate) fn check_file_name(at: &str, name: &str) -> Check {
    if name == crate::container::MANIFEST_FILE || name.len() > 99 {
        return fail(
            at,
            format!("`{}` cannot name a file of a package", name.escape_debug()),
        );
    }
    name.split('/').try_for_each(|part| check_name(at, part))
}

fn check_sha256(at: &str, hash: &str) -> Check {
    if hash.len() == 64 && hash.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    fail(at, "a SHA-256 is 64 lower-case hex digits")
}
