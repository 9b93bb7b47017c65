//! Writes small packages of hand-written PTX, expectations and a batch list to a folder: what
//! proves a runtime on a new machine, and an example of making packages without the compiler.
//!
//!     cargo run -p axe-runtime --example samples -- FOLDER [PTXAS]
//!
//! With ptxas the packages also hold cubins.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use axe_package::*;

const PLAIN: &str = include_str!("plain.ptx");
const HOPPER: &str = include_str!("hopper.ptx");

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("usage: samples FOLDER [PTXAS]")?;
    write_all(Path::new(&folder), args.next().as_deref())
}

/// Writes everything to `folder`, with cubins if there is a `ptxas`.
pub fn write_all(folder: &Path, ptxas: Option<&str>) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let hopper = Code::assembled(ptxas, "sm_90a", HOPPER)?;
    let plain = Code::assembled(ptxas, "sm_80", PLAIN)?;
    let plain_on_hopper = Code::assembled(ptxas, "sm_90", PLAIN)?;
    let newer = Code {
        chip: "sm_100a",
        ptx: PLAIN,
        cubin: None,
    };
    for (name, code, parts) in [
        ("saxpy", &plain, saxpy(0.5)),
        ("saxpy-cubin", &plain_on_hopper, saxpy(0.5)),
        ("blackwell", &newer, saxpy(0.5)),
        ("fault", &plain, simple("fault", 32, [1, 1, 1])),
        ("one-too-many", &plain, one_too_many()),
        ("gemm", &plain_on_hopper, gemm()),
        ("tma", &hopper, tma()),
        ("cluster", &hopper, cluster()),
        ("shared", &hopper, shared()),
        ("wrong-params", &plain, wrong_params()),
    ] {
        code.package(name, parts)?
            .write_file(folder.join(format!("{name}.axe")))?;
    }
    let mut files = hopper.files();
    files.insert(
        "b.bin".into(),
        (0..CHAIN as i32)
            .flat_map(|i| (3 * i).to_le_bytes())
            .collect(),
    );
    Package::new(chain(&hopper), files)?.write_dir(folder.join("chain"))?;
    expectations(folder)?;
    Ok(std::fs::write(folder.join("cases.txt"), CASES)?)
}

/// The cases that must pass, then those that must fail, in one list.
const CASES: &str = "\
# must pass
saxpy.axe --dim N=1000 --expect out=saxpy.npy
saxpy.axe --dim N=1000 --expect out=saxpy.npy --ptx
saxpy-cubin.axe --dim N=1000 --expect out=saxpy.npy --time --repeat 20
saxpy-cubin.axe --input x=x.npy --expect out=saxpy.npy
tma.axe --dim M=1000 --input a=tma.npy --expect b=tma.npy
cluster.axe --expect out=cluster.npy
shared.axe --expect out=shared.npy
chain --input x=chain-x.npy --expect out=chain.npy --time
# must fail, each alone
saxpy.axe --dim N=1000 --input x=random:9 --expect out=saxpy.npy
saxpy.axe --dim N=2000 --expect out=saxpy.npy
one-too-many.axe
fault.axe
blackwell.axe --dim N=1000
wrong-params.axe --dim N=1000
missing.axe
# must pass after all that
saxpy.axe --dim N=1000 --expect out=saxpy.npy
";

struct Code {
    chip: &'static str,
    ptx: &'static str,
    cubin: Option<Vec<u8>>,
}

/// What differs between the samples.
struct Parts {
    symbols: Vec<Symbol>,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    kernel: Kernel,
    launch: Launch,
}

impl Code {
    /// With a cubin if there is a `ptxas`.
    fn assembled(ptxas: Option<&str>, chip: &'static str, ptx: &'static str) -> Result<Self> {
        let cubin = ptxas.map(|ptxas| assemble(ptxas, chip, ptx)).transpose()?;
        Ok(Self { chip, ptx, cubin })
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let cubin = self.cubin.iter().map(|c| ("k.cubin".to_owned(), c.clone()));
        cubin
            .chain([("k.ptx".to_owned(), self.ptx.as_bytes().to_vec())])
            .collect()
    }

    fn package(&self, name: &str, parts: Parts) -> Result<Package> {
        Ok(Package::new(self.manifest(name, parts), self.files())?)
    }

    fn manifest(&self, name: &str, parts: Parts) -> Manifest {
        let mut kernel = parts.kernel;
        kernel.ptx = Some("k.ptx".into());
        kernel.cubin = self.cubin.as_ref().map(|_| "k.cubin".into());
        Manifest {
            version: MANIFEST_VERSION,
            name: name.into(),
            target: Target {
                kind: "nvidia".into(),
                chip: self.chip.into(),
            },
            tools: BTreeMap::new(),
            candidate: None,
            source_sha256: sha256_hex(self.ptx.as_bytes()),
            source: None,
            symbols: parts.symbols,
            inputs: parts.inputs,
            outputs: parts.outputs,
            buffers: Vec::new(),
            kernels: vec![kernel],
            steps: vec![Step::Launch(parts.launch)],
            files: BTreeMap::new(),
        }
    }
}

/// The cubin that `ptxas` makes.
fn assemble(ptxas: &str, chip: &str, ptx: &str) -> Result<Vec<u8>> {
    let dir = std::env::temp_dir().join(format!("axe-samples-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let (source, cubin) = (dir.join("k.ptx"), dir.join("k.cubin"));
    std::fs::write(&source, ptx)?;
    let status = Command::new(ptxas)
        .arg(format!("-arch={chip}"))
        .arg(&source)
        .arg("-o")
        .arg(&cubin)
        .status()?;
    if !status.success() {
        return Err("ptxas failed".into());
    }
    Ok(std::fs::read(cubin)?)
}

fn kernel(symbol: &str, params: Vec<(&str, ParamKind)>, block: [u32; 3]) -> Kernel {
    Kernel {
        name: symbol.into(),
        symbol: symbol.into(),
        cubin: None,
        program: None,
        sources: Vec::new(),
        ptx: None,
        params: params
            .into_iter()
            .map(|(name, kind)| Param {
                name: name.into(),
                kind,
            })
            .collect(),
        block,
        cluster: None,
        dynamic_shared_bytes: 0,
        resources: None,
    }
}

fn launch(kernel: &str, args: Vec<Arg>, grid: [Expr; 3]) -> Launch {
    Launch {
        kernel: kernel.into(),
        args,
        grid,
        overlaps_previous: false,
    }
}

fn pointer(access: Access) -> ParamKind {
    ParamKind::Pointer { access, align: 4 }
}

fn scalar(ty: ScalarType) -> ParamKind {
    ParamKind::Scalar { ty }
}

fn at(name: &str) -> Arg {
    Arg::Memory(MemRef::start_of(name))
}

fn saxpy(alpha: f64) -> Parts {
    let n = || Expr::sym("N");
    let vector = |name| TensorSpec::new(name, DType::F32, [n()]);
    let params = vec![
        ("x", pointer(Access::Read)),
        ("y", pointer(Access::Read)),
        ("out", pointer(Access::Write)),
        ("n", scalar(ScalarType::I32)),
        ("alpha", scalar(ScalarType::F32)),
    ];
    let args = vec![
        at("x"),
        at("y"),
        at("out"),
        Arg::Int(n()),
        Arg::Float(alpha),
    ];
    Parts {
        symbols: vec![Symbol::of_dim("N", "x", 0)],
        inputs: vec![vector("x"), vector("y")],
        outputs: vec![vector("out")],
        kernel: kernel("saxpy", params, [128, 1, 1]),
        launch: launch("saxpy", args, [n().ceil_div(128), 1.into(), 1.into()]),
    }
}

/// As `saxpy`, with the scalar declared twice as wide as it is in the code.
fn wrong_params() -> Parts {
    let mut parts = saxpy(1.0);
    if let Some(param) = parts.kernel.params.get_mut(3) {
        param.kind = scalar(ScalarType::I64);
    }
    parts
}

/// A kernel whose one parameter is an output of `n` integers.
fn simple(symbol: &str, n: i64, grid: [i64; 3]) -> Parts {
    Parts {
        symbols: vec![],
        inputs: vec![],
        outputs: vec![TensorSpec::new("out", DType::I32, [n.into()])],
        kernel: kernel(symbol, vec![("out", pointer(Access::Write))], [32, 1, 1]),
        launch: launch(symbol, vec![at("out")], grid.map(Expr::from)),
    }
}

fn one_too_many() -> Parts {
    let mut parts = simple("one_too_many", 16, [1, 1, 1]);
    parts.kernel.params.push(Param {
        name: "n".into(),
        kind: scalar(ScalarType::I32),
    });
    parts.launch.args.push(Arg::Int(16.into()));
    parts
}

fn cluster() -> Parts {
    let mut parts = simple("cluster_swap", 8, [8, 1, 1]);
    parts.kernel.cluster = Some([2, 1, 1]);
    parts
}

fn shared() -> Parts {
    let mut parts = simple("much_shared", 32, [1, 1, 1]);
    parts.kernel.dynamic_shared_bytes = 200_000;
    parts
}

/// The elements of the tensors of `chain`.
const CHAIN: i64 = 5000;

/// Several steps with buffers between them: t = x + b (a constant); u = t + z (zeros), launched
/// before the first has ended, both on as many blocks as the GPU has multiprocessors; out is filled
/// with bytes 7, then its first half copied from u.
fn chain(code: &Code) -> Manifest {
    let tensor = |name| TensorSpec::new(name, DType::I32, [CHAIN.into()]);
    let params = vec![
        ("a", pointer(Access::Read)),
        ("b", pointer(Access::Read)),
        ("out", pointer(Access::Write)),
        ("n", scalar(ScalarType::I32)),
    ];
    let add = |a, b, out| {
        let args = vec![at(a), at(b), at(out), Arg::Int(CHAIN.into())];
        launch("add", args, [Expr::sym(SM_COUNT), 1.into(), 1.into()])
    };
    let parts = Parts {
        symbols: vec![],
        inputs: vec![tensor("x")],
        outputs: vec![tensor("out")],
        kernel: kernel("add", params, [32, 1, 1]),
        launch: add("x", "b", "t"),
    };
    let mut manifest = code.manifest("chain", parts);
    manifest.buffers = chain_buffers();
    let (out, u) = (MemRef::start_of("out"), MemRef::start_of("u"));
    manifest.steps.extend([
        Step::Launch(Launch {
            overlaps_previous: true,
            ..add("t", "z", "u")
        }),
        Step::Fill {
            to: out.clone(),
            bytes: (4 * CHAIN).into(),
            value: 7,
        },
        Step::Copy {
            from: u,
            to: out,
            bytes: (2 * CHAIN).into(),
        },
    ]);
    manifest
}

fn chain_buffers() -> Vec<Buffer> {
    let file = "b.bin".into();
    [
        ("b", BufferInit::Data { file }),
        ("z", BufferInit::Zero),
        ("t", BufferInit::Undefined),
        ("u", BufferInit::Undefined),
    ]
    .into_iter()
    .map(|(name, init)| Buffer {
        name: name.into(),
        dtype: DType::I32,
        shape: vec![CHAIN.into()],
        align: 1024,
        init,
    })
    .collect()
}

fn tma() -> Parts {
    let m = || Expr::sym("M");
    let map = TensorMapType {
        swizzle: Swizzle::B128,
        ..TensorMapType::new(TensorMapDType::F16, [64, 64])
    };
    let param = |access| ParamKind::TensorMap {
        access,
        map: map.clone(),
    };
    let tensor = |name| Arg::Tensor {
        at: MemRef::start_of(name),
        dims: vec![200.into(), m()],
        strides_bytes: vec![400.into()],
    };
    let spec = |name| TensorSpec::new(name, DType::F16, [m(), 200.into()]);
    let params = vec![
        ("source", param(Access::Read)),
        ("target", param(Access::Write)),
    ];
    Parts {
        symbols: vec![Symbol::of_dim("M", "a", 0)],
        inputs: vec![spec("a")],
        outputs: vec![spec("b")],
        kernel: kernel("tma_copy", params, [32, 1, 1]),
        launch: launch(
            "tma_copy",
            vec![tensor("a"), tensor("b")],
            [4.into(), m().ceil_div(64), 1.into()],
        ),
    }
}

fn gemm() -> Parts {
    let [m, n, k] = ["M", "N", "K"].map(|s| move || Expr::sym(s));
    let int = scalar(ScalarType::I32);
    let params = vec![
        ("a", pointer(Access::Read)),
        ("w", pointer(Access::Read)),
        ("c", pointer(Access::Write)),
        ("m", int.clone()),
        ("n", int.clone()),
        ("k", int),
    ];
    let args = vec![
        at("A"),
        at("W"),
        at("C"),
        Arg::Int(m()),
        Arg::Int(n()),
        Arg::Int(k()),
    ];
    Parts {
        symbols: vec![
            Symbol::of_dim("M", "A", 0),
            Symbol::of_dim("N", "W", 0),
            Symbol::of_dim("K", "A", 1),
        ],
        inputs: vec![
            TensorSpec::new("A", DType::F16, [m(), k()]),
            TensorSpec::new("W", DType::F16, [n(), k()]),
        ],
        outputs: vec![TensorSpec::new("C", DType::F16, [m(), n()])],
        kernel: kernel("slow_gemm", params, [16, 16, 1]),
        launch: launch(
            "slow_gemm",
            args,
            [n().ceil_div(16), m().ceil_div(16), 1.into()],
        ),
    }
}

fn expectations(folder: &Path) -> Result<()> {
    let random = |dtype, shape: &[u64], seed| {
        Tensor::random(dtype, shape.to_vec(), Random::for_dtype(dtype, seed))
    };
    // Inputs that are not given are random with their number as the seed.
    let (x, y) = (
        random(DType::F32, &[1000], 0)?,
        random(DType::F32, &[1000], 1)?,
    );
    let out = x.iter_f64().zip(y.iter_f64()).map(|(x, y)| 0.5 * x + y);
    npy::write(
        folder.join("saxpy.npy"),
        &Tensor::from_f64(DType::F32, vec![1000], out)?,
    )?;
    npy::write(folder.join("x.npy"), &x)?;
    npy::write(
        folder.join("tma.npy"),
        &random(DType::F16, &[1000, 200], 5)?,
    )?;
    let x = random(DType::I32, &[CHAIN as u64], 11)?;
    npy::write(folder.join("chain-x.npy"), &x)?;
    let sums = x.iter_f64().enumerate().map(|(i, x)| x + 3.0 * i as f64);
    let sevens = std::iter::repeat_n(f64::from(0x0707_0707), 2500);
    let chain = Tensor::from_f64(
        DType::I32,
        vec![CHAIN as u64],
        sums.take(2500).chain(sevens),
    )?;
    npy::write(folder.join("chain.npy"), &chain)?;
    let integers =
        |values: Vec<f64>| Tensor::from_f64(DType::I32, vec![values.len() as u64], values);
    npy::write(
        folder.join("cluster.npy"),
        &integers((0..8).map(|i| f64::from(2000 + (i ^ 1))).collect())?,
    )?;
    Ok(npy::write(
        folder.join("shared.npy"),
        &integers((0..32).map(f64::from).collect())?,
    )?)
}
