//! Rows that lie apart from each other in memory: those of tables, which data names, and parts of longer ones, beside rows of other elements.

use crate::element::Element;
use crate::graph::{Graph, Made, Operand, Value, affine, type_of};
use Element::{BF16, F16, F32, I1, I8, I32, I64};

/// Rows of tables.
const TABLE: i64 = 13;

impl Graph<'_> {
    /// What is formed of one or two such tensors of `[batch, rows, columns]`, or of a product and one, and another: their norm, reductions, or the elements
    /// alone.
    pub fn apart(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        if !self.open && self.random.once_in(4) {
            return match self.random.once_in(2) {
                true => self.product_apart(element),
                false => self.table_formed(element),
            };
        }
        let outer = match self.open {
            true => self.rows,
            false => self.random.pick(&[1, 3]),
        };
        let columns = self.random.pick(&[
            8, 16, 24, 40, 48, 64, 96, 128, 256, 1000, 1008, 4112, 9000, 12_304, 40_016,
        ]);
        let rows = match columns {
            ..2000 => self.random.pick(&[2, 7, 21, 40]),
            _ => 2,
        };
        // The extent that is known at run time only is the batch's alone.
        let rows = rows + i64::from(self.open && rows == self.rows);
        let shape = [outer, rows, columns];
        let own = self.row_apart(element, &shape);
        let mut value = self.tamed_to(&own, F32);
        for _ in 0..self.random.range(0, 2) {
            let other = self.random.pick(&[element, F32, I8, I1]);
            let other = match self.random.once_in(2) && other.is_float() {
                true => self.row_apart(other, &shape),
                false => self.input_of(other, &shape, self.open),
            };
            value = self.of_both(&value, &other);
        }
        let made = match self.random.below(6) {
            0 => self.softmax_along(&value, 2),
            1 => self.norm_along(&value, 2),
            2 => self.reduce(&value, &[2], "arith.addf"),
            3 => self.reduce(&value, &[2], "arith.maximumf"),
            4 => self.reduce(&value, &[1], "arith.addf"),
            _ => value,
        };
        let to = self.random.pick(&[element, F32]);
        let mut results = vec![self.tamed_to(&made, to)];
        if self.random.once_in(4) {
            results.push(own);
        }
        results
    }

    /// A product and such rows behind it.
    fn product_apart(&mut self, element: Element) -> Vec<Value> {
        let [m, n, k] = [
            &[16, 33, 80][..],
            &[16, 24, 48, 64, 100, 128],
            &[16, 32, 100],
        ]
        .map(|of| self.random.pick(of));
        let x = self.input_of(element, &[m, k], false);
        let product = self.multiplied_by(&x, n);
        let other = self.random.pick(&[element, F32]);
        let rows = self.row_apart(other, &[m, n]);
        let sum = self.of_both(&product, &rows);
        vec![self.tamed_to(&sum, element)]
    }

    /// Rows of a table that is formed itself, beside the table's.
    fn table_formed(&mut self, element: Element) -> Vec<Value> {
        let shape = [7, 21, 40].map(|rows| [rows, self.random.pick(&[16, 48, 64, 256])]);
        let shape = self.random.pick(&shape);
        let x = self.input_of(element, &shape, false);
        let table = match self.random.below(3) {
            0 => self.softmax_along(&x, 1),
            1 => self.norm_along(&x, 1),
            _ => self.elementwise(&x),
        };
        if table.shape != shape || !table.element.is_float() {
            return vec![table];
        }
        let rows = self.rows_of_table(&table, &shape);
        let both = self.of_both(&table, &rows);
        let made = match self.random.below(3) {
            0 => self.softmax_along(&both, 1),
            1 => self.reduce(&both, &[0], "arith.addf"),
            _ => both,
        };
        vec![self.tamed_to(&made, element), table]
    }

    /// Rows of a table, or parts of longer rows.
    fn row_apart(&mut self, element: Element, shape: &[i64]) -> Value {
        let last = shape.len() - 1;
        if self.open || self.random.once_in(2) {
            return self.looked_up(element, shape);
        }
        let [before, behind] = [0; 2].map(|_| self.random.pick(&[0, 8, 16, 64, 5]));
        let mut whole = shape.to_vec();
        whole[last] += before + behind;
        // Some rows of each block, too.
        let rows = match self.random.once_in(2) {
            true => [0; 2].map(|_| self.random.range(0, 3)),
            false => [0; 2],
        };
        whole[last - 1] += rows[0] + rows[1];
        let x = self.input_of(element, &whole, false);
        let part = self.columns(&x, before, shape[last]);
        match rows {
            [0, 0] => part,
            [first, _] => self.part(&part, last - 1, (first, shape[last - 1])),
        }
    }

    /// Rows of a table, by numbers of which some are brought into its range, and negative ones may count from the last row on.
    fn looked_up(&mut self, element: Element, shape: &[i64]) -> Value {
        let (rank, kind) = (shape.len(), self.random.pick(&[I32, I64]));
        let numbers = self.input_of(kind, &shape[..rank - 1], self.open);
        // A table, or one for each matrix of a batch.
        let is_batched = rank == 3 && !self.open && self.random.once_in(3);
        let mut extents = vec![TABLE, shape[rank - 1]];
        if is_batched {
            extents.insert(0, shape[0]);
        }
        let table = self.input_of(element, &extents, false);
        self.rows_by((&numbers, &table), shape, is_batched)
    }

    /// The same of a table of a matrix's rows.
    fn rows_of_table(&mut self, table: &Value, shape: &[i64]) -> Value {
        let numbers = self.input_of(I64, &shape[..shape.len() - 1], false);
        self.rows_by((&numbers, table), shape, false)
    }

    fn rows_by(
        &mut self,
        (numbers, table): (&Value, &Value),
        shape: &[i64],
        is_batched: bool,
    ) -> Value {
        let (rank, kind, element) = (shape.len(), numbers.element, table.element);
        let rows = table.shape[table.shape.len() - 2];
        let made = Made {
            map: Vec::new(),
            shape: shape.to_vec(),
            open: self.open,
            element,
            start: None,
        };
        let (start, name) = (self.start(&made), self.fresh());
        let maps = [rank - 1, rank].map(|dims| {
            let dims: Vec<_> = (0..dims).map(Some).collect();
            affine(rank, &dims)
        });
        let number = match self.random.once_in(2) {
            true => "%wide",
            false => "%wrapped",
        };
        let r#type = type_of(shape, self.open, element);
        self.line(&format!(
            "{name} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs({start} : {type}) {{\n  \
             ^bb0(%at: {}, %out: {}):\n    %wide = arith.index_cast %at : {} to index\n    %first = arith.constant 0 : index\n    \
             %rows = arith.constant {rows} : index\n    %last = arith.constant {} : index\n    \
             %below = arith.cmpi slt, %wide, %first : index\n    %moved = arith.addi %wide, %rows : index\n    \
             %wrapped = arith.select %below, %moved, %wide : index\n    %above = arith.maxsi {number}, %first : index\n    \
             %row = arith.minsi %above, %last : index\n    %column = linalg.index {} : index\n    \
             %batch = linalg.index 0 : index\n    %own = tensor.extract {}[{}%row, %column] : {}\n    linalg.yield %own : {}\n  }} -> {type}",
            maps.join(", "),
            vec!["\"parallel\""; rank].join(", "),
            numbers.name,
            numbers.r#type(),
            kind.name(),
            element.name(),
            kind.name(),
            rows - 1,
            rank - 1,
            table.name,
            if is_batched { "%batch, " } else { "" },
            table.r#type(),
            element.name(),
        ));
        self.value(name, &made, table.bound, table.error)
    }

    /// A product or a sum of two tensors of one shape, in f32.
    fn of_both(&mut self, value: &Value, other: &Value) -> Value {
        let made = self.like(value, F32);
        let operands = [Operand::plain(value), Operand::plain(other)];
        let multiplies = self.random.once_in(2);
        self.generic(
            value.shape.len(),
            &operands,
            &made,
            |body, scalars, _, _| {
                let [x, y] = [0, 1].map(|at: usize| body.cast(&scalars[at], F32));
                let made = match multiplies {
                    true => body.mulf(&x, &y),
                    false => body.addf(&x, &y),
                };
                body.tamed(&made, 4.0)
            },
        )
    }

    /// A value of another type, scaled to a magnitude of 4 at most.
    fn tamed_to(&mut self, value: &Value, to: Element) -> Value {
        let made = self.like(value, to);
        let operands = [Operand::plain(value)];
        self.generic(
            value.shape.len(),
            &operands,
            &made,
            |body, scalars, _, _| {
                let x = body.tamed(&scalars[0], 4.0);
                body.cast(&x, to)
            },
        )
    }
}
