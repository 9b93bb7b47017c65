//! The protocol of a ring of stages: that every stage that a role takes is given back once on every path, that the
//! bytes it announces are those that come, and that the arrivals a barrier counts are those that are made.
//!
//! A role's program is a tree of steps, of which the check follows every path: a loop's body must leave the slots
//! that are held as it found them, those it carries renamed, and so any number of turns does; the sides of a
//! branch must agree. Slots may be given back in another order than they were taken: each has a barrier of its own.

use super::Decline;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A value that stands for a slot.
pub type Name = usize;
/// Where in the kernel a step is, for messages.
pub type Place = usize;

/// A part of a role's program, as far as one side of one ring is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next stage is taken: acquired by a producer, waited for by a consumer. Its barrier is told to expect
    /// so many bytes.
    Take {
        /// The slot.
        slot: Name,
        /// Bytes that are announced.
        announced: i64,
        /// Where.
        at: Place,
    },
    /// A copy brings bytes to a slot.
    Signal {
        /// The slot.
        slot: Name,
        /// How many.
        bytes: i64,
        /// Where.
        at: Place,
    },
    /// The stage is given back: committed by a producer, released by a consumer.
    Give {
        /// The slot.
        slot: Name,
        /// Where.
        at: Place,
    },
    /// Any number of turns, none among them.
    Loop {
        /// Slots that the loop carries.
        carried: Vec<Carried>,
        /// One turn.
        body: Vec<Step>,
        /// Where.
        at: Place,
    },
    /// One of several arms.
    Branch {
        /// The arms.
        arms: Vec<Arm>,
        /// Slots that come out of it, one for each that an arm yields.
        results: Vec<Name>,
        /// Where.
        at: Place,
    },
}

/// A slot that a loop carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Before the loop.
    pub initial: Name,
    /// In a turn.
    pub inside: Name,
    /// For the next turn.
    pub next: Name,
    /// After the loop.
    pub result: Name,
}

/// An arm of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// What it does.
    pub steps: Vec<Step>,
    /// The slots that it yields.
    pub yields: Vec<Name>,
}

/// A step that breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where.
    pub at: Option<Place>,
    /// How.
    pub reason: Decline,
}

/// Those who arrive at a barrier for one step that gives a stage back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The warps that execute the step, all of them together.
    pub warps: Vec<i64>,
    /// Arrivals that are made for a slot.
    pub made: i64,
    /// Where.
    pub at: Place,
}

/// A ring of a kernel, and who uses it how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelinePlan {
    /// Stages.
    pub stages: i64,
    /// Arrivals that complete a full stage: the barrier's count.
    pub full: i64,
    /// Arrivals that complete an empty one.
    pub empty: i64,
    /// Every CTA of so many tells every other that a stage is empty.
    pub shared_by: i64,
    /// The program of producers.
    pub fill: Vec<Step>,
    /// The program of consumers.
    pub drain: Vec<Step>,
    /// The commits.
    pub commits: Vec<Arrival>,
    /// The releases.
    pub releases: Vec<Arrival>,
}

impl PipelinePlan {
    /// Checks both programs on all paths, and the barriers' counts.
    ///
    /// # Errors
    /// The first step that breaks the protocol, or a count that is not that of the arrivals.
    pub fn check(&self) -> Result<(), Broken> {
        for (steps, words) in [(&self.fill, &PRODUCER), (&self.drain, &CONSUMER)] {
            let mut walk = Walk {
                stages: self.stages,
                words,
                fresh: 0,
            };
            let mut state = State::default();
            walk.steps(steps, &mut state)?;
            if let Some(slot) = state.held.values().next() {
                return Err(walk.broken(slot.taken, walk.unreturned("the role's end")));
            }
        }
        count("full", self.full, &self.commits, 1)?;
        count("empty", self.empty, &self.releases, self.shared_by)
    }
}

/// Compares a barrier's count with the arrivals of its teams, each counted once.
fn count(barrier: &str, expected: i64, arrivals: &[Arrival], each: i64) -> Result<(), Broken> {
    let mut teams: Vec<&Arrival> = Vec::new();
    for arrival in arrivals {
        let broken = |reason: String| Broken {
            at: Some(arrival.at),
            reason: Decline::new(reason),
        };
        let own: HashSet<_> = arrival.warps.iter().collect();
        let mut known = false;
        for team in &teams {
            let shared = team.warps.iter().filter(|warp| own.contains(warp)).count();
            if shared == own.len() && shared == team.warps.len() {
                if team.made != arrival.made {
                    return Err(broken(format!(
                        "the same warps arrive {} times at {barrier} stages here and {} times elsewhere: expected a role that fills its stages by copies alone or by stores alone",
                        arrival.made, team.made
                    )));
                }
                known = true;
            } else if shared > 0 {
                return Err(broken(format!(
                    "{shared} of the warps that give {barrier} stages back here give them back as part of another scope too: expected scopes that are the same or disjoint"
                )));
            }
        }
        if !known {
            teams.push(arrival);
        }
    }
    let made: i64 = teams.iter().map(|team| team.made * each).sum();
    if made != expected {
        return Err(Broken {
            at: None,
            reason: Decline::new(format!(
                "the barrier of {barrier} stages counts {expected} arrivals, and {made} are made"
            )),
        });
    }
    Ok(())
}

/// What a side calls its steps.
struct Words {
    taken: &'static str,
    given: &'static str,
}

const PRODUCER: Words = Words {
    taken: "acquired",
    given: "committed",
};
const CONSUMER: Words = Words {
    taken: "waited for",
    given: "released",
};

/// A stage that is held, whatever it is called.
type Token = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Bytes that are still to be asked for.
    missing: i64,
    taken: Place,
}

/// What is held at a point of the program, and what it is called.
#[derive(Clone, Debug, Default)]
struct State {
    held: BTreeMap<Token, Slot>,
    names: HashMap<Name, Token>,
}

struct Walk<'a> {
    stages: i64,
    words: &'a Words,
    fresh: Token,
}

impl Walk<'_> {
    fn broken(&self, at: Place, reason: impl Into<String>) -> Broken {
        Broken {
            at: Some(at),
            reason: Decline::new(reason),
        }
    }

    fn unreturned(&self, until: &str) -> String {
        format!(
            "a stage that is {} here is not {} before {until} on every path",
            self.words.taken, self.words.given
        )
    }

    fn mint(&mut self) -> Token {
        self.fresh += 1;
        self.fresh
    }

    fn steps(&mut self, steps: &[Step], state: &mut State) -> Result<(), Broken> {
        steps.iter().try_for_each(|step| self.step(step, state))
    }

    /// The slot that a name stands for, which must be held.
    fn held(&self, state: &State, slot: Name, at: Place) -> Result<Token, Broken> {
        let Some(token) = state.names.get(&slot).copied() else {
            return Err(self.broken(
                at,
                format!("this slot was not {} from this ring", self.words.taken),
            ));
        };
        match state.held.contains_key(&token) {
            true => Ok(token),
            false => Err(self.broken(
                at,
                format!(
                    "this slot is not held here: it was {} before",
                    self.words.given
                ),
            )),
        }
    }

    fn step(&mut self, step: &Step, state: &mut State) -> Result<(), Broken> {
        match *step {
            Step::Take {
                slot,
                announced,
                at,
            } => self.take(slot, announced, at, state),
            Step::Signal { slot, bytes, at } => {
                let token = self.held(state, slot, at)?;
                if let Some(held) = state.held.get_mut(&token) {
                    held.missing -= bytes;
                }
                Ok(())
            }
            Step::Give { slot, at } => {
                let token = self.held(state, slot, at)?;
                let missing = state.held.remove(&token).map_or(0, |held| held.missing);
                if missing == 0 {
                    return Ok(());
                }
                Err(self.broken(
                    at,
                    format!(
                        "the copies that signal this slot bring {} bytes {} than its barrier waits for on some path: expected each of them once, where it is acquired",
                        missing.abs(),
                        if missing > 0 { "less" } else { "more" }
                    ),
                ))
            }
            Step::Loop {
                ref carried,
                ref body,
                at,
            } => self.turns(carried, body, at, state),
            Step::Branch {
                ref arms,
                ref results,
                at,
            } => self.branch(arms, results, at, state),
        }
    }

    fn take(
        &mut self,
        slot: Name,
        announced: i64,
        at: Place,
        state: &mut State,
    ) -> Result<(), Broken> {
        let held = i64::try_from(state.held.len()).unwrap_or(i64::MAX);
        if held >= self.stages {
            return Err(self.broken(
                at,
                format!(
                    "{held} stages of {} are held already, and none of them will be free: expected one of them {} before",
                    self.stages, self.words.given
                ),
            ));
        }
        let token = self.mint();
        let taken = Slot {
            missing: announced,
            taken: at,
        };
        state.held.insert(token, taken);
        state.names.insert(slot, token);
        Ok(())
    }

    /// A turn must leave what is held as it found it, the carried slots renamed.
    fn turns(
        &mut self,
        carried: &[Carried],
        body: &[Step],
        at: Place,
        state: &mut State,
    ) -> Result<(), Broken> {
        let mut turn = state.clone();
        let mut renamed = BTreeMap::new();
        for each in carried {
            let before = self.held(state, each.initial, at)?;
            if renamed.insert(before, each.next).is_some() {
                return Err(self.broken(at, "the loop carries one slot twice"));
            }
            turn.names.insert(each.inside, before);
        }
        self.steps(body, &mut turn)?;
        for (token, slot) in &state.held {
            let after = match renamed.get(token) {
                Some(next) => self.held(&turn, *next, at)?,
                None => *token,
            };
            match turn.held.remove(&after) {
                Some(now) if now.missing == slot.missing => {}
                Some(_) => {
                    return Err(self.broken(
                        at,
                        "copies in this loop signal a slot from outside, as often as it turns",
                    ));
                }
                None => {
                    return Err(self.broken(
                        at,
                        format!(
                            "a slot from outside is {} in this loop, in every turn: expected the loop to carry it",
                            self.words.given
                        ),
                    ));
                }
            }
        }
        if let Some(left) = turn.held.values().next() {
            return Err(self.broken(left.taken, self.unreturned("the loop's next turn")));
        }
        for each in carried {
            let token = self.held(state, each.initial, at)?;
            state.names.insert(each.result, token);
        }
        Ok(())
    }

    /// What an arm yields, of what it holds: those of before the branch stay held.
    fn yields(
        &self,
        arm: &Arm,
        inside: &mut State,
        before: &State,
        at: Place,
    ) -> Result<Vec<Yielded>, Broken> {
        let (mut yielded, mut tokens) = (Vec::new(), HashSet::new());
        for name in &arm.yields {
            if let Some(token) = inside.names.get(name)
                && !tokens.insert(*token)
            {
                return Err(self.broken(at, "the branch yields one slot twice"));
            }
            let token = self.held(inside, *name, at)?;
            if before.held.contains_key(&token) {
                yielded.push(Yielded::Old(token));
            } else if let Some(new) = inside.held.remove(&token) {
                yielded.push(Yielded::New(new.missing));
            }
        }
        Ok(yielded)
    }

    /// All arms must leave the same slots held, and yield the same.
    fn branch(
        &mut self,
        arms: &[Arm],
        results: &[Name],
        at: Place,
        state: &mut State,
    ) -> Result<(), Broken> {
        let mut joined: Option<Joined> = None;
        for arm in arms {
            let mut inside = state.clone();
            self.steps(&arm.steps, &mut inside)?;
            let yielded = self.yields(arm, &mut inside, state, at)?;
            let (old, new): (Vec<_>, Vec<_>) = inside
                .held
                .into_iter()
                .partition(|(token, _)| state.held.contains_key(token));
            if let Some((_, left)) = new.first() {
                return Err(self.broken(left.taken, self.unreturned("the end of the branch")));
            }
            match &joined {
                None => joined = Some((old, yielded)),
                Some(first) if *first == (old, yielded) => {}
                Some(_) => {
                    return Err(self.broken(
                        at,
                        format!(
                            "a slot is {} or signalled in one arm of this branch and not in the other",
                            self.words.given
                        ),
                    ));
                }
            }
        }
        let Some((old, yielded)) = joined else {
            return Ok(());
        };
        state.held = old.into_iter().collect();
        for (name, yielded) in results.iter().zip(yielded) {
            let token = match yielded {
                Yielded::Old(token) => token,
                Yielded::New(missing) => {
                    let token = self.mint();
                    state.held.insert(token, Slot { missing, taken: at });
                    token
                }
            };
            state.names.insert(*name, token);
        }
        Ok(())
    }
}

/// What an arm leaves held of what was held before, and what it yields.
type Joined = (Vec<(Token, Slot)>, Vec<Yielded>);

/// A slot that an arm yields: one from before the branch, or one that it took, with bytes to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yielded {
    Old(Token),
    New(i64),
}

#[cfg(test)]
mod tests;
