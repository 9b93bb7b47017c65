//! Modules: kernels out of `axe.kernel`s, and launches that name them.

use super::cluster_end::ends_together;
use super::decide;
use super::emitter::{Decided, Emitter};
use super::overlap;
use super::schedules::top_k;
use super::value::{Bound, TensorMapParameter};
use crate::facts::chip::{Chip, MULTIPROCESSOR_REGISTERS, RESERVED_BYTES};
use crate::state::storage::{SHARED_ALIGNMENT, argument_alignment};
use crate::state::types;
use axe_dialect::ops;
use axe_passes::dispatch::record;
use axe_passes::ir::types::bits;
use axe_passes::ir::value::{name, results};
use axe_passes::ir::walk::{block_arguments, blocks, nested, operations};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute};
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult, error};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, OperationRef, RegionLike, Type, TypeLike, ValueLike};
use std::collections::HashMap;

/// The module of the kernels.
const MODULE: &str = "kernels";
/// The CTA's shared memory, whose size a launch gives.
const SHARED: &str = "axe_shared";

/// Registers of a thread in which loops over rows do not spill.
const LEAST_REGISTERS: i64 = 40;
/// The same of loops that have tiles of rows on their way to registers, of moments, which loops form of all that a warp has, and of sums in f64
/// beside elements that are looked up. Measured: group normalisation of 512 groups of 131,072 f16 with 40 registers takes 172 us and spills 340
/// bytes, 77 us with 64; of groups of 40,960 f32 62.2 and 45.5; LayerNorm of 65,536 f32, which spills none, 75.0 and 80.3.
const WALK_REGISTERS: i64 = 64;
/// The same of moments beside elements that are looked up.
const MOMENT_REGISTERS: i64 = 96;
/// States that a maximum and a sum are; moments are more.
const ONLINE_STATES: usize = 2;

/// A kernel that was emitted.
struct Emitted<'c> {
    threads: i64,
    shared_bytes: i64,
    cluster: Vec<i64>,
    tensor_maps: Vec<TensorMapParameter<'c>>,
    /// Whether it waits for the kernels before it itself.
    waits: bool,
}

/// Lowers the kernels of a module as their plans say.
///
/// # Errors
/// At a plan that is missing or wrong, and at the first operation of each kernel that has no form on this target.
pub(crate) fn lower<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let mut kernels = record::kernels(module);
    if pass.flag("allow-unsupported") {
        kernels.retain(|kernel| record::planned(*kernel).is_some());
    }
    if kernels.is_empty() {
        return Ok(());
    }
    own_lines(module);
    let target = gpu_module(module)?;
    let (mut emitted, mut failures) = (HashMap::new(), Vec::new());
    let launches = launches(module);
    for &kernel in &kernels {
        let decided = decide::read(kernel, chip, pass.flag("check"))?;
        pass.count("num-lowered", decided.plans.len());
        let name = record::symbol(kernel).unwrap_or_default();
        let cluster = decided.kernel.cluster_size();
        let mut own = launches.iter().filter(|(kernel, _)| *kernel == name);
        let next = own.all(|(_, launch)| overlap::lets_next_start(*launch, cluster, chip));
        match emit(kernel, target, decided, next) {
            Ok(made) => {
                emitted.insert(name, made);
            }
            Err(why) => failures.push(why),
        }
    }
    error::all(failures)?;
    rename_launches(module, &emitted)?;
    for kernel in kernels {
        // SAFETY: the kernel's body was emitted anew, and launches name the new one.
        unsafe { mlir_sys::mlirOperationDestroy(kernel.to_raw()) };
    }
    Ok(())
}

/// Gives what an inlined call brought along the lines of the function that was called: a scope of debug information has no
/// other function's.
fn own_lines(module: Op<'_>) {
    for op in nested(module, &|_| true) {
        // SAFETY: the operation is live; the kind of location is checked before its callee is read.
        unsafe {
            let mut location = mlir_sys::mlirOperationGetLocation(op.to_raw());
            while mlir_sys::mlirLocationIsACallSite(location) {
                location = mlir_sys::mlirLocationCallSiteGetCallee(location);
            }
            mlir_sys::mlirOperationSetLocation(op.to_raw(), location);
        }
    }
}

/// A new `gpu.module`, with the declaration of the CTA's shared memory.
fn gpu_module<'c>(module: OperationRef<'c, 'c>) -> PassResult<'c, Op<'c>> {
    let block = blocks(module).first().copied();
    let block =
        block.ok_or_else(|| PassError::new(module.location(), "expected a module with a body"))?;
    if operations(block)
        .iter()
        .any(|op| record::symbol(*op).as_deref() == Some(MODULE))
    {
        return Err(PassError::new(
            module.location(),
            format!("'@{MODULE}' is already there: was the module lowered before?"),
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

/// A parameter of a kernel.
#[derive(Clone, Copy)]
struct Parameter<'c> {
    r#type: Type<'c>,
    /// Bytes to which LLVM may take a pointer to be aligned; 0 for others.
    alignment: i64,
}

impl<'c> Parameter<'c> {
    fn scalar(r#type: Type<'c>) -> Self {
        Self {
            r#type,
            alignment: 0,
        }
    }
}

/// A kernel's parameters: each memref is a pointer, followed by its extents that are dynamic.
fn parameters<'c>(builder: Builder<'c>, arguments: &[Val<'c>]) -> Vec<Parameter<'c>> {
    let i64 = types::integer(builder, 64);
    let mut parameters = Vec::new();
    for argument in arguments {
        let r#type = argument.r#type();
        match types::memref_shape(r#type) {
            None if r#type.is_index() => parameters.push(Parameter::scalar(i64)),
            None => parameters.push(Parameter::scalar(r#type)),
            Some(shape) => {
                parameters.push(Parameter {
                    r#type: types::pointer(builder, 1),
                    alignment: argument_alignment(r#type),
                });
                let dynamic = shape.iter().filter(|extent| **extent == DYNAMIC);
                parameters.extend(dynamic.map(|_| Parameter::scalar(i64)));
            }
        }
    }
    parameters
}

/// Emits one kernel into the module.
fn emit<'c>(
    kernel: Op<'c>,
    target: Op<'c>,
    decided: Decided<'c>,
    lets_next_start: bool,
) -> PassResult<'c, Emitted<'c>> {
    let location = kernel.location();
    let missing = || PassError::new(location, "expected a kernel with a body");
    let body = blocks(kernel).first().copied().ok_or_else(missing)?;
    let arguments = block_arguments(body);
    let into = blocks(target).first().copied().ok_or_else(missing)?;
    let outer = Builder::at_end(into, location);
    let parameters = parameters(outer, &arguments);
    let types: Vec<_> = parameters
        .iter()
        .map(|parameter| parameter.r#type)
        .collect();
    let (region, values, builder) = outer.region(&types);
    let (threads, shared_bytes) = (decided.kernel.threads, decided.shared_bytes);
    let cluster = decided.kernel.cluster.clone();
    let is_warp_specialized = decided.kernel.is_warp_specialized;
    let thread = thread_number(builder, threads)?;
    let shared = shared_base(builder)?;
    let mut emitter = Emitter::new(builder, decided, thread, shared);
    emitter.entry = region.first_block();
    emitter.module = Some(into);
    emitter.lets_next_start = lets_next_start;
    bind_arguments(&mut emitter, &arguments, &values)?;
    if is_warp_specialized {
        emitter.find_warp()?;
    }
    let meets_again = emitter.cluster > 1 && ends_together(kernel, threads);
    emitter.kernel_body(body, meets_again)?;
    emitter.builder.location = location;
    emitter.drain()?;
    if meets_again {
        // A CTA's memory and barriers are there until no other of the cluster writes to them.
        emitter.cluster_barrier()?;
    }
    let form = Form::of(&emitter.tensor_maps);
    emitter.effect(form.end(), &[])?;
    let name = record::symbol(kernel).unwrap_or_default();
    let head = Head {
        name: &name,
        threads,
        cluster: &cluster,
        maps: emitter.tensor_maps.len(),
        least_ctas: least_ctas(kernel, emitter.chip, (threads, shared_bytes)),
    };
    function(outer, head, parameters, region)?;
    Ok(Emitted {
        threads,
        shared_bytes,
        cluster,
        waits: emitter.waits,
        tensor_maps: emitter.tensor_maps,
    })
}

/// The CTAs that a multiprocessor is to hold, where ptxas is told.
fn least_ctas(kernel: Op<'_>, chip: &Chip, (threads, bytes): (i64, i64)) -> Option<i64> {
    let all = nested(kernel, &|_| true);
    let has = |wanted: &str| all.iter().any(|op| name(*op) == wanted);
    if has(ops::ALL_GATHER) {
        // Rows in shared memory: while one CTA reduces and stores its own, those of the others are on their way.
        let room = (chip.shared_bytes + RESERVED_BYTES) / (bytes + RESERVED_BYTES);
        let gathers = || all.iter().filter(|op| name(**op) == ops::ALL_GATHER);
        let is_wide = |value: Val<'_>| bits(axe_dialect::element_type(value.r#type())) > Some(32);
        let looks_up = has("memref.load");
        let states = || gathers().map(|op| results(*op));
        let forms_moments = states().any(|states| states.len() > ONLINE_STATES);
        let sums_wide = states().any(|states| states.into_iter().any(is_wide));
        let least = match (has(ops::COMMIT), forms_moments, looks_up) {
            (true, true, true) => MOMENT_REGISTERS,
            (true, false, true) if sums_wide => WALK_REGISTERS,
            (true, false, _) => LEAST_REGISTERS,
            _ => WALK_REGISTERS,
        };
        let most = MULTIPROCESSOR_REGISTERS / (threads * least);
        return Some(room.min(most).max(1));
    }
    // ptxas takes budgets only where it knows the registers at entry (its C7508): those of one CTA a multiprocessor.
    let has_budget = |op: &Op<'_>| name(*op) == ops::SCOPE && op.attribute("registers").is_ok();
    if all.iter().any(has_budget) {
        return Some(1);
    }
    let is_top_k = |op: &Op<'_>| name(*op) == ops::TOP_K;
    all.iter()
        .any(is_top_k)
        .then_some(top_k::CTAS_A_MULTIPROCESSOR)
}

/// What a function says of itself.
#[derive(Clone, Copy)]
struct Head<'a> {
    name: &'a str,
    threads: i64,
    cluster: &'a [i64],
    /// Tensor maps, the last parameters.
    maps: usize,
    /// The CTAs that a multiprocessor is to hold, where ptxas is told.
    least_ctas: Option<i64>,
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
    mut parameters: Vec<Parameter<'c>>,
    body: melior::ir::Region<'c>,
) -> PassResult<'c> {
    let map = Parameter::scalar(types::pointer(builder, 0));
    parameters.extend(std::iter::repeat_n(map, head.maps));
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
    if let Some(ctas) = head.least_ctas {
        let ctas = IntegerAttribute::new(types::integer(builder, 32), ctas).into();
        attributes.push(("nvvm.minctasm", ctas));
    }
    if head.cluster.iter().product::<i64>() > 1 {
        attributes.push(("nvvm.cluster_dim", i32s(head.cluster)));
    }
    let types: Vec<_> = parameters
        .iter()
        .map(|parameter| parameter.r#type)
        .collect();
    let name = match head.maps {
        0 => {
            let signature = builder.function_type(&types, &[]);
            attributes.push(("function_type", builder.of_type(signature)));
            attributes.push(("gpu.kernel", builder.unit()));
            "gpu.func"
        }
        _ => {
            let signature = types::llvm_function(builder, &types, None);
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

/// A tensor map is the parameter itself (PTX ISA 5.5.8).
fn argument_attributes<'c>(
    builder: Builder<'c>,
    parameters: &[Parameter<'c>],
) -> PassResult<'c, Attribute<'c>> {
    let map = types::pointer(builder, 0);
    let of = |parameter: &Parameter<'c>| match *parameter {
        Parameter { alignment, .. } if alignment > 0 => {
            format!("{{llvm.align = {alignment} : i64}}")
        }
        Parameter { r#type, .. } if r#type == map => {
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
    for argument in arguments {
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
                let mut extents = Vec::new();
                for extent in shape {
                    extents.push(match extent {
                        DYNAMIC => Some(next(emitter)?),
                        _ => None,
                    });
                }
                let memory = emitter.argument(*argument, value, extents)?;
                Bound::Memory(Box::new(memory))
            }
        };
        emitter.bind(*argument, bound);
    }
    Ok(())
}

/// The launches of a module, with the names of their kernels.
fn launches<'c>(module: OperationRef<'c, 'c>) -> Vec<(String, Op<'c>)> {
    let all = nested(module, &|_| true).into_iter();
    all.filter(|op| name(*op) == ops::LAUNCH)
        .filter_map(|launch| {
            let kernel = launch.attribute("kernel").ok()?.to_string();
            let kernel = kernel.strip_prefix('@')?.trim_matches('"').to_owned();
            Some((kernel, launch))
        })
        .collect()
}

/// Makes launches name the emitted kernels, with what the launch needs to know of them.
fn rename_launches<'c>(
    module: OperationRef<'c, 'c>,
    emitted: &HashMap<String, Emitted>,
) -> PassResult<'c> {
    for (kernel, launch) in launches(module) {
        let builder = Builder::before(launch);
        let Some(made) = emitted.get(&kernel) else {
            continue;
        };
        let i64 = types::integer(builder, 64);
        if made.cluster.iter().product::<i64>() > 1 {
            record::set(launch, "cluster", builder.i64s(&made.cluster));
        }
        if made.waits {
            record::set(launch, "overlaps_previous", builder.unit());
        }
        if !made.tensor_maps.is_empty() {
            let maps: Vec<_> = made.tensor_maps.iter().map(|map| map.text()).collect();
            let maps = builder.parsed(&format!("[{}]", maps.join(", ")))?;
            record::set(launch, "tensor_maps", maps);
        }
        record::set(
            launch,
            "kernel",
            builder.parsed(&format!("@{MODULE}::@\"{kernel}\""))?,
        );
        record::set(
            launch,
            "threads",
            IntegerAttribute::new(i64, made.threads).into(),
        );
        record::set(
            launch,
            "shared_bytes",
            IntegerAttribute::new(i64, made.shared_bytes).into(),
        );
    }
    Ok(())
}
