//! Registers to global memory by way of shared memory: `stmatrix`, then a store by the tensor memory
//! accelerator, column panel by column panel through a ring of panels (PTX ISA 9.7.9.27).

use super::matrix::store_matrices;
use super::store::{sides, store};
use super::tma::tma_plan;
use super::traffic::{Traffic, accumulates, adds_in_bulk};
use crate::emit::int::{Int, Predicate};
use crate::emit::kernel::{Emitter, SHARED_ALIGNMENT};
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::staging::Slots;
use crate::emit::team::WARP_THREADS;
use crate::emit::value::{Memory, Origin, Registers, Space};
use crate::fragment::{Fragment, part};
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::ldmatrix::MatrixPlan;
use crate::plan::owner::Owner;
use crate::plan::tma::TmaPlan;
use crate::vocabulary::WARPGROUP;
use axe_dialect::layout_of;
use axe_layout::{Axis, Iter, Swizzle};
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;
use std::rc::Rc;

/// Bytes of a panel's row at the least: tiles whose rows are no multiple have no panels.
pub(crate) const PANEL_BYTES: i64 = 32;
/// Bytes of a panel's row: the spans of the swizzles, of which the widest that divides the tile's rows is taken.
const ROW_BYTES: [i64; 3] = [128, 64, PANEL_BYTES];

/// The schedule.
pub(super) struct Staged;

/// How the threads write a panel.
enum Write {
    Matrices(MatrixPlan),
    Vectors(CopyPlan),
}

struct Panels {
    /// Parts of the team, each with rows, barriers and a ring of its own.
    parts: i64,
    rows: i64,
    columns: i64,
    /// The rings that they go through.
    slots: Slots,
    /// A panel as its threads hold it.
    fragment: Rc<Fragment>,
    /// The registers of each panel, in the panel fragment's order.
    registers: Vec<Vec<usize>>,
    write: Write,
    tma: TmaPlan,
    traffic: Traffic,
}

impl<'c> Schedule<'c> for Staged {
    fn name(&self) -> &'static str {
        "tma.store.staged"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let emitter = site.emitter;
        if emitter.warp.is_none() || !emitter.chip.has_tma {
            return Err(Decline::new(
                "expected a kernel with roles on a chip with a tensor memory accelerator",
            ));
        }
        let memory = site.memory(1)?;
        if accumulates(site.op) {
            adds_in_bulk(memory.element)?;
        }
        let origin = memory
            .origin
            .as_ref()
            .filter(|_| memory.space == Space::Global);
        let origin = origin.ok_or_else(|| {
            Decline::new("the box is not one of a kernel's argument: its bounds are a slice's")
        })?;
        let full = site.registers(0)?.fragment.clone();
        let owner = Owner::new(&full)?;
        if !owner.zero_digits.is_empty() || owner.first != 0 || owner.end < full.threads() {
            return Err(Decline::new(
                "not every thread holds elements of its own, which it would write to a panel",
            ));
        }
        let &[rows, columns] = full.shape() else {
            return Err(Decline::new("expected a matrix"));
        };
        let parts = parts(&full, emitter.team.warps);
        let rows = rows / parts;
        let row_bytes = row_bytes(columns, memory.bytes, |row| {
            let room = emitter.staging.room(parts);
            room.is_none_or(|room| rows * row <= room)
        })?;
        let width = row_bytes / memory.bytes;
        let threads = emitter.threads / parts;
        let fragment = Rc::new(panel_fragment(site, rows, width, threads)?);
        let registers = panel_registers(&full, &fragment, columns / width)?;
        let shared = panel(emitter, memory, [rows, width], emitter.shared)
            .map_err(|_| Decline::new("the panel has no place in shared memory"))?;
        let write = write_plan(&fragment, &shared)?;
        let tma = tma_plan(
            origin,
            &Memory {
                shape: vec![rows, width],
                ..memory.clone()
            },
            &shared,
        )?;
        Ok(Box::new(Panels {
            parts,
            rows,
            columns: width,
            slots: slots(emitter, parts, rows * row_bytes),
            fragment,
            registers,
            write,
            tma,
            traffic: Traffic::of(site.op),
        }))
    }
}

/// The slots of panels of so many bytes: two for each ring where planners leave as much and it is there.
fn slots(emitter: &Emitter<'_>, parts: i64, bytes: i64) -> Slots {
    let left =
        emitter.chip.shared_bytes - emitter.scratch - emitter.scratch_used - SHARED_ALIGNMENT;
    emitter
        .staging
        .slots(parts, bytes, emitter.team.count(), left)
}

/// The widest rows of panels of so many columns, those that fit the slots that there are before others.
fn row_bytes(columns: i64, bytes: i64, fits: impl Fn(i64) -> bool) -> Result<i64, Decline> {
    let whole = |row: &i64| columns * bytes % row == 0;
    let rows = || ROW_BYTES.into_iter().filter(whole);
    let found = rows().find(|row| fits(*row)).or_else(|| rows().next());
    found.ok_or_else(|| {
        Decline::new(format!(
            "{columns} columns: expected a multiple of {}, panels of 32 bytes or more",
            PANEL_BYTES / bytes
        ))
    })
}

/// How many parts of the team hold rows of their own: its warpgroups, where they do.
fn parts(full: &Fragment, warps: i64) -> i64 {
    let groups = warps / WARPGROUP;
    let threads = WARPGROUP * WARP_THREADS;
    let &[rows, _] = full.shape() else {
        return 1;
    };
    // A thread of each further warpgroup holds the same columns of rows further down.
    let alone = groups > 1
        && full.threads() == groups * threads
        && (0..full.threads()).all(|thread| {
            (0..full.registers()).all(|register| {
                let first = full.index(thread % threads, register);
                let down = thread / threads * (rows / groups);
                let expected = first.clone().map(|mut at| {
                    if let Some(row) = at.first_mut() {
                        *row += down;
                    }
                    at
                });
                full.index(thread, register) == expected
                    && first.is_some_and(|at| at.first().is_some_and(|row| *row < rows / groups))
            })
        });
    if alone && rows % groups == 0 {
        groups
    } else {
        1
    }
}

/// The first panel of the first part, as its threads hold it.
fn panel_fragment(
    site: Site<'_, '_>,
    rows: i64,
    columns: i64,
    threads: i64,
) -> Result<Fragment, Decline> {
    let r#type = operands(site.op).first().map(ValueLike::r#type);
    let attribute = r#type.and_then(layout_of);
    let layout = attribute.ok_or_else(|| Decline::new("the tensor has no layout"))?;
    let layout = layout
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    let shape = site.registers(0)?.fragment.shape().to_vec();
    let panel = part(&layout, &shape, &[0..rows, 0..columns])
        .map_err(|error| Decline::new(format!("a panel of the tensor has no layout: {error}")))?;
    Fragment::new(&panel, &[rows, columns], threads)
}

/// The registers of the whole fragment that hold what each panel's registers hold.
fn panel_registers(
    full: &Fragment,
    panel: &Fragment,
    panels: i64,
) -> Result<Vec<Vec<usize>>, Decline> {
    let columns = panel.shape().get(1).copied().unwrap_or(0);
    let place = |row: i64, column: i64| {
        let found = (0..full.registers())
            .find(|register| full.index(0, *register).as_deref() == Some(&[row, column]));
        found.and_then(|register| usize::try_from(register).ok())
    };
    let of_panel = |number: i64| {
        (0..panel.registers())
            .map(|register| match panel.index(0, register).as_deref() {
                Some(&[row, column]) => place(row, column + number * columns),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Decline::new("the panels of the tensor are held in different ways"))
    };
    let all: Vec<_> = (0..panels).map(of_panel).collect::<Result<_, _>>()?;
    for (number, registers) in (0..).zip(&all) {
        for thread in 0..panel.threads() {
            for (register, &whole) in (0..).zip(registers) {
                let expected = panel.index(thread, register).map(|index| {
                    index
                        .iter()
                        .zip([0, number * columns])
                        .map(|(at, first)| at + first)
                        .collect()
                });
                let whole = i64::try_from(whole).unwrap_or(-1);
                if full.index(thread, whole) != expected {
                    return Err(Decline::new(
                        "the panels of the tensor are held in different ways",
                    ));
                }
            }
        }
    }
    Ok(all)
}

fn write_plan(fragment: &Fragment, shared: &Memory<'_>) -> Result<Write, Decline> {
    let matrices = super::load::with_memory(shared, |memory| MatrixPlan::new(fragment, memory));
    match matrices {
        Ok(plan) if shared.bytes == 2 => Ok(Write::Matrices(plan)),
        _ => super::load::with_memory(shared, |memory| CopyPlan::new(fragment, memory))
            .map(Write::Vectors),
    }
}

/// A panel of shared memory, with the swizzle of its rows.
fn panel<'c>(
    emitter: &Emitter<'c>,
    like: &Memory<'c>,
    [rows, columns]: [i64; 2],
    base: Val<'c>,
) -> PassResult<'c, Memory<'c>> {
    let log = |chunks: i64| u32::try_from(chunks).unwrap_or(1).trailing_zeros();
    let (chunk, span) = (log(16 / like.bytes), log(columns * like.bytes / 16));
    let swizzle =
        Swizzle::new(span, chunk, 3, true).map_err(|error| emitter.error(error.to_string()))?;
    Ok(Memory {
        space: Space::Shared,
        element: like.element,
        bytes: like.bytes,
        base,
        root: base,
        moved: None,
        pending: Int::ZERO,
        dims: vec![
            vec![Iter::new(rows, columns, Axis::M)],
            vec![Iter::new(columns, 1, Axis::M)],
        ],
        offset: 0,
        swizzle: Some(swizzle),
        guards: vec![None, None],
        shape: vec![rows, columns],
        alignment: SHARED_ALIGNMENT / like.bytes,
        extent: None,
        origin: None,
    })
}

impl<'c> Plan<'c> for Panels {
    fn describe(&self) -> String {
        let write = match &self.write {
            Write::Matrices(plan) => plan.to_string(),
            Write::Vectors(plan) => plan.to_string(),
        };
        format!(
            "{} panels of {} x {} for each of {} parts, through {} slots\n{write}{}",
            self.registers.len(),
            self.rows,
            self.columns,
            self.parts,
            self.slots.count,
            self.tma
        )
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, target) = sides(emitter, op)?;
        let map = emitter.map_of(&self.tma, &target)?;
        let foreign = emitter.staging.is_foreign(self.parts);
        let slots = emitter.staged(self.slots);
        let ints = emitter.ints();
        let warps = emitter.team.warps / self.parts;
        let part = match self.parts {
            1 => Int::ZERO,
            _ => ints.div(emitter.warp_in_team()?, warps)?,
        };
        let ring = match self.parts {
            1 => emitter.team_number()?,
            _ => part,
        };
        let ring = ints.add(
            ints.mul(ring, slots.ring_bytes())?,
            Int::Known(slots.first()),
        )?;
        let ring = emitter.shared_address(emitter.shared, ring)?;
        let target = moved(emitter, target, ints.mul(part, self.rows)?, 0)?;
        let team = Part {
            number: part,
            warps,
            leads: emitter.leads_part(warps)?,
        };
        emitter.bulk_stores = true;
        emitter.settle_earlier()?;
        if foreign {
            emitter.settle()?;
        }
        for (number, registers) in (0..).zip(&self.registers) {
            let at = emitter.next_panel(slots)?;
            let base = emitter.shared_address(ring, at)?;
            let slot = panel(emitter, &target, [self.rows, self.columns], base)?;
            let own = Registers {
                fragment: self.fragment.clone(),
                element: source.element,
                values: registers
                    .iter()
                    .filter_map(|register| source.values.get(*register).copied())
                    .collect(),
            };
            self.store(emitter, (&own, &slot), (map, &target, number), team)?;
            emitter.pass_panel(slots)?;
        }
        match foreign {
            true => emitter.settle().map(|()| Vec::new()),
            false => Ok(Vec::new()),
        }
    }
}

/// The part of the team that a thread is in.
#[derive(Clone, Copy)]
struct Part<'c> {
    number: Int<'c>,
    warps: i64,
    /// Whether this thread issues for it.
    leads: Val<'c>,
}

impl Panels {
    /// Writes a panel, and starts its store. The slot is free where there is another, which is free after this.
    fn store<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        (own, slot): (&Registers<'c>, &Memory<'c>),
        (map, target, number): (Val<'c>, &Memory<'c>, i64),
        part: Part<'c>,
    ) -> PassResult<'c> {
        let read = |emitter: &mut Emitter<'c>| {
            emitter.bulk_wait(0, true)?;
            Ok(Vec::new())
        };
        if self.slots.count == 1 {
            emitter.when(part.leads, &[], read)?;
            emitter.part_barrier(part)?;
        }
        self.write(emitter, own, slot)?;
        emitter.publish()?;
        if self.slots.count > 1 {
            // The barrier tells all threads too that the other slot may be written again.
            emitter.when(part.leads, &[], read)?;
        }
        emitter.part_barrier(part)?;
        // Here, so that nothing keeps LLVM from joining this store with the wait of the next panel.
        let there = moved(emitter, target.clone(), Int::ZERO, number * self.columns)?;
        emitter.when(part.leads, &[], |emitter| {
            for each in &self.tma.boxes {
                emitter.store_box(map, &there, slot, each, self.traffic)?;
            }
            emitter.effect("nvvm.cp.async.bulk.commit.group", &[])?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    fn write<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        own: &Registers<'c>,
        slot: &Memory<'c>,
    ) -> PassResult<'c> {
        // The plan's threads are those of the part.
        let (thread, threads) = (emitter.thread, emitter.threads);
        let part_threads = self.fragment.threads();
        if part_threads < threads {
            let ints = emitter.ints();
            let within = ints.rem(Int::Value(thread), part_threads)?;
            emitter.thread = ints.value(within)?;
            emitter.threads = part_threads;
        }
        match &self.write {
            Write::Matrices(plan) => store_matrices(emitter, plan, own, slot)?,
            Write::Vectors(plan) => store(emitter, &self.fragment, plan, slot, &own.values, None)?,
        }
        emitter.thread = thread;
        emitter.threads = threads;
        Ok(())
    }
}

/// A box further down the rows and columns of its argument.
fn moved<'c>(
    emitter: &Emitter<'c>,
    mut memory: Memory<'c>,
    rows: Int<'c>,
    columns: i64,
) -> PassResult<'c, Memory<'c>> {
    let ints = emitter.ints();
    if let Some(Origin { at, kept, .. }) = &mut memory.origin {
        for (dim, by) in kept.iter().zip([rows, Int::Known(columns)]) {
            if let Some(at) = at.get_mut(*dim) {
                *at = ints.add(*at, by)?;
            }
        }
    }
    Ok(memory)
}

impl<'c> Emitter<'c> {
    /// Whether this thread issues for its part of the team, of so many warps.
    fn leads_part(&mut self, warps: i64) -> PassResult<'c, Val<'c>> {
        if warps == self.team.warps {
            return self.leads();
        }
        let ints = self.ints();
        let within = ints.rem(self.warp_in_team()?, warps)?;
        let first = ints.compare(Predicate::Equal, within, Int::ZERO)?;
        self.both(Some(first), self.elect()?)
    }

    /// The barrier of a part of the team.
    fn part_barrier(&mut self, part: Part<'c>) -> PassResult<'c> {
        let Part { number, warps, .. } = part;
        if warps == self.team.warps {
            return self.barrier();
        }
        let parts = self.team.warps / warps;
        let &[first] = self.team.firsts.as_slice() else {
            return Err(self.error("expected a scope that is one range of warps"));
        };
        for at in 0..parts {
            let own = self
                .ints()
                .compare(Predicate::Equal, number, Int::Known(at))?;
            self.when(own, &[], |emitter| {
                emitter.named_barrier(first + at * warps, warps)?;
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }
}
