"""Inputs at the ends of what remainders, maxima and small logarithms are about, and what math and numpy make of them.

floats.py write FOLDER
floats.py check FOLDER OUTPUTS NAME ...    compares out0.npy and so on in OUTPUTS: the numbers, and the signs of remainders
"""
import math
import sys
from pathlib import Path

import numpy as np

EDGES = np.array([0.0, 1.0, 1.5, 3.0, 0.1, 1e-6, 7.25, 1e10, 3.4e38, 1.2e-38, 1e-45, 65504.0, np.inf, np.nan], np.float32)
EDGES = np.concatenate([EDGES, -EDGES])
WIDE_EDGES = np.array([0.0, -0.0, 1.0, 1001.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308, 3.0, 1e-300, 0.1, 49.0, 1e300, 7.0, -21.0])
# The constants in the test's module.
DIVISORS = [1001.0, 3.0, -0.7]


def remainder(x, y):
    try:
        return math.fmod(x, y)
    except ValueError:
        return math.nan


def write(folder):
    folder = Path(folder)
    x, y = (edge.astype(np.float32).reshape(28, 28) for edge in np.meshgrid(EDGES, EDGES))
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    np.save(folder / "rem.npy", np.vectorize(remainder, otypes=[np.float32])(x.astype(float), y.astype(float)))
    np.save(folder / "max.npy", np.fmax(x, y))
    np.save(folder / "min.npy", np.fmin(x, y))
    small = np.float32([1e-6, -1e-6, 3e-20, -0.5, 0.25, 1e-3, 10.0, 0.0])
    np.save(folder / "small.npy", small)
    np.save(folder / "log1p.npy", np.log1p(small.astype(float)).astype(np.float32))
    wide = np.concatenate([np.random.default_rng(7).standard_normal(4080) * 2.0 ** np.linspace(-900, 900, 4080), WIDE_EDGES])
    np.save(folder / "wide.npy", wide)
    for at, by in enumerate(DIVISORS):
        np.save(folder / f"by{at}.npy", wide / by)
    np.save(folder / "expm1.npy", np.expm1(small.astype(float)).astype(np.float32))


def check(folder, outputs, *names):
    for at, name in enumerate(names):
        want, got = np.load(Path(folder) / f"{name}.npy"), np.load(Path(outputs) / f"out{at}.npy")
        same = (want == got) | (np.isnan(want) & np.isnan(got))
        if name == "rem":
            same &= np.isnan(want) | (np.signbit(want) == np.signbit(got))
        if not same.all():
            first = tuple(np.argwhere(~same)[0])
            sys.exit(f"{name}: {np.count_nonzero(~same)} differ, the first at {first}: expected {want[first]!r}, got {got[first]!r}")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
