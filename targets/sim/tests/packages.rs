//! A kernel package runs: shapes from the inputs, a constant, a fill, a launch, outputs.

use axe_package::{
    Access, Arg, Buffer, BufferInit, DType, Expr, Kernel, Launch, MANIFEST_VERSION, Manifest,
    MemRef, Package, Param, ParamKind, ScalarType, Step, Symbol, Target, Tensor, TensorSpec,
};
use axe_sim::package::{PackageRunError, run_package};
use axe_sim::{Options, SimError, Simulator};
use std::collections::BTreeMap;

fn package(grid: i64) -> Package {
    let pointer = |name: &str, access| Param {
        name: name.into(),
        kind: ParamKind::Pointer { access, align: 4 },
    };
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        name: "vadd".into(),
        target: Target {
            kind: "nvidia".into(),
            chip: "sm_90a".into(),
        },
        tools: BTreeMap::new(),
        candidate: None,
        source_sha256: "0".repeat(64),
        source: None,
        symbols: vec![Symbol::of_dim("n", "a", 0)],
        inputs: vec![TensorSpec::new("a", DType::F32, [Expr::sym("n")])],
        outputs: vec![TensorSpec::new("c", DType::F32, [Expr::sym("n")])],
        buffers: vec![Buffer {
            name: "b".into(),
            dtype: DType::F32,
            shape: vec![Expr::Const(100)],
            align: 256,
            init: BufferInit::Data {
                file: "b.bin".into(),
            },
        }],
        kernels: vec![Kernel {
            name: "add".into(),
            symbol: "vadd".into(),
            cubin: None,
            program: None,
            sources: Vec::new(),
            ptx: Some("code.ptx".into()),
            params: vec![
                pointer("a", Access::Read),
                pointer("b", Access::Read),
                pointer("c", Access::Write),
                Param {
                    name: "n".into(),
                    kind: ParamKind::Scalar {
                        ty: ScalarType::I32,
                    },
                },
            ],
            block: [32, 1, 1],
            cluster: None,
            dynamic_shared_bytes: 0,
            resources: None,
        }],
        steps: vec![
            Step::Fill {
                to: MemRef::start_of("c"),
                bytes: Expr::Const(4),
                value: 0,
            },
            Step::Launch(Launch {
                kernel: "add".into(),
                args: vec![
                    Arg::Memory(MemRef::start_of("a")),
                    Arg::Memory(MemRef::start_of("b")),
                    Arg::Memory(MemRef::start_of("c")),
                    Arg::Int(Expr::sym("n")),
                ],
                grid: [Expr::Const(grid), Expr::Const(1), Expr::Const(1)],
                overlaps_previous: false,
            }),
        ],
        files: BTreeMap::new(),
    };
    let constant: Vec<u8> = (0..100).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let code = include_str!("data/basics.ptx").as_bytes().to_vec();
    Package::new(
        manifest,
        BTreeMap::from([("b.bin".into(), constant), ("code.ptx".into(), code)]),
    )
    .unwrap()
}

fn input(n: usize) -> BTreeMap<String, Tensor> {
    let ones = (0..n).flat_map(|_| 1f32.to_le_bytes()).collect();
    BTreeMap::from([(
        "a".to_string(),
        Tensor::new(DType::F32, vec![n as u64], ones).unwrap(),
    )])
}

#[test]
fn runs_to_its_outputs() {
    let simulator = Simulator::new(Options::default());
    let run = run_package(&package(4), &input(90), &BTreeMap::new(), &simulator).unwrap();
    let got: Vec<f64> = run.outputs["c"].tensor.iter_f64().collect();
    assert_eq!(got, (0..90).map(|i| f64::from(i + 1)).collect::<Vec<_>>());
    assert_eq!(run.launches.len(), 1);
    assert!(run.launches[0].1.findings.is_empty());
    assert!(run.launches[0].1.counters.thread_instructions() > 0);
}

#[test]
fn what_no_kernel_writes_is_poison_and_counted() {
    for checks in [true, false] {
        let simulator = Simulator::new(Options {
            checks,
            ..Options::default()
        });
        // Two of three CTAs: 26 elements are left, of which nothing filled one.
        let run = run_package(&package(2), &input(90), &BTreeMap::new(), &simulator).unwrap();
        let output = &run.outputs["c"];
        let written = |at: usize| !output.unwritten.at(at);
        assert!((0..90).all(|at| written(at) == (at < 64)), "{checks}");
        assert_eq!(output.unwritten.count(), 26);
        let left = &output.tensor.bytes()[64 * 4..];
        assert!(left.iter().all(|byte| *byte == axe_package::POISON));
        assert!(!output.lacks_input);
    }
}

#[test]
fn a_copy_of_what_nothing_wrote_is_not_written() {
    let mut manifest = package(2).manifest().clone();
    let buffer = |name: &str| Buffer {
        name: name.into(),
        dtype: DType::F32,
        shape: vec![Expr::sym("n")],
        align: 256,
        init: BufferInit::Undefined,
    };
    manifest.buffers.push(buffer("scratch"));
    let Step::Launch(launch) = &mut manifest.steps[1] else {
        panic!("the second step is the launch");
    };
    launch.args[2] = Arg::Memory(MemRef::start_of("scratch"));
    manifest.steps[0] = Step::Copy {
        from: MemRef::start_of("scratch"),
        to: MemRef::start_of("c"),
        bytes: Expr::Const(90 * 4),
    };
    manifest.steps.swap(0, 1);
    let files = ["b.bin", "code.ptx"].map(|name| {
        let bytes = package(2).file(name).unwrap().to_vec();
        (name.to_owned(), bytes)
    });
    let package = Package::new(manifest, BTreeMap::from(files)).unwrap();
    let simulator = Simulator::new(Options::default());
    let run = run_package(&package, &input(90), &BTreeMap::new(), &simulator).unwrap();
    assert_eq!(run.outputs["c"].unwritten.count(), 26);
    // All but the first CTA are left out: the copy holds what it wrote alone, and no other launch read it.
    let simulator = Simulator::new(Options {
        max_ctas: Some(1),
        ..Options::default()
    });
    let run = run_package(&package, &input(90), &BTreeMap::new(), &simulator).unwrap();
    assert_eq!(run.outputs["c"].unwritten.count(), 58);
    assert!(!run.outputs["c"].lacks_input);
}

#[test]
fn a_constant_that_is_too_short_is_out_of_bounds() {
    let simulator = Simulator::new(Options::default());
    let error = run_package(&package(4), &input(120), &BTreeMap::new(), &simulator).unwrap_err();
    assert!(
        matches!(
            &error,
            PackageRunError::Sim {
                error: SimError::Fault(..),
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("`b`"), "{error}");
}

#[test]
fn a_missing_input_is_named() {
    let simulator = Simulator::new(Options::default());
    let dims = BTreeMap::from([("n".to_string(), 4)]);
    let error = run_package(&package(1), &BTreeMap::new(), &dims, &simulator).unwrap_err();
    assert!(matches!(error, PackageRunError::MissingInput(name) if name == "a"));
}

#[test]
fn large_fills_and_copies_reach_every_byte() {
    let bytes = (5 << 19) + 3;
    let mut manifest = package(1).manifest().clone();
    let tensor = |name: &str| TensorSpec::new(name, DType::U8, [Expr::Const(bytes)]);
    (manifest.symbols, manifest.kernels, manifest.inputs) = (vec![], vec![], vec![]);
    manifest.outputs = vec![tensor("filled"), tensor("zero")];
    manifest.buffers[0] = Buffer {
        dtype: DType::U8,
        shape: vec![Expr::Const(bytes)],
        init: BufferInit::ZeroOnLoad,
        ..manifest.buffers[0].clone()
    };
    let at = |name: &str| MemRef {
        name: name.into(),
        offset_bytes: Expr::Const(0),
    };
    let copy = |from: &str, to: &str| Step::Copy {
        from: at(from),
        to: at(to),
        bytes: Expr::Const(bytes),
    };
    let fill = Step::Fill {
        to: at("b"),
        bytes: Expr::Const(bytes),
        value: 7,
    };
    manifest.steps = vec![copy("b", "zero"), fill, copy("b", "filled")];
    let package = Package::new(manifest, BTreeMap::new()).unwrap();
    let simulator = Simulator::new(Options::default());
    let run = run_package(&package, &BTreeMap::new(), &BTreeMap::new(), &simulator).unwrap();
    for (name, value) in [("filled", 7), ("zero", 0)] {
        let bytes = run.outputs[name].tensor.bytes();
        assert!(bytes.iter().all(|byte| *byte == value), "{name}");
    }
}
