//! Raster orders of `axe.for_tiles`, as nests of loops.

use super::lowering::failed;
use axe_dialect::RasterOrder;
use axe_dialect::ops::ForTilesOp;
use axe_passes::PassResult;
use axe_passes::ir::Op;

/// The loops of a raster order, one nest after another.
pub(super) fn orders<'c>(
    op: Op<'c>,
    tiles: &ForTilesOp<'c>,
    [rows, columns]: [i64; 2],
) -> PassResult<'c, Vec<Order>> {
    let group = tiles.swizzle.clamp(1, rows);
    let plain = |levels: [i64; 2], row, column| {
        vec![Order {
            levels: levels.to_vec(),
            row: Place::of(row),
            column: Place::of(column),
        }]
    };
    Ok(match tiles.raster {
        RasterOrder::Rows => plain([rows, columns], 0, 1),
        RasterOrder::Columns => plain([columns, rows], 1, 0),
        RasterOrder::Groups => grouped([rows, columns], group, false),
        RasterOrder::Snake => grouped([rows, columns], group, true),
        RasterOrder::Hilbert => {
            return Err(failed(
                op,
                "Hilbert's curve is no nest of loops: expected rows, columns, groups or snake",
            ));
        }
    })
}

/// A coordinate of a tile by the levels of a nest.
#[derive(Debug)]
pub(super) struct Place {
    pub constant: i64,
    pub terms: Vec<(usize, i64)>,
}

impl Place {
    fn of(level: usize) -> Self {
        Self {
            constant: 0,
            terms: vec![(level, 1)],
        }
    }
}

/// A nest that visits tiles.
#[derive(Debug)]
pub(super) struct Order {
    pub levels: Vec<i64>,
    pub row: Place,
    pub column: Place,
}

/// Groups of rows of tiles, down the columns of each; with `snake`, every other one from right to left.
fn grouped([rows, columns]: [i64; 2], group: i64, snake: bool) -> Vec<Order> {
    let (whole, tail) = (rows / group, rows % group);
    let back = |level| Place {
        constant: columns - 1,
        terms: vec![(level, -1)],
    };
    // Groups `first`, `first + every`, ...; so many of them.
    let of = |first: i64, column: Place, size: i64| Order {
        levels: vec![columns, size],
        row: Place {
            constant: first * group,
            terms: vec![(1, 1)],
        },
        column,
    };
    let mut orders = Vec::new();
    if snake {
        let direction = |number: i64| {
            if number % 2 == 0 {
                Place::of(0)
            } else {
                back(0)
            }
        };
        orders.extend((0..whole).map(|number| of(number, direction(number), group)));
        if tail > 0 {
            orders.push(of(whole, direction(whole), tail));
        }
        return orders;
    }
    orders.push(Order {
        levels: vec![whole, columns, group],
        row: Place {
            constant: 0,
            terms: vec![(0, group), (2, 1)],
        },
        column: Place::of(1),
    });
    if tail > 0 {
        orders.push(of(whole, Place::of(0), tail));
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(order: &Order) -> Vec<(i64, i64)> {
        let total: i64 = order.levels.iter().product();
        let place = |place: &Place, at: &[i64]| {
            let terms = place.terms.iter().map(|(level, by)| at[*level] * by);
            place.constant + terms.sum::<i64>()
        };
        (0..total)
            .map(|number| {
                let mut rest = number;
                let mut at = vec![0; order.levels.len()];
                for (digit, count) in at.iter_mut().zip(&order.levels).rev() {
                    *digit = rest % count;
                    rest /= count;
                }
                (place(&order.row, &at), place(&order.column, &at))
            })
            .collect()
    }

    /// The numbering of tiles of `axe.for_tiles`.
    fn expected([rows, columns]: [i64; 2], group: i64, snake: bool) -> Vec<(i64, i64)> {
        let mut tiles = Vec::new();
        for first in (0..rows).step_by(group as usize) {
            let back = snake && first / group % 2 == 1;
            for step in 0..columns {
                let column = if back { columns - 1 - step } else { step };
                tiles.extend((first..rows.min(first + group)).map(|row| (row, column)));
            }
        }
        tiles
    }

    #[test]
    fn groups_are_visited_in_their_order() {
        for (counts, group) in [([8, 3], 4), ([7, 5], 3), ([2, 4], 2), ([5, 1], 1)] {
            for snake in [false, true] {
                let orders = grouped(counts, group, snake);
                let visited: Vec<_> = orders.iter().flat_map(visit).collect();
                assert_eq!(
                    visited,
                    expected(counts, group, snake),
                    "{counts:?} {group} {snake}"
                );
            }
        }
    }
}
