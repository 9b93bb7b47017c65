//! Blackwell kernels: tensor memory, `tcgen05.mma`, and the checks that belong to them.

#[path = "common/blackwell.rs"]
mod blackwell;
mod common;
#[allow(dead_code, reason = "only its matrices are used")]
#[path = "common/gemm.rs"]
mod gemm;

use axe_sim::{Arg, Device, Finding, FindingKind, Launch, Module, Options, SimError, Simulator};
use blackwell::N;

const K: u32 = 64 * 5;

fn run(text: &str, ctas: u32, options: Options) -> Result<(Vec<f32>, Vec<Finding>), SimError> {
    let module = Module::parse(text)?;
    let mut device = Device::new();
    let (rows, columns) = (128 * ctas, N / ctas);
    let (a, b) = (gemm::matrix(rows, K), gemm::matrix(N, K));
    let [at_a, at_b] = [(&a, "A"), (&b, "B")].map(|(data, name)| {
        let at = device.alloc(name, data.len() as u64).unwrap();
        device.copy_in(at, data).unwrap();
        at
    });
    let bytes = rows * N * 4;
    let at_c = device.alloc("C", bytes.into()).unwrap();
    let launch = Launch {
        kernel: "gemm".into(),
        grid: [ctas, 1, 1],
        block: [128, 1, 1],
        cluster: [ctas, 1, 1],
        smem: blackwell::shared_bytes(),
        args: vec![
            Arg::Bytes(gemm::map(at_a, rows, K, 128)),
            Arg::Bytes(gemm::map(at_b, N, K, columns)),
            Arg::Ptr(at_c),
            Arg::U32(K / 64),
        ],
    };
    let report = Simulator::new(options).run(&mut device, &module, &launch)?;
    let mut out = vec![0; bytes as usize];
    device.copy_out(at_c, &mut out).unwrap();
    Ok((common::to_floats(&out), report.findings))
}

fn expected(rows: u32) -> Vec<f32> {
    let dot = |r, c| (0..K).map(|k| gemm::value(r, k) * gemm::value(c, k)).sum();
    (0..rows)
        .flat_map(|r| (0..N).map(move |c| dot(r, c)))
        .collect()
}

fn right_under_every_schedule(text: &str, ctas: u32) {
    for seed in 0..6 {
        for checks in [true, false] {
            let options = Options {
                seed,
                checks,
                ..Options::default()
            };
            let (out, findings) = run(text, ctas, options).unwrap_or_else(|e| panic!("{e}"));
            assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
            assert!(out == expected(128 * ctas), "seed {seed}, checks {checks}");
        }
    }
}

#[test]
fn gemm_of_one_cta() {
    right_under_every_schedule(&blackwell::one_cta(), 1);
}

#[test]
fn gemm_of_a_pair_of_ctas() {
    right_under_every_schedule(&blackwell::pair(), 2);
}

/// Findings of a kernel whose tagged lines are replaced.
fn broken(text: &str, ctas: u32, tag: &str, replace: impl Fn(&str) -> String) -> Vec<Finding> {
    let marker = format!("// @{tag}");
    let lines = text.lines().map(|line| match line.ends_with(&marker) {
        true => replace(line),
        false => line.to_string(),
    });
    let changed = lines.collect::<Vec<_>>().join("\n");
    assert_ne!(changed, text.trim_end(), "no line is tagged {tag}");
    let mut all = Vec::new();
    for seed in 0..3 {
        let options = Options {
            seed,
            max_warp_instructions: 1 << 20,
            ..Options::default()
        };
        match run(&changed, ctas, options) {
            Ok((_, findings)) => all.extend(findings),
            Err(SimError::Fault(fault, earlier)) => {
                all.extend(earlier);
                all.push(*fault);
            }
            Err(other) => panic!("{other}"),
        }
    }
    all
}

fn found(tag: &str, kind: FindingKind, words: &str, replace: impl Fn(&str) -> String) {
    let all = broken(&blackwell::one_cta(), 1, tag, replace);
    let hit = all
        .iter()
        .any(|f| f.kind == kind && f.message.contains(words));
    assert!(hit, "{tag}: {all:#?}");
}

#[test]
fn waits_and_commits_are_missed() {
    let none = |_: &str| String::new();
    found("done_wait", FindingKind::Race, "tensor memory", |line| {
        // The label stays.
        if line.starts_with("done_wait:") {
            line.into()
        } else {
            String::new()
        }
    });
    found("commit", FindingKind::Deadlock, "mbarrier", none);
    found("release", FindingKind::Deadlock, "mbarrier", none);
    found("full_wait", FindingKind::Race, "", |line| {
        if line.starts_with("full_wait:") {
            line.into()
        } else {
            String::new()
        }
    });
    found(
        "wait_ld",
        FindingKind::WgmmaRegisters,
        "tcgen05.wait::ld",
        none,
    );
    found("last", FindingKind::Race, "tensor memory", none);
}

/// LLVM moves arithmetic above the wait of Triton's kernels; the assembler keeps the order of the registers.
#[test]
fn a_use_before_a_wait_that_follows_is_a_note() {
    let late = blackwell::one_cta().replace(
        "bar.sync 0; // @last",
        "tcgen05.wait::ld.sync.aligned; bar.sync 0;",
    );
    let none = |_: &str| String::new();
    let found = broken(&late, 1, "wait_ld", none);
    assert!(found.is_empty(), "{}", found[0]);
    // The next load into the same registers is too late for it.
    let again = late.replace(" // @wait_ld", " // @ld_again");
    let twice = broken(&again, 1, "ld", |line| {
        let used = "add.f32 %acc0, %acc0, %acc0;";
        format!("{line}\n{used}\n{line}")
    });
    assert!(
        twice.iter().all(|f| f.kind == FindingKind::WgmmaRegisters) && !twice.is_empty(),
        "{twice:?}"
    );
}

#[test]
fn misuse_of_tensor_memory_is_found() {
    found(
        "dealloc",
        FindingKind::OutstandingAsync,
        "32 columns",
        |_| String::new(),
    );
    found("dealloc", FindingKind::Invalid, "no allocation", |line| {
        line.replace(", 32;", ", 64;")
    });
    found("alloc", FindingKind::Invalid, "powers of two", |line| {
        line.replace(", 32;", ", 48;")
    });
    found("first", FindingKind::Unwritten, "tensor memory", |line| {
        line.replace("ne", "ge")
    });
    found("lanes", FindingKind::OutOfBounds, "not allocated", |line| {
        format!("{line}\nadd.u32 %r40, %r40, 16;")
    });
    found("lanes", FindingKind::Invalid, "its own are", |line| {
        format!("{line}\nadd.u32 %r40, %r40, 0x100000;")
    });
    found("ld", FindingKind::BarrierDivergence, "only lanes", |line| {
        format!("@%p0 {line}")
    });
}

#[test]
fn one_thread_multiplies_not_a_warp() {
    let text =
        blackwell::one_cta().replace("setp.eq.u32 %p2, %r0, 32;", "setp.eq.u32 %p2, %r7, 1;");
    let options = Options::default();
    let all = match run(&text, 1, options) {
        Ok((_, findings)) => findings,
        Err(SimError::Fault(fault, mut earlier)) => {
            earlier.push(*fault);
            earlier
        }
        Err(other) => panic!("{other}"),
    };
    assert!(
        all.iter()
            .any(|f| f.message.contains("32 threads issue it")),
        "{all:?}"
    );
}

#[test]
fn the_pair_must_meet_and_agree() {
    let all = broken(&blackwell::pair(), 2, "both", |_| {
        "mbarrier.arrive.shared::cta.b64 _, [%r5];".into()
    });
    assert!(
        all.iter().any(|f| f.kind == FindingKind::Deadlock),
        "{all:?}"
    );
    let all = broken(&blackwell::pair(), 2, "last", |_| "bar.sync 0;".into());
    assert!(all.is_empty(), "each CTA frees its own columns: {all:?}");
    let text = blackwell::pair().replace("dealloc.cta_group::2", "dealloc.cta_group::1");
    let module = Module::parse(&text).unwrap();
    let errors: Vec<String> = module.unsupported().map(ToString::to_string).collect();
    let message = "different .cta_group";
    assert!(errors.iter().any(|e| e.contains(message)), "{errors:?}");
}
