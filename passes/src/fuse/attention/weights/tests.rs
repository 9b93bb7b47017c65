use super::super::term::Scalar;
use super::*;

/// Terms of a score, its scaled form, and a mask.
struct Made {
    terms: Terms,
    score: Id,
}

impl Made {
    fn new() -> Self {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        Self { terms, score }
    }

    fn op(&mut self, name: &str, operands: &[Id]) -> Id {
        self.terms.apply(name, None, operands, Scalar::Float)
    }

    fn float(&mut self, value: f64) -> Id {
        self.terms.float(value)
    }

    fn fold(&mut self, combiner: Combiner, of: Id) -> Id {
        let scalar = self.terms.scalar(of);
        self.terms.add(Term::Fold(combiner, of), scalar)
    }

    /// `exp(x - max x)`.
    fn safe(&mut self, x: Id) -> Id {
        let m = self.fold(Combiner::Max, x);
        let z = self.op("arith.subf", &[x, m]);
        self.op("math.exp", &[z])
    }

    fn product(&mut self, weight: Id) -> Id {
        self.terms.add(Term::Product(weight), Scalar::Float)
    }

    fn read(&mut self, result: Id) -> Result<Weights, Why> {
        read(&mut self.terms, result).map(|(weights, _)| weights)
    }

    /// The sum of `exp(x - m)`, and m where one is subtracted: the maximum, or 0 where that is infinite.
    fn sum(&mut self, x: Id, maximum: Maximum) -> (Id, Option<Id>) {
        let m = match maximum {
            Maximum::None => None,
            Maximum::Plain => Some(self.fold(Combiner::Max, x)),
            Maximum::Finite => {
                let m = self.fold(Combiner::Max, x);
                let (own, most, zero) = (
                    self.op("math.absf", &[m]),
                    self.float(f64::INFINITY),
                    self.float(0.0),
                );
                let bit = Scalar::Int(1);
                let infinite = self.terms.apply("arith.cmpf", Some(1), &[own, most], bit);
                Some(self.op("arith.select", &[infinite, zero, m]))
            }
        };
        let z = m.map_or(x, |m| self.op("arith.subf", &[x, m]));
        let e = self.op("math.exp", &[z]);
        (self.fold(Combiner::Add, e), m)
    }

    /// A softmax of these scores, and what a value is of the logarithm of its sums.
    fn log_sum(&mut self, x: Id, value: Id) -> Option<LogSum> {
        let e = self.safe(x);
        let l = self.fold(Combiner::Add, e);
        let p = self.op("arith.divf", &[e, l]);
        let result = self.product(p);
        let (weights, exponent) = read(&mut self.terms, result).expect("a softmax");
        log_sum(&mut self.terms, value, weights.score, &exponent)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Maximum {
    None,
    Plain,
    Finite,
}

#[test]
fn logarithms_of_sums_are_read_with_a_maximum_and_without() {
    for maximum in [Maximum::None, Maximum::Plain, Maximum::Finite] {
        let mut made = Made::new();
        let x = scaled_score(&mut made, 0.125);
        let (l, m) = made.sum(x, maximum);
        let log = made.op("math.log", &[l]);
        let value = m.map_or(log, |m| made.op("arith.addf", &[m, log]));
        let expected = LogSum {
            scale: 1.0,
            offset: 0.0,
            // A maximum of minus infinity makes it NaN.
            empty: match maximum {
                Maximum::Plain => EmptyLog::Nan,
                _ => EmptyLog::Least,
            },
        };
        assert_eq!(made.log_sum(x, value), Some(expected), "{maximum:?}");
        // The logarithm of the sum beside a maximum is not that of the sum.
        let alone = made.log_sum(x, log).is_some();
        assert_eq!(alone, maximum == Maximum::None, "{maximum:?}");
    }
}

#[test]
fn logarithms_to_base_two_and_shifted_ones_say_so() {
    let mut made = Made::new();
    let x = scaled_score(&mut made, 0.5);
    let (l, m) = made.sum(x, Maximum::Plain);
    let log = made.op("math.log2", &[l]);
    let by = made.float(std::f64::consts::LOG2_E);
    let m = made.op("arith.mulf", &[m.expect("a maximum"), by]);
    let sum = made.op("arith.addf", &[m, log]);
    let three = made.float(3.0);
    let value = made.op("arith.subf", &[sum, three]);
    let read = made.log_sum(x, value).expect("a logarithm");
    assert!(
        (read.scale - 1.0 / LN_2).abs() < 1e-12 && read.offset == -3.0,
        "{read:?}"
    );
}

#[test]
fn logarithms_of_other_sums_are_none() {
    let mut made = Made::new();
    let (x, y) = (scaled_score(&mut made, 0.5), scaled_score(&mut made, 0.25));
    let (l, m) = made.sum(y, Maximum::Plain);
    let log = made.op("math.log", &[l]);
    let other = made.op("arith.addf", &[m.expect("a maximum"), log]);
    assert_eq!(made.log_sum(x, other), None);
    // Twice the maximum does not cancel.
    let (l, m) = made.sum(x, Maximum::Plain);
    let (log, m) = (made.op("math.log", &[l]), m.expect("a maximum"));
    let twice = made.op("arith.addf", &[m, m]);
    let value = made.op("arith.addf", &[twice, log]);
    assert_eq!(made.log_sum(x, value), None);
    assert_eq!(made.log_sum(x, m), None);
}

#[test]
fn weights_may_be_formed_of_the_logarithm() {
    for maximum in [Maximum::None, Maximum::Plain, Maximum::Finite] {
        let mut made = Made::new();
        let x = scaled_score(&mut made, 0.125);
        let (l, m) = made.sum(x, maximum);
        let log = made.op("math.log", &[l]);
        let sum = m.map_or(log, |m| made.op("arith.addf", &[m, log]));
        let z = made.op("arith.subf", &[x, sum]);
        let p = made.op("math.exp", &[z]);
        let result = made.product(p);
        let read = made.read(result).expect("a softmax");
        assert!(
            read.normalized && read.slope == 0.125 && read.scale == 1.0,
            "{maximum:?}"
        );
    }
}

fn scaled_score(made: &mut Made, by: f64) -> Id {
    let by = made.float(by);
    let score = made.score;
    made.op("arith.mulf", &[score, by])
}

#[test]
fn division_is_before_the_product_or_after_it() {
    let mut found = Vec::new();
    for before in [true, false] {
        for safe in [true, false] {
            let mut made = Made::new();
            let x = scaled_score(&mut made, 0.125);
            let e = if safe {
                made.safe(x)
            } else {
                made.op("math.exp", &[x])
            };
            let l = made.fold(Combiner::Add, e);
            let result = if before {
                let p = made.op("arith.divf", &[e, l]);
                made.product(p)
            } else {
                let o = made.product(e);
                made.op("arith.divf", &[o, l])
            };
            let read = made.read(result).expect("a softmax");
            assert_eq!(read.score, made.score);
            found.push((read.slope, read.normalized, read.scale, read.empty_is_zero));
        }
    }
    assert!(
        found.iter().all(|read| *read == (0.125, true, 1.0, false)),
        "{found:?}"
    );
}

#[test]
fn powers_of_two_and_reciprocals_are_the_same() {
    let mut made = Made::new();
    let x = scaled_score(&mut made, 0.5 * std::f64::consts::LOG2_E);
    let m = made.fold(Combiner::Max, x);
    let z = made.op("arith.subf", &[x, m]);
    let e = made.op("math.exp2", &[z]);
    let l = made.fold(Combiner::Add, e);
    let one = made.float(1.0);
    let inverse = made.op("arith.divf", &[one, l]);
    let p = made.op("arith.mulf", &[e, inverse]);
    let result = made.product(p);
    let read = made.read(result).expect("a softmax");
    assert!((read.slope - 0.5).abs() < 1e-12 && read.normalized);
}

#[test]
fn a_maximum_of_scores_before_their_scale_is_theirs() {
    // exp2(c s - c max s), as kernels by hand have it; not divided.
    let mut made = Made::new();
    let (score, c) = (made.score, made.float(0.25));
    let m = made.fold(Combiner::Max, score);
    let (x, y) = (
        made.op("arith.mulf", &[score, c]),
        made.op("arith.mulf", &[m, c]),
    );
    let z = made.op("arith.subf", &[x, y]);
    let e = made.op("math.exp2", &[z]);
    let result = made.product(e);
    let read = made.read(result).expect("weights");
    assert!(!read.normalized && (read.slope - 0.25 * LN_2).abs() < 1e-12 && read.scale == 1.0);
}

#[test]
fn biases_of_zero_and_minus_infinity_choose() {
    let mut made = Made::new();
    let seen = made.terms.add(Term::Input(0), Scalar::Int(1));
    let (zero, none) = (made.float(0.0), made.float(f64::NEG_INFINITY));
    let bias = made.op("arith.select", &[seen, zero, none]);
    let x = scaled_score(&mut made, 0.125);
    let x = made.op("arith.addf", &[x, bias]);
    let e = made.safe(x);
    let l = made.fold(Combiner::Add, e);
    let p = made.op("arith.divf", &[e, l]);
    // Rows whose keys are all hidden are 0.
    let hidden = made
        .terms
        .apply("arith.cmpf", Some(1), &[x, none], Scalar::Int(1));
    let all = made.fold(Combiner::And, hidden);
    let p = made.op("arith.select", &[all, zero, p]);
    let result = made.product(p);
    let read = made.read(result).expect("a softmax");
    let score = made.score;
    let masked = made.op("arith.select", &[seen, score, none]);
    assert_eq!(
        (read.score, read.slope, read.empty_is_zero),
        (masked, 0.125, true)
    );
}

#[test]
fn other_biases_stay_with_the_score() {
    let mut made = Made::new();
    let bias = made.terms.add(Term::Input(0), Scalar::Float);
    let x = scaled_score(&mut made, 0.125);
    let sum = made.op("arith.addf", &[x, bias]);
    let e = made.safe(sum);
    let l = made.fold(Combiner::Add, e);
    let p = made.op("arith.divf", &[e, l]);
    let result = made.product(p);
    let read = made.read(result).expect("a softmax");
    assert_eq!(
        (
            read.slope,
            made.terms
                .any(read.score, true, &|term| *term == Term::Input(0))
        ),
        (1.0, true)
    );
}

#[test]
fn values_of_a_problem_are_factors_of_results() {
    let mut made = Made::new();
    let [of_scores, of_results, of_weights] =
        [0, 1, 2].map(|number| made.terms.add(Term::Value(number), Scalar::Float));
    let score = made.score;
    let x = made.op("arith.mulf", &[score, of_scores]);
    let e = made.safe(x);
    let l = made.fold(Combiner::Add, e);
    let p = made.op("arith.divf", &[e, l]);
    let p = made.op("arith.mulf", &[p, of_weights]);
    let product = made.product(p);
    let double = made.float(2.0);
    let factor = made.op("arith.mulf", &[double, of_results]);
    let result = made.op("arith.divf", &[product, factor]);
    let read = made.read(result).expect("a softmax");
    let value = |number, divides| Value { number, divides };
    assert_eq!(read.values, [value(1, true), value(2, false)]);
    assert_eq!((read.scale, read.score), (0.5, x));
    // What is no factor of all of the result's row is none.
    let key = made.terms.add(Term::Input(3), Scalar::Float);
    let result = made.op("arith.mulf", &[product, key]);
    assert!(made.read(result).is_err());
    // Nor is what a sum alone is multiplied by.
    let own = made.op("arith.mulf", &[e, of_results]);
    let l = made.fold(Combiner::Add, own);
    let p = made.op("arith.divf", &[e, l]);
    let result = made.product(p);
    assert!(made.read(result).is_err());
}

#[test]
fn what_is_no_softmax_says_why() {
    // Divided by the sum of other weights.
    let mut made = Made::new();
    let x = scaled_score(&mut made, 0.125);
    let (e, other) = (made.safe(x), made.score);
    let other = made.op("math.exp", &[other]);
    let l = made.fold(Combiner::Add, other);
    let p = made.op("arith.divf", &[e, l]);
    let result = made.product(p);
    assert_eq!(
        made.read(result),
        Err("a row is divided by the sum of other weights".to_owned())
    );
    // A maximum of something else.
    let mut made = Made::new();
    let y = made.terms.add(Term::Input(0), Scalar::Float);
    let (m, score) = (made.fold(Combiner::Max, y), made.score);
    let z = made.op("arith.subf", &[score, m]);
    let e = made.op("math.exp", &[z]);
    let l = made.fold(Combiner::Add, e);
    let result = made.product(e);
    assert_eq!(
        made.read(result),
        Err("a maximum is not that of the scores".to_owned())
    );
    let _ = l;
    // Weights that nothing keeps from growing.
    let mut made = Made::new();
    let score = made.score;
    let e = made.op("math.exp", &[score]);
    let result = made.product(e);
    assert_eq!(
        made.read(result),
        Err("its weights grow with the maximum of their row".to_owned())
    );
    // No exponential.
    let mut made = Made::new();
    let score = made.score;
    let e = made.op("math.tanh", &[score]);
    let result = made.product(e);
    assert_eq!(
        made.read(result),
        Err("'math.tanh' of its weights is no factor of a row".to_owned())
    );
    // A guard on something else.
    let mut made = Made::new();
    let y = made.terms.add(Term::Input(0), Scalar::Float);
    let (zero, none, score) = (made.float(0.0), made.float(f64::NEG_INFINITY), made.score);
    let hidden = made
        .terms
        .apply("arith.cmpf", Some(1), &[y, none], Scalar::Int(1));
    let all = made.fold(Combiner::And, hidden);
    let e = made.safe(score);
    let p = made.op("arith.select", &[all, zero, e]);
    let result = made.product(p);
    assert_eq!(
        made.read(result),
        Err("it chooses by what is not whether a row's keys are all hidden".to_owned())
    );
}
