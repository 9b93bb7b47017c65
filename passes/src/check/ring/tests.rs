//! Programs that keep the protocol, and what is said of those that break it.

use super::*;

const AT: Place = 0;

fn take(slot: Name) -> Step {
    Step::Take {
        slot,
        announced: 0,
        at: AT,
    }
}

fn acquire(slot: Name, announced: i64) -> Step {
    Step::Take {
        slot,
        announced,
        at: AT,
    }
}

fn signal(slot: Name, bytes: i64) -> Step {
    Step::Signal {
        slot,
        bytes,
        at: AT,
    }
}

fn give(slot: Name) -> Step {
    Step::Give { slot, at: AT }
}

fn turns(carried: &[Carried], body: &[Step]) -> Step {
    Step::Loop {
        carried: carried.to_vec(),
        body: body.to_vec(),
        at: AT,
    }
}

fn branch(arms: &[(&[Step], &[Name])], results: &[Name]) -> Step {
    let arms = arms.iter().map(|(steps, yields)| Arm {
        steps: steps.to_vec(),
        yields: yields.to_vec(),
    });
    Step::Branch {
        arms: arms.collect(),
        results: results.to_vec(),
        at: AT,
    }
}

const fn carried(initial: Name, inside: Name, next: Name, result: Name) -> Carried {
    Carried {
        initial,
        inside,
        next,
        result,
    }
}

fn warp(first: i64) -> Arrival {
    Arrival {
        warps: vec![first],
        made: 1,
        at: AT,
    }
}

/// One warp fills a ring, one empties it.
fn plan(fill: &[Step], drain: &[Step]) -> PipelinePlan {
    PipelinePlan {
        stages: 2,
        full: 1,
        empty: 1,
        shared_by: 1,
        fill: fill.to_vec(),
        drain: drain.to_vec(),
        commits: vec![warp(0)],
        releases: vec![warp(4)],
    }
}

fn fills(steps: &[Step]) -> Result<(), String> {
    let checked = plan(steps, &[take(0), give(0)]).check();
    checked.map_err(|broken| broken.reason.to_string())
}

fn drains(steps: &[Step]) -> Result<(), String> {
    let checked = plan(&[take(0), give(0)], steps).check();
    checked.map_err(|broken| broken.reason.to_string())
}

fn broken(checked: Result<(), String>, words: &str) {
    let reason = checked.unwrap_err();
    assert!(reason.contains(words), "{reason}");
}

/// The consumers of a matrix product: the slot before is given back when the next product is under way.
fn product() -> [Step; 3] {
    [
        take(0),
        turns(&[carried(0, 1, 2, 3)], &[take(2), give(1)]),
        give(3),
    ]
}

#[test]
fn products_keep_it() {
    let copies = [acquire(0, 96), signal(0, 64), signal(0, 32), give(0)];
    assert_eq!(fills(&[turns(&[], &[turns(&[], &copies)])]), Ok(()));
    assert_eq!(drains(&product()), Ok(()));
    assert_eq!(drains(&[turns(&[], &product())]), Ok(()));
    // Slots are given back in another order than they were taken.
    assert_eq!(drains(&[take(0), take(1), give(1), give(0)]), Ok(()));
    // A branch that takes and gives back, and one that yields what it took.
    let whole: &[Step] = &[take(0), give(0)];
    assert_eq!(drains(&[branch(&[(whole, &[]), (&[], &[])], &[])]), Ok(()));
    let arms: [(&[Step], &[Name]); 2] = [(&[take(0)], &[0]), (&[take(1)], &[1])];
    assert_eq!(drains(&[branch(&arms, &[2]), give(2)]), Ok(()));
    // Copies in both arms bring the same bytes.
    let arms: [(&[Step], &[Name]); 2] = [(&[signal(0, 64)], &[]), (&[signal(0, 64)], &[])];
    assert_eq!(
        fills(&[acquire(0, 64), branch(&arms, &[]), give(0)]),
        Ok(())
    );
}

#[test]
fn slots_are_given_back_once() {
    broken(drains(&[take(0)]), "not released before the role's end");
    broken(drains(&[take(0), give(0), give(0)]), "released before");
    broken(
        fills(&[acquire(0, 0), give(0), give(0)]),
        "committed before",
    );
    broken(drains(&[give(7)]), "was not waited for from this ring");
    broken(
        drains(&[turns(&[], &[take(0)])]),
        "not released before the loop's next turn",
    );
    broken(
        drains(&[take(0), turns(&[], &[give(0)])]),
        "a slot from outside is released in this loop",
    );
    // The loop carries the slot and gives the new one back instead, or both.
    let lost = turns(&[carried(0, 1, 1, 3)], &[take(2), give(1)]);
    broken(drains(&[take(0), lost, give(3)]), "released before");
    let both = turns(&[carried(0, 1, 2, 3)], &[take(2), give(1), give(2)]);
    broken(drains(&[take(0), both, give(3)]), "released before");
    // After the loop the slot has its name.
    let [first, rest, _] = product();
    broken(drains(&[first, rest, give(2)]), "was not waited for");
    let twice = [carried(0, 1, 1, 3), carried(0, 4, 4, 5)];
    broken(
        drains(&[take(0), turns(&twice, &[]), give(3)]),
        "carries one slot twice",
    );
}

#[test]
fn every_path_gives_back() {
    let arms: [(&[Step], &[Name]); 2] = [(&[give(0)], &[]), (&[], &[])];
    broken(
        drains(&[take(0), branch(&arms, &[])]),
        "released or signalled in one arm",
    );
    let arms: [(&[Step], &[Name]); 2] = [(&[take(0)], &[]), (&[], &[])];
    broken(
        drains(&[branch(&arms, &[])]),
        "not released before the end of the branch",
    );
    let arms: [(&[Step], &[Name]); 2] = [(&[take(1)], &[1]), (&[], &[0])];
    broken(
        drains(&[take(0), branch(&arms, &[2]), give(2)]),
        "in one arm",
    );
    let arms: [(&[Step], &[Name]); 2] = [(&[take(0)], &[0, 0]), (&[take(1)], &[1, 1])];
    broken(
        drains(&[branch(&arms, &[2, 3]), give(2), give(3)]),
        "yields one slot twice",
    );
}

#[test]
fn roles_do_not_wait_for_themselves() {
    let three = [take(0), take(1), take(2), give(0), give(1), give(2)];
    broken(drains(&three), "2 stages of 2 are held already");
    let mut one = plan(&[take(0), give(0)], &product());
    assert_eq!(one.check(), Ok(()));
    // With one stage, the product under way keeps the stage that the next one needs.
    one.stages = 1;
    let reason = one.check().unwrap_err().reason.to_string();
    assert!(reason.contains("1 stages of 1"), "{reason}");
}

#[test]
fn announced_bytes_come_on_every_path() {
    let missing = [acquire(0, 96), signal(0, 64), give(0)];
    broken(fills(&missing), "bring 32 bytes less");
    let more = [acquire(0, 64), signal(0, 64), signal(0, 64), give(0)];
    broken(fills(&more), "bring 64 bytes more");
    let sometimes: [(&[Step], &[Name]); 2] = [(&[signal(0, 64)], &[]), (&[], &[])];
    broken(
        fills(&[acquire(0, 64), branch(&sometimes, &[]), give(0)]),
        "signalled in one arm",
    );
    let often = turns(&[], &[signal(0, 64)]);
    broken(
        fills(&[acquire(0, 64), often, give(0)]),
        "copies in this loop signal a slot from outside",
    );
    let late = [acquire(0, 64), signal(0, 64), give(0), signal(0, 64)];
    broken(fills(&late), "committed before");
}

#[test]
fn counts_are_those_of_the_arrivals() {
    let counted = |change: &dyn Fn(&mut PipelinePlan)| {
        let mut plan = plan(&[take(0), give(0)], &product());
        assert_eq!(plan.check(), Ok(()));
        change(&mut plan);
        plan.check().map_err(|broken| broken.reason.to_string())
    };
    broken(
        counted(&|plan| plan.full = 2),
        "full stages counts 2 arrivals, and 1 are made",
    );
    broken(counted(&|plan| plan.empty = 0), "empty stages counts 0");
    // The consumers of two CTAs release a stage for both.
    broken(
        counted(&|plan| plan.shared_by = 2),
        "counts 1 arrivals, and 2 are made",
    );
    let both = |plan: &mut PipelinePlan| {
        plan.shared_by = 2;
        plan.empty = 2;
    };
    assert_eq!(counted(&both), Ok(()));
    // The same warps at two steps are one team; others are another.
    assert_eq!(counted(&|plan| plan.commits.push(warp(0))), Ok(()));
    broken(
        counted(&|plan| plan.commits.push(warp(1))),
        "counts 1 arrivals, and 2 are made",
    );
    let wider = |plan: &mut PipelinePlan| {
        plan.releases.push(Arrival {
            warps: vec![4, 5],
            made: 2,
            at: AT,
        });
    };
    broken(counted(&wider), "as part of another scope too");
    let stores = |plan: &mut PipelinePlan| {
        plan.commits.push(Arrival { made: 4, ..warp(0) });
    };
    broken(counted(&stores), "by copies alone or by stores alone");
}
