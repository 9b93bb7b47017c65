//! Rows of the left operand that the tensor engine transposes, where columns of the right one stay: the next rows are
//! transposed between the products of these, bank by bank, as transposes leave PSUM at half the rate at which they are made.

use super::super::Part;
use super::kernel::{At, Kernel};
use super::sums::{Operands, pieces};
use crate::facts::memory::{MOVING_COLUMNS, PARTITIONS};
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Space};
use axe_package::DType;

/// A tile of rows of the left operand.
struct Rows {
    /// Which one of those that stream by.
    index: Expr,
    size: i64,
}

impl Rows {
    /// In the tile in which two of them take turns.
    fn turn(&self) -> Expr {
        match self.index.constant() {
            Some(index) => (index % 2).into(),
            None => Expr::Mod(Box::new(self.index.clone()), 2),
        }
    }
}

impl Kernel<'_> {
    /// All rows of a part, for columns of the right operand that are there.
    pub fn stream(&self, b: &mut Builder, at: &At, rhs: &Tile, (rows, columns): (&Part, &Part)) {
        let operands = Operands {
            lhs: self.lhs.tile(b, self.sizes[1], 2 * PARTITIONS, 1),
            rhs: rhs.clone(),
            from: 0.into(),
        };
        let (whole, tail) = (rows.size / PARTITIONS, rows.size % PARTITIONS);
        let count = whole + i64::from(tail > 0);
        let of = |index: Expr, size| Rows { index, size };
        let numbered = |index: i64| match index < whole {
            true => of(index.into(), PARTITIONS),
            false => of(index.into(), tail),
        };
        if count == 0 {
            return;
        }
        let first = numbered(0);
        let groups = (0, self.lhs.turned_groups(self.sizes[1]));
        let loaded = self.load_rows(b, at, rows, &first);
        self.turn_rows(b, &operands.lhs, &loaded, &first, groups);
        let place = (rows, columns);
        let alike = |b: &mut Builder, index: Expr| {
            let next = of(index.clone().plus(1), PARTITIONS);
            self.row(b, at, &operands, place, &of(index, PARTITIONS), Some(&next));
        };
        match whole - 1 {
            ..=0 => {}
            1 => alike(b, 0.into()),
            last => b.repeat("m", 0, last, 1, alike),
        }
        for index in (whole - 1).max(0)..count {
            let next = (index + 1 < count).then(|| numbered(index + 1));
            self.row(b, at, &operands, place, &numbered(index), next.as_ref());
        }
    }

    /// The products of a tile of rows, and the transposes of the next one.
    fn row(
        &self,
        b: &mut Builder,
        at: &At,
        operands: &Operands,
        (rows, columns): (&Part, &Part),
        this: &Rows,
        next: Option<&Rows>,
    ) {
        let k = self.sizes[1];
        let shape = [this.size, columns.size];
        let banks = (columns.size + MOVING_COLUMNS - 1) / MOVING_COLUMNS;
        let copies = (self.banks / banks).clamp(1, 4);
        let loaded = next.map(|next| (next, self.load_rows(b, at, rows, next)));
        let psum = b.tile("psum", Space::Psum, &shape, DType::F32, copies);
        let tile = Part {
            at: this.index.clone().times(PARTITIONS),
            index: this.index.clone(),
            size: this.size,
        };
        let in_turn = Part {
            at: this.turn().times(PARTITIONS),
            index: this.turn(),
            size: this.size,
        };
        let leaving = self.begin_finish(b, at, &tile, (rows, columns));
        let groups = self.lhs.turned_groups(k);
        for (number, range) in (0..).zip(pieces(columns.size, MOVING_COLUMNS)) {
            self.sum_piece(b, &psum, operands, k, (&in_turn, range));
            let cut = |number: i64| groups * number / banks;
            if let Some((next, loaded)) = &loaded {
                let some = (cut(number), cut(number + 1));
                self.turn_rows(b, &operands.lhs, loaded, next, some);
            }
            let parts = (Some(&psum), None);
            self.finish_piece(b, at, &leaving, parts, (&tile, columns), range.0);
        }
        self.end_finish(b, &leaving, (&tile, columns));
    }

    /// Loads rows as they lie.
    fn load_rows(&self, b: &mut Builder, at: &At, rows: &Part, own: &Rows) -> Tile {
        let from = rows.at.clone().plus(own.index.clone().times(PARTITIONS));
        self.lhs
            .rows(b, &at.batch, (&0.into(), self.sizes[1]), (from, own.size))
    }

    /// Transposes some groups of chunks of loaded rows.
    fn turn_rows(&self, b: &mut Builder, to: &Tile, loaded: &Tile, own: &Rows, groups: (i64, i64)) {
        let part = Part {
            at: 0.into(),
            index: own.turn(),
            size: own.size,
        };
        self.lhs
            .turn_groups(b, self.chip, (to, loaded), (self.sizes[1], groups), &part);
    }
}
