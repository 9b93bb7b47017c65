//! Panels of shared memory through which matrices of registers leave, and how their threads write them: panel by panel
//! through a ring of slots.

use crate::emit::int::Int;
use crate::emit::kernel::{Emitter, SHARED_ALIGNMENT};
use crate::emit::schedule::Site;
use crate::emit::staging::Slots;
use crate::emit::value::{Memory, Space};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::ldmatrix::MatrixPlan;
use crate::plan::owner::Owner;
use crate::vocabulary::{WARPGROUP, WARPGROUP_WARPS};
use axe_dialect::layout_of;
use axe_layout::{Axis, Iter, Swizzle};
use axe_passes::PassResult;
use axe_passes::fuse::registers::part;
use axe_passes::ir::Val;
use axe_passes::ir::value::operands;
use melior::ir::ValueLike;
use std::fmt;
use std::rc::Rc;

/// Bytes of a panel's row at the least: tiles whose rows are no multiple have no panels.
pub(crate) const PANEL_BYTES: i64 = 32;
/// Bytes of a panel's row: the spans of the swizzles, of which the widest that divides the tile's rows is taken.
const ROW_BYTES: [i64; 3] = [128, 64, PANEL_BYTES];

/// How the threads write a panel.
pub(super) enum Write {
    /// `stmatrix`.
    Matrices(MatrixPlan),
    /// Each thread its own elements.
    Vectors(CopyPlan),
}

/// The panels of a register tensor.
pub(super) struct Panels {
    /// Parts of the team, each with rows, barriers and a ring of its own.
    pub parts: i64,
    /// Rows of a panel: those of a part.
    pub rows: i64,
    /// Columns of a panel.
    pub columns: i64,
    /// The rings that they go through.
    pub slots: Slots,
    /// A panel as its threads hold it.
    pub fragment: Rc<Fragment>,
    /// The registers of each panel, in the panel fragment's order.
    pub registers: Vec<Vec<usize>>,
    /// How they are written.
    pub write: Write,
}

impl Panels {
    /// The panels of what a copy stores.
    ///
    /// # Errors
    /// What they are not made for.
    pub(super) fn of(site: Site<'_, '_>) -> Result<Self, Decline> {
        let emitter = site.emitter;
        if emitter.warp.is_none() || !emitter.chip.has_tma {
            return Err(Decline::new(
                "expected a kernel with roles on a chip with a tensor memory accelerator",
            ));
        }
        let memory = site.memory(1)?;
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
        let room = emitter.staging.room(parts);
        let row_bytes = row_bytes(
            columns,
            memory.bytes,
            |row| room.is_some_and(|room| rows * row <= room),
            |row| slots(emitter, parts, rows * row).is_ok(),
        )?;
        let width = row_bytes / memory.bytes;
        let threads = emitter.threads / parts;
        let fragment = Rc::new(panel_fragment(site, rows, width, threads)?);
        let registers = panel_registers(&full, &fragment, columns / width)?;
        let shared = panel(emitter, memory, [rows, width], emitter.shared)
            .map_err(|_| Decline::new("the panel has no place in shared memory"))?;
        let write = write_plan(&fragment, &shared)?;
        Ok(Self {
            parts,
            rows,
            columns: width,
            slots: slots(emitter, parts, rows * row_bytes)?,
            fragment,
            registers,
            write,
        })
    }

    /// How many there are for each part.
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.registers.len()).unwrap_or(0)
    }

    /// Threads of a part.
    pub(super) fn threads(&self) -> i64 {
        self.fragment.threads()
    }

    /// A panel of shared memory at an address.
    pub(super) fn at<'c>(
        &self,
        emitter: &Emitter<'c>,
        like: &Memory<'c>,
        base: Val<'c>,
    ) -> PassResult<'c, Memory<'c>> {
        panel(emitter, like, [self.rows, self.columns], base)
    }
}

impl fmt::Display for Panels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} panels of {} x {} for each of {} parts, through {} slots",
            self.registers.len(),
            self.rows,
            self.columns,
            self.parts,
            self.slots.count,
        )?;
        match &self.write {
            Write::Matrices(plan) => plan.fmt(f),
            Write::Vectors(plan) => plan.fmt(f),
        }
    }
}

/// The slots of panels of so many bytes: two for each ring where planners leave as much and it is there.
fn slots(emitter: &Emitter<'_>, parts: i64, bytes: i64) -> Result<Slots, Decline> {
    let used = emitter.scratch + emitter.scratch_used + SHARED_ALIGNMENT;
    let left = (emitter.chip.shared_bytes - used).max(0);
    let teams = emitter.team.count();
    let slots = emitter.staging.slots(parts, bytes, teams, left);
    let more = match slots.is_new() {
        true => teams * parts * slots.ring_bytes(),
        false => 0,
    };
    match more <= left {
        true => Ok(slots),
        false => Err(Decline::new(format!(
            "panels take {more} bytes of shared memory, and {left} are left"
        ))),
    }
}

/// The widest rows of panels of so many columns: of those that fit the slots that there are, else of those that fit new ones.
fn row_bytes(
    columns: i64,
    bytes: i64,
    fits: impl Fn(i64) -> bool,
    has_room: impl Fn(i64) -> bool,
) -> Result<i64, Decline> {
    let whole = |row: &i64| columns * bytes % row == 0;
    let rows = || ROW_BYTES.into_iter().filter(whole);
    let found = rows()
        .find(|row| fits(*row))
        .or_else(|| rows().find(|row| has_room(*row)))
        .or_else(|| rows().next());
    found.ok_or_else(|| {
        Decline::new(format!(
            "{columns} columns: expected a multiple of {}, panels of 32 bytes or more",
            PANEL_BYTES / bytes
        ))
    })
}

/// How many parts of the team hold rows of their own: its warpgroups, where they do.
fn parts(full: &Fragment, warps: i64) -> i64 {
    let groups = warps / WARPGROUP_WARPS;
    let threads = WARPGROUP;
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
