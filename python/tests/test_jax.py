"""JAX: skipped where it or a converter of StableHLO is missing."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import axe._top_k
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


    def test_top_k_is_an_operator(self):
        import jax

        x = np.random.default_rng(0).integers(-40, 40, (9, 128)).astype(np.float32)
        package = axe.jax.compile(lambda x: jax.lax.top_k(x, 8), x, target="sm_90a", assemble=False)
        for got, want in zip(package.simulate(x), jax.lax.top_k(x, 8)):
            np.testing.assert_array_equal(got, want)


class Text(unittest.TestCase):
    def test_top_k_of_chlo(self):
        chlo = "%v, %i = chlo.top_k(%arg0#1, k = 4) : tensor<?x64xf32> -> (tensor<?x4xf32>, tensor<?x4xi32>)"
        axes = "%v, %i = axe.top_k %arg0#1 : tensor<?x64xf32> -> tensor<?x4xf32>, tensor<?x4xi32>"
        self.assertEqual(axe._top_k.of_chlo(f"a\n{chlo}\nb"), f"a\n{axes}\nb")
        smallest = chlo.replace("k = 4)", "k = 4) {largest = false}")
        self.assertEqual(axe._top_k.of_chlo(smallest), axes.replace("#1 :", "#1 {smallest} :"))


class WithoutConverter(unittest.TestCase):
    def test_a_missing_converter_is_named(self):
        nowhere = str(Path(os.devnull) / "python")
        with mock.patch.dict(os.environ, PATH=""), mock.patch.object(sys, "executable", nowhere):
            with self.assertRaisesRegex(axe.jax.ConversionError, "stablehlo-opt or torch-mlir-opt, and there is none"):
                axe.jax.linalg("module {}")


if __name__ == "__main__":
    unittest.main()
