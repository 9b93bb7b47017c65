//! Packages in the simulator: `axe_simulate`.

use crate::failure::{Failure, Status, call, item};
use crate::handle::{self, Object, Opaque};
use crate::package::PackageObject;
use crate::text::{MAX_ITEMS, MAX_RANK, array, bytes, c_string, give, give_new, option, options};
use axe_package::{DType, Package, Tensor};
use axe_sim::package::{Output, PackageRunError, run_package};
use axe_sim::{Finding, Options, Severity, Simulator};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::time::{Duration, Instant};

/// `axe_tensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawTensor {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    data: *const u8,
    size: usize,
}

/// `axe_simulate_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SimulateOptions {
    struct_size: usize,
    no_checks: bool,
    threads: u32,
    seed: u64,
    max_seconds: f64,
}

/// `axe_finding`.
#[repr(C)]
#[derive(Debug)]
pub struct RawFinding {
    severity: i32,
    kind: *const c_char,
    kernel: *const c_char,
    source: *const c_char,
    ptx_line: u32,
    message: *const c_char,
    advice: *const c_char,
}

struct FindingText {
    error: bool,
    kind: CString,
    kernel: CString,
    source: CString,
    ptx_line: u32,
    message: CString,
    advice: CString,
}

impl FindingText {
    fn of(kernel: &str, finding: &Finding) -> Self {
        let kind = serde_json::to_value(finding.kind).unwrap_or_default();
        Self {
            error: finding.severity == Severity::Error,
            kind: c_string(kind.as_str().unwrap_or("")),
            kernel: c_string(kernel),
            source: c_string(finding.place.user_line().unwrap_or("")),
            ptx_line: finding.place.line,
            message: c_string(&finding.to_string()),
            advice: c_string(finding.advice),
        }
    }
}

struct OutputTensor {
    name: CString,
    dtype: CString,
    output: Output,
}

/// What a run left; as an object, `axe_run`.
pub struct Run {
    outputs: Vec<OutputTensor>,
    findings: Vec<FindingText>,
}

impl Object for Run {
    const NAME: &'static str = "axe_run";
}

type Handle = *const Opaque<Run>;

/// The inputs of a package by name.
///
/// # Safety
/// What the tensors point to is valid.
unsafe fn inputs(
    package: &Package,
    raw: &[RawTensor],
) -> Result<BTreeMap<String, Tensor>, Failure> {
    let specs = &package.manifest().inputs;
    let mut all = BTreeMap::new();
    for (at, tensor) in raw.iter().enumerate() {
        let what = format!("inputs[{at}]");
        // SAFETY: promised by the caller.
        let (name, dtype, shape, data) = unsafe {
            (
                option(tensor.name, &format!("{what}.name"))?,
                option(tensor.dtype, &format!("{what}.dtype"))?,
                array(
                    tensor.shape,
                    tensor.rank,
                    MAX_RANK,
                    &format!("{what}.shape"),
                )?,
                bytes(tensor.data, tensor.size, &format!("{what}.data"))?,
            )
        };
        let name = match name {
            Some(name) => name,
            None => &item(specs, at, "input")?.name,
        };
        let dtype = dtype.ok_or_else(|| Failure::argument(format!("`{what}.dtype` is NULL")))?;
        let dtype: DType = dtype
            .parse()
            .map_err(|_| Failure::argument(format!("`{what}.dtype`: unknown type '{dtype}'")))?;
        let tensor = Tensor::new(dtype, shape.to_vec(), data.to_vec())
            .map_err(|error| Failure::argument(format!("`{what}`: {error}")))?;
        if all.insert(name.to_owned(), tensor).is_some() {
            return Err(Failure::argument(format!("input `{name}` is given twice")));
        }
    }
    if let Some(other) = all
        .keys()
        .find(|name| specs.iter().all(|spec| spec.name != **name))
    {
        return Err(Failure::argument(format!(
            "the package has no input `{other}`"
        )));
    }
    Ok(all)
}

fn simulator(asked: SimulateOptions) -> Result<Simulator, Failure> {
    let defaults = Options::default();
    let seconds = asked.max_seconds;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(Failure::argument(format!(
            "`options->max_seconds`: expected 0 (no limit) to 1e9, got {seconds}"
        )));
    }
    let deadline = (seconds > 0.0).then(|| Instant::now() + Duration::from_secs_f64(seconds));
    Ok(Simulator {
        options: Options {
            checks: !asked.no_checks,
            threads: asked.threads as usize,
            seed: asked.seed,
            deadline,
            ..defaults
        },
    })
}

fn run(
    package: &Package,
    inputs: &BTreeMap<String, Tensor>,
    simulator: &Simulator,
) -> Result<Run, Failure> {
    let done = run_package(package, inputs, &BTreeMap::new(), simulator).map_err(|error| {
        let status = match error {
            PackageRunError::Sim { .. } | PackageRunError::Memory { .. } => Status::Simulation,
            PackageRunError::Kernel { .. } => Status::Unsupported,
            _ => Status::InvalidArgument,
        };
        Failure::new(status, error.to_string())
    })?;
    let findings = done.launches.iter().flat_map(|(kernel, report)| {
        let all = report.findings.iter().chain(&report.notes);
        all.map(|finding| FindingText::of(kernel, finding))
    });
    let mut outputs = done.outputs;
    let specs = package.manifest().outputs.iter();
    Ok(Run {
        findings: findings.collect(),
        outputs: specs
            .filter_map(|spec| {
                let output = outputs.remove(&spec.name)?;
                Some(OutputTensor {
                    name: c_string(&spec.name),
                    dtype: c_string(output.tensor.dtype().name()),
                    output,
                })
            })
            .collect(),
    })
}

/// The size of an element in bytes; 0 for what is no type.
///
/// # Safety
/// `dtype` is null or a text that a NUL ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_dtype_size(dtype: *const c_char) -> usize {
    // SAFETY: promised by the caller.
    let name = unsafe { option(dtype, "dtype") };
    let dtype = name.ok().flatten().and_then(|name| name.parse().ok());
    dtype.map_or(0, DType::bytes)
}

/// Runs a package in the simulator.
///
/// # Safety
/// `inputs` is null or valid for `count` tensors and what they point to, `options` null or valid; `result` and `error`
/// are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_simulate(
    package: *const Opaque<PackageObject>,
    raw_inputs: *const RawTensor,
    count: usize,
    raw_options: *const SimulateOptions,
    result: *mut *mut Opaque<Run>,
    error: *mut *mut Opaque<Failure>,
) -> Status {
    let defaults = SimulateOptions {
        struct_size: size_of::<SimulateOptions>(),
        no_checks: false,
        threads: 0,
        seed: 0,
        max_seconds: 0.0,
    };
    call(error, || {
        let package = handle::get(package, "package")?;
        // SAFETY: promised by the caller.
        unsafe {
            give_new(result, "run", || {
                let simulator = simulator(options(raw_options, defaults, "options")?)?;
                let raw = array(raw_inputs, count, MAX_ITEMS, "inputs")?;
                run(
                    &package.package,
                    &inputs(&package.package, raw)?,
                    &simulator,
                )
            })
        }
    })
}

/// The number of outputs of a run.
#[unsafe(no_mangle)]
pub extern "C" fn axe_run_output_count(run: Handle) -> usize {
    handle::find(run).map_or(0, |run| run.outputs.len())
}

/// An output of a run, which lives as long as the run.
///
/// # Safety
/// `tensor` is null or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_run_output(
    run: Handle,
    index: usize,
    tensor: *mut RawTensor,
) -> Status {
    call(std::ptr::null_mut(), || {
        let run = handle::get(run, "run")?;
        let found = item(&run.outputs, index, "output")?;
        let values = &found.output.tensor;
        let raw = RawTensor {
            name: found.name.as_ptr(),
            dtype: found.dtype.as_ptr(),
            shape: values.shape().as_ptr(),
            rank: values.shape().len(),
            data: values.bytes().as_ptr(),
            size: values.bytes().len(),
        };
        // SAFETY: promised by the caller.
        unsafe { give(tensor, raw, "tensor") }
    })
}

/// The elements of an output that nothing wrote.
#[unsafe(no_mangle)]
pub extern "C" fn axe_run_unwritten_count(run: Handle, index: usize) -> usize {
    let run = handle::find(run);
    let output = run.as_ref().and_then(|run| run.outputs.get(index));
    output.map_or(0, |output| {
        let elements = 0..output.output.tensor.len();
        elements
            .filter(|at| output.output.unwritten.at(*at))
            .count()
    })
}

/// The number of findings of a run.
#[unsafe(no_mangle)]
pub extern "C" fn axe_run_finding_count(run: Handle) -> usize {
    handle::find(run).map_or(0, |run| run.findings.len())
}

/// A finding of a run.
///
/// # Safety
/// `finding` is null or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_run_finding(
    run: Handle,
    index: usize,
    finding: *mut RawFinding,
) -> Status {
    call(std::ptr::null_mut(), || {
        let run = handle::get(run, "run")?;
        let found = item(&run.findings, index, "finding")?;
        let raw = RawFinding {
            severity: i32::from(!found.error),
            kind: found.kind.as_ptr(),
            kernel: found.kernel.as_ptr(),
            source: found.source.as_ptr(),
            ptx_line: found.ptx_line,
            message: found.message.as_ptr(),
            advice: found.advice.as_ptr(),
        };
        // SAFETY: promised by the caller.
        unsafe { give(finding, raw, "finding") }
    })
}

/// Frees a run.
#[unsafe(no_mangle)]
pub extern "C" fn axe_run_free(run: *mut Opaque<Run>) {
    handle::free(run.cast_const());
}
