//! A launch of the host function as a step: the parameters of its kernel, and what they are given.

use super::{Host, Known, Place, error};
use axe_dialect::ops::{self, LaunchOp};
use axe_package::{Access, Arg, Expr, Kernel, Launch, MemRef, Param, ParamKind, ScalarType, Step};
use axe_passes::ir::types::bits;
use axe_passes::ir::value::{defining, identity, name, operands, parts, users};
use axe_passes::ir::{DYNAMIC, Op, TensorType, Val, attribute};
use axe_passes::{PassError, PassResult};
use axe_toolchain::Memory;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;

impl Host {
    pub(super) fn launch<'c>(&mut self, op: Op<'c>) -> PassResult<'c> {
        let launch: LaunchOp = parts(op)?;
        // A launch has one result for each tensor among its outputs.
        let mut tensors = launch.results.iter();
        let [x, y, z] = [launch.grid_x, launch.grid_y, launch.grid_z];
        let grid = [self.int(op, x)?, self.int(op, y)?, self.int(op, z)?];
        let mut call = Call::default();
        for (at, value) in launch.inputs.iter().chain(&launch.outputs).enumerate() {
            let written = at >= launch.inputs.len();
            match self.values.get(&identity(*value)).cloned() {
                Some(Known::Int(expr)) => call.int(op, at, value.r#type(), expr)?,
                Some(Known::Float(number)) => call.float(op, at, value.r#type(), number)?,
                Some(Known::Tensor(place)) => {
                    let (access, memory) = match (&place.memory, written) {
                        (Some(memory), false) => (Access::Read, memory.clone()),
                        (Some(memory), true) if is_last_use(*value) => {
                            (Access::ReadWrite, memory.clone())
                        }
                        (Some(_), true) => (Access::ReadWrite, self.copied(&place)),
                        (None, false) => (Access::Read, self.reserve(&place)),
                        (None, true) => (Access::Write, self.reserve(&place)),
                    };
                    let found = TensorType::of_value(*value).map(|found| found.shape);
                    let extents = place.shape.iter().zip(found.unwrap_or_default());
                    let dynamic = extents.filter(|(_, extent)| *extent == DYNAMIC);
                    let dynamic: Vec<_> = dynamic.map(|(expr, _)| expr.clone()).collect();
                    call.tensor(at, &memory, access, &dynamic);
                    let leading = place.shape.first().cloned();
                    call.memory.insert(
                        at,
                        Memory {
                            name: memory.clone(),
                            access,
                            leading: leading.unwrap_or(Expr::Const(1)),
                        },
                    );
                    if let Some(result) = written.then(|| tensors.next()).flatten() {
                        let memory = Some(memory);
                        self.set(*result, Known::Tensor(Place { memory, ..place }));
                    }
                }
                Some(Known::Comparison(..)) | None => {
                    return Err(error(
                        op,
                        "an argument of the launch is not known on the host",
                    ));
                }
            }
        }
        for (param, arg) in self.toolchain.parameters(op, &call.memory, &call.scalars)? {
            call.params.push(param);
            call.args.push(arg);
        }
        self.step(op, call, grid)
    }

    fn step<'c>(&mut self, op: Op<'c>, call: Call, grid: [Expr; 3]) -> PassResult<'c> {
        let number = |name: &str| {
            op.attribute(name)
                .ok()
                .and_then(attribute::integer)
                .and_then(|number| u32::try_from(number).ok())
        };
        let symbol = op.attribute("kernel").ok().map(|kernel| kernel.to_string());
        let symbol = symbol.and_then(|text| {
            text.rsplit('@')
                .next()
                .map(|name| name.trim_matches('"').to_owned())
        });
        let programs = self.toolchain.has_programs();
        let (threads, shared) = match programs {
            true => (Some(1), Some(0)),
            false => (number("threads"), number("shared_bytes")),
        };
        let (Some(symbol), Some(threads), Some(shared)) = (symbol, threads, shared) else {
            return Err(error(
                op,
                "expected a launch of a kernel that is lowered for a target: run --axe-dispatch-schedules and --axe-lower-schedules",
            ));
        };
        let name = self.kernel(Kernel {
            name: symbol.clone(),
            symbol,
            cubin: None,
            ptx: (!programs).then(|| self.toolchain.code_file().into()),
            program: programs.then(|| self.toolchain.code_file().into()),
            sources: Vec::new(),
            params: call.params,
            block: [threads, 1, 1],
            cluster: cluster(op),
            dynamic_shared_bytes: shared,
            resources: None,
        });
        self.steps.push(Step::Launch(Launch {
            kernel: name,
            args: call.args,
            grid,
            overlaps_previous: op.has_attribute("overlaps_previous"),
        }));
        Ok(())
    }

    /// The name of a kernel: that of its symbol with the same parameters, numbered where the symbol has others too.
    fn kernel(&mut self, mut kernel: Kernel) -> String {
        let same = |other: &&Kernel| other.symbol == kernel.symbol;
        let others: Vec<_> = self.kernels.iter().filter(same).collect();
        if let Some(known) = others.iter().find(|other| other.params == kernel.params) {
            return known.name.clone();
        }
        if !others.is_empty() {
            kernel.name = format!("{}_{}", kernel.symbol, others.len());
        }
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        name
    }
}

/// The parameters and arguments of a launch.
#[derive(Default)]
struct Call {
    params: Vec<Param>,
    args: Vec<Arg>,
    /// The operands in memory, by their position.
    memory: BTreeMap<usize, Memory>,
    /// The integers among the operands, by their position.
    scalars: BTreeMap<usize, Expr>,
}

impl Call {
    fn push(&mut self, name: String, kind: ParamKind, arg: Arg) {
        self.params.push(Param { name, kind });
        self.args.push(arg);
    }

    fn int<'c>(&mut self, op: Op<'c>, at: usize, r#type: Type<'c>, expr: Expr) -> PassResult<'c> {
        let ty = match bits(r#type) {
            // The ABI passes an index as 64 bits.
            None | Some(64) => ScalarType::I64,
            Some(32) => ScalarType::I32,
            Some(_) => return Err(scalar(op, at, r#type)),
        };
        self.scalars.insert(at, expr.clone());
        self.push(format!("p{at}"), ParamKind::Scalar { ty }, Arg::Int(expr));
        Ok(())
    }

    fn float<'c>(
        &mut self,
        op: Op<'c>,
        at: usize,
        r#type: Type<'c>,
        number: f64,
    ) -> PassResult<'c> {
        let ty = match bits(r#type) {
            Some(32) => ScalarType::F32,
            Some(64) => ScalarType::F64,
            _ => return Err(scalar(op, at, r#type)),
        };
        self.push(
            format!("p{at}"),
            ParamKind::Scalar { ty },
            Arg::Float(number),
        );
        Ok(())
    }

    /// A pointer to memory, and the extents that are dynamic.
    fn tensor(&mut self, at: usize, memory: &str, access: Access, extents: &[Expr]) {
        self.push(
            format!("p{at}"),
            ParamKind::Pointer { access, align: 16 },
            Arg::Memory(MemRef::start_of(memory)),
        );
        for (number, extent) in extents.iter().enumerate() {
            let name = match number {
                0 => format!("p{at}_extent"),
                _ => format!("p{at}_extent{number}"),
            };
            self.push(
                name,
                ParamKind::Scalar {
                    ty: ScalarType::I64,
                },
                Arg::Int(extent.clone()),
            );
        }
    }
}

/// Whether a tensor is what a launch gave, under whatever shape, and nothing reads it but the operation that asks: its
/// memory may then be written again.
fn is_last_use(tensor: Val<'_>) -> bool {
    let alone = users(tensor).len() == 1;
    let Some(op) = defining(tensor).filter(|_| alone) else {
        return false;
    };
    match name(op).as_str() {
        ops::LAUNCH => true,
        "tensor.expand_shape" | "tensor.collapse_shape" => operands(op)
            .first()
            .is_some_and(|source| is_last_use(*source)),
        _ => false,
    }
}

/// The blocks of a launch's clusters, when it has any.
fn cluster(op: Op<'_>) -> Option<[u32; 3]> {
    let extents = op
        .attribute("cluster")
        .ok()
        .and_then(attribute::read_i64s)?;
    let extent = |at: usize| u32::try_from(extents.get(at).copied().unwrap_or(1)).ok();
    Some([extent(0)?, extent(1)?, extent(2)?])
}

fn scalar<'c>(op: Op<'c>, at: usize, r#type: Type<'c>) -> PassError<'c> {
    error(
        op,
        format!("argument {at}: a package passes scalars of 32 or 64 bits, got {type}"),
    )
}
