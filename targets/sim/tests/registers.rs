//! `setmaxnreg`: the CTA's pool of registers.

mod common;

use axe_sim::{Finding, FindingKind, Launch};

/// Three warpgroups; the first runs `first`, the others `rest`.
fn kernel(directives: &str, first: &str, rest: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64
.visible .entry k() {directives}
{{
.reg .b32 %r<3>; .reg .pred %p<2>;
mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 128; @%p0 bra first;
{rest}
bra over;
first: {first}
over: ret;
}}\n"
    )
}

fn change(how: &str, count: u32) -> String {
    format!("setmaxnreg.{how}.sync.aligned.u32 {count};")
}

fn findings(text: &str) -> Vec<Finding> {
    let start = Launch::new("k", 1, 384, Vec::new());
    (0..4)
        .flat_map(|seed| common::findings(text, &start, Vec::new(), seed))
        .collect()
}

#[test]
fn what_one_gives_the_others_take() {
    // 384 threads leave 168 registers each: 40 + 2 * 232 = 3 * 168.
    for directives in [
        ".maxntid 384, 1, 1",
        ".reqntid 384, 1, 1",
        ".maxnreg 168",
        "",
    ] {
        let text = kernel(directives, &change("dec", 40), &change("inc", 232));
        assert_eq!(findings(&text), [], "{directives}");
        // Nobody gives before the others have taken, but they only wait.
        let late = format!("nanosleep.u32 20; bar.sync 1, 128; {}", change("dec", 40));
        assert_eq!(
            findings(&kernel(directives, &late, &change("inc", 232))),
            []
        );
    }
}

#[test]
fn a_pool_that_is_too_small_is_a_deadlock() {
    for (directives, dec, inc) in [
        (".maxntid 384, 1, 1", 40, 240),
        (".maxnreg 160", 40, 232),
        (".maxntid 384, 1, 1 .minnctapersm 2", 24, 120),
    ] {
        let all = findings(&kernel(
            directives,
            &change("dec", dec),
            &change("inc", inc),
        ));
        let hit = |f: &Finding| {
            f.kind == FindingKind::Deadlock && f.message.contains("the CTA's pool has")
        };
        assert!(all.iter().any(hit), "{directives}: {all:?}");
    }
    let all = findings(&kernel("", "", &change("inc", 232)));
    assert!(
        common::kinds(&all).contains(&FindingKind::Deadlock),
        "{all:?}"
    );
}

#[test]
fn wrong_directions_and_parts_of_warps_are_found() {
    let all = findings(&kernel(".maxnreg 64", &change("dec", 72), ""));
    assert!(
        common::kinds(&all).contains(&FindingKind::Invalid),
        "{all:?}"
    );
    let all = findings(&kernel(".maxnreg 64", &change("inc", 56), ""));
    assert!(
        common::kinds(&all).contains(&FindingKind::Invalid),
        "{all:?}"
    );
    let part = format!("setp.lt.u32 %p1, %r0, 16; @%p1 {}", change("dec", 40));
    let all = findings(&kernel(".maxnreg 64", &part, ""));
    assert!(
        common::kinds(&all).contains(&FindingKind::BarrierDivergence),
        "{all:?}"
    );
}
