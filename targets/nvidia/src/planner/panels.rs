//! The columns of a tile panel by panel: what follows a product is formed on one panel, stored, and formed on the next, so
//! that beside the sums a thread keeps the values of one panel, and what is loaded for another.

use super::layouts::ROW_BYTES;
use super::specialised::{Body, Tiles, convert};
use crate::emit::{PANEL_BYTES, STAGING_BYTES};
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::fuse::evaluate::Evaluator;
use axe_passes::fuse::operators::is_reshape;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Kind, source};
use axe_passes::ir::Val;
use axe_passes::ir::value::{defining, identity, name};
use melior::ir::ValueLike;

/// A range of a tile's columns.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// The first column.
    pub first: i64,
    /// The panel, as the tile's threads hold it.
    pub registers: Registers,
}

/// Bytes of a panel's row where a warpgroup has so many rows: two panels fit in what it stores through, so that one is
/// formed while the other is stored. That is 32 elements of 16 bits a thread.
fn row_bytes(rows: i64) -> i64 {
    let mut bytes = ROW_BYTES;
    while bytes > PANEL_BYTES && 2 * rows * bytes > STAGING_BYTES {
        bytes /= 2;
    }
    bytes
}

/// The widths of the panels of so many columns, of elements of so many bytes: as wide as may be, then what is left in
/// halves down to the narrowest that is stored at once, then the rest.
fn widths(columns: i64, bytes: i64, widest: i64) -> Vec<i64> {
    let elements = |of: i64| (of / bytes.max(1)).max(1);
    let (mut width, narrowest) = (elements(widest), elements(PANEL_BYTES));
    let (mut widths, mut left) = (Vec::new(), columns);
    while left > 0 {
        while width > left && width > narrowest {
            width /= 2;
        }
        widths.push(width.min(left));
        left -= width.min(left);
    }
    widths
}

impl Panel {
    /// The panels of a tile of results of up to so many bytes, `rows` of which a warpgroup has; none where the tile is
    /// stored at once: sums that are stored as they are, or converted, take no registers beside them, and columns that
    /// are whole panels the store takes panel by panel itself.
    ///
    /// # Errors
    /// When a panel has no layout.
    pub(super) fn of(
        tile: &Registers,
        bytes: i64,
        rows: i64,
        plain: bool,
    ) -> axe_layout::Result<Vec<Self>> {
        let [_, columns] = tile.shape;
        let widest = row_bytes(rows);
        let widths = widths(columns, bytes, widest);
        if widths.len() < 2 || plain && columns * bytes % widest == 0 {
            return Ok(Vec::new());
        }
        let mut first = 0;
        let mut panels = Vec::new();
        for width in widths {
            panels.push(Self {
                first,
                registers: tile.part(first, width)?,
            });
            first += width;
        }
        Ok(panels)
    }
}

impl<'c> Body<'_, 'c> {
    /// The panels in which a tile's sums become results, where that is not all of them at once.
    pub(super) fn panels(&self, tile: &Registers) -> axe_layout::Result<Vec<Panel>> {
        // Where the instruction's rows are columns, a thread does not hold a part of each panel.
        let whole = self.tile.swap || self.tile.split > 1;
        let outputs = || {
            self.fusion
                .outputs
                .iter()
                .filter(|(_, kind)| *kind == Kind::Full)
        };
        let bytes = outputs().map(|(value, _)| element_bytes(element_type(value.r#type())));
        match bytes.max().filter(|_| !whole) {
            Some(bytes) => {
                let rows = self.tile.shape[0] / self.tile.warpgroups();
                let plain = outputs().all(|(value, _)| self.is_plain(*value));
                Panel::of(tile, bytes, rows, plain)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Whether a value is the product, in whatever type.
    fn is_plain(&self, value: Val<'c>) -> bool {
        value == self.gemm.result
            || defining(value)
                .filter(|op| name(*op) == "axe.cast" || is_reshape(*op))
                .and_then(source)
                .is_some_and(|from| self.is_plain(from))
    }
}

impl<'c> Tiles<'_, 'c> {
    /// The epilogue of a tile of sums, and its stores.
    pub(super) fn store(&self, evaluator: &mut Evaluator<'_, 'c>, sum: Val<'c>) -> PassResult<'c> {
        evaluator.known.clear();
        self.begin(evaluator, sum)?;
        for ((value, kind), to) in self.body.fusion.outputs.iter().zip(&self.outputs) {
            evaluator.store(*value, *kind, to)?;
        }
        Ok(())
    }

    /// Makes sums the product's value.
    fn begin(&self, evaluator: &mut Evaluator<'_, 'c>, sum: Val<'c>) -> PassResult<'c> {
        let result = self.body.gemm.result;
        let element = evaluator.code.builder.tensor_of(result)?.element;
        let value = convert(evaluator, sum, element)?;
        let key = (identity(result), Kind::Full);
        evaluator.known.insert(key, value);
        Ok(())
    }

    /// The same panel by panel; what the epilogue needs of whole rows is formed once.
    pub(super) fn store_panels<'a>(
        &'a self,
        evaluator: &'a mut Evaluator<'_, 'c>,
        sum: Val<'c>,
        panels: &'a [Panel],
    ) -> PassResult<'c> {
        let (code, gemm) = (evaluator.code, self.body.gemm);
        evaluator.known.clear();
        // The product is there: nothing below it is needed.
        let product = (identity(gemm.result), Kind::Full);
        evaluator.known.insert(product, sum);
        let outputs = || self.body.fusion.outputs.iter().zip(&self.outputs);
        for ((value, kind), to) in outputs() {
            match kind {
                Kind::Full => evaluator.form_rows(*value, *kind)?,
                _ => evaluator.store(*value, *kind, to)?,
            }
        }
        // Those of the largest elements first: the others' panels fit in their slots, and sums that are stored as they are
        // make room for what is formed of them.
        let mut full: Vec<_> = outputs()
            .filter(|((_, kind), _)| *kind == Kind::Full)
            .collect();
        full.sort_by_key(|((value, _), _)| -element_bytes(element_type(value.r#type())));
        // Of three warpgroups a thread has registers for one panel alone.
        let ahead = self.body.tile.consumers <= 2;
        let fetch = |panel: &'a Panel| {
            let column = code.add(evaluator.origin.column, code.index(panel.first)?)?;
            let mut inner = evaluator.at_part(&panel.registers, column);
            inner.known.insert(product, sum);
            for ((value, kind), _) in full.iter().filter(|_| ahead) {
                inner.fetch(*value, *kind)?;
            }
            Ok((panel, inner))
        };
        let mut panels = panels.iter();
        let mut next = panels.next().map(fetch).transpose()?;
        while let Some((panel, mut inner)) = next {
            // What the next panel needs is on its way while this one is formed and stored.
            next = panels.next().map(fetch).transpose()?;
            let r#type = panel.registers.r#type(code, Kind::Full, gemm.accumulator)?;
            let part = code.extract_slice(sum, &[0, panel.first], r#type)?;
            self.begin(&mut inner, part)?;
            for ((value, kind), to) in &full {
                inner.store(*value, *kind, to)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_panels_fit_in_what_a_warpgroup_stores_through() {
        assert_eq!([64, 128, 192, 512].map(row_bytes), [128, 64, 32, 32]);
    }

    #[test]
    fn the_last_panels_are_narrower() {
        assert_eq!(widths(192, 2, 64), [32; 6]);
        assert_eq!(widths(176, 2, 64), [32, 32, 32, 32, 32, 16]);
        assert_eq!(widths(240, 2, 128), [64, 64, 64, 32, 16]);
        // Eight columns of 16 bits are too narrow for a panel.
        assert_eq!(widths(72, 2, 64), [32, 32, 8]);
        assert_eq!(widths(8, 2, 64), [8]);
        assert_eq!(widths(96, 4, 128), [32; 3]);
        assert_eq!(widths(40, 8, 32), [4; 10]);
    }

    #[test]
    fn panels_are_all_of_the_tile() {
        for columns in (8..=256).step_by(8) {
            for bytes in [1, 2, 4, 8] {
                for widest in [128, 64, 32] {
                    let widths = widths(columns, bytes, widest);
                    assert_eq!(widths.iter().sum::<i64>(), columns);
                    assert!(widths.iter().all(|width| width * bytes <= widest.max(8)));
                }
            }
        }
    }
}
