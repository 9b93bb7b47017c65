//! Whether a reduction that compares and chooses, as argmax does, can be folded in parts.
//!
//! Comparisons see the order of elements and nothing else of them, so that few elements stand for all. The body is executed on all
//! short sequences of those: the fold of a sequence must be what the states of its two parts give when they are merged. To
//! merge, the body takes a part's state for an element. Where that is wrong for a NaN, a part whose state has one is folded again
//! from the state before it, which is what the loops say.

use super::Start;
use crate::ir::value::{identity, is_used, name, operands, results};
use crate::ir::{Op, Val, attribute, types, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, BlockRef, Type, ValueLike};
use std::collections::HashMap;

/// A scalar of a body; bits are 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Datum {
    Float(f64),
    Int(i64),
}

/// The numbers that results start from, and what they are; none where one starts from something else.
pub(super) fn start_numbers<'c>(starts: &[Start<'c>]) -> Option<(Vec<Attribute<'c>>, Vec<Datum>)> {
    let of = |start: &Start<'c>| {
        let Start::Number(number) = *start else {
            return None;
        };
        let float = attribute::float(number).map(Datum::Float);
        let datum = float.or_else(|| attribute::integer(number).map(Datum::Int))?;
        Some((number, datum))
    };
    starts.iter().map(of).collect()
}

impl Datum {
    pub(super) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => {
                a.to_bits() == b.to_bits() || self.is_nan() && other.is_nan()
            }
            (Self::Int(a), Self::Int(b)) => a == b,
            _ => false,
        }
    }

    pub(super) fn is_nan(self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }
}

/// How the state of a part is merged into that of what is before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// The result whose state the body takes for each input; none for an input that it does not read.
    pub inputs: Vec<Option<usize>>,
    /// The result whose state it takes for the index of the reduction.
    pub index: Option<usize>,
    /// Whether a part with a NaN in its state is folded again.
    pub again: bool,
}

/// What an operation computes of its operands.
type Apply = Box<dyn Fn(&[Datum]) -> Option<Datum>>;

/// A body that compares and chooses: inputs, states and the index of the reduction are the first values, then those of its operations.
pub(super) struct Body {
    inputs: usize,
    steps: Vec<(Apply, Vec<usize>)>,
    yielded: Vec<usize>,
    reads_index: bool,
}

impl Body {
    /// Reads a body; none where it does more than compare and choose, or reads what is outside.
    pub(super) fn read(block: BlockRef<'_, '_>, inputs: usize, reduction: usize) -> Option<Self> {
        let arguments = walk::block_arguments(block);
        let index = arguments.len();
        let mut places: HashMap<usize, usize> = arguments
            .iter()
            .map(|value| identity(*value))
            .zip(0..)
            .collect();
        let mut all = walk::operations(block);
        let last = all.pop()?;
        let (mut steps, mut reads_index) = (Vec::new(), false);
        let place = |places: &HashMap<usize, usize>, op: Op<'_>| {
            let places = operands(op)
                .into_iter()
                .map(|value| places.get(&identity(value)).copied());
            places.collect::<Option<Vec<_>>>()
        };
        for op in all {
            let [result] = results(op)[..] else {
                return None;
            };
            if name(op) == "linalg.index" {
                let dim = op.attribute("dim").ok().and_then(attribute::integer);
                dim.filter(|dim| usize::try_from(*dim) == Ok(reduction))?;
                places.insert(identity(result), index);
                reads_index = true;
                continue;
            }
            steps.push((apply(op)?, place(&places, op)?));
            places.insert(identity(result), index + steps.len());
        }
        let yielded = place(&places, last)?;
        Some(Self {
            inputs,
            steps,
            yielded,
            reads_index,
        })
    }

    /// One turn of the loop: the states after it.
    pub(super) fn turn(&self, inputs: &[Datum], states: &[Datum], at: i64) -> Option<Vec<Datum>> {
        let mut values: Vec<_> = inputs.iter().chain(states).copied().collect();
        values.push(Datum::Int(at));
        for (apply, places) in &self.steps {
            let operands = places.iter().map(|at| values.get(*at).copied());
            values.push(apply(&operands.collect::<Option<Vec<_>>>()?)?);
        }
        self.yielded
            .iter()
            .map(|at| values.get(*at).copied())
            .collect()
    }

    /// The states after elements of which the first is at a position.
    fn fold(&self, from: &[Datum], elements: &[&[Datum]], first: i64) -> Option<Vec<Datum>> {
        let mut elements = elements.iter().zip(first..);
        elements.try_fold(from.to_vec(), |states, (element, at)| {
            self.turn(element, &states, at)
        })
    }

    /// The states that come of a part's own, merged into those before it.
    fn merged(
        &self,
        merge: &Merge,
        before: &[Datum],
        starts: &[Datum],
        (part, first): (&[&[Datum]], i64),
    ) -> Option<Vec<Datum>> {
        let own = self.fold(starts, part, first)?;
        let has_nan = |states: &[Datum]| states.iter().any(|state| state.is_nan());
        if merge.again && has_nan(&own) && !has_nan(before) {
            return self.fold(before, part, first);
        }
        let of = |result: &Option<usize>| match result {
            Some(result) => own.get(*result).copied(),
            None => Some(Datum::Int(0)),
        };
        let inputs = merge.inputs.iter().map(of).collect::<Option<Vec<_>>>()?;
        match merge.index.map(|result| own.get(result)) {
            Some(Some(Datum::Int(at))) => self.turn(&inputs, before, *at),
            None => self.turn(&inputs, before, 0),
            _ => None,
        }
    }

    /// Whether merging gives what the loops do, on all short sequences of elements.
    fn holds(
        &self,
        merge: &Merge,
        starts: &[Datum],
        elements: &[Vec<Datum>],
        longest: usize,
    ) -> bool {
        let parts = sequences(elements, longest);
        let prefixes = sequences(elements, 2);
        prefixes.iter().all(|prefix| {
            let Some(before) = self.fold(starts, prefix, 0) else {
                return false;
            };
            let first = i64::try_from(prefix.len()).unwrap_or(0);
            parts.iter().all(|part| {
                let want = self.fold(&before, part, first);
                let got = self.merged(merge, &before, starts, (part, first));
                want.zip(got).is_some_and(|(want, got)| {
                    want.iter().zip(&got).all(|(want, got)| want.is_same(*got))
                })
            })
        })
    }

    /// How parts are merged; none where no way is right. `types` are those of the body's arguments, `starts` what results start from.
    pub(super) fn merge(&self, block: BlockRef<'_, '_>, starts: &[Datum]) -> Option<Merge> {
        let arguments = walk::block_arguments(block);
        let (inputs, states) = arguments.split_at_checked(self.inputs)?;
        let states: Vec<_> = states.iter().map(|state| state.r#type()).collect();
        let read: Vec<_> = inputs
            .iter()
            .map(|input| is_used(*input).then(|| input.r#type()))
            .collect();
        let several = read.iter().flatten().count() > 1;
        let elements = elements(&read, starts.first().copied()?, several);
        let index = self.reads_index;
        let ways = ways(&read, index, &states);
        let both = ways.into_iter().flat_map(|way| {
            [false, true].map(|again| Merge {
                again,
                ..way.clone()
            })
        });
        let longest = if several { 2 } else { 3 };
        both.into_iter()
            .find(|merge| self.holds(merge, starts, &elements, longest))
    }
}

/// The results whose states may stand for each input and for the index: one each, of the same type.
fn ways<'c>(read: &[Option<Type<'c>>], index: bool, states: &[Type<'c>]) -> Vec<Merge> {
    let mut ways = vec![(Vec::new(), Vec::new())];
    for input in read {
        let mut next = Vec::new();
        for (chosen, taken) in ways {
            let Some(wanted) = input else {
                next.push(([chosen, vec![None]].concat(), taken));
                continue;
            };
            for (at, _) in states
                .iter()
                .enumerate()
                .filter(|(_, state)| *state == wanted)
            {
                if !taken.contains(&at) {
                    next.push((
                        [chosen.clone(), vec![Some(at)]].concat(),
                        [taken.clone(), vec![at]].concat(),
                    ));
                }
            }
        }
        ways = next;
    }
    let mut merges = Vec::new();
    for (inputs, taken) in ways {
        let way = |index| Merge {
            inputs: inputs.clone(),
            index,
            again: false,
        };
        if !index {
            merges.push(way(None));
            continue;
        }
        let wide = |state: Type<'_>| {
            !types::is_float(state) && types::bits(state).is_none_or(|bits| bits >= 32)
        };
        let free = (0..states.len())
            .filter(|at| !taken.contains(at) && states.get(*at).is_some_and(|state| wide(*state)));
        merges.extend(free.map(|at| way(Some(at))));
    }
    merges
}

/// Elements that stand for all: what the first result starts from, numbers around zero, and a NaN; of several inputs fewer.
pub(super) fn elements(read: &[Option<Type<'_>>], start: Datum, several: bool) -> Vec<Vec<Datum>> {
    let of = |input: &Option<Type<'_>>| -> Vec<Datum> {
        let Some(input) = input else {
            return vec![Datum::Int(0)];
        };
        let floats: &[f64] = if several {
            &[0.0, 1.0, f64::NAN]
        } else {
            &[-1.0, -0.0, 0.0, 1.0, f64::NAN]
        };
        let numbers: Vec<_> = match (types::is_float(*input), types::bits(*input)) {
            (true, _) => floats.iter().map(|value| Datum::Float(*value)).collect(),
            (false, Some(1)) => [0, 1].map(Datum::Int).to_vec(),
            _ => [-1, 0, 1].map(Datum::Int).to_vec(),
        };
        let own = match (types::is_float(*input), start) {
            (true, Datum::Float(_)) | (false, Datum::Int(_)) => Some(start),
            _ => None,
        };
        own.into_iter().chain(numbers).collect()
    };
    read.iter().map(of).fold(vec![Vec::new()], |all, one| {
        let longer = |first: &Vec<Datum>| {
            let first = first.clone();
            one.iter()
                .map(move |next| [first.clone(), vec![*next]].concat())
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// All sequences of up to so many elements.
pub(super) fn sequences(elements: &[Vec<Datum>], longest: usize) -> Vec<Vec<&[Datum]>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..longest {
        let until = all.len();
        for at in from..until {
            for element in elements {
                let mut longer: Vec<&[Datum]> = all.get(at).cloned().unwrap_or_default();
                longer.push(element);
                all.push(longer);
            }
        }
        from = until;
    }
    all
}

/// What an operation computes, where it compares, chooses, or keeps a value.
fn apply(op: Op<'_>) -> Option<Apply> {
    use Datum::{Float, Int};
    let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
    let bit = |value: &Val<'_>| types::bits(value.r#type()) == Some(1);
    let is_bit = results(op).first().is_some_and(bit);
    let of_bits = operands(op).first().is_some_and(bit);
    let floats = |of: fn(f64, f64) -> f64| -> Apply {
        Box::new(move |operands| match *operands {
            [Float(a), Float(b)] => Some(Float(of(a, b))),
            _ => None,
        })
    };
    let ints = |of: fn(i64, i64) -> i64| -> Apply {
        Box::new(move |operands| match *operands {
            [Int(a), Int(b)] => Some(Int(of(a, b))),
            _ => None,
        })
    };
    Some(match name(op).as_str() {
        "arith.cmpf" => {
            let predicate = predicate?;
            Box::new(move |operands| match *operands {
                [Float(a), Float(b)] => compare_floats(predicate, a, b),
                _ => None,
            })
        }
        // Signs of bits are left out.
        "arith.cmpi" => {
            let predicate = predicate.filter(|predicate| !of_bits || *predicate < 2)?;
            Box::new(move |operands| match *operands {
                [Int(a), Int(b)] => compare_ints(predicate, a, b),
                _ => None,
            })
        }
        "arith.select" => Box::new(|operands| match *operands {
            [Int(condition), a, b] => Some(if condition == 0 { b } else { a }),
            _ => None,
        }),
        "arith.index_cast" | "arith.index_castui" | "arith.extf" => {
            Box::new(|operands| operands.first().copied())
        }
        "arith.andi" if is_bit => ints(|a, b| a & b),
        "arith.ori" if is_bit => ints(|a, b| a | b),
        "arith.xori" if is_bit => ints(|a, b| a ^ b),
        "arith.maxsi" if !is_bit => ints(i64::max),
        "arith.minsi" if !is_bit => ints(i64::min),
        "arith.maxui" if !is_bit => ints(|a, b| if (a as u64) < b as u64 { b } else { a }),
        "arith.minui" if !is_bit => ints(|a, b| if (a as u64) < b as u64 { a } else { b }),
        "arith.maximumf" => floats(|a, b| extremum(a, b, a > b || a == b && b.is_sign_negative())),
        "arith.minimumf" => floats(|a, b| extremum(a, b, a < b || a == b && a.is_sign_negative())),
        _ => return None,
    })
}

/// `maximumf` or `minimumf`, of which `first` says whether the first number is it: NaN where there is one.
pub(super) fn extremum(a: f64, b: f64, first: bool) -> f64 {
    match (a.is_nan() || b.is_nan(), first) {
        (true, _) => f64::NAN,
        (_, true) => a,
        _ => b,
    }
}

/// `arith.cmpf` by its predicate's number (ArithBase.td).
fn compare_floats(predicate: i64, a: f64, b: f64) -> Option<Datum> {
    let unordered = a.is_nan() || b.is_nan();
    let holds = match predicate {
        0 => false,
        1 => a == b,
        2 => a > b,
        3 => a >= b,
        4 => a < b,
        5 => a <= b,
        6 => !unordered && a != b,
        7 => !unordered,
        8 => unordered || a == b,
        9 => unordered || a > b,
        10 => unordered || a >= b,
        11 => unordered || a < b,
        12 => unordered || a <= b,
        13 => a != b,
        14 => unordered,
        15 => true,
        _ => return None,
    };
    Some(Datum::Int(i64::from(holds)))
}

/// `arith.cmpi` by its predicate's number (ArithBase.td).
fn compare_ints(predicate: i64, a: i64, b: i64) -> Option<Datum> {
    let (high, low) = (a as u64, b as u64);
    let holds = match predicate {
        0 => a == b,
        1 => a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => high < low,
        7 => high <= low,
        8 => high > low,
        9 => high >= low,
        _ => return None,
    };
    Some(Datum::Int(i64::from(holds)))
}
