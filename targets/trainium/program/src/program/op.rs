//! The operations, one to one with the documented instructions (`nki.isa`).

use super::{Alu, Function, View, number};
use serde::{Deserialize, Serialize};

/// Whether a product adds to what its destination holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accumulate {
    /// The first product into an element overwrites, later ones add.
    Auto,
    /// Adds.
    Always,
    /// Overwrites.
    Never,
}

/// A value for each partition: a number, or a tile of one f32 element in each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scalar {
    /// The same number everywhere.
    Number(#[serde(with = "number")] f64),
    /// `[P, 1]`.
    Tile(View),
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<View> for Scalar {
    fn from(tile: View) -> Self {
        Self::Tile(tile)
    }
}

/// `data op operand`, or `operand op data`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The function.
    pub op: Alu,
    /// Its other operand.
    pub operand: Scalar,
    /// Whether the operand is the left one.
    pub reverse: bool,
}

/// What the scalar engine does with its accumulation registers, one in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Adds this instruction's results to the registers.
    Reduce,
    /// Sets the registers to 0 first.
    ResetReduce,
}

/// An operation. `dst` is what it writes; `reduce` is `[P, 1]` and gets the registers' values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the fields are the parameters of the documented instructions, under their names
pub enum Op {
    /// `dst[M, N] (+)= stationary[K, M]^T moving[K, N]`.
    NcMatmul {
        dst: View,
        stationary: View,
        moving: View,
        accumulate: Accumulate,
    },
    /// `dst[F, P] = data[P, F]`.
    NcTranspose { dst: View, data: View },
    /// `dst[F, P] = src[P, F]`, by DMA.
    DmaTranspose { dst: View, src: View },
    /// `dst = src`, between HBM and SBUF, element by element in row-major order.
    DmaCopy { dst: View, src: View },
    /// `dst = src`.
    TensorCopy { dst: View, src: View },
    /// `dst = value`.
    Memset {
        dst: View,
        #[serde(with = "number")]
        value: f64,
    },
    /// `dst = src` where `predicate` is not 0 (is 0, when reversed).
    TensorCopyPredicated {
        dst: View,
        src: View,
        predicate: View,
        reverse: bool,
    },
    /// Within each 32 partitions, partition `i` of `dst` is partition `mask[i]` of `src`; 255 leaves it as it is.
    NcStreamShuffle {
        dst: View,
        src: View,
        mask: Vec<i64>,
    },
    /// `dst = function(data * scale + bias)`; with `command`, sums of it over the free dimensions in the registers.
    Activation {
        dst: View,
        data: View,
        function: Function,
        bias: Option<View>,
        scale: Scalar,
        command: Option<Reduction>,
        reduce: Option<View>,
    },
    /// `dst = data1 op data2`.
    TensorTensor {
        dst: View,
        data1: View,
        data2: View,
        op: Alu,
    },
    /// `dst = (data op0 operand0) op1 operand1`.
    TensorScalar {
        dst: View,
        data: View,
        first: Step,
        second: Option<Step>,
    },
    /// `dst = (data op0 operand0) op1 operand1`, where `operand1` is a tile of the data's shape.
    ScalarTensorTensor {
        dst: View,
        data: View,
        first: Step,
        op1: Alu,
        operand1: View,
        reverse1: bool,
    },
    /// `dst` is the reduction of `data` over its last `axes` dimensions, negated when asked.
    TensorReduce {
        dst: View,
        data: View,
        op: Alu,
        axes: usize,
        negate: bool,
    },
    /// `dst = data op0 operand0`, and `reduce` the reduction of it over the free dimensions.
    TensorScalarReduce {
        dst: View,
        data: View,
        first: Step,
        reduce_op: Alu,
        reduce: View,
    },
    /// `dst[0]` is the reduction of `data` over the partitions.
    TensorPartitionReduce { dst: View, data: View, op: Alu },
    /// `dst = 1 / data`.
    Reciprocal { dst: View, data: View },
    /// `on_true` where `offset + p * channel_multiplier + sum of i_d * pattern_d` compares with 0 as `compare` says, else
    /// `on_false`. `pattern` has a step for each free dimension of `dst`.
    AffineSelect {
        dst: View,
        on_true: View,
        #[serde(with = "number")]
        on_false: f64,
        pattern: Vec<i64>,
        offset: i64,
        channel_multiplier: i64,
        compare: Alu,
    },
    /// `on_true` where `index compare0 bound0 and index compare1 bound1`, else `on_false`; the index counts the free
    /// elements from `start`. `reduce` gets the maximum of each partition.
    RangeSelect {
        dst: View,
        on_true: View,
        #[serde(with = "number")]
        on_false: f64,
        compare0: Alu,
        bound0: View,
        compare1: Alu,
        bound1: View,
        start: i64,
        reduce: Option<View>,
    },
    /// `dst = offset + p * channel_multiplier + sum of i_d * pattern_d`.
    Iota {
        dst: View,
        pattern: Vec<i64>,
        offset: i64,
        channel_multiplier: i64,
    },
    /// Count, mean and variance times count of the even, and of the odd elements of each partition: `[P, 6]`.
    BnStats { dst: View, data: View },
    /// Mean and variance of each partition, `[P, 2]`, of triples as [`Op::BnStats`] writes them.
    BnAggr { dst: View, data: View },
    /// `dst[i] = (dst[i - 1] op0 data0[i]) op1 data1[i]`, from `initial`.
    TensorTensorScan {
        dst: View,
        data0: View,
        data1: View,
        initial: Scalar,
        op0: Alu,
        op1: Alu,
    },
    /// The eight largest elements of each partition, in falling order: `[P, 8]`.
    Max8 { dst: View, src: View },
    /// The index in `data` of each of the eight values of `vals`, the next one for a value that comes again: `[P, 8]`.
    NcFindIndex8 { dst: View, data: View, vals: View },
    /// `data` with the first element that equals each of the eight `vals` replaced by `imm`.
    NcMatchReplace8 {
        dst: View,
        data: View,
        vals: View,
        #[serde(with = "number")]
        imm: f64,
    },
}

/// A view that an operation reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The parameter's name.
    pub role: &'static str,
    /// The view.
    pub view: &'a View,
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written.
    pub writes: bool,
}

/// Collects operands.
struct Operands<'a>(Vec<Operand<'a>>);

impl<'a> Operands<'a> {
    fn writing(dst: &'a View) -> Self {
        Self(Vec::new()).also("dst", dst, false, true)
    }

    fn also(mut self, role: &'static str, view: &'a View, reads: bool, writes: bool) -> Self {
        self.0.push(Operand {
            role,
            view,
            reads,
            writes,
        });
        self
    }

    fn read(self, role: &'static str, view: &'a View) -> Self {
        self.also(role, view, true, false)
    }

    fn scalar(self, role: &'static str, scalar: &'a Scalar) -> Self {
        match scalar {
            Scalar::Number(_) => self,
            Scalar::Tile(view) => self.read(role, view),
        }
    }

    fn maybe(self, role: &'static str, view: Option<&'a View>) -> Self {
        match view {
            None => self,
            Some(view) => self.read(role, view),
        }
    }

    fn reduced(self, view: Option<&'a View>) -> Self {
        match view {
            None => self,
            Some(view) => self.also("reduce_res", view, false, true),
        }
    }
}

impl Op {
    /// The name, as the IR and `nki.isa` have it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Op::NcMatmul { .. } => "nc_matmul",
            Op::NcTranspose { .. } => "nc_transpose",
            Op::DmaTranspose { .. } => "dma_transpose",
            Op::DmaCopy { .. } => "dma_copy",
            Op::TensorCopy { .. } => "tensor_copy",
            Op::Memset { .. } => "memset",
            Op::TensorCopyPredicated { .. } => "tensor_copy_predicated",
            Op::NcStreamShuffle { .. } => "nc_stream_shuffle",
            Op::Activation { .. } => "activation",
            Op::TensorTensor { .. } => "tensor_tensor",
            Op::TensorScalar { .. } => "tensor_scalar",
            Op::ScalarTensorTensor { .. } => "scalar_tensor_tensor",
            Op::TensorReduce { .. } => "tensor_reduce",
            Op::TensorScalarReduce { .. } => "tensor_scalar_reduce",
            Op::TensorPartitionReduce { .. } => "tensor_partition_reduce",
            Op::Reciprocal { .. } => "reciprocal",
            Op::AffineSelect { .. } => "affine_select",
            Op::RangeSelect { .. } => "range_select",
            Op::Iota { .. } => "iota",
            Op::BnStats { .. } => "bn_stats",
            Op::BnAggr { .. } => "bn_aggr",
            Op::TensorTensorScan { .. } => "tensor_tensor_scan",
            Op::Max8 { .. } => "max8",
            Op::NcFindIndex8 { .. } => "nc_find_index8",
            Op::NcMatchReplace8 { .. } => "nc_match_replace8",
        }
    }

    /// What it writes first of all.
    #[must_use]
    pub fn dst(&self) -> &View {
        match self {
            Op::NcMatmul { dst, .. }
            | Op::NcTranspose { dst, .. }
            | Op::DmaTranspose { dst, .. }
            | Op::DmaCopy { dst, .. }
            | Op::TensorCopy { dst, .. }
            | Op::Memset { dst, .. }
            | Op::TensorCopyPredicated { dst, .. }
            | Op::NcStreamShuffle { dst, .. }
            | Op::Activation { dst, .. }
            | Op::TensorTensor { dst, .. }
            | Op::TensorScalar { dst, .. }
            | Op::ScalarTensorTensor { dst, .. }
            | Op::TensorReduce { dst, .. }
            | Op::TensorScalarReduce { dst, .. }
            | Op::TensorPartitionReduce { dst, .. }
            | Op::Reciprocal { dst, .. }
            | Op::AffineSelect { dst, .. }
            | Op::RangeSelect { dst, .. }
            | Op::Iota { dst, .. }
            | Op::BnStats { dst, .. }
            | Op::BnAggr { dst, .. }
            | Op::TensorTensorScan { dst, .. }
            | Op::Max8 { dst, .. }
            | Op::NcFindIndex8 { dst, .. }
            | Op::NcMatchReplace8 { dst, .. } => dst,
        }
    }

    /// Everything that it reads or writes, `dst` first. A product's destination counts as written alone: whether it is
    /// read is decided element by element.
    #[must_use]
    pub fn operands(&self) -> Vec<Operand<'_>> {
        let begin = Operands::writing(self.dst());
        match self {
            Op::Memset { .. } | Op::Iota { .. } => begin,
            Op::NcMatmul {
                stationary, moving, ..
            } => begin.read("stationary", stationary).read("moving", moving),
            Op::NcTranspose { data, .. }
            | Op::TensorReduce { data, .. }
            | Op::TensorPartitionReduce { data, .. }
            | Op::Reciprocal { data, .. }
            | Op::BnStats { data, .. }
            | Op::BnAggr { data, .. } => begin.read("data", data),
            Op::DmaTranspose { src, .. }
            | Op::DmaCopy { src, .. }
            | Op::TensorCopy { src, .. }
            | Op::NcStreamShuffle { src, .. }
            | Op::Max8 { src, .. } => begin.read("src", src),
            Op::TensorCopyPredicated { src, predicate, .. } => {
                begin.read("src", src).read("predicate", predicate)
            }
            Op::Activation {
                data,
                bias,
                scale,
                reduce,
                ..
            } => begin
                .read("data", data)
                .maybe("bias", bias.as_ref())
                .scalar("scale", scale)
                .reduced(reduce.as_ref()),
            Op::TensorTensor { data1, data2, .. } => {
                begin.read("data1", data1).read("data2", data2)
            }
            Op::TensorScalar {
                data,
                first,
                second,
                ..
            } => {
                let operands = begin.read("data", data).scalar("operand0", &first.operand);
                match second {
                    None => operands,
                    Some(second) => operands.scalar("operand1", &second.operand),
                }
            }
            Op::ScalarTensorTensor {
                data,
                first,
                operand1,
                ..
            } => begin
                .read("data", data)
                .scalar("operand0", &first.operand)
                .read("operand1", operand1),
            Op::TensorScalarReduce {
                data,
                first,
                reduce,
                ..
            } => begin
                .read("data", data)
                .scalar("operand0", &first.operand)
                .reduced(Some(reduce)),
            Op::AffineSelect { on_true, .. } => begin.read("on_true_tile", on_true),
            Op::RangeSelect {
                on_true,
                bound0,
                bound1,
                reduce,
                ..
            } => begin
                .read("on_true_tile", on_true)
                .read("bound0", bound0)
                .read("bound1", bound1)
                .reduced(reduce.as_ref()),
            Op::TensorTensorScan {
                data0,
                data1,
                initial,
                ..
            } => begin
                .read("data0", data0)
                .read("data1", data1)
                .scalar("initial", initial),
            Op::NcFindIndex8 { data, vals, .. } | Op::NcMatchReplace8 { data, vals, .. } => {
                begin.read("data", data).read("vals", vals)
            }
        }
        .0
    }
}
