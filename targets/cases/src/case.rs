//! A kernel with its inputs and what it must give.

use crate::array::Array;
use crate::coverage::{chosen, knobs};
use anyhow::{Context, Result, bail};
use axe_package::{
    Access, Arg, DType, Expr, Kernel, Launch, MANIFEST_VERSION, Manifest, MemRef, Package, Param,
    ParamKind, ScalarType, Step, Target, TensorSpec,
};
use std::collections::BTreeMap;
use std::process::Command;

/// The parameters of a kernel, in order.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// An input, by number; with its extent, when that is dynamic.
    Input(usize, bool),
    /// The output; with its extent, when that is dynamic.
    Output(bool),
}

/// One kernel, executed once.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it does.
    pub name: String,
    /// The kernel.
    pub mlir: String,
    /// The function that launches it, where its arguments are more than addresses: `axe compile` then makes the package.
    pub host: Option<String>,
    /// Threads of a CTA.
    pub threads: i64,
    /// CTAs.
    pub grid: [i64; 3],
    /// The kernel's parameters.
    pub parameters: Vec<Parameter>,
    /// What it reads.
    pub inputs: Vec<Array>,
    /// What it must write.
    pub expected: Array,
}

/// What the compiler made of a case.
#[derive(Debug)]
pub struct Built {
    /// A package that runs the kernel once.
    pub package: Package,
    /// The schedules that were chosen, as `operator -> schedule : types`, and the knobs of plans, as `plan knob = value : type`.
    pub schedules: Vec<String>,
}

/// The programs that compile.
#[derive(Clone, Copy, Debug)]
pub struct Programs<'a> {
    /// `axe-opt`.
    pub axe_opt: &'a str,
    /// `axe`.
    pub axe: &'a str,
}

/// PTX with its needs.
struct Compiled {
    ptx: String,
    shared_bytes: u32,
}

/// What `--axe-dispatch-schedules`, `--axe-lower-schedules` and MLIR's own passes make of a kernel, up to PTX.
fn pipeline(chip: &str, first: &str) -> String {
    let comma = if first.is_empty() { "" } else { "," };
    format!(
        "--pass-pipeline=builtin.module({first}{comma}axe-dispatch-schedules{{target={chip} explain}},axe-lower-schedules,canonicalize,cse,gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,convert-nvvm-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,convert-index-to-llvm),convert-cf-to-llvm,reconcile-unrealized-casts,canonicalize,cse,nvvm-attach-target{{chip={chip} features=+ptx90 O=3}},gpu-module-to-binary{{format=isa}})"
    )
}

impl Case {
    /// Compiles the kernel; passes `first` run before the schedules are chosen, where `axe-opt` alone compiles.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn build(&self, programs: Programs<'_>, chip: &str, first: &str) -> Result<Built> {
        if let Some(host) = &self.host {
            return self.build_with(programs, host, chip);
        }
        let module = format!("{}{}", self.mlir, self.launch());
        let (text, log) = run(programs.axe_opt, &[&pipeline(chip, first)], &module)?;
        let ptx = assembly(&text).context("no PTX in the compiler's output")?;
        let shared = text
            .split("shared_bytes = ")
            .nth(1)
            .and_then(|rest| rest.split([' ', '}', ',']).next());
        let shared_bytes = shared
            .and_then(|bytes| bytes.parse().ok())
            .context("no size of shared memory")?;
        let compiled = Compiled { ptx, shared_bytes };
        Ok(Built {
            package: self.package(&compiled, chip)?,
            schedules: chosen(&log, &module),
        })
    }

    /// Compiles the kernel with the function that launches it.
    fn build_with(&self, programs: Programs<'_>, host: &str, chip: &str) -> Result<Built> {
        let module = format!("{}{host}", self.mlir);
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("case.axe");
        let output = path.to_str().context("a path that is no text")?;
        run(
            programs.axe,
            &["compile", "-", "--target", chip, "-o", output],
            &module,
        )?;
        let (_, log) = run(programs.axe, &["explain", "-", "--target", chip], &module)?;
        let mut schedules = chosen(&log, &module);
        schedules.extend(knobs(&log));
        Ok(Built {
            package: Package::open(&path)?,
            schedules,
        })
    }

    /// A function that launches the kernel on its grid.
    fn launch(&self) -> String {
        let signature = self
            .mlir
            .split('(')
            .nth(1)
            .and_then(|rest| rest.split(") threads").next());
        let arguments = signature.unwrap_or_default();
        let (mut names, mut types) = (Vec::new(), Vec::new());
        for argument in arguments.split(", %") {
            let (name, r#type) = argument
                .trim_start_matches('%')
                .split_once(": ")
                .unwrap_or((argument, ""));
            names.push(format!("%{name}"));
            types.push(r#type.to_owned());
        }
        let [x, y, z] = self.grid;
        format!(
            "func.func @main({arguments}) {{\n  %gx = arith.constant {x} : index\n  %gy = arith.constant {y} : index\n  \
             %gz = arith.constant {z} : index\n  axe.launch @k grid(%gx, %gy, %gz) ins({} : {})\n  return\n}}\n",
            names.join(", "),
            types.join(", ")
        )
    }

    /// A package that runs the kernel once.
    fn package(&self, compiled: &Compiled, chip: &str) -> Result<Package> {
        let (params, args) = self.arguments();
        let spec = |name: String, array: &Array| {
            TensorSpec::new(
                name,
                array.dtype,
                array.shape.iter().map(|&extent| Expr::Const(extent)),
            )
        };
        let manifest = Manifest {
            version: MANIFEST_VERSION,
            name: "main".into(),
            target: Target {
                kind: "nvidia".into(),
                chip: chip.into(),
            },
            tools: BTreeMap::new(),
            candidate: None,
            source_sha256: axe_package::sha256_hex(self.mlir.as_bytes()),
            source: None,
            symbols: Vec::new(),
            inputs: self
                .inputs
                .iter()
                .enumerate()
                .map(|(at, array)| spec(format!("x{at}"), array))
                .collect(),
            outputs: vec![spec("y".into(), &self.expected)],
            buffers: Vec::new(),
            kernels: vec![Kernel {
                name: "k".into(),
                symbol: "k".into(),
                cubin: None,
                program: None,
                sources: Vec::new(),
                ptx: Some("k.ptx".into()),
                params,
                block: [u32::try_from(self.threads)?, 1, 1],
                cluster: None,
                dynamic_shared_bytes: compiled.shared_bytes,
                resources: None,
            }],
            steps: vec![Step::Launch(Launch {
                kernel: "k".into(),
                args,
                grid: self.grid.map(Expr::Const),
                overlaps_previous: false,
            })],
            files: BTreeMap::new(),
        };
        let files = [("k.ptx".to_owned(), compiled.ptx.clone().into_bytes())];
        Ok(Package::new(manifest, files.into_iter().collect())?)
    }
}

impl Case {
    /// The kernel's parameters and what the launch gives for them.
    fn arguments(&self) -> (Vec<Param>, Vec<Arg>) {
        let (mut params, mut args) = (Vec::new(), Vec::new());
        for parameter in &self.parameters {
            let (name, array, dynamic, access) = match parameter {
                Parameter::Input(at, dynamic) => {
                    (format!("x{at}"), &self.inputs[*at], *dynamic, Access::Read)
                }
                Parameter::Output(dynamic) => {
                    ("y".to_owned(), &self.expected, *dynamic, Access::Write)
                }
            };
            params.push(Param {
                name: name.clone(),
                kind: ParamKind::Pointer { access, align: 16 },
            });
            args.push(Arg::Memory(MemRef::start_of(name.clone())));
            if dynamic {
                params.push(Param {
                    name: format!("{name}_rows"),
                    kind: ParamKind::Scalar {
                        ty: ScalarType::I64,
                    },
                });
                args.push(Arg::Int(Expr::Const(array.shape[0])));
            }
        }
        (params, args)
    }
}

/// What a program that reads a module prints: its output and its messages.
fn run(program: &str, arguments: &[&str], module: &str) -> Result<(String, String)> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    std::io::Write::write_all(&mut stdin, module.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, log) = (text(&output.stdout), text(&output.stderr));
    if !output.status.success() {
        bail!("{log}");
    }
    Ok((out, log))
}

/// The PTX in the text of a `gpu.binary`.
fn assembly(text: &str) -> Option<String> {
    let quoted = text.split("assembly = \"").nth(1)?.split("\">").next()?;
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'\\' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    bytes.retain(|byte| *byte != 0);
    String::from_utf8(bytes).ok()
}

/// The element types of chains.
pub const ELEMENTS: [DType; 8] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::I8,
    DType::F64,
    DType::I16,
    DType::I64,
];

/// Element types of chains that have no arithmetic.
pub const FEW: [DType; 3] = [DType::Bool, DType::F8E4M3, DType::F8E5M2];
