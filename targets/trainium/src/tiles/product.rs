//! `axe.gemm`: sums are in PSUM, and stay there while products add to them.

use super::lowering::{Lowering, Value, failed};
use super::storage::{Form, Tensor};
use axe_dialect::ops::GemmOp;
use axe_package::DType;
use axe_passes::PassResult;
use axe_passes::ir::value::{identity, parts, users};
use axe_passes::ir::{Op, Val};
use axe_trn::dispatch;
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::program::{Accumulate, Alu, Space};

impl<'c> Lowering<'c> {
    pub(super) fn gemm(&mut self, op: Op<'c>) -> PassResult<'c> {
        let gemm: GemmOp = parts(op)?;
        if gemm.is_async {
            return Err(failed(
                op,
                "expected no 'async': the engines run side by side anyway, and what reads a product waits for it",
            ));
        }
        let a = self.factor(gemm.a, op)?;
        let b = self.factor(gemm.b, op)?;
        let start = match gemm.acc {
            None => None,
            Some(acc) => match self.known(acc, op)? {
                Value::Number(0.0) => None,
                _ => Some(acc),
            },
        };
        let own = start.filter(|acc| self.is_sum_of(*acc, op));
        let sums = match own {
            Some(acc) => self.tensor(acc, op)?,
            None => self.new_sums(gemm.result, op)?,
        };
        let transposed = [gemm.trans_a, gemm.trans_b];
        self.bind(op, |code| {
            let (d, a, b) = (&sums.region, &a.region, &b.region);
            dispatch::gemm(code, d, a, b, transposed, Accumulate::Auto)
        })?;
        let result = match start {
            Some(start) if own.is_none() => {
                let start = self.tensor(start, op)?;
                let to = self.tile_of(gemm.result, op, "summed", Space::Sbuf)?;
                self.add(op, &to, &start, &sums)?;
                to
            }
            _ => self.converted(gemm.result, op, sums)?,
        };
        // What nothing else reads may be added to where it is.
        if result.space == Space::Psum && users(gemm.result).len() == 1 {
            self.sums.insert(identity(gemm.result));
        }
        self.know(gemm.result, Value::Tensor(result));
        Ok(())
    }

    /// An operand, in SBUF, where the tensor engine reads it.
    fn factor(&mut self, value: Val<'c>, op: Op<'c>) -> PassResult<'c, Tensor> {
        let factor = self.tensor(value, op)?;
        match factor.space {
            Space::Psum => self.staged(op, &factor),
            Space::Sbuf => Ok(factor),
            Space::Hbm => Err(failed(
                op,
                "the tensor engine reads SBUF: expected operands that axe.copy loads",
            )),
        }
    }

    /// A tensor in PSUM once more in SBUF, where it lies alike.
    fn staged(&mut self, op: Op<'c>, from: &Tensor) -> PassResult<'c, Tensor> {
        let form = Form {
            shape: from.region.shape.clone(),
            dtype: from.dtype,
            layout: from.region.layout.clone(),
            space: Space::Sbuf,
        };
        let tile = self.tile(op, "staged", &form)?;
        self.beside(op, |code| dispatch::copy(code, &tile.region, &from.region))?;
        Ok(tile)
    }

    /// Sums in PSUM, which are f32.
    pub(super) fn new_sums(&mut self, value: Val<'c>, op: Op<'c>) -> PassResult<'c, Tensor> {
        let form = self.form(value, op, Space::Psum)?;
        let form = Form {
            dtype: DType::F32,
            ..form
        };
        self.tile(op, "sums", &form)
    }

    /// Sums in the type of the result.
    fn converted(&mut self, result: Val<'c>, op: Op<'c>, sums: Tensor) -> PassResult<'c, Tensor> {
        let form = self.form(result, op, Space::Sbuf)?;
        if form.dtype == sums.dtype {
            return Ok(sums);
        }
        let to = self.tile_of(result, op, "product", Space::Sbuf)?;
        self.beside(op, |code| dispatch::copy(code, &to.region, &sums.region))?;
        Ok(to)
    }

    /// `to = a + b`, element by element.
    pub(super) fn add(
        &mut self,
        op: Op<'c>,
        to: &Tensor,
        a: &Tensor,
        b: &Tensor,
    ) -> PassResult<'c> {
        let mut graph = Graph::new(1, 1);
        let inputs = [("start", a), ("sums", b)]
            .map(|(name, tensor)| graph.input(name, Kind::Full, tensor.dtype));
        let sum = graph.binary(Alu::Add, inputs[0], inputs[1], to.dtype);
        graph.output("sum", Kind::Full, to.dtype, sum);
        let sources = [a.region.clone(), b.region.clone()];
        let outputs = [to.region.clone()];
        self.beside(op, |code| dispatch::map(code, &outputs, &graph, &sources))
    }
}
