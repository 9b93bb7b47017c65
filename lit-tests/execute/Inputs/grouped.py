"""Grouped matrix products beside numpy: groups of rows of every kind, whole and ragged, none, wrong offsets.

grouped.py FOLDER AXE TARGET [NAME ...]    compiles each case, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                           and compares the results; what it writes is left in FOLDER
"""
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SMALL = "mainloop = \"wgmma\", tile = array<i64: 64, 64, 64>, consumers = 1 : i64"
LARGE = "mainloop = \"wgmma\", tile = array<i64: 128, 128, 64>, consumers = 2 : i64"
THREE = "mainloop = \"wgmma\", tile = array<i64: 192, 96, 64>, consumers = 3 : i64"


@dataclass
class Case:
    """Products of rows `[m, k]` in groups that begin at `offsets`."""

    m: int
    n: int
    k: int
    offsets: list
    plan: str = SMALL
    dtype: str = "f16"
    trans_b: bool = False
    epilogue: bool = False
    dynamic: bool = False
    wild: list = field(default_factory=list)


def ends(*sizes):
    return [0, *np.cumsum(sizes).tolist()]


MANY = [31, 7, 64, 0, 90, 1, 33, 58, 64, 0, 12, 100, 77, 5, 28]
CASES = {
    "uneven": Case(300, 136, 200, ends(70, 1, 129, 37, 63)),
    "transposed": Case(300, 136, 200, ends(70, 1, 129, 37, 63), trans_b=True, dtype="bf16"),
    "large": Case(520, 264, 136, ends(130, 255, 3, 132), plan=LARGE),
    "whole": Case(512, 128, 64, ends(128, 256, 128), plan=LARGE, dtype="bf16"),
    "three": Case(500, 200, 128, ends(10, 200, 0, 290), plan=THREE, trans_b=True),
    "empty": Case(199, 72, 72, ends(0, 5, 0, 0, 130, 0, 64, 0)),
    "one": Case(150, 64, 64, ends(150)),
    "all": Case(150, 64, 64, ends(0, 0, 150, 0)),
    "persistent": Case(sum(MANY), 1032, 72, ends(*MANY), plan=SMALL + ", raster = \"groups\", swizzle = 2 : i64"),
    "chosen": Case(570, 328, 264, ends(*MANY), plan="", trans_b=True),
    # Rows of no group are zero, whatever A has there.
    "outside": Case(300, 72, 136, [10, 90, 90, 263], wild=[0, 9, 263, 299]),
    "wrong": Case(200, 72, 64, [-7, 60, 20, 2**31 - 1, -2**31, 40, 500]),
    "descending": Case(200, 72, 64, [150, 100, 50, 0]),
    "epilogue": Case(140, 136, 72, ends(66, 74), epilogue=True, dtype="bf16"),
    "dynamic": Case(300, 136, 200, ends(70, 1, 129, 37, 63), dynamic=True, epilogue=True),
    "odd": Case(130, 75, 101, ends(65, 65)),
}


def text(case):
    m, groups = ("?", "?") if case.dynamic else (case.m, len(case.offsets) - 1)
    count = "?" if case.dynamic else len(case.offsets)
    rows, columns = (case.n, case.k) if case.trans_b else (case.k, case.n)
    a, b = f"tensor<{m}x{case.k}x{case.dtype}>", f"tensor<{groups}x{rows}x{columns}x{case.dtype}>"
    o, y = f"tensor<{count}xi32>", f"tensor<{m}x{case.n}x{case.dtype}>"
    attributes = ["trans_b"] * case.trans_b + [f"axe.plan = {{{case.plan}}}"] * bool(case.plan)
    braces = f" {{{', '.join(attributes)}}}" if attributes else ""
    if not case.epilogue:
        lines = f"%y = axe.grouped_gemm %a, %b, %o{braces} : {a}, {b}, {o} -> {y}"
    else:
        s = f"tensor<{m}x{case.n}xf32>"
        lines = f"""%s = axe.grouped_gemm %a, %b, %o{braces} : {a}, {b}, {o} -> {s}
  %y = axe.map ins(%s, %a0 : {s}, {s}) -> {y} {{
  ^bb0(%v: f32, %w: f32):
    %t = arith.addf %v, %w : f32
    %z = arith.constant 0.0 : f32
    %r = arith.maximumf %t, %z : f32
    %c = arith.truncf %r : f32 to {case.dtype}
    axe.yield %c : {case.dtype}
  }}"""
        a0 = f", %a0: {s}"
        return f"func.func @main(%a: {a}, %b: {b}, %o: {o}{a0}) -> {y} {{\n  {lines}\n  return %y : {y}\n}}\n"
    return f"func.func @main(%a: {a}, %b: {b}, %o: {o}) -> {y} {{\n  {lines}\n  return %y : {y}\n}}\n"


def stored(x, dtype):
    """As the type's file: bf16 is f32 without its lower half, rounded to nearest even."""
    if dtype != "bf16":
        return x.astype(np.float16)
    bits = x.astype(np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits >> 16).astype(np.uint16)


def made(case):
    """The inputs, and what is expected: sums of eighths are exact, and rounded once."""
    rng = np.random.default_rng(len(case.offsets) * case.n + case.m)
    eighths = lambda *shape: rng.integers(-8, 9, shape) * 0.125
    groups = len(case.offsets) - 1
    a, b = eighths(case.m, case.k), eighths(groups, case.k, case.n)
    want, before = np.zeros((case.m, case.n)), 0
    bounds = []
    for offset in case.offsets:
        before = max(before, min(max(offset, 0), case.m))
        bounds.append(before)
    for group in range(groups):
        rows = slice(bounds[group], bounds[group + 1])
        want[rows] = a[rows] @ b[group]
    a[case.wild] = np.nan
    b = b.swapaxes(1, 2) if case.trans_b else b
    inputs = [stored(a, case.dtype), stored(np.ascontiguousarray(b), case.dtype), np.int32(case.offsets)]
    if case.epilogue:
        more = eighths(case.m, case.n).astype(np.float32)
        inputs.append(more)
        want = np.maximum(want + more, 0.0)
    return inputs, stored(want, case.dtype)


def run(folder, axe, target, name, case):
    module, package, outputs = folder / f"{name}.mlir", folder / f"{name}.axe", folder / f"{name}.results"
    module.write_text(text(case))
    inputs, want = made(case)
    flags = []
    for at, array in enumerate(inputs):
        np.save(folder / f"{name}.arg{at}.npy", array)
        flags.append(f"--input=arg{at}={folder / f'{name}.arg{at}.npy'}")
    outputs.mkdir(exist_ok=True)
    subprocess.run([axe, "compile", module, "--function", "main", "--target", target, "-o", package], check=True)
    execute = ["run"] if target == "cpu" else ["sim"]
    subprocess.run([axe, *execute, package, *flags, "--out", outputs], check=True, stdout=subprocess.DEVNULL)
    got = np.load(outputs / "out0.npy")
    got = got.view(want.dtype) if got.dtype != want.dtype else got
    # Zeros have two signs.
    wrong = (got != want) & ~((got.astype(np.float64) == 0) & (want.astype(np.float64) == 0))
    if case.dtype == "bf16":
        wrong &= (got & 0x7FFF) + (want & 0x7FFF) != 0
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0])
        sys.exit(f"{name}: {wrong.sum()} differ, the first at {first}: expected {want[first]}, got {got[first]}")


def main(folder, axe, target, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        if not names or name in names:
            run(folder, axe, target, name, case)


if __name__ == "__main__":
    main(*sys.argv[1:])
