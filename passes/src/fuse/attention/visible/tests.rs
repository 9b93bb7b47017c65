//! Tests of what indices and lengths say of keys.

use super::super::index::Var;
use super::super::term::{Label, Scalar};
use super::*;

/// The value of a condition of indices.
fn value(terms: &Terms, id: Id, row: i64, key: i64) -> i64 {
    match terms.get(id) {
        Term::Int(value) => *value,
        Term::Index(Var::Row) => row,
        Term::Index(_) => key,
        Term::Apply(name, predicate, operands) => {
            let of: Vec<_> = operands
                .iter()
                .map(|id| value(terms, *id, row, key))
                .collect();
            match (name.as_str(), of.as_slice()) {
                ("arith.addi", [a, b]) => a + b,
                ("arith.subi", [a, b]) => a - b,
                ("arith.andi", [a, b]) => a & b,
                ("arith.ori", [a, b]) => a | b,
                ("arith.xori", [a, b]) => a ^ b,
                ("arith.cmpi", [a, b]) => i64::from(match predicate {
                    Some(2) => a < b,
                    Some(3) => a <= b,
                    Some(4) => a > b,
                    _ => a >= b,
                }),
                _ => unreachable!("{name}"),
            }
        }
        other => unreachable!("{other:?}"),
    }
}

/// Whether a key is seen that the analysis has outside of some, and whether one is hidden that it has in all.
fn check(terms: &Terms, condition: Id, hidden_where_it_holds: bool) {
    let mut terms = terms.clone();
    let score = terms.add(Term::Score, Scalar::Float);
    let hidden = terms.float(f64::NEG_INFINITY);
    let (a, b) = if hidden_where_it_holds {
        (hidden, score)
    } else {
        (score, hidden)
    };
    let masked = terms.apply("arith.select", None, &[condition, a, b], Scalar::Float);
    let (rows, keys) = (13, 17);
    let found = visible(&terms, masked, [rows, keys], &Symbols::default());
    assert!(!found.is_all());
    assert_eq!(bare(&mut terms, masked), score);
    for first in 0..rows {
        for count in 1..=rows - first {
            let some = found.some(first, count, keys);
            let all = found.all(first, count, keys);
            for key in 0..keys {
                let sees = |row| (value(&terms, condition, row, key) == 1) != hidden_where_it_holds;
                let (any, every) = (
                    (first..first + count).any(sees),
                    (first..first + count).all(sees),
                );
                assert!(
                    !any || (some[0]..some[1]).contains(&key),
                    "{first} {count} {key}"
                );
                assert!(
                    every || !(all[0]..all[1]).contains(&key),
                    "{first} {count} {key}"
                );
            }
        }
    }
}

#[test]
fn comparisons_bound_what_rows_see() {
    for predicate in [2, 3, 4, 5] {
        for offset in [-3, 0, 4] {
            for by_key in [false, true] {
                let mut terms = Terms::default();
                let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
                let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
                let offset = terms.int(offset, 64);
                let moved = terms.apply("arith.addi", None, &[row, offset], Scalar::Int(64));
                let pair = if by_key { [key, moved] } else { [moved, key] };
                let condition = terms.apply("arith.cmpi", Some(predicate), &pair, Scalar::Int(1));
                check(&terms, condition, false);
                check(&terms, condition, true);
            }
        }
    }
}

#[test]
fn a_window_has_both_edges() {
    let mut terms = Terms::default();
    let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
    let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
    let behind = terms.apply("arith.subi", None, &[row, key], Scalar::Int(64));
    let (zero, width) = (terms.int(0, 64), terms.int(5, 64));
    let causal = terms.apply("arith.cmpi", Some(5), &[behind, zero], Scalar::Int(1));
    let near = terms.apply("arith.cmpi", Some(2), &[behind, width], Scalar::Int(1));
    let both = terms.apply("arith.andi", None, &[causal, near], Scalar::Int(1));
    check(&terms, both, false);
    let one = terms.int(1, 1);
    let neither = terms.apply("arith.xori", None, &[both, one], Scalar::Int(1));
    check(&terms, neither, true);
    let score = terms.add(Term::Score, Scalar::Float);
    let hidden = terms.float(f64::NEG_INFINITY);
    let masked = terms.apply("arith.select", None, &[both, score, hidden], Scalar::Float);
    for (rows, keys, from) in [
        (9, 9, vec![Edge::of(1, -4)]),
        (6, 9, vec![Edge::of(1, -4)]),
        (5, 5, vec![]),
    ] {
        let found = visible(&terms, masked, [rows, keys], &Symbols::default());
        assert_eq!(found.to, [Edge::of(1, 1)]);
        assert_eq!(found.from, from, "{rows} rows");
    }
    let found = visible(&terms, masked, [1, 1], &Symbols::default());
    assert!(found.is_all());
}

#[test]
fn lengths_are_edges_of_keys_and_of_rows() {
    let mut terms = Terms::default();
    let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
    let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
    let length = terms.add(Term::Length(0), Scalar::Int(32));
    let length = terms.apply("arith.extsi", None, &[length], Scalar::Int(64));
    let (three, one) = (terms.int(3, 64), terms.int(1, 1));
    let behind = terms.apply("arith.subi", None, &[length, three], Scalar::Int(64));
    let moved = terms.apply("arith.addi", None, &[row, behind], Scalar::Int(64));
    for predicate in [2, 3, 4, 5] {
        for (a, b) in [
            (key, length),
            (behind, key),
            (moved, key),
            (row, length),
            (key, moved),
        ] {
            let condition = terms.apply("arith.cmpi", Some(predicate), &[a, b], Scalar::Int(1));
            let fails = terms.apply("arith.xori", None, &[condition, one], Scalar::Int(1));
            for (condition, holding) in [(condition, true), (fails, false)] {
                let mut found = Visible::default();
                holds(&terms, condition, &mut found);
                assert_eq!(found.edges().count(), 1);
                assert!(found.has_lengths() && is_said(&terms, condition, true));
                for (length, row, key) in
                    (-4..9).flat_map(|n| (0..5).flat_map(move |r| (0..9).map(move |k| (n, r, k))))
                {
                    let of = |id: Id| match id {
                        _ if id == row_of(&terms) => row,
                        _ if id == key_of(&terms) => key,
                        _ if id == behind => length - 3,
                        _ if id == moved => row + length - 3,
                        _ => length,
                    };
                    let (a, b) = (of(a), of(b));
                    let is = match predicate {
                        2 => a < b,
                        3 => a <= b,
                        4 => a > b,
                        _ => a >= b,
                    };
                    let at = |edge: &Edge| {
                        edge.over(row, 1)[0] + edge.length.map_or(0, |own| own.factor * length)
                    };
                    let seen = found.from.iter().all(|edge| at(edge) <= key)
                        && found.to.iter().all(|edge| key < at(edge))
                        && found.rows.iter().all(|edge| at(edge) >= 0);
                    assert_eq!(seen, is == holding, "{predicate} {length} {row} {key}");
                }
            }
        }
    }
}

fn row_of(terms: &Terms) -> Id {
    index_of(terms, Var::Row)
}

fn key_of(terms: &Terms) -> Id {
    index_of(terms, Var::Key)
}

/// The number of an index that is there.
fn index_of(terms: &Terms, var: Var) -> Id {
    terms.clone().add(Term::Index(var), Scalar::Int(64))
}

#[test]
fn low_numbers_hide_keys_where_each_row_sees_one() {
    for (offset, number) in [(0, f64::NEG_INFINITY), (3, f64::NEG_INFINITY), (-1, HIDDEN)] {
        let mut terms = Terms::default();
        let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
        let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
        let offset = terms.int(offset, 64);
        let moved = terms.apply("arith.addi", None, &[row, offset], Scalar::Int(64));
        let condition = terms.apply("arith.cmpi", Some(5), &[moved, key], Scalar::Int(1));
        let score = terms.add(Term::Score, Scalar::Float);
        let (low, none) = (terms.float(-2.4e38), terms.float(number));
        let by = |terms: &mut Terms, hidden| {
            terms.apply(
                "arith.select",
                None,
                &[condition, score, hidden],
                Scalar::Float,
            )
        };
        let (given, expected) = (by(&mut terms, low), by(&mut terms, none));
        assert_eq!(
            with_infinity(&mut terms, given, [9, 5], &Symbols::default()),
            expected
        );
    }
}

/// A score that is hidden by a number where labels differ, of which rows and keys have one in common or not.
fn by_labels(terms: &mut Terms, shared: bool, hidden: f64) -> Id {
    let of = |var, number, class| Term::Label(Label { var, number, class });
    let row = terms.add(of(Var::Row, 0, 0), Scalar::Int(32));
    let key = terms.add(of(Var::Key, 1, usize::from(!shared)), Scalar::Int(32));
    let score = terms.add(Term::Score, Scalar::Float);
    let differ = terms.apply("arith.cmpi", Some(1), &[key, row], Scalar::Int(1));
    let hidden = terms.float(hidden);
    terms.apply(
        "arith.select",
        None,
        &[differ, hidden, score],
        Scalar::Float,
    )
}

#[test]
fn labels_that_differ_hide_keys() {
    let mut terms = Terms::default();
    let masked = by_labels(&mut terms, false, f64::NEG_INFINITY);
    let found = visible(&terms, masked, [9, 9], &Symbols::default());
    assert_eq!(found.segments, [Segments { rows: 0, keys: 1 }]);
    assert!(!found.is_all() && found.edges().next().is_none());
    // Of labels it is known where they are, not what they are.
    assert_eq!(found.some(0, 5, 100), [0, 100]);
    assert_eq!(found.all(0, 5, 100), [0, 0]);
    let score = bare(&mut terms, masked);
    assert_eq!(*terms.get(score), Term::Score);
}

#[test]
fn low_numbers_hide_keys_of_other_labels_where_a_row_has_its_keys() {
    for (shared, keys, expected) in [
        (true, 9, f64::NEG_INFINITY),
        (true, 8, HIDDEN),
        (false, 9, HIDDEN),
    ] {
        let mut terms = Terms::default();
        let given = by_labels(&mut terms, shared, -2.4e38);
        let own = with_infinity(&mut terms, given, [9, keys], &Symbols::default());
        assert_eq!(own, by_labels(&mut terms, shared, expected));
        // A row that may see no key has all of them then: labels bound nothing.
        let found = visible(&terms, own, [9, keys], &Symbols::default());
        assert_eq!(found.segments.is_empty(), expected == HIDDEN);
    }
}

#[test]
fn masks_together_leave_each_row_a_key() {
    for (shared, behind, expected) in [(true, 0, true), (false, 0, false), (true, 1, false)] {
        let mut terms = Terms::default();
        let by_label = by_labels(&mut terms, shared, f64::NEG_INFINITY);
        let [row, key] =
            [Var::Row, Var::Key].map(|var| terms.add(Term::Index(var), Scalar::Int(64)));
        let behind = terms.int(behind, 64);
        let first = terms.apply("arith.addi", None, &[key, behind], Scalar::Int(64));
        let seen = terms.apply("arith.cmpi", Some(5), &[row, first], Scalar::Int(1));
        let none = terms.float(f64::NEG_INFINITY);
        let both = [seen, by_label, none];
        let both = terms.apply("arith.select", None, &both, Scalar::Float);
        assert_eq!(sees_some(&terms, both, [9, 9]), expected);
        // Of a bias nothing is known.
        let bias = terms.add(Term::Input(7), Scalar::Float);
        let more = terms.apply("arith.addf", None, &[both, bias], Scalar::Float);
        assert!(!sees_some(&terms, more, [9, 9]));
    }
}

#[test]
fn edges_that_leave_each_row_a_key_do_so_of_any_lengths() {
    let edges = |all: &[(i64, i64)]| {
        all.iter()
            .map(|(per_row, start)| Edge::of(*per_row, *start))
            .collect::<Vec<_>>()
    };
    let choices: &[&[(i64, i64)]] = &[
        &[],
        &[(0, 0)],
        &[(0, 5)],
        &[(1, -9)],
        &[(1, 0)],
        &[(1, 3)],
        &[(-1, 0)],
        &[(-1, 7)],
        &[(1, 1)],
        &[(1, 1), (0, 4)],
    ];
    for (from, to) in choices
        .iter()
        .flat_map(|from| choices.iter().map(move |to| (from, to)))
    {
        let visible = Visible {
            from: edges(from),
            to: edges(to),
            ..Visible::default()
        };
        for square in [false, true] {
            if !visible.leaves_any(square) {
                continue;
            }
            let lengths = 1i64..24;
            for (rows, keys) in lengths
                .clone()
                .flat_map(|a| lengths.clone().map(move |b| (a, b)))
            {
                if square && rows != keys {
                    continue;
                }
                for row in 0..rows {
                    let [first, end] = visible.some(row, 1, keys);
                    assert!(first < end, "{visible:?} {rows} {keys} {row}");
                }
            }
        }
    }
    let causal = Visible {
        to: edges(&[(1, 1)]),
        ..Visible::default()
    };
    assert!(causal.leaves_any(false));
}
