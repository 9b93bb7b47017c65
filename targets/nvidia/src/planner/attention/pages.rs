//! Keys and values in pages (a paged cache): the numbers of pages are read block by block, and each page, or the part of one that a
//! block has, is a box of its own.

use super::config::{Config, Problem};
use super::kernel::{Brought, Parts};
use super::lengths::Lengths;
use super::memory::Strides;
use super::sizes::Sizes;
use super::tiles::Tile;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::{Attention, Pages};
use axe_passes::ir::{Int, Val};
use std::collections::VecDeque;

/// Rows after which a swizzle of shared memory starts anew (PTX ISA 9.7.15.5.1.2.1).
const PERIOD_ROWS: i64 = 8;

/// Numbers of pages that are read together: the producer has registers for few.
const TOGETHER: i64 = 4;

/// The pages of keys or of values, and their table among a kernel's arguments.
pub(super) struct Table<'a, 'c> {
    pages: &'a Pages<'c>,
    numbers: Lengths<'c>,
    /// Pages of a sequence.
    all: i64,
}

/// The keys of a page, where keys or values have pages; 0 else.
///
/// # Errors
/// Why no kernel reads them.
pub(super) fn page_of(attention: &Attention<'_>) -> Result<i64, String> {
    let mut sizes = attention.pages.iter().flatten().map(|own| own.size);
    let Some(size) = sizes.next() else {
        return Ok(0);
    };
    if sizes.any(|own| own != size) {
        return Err("its keys and values have pages of other sizes".to_owned());
    }
    if size % PERIOD_ROWS != 0 {
        return Err(format!(
            "expected pages of keys in multiples of {PERIOD_ROWS}, got {size}"
        ));
    }
    Ok(size)
}

/// The same tensor with a dimension for its pages.
pub(super) fn strides(own: Option<Strides>, pages: Option<&Pages<'_>>) -> Option<Strides> {
    let own = own?;
    Some(match pages {
        Some(pages) => own.in_pages([pages.count, pages.elements]),
        None => own,
    })
}

impl Config {
    /// Whether blocks are whole pages, or parts of one.
    pub(super) const fn takes_pages(self, problem: &Problem) -> bool {
        match problem.page {
            0 => true,
            page => page % self.keys == 0 || self.keys % page == 0,
        }
    }
}

impl<'a, 'c> Table<'a, 'c> {
    /// Those of keys and of values, of the kernel's arguments.
    pub(super) fn of(
        attention: &'a Attention<'c>,
        arguments: &[Val<'c>],
        sizes: &Sizes<'c>,
    ) -> [Option<Self>; 2] {
        let mut arguments = arguments.iter();
        [0, 1].map(|at| {
            let pages = attention.pages[at].as_ref()?;
            Some(Self {
                pages,
                numbers: Lengths::new(
                    pages.table.steps.clone(),
                    *arguments.next()?,
                    (attention.extents.batch, sizes),
                ),
                all: attention.extents.keys / pages.size,
            })
        })
    }

    /// The page of a number in a problem's sequence; one that there is not behind its last one, whose elements are zeros.
    fn page(&self, code: Code<'c>, batch: Val<'c>, number: Val<'c>) -> PassResult<'c, Val<'c>> {
        let (all, count) = (code.index(self.all)?, self.pages.count);
        let last = code.min(number, code.index(self.all - 1)?)?;
        let mut at = self.numbers.place(code, batch)?;
        let of_keys = self.pages.table.steps.iter();
        for step in of_keys.filter(|step| step.digit.var == Var::Key) {
            at = code.add(at, code.times(last, step.elements)?)?;
        }
        let ints = code.builder.ints();
        let own = ints.cast(Int::Value(self.numbers.element(code, at)?))?;
        let own = match self.pages.wraps {
            true => ints.wrapped(own, Int::Known(count))?,
            false => own,
        };
        let own = ints.max(ints.min(own, Int::Known(count - 1))?, Int::Known(0))?;
        let behind = code.at_most(all, number)?;
        code.choose(behind, [code.index(count)?, ints.value(own)?])
    }
}

impl<'c> Parts<'_, 'c> {
    /// Brings a block of keys or values page by page.
    pub(super) fn bring_pages(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        table: &Table<'_, 'c>,
        Brought { view, ring, block }: Brought<'_, 'c>,
    ) -> PassResult<'c> {
        let zero = code.index(0)?;
        let parts = (self.config.keys / table.pages.size).max(1);
        let rows = self.config.keys.min(table.pages.size);
        let shape = [rows, ring.shape[1]];
        let mut pages = VecDeque::new();
        // The first numbers are read before a stage is waited for.
        for part in 0..parts.min(TOGETHER) {
            pages.push_back(self.page(code, tile, table, (block, part))?);
        }
        let (slot, stage) = code.acquire(ring.pipeline)?;
        let stage = ring.stage(code, stage)?;
        for part in 0..parts {
            if pages.is_empty() {
                for next in part..parts.min(part + TOGETHER) {
                    pages.push_back(self.page(code, tile, table, (block, next))?);
                }
            }
            let lost = || layout_error(code.builder.location, "a part of a block has a page");
            let (page, row) = pages.pop_front().ok_or_else(lost)?;
            let from = view.in_page(code, page, tile.batch, ([row, zero], shape))?;
            let to = match parts {
                1 => stage,
                _ => ring.rows(code, stage, part * rows, rows)?,
            };
            code.copy_signal(from, to, slot, false)?;
        }
        code.commit_slot(ring.pipeline, slot)
    }

    /// The page of a part of a block, and the part's first row in it.
    fn page(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        table: &Table<'_, 'c>,
        (block, part): (Val<'c>, i64),
    ) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        let (keys, size) = (self.config.keys, table.pages.size);
        let (number, row) = if keys >= size {
            let first = code.times(block, keys / size)?;
            (code.add(first, code.index(part)?)?, code.index(0)?)
        } else {
            let (first, size) = (code.times(block, keys)?, code.index(size)?);
            (code.div(first, size)?, code.rem(first, size)?)
        };
        Ok((table.page(code, tile.batch, number)?, row))
    }
}
