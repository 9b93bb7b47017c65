//! Walks a kernel and emits its operators: values, control flow, and what is no operator of axe.

use super::emitter::Emitter;
use super::value::Bound;
use super::{overlap, start};
use crate::state::kernel::is_operator;
use crate::state::rings::Side;
use axe_dialect::ops;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::walk::operations;
use axe_passes::ir::{DYNAMIC, Int, Ints, Op};
use axe_passes::{PassResult, speculation};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};

impl<'c> Emitter<'c> {
    /// Emits the operations of a block, without its terminator.
    ///
    /// # Errors
    /// At the operation that no schedule takes, or that has no form in a kernel.
    pub(crate) fn block(&mut self, block: BlockRef<'c, 'c>) -> PassResult<'c, Option<Op<'c>>> {
        let mut operations = operations(block);
        let terminator = operations.pop();
        for op in operations {
            self.operation(op)?;
        }
        Ok(terminator)
    }

    /// Emits the body of a kernel, without its terminator; with `meets_again` the CTAs of its cluster meet at the end.
    ///
    /// # Errors
    /// As [`Emitter::block`].
    pub(crate) fn kernel_body(
        &mut self,
        body: BlockRef<'c, 'c>,
        meets_again: bool,
    ) -> PassResult<'c> {
        let mut operations = operations(body);
        operations.pop();
        let is_role = |op: &Op<'c>| name(*op) == ops::SCOPE && op.attribute("registers").is_ok();
        let others = operations.iter().rposition(|op| !is_role(op));
        let roles = operations.split_off(others.map_or(0, |last| last + 1));
        let setup = operations.iter().take_while(|op| overlap::is_setup(**op));
        let rest = operations.split_off(setup.count());
        let behind: Vec<_> = rest.iter().chain(&roles).copied().collect();
        self.start.in_roles = start::is_in_roles(&behind, self.kernel.threads, meets_again);
        for op in operations {
            self.operation(op)?;
        }
        self.start.previous = true;
        if !self.start.in_roles {
            self.finish_start()?;
        }
        for op in rest {
            self.operation(op)?;
        }
        self.roles(&roles)
    }

    /// Emits an operation of the kernel.
    pub(crate) fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        self.builder.location = op.location();
        self.start_before(op)?;
        if self.speculative {
            speculation::check(op)?;
        }
        let name = name(op);
        let result = results(op).first().copied();
        let memory = match name.as_str() {
            "scf.for" => return self.for_loop(op),
            "scf.if" => return self.branch(op),
            ops::SCOPE => return self.scope(op),
            ops::FOR_TILES => return self.for_tiles(op),
            ops::TILE_AT => return self.tile_at(op),
            ops::PIPELINE_CREATE => return self.create_ring(op),
            ops::PIPELINE_ACQUIRE => return self.take_slot(op, Side::Producer),
            ops::PIPELINE_WAIT => return self.take_slot(op, Side::Consumer),
            ops::PIPELINE_COMMIT => return self.give_slot(op, Side::Producer),
            ops::PIPELINE_RELEASE => return self.give_slot(op, Side::Consumer),
            ops::ORDERED_BEGIN => return self.begin_ordered(op),
            ops::ORDERED_END => return self.end_ordered(op),
            ops::INDEX => return self.element_index(op),
            ops::SLICE => self.slice(op)?,
            ops::VIEW => self.view(op)?,
            ops::PEER => self.peer(op)?,
            "memref.subview" => self.first_rows(op)?,
            "memref.reinterpret_cast" => self.reinterpreted(op)?,
            ops::ALLOC => self.alloc(op)?,
            ops::ALL_GATHER_CREATE => self.create_gather(op)?,
            ops::REDUCE_SCATTER_CREATE => self.create_scatter(op)?,
            "memref.dim" => return self.extent(op),
            "memref.load" if self.nest.is_some() => return self.element_of_nest(op),
            "memref.load" => return self.element(op),
            "linalg.index" => return self.loop_index(op),
            _ if is_operator(&name) => return self.operator(op),
            _ => return self.scalar_operation(op),
        };
        if let Some(result) = result {
            self.bind(result, Bound::Memory(Box::new(memory)));
        }
        Ok(())
    }

    /// Emits the plan of an operator of axe.
    fn operator(&mut self, op: Op<'c>) -> PassResult<'c> {
        let plan = self.plan_of(op)?;
        let values = plan.emit(self, op)?;
        self.bind_expanded(&results(op), &values)
    }

    /// `memref.load`: every thread has the element; zero where it does not exist.
    fn element(&mut self, op: Op<'c>) -> PassResult<'c> {
        let (Some(&result), operands) = (results(op).first(), operands(op)) else {
            return Err(self.error("expected a result"));
        };
        let Some((&source, index)) = operands.split_first() else {
            return Err(self.error("expected storage"));
        };
        let memory = self.memory(source)?;
        let mut at = Vec::new();
        for (dim, &own) in index.iter().enumerate() {
            let index = self.int(own)?;
            let index = match memory.shape.get(dim) {
                Some(&extent) if self.speculative && extent != DYNAMIC => {
                    self.within(index, speculation::is_defined(own), extent)?
                }
                _ => index,
            };
            at.push(self.ints().cast(index)?);
        }
        let pad = self.zero(memory.element)?;
        let value = super::schedules::load_at(self, &memory, &at, pad)?;
        self.bind(result, Bound::Scalar(value));
        Ok(())
    }

    /// An index brought into an extent: the body of a map runs beyond the edge of its tensor as well, where one may be anything, poison
    /// too where it is not known to be `defined`.
    fn within(&self, index: Int<'c>, defined: bool, extent: i64) -> PassResult<'c, Int<'c>> {
        let index = match index {
            Int::Value(value) if !defined => Int::Value(speculation::freeze(&self.builder, value)?),
            _ => index,
        };
        let wide = Ints::new(self.builder, 64);
        let most = Int::Known(extent.saturating_sub(1));
        wide.max(wide.min(wide.cast(index)?, most)?, Int::ZERO)
    }

    /// `memref.dim`.
    fn extent(&mut self, op: Op<'c>) -> PassResult<'c> {
        let (Some(&result), operands) = (results(op).first(), operands(op)) else {
            return Err(self.error("expected a result"));
        };
        let value = match self.kernel.facts.of(result).known() {
            Some(extent) => self.builder.index(extent)?,
            None => {
                let source = self.memory(operands.first().copied().unwrap_or(result))?;
                let dim = operands
                    .get(1)
                    .and_then(|dim| self.kernel.facts.of(*dim).known())
                    .and_then(|dim| usize::try_from(dim).ok());
                let extent = dim.and_then(|dim| source.extent_at(dim)).ok_or_else(|| {
                    self.error("expected the extent of a kernel's argument, at a known dimension")
                })?;
                let index = self.builder.index_type();
                self.builder
                    .value("arith.index_cast", &[extent], index, &[])?
            }
        };
        self.bind(result, Bound::Scalar(value));
        Ok(())
    }

    /// An operation of another dialect on scalars: cloned.
    fn scalar_operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        if self.block_in_cluster(op)? || self.math(op, &name(op))? || self.float8_conversion(op)? {
            return Ok(());
        }
        if self.bf16_conversion(op)? {
            return Ok(());
        }
        self.clone_scalars(op)
    }

    /// Clones an operation whose operands are scalars, and binds its results.
    pub(crate) fn clone_scalars(&mut self, op: Op<'c>) -> PassResult<'c> {
        let operands = operands(op)
            .into_iter()
            .map(|operand| self.scalar(operand))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let copy = self.builder.clone_of(op);
        for (at, operand) in operands.into_iter().enumerate() {
            // SAFETY: the copy has as many operands as the operation.
            unsafe {
                mlir_sys::mlirOperationSetOperand(copy.to_raw(), at as isize, operand.to_raw())
            };
        }
        // A body of loops may compute both sides of what it chooses from.
        if self.speculative || self.nest.is_some() {
            speculation::define(copy)?;
        }
        for (from, to) in results(op).into_iter().zip(results(copy)) {
            self.bind(from, Bound::Scalar(to));
        }
        Ok(())
    }
}
