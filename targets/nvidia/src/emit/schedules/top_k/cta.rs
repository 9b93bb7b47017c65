//! A CTA a row, for long rows, which are read once, chunk by chunk. Shared memory keeps the elements that may be chosen: those that are not
//! below a *bound*, of which at least `k` that were read are not below.
//!
//! A bound is found of the threads' largest elements of a chunk: the `k`-th largest of those. At most `k` threads have elements that are
//! not below it, so that no more than `k` times what a thread holds are kept, whatever the row has; of elements in random order about
//! `k` are. Where a later chunk would keep more than there is room for, or what is kept fills up, a bound is found again: of the
//! chunk, or of what is kept.

use super::code::Code;
use super::shape::{LANES, Shape, THREADS};

/// Elements of a thread that are kept: `k` of each of them, after a bound is found, beside those of a chunk are fewer.
const KEPT: i64 = 6;
/// Pairs that are kept.
const ROOM: i64 = KEPT * THREADS;
/// Pairs that are few enough to be put in order at once.
const FEW: i64 = 128;
/// Bytes of a pair.
const PAIR_BYTES: i64 = 8;

/// Bytes of shared memory: what is kept, the threads' largest pairs, the bound, and how many are kept.
pub(super) const SHARED_BYTES: i64 = (ROOM + THREADS + 2) * PAIR_BYTES;

/// The text of the function.
pub(super) fn text(shape: Shape) -> String {
    let mut code = Code::new(shape);
    let [block, blocks] = ["block_id", "grid_dim"].map(|what| code.along_x(what));
    let largest = code.i64(ROOM);
    let largest = code.at("%shared", 3, &largest, "i64");
    let bound = code.i64(ROOM + THREADS);
    let bound = code.at("%shared", 3, &bound, "i64");
    let count = code.i64(ROOM + THREADS + 1);
    let count = code.at("%shared", 3, &count, "i64");
    let wide = code.let_("arith.extui %thread : i32 to i64");
    let own = code.at(&largest, 3, &wide, "i64");
    let vector = code.i32(shape.vector);
    let mine = code.let_(format!("arith.muli %thread, {vector} : i32"));
    let places = Places {
        own,
        bound,
        count,
        mine,
    };
    code.for_rows((&block, &blocks), |code, row| {
        let from = code.row("%x", row, shape.columns, shape.element.storage());
        let state = places.row(code, &from);
        let few = code.i32(FEW);
        let many = code.let_(format!("arith.cmpi ugt, {}, {few} : i32", state.count));
        let state = places.either(code, &many, &state, |code| places.compact(code, &state));
        places.put_in_order(code, &state, (&from, row));
    });
    code.finish()
}

/// Where things are in shared memory.
struct Places {
    /// This thread's largest pair.
    own: String,
    bound: String,
    count: String,
    /// The first column of this thread.
    mine: String,
}

/// What all threads know: the bound, and how many pairs are kept.
#[derive(Clone)]
struct State {
    bound: String,
    count: String,
}

impl Places {
    /// Goes through a row.
    fn row(&self, code: &mut Code, from: &str) -> State {
        let shape = code.shape;
        let (chunk, columns) = (shape.chunk(), shape.columns);
        self.by_first(code, |code| {
            code.line(format!(
                "llvm.store %c0, {} : i32, !llvm.ptr<3>",
                self.count
            ));
        });
        barrier(code);
        let own = self.load(code, from, "%c0", chunk > columns);
        let next = match columns > chunk && shape.loads_ahead() {
            true => {
                let second = code.i32(chunk);
                self.load(code, from, &second, columns % chunk != 0)
            }
            false => Vec::new(),
        };
        let held = self.unpacked(code, &own, "%c0");
        let pairs = pairs(code, &held);
        let first = self.tighten(code, &pairs, ("%d1", "%c0"));
        match columns > chunk {
            true => self.chunks(code, from, &first, &next),
            false => first,
        }
    }

    /// The chunks behind the first; where the first of them is loaded already, each is while the one before is gone through.
    fn chunks(&self, code: &mut Code, from: &str, first: &State, loaded: &[String]) -> State {
        let (step, end) = (code.i32(code.shape.chunk()), code.i32(code.shape.columns));
        let [start, bound, kept, results] = std::array::from_fn(|_| code.name());
        let own: Vec<_> = loaded.iter().map(|_| code.name()).collect();
        let types = format!(
            "i64, i32{}",
            format!(", {}", code.access_type()).repeat(own.len())
        );
        let given = own
            .iter()
            .zip(loaded)
            .map(|(own, loaded)| format!(", {own} = {loaded}"));
        code.line(format!(
            "{results}:{} = scf.for {start} = {step} to {end} step {step} iter_args({bound} = {}, {kept} = {}{}) -> ({types}) : i32 {{",
            own.len() + 2,
            first.bound,
            first.count,
            given.collect::<String>(),
        ));
        let shape = code.shape;
        let (own, next) = if shape.loads_ahead() {
            let behind = code.let_(format!("arith.addi {start}, {step} : i32"));
            (own, self.load(code, from, &behind, true))
        } else {
            let guarded = shape.columns % shape.chunk() != 0;
            (self.load(code, from, &start, guarded), own)
        };
        let held = self.unpacked(code, &own, &start);
        let state = State { bound, count: kept };
        let state = self.chunk(code, &held, &state);
        let all = [vec![state.bound, state.count], next].concat();
        code.line(format!("scf.yield {} : {types}\n}}", all.join(", ")));
        both(&results)
    }

    /// A chunk behind the first: keeps what is not below the bound.
    fn chunk(&self, code: &mut Code, held: &[Held], state: &State) -> State {
        let least = code.element_of(&state.bound);
        let mut passing = Vec::new();
        for own in held {
            passing.push(code.before(&own.element, &least));
        }
        let any = any_of(code, &passing);
        code.when(&any, |code| {
            for (own, passes) in held.iter().zip(&passing) {
                code.when(passes, |code| {
                    let pair = own.pair(code);
                    self.keep(code, &pair, &state.bound);
                });
            }
        });
        let count = self.counted(code);
        let room = code.i32(ROOM);
        let over = code.let_(format!("arith.cmpi ugt, {count}, {room} : i32"));
        let now = State {
            bound: state.bound.clone(),
            count,
        };
        let now = self.either(code, &over, &now, |code| {
            let pairs = pairs(code, held);
            self.tighten(code, &pairs, (&state.bound, &state.count))
        });
        let most = code.i32(ROOM - code.shape.k * code.shape.held());
        let full = code.let_(format!("arith.cmpi ugt, {}, {most} : i32", now.count));
        self.either(code, &full, &now, |code| self.compact(code, &now))
    }

    /// Finds a bound of this thread's pairs, which is not below one that is known, and keeps those that are not below it beside so many.
    fn tighten(&self, code: &mut Code, pairs: &[String], (bound, kept): (&str, &str)) -> State {
        let largest = code.largest(pairs, "i64");
        let found = self.kth(code, &largest, kept);
        let bound = code.let_(format!("arith.maxui {found}, {bound} : i64"));
        for pair in pairs {
            self.keep(code, pair, &bound);
        }
        let count = self.counted(code);
        State { bound, count }
    }

    /// `then` where a condition holds that all threads have, else what is.
    fn either(
        &self,
        code: &mut Code,
        condition: &str,
        state: &State,
        then: impl FnOnce(&mut Code) -> State,
    ) -> State {
        let results = code.name();
        code.line(format!("{results}:2 = scf.if {condition} -> (i64, i32) {{"));
        let made = then(code);
        yielded(code, &made);
        code.line("} else {");
        yielded(code, state);
        code.line("}");
        both(&results)
    }

    /// The first columns of this thread's accesses of a chunk.
    fn columns(&self, code: &mut Code, start: &str) -> Vec<String> {
        let Shape { vector, .. } = code.shape;
        let first = code.let_(format!("arith.addi {start}, {} : i32", self.mine));
        let accesses = 0..code.shape.held() / vector;
        let column = |access| {
            let before = code.i32(access * vector * THREADS);
            code.let_(format!("arith.addi {first}, {before} : i32"))
        };
        accesses.map(column).collect()
    }

    /// This thread's accesses of a chunk.
    fn load(&self, code: &mut Code, from: &str, start: &str, guarded: bool) -> Vec<String> {
        let columns = self.columns(code, start).into_iter();
        columns
            .map(|column| code.load(from, &column, guarded))
            .collect()
    }

    /// This thread's elements of a chunk.
    fn unpacked(&self, code: &mut Code, loaded: &[String], start: &str) -> Vec<Held> {
        let columns = self.columns(code, start);
        let mut held = Vec::new();
        for (column, loaded) in columns.into_iter().zip(loaded) {
            let elements = code.unpacked(loaded).into_iter();
            held.extend((0..).zip(elements).map(|(offset, element)| Held {
                element,
                column: column.clone(),
                offset,
            }));
        }
        held
    }

    /// Keeps a pair that is not below a bound.
    fn keep(&self, code: &mut Code, pair: &str, bound: &str) {
        let stays = code.let_(format!("arith.cmpi uge, {pair}, {bound} : i64"));
        code.when(&stays, |code| {
            let place = code.let_(format!(
                "llvm.atomicrmw add {}, %c1 monotonic : !llvm.ptr<3>, i32",
                self.count
            ));
            let room = code.i32(ROOM);
            let fits = code.let_(format!("arith.cmpi ult, {place}, {room} : i32"));
            code.when(&fits, |code| {
                let to = place_of(code, &place);
                code.line(format!("llvm.store {pair}, {to} : i64, !llvm.ptr<3>"));
            });
        });
    }

    /// How many pairs all threads kept.
    fn counted(&self, code: &mut Code) -> String {
        barrier(code);
        let count = code.let_(format!("llvm.load {} : !llvm.ptr<3> -> i32", self.count));
        barrier(code);
        count
    }

    /// Finds a bound of what is kept, and keeps what is not below it.
    fn compact(&self, code: &mut Code, state: &State) -> State {
        let mut pairs = Vec::new();
        for part in 0..KEPT {
            let first = code.i32(part * THREADS);
            let place = code.let_(format!("arith.addi %thread, {first} : i32"));
            let inside = code.let_(format!("arith.cmpi ult, {place}, {} : i32", state.count));
            let pair = code.name();
            code.line(format!("{pair} = scf.if {inside} -> (i64) {{"));
            let from = place_of(code, &place);
            let there = code.let_(format!("llvm.load {from} : !llvm.ptr<3> -> i64"));
            code.line(format!(
                "scf.yield {there} : i64\n}} else {{\nscf.yield %d0 : i64\n}}"
            ));
            pairs.push(pair);
        }
        self.tighten(code, &pairs, (&state.bound, "%c0"))
    }

    /// A number that as many of the threads' pairs as are chosen are not below; sets how many are kept.
    fn kth(&self, code: &mut Code, pair: &str, kept: &str) -> String {
        code.line(format!(
            "llvm.store {pair}, {} : i64, !llvm.ptr<3>",
            self.own
        ));
        barrier(code);
        let is_first_warp = code.let_("arith.cmpi ult, %thread, %c32 : i32");
        code.when(&is_first_warp, |code| {
            let found = self.search(code);
            self.by_first(code, |code| {
                let Self { bound, count, .. } = self;
                code.line(format!("llvm.store {found}, {bound} : i64, !llvm.ptr<3>"));
                code.line(format!("llvm.store {kept}, {count} : i32, !llvm.ptr<3>"));
            });
        });
        barrier(code);
        code.let_(format!("llvm.load {} : !llvm.ptr<3> -> i64", self.bound))
    }

    /// The first warp's search: bit by bit, from the top, the largest number that enough pairs are not below; it ends where that many are.
    fn search(&self, code: &mut Code) -> String {
        let k = code.i32(code.shape.k);
        let pairs: Vec<_> = (0..THREADS / LANES)
            .map(|part| {
                let place = code.i64(part * LANES);
                let from = code.at(&self.own, 3, &place, "i64");
                code.let_(format!("llvm.load {from} : !llvm.ptr<3> -> i64"))
            })
            .collect();
        let [results, a, b, c] = std::array::from_fn(|_| code.name());
        code.line(format!(
            "{results}:3 = scf.while ({a} = %d0, {b} = %dtop, {c} = %c0) : (i64, i64, i32) -> (i64, i64, i32) {{"
        ));
        let more = code.let_(format!("arith.cmpi ne, {b}, %d0 : i64"));
        let other = code.let_(format!("arith.cmpi ne, {c}, {k} : i32"));
        let goes_on = code.let_(format!("arith.andi {more}, {other} : i1"));
        code.line(format!(
            "scf.condition({goes_on}) {a}, {b}, {c} : i64, i64, i32\n}} do {{"
        ));
        let [found, bit, above] = std::array::from_fn(|_| code.name());
        code.line(format!("^bb0({found}: i64, {bit}: i64, {above}: i32):"));
        let trial = code.let_(format!("arith.ori {found}, {bit} : i64"));
        let mut total = "%c0".to_owned();
        for pair in &pairs {
            let stays = code.let_(format!("arith.cmpi uge, {pair}, {trial} : i64"));
            let one = code.let_(format!("arith.extui {stays} : i1 to i32"));
            total = code.let_(format!("arith.addi {total}, {one} : i32"));
        }
        let total = code.of_warp("add", &total);
        let enough = code.let_(format!("arith.cmpi uge, {total}, {k} : i32"));
        let found = code.let_(format!("arith.select {enough}, {trial}, {found} : i64"));
        let above = code.let_(format!("arith.select {enough}, {total}, {above} : i32"));
        let bit = code.let_(format!("arith.shrui {bit}, %d1 : i64"));
        code.line(format!(
            "scf.yield {found}, {bit}, {above} : i64, i64, i32\n}}"
        ));
        format!("{results}#0")
    }

    /// Writes the first of what is kept, each to the place that is the number of those before it.
    fn put_in_order(&self, code: &mut Code, state: &State, row: (&str, &str)) {
        let most = FEW.max(code.shape.k * KEPT);
        for part in 0..(most + THREADS - 1) / THREADS {
            let first = code.i32(part * THREADS);
            let own = code.let_(format!("arith.addi %thread, {first} : i32"));
            let is_one = code.let_(format!("arith.cmpi ult, {own}, {} : i32", state.count));
            code.when(&is_one, |code| {
                let from = place_of(code, &own);
                let pair = code.let_(format!("llvm.load {from} : !llvm.ptr<3> -> i64"));
                let [rank, other, before] = std::array::from_fn(|_| code.name());
                code.line(format!(
                    "{rank} = scf.for {other} = %c0 to {} step %c1 iter_args({before} = %c0) -> (i32) : i32 {{",
                    state.count
                ));
                let from = place_of(code, &other);
                let it = code.let_(format!("llvm.load {from} : !llvm.ptr<3> -> i64"));
                let is_before = code.let_(format!("arith.cmpi ugt, {it}, {pair} : i64"));
                let one = code.let_(format!("arith.extui {is_before} : i1 to i32"));
                let sum = code.let_(format!("arith.addi {before}, {one} : i32"));
                code.line(format!("scf.yield {sum} : i32\n}}"));
                let k = code.i32(code.shape.k);
                let is_chosen = code.let_(format!("arith.cmpi ult, {rank}, {k} : i32"));
                code.when(&is_chosen, |code| code.write(&pair, row, &rank));
            });
        }
    }

    /// What the first thread does.
    fn by_first(&self, code: &mut Code, body: impl FnOnce(&mut Code)) {
        let is_first = code.let_("arith.cmpi eq, %thread, %c0 : i32");
        code.when(&is_first, body);
    }
}

/// An element of a thread, so many columns behind the first of its access.
struct Held {
    element: String,
    column: String,
    offset: i64,
}

impl Held {
    fn pair(&self, code: &mut Code) -> String {
        let offset = code.i32(self.offset);
        let column = code.let_(format!("arith.addi {}, {offset} : i32", self.column));
        code.pair(&self.element, &column)
    }
}

/// The pairs of all elements.
fn pairs(code: &mut Code, held: &[Held]) -> Vec<String> {
    held.iter().map(|own| own.pair(code)).collect()
}

/// Whether one of them holds.
fn any_of(code: &mut Code, all: &[String]) -> String {
    let mut any = all.first().cloned().unwrap_or_default();
    for other in all.iter().skip(1) {
        any = code.let_(format!("arith.ori {any}, {other} : i1"));
    }
    any
}

/// The place of a pair that is kept (32 bits).
fn place_of(code: &mut Code, place: &str) -> String {
    let wide = code.let_(format!("arith.extui {place} : i32 to i64"));
    code.at("%shared", 3, &wide, "i64")
}

fn barrier(code: &mut Code) {
    code.line("nvvm.barrier0");
}

fn yielded(code: &mut Code, state: &State) {
    code.line(format!(
        "scf.yield {}, {} : i64, i32",
        state.bound, state.count
    ));
}

fn both(results: &str) -> State {
    State {
        bound: format!("{results}#0"),
        count: format!("{results}#1"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Element, MOST_CHOSEN};
    use super::*;

    /// What is kept after a bound is found, and what a chunk adds once one is found of it, has room.
    #[test]
    fn there_is_room() {
        for k in 1..=MOST_CHOSEN {
            let shape = Shape {
                element: Element::F32,
                index_bits: 32,
                columns: 1 << 18,
                k,
                smallest: false,
                vector: 4,
            };
            let before_a_chunk = ROOM - k * shape.held();
            assert!(KEPT * k <= before_a_chunk && k <= THREADS, "{k}");
        }
    }
}
