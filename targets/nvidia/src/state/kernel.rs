//! A kernel as it is read before anything is decided: the form of each of its values.

use super::cursor::SCRATCH_ALIGNMENT;
use super::form::{Form, Held, Origin, Sizes, Space, Storage};
use super::nest;
use super::storage::{self, ARGUMENT_ALIGNMENT, SHARED_ALIGNMENT};
use super::threads::{Selection, ThreadGroup};
use super::types;
use crate::facts::chip::Chip;
use crate::fragment::Fragment;
use crate::plan::Decline;
use axe_dialect::{element_type, layout_of, ops};
use axe_passes::build::STRIDE_MULTIPLES;
use axe_passes::ir::facts::Facts;
use axe_passes::ir::types::is_token;
use axe_passes::ir::value::{identity, name, only_result, operands, results};
use axe_passes::ir::walk::{block_arguments, blocks, nested, operations};
use axe_passes::ir::{DYNAMIC, Op, Val, attribute};
use axe_passes::{PassError, PassResult, speculation};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Type, TypeLike, ValueLike};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The fragments of types, by the type's identity and the threads that hold them.
type Fragments = HashMap<(usize, i64), Result<Rc<Fragment>, Decline>>;

/// A kernel and what is known of its values.
pub(crate) struct Kernel<'c> {
    /// The `axe.kernel`.
    pub op: Op<'c>,
    /// The chip.
    pub chip: &'static Chip,
    /// Threads of the CTA.
    pub threads: i64,
    /// Extents of a cluster.
    pub cluster: Vec<i64>,
    /// Whether operators are executed by parts of the CTA, or issued by one thread.
    pub is_warp_specialized: bool,
    /// What is known of index values.
    pub facts: Facts,
    values: HashMap<usize, Form<'c>>,
    fragments: RefCell<Fragments>,
}

/// Whether an operation of axe in a kernel's body is an operator, which a schedule executes.
pub(crate) fn is_operator(name: &str) -> bool {
    let structure = [
        ops::SCOPE,
        ops::FOR_TILES,
        ops::TILE_AT,
        ops::SLICE,
        ops::VIEW,
        ops::PEER,
        ops::ALLOC,
        ops::ALL_GATHER_CREATE,
        ops::REDUCE_SCATTER_CREATE,
        ops::INDEX,
        ops::ORDERED_BEGIN,
        ops::ORDERED_END,
    ];
    let own = name.starts_with("axe.") && !name.starts_with("axe.pipeline.");
    own && !structure.contains(&name) || name == nest::NEST
}

impl<'c> Kernel<'c> {
    /// Reads a kernel.
    ///
    /// # Errors
    /// At a value that has no form on this target, and at an operation that has none in a kernel.
    pub(crate) fn of(op: Op<'c>, chip: &'static Chip) -> PassResult<'c, Self> {
        let missing = || PassError::new(op.location(), "expected a kernel with a body");
        let body = blocks(op).first().copied().ok_or_else(missing)?;
        let threads = op
            .attribute("threads")
            .ok()
            .and_then(attribute::integer)
            .ok_or_else(missing)?;
        let mut kernel = Self {
            op,
            chip,
            threads,
            cluster: cluster(op, chip)?,
            is_warp_specialized: is_warp_specialized(op),
            facts: Facts::default(),
            values: HashMap::new(),
            fragments: RefCell::default(),
        };
        kernel.arguments(body)?;
        let mut reader = Reader {
            group: ThreadGroup::cta(threads),
            kernel: &mut kernel,
            speculative: false,
        };
        reader.block(body)?;
        Ok(kernel)
    }

    /// CTAs of a cluster.
    pub(crate) fn cluster_size(&self) -> i64 {
        self.cluster.first().copied().unwrap_or(1)
    }

    /// What a value is; `None` for one that has no form on this target.
    pub(crate) fn form(&self, value: Val<'c>) -> Option<&Form<'c>> {
        self.values.get(&identity(value))
    }

    /// The storage of a memref.
    ///
    /// # Errors
    /// A message, for another value.
    pub(crate) fn storage(&self, value: Val<'c>) -> Result<&Storage<'c>, String> {
        match self.form(value) {
            Some(Form::Memory(storage)) => Ok(storage),
            Some(_) => Err(format!("expected a memref, got {}", value.r#type())),
            None => Err(formless(value)),
        }
    }

    /// The fragment of a register tensor's type in a scope of so many threads.
    ///
    /// # Errors
    /// A decline, when the type has no layout or the layout is no register tensor's.
    pub(crate) fn fragment(&self, r#type: Type<'c>, threads: i64) -> Result<Rc<Fragment>, Decline> {
        let key = (r#type.to_raw().ptr as usize, threads);
        if let Some(found) = self.fragments.borrow().get(&key) {
            return found.clone();
        }
        let made = fragment_of(r#type, threads).map(Rc::new);
        self.fragments.borrow_mut().insert(key, made.clone());
        made
    }

    fn arguments(&mut self, body: BlockRef<'c, 'c>) -> PassResult<'c> {
        for (number, argument) in block_arguments(body).into_iter().enumerate() {
            let form = match types::memref_shape(argument.r#type()) {
                None => Form::Scalar,
                Some(_) => {
                    let mut storage = storage::of_type(argument.r#type(), ARGUMENT_ALIGNMENT)
                        .map_err(|reason| PassError::new(self.op.location(), reason))?;
                    storage.origin = Some(Origin::of(number, &storage));
                    Form::Memory(Box::new(storage))
                }
            };
            self.values.insert(identity(argument), form);
        }
        Ok(())
    }
}

/// What is said of a value without a form.
pub(crate) fn formless(value: Val<'_>) -> String {
    format!(
        "a value of type {} has no form on this target",
        value.r#type()
    )
}

fn fragment_of(r#type: Type<'_>, threads: i64) -> Result<Fragment, Decline> {
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
    Fragment::new(&layout, &shape, threads)
}

fn cluster<'c>(kernel: Op<'c>, chip: &Chip) -> PassResult<'c, Vec<i64>> {
    let cluster = kernel.attribute("cluster").ok();
    let cluster = cluster.and_then(attribute::read_i64s).unwrap_or_default();
    let failed = |message| Err(PassError::new(kernel.location(), message));
    if cluster.iter().skip(1).any(|extent| *extent != 1) {
        return failed(format!("expected a cluster along x alone, got {cluster:?}"));
    }
    if cluster.first().is_some_and(|extent| *extent > 1) && !chip.has_tma {
        return failed(format!("{} has no clusters", chip.name));
    }
    Ok(cluster)
}

/// Whether a kernel's operators are executed by parts of the CTA, or issued by one thread.
fn is_warp_specialized(kernel: Op<'_>) -> bool {
    let all = nested(kernel, &|_| true);
    all.into_iter().any(|op| match name(op).as_str() {
        ops::SCOPE | ops::PIPELINE_CREATE => true,
        // One thread sets up what counts the bytes of others.
        ops::ALL_GATHER_CREATE | ops::REDUCE_SCATTER_CREATE => true,
        ops::GEMM => op.attribute("isAsync").is_ok(),
        // One thread issues what goes out of shared memory.
        ops::COPY => op.attribute("isAsync").is_ok() && !is_into_shared(op),
        _ => false,
    })
}

fn is_into_shared(copy: Op<'_>) -> bool {
    let to = operands(copy).get(1).copied();
    to.is_some_and(|to| axe_dialect::memory_space(to.r#type()) == Some("shared"))
}

/// Reads a kernel's operations in order.
struct Reader<'a, 'c> {
    kernel: &'a mut Kernel<'c>,
    group: ThreadGroup,
    /// Whether what is read is the body of a map, which runs on registers without an element too.
    speculative: bool,
}

impl<'c> Reader<'_, 'c> {
    fn block(&mut self, block: BlockRef<'c, 'c>) -> PassResult<'c> {
        let mut operations = operations(block);
        operations.pop();
        operations.into_iter().try_for_each(|op| self.operation(op))
    }

    fn blocks(&mut self, op: Op<'c>) -> PassResult<'c> {
        blocks(op)
            .into_iter()
            .try_for_each(|block| self.block(block))
    }

    fn bind(&mut self, value: Val<'c>, form: Form<'c>) {
        self.kernel.values.insert(identity(value), form);
    }

    fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        if self.speculative {
            speculation::check(op)?;
        }
        let name = name(op);
        match name.as_str() {
            "scf.for" | "scf.if" => self.control(op),
            ops::FOR_TILES | ops::TILE_AT => {
                self.scalars(op);
                self.blocks(op)
            }
            ops::SCOPE => self.scope(op),
            nest::NEST => self.nest(op),
            ops::SLICE => self.memory(op, Self::slice),
            ops::VIEW => self.memory(op, Self::view),
            ops::PEER => self.memory(op, Self::peer),
            "memref.subview" => self.memory(op, Self::first_rows),
            "memref.reinterpret_cast" => self.memory(op, Self::reinterpreted),
            ops::ALLOC => self.memory(op, |_, op| alloc(op, SHARED_ALIGNMENT)),
            ops::ALL_GATHER_CREATE | ops::REDUCE_SCATTER_CREATE => {
                self.memory(op, |_, op| alloc(op, SCRATCH_ALIGNMENT))
            }
            ops::MAP => {
                self.scalars(op);
                self.registers(op);
                self.speculative = true;
                let read = self.blocks(op);
                self.speculative = false;
                read
            }
            _ if is_operator(&name) => {
                self.registers(op);
                Ok(())
            }
            "memref.load" => {
                let regular = self.regular(op);
                regular.map_err(|reason| PassError::new(op.location(), reason))?;
                self.scalars(op);
                Ok(())
            }
            "memref.dim" | ops::INDEX => {
                self.scalars(op);
                Ok(())
            }
            ops::ORDERED_BEGIN | ops::ORDERED_END => {
                self.registers(op);
                Ok(())
            }
            _ if name.starts_with("axe.pipeline.") => {
                self.scalars(op);
                Ok(())
            }
            _ => self.scalar_operation(op),
        }
    }

    /// Results and arguments of blocks are scalars.
    fn scalars(&mut self, op: Op<'c>) {
        let arguments = blocks(op).into_iter().flat_map(block_arguments);
        for value in results(op).into_iter().chain(arguments) {
            self.bind(value, Form::Scalar);
        }
    }

    /// The results of an operator: those that have a form. What has none is the schedules' to decline.
    fn registers(&mut self, op: Op<'c>) {
        for result in results(op) {
            if let Ok(form) = self.form_of(result) {
                self.bind(result, form);
            }
        }
    }

    /// The form that the type of a value alone says.
    fn form_of(&self, value: Val<'c>) -> Result<Form<'c>, String> {
        let r#type = value.r#type();
        if is_token(r#type) {
            return Ok(Form::Token);
        }
        if types::memref_shape(r#type).is_some() {
            return Err("storage cannot be carried by a loop or chosen by a branch".to_owned());
        }
        if types::tensor_shape(r#type).is_none() {
            return Ok(Form::Scalar);
        }
        let fragment = self.kernel.fragment(r#type, self.group.threads());
        Ok(Form::Registers(Held {
            fragment: fragment.map_err(|decline| decline.to_string())?,
            element: element_type(r#type),
        }))
    }

    /// A loop or a branch: what it carries, what comes out of it.
    fn control(&mut self, op: Op<'c>) -> PassResult<'c> {
        let arguments = blocks(op).into_iter().flat_map(block_arguments);
        for value in arguments.chain(results(op)) {
            let form = self.form_of(value);
            let form = form.map_err(|reason| PassError::new(op.location(), reason))?;
            self.bind(value, form);
        }
        self.blocks(op)
    }

    fn scope(&mut self, op: Op<'c>) -> PassResult<'c> {
        let selection = Selection::of(op).ok_or_else(|| {
            PassError::new(
                op.location(),
                "a scope of threads has no operators on this target: expected warps or more",
            )
        })?;
        let inner = self.group.select(&selection);
        let outside = std::mem::replace(&mut self.group, inner);
        self.blocks(op)?;
        self.group = outside;
        Ok(())
    }

    /// Binds the only result of an operation to storage.
    fn memory(
        &mut self,
        op: Op<'c>,
        storage: impl FnOnce(&Self, Op<'c>) -> Result<Storage<'c>, String>,
    ) -> PassResult<'c> {
        let made = storage(self, op).map_err(|reason| PassError::new(op.location(), reason))?;
        if let Some(result) = only_result(op) {
            self.bind(result, Form::Memory(Box::new(made)));
        }
        Ok(())
    }

    /// What a slice, a view or a load reads.
    fn source(&self, op: Op<'c>) -> Result<&Storage<'c>, String> {
        let source = operands(op).first().copied().ok_or("expected a source")?;
        let storage = self.kernel.storage(source)?;
        match storage::is_ragged(&storage.shape) && !storage::is_placed(storage) {
            false => Ok(storage),
            true => Err(format!(
                "only the outermost extent may be dynamic, got {}",
                source.r#type()
            )),
        }
    }

    fn regular(&self, op: Op<'c>) -> Result<(), String> {
        self.source(op).map(drop)
    }

    /// Loops: their body is on scalars, in any order of operations and regions.
    fn nest(&mut self, op: Op<'c>) -> PassResult<'c> {
        self.scalars(op);
        for inner in nested(op, &|_| true) {
            self.scalars(inner);
        }
        Ok(())
    }

    fn slice(&self, op: Op<'c>) -> Result<Storage<'c>, String> {
        let result = only_result(op).ok_or("expected a result")?.r#type();
        let shape = types::memref_shape(result).unwrap_or_default();
        storage::addressable(result, &shape, self.source(op)?.bytes)?;
        let origins: Vec<_> = operands(op)
            .into_iter()
            .skip(1)
            .map(|origin| self.kernel.facts.of(origin))
            .collect();
        storage::slice(self.source(op)?, &origins, shape)
    }

    fn view(&self, op: Op<'c>) -> Result<Storage<'c>, String> {
        let result = only_result(op).ok_or("expected a result")?;
        storage::view(self.source(op)?, result.r#type())
    }

    /// The first rows of an argument, of which there are as many as an operand says: what is behind them does not exist.
    fn first_rows(&self, op: Op<'c>) -> Result<Storage<'c>, String> {
        let source = self.source(op)?;
        let of = |name| op.attribute(name).ok().and_then(attribute::read_i64s);
        let sizes = of("static_sizes").unwrap_or_default();
        let first = of("static_offsets").is_some_and(|offsets| offsets.iter().all(|at| *at == 0));
        let dense = of("static_strides").is_some_and(|strides| strides.iter().all(|by| *by == 1));
        let whole = source.origin.as_ref().is_some_and(|origin| origin.whole);
        let rows = sizes.first() == Some(&DYNAMIC) && sizes.get(1..) == source.shape.get(1..);
        if !(first && dense && rows && whole) || source.is_guarded() {
            return Err("expected the first rows of a kernel's argument, as many as a value says, and all of each".to_owned());
        }
        Ok(Storage {
            shape: sizes,
            // A tensor map has the bounds of the whole argument.
            origin: None,
            ..source.clone()
        })
    }

    /// The number of the kernel's argument that a value is.
    fn argument(&self, value: Val<'c>) -> Option<usize> {
        let body = blocks(self.kernel.op).first().copied()?;
        block_arguments(body)
            .into_iter()
            .position(|own| own == value)
    }

    /// All of an argument under extents and strides that are known, or are other arguments.
    fn reinterpreted(&self, op: Op<'c>) -> Result<Storage<'c>, String> {
        let result = only_result(op).ok_or("expected a result")?;
        let of = |name| op.attribute(name).ok().and_then(attribute::read_i64s);
        let all = operands(op);
        let (&source, values) = all.split_first().ok_or("expected a source")?;
        let lists = [of("static_sizes"), of("static_strides")].map(Option::unwrap_or_default);
        let mut values = values.iter();
        let mut numbers = Vec::new();
        for number in lists.iter().flatten() {
            let value = (*number == DYNAMIC).then(|| values.next().copied());
            let argument = value.map(|value| {
                value
                    .and_then(|value| self.argument(value))
                    .ok_or("expected extents and strides that are known or arguments of the kernel")
            });
            numbers.push(argument.transpose()?);
        }
        let (extents, strides) = numbers
            .split_at_checked(lists[0].len())
            .ok_or("expected static_sizes")?;
        let sizes = extents.iter().zip(strides);
        let sizes = sizes.map(|(&extent, &stride)| Sizes { extent, stride });
        if of("static_offsets").as_deref() != Some(&[0]) || values.next().is_some() {
            return Err("expected all of an argument".to_owned());
        }
        storage::reinterpreted(
            self.kernel.storage(source)?,
            result.r#type(),
            &of(STRIDE_MULTIPLES).unwrap_or_default(),
            sizes.collect(),
        )
    }

    /// The same storage of another CTA.
    fn peer(&self, op: Op<'c>) -> Result<Storage<'c>, String> {
        if !self.kernel.chip.has_tma {
            return Err(format!(
                "{} has no clusters: expected sm_90 or up",
                self.kernel.chip.name
            ));
        }
        Ok(Storage {
            space: Space::ClusterShared,
            ..self.source(op)?.clone()
        })
    }

    /// An operation of another dialect, which is on scalars.
    fn scalar_operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        let is_scalar = |value: &Val<'c>| matches!(self.kernel.form(*value), Some(Form::Scalar));
        let shaped = results(op).iter().any(|result| {
            types::memref_shape(result.r#type()).is_some()
                || types::tensor_shape(result.r#type()).is_some()
        });
        if shaped || op.region_count() > 0 || !operands(op).iter().all(is_scalar) {
            return Err(PassError::new(
                op.location(),
                format!(
                    "'{}' has no form in a kernel of this target: expected operators of axe, scf.for, scf.if and operations on scalars",
                    name(op)
                ),
            ));
        }
        self.scalars(op);
        Ok(())
    }
}

fn alloc<'c>(op: Op<'c>, alignment: i64) -> Result<Storage<'c>, String> {
    let result = only_result(op).ok_or("expected a result")?;
    let storage = storage::of_type(result.r#type(), alignment)?;
    match storage.space {
        Space::Shared => Ok(storage),
        _ => Err(format!("expected shared memory, got {}", result.r#type())),
    }
}
