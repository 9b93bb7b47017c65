//! Walks a kernel and emits its operators: values, control flow, and what is no operator of axe.

use super::int::{Int, Ints};
use super::pipeline::{Cursor, Ring, RingKey, Side};
use super::schedule::Decision;
use super::staging::Staging;
use super::team::{Meeting, Team};
use super::tensor_map::TensorMapParameter;
use super::types;
use super::value::{Bound, Memory, Registers, Space};
use crate::facts::chip::Chip;
use crate::fragment::Fragment;
use crate::plan::Decline;
use axe_dialect::{element_type, layout_of};
use axe_passes::ir::facts::Facts;
use axe_passes::ir::value::{identity, name, operands, results};
use axe_passes::ir::walk::operations;
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::{PassError, PassResult, speculation};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Type, TypeLike, ValueLike};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The fragments of types, by the type's identity and the threads that hold them.
type Fragments = HashMap<(usize, i64), Result<Rc<Fragment>, Decline>>;

/// Emits the body of one kernel.
pub(crate) struct Emitter<'c> {
    /// Where operations go.
    pub builder: Builder<'c>,
    /// The chip.
    pub chip: &'static Chip,
    /// Threads of the CTA.
    pub cta_threads: i64,
    /// CTAs of a cluster, along `x`.
    pub cluster: i64,
    /// The warps that execute operators now.
    pub team: Team,
    /// Threads of the team.
    pub threads: i64,
    /// The number of this thread in its team, `i32`.
    pub thread: Val<'c>,
    /// The number of this thread's warp in the CTA, known to be uniform: kernels with roles have it.
    pub warp: Option<Val<'c>>,
    /// Whether this thread is its team's leader, where that was found.
    pub leader: Option<Val<'c>>,
    /// The numbers of the barriers of teams.
    pub barriers: HashMap<Meeting, i64>,
    /// The kernel's rings, by the identity of their values.
    pub rings: HashMap<usize, Ring<'c>>,
    /// How far this thread has come along each side of a ring.
    pub cursors: HashMap<RingKey, Cursor<'c>>,
    /// Whether the team has issued bulk stores that may be under way.
    pub bulk_stores: bool,
    /// The panels of shared memory through which the scope stores.
    pub staging: Staging<'c>,
    /// Loops around what is being emitted.
    pub loops: usize,
    /// Whether what is being emitted is the body of a map, which runs on registers without an element too.
    pub speculative: bool,
    /// The kernel's tensor maps.
    pub tensor_maps: Vec<TensorMapParameter<'c>>,
    /// The first block of the function, whose arguments are its parameters.
    pub entry: Option<BlockRef<'c, 'c>>,
    /// What is known of the kernel's index values.
    pub facts: Facts,
    /// The start of the CTA's shared memory.
    pub shared: Val<'c>,
    /// Bytes of `axe.alloc`s; an operator's own use of shared memory starts here.
    pub scratch: i64,
    /// The most bytes that an operator uses there.
    pub scratch_used: i64,
    /// The places of the `axe.alloc`s in shared memory, in bytes, by the identity of their results.
    pub allocations: HashMap<usize, i64>,
    /// The barriers at which bytes of shared memory pass from one `axe.alloc` to another.
    pub separators: HashSet<usize>,
    /// What was decided, in order.
    pub decisions: Vec<Decision<'c>>,
    pub(super) values: HashMap<usize, Bound<'c>>,
    fragments: RefCell<Fragments>,
}

/// Alignment of the dynamic shared memory and of each allocation, in bytes: what TMA's widest swizzle asks for.
pub(crate) const SHARED_ALIGNMENT: i64 = 1024;

/// Alignment of scratch memory and of a ring's barriers, in bytes: the widest access of a thread.
pub(crate) const SCRATCH_ALIGNMENT: i64 = 16;

impl<'c> Emitter<'c> {
    /// An emitter at `builder` for a CTA of `threads` threads; the caller binds the kernel's arguments.
    pub(crate) fn new(
        builder: Builder<'c>,
        chip: &'static Chip,
        threads: i64,
        thread: Val<'c>,
        shared: Val<'c>,
    ) -> Self {
        Self {
            builder,
            chip,
            cta_threads: threads,
            cluster: 1,
            team: Team::cta(threads),
            threads,
            thread,
            warp: None,
            leader: None,
            barriers: HashMap::new(),
            rings: HashMap::new(),
            cursors: HashMap::new(),
            bulk_stores: false,
            staging: Staging::new(false),
            loops: 0,
            speculative: false,
            tensor_maps: Vec::new(),
            entry: None,
            facts: Facts::default(),
            shared,
            scratch: 0,
            scratch_used: 0,
            allocations: HashMap::new(),
            separators: HashSet::new(),
            decisions: Vec::new(),
            values: HashMap::new(),
            fragments: RefCell::default(),
        }
    }

    /// A failure at the operation that is being emitted.
    pub(crate) fn error(&self, message: impl Into<String>) -> PassError<'c> {
        PassError::new(self.builder.location, message)
    }

    /// Says what a value of the kernel is.
    pub(crate) fn bind(&mut self, value: Val<'c>, bound: Bound<'c>) {
        self.values.insert(identity(value), bound);
    }

    /// What a value of the kernel is.
    ///
    /// # Errors
    /// For a value whose operation was not emitted.
    pub(crate) fn bound(&self, value: Val<'c>) -> PassResult<'c, &Bound<'c>> {
        self.values.get(&identity(value)).ok_or_else(|| {
            self.error(format!(
                "a value of type {} has no form on this target",
                value.r#type()
            ))
        })
    }

    /// A memref.
    pub(crate) fn memory(&self, value: Val<'c>) -> PassResult<'c, Memory<'c>> {
        match self.bound(value)? {
            Bound::Memory(memory) => Ok((**memory).clone()),
            _ => Err(self.error(format!("expected a memref, got {}", value.r#type()))),
        }
    }

    /// A tensor in registers.
    pub(crate) fn registers(&self, value: Val<'c>) -> PassResult<'c, Registers<'c>> {
        match self.bound(value)? {
            Bound::Registers(registers) => Ok(registers.clone()),
            _ => Err(self.error(format!(
                "expected a register tensor, got {}",
                value.r#type()
            ))),
        }
    }

    /// A scalar.
    pub(crate) fn scalar(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self.bound(value)? {
            Bound::Scalar(scalar) => Ok(*scalar),
            _ => Err(self.error(format!("expected a scalar, got {}", value.r#type()))),
        }
    }

    /// An index of the kernel, known where the kernel says so.
    pub(crate) fn int(&self, value: Val<'c>) -> PassResult<'c, Int<'c>> {
        let fact = self.facts.of(value);
        match fact.low.filter(|low| fact.high == Some(*low)) {
            Some(known) => Ok(Int::Known(known)),
            None => self.scalar(value).map(Int::Value),
        }
    }

    /// 32-bit arithmetic here.
    pub(crate) fn ints(&self) -> Ints<'c> {
        Ints::new(self.builder, 32)
    }

    /// The fragment of a register tensor's type.
    ///
    /// # Errors
    /// A decline, when the type has no layout or the layout is no register tensor's.
    pub(crate) fn fragment(&self, r#type: Type<'c>) -> Result<Rc<Fragment>, Decline> {
        let key = (r#type.to_raw().ptr as usize, self.threads);
        if let Some(found) = self.fragments.borrow().get(&key) {
            return found.clone();
        }
        let made = self.new_fragment(r#type).map(Rc::new);
        self.fragments.borrow_mut().insert(key, made.clone());
        made
    }

    fn new_fragment(&self, r#type: Type<'c>) -> Result<Fragment, Decline> {
        let shape = types::tensor_shape(r#type)
            .ok_or_else(|| Decline::new(format!("expected a tensor, got {type}")))?;
        let layout = layout_of(r#type).ok_or_else(|| {
            Decline::new(format!(
                "{type} has no layout: expected one that names lanes and registers"
            ))
        })?;
        let layout = layout
            .layout()
            .map_err(|error| Decline::new(error.to_string()))?;
        Fragment::new(&layout, &shape, self.threads)
    }

    /// A register tensor of a type, from its registers' values.
    pub(crate) fn registers_of(
        &self,
        r#type: Type<'c>,
        values: Vec<Val<'c>>,
    ) -> PassResult<'c, Registers<'c>> {
        let fragment = self
            .fragment(r#type)
            .map_err(|decline| self.error(decline.to_string()))?;
        if usize::try_from(fragment.registers()) != Ok(values.len()) {
            return Err(self.error(format!(
                "expected {} registers of {type}, got {}",
                fragment.registers(),
                values.len()
            )));
        }
        Ok(Registers {
            fragment,
            element: element_type(r#type),
            values,
        })
    }

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

    /// Emits an operation of the kernel.
    pub(crate) fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        self.builder.location = op.location();
        if self.speculative {
            speculation::check(op)?;
        }
        let name = name(op);
        let result = results(op).first().copied();
        let memory = match name.as_str() {
            "scf.for" => return self.for_loop(op),
            "scf.if" => return self.branch(op),
            "axe.scope" => return self.scope(op),
            "axe.for_tiles" => return self.for_tiles(op),
            "axe.tile_at" => return self.tile_at(op),
            "axe.pipeline.create" => return self.create_ring(op),
            "axe.pipeline.acquire" => return self.take_slot(op, Side::Producer),
            "axe.pipeline.wait" => return self.take_slot(op, Side::Consumer),
            "axe.pipeline.commit" => return self.give_slot(op, Side::Producer),
            "axe.pipeline.release" => return self.give_slot(op, Side::Consumer),
            "axe.slice" => self.slice(op)?,
            "axe.view" => self.view(op)?,
            "axe.peer" => self.peer(op)?,
            "axe.alloc" => self.alloc(op)?,
            "memref.dim" => return self.extent(op),
            "memref.load" => return self.element(op),
            _ if name.starts_with("axe.") => return self.operator(op, &name),
            _ => return self.scalar_operation(op),
        };
        if let Some(result) = result {
            self.bind(result, Bound::Memory(Box::new(memory)));
        }
        Ok(())
    }

    fn alloc(&self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let result = results(op)
            .first()
            .copied()
            .ok_or_else(|| self.error("expected a result"))?;
        let at = self
            .allocations
            .get(&identity(result))
            .copied()
            .ok_or_else(|| self.error("storage without a place"))?;
        self.shared_storage(result.r#type(), at)
    }

    /// Storage of a memref type at a byte of shared memory.
    pub(crate) fn shared_storage(&self, r#type: Type<'c>, at: i64) -> PassResult<'c, Memory<'c>> {
        let mut memory = self.storage(r#type, self.shared, SHARED_ALIGNMENT, None)?;
        if memory.space != Space::Shared {
            return Err(self.error(format!("expected shared memory, got {type}")));
        }
        memory.base = self.offset_pointer(&memory, self.shared, Int::Known(at / memory.bytes))?;
        memory.root = memory.base;
        Ok(memory)
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
        let index = index
            .iter()
            .map(|at| self.ints().cast(self.int(*at)?))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let pad = self.zero(memory.element)?;
        let value = super::schedules::load_at(self, &memory, &index, pad)?;
        self.bind(result, Bound::Scalar(value));
        Ok(())
    }

    /// `memref.dim`.
    fn extent(&mut self, op: Op<'c>) -> PassResult<'c> {
        let (Some(&result), operands) = (results(op).first(), operands(op)) else {
            return Err(self.error("expected a result"));
        };
        let known = self.facts.of(result);
        let value = match known.low.filter(|low| known.high == Some(*low)) {
            Some(extent) => self.builder.index(extent)?,
            None => {
                let source = self.memory(operands.first().copied().unwrap_or(result))?;
                let outermost = operands.get(1).and_then(|dim| self.facts.of(*dim).high) == Some(0);
                let extent = source.extent.filter(|_| outermost).ok_or_else(|| {
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
        let is_scalar =
            |value: &Val<'c>| matches!(self.values.get(&identity(*value)), Some(Bound::Scalar(_)));
        let shaped = results(op).iter().any(|result| {
            types::memref_shape(result.r#type()).is_some()
                || types::tensor_shape(result.r#type()).is_some()
        });
        let has_regions = op.region_count() > 0;
        if shaped || has_regions || !operands(op).iter().all(is_scalar) {
            return Err(self.error(format!(
                "'{}' has no form in a kernel of this target: expected operators of axe, scf.for, scf.if and operations on scalars",
                name(op)
            )));
        }
        if self.math(op, &name(op))? {
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
        if self.speculative {
            speculation::define(copy)?;
        }
        for (from, to) in results(op).into_iter().zip(results(copy)) {
            self.bind(from, Bound::Scalar(to));
        }
        Ok(())
    }
}
