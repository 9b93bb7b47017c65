//! Which keys a row can see, as far as indices say it: a mask that compares rows with keys hides whole blocks of keys, which are
//! skipped, and leaves others whole, in which nothing has to be compared.

mod affine;
mod labels;

pub use affine::{Affine, affine, not_negative};
pub use labels::Segments;

use super::term::{Id, Term, Terms};
use crate::fuse::symbolic::Symbols;
use affine::is_edge;
use std::collections::HashMap;

/// A length times a factor: an integer that is one value a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Length {
    /// The number of the tensor of [`Term::Length`].
    pub number: usize,
    /// What it is multiplied by: 1 or -1.
    pub factor: i64,
}

/// `row * per_row + start`, and a length where there is one: where the keys that a row sees begin, or where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// -1, 0 or 1.
    pub per_row: i64,
    /// The edge of row 0.
    pub start: i64,
    /// What is added to it when the kernel runs.
    pub length: Option<Length>,
}

impl Edge {
    /// An edge that indices alone say.
    #[must_use]
    pub const fn of(per_row: i64, start: i64) -> Self {
        Self {
            per_row,
            start,
            length: None,
        }
    }

    /// The least and the greatest edge of `count` rows from `first` on, without the length.
    #[must_use]
    pub fn over(self, first: i64, count: i64) -> [i64; 2] {
        let of = |row: i64| self.per_row.saturating_mul(row).saturating_add(self.start);
        let (a, b) = (of(first), of(first.saturating_add(count - 1)));
        [a.min(b), a.max(b)]
    }
}

/// The keys that rows see, as far as indices, lengths and labels say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Keys begin here or later, all of them.
    pub from: Vec<Edge>,
    /// Keys end here or earlier, all of them.
    pub to: Vec<Edge>,
    /// Rows for which one of these is negative see none.
    pub rows: Vec<Edge>,
    /// Rows see the keys that have the same label, by each of these.
    pub segments: Vec<Segments>,
    /// Whether a row that sees no key by these has the same weight for each of all keys: a low number hides them, and not minus infinity.
    pub all_where_none: bool,
}

impl Visible {
    /// Whether indices, lengths and labels hide nothing.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.edges().next().is_none() && self.segments.is_empty()
    }

    /// Whether something of what is seen is known when the kernel runs.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.has_lengths() || !self.segments.is_empty()
    }

    /// Whether keys that rows see are a band along the diagonal, whatever the data.
    #[must_use]
    pub fn is_band(&self) -> bool {
        let follows = |edge: &Edge| edge.per_row == 1 && edge.length.is_none();
        self.rows.is_empty() && self.segments.is_empty() && self.edges().all(follows)
    }

    /// Whether each row sees a key by these however many there are; `square`, where there are as many keys as rows.
    fn leaves_any(&self, square: bool) -> bool {
        let follows = |edge: &Edge| edge.per_row == 1 && edge.start <= 0;
        let from = self.from.iter();
        // Edges that begin below the first key and do not rise, or rise with the row and are not above it.
        let begins = from
            .clone()
            .all(|edge| edge.per_row <= 0 && edge.start <= 0 || square && follows(edge));
        let rises = self.from.iter().any(|edge| edge.per_row == 1);
        let ends = self
            .to
            .iter()
            .all(|edge| edge.start >= 1 && (edge.per_row == 1 || edge.per_row == 0 && !rises));
        begins && ends && self.rows.is_empty()
    }

    /// All edges.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.from.iter().chain(&self.to).chain(&self.rows)
    }

    /// Drops the edges that hide none of so many rows and keys, as of a window that is longer than the sequence: kernels have code
    /// for what edges leave of a block.
    fn drop_beyond(&mut self, [rows, keys]: [i64; 2]) {
        let cuts = |edge: &Edge, hides: &dyn Fn([i64; 2]) -> bool| {
            edge.length.is_some() || hides(edge.over(0, rows))
        };
        self.from.retain(|edge| cuts(edge, &|[_, most]| most > 0));
        self.to
            .retain(|edge| cuts(edge, &|[least, _]| least < keys));
        self.rows.retain(|edge| cuts(edge, &|[least, _]| least < 0));
    }

    /// Whether some edge is known when the kernel runs.
    #[must_use]
    pub fn has_lengths(&self) -> bool {
        self.edges().any(|edge| edge.length.is_some())
    }

    /// The keys `[first, end)` that some of `count` rows from `row` on see, of `keys`, as far as it is known without lengths.
    #[must_use]
    pub fn some(&self, row: i64, count: i64, keys: i64) -> [i64; 2] {
        let known = |edge: &&Edge| edge.length.is_none();
        let from = self.from.iter().filter(known);
        let to = self.to.iter().filter(known);
        let from = from.map(|edge| edge.over(row, count)[0]);
        let to = to.map(|edge| edge.over(row, count)[1]);
        [from.fold(0, i64::max), to.fold(keys, i64::min)]
    }

    /// The keys `[first, end)` that all of those rows see; none where lengths or labels say it.
    #[must_use]
    pub fn all(&self, row: i64, count: i64, keys: i64) -> [i64; 2] {
        if self.is_data() {
            return [0, 0];
        }
        let from = self.from.iter().map(|edge| edge.over(row, count)[1]);
        let to = self.to.iter().map(|edge| edge.over(row, count)[0]);
        [from.fold(0, i64::max), to.fold(keys, i64::min)]
    }
}

/// The keys outside of which a score is minus infinity, of so many rows and keys.
#[must_use]
pub fn visible(terms: &Terms, score: Id, [rows, keys]: [i64; 2], symbols: &Symbols<'_>) -> Visible {
    let mut found = Visible::default();
    restrict(terms, score, &mut found);
    if !symbols.has(rows) && !symbols.has(keys) {
        found.drop_beyond([rows, keys]);
    }
    found
}

/// Whether a score is one that hides its key.
pub(super) fn is_hidden(terms: &Terms, id: Id) -> bool {
    terms.as_float(id).is_some_and(is_hiding)
}

fn is_hiding(value: f64) -> bool {
    value == f64::NEG_INFINITY || value == HIDDEN
}

/// The condition of a mask, what is seen, what else is written, and whether the condition holds of what is seen.
fn mask(terms: &Terms, score: Id) -> Option<(Id, Id, Id, bool)> {
    let &[condition, a, b] = terms.operands(score, "arith.select")? else {
        return None;
    };
    let (seen, hidden, holding) = match (is_hidden(terms, a), is_hidden(terms, b)) {
        (false, true) => (a, b, true),
        (true, false) => (b, a, false),
        _ => return None,
    };
    // Only what lengths say is hidden by a low number: else each row is known to see a key, or nothing is.
    let low = terms.as_float(hidden) == Some(HIDDEN);
    let by_length = has_lengths(terms, condition) && !labels::some(terms, condition);
    (!low || by_length).then_some((condition, seen, hidden, holding))
}

fn has_lengths(terms: &Terms, id: Id) -> bool {
    terms.any(id, true, &|term| matches!(term, Term::Length(_)))
}

fn restrict(terms: &Terms, score: Id, found: &mut Visible) {
    let Some((condition, seen, hidden, holding)) = mask(terms, score) else {
        return;
    };
    if terms.as_float(hidden) == Some(HIDDEN) {
        found.all_where_none = true;
    }
    match holding {
        true => holds(terms, condition, found),
        false => fails(terms, condition, found),
    }
    restrict(terms, seen, found);
}

/// Adds what follows of a condition that holds for every key that is seen.
fn holds(terms: &Terms, condition: Id, found: &mut Visible) {
    if let Some(&[a, b]) = terms.operands(condition, "arith.andi") {
        holds(terms, a, found);
        holds(terms, b, found);
        return;
    }
    if let Some(&[a, b]) = terms.operands(condition, "arith.xori")
        && terms.as_int(b) == Some(1)
    {
        fails(terms, a, found);
        return;
    }
    if let Some(own) = labels::equal(terms, condition, true) {
        found.take(own);
        return;
    }
    for sum in not_negative(terms, condition).into_iter().flatten() {
        add(sum, found);
    }
}

/// Adds what follows of a condition that fails for every key that is seen.
fn fails(terms: &Terms, condition: Id, found: &mut Visible) {
    if let Some(&[a, b]) = terms.operands(condition, "arith.ori") {
        fails(terms, a, found);
        fails(terms, b, found);
        return;
    }
    if let Some(&[a, b]) = terms.operands(condition, "arith.xori")
        && terms.as_int(b) == Some(1)
    {
        holds(terms, a, found);
        return;
    }
    if let Some(own) = labels::equal(terms, condition, false) {
        found.take(own);
        return;
    }
    // What does not hold of `x >= 0` is `-x - 1 >= 0`.
    if let Some([sum]) = not_negative(terms, condition).as_deref()
        && let Some(negated) = sum.times(-1)
        && let Some(sum) = negated.sum(Affine::of(1), -1)
    {
        add(sum, found);
    }
}

fn add(sum: Affine, found: &mut Visible) {
    let Affine {
        rows,
        keys,
        constant,
        length,
    } = sum;
    if !is_edge(&sum) {
        return;
    }
    match keys {
        // rows * row + constant >= key
        -1 => found.to.push(Edge {
            per_row: rows,
            start: constant.saturating_add(1),
            length,
        }),
        // key >= -rows * row - constant
        1 => found.from.push(Edge {
            per_row: -rows,
            start: constant.saturating_neg(),
            length: length.map(|own| Length {
                factor: -own.factor,
                ..own
            }),
        }),
        _ => found.rows.push(Edge {
            per_row: rows,
            start: constant,
            length,
        }),
    }
}

/// What programs hide keys with that write no minus infinity: beside any score of 16-bit operands, the exponential of such a
/// number is 0.
const LOWEST: f64 = -1e30;
/// The low number that is written in the place of others: a power of two (-2^100), of which a multiple by any number is exact, so that
/// what is subtracted of a row that has it everywhere is 0.
pub const HIDDEN: f64 = -1_267_650_600_228_229_401_496_703_205_376.0;

/// A term in which keys that indices hide by a very low number are hidden by minus infinity. That is the same where each row sees
/// a key. Others have [`HIDDEN`] for any such number, which is the same for weights: a row that sees no key has one number
/// everywhere, and so one weight.
#[must_use]
pub fn with_infinity(terms: &mut Terms, id: Id, extents: [i64; 2], symbols: &Symbols<'_>) -> Id {
    let mut known = HashMap::new();
    lowered(terms, id, (extents, symbols), &mut known)
}

/// Rows and keys, and what those stand for.
type Sizes<'a, 'c> = ([i64; 2], &'a Symbols<'c>);

fn lowered(terms: &mut Terms, id: Id, extents: Sizes<'_, '_>, known: &mut HashMap<Id, Id>) -> Id {
    if let Some(own) = known.get(&id) {
        return *own;
    }
    let own = match terms.get(id).clone() {
        Term::Apply(name, ..) => {
            let mut operands: Vec<_> = terms
                .parts(id)
                .into_iter()
                .map(|part| lowered(terms, part, extents, known))
                .collect();
            if let ("arith.select", &[condition, a, b]) = (name.as_str(), operands.as_slice()) {
                let low = |id| {
                    terms
                        .as_float(id)
                        .is_some_and(|value| value <= LOWEST && value.is_finite())
                };
                let (low_a, low_b) = (low(a), low(b));
                let at = if low_a { 1 } else { 2 };
                if low_a != low_b && leaves_a_key(terms, condition, low_b, extents) {
                    operands[at] = terms.float(f64::NEG_INFINITY);
                } else if low_a != low_b {
                    operands[at] = terms.float(HIDDEN);
                }
            }
            terms.with_operands(id, &operands)
        }
        Term::Fold(combiner, of) => {
            let of = lowered(terms, of, extents, known);
            let scalar = terms.scalar(id);
            terms.add(Term::Fold(combiner, of), scalar)
        }
        Term::Product(of) => {
            let of = lowered(terms, of, extents, known);
            let scalar = terms.scalar(id);
            terms.add(Term::Product(of), scalar)
        }
        _ => id,
    };
    known.insert(id, own);
    own
}

/// Whether a condition of indices and labels that holds (or fails) of what is seen leaves each row a key: of labels that rows and keys
/// share, the key of the row's own number.
fn leaves_a_key(terms: &Terms, condition: Id, holding: bool, sizes: Sizes<'_, '_>) -> bool {
    leave_a_key(terms, &[(condition, holding)], sizes)
}

/// Whether all of a score's masks are known to leave each row a key.
#[must_use]
pub fn sees_some(terms: &Terms, score: Id, extents: [i64; 2]) -> bool {
    let (mut next, mut all) = (score, Vec::new());
    while let Some((condition, seen, _, holding)) = mask(terms, next) {
        all.push((condition, holding));
        next = seen;
    }
    let hides = terms.any(next, true, &|term| match term {
        Term::Float(bits) => is_hiding(f64::from_bits(*bits)),
        Term::Input(_) => true,
        _ => false,
    });
    !hides && leave_a_key(terms, &all, (extents, &Symbols::default()))
}

/// The same of several conditions together.
fn leave_a_key(
    terms: &Terms,
    conditions: &[(Id, bool)],
    ([rows, keys], symbols): Sizes<'_, '_>,
) -> bool {
    let mut found = Visible::default();
    let mut are_shared = true;
    for (condition, holding) in conditions {
        if !is_said(terms, *condition, *holding) || has_lengths(terms, *condition) {
            return false;
        }
        match holding {
            true => holds(terms, *condition, &mut found),
            false => fails(terms, *condition, &mut found),
        }
        are_shared &= labels::are_shared(terms, *condition);
    }
    let by_label = !found.segments.is_empty();
    if rows > MOST_ROWS || by_label && !(rows == keys && are_shared) {
        return false;
    }
    if symbols.has(rows) || symbols.has(keys) {
        return !by_label && found.leaves_any(rows == keys);
    }
    (0..rows).all(|row| {
        let [first, end] = found.some(row, 1, keys);
        first < end && (!by_label || (first..end).contains(&row))
    })
}

/// Rows that are looked at one by one, at most.
const MOST_ROWS: i64 = 1 << 22;

/// The score without what the edges of [`visible`] say: what is left to be formed of keys that all rows of a block see.
#[must_use]
pub fn bare(terms: &mut Terms, score: Id) -> Id {
    let Some((condition, seen, hidden, holding)) = mask(terms, score) else {
        return score;
    };
    let own = bare(terms, seen);
    if is_said(terms, condition, holding) {
        return own;
    }
    let operands = if holding {
        [condition, own, hidden]
    } else {
        [condition, hidden, own]
    };
    terms.with_operands(score, &operands)
}

/// Whether edges say all of that a condition holds (or fails).
fn is_said(terms: &Terms, condition: Id, holding: bool) -> bool {
    let both = if holding { "arith.andi" } else { "arith.ori" };
    if let Some(&[a, b]) = terms.operands(condition, both) {
        return is_said(terms, a, holding) && is_said(terms, b, holding);
    }
    if let Some(&[a, b]) = terms.operands(condition, "arith.xori") {
        return terms.as_int(b) == Some(1) && is_said(terms, a, !holding);
    }
    if labels::equal(terms, condition, holding).is_some() {
        return true;
    }
    let sums = not_negative(terms, condition).unwrap_or_default();
    !sums.is_empty() && sums.iter().all(is_edge) && (holding || sums.len() == 1)
}

#[cfg(test)]
mod tests;
