//! Each check finds its fault, and is silent when the fault is mended.

mod common;
use axe_sim::{Finding, FindingKind as Kind, Launch};
use common::{Given, findings, kinds};

/// A kernel with one pointer parameter in `%d0`, the thread in `%r0`, and `%d1 = %d0 + 4 tid`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>;
.shared .align 16 .b8 s[4096]; .shared .align 8 .b64 bar;
ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;
mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2; setp.eq.u32 %p0, %r0, 0;
{body}
ret;
}}"
    )
}

fn found(threads: u32, body: &str) -> Vec<Finding> {
    findings(
        &kernel(body),
        &Launch::new("k", 1, threads, vec![]),
        vec![Given::In(vec![0; 4096])],
        0,
    )
}

fn assert_finds(threads: u32, body: &str, kind: Kind, mended: &str) {
    let all = found(threads, body);
    assert!(kinds(&all).contains(&kind), "wanted {kind:?}, got {all:#?}");
    assert!(all.iter().all(|f| f.place.line > 0));
    let all = found(threads, mended);
    assert!(all.is_empty(), "the mended kernel gives {}", all[0]);
}

const SWAP: &str = "st.shared.u32 [%r2], %r0; SYNC
xor.b32 %r3, %r2, WHO; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d1], %r4;";

#[test]
fn races_between_warps_need_a_barrier() {
    let body = |sync: &str| SWAP.replace("SYNC", sync).replace("WHO", "128");
    assert_finds(
        64,
        &body("bar.warp.sync -1;"),
        Kind::Race,
        &body("bar.sync 0;"),
    );
}

#[test]
fn races_between_lanes_need_a_warp_barrier() {
    let body = |sync: &str| SWAP.replace("SYNC", sync).replace("WHO", "4");
    assert_finds(32, &body(""), Kind::Race, &body("bar.warp.sync -1;"));
}

#[test]
fn races_in_global_memory() {
    assert_finds(
        64,
        "st.global.u32 [%d0], %r0;",
        Kind::Race,
        "st.global.u32 [%d1], %r0;",
    );
    assert_finds(
        64,
        "st.global.u32 [%d0], %r0;",
        Kind::Race,
        "atom.global.add.u32 %r5, [%d0], %r0;",
    );
    let grid = Launch::new("k", 4, 32, vec![]);
    let all = findings(
        &kernel("mov.u32 %r0, %ctaid.x; st.global.u32 [%d1], %r0;"),
        &grid,
        vec![Given::In(vec![0; 4096])],
        0,
    );
    assert!(kinds(&all).contains(&Kind::Race), "{all:?}");
}

#[test]
fn neighbouring_bytes_do_not_race() {
    let body = "cvt.u64.u32 %d3, %r0; add.s64 %d3, %d0, %d3; st.global.u8 [%d3], %r0; ld.global.u8 %r5, [%d3];";
    assert!(found(64, body).is_empty());
}

#[test]
fn flags_need_release_and_acquire() {
    let message = "setp.eq.u32 %p1, %r0, 32; setp.ne.u32 %p2, %r0, 0; @%p2 bra reader;
st.shared.u32 [s], 7; mov.u32 %r5, 1; STORE [s+64], %r5; bra end;
reader: @!%p1 bra end;
poll: LOAD %r6, [s+64]; setp.ne.u32 %p3, %r6, 1; @%p3 bra poll;
ld.shared.u32 %r7, [s]; st.global.u32 [%d0], %r7; end:";
    let init = "@%p0 st.shared.u32 [s+64], 0; bar.sync 0;\n";
    let with = |store: &str, load: &str| {
        format!(
            "{init}{}",
            message.replace("STORE", store).replace("LOAD", load)
        )
    };
    assert_finds(
        64,
        &with("st.relaxed.cta.shared.u32", "ld.relaxed.cta.shared.u32"),
        Kind::Race,
        &with("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32"),
    );
    let fenced = with(
        "fence.acq_rel.cta; st.relaxed.cta.shared.u32",
        "ld.relaxed.cta.shared.u32",
    )
    .replace("ld.shared.u32 %r7", "fence.acq_rel.cta; ld.shared.u32 %r7");
    assert!(found(64, &fenced).is_empty(), "{:?}", found(64, &fenced));
}

#[test]
fn memory_that_nothing_wrote() {
    let good = "st.shared.u32 [%r2], %r0; ld.shared.u32 %r3, [%r2]; st.global.u32 [%d1], %r3;";
    assert_finds(
        32,
        "ld.shared.u32 %r3, [%r2]; st.global.u32 [%d1], %r3;",
        Kind::Unwritten,
        good,
    );
    let text = kernel("ld.global.u32 %r3, [%d1]; st.global.u32 [%d1], %r3;");
    let all = findings(
        &text,
        &Launch::new("k", 1, 32, vec![]),
        vec![Given::Out(4096)],
        0,
    );
    assert!(kinds(&all).contains(&Kind::Unwritten));
}

#[test]
fn accesses_out_of_bounds() {
    assert_finds(
        32,
        "st.global.u32 [%d1+4000], %r0;",
        Kind::OutOfBounds,
        "st.global.u32 [%d1+3968], %r0;",
    );
    assert_finds(
        32,
        "st.shared.u32 [%r2+5000], %r0;",
        Kind::OutOfBounds,
        "st.shared.u32 [%r2+3968], %r0;",
    );
    assert_finds(
        32,
        "mov.u64 %d5, 16; ld.global.u32 %r3, [%d5];",
        Kind::OutOfBounds,
        "",
    );
}

#[test]
fn misaligned_accesses() {
    assert_finds(
        32,
        "ld.global.u32 %r3, [%d1+2];",
        Kind::Misaligned,
        "ld.global.u32 %r3, [%d1+4];",
    );
    assert_finds(
        1,
        "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d0+8];",
        Kind::Misaligned,
        "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d0+16];",
    );
}

#[test]
fn barriers_that_part_of_a_warp_reaches() {
    assert_finds(
        32,
        "setp.lt.u32 %p1, %r0, 16; @%p1 bar.sync 0;",
        Kind::BarrierDivergence,
        "bar.sync 0;",
    );
}

#[test]
fn deadlocks_say_who_waits() {
    let all = found(64, "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1, 64;");
    assert_eq!(kinds(&all), [Kind::Deadlock], "{all:?}");
    assert!(all[0].message.contains("barrier 1"), "{}", all[0].message);
    let start = "@%p0 mbarrier.init.shared.b64 [bar], COUNT; bar.sync 0; @%p0 mbarrier.arrive.shared.b64 _, [bar];
w: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra w;";
    let all = found(32, &start.replace("COUNT", "2"));
    assert_eq!(kinds(&all), [Kind::Deadlock], "{all:?}");
    assert!(
        all[0].message.contains("waits for 1 of 2 arrivals"),
        "{}",
        all[0].message
    );
    assert!(found(32, &start.replace("COUNT", "1")).is_empty());
}

#[test]
fn deadlocks_where_lanes_meet_are_found_too() {
    let body =
        "setp.lt.u32 %p1, %r0, 16; @%p1 bra meet; add.u32 %r5, %r0, 1; meet: bar.sync 1, 96;";
    assert_eq!(kinds(&found(64, body)), [Kind::Deadlock]);
}

#[test]
fn mbarriers_that_are_misused() {
    assert!(
        kinds(&found(
            1,
            "st.shared.u64 [bar], 0; mbarrier.arrive.shared.b64 _, [bar];"
        ))
        .contains(&Kind::BarrierMisuse)
    );
    let twice = "@%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64; mbarrier.arrive.shared.b64 _, [bar];";
    assert!(kinds(&found(1, twice)).contains(&Kind::BarrierMisuse));
}

const COPY: &str =
    "mov.u32 %r5, %r2; cp.async.ca.shared.global [%r5], [%d1], 4; cp.async.commit_group; WAIT
ld.shared.u32 %r6, [%r2]; st.global.u32 [%d1], %r6; cp.async.wait_all;";

#[test]
fn asynchronous_copies_need_their_wait() {
    assert_finds(
        32,
        &COPY.replace("WAIT", ""),
        Kind::Race,
        &COPY.replace("WAIT", "cp.async.wait_group 0;"),
    );
    let exit = "cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.commit_group;";
    assert_finds(
        32,
        exit,
        Kind::OutstandingAsync,
        &format!("{exit} cp.async.wait_all;"),
    );
}

#[test]
fn bulk_stores_need_a_proxy_fence() {
    let body = "st.shared.u32 [%r2], %r0; FENCE bar.sync 0; @!%p0 bra end;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; end:";
    assert_finds(
        32,
        &body.replace("FENCE", ""),
        Kind::MissingProxyFence,
        &body.replace("FENCE", "fence.proxy.async;"),
    );
}

#[test]
fn shuffles_from_lanes_that_do_not_take_part() {
    let body = "setp.lt.u32 %p1, %r0, 16; @!%p1 bra end; shfl.sync.idx.b32 %r5, %r0, LANE, 31, 0xffff; end:";
    assert_finds(
        32,
        &body.replace("LANE", "20"),
        Kind::Invalid,
        &body.replace("LANE", "10"),
    );
}

#[test]
fn an_election_without_voters_has_no_leader() {
    let body = "elect.sync %r5|%p1, MASK;";
    assert_finds(
        32,
        &body.replace("MASK", "0"),
        Kind::Invalid,
        &body.replace("MASK", "-1"),
    );
}

#[test]
fn endless_loops_hit_the_limit() {
    assert!(kinds(&found(32, "l: bra l;")).contains(&Kind::Limit));
}

#[test]
fn reports_name_the_source_line() {
    let all = found(64, ".loc 1 42 7\nst.global.u32 [%d0], %r0;");
    assert_eq!(all[0].place.source.as_deref(), Some("?:42:7"));
}
