//! Broadcasts along dimensions that lie between others, in the space of a product: a channel's number at all places of all images, a gate of a batch at all
//! of its rows. Such a tensor is a table, of which an epilogue loads what its tile needs.

use super::operators::dims_of;
use super::space::product;
use crate::ir::{Op, TensorType, Val};

/// How rows and columns repeat a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// All columns of a row have one element, which several rows share.
    Element,
    /// So many neighbouring rows have the same element in each column.
    Row { rows: i64 },
}

impl Between {
    /// How a broadcast to a space with so many columns repeats its source; `None` where rows and columns do not say it, or an extent is not known.
    pub(super) fn of(op: Op<'_>, value: Val<'_>, columns: i64) -> Option<Self> {
        let shape = TensorType::of_value(value)?.shape;
        Self::along(&shape, &dims_of(op)?, columns)
    }

    fn along(shape: &[i64], dims: &[i64], columns: i64) -> Option<Self> {
        let all: Vec<_> = (0i64..)
            .zip(shape)
            .filter(|(_, extent)| **extent != 1)
            .map(|(dim, extent)| (*extent, dims.contains(&dim)))
            .collect();
        product(shape)?;
        // Columns are the last dimensions, all of them kept or all of them added.
        let mut own = 1i64;
        let at = all.iter().rposition(|(extent, _)| {
            own = own.saturating_mul(*extent);
            own >= columns
        })?;
        let (rows, last) = all.split_at_checked(at)?;
        let (_, is_added) = *last.first()?;
        if own != columns || last.iter().any(|(_, added)| *added != is_added) {
            return None;
        }
        let is_kept = |(_, added): &(i64, bool)| !*added;
        if is_added {
            return rows.iter().any(is_kept).then_some(Self::Element);
        }
        let run = rows.iter().rposition(is_kept)?;
        let run = rows.get(run + 1..)?.iter().map(|(extent, _)| *extent);
        let run: i64 = run.product();
        let outer = rows.iter().filter(|own| is_kept(own));
        let outer: i64 = outer.map(|(extent, _)| *extent).product();
        // In front of the run all are kept: a row of the table follows another.
        let whole: i64 = rows.iter().map(|(extent, _)| *extent).product();
        (run > 1 && outer * run == whole).then_some(Self::Row { rows: run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::DYNAMIC;

    #[test]
    fn channels_and_gates_lie_between() {
        let along = |shape: &[i64], dims: &[i64], columns| Between::along(shape, dims, columns);
        let row = |rows| Some(Between::Row { rows });
        assert_eq!(
            along(&[32, 512, 28, 28], &[0, 2, 3], 784),
            Some(Between::Element)
        );
        assert_eq!(
            along(&[32, 512, 28, 28], &[0, 2, 3], 28),
            Some(Between::Element)
        );
        assert_eq!(along(&[16, 256, 1152], &[1], 1152), row(256));
        assert_eq!(along(&[16, 1, 4, 64, 8, 144], &[2, 3], 1152), row(256));
        assert_eq!(along(&[16, 256, 1152], &[0], 1152), None);
        assert_eq!(along(&[16, 256, 1152], &[0, 1], 1152), None);
        assert_eq!(
            along(&[16, 256, 1152], &[1, 2], 1152),
            Some(Between::Element)
        );
        assert_eq!(along(&[16, 256, 1152], &[1], 256), None);
        assert_eq!(along(&[DYNAMIC, 256, 1152], &[1], 1152), None);
    }
}
