//! Copies element by element, which may add to their destination: whatever the layouts, slowly.

use super::load::{Reads, padding};
use super::text::{Elements, Registers};
use super::{accumulate, store, transfer};
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::owner::Owner;
use crate::state::form::Storage;
use crate::state::site::Site;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::Int;
use axe_passes::ir::{Op, Val};

/// Memory to registers.
#[derive(Clone, Copy)]
pub(super) struct ScalarLoad;
/// Registers to memory.
#[derive(Clone, Copy)]
pub(super) struct ScalarStore(pub Write);
/// Memory to memory.
#[derive(Clone, Copy)]
pub(super) struct ScalarTransfer(pub Write);

/// What becomes of an element of the destination.
#[derive(Clone, Copy)]
pub(super) enum Write {
    /// The source's takes its place.
    Store,
    /// The source's is added to it.
    Add,
}

impl Write {
    /// Declines memory whose elements no single instruction writes so.
    fn admits(self, storage: &Storage<'_>) -> Result<(), Decline> {
        match self {
            Self::Store => Ok(()),
            Self::Add => accumulate::admits(storage),
        }
    }

    /// Writes one element where it exists and `condition` holds.
    fn at<'c>(
        self,
        emitter: &mut Emitter<'c>,
        memory: &Memory<'c>,
        index: &[Int<'c>],
        value: Val<'c>,
        condition: Option<Val<'c>>,
    ) -> PassResult<'c> {
        write_at(
            emitter,
            memory,
            index,
            condition,
            |emitter, pointer| match self {
                Self::Store => emitter.store(memory, pointer, &[value]),
                Self::Add => accumulate::add(emitter, memory, pointer, value),
            },
        )
    }
}

impl Schedule for ScalarLoad {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        "ld.scalar"
    }
}

impl<'c> Match<Site<'_, 'c>> for ScalarLoad {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        site.memory(0)?;
        Registers::of_result(site)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl<'c> Emit<'c> for ScalarLoad {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Reads {
            memory,
            fragment,
            pad,
        } = Reads::of(emitter, op)?;
        load(emitter, &fragment, &memory, pad)
    }
}

impl Schedule for ScalarStore {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        match self.0 {
            Write::Store => "st.scalar",
            Write::Add => "red.scalar",
        }
    }
}

impl<'c> Match<Site<'_, 'c>> for ScalarStore {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        self.0.admits(site.memory(1)?)?;
        let fragment = &site.registers(0)?.fragment;
        Owner::new(fragment)?;
        let registers = fragment.registers();
        Ok(Registers { registers })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl<'c> Emit<'c> for ScalarStore {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, memory) = store::sides(emitter, op)?;
        let owns = store::owns(emitter, &source.fragment)?;
        let fragment = source.fragment.clone();
        write(self.0, emitter, &fragment, &memory, &source.values, owns)?;
        Ok(Vec::new())
    }
}

impl Schedule for ScalarTransfer {
    type Plan = Elements;

    fn name(&self) -> &'static str {
        match self.0 {
            Write::Store => "ld.st.scalar",
            Write::Add => "ld.red.scalar",
        }
    }
}

impl<'c> Match<Site<'_, 'c>> for ScalarTransfer {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Elements, Decline> {
        site.memory(0)?;
        let storage = site.memory(1)?;
        self.0.admits(storage)?;
        Ok(Elements {
            shape: storage.shape.clone(),
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Elements) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?.shape)
    }
}

impl<'c> Emit<'c> for ScalarTransfer {
    fn emit(
        &self,
        plan: &Elements,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = transfer::sides(emitter, op)?;
        let pad = padding(emitter, op, from.element)?;
        each_element(emitter, &plan.shape, |emitter, index| {
            let value = load_at(emitter, &from, index, pad)?;
            self.0.at(emitter, &to, index, value, None)
        })?;
        Ok(Vec::new())
    }
}

/// Whether an index of the box exists; `None` when it always does.
pub(super) fn exists<'c>(
    emitter: &Emitter<'c>,
    memory: &Memory<'c>,
    index: &[Int<'c>],
) -> PassResult<'c, Option<Val<'c>>> {
    let mut condition = None;
    for (dim, &at) in index.iter().enumerate() {
        if memory.guards.get(dim).copied().flatten().is_some() {
            let inside = emitter.ints().less(at, emitter.room(memory, dim)?)?;
            condition = Some(emitter.both(condition, inside)?);
        }
    }
    Ok(condition)
}

/// Loads one element, or `pad` where it does not exist.
pub(in crate::emit) fn load_at<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    index: &[Int<'c>],
    pad: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let read = |emitter: &mut Emitter<'c>| {
        let address = emitter.address_of(memory, index)?;
        let pointer = emitter.offset_pointer(memory, memory.base, address)?;
        emitter.load(memory, pointer, 1)
    };
    let values = match exists(emitter, memory, index)? {
        None => read(emitter)?,
        Some(condition) => emitter.when(condition, &[pad], read)?,
    };
    values
        .first()
        .copied()
        .ok_or_else(|| emitter.error("a load without a value"))
}

/// Stores one element where it exists and `condition` holds.
pub(super) fn store_at<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    index: &[Int<'c>],
    value: Val<'c>,
    condition: Option<Val<'c>>,
) -> PassResult<'c> {
    Write::Store.at(emitter, memory, index, value, condition)
}

/// Writes one element, at the pointer that `write` gets, where it exists and `condition` holds.
fn write_at<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    index: &[Int<'c>],
    condition: Option<Val<'c>>,
    write: impl FnOnce(&mut Emitter<'c>, Val<'c>) -> PassResult<'c>,
) -> PassResult<'c> {
    let write = |emitter: &mut Emitter<'c>| {
        let address = emitter.address_of(memory, index)?;
        let pointer = emitter.offset_pointer(memory, memory.base, address)?;
        write(emitter, pointer)?;
        Ok(Vec::new())
    };
    let condition = match (condition, exists(emitter, memory, index)?) {
        (Some(a), Some(b)) => Some(emitter.both(Some(a), b)?),
        (one, None) | (None, one) => one,
    };
    match condition {
        None => write(emitter)?,
        Some(condition) => emitter.when(condition, &[], write)?,
    };
    Ok(())
}

/// Loads a register tensor element by element.
pub(super) fn load<'c>(
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    memory: &Memory<'c>,
    pad: Val<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let mut values = Vec::new();
    for register in 0..fragment.registers() {
        let at = emitter.index_of(fragment, register)?;
        values.push(load_at(emitter, memory, &at, pad)?);
    }
    Ok(values)
}

/// Stores a register tensor element by element, by the threads for which `owns` holds.
pub(super) fn store<'c>(
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    memory: &Memory<'c>,
    values: &[Val<'c>],
    owns: Option<Val<'c>>,
) -> PassResult<'c> {
    write(Write::Store, emitter, fragment, memory, values, owns)
}

fn write<'c>(
    how: Write,
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    memory: &Memory<'c>,
    values: &[Val<'c>],
    owns: Option<Val<'c>>,
) -> PassResult<'c> {
    for (register, value) in (0..).zip(values) {
        let at = emitter.index_of(fragment, register)?;
        how.at(emitter, memory, &at, *value, owns)?;
    }
    Ok(())
}

/// The index along each dimension of a row-major index.
pub(super) fn unravel<'c>(
    emitter: &Emitter<'c>,
    linear: Int<'c>,
    shape: &[i64],
) -> PassResult<'c, Vec<Int<'c>>> {
    let ints = emitter.ints();
    let (mut rest, mut index) = (linear, Vec::new());
    for (dim, &extent) in shape.iter().enumerate().rev() {
        index.push(if dim == 0 {
            rest
        } else {
            ints.rem(rest, extent)?
        });
        rest = ints.div(rest, extent)?;
    }
    index.reverse();
    Ok(index)
}

/// Visits each element of a box once, by the thread of its turn.
pub(super) fn each_element<'c>(
    emitter: &mut Emitter<'c>,
    shape: &[i64],
    visit: impl FnOnce(&mut Emitter<'c>, &[Int<'c>]) -> PassResult<'c>,
) -> PassResult<'c> {
    let (size, threads) = (shape.iter().product::<i64>(), emitter.threads);
    let turns = size / threads + i64::from(size % threads != 0);
    emitter.repeat(turns, &[], |emitter, turn, _| {
        let ints = emitter.ints();
        let element = ints.add(ints.mul(turn, threads)?, Int::Value(emitter.thread))?;
        let inside = ints.less(element, Int::Known(size))?;
        emitter.when(inside, &[], |emitter| {
            let index = unravel(emitter, element, shape)?;
            visit(emitter, &index)?;
            Ok(Vec::new())
        })
    })?;
    Ok(())
}
