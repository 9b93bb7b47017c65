//! Modules: kernels out of `axe.kernel`s, and launches that name them.

use super::kernel::{Emitter, SHARED_ALIGNMENT};
use super::memory::ARGUMENT_ALIGNMENT;
use super::schedule::Decision;
use super::tensor_map::TensorMapParameter;
use super::types;
use super::value::{Bound, Origin};
use crate::facts::chip::Chip;
use axe_dialect::{element_type, layout_of};
use axe_passes::ir::value::name;
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute};
use axe_passes::registry::PassContext;
use axe_passes::remark::{self, Kind};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike, OperationRef, RegionLike, Type, TypeLike, ValueLike};
use std::collections::HashMap;

/// The module of the kernels.
const MODULE: &str = "kernels";
/// The CTA's shared memory, whose size a launch gives.
const SHARED: &str = "axe_shared";
/// The category of the remarks.
const CATEGORY: &str = "axe-dispatch";

/// A kernel that was emitted.
struct Emitted<'c> {
    threads: i64,
    shared_bytes: i64,
    cluster: Vec<i64>,
    tensor_maps: Vec<TensorMapParameter<'c>>,
    decisions: Vec<Decision<'c>>,
}

/// Dispatches the kernels of a module.
///
/// # Errors
/// At the operator that no schedule takes, with every schedule's reason.
pub(crate) fn dispatch<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let kernels = kernels(module);
    if kernels.is_empty() {
        return Ok(());
    }
    let target = gpu_module(module)?;
    let mut emitted = HashMap::new();
    for &kernel in &kernels {
        let name = symbol(kernel).unwrap_or_default();
        let made = emit(kernel, target, chip)?;
        report(&name, &made.decisions, pass);
        emitted.insert(name, made);
    }
    rename_launches(module, &emitted)?;
    for kernel in kernels {
        // SAFETY: the kernel's body was emitted anew, and launches name the new one.
        unsafe { mlir_sys::mlirOperationDestroy(kernel.to_raw()) };
    }
    Ok(())
}

/// Plans and emits each kernel into a module that is thrown away: every plan is compared with its layouts
/// by enumeration when it is made.
///
/// # Errors
/// As [`dispatch`].
pub(crate) fn verify<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let kernels = kernels(module);
    if kernels.is_empty() {
        return Ok(());
    }
    let target = gpu_module(module)?;
    let made: PassResult<'c, Vec<_>> = kernels
        .iter()
        .map(|kernel| emit(*kernel, target, chip))
        .collect();
    // SAFETY: nothing names the module that was just built.
    unsafe { mlir_sys::mlirOperationDestroy(target.to_raw()) };
    let plans = made?.iter().map(|kernel| kernel.decisions.len()).sum();
    pass.count("num-verified", plans);
    Ok(())
}

fn kernels<'c>(module: OperationRef<'c, 'c>) -> Vec<Op<'c>> {
    let all = nested(module, &|_| false);
    all.into_iter()
        .filter(|op| name(*op) == "axe.kernel")
        .collect()
}

fn symbol(op: Op<'_>) -> Option<String> {
    let name = op.attribute("sym_name").ok()?;
    Some(StringAttribute::try_from(name).ok()?.value().to_owned())
}

/// A new `gpu.module`, with the declaration of the CTA's shared memory.
fn gpu_module<'c>(module: OperationRef<'c, 'c>) -> PassResult<'c, Op<'c>> {
    let block = blocks(module).first().copied();
    let block =
        block.ok_or_else(|| PassError::new(module.location(), "expected a module with a body"))?;
    if operations(block)
        .iter()
        .any(|op| symbol(*op).as_deref() == Some(MODULE))
    {
        return Err(PassError::new(
            module.location(),
            format!("'@{MODULE}' is already there: was the module dispatched before?"),
        ));
    }
    let builder = Builder::at_end(block, module.location());
    let (region, _, inner) = builder.region(&[]);
    let name = builder.parsed(&format!("\"{MODULE}\""))?;
    let made = builder.operation("gpu.module", &[], &[], &[("sym_name", name)], vec![region])?;
    let array = builder.parsed("!llvm.array<0 x i8>")?;
    let i32 = types::integer(builder, 32);
    let i64 = types::integer(builder, 64);
    let attributes = [
        ("sym_name", builder.parsed(&format!("\"{SHARED}\""))?),
        ("global_type", array),
        ("linkage", builder.parsed("#llvm.linkage<external>")?),
        ("addr_space", IntegerAttribute::new(i32, 3).into()),
        (
            "alignment",
            IntegerAttribute::new(i64, SHARED_ALIGNMENT).into(),
        ),
    ];
    inner.operation(
        "llvm.mlir.global",
        &[],
        &[],
        &attributes,
        vec![melior::ir::Region::new()],
    )?;
    Ok(made)
}

/// The types of a kernel's parameters: each memref is a pointer, followed by its extent when that is dynamic.
fn parameters<'c>(builder: Builder<'c>, arguments: &[Val<'c>]) -> Vec<Type<'c>> {
    let i64 = types::integer(builder, 64);
    let mut parameters = Vec::new();
    for argument in arguments {
        let r#type = argument.r#type();
        match types::memref_shape(r#type) {
            None if r#type.is_index() => parameters.push(i64),
            None => parameters.push(r#type),
            Some(shape) => {
                parameters.push(types::pointer(builder, 1));
                parameters.extend(
                    shape
                        .first()
                        .filter(|extent| **extent == DYNAMIC)
                        .map(|_| i64),
                );
            }
        }
    }
    parameters
}

/// Emits one kernel into the module.
fn emit<'c>(kernel: Op<'c>, target: Op<'c>, chip: &'static Chip) -> PassResult<'c, Emitted<'c>> {
    let location = kernel.location();
    let missing = || PassError::new(location, "expected a kernel with a body");
    let body = blocks(kernel).first().copied().ok_or_else(missing)?;
    let threads = kernel
        .attribute("threads")
        .ok()
        .and_then(attribute::integer)
        .ok_or_else(missing)?;
    let arguments = super::control::block_arguments(body);
    let into = blocks(target).first().copied().ok_or_else(missing)?;
    let outer = Builder::at_end(into, location);
    let parameters = parameters(outer, &arguments);
    let (region, values, builder) = outer.region(&parameters);
    let thread = thread_number(builder, threads)?;
    let shared = shared_base(builder)?;
    let mut emitter = Emitter::new(builder, chip, threads, thread, shared);
    emitter.entry = region.first_block();
    let cluster = kernel.attribute("cluster").ok();
    let cluster = cluster.and_then(attribute::read_i64s).unwrap_or_default();
    if cluster.iter().skip(1).any(|extent| *extent != 1) {
        return Err(PassError::new(
            location,
            format!("expected a cluster along x alone, got {cluster:?}"),
        ));
    }
    emitter.cluster = cluster.first().copied().unwrap_or(1);
    if emitter.cluster > 1 && !chip.has_tma {
        return Err(PassError::new(
            location,
            format!("{} has no clusters", chip.name),
        ));
    }
    bind_arguments(&mut emitter, &arguments, &values)?;
    emitter.place_allocations(kernel)?;
    if has_roles(kernel) {
        emitter.find_warp()?;
    }
    emitter.block(body)?;
    emitter.builder.location = location;
    emitter.drain()?;
    if emitter.cluster > 1 {
        // A CTA's memory and barriers are there until no other of the cluster writes to them.
        emitter.cluster_barrier()?;
    }
    let form = Form::of(&emitter.tensor_maps);
    emitter.effect(form.end(), &[])?;
    // LLVM widens loads of aligned storage up to 16 bytes.
    let shared_bytes = (emitter.scratch + emitter.scratch_used + 15) / 16 * 16;
    if shared_bytes > chip.shared_bytes {
        return Err(PassError::new(
            location,
            format!(
                "the kernel needs {shared_bytes} bytes of shared memory, and a CTA of {} has {}",
                chip.name, chip.shared_bytes
            ),
        ));
    }
    let name = symbol(kernel).unwrap_or_default();
    let head = Head {
        name: &name,
        threads,
        cluster: &cluster,
        maps: emitter.tensor_maps.len(),
        budgets: has_budgets(kernel),
    };
    function(outer, head, parameters, region)?;
    Ok(Emitted {
        threads,
        shared_bytes,
        cluster,
        tensor_maps: emitter.tensor_maps,
        decisions: emitter.decisions,
    })
}

/// Whether a role of a kernel has a budget of registers.
fn has_budgets(kernel: Op<'_>) -> bool {
    nested(kernel, &|_| true)
        .into_iter()
        .any(|op| name(op) == "axe.scope" && op.attribute("registers").is_ok())
}

/// Whether a kernel's operators are executed by parts of the CTA, or issued by one thread.
fn has_roles(kernel: Op<'_>) -> bool {
    let all = nested(kernel, &|_| true);
    all.into_iter().any(|op| match name(op).as_str() {
        "axe.scope" | "axe.pipeline.create" => true,
        "axe.gemm" => op.attribute("isAsync").is_ok(),
        // One thread issues what goes out of shared memory.
        "axe.copy" => op.attribute("isAsync").is_ok() && !is_into_shared(op),
        _ => false,
    })
}

fn is_into_shared(copy: Op<'_>) -> bool {
    let to = axe_passes::ir::value::operands(copy).get(1).copied();
    to.is_some_and(|to| axe_dialect::memory_space(to.r#type()) == Some("shared"))
}

/// What a function says of itself.
#[derive(Clone, Copy)]
struct Head<'a> {
    name: &'a str,
    threads: i64,
    cluster: &'a [i64],
    /// Tensor maps, the last parameters.
    maps: usize,
    /// Whether roles have budgets of registers.
    budgets: bool,
}

/// Which operation a kernel becomes: only an `llvm.func` can say that a parameter is a grid constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Gpu,
    Llvm,
}

impl Form {
    fn of(maps: &[TensorMapParameter<'_>]) -> Self {
        if maps.is_empty() {
            Self::Gpu
        } else {
            Self::Llvm
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Gpu => "gpu.return",
            Self::Llvm => "llvm.return",
        }
    }
}

fn function<'c>(
    builder: Builder<'c>,
    head: Head<'_>,
    mut parameters: Vec<Type<'c>>,
    body: melior::ir::Region<'c>,
) -> PassResult<'c> {
    parameters.extend(std::iter::repeat_n(types::pointer(builder, 0), head.maps));
    let i32s = |values: &[i64]| {
        let values: Vec<_> = values
            .iter()
            .map(|value| i32::try_from(*value).unwrap_or(0))
            .collect();
        builder.attribute(|context| attribute::i32s(context, &values))
    };
    let mut attributes = vec![
        ("sym_name", builder.parsed(&format!("\"{}\"", head.name))?),
        ("nvvm.reqntid", i32s(&[head.threads])),
        ("arg_attrs", argument_attributes(builder, &parameters)?),
    ];
    if head.budgets {
        // ptxas takes budgets only where it knows the registers at entry (its C7508): those of one CTA a multiprocessor.
        let one = IntegerAttribute::new(types::integer(builder, 32), 1).into();
        attributes.push(("nvvm.minctasm", one));
    }
    if head.cluster.iter().product::<i64>() > 1 {
        attributes.push(("nvvm.cluster_dim", i32s(head.cluster)));
    }
    let name = match head.maps {
        0 => {
            let signature = builder.function_type(&parameters, &[]);
            attributes.push(("function_type", builder.of_type(signature)));
            attributes.push(("gpu.kernel", builder.unit()));
            "gpu.func"
        }
        _ => {
            let signature = types::llvm_function(builder, &parameters);
            attributes.push(("function_type", builder.of_type(signature)));
            attributes.push(("gpu.kernel", builder.unit()));
            attributes.push(("nvvm.kernel", builder.unit()));
            attributes.push(("linkage", builder.parsed("#llvm.linkage<external>")?));
            "llvm.func"
        }
    };
    builder.operation(name, &[], &[], &attributes, vec![body])?;
    Ok(())
}

/// Pointers are aligned as the runtime aligns them; a tensor map is the parameter itself (PTX ISA 5.5.8).
fn argument_attributes<'c>(
    builder: Builder<'c>,
    parameters: &[Type<'c>],
) -> PassResult<'c, Attribute<'c>> {
    let (pointer, map) = (types::pointer(builder, 1), types::pointer(builder, 0));
    let of = |r#type: &Type<'c>| match *r#type {
        global if global == pointer => format!("{{llvm.align = {ARGUMENT_ALIGNMENT} : i64}}"),
        byval if byval == map => {
            "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
                .to_owned()
        }
        _ => "{}".to_owned(),
    };
    let all: Vec<_> = parameters.iter().map(of).collect();
    builder.parsed(&format!("[{}]", all.join(", ")))
}

/// The number of the thread in its CTA.
fn thread_number<'c>(builder: Builder<'c>, threads: i64) -> PassResult<'c, Val<'c>> {
    let dimension = builder.parsed("#gpu<dim x>")?;
    let index = builder.index_type();
    let bound = IntegerAttribute::new(index, threads).into();
    let thread = builder.value(
        "gpu.thread_id",
        &[],
        index,
        &[("dimension", dimension), ("upper_bound", bound)],
    )?;
    let i32 = types::integer(builder, 32);
    builder.value("arith.index_cast", &[thread], i32, &[])
}

fn shared_base<'c>(builder: Builder<'c>) -> PassResult<'c, Val<'c>> {
    let name = builder.parsed(&format!("@{SHARED}"))?;
    builder.value(
        "llvm.mlir.addressof",
        &[],
        types::pointer(builder, 3),
        &[("global_name", name)],
    )
}

fn bind_arguments<'c>(
    emitter: &mut Emitter<'c>,
    arguments: &[Val<'c>],
    values: &[Val<'c>],
) -> PassResult<'c> {
    let mut values = values.iter().copied();
    let mut next = |emitter: &Emitter<'c>| {
        values
            .next()
            .ok_or_else(|| emitter.error("a kernel with fewer parameters than arguments"))
    };
    for (number, argument) in arguments.iter().enumerate() {
        let value = next(emitter)?;
        let bound = match types::memref_shape(argument.r#type()) {
            None if argument.r#type().is_index() => {
                let index = emitter.builder.index_type();
                Bound::Scalar(
                    emitter
                        .builder
                        .value("arith.index_cast", &[value], index, &[])?,
                )
            }
            None => Bound::Scalar(value),
            Some(shape) => {
                let extent = match shape.first() {
                    Some(&DYNAMIC) => Some(next(emitter)?),
                    _ => None,
                };
                let mut memory =
                    emitter.storage(argument.r#type(), value, ARGUMENT_ALIGNMENT, extent)?;
                memory.origin = Some(Origin::of(number, &memory));
                Bound::Memory(Box::new(memory))
            }
        };
        emitter.bind(*argument, bound);
    }
    Ok(())
}

/// Bytes of the storage of a memref type.
pub(super) fn storage_bytes(r#type: Type) -> Option<i64> {
    let elements = match layout_of(r#type) {
        Some(attribute) => {
            let layout = attribute.layout().ok()?;
            let cosize = layout.cosize(axe_layout::Axis::M).ok()?;
            match layout.swizzle() {
                // A swizzle moves elements within whole periods.
                Some(swizzle) => {
                    let period = swizzle.period();
                    cosize.checked_add(period - 1)? / period * period
                }
                None => cosize,
            }
        }
        None => {
            let (strides, _) = axe_dialect::strides_of(r#type)?;
            let shape = types::memref_shape(r#type)?;
            let mut dims = shape.iter().zip(strides);
            dims.try_fold(1_i64, |last, (extent, stride)| {
                extent
                    .checked_sub(1)?
                    .checked_mul(stride)?
                    .checked_add(last)
            })?
        }
    };
    elements.checked_mul(types::bytes(element_type(r#type))?)
}

/// Says what was decided: as remarks, and on standard error when asked to explain.
fn report(kernel: &str, decisions: &[Decision], pass: &mut PassContext) {
    pass.count("num-dispatched", decisions.len());
    for decision in decisions {
        let declines = decision
            .declines
            .iter()
            .map(|(schedule, decline)| (*schedule, format!("{schedule}: {decline}")));
        for (schedule, text) in declines {
            remark::emit(
                decision.location,
                Kind::Missed,
                CATEGORY,
                schedule,
                kernel,
                &text,
            );
        }
        let text = format!("{}: {}", decision.operator, decision.schedule);
        remark::emit(
            decision.location,
            Kind::Passed,
            CATEGORY,
            decision.schedule,
            kernel,
            &text,
        );
    }
    if pass.flag("explain") {
        eprint!("{}", explain(kernel, decisions));
    }
}

/// The decisions of a kernel as people read them.
fn explain(kernel: &str, decisions: &[Decision]) -> String {
    use std::fmt::Write;
    let mut text = format!("kernel @{kernel}\n");
    for decision in decisions {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {} -> {}    {}",
            decision.operator, decision.schedule, decision.location
        );
        for (schedule, decline) in &decision.declines {
            let _ = writeln!(text, "    not {schedule}: {decline}");
        }
        for line in decision.plan.lines() {
            let _ = writeln!(text, "    | {line}");
        }
    }
    text
}

/// Makes launches name the emitted kernels, with what the launch needs to know of them.
fn rename_launches<'c>(
    module: OperationRef<'c, 'c>,
    emitted: &HashMap<String, Emitted>,
) -> PassResult<'c> {
    for launch in nested(module, &|_| true)
        .into_iter()
        .filter(|op| name(*op) == "axe.launch")
    {
        let builder = Builder::before(launch);
        let kernel = launch
            .attribute("kernel")
            .ok()
            .map(|kernel| kernel.to_string());
        let Some(kernel) = kernel.and_then(|kernel| {
            kernel
                .strip_prefix('@')
                .map(|name| name.trim_matches('"').to_owned())
        }) else {
            continue;
        };
        let Some(made) = emitted.get(&kernel) else {
            continue;
        };
        let i64 = types::integer(builder, 64);
        let mut launch = launch;
        if made.cluster.iter().product::<i64>() > 1 {
            set(&mut launch, "cluster", builder.i64s(&made.cluster));
        }
        if !made.tensor_maps.is_empty() {
            let maps: Vec<_> = made.tensor_maps.iter().map(|map| map.text()).collect();
            let maps = builder.parsed(&format!("[{}]", maps.join(", ")))?;
            set(&mut launch, "tensor_maps", maps);
        }
        set(
            &mut launch,
            "kernel",
            builder.parsed(&format!("@{MODULE}::@\"{kernel}\""))?,
        );
        set(
            &mut launch,
            "threads",
            IntegerAttribute::new(i64, made.threads).into(),
        );
        set(
            &mut launch,
            "shared_bytes",
            IntegerAttribute::new(i64, made.shared_bytes).into(),
        );
    }
    Ok(())
}

fn set<'c>(op: &mut Op<'c>, name: &str, value: Attribute<'c>) {
    // SAFETY: operation and attribute are live and of one context.
    unsafe {
        mlir_sys::mlirOperationSetAttributeByName(
            op.to_raw(),
            melior::StringRef::new(name).to_raw(),
            value.to_raw(),
        );
    }
}
