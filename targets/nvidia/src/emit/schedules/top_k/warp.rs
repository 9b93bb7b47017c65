//! A warp a row, for short rows. Each lane sorts its elements; then the first of all lanes' first is taken, as often as is asked for.

use super::code::Code;
use super::shape::{LANES, Shape, THREADS};

/// The text of the function.
pub(super) fn text(shape: Shape) -> String {
    let mut code = Code::new(shape);
    let warps = code.i64(THREADS / LANES);
    let lane = code.let_("arith.remui %thread, %c32 : i32");
    let warp = code.let_("arith.divui %thread, %c32 : i32");
    let warp = code.let_(format!("arith.extui {warp} : i32 to i64"));
    let [block, blocks] = ["block_id", "grid_dim"].map(|what| code.along_x(what));
    let first = code.let_(format!("arith.muli {block}, {warps} : i64"));
    let first = code.let_(format!("arith.addi {first}, {warp} : i64"));
    let step = code.let_(format!("arith.muli {blocks}, {warps} : i64"));
    code.for_rows((&first, &step), |code, row| {
        let from = code.row("%x", row, shape.columns, shape.element.storage());
        let mut pairs = load(code, &from, &lane);
        sort(code, &mut pairs);
        let chosen = choose(code, &lane, &pairs);
        for (first, pair) in (0..).step_by(32).zip(&chosen) {
            let first = code.i32(first);
            let place = code.let_(format!("arith.addi {lane}, {first} : i32"));
            let k = code.i32(shape.k);
            let is_one = code.let_(format!("arith.cmpi ult, {place}, {k} : i32"));
            code.when(&is_one, |code| code.write(pair, (&from, row), &place));
        }
    });
    code.finish()
}

/// The pairs of a lane: accesses of neighbouring lanes are neighbours.
fn load(code: &mut Code, from: &str, lane: &str) -> Vec<String> {
    let shape = code.shape;
    let held = shape.held();
    let mut pairs = Vec::new();
    let (vector, mut first) = (code.i32(shape.vector), 0);
    let mine = code.let_(format!("arith.muli {lane}, {vector} : i32"));
    while first < held * LANES {
        let start = code.i32(first);
        let column = code.let_(format!("arith.addi {mine}, {start} : i32"));
        let guarded = first + shape.vector * LANES > shape.columns;
        let loaded = code.load(from, &column, guarded);
        let elements = code.unpacked(&loaded);
        for (at, element) in (0..).zip(elements) {
            let at = code.i32(at);
            let own = code.let_(format!("arith.addi {column}, {at} : i32"));
            pairs.push(code.pair(&element, &own));
        }
        first += shape.vector * LANES;
    }
    pairs
}

/// Sorts a power of two of pairs, the largest first, by Batcher's odd-even merges.
fn sort(code: &mut Code, pairs: &mut [String]) {
    for (a, b) in comparators(pairs.len()) {
        let (x, y) = (pairs[a].clone(), pairs[b].clone());
        let is_less = code.let_(format!("arith.cmpi ult, {x}, {y} : i64"));
        pairs[a] = code.let_(format!("arith.select {is_less}, {y}, {x} : i64"));
        pairs[b] = code.let_(format!("arith.select {is_less}, {x}, {y} : i64"));
    }
}

/// The comparators of Batcher's odd-even merge sort of a power of two (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M).
fn comparators(count: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut p = count / 2;
    while p > 0 {
        let (mut q, mut r, mut d) = (count / 2, 0, p);
        loop {
            found.extend(
                (0..count - d)
                    .filter(|at| at & p == r)
                    .map(|at| (at, at + d)),
            );
            if q == p {
                break;
            }
            (d, q, r) = (q - p, q / 2, p);
        }
        p /= 2;
    }
    found
}

/// The pair of each place, in the lane of that number; a second one for places from 32 on.
fn choose(code: &mut Code, lane: &str, pairs: &[String]) -> Vec<String> {
    let (k, count) = (code.shape.k, pairs.len());
    let outs = if k > LANES { 2 } else { 1 };
    let names: Vec<_> = (0..count + outs).map(|_| code.name()).collect();
    let (own, chosen) = names.split_at(count);
    let results = code.name();
    let (turns, turn) = (code.i32(k), code.name());
    let starts = own
        .iter()
        .zip(pairs)
        .map(|(name, pair)| format!("{name} = {pair}"));
    let starts = starts.chain(chosen.iter().map(|name| format!("{name} = %d0")));
    let starts = starts.collect::<Vec<_>>().join(", ");
    let types = vec!["i64"; names.len()].join(", ");
    code.line(format!(
        "{results}:{} = scf.for {turn} = %c0 to {turns} step %c1 iter_args({starts}) -> ({types}) : i32 {{",
        names.len()
    ));
    let (best, is_own) = first_of_all(code, &own[0]);
    let mut next = Vec::new();
    for at in 0..count {
        let behind = own.get(at + 1).map_or("%d0", String::as_str).to_owned();
        let stays = &own[at];
        next.push(code.let_(format!("arith.select {is_own}, {behind}, {stays} : i64")));
    }
    for (first, held) in (0..).step_by(32).zip(chosen) {
        let first = code.i32(first);
        let place = code.let_(format!("arith.addi {lane}, {first} : i32"));
        let is_here = code.let_(format!("arith.cmpi eq, {place}, {turn} : i32"));
        next.push(code.let_(format!("arith.select {is_here}, {best}, {held} : i64")));
    }
    code.line(format!("scf.yield {} : {types}\n}}", next.join(", ")));
    (count..count + outs)
        .map(|at| format!("{results}#{at}"))
        .collect()
}

/// The largest pair of all lanes, and whether it is this lane's: the largest key, then the largest low half beside it.
fn first_of_all(code: &mut Code, pair: &str) -> (String, String) {
    let high = code.let_(format!("arith.shrui {pair}, %d32 : i64"));
    let high = code.let_(format!("arith.trunci {high} : i64 to i32"));
    let low = code.let_(format!("arith.trunci {pair} : i64 to i32"));
    let key = code.of_warp("umax", &high);
    let equal = code.let_(format!("arith.cmpi eq, {high}, {key} : i32"));
    let low = code.let_(format!("arith.select {equal}, {low}, %c0 : i32"));
    let inverse = code.of_warp("umax", &low);
    let is_own = code.let_(format!("arith.cmpi eq, {low}, {inverse} : i32"));
    let key = code.let_(format!("arith.extui {key} : i32 to i64"));
    let key = code.let_(format!("arith.shli {key}, %d32 : i64"));
    let inverse = code.let_(format!("arith.extui {inverse} : i32 to i64"));
    let best = code.let_(format!("arith.ori {key}, {inverse} : i64"));
    (best, is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sorts all sequences of zeros and ones sorts all sequences (Knuth, 5.3.4, theorem Z).
    #[test]
    fn comparators_sort() {
        for count in [1, 2, 4, 8, 16] {
            let network = comparators(count);
            for bits in 0..1_u32 << count {
                let mut values: Vec<_> = (0..count).map(|at| bits >> at & 1).collect();
                for &(a, b) in &network {
                    assert!(a < b && b < count);
                    if values[a] < values[b] {
                        values.swap(a, b);
                    }
                }
                assert!(values.is_sorted_by(|a, b| a >= b), "{count} {bits:b}");
            }
        }
        assert_eq!(comparators(16).len(), 63);
    }
}
