//! Values from memory that nothing wrote: their use is found, not their load.

mod common;

use axe_sim::{FindingKind, Launch};
use common::{Given, clean, findings, kinds, to_words};

/// One warp; lanes below 16 have written their word of `s`. `%r9` goes to the output.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>; .shared .align 4 .b8 s[128];
mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;
ld.param.u64 %d0, [out]; cvt.u64.u32 %d1, %r1; add.s64 %d0, %d0, %d1;
setp.lt.u32 %p1, %r0, 16; @%p1 st.shared.u32 [%r2], %r0; bar.warp.sync -1;
{body}
st.global.u32 [%d0], %r9; ret; }}"
    )
}

fn start() -> Launch {
    Launch::new("k", 1, 32, vec![])
}

#[test]
fn what_a_test_leaves_out_is_no_finding() {
    let low =
        |other: u32| -> Vec<u32> { (0..32).map(|i| if i < 16 { i } else { other }).collect() };
    for body in [
        // A merge loads ahead of its bounds' test, compares, and then selects.
        "ld.shared.u32 %r3, [%r2]; add.u32 %r4, %r3, 0; selp.b32 %r9, %r4, 7, %p1;",
        "ld.shared.u32 %r3, [%r2]; setp.lt.u32 %p2, %r3, 99; and.pred %p3, %p2, %p1; selp.b32 %r9, %r0, 7, %p3;",
        "ld.shared.u32 %r3, [%r2]; setp.lt.and.u32 %p3, %r3, 99, %p1; selp.b32 %r9, %r0, 7, %p3;",
        "ld.shared.u32 %r3, [%r2]; setp.gt.u32 %p2, %r3, 99; not.pred %p4, %p1; or.pred %p3, %p2, %p4; selp.b32 %r9, 7, %r0, %p3;",
        "ld.shared.u32 %r3, [%r2]; mov.u32 %r9, 7; @%p1 mov.u32 %r9, %r3;",
        "ld.shared.u32 %r9, [%r2]; @!%p1 mov.u32 %r9, 7;",
    ] {
        let out = clean(&kernel(body), &start(), || vec![Given::Out(128)]);
        assert_eq!(to_words(&out[0]), low(7), "{body}");
    }
    // Each lane takes what another has written.
    let body = "ld.shared.u32 %r3, [%r2]; shfl.sync.idx.b32 %r9, %r3, 3, 31, -1;";
    let out = clean(&kernel(body), &start(), || vec![Given::Out(128)]);
    assert_eq!(to_words(&out[0]), [3; 32]);
}

#[test]
fn every_use_is_found_at_the_load() {
    for body in [
        "ld.shared.u32 %r9, [%r2];",
        "ld.shared.u32 %r3, [%r2]; add.u32 %r9, %r3, 1;",
        "ld.shared.u32 %r3, [%r2]; shfl.sync.idx.b32 %r9, %r3, 20, 31, -1;",
        "mov.u32 %r9, 0; ld.shared.u32 %r3, [%r2]; setp.eq.u32 %p2, %r3, 5; @%p2 bra over; mov.u32 %r9, 1; over:",
        "mov.u32 %r9, 0; ld.shared.u32 %r3, [%r2]; setp.eq.u32 %p2, %r3, 5; selp.b32 %r9, 1, 2, %p2;",
        "ld.shared.u32 %r3, [%r2]; and.b32 %r3, %r3, 31; add.u32 %r3, %r3, %r2; ld.shared.u8 %r9, [%r3];",
        "ld.shared.u32 %r3, [%r2]; redux.sync.add.u32 %r9, %r3, -1;",
        "mov.u32 %r9, 0; ld.shared.u32 %r3, [%r2]; setp.eq.u32 %p2, %r3, 5; vote.sync.ballot.b32 %r9, %p2, -1;",
        "ld.shared.u32 %r3, [%r2]; setp.lt.u32 %p2, %r3, 99; or.pred %p3, %p2, %p1; selp.b32 %r9, %r0, 7, %p3;",
    ] {
        let all = findings(&kernel(body), &start(), vec![Given::Out(128)], 0);
        let unwritten = |f: &&axe_sim::Finding| f.kind == FindingKind::Unwritten;
        let first = all
            .iter()
            .find(unwritten)
            .unwrap_or_else(|| panic!("{body}: {all:?}"));
        assert!(first.place.instruction.starts_with("ld.shared"), "{first}");
        assert!(first.message.contains("used at PTX line"), "{first}");
    }
}

#[test]
fn only_the_missing_part_of_a_vector_is_undefined() {
    let vector = |used: &str| {
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %d; .shared .align 8 .b8 s[8];
ld.param.u64 %d, [out]; mov.u32 %r0, s; st.shared.u32 [%r0], 5; ld.shared.v2.u32 {{%r1, %r2}}, [%r0]; xor.b32 %r3, %r2, %r1;
st.global.u32 [%d], {used}; ret; }}"
        )
    };
    let found = |used| {
        kinds(&findings(
            &vector(used),
            &Launch::new("k", 1, 1, vec![]),
            vec![Given::Out(4)],
            0,
        ))
    };
    assert_eq!(found("%r1"), []);
    assert_eq!(found("%r3"), [FindingKind::Unwritten]);
}

#[test]
fn only_the_missing_bytes_of_a_word_are_undefined() {
    let word = |taken: &str| {
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %d; .shared .align 4 .b8 s[4];
ld.param.u64 %d, [out]; mov.u32 %r0, s; st.shared.u16 [%r0], 5; st.shared.u8 [%r0+2], 6; ld.shared.u32 %r1, [%r0]; {taken}
st.global.u32 [%d], %r2; ret; }}"
        )
    };
    let found = |taken| {
        kinds(&findings(
            &word(taken),
            &Launch::new("k", 1, 1, vec![]),
            vec![Given::Out(4)],
            0,
        ))
    };
    for defined in [
        "prmt.b32 %r2, %r1, 0, 0x7772U;",
        "and.b32 %r2, %r1, 0xffffff;",
        "shl.b32 %r2, %r1, 8;",
        "bfe.u32 %r2, %r1, 8, 16;",
    ] {
        assert_eq!(found(defined), [], "{defined}");
    }
    for undefined in [
        "prmt.b32 %r2, %r1, 0, 0x7773U;",
        "and.b32 %r2, %r1, 0x1000000;",
        "shr.u32 %r2, %r1, 8;",
        "add.u32 %r2, %r1, 1;",
        "mov.b32 %r2, %r1;",
    ] {
        assert_eq!(found(undefined), [FindingKind::Unwritten], "{undefined}");
    }
}
