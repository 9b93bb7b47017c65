//! Subtiles of shared memory through which matrices of registers leave, and how their threads write them: subtile by subtile
//! through a ring of slots.

use crate::emit::emitter::Emitter;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::ldmatrix::MatrixPlan;
use crate::plan::owner::Owner;
use crate::state::form::Storage;
use crate::state::site::Site;
use crate::state::slots::Slots;
use crate::state::storage::{SHARED_ALIGNMENT, with_memory};
use crate::vocabulary::{WARPGROUP, WARPGROUP_WARPS};
use axe_dialect::layout_of;
use axe_layout::{Axis, Iter, Swizzle};
use axe_passes::PassResult;
use axe_passes::fuse::registers::part;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Int, Op, Val};
use melior::ir::{Type, ValueLike};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::rc::Rc;

/// Bytes of a subtile's row at the least: tiles whose rows are no multiple have no subtiles.
pub(crate) const SUBTILE_ROW_BYTES: i64 = 32;
/// Bytes of a subtile's row: the spans of the swizzles, of which the widest that divides the tile's rows is taken.
const ROW_BYTES: [i64; 3] = [128, 64, SUBTILE_ROW_BYTES];

/// How the threads write a subtile.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum Write {
    /// `stmatrix`.
    Matrices(MatrixPlan),
    /// Each thread its own elements.
    Vectors(CopyPlan),
}

/// The subtiles of a register tensor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subtiles {
    /// How many there are for each part of the thread group: a part has rows or columns, barriers and a ring of its own.
    pub count: i64,
    /// Rows of a subtile: those of a part.
    pub rows: i64,
    /// Columns of a subtile.
    pub columns: i64,
    /// The rings that they go through.
    pub slots: Slots,
    /// Whether parts have columns of their own, and all rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// Whether the scope's other subtiles go around in other parts, so that all of them are waited for before and after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// How they are written.
    pub write: Write,
}

/// A subtile as its threads hold it, and the registers of each subtile in the subtile fragment's order.
pub(super) struct HeldSubtiles {
    /// The first one.
    pub fragment: Rc<Fragment>,
    /// Of the whole tensor's.
    pub registers: Vec<Vec<usize>>,
}

/// What a copy by way of subtiles stores.
struct Stored<'a, 'c> {
    site: Site<'a, 'c>,
    /// The destination.
    storage: &'a Storage<'c>,
    full: &'a Fragment,
    parts: i64,
    /// Whether parts have columns of their own.
    beside: bool,
    /// Rows and columns of a part.
    rows: i64,
    columns: i64,
}

impl<'a, 'c> Stored<'a, 'c> {
    fn of(site: Site<'a, 'c>) -> Result<Self, Decline> {
        if !site.kernel.is_warp_specialized || !site.chip().has_tma {
            return Err(Decline::new(
                "expected a kernel with roles on a chip with a tensor memory accelerator",
            ));
        }
        let storage = site.memory(1)?;
        let full = &*site.registers(0)?.fragment;
        let owner = Owner::new(full)?;
        if !owner.zero_digits.is_empty() || owner.first != 0 || owner.end < full.threads() {
            return Err(Decline::new(
                "not every thread holds elements of its own, which it would write to a subtile",
            ));
        }
        let &[rows, columns] = full.shape() else {
            return Err(Decline::new("expected a matrix"));
        };
        if rows < 2 {
            return Err(Decline::new("a row is stored as its threads hold it"));
        }
        let (parts, beside) = parts(full, site.group.warps);
        Ok(Self {
            site,
            storage,
            full,
            parts,
            beside,
            rows: if beside { rows } else { rows / parts },
            columns: if beside { columns / parts } else { columns },
        })
    }

    /// The slots of subtiles of so many bytes: two for each ring where planners leave as much and it is there.
    fn slots(&self, bytes: i64) -> Result<Slots, Decline> {
        let cursor = self.site.cursor;
        let free = cursor.free(self.site.chip().shared_bytes);
        let groups = self.site.group.count();
        let slots = cursor.rings().slots(self.parts, bytes, groups, free);
        let more = match cursor.rings().has(slots) {
            false => groups * self.parts * slots.ring_bytes(),
            true => 0,
        };
        let left = free.1;
        match more <= left {
            true => Ok(slots),
            false => Err(Decline::new(format!(
                "subtiles take {more} bytes of shared memory, and {left} are left"
            ))),
        }
    }

    /// Columns of a subtile.
    fn width(&self) -> Result<i64, Decline> {
        let room = self.site.cursor.rings().room(self.parts);
        let row_bytes = row_bytes(
            self.columns,
            self.storage.bytes,
            |row| room.is_some_and(|room| self.rows * row <= room),
            |row| self.slots(self.rows * row).is_ok(),
        )?;
        Ok(row_bytes / self.storage.bytes)
    }

    fn held(&self, width: i64) -> Result<HeldSubtiles, Decline> {
        let r#type = operands(self.site.op).first().map(ValueLike::r#type);
        let source = r#type.ok_or_else(|| Decline::new("expected a source"))?;
        let threads = self.site.threads() / self.parts;
        let count = self.columns / width;
        HeldSubtiles::of(source, self.full, ([self.rows, width], count), threads)
    }
}

impl HeldSubtiles {
    /// So many subtiles of a shape, those of a tensor's first part, in so many threads of a part.
    fn of(
        source: Type<'_>,
        full: &Fragment,
        (shape, count): ([i64; 2], i64),
        threads: i64,
    ) -> Result<Self, Decline> {
        let fragment = subtile_fragment(source, full.shape(), shape, threads)?;
        let registers = subtile_registers(full, &fragment, count)?;
        Ok(Self {
            fragment: Rc::new(fragment),
            registers,
        })
    }
}

impl Subtiles {
    /// The subtiles of what a copy stores.
    ///
    /// # Errors
    /// What they are not made for.
    pub(super) fn of(site: Site<'_, '_>) -> Result<Self, Decline> {
        let stored = Stored::of(site)?;
        let width = stored.width()?;
        let held = stored.held(width)?;
        let shared = subtile(stored.storage, [stored.rows, width])
            .map_err(|_| Decline::new("the subtile has no place in shared memory"))?;
        Ok(Self {
            count: stored.columns / width,
            rows: stored.rows,
            columns: width,
            slots: stored.slots(stored.rows * width * stored.storage.bytes)?,
            beside: stored.beside,
            foreign: site.cursor.rings().is_foreign(stored.parts),
            write: write_plan(&held.fragment, &shared)?,
        })
    }

    /// Checks subtiles that someone wrote.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
    pub(super) fn check(&self, site: Site<'_, '_>) -> Result<(), Decline> {
        let stored = Stored::of(site)?;
        let bytes = stored.storage.bytes;
        if !ROW_BYTES.contains(&self.columns.saturating_mul(bytes))
            || stored.columns % self.columns != 0
        {
            return Err(Decline::new(format!(
                "expected subtiles of rows of 32, 64 or 128 bytes that divide {} columns, got {} columns",
                stored.columns, self.columns
            )));
        }
        let planned = Self {
            count: stored.columns / self.columns,
            rows: stored.rows,
            columns: self.columns,
            slots: stored.slots(stored.rows * self.columns * bytes)?,
            beside: stored.beside,
            foreign: site.cursor.rings().is_foreign(stored.parts),
            write: Write::Vectors(CopyPlan {
                width: 1,
                terms: Vec::new(),
                accesses: Vec::new(),
            }),
        };
        if planned.place() != self.place() {
            return Err(Decline::new(format!(
                "expected {:?} (subtiles, rows, slots, beside, foreign), got {:?}",
                planned.place(),
                self.place()
            )));
        }
        let held = stored.held(self.columns)?;
        let shared = subtile(stored.storage, [self.rows, self.columns])
            .map_err(|_| Decline::new("the subtile has no place in shared memory"))?;
        match &self.write {
            Write::Matrices(plan) if bytes == 2 => {
                with_memory(&shared, |memory| plan.verify(&held.fragment, memory))
            }
            Write::Matrices(_) => Err(Decline::new("matrices are of elements of 2 bytes")),
            Write::Vectors(plan) => {
                with_memory(&shared, |memory| plan.verify(&held.fragment, memory))
            }
        }
    }

    fn place(&self) -> (i64, i64, Slots, [bool; 2]) {
        let flags = [self.beside, self.foreign];
        (self.count, self.rows, self.slots, flags)
    }

    /// The first row and column of a part.
    pub(super) fn origin<'c>(
        &self,
        emitter: &Emitter<'c>,
        part: Int<'c>,
    ) -> PassResult<'c, [Int<'c>; 2]> {
        let ints = emitter.ints();
        match self.beside {
            true => Ok([Int::ZERO, ints.mul(part, self.count * self.columns)?]),
            false => Ok([ints.mul(part, self.rows)?, Int::ZERO]),
        }
    }

    /// Threads of a part, in a thread group of so many.
    pub(super) fn threads(&self, group: i64) -> i64 {
        group / self.slots.parts.max(1)
    }

    /// The subtiles as the threads hold them.
    pub(super) fn held<'c>(
        &self,
        emitter: &Emitter<'c>,
        op: Op<'c>,
        full: &Fragment,
    ) -> PassResult<'c, HeldSubtiles> {
        let source = operands(op).first().map(ValueLike::r#type);
        let source = source.ok_or_else(|| emitter.error("expected a source"))?;
        let threads = self.threads(emitter.threads);
        let shape = [self.rows, self.columns];
        HeldSubtiles::of(source, full, (shape, self.count), threads)
            .map_err(|decline| emitter.error(decline.to_string()))
    }

    /// A subtile of shared memory for elements like these.
    pub(super) fn shared<'c>(&self, like: &Storage<'c>) -> Result<Storage<'c>, Decline> {
        subtile(like, [self.rows, self.columns])
            .map_err(|_| Decline::new("the subtile has no place in shared memory"))
    }

    /// A subtile of shared memory at an address.
    pub(super) fn at<'c>(
        &self,
        emitter: &Emitter<'c>,
        like: &Memory<'c>,
        base: Val<'c>,
    ) -> PassResult<'c, Memory<'c>> {
        let storage = self.shared(like);
        let storage = storage.map_err(|decline| emitter.error(decline.to_string()))?;
        Ok(Memory::new(storage, base))
    }
}

impl fmt::Display for Subtiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} subtiles of {} x {} for each of {} parts, through {} slots",
            self.count, self.rows, self.columns, self.slots.parts, self.slots.count,
        )?;
        match &self.write {
            Write::Matrices(plan) => plan.fmt(f),
            Write::Vectors(plan) => plan.fmt(f),
        }
    }
}

/// The widest rows of subtiles of so many columns: of those that fit the slots that there are, else of those that fit new ones.
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
            "{columns} columns: expected a multiple of {}, subtiles of 32 bytes or more",
            SUBTILE_ROW_BYTES / bytes
        ))
    })
}

/// How many parts of the group hold rows of their own, or columns, and whether it is columns: its warpgroups, where they do.
fn parts(full: &Fragment, warps: i64) -> (i64, bool) {
    let groups = warps / WARPGROUP_WARPS;
    let &[rows, columns] = full.shape() else {
        return (1, false);
    };
    let splits = |extent: i64| groups > 1 && extent % groups == 0;
    if full.threads() != groups * WARPGROUP {
        (1, false)
    } else if splits(rows) && has_parts(full, [rows / groups, columns], 0) {
        (groups, false)
    } else if splits(columns) && has_parts(full, [rows, columns / groups], 1) {
        (groups, true)
    } else {
        (1, false)
    }
}

/// Whether each warpgroup holds a part of this shape as the first one does, further along a dimension.
fn has_parts(full: &Fragment, shape: [i64; 2], dim: usize) -> bool {
    (0..full.threads()).all(|thread| {
        (0..full.registers()).all(|register| {
            let Some(&[row, column]) = full.index(thread % WARPGROUP, register).as_deref() else {
                return false;
            };
            let mut expected = vec![row, column];
            for ((at, index), extent) in expected.iter_mut().enumerate().zip(shape) {
                if *index >= extent {
                    return false;
                }
                if at == dim {
                    *index += thread / WARPGROUP * extent;
                }
            }
            full.index(thread, register) == Some(expected)
        })
    })
}

/// The first subtile of the first part, as its threads hold it.
fn subtile_fragment(
    source: Type<'_>,
    shape: &[i64],
    [rows, columns]: [i64; 2],
    threads: i64,
) -> Result<Fragment, Decline> {
    let layout = layout_of(source).ok_or_else(|| Decline::new("the tensor has no layout"))?;
    let layout = layout
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    let subtile = part(&layout, shape, &[0..rows, 0..columns])
        .map_err(|error| Decline::new(format!("a subtile of the tensor has no layout: {error}")))?;
    Fragment::new(&subtile, &[rows, columns], threads)
}

/// The registers of the whole fragment that hold what each subtile's registers hold.
fn subtile_registers(
    full: &Fragment,
    subtile: &Fragment,
    subtiles: i64,
) -> Result<Vec<Vec<usize>>, Decline> {
    let columns = subtile.shape().get(1).copied().unwrap_or(0);
    let place = |row: i64, column: i64| {
        let found = (0..full.registers())
            .find(|register| full.index(0, *register).as_deref() == Some(&[row, column]));
        found.and_then(|register| usize::try_from(register).ok())
    };
    let of_subtile = |number: i64| {
        (0..subtile.registers())
            .map(|register| match subtile.index(0, register).as_deref() {
                Some(&[row, column]) => place(row, column + number * columns),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Decline::new("the subtiles of the tensor are held in different ways"))
    };
    let all: Vec<_> = (0..subtiles).map(of_subtile).collect::<Result<_, _>>()?;
    for (number, registers) in (0..).zip(&all) {
        for thread in 0..subtile.threads() {
            for (register, &whole) in (0..).zip(registers) {
                let expected = subtile.index(thread, register).map(|index| {
                    index
                        .iter()
                        .zip([0, number * columns])
                        .map(|(at, first)| at + first)
                        .collect()
                });
                let whole = i64::try_from(whole).unwrap_or(-1);
                if full.index(thread, whole) != expected {
                    return Err(Decline::new(
                        "the subtiles of the tensor are held in different ways",
                    ));
                }
            }
        }
    }
    Ok(all)
}

fn write_plan(fragment: &Fragment, shared: &Storage<'_>) -> Result<Write, Decline> {
    let matrices = with_memory(shared, |memory| MatrixPlan::new(fragment, memory));
    match matrices {
        Ok(plan) if shared.bytes == 2 => Ok(Write::Matrices(plan)),
        _ => with_memory(shared, |memory| CopyPlan::new(fragment, memory)).map(Write::Vectors),
    }
}

/// A subtile of shared memory, with the swizzle of its rows.
fn subtile<'c>(like: &Storage<'c>, [rows, columns]: [i64; 2]) -> axe_layout::Result<Storage<'c>> {
    let log = |chunks: i64| u32::try_from(chunks).unwrap_or(1).trailing_zeros();
    let (chunk, span) = (log(16 / like.bytes), log(columns * like.bytes / 16));
    let iter = |extent, stride| vec![Iter::new(extent, stride, Axis::M)];
    Ok(Storage {
        dims: vec![iter(rows, columns), iter(columns, 1)],
        swizzle: Some(Swizzle::new(span, chunk, 3, true)?),
        ..Storage::shared(like.element, like.bytes, &[rows, columns], SHARED_ALIGNMENT)?
    })
}
