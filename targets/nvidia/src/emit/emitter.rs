//! The state of emission: where operations go, who executes them, what values are.

use super::progress::{Cursor, Ring, StorePipeline};
use super::schedule::Planned;
use super::start::Start;
use super::value::{Bound, Memory, Registers, TensorMapParameter};
use crate::facts::chip::Chip;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::state::kernel::{Kernel, formless};
use crate::state::places::Place;
use crate::state::rings::RingKey;
use crate::state::threads::{NamedBarrier, ThreadGroup};
use axe_dialect::element_type;
use axe_passes::ir::value::{identity, only_result};
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::ir::{Int, Ints};
use axe_passes::precision::Precision;
use axe_passes::{PassError, PassResult};
use melior::ir::{Attribute, BlockRef, Type, ValueLike};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What was decided for a kernel.
pub(crate) struct Decided<'c> {
    /// The kernel as it was read.
    pub kernel: Kernel<'c>,
    /// The plans of operators, by what tells operations apart.
    pub plans: HashMap<usize, Rc<dyn Planned<'c> + 'c>>,
    /// The places of storage and of rings, alike.
    pub places: HashMap<usize, Place>,
    /// Bytes of shared memory.
    pub shared_bytes: i64,
}

/// What tells operations apart.
pub(crate) fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

/// Emits the body of one kernel.
pub(crate) struct Emitter<'c> {
    /// Where operations go.
    pub builder: Builder<'c>,
    /// The chip.
    pub chip: &'static Chip,
    /// The kernel as it was read.
    pub kernel: Rc<Kernel<'c>>,
    plans: HashMap<usize, Rc<dyn Planned<'c> + 'c>>,
    places: HashMap<usize, Place>,
    /// CTAs of a cluster, along `x`.
    pub cluster: i64,
    /// The warps that execute operators now.
    pub group: ThreadGroup,
    /// Threads of the group.
    pub threads: i64,
    /// The number of this thread in its group, `i32`.
    pub thread: Val<'c>,
    /// The number of this thread's warp in the CTA, known to be uniform: kernels with roles have it.
    pub warp: Option<Val<'c>>,
    /// Whether this thread is its group's leader, where that was found.
    pub leader: Option<Val<'c>>,
    /// The numbers of named barriers.
    pub barriers: HashMap<NamedBarrier, i64>,
    /// The kernel's rings, by the identity of their values.
    pub rings: HashMap<usize, Ring<'c>>,
    /// How far this thread has come along each side of a ring.
    pub cursors: HashMap<RingKey, Cursor<'c>>,
    /// Whether the group has issued bulk stores that may be under way.
    pub bulk_stores: bool,
    /// Where the scope's threads are in the slots through which they store.
    pub store_pipeline: StorePipeline<'c>,
    /// Loops around what is being emitted.
    pub loops: usize,
    /// Whether the body that is being emitted for neighbours loads some of their elements in vectors.
    pub loads_vectors: bool,
    /// Whether what is being emitted is the body of a map, which runs on registers without an element too.
    pub speculative: bool,
    /// The element that a map's body computes: its index along each dimension, where the body asks for it.
    pub element: Vec<Int<'c>>,
    /// How exact the kernel's values need be.
    pub precision: Rc<Precision>,
    /// Arguments of the map's body that is being emitted which are the same in many registers.
    pub shared_arguments: HashSet<usize>,
    /// The indices of the loops whose body is being emitted, for `linalg.index`.
    pub nest: Option<Vec<Val<'c>>>,
    /// The kernel's tensor maps.
    pub tensor_maps: Vec<TensorMapParameter<'c>>,
    /// Whether the kernel waits for those before it itself.
    pub waits: bool,
    /// Whether it then lets the next one start.
    pub lets_next_start: bool,
    /// What is to be waited for before threads reach beyond the CTA.
    pub start: Start,
    /// The first block of the function, whose arguments are its parameters.
    pub entry: Option<BlockRef<'c, 'c>>,
    /// The module's block, where functions go.
    pub module: Option<BlockRef<'c, 'c>>,
    /// The names of the kernel's functions, by their text without a name.
    pub functions: HashMap<String, Attribute<'c>>,
    /// The start of the CTA's shared memory.
    pub shared: Val<'c>,
    values: HashMap<usize, Bound<'c>>,
}

impl<'c> Emitter<'c> {
    /// An emitter at `builder` of a kernel's plans; the caller binds the kernel's arguments.
    pub(crate) fn new(
        builder: Builder<'c>,
        decided: Decided<'c>,
        thread: Val<'c>,
        shared: Val<'c>,
    ) -> Self {
        let kernel = decided.kernel;
        Self {
            builder,
            chip: kernel.chip,
            plans: decided.plans,
            places: decided.places,
            cluster: kernel.cluster_size(),
            group: ThreadGroup::cta(kernel.threads),
            threads: kernel.threads,
            thread,
            warp: None,
            leader: None,
            barriers: HashMap::new(),
            rings: HashMap::new(),
            cursors: HashMap::new(),
            bulk_stores: false,
            store_pipeline: StorePipeline::new(false),
            loops: 0,
            loads_vectors: false,
            speculative: false,
            element: Vec::new(),
            precision: Rc::new(Precision::of(kernel.op)),
            shared_arguments: HashSet::new(),
            nest: None,
            tensor_maps: Vec::new(),
            waits: false,
            lets_next_start: false,
            start: Start::default(),
            entry: None,
            module: None,
            functions: HashMap::new(),
            shared,
            values: HashMap::new(),
            kernel: Rc::new(kernel),
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

    /// What the values of the kernel are.
    pub(crate) const fn known(&self) -> &HashMap<usize, Bound<'c>> {
        &self.values
    }

    /// Has other values of the kernel, and gives its own for them.
    pub(crate) const fn exchange(&mut self, values: &mut HashMap<usize, Bound<'c>>) {
        std::mem::swap(&mut self.values, values);
    }

    /// What a value of the kernel is.
    ///
    /// # Errors
    /// For a value whose operation was not emitted.
    pub(crate) fn bound(&self, value: Val<'c>) -> PassResult<'c, &Bound<'c>> {
        let found = self.values.get(&identity(value));
        found.ok_or_else(|| self.error(formless(value)))
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

    /// Whether many registers have this argument of the map's body that is being emitted.
    pub(crate) fn is_shared(&self, argument: Val<'c>) -> bool {
        self.shared_arguments.contains(&identity(argument))
    }

    /// An index of the kernel, known where the kernel says so.
    pub(crate) fn int(&self, value: Val<'c>) -> PassResult<'c, Int<'c>> {
        match self.kernel.facts.of(value).known() {
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
        self.kernel.fragment(r#type, self.threads)
    }

    /// The fragment of an operator's result.
    pub(crate) fn result_fragment(&self, op: Op<'c>) -> PassResult<'c, Rc<Fragment>> {
        let result = only_result(op).ok_or_else(|| self.error("expected a result"))?;
        let fragment = self.fragment(result.r#type());
        fragment.map_err(|decline| self.error(decline.to_string()))
    }

    /// The plan of an operator.
    pub(crate) fn plan_of(&self, op: Op<'c>) -> PassResult<'c, Rc<dyn Planned<'c> + 'c>> {
        let plan = self.plans.get(&number(op)).cloned();
        plan.ok_or_else(|| self.error("an operator without a plan"))
    }

    /// The place of storage or of a ring.
    pub(crate) fn place_of(&self, op: Op<'c>) -> PassResult<'c, Place> {
        let place = self.places.get(&number(op)).copied();
        place.ok_or_else(|| self.error("storage without a place"))
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
}
