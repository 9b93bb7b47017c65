"""torch: skipped where torch or torch-mlir is missing."""

import importlib.util
import unittest

MISSING = [name for name in ("torch", "torch_mlir") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"{', '.join(MISSING)} missing")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch

        import axe
        import axe.torch

        torch.manual_seed(0)
        cls.module = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU()).half().eval()
        cls.x = torch.randn(16, 64).half()
        with torch.no_grad():
            cls.want = cls.module(cls.x)
        cls.package = axe.compile(torch.export.export(cls.module, (cls.x,)), target="sm_90a", assemble=False)

    def close(self, got):
        import torch

        torch.testing.assert_close(got, self.want, rtol=2e-3, atol=2e-3)

    def test_exported_programs_compile(self):
        import torch

        self.close(torch.from_numpy(self.package.simulate(self.x)))

    def test_packages_are_operators(self):
        import torch

        import axe.torch

        axe.torch.op(self.package, "axe_test::linear")
        self.close(torch.ops.axe_test.linear(self.x))
        traced = torch.compile(lambda x: torch.ops.axe_test.linear(x) * 1, backend="eager", fullgraph=True)
        self.close(traced(self.x))
        checks = ("test_schema", "test_faketensor")
        torch.library.opcheck(torch.ops.axe_test.linear.default, (self.x,), test_utils=checks)

    def test_graphs_of_torch_compile_are_simulated(self):
        import torch

        options = {"simulate": True, "required": True, "target": "sm_90a"}
        compiled = torch.compile(self.module, backend="axe", options=options)
        with torch.no_grad():
            self.close(compiled(self.x))

    def test_top_k_is_an_operator(self):
        import torch

        import axe

        class Router(torch.nn.Module):
            def forward(self, x):
                weights, experts = torch.topk(torch.softmax(x, -1), 4, dim=-1)
                return weights / weights.sum(-1, keepdim=True), experts, *torch.topk(x, 3, largest=False)

        rows = torch.export.Dim("rows")
        program = torch.export.export(Router(), (torch.randn(6, 64),), dynamic_shapes=({0: rows},))
        x = torch.randn(9, 64)
        got = axe.compile(program, target="sm_90a", assemble=False).simulate(x)
        for own, want in zip(got, Router()(x)):
            torch.testing.assert_close(torch.from_numpy(own), want, rtol=1e-5, atol=1e-6)

    def test_sorts_and_scatters_compile(self):
        import torch

        import axe

        class Sorted(torch.nn.Module):
            def forward(self, x, cache, slots, rows):
                return (
                    *torch.topk(x, 4, dim=0),
                    *torch.sort(x, -1, descending=True),
                    torch.ops.aten.index_put(cache, [slots], rows),
                    cache.index_add(0, slots, rows),
                )

        inputs = (torch.randn(6, 70), torch.randn(32, 8), torch.tensor([3, 30, 0, 7]), torch.randn(4, 8))
        got = axe.compile(torch.export.export(Sorted(), inputs), target="sm_90a", assemble=False).simulate(*inputs)
        for own, want in zip(got, Sorted()(*inputs)):
            torch.testing.assert_close(torch.from_numpy(own), want, rtol=1e-5, atol=1e-6)

    def test_what_axe_does_not_take_is_left_to_torch(self):
        import torch

        compiled = torch.compile(self.module, backend="axe")
        with self.assertLogs("axe.torch", "WARNING") as logs, torch.no_grad():
            self.close(compiled(self.x))
        self.assertIn("on the host", logs.output[0])
        torch._dynamo.reset()
        with self.assertLogs("axe.torch", "WARNING"):
            compiled(self.x).sum().backward()

    def test_tensors_on_the_host_are_refused(self):
        import axe

        with self.assertRaisesRegex(axe.PackageError, "expected a CUDA device"):
            self.package(self.x)


@unittest.skipIf(importlib.util.find_spec("torch") is None or not MISSING, "torch-mlir is there, or torch is not")
class WithoutConverter(unittest.TestCase):
    def test_a_missing_converter_is_named(self):
        import torch

        import axe.torch

        program = torch.export.export(torch.nn.ReLU(), (torch.zeros(4),))
        with self.assertRaisesRegex(axe.torch.ConversionError, "torch-mlir, which is not installed"):
            axe.compile(program)


if __name__ == "__main__":
    unittest.main()
