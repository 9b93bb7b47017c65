//! Rows whose length is no multiple of what `cp.async` moves at once: copied to shared memory from the last boundary of 16 bytes
//! in front of them. Threads then read them element by element, which shared memory serves at a word a bank.

use super::layouts::layout;
use crate::vocabulary::WARP;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::ir::{Int, Val};
use melior::ir::ValueLike;

/// How many elements are copied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    vector: i64,
    /// Threads of the CTA that copies them.
    threads: i64,
}

/// Elements in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied<'c> {
    memref: Val<'c>,
    length: i64,
    /// Those in front of the first that is wanted.
    pub(super) skipped: Val<'c>,
}

/// The last elements of a tensor, where they make up no vector: they are copied one by one, once the vectors are there.
pub(super) struct Tail<'c> {
    from: Val<'c>,
    extents: [i64; 2],
    first: i64,
    to: Val<'c>,
    /// Elements in vectors there.
    elements: i64,
    start: Val<'c>,
    window: Window,
}

impl Window {
    /// For rows of so many columns, by so many threads; none where each begins at a boundary of so many elements.
    pub(super) const fn of(columns: i64, vector: i64, threads: i64) -> Option<Self> {
        match columns % vector {
            0 => None,
            _ => Some(Self { vector, threads }),
        }
    }

    /// Begins to copy so many elements of an argument from `first` on, in row-major order, and a vector more: what is there then,
    /// and what is left to copy.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch<'c>(
        self,
        code: Code<'c>,
        argument: &Argument<'c>,
        (first, elements): (Val<'c>, i64),
    ) -> PassResult<'c, (Copied<'c>, Option<Tail<'c>>)> {
        let failed = |error| layout_error(code.builder.location, error);
        let Self { vector, .. } = self;
        let total: i64 = argument.extents.iter().product();
        let flat = |extent: i64| {
            let sizes = [Int::Known(1), Int::Known(extent)];
            let strides = [Int::Known(total), Int::Known(1)];
            code.reinterpret(argument.memref, &sizes, &strides, &[1, 1])
        };
        let start = code.times(code.div(first, code.index(vector)?)?, vector)?;
        let length = elements + vector;
        let own = Layout::strided(&[1, length], &[length, 1]).map_err(failed)?;
        let element = axe_dialect::element_type(argument.memref.r#type());
        let memref = code.alloc(&[1, length], element, &own)?;
        let zero = code.index(0)?;
        let part = |at: i64, extent: i64| {
            code.shared_box(memref, &[1, length], &[zero, code.index(at)?], &[1, extent])
        };
        let whole = [1, total - total % vector];
        let vectors = code.global_box(flat(whole[1])?, &whole, &[zero, start], &[1, elements])?;
        code.copy_async(vectors, part(0, elements)?)?;
        // What a first element that is not at a boundary leaves to copy: no vector a thread.
        let at = [zero, code.add(start, code.index(elements)?)?];
        let rest = code.global_box(flat(total)?, &[1, total], &at, &[1, vector])?;
        code.copy_async(rest, part(elements, vector)?)?;
        let tail = match total % vector {
            0 => None,
            _ => Some(Tail {
                from: flat(total)?,
                extents: [1, total],
                first: whole[1],
                to: memref,
                elements,
                start,
                window: self,
            }),
        };
        let copied = Copied {
            memref,
            length,
            skipped: code.rem(first, code.index(vector)?)?,
        };
        Ok((copied, tail))
    }
}

impl<'c> Copied<'c> {
    /// So many elements, `skipped` behind the first of them.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn part(
        &self,
        code: Code<'c>,
        skipped: Val<'c>,
        elements: i64,
    ) -> PassResult<'c, Val<'c>> {
        let at = [code.index(0)?, skipped];
        code.shared_box(self.memref, &[1, self.length], &at, &[1, elements])
    }

    /// The same as a vector.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn line(
        &self,
        code: Code<'c>,
        skipped: Val<'c>,
        elements: i64,
    ) -> PassResult<'c, Val<'c>> {
        let layout = Layout::strided(&[elements], &[1])
            .map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(self.memref.r#type());
        let r#type = code.memref(&[elements], element, &layout, Some("shared"))?;
        code.slice(self.memref, &[code.index(0)?, skipped], r#type)
    }
}

impl<'c> Tail<'c> {
    /// Copies the elements, where this CTA has them. The copies of vectors have to be complete: they write zeros there.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn copy(&self, code: Code<'c>) -> PassResult<'c> {
        let failed = |error| layout_error(code.builder.location, error);
        let Window { vector, threads } = self.window;
        let last = code.add(self.start, code.index(self.elements - vector)?)?;
        let lanes = layout(
            &[(vector, 1, "lane")],
            &[(WARP / vector, vector, "lane"), (threads / WARP, 1, "warp")],
        )
        .map_err(failed)?;
        let shape = [1, vector];
        let has = code.at_most(code.index(self.first)?, last)?;
        let copied = |code: Code<'c>| {
            let (zero, first) = (code.index(0)?, code.index(self.first)?);
            let element = axe_dialect::element_type(self.to.r#type());
            let from = code.global_box(self.from, &self.extents, &[zero, first], &shape)?;
            let value = code.load(from, code.fragment(&shape, element, &lanes)?)?;
            let at = [zero, code.sub(first, self.start)?];
            let to = code.shared_box(self.to, &[1, self.elements + vector], &at, &shape)?;
            code.store(value, to)
        };
        // A CTA without columns begins behind the tensor's end.
        let is_before = code.at_most(self.start, code.index(self.first)?)?;
        let own = |code: Code<'c>| code.branch(has, copied, |_| Ok(()));
        code.branch(is_before, own, |_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::ACCESS_BYTES;

    #[test]
    fn windows_are_of_rows_that_begin_anywhere() {
        let of = |columns, bytes| {
            let window = Window::of(columns, ACCESS_BYTES / bytes, 256);
            window.map(|window| window.vector)
        };
        assert_eq!(of(50_257, 2), Some(8));
        assert_eq!(of(50_260, 4), None);
        assert_eq!(of(50_260, 2), Some(8));
        assert_eq!(of(50_257, 8), Some(2));
        assert_eq!(of(50_264, 2), None);
    }
}
