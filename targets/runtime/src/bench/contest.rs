//! Who is fastest: sides with several contenders each, within a budget of device time.
//!
//! The clock and the device are behind a function, so that the rules can be tested without either.
//!
//! 1. Every contender is timed once, on a cold chip and as the host launches it. The hopeless leave: not those that may be slower for
//!    their launches alone, of which a product with copies before it, or sums behind it, has several.
//! 2. The others run for a while, so that the chip is as warm as in use: large products are bound by its power then, and
//!    others are fastest than on a cold chip.
//! 3. Rounds: every contender left takes one sample; those whose best sample is slower leave, until each side has one
//!    or half of the budget is spent. Nobody leaves for one sample that something else has disturbed.
//! 4. The winners take turns, in every order, until the budget is spent. What counts is the median of
//!    the ratios of times that are of the same turn.

use crate::timing::median;

/// The library's side.
pub const LIBRARY: usize = 0;

/// Our side; those of rivals follow.
pub const OURS: usize = 1;

/// One of the contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Who {
    /// Its side: [`LIBRARY`], [`OURS`] or a rival's.
    pub side: usize,
    /// Its number on that side.
    pub number: usize,
}

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Device time for everything, in microseconds. The fewest turns are taken even beyond it.
    pub budget_us: f64,
    /// The time that one sample should take: long against the clock of events.
    pub sample_us: f64,
    /// Turns at most.
    pub turns: usize,
}

/// The fewest turns.
const FEWEST_TURNS: usize = 5;

/// Launches of one sample at most.
const MOST_LAUNCHES: usize = 500;

/// Rounds at most.
const ROUNDS: usize = 9;

/// What the launches of a contender may cost it in its first sample, in microseconds; later samples of short ones come from a graph.
const LAUNCHING_US: f64 = 25.0;

/// Device time for which the chip is warmed, in microseconds.
const WARMING_US: f64 = 300_000.0;

/// The share of the budget that this may be at most.
const WARMING: f64 = 0.15;

impl Limits {
    /// The launches of a sample of something that takes `us` microseconds.
    #[must_use]
    pub fn launches(&self, us: f64) -> usize {
        ((self.sample_us / us.max(1.0)).ceil() as usize).clamp(1, MOST_LAUNCHES)
    }
}

/// What came of a contender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Its samples before the turns, microseconds a launch.
    pub samples: Vec<f64>,
    /// True once it did not run.
    pub failed: bool,
    out: bool,
}

impl Standing {
    /// The samples behind the first one, which is of a cold chip and of one launch; that one where there is no other.
    fn warm(&self) -> &[f64] {
        let warm = self.samples.get(1..).filter(|warm| !warm.is_empty());
        warm.unwrap_or(&self.samples)
    }

    /// The median of its warm samples.
    #[must_use]
    pub fn time(&self) -> Option<f64> {
        median(self.warm())
    }

    /// The least of its warm samples, which what else happens on the machine has no part in.
    fn least(&self) -> Option<f64> {
        self.warm().iter().copied().reduce(f64::min)
    }
}

/// What came of a side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// What came of each contender.
    pub standings: Vec<Standing>,
    /// The winner's number.
    pub winner: Option<usize>,
}

impl Side {
    fn left(&self) -> impl Iterator<Item = (usize, &Standing)> {
        let all = self.standings.iter().enumerate();
        all.filter(|(_, s)| !s.out && !s.failed)
    }

    /// The fastest that is left, and its time.
    fn fastest(&self) -> Option<(usize, f64)> {
        let timed = self.left().filter_map(|(i, s)| Some((i, s.time()?)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Drops those whose best sample is slower than the best of all by more than the factor, and so many microseconds.
    fn drop_slower_than(&mut self, factor: f64, beside_us: f64) {
        let all = self.left().filter_map(|(_, standing)| standing.least());
        let best = all.fold(f64::INFINITY, f64::min);
        for standing in &mut self.standings {
            let slow = standing
                .least()
                .is_none_or(|t| t > best * factor + beside_us);
            standing.out |= slow;
        }
    }
}

/// What came of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The sides.
    pub sides: Vec<Side>,
    /// Turn by turn each side's winner's time in microseconds; none where the side has no winner.
    pub turns: Vec<Vec<Option<f64>>>,
}

impl Outcome {
    /// The number of a side's winner.
    #[must_use]
    pub fn winner(&self, side: usize) -> Option<usize> {
        self.sides.get(side)?.winner
    }

    /// The times of a side's winner, in the order in which they were taken.
    #[must_use]
    pub fn samples(&self, side: usize) -> Vec<f64> {
        let of = |turn: &Vec<Option<f64>>| turn.get(side).copied().flatten();
        self.turns.iter().filter_map(of).collect()
    }

    /// The times of `over`'s winner over those of `under`'s, turn by turn; above 1, `under` is faster.
    #[must_use]
    pub fn ratios(&self, over: usize, under: usize) -> Vec<f64> {
        let at = |turn: &Vec<Option<f64>>, side: usize| turn.get(side).copied().flatten();
        let of = |turn| Some(at(turn, over)? / at(turn, under)?);
        self.turns.iter().filter_map(of).collect()
    }

    /// Takes the winner off a side: its times count no more.
    pub fn disqualify(&mut self, side: usize) {
        if let Some(it) = self.sides.get_mut(side) {
            it.winner = None;
        }
        for turn in &mut self.turns {
            if let Some(time) = turn.get_mut(side) {
                *time = None;
            }
        }
    }
}

/// Holds the contest of sides with so many contenders. `time` takes a sample of so many launches and returns
/// microseconds a launch, or `None` when the contender does not run.
///
/// # Errors
/// The first error of `time`.
pub fn hold<E>(
    sides: &[usize],
    limits: &Limits,
    mut time: impl FnMut(Who, usize) -> Result<Option<f64>, E>,
) -> Result<Outcome, E> {
    let side = |count: &usize| Side {
        standings: vec![Standing::default(); *count],
        winner: None,
    };
    let mut contest = Contest {
        outcome: Outcome {
            sides: sides.iter().map(side).collect(),
            turns: Vec::new(),
        },
        spent_us: 0.0,
        limits: *limits,
    };
    for who in contest.left() {
        contest.sample(who, 1, &mut time)?;
    }
    contest.drop_slower_than(2.0, LAUNCHING_US);
    contest.warm(&mut time)?;
    for round in 0..ROUNDS {
        let left = contest.left();
        let decided = left.len() <= sides.iter().filter(|count| **count > 0).count();
        if round > 0 && (decided || contest.spent_us > limits.budget_us / 2.0) {
            break;
        }
        // Another contender starts each round, so that none always follows the same one.
        let (back, front) = left.split_at(round % left.len().max(1));
        for who in front.iter().chain(back) {
            let known = contest.standing(*who).and_then(|s| s.time());
            let count = limits.launches(known.unwrap_or(limits.sample_us));
            contest.sample(*who, count, &mut time)?;
        }
        let factor = match round {
            0 => 2.0,
            1 => 1.25,
            2 => 1.08,
            3..=5 => 1.04,
            _ => 1.015,
        };
        contest.drop_slower_than(factor, 0.0);
    }
    contest.finish(&mut time)
}

/// The sides in the order of a turn: every side is first equally often, and every two sides follow each other
/// either way, so that none always runs on the warmer chip.
fn order(turn: usize, sides: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sides).collect();
    order.rotate_left(turn / 2 % sides.max(1));
    if turn % 2 == 1 {
        order.reverse();
    }
    order
}

struct Contest {
    outcome: Outcome,
    spent_us: f64,
    limits: Limits,
}

impl Contest {
    fn left(&self) -> Vec<Who> {
        let sides = self.outcome.sides.iter().enumerate();
        let who = |(side, it): (usize, &Side)| {
            let of = |(number, _)| Who { side, number };
            it.left().map(of).collect::<Vec<_>>()
        };
        sides.flat_map(who).collect()
    }

    fn standing(&mut self, who: Who) -> Option<&mut Standing> {
        let side = self.outcome.sides.get_mut(who.side)?;
        side.standings.get_mut(who.number)
    }

    fn sample<E>(
        &mut self,
        who: Who,
        count: usize,
        time: &mut impl FnMut(Who, usize) -> Result<Option<f64>, E>,
    ) -> Result<(), E> {
        let got = time(who, count)?;
        self.spent_us += got.unwrap_or(0.0) * count as f64;
        if let Some(standing) = self.standing(who) {
            standing.samples.extend(got);
            standing.failed |= got.is_none();
        }
        Ok(())
    }

    /// Keeps the device busy without counting, where it was not for long enough yet.
    fn warm<E>(
        &mut self,
        time: &mut impl FnMut(Who, usize) -> Result<Option<f64>, E>,
    ) -> Result<(), E> {
        let until = WARMING_US.min(self.limits.budget_us * WARMING);
        let left = self.left();
        for who in left.iter().cycle() {
            let Some(us) = self.standing(*who).and_then(|standing| standing.time()) else {
                break;
            };
            if self.spent_us >= until {
                break;
            }
            let count = self.limits.launches(us);
            // What runs no more has no time; it drops out of its next round.
            let got = time(*who, count)?.unwrap_or(us);
            self.spent_us += got.max(1.0) * count as f64;
        }
        Ok(())
    }

    fn drop_slower_than(&mut self, factor: f64, beside_us: f64) {
        for side in &mut self.outcome.sides {
            side.drop_slower_than(factor, beside_us);
        }
    }

    fn finish<E>(
        mut self,
        time: &mut impl FnMut(Who, usize) -> Result<Option<f64>, E>,
    ) -> Result<Outcome, E> {
        let fastest: Vec<_> = self.outcome.sides.iter().map(Side::fastest).collect();
        for (side, fastest) in self.outcome.sides.iter_mut().zip(&fastest) {
            side.winner = fastest.map(|f| f.0);
        }
        let Some(us) = fastest.iter().flatten().map(|f| f.1).next() else {
            return Ok(self.outcome);
        };
        let count = self.limits.launches(us);
        for turn in 0..self.limits.turns.max(FEWEST_TURNS) {
            if turn >= FEWEST_TURNS && self.spent_us > self.limits.budget_us {
                break;
            }
            let mut got = vec![None; fastest.len()];
            for side in order(turn, fastest.len()) {
                let winner = self.outcome.winner(side);
                if let (Some(number), Some(slot)) = (winner, got.get_mut(side)) {
                    *slot = time(Who { side, number }, count)?;
                    self.spent_us += slot.unwrap_or(0.0) * count as f64;
                }
            }
            if got.iter().all(Option::is_none) {
                break;
            }
            self.outcome.turns.push(got);
        }
        Ok(self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const LIMITS: Limits = Limits {
        budget_us: 1e6,
        sample_us: 2000.0,
        turns: 21,
    };

    /// A contest of contenders with fixed times; `None` does not run. Also the launches of each call.
    fn contest(sides: &[&[Option<f64>]], limits: &Limits) -> (Outcome, Vec<(Who, usize)>) {
        let calls = RefCell::new(Vec::new());
        let time = |who: Who, count| -> Result<Option<f64>, ()> {
            calls.borrow_mut().push((who, count));
            Ok(sides[who.side][who.number])
        };
        let counts: Vec<usize> = sides.iter().map(|s| s.len()).collect();
        let outcome = hold(&counts, limits, time).unwrap();
        (outcome, calls.into_inner())
    }

    fn winners(outcome: &Outcome) -> Vec<Option<usize>> {
        outcome.sides.iter().map(|s| s.winner).collect()
    }

    #[test]
    fn nobody_leaves_for_what_the_launches_of_one_sample_take() {
        // Three kernels that take 3 us: launched one by one they take 11 us, where one that takes 4 takes 5.
        let time = |who: Who, count: usize| -> Result<Option<f64>, ()> {
            Ok(Some(match (who.side, who.number, count) {
                (LIBRARY, ..) => 4.0,
                (_, 0, 1) => 5.0,
                (_, 0, _) => 4.0,
                (_, _, 1) => 11.0,
                _ => 3.0,
            }))
        };
        let outcome = hold(&[1, 2], &LIMITS, time).unwrap();
        assert_eq!(winners(&outcome), [Some(0), Some(1)]);
        let slower = &outcome.sides[OURS].standings[0];
        assert_eq!(slower.time(), Some(4.0));
    }

    #[test]
    fn the_fastest_of_each_side_meet() {
        let (mut outcome, _) = contest(
            &[
                &[Some(110.0), Some(100.0), None],
                &[Some(99.0), Some(90.0), Some(300.0)],
                &[Some(180.0), None],
            ],
            &LIMITS,
        );
        assert_eq!(winners(&outcome), [Some(1), Some(1), Some(0)]);
        assert_eq!(
            outcome.turns,
            vec![vec![Some(100.0), Some(90.0), Some(180.0)]; 21]
        );
        assert!(outcome.sides[0].standings[2].failed);
        let ours = &outcome.sides[OURS].standings;
        assert_eq!(ours[2].samples.len(), 1, "the hopeless run only once");
        assert_eq!(ours[0].time(), Some(99.0));
        assert_eq!(outcome.ratios(2, OURS), [2.0; 21]);
        assert_eq!(outcome.samples(LIBRARY), [100.0; 21]);
        outcome.disqualify(2);
        assert_eq!((outcome.winner(2), outcome.ratios(2, OURS)), (None, vec![]));
        assert_eq!(outcome.ratios(LIBRARY, OURS).len(), 21);
    }

    #[test]
    fn a_sample_that_was_disturbed_drops_nobody() {
        let standing = |samples: &[f64]| Standing {
            samples: samples.to_vec(),
            ..Standing::default()
        };
        let mut side = Side {
            standings: vec![
                standing(&[130.0, 370.0, 100.0]),
                standing(&[100.0, 120.0, 120.0]),
                standing(&[100.0, 190.0, 180.0]),
            ],
            winner: None,
        };
        side.drop_slower_than(1.25, 0.0);
        let out: Vec<_> = side.standings.iter().map(|it| it.out).collect();
        assert_eq!(out, [false, false, true]);
    }

    #[test]
    fn who_goes_first_alternates_and_samples_last_long_enough() {
        let (_, calls) = contest(&[&[Some(100.0)], &[Some(90.0)]], &LIMITS);
        let last = &calls[calls.len() - 42..];
        let firsts = last.iter().step_by(2).filter(|c| c.0.side == OURS);
        assert_eq!(firsts.count(), 10);
        assert!(last.iter().all(|c| c.1 == 20));
        assert_eq!(LIMITS.launches(0.1), 500);
        assert_eq!(LIMITS.launches(1e9), 1);
    }

    #[test]
    fn sides_follow_each_other_in_every_order() {
        for sides in 1..5 {
            let orders: Vec<_> = (0..2 * sides).map(|t| order(t, sides)).collect();
            for side in 0..sides {
                let first = orders.iter().filter(|o| o[0] == side).count();
                assert_eq!(first, 2, "{orders:?}");
                for other in (0..sides).filter(|o| *o != side) {
                    let before = |o: &&Vec<usize>| {
                        let at = |s| o.iter().position(|x| *x == s);
                        at(side) < at(other)
                    };
                    assert_eq!(orders.iter().filter(before).count(), sides);
                }
            }
        }
        assert!(order(3, 0).is_empty());
    }

    #[test]
    fn the_budget_ends_it_but_not_before_a_few_turns() {
        let limits = Limits {
            budget_us: 500_000.0,
            turns: 100,
            ..LIMITS
        };
        let slow: &[_] = &[Some(40_000.0); 8];
        let (outcome, _) = contest(&[slow, slow], &limits);
        assert_eq!(outcome.turns.len(), 5);
        let (outcome, calls) = contest(&[&[Some(10_000.0)], &[Some(10_000.0)]], &limits);
        let spent: f64 = calls.iter().map(|c| c.1 as f64 * 10_000.0).sum();
        assert!((500_000.0..=540_000.0).contains(&spent), "{spent}");
        assert!(outcome.turns.len() >= 15 && outcome.turns.len() <= 25);
    }

    #[test]
    fn one_side_alone_is_timed() {
        let (outcome, _) = contest(&[&[Some(50.0)], &[]], &LIMITS);
        assert_eq!(winners(&outcome), [Some(0), None]);
        assert_eq!(outcome.turns[0], [Some(50.0), None]);
        let (outcome, _) = contest(&[&[], &[], &[Some(50.0)]], &LIMITS);
        assert_eq!(winners(&outcome), [None, None, Some(0)]);
        assert_eq!(outcome.samples(2), [50.0; 21]);
        let (outcome, _) = contest(&[&[None], &[None]], &LIMITS);
        assert_eq!((winners(&outcome), outcome.turns.len()), (vec![None; 2], 0));
        assert_eq!(contest(&[], &LIMITS).0, Outcome::default());
    }

    #[test]
    fn the_fastest_on_a_warm_chip_wins() {
        let calls = RefCell::new(0u32);
        let time = |who: Who, count: usize| -> Result<Option<f64>, ()> {
            *calls.borrow_mut() += count as u32;
            let warm = *calls.borrow() > 1000;
            Ok(Some(match (who.side, who.number, warm) {
                (OURS, 0, false) => 90.0,
                (OURS, 1, true) => 105.0,
                (_, _, warm) => 100.0 + f64::from(u8::from(warm)) * 10.0,
            }))
        };
        let outcome = hold(&[1, 2], &LIMITS, time).unwrap();
        assert_eq!(outcome.winner(OURS), Some(1));
    }

    #[test]
    fn noise_does_not_change_the_winner() {
        let mut seed = 1u32;
        let time = |who: Who, _| -> Result<Option<f64>, ()> {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = 1.0 + f64::from(seed >> 8) / f64::from(1 << 24) * 0.02;
            let number = who.number as f64;
            let times = [100.0 + number * 5.0, 120.0 - number * 5.0];
            Ok(Some(noise * times[who.side]))
        };
        let outcome = hold(&[6, 6], &LIMITS, time).unwrap();
        assert_eq!(winners(&outcome), [Some(0), Some(5)]);
    }
}
