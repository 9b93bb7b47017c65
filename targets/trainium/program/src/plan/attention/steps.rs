//! The order of a kernel of attention: heads, and steps of 512 queries, each with the first pass of a later one beside it.

use super::buffers::{BLOCK, Buffers, TILES};
use super::{Attention, Tensors};
use crate::facts::chip::Chip;
use crate::facts::memory::PARTITIONS;
use crate::program::{Builder, Expr, Program};

/// Bytes of a partition for queries, keys and values that take turns, where more of them are kept than must be.
const TURNS_BYTES: i64 = 160 << 10;

/// What all steps share.
pub(super) struct Kernel<'a> {
    pub attention: &'a Attention,
    pub buffers: Buffers,
}

/// The second pass of up to 512 queries of a head, or their first.
#[derive(Clone)]
pub(super) struct Step {
    pub head: Expr,
    /// The first query.
    pub first: Expr,
    /// How many.
    pub queries: i64,
    /// The keys that some of them see.
    pub visible: i64,
    /// Whether the last block of keys is on the diagonal.
    pub diagonal: bool,
    /// Which of the buffers that take turns the head, and the step, has.
    pub turns: [Expr; 2],
}

impl Step {
    /// Blocks of 512 keys.
    pub fn blocks(&self) -> i64 {
        (self.visible + BLOCK - 1) / BLOCK
    }

    /// Keys of a block.
    pub fn keys(&self, block: i64) -> i64 {
        BLOCK.min(self.visible - block * BLOCK)
    }

    /// Whether a block is on the diagonal.
    pub fn is_diagonal(&self, block: i64) -> bool {
        self.diagonal && block + 1 == self.blocks()
    }

    /// A chunk of 128 keys, or the last one.
    pub fn chunk(&self, number: i64) -> Chunk {
        let hidden = self.is_diagonal(number / TILES);
        Chunk {
            at: number.into(),
            turn: number % 2,
            keys: PARTITIONS.min(self.visible - number * PARTITIONS),
            from: if hidden {
                number % TILES * PARTITIONS
            } else {
                0
            },
            hidden,
        }
    }

    /// Tiles of 128 queries: the number of each and its queries.
    pub fn tiles(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        tiles(self.queries)
    }
}

/// A chunk of 128 keys of a second pass.
pub(super) struct Chunk {
    /// Its number.
    pub at: Expr,
    /// Which of two buffers it has.
    pub turn: i64,
    /// Its keys.
    pub keys: i64,
    /// The first query that sees some of them.
    pub from: i64,
    /// Whether 128 queries from there on see but some of them.
    pub hidden: bool,
}

impl Chunk {
    /// One that all queries see.
    pub fn plain(at: Expr, turn: i64) -> Self {
        Self {
            at,
            turn: turn % 2,
            keys: PARTITIONS,
            from: 0,
            hidden: false,
        }
    }

    /// Whether it is as [`Self::plain`].
    pub fn is_plain(&self) -> bool {
        self.keys == PARTITIONS && !self.hidden
    }
}

/// A step in its second pass, and those after it that something is done for meanwhile.
pub(super) struct Steps {
    pub this: Step,
    /// The next one, which begins while this one ends.
    pub next: Option<Step>,
    /// The one whose first pass ended with the step before: its largest scores become a row.
    pub row: Option<Step>,
    /// The one in its first pass.
    pub first: Option<Step>,
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
    /// Steps of a head.
    pub(super) fn steps(&self) -> i64 {
        (self.queries + BLOCK - 1) / BLOCK
    }

    /// How many steps the first pass is ahead of the second. Where steps differ in length, the same step of the next head is
    /// as long; with few heads, what nothing is beside in the first and the last one would cost more than that saves.
    pub(super) fn lead(&self) -> i64 {
        let steps = self.steps();
        let even = self.causal && self.heads > 1 && self.heads * 4 >= steps;
        let columns = steps * BLOCK * self.dtype.bytes() as i64;
        match even && columns + 2 * self.head_bytes() <= TURNS_BYTES {
            true => steps.max(2),
            false => 2,
        }
    }

    /// Bytes of a partition for the keys and values of a head.
    pub(super) fn head_bytes(&self) -> i64 {
        let chunks = (self.keys + PARTITIONS - 1) / PARTITIONS;
        chunks * (PARTITIONS + self.dim + 1) * self.dtype.bytes() as i64
    }

    /// Heads that the first pass is ahead, at most.
    pub(super) fn heads_ahead(&self) -> i64 {
        (self.lead() + self.steps() - 1) / self.steps()
    }

    /// Heads whose keys and values are in SBUF: those in either pass, and one that is loaded meanwhile where there is room.
    pub(super) fn head_turns(&self) -> i64 {
        let least = self.heads_ahead() + 1;
        let turns = match self.head_bytes() * (least + 1) <= TURNS_BYTES {
            true => least + 1,
            false => least,
        };
        turns.min(self.heads)
    }

    /// Steps whose queries are in SBUF: those between both passes, and one that is loaded meanwhile.
    pub(super) fn step_turns(&self) -> i64 {
        self.lead() + 2
    }
}

/// The kernel.
pub(super) fn program(
    attention: &Attention,
    tensors: &Tensors,
    name: &str,
    chip: &Chip,
) -> Program {
    let mut b = Builder::new(name, chip.name);
    let buffers = Buffers::new(&mut b, attention, tensors, chip);
    let kernel = Kernel { attention, buffers };
    kernel.begin(&mut b);
    // The last heads have fewer heads after them.
    let alike = (attention.heads - attention.heads_ahead()).max(0);
    let ahead = attention.heads_ahead();
    match alike {
        0 => {}
        1 => kernel.head(&mut b, &0.into(), ahead),
        _ => b.repeat("head", 0, alike, 1, |b, head| kernel.head(b, &head, ahead)),
    }
    for head in alike..attention.heads {
        kernel.head(&mut b, &head.into(), attention.heads - 1 - head);
    }
    b.finish()
}

impl Kernel<'_> {
    /// The first passes that nothing is beside.
    fn begin(&self, b: &mut Builder) {
        let steps = self.attention.steps();
        let all = steps * self.attention.heads;
        for number in 0..self.attention.lead().min(all) {
            let step = self.step((number / steps).into(), number % steps);
            self.load(b, &step, number % steps == 0);
            self.first_pass(b, &step);
            // The first step does so for the last of these.
            if number + 1 < self.attention.lead() {
                self.row(b, &step);
            }
        }
        let first = self.step(0.into(), 0);
        self.ready(b, &first, &first.chunk(0));
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

    /// A step of a head.
    fn step(&self, head: Expr, number: i64) -> Step {
        let a = self.attention;
        let queries = BLOCK.min(a.queries - number * BLOCK);
        let visible = match a.causal {
            true => number * BLOCK + queries,
            false => a.keys,
        };
        self.step_at(head, number.into(), queries, visible)
    }

    fn step_at(&self, head: Expr, number: Expr, queries: i64, visible: i64) -> Step {
        let a = self.attention;
        let (steps, turns) = (a.steps(), a.step_turns());
        // Where all heads begin with the same turn, the head does not matter.
        let before = match steps % turns {
            0 => number.clone(),
            _ => head.clone().times(steps).plus(number.clone()),
        };
        Step {
            turns: [
                remainder(head.clone(), a.head_turns()),
                remainder(before, turns),
            ],
            head,
            first: number.times(BLOCK),
            queries,
            visible,
            diagonal: a.causal,
        }
    }

    /// All steps of a head that has so many after it.
    fn head(&self, b: &mut Builder, head: &Expr, after: i64) {
        let a = self.attention;
        let (steps, lead) = (a.steps(), a.lead());
        // Full steps that have only full steps of this head after them are a loop.
        let alike = match a.causal {
            true => 0,
            false => (a.queries / BLOCK - lead).max(0),
        };
        let in_loop = if alike > 1 { alike } else { 0 };
        if in_loop > 0 {
            b.repeat("step", 0, in_loop, 1, |b, number| {
                let step = |by| self.step_at(head.clone(), number.clone().plus(by), BLOCK, a.keys);
                let steps = Steps {
                    this: step(0),
                    next: Some(step(1)),
                    row: Some(step(lead - 1)),
                    first: Some(step(lead)),
                };
                self.load(b, &step(lead), false);
                self.second_pass(b, &steps);
            });
        }
        for number in in_loop..steps {
            let step = |by: i64| {
                let (later, number) = ((number + by) / steps, (number + by) % steps);
                (later <= after).then(|| self.step(head.clone().plus(later), number))
            };
            let steps = Steps {
                this: self.step(head.clone(), number),
                next: step(1),
                row: step(lead - 1),
                first: step(lead),
            };
            if let Some(first) = &steps.first {
                self.load(b, first, (number + lead) % self.attention.steps() == 0);
            }
            self.second_pass(b, &steps);
        }
    }

    /// The first pass of a step, alone.
    fn first_pass(&self, b: &mut Builder, step: &Step) {
        let whole = step.blocks() - 1;
        let all = |b: &mut Builder, block: Expr| {
            for (tile, _) in step.tiles() {
                self.largest(b, step, tile, &block, BLOCK, false);
            }
        };
        match whole {
            0 => {}
            1 => all(b, 0.into()),
            _ => b.repeat("block", 0, whole, 1, all),
        }
        for (tile, _) in step.tiles() {
            let keys = step.keys(whole);
            self.largest(b, step, tile, &whole.into(), keys, step.is_diagonal(whole));
        }
        self.negate(b, step);
    }
}
