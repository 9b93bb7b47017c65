//! What C++ needs of its runtime and of the stack: `malloc` and `free`, `alloca`, `.alias`.

mod common;

use axe_sim::{FindingKind, Launch};
use common::{Given, clean, findings, to_words};

/// 16 threads; `%d0` is the thread's word of the output.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.func (.reg .b32 r) twice(.reg .b32 a) {{ .reg .b64 p; .local .align 4 .b8 l[16]; mov.u64 p, l; st.local.u32 [p], a; st.local.u32 [p+12], a; ld.local.u32 r, [p]; add.u32 r, r, a; ret; }}
.func (.reg .b32 r) other(.reg .b32 a);
.alias other, twice;
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<9>;
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; ld.param.u64 %d0, [out]; add.s64 %d0, %d0, %d1;
{body}
ret; }}"
    )
}

fn start() -> Launch {
    Launch::new("k", 1, 16, vec![])
}

/// `%d4` is a block of thread * 4 + 4 bytes.
const BLOCK: &str = "add.s64 %d2, %d1, 4;
{ .param .b64 n; .param .b64 r; st.param.b64 [n], %d2; call.uni (r), malloc, (n); ld.param.b64 %d4, [r]; }";
const FREE: &str = "{ .param .b64 n; st.param.b64 [n], %d4; call.uni free, (n); }";

#[test]
fn blocks_of_the_heap_are_the_threads_own() {
    let body = format!(
        "{BLOCK} add.s64 %d5, %d4, %d1; st.u32 [%d5], %r0; ld.u32 %r1, [%d5]; st.global.u32 [%d0], %r1; {FREE}"
    );
    let out = clean(&kernel(&body), &start(), || vec![Given::Out(64)]);
    assert_eq!(to_words(&out[0]), (0..16).collect::<Vec<_>>());
}

#[test]
fn misuse_of_the_heap_is_found() {
    let use_it = "add.s64 %d5, %d4, %d1; st.global.u32 [%d5], %r0;";
    for (body, kind, text) in [
        (
            format!("{BLOCK} st.global.u32 [%d4+64], %r0;"),
            FindingKind::OutOfBounds,
            "block of 4 bytes from malloc",
        ),
        (
            format!("{BLOCK} {FREE} {use_it}"),
            FindingKind::OutOfBounds,
            "use after free",
        ),
        (
            format!("{BLOCK} {FREE} {FREE}"),
            FindingKind::Invalid,
            "is free",
        ),
        (
            format!("{BLOCK} add.s64 %d4, %d4, 4; {FREE}"),
            FindingKind::Invalid,
            "did not return",
        ),
        (
            format!("{BLOCK} ld.global.u32 %r1, [%d4]; st.global.u32 [%d0], %r1;"),
            FindingKind::Unwritten,
            "from malloc",
        ),
    ] {
        let all = findings(&kernel(&body), &start(), vec![Given::Out(64)], 0);
        let hit = all
            .iter()
            .any(|f| f.kind == kind && f.message.contains(text));
        assert!(hit, "{text}: {all:?}");
    }
    // Free of null does nothing.
    clean(
        &kernel(&format!("mov.u64 %d4, 0; {FREE}")),
        &start(),
        || vec![Given::Out(64)],
    );
}

#[test]
fn pieces_of_the_stack_have_bounds_and_end_with_a_restore() {
    // Lanes ask for different sizes; a call in between has its own variables.
    let sum = "and.b32 %r1, %r0, 3; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, 4; cvt.u64.u32 %d2, %r1; stacksave.u64 %d8;
alloca.u64 %d3, %d2, 16; add.s64 %d4, %d3, %d2; st.local.u32 [%d4+-4], %r0; call (%r2), other, (%r0); ld.local.u32 %r3, [%d4+-4];
stackrestore.u64 %d8; stacksave.u64 %d9; setp.eq.u64 %p1, %d8, %d9; add.u32 %r2, %r2, %r3; selp.b32 %r2, %r2, 99, %p1; st.global.u32 [%d0], %r2;";
    let out = clean(&kernel(sum), &start(), || vec![Given::Out(64)]);
    assert_eq!(
        to_words(&out[0]),
        (0..16).map(|i| 3 * i).collect::<Vec<_>>()
    );
    for (from, to, kind) in [
        (
            "st.local.u32 [%d4+-4]",
            "st.local.u32 [%d4]",
            FindingKind::OutOfBounds,
        ),
        ("st.local.u32 [%d4+-4], %r0;", "", FindingKind::Unwritten),
        (
            "16; add",
            "16; stackrestore.u64 %d8; add",
            FindingKind::OutOfBounds,
        ),
        (
            "cvt.u64.u32 %d2, %r1",
            "mov.u64 %d2, 600000",
            FindingKind::Invalid,
        ),
    ] {
        let wrong = sum.replacen(from, to, 1);
        assert_ne!(sum, wrong);
        let all = findings(&kernel(&wrong), &start(), vec![Given::Out(64)], 0);
        assert!(all.iter().any(|f| f.kind == kind), "{to}: {all:?}");
    }
}
