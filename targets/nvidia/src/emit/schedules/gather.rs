//! `axe.gather`: rows of a table that data names, from memory to registers.

use super::scalar::load_at;
use crate::emit::access::register_index;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::gather::GatherPlan;
use crate::state::form::{Form, Storage};
use crate::state::site::Site;
use crate::state::storage::with_memory;
use axe_dialect::ops::GatherOp;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::parts;
use axe_passes::ir::{DYNAMIC, Int, Ints, Op, Val};
use melior::ir::attribute::IntegerAttribute;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// `ld` of the number, then `ld` of 1 to 16 bytes of its row.
#[derive(Clone, Copy)]
pub(super) struct Load;

/// Vectors within rows.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vectors {
    /// Registers of a thread.
    pub registers: i64,
    /// Elements of an access.
    pub width: i64,
    /// The register with the number of each element's row, where numbers are in registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<GatherPlan>,
}

impl fmt::Display for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} of {} elements a thread: table[rows[i], ..]",
            self.registers / self.width.max(1),
            self.width
        )
    }
}

impl Schedule for Load {
    type Plan = Vectors;

    fn name(&self) -> &'static str {
        "ld.gather"
    }
}

/// The table's storage; how many rows it has may be known at run time only.
fn table<'a, 'c>(site: Site<'a, 'c>) -> Result<&'a Storage<'c>, Decline> {
    match site.operand(0)? {
        Form::Memory(table) if !table.shape.iter().skip(1).any(|&extent| extent == DYNAMIC) => {
            Ok(table)
        }
        _ => Err(Decline::new(
            "expected a table whose rows have a known shape",
        )),
    }
}

/// Which registers of the numbers those of the elements need; none where numbers are in memory.
fn numbers(site: Site<'_, '_>, fragment: &Fragment) -> Result<Option<GatherPlan>, Decline> {
    let Form::Registers(held) = site.operand(1)? else {
        return site.memory(1).map(|_| None);
    };
    let columns: i64 = fragment.shape().iter().skip(1).product();
    GatherPlan::new(&held.fragment, fragment, |x| x / columns.max(1)).map(Some)
}

/// The elements of a row that one access may read: those of a copy of as many rows, if every row begins as aligned as
/// those do.
fn width(table: &Storage<'_>, fragment: &Fragment) -> i64 {
    let (Some(&rows), Some([iter])) = (
        fragment.shape().first(),
        table.dims.first().map(Vec::as_slice),
    ) else {
        return 1;
    };
    let mut tile = table.clone();
    tile.shape[0] = rows;
    tile.guards[0] = None;
    tile.dims[0][0].extent = rows;
    let plan = with_memory(&tile, |memory| CopyPlan::new(fragment, memory));
    plan.map_or(1, |plan| match iter.stride % plan.width {
        0 => plan.width,
        _ => 1,
    })
}

impl<'c> Match<Site<'_, 'c>> for Load {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Vectors, Decline> {
        let fragment = site.result()?;
        Ok(Vectors {
            registers: fragment.registers(),
            width: width(table(site)?, &fragment),
            numbers: numbers(site, &fragment)?,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Vectors) -> Result<(), Decline> {
        let widest = self.plan(site)?;
        let divides = plan.width > 0 && widest.width % plan.width == 0;
        let is_same = plan.registers == widest.registers && plan.numbers == widest.numbers;
        match divides && is_same {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "expected {widest:?}, or a part of its width, got {plan:?}"
            ))),
        }
    }
}

impl<'c> Emit<'c> for Load {
    fn emit(
        &self,
        plan: &Vectors,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let operands: GatherOp = parts(op)?;
        let table = emitter.memory(operands.table)?;
        let gather = Gather {
            pad: match operands.pad {
                Some(pad) => emitter.scalar(pad)?,
                None => emitter.zero(table.element)?,
            },
            rows: match &plan.numbers {
                None => Rows::Memory(Box::new(emitter.memory(operands.rows)?)),
                Some(plan) => {
                    let values = emitter.registers(operands.rows)?.values;
                    Rows::Registers(plan.clone(), values)
                }
            },
            fragment: &*emitter.result_fragment(op)?,
            width: plan.width,
            wraps: operands.wrap,
            clamps: operands.clamp,
            table,
        };
        gather.emit(emitter, plan.registers)
    }
}

/// Where the numbers of rows are.
enum Rows<'c> {
    Memory(Box<Memory<'c>>),
    Registers(GatherPlan, Vec<Val<'c>>),
}

/// A gather under way.
struct Gather<'a, 'c> {
    table: Memory<'c>,
    rows: Rows<'c>,
    pad: Val<'c>,
    fragment: &'a Fragment,
    width: i64,
    /// Whether a negative number counts from the last row on.
    wraps: bool,
    /// Whether a number that names no row stands for the nearest one.
    clamps: bool,
}

impl<'c> Gather<'_, 'c> {
    fn emit(&self, emitter: &mut Emitter<'c>, registers: i64) -> PassResult<'c, Vec<Val<'c>>> {
        let width = usize::try_from(self.width).unwrap_or(1);
        let mut values = vec![self.pad; usize::try_from(registers).unwrap_or(0)];
        for (part, columns) in self.by_row(registers) {
            let (row, exists) = self.row(emitter, part, columns.first().copied())?;
            for (condition, accesses) in self.by_bounds(emitter, &columns)? {
                let loads = |emitter: &mut Emitter<'c>| {
                    let own = accesses.iter();
                    let own = own.map(|&register| self.load(emitter, row, register));
                    own.collect::<PassResult<'c, Vec<_>>>()
                };
                let condition = match (condition, exists) {
                    (Some(own), Some(exists)) => Some(emitter.both(Some(own), exists)?),
                    (own, exists) => own.or(exists),
                };
                // Vectors leave a branch whole: of what is cut out of them in it LLVM would make a value of the branch each.
                let loaded = match condition {
                    None => loads(emitter)?,
                    Some(condition) => {
                        let pads = emitter.padded_vector(self.pad, self.width)?;
                        emitter.when(condition, &vec![pads; accesses.len()], loads)?
                    }
                };
                for (register, vector) in accesses.iter().zip(loaded) {
                    let vector = emitter.elements_of(vector, self.width, self.table.element)?;
                    let first = usize::try_from(*register).unwrap_or(0);
                    values[first..][..width].copy_from_slice(&vector);
                }
            }
        }
        Ok(values)
    }

    /// The first registers of accesses, by the registers' part of the row.
    fn by_row(&self, registers: i64) -> BTreeMap<i64, Vec<i64>> {
        let mut rows = BTreeMap::<i64, Vec<i64>>::new();
        let dim = self.fragment.dims().first().map_or(&[][..], Vec::as_slice);
        for register in (0..registers / self.width).map(|access| access * self.width) {
            rows.entry(register_index(dim, register))
                .or_default()
                .push(register);
        }
        rows
    }

    /// The row of the table for a row of the result, and whether there is one, where there may be none.
    fn row(
        &self,
        emitter: &mut Emitter<'c>,
        part: i64,
        register: Option<i64>,
    ) -> PassResult<'c, (Int<'c>, Option<Val<'c>>)> {
        let number = match &self.rows {
            Rows::Memory(rows) => {
                let dim = self.fragment.dims().first().map_or(&[][..], Vec::as_slice);
                let at = emitter
                    .ints()
                    .add(emitter.thread_index(dim)?, Int::Known(part))?;
                let none = IntegerAttribute::new(rows.element, -1).into();
                let none = emitter.builder.constant(none)?;
                load_at(emitter, rows, &[at], none)?
            }
            Rows::Registers(plan, values) => {
                let at = |of: &[i64], at: i64| of.get(usize::try_from(at).ok()?).copied();
                let from = register.and_then(|own| at(&plan.from, own));
                let value = from.and_then(|from| values.get(usize::try_from(from).ok()?).copied());
                value.ok_or_else(|| emitter.error("a register of the plan does not exist"))?
            }
        };
        let wide = Ints::new(emitter.builder, 64);
        let count = match self.table.extent_at(0) {
            Some(count) => Int::Value(count),
            None => emitter.room(&self.table, 0)?,
        };
        let (number, count) = (wide.cast(Int::Value(number))?, wide.cast(count)?);
        let number = match self.wraps {
            true => wide.wrapped(number, count)?,
            false => number,
        };
        if self.clamps {
            let row = wide.clamped(number, count)?;
            return Ok((emitter.ints().cast(row)?, None));
        }
        let inside = wide.below(number, count)?;
        Ok((emitter.ints().cast(number)?, Some(inside)))
    }

    /// Accesses of a row by the bounds of their columns.
    fn by_bounds(
        &self,
        emitter: &Emitter<'c>,
        accesses: &[i64],
    ) -> PassResult<'c, Vec<(Option<Val<'c>>, Vec<i64>)>> {
        let mut columns = self.table.clone();
        if let Some(guard) = columns.guards.first_mut() {
            *guard = None;
        }
        let groups = emitter.groups(self.fragment, &columns, accesses.iter().copied());
        groups
            .into_iter()
            .map(|(key, members)| {
                let condition = emitter.exist(self.fragment, &columns, &key)?;
                Ok((condition, members.iter().map(|&at| accesses[at]).collect()))
            })
            .collect()
    }

    fn load(&self, emitter: &Emitter<'c>, row: Int<'c>, register: i64) -> PassResult<'c, Val<'c>> {
        let mut index = emitter.index_of(self.fragment, register)?;
        index[0] = row;
        let address = emitter.address_of(&self.table, &index)?;
        let pointer = emitter.offset_pointer(&self.table, self.table.base, address)?;
        emitter.load_vector(&self.table, pointer, self.width)
    }
}
