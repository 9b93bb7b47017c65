#!/usr/bin/env python3
"""Compiles DeepGEMM's block-scaled product of 8-bit floats (deepseek-ai/DeepGEMM, `sm90_fp8_gemm_1d2d_impl`) as kernel
packages.

    python3 deepgemm.py --deepgemm DeepGEMM --cutlass cutlass/include --nvcc nvcc --out deepgemm
    axe-run bench gemm-fp8 --suite llm,llm4096 --scaling block --packages PACKAGES --rival deepgemm=deepgemm

Needs a checkout of DeepGEMM, the headers of CUTLASS (4.2 is what it was written with; also in the PyPI wheel
`nvidia-cutlass`) and nvcc 13. Nothing of DeepGEMM is here: its kernel is instantiated for each shape with N and K known
when compiling, as its own compiler does, and for several tiles and pairs of CTAs. `axe-run` takes the fastest right one;
DeepGEMM itself picks 256 x 128 with pairs that share A's rows for all shapes of these suites but two
(4096 x 3584 x 14336: 256 x 112; 4096 x 4608 x 36864: 128 x 192 with pairs that share W's rows).
"""

import argparse
import concurrent.futures
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

MULTIPROCESSORS = 132
SHARED_BYTES = 232448  # a block of compute capability 9.0 (CUDA programming guide, technical specifications)
DEPTH = 128  # bytes of a stage's rows, and a block of k with one scale
MOST_STAGES = 16
# Rows, columns, CTAs of a cluster side by side along rows and along columns.
CONFIGURATIONS = [(256, 128, 1, 2), (128, 192, 1, 2), (128, 192, 2, 1), (256, 112, 1, 2)]
# Hidden and inner widths, and how many inner projections stand side by side: bench/weights.rs.
MODELS = [
    (4096, 12288, 2), (5120, 25600, 2), (4096, 14336, 2), (8192, 28672, 2), (16384, 53248, 2), (3584, 14336, 2),
    (4608, 36864, 2), (12288, 49152, 1),
]

SOURCE = """
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>
using namespace deep_gemm;
static void instantiate() {{
    auto kernel = reinterpret_cast<void*>(&sm90_fp8_gemm_1d2d_impl<
        cute::UMMA::Major::K, 0, {n}, {k}, 1, {rows}, {columns}, 128, 128, 128, {swizzle}, {stages}, 128, {threads},
        {cluster}, {along_columns}, {multiprocessors}, GemmType::Normal, cutlass::bfloat16_t,
        epilogue::transform::EpilogueIdentity>);
}}
"""


def up(a, b):
    return -(-a // b) * b


def swizzle(columns):
    return next(span for span in (128, 64, 32, 16) if columns * 2 % span == 0)


def shared(rows, columns, k):
    """Bytes of shared memory and stages: the result, scales of W for all of k, barriers, and stages of A, W, A's scales."""
    of_w = 1 if 128 % columns == 0 else 2
    fixed = up(rows * columns * 2, 1024) + MOST_STAGES * 16 + up(k // DEPTH * 4 * of_w, 8)
    stage = (rows + columns) * DEPTH + up(rows * 4, 128)
    stages = min((SHARED_BYTES - fixed) // stage, MOST_STAGES)
    return fixed + stages * stage, stages


def compile_one(options, n, k, configuration):
    """The cubin, or None when it does not compile."""
    rows, columns, along_rows, along_columns = configuration
    _, stages = shared(rows, columns, k)
    if stages < 3:
        return None
    source = SOURCE.format(
        n=n, k=k, rows=rows, columns=columns, swizzle=swizzle(columns), stages=stages, threads=128 if rows <= 64 else 256,
        cluster=along_rows * along_columns, along_columns="true" if along_columns > 1 else "false",
        multiprocessors=MULTIPROCESSORS,
    )
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = pathlib.Path(folder, "k.cu"), pathlib.Path(folder, "k.cubin")
        text.write_text(source)
        command = [
            options.nvcc, str(text), "-cubin", "-o", str(cubin), "-std=c++20", "-O3", "-arch=sm_90a",
            "--expt-relaxed-constexpr", "--expt-extended-lambda", "--diag-suppress=39,161,174,177,186,940",
            "--ptxas-options=--register-usage-level=10", f"-I{options.deepgemm}/deep_gemm/include", f"-I{options.cutlass}",
        ]
        command += [f"-I{folder}" for folder in options.include]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{n} x {k} {configuration}: {done.stderr.strip()[-400:]}", file=sys.stderr)
            return None
        return cubin.read_bytes()


def manifest(m, n, k, configuration, cubin):
    rows, columns, along_rows, along_columns = configuration
    cluster, (bytes_, stages), span = along_rows * along_columns, shared(rows, columns, k), swizzle(columns)
    symbol = re.search(rb"\.text\.([A-Za-z0-9_]+)", cubin).group(1).decode()

    def pointer(name):
        return {"name": name, "kind": {"pointer": {"access": "read", "align": 4}}}

    def scalar(name):
        return {"name": name, "kind": {"scalar": {"type": "i32"}}}

    def box(name, access, dtype, shape, span):
        swizzled = "b" + str(span) if span > 16 else "none"
        kind = {"dtype": dtype, "box": shape, "swizzle": swizzled, "interleave": "none", "l2_promotion": "b256", "oob_fill": "zeros"}
        return {"name": name, "kind": {"tensor_map": {"access": access, "map": kind}}}

    def tensor(name, dims, stride):
        return {"tensor": {"at": {"name": name}, "dims": dims, "strides_bytes": [stride]}}

    def spec(name, dtype, shape):
        return {"name": name, "dtype": dtype, "shape": shape}

    kernel = {
        "name": "gemm", "symbol": symbol, "cubin": "k.cubin", "block": [128 + (128 if rows <= 64 else 256), 1, 1],
        "dynamic_shared_bytes": bytes_,
        "params": [
            pointer("sfb"), pointer("groups"), scalar("m"), scalar("n"), scalar("k"),
            box("a", "read", "u8", [DEPTH, rows], 128), box("b", "read", "u8", [DEPTH, columns], 128),
            box("d", "write", "bf16", [span // 2, rows], span), box("sfa", "read", "f32", [rows, 1], 0),
        ],
    }
    if cluster > 1:
        kernel["cluster"] = [cluster, 1, 1]
    scales = {"memory": {"name": "sw"}}
    launch = {
        "kernel": "gemm", "grid": [MULTIPROCESSORS, 1, 1],
        "args": [
            scales, scales, {"int": m}, {"int": n}, {"int": k}, tensor("a", [k, m], k), tensor("w", [k, n], k),
            tensor("c", [n, m], 2 * n), tensor("sa", [m, k // DEPTH], 4 * m),
        ],
    }
    return {
        "version": 1, "name": "gemm", "target": {"kind": "nvidia", "chip": "sm_90a"},
        "candidate": f"{rows} x {columns}, cluster {along_rows} x {along_columns}, {stages} stages",
        "source_sha256": hashlib.sha256(b"").hexdigest(),
        "inputs": [
            spec("a", "f8e4m3", [m, k]), spec("sa", "f32", [k // DEPTH, m]), spec("w", "f8e4m3", [n, k]),
            spec("sw", "f32", [-(-n // 128), k // DEPTH]),
        ],
        "outputs": [spec("c", "bf16", [m, n])], "kernels": [kernel], "steps": [{"launch": launch}],
        "files": {"k.cubin": {"bytes": len(cubin), "sha256": hashlib.sha256(cubin).hexdigest()}},
    }


def write(path, manifest, cubin):
    with tarfile.open(path, "w") as package:
        for name, content in (("manifest.json", json.dumps(manifest).encode()), ("k.cubin", cubin)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            package.addfile(info, io.BytesIO(content))


def shapes(options):
    if options.case:
        return [tuple(int(size) for size in case.split(",")[:3]) for case in options.case]
    weights = [w for hidden, inner, gates in MODELS for w in ((gates * inner, hidden), (hidden, inner))]
    return [(m, n, k) for m in options.rows for n, k in weights]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepgemm", required=True, help="a checkout of DeepGEMM")
    parser.add_argument("--cutlass", required=True, help="the folder with cute/ and cutlass/")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--include", action="append", default=[], help="another folder of headers, such as CUDA's cccl")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--case", action="append", help="M,N,K instead of the suites llm and llm4096")
    parser.add_argument("--rows", type=int, nargs="*", default=[8192, 4096])
    parser.add_argument("--first", action="store_true", help="only 256 x 128 in pairs that share A's rows")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = shapes(options)
    configurations = CONFIGURATIONS[:1] if options.first else CONFIGURATIONS
    weights = sorted({(n, k, c) for _, n, k in wanted for c in configurations})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = dict(zip(weights, pool.map(lambda weight: compile_one(options, *weight), weights)))
    for m, n, k in wanted:
        for configuration in configurations:
            cubin = cubins[n, k, configuration]
            if cubin:
                name = "x".join(map(str, (m, n, k))) + "-" + "-".join(map(str, configuration)) + ".axe"
                write(options.out / name, manifest(m, n, k, configuration, cubin), cubin)


if __name__ == "__main__":
    main()
