//! Clusters: shared memory of the neighbour, the cluster barrier, multicast copies, dynamic shared memory.

mod common;
use axe_sim::{FindingKind as Kind, Launch};
use common::{Given, clean, findings, kinds, to_words, words};

fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64
.extern .shared .align 128 .b8 dyn[];
.visible .entry k(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<9>; .reg .b16 %h<3>; .reg .b32 %r<30>; .reg .b64 %d<30>;
.shared .align 8 .b64 bar; .shared .align 4 .b32 s[32];
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r4, %r3, 32, %r0; mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d1, %d2; setp.eq.u32 %p0, %r0, 0;
mov.u32 %r5, s; shl.b32 %r6, %r0, 2; add.u32 %r7, %r5, %r6;
{body}
ret;
}}"
    )
}

fn pair(smem: u64) -> Launch {
    Launch {
        cluster: [2, 1, 1],
        smem,
        ..Launch::new("k", 4, 32, vec![])
    }
}

fn given() -> Vec<Given> {
    vec![
        Given::In(words(&(0..32).map(|i| 1000 + i).collect::<Vec<_>>())),
        Given::Out(4 * 128),
    ]
}

const SYNC: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

#[test]
fn a_cta_reads_its_neighbours_shared_memory_after_the_cluster_barrier() {
    let body = |sync: &str, end: &str| {
        format!(
            "add.u32 %r8, %r4, 500; st.shared.u32 [%r7], %r8; {sync}
mapa.shared::cluster.u32 %r9, %r7, %r2; ld.shared::cluster.u32 %r10, [%r9]; st.global.u32 [%d2], %r10; {end}"
        )
    };
    let out = clean(&kernel(&body(SYNC, SYNC)), &pair(0), given);
    let want: Vec<u32> = (0..128).map(|i| 500 + (i ^ 32)).collect();
    assert_eq!(to_words(&out[1]), want);
    let all = findings(&kernel(&body("bar.sync 0;", SYNC)), &pair(0), given(), 0);
    assert!(
        kinds(&all)
            .iter()
            .any(|k| matches!(k, Kind::Race | Kind::Unwritten)),
        "{all:?}"
    );
}

#[test]
fn who_arrives_and_ends_is_not_waited_for_and_stands_for_no_other() {
    let body = format!(
        "setp.ge.u32 %p3, %r0, 32; @%p3 bra early;
add.u32 %r8, %r4, 500; st.shared.u32 [%r7], %r8; {SYNC}
mapa.shared::cluster.u32 %r9, %r7, %r2; ld.shared::cluster.u32 %r10, [%r9]; st.global.u32 [%d2], %r10; {SYNC}
ret;
early: barrier.cluster.arrive.aligned;"
    );
    let launch = Launch {
        block: [96, 1, 1],
        ..pair(0)
    };
    let out = clean(&kernel(&body), &launch, given);
    let want: Vec<u32> = (0..128).map(|i| 500 + (i ^ 32)).collect();
    assert_eq!(to_words(&out[1]), want);
}

const MULTICAST: &str = "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.eq.u32 %p1, %r1, 0; and.pred %p1, %p1, %p0; mov.u16 %h0, 3; mov.u32 %r11, dyn; mov.u32 %r12, bar;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r11], [%d0], 128, [%r12], %h0;
WAIT
add.u32 %r13, %r11, %r6; ld.shared.u32 %r14, [%r13]; st.global.u32 [%d2], %r14;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

#[test]
fn a_multicast_copy_completes_on_the_barrier_of_every_cta() {
    let wait = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra wait;";
    let out = clean(&kernel(&MULTICAST.replace("WAIT", wait)), &pair(256), given);
    assert_eq!(
        to_words(&out[1]),
        (0..128).map(|i| 1000 + i % 32).collect::<Vec<u32>>()
    );
    for seed in 0..3 {
        let all = findings(
            &kernel(&MULTICAST.replace("WAIT", "")),
            &pair(256),
            given(),
            seed,
        );
        let known = kinds(&all);
        assert!(
            known.contains(&Kind::Race) || known.contains(&Kind::Unwritten),
            "seed {seed}: {all:?}"
        );
    }
}

#[test]
fn a_neighbour_that_does_not_exist_is_out_of_bounds() {
    let body = "mapa.shared::cluster.u32 %r9, %r7, 5; ld.shared::cluster.u32 %r10, [%r9];";
    assert_eq!(
        kinds(&findings(&kernel(body), &pair(0), given(), 0)),
        [Kind::OutOfBounds]
    );
}

#[test]
fn more_dynamic_memory_than_the_machine_has_is_refused() {
    let result = common::launch(
        &kernel(""),
        axe_sim::Options::default(),
        pair(300_000),
        given(),
    );
    assert!(
        result
            .err()
            .is_some_and(|e| e.to_string().contains("shared memory"))
    );
}
