//! Who is fastest: two sides with several contenders each, within a budget of device time.
//!
//! The clock and the device are behind a function, so that the rules can be tested without either.
//!
//! 1. Every contender is timed once. The hopeless leave.
//! 2. Rounds: every contender left takes one sample; the slower ones leave, until each side has one
//!    or half of the budget is spent.
//! 3. The two winners take turns, who goes first alternating, until the budget is spent. What counts
//!    is the median of these pairs' ratios.

use crate::timing::median;

/// One of the contenders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// An algorithm of the library, by its number.
    Theirs(usize),
    /// A candidate of ours, by its number.
    Ours(usize),
}

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Device time for everything, in microseconds. The fewest pairs are taken even beyond it.
    pub budget_us: f64,
    /// The time that one sample should take: long against the clock of events.
    pub sample_us: f64,
    /// Pairs at most.
    pub pairs: usize,
}

/// The fewest pairs.
const FEWEST_PAIRS: usize = 5;

/// Launches of one sample at most.
const MOST_LAUNCHES: usize = 500;

/// Rounds at most.
const ROUNDS: usize = 9;

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
    /// Its samples before the pairs, microseconds a launch.
    pub samples: Vec<f64>,
    /// True once it did not run.
    pub failed: bool,
    out: bool,
}

impl Standing {
    /// The median of its samples.
    #[must_use]
    pub fn time(&self) -> Option<f64> {
        median(&self.samples)
    }
}

/// What came of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The library's side.
    pub theirs: Vec<Standing>,
    /// Our side.
    pub ours: Vec<Standing>,
    /// The winners' numbers.
    pub winners: (Option<usize>, Option<usize>),
    /// The winners' times in microseconds, in the order in which they were taken; the second is
    /// missing where there is only one winner.
    pub pairs: Vec<(f64, Option<f64>)>,
}

/// Holds the contest. `time` takes a sample of so many launches and returns microseconds a launch,
/// or `None` when the contender does not run.
///
/// # Errors
/// The first error of `time`.
pub fn hold<E>(
    (theirs, ours): (usize, usize),
    limits: &Limits,
    mut time: impl FnMut(Who, usize) -> Result<Option<f64>, E>,
) -> Result<Outcome, E> {
    let mut contest = Contest {
        outcome: Outcome {
            theirs: vec![Standing::default(); theirs],
            ours: vec![Standing::default(); ours],
            ..Outcome::default()
        },
        spent_us: 0.0,
        limits: *limits,
    };
    for who in contest.left() {
        contest.sample(who, 1, &mut time)?;
    }
    contest.drop_slower_than(2.0);
    for round in 0..ROUNDS {
        let left = contest.left();
        let decided = left.len() <= usize::from(theirs > 0) + usize::from(ours > 0);
        if round > 0 && (decided || contest.spent_us > limits.budget_us / 2.0) {
            break;
        }
        // Another contender starts each round, so that none always follows the same one.
        let (back, front) = left.split_at(round % left.len().max(1));
        for who in front.iter().chain(back) {
            let count = limits.launches(contest.standing(*who).time().unwrap_or(limits.sample_us));
            contest.sample(*who, count, &mut time)?;
        }
        contest.drop_slower_than(match round {
            0 => 1.25,
            1 => 1.08,
            2..=4 => 1.04,
            _ => 1.015,
        });
    }
    contest.finish(&mut time)
}

struct Contest {
    outcome: Outcome,
    spent_us: f64,
    limits: Limits,
}

impl Contest {
    fn left(&self) -> Vec<Who> {
        let of = |side: &[Standing], who: fn(usize) -> Who| -> Vec<Who> {
            let left = side.iter().enumerate().filter(|(_, s)| !s.out && !s.failed);
            left.map(|(i, _)| who(i)).collect()
        };
        let mut left = of(&self.outcome.theirs, Who::Theirs);
        left.extend(of(&self.outcome.ours, Who::Ours));
        left
    }

    fn standing(&mut self, who: Who) -> &mut Standing {
        // Contenders are numbered by the sides' own lengths; a number beyond them is a spare.
        let side = match who {
            Who::Theirs(_) => &mut self.outcome.theirs,
            Who::Ours(_) => &mut self.outcome.ours,
        };
        let (Who::Theirs(i) | Who::Ours(i)) = who;
        if i >= side.len() {
            side.resize(i + 1, Standing::default());
        }
        &mut side[i]
    }

    fn sample<E>(
        &mut self,
        who: Who,
        count: usize,
        time: &mut impl FnMut(Who, usize) -> Result<Option<f64>, E>,
    ) -> Result<Option<f64>, E> {
        let got = time(who, count)?;
        match got {
            Some(us) => {
                self.spent_us += us * count as f64;
                self.standing(who).samples.push(us);
            }
            None => self.standing(who).failed = true,
        }
        Ok(got)
    }

    fn drop_slower_than(&mut self, factor: f64) {
        for side in [&mut self.outcome.theirs, &mut self.outcome.ours] {
            let left = |s: &&mut Standing| !s.out && !s.failed;
            let best = side
                .iter_mut()
                .filter(left)
                .filter_map(|s| s.time())
                .fold(f64::INFINITY, f64::min);
            for standing in side.iter_mut().filter(left) {
                standing.out = standing.time().is_none_or(|t| t > best * factor);
            }
        }
    }

    fn finish<E>(
        mut self,
        time: &mut impl FnMut(Who, usize) -> Result<Option<f64>, E>,
    ) -> Result<Outcome, E> {
        let best = |side: &[Standing]| {
            let left = side.iter().enumerate();
            let timed = left
                .filter(|(_, s)| !s.out && !s.failed)
                .filter_map(|(i, s)| Some((i, s.time()?)));
            timed.min_by(|a, b| a.1.total_cmp(&b.1))
        };
        let (theirs, ours) = (best(&self.outcome.theirs), best(&self.outcome.ours));
        self.outcome.winners = (theirs.map(|w| w.0), ours.map(|w| w.0));
        let contenders = [
            theirs.map(|(i, t)| (Who::Theirs(i), t)),
            ours.map(|(i, t)| (Who::Ours(i), t)),
        ];
        let Some(us) = theirs.or(ours).map(|w| w.1) else {
            return Ok(self.outcome);
        };
        let count = self.limits.launches(us);
        for pair in 0..self.limits.pairs.max(FEWEST_PAIRS) {
            if pair >= FEWEST_PAIRS && self.spent_us > self.limits.budget_us {
                break;
            }
            let mut got = [None, None];
            // Who goes first alternates, so that neither always runs on the warmer chip.
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                let Some((who, _)) = contenders[side] else {
                    continue;
                };
                got[side] = time(who, count)?;
                self.spent_us += got[side].unwrap_or(0.0) * count as f64;
            }
            match got {
                [Some(a), b] => self.outcome.pairs.push((a, b)),
                [None, Some(b)] => self.outcome.pairs.push((b, None)),
                [None, None] => break,
            }
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
        pairs: 21,
    };

    /// A contest of contenders with fixed times; `None` does not run. Also the launches of each call.
    fn contest(
        theirs: &[Option<f64>],
        ours: &[Option<f64>],
        limits: &Limits,
    ) -> (Outcome, Vec<(Who, usize)>) {
        let calls = RefCell::new(Vec::new());
        let time = |who, count| -> Result<Option<f64>, ()> {
            calls.borrow_mut().push((who, count));
            Ok(match who {
                Who::Theirs(i) => theirs[i],
                Who::Ours(i) => ours[i],
            })
        };
        let outcome = hold((theirs.len(), ours.len()), limits, time).unwrap();
        (outcome, calls.into_inner())
    }

    #[test]
    fn the_fastest_of_each_side_meet() {
        let (outcome, _) = contest(
            &[Some(110.0), Some(100.0), None],
            &[Some(99.0), Some(90.0), Some(300.0)],
            &LIMITS,
        );
        assert_eq!(outcome.winners, (Some(1), Some(1)));
        assert_eq!(outcome.pairs, vec![(100.0, Some(90.0)); 21]);
        assert!(outcome.theirs[2].failed);
        assert_eq!(
            outcome.ours[2].samples.len(),
            1,
            "the hopeless run only once"
        );
        assert_eq!(outcome.ours[0].time(), Some(99.0));
    }

    #[test]
    fn who_goes_first_alternates_and_samples_last_long_enough() {
        let (_, calls) = contest(&[Some(100.0)], &[Some(90.0)], &LIMITS);
        let pairs = &calls[calls.len() - 4..];
        assert_eq!(pairs[0].0, pairs[3].0);
        assert_eq!(pairs[1].0, pairs[2].0);
        assert!(pairs.iter().all(|c| c.1 == 20));
        assert_eq!(LIMITS.launches(0.1), 500);
        assert_eq!(LIMITS.launches(1e9), 1);
    }

    #[test]
    fn the_budget_ends_it_but_not_before_a_few_pairs() {
        let limits = Limits {
            budget_us: 500_000.0,
            pairs: 100,
            ..LIMITS
        };
        let (outcome, _) = contest(&[Some(40_000.0); 8], &[Some(40_000.0); 8], &limits);
        assert_eq!(outcome.pairs.len(), 5);
        let (outcome, calls) = contest(&[Some(10_000.0)], &[Some(10_000.0)], &limits);
        let spent: f64 = calls.iter().map(|c| c.1 as f64 * 10_000.0).sum();
        assert!((500_000.0..=540_000.0).contains(&spent), "{spent}");
        assert!(outcome.pairs.len() >= 15 && outcome.pairs.len() <= 25);
    }

    #[test]
    fn one_side_alone_is_timed() {
        let (outcome, _) = contest(&[Some(50.0)], &[], &LIMITS);
        assert_eq!(
            (outcome.winners, outcome.pairs[0]),
            ((Some(0), None), (50.0, None))
        );
        let (outcome, _) = contest(&[], &[Some(50.0)], &LIMITS);
        assert_eq!(
            (outcome.winners, outcome.pairs[0]),
            ((None, Some(0)), (50.0, None))
        );
        let (outcome, _) = contest(&[None], &[None], &LIMITS);
        assert_eq!((outcome.winners, outcome.pairs.len()), ((None, None), 0));
        assert_eq!(contest(&[], &[], &LIMITS).0, Outcome::default());
    }

    #[test]
    fn noise_does_not_change_the_winner() {
        let mut seed = 1u32;
        let time = |who, _| -> Result<Option<f64>, ()> {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = 1.0 + f64::from(seed >> 8) / f64::from(1 << 24) * 0.02;
            Ok(Some(
                noise
                    * match who {
                        Who::Theirs(i) => 100.0 + i as f64 * 5.0,
                        Who::Ours(i) => 120.0 - i as f64 * 5.0,
                    },
            ))
        };
        let outcome = hold((6, 6), &LIMITS, time).unwrap();
        assert_eq!(outcome.winners, (Some(0), Some(5)));
    }
}
