//! Loops: each point of the parallel ones by one thread of the grid, the reductions in that thread.

use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::{Bound, Memory};
use crate::plan::Decline;
use crate::plan::nest::{NestPlan, shares};
use crate::state::nest::Nest;
use crate::state::site::Site;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::{operands, results};
use axe_passes::ir::walk::{block_arguments, blocks};
use axe_passes::ir::{DYNAMIC, Op, Val, attribute};
use axe_passes::ir::{Int, Ints};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, ValueLike};

/// The threads of the grid share out the points.
#[derive(Clone, Copy)]
pub(super) struct Threads;

impl Schedule for Threads {
    type Plan = NestPlan;

    fn name(&self) -> &'static str {
        "loops.threads"
    }
}

impl<'c> Match<Site<'_, 'c>> for Threads {
    fn plan(&self, site: Site<'_, 'c>) -> Result<NestPlan, Decline> {
        Ok(Nest::of(site.kernel, site.op)?.plan())
    }

    fn check(&self, site: Site<'_, 'c>, plan: &NestPlan) -> Result<(), Decline> {
        let nest = Nest::of(site.kernel, site.op)?;
        plan.check(&nest.reductions, &nest.plan())
    }
}

impl<'c> Emit<'c> for Threads {
    fn emit(
        &self,
        plan: &NestPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let kernel = emitter.kernel.clone();
        let nest = Nest::of(&kernel, op).map_err(|decline| emitter.error(decline.to_string()))?;
        let memories = nest.operands.iter().map(|value| emitter.memory(*value));
        let memories = memories.collect::<PassResult<'c, Vec<_>>>()?;
        let loops = Loops {
            op,
            nest,
            memories,
            plan,
        };
        loops.emit(emitter)?;
        Ok(Vec::new())
    }
}

/// Loops that are being emitted.
pub(super) struct Loops<'a, 'c> {
    pub(super) op: Op<'c>,
    pub(super) nest: Nest<'c>,
    memories: Vec<Memory<'c>>,
    pub(super) plan: &'a NestPlan,
}

impl<'c> Loops<'_, 'c> {
    /// The loop over the points of this thread.
    fn emit(&self, emitter: &mut Emitter<'c>) -> PassResult<'c> {
        let ints = Ints::new(emitter.builder, u32::try_from(self.plan.bits).unwrap_or(64));
        let shares = self.shares(emitter)?;
        let mut counts = Vec::new();
        let mut total = Int::Known(1);
        for (at, share) in self.plan.parallel.iter().zip(&shares) {
            let count = ints.cast(self.extent(emitter, *at)?)?;
            let count = ints.divide(count, Int::Known(*share))?;
            total = ints.times(total, count)?;
            counts.push(count);
        }
        // Slices of the last loop are outermost.
        let slices = self.plan.slices;
        if let Some(count) = counts.last_mut().filter(|_| slices > 1) {
            *count = ints.divide(*count, Int::Known(slices))?;
        }
        let threads = emitter.kernel.threads;
        let block = ints.cast(emitter.along_x("gpu.block_id")?)?;
        let blocks = ints.cast(emitter.along_x("gpu.grid_dim")?)?;
        let thread = ints.cast(Int::Value(emitter.thread))?;
        let first = ints.add(ints.mul(block, threads)?, thread)?;
        let bounds = [first, total, ints.mul(blocks, threads)?];
        let bounds = bounds.map(|bound| ints.value(bound));
        let [first, total, step] = bounds;
        emitter.for_each([first?, total?, step?], &[], |emitter, point, _| {
            let ints = Ints::new(emitter.builder, u32::try_from(self.plan.bits).unwrap_or(64));
            let mut at = vec![Int::ZERO; self.nest.reductions.len()];
            let mut rest = Int::Value(point);
            for (position, (dim, count)) in self.plan.parallel.iter().zip(&counts).enumerate().rev()
            {
                let is_outermost = position == 0 && slices == 1;
                let place = match is_outermost {
                    true => rest,
                    false => ints.modulo(rest, *count)?,
                };
                rest = match is_outermost {
                    true => rest,
                    false => ints.divide(rest, *count)?,
                };
                if let Some(slot) = usize::try_from(*dim).ok().and_then(|dim| at.get_mut(dim)) {
                    *slot = index(emitter, place)?;
                }
            }
            if let (Some(dim), Some(count)) = (self.plan.parallel.last(), counts.last())
                && slices > 1
                && let Some(slot) = usize::try_from(*dim).ok().and_then(|dim| at.get_mut(dim))
            {
                let first = index(emitter, ints.times(rest, *count)?)?;
                *slot = Ints::index(emitter.builder).add(first, *slot)?;
            }
            match self.plan.vector {
                1 => self.point(emitter, &mut at)?,
                _ => self.neighbours(emitter, &at, &shares)?,
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// How many neighbours there are along each parallel loop.
    fn shares(&self, emitter: &Emitter<'c>) -> PassResult<'c, Vec<i64>> {
        let mut extents = Vec::new();
        for at in &self.plan.parallel {
            extents.push(match self.extent(emitter, *at)? {
                Int::Known(extent) => Some(extent),
                Int::Value(_) => None,
            });
        }
        shares(self.plan.vector, &extents)
            .ok_or_else(|| emitter.error("neighbours that do not divide their loops"))
    }

    /// One point: its results are carried through the reductions, or are in memory throughout.
    fn point(&self, emitter: &mut Emitter<'c>, at: &mut Vec<Int<'c>>) -> PassResult<'c> {
        if !self.nest.carries() {
            return self.reduce(emitter, 0, at, &[]).map(drop);
        }
        let mut carried = Vec::new();
        for number in 0..self.nest.initial.len() {
            carried.push(self.start(emitter, number, at)?);
        }
        let values = self.reduce(emitter, 0, at, &carried)?;
        for (number, value) in values.into_iter().enumerate() {
            self.store(emitter, self.nest.inputs + number, at, &[value])?;
        }
        Ok(())
    }

    /// What a result starts from; any value where the body does not read it.
    pub(super) fn start(
        &self,
        emitter: &mut Emitter<'c>,
        number: usize,
        at: &[Int<'c>],
    ) -> PassResult<'c, Val<'c>> {
        if let Some(initial) = self.nest.initial.get(number).copied().flatten() {
            return emitter.builder.constant(initial);
        }
        let operand = self.nest.inputs + number;
        let body = blocks(self.op).first().copied();
        let argument = body.and_then(|body| block_arguments(body).get(operand).copied());
        match argument.filter(|argument| axe_passes::ir::value::is_used(*argument)) {
            Some(_) => self.load(emitter, operand, at),
            None => emitter.zero(self.memory(emitter, operand)?.element),
        }
    }

    /// The reductions from the one at `depth` in the plan's order, around the body.
    fn reduce(
        &self,
        emitter: &mut Emitter<'c>,
        depth: usize,
        at: &mut Vec<Int<'c>>,
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Some(dim) = self.plan.reductions.get(depth) else {
            self.bind_arguments(emitter, at, carried)?;
            return self.body(emitter, at);
        };
        let ints = Ints::index(emitter.builder);
        let extent = self.extent(emitter, *dim)?;
        let step = match depth + 1 == self.plan.reductions.len() {
            true => self.nest.turns_at_once(extent.known()),
            false => 1,
        };
        let count = ints.value(ints.cast(extent)?)?;
        let bounds = [
            emitter.builder.index(0)?,
            count,
            emitter.builder.index(step)?,
        ];
        let dim = usize::try_from(*dim).unwrap_or(usize::MAX);
        emitter.for_each(bounds, carried, |emitter, turn, carried| {
            if step > 1 {
                return self.turns(emitter, at, (dim, turn, step), carried);
            }
            if let Some(slot) = at.get_mut(dim) {
                *slot = Int::Value(turn);
            }
            self.reduce(emitter, depth + 1, at, carried)
        })
    }

    /// Several turns of the last reduction, whose elements are on their way together.
    fn turns(
        &self,
        emitter: &mut Emitter<'c>,
        at: &mut [Int<'c>],
        (dim, first, count): (usize, Val<'c>, i64),
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = Ints::index(emitter.builder);
        let mut turns = Vec::new();
        for number in 0..count {
            if let Some(slot) = at.get_mut(dim) {
                *slot = ints.add(Int::Value(first), Int::Known(number))?;
            }
            turns.push((at.to_vec(), self.elements(emitter, at, carried.len())?));
        }
        let mut carried = carried.to_vec();
        for (at, elements) in turns {
            self.bind_elements(emitter, &elements, &carried)?;
            carried = self.body(emitter, &at)?;
        }
        Ok(carried)
    }

    /// Binds the body's arguments: to what results are carried as, and to what is in memory at an index.
    pub(super) fn bind_arguments(
        &self,
        emitter: &mut Emitter<'c>,
        at: &[Int<'c>],
        carried: &[Val<'c>],
    ) -> PassResult<'c> {
        let elements = self.elements(emitter, at, carried.len())?;
        self.bind_elements(emitter, &elements, carried)
    }

    /// What is in memory at an index, for the body's arguments that are used: all but so many results, which are carried.
    fn elements(
        &self,
        emitter: &Emitter<'c>,
        at: &[Int<'c>],
        carried: usize,
    ) -> PassResult<'c, Vec<(Val<'c>, Val<'c>)>> {
        let read =
            |number: &usize| *number < self.nest.inputs || *number >= self.nest.inputs + carried;
        let arguments = self.arguments(emitter)?.into_iter().enumerate();
        let used = arguments.filter(|(_, argument)| axe_passes::ir::value::is_used(*argument));
        used.filter(|(number, _)| read(number))
            .map(|(number, argument)| Ok((argument, self.load(emitter, number, at)?)))
            .collect()
    }

    fn arguments(&self, emitter: &Emitter<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let body = blocks(self.op).first().copied();
        let body = body.ok_or_else(|| emitter.error("expected a body"))?;
        Ok(block_arguments(body))
    }

    fn bind_elements(
        &self,
        emitter: &mut Emitter<'c>,
        elements: &[(Val<'c>, Val<'c>)],
        carried: &[Val<'c>],
    ) -> PassResult<'c> {
        let results = self.arguments(emitter)?.into_iter();
        let results = results.skip(self.nest.inputs).zip(carried.iter().copied());
        for (argument, value) in elements.iter().copied().chain(results) {
            emitter.bind(argument, Bound::Scalar(value));
        }
        Ok(())
    }

    /// The body at an index, whose arguments are bound; what it yields.
    fn body(&self, emitter: &mut Emitter<'c>, at: &[Int<'c>]) -> PassResult<'c, Vec<Val<'c>>> {
        let body = blocks(self.op).first().copied();
        let body = body.ok_or_else(|| emitter.error("expected a body"))?;
        let ints = Ints::index(emitter.builder);
        let indices = at
            .iter()
            .map(|at| ints.value(*at))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let outside = emitter.nest.replace(indices);
        let terminator = emitter.block(body);
        emitter.nest = outside;
        let yielded = terminator?.map(operands).unwrap_or_default();
        let values = yielded.into_iter().map(|value| emitter.scalar(value));
        let values = values.collect::<PassResult<'c, Vec<_>>>()?;
        if self.nest.carries() {
            return Ok(values);
        }
        for (number, value) in values.into_iter().enumerate() {
            self.store(emitter, self.nest.inputs + number, at, &[value])?;
        }
        Ok(Vec::new())
    }

    pub(super) fn memory(
        &self,
        emitter: &Emitter<'c>,
        operand: usize,
    ) -> PassResult<'c, &Memory<'c>> {
        let memory = self.memories.get(operand);
        memory.ok_or_else(|| emitter.error("an operand of the loops is not there"))
    }

    /// The extent of a loop.
    fn extent(&self, emitter: &Emitter<'c>, at: i64) -> PassResult<'c, Int<'c>> {
        let source = usize::try_from(at)
            .ok()
            .and_then(|at| self.nest.sources.get(at));
        let (operand, dim) = *source.ok_or_else(|| emitter.error("a loop without an extent"))?;
        Ok(extent_of(self.memory(emitter, operand)?, dim))
    }

    fn index_of(
        &self,
        emitter: &Emitter<'c>,
        operand: usize,
        at: &[Int<'c>],
    ) -> PassResult<'c, Vec<Int<'c>>> {
        let map = self.nest.maps.get(operand).map_or(&[][..], Vec::as_slice);
        map.iter()
            .map(|expression| evaluate(emitter, *expression, at))
            .collect()
    }

    fn load(
        &self,
        emitter: &Emitter<'c>,
        operand: usize,
        at: &[Int<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let index = self.index_of(emitter, operand, at)?;
        load(emitter, self.memory(emitter, operand)?, &index)
    }

    pub(super) fn store(
        &self,
        emitter: &Emitter<'c>,
        operand: usize,
        at: &[Int<'c>],
        values: &[Val<'c>],
    ) -> PassResult<'c> {
        let index = self.index_of(emitter, operand, at)?;
        let memory = self.memory(emitter, operand)?;
        let pointer = pointer(emitter, memory, &index)?;
        emitter.store(memory, pointer, values)
    }
}

/// An integer as an index.
fn index<'c>(emitter: &Emitter<'c>, value: Int<'c>) -> PassResult<'c, Int<'c>> {
    Ints::index(emitter.builder).cast(value)
}

/// The extent of an argument's dimension.
pub(super) fn extent_of<'c>(memory: &Memory<'c>, dim: usize) -> Int<'c> {
    match memory.shape.get(dim) {
        Some(&DYNAMIC) | None => memory.extent_at(dim).map_or(Int::ZERO, Int::Value),
        Some(extent) => Int::Known(*extent),
    }
}

/// The value of an affine expression of the loops.
fn evaluate<'c>(
    emitter: &Emitter<'c>,
    expression: AffineExpr<'c>,
    at: &[Int<'c>],
) -> PassResult<'c, Int<'c>> {
    let ints = Ints::index(emitter.builder);
    if expression.is_dim() {
        let index = at.get(expression.dim_position()).copied();
        return index.ok_or_else(|| emitter.error("an index of a loop that is not there"));
    }
    if expression.is_constant() {
        return Ok(Int::Known(expression.constant_value()));
    }
    if !expression.is_binary() {
        return Err(emitter.error("an indexing map with symbols"));
    }
    let a = evaluate(emitter, expression.lhs(), at)?;
    let b = evaluate(emitter, expression.rhs(), at)?;
    let name = match expression {
        sum if sum.is_add() => return ints.add(a, b),
        product if product.is_mul() => return ints.times(a, b),
        rest if rest.is_mod() => "arith.remsi",
        down if down.is_floor_div() => "arith.floordivsi",
        up if up.is_ceil_div() => "arith.ceildivsi",
        _ => return Err(emitter.error("an indexing map that is not affine")),
    };
    let operands = [ints.value(a)?, ints.value(b)?];
    let r#type = emitter.builder.index_type();
    let value = emitter.builder.value(name, &operands, r#type, &[])?;
    if name != "arith.remsi" {
        return Ok(Int::Value(value));
    }
    // Affine remainders are not negative.
    let fixed = emitter
        .builder
        .value("arith.addi", &[value, ints.value(b)?], r#type, &[])?;
    emitter
        .builder
        .value("arith.remsi", &[fixed, ints.value(b)?], r#type, &[])
        .map(Int::Value)
}

/// The address of an element of a row-major argument, summed up from the last dimension on: LLVM looks no further than six sums for whether a vector
/// begins there.
pub(super) fn pointer<'c>(
    emitter: &Emitter<'c>,
    memory: &Memory<'c>,
    at: &[Int<'c>],
) -> PassResult<'c, Val<'c>> {
    pointer_of(emitter, memory, terms(emitter, memory, at)?)
}

/// How many elements in front of one its index along each dimension puts, the last dimension's first.
fn terms<'c>(
    emitter: &Emitter<'c>,
    memory: &Memory<'c>,
    at: &[Int<'c>],
) -> PassResult<'c, Vec<Int<'c>>> {
    let wide = Ints::new(emitter.builder, 64);
    let (mut terms, mut stride) = (Vec::new(), Int::Known(1));
    for (dim, at) in at.iter().enumerate().rev() {
        terms.push(wide.times(wide.cast(*at)?, stride)?);
        if dim > 0 {
            stride = wide.times(stride, wide.cast(extent_of(memory, dim))?)?;
        }
    }
    Ok(terms)
}

/// The address behind so many elements, summed up in this order.
fn pointer_of<'c>(
    emitter: &Emitter<'c>,
    memory: &Memory<'c>,
    terms: Vec<Int<'c>>,
) -> PassResult<'c, Val<'c>> {
    let wide = Ints::new(emitter.builder, 64);
    let mut offset = Int::ZERO;
    for term in terms {
        offset = wide.add(offset, term)?;
    }
    emitter.offset_pointer(memory, memory.base, offset)
}

/// An element. Neighbours that are all loaded one by one have all but their last index in common, which is added last; beside vectors the sums are
/// as theirs, which have parts in common with them.
fn load<'c>(emitter: &Emitter<'c>, memory: &Memory<'c>, at: &[Int<'c>]) -> PassResult<'c, Val<'c>> {
    let mut terms = terms(emitter, memory, at)?;
    if !emitter.loads_vectors {
        terms.reverse();
    }
    let pointer = pointer_of(emitter, memory, terms)?;
    let values = emitter.load(memory, pointer, 1)?;
    values
        .first()
        .copied()
        .ok_or_else(|| emitter.error("expected an element"))
}

impl<'c> Emitter<'c> {
    /// `gpu.block_id` or `gpu.grid_dim` along x.
    fn along_x(&self, name: &str) -> PassResult<'c, Int<'c>> {
        let dimension = [("dimension", self.builder.parsed("#gpu<dim x>")?)];
        let value = self
            .builder
            .value(name, &[], self.builder.index_type(), &dimension)?;
        Ok(Int::Value(value))
    }

    /// `scf.for` from the first bound to the second by the third, which carries values.
    fn for_each(
        &mut self,
        bounds: [Val<'c>; 3],
        carried: &[Val<'c>],
        body: impl FnOnce(&mut Self, Val<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let types: Vec<_> = carried.iter().map(Val::r#type).collect();
        let variable = bounds[0].r#type();
        let arguments: Vec<_> = std::iter::once(variable)
            .chain(types.iter().copied())
            .collect();
        let (region, values, inner) = self.builder.region(&arguments);
        let outside = std::mem::replace(&mut self.builder, inner);
        let next = match values.split_first() {
            Some((turn, carried)) => body(self, *turn, carried)?,
            None => return Err(self.error("a loop without its variable")),
        };
        self.builder
            .operation("scf.yield", &next, &[], &[], Vec::new())?;
        self.builder = outside;
        let operands: Vec<_> = bounds.iter().chain(carried).copied().collect();
        self.builder
            .operation("scf.for", &operands, &types, &[], vec![region])
            .map(results)
    }

    /// `linalg.index`.
    pub(crate) fn loop_index(&mut self, op: Op<'c>) -> PassResult<'c> {
        let dim = op.attribute("dim").ok().and_then(attribute::integer);
        let dim = dim.and_then(|dim| usize::try_from(dim).ok());
        let index = self
            .nest
            .as_ref()
            .zip(dim)
            .and_then(|(nest, dim)| nest.get(dim).copied());
        match (index, results(op).first()) {
            (Some(index), Some(result)) => {
                self.bind(*result, Bound::Scalar(index));
                Ok(())
            }
            _ => Err(self.error("expected linalg.index in the body of loops")),
        }
    }

    /// `memref.load` in the body of loops: an element of an argument.
    pub(crate) fn element_of_nest(&mut self, op: Op<'c>) -> PassResult<'c> {
        let operands = operands(op);
        let (Some(&result), Some((&source, index))) = (results(op).first(), operands.split_first())
        else {
            return Err(self.error("expected storage and a result"));
        };
        let memory = self.memory(source)?;
        let index = index
            .iter()
            .map(|at| self.int(*at))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let value = load(self, &memory, &index)?;
        self.bind(result, Bound::Scalar(value));
        Ok(())
    }
}
