#!/usr/bin/env python3
"""Compiles one matrix product by Axe and by Triton in turns, each in a process that is warm, and compares how long it takes.

    cargo build --release -p axe-compile --example warm
    python3 targets/runtime/baselines/triton_compile.py --axe target/release/examples/warm

Both make a persistent kernel of 128 x 256 x 64 tiles with tensor maps for compute capability 9.0, Axe from linalg on tensors,
planning included, Triton from Python, both to a cubin through ptxas. Every turn compiles another kernel: Axe with other columns
of A, Triton with groups of another size, its cache empty. No GPU is needed. CPU seconds (user and system, ptxas included)
say more than wall seconds where others use the machine.
"""

import argparse
import dataclasses
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import triton_gemm

TICKS = os.sysconf("SC_CLK_TCK")


def module(m, n, k, element):
    """C = A * W^T as frameworks export it: a transpose, a product with sums in f32, and rounding."""
    a, w, t = f"tensor<{m}x{k}x{element}>", f"tensor<{n}x{k}x{element}>", f"tensor<{k}x{n}x{element}>"
    sums, c = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}x{element}>"
    return f"""#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @linear(%a: {a}, %w: {w}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : {t}
  %transposed = linalg.transpose ins(%w : {w}) outs(%0 : {t}) permutation = [1, 0]
  %1 = tensor.empty() : {sums}
  %2 = linalg.fill ins(%zero : f32) outs(%1 : {sums}) -> {sums}
  %sums = linalg.matmul ins(%a, %transposed : {a}, {t}) outs(%2 : {sums}) -> {sums}
  %3 = tensor.empty() : {c}
  %c = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}}
      ins(%sums : {sums}) outs(%3 : {c}) {{
  ^bb0(%sum: f32, %out: {element}):
    %rounded = arith.truncf %sum : f32 to {element}
    linalg.yield %rounded : {element}
  }} -> {c}
  return %c : {c}
}}
"""


class Axe:
    """The example `warm`, which compiles what is named on its standard input."""

    def __init__(self, program, folder):
        self.folder = folder
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def cpu(self):
        """CPU seconds of the process, and of the children it has waited for (proc(5), `stat`)."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system, users, systems = map(int, stat.rsplit(")", 1)[1].split()[11:15])
        return (user + system) / TICKS, (users + systems) / TICKS

    def compile(self, turn, dtype):
        """Wall seconds to PTX and to the cubin, CPU seconds of the compiler and of ptxas."""
        path = self.folder / f"{dtype}-{turn}.mlir"
        path.write_text(module(8192, 4096, 4096 + 64 * turn, dtype))
        before = self.cpu()
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            sys.exit("error: Axe did not compile the module; what it says is above")
        ptx, assembler = map(float, answer)
        if assembler == 0.0:
            sys.exit("error: Axe found no ptxas; name it with PTXAS")
        return ptx, ptx + assembler, *less(self.cpu(), before)


def less(after, before):
    return tuple(a - b for a, b in zip(after, before))


def by_triton(config):
    """Wall seconds to PTX (none: Triton does not tell) and to the cubin, CPU seconds of the compiler and of ptxas."""

    def cpu():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return tuple(u.ru_utime + u.ru_stime for u in used)

    before, start = cpu(), time.perf_counter()
    kernel = triton_gemm.compiled(config)
    wall = time.perf_counter() - start
    if not kernel.asm["cubin"]:
        sys.exit("error: Triton made no cubin")
    return None, wall, *less(cpu(), before)


def row(name, first, turns):
    """A line of the table: the first turn's wall seconds, then medians, and the means of CPU seconds."""
    ptx = [t[0] for t in turns if t[0] is not None]
    to_ptx = f"{statistics.median(ptx):9.3f}" if ptx else f"{'-':>9}"
    walls = [t[1] for t in turns]
    wall, low, high = statistics.median(walls), min(walls), max(walls)
    compiler, assembler = (statistics.fmean(t[i] for t in turns) for i in (2, 3))
    spread = f"{wall:9.3f} ({low:.3f}-{high:.3f})"
    print(f"{name:34} {first[1]:7.3f} {to_ptx} {spread} {compiler:13.3f} {assembler:9.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axe", type=pathlib.Path, required=True, help="the example `warm` of axe-compile")
    parser.add_argument("--turns", type=int, default=15, help="turns after the first (default 15)")
    parser.add_argument("--dtype", choices=["f16", "bf16"], default="bf16")
    options = parser.parse_args()
    piped = triton_gemm.Config(options.dtype, (128, 256, 64), 8, 3, 8, "whole")
    configs = {
        f"Triton {triton_gemm.triton.__version__}, pipelined": piped,
        "  and loops flattened": dataclasses.replace(piped, flatten=True),
        "  warp specialised": dataclasses.replace(piped, warps=4, specialize=True),
    }
    results = {name: [] for name in ["Axe", *configs]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/cache"
        axe = Axe(options.axe, pathlib.Path(folder))
        for turn in range(max(1, options.turns) + 1):
            results["Axe"].append(axe.compile(turn, options.dtype))
            for name, config in configs.items():
                results[name].append(by_triton(dataclasses.replace(config, group=3 + turn)))
        axe.process.stdin.close()
        axe.process.wait()
    print(f"{'seconds, ' + options.dtype:34} {'first':>7} {'to PTX':>9} {'to cubin':>9} {'':13} {'CPU, compiler':>13} {'ptxas':>9}")
    for name, turns in results.items():
        row(name, turns[0], turns[1:])


if __name__ == "__main__":
    main()
