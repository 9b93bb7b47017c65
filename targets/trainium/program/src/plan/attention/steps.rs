//! A kernel of attention: the items of its schedule as instructions, in loops over heads, steps of 512 queries, and blocks of
//! keys.

use super::buffers::{BLOCK, Buffers, TILES};
use super::loops::{Node, loops};
use super::schedule::{Chunk, Item, Schedule, Work};
use super::{Attention, Paced, Tensors};
use crate::facts::chip::Chip;
use crate::facts::memory::PARTITIONS;
use crate::program::{Builder, Expr, Program};

/// Bytes of a partition for queries, keys and values that take turns, where more of them are kept than must be.
const TURNS_BYTES: i64 = 160 << 10;

/// What all steps share.
pub(super) struct Kernel<'a> {
    pub attention: &'a Paced,
    pub buffers: Buffers,
}

/// Up to 512 queries of a head.
pub(super) struct Step {
    pub head: Expr,
    /// The first query.
    pub first: Expr,
    /// How many.
    pub queries: i64,
    /// The keys that some of them see.
    pub visible: i64,
    /// Which of the buffers that take turns the head, the step, and its sums have.
    pub turns: [Expr; 3],
}

impl Step {
    /// Blocks of 512 keys.
    pub fn blocks(&self) -> i64 {
        (self.visible + BLOCK - 1) / BLOCK
    }

    /// Tiles of 128 queries: the number of each and its queries.
    pub fn tiles(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        tiles(self.queries)
    }
}

/// A chunk of 128 keys, or the last one.
pub(super) struct Keys {
    /// Its number in the head.
    pub at: Expr,
    /// Which one of its block.
    pub number: i64,
    /// How many.
    pub keys: i64,
    /// The first query that sees some of them.
    pub from: i64,
    /// Whether 128 queries from there on see but some of them.
    pub hidden: bool,
    /// Whether they are the first ones of the step.
    pub begins: bool,
}

/// Tiles of 128 of so many elements: the number of each, and its elements.
pub(super) fn tiles(size: i64) -> impl Iterator<Item = (i64, i64)> + use<> {
    let count = (size + PARTITIONS - 1) / PARTITIONS;
    (0..count).map(move |at| (at, PARTITIONS.min(size - at * PARTITIONS)))
}

/// The remainder by a number.
fn remainder(expr: Expr, by: i64) -> Expr {
    match expr.constant() {
        _ if by == 1 => 0.into(),
        Some(value) => (value % by).into(),
        None => Expr::Mod(Box::new(expr), by),
    }
}

impl Attention {
    /// Bytes of a partition for the keys and values of a head.
    pub(super) fn head_bytes(&self) -> i64 {
        let chunks = (self.keys + PARTITIONS - 1) / PARTITIONS;
        chunks * (PARTITIONS + self.dim + 1) * self.dtype.bytes() as i64
    }

    /// Sums that take turns: two where those of a step fit a bank.
    pub(super) fn sum_turns(&self) -> i64 {
        match TILES * (self.dim + 1) <= BLOCK {
            true => 2,
            false => 1,
        }
    }
}

impl Paced {
    /// Heads whose keys and values are in SBUF: those in either pass, and one that is loaded meanwhile where there is room.
    pub(super) fn head_turns(&self) -> i64 {
        let least = self.heads_ahead() + 1;
        let turns = match self.head_bytes() * (least + 1) <= TURNS_BYTES {
            true => least + 1,
            false => least,
        };
        turns.min(self.heads)
    }
}

/// The kernel.
pub(super) fn program(attention: &Paced, tensors: &Tensors, name: &str, chip: &Chip) -> Program {
    let mut b = Builder::new(name, chip.name);
    let buffers = Buffers::new(&mut b, attention, tensors, chip);
    let kernel = Kernel { attention, buffers };
    let mut schedule = Schedule::new(attention);
    let origin = [Expr::from(0), 0.into(), 0.into()];
    kernel.items(&mut b, &schedule.begin(), &origin);
    // The last heads have fewer heads after them.
    let alike = schedule.alike_heads();
    if alike > 0 {
        // The items of the first head; those of the others are the same, so many heads on.
        let mut body = |b: &mut Builder, head: Expr| {
            kernel.head(b, &mut schedule, 0, &[head, 0.into(), 0.into()]);
        };
        match alike {
            1 => body(&mut b, 0.into()),
            _ => b.repeat("head", 0, alike, 1, body),
        }
        schedule.skip(alike - 1, 0);
    }
    for head in alike..attention.heads {
        kernel.head(&mut b, &mut schedule, head, &origin);
    }
    b.finish()
}

impl Kernel<'_> {
    /// All steps of a head, which with all others of its items is so far on.
    fn head(&self, b: &mut Builder, schedule: &mut Schedule<'_>, head: i64, on: &[Expr; 3]) {
        let alike = schedule.alike_steps();
        let mut begin = 0;
        if alike > 1 {
            let items = schedule.second(head, 0);
            schedule.skip(0, alike - 1);
            b.repeat("step", 0, alike, 1, |b, step| {
                self.items(b, &items, &[on[0].clone(), step, 0.into()]);
            });
            begin = alike;
        }
        let mut items = Vec::new();
        for step in begin..self.attention.steps() {
            items.extend(schedule.second(head, step));
        }
        self.items(b, &items, on);
    }

    fn items(&self, b: &mut Builder, items: &[Item], on: &[Expr; 3]) {
        for node in loops(items) {
            match node {
                Node::One(item) => self.item(b, &item, on),
                Node::Loop(count, body) => b.repeat("block", 0, count, 1, |b, index| {
                    for (item, by) in &body {
                        let on =
                            [0, 1, 2].map(|dim| on[dim].clone().plus(index.clone().times(by[dim])));
                        self.item(b, item, &on);
                    }
                }),
            }
        }
    }

    /// An item so far on.
    fn item(&self, b: &mut Builder, item: &Item, on: &[Expr; 3]) {
        let [head, number, block] = [0, 1, 2].map(|dim| on[dim].clone().plus(item.at[dim]));
        let step = self.step(head, number, item);
        let keys = |chunk: Chunk| Keys {
            at: block.clone().times(TILES).plus(chunk.number),
            number: chunk.number,
            keys: chunk.keys,
            from: chunk.from,
            hidden: chunk.hidden,
            begins: chunk.begins,
        };
        match item.work {
            Work::Load { begins } => self.load(b, &step, begins),
            Work::Largest {
                tile,
                keys,
                diagonal,
            } => self.largest(b, &step, tile, &block, keys, diagonal),
            Work::Negate => self.negate(b, &step),
            Work::Row => self.row(b, &step),
            Work::Ready(chunk) => self.ready(b, &step, &keys(chunk)),
            Work::Context(chunk) => self.context(b, &step, &keys(chunk)),
            Work::Output => self.output(b, &step),
        }
    }

    /// Loads what a step reads, with the keys and values of its head where it is the first one.
    fn load(&self, b: &mut Builder, step: &Step, begins: bool) {
        if begins {
            self.load_keys(b, step);
        }
        self.load_queries(b, step);
        if begins {
            self.load_values(b, step);
        }
    }

    fn step(&self, head: Expr, number: Expr, item: &Item) -> Step {
        let a = self.attention;
        let steps = a.steps();
        let turn = |turns: i64| {
            // Where all heads begin with the same turn, the head does not matter.
            let before = match steps % turns {
                0 => number.clone(),
                _ => head.clone().times(steps).plus(number.clone()),
            };
            remainder(before, turns)
        };
        Step {
            turns: [
                remainder(head.clone(), a.head_turns()),
                turn(a.step_turns()),
                turn(a.sum_turns()),
            ],
            head: head.clone(),
            first: number.clone().times(BLOCK),
            queries: item.queries,
            visible: item.visible,
        }
    }
}
