"""The tiles of a grid as `axe.for_tiles` defines their orders, written down without its arithmetic.

tile_orders.py write FOLDER: FOLDER/ORDER-ROWS-COLUMNS.npy holds the number of each tile, and beside them are the other tests' inputs.
"""
import sys
from pathlib import Path

import numpy as np


def rows(height, width, _):
    return [(i, j) for i in range(height) for j in range(width)]


def columns(height, width, _):
    return [(i, j) for j in range(width) for i in range(height)]


def groups(height, width, group):
    bands = [range(first, min(first + group, height)) for first in range(0, height, group)]
    return [(i, j) for band in bands for j in range(width) for i in band]


def snake(height, width, group):
    visits = []
    for number, first in enumerate(range(0, height, group)):
        across = range(width) if number % 2 == 0 else reversed(range(width))
        visits += [(i, j) for j in across for i in range(first, min(first + group, height))]
    return visits


def hilbert(height, width, _):
    """The curve by its recursive definition: a quarter transposed, two as they are, one transposed the other way round."""

    def curve(side):
        if side == 1:
            return [(0, 0)]
        half = side // 2
        quarter = curve(half)
        return (
            [(j, i) for i, j in quarter]
            + [(i, j + half) for i, j in quarter]
            + [(i + half, j + half) for i, j in quarter]
            + [(side - 1 - j, half - 1 - i) for i, j in quarter]
        )

    side = 1
    while side < max(height, width):
        side *= 2
    return [(i, j) for i, j in curve(side) if i < height and j < width]


def numbers(order, height, width, group=2):
    at = np.full((height, width), -1, np.int32)
    for number, place in enumerate(order(height, width, group)):
        at[place] = number
    return at


def main(folder):
    folder = Path(folder)
    for order in (rows, columns, groups, snake, hilbert):
        np.save(folder / f"{order.__name__}-5-3.npy", numbers(order, 5, 3))
    for height, width in ((8, 8), (1, 7)):
        np.save(folder / f"hilbert-{height}-{width}.npy", numbers(hilbert, height, width))
    batch = [numbers(snake, 3, 4) + 12 * number for number in range(2)]
    np.save(folder / "batch.npy", np.stack(batch))
    np.save(folder / "zero.npy", np.zeros((1, 1), np.int32))
    x = np.random.default_rng(0).standard_normal((27, 20)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "doubled.npy", 2 * x)


if __name__ == "__main__":
    main(sys.argv[2])
