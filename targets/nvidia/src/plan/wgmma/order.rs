//! The order of k. A product sums over k, so that its instructions may go through k in any order in which A and B agree.
//!
//! B in shared memory names it: the k of B's layout, by their places in memory. A in registers then holds the k of each step where the
//! instruction's fragment has it. Of 8-bit floats the fragment of accumulators has two columns of a thread beside each other, and that of A
//! four (PTX ISA 9.7.15.5.1, figures of D and of A): with B's k in the order 0, 1, 8, 9, 2, 3, ... of each 16, accumulators are A's
//! fragment as they lie.

use super::{Decline, Matrix, Operand, Product};
use axe_layout::{Axis, Layout};

/// The k of each place in memory, where that is not k itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order(Option<Vec<i64>>);

impl Order {
    /// The order of a product's k: that of B's places, where A is in registers.
    pub(super) fn of(product: &Product<'_>) -> Result<Self, Decline> {
        match product.a {
            Operand::Registers(_) => Self::in_memory(&product.b),
            Operand::Shared(_) => Ok(Self::default()),
        }
    }

    fn in_memory(matrix: &Matrix<'_>) -> Result<Self, Decline> {
        let [first, second] = matrix.shape;
        let (count, step) = match matrix.k_first {
            true => (first, second),
            false => (second, 1),
        };
        let place = |k: i64| {
            let origin = matrix.layout.origin(k * step);
            origin
                .map(|origin| (origin.get(Axis::M), k))
                .map_err(|error| Decline::new(format!("B: {error}")))
        };
        let mut places = (0..count).map(place).collect::<Result<Vec<_>, _>>()?;
        places.sort_unstable();
        let order: Vec<_> = places.into_iter().map(|(_, k)| k).collect();
        let is_plain = (0..).zip(&order).all(|(at, k)| at == *k);
        Ok(Self((!is_plain).then_some(order)))
    }

    /// The k that the instructions have at a place.
    pub(super) fn at(&self, place: i64) -> i64 {
        let known = self.0.as_ref();
        let own = known.and_then(|order| order.get(usize::try_from(place).ok()?));
        own.copied().unwrap_or(place)
    }

    /// B's layout `[n, k]` with k by their places.
    pub(super) fn sorted(&self, layout: &Layout, shape: [i64; 2]) -> Result<Layout, Decline> {
        if self.0.is_none() {
            return Ok(layout.clone());
        }
        let fault = |error: axe_layout::Error| Decline::new(format!("B: {error}"));
        let grouped = layout.group(&shape).map_err(fault)?;
        let mut blocks = grouped.blocks().map(<[_]>::to_vec);
        let (Some(rows), Some(mut columns)) = (blocks.next(), blocks.next()) else {
            return Err(Decline::new("B: expected a matrix"));
        };
        columns.sort_by_key(|iter| std::cmp::Reverse(iter.stride));
        Layout::new(
            rows.into_iter().chain(columns),
            layout.replica().to_vec(),
            layout.offset().clone(),
            layout.swizzle(),
        )
        .map_err(fault)
    }
}
