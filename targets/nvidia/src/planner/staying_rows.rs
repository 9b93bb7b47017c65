//! Rows that a cluster which stays goes through ([`super::row_turns`]): a ring of their parts in shared memory, beside what all of them have.

use super::row_turns::STAGES;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error, row_major};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::ValueLike;

/// The rows of a cluster, which it has one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns<'c> {
    /// Rows of all clusters, and how many clusters there are.
    pub rows: i64,
    pub clusters: i64,
    /// The number of this one: its first row.
    pub cluster: Val<'c>,
}

impl<'c> Turns<'c> {
    /// How often the cluster goes through a row.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn count(self, code: Code<'c>) -> PassResult<'c, Val<'c>> {
        let behind = code.sub(code.index(self.rows)?, self.cluster)?;
        code.ceil_div(behind, self.clusters)
    }

    /// The row of a turn.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn row(self, code: Code<'c>, turn: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.add(code.times(turn, self.clusters)?, self.cluster)
    }

    /// Begins to copy the row behind that of a turn, where there is one.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch_behind(
        self,
        code: Code<'c>,
        turn: Val<'c>,
        fetch: impl FnOnce(Code<'c>, Val<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let next = code.add(turn, code.index(1)?)?;
        let is_last = code.at_most(self.count(code)?, next)?;
        code.branch(is_last, |_| Ok(()), |inner| fetch(inner, next))?;
        code.commit()
    }
}

/// The rows of a cluster, as a CTA of it has its part of them.
#[derive(Debug)]
pub(super) struct Staying<'c> {
    turns: Turns<'c>,
    /// The CTA's first column, and how many it has.
    first: Val<'c>,
    columns: i64,
    /// What is read a row: the tensor, and where its parts go.
    rings: Vec<((usize, Kind), Argument<'c>, Val<'c>)>,
    /// What is read of shared memory in every turn, or from global memory.
    others: Vec<Input<'c>>,
}

/// What a kernel reads, by its value and kind.
pub(super) type Input<'c> = ((usize, Kind), Argument<'c>);

impl<'c> Staying<'c> {
    /// Makes room for rows, and begins to copy what all of them have, and the first one.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        turns: Turns<'c>,
        (first, columns): (Val<'c>, i64),
        inputs: impl IntoIterator<Item = Input<'c>>,
    ) -> PassResult<'c, Self> {
        let mut own = Self {
            turns,
            first,
            columns,
            rings: Vec::new(),
            others: Vec::new(),
        };
        for (key, argument) in inputs {
            match key.1 {
                Kind::Full => {
                    let ring = room(code, &[STAGES, columns], &argument)?;
                    own.rings.push((key, argument, ring));
                }
                Kind::Column => {
                    let column = own.fetch_column(code, &argument)?;
                    own.others.push((key, column));
                }
                _ => own.others.push((key, argument)),
            }
        }
        own.fetch(code, code.index(0)?)?;
        code.commit()?;
        Ok(own)
    }

    /// Waits for the row of a turn, and begins to copy that of the next one: all warps are done with the row that was in its place.
    /// What the kernel reads is given where it is then.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn next(&self, code: Code<'c>, turn: Val<'c>) -> PassResult<'c, Vec<Input<'c>>> {
        code.wait(0)?;
        let fetch = |inner, next| self.fetch(inner, next);
        self.turns.fetch_behind(code, turn, fetch)?;
        let mut inputs = self.others.clone();
        let at = [self.turns.row(code, turn)?, self.first];
        for (key, _, ring) in &self.rings {
            let own = self.stage(code, *ring, turn)?;
            let staged = Argument::staged(own, vec![1, self.columns], at);
            inputs.push((*key, staged));
        }
        for ((_, kind), argument) in &mut inputs {
            if *kind == Kind::Column {
                argument.staged_at = Some(at);
            }
        }
        Ok(inputs)
    }

    /// Copies the parts of a turn's row.
    fn fetch(&self, code: Code<'c>, turn: Val<'c>) -> PassResult<'c> {
        let at = [self.turns.row(code, turn)?, self.first];
        for (_, argument, ring) in &self.rings {
            let shape = [1, self.columns];
            let at = argument.place(code, at)?;
            let from = code.global_box(argument.memref, &argument.extents, &at, &shape)?;
            code.copy_async(from, self.stage(code, *ring, turn)?)?;
        }
        Ok(())
    }

    /// The place of a turn's row in a ring.
    fn stage(&self, code: Code<'c>, ring: Val<'c>, turn: Val<'c>) -> PassResult<'c, Val<'c>> {
        let at = [code.rem(turn, code.index(STAGES)?)?, code.index(0)?];
        let extents = [STAGES, self.columns];
        code.shared_box(ring, &extents, &at, &[1, self.columns])
    }

    /// Copies the part of what all rows have.
    fn fetch_column(
        &self,
        code: Code<'c>,
        argument: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let shape = [self.columns];
        let memref = room(code, &shape, argument)?;
        let from = code.global_box(argument.memref, &argument.extents, &[self.first], &shape)?;
        code.copy_async(from, memref)?;
        let at = [self.turns.cluster, self.first];
        Ok(Argument::staged(memref, shape.to_vec(), at))
    }
}

/// Shared memory of a shape, for elements of an argument.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn room<'c>(
    code: Code<'c>,
    shape: &[i64],
    argument: &Argument<'c>,
) -> PassResult<'c, Val<'c>> {
    let layout = Layout::strided(shape, &row_major(shape))
        .map_err(|error| layout_error(code.builder.location, error))?;
    let element = axe_dialect::element_type(argument.memref.r#type());
    code.alloc(shape, element, &layout)
}
