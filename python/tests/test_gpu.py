"""Calls on a GPU, beside torch: skipped where there is none, or no torch."""

import importlib.util
import unittest


def reason() -> str | None:
    """Why there is nothing to test; None where there is."""
    missing = [name for name in ("torch", "torch_mlir") if importlib.util.find_spec(name) is None]
    if missing:
        return f"{', '.join(missing)} missing"
    import torch

    return None if torch.cuda.is_available() else "no GPU"


MISSING = reason()


@unittest.skipIf(MISSING, MISSING)
class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch

        import axe.torch

        torch.manual_seed(0)
        linear = torch.nn.Linear
        cls.module = torch.nn.Sequential(linear(256, 512), torch.nn.GELU(), linear(512, 256)).half().cuda().eval()
        cls.x = torch.randn(128, 256, device="cuda").half()
        cls.package = axe.torch.compile(cls.module, cls.x)
        with torch.no_grad():
            cls.want = cls.module(cls.x)

    def close(self, got):
        import torch

        torch.testing.assert_close(got, self.want, rtol=2e-3, atol=2e-3)

    def test_a_module_is_a_kernel(self):
        self.close(self.package(self.x))

    def test_outputs_are_the_callers(self):
        import torch

        out = torch.empty_like(self.want)
        self.assertIs(self.package(self.x, out=out), out)
        self.close(out)

    def test_the_stream_is_torchs(self):
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            got = self.package(self.x)
        stream.synchronize()
        self.close(got)

    def test_calls_are_captured(self):
        import torch

        self.package(self.x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = self.package(self.x)
        graph.replay()
        torch.cuda.synchronize()
        self.close(got)

    def test_graphs_of_torch_compile(self):
        import torch

        compiled = torch.compile(self.module, backend="axe", options={"required": True})
        with torch.no_grad():
            self.close(compiled(self.x))

    @unittest.skipIf(importlib.util.find_spec("cupy") is None, "cupy missing")
    def test_tensors_of_others(self):
        import cupy
        import torch

        got = self.package(cupy.from_dlpack(self.x))
        cupy.cuda.Device().synchronize()
        self.close(torch.from_dlpack(got))


if __name__ == "__main__":
    unittest.main()
