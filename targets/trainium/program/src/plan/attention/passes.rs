//! The second pass of a step, with the first pass of a later one beside it.

use super::buffers::{BLOCK, TILES};
use super::steps::{Chunk, Kernel, Step, Steps};
use crate::facts::memory::PARTITIONS;

use crate::program::build::Tile;
use crate::program::{Builder, Expr};

impl Kernel<'_> {
    /// The second pass of a step, whose first chunk is ready, up to the first chunk of the next one.
    pub fn second_pass(&self, b: &mut Builder, steps: &Steps) {
        let (this, first) = (&steps.this, steps.first.as_ref());
        let sums = self.sums(b, this);
        let whole = this.blocks() - 1;
        let shared = first.map_or(0, |first| whole.min(first.blocks() - 1));
        // The block before one that begins differently stands outside of the loop.
        let follows = Some(this.chunk(whole * TILES)).filter(|chunk| !chunk.is_plain());
        let alike = match follows.is_some() {
            true => (whole - 1).max(0),
            false => whole,
        };
        let cut = shared.min(alike);
        for (begin, end, first) in [(0, cut, first), (cut, alike, None)] {
            let body = |b: &mut Builder, block| self.block(b, this, &sums, (block, None), first);
            match end - begin {
                ..=0 => {}
                1 => body(b, begin.into()),
                _ => b.repeat("block", begin, end, 1, body),
            }
        }
        if alike < whole {
            let first = first.filter(|_| shared == whole);
            self.block(b, this, &sums, (alike.into(), follows.as_ref()), first);
        }
        self.last_block(b, steps, &sums, shared);
        self.output(b, this, &sums);
    }

    /// A block of keys that is not the last one, and the same block of a later step's first pass.
    fn block(
        &self,
        b: &mut Builder,
        this: &Step,
        sums: &Tile,
        (block, follows): (Expr, Option<&Chunk>),
        first: Option<&Step>,
    ) {
        for number in 0..TILES {
            let at = block.clone().times(TILES).plus(number);
            let plain = Chunk::plain(at.clone().plus(1), number + 1);
            let next = follows.filter(|_| number + 1 == TILES).unwrap_or(&plain);
            self.ready(b, this, next);
            if let Some(first) = first.filter(|first| number * PARTITIONS < first.queries) {
                self.largest(b, first, number, &block, BLOCK, false);
            }
            self.context(b, this, sums, &Chunk::plain(at, number));
        }
    }

    /// The last block of keys of a step, with the rest of a later one's first pass, from a block of it on.
    fn last_block(&self, b: &mut Builder, steps: &Steps, sums: &Tile, rest: i64) {
        let this = &steps.this;
        let begin = (this.blocks() - 1) * TILES;
        let last = (this.visible - 1) / PARTITIONS;
        // Weights of the next step may be where those of the last chunk are.
        let meets = last % 2 == 0;
        for number in begin..=last {
            if let Some(row) = steps.row.as_ref().filter(|_| number == last.min(begin + 1)) {
                self.row(b, row);
            }
            if number < last {
                self.ready(b, this, &this.chunk(number + 1));
            } else if !meets {
                self.begin_next(b, steps);
            }
            if let Some(first) = &steps.first {
                self.rest(b, first, rest, (number - begin, last + 1 - begin));
            }
            self.context(b, this, sums, &this.chunk(number));
        }
        if meets {
            self.begin_next(b, steps);
        }
        if let Some(first) = &steps.first {
            self.negate(b, first);
        }
    }

    fn begin_next(&self, b: &mut Builder, steps: &Steps) {
        if let Some(next) = &steps.next {
            self.ready(b, next, &next.chunk(0));
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
