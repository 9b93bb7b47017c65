//! A package with every feature: a dynamic dimension, a constant, a workspace, a tensor map, a
//! cluster launch, a fill and a copy. Its "code" is text; nothing here runs it.

use std::collections::BTreeMap;

use axe_package::*;

/// The package's manifest. It computes nothing sensible.
pub fn manifest() -> Manifest {
    let m = || Expr::sym("M");
    let map = TensorMapType {
        swizzle: Swizzle::B128,
        ..TensorMapType::new(TensorMapDType::F16, [64, 128])
    };
    let param = |name: &str, kind| Param {
        name: name.into(),
        kind,
    };
    let pointer = |access| ParamKind::Pointer { access, align: 16 };
    let gemm = Kernel {
        name: "gemm".into(),
        symbol: "gemm_kernel".into(),
        cubin: Some("code/gemm.cubin".into()),
        program: None,
        sources: Vec::new(),
        ptx: Some("code/gemm.ptx".into()),
        params: vec![
            param(
                "a",
                ParamKind::TensorMap {
                    access: Access::Read,
                    map,
                },
            ),
            param("w", pointer(Access::Read)),
            param("c", pointer(Access::Write)),
            param(
                "m",
                ParamKind::Scalar {
                    ty: ScalarType::I32,
                },
            ),
            param(
                "alpha",
                ParamKind::Scalar {
                    ty: ScalarType::F32,
                },
            ),
        ],
        block: [384, 1, 1],
        cluster: Some([2, 1, 1]),
        dynamic_shared_bytes: 200_000,
        resources: Some(Resources {
            registers: 168,
            spill_bytes: 0,
            static_shared_bytes: 0,
        }),
    };
    let at_a = Arg::Tensor {
        at: MemRef::start_of("A"),
        dims: vec![64.into(), m()],
        strides_bytes: vec![128.into()],
    };
    let launch = Launch {
        kernel: "gemm".into(),
        args: vec![
            at_a,
            Arg::Memory(MemRef::start_of("W")),
            Arg::Memory(MemRef::start_of("T")),
            Arg::Int(m()),
            Arg::Float(0.5),
        ],
        grid: [m().ceil_div(128).mul(2), 1.into(), 1.into()],
        overlaps_previous: false,
    };
    let bytes = || m().mul(64);
    Manifest {
        version: MANIFEST_VERSION,
        name: "sample".into(),
        target: Target {
            kind: "nvidia".into(),
            chip: "sm_90a".into(),
        },
        tools: BTreeMap::from([("ptxas".into(), "13.3.33".into())]),
        candidate: None,
        source_sha256: sha256_hex(b"source"),
        source: None,
        symbols: vec![Symbol {
            max: Some(1 << 20),
            multiple_of: 2,
            ..Symbol::of_dim("M", "A", 0)
        }],
        inputs: vec![TensorSpec::new("A", DType::F16, [m(), 64.into()])],
        outputs: vec![TensorSpec::new("C", DType::F16, [m(), 32.into()])],
        buffers: vec![
            Buffer {
                name: "W".into(),
                dtype: DType::F16,
                shape: vec![64.into(), 2.into()],
                align: 256,
                init: BufferInit::Data {
                    file: "data/w.bin".into(),
                },
            },
            Buffer {
                name: "T".into(),
                dtype: DType::F16,
                shape: vec![m(), 32.into()],
                align: 1024,
                init: BufferInit::Zero,
            },
        ],
        kernels: vec![gemm],
        steps: vec![
            Step::Fill {
                to: MemRef::start_of("T"),
                bytes: bytes(),
                value: 0,
            },
            Step::Launch(launch),
            Step::Copy {
                from: MemRef::start_of("T"),
                to: MemRef::start_of("C"),
                bytes: bytes(),
            },
        ],
        files: BTreeMap::new(),
    }
}

/// The files that `manifest` refers to.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([
        (
            "code/gemm.cubin".to_owned(),
            vec![0x7F, b'E', b'L', b'F', 0, 1, 2],
        ),
        ("code/gemm.ptx".to_owned(), b".version 8.0".to_vec()),
        ("data/w.bin".to_owned(), (0..=255).collect()),
    ])
}
