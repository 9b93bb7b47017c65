//! Matrix products with what joins them.

use super::read::{Reader, element};
use super::{Launch, Planner, launched, operands as group_operands, refuse_scalars};
use axe_dialect::ops;
use axe_package::DType;
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::operators::start_of;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val};
use axe_passes::{PassError, PassResult};
use axe_trn::facts::chip::Generation;
use axe_trn::plan::{Fused, Matmul, Order};
use melior::ir::operation::OperationLike;

/// The operands of a product, and their extents.
struct Product<'c> {
    a: Val<'c>,
    b: Val<'c>,
    batch: i64,
    sizes: [i64; 3],
    /// Whether A lies as [K, M], and B as [N, K].
    transposed: [bool; 2],
}

impl<'c> Product<'c> {
    fn read(op: Op<'c>) -> PassResult<'c, Self> {
        let error = |what: &str| PassError::new(op.location(), format!("'{}' {what}", name(op)));
        if name(op) != ops::GEMM {
            return Err(error(
                "is no plain matrix product: plans for the tensor engine are of axe.gemm",
            ));
        }
        let values = operands(op);
        let (Some(&[a, b]), &[result]) = (values.get(..2), results(op).as_slice()) else {
            return Err(error("expected two operands and a result"));
        };
        let shape = |value| TensorType::of_value(value).map(|tensor| tensor.shape);
        let (Some(a_shape), Some(shape)) = (shape(a), shape(result)) else {
            return Err(error("expected tensors"));
        };
        if a_shape
            .iter()
            .chain(&shape)
            .any(|extent| *extent == DYNAMIC)
        {
            return Err(error(
                "expected static extents: a kernel of Trainium is compiled for its sizes",
            ));
        }
        let transposed = ["trans_a", "trans_b"].map(|flag| op.has_attribute(flag));
        let ([.., a0, a1], [batch @ .., m, n]) = (a_shape.as_slice(), shape.as_slice()) else {
            return Err(error("expected matrices"));
        };
        Ok(Self {
            a,
            b,
            batch: batch.iter().product(),
            sizes: [*m, if transposed[0] { *a0 } else { *a1 }, *n],
            transposed,
        })
    }
}

impl Planner {
    /// A product, with the operators that join it.
    pub(super) fn product<'c>(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
        op: Op<'c>,
    ) -> PassResult<'c> {
        let product = Product::read(op)?;
        let fusion = Fusion::read(group, outputs, start_of(op))?;
        refuse_scalars(&fusion, op)?;
        let [m, k, n] = product.sizes;
        let reader = Reader::read(&fusion, op, n)?;
        let given = [element(op, product.a)?, element(op, product.b)?];
        if given[0] != given[1] || given[0] == DType::F64 {
            return Err(PassError::new(
                op.location(),
                format!(
                    "a product of {} and {}: the tensor engine takes f32, bf16 or f16 of one type",
                    given[0], given[1]
                ),
            ));
        }
        let order = |minor: bool| if minor { Order::KMinor } else { Order::KMajor };
        let fused = Fused {
            matmul: Matmul {
                sizes: product.sizes,
                lhs: order(!product.transposed[0]),
                rhs: order(product.transposed[1]),
                inputs: given[0],
                output: DType::F32,
            },
            batch: product.batch,
            shared: [false; 2],
            graph: reader.graph.clone(),
        };
        let kernel = frame.name("gemm");
        let program = fused
            .plan(&kernel, self.chip.name)
            .map_err(|declined| PassError::new(op.location(), declined.to_string()))?;
        self.report(&program, &reader, group, self.orders(&fused.matmul));
        let side = |frame: &mut Frame<'c>, value, rows: i64, width: i64, turned: bool| {
            let [rows, width] = if turned { [width, rows] } else { [rows, width] };
            let shape = [product.batch * rows, width];
            frame
                .operand(builder, value, &shape)
                .map(|operand| operand.tensor)
        };
        let a = side(frame, product.a, m, k, product.transposed[0])?;
        let b = side(frame, product.b, k, n, product.transposed[1])?;
        let (inputs, outputs) = group_operands(frame, builder, &fusion, n)?;
        let launch = Launch {
            program,
            inputs: [vec![a, b], inputs].concat(),
            outputs,
        };
        launched(frame, builder, launch)
    }

    /// What was not done with operands whose K is not on the partitions.
    fn orders(&self, matmul: &Matmul) -> Vec<(&'static str, String)> {
        let sides = [("left", matmul.lhs), ("right", matmul.rhs)];
        let minor = sides
            .into_iter()
            .filter(|(_, order)| *order == Order::KMinor);
        let by_dma = self.chip.is_at_least(Generation::Gen3) && matmul.inputs.bytes() == 2;
        let why = |(side, _): (&str, Order)| match by_dma {
            true => (
                "nc_transpose",
                format!("the {side} operand has K along its rows; DMA transposes it on the way"),
            ),
            false => (
                "dma_transpose",
                format!(
                    "the {side} operand has K along its rows, and DMA transposes elements of 16 bits on trn2; the tensor engine does it"
                ),
            ),
        };
        minor.map(why).collect()
    }
}
