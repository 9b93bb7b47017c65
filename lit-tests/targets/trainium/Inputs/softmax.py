"""Makes arguments for examples/trainium/softmax.mlir, and checks what it gives."""

import sys

import numpy as np

verb, x, *rest = sys.argv[1:]
if verb == "inputs":
    np.save(x, np.random.default_rng(1).normal(0, 3, (512, 1024)).astype(np.float32))
else:
    values = np.load(x).astype(np.float64)
    exps = np.exp(values - values.max(1, keepdims=True))
    difference = np.abs(np.load(rest[0]) - exps / exps.sum(1, keepdims=True)).max()
    # Sums of 1024 numbers in f32, one after the other: at most 1024 * 2^-24 of a result of up to 1.
    if not difference < 1024 * 2.0**-24:
        sys.exit(f"differs by {difference}")
