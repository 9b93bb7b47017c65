//! The descriptor of an operand in shared memory, derived from its layout.

use super::order::Order;
use super::{Decline, Matrix, Shared, Term};
use crate::facts::wgmma::{
    ADDRESS_BYTES, CORE, K_BYTES, Major, Strides, Swizzle, Types, UNIT_BYTES,
};
use axe_layout::{Axis, Iter, Layout};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// An operand as rows of M or N by columns of K, in elements before the swizzle.
pub(super) struct Tile<'a> {
    name: &'a str,
    layout: Layout,
    shape: [i64; 2],
    swizzle: Swizzle,
    types: Types,
}

/// What one instruction reads: the descriptor's strides (`None`: nothing depends on it) and the start, in bytes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    major: Major,
    leading: Option<i64>,
    stride: Option<i64>,
    start: i64,
}

impl<'a> Tile<'a> {
    pub(super) fn new(name: &'a str, matrix: &Matrix<'_>, types: Types) -> Result<Self, Decline> {
        let fault = |reason: String| Decline::new(format!("{name}: {reason}"));
        let layout = match matrix.k_first {
            true => matrix.layout.permute_dims(&matrix.shape, &[1, 0]),
            false => Ok(matrix.layout.clone()),
        };
        let layout = layout.map_err(|error| fault(error.to_string()))?;
        let shape = match (matrix.k_first, matrix.shape) {
            (false, [mn, k]) | (true, [k, mn]) => [mn, k],
        };
        if layout.axes().iter().any(|&axis| axis != Axis::M) {
            return Err(fault(format!(
                "expected a layout on axis m alone, got {layout}"
            )));
        }
        if layout.replica().iter().any(|iter| iter.extent > 1) {
            return Err(fault("expected memory without replicas".to_string()));
        }
        let swizzle = swizzle(matrix.layout, types.a.bytes()).map_err(fault)?;
        Ok(Self {
            name,
            layout: layout.with_swizzle(None),
            shape,
            swizzle,
            types,
        })
    }

    /// The same with k in the order in which instructions go through it.
    pub(super) fn in_order(self, order: &Order) -> Result<Self, Decline> {
        let layout = order.sorted(&self.layout, self.shape)?;
        Ok(Self { layout, ..self })
    }

    /// How `rows` rows are read, given for each instruction the first row of each warpgroup and the step of k; and
    /// each instruction's offset.
    pub(super) fn read(
        &self,
        reads: &[Vec<(i64, i64)>],
        rows: i64,
    ) -> Result<(Shared, Vec<i64>), Decline> {
        let mut known: HashMap<(i64, i64), Piece> = HashMap::new();
        for &(row, step) in reads.iter().flatten() {
            if let Entry::Vacant(unknown) = known.entry((row, step)) {
                unknown.insert(self.piece(row, rows, step * self.types.k())?);
            }
        }
        let strides = self.strides(known.values())?;
        let start = |at: &(i64, i64)| known.get(at).map_or(0, |piece| piece.start);
        let mut displacements: Option<Vec<i64>> = None;
        let mut offsets = Vec::with_capacity(reads.len());
        for read in reads {
            let first = read.first().map_or(0, start);
            let of_read: Vec<_> = read.iter().map(|at| start(at) - first).collect();
            if displacements.get_or_insert_with(|| of_read.clone()) != &of_read {
                return Err(self.decline(
                    "the distance between warpgroups changes from instruction to instruction",
                ));
            }
            offsets.push(first);
        }
        let displacements = displacements.unwrap_or_default();
        let terms = terms(&displacements).ok_or_else(|| {
            self.decline(&format!(
                "the warpgroups' places are no sum of digits: {displacements:?} bytes"
            ))
        })?;
        Ok((Shared { strides, terms }, offsets))
    }

    fn decline(&self, reason: &str) -> Decline {
        Decline::new(format!("{}: {reason}", self.name))
    }

    /// The strides of all pieces, which must agree where anything depends on them.
    fn strides<'p>(&self, pieces: impl Iterator<Item = &'p Piece>) -> Result<Strides, Decline> {
        let mut agreed: Option<Piece> = None;
        for piece in pieces {
            let sum = agreed.get_or_insert(*piece);
            let differ = |a: Option<i64>, b: Option<i64>| a.zip(b).is_some_and(|(a, b)| a != b);
            if sum.major != piece.major
                || differ(sum.leading, piece.leading)
                || differ(sum.stride, piece.stride)
            {
                return Err(
                    self.decline("instructions would need descriptors with different strides")
                );
            }
            sum.leading = sum.leading.or(piece.leading);
            sum.stride = sum.stride.or(piece.stride);
        }
        let agreed = agreed.ok_or_else(|| self.decline("there is nothing to read"))?;
        Ok(Strides {
            major: agreed.major,
            swizzle: self.swizzle,
            leading: agreed.leading.unwrap_or(UNIT_BYTES),
            stride: agreed.stride.unwrap_or(UNIT_BYTES),
        })
    }

    /// What an instruction reads that takes `rows` rows from `row` on, and one step of k from `k` on.
    fn piece(&self, row: i64, rows: i64, k: i64) -> Result<Piece, Decline> {
        let region = [row..row + rows, k..k + self.types.k()];
        let slice = self
            .layout
            .slice(&self.shape, &region)
            .map_err(|error| self.decline(&error.to_string()))?;
        let by_k = match self.by_k(&slice, rows) {
            Ok(piece) => return Ok(piece),
            Err(reason) => reason,
        };
        if !self.types.may_transpose() {
            return Err(self.decline(&format!(
                "{} allows rows of k alone: {by_k}",
                self.types.a.ptx()
            )));
        }
        self.by_rows(&slice, rows).map_err(|by_rows| {
            self.decline(&format!("with rows of k: {by_k}; with columns: {by_rows}"))
        })
    }

    /// K-major: `(rows/8, 8)` by `(units, unit)`.
    fn by_k(&self, slice: &Layout, rows: i64) -> Result<Piece, String> {
        let unit = UNIT_BYTES / self.types.a.bytes();
        let run = match self.swizzle {
            Swizzle::None => unit,
            _ => self.types.k(),
        };
        let units = self.types.k() / run;
        let [groups, row, across, element] = self.blocks(slice, [rows / CORE, CORE, units, run])?;
        expect("elements along k", element, self.types.a.bytes())?;
        expect("rows", row, self.swizzle.span())?;
        let start = self.start(slice, K_BYTES)?;
        Ok(Piece {
            major: Major::K,
            leading: field("core matrices along k", across)?,
            stride: field("groups of 8 rows", groups)?,
            start,
        })
    }

    /// MN-major: `(spans, span)` by `(k/8, 8)`.
    fn by_rows(&self, slice: &Layout, rows: i64) -> Result<Piece, String> {
        let bytes = self.types.a.bytes();
        let span = (self.swizzle.span() / bytes).min(rows);
        if rows % span != 0 {
            return Err(format!("{rows} of them are not whole spans of {span}"));
        }
        let shape = [rows / span, span, self.types.k() / CORE, CORE];
        let [spans, element, groups, line] = self.blocks(slice, shape)?;
        expect("elements", element, bytes)?;
        expect("lines of k", line, self.swizzle.span())?;
        let (spans, groups) = (
            field("spans", spans)?,
            field("groups of 8 lines of k", groups)?,
        );
        let (leading, stride) = match self.swizzle {
            Swizzle::None => (groups, spans),
            _ => (spans, groups),
        };
        Ok(Piece {
            major: Major::Mn,
            leading,
            stride,
            start: self.start(slice, span * bytes)?,
        })
    }

    /// The strides in bytes of a slice's blocks; `None` for a block of one element.
    fn blocks(&self, slice: &Layout, shape: [i64; 4]) -> Result<[Option<i64>; 4], String> {
        let grouped = slice.group(&shape).map_err(|error| error.to_string())?;
        let mut strides = [None; 4];
        for (stride, block) in strides.iter_mut().zip(grouped.blocks()) {
            let iters: Vec<&Iter> = block.iter().filter(|iter| iter.extent > 1).collect();
            *stride = match iters.as_slice() {
                [] => None,
                [iter] => Some(
                    iter.stride
                        .checked_mul(self.types.a.bytes())
                        .ok_or("a stride overflows")?,
                ),
                _ => {
                    return Err(format!(
                        "{slice} is not evenly spaced in blocks of {shape:?}"
                    ));
                }
            };
        }
        Ok(strides)
    }

    /// The start address: a multiple of 16 bytes, in the first row of the swizzle's pattern, whose row holds the
    /// `run` bytes that are read (elsewhere the pattern would not start with the operand, and the
    /// descriptor's base offset would count).
    fn start(&self, slice: &Layout, run: i64) -> Result<i64, String> {
        let bytes = self.types.a.bytes();
        let start = slice
            .offset()
            .get(Axis::M)
            .checked_mul(bytes)
            .ok_or("an offset overflows")?;
        if !(0..ADDRESS_BYTES).contains(&start) || start % UNIT_BYTES != 0 {
            return Err(format!(
                "expected a start at a multiple of 16 below {ADDRESS_BYTES} bytes, got {start}"
            ));
        }
        let within = start % self.swizzle.alignment();
        if self.swizzle != Swizzle::None && within + run > self.swizzle.span() {
            return Err(format!(
                "expected {run} bytes in the first row of {} of the swizzle's pattern, got byte {within} of it",
                self.swizzle.span()
            ));
        }
        Ok(start)
    }
}

fn expect(what: &str, got: Option<i64>, expected: i64) -> Result<(), String> {
    match got {
        Some(got) if got != expected => {
            Err(format!("expected {what} {expected} bytes apart, got {got}"))
        }
        _ => Ok(()),
    }
}

/// An offset of the descriptor: 14 bits of 16 bytes.
fn field(what: &str, bytes: Option<i64>) -> Result<Option<i64>, String> {
    match bytes {
        Some(bytes) if !(0..ADDRESS_BYTES).contains(&bytes) || bytes % UNIT_BYTES != 0 => {
            Err(format!(
                "expected {what} a multiple of 16 bytes apart, below {ADDRESS_BYTES}, got {bytes}"
            ))
        }
        other => Ok(other),
    }
}

/// The hardware's swizzle that a layout has.
fn swizzle(layout: &Layout, bytes: i64) -> Result<Swizzle, String> {
    let Some(found) = layout.swizzle().filter(|swizzle| !swizzle.is_identity()) else {
        return Ok(Swizzle::None);
    };
    for swizzle in Swizzle::ALL {
        if swizzle.xor(bytes).map_err(|error| error.to_string())? == Some(found) {
            return Ok(swizzle);
        }
    }
    let base = (UNIT_BYTES / bytes).trailing_zeros();
    Err(format!(
        "expected no swizzle or Sw<1 to 3, {base}, 3> for elements of {bytes} bytes, got {layout}"
    ))
}

/// The displacements of the warpgroups as a sum of digits of their number: one, or two.
fn terms(displacements: &[i64]) -> Option<Vec<Term>> {
    let count = i64::try_from(displacements.len()).ok()?;
    let at = |index: i64| displacements.get(usize::try_from(index).ok()?).copied();
    (1..=count)
        .filter(|inner| count % inner == 0)
        .find_map(|inner| {
            let outer = count / inner;
            let digit = |divisor: i64, modulus: i64| {
                Some(Term {
                    divisor,
                    modulus,
                    bytes: if modulus > 1 { at(divisor)? } else { 0 },
                })
            };
            let terms = vec![digit(1, inner)?, digit(inner, outer)?];
            let terms: Vec<_> = terms.into_iter().filter(|term| term.bytes != 0).collect();
            let value = |index: i64| -> i64 {
                terms
                    .iter()
                    .map(|term| index / term.divisor % term.modulus * term.bytes)
                    .sum()
            };
            (0..count)
                .all(|index| at(index) == Some(value(index)))
                .then_some(terms)
        })
}
