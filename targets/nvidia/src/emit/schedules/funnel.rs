//! `axe.copy` from global memory to registers, where vectors begin anywhere: of each, the one or two aligned vectors that it lies in are
//! loaded, and its words are cut out of them by funnel shifts (PTX ISA 9.7.8, `shf`). How far vectors are behind the aligned ones is the
//! same for all accesses of a copy.

use super::load::Reads;
use crate::emit::access::register_index;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::emit::wanted::is_chosen;
use crate::facts::chip::ACCESS_BYTES;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::{self, CopyPlan};
use crate::state::form::{Space, Storage};
use crate::state::site::Site;
use crate::state::storage::with_memory;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::{Int, Ints, Op, Predicate, Val};

/// Bytes of a word.
const WORD: i64 = 4;
const WORD_BITS: i64 = 8 * WORD;
/// Words of a vector.
const WORDS: usize = 4;
/// Bytes that loads without it read at once, at most.
const MOST_BYTES: i64 = 4;

/// Bytes of elements in global memory, at most. Measured: RMSNorm of 100,001 columns of f32 takes 87.0 us where its scale is loaded element by element and 91.9 in
/// vectors, LayerNorm 107.2 and 115.8; RMSNorm of f16 97.8 and 88.0.
const MOST_GLOBAL: i64 = 2;

/// Two `ld` of 16 bytes, and `shf`.
#[derive(Clone, Copy)]
pub(super) struct FunnelLoad;

impl Schedule for FunnelLoad {
    type Plan = CopyPlan;

    fn name(&self) -> &'static str {
        "ld.funnel"
    }
}

/// The accesses there would be if vectors began at boundaries; in global memory, if the source ended at one, too.
fn aligned<T>(
    storage: &Storage<'_>,
    plan: impl FnOnce(copy::Memory) -> Result<T, Decline>,
) -> Result<T, Decline> {
    with_memory(storage, |memory| {
        let ends = match storage.space {
            Space::Global => &[],
            _ => memory.ends,
        };
        plan(copy::Memory {
            alignment: ACCESS_BYTES,
            ends,
            ..memory
        })
    })
}

/// Declines what has no vectors that begin anywhere, or whose end nobody knows.
fn admits(fragment: &Fragment, storage: &Storage<'_>) -> Result<(), Decline> {
    if storage.swizzle.is_some() {
        return Err(Decline::new("expected memory without a swizzle"));
    }
    if storage.bytes > WORD {
        return Err(Decline::new("expected elements of at most a word"));
    }
    let narrow = with_memory(storage, |memory| CopyPlan::new(fragment, memory))?;
    if narrow.width * storage.bytes > MOST_BYTES {
        return Err(Decline::new("wide accesses are aligned"));
    }
    match storage.space {
        // Allocations are of whole vectors.
        Space::Shared => Ok(()),
        Space::Global => bounded(fragment, storage),
        Space::ClusterShared => Err(Decline::new("expected the CTA's own memory")),
    }
}

/// Declines a box of which nobody knows how far it is from the source's end.
fn bounded(fragment: &Fragment, storage: &Storage<'_>) -> Result<(), Decline> {
    if storage.bytes > MOST_GLOBAL {
        return Err(Decline::new("few loads from global memory are as quick"));
    }
    let guard = along(fragment).and_then(|dim| storage.guards.get(dim).copied().flatten());
    match guard {
        Some(_) => Ok(()),
        None => Err(Decline::new("expected a source whose end bounds the box")),
    }
}

/// The dimension that a thread's consecutive registers are along.
fn along(fragment: &Fragment) -> Option<usize> {
    let mut dims = fragment.dims().iter();
    dims.position(|dim| register_index(dim, 1) == 1)
}

fn wide(plan: &CopyPlan, storage: &Storage<'_>) -> Result<(), Decline> {
    match plan.width * storage.bytes == ACCESS_BYTES {
        true => Ok(()),
        false => Err(Decline::new(format!(
            "{} elements at once: expected {ACCESS_BYTES} bytes",
            plan.width
        ))),
    }
}

impl<'c> Match<Site<'_, 'c>> for FunnelLoad {
    fn plan(&self, site: Site<'_, 'c>) -> Result<CopyPlan, Decline> {
        let (storage, fragment) = (site.memory(0)?, site.result()?);
        admits(&fragment, storage)?;
        if is_chosen(site.op) {
            return Err(Decline::new("a condition says which elements are wanted"));
        }
        let plan = aligned(storage, |memory| CopyPlan::new(&fragment, memory))?;
        wide(&plan, storage)?;
        Ok(plan)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &CopyPlan) -> Result<(), Decline> {
        let (storage, fragment) = (site.memory(0)?, site.result()?);
        admits(&fragment, storage)?;
        wide(plan, storage)?;
        aligned(storage, |memory| plan.verify(&fragment, memory))
    }
}

impl<'c> Emit<'c> for FunnelLoad {
    fn emit(
        &self,
        plan: &CopyPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Reads {
            memory,
            fragment,
            pad,
        } = Reads::of(emitter, op)?;
        let along = along(&fragment).ok_or_else(|| emitter.error("expected vectors"))?;
        let behind = Behind::new(emitter, plan.width, &memory)?;
        let own = Vectors {
            fragment: &fragment,
            memory: &memory,
            along,
            behind,
            pad,
        };
        let pointers = emitter.pointers(plan, &memory)?;
        let mut values = Vec::new();
        for (access, pointer) in plan.accesses.iter().zip(pointers) {
            values.extend(own.load(emitter, access.register, pointer)?);
        }
        Ok(values)
    }
}

/// How far vectors are behind aligned ones.
#[derive(Clone, Copy)]
struct Behind<'c> {
    /// In elements, and in bits, 32 bits each.
    elements: Int<'c>,
    bits: Int<'c>,
    /// From a vector's first aligned one to its last, in elements.
    step: Int<'c>,
}

impl<'c> Behind<'c> {
    /// Of accesses whose places in memory are multiples of `width` elements.
    fn new(emitter: &Emitter<'c>, width: i64, memory: &Memory<'c>) -> PassResult<'c, Self> {
        let ints = emitter.ints();
        let address = types::integer(emitter.builder, memory.space.offset_bits());
        let address = emitter
            .builder
            .value("llvm.ptrtoint", &[memory.base], address, &[])?;
        let bytes = ints.and(ints.cast(Int::Value(address))?, ACCESS_BYTES - 1)?;
        let elements = ints.div(bytes, memory.bytes)?;
        let is_aligned = ints.compare(Predicate::Equal, bytes, Int::ZERO)?;
        Ok(Self {
            elements,
            bits: ints.mul(bytes, 8)?,
            step: ints.select(is_aligned, Int::ZERO, Int::Known(width))?,
        })
    }
}

/// The vectors of a copy.
struct Vectors<'a, 'c> {
    fragment: &'a Fragment,
    memory: &'a Memory<'c>,
    /// The dimension that they are along.
    along: usize,
    behind: Behind<'c>,
    pad: Val<'c>,
}

impl<'c> Vectors<'_, 'c> {
    /// Elements of a vector.
    fn width(&self) -> i64 {
        ACCESS_BYTES / self.memory.bytes
    }

    /// The elements from a register on, at a pointer.
    fn load(
        &self,
        emitter: &mut Emitter<'c>,
        register: i64,
        pointer: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let bounded = self.memory.remaining.get(self.along).copied().flatten();
        let loaded = match bounded.filter(|_| self.memory.space == Space::Global) {
            Some(remaining) => self.load_bounded(emitter, (register, remaining), pointer)?,
            None => match self.exist(emitter, register, true)? {
                None => self.whole(emitter, pointer)?,
                Some(exists) => {
                    self.load_where(emitter, exists, |emitter| self.whole(emitter, pointer))?
                }
            },
        };
        emitter.elements_of(loaded, self.width(), self.memory.element)
    }

    /// A vector where a condition holds; else padding.
    fn load_where(
        &self,
        emitter: &mut Emitter<'c>,
        condition: Val<'c>,
        load: impl FnOnce(&mut Emitter<'c>) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let pads = emitter.padded_vector(self.pad, self.width())?;
        self.load_or(emitter, (condition, pads), load)
    }

    /// A vector where a condition holds; else another.
    fn load_or(
        &self,
        emitter: &mut Emitter<'c>,
        (condition, other): (Val<'c>, Val<'c>),
        load: impl FnOnce(&mut Emitter<'c>) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let loaded = emitter.when(condition, &[other], |emitter| Ok(vec![load(emitter)?]))?;
        Ok(loaded.first().copied().unwrap_or(other))
    }

    /// The vector of a register of which so many elements remain from the box's origin to the source's end.
    fn load_bounded(
        &self,
        emitter: &mut Emitter<'c>,
        (register, remaining): (i64, Int<'c>),
        pointer: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let others = self.exist(emitter, register, false)?;
        let room = self.room(emitter, (register, remaining))?;
        let ints = emitter.ints();
        // Where its last aligned vector is the source's, too, whatever the alignment: no byte behind the source is read.
        let is_inside = ints.less(Int::Known(2 * self.width() - 2), room)?;
        let begins = ints.less(Int::ZERO, room)?;
        let exists = emitter.both(others, begins)?;
        self.load_where(emitter, exists, |emitter| {
            let ends = emitter.not(is_inside)?;
            let elements = self.load_where(emitter, ends, |emitter| {
                self.by_element(emitter, pointer, room)
            })?;
            self.load_or(emitter, (is_inside, elements), |emitter| {
                self.whole(emitter, pointer)
            })
        })
    }

    /// How many elements there are from a register's on.
    fn room(
        &self,
        emitter: &Emitter<'c>,
        (register, remaining): (i64, Int<'c>),
    ) -> PassResult<'c, Int<'c>> {
        let extent = self.memory.shape.get(self.along).copied().unwrap_or(0);
        let wide = Ints::new(emitter.builder, 64);
        let most = Int::Known(extent.saturating_add(2 * self.width()));
        let least = Int::Known(i64::from(i32::MIN));
        let remaining = wide.max(wide.min(remaining, most)?, least)?;
        let ints = emitter.ints();
        let dim = self.fragment.dims().get(self.along);
        let own = emitter.index_along(dim.map_or(&[], Vec::as_slice), register)?;
        ints.sub(ints.cast(remaining)?, own)
    }

    /// Whether a register's element is inside along the other dimensions, or along all; nothing where it always is.
    fn exist(
        &self,
        emitter: &Emitter<'c>,
        register: i64,
        along_all: bool,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let groups = emitter.groups(self.fragment, self.memory, std::iter::once(register));
        let mut key = groups.into_keys().next().unwrap_or_default();
        key.retain(|(dim, _)| along_all || *dim != self.along);
        emitter.exist(self.fragment, self.memory, &key)
    }

    /// The elements of a vector that exist, each by itself.
    fn by_element(
        &self,
        emitter: &Emitter<'c>,
        pointer: Val<'c>,
        room: Int<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let ints = emitter.ints();
        let last = ints.sub(room, Int::Known(1))?;
        let element = |at: i64| {
            let own = ints.min(Int::Known(at), last)?;
            let own = emitter.offset_pointer(self.memory, pointer, own)?;
            let own = emitter.load(self.memory, own, 1)?;
            let own = own.first().copied().unwrap_or(self.pad);
            let exists = ints.less(Int::Known(at), room)?;
            let operands = [exists, own, self.pad];
            let r#type = self.memory.element;
            emitter
                .builder
                .value("arith.select", &operands, r#type, &[])
        };
        let elements = (0..self.width()).map(element);
        let elements = elements.collect::<PassResult<'c, Vec<_>>>()?;
        emitter.pack(&elements, self.memory.element)
    }

    /// A vector all of which exists.
    fn whole(&self, emitter: &Emitter<'c>, pointer: Val<'c>) -> PassResult<'c, Val<'c>> {
        let (ints, builder, memory) = (emitter.ints(), emitter.builder, self.memory);
        let back = ints.sub(Int::ZERO, self.behind.elements)?;
        let first = emitter.offset_pointer(memory, pointer, back)?;
        let last = emitter.offset_pointer(memory, first, self.behind.step)?;
        let mut words = self.words(emitter, first)?;
        words.extend(self.words(emitter, last)?);
        let i32 = types::integer(builder, 32);
        for by in [2, 1_u8] {
            let moves = ints.and(self.behind.bits, i64::from(by) * WORD_BITS)?;
            let moves = ints.less(Int::ZERO, moves)?;
            let moved = words.iter().zip(words.iter().skip(usize::from(by)));
            let moved = moved.map(|(own, behind)| {
                builder.value("arith.select", &[moves, *behind, *own], i32, &[])
            });
            words = moved.collect::<PassResult<'c, Vec<_>>>()?;
        }
        if memory.bytes < WORD {
            let bits = ints.value(ints.and(self.behind.bits, WORD_BITS - 1)?)?;
            let cut = words.iter().zip(words.iter().skip(1));
            let cut = cut
                .map(|(low, high)| builder.value("llvm.intr.fshr", &[*high, *low, bits], i32, &[]));
            words = cut.collect::<PassResult<'c, Vec<_>>>()?;
        }
        words.truncate(WORDS);
        let vector = types::vector(self.width(), memory.element);
        let own = emitter.pack(&words, i32)?;
        builder.value("llvm.bitcast", &[own], vector, &[])
    }

    /// The words of an aligned vector.
    fn words(&self, emitter: &Emitter<'c>, pointer: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let i32 = types::integer(emitter.builder, 32);
        let words = Memory {
            storage: Storage {
                element: i32,
                bytes: WORD,
                ..self.memory.storage.clone()
            },
            ..self.memory.clone()
        };
        emitter.load(&words, pointer, ACCESS_BYTES / WORD)
    }
}
