"""The largest and smallest elements of rows beside numpy: ties, NaN of both signs, infinities, zeros of both signs, orders that are bad for it.

top_k.py FOLDER AXE TARGET [NAME ...]    compiles each case, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                         and compares the results; what it writes is left in FOLDER
"""
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass
class Case:
    """`k` of each row of a tensor; what it is made of."""

    shape: tuple
    k: int
    dtype: str = "f32"
    index: str = "i32"
    smallest: bool = False
    data: str = "mixed"
    dynamic: bool = False


CASES = {
    # A warp a row.
    "experts": Case((37, 128), 8),
    "routed": Case((19, 128), 8, "bf16", "i64", dynamic=True),
    "first": Case((5, 64), 1, "f16"),
    "all": Case((3, 64), 64),
    "odd": Case((9, 7), 3, "f16"),
    "ragged": Case((4, 301), 17, "bf16", smallest=True),
    "widest": Case((11, 512), 40, "i32", "i64"),
    "single": Case((96,), 4),
    "batched": Case((2, 3, 200), 33, "i32", smallest=True),
    "warp_ties": Case((9, 256), 50, data="equal"),
    "one_column": Case((300, 1), 1),
    # A CTA a row.
    "halves": Case((3, 1000), 50, "f16"),
    "chunks": Case((2, 9000), 64, dynamic=True),
    "filled": Case((2, 8192), 5, "bf16"),
    "prime": Case((2, 5003), 50, "bf16", "i64", smallest=True),
    "ties": Case((1, 12289), 64, data="equal"),
    "ascending": Case((1, 20000), 50, data="ascending"),
    "descending": Case((1, 20000), 50, "i32", data="descending"),
    "last_chunk": Case((1, 20480), 64, "f16", data="ascending"),
    "smallest_ascending": Case((1, 20000), 64, "i32", smallest=True, data="ascending"),
    "nans": Case((1, 9000), 20, data="nan"),
    "few_numbers": Case((1, 9000), 20, smallest=True, data="nan"),
    "low": Case((2, 4097), 30, "i32", data="low"),
    "many_rows": Case((3, 17, 600), 6),
}


def text(case):
    lead = ("?",) + case.shape[1:] if case.dynamic else case.shape
    sizes = lambda shape: "x".join(map(str, shape))
    x = f"tensor<{sizes(lead)}x{case.dtype}>"
    chosen = sizes(lead[:-1] + (case.k,))
    v, i = f"tensor<{chosen}x{case.dtype}>", f"tensor<{chosen}x{case.index}>"
    flag = " {smallest}" if case.smallest else ""
    return f"func.func @main(%x: {x}) -> ({v}, {i}) {{\n  %v, %i = axe.top_k %x{flag} : {x} -> {v}, {i}\n  return %v, %i : {v}, {i}\n}}\n"


def made(case):
    """The elements as they are stored, and as numbers of 64 bits; bf16 is f32 without its lower half."""
    rng = np.random.default_rng(len(case.shape) + case.shape[-1] + case.k)
    count = int(np.prod(case.shape))
    ramp = np.arange(count) - count // 2
    if case.dtype == "i32":
        own = {"ascending": ramp, "descending": -ramp, "low": np.full(count, -(2**31))}
        x = own.get(case.data, rng.integers(-90, 90, count)).astype(np.int32)
        x[rng.integers(0, count, count // 50)] = -(2**31)
        if case.data == "mixed":
            x[rng.integers(0, count, 3)] = 2**31 - 1
        return x.reshape(case.shape), x.reshape(case.shape).astype(np.int64)
    own = {"equal": np.zeros(count), "ascending": ramp / 2.0, "descending": -ramp / 2.0, "nan": np.full(count, np.nan)}
    x = own.get(case.data, np.round(rng.standard_normal(count) * 64) / 16).astype(np.float32)
    if case.data in ("mixed", "nan"):
        for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-7, -1e-7):
            x[rng.integers(0, count, 1 + count // 3000)] = value
    if case.data == "equal":
        x[::3] = -0.0
    if case.dtype == "f16":
        stored = x.astype(np.float16)
        return stored.reshape(case.shape), stored.astype(np.float64).reshape(case.shape)
    if case.dtype == "bf16":
        stored = (x.view(np.uint32) >> 16).astype(np.uint16)
        return stored.reshape(case.shape), (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(case.shape)
    return x.reshape(case.shape), x.astype(np.float64).reshape(case.shape)


def expected(case, stored, numbers):
    """Sorted by whether they are a NaN, by value, by index."""
    nan = np.isnan(numbers) if numbers.dtype == np.float64 else np.zeros(numbers.shape, bool)
    value = np.where(nan, 0, numbers)
    sign = 1 if case.smallest else -1
    place = np.broadcast_to(np.arange(case.shape[-1]), case.shape)
    order = np.lexsort((place, sign * value, sign * nan.astype(np.int8)), axis=-1)[..., : case.k]
    return np.take_along_axis(stored, order, -1), order.astype(np.int32 if case.index == "i32" else np.int64)


def run(folder, axe, target, name, case):
    module, package, outputs = folder / f"{name}.mlir", folder / f"{name}.axe", folder / f"{name}.results"
    module.write_text(text(case))
    stored, numbers = made(case)
    want = expected(case, stored, numbers)
    np.save(folder / f"{name}.arg0.npy", stored)
    outputs.mkdir(exist_ok=True)
    subprocess.run([axe, "compile", module, "--function", "main", "--target", target, "-o", package], check=True)
    flags = ["run"] if target == "cpu" else ["sim"]
    flags += [package, f"--input=arg0={folder / f'{name}.arg0.npy'}", "--out", outputs] + ["--check"] * (target != "cpu")
    subprocess.run([axe, *flags], check=True, stdout=subprocess.DEVNULL)
    for at, own in enumerate(want):
        got = np.load(outputs / f"out{at}.npy")
        bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[own.dtype.itemsize]
        wrong = got.view(bits) != own.view(bits)
        if wrong.any():
            first = tuple(np.argwhere(wrong)[0])
            sys.exit(f"{name}: {wrong.sum()} of result {at} differ, the first at {first}: expected {own[first]}, got {got[first]}")


def main(folder, axe, target, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        if not names or name in names:
            run(folder, axe, target, name, case)


if __name__ == "__main__":
    main(*sys.argv[1:])
