//! Operations of the dialect as instructions.

use crate::read::{at, location};
use crate::scope::Scope;
use axe_passes::PassResult;
use axe_passes::ir::Op as Operation;
use axe_passes::ir::attribute::{float, integer, read_i64s};
use axe_passes::ir::value::{name, operands};
use axe_trn::facts::chip::Engine;
use axe_trn::program::{Accumulate, Alu, Function, Instruction, Op, Reduction, Scalar, Step, View};
use axe_trn::rules::engine::default_engine;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// The operands of each operation, as its ODS has them; a question mark for those that may be absent.
const OPERANDS: [(&str, &[&str]); 25] = [
    ("trn.nc_matmul", &["dst", "stationary", "moving"]),
    ("trn.nc_transpose", &["dst", "data"]),
    ("trn.dma_transpose", &["dst", "src"]),
    ("trn.dma_copy", &["dst", "src"]),
    ("trn.tensor_copy", &["dst", "src"]),
    ("trn.memset", &["dst"]),
    ("trn.tensor_copy_predicated", &["dst", "src", "predicate"]),
    ("trn.nc_stream_shuffle", &["dst", "src"]),
    (
        "trn.activation",
        &["dst", "data", "bias?", "scale?", "reduce_res?"],
    ),
    ("trn.tensor_tensor", &["dst", "data1", "data2"]),
    (
        "trn.tensor_scalar",
        &["dst", "data", "operand0?", "operand1?"],
    ),
    (
        "trn.scalar_tensor_tensor",
        &["dst", "data", "operand1", "operand0?"],
    ),
    ("trn.reciprocal", &["dst", "data"]),
    (
        "trn.tensor_tensor_scan",
        &["dst", "data0", "data1", "initial?"],
    ),
    ("trn.tensor_reduce", &["dst", "data"]),
    (
        "trn.tensor_scalar_reduce",
        &["dst", "data", "reduce_res", "operand0?"],
    ),
    ("trn.tensor_partition_reduce", &["dst", "data"]),
    ("trn.affine_select", &["dst", "on_true_tile"]),
    (
        "trn.range_select",
        &["dst", "on_true_tile", "bound0", "bound1", "reduce_res?"],
    ),
    ("trn.iota", &["dst"]),
    ("trn.bn_stats", &["dst", "data"]),
    ("trn.bn_aggr", &["dst", "data"]),
    ("trn.max8", &["dst", "src"]),
    ("trn.nc_find_index8", &["dst", "data", "vals"]),
    ("trn.nc_match_replace8", &["dst", "data", "vals"]),
];

/// The operands of an operation; none for one that is no instruction.
pub(crate) fn roles(kind: &str) -> &'static [&'static str] {
    let known = OPERANDS.iter().find(|(known, _)| *known == kind);
    known.map_or(&[], |(_, roles)| roles)
}

/// One operation, with its operands by name.
struct Reader<'c> {
    op: Operation<'c>,
    views: HashMap<&'static str, View>,
}

/// An operation as an instruction.
///
/// # Errors
/// An operand that is no tile, an attribute that is missing, an operation that is no instruction.
pub(crate) fn read<'c>(op: Operation<'c>, scope: &mut Scope) -> PassResult<'c, Instruction> {
    let reader = Reader::new(op, scope)?;
    let read = reader.op()?;
    let chip = scope.program.chip();
    let engine = match reader.case("engine", &Engine::ALL)? {
        Some(engine) => engine,
        None => chip
            .and_then(|chip| default_engine(&read, &scope.program, chip))
            .unwrap_or(Engine::Vector),
    };
    Ok(Instruction {
        op: read,
        engine,
        location: location(op),
    })
}

impl<'c> Reader<'c> {
    fn new(op: Operation<'c>, scope: &mut Scope) -> PassResult<'c, Self> {
        let kind = name(op);
        let Some((_, roles)) = OPERANDS.iter().find(|(known, _)| *known == kind) else {
            return Err(at(op, "expected an instruction of the trn dialect"));
        };
        let segments = op
            .attribute("operandSegmentSizes")
            .ok()
            .and_then(|attribute| DenseI32ArrayAttribute::try_from(attribute).ok());
        let values = operands(op);
        let (mut views, mut next) = (HashMap::new(), 0);
        for (index, role) in roles.iter().enumerate() {
            let present = match &segments {
                Some(segments) => segments.element(index).unwrap_or(0) > 0,
                None => next < values.len(),
            };
            if !present {
                continue;
            }
            let value = values
                .get(next)
                .copied()
                .ok_or_else(|| at(op, format!("expected operand {role}")))?;
            views.insert(role.trim_end_matches('?'), scope.view(value, op)?);
            next += 1;
        }
        Ok(Self { op, views })
    }

    fn view(&self, role: &str) -> PassResult<'c, View> {
        self.maybe(role)
            .ok_or_else(|| at(self.op, format!("expected operand {role}")))
    }

    fn maybe(&self, role: &str) -> Option<View> {
        self.views.get(role).cloned()
    }

    fn number(&self, key: &str) -> PassResult<'c, f64> {
        let attribute = self.op.attribute(key).ok();
        attribute.and_then(float).ok_or_else(|| self.missing(key))
    }

    fn integer(&self, key: &str) -> PassResult<'c, i64> {
        let attribute = self.op.attribute(key).ok();
        attribute.and_then(integer).ok_or_else(|| self.missing(key))
    }

    fn list(&self, key: &str) -> PassResult<'c, Vec<i64>> {
        let attribute = self.op.attribute(key).ok();
        attribute
            .and_then(read_i64s)
            .ok_or_else(|| self.missing(key))
    }

    fn flag(&self, key: &str) -> bool {
        self.op.attribute(key).is_ok()
    }

    fn missing(&self, key: &str) -> axe_passes::PassError<'c> {
        at(self.op, format!("expected attribute {key}"))
    }

    /// The case of an enum attribute, by its number.
    fn case<T: Copy>(&self, key: &str, cases: &[T]) -> PassResult<'c, Option<T>> {
        let Ok(attribute) = self.op.attribute(key) else {
            return Ok(None);
        };
        let case = integer(attribute).and_then(|number| cases.get(usize::try_from(number).ok()?));
        case.copied().map(Some).ok_or_else(|| self.missing(key))
    }

    fn alu(&self, key: &str) -> PassResult<'c, Alu> {
        self.case(key, Alu::ALL)?.ok_or_else(|| self.missing(key))
    }

    /// A tile where it is given, a number otherwise.
    fn scalar(&self, role: &str, key: &str) -> PassResult<'c, Scalar> {
        match self.maybe(role) {
            Some(tile) => Ok(tile.into()),
            None => Ok(self.number(key)?.into()),
        }
    }

    fn step(&self, number: u8) -> PassResult<'c, Step> {
        Ok(Step {
            op: self.alu(&format!("op{number}"))?,
            operand: self.scalar(&format!("operand{number}"), &format!("value{number}"))?,
            reverse: self.flag(&format!("reverse{number}")),
        })
    }

    fn op(&self) -> PassResult<'c, Op> {
        let dst = self.view("dst")?;
        let kind = name(self.op);
        Ok(match kind.trim_start_matches("trn.") {
            "nc_matmul" => Op::NcMatmul {
                dst,
                stationary: self.view("stationary")?,
                moving: self.view("moving")?,
                accumulate: self
                    .case(
                        "accumulate",
                        &[Accumulate::Auto, Accumulate::Always, Accumulate::Never],
                    )?
                    .unwrap_or(Accumulate::Auto),
            },
            "nc_transpose" => Op::NcTranspose {
                dst,
                data: self.view("data")?,
            },
            "dma_transpose" => Op::DmaTranspose {
                dst,
                src: self.view("src")?,
            },
            "dma_copy" => Op::DmaCopy {
                dst,
                src: self.view("src")?,
            },
            "tensor_copy" => Op::TensorCopy {
                dst,
                src: self.view("src")?,
            },
            "memset" => Op::Memset {
                dst,
                value: self.number("value")?,
            },
            "tensor_copy_predicated" => Op::TensorCopyPredicated {
                dst,
                src: self.view("src")?,
                predicate: self.view("predicate")?,
                reverse: self.flag("reverse"),
            },
            "nc_stream_shuffle" => Op::NcStreamShuffle {
                dst,
                src: self.view("src")?,
                mask: self.list("mask")?,
            },
            "activation" => Op::Activation {
                dst,
                data: self.view("data")?,
                function: self
                    .case("function", Function::ALL)?
                    .ok_or_else(|| self.missing("function"))?,
                bias: self.maybe("bias"),
                scale: match self.maybe("scale") {
                    Some(tile) => tile.into(),
                    None => self.number("scale_value").unwrap_or(1.0).into(),
                },
                command: self.case("command", &[Reduction::Reduce, Reduction::ResetReduce])?,
                reduce: self.maybe("reduce_res"),
            },
            "tensor_tensor" => Op::TensorTensor {
                dst,
                data1: self.view("data1")?,
                data2: self.view("data2")?,
                op: self.alu("op")?,
            },
            "tensor_scalar" => Op::TensorScalar {
                dst,
                data: self.view("data")?,
                first: self.step(0)?,
                second: match self.flag("op1") {
                    true => Some(self.step(1)?),
                    false => None,
                },
            },
            "scalar_tensor_tensor" => Op::ScalarTensorTensor {
                dst,
                data: self.view("data")?,
                first: self.step(0)?,
                op1: self.alu("op1")?,
                operand1: self.view("operand1")?,
                reverse1: self.flag("reverse1"),
            },
            other => return self.other(other, dst),
        })
    }

    /// The operations that reduce, select and count.
    fn other(&self, kind: &str, dst: View) -> PassResult<'c, Op> {
        Ok(match kind {
            "reciprocal" => Op::Reciprocal {
                dst,
                data: self.view("data")?,
            },
            "tensor_tensor_scan" => Op::TensorTensorScan {
                dst,
                data0: self.view("data0")?,
                data1: self.view("data1")?,
                initial: self.scalar("initial", "initial_value")?,
                op0: self.alu("op0")?,
                op1: self.alu("op1")?,
            },
            "tensor_reduce" => Op::TensorReduce {
                dst,
                data: self.view("data")?,
                op: self.alu("op")?,
                axes: usize::try_from(self.integer("axes")?).unwrap_or(usize::MAX),
                negate: self.flag("negate"),
            },
            "tensor_scalar_reduce" => Op::TensorScalarReduce {
                dst,
                data: self.view("data")?,
                first: self.step(0)?,
                reduce_op: self.alu("reduce_op")?,
                reduce: self.view("reduce_res")?,
            },
            "tensor_partition_reduce" => Op::TensorPartitionReduce {
                dst,
                data: self.view("data")?,
                op: self.alu("op")?,
            },
            "affine_select" => Op::AffineSelect {
                dst,
                on_true: self.view("on_true_tile")?,
                on_false: self.number("on_false_value")?,
                pattern: self.list("pattern")?,
                offset: self.integer("offset")?,
                channel_multiplier: self.integer("channel_multiplier")?,
                compare: self.alu("cmp_op")?,
            },
            "range_select" => Op::RangeSelect {
                dst,
                on_true: self.view("on_true_tile")?,
                on_false: self.number("on_false_value")?,
                compare0: self.alu("comp_op0")?,
                bound0: self.view("bound0")?,
                compare1: self.alu("comp_op1")?,
                bound1: self.view("bound1")?,
                start: self.integer("range_start").unwrap_or(0),
                reduce: self.maybe("reduce_res"),
            },
            "iota" => Op::Iota {
                dst,
                pattern: self.list("pattern")?,
                offset: self.integer("offset")?,
                channel_multiplier: self.integer("channel_multiplier")?,
            },
            "bn_stats" => Op::BnStats {
                dst,
                data: self.view("data")?,
            },
            "bn_aggr" => Op::BnAggr {
                dst,
                data: self.view("data")?,
            },
            "max8" => Op::Max8 {
                dst,
                src: self.view("src")?,
            },
            "nc_find_index8" => Op::NcFindIndex8 {
                dst,
                data: self.view("data")?,
                vals: self.view("vals")?,
            },
            "nc_match_replace8" => Op::NcMatchReplace8 {
                dst,
                data: self.view("data")?,
                vals: self.view("vals")?,
                imm: self.number("imm")?,
            },
            _ => return Err(at(self.op, "expected an instruction of the trn dialect")),
        })
    }
}
