//! Places of extremes, as argmax and argmin are written: a reduction along rows of a value and its index at once. It becomes a maximum or
//! minimum of each row, and the least or greatest index at which a row has it, which row kernels form of elements that they hold.
//!
//! The body decides, and no name does: it is executed on all short sequences of elements that stand for all ([`super::merge`]), and must
//! give what the reductions do. Where that is wrong for a NaN alone, rows whose extreme is one are folded again, element by element.

use super::computed::{Elements, Row};
use super::merge::{Body, Datum, elements, extremum, sequences, start_numbers};
use super::pointwise::{Pointwise, mark_seldom, parallel_generic};
use super::{Nest, maps};
use crate::PassResult;
use crate::build::Code;
use crate::fuse::reshape::reshape;
use crate::fuse::space::source;
use crate::ir::value::{defining, identity, is_used, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, types, walk};
use axe_dialect::{Combiner, ops};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, BlockRef, Type, ValueLike};

/// Columns that a CTA has in registers: rows that are longer need several to be worth a kernel of rows.
const SHORT: i64 = 16 * 1024;

/// How a reduction chooses an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// Of the greatest element, or of the least.
    greatest: bool,
    /// The last index that has it, or the first.
    last: bool,
    /// Whether rows with a NaN are folded again; otherwise a NaN is the extreme.
    again: bool,
    /// The results that are the extreme and its index.
    results: [usize; 2],
}

/// Makes reductions of one that gives a value and its index, where those give the same; nothing else changes.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn to_reductions<'c>(op: Op<'c>, enough: i64) -> PassResult<'c> {
    match Extremes::of(op, enough) {
        Some(extremes) => extremes.replace(),
        None => Ok(()),
    }
}

/// A reduction that gives a value and its index.
struct Extremes<'c> {
    op: Op<'c>,
    block: BlockRef<'c, 'c>,
    /// The elements, what they are formed of, and their shape.
    from: Val<'c>,
    row: Row<'c>,
    shape: Vec<i64>,
    element: Type<'c>,
    /// What each result starts from.
    starts: Vec<Attribute<'c>>,
    way: Way,
    builder: Builder<'c>,
}

impl<'c> Extremes<'c> {
    fn of(op: Op<'c>, enough: i64) -> Option<Self> {
        let nest = Nest::read(op).ok().filter(|nest| nest.inits.len() == 2)?;
        let inputs: Vec<_> = operands(op).into_iter().take(maps(op)?.len() - 2).collect();
        let (from, numbers) = (*inputs.first()?, inputs.get(1..)?);
        let tensor = TensorType::of_value(from)?;
        let shape = tensor.shape;
        if !reduces_rows(op, &nest, shape.len()) || !is_worthwhile(&shape, enough) {
            return None;
        }
        let along = |value: &Val<'c>| is_numbers(*value, shape.len() - 1);
        if numbers.len() > 1 || !numbers.iter().all(along) {
            return None;
        }
        let (starts, data) = start_numbers(&nest.starts)?;
        let block = walk::blocks(op).first().copied()?;
        let body = Body::read(block, inputs.len(), shape.len() - 1)?;
        let way = way(&body, op, (tensor.element, inputs.len()), &data)?;
        let row = match way.again {
            true => Row::of(from).filter(|_| !shape.contains(&DYNAMIC)),
            false => Some(Row::default()),
        };
        row.map(|row| Self {
            op,
            block,
            from,
            row,
            shape,
            element: tensor.element,
            starts,
            way,
            builder: Builder::before(op),
        })
    }

    fn replace(&self) -> PassResult<'c> {
        let Way { greatest, last, .. } = self.way;
        let dim = i64::try_from(self.shape.len()).unwrap_or(i64::MAX) - 1;
        let rows = self.shape.get(..self.shape.len() - 1).unwrap_or_default();
        let code = Code {
            builder: self.builder,
        };
        let of_rows = |element| self.builder.tensor(rows, element);
        let combiner = |greatest| match greatest {
            true => Combiner::Max,
            false => Combiner::Min,
        };
        let extreme = code.reduce(combiner(greatest), self.from, dim, of_rows(self.element)?)?;
        let whole = self.builder.tensor(&self.shape, self.element)?;
        let repeated = code.broadcast(extreme, dim, whole)?;
        let i32 = self.integer(32);
        let places = parallel_generic(
            &self.builder,
            &[self.from, repeated],
            (&self.shape, i32),
            |inner, elements| self.place(inner, elements),
        )?;
        let place = code.reduce(combiner(last), places, dim, of_rows(i32)?)?;
        let [value, index] = self.way.results.map(|at| results(self.op).get(at).copied());
        if let Some(index) = index {
            let element = self.builder.tensor_of(index)?.element;
            let chosen = match self.way.again {
                false => code.cast(place, of_rows(element)?)?,
                true => {
                    let mut read = vec![place];
                    for value in &self.row.of_rows {
                        read.push(reshape(&self.builder, *value, rows, None)?);
                    }
                    let body = |inner: &Builder<'c>, elements: &[Val<'c>]| {
                        self.chosen(inner, elements, element)
                    };
                    let chosen = parallel_generic(&self.builder, &read, (rows, element), body)?;
                    mark_seldom(chosen);
                    chosen
                }
            };
            replace_all_uses(index, chosen);
        }
        if let Some(value) = value.filter(|value| is_used(*value)) {
            replace_all_uses(value, extreme);
        }
        Ok(())
    }

    /// The index of an element where it is its row's extreme, else one that no element has.
    fn place(&self, inner: &Builder<'c>, elements: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let [own, extreme] = *elements else {
            return inner.index(0);
        };
        let dim = format!("{} : i64", self.shape.len() - 1);
        let dim = [("dim", inner.parsed(&dim)?)];
        let at = inner.value("linalg.index", &[], inner.index_type(), &dim)?;
        let at = inner.value("arith.index_cast", &[at], self.integer(32), &[])?;
        let compare = |name: &str, operands: &[Val<'c>], predicate: &str| {
            let predicate = [("predicate", inner.parsed(predicate)?)];
            inner.value(name, operands, self.integer(1), &predicate)
        };
        let is_it = match types::is_float(self.element) {
            // `cmpf oeq` and `uno`, `cmpi eq` (ArithBase.td).
            true if self.way.again => compare("arith.cmpf", &[own, extreme], "1 : i64")?,
            true => {
                let equal = compare("arith.cmpf", &[own, extreme], "1 : i64")?;
                let nan = compare("arith.cmpf", &[own, own], "14 : i64")?;
                inner.value("arith.ori", &[equal, nan], self.integer(1), &[])?
            }
            false => compare("arith.cmpi", &[own, extreme], "0 : i64")?,
        };
        let none = self.none(inner)?;
        inner.value("arith.select", &[is_it, at, none], self.integer(32), &[])
    }

    /// What stands for no index: beyond those of the row, on the side that is not chosen.
    fn none(&self, inner: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        let none = match self.way.last {
            true => -1,
            false => i64::from(i32::MAX),
        };
        inner.constant(IntegerAttribute::new(self.integer(32), none).into())
    }

    /// The index of a row; of one without an element that is its extreme, that of its elements in turn.
    fn chosen(
        &self,
        inner: &Builder<'c>,
        elements: &[Val<'c>],
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let Some((&place, of_rows)) = elements.split_first() else {
            return inner.index(0);
        };
        let mut row = Vec::new();
        for dim in 0..self.shape.len() - 1 {
            let dim = [("dim", inner.parsed(&format!("{dim} : i64"))?)];
            row.push(inner.value("linalg.index", &[], inner.index_type(), &dim)?);
        }
        let predicate = [("predicate", inner.parsed("0 : i64")?)];
        let operands = [place, self.none(inner)?];
        let is_none = inner.value("arith.cmpi", &operands, self.integer(1), &predicate)?;
        let found = |inner: &Builder<'c>| match types::bits(r#type) {
            Some(32) => Ok(place),
            _ => inner.value("arith.extsi", &[place], r#type, &[]),
        };
        inner.choose(is_none, |inner| self.folded(inner, &row, of_rows), found)
    }

    /// The index that the loop over a row's elements gives.
    fn folded(
        &self,
        builder: &Builder<'c>,
        row: &[Val<'c>],
        of_rows: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let index = builder.index_type();
        let mut starts = Vec::new();
        for start in &self.starts {
            starts.push(builder.constant(*start)?);
        }
        let types: Vec<_> = starts.iter().map(ValueLike::r#type).collect();
        let arguments: Vec<_> = std::iter::once(index)
            .chain(types.iter().copied())
            .collect();
        let (region, arguments, inner) = builder.region(&arguments);
        let (column, states) = match arguments.split_first() {
            Some((column, states)) => (*column, states),
            None => return builder.index(0),
        };
        let elements = Elements {
            inner: &inner,
            of: &self.row,
            at: (row, column),
            of_rows,
        };
        let own = elements.element(self.from)?;
        let yielded = self.turn(&inner, own, column, states)?;
        inner.operation("scf.yield", &yielded, &[], &[], Vec::new())?;
        let columns = self.shape.last().copied().unwrap_or(1);
        let bounds = [
            builder.index(0)?,
            builder.index(columns)?,
            builder.index(1)?,
        ];
        let operands = [&bounds[..], &starts].concat();
        let all = builder.operation("scf.for", &operands, &types, &[], vec![region])?;
        let [_, number] = self.way.results;
        let chosen = results(all).get(number).copied();
        Ok(chosen.unwrap_or(column))
    }

    /// One turn of the loop: a copy of the body.
    fn turn(
        &self,
        inner: &Builder<'c>,
        own: Val<'c>,
        column: Val<'c>,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let arguments = walk::block_arguments(self.block);
        let inputs = arguments.len().saturating_sub(states.len());
        let mut given = vec![own];
        for argument in arguments.iter().take(inputs).skip(1) {
            given.push(inner.value("arith.index_cast", &[column], argument.r#type(), &[])?);
        }
        given.extend(states);
        let mut values: inline::Values<'c> =
            arguments.into_iter().map(identity).zip(given).collect();
        let mut all = walk::operations(self.block);
        let last = all.pop();
        for op in all {
            match name(op).as_str() {
                "linalg.index" => {
                    values.insert(identity(inner.result_of(op)?), column);
                }
                _ => {
                    inline::copy_operation(inner, op, &mut values);
                }
            }
        }
        let yielded = last.map(operands).unwrap_or_default().into_iter();
        Ok(yielded
            .map(|value| values.get(&identity(value)).copied().unwrap_or(value))
            .collect())
    }

    fn integer(&self, bits: u32) -> Type<'c> {
        self.builder
            .r#type(|context| IntegerType::new(context, bits).into())
    }
}

/// Whether the operation reduces the last dimension of its inputs, and each result has the others.
fn reduces_rows(op: Op<'_>, nest: &Nest<'_>, rank: usize) -> bool {
    let last = |at: usize| nest.reductions.get(at) == Some(&(at + 1 == rank));
    let Some(maps) = maps(op).filter(|_| rank > 1 && nest.reductions.len() == rank) else {
        return false;
    };
    let inputs = maps.len().saturating_sub(nest.inits.len());
    (0..rank).all(last)
        && maps.iter().enumerate().all(|(number, map)| {
            let wanted = if number < inputs { rank } else { rank - 1 };
            let own = |at: usize| {
                map.result(at)
                    .is_ok_and(|index| index.is_dim() && index.dim_position() == at)
            };
            map.result_count() == wanted && (0..wanted).all(own)
        })
}

/// Whether there are rows enough for a chip, or each is one CTA's. Of fewer, loops reduce parts: 256 rows of 262,144
/// f32 take 402 us by loops.
fn is_worthwhile(shape: &[i64], enough: i64) -> bool {
    let Some((&columns, rows)) = shape.split_last() else {
        return false;
    };
    let known = rows.iter().filter(|extent| **extent != DYNAMIC);
    let known = known.fold(1i64, |all, extent| all.saturating_mul(*extent));
    let many = known >= enough;
    let inner_is_dynamic = shape.iter().skip(1).any(|extent| *extent == DYNAMIC);
    !inner_is_dynamic
        && !shape.contains(&0)
        && (2..i64::from(i32::MAX)).contains(&columns)
        && (many || columns <= SHORT || rows.contains(&DYNAMIC))
}

/// Whether the elements of a tensor are their indices along a dimension.
fn is_numbers(value: Val<'_>, dim: usize) -> bool {
    let Some(op) = defining(value) else {
        return false;
    };
    if name(op) == ops::BROADCAST {
        let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
        let dims = dims.unwrap_or_default();
        let before = dims
            .iter()
            .filter(|at| usize::try_from(**at).is_ok_and(|at| at < dim));
        let repeats = dims.iter().any(|at| usize::try_from(*at) == Ok(dim));
        let own = dim.checked_sub(before.count());
        return !repeats
            && source(op)
                .zip(own)
                .is_some_and(|(from, dim)| is_numbers(from, dim));
    }
    let Some(nest) = Pointwise::of(op).filter(Pointwise::is_formed_again) else {
        return false;
    };
    let yielded = walk::blocks(nest.op)
        .first()
        .map(|block| walk::operations(*block));
    let yielded = yielded.and_then(|all| operands(*all.last()?).first().copied());
    let cast = yielded
        .and_then(defining)
        .filter(|op| name(*op).starts_with("arith.index_cast"));
    let index = cast.and_then(source).and_then(defining);
    let index = index.filter(|op| name(*op) == "linalg.index");
    let along = index
        .and_then(|op| op.attribute("dim").ok())
        .and_then(attribute::integer);
    along.is_some_and(|along| usize::try_from(along) == Ok(dim))
}

/// The way that gives what the body does on all short sequences; none where no way does.
fn way<'c>(
    body: &Body,
    op: Op<'c>,
    (element, inputs): (Type<'c>, usize),
    starts: &[Datum],
) -> Option<Way> {
    let own = results(op);
    let integer = |at: usize| {
        let tensor = own.get(at).copied().and_then(TensorType::of_value);
        tensor.is_some_and(|tensor| {
            types::is_integer(tensor.element) && types::bits(tensor.element) >= Some(32)
        })
    };
    let same = |at: usize| {
        let value = own.get(at).copied();
        value.is_some_and(|value| {
            let tensor = TensorType::of_value(value);
            !is_used(value) || tensor.is_some_and(|tensor| tensor.element == element)
        })
    };
    let wide = types::bits(element) >= Some(8);
    let bits = [false, true];
    let orders = [[0, 1], [1, 0]].into_iter();
    let orders = orders.filter(|[value, index]| wide && same(*value) && integer(*index));
    let mut ways = orders.flat_map(|results| {
        let of = move |again, greatest, last| Way {
            greatest,
            last,
            again,
            results,
        };
        bits.into_iter().flat_map(move |again| {
            bits.into_iter()
                .flat_map(move |greatest| bits.map(|last| of(again, greatest, last)))
        })
    });
    ways.find(|way| {
        let [value, _] = way.results;
        let valued = own.get(value).is_some_and(|value| is_used(*value));
        let start = starts.get(value).copied();
        start.is_some_and(|start| way.holds(body, (Some(element), start), (inputs, starts), valued))
    })
}

/// The least and the greatest value of a type.
fn ends(element: Option<Type<'_>>) -> [Datum; 2] {
    let bits = element.and_then(types::bits).unwrap_or(64).clamp(1, 64);
    match element.is_some_and(types::is_float) {
        true => [f64::NEG_INFINITY, f64::INFINITY].map(Datum::Float),
        false => [i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)].map(Datum::Int),
    }
}

impl Way {
    /// Whether the body gives what this way does; `valued`: its extreme too.
    fn holds(
        self,
        body: &Body,
        (element, start): (Option<Type<'_>>, Datum),
        (inputs, starts): (usize, &[Datum]),
        valued: bool,
    ) -> bool {
        // With the ends of the order: a start that is no end hides elements beyond it.
        let mut all = elements(&[element], start, false);
        all.extend(ends(element).map(|end| vec![end]));
        sequences(&all, 3)
            .into_iter()
            .filter(|own| !own.is_empty())
            .all(|own| {
                let own: Vec<Datum> = own.iter().filter_map(|one| one.first().copied()).collect();
                let (extreme, place) = self.of_row(&own);
                let mut states = Some(starts.to_vec());
                for (at, one) in (0i64..).zip(&own) {
                    let given: Vec<_> = [*one, Datum::Int(at)].into_iter().take(inputs).collect();
                    states = states.and_then(|states| body.turn(&given, &states, at));
                }
                let got = self
                    .results
                    .map(|at| states.as_ref().and_then(|all| all.get(at)));
                let is =
                    |got: Option<&Datum>, want: Datum| got.is_some_and(|got| got.is_same(want));
                place.is_none_or(|place| is(got[1], Datum::Int(place)))
                    && (!valued || is(got[0], extreme))
            })
    }

    /// The extreme of a row that is not empty, and its index; no index where the row is folded again.
    fn of_row(self, row: &[Datum]) -> (Datum, Option<i64>) {
        let first = row.first().copied().unwrap_or(Datum::Int(0));
        let extreme = row.iter().skip(1).fold(first, |a, b| self.extreme(a, *b));
        if self.again && extreme.is_nan() {
            return (extreme, None);
        }
        let is_it = |one: &Datum| match (*one, extreme) {
            (Datum::Float(one), Datum::Float(extreme)) => one == extreme || one.is_nan(),
            (Datum::Int(one), Datum::Int(extreme)) => one == extreme,
            _ => false,
        };
        let mut places = (0i64..)
            .zip(row)
            .filter(|(_, one)| is_it(one))
            .map(|(at, _)| at);
        let place = match self.last {
            true => places.last(),
            false => places.next(),
        };
        (extreme, place)
    }

    fn extreme(self, a: Datum, b: Datum) -> Datum {
        match (a, b) {
            (Datum::Float(a), Datum::Float(b)) => Datum::Float(match self.greatest {
                true => extremum(a, b, a > b || a == b && b.is_sign_negative()),
                false => extremum(a, b, a < b || a == b && a.is_sign_negative()),
            }),
            (Datum::Int(a), Datum::Int(b)) if self.greatest => Datum::Int(a.max(b)),
            (Datum::Int(a), Datum::Int(b)) => Datum::Int(a.min(b)),
            _ => a,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREATEST: Way = Way {
        greatest: true,
        last: false,
        again: false,
        results: [0, 1],
    };

    fn place(way: Way, row: &[f64]) -> Option<i64> {
        let row: Vec<_> = row.iter().copied().map(Datum::Float).collect();
        way.of_row(&row).1
    }

    #[test]
    fn places_are_those_of_the_first_or_the_last_extreme() {
        let row = [0.0, 2.0, -1.0, 2.0, -1.0];
        let last = Way {
            last: true,
            ..GREATEST
        };
        let least = |way| Way {
            greatest: false,
            ..way
        };
        let ways = [GREATEST, last, least(GREATEST), least(last)];
        assert_eq!(ways.map(|way| place(way, &row)), [1, 3, 2, 4].map(Some));
    }

    #[test]
    fn zeros_are_equal_and_a_nan_is_the_extreme_or_folded_again() {
        assert_eq!(place(GREATEST, &[-0.0, 0.0]), Some(0));
        let row = [1.0, f64::NAN, 3.0, f64::NAN];
        assert_eq!(place(GREATEST, &row), Some(1));
        let again = Way {
            again: true,
            ..GREATEST
        };
        assert_eq!(place(again, &row), None);
        assert_eq!(place(again, &row[2..3]), Some(0));
    }

    #[test]
    fn few_long_rows_are_no_work_for_a_chip() {
        assert!(is_worthwhile(&[3, 4096], 33));
        assert!(!is_worthwhile(&[3, 40_000], 33));
        assert!(is_worthwhile(&[300, 40_000], 33));
        assert!(is_worthwhile(&[DYNAMIC, 40_000], 33));
        assert!(!is_worthwhile(&[300, DYNAMIC], 33));
        assert!(!is_worthwhile(&[300, 0], 33));
    }
}
