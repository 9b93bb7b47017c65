"""Makes arguments for a product of 130 x 200 x 520, and checks what it gives."""

import sys

import numpy as np

verb, a, b, *rest = sys.argv[1:]
if verb == "inputs":
    random = np.random.default_rng(2)
    np.save(a, random.normal(0, 1, (130, 200)).astype(np.float32))
    np.save(b, random.normal(0, 1, (200, 520)).astype(np.float32))
else:
    want = np.load(a).astype(np.float64) @ np.load(b).astype(np.float64)
    difference = np.abs(np.load(rest[0]) - want).max()
    # Sums of 200 products of about 1 in f32.
    if not difference < 200 * 20 * 2.0**-24:
        sys.exit(f"differs by {difference}")
