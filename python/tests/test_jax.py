"""JAX: skipped where it or a converter of StableHLO is missing."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import axe.jax


def reason() -> str | None:
    """Why there is nothing to test; None where there is."""
    if importlib.util.find_spec("jax") is None:
        return "jax missing"
    try:
        axe.jax._converter()
    except axe.jax.ConversionError:
        return "no converter of StableHLO"
    return None


MISSING = reason()


@unittest.skipIf(MISSING, MISSING)
class Jax(unittest.TestCase):
    def test_functions_are_packages(self):
        import jax

        random = np.random.default_rng(0)
        x, w = (random.standard_normal(shape).astype(np.float32) for shape in [(32, 64), (64, 16)])
        package = axe.jax.compile(lambda x, w: jax.nn.relu(x @ w), x, w, target="sm_80", assemble=False)
        # sm_80 multiplies f32 as tf32, of 11 bits.
        np.testing.assert_allclose(package.simulate(x, w), np.maximum(x @ w, 0), rtol=1e-2, atol=5e-2)


class WithoutConverter(unittest.TestCase):
    def test_a_missing_converter_is_named(self):
        nowhere = str(Path(os.devnull) / "python")
        with mock.patch.dict(os.environ, PATH=""), mock.patch.object(sys, "executable", nowhere):
            with self.assertRaisesRegex(axe.jax.ConversionError, "stablehlo-opt or torch-mlir-opt, and there is none"):
                axe.jax.linalg("module {}")


if __name__ == "__main__":
    unittest.main()
