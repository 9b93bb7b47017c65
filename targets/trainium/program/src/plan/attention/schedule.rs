//! The order of a kernel of attention: two streams of work, the first passes and the second passes of all steps, merged so
//! that neither waits for the other.
//!
//! Both have the same tiles of scores. The first stream is ahead by a number of tiles that is enough for the largest scores
//! of a step to be there before its second pass begins, whatever the lengths of the steps are.

use super::buffers::{BLOCK, TILES};
use super::steps::tiles;
use super::{Attention, Paced};
use crate::facts::memory::PARTITIONS;
use std::collections::VecDeque;

/// Tiles of scores between the end of a first pass and the transposes of its largest scores.
const SETTLED: i64 = 12;

/// A chunk of 128 keys of a second pass, or fewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chunk {
    /// Which one of its block.
    pub number: i64,
    /// Its keys.
    pub keys: i64,
    /// The first query that sees some of them.
    pub from: i64,
    /// Whether 128 queries from there on see but some of them.
    pub hidden: bool,
    /// Whether it is the first one of the step.
    pub begins: bool,
}

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// Load the queries, and keys and values where the head begins.
    Load { begins: bool },
    /// Find the largest scores of a tile of queries among keys of a block.
    Largest {
        tile: i64,
        keys: i64,
        diagonal: bool,
    },
    /// Find the largest of all blocks.
    Negate,
    /// Make a row of them.
    Row,
    /// Form the weights of a chunk.
    Ready(Chunk),
    /// Add the values of a chunk.
    Context(Chunk),
    /// Divide and store.
    Output,
}

/// Work of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Item {
    pub work: Work,
    /// The step's queries.
    pub queries: i64,
    /// The keys that some of them see.
    pub visible: i64,
    /// The head, the step of it, and the block of keys.
    pub at: [i64; 3],
}

/// The place of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    head: i64,
    step: i64,
    /// The block and the tile of queries of the first stream.
    block: i64,
    tile: i64,
    /// The chunk of the second one.
    chunk: i64,
}

impl Cursor {
    fn next_step(&mut self, a: &Attention) {
        self.step += 1;
        if self.step == a.steps() {
            (self.step, self.head) = (0, self.head + 1);
        }
    }
}

/// Both streams.
pub(super) struct Schedule<'a> {
    a: &'a Paced,
    first: Cursor,
    /// The next chunk of which weights are formed.
    second: Cursor,
    /// The places of weights that are formed and not used yet.
    outstanding: VecDeque<i64>,
    /// Tiles of scores of either stream so far.
    done: [i64; 2],
    /// Steps whose first pass ended, and when their row is made.
    rows: VecDeque<(i64, [i64; 2])>,
    /// The step whose first pass ended with the last tile: the vector engine would wait for what that gives.
    ended: Option<[i64; 2]>,
    items: Vec<Item>,
}

impl Attention {
    /// Steps of a head.
    pub(super) fn steps(&self) -> i64 {
        (self.queries + BLOCK - 1) / BLOCK
    }

    /// The queries of a step.
    pub(super) fn step_queries(&self, step: i64) -> i64 {
        BLOCK.min(self.queries - step * BLOCK)
    }

    /// The keys that some query of a step sees.
    pub(super) fn visible(&self, step: i64) -> i64 {
        match self.causal {
            true => step * BLOCK + self.step_queries(step),
            false => self.keys,
        }
    }

    /// Chunks of 128 keys of a step, by block.
    fn chunks(&self, step: i64) -> impl Iterator<Item = (i64, Chunk)> + use<> {
        let (visible, causal) = (self.visible(step), self.causal);
        let diagonal = (visible - 1) / BLOCK;
        tiles(visible).map(move |(at, keys)| {
            let (block, number) = (at / TILES, at % TILES);
            let hidden = causal && block == diagonal;
            let chunk = Chunk {
                number,
                keys,
                from: if hidden { number * PARTITIONS } else { 0 },
                hidden,
                begins: at == 0,
            };
            (block, chunk)
        })
    }

    /// Tiles of scores of a step.
    fn work(&self, step: i64) -> i64 {
        let chunks = self.chunks(step);
        chunks.map(|(_, chunk)| self.chunk_work(step, &chunk)).sum()
    }

    fn chunk_work(&self, step: i64, chunk: &Chunk) -> i64 {
        (self.step_queries(step) - chunk.from + PARTITIONS - 1) / PARTITIONS
    }

    /// Tiles of scores of a head.
    pub(super) fn head_work(&self) -> i64 {
        match self.causal {
            true => (0..self.steps()).map(|step| self.work(step)).sum(),
            false => {
                let last = self.steps() - 1;
                self.work(0) * last + self.work(last)
            }
        }
    }
}

impl Paced {
    /// Tiles of scores that the first stream is ahead.
    fn lag(&self) -> i64 {
        let longest = match self.causal {
            true => (self.steps() - 2).max(0),
            false => 0,
        };
        self.work(longest).max(self.work(self.steps() - 1)) + self.pace.slack
    }

    /// Heads that the first stream is ahead, at most.
    pub(super) fn heads_ahead(&self) -> i64 {
        let work = self.head_work();
        (self.lag() + work - 1) / work
    }

    /// Full steps that the first stream is ahead, at most, where all steps are alike.
    fn steps_ahead(&self) -> i64 {
        let work = self.work(0);
        (self.lag() + work - 1) / work
    }

    /// Steps whose queries are in SBUF: those between the begin of the first pass and the end of the second, and one that
    /// is loaded meanwhile.
    pub(super) fn step_turns(&self) -> i64 {
        let alive = match self.causal {
            false => self.steps_ahead() + if self.queries % BLOCK > 0 { 2 } else { 1 },
            true => {
                let works: Vec<i64> = (0..self.steps()).map(|step| self.work(step)).collect();
                let heads = (self.heads_ahead() + 2) as usize;
                let all = works.iter().cycle().take(works.len() * heads);
                let (mut window, mut sum, mut most) = (VecDeque::new(), 0, 0);
                for work in all {
                    window.push_back(*work);
                    sum += work;
                    // Steps that end before the second stream is there are done with.
                    while sum - window.front().copied().unwrap_or(0) > self.lag() + work + TILES {
                        sum -= window.pop_front().unwrap_or(0);
                    }
                    most = most.max(window.len() as i64);
                }
                most
            }
        };
        (alive + 1).min(self.steps() * self.heads)
    }
}

impl<'a> Schedule<'a> {
    pub fn new(a: &'a Paced) -> Self {
        Self {
            a,
            first: Cursor::default(),
            second: Cursor::default(),
            outstanding: VecDeque::new(),
            done: [0; 2],
            rows: VecDeque::new(),
            ended: None,
            items: Vec::new(),
        }
    }

    /// What is done before the first second pass.
    pub fn begin(&mut self) -> Vec<Item> {
        self.fill(self.a.lag());
        self.look_ahead(self.a.pace.chunks - 1);
        std::mem::take(&mut self.items)
    }

    /// The second pass of a step.
    pub fn second(&mut self, head: i64, step: i64) -> Vec<Item> {
        let a = self.a;
        for (block, chunk) in a.chunks(step) {
            self.look_ahead(self.a.pace.chunks);
            self.done[1] += a.chunk_work(step, &chunk);
            self.fill(self.done[1] + a.lag());
            self.push(Work::Context(chunk), [head, step, block]);
            self.outstanding.pop_front();
        }
        // The next step, or head, begins as this one did.
        self.look_ahead(self.a.pace.chunks - 1);
        self.push(Work::Output, [head, step, 0]);
        std::mem::take(&mut self.items)
    }

    /// Forms the weights of the next chunks, as far as there is a place for them.
    fn look_ahead(&mut self, most: i64) {
        while (self.outstanding.len() as i64) < most && self.second.head < self.a.heads {
            let Cursor {
                head, step, chunk, ..
            } = self.second;
            let turn = chunk % TILES;
            if self.outstanding.contains(&turn) {
                return;
            }
            let mut chunks = self.a.chunks(step).skip(chunk as usize);
            let Some((block, next)) = chunks.next() else {
                return;
            };
            // Its row is made now at the latest.
            if self.ended == Some([head, step]) {
                self.negate();
            }
            while chunk == 0 && self.rows.iter().any(|(_, at)| *at == [head, step]) {
                self.row();
            }
            self.push(Work::Ready(next), [head, step, block]);
            self.outstanding.push_back(turn);
            self.second.chunk += 1;
            if chunks.next().is_none() {
                self.second.chunk = 0;
                self.second.next_step(self.a);
            }
        }
    }

    /// After the items of one head were those of `count` heads, or those of a step those of `count` steps.
    pub fn skip(&mut self, heads: i64, steps: i64) {
        for cursor in [&mut self.first, &mut self.second] {
            cursor.head += heads;
            cursor.step += steps;
        }
        let rows = self.rows.iter_mut().map(|(_, at)| at);
        for at in rows.chain(&mut self.ended) {
            *at = [at[0] + heads, at[1] + steps];
        }
    }

    /// Heads in a row whose items are alike.
    pub fn alike_heads(&self) -> i64 {
        (self.a.heads - self.a.heads_ahead()).max(0)
    }

    /// Steps in a row, from the first of a head on, whose items are alike.
    pub fn alike_steps(&self) -> i64 {
        match self.a.causal {
            true => 0,
            false => (self.a.queries / BLOCK - self.a.steps_ahead()).max(0),
        }
    }

    fn row(&mut self) {
        if let Some((_, [head, step])) = self.rows.pop_front() {
            self.push(Work::Row, [head, step, 0]);
        }
    }

    fn push(&mut self, work: Work, at: [i64; 3]) {
        self.items.push(Item {
            work,
            queries: self.a.step_queries(at[1]),
            visible: self.a.visible(at[1]),
            at,
        });
    }

    /// The first stream up to so many tiles of scores.
    fn fill(&mut self, until: i64) {
        while self.done[0] < until && self.first.head < self.a.heads {
            self.largest();
            if self.first.head == self.a.heads {
                self.negate();
            }
            while self.rows.front().is_some_and(|row| row.0 <= self.done[0]) {
                self.row();
            }
        }
    }

    /// Ends the first pass of the step whose last tile was looked at.
    fn negate(&mut self) {
        if let Some([head, step]) = self.ended.take() {
            self.push(Work::Negate, [head, step, 0]);
            self.rows.push_back((self.done[0] + SETTLED, [head, step]));
        }
    }

    /// The next tile of the first stream.
    fn largest(&mut self) {
        let (a, at) = (self.a, self.first);
        let (queries, visible) = (a.step_queries(at.step), a.visible(at.step));
        if at.block == 0 && at.tile == 0 {
            let begins = at.step == 0;
            self.push(Work::Load { begins }, [at.head, at.step, 0]);
        }
        let keys = BLOCK.min(visible - at.block * BLOCK);
        let is_last = (at.block + 1) * BLOCK >= visible;
        let diagonal = a.causal && is_last;
        let keys = match diagonal {
            true => keys.min((at.tile + 1) * PARTITIONS),
            false => keys,
        };
        let work = Work::Largest {
            tile: at.tile,
            keys,
            diagonal,
        };
        self.push(work, [at.head, at.step, at.block]);
        self.negate();
        self.done[0] += (keys + PARTITIONS - 1) / PARTITIONS;
        self.first.tile += 1;
        if self.first.tile * PARTITIONS < queries {
            return;
        }
        (self.first.tile, self.first.block) = (0, at.block + 1);
        if !is_last {
            return;
        }
        self.ended = Some([at.head, at.step]);
        self.first.block = 0;
        self.first.next_step(a);
    }
}
