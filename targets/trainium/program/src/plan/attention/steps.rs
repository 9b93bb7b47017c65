//! The order of a kernel of attention: heads, and steps of 512 queries, each with the first pass of the next one beside it.

use super::Attention;
use super::buffers::{BLOCK, Buffers, TILES};
use crate::facts::chip::Chip;
use crate::facts::memory::PARTITIONS;
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Program};

/// With more heads than these, what is done for the first head alone is a small part.
const MANY_HEADS: i64 = 4;

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

    /// Tiles of 128 queries: the number of each and its queries.
    pub fn tiles(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        tiles(self.queries)
    }
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

    /// How many steps the first pass is ahead of the second. Where steps differ in length and there are many heads, the same
    /// step of the next head is as long.
    pub(super) fn lead(&self) -> i64 {
        match self.causal && self.heads > MANY_HEADS {
            true => self.steps().max(2),
            false => 2,
        }
    }

    /// Heads that the first pass is ahead, at most.
    pub(super) fn heads_ahead(&self) -> i64 {
        (self.lead() + self.steps() - 1) / self.steps()
    }
}

/// The kernel.
pub(super) fn program(attention: &Attention, name: &str, chip: &Chip) -> Program {
    let mut b = Builder::new(name, chip.name);
    let buffers = Buffers::new(&mut b, attention, chip);
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
        }
        self.scores(b, &self.step(0.into(), 0), &0.into(), 0, 0);
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
        let (steps, turns) = (a.steps(), a.lead() + 1);
        // Where all heads begin with the same turn, the head does not matter.
        let before = match steps % turns {
            0 => number.clone(),
            _ => head.clone().times(steps).plus(number.clone()),
        };
        Step {
            turns: [
                remainder(head.clone(), a.heads_ahead() + 1),
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
                let beside = step(lead);
                self.load(b, &beside, false);
                self.second_pass(b, &step(0), Some(&step(1)), Some(&beside));
            });
        }
        for number in in_loop..steps {
            let step = |by: i64| {
                let (later, number) = ((number + by) / steps, (number + by) % steps);
                (later <= after).then(|| self.step(head.clone().plus(later), number))
            };
            let beside = step(lead);
            if let Some(beside) = &beside {
                self.load(b, beside, (number + lead) % steps == 0);
            }
            let this = self.step(head.clone(), number);
            self.second_pass(b, &this, step(1).as_ref(), beside.as_ref());
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

    /// The second pass of a step, and the first pass of a later one beside it. The step that is `next` begins while this one
    /// ends.
    fn second_pass(
        &self,
        b: &mut Builder,
        this: &Step,
        next: Option<&Step>,
        beside: Option<&Step>,
    ) {
        let sums = self.sums(b, this);
        let whole = this.blocks() - 1;
        let shared = beside.map_or(0, |beside| whole.min(beside.blocks() - 1));
        let blocks = [(0, shared, beside), (shared, whole, None)];
        for (begin, end, beside) in blocks {
            let body = |b: &mut Builder, block| self.block(b, this, &sums, block, beside);
            match end - begin {
                ..=0 => {}
                1 => body(b, begin.into()),
                _ => b.repeat("block", begin, end, 1, body),
            }
        }
        let rest = beside.map(|beside| (beside, shared));
        self.last_block(b, this, next, &sums, rest);
        self.output(b, this, &sums);
    }

    /// A block of keys that is not the last one, and the same block of a later step's first pass.
    fn block(&self, b: &mut Builder, this: &Step, sums: &Tile, block: Expr, beside: Option<&Step>) {
        for chunk in 0..TILES {
            let at = block.clone().times(TILES).plus(chunk);
            self.weights(b, this, chunk, PARTITIONS, 0);
            self.scores(b, this, &at.clone().plus(1), chunk + 1, 0);
            if let Some(beside) = beside.filter(|beside| chunk * PARTITIONS < beside.queries) {
                self.largest(b, beside, chunk, &block, BLOCK, false);
            }
            self.context(b, this, sums, (&at, chunk, PARTITIONS), 0);
        }
    }

    /// The last block of keys of a step, with the rest of a later one's first pass, from a block of it on.
    fn last_block(
        &self,
        b: &mut Builder,
        this: &Step,
        next: Option<&Step>,
        sums: &Tile,
        rest: Option<(&Step, i64)>,
    ) {
        let block = this.blocks() - 1;
        let diagonal = this.is_diagonal(block);
        let from = |chunk: i64| if diagonal { chunk * PARTITIONS } else { 0 };
        let chunks: Vec<(i64, i64)> = tiles(this.keys(block)).collect();
        let last = chunks.len() as i64 - 1;
        for (chunk, keys) in chunks {
            let at = Expr::from(block * TILES + chunk);
            if diagonal {
                self.hide(b, this, chunk);
            }
            self.weights(b, this, chunk, keys, from(chunk));
            match next {
                _ if chunk < last => {
                    self.scores(b, this, &at.clone().plus(1), chunk + 1, from(chunk + 1))
                }
                Some(next) => self.scores(b, next, &0.into(), 0, 0),
                None => {}
            }
            if let Some((beside, begin)) = rest {
                self.rest(b, beside, begin, (chunk, last + 1));
            }
            self.context(b, this, sums, (&at, chunk, keys), from(chunk));
        }
        if let Some((beside, _)) = rest {
            self.negate(b, beside);
        }
    }

    /// One of several equal parts of a step's first pass from a block on.
    fn rest(&self, b: &mut Builder, step: &Step, begin: i64, (part, parts): (i64, i64)) {
        let blocks = begin..step.blocks();
        let all: Vec<(i64, i64)> = blocks
            .flat_map(|block| step.tiles().map(move |tile| (block, tile.0)))
            .collect();
        let cut = |part: i64| all.len() * part as usize / parts as usize;
        for (block, tile) in &all[cut(part)..cut(part + 1)] {
            let (keys, diagonal) = (step.keys(*block), step.is_diagonal(*block));
            self.largest(b, step, *tile, &(*block).into(), keys, diagonal);
        }
    }
}
