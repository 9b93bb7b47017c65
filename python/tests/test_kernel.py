"""Bare kernels in the simulator."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

import axe

SCALE = """
.version 8.0 .target sm_80 .address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by) {
  .reg .b64 %a<3>; .reg .b32 %r<3>; .reg .f32 %f<3>;
  ld.param.b64 %a0, [x]; ld.param.f32 %f0, [by]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a0, %a0, %a1;
  ld.global.f32 %f1, [%a0]; mul.f32 %f1, %f1, %f0; st.global.f32 [%a0], %f1; ret; }"""

RACY = """
.version 8.0 .target sm_80 .address_size 64
.visible .entry hand_over(.param .u64 out) {
  .reg .b64 %a<3>; .reg .b32 %r<8>; .shared .align 4 .b8 box[256];
  ld.param.b64 %a0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a2, %a0, %a1;
  mov.u32 %r1, box; shl.b32 %r2, %r0, 2; add.s32 %r3, %r1, %r2; st.shared.b32 [%r3], %r0;
  xor.b32 %r4, %r2, 128; add.s32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5]; st.global.b32 [%a2], %r6; ret; }"""


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def written(self, text: str) -> Path:
        path = self.folder / "k.ptx"
        path.write_text(text)
        return path

    def test_arrays_come_back_and_the_one_given_stays(self):
        scale = self.written(SCALE)
        x = np.arange(32, dtype=np.float32)
        for by in (3, 3.0, np.float32(3)):
            left = axe.simulate_kernel(scale, [x, by], block=32, schedules=2)
            np.testing.assert_array_equal(left["arg0"], 3 * x)
            np.testing.assert_array_equal(x, np.arange(32))
        named = axe.simulate_kernel(scale, {"x": "f32[32]:arange", "by": 3}, block=(32, 1), name="scale")
        np.testing.assert_array_equal(named["x"], 3 * x)

    def test_what_is_found_is_raised(self):
        racy = self.written(RACY)
        with self.assertRaises(axe.SimulationError) as raised:
            axe.simulate_kernel(racy, ["i32[64]"], block=64)
        self.assertIn(("race", "hand_over"), {(each.kind, each.kernel) for each in raised.exception.findings})
        left = axe.simulate_kernel(racy, ["i32[64]"], block=64, check=False)
        self.assertEqual(left["arg0"].shape, (64,))
        with self.assertRaisesRegex(axe.SimulationError, "out-of-bounds"):
            axe.simulate_kernel(self.written(SCALE), [np.ones(16, np.float32), 2], block=32)

    def test_what_cannot_be_run_says_why(self):
        scale = self.written(SCALE)
        for arguments, message in [([], "takes 2 arguments"), ([np.ones(4, np.float32), "f32["], "f32")]:
            with self.assertRaisesRegex(axe.PackageError, message):
                axe.simulate_kernel(scale, arguments, block=32)
        with self.assertRaisesRegex(axe.PackageError, "missing"):
            axe.simulate_kernel(self.folder / "missing.ptx", [], block=32)


if __name__ == "__main__":
    unittest.main()
