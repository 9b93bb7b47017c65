//! Printed source: executed on the numpy stand-in (tests/nki), which refuses what the documentation refuses.

mod attended;
mod common;

use axe_package::DType;
use axe_trn::dispatch::{self, Region};
use axe_trn::nki::{Generation, print};
use axe_trn::plan::{Attention, Blocks, Matmul, Order};
use axe_trn::program::build::Tile;
use axe_trn::program::{Accumulate, Builder, Program, Role, Space};
use axe_trn::run::memory;
use common::{Sample, difference, samples};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nki")
}

/// Python with numpy, as `make deps` sets it up; `None` where there is none.
fn python() -> Option<Command> {
    let dependencies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.deps/python");
    let command = || {
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", &dependencies)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let there = command()
        .args(["-c", "import numpy"])
        .output()
        .is_ok_and(|out| out.status.success());
    there.then(command)
}

const fn name(generation: Generation) -> &'static str {
    match generation {
        Generation::Old => "old",
        Generation::New => "new",
    }
}

/// The results of a source, or what it is refused for.
fn run(
    python: &mut Command,
    source: &str,
    generation: Generation,
    sample: &Sample,
) -> Result<Vec<Vec<u8>>, String> {
    let work = tempfile::tempdir().unwrap();
    let at = |file: String| work.path().join(file);
    let program = &sample.program;
    std::fs::write(at("kernel.py".into()), source).unwrap();
    let argument = |role: Role| -> Vec<_> {
        program
            .with_role(role)
            .enumerate()
            .map(|(number, (_, buffer))| {
                let file = at(format!("{role:?}{number}"));
                json!({"file": file, "dtype": buffer.dtype, "shape": buffer.shape})
            })
            .collect()
    };
    let (inputs, outputs) = (argument(Role::Input), argument(Role::Output));
    for (input, bytes) in inputs.iter().zip(&sample.inputs) {
        std::fs::write(input["file"].as_str().unwrap(), bytes).unwrap();
    }
    let job = json!({
        "source": at("kernel.py".into()), "generation": name(generation), "chip": program.chip, "kernel": program.name,
        "inputs": inputs, "outputs": outputs,
    });
    std::fs::write(at("job.json".into()), job.to_string()).unwrap();
    let out = python
        .arg(folder().join("run.py"))
        .arg(at("job.json".into()))
        .output()
        .unwrap();
    match out.status.success() {
        true => Ok(outputs
            .iter()
            .map(|output| std::fs::read(output["file"].as_str().unwrap()).unwrap())
            .collect()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

fn printed(program: &Program, generation: Generation) -> String {
    print(program, generation).unwrap_or_else(|error| panic!("{}: {error}", program.name))
}

/// A planned product with tails in all dimensions and several blocks of K.
fn planned(chip: &str) -> Sample {
    let (m, k, n) = (130, 140, 520);
    let matmul = Matmul {
        sizes: [m, k, n],
        lhs: Order::KMinor,
        rhs: Order::KMajor,
        inputs: DType::F32,
        output: DType::F32,
    };
    let blocks = Blocks {
        m: 128,
        n: 512,
        k: 128,
        peeled: chip == "trn1",
        lead: None,
    };
    let program = matmul.with_blocks("matmul", chip, blocks).unwrap();
    let [a, b] =
        [(m * k, 1), (k * n, 2)].map(|(count, seed)| common::numbers(count as usize, seed));
    let element = |at: i64| -> f64 {
        let product = |x: i64| {
            f64::from(a[(at / n * k + x) as usize]) * f64::from(b[(x * n + at % n) as usize])
        };
        (0..k).map(product).sum()
    };
    Sample {
        program,
        inputs: [&a, &b]
            .map(|values| memory::encode(DType::F32, values))
            .to_vec(),
        expected: vec![(0..m * n).map(element).collect()],
        tolerance: 1e-4,
    }
}

/// Planned attention: steps of one and of two blocks of keys, the last ones of both with tails, and transposes.
fn planned_attention(chip: &str, dim: i64) -> Sample {
    let attention = Attention {
        heads: 2,
        queries: 600,
        keys: 600,
        dim,
        causal: true,
        ..attended::PLAIN
    };
    let operands = attended::operands(&attention, 1.0);
    let [q, k, v] = [0, 1, 2].map(|at: usize| operands[at].as_slice());
    let rows =
        (0..attention.heads).flat_map(|head| (0..attention.queries).map(move |row| (head, row)));
    let expected =
        rows.flat_map(|(head, row)| attended::expected(&attention, [q, k, v], head, row));
    Sample {
        program: attention.plan("attention", chip).unwrap(),
        inputs: operands
            .iter()
            .map(|of| memory::encode(attention.dtype, of))
            .collect(),
        expected: vec![expected.collect()],
        tolerance: 1e-2,
    }
}

/// Heads of queries that share keys and values, `[batch, rows, heads, dim]`.
fn grouped_attention(chip: &str) -> Sample {
    let a = Attention {
        heads: 8,
        queries: 130,
        keys: 140,
        dim: 32,
        ..attended::PLAIN
    };
    let tensors = attended::grouped(&a);
    let given = attended::in_memory(&a, &tensors);
    let [q, k, v] = [
        (&tensors.q, a.queries, 0),
        (&tensors.k, a.keys, 1),
        (&tensors.v, a.keys, 2),
    ]
    .map(|(strided, rows, at): (_, _, usize)| attended::gathered(&a, strided, rows, &given[at]));
    let rows = (0..a.heads).flat_map(|head| (0..a.queries).map(move |row| (head, row)));
    let elements = rows.flat_map(|(head, row)| attended::expected(&a, [&q, &k, &v], head, row));
    let places = attended::places(&a, &tensors.result, a.queries);
    let mut expected = vec![0.0; places.len()];
    for (at, element) in places.into_iter().zip(elements) {
        expected[at] = element;
    }
    Sample {
        program: a.plan_of("attention", chip, &tensors).unwrap(),
        inputs: given.iter().map(|of| memory::encode(a.dtype, of)).collect(),
        expected: vec![expected],
        tolerance: 1e-2,
    }
}

/// A product that is dispatched by layouts: K on two quadrants of partitions in their order, 640 columns across a bank, a
/// result that begins at partition 16.
fn dispatched(chip: &str) -> Sample {
    let (m, k, n) = (96, 192, 640);
    let mut b = Builder::new("dispatched", chip);
    let (f32, bf16) = (DType::F32, DType::BF16);
    let [a, w] = [("a", [k, m]), ("w", [k, n])].map(|(name, shape)| b.input(name, &shape, bf16));
    let c = b.output("c", &[m, n], f32);
    let region = |tile: &Tile, shape: [i64; 2], text: &str| {
        Region::new(tile.buffer(), &shape, text.parse().unwrap())
    };
    let at = b.tile("at", Space::Sbuf, &[64, 3 * m], bf16, 1);
    let wt = b.tile("wt", Space::Sbuf, &[64, 3 * n], bf16, 1);
    let sums = b.tile("sums", Space::Psum, &[m, n], f32, 1);
    let out = b.tile("out", Space::Sbuf, &[16 + m, n], f32, 1);
    let lhs = region(&at, [k, m], "S[(2, 3, 32, 96) : (32@P, 96@F, 1@P, 1@F)]");
    let rhs = region(&wt, [k, n], "S[(2, 3, 32, 640) : (32@P, 640@F, 1@P, 1@F)]");
    let d = region(&sums, [m, n], "S[(96, 640) : (1@P, 1@F)]");
    let evicted = region(&out, [m, n], "S[(96, 640) : (1@P, 1@F)] + 16@P");
    let memory_of = |tile: &Tile, shape: [i64; 2]| {
        region(
            tile,
            shape,
            &format!("S[({}, {}) : ({}, 1)]", shape[0], shape[1], shape[1]),
        )
    };
    dispatch::copy(&mut b, &lhs, &memory_of(&a, [k, m])).unwrap();
    dispatch::copy(&mut b, &rhs, &memory_of(&w, [k, n])).unwrap();
    dispatch::gemm(&mut b, &d, &lhs, &rhs, [true, false], Accumulate::Auto).unwrap();
    dispatch::copy(&mut b, &evicted, &d).unwrap();
    dispatch::copy(&mut b, &memory_of(&c, [m, n]), &evicted).unwrap();
    let inputs = [(k * m, 1), (k * n, 2)]
        .map(|(count, seed)| memory::encode(bf16, &common::numbers(count as usize, seed)));
    let [x, y] = [0, 1].map(|at: usize| memory::decode(bf16, &inputs[at]));
    let element = |at: i64| -> f64 {
        let product = |i: i64| {
            f64::from(x[(i * m + at / n) as usize]) * f64::from(y[(i * n + at % n) as usize])
        };
        (0..k).map(product).sum()
    };
    Sample {
        program: b.finish(),
        inputs: inputs.to_vec(),
        expected: vec![(0..m * n).map(element).collect()],
        tolerance: 1e-4,
    }
}

fn planned_ones(chip: &str) -> Vec<Sample> {
    // What is subtracted is a row of the queries, and a row of its own.
    let [narrow, wide] = [40, 128].map(|dim| planned_attention(chip, dim));
    vec![
        planned(chip),
        dispatched(chip),
        narrow,
        wide,
        grouped_attention(chip),
    ]
}

#[test]
fn printed_source_computes_what_the_program_does() {
    if python().is_none() {
        eprintln!("skipped: python3 with numpy is not there (make deps)");
        return;
    }
    for chip in ["trn1", "trn2"] {
        for sample in samples(chip).into_iter().chain(planned_ones(chip)) {
            for generation in [Generation::Old, Generation::New] {
                let source = printed(&sample.program, generation);
                let what = format!("{} on {chip}, {}", sample.program.name, name(generation));
                let outputs = run(&mut python().unwrap(), &source, generation, &sample)
                    .unwrap_or_else(|error| panic!("{what}: {error}\n{source}"));
                let worst = difference(&sample, &outputs);
                assert!(
                    worst <= sample.tolerance.max(1e-6) * 2.0,
                    "{what}: {worst}\n{source}"
                );
            }
        }
    }
}

#[test]
fn the_stand_in_refuses_what_the_documentation_refuses() {
    if python().is_none() {
        eprintln!("skipped: python3 with numpy is not there (make deps)");
        return;
    }
    let sample = common::product("trn1");
    for (generation, from, to, reason) in [
        (
            Generation::New,
            "buffer=nl.psum",
            "buffer=nl.sbuf",
            "a tile in sbuf",
        ),
        (
            Generation::New,
            "nisa.nc_matmul(dst=",
            "nisa.nc_matmul(mask=None, dst=",
            "mask",
        ),
        (
            Generation::New,
            "at = nl.ndarray((128, 64)",
            "at = nl.ndarray((256, 64)",
            "256 partitions",
        ),
        (
            Generation::New,
            "at[0:128, 0:64], moving",
            "at[16:128, 0:64], moving",
            "begin at 16",
        ),
        (Generation::New, "src=w[", "src=a[", "leaves|slice|shapes"),
        (Generation::New, "return c", "return sums", "shared_hbm"),
        (
            Generation::New,
            ", scale=0.5",
            ", scale=\"0.5\"",
            "parts of tiles and enums",
        ),
        (Generation::Old, "nl.par_dim(128), 64", "128, 64", "par_dim"),
        (Generation::Old, "+= nisa", "= nisa", "never|"),
        (Generation::Old, "nl.zeros", "nl.ndarray", "not written"),
    ] {
        let source = printed(&sample.program, generation);
        assert!(source.contains(from), "{from} is not in\n{source}");
        let result = run(
            &mut python().unwrap(),
            &source.replacen(from, to, 1),
            generation,
            &sample,
        );
        match result {
            Err(message) => assert!(
                reason.split('|').any(|part| message.contains(part)),
                "{from}: {message}"
            ),
            // Without `+=` the sums are those of the last block alone: no refusal, other numbers.
            Ok(outputs) => assert!(
                reason == "never|" && difference(&sample, &outputs) > 0.1,
                "{from} was taken"
            ),
        }
    }
}

#[test]
fn source_reads_as_one_would_write_it() {
    let sample = common::product("trn2");
    let expected = "\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def product(a, w):
    \"\"\"For trn2. a: [256, 64] f32; w: [256, 96] f32; c: [64, 96] f32.\"\"\"
    c = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        at = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        wt = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=at[0:128, 0:64], src=a[k * 128:k * 128 + 128, 0:64])
        nisa.dma_copy(dst=wt[0:128, 0:96], src=w[k * 128:k * 128 + 128, 0:96])
        nisa.nc_matmul(dst=sums[0:64, 0:96], stationary=at[0:128, 0:64], moving=wt[0:128, 0:96])
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=out[0:64, 0:96], op=nl.copy, data=sums[0:64, 0:96], scale=0.5)
    nisa.dma_copy(dst=c[0:64, 0:96], src=out[0:64, 0:96])
    return c
";
    assert_eq!(printed(&sample.program, Generation::New), expected);
    let old = printed(&sample.program, Generation::Old);
    for line in [
        "for k in nl.affine_range(2):",
        "at = nl.ndarray((nl.par_dim(128), 64), dtype=nl.float32, buffer=nl.sbuf)",
        "at[0:128, 0:64] = nl.load(a[k * 128:k * 128 + 128, 0:64])",
        "sums[0:64, 0:96] += nisa.nc_matmul(at[0:128, 0:64], wt[0:128, 0:96])",
        "nl.store(c[0:64, 0:96], value=out[0:64, 0:96])",
    ] {
        assert!(old.contains(line), "{line} is not in\n{old}");
    }
}
