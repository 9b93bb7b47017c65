//! Narrow elements that go by another lane, so that words travel full.
//!
//! Where the elements of a lane all go to different lanes, each word carries one of them. But if lane `u` has words
//! for `v` and for `w`, and `v` has one for `w`, two words do the work of three: `u` sends both elements to `v`,
//! which sends the one for `w` on with its own. Words of the first kind go in a first phase of shuffles,
//! those of the second kind in a second one, the others in either.
//!
//! An all-to-all of `n` lanes takes `2 (n - 1) / 3` shuffles at least with two elements a word: in so many
//! shuffles, each pair of lanes has one element that takes one hop, and all others take two.

use super::colouring::colour;
use super::places::Places;
use super::table::{Table, Word};
use super::{Lanes, Step};

/// Most words that are planned so.
const MAX_WORDS: usize = 2048;
/// How many orders of the words are tried.
const ORDERS: u64 = 48;

/// How a word goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In either phase.
    Free,
    First,
    Second,
    /// Other words carry its elements.
    Left,
}

/// How each word goes, and the words whose elements it carries beside its own.
struct Plan {
    ways: Vec<Way>,
    carried: Vec<Vec<usize>>,
}

/// Which words are left, and what they carry for others.
struct Relay<'a> {
    words: &'a [Word],
    lanes: usize,
    capacity: usize,
    /// The word with room from lane to lane: `[from * lanes + to]`.
    between: Vec<Option<usize>>,
    plan: Plan,
    /// Elements that each word carries.
    loads: Vec<usize>,
}

impl<'a> Relay<'a> {
    fn new(words: &'a [Word], lanes: usize, capacity: usize) -> Self {
        let mut between = vec![None; lanes * lanes];
        for (at, word) in words.iter().enumerate() {
            if word.elements.len() < capacity {
                between[word.from * lanes + word.to] = Some(at);
            }
        }
        Self {
            words,
            lanes,
            capacity,
            between,
            plan: Plan {
                ways: vec![Way::Free; words.len()],
                carried: vec![Vec::new(); words.len()],
            },
            loads: words.iter().map(|word| word.elements.len()).collect(),
        }
    }

    /// The word from one lane to another, if it can carry `more` elements in a phase.
    fn carrier(&self, from: usize, to: usize, phase: Way, more: usize) -> Option<usize> {
        let at = self.between[from * self.lanes + to]?;
        let fits = self.loads[at] + more <= self.capacity;
        (fits && (self.plan.ways[at] == Way::Free || self.plan.ways[at] == phase)).then_some(at)
    }

    /// The two words that can take the elements of a word over another lane; those first that carry some for
    /// others already, then by the rank of the distance between lanes.
    fn carriers(&self, at: usize, rank: &[u64]) -> Option<(usize, usize)> {
        let Word { from, to, .. } = self.words[at];
        let more = self.loads[at];
        let found = (1..self.lanes).filter_map(|distance| {
            let over = (from + distance) % self.lanes;
            let rest = (to + self.lanes - over) % self.lanes;
            if over == to || rest == distance {
                return None;
            }
            let first = self.carrier(from, over, Way::First, more)?;
            let second = self.carrier(over, to, Way::Second, more)?;
            let ends = [first, second].into_iter();
            let fresh = ends.filter(|&w| self.plan.ways[w] == Way::Free).count();
            Some(((fresh, rank[distance]), (first, second)))
        });
        found.min_by_key(|(key, _)| *key).map(|(_, both)| both)
    }

    /// Leaves out words, those of the highest rank first, while others can carry what they have.
    fn run(&mut self, rank: &[u64]) {
        let distance = |word: &Word| (word.to + self.lanes - word.from) % self.lanes;
        let mut order: Vec<usize> = self.between.iter().flatten().copied().collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(rank[distance(&self.words[at])]), at));
        for at in order {
            if self.plan.ways[at] != Way::Free {
                continue;
            }
            if let Some((first, second)) = self.carriers(at, rank) {
                let more = self.loads[at];
                self.loads[first] += more;
                self.loads[second] += more;
                (self.plan.ways[first], self.plan.ways[second]) = (Way::First, Way::Second);
                self.plan.ways[at] = Way::Left;
                self.plan.carried[first].push(at);
                self.plan.carried[second].push(at);
            }
        }
    }

    /// Puts the words that are free where the busiest of their lanes has least to do; returns how many shuffles
    /// each phase takes.
    fn settle(&mut self) -> [usize; 2] {
        let mut busy = [vec![0_usize; 2 * self.lanes], vec![0_usize; 2 * self.lanes]];
        for free in [false, true] {
            for (word, way) in self.words.iter().zip(&mut self.plan.ways) {
                let ends = [word.from, self.lanes + word.to];
                if (*way == Way::Free) != free {
                    continue;
                }
                if free {
                    let most = |phase: usize| ends.iter().map(|&end| busy[phase][end]).max();
                    *way = if most(0) <= most(1) {
                        Way::First
                    } else {
                        Way::Second
                    };
                }
                let phase = match way {
                    Way::First => 0,
                    Way::Second => 1,
                    Way::Free | Way::Left => continue,
                };
                ends.iter().for_each(|&end| busy[phase][end] += 1);
            }
        }
        busy.map(|lanes| lanes.into_iter().max().unwrap_or(0))
    }
}

/// The steps with fewer shuffles than `direct`, if some are found.
pub(super) fn relayed(
    (src, dst): (&Table, &Table),
    places: &Places,
    words: &[Word],
    capacity: usize,
    direct: usize,
) -> Option<Vec<Step>> {
    let lanes = src.len();
    if words.len() > MAX_WORDS || words.iter().all(|word| word.elements.len() == capacity) {
        return None;
    }
    let tried = (0..ORDERS).map(|seed| {
        let mut relay = Relay::new(words, lanes, capacity);
        relay.run(&ranks(lanes, seed));
        let phases = relay.settle();
        (phases.iter().sum::<usize>(), relay.plan)
    });
    let (shuffles, plan) = tried.min_by_key(|(shuffles, _)| *shuffles)?;
    (shuffles < direct).then(|| steps(src, dst, places, words, &plan))
}

/// Distances between lanes in some order: as they are, then shuffled.
fn ranks(lanes: usize, seed: u64) -> Vec<u64> {
    let mixed = |distance: u64| {
        let x = (distance + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    };
    let rank = |distance| if seed == 0 { distance } else { mixed(distance) };
    (0..lanes as u64).map(rank).collect()
}

/// What each register of each lane holds, by the elements' numbers.
type State = Vec<Vec<Option<usize>>>;

/// A word of a phase: from, to, and the elements' numbers.
type Sent = (usize, usize, Vec<usize>);

/// Both phases, and the selection at the end.
fn steps(src: &Table, dst: &Table, places: &Places, words: &[Word], plan: &Plan) -> Vec<Step> {
    let number = |element: &Option<u64>| element.and_then(|e| places.number(e));
    let numbers = |at: &usize| words[*at].elements.iter().map(|&(number, _)| number);
    let sent = |phase: Way| -> Vec<Sent> {
        let own = (0..words.len()).filter(|&at| plan.ways[at] == phase);
        let all = own.map(|at| {
            let carried = plan.carried[at].iter().flat_map(numbers);
            (
                words[at].from,
                words[at].to,
                numbers(&at).chain(carried).collect(),
            )
        });
        all.collect()
    };
    let (first, second) = (sent(Way::First), sent(Way::Second));
    let wanted: Vec<Vec<usize>> = dst
        .iter()
        .map(|regs| regs.iter().filter_map(number).collect())
        .collect();
    let mut later = wanted.clone();
    for (from, _, numbers) in &second {
        later[*from].extend(numbers);
    }
    let mut state: State = src
        .iter()
        .map(|regs| regs.iter().map(number).collect())
        .collect();
    let mut steps = phase(&mut state, &first, &later);
    steps.extend(phase(&mut state, &second, &wanted));
    let place = |(lane, element): (usize, &Option<u64>)| {
        number(element)
            .and_then(|n| position(&state[lane], n))
            .unwrap_or(0)
    };
    let lanes = dst.iter().enumerate();
    let map = lanes.map(|(lane, regs)| regs.iter().map(|e| place((lane, e))).collect());
    steps.push(Step::Select { map: map.collect() });
    steps
}

fn position(registers: &[Option<usize>], number: usize) -> Option<usize> {
    registers.iter().position(|held| *held == Some(number))
}

/// Gathers the words of a phase into registers, before what each lane still needs, and shuffles them.
fn phase(state: &mut State, sent: &[Sent], needed: &[Vec<usize>]) -> Vec<Step> {
    let lanes = state.len();
    let edges: Vec<(usize, usize)> = sent.iter().map(|&(from, to, _)| (from, to)).collect();
    let rounds = colour(&edges, lanes, lanes);
    let mut sizes = vec![0; rounds.iter().map(|round| round + 1).max().unwrap_or(0)];
    for ((.., numbers), &round) in sent.iter().zip(&rounds) {
        sizes[round] = numbers.len().max(sizes[round]);
    }
    let mut moving = 0;
    let mut starts = Vec::with_capacity(sizes.len());
    for size in &sizes {
        starts.push(moving);
        moving += size;
    }
    let mut map = vec![vec![0; moving]; lanes];
    let mut held: State = vec![vec![None; moving]; lanes];
    let mut source = vec![(0..lanes).collect::<Vec<usize>>(); sizes.len()];
    for ((from, to, numbers), &round) in sent.iter().zip(&rounds) {
        source[round][*to] = *from;
        for (slot, &number) in (starts[round]..).zip(numbers) {
            map[*from][slot] = position(&state[*from], number).unwrap_or(0);
            held[*to][slot] = Some(number);
        }
    }
    for (lane, needed) in needed.iter().enumerate() {
        let mut kept: Vec<usize> = needed.clone();
        kept.sort_unstable();
        kept.dedup();
        for number in kept {
            if let Some(register) = position(&state[lane], number) {
                map[lane].push(register);
                held[lane].push(Some(number));
            }
        }
    }
    let width = map.iter().map(Vec::len).max().unwrap_or(0);
    map.iter_mut().for_each(|map| map.resize(width, 0));
    held.iter_mut().for_each(|held| held.resize(width, None));
    *state = held;
    let shuffles =
        source
            .into_iter()
            .zip(starts.iter().zip(sizes))
            .map(|(lane, (&start, size))| Step::Shfl {
                src: (start..start + size).collect(),
                dst: (start..start + size).collect(),
                lane: Lanes::Table(lane),
            });
    [Step::Select { map }].into_iter().chain(shuffles).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{check_tables, relayout_tables};
    use super::*;

    /// Lane `l` has elements `l * regs ..`, and is to have every `lanes`-th.
    fn transpose(lanes: usize, regs: usize) -> (Table, Table) {
        let element = |l: usize, r: usize| (l * regs + r) as u64;
        let src = |l| (0..regs).map(|r| Some(element(l, r))).collect();
        let dst = |l| (0..regs).map(|r| Some((r * lanes + l) as u64)).collect();
        ((0..lanes).map(src).collect(), (0..lanes).map(dst).collect())
    }

    #[test]
    fn transposes_of_halves_take_the_fewest_shuffles() {
        for lanes in 2..=32_usize {
            let (src, dst) = transpose(lanes, lanes);
            let plan = relayout_tables(&src, &dst, 16).unwrap();
            check_tables(&src, &dst, &plan).unwrap();
            let bound = (2 * (lanes - 1)).div_ceil(3);
            assert!(
                (bound..lanes).contains(&plan.shuffles()),
                "{lanes}: {}",
                plan.shuffles()
            );
            if [5, 6, 7, 8, 9].contains(&lanes) {
                assert_eq!(plan.shuffles(), bound, "{lanes} lanes");
            }
            assert!(
                plan.shuffles() <= bound + bound.div_ceil(8) + 1,
                "{lanes}: {}",
                plan.shuffles()
            );
            assert_eq!(
                relayout_tables(&src, &dst, 32).unwrap().shuffles(),
                lanes - 1
            );
        }
    }

    #[test]
    fn any_permutation_of_narrow_elements_arrives_in_no_more_shuffles_than_words() {
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let mut fewer = 0;
        for round in 0..400 {
            let (lanes, regs) = (2 + random(10), 1 + random(9));
            let mut elements: Vec<Option<u64>> =
                (0..lanes * regs).map(|e| Some(e as u64)).collect();
            let src: Table = elements.chunks(regs).map(<[_]>::to_vec).collect();
            for at in (1..elements.len()).rev() {
                elements.swap(at, random(at + 1));
            }
            // Some elements are asked for twice, some not at all.
            for _ in 0..round % 3 {
                let (from, to) = (random(elements.len()), random(elements.len()));
                elements[to] = if round % 2 == 0 { elements[from] } else { None };
            }
            let dst: Table = elements.chunks(regs).map(<[_]>::to_vec).collect();
            let words = |bits| relayout_tables(&src, &dst, bits).unwrap();
            let whole = words(32).shuffles();
            for bits in [8, 16] {
                let plan = words(bits);
                check_tables(&src, &dst, &plan).unwrap();
                assert!(
                    round % 3 != 0 || plan.shuffles() <= whole,
                    "{lanes} lanes, {regs} registers"
                );
                fewer += usize::from(plan.shuffles() < whole);
            }
        }
        assert!(fewer > 200, "{fewer} of 800 with fewer shuffles");
    }
}
