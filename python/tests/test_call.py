"""Calls on a GPU, on a driver that writes down what it is asked for. AXE_FAKE_CUDA names the folder of that driver."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

ADD = """func.func @add(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %s = linalg.add ins(%a, %b : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}"""

PREAMBLE = f"""
import axe
class Array:
    def __init__(self, address, shape=(16, 8), typestr="<f4", strides=None, read_only=False):
        self.__cuda_array_interface__ = dict(shape=shape, typestr=typestr, data=(address, read_only), strides=strides, version=3)
package = axe.compile({ADD!r}, target="sm_90a", assemble=False)
a, b, c = Array(0x10000), Array(0x20000), Array(0x30000)
def refused(expected, *inputs, **options):
    try:
        package(*inputs, **options)
    except axe.AxeError as error:
        assert expected in str(error), error
    else:
        raise AssertionError(expected)
"""


@unittest.skipUnless(os.environ.get("AXE_FAKE_CUDA"), "AXE_FAKE_CUDA names no driver")
class Calls(unittest.TestCase):
    def launches(self, script):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            found = os.pathsep.join(filter(None, [os.environ["AXE_FAKE_CUDA"], os.environ.get("LD_LIBRARY_PATH")]))
            environment = {**os.environ, "LD_LIBRARY_PATH": found, "FAKE_CUDA_LOG": log}
            done = subprocess.run(
                [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
                env=environment, capture_output=True, text=True, check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            if not os.path.exists(log):
                return []
            with open(log, encoding="utf-8") as lines:
                return [line.split() for line in lines if line.startswith("launch")]

    def test_addresses_and_streams_are_the_callers(self):
        first, second = self.launches(
            """
            assert package(a, b, out=c) is c
            package(b, a, out=(c,), stream=0x40)
            """
        )
        # Sizes stand among the parameters too.
        addresses = [[word for word in launch[5:] if len(word) == 5] for launch in (first, second)]
        self.assertEqual(first[2:4], ["stream=(nil)", "context=primary"])
        self.assertEqual(second[2], "stream=0x40")
        self.assertEqual(addresses, [["10000", "20000", "30000"], ["20000", "10000", "30000"]])

    def test_what_does_not_fit_is_an_error_before_anything_is_launched(self):
        launches = self.launches(
            """
            import numpy as np
            refused("expected 2 inputs, got 1", a, out=c)
            refused("expected f32, got f16", a, Array(0x20000, typestr="<f2"), out=c)
            refused("dense row-major", a, Array(0x20000, strides=(64, 4)), out=c)
            refused("by dimension 0", a, Array(0x20000, shape=(17, 8)), out=c)
            refused("expected shape (16, 8)", a, b, out=Array(0x30000, shape=(8, 8)))
            refused("expected 1 outputs, got 2", a, b, out=(c, c))
            refused("read-only", a, b, out=Array(0x30000, read_only=True))
            refused("give out=", a, b)
            refused("overlaps", a, b, out=Array(0x20010))
            refused("null", a, Array(0), out=c)
            refused("not on a CUDA device", np.zeros((16, 8), np.float32), b, out=c)
            refused("expected a tensor on a GPU", 3, b, out=c)
            """
        )
        self.assertEqual(launches, [])


class WithoutDriver(unittest.TestCase):
    def test_a_missing_driver_is_an_error(self):
        if os.path.exists("/dev/nvidiactl") or os.environ.get("AXE_FAKE_CUDA", "") in os.environ.get("LD_LIBRARY_PATH", "-"):
            self.skipTest("there is a driver")
        script = PREAMBLE + 'refused("no NVIDIA driver", a, b, out=c)'
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
