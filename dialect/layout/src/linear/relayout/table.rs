//! Relayout between any two distributions, given as tables.
//!
//! Each lane asks other lanes for what it lacks; words go from lane to lane, and a shuffle serves each
//! lane one word from one lane. Choosing the rounds is edge colouring of the bipartite multigraph of
//! words, which needs as many colours as the busiest lane sends or receives words.

use smallvec::SmallVec;

use super::colouring::colour;
use super::places::{Marks, Places};
use super::relay::relayed;
use super::{Lanes, RelayoutPlan, Step, elements_per_word};
use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::Layout;

/// `table[lane][register]`: the element there, or none.
pub type Table = Vec<Vec<Option<u64>>>;

/// Largest table that is planned.
const MAX_ENTRIES: usize = 1 << 20;

/// The elements of a word, by their numbers, and the source register of each.
type Elements = SmallVec<[(usize, usize); 2]>;

/// A word that lane `from` sends to lane `to`.
pub(super) struct Word {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) elements: Elements,
}

/// The steps that turn the distribution `src` into `dst`, of any numbers of lanes and registers.
///
/// Where each element is in one lane only, shuffles are as few as can be for elements of 32 bits and
/// more without a second hop; narrower ones go by another lane where that fills words. With replicas the source is chosen lane by lane, the least loaded first,
/// and one word may serve several lanes.
///
/// # Errors
/// `Invalid` when the numbers of lanes differ or lanes differ in registers; `None` when `dst` asks for
/// an element that `src` has not; `Unsupported` above a million registers.
pub fn relayout_tables(src: &Table, dst: &Table, elem_bits: u32) -> Result<RelayoutPlan> {
    let per_word = elements_per_word(elem_bits)?;
    check_tables(src, dst)?;
    let places = Places::new(src);
    let words = words(dst, &places, per_word)?;
    let rounds = rounds(&words, src.len());
    let count = rounds.iter().map(|r| r + 1).max().unwrap_or(0);
    if let Some(steps) = relayed((src, dst), &places, &words, per_word, count) {
        return Ok(RelayoutPlan { elem_bits, steps });
    }
    let per_word = words.iter().map(|w| w.elements.len()).max().unwrap_or(1);
    Ok(RelayoutPlan {
        elem_bits,
        steps: steps((src, dst), &places, &words, &rounds, count, per_word),
    })
}

fn check_tables(src: &Table, dst: &Table) -> Result<()> {
    let even = |t: &Table| t.windows(2).all(|w| w[0].len() == w[1].len());
    if src.len() != dst.len() || !even(src) || !even(dst) {
        return Err(Error::invalid(format!(
            "a warp relayout: expected as many lanes on both sides, and as many registers in each lane, \
             got {} and {} lanes",
            src.len(),
            dst.len()
        )));
    }
    let none = |t: &Table| t.first().is_none_or(Vec::is_empty);
    if none(src) && !none(dst) {
        return Err(Error::none("a warp relayout: the source has no registers"));
    }
    let entries = |t: &Table| t.len().saturating_mul(t.first().map_or(0, Vec::len));
    if entries(src).max(entries(dst)) > MAX_ENTRIES {
        return Err(Error::unsupported(
            "a warp relayout of more than a million registers",
        ));
    }
    Ok(())
}

/// The words that must travel: each element from one lane that holds it, elements of one pair of lanes
/// together. In the order of the lanes that receive them.
fn words(dst: &Table, places: &Places, per_word: usize) -> Result<Vec<Word>> {
    let lanes = dst.len();
    let mut load = vec![0_usize; lanes];
    let mut words = Vec::new();
    let mut needed = Vec::new();
    let mut by_source: Vec<Vec<(usize, usize)>> = vec![Vec::new(); lanes];
    for (to, regs) in dst.iter().enumerate() {
        needed.clear();
        needed.extend(regs.iter().flatten().copied());
        needed.sort_unstable();
        needed.dedup();
        for &element in &needed {
            let number = places.number(element).ok_or_else(|| {
                Error::none(format!(
                    "a warp relayout: the destination holds element {element}, the source does not"
                ))
            })?;
            let held = places.of(number);
            if held.iter().any(|&(lane, _)| lane == to) {
                continue;
            }
            let (from, register) = lender(held, &by_source, &load, per_word);
            if let (Some(waiting), Some(load)) = (by_source.get_mut(from), load.get_mut(from)) {
                *load += usize::from(waiting.len() % per_word == 0);
                waiting.push((number, register));
            }
        }
        for (from, waiting) in by_source.iter_mut().enumerate() {
            words.extend(waiting.chunks(per_word).map(|part| Word {
                from,
                to,
                elements: part.iter().copied().collect(),
            }));
            waiting.clear();
        }
    }
    Ok(words)
}

/// The lane to take an element from, of those that hold it, and its register there: one whose word for
/// this destination has room, else the one that sends least.
fn lender(
    held: &[(usize, usize)],
    by_source: &[Vec<(usize, usize)>],
    load: &[usize],
    per_word: usize,
) -> (usize, usize) {
    if let &[one] = held {
        return one;
    }
    let busy = |lane: usize| load.get(lane).copied().unwrap_or(0);
    let full = |lane: usize| by_source.get(lane).is_none_or(|w| w.len() % per_word == 0);
    let best = held
        .iter()
        .min_by_key(|&&(lane, _)| (full(lane), busy(lane), lane));
    best.copied().unwrap_or_default()
}

/// The round of each word: colouring, or first fit with equal words of a lane shared, whichever takes
/// fewer rounds.
fn rounds(words: &[Word], lanes: usize) -> Vec<usize> {
    let edges: Vec<(usize, usize)> = words.iter().map(|w| (w.from, w.to)).collect();
    let coloured = colour(&edges, lanes, lanes);
    let count = |rounds: &[usize]| rounds.iter().map(|r| r + 1).max().unwrap_or(0);
    if count(&coloured) <= fewest_rounds(words, lanes) {
        return coloured;
    }
    let shared = first_fit(words, lanes);
    let best = if count(&shared) < count(&coloured) {
        shared
    } else {
        coloured
    };
    let fewer = (fewest_rounds(words, lanes)..count(&best))
        .find_map(|target| Search::run(words, lanes, target));
    fewer.unwrap_or(best)
}

/// Words that are few enough for a search.
const MAX_SEARCHED: usize = 96;
/// Most steps of a search.
const MAX_STEPS: usize = 1 << 12;

/// A search for rounds with equal words of a lane shared: the word with the fewest rounds left goes first.
struct Search<'a> {
    words: &'a [Word],
    target: usize,
    /// The word that a lane sends in a round, and how many receive it: `[lane * target + round]`.
    sent: Vec<Option<(usize, usize)>>,
    received: Vec<bool>,
    rounds: Vec<Option<usize>>,
    steps: usize,
}

impl<'a> Search<'a> {
    /// Rounds below `target`, if they are found.
    fn run(words: &'a [Word], lanes: usize, target: usize) -> Option<Vec<usize>> {
        if words.len() > MAX_SEARCHED {
            return None;
        }
        let mut search = Self {
            words,
            target,
            sent: vec![None; lanes * target],
            received: vec![false; lanes * target],
            rounds: vec![None; words.len()],
            steps: 0,
        };
        if search.place(words.len()) {
            search.rounds.into_iter().collect()
        } else {
            None
        }
    }

    /// Whether the word can go in the round; a lane sends one word, whoever receives it.
    fn fits(&self, word: &Word, round: usize) -> bool {
        let sent = self
            .sent
            .get(word.from * self.target + round)
            .copied()
            .flatten();
        let same = |(other, _): (usize, usize)| {
            self.words
                .get(other)
                .is_some_and(|other| other.elements == word.elements)
        };
        self.received.get(word.to * self.target + round) == Some(&false) && sent.is_none_or(same)
    }

    fn place(&mut self, left: usize) -> bool {
        if left == 0 {
            return true;
        }
        let choices = |at: usize| {
            let word = self.words.get(at);
            (0..self.target)
                .filter(|&round| word.is_some_and(|word| self.fits(word, round)))
                .count()
        };
        let waiting = (0..self.words.len()).filter(|&at| self.rounds.get(at) == Some(&None));
        let Some((at, word)) = waiting
            .min_by_key(|&at| choices(at))
            .and_then(|at| Some((at, self.words.get(at)?)))
        else {
            return false;
        };
        for round in 0..self.target {
            if !self.fits(word, round) {
                continue;
            }
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return false;
            }
            self.set(word, at, round, true);
            if self.place(left - 1) {
                return true;
            }
            self.set(word, at, round, false);
        }
        false
    }

    fn set(&mut self, word: &Word, at: usize, round: usize, placed: bool) {
        if let Some(slot) = self.rounds.get_mut(at) {
            *slot = placed.then_some(round);
        }
        if let Some(slot) = self.received.get_mut(word.to * self.target + round) {
            *slot = placed;
        }
        if let Some(slot) = self.sent.get_mut(word.from * self.target + round) {
            *slot = match (*slot, placed) {
                (None, _) => Some((at, 1)),
                (Some((first, count)), true) => Some((first, count + 1)),
                (Some((_, 1)), false) => None,
                (Some((first, count)), false) => Some((first, count - 1)),
            };
        }
    }
}

/// No fewer rounds than some lane receives words, or sends different ones.
fn fewest_rounds(words: &[Word], lanes: usize) -> usize {
    let (mut received, mut sent) = (vec![0_usize; lanes], vec![0_usize; lanes]);
    let mut different: Vec<(usize, &Elements)> =
        words.iter().map(|w| (w.from, &w.elements)).collect();
    different.sort_unstable();
    different.dedup();
    let to = words.iter().map(|w| w.to);
    for (lane, counts) in to
        .map(|l| (l, true))
        .chain(different.iter().map(|w| (w.0, false)))
    {
        let counts = if counts { &mut received } else { &mut sent };
        if let Some(count) = counts.get_mut(lane) {
            *count += 1;
        }
    }
    received.into_iter().chain(sent).max().unwrap_or(0)
}

fn first_fit(words: &[Word], lanes: usize) -> Vec<usize> {
    // What each lane sends, and whether it receives, in each round.
    let mut sent: Vec<Vec<Option<&Elements>>> = vec![Vec::new(); lanes];
    let mut received: Vec<Vec<bool>> = vec![Vec::new(); lanes];
    let mut rounds = Vec::with_capacity(words.len());
    for word in words {
        let (Some(sent), Some(received)) = (sent.get_mut(word.from), received.get_mut(word.to))
        else {
            rounds.push(0);
            continue;
        };
        let fits = |round: &usize| {
            let other = sent.get(*round).copied().flatten();
            received.get(*round) != Some(&true) && other.is_none_or(|other| *other == word.elements)
        };
        let round = (0..words.len()).find(fits).unwrap_or(words.len());
        sent.resize(sent.len().max(round + 1), None);
        received.resize(received.len().max(round + 1), false);
        if let (Some(sent), Some(received)) = (sent.get_mut(round), received.get_mut(round)) {
            *sent = Some(&word.elements);
            *received = true;
        }
        rounds.push(round);
    }
    rounds
}

/// Gather the words into registers, shuffle them, and select from them and what was kept.
fn steps(
    (src, dst): (&Table, &Table),
    places: &Places,
    words: &[Word],
    rounds: &[usize],
    count: usize,
    per_word: usize,
) -> Vec<Step> {
    let lanes = src.len();
    let moving = count * per_word;
    let kept = all_kept(src, dst, places);
    let width = moving + kept.iter().map(Vec::len).max().unwrap_or(0);
    let mut gather = vec![vec![0; width]; lanes];
    let mut source = vec![(0..lanes).collect::<Vec<usize>>(); count];
    let mut size = vec![1; count];
    for (word, &round) in words.iter().zip(rounds) {
        for (k, &(_, register)) in word.elements.iter().enumerate() {
            gather[word.from][round * per_word + k] = register;
        }
        source[round][word.to] = word.from;
        size[round] = size[round].max(word.elements.len());
    }
    for (gather, kept) in gather.iter_mut().zip(&kept) {
        gather[moving..moving + kept.len()].copy_from_slice(kept);
    }
    let scatter = scatter((src, dst), places, words, rounds, &kept, (moving, per_word));
    let shuffles = source
        .into_iter()
        .zip(size)
        .enumerate()
        .map(|(round, (lane, size))| {
            let slots: Vec<usize> = (0..size).map(|k| round * per_word + k).collect();
            Step::Shfl {
                src: slots.clone(),
                dst: slots,
                lane: Lanes::Table(lane),
            }
        });
    let gather = (width > 0).then_some(Step::Select { map: gather });
    gather
        .into_iter()
        .chain(shuffles)
        .chain([Step::Select { map: scatter }])
        .collect()
}

/// Registers of its own that each lane still needs; they come after those that travel.
fn all_kept(src: &Table, dst: &Table, places: &Places) -> Vec<Vec<usize>> {
    let mut marks = Marks::new(places.count());
    src.iter()
        .zip(dst)
        .map(|(s, d)| kept_registers(places, &mut marks, s, d))
        .collect()
}

/// The register after all shuffles that each register of `dst` is selected from.
fn scatter(
    (src, dst): (&Table, &Table),
    places: &Places,
    words: &[Word],
    rounds: &[usize],
    kept: &[Vec<usize>],
    (moving, per_word): (usize, usize),
) -> Vec<Vec<usize>> {
    let mut marks = Marks::new(places.count());
    let mut arriving = words.iter().zip(rounds).peekable();
    let mut scatter = Vec::with_capacity(dst.len());
    for (lane, wanted) in dst.iter().enumerate() {
        marks.clear();
        while let Some((word, &round)) = arriving.next_if(|(word, _)| word.to == lane) {
            for (k, &(number, _)) in word.elements.iter().enumerate() {
                marks.set(number, round * per_word + k);
            }
        }
        for (k, &register) in kept[lane].iter().enumerate() {
            if let Some(number) = src[lane][register].and_then(|e| places.number(e)) {
                marks.set(number, moving + k);
            }
        }
        let place = |element: &Option<u64>| {
            let number = element.and_then(|e| places.number(e));
            number.and_then(|n| marks.get(n)).unwrap_or(0)
        };
        scatter.push(wanted.iter().map(place).collect());
    }
    scatter
}

/// One register of `src` for each element that `dst` asks for and the lane has.
fn kept_registers(
    places: &Places,
    marks: &mut Marks,
    src: &[Option<u64>],
    dst: &[Option<u64>],
) -> Vec<usize> {
    marks.clear();
    for number in dst.iter().flatten().filter_map(|&e| places.number(e)) {
        marks.set(number, 1);
    }
    let mut kept = Vec::new();
    for (register, element) in src.iter().enumerate() {
        let Some(number) = element.and_then(|e| places.number(e)) else {
            continue;
        };
        if marks.get(number) == Some(1) {
            marks.set(number, 0);
            kept.push(register);
        }
    }
    kept
}

/// The table of a layout with the axes `reg` and `lane` alone: entry `[lane][reg]` is the logical index
/// there. Registers that the layout does not reach are empty.
///
/// # Errors
/// `Invalid` when the layout has another axis, is dynamic, has a coordinate outside
/// `[0, lanes) x [0, registers)`, or puts two elements into one register; `Unsupported` for more than
/// a million elements with replicas.
pub fn table_of_layout(
    layout: &Layout,
    (reg, registers): (Axis, usize),
    (lane, lanes): (Axis, usize),
) -> Result<Table> {
    if let Some(other) = layout.axes().iter().find(|a| **a != reg && **a != lane) {
        return Err(Error::invalid(format!(
            "a register distribution: expected the axes {reg} and {lane}, got {other}"
        )));
    }
    if layout.is_dynamic() {
        return Err(Error::invalid(
            "a register distribution: the outermost extent is dynamic",
        ));
    }
    let iters: Vec<Iter> = layout
        .replica()
        .iter()
        .chain(layout.shard())
        .copied()
        .collect();
    let total = iters.iter().try_fold(1_i64, |n, i| n.checked_mul(i.extent));
    let limit = MAX_ENTRIES as i64;
    let total = total.filter(|&n| n <= limit && registers.saturating_mul(lanes) <= MAX_ENTRIES);
    let total = total.ok_or_else(|| {
        Error::unsupported("a register distribution of more than a million elements")
    })?;
    let mut table = vec![vec![None; registers]; lanes];
    for index in 0..total {
        let start = (layout.offset().get(reg), layout.offset().get(lane));
        let (r, l) = register_at(&iters, index, start, (reg, lane));
        let element = (index % layout.size()) as u64;
        let slot = usize::try_from(l).ok().zip(usize::try_from(r).ok());
        let slot = slot.and_then(|(l, r)| table.get_mut(l)?.get_mut(r));
        match slot {
            Some(slot) if slot.is_none_or(|other| other == element) => *slot = Some(element),
            Some(_) => {
                return Err(Error::invalid(format!(
                    "a register distribution: register {r} of lane {l} holds two elements"
                )));
            }
            None => {
                return Err(Error::invalid(format!(
                    "a register distribution: element {element} is at register {r} of lane {l}, \
                     outside {registers} registers of {lanes} lanes"
                )));
            }
        }
    }
    Ok(table)
}

/// The register and the lane of one element or copy, counted row-major over all iters.
fn register_at(
    iters: &[Iter],
    index: i64,
    (mut r, mut l): (i64, i64),
    (reg, lane): (Axis, Axis),
) -> (i64, i64) {
    let mut rest = index;
    for iter in iters.iter().rev() {
        // Inside the span of the layout, which fits.
        let step = rest % iter.extent * iter.stride;
        rest /= iter.extent;
        if iter.axis == reg {
            r += step;
        }
        if iter.axis == lane {
            l += step;
        }
    }
    (r, l)
}
