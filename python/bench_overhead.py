"""The host's time of a call `package(x, y)`, in microseconds: the median over rounds of calls that nothing waits for.

    python bench_overhead.py [--package FILE] [--calls N]      # on a machine with a GPU and torch
    AXE_FAKE_CUDA=FOLDER python bench_overhead.py --fake       # without either: LD_LIBRARY_PATH=FOLDER has a libcuda.so.1

Beside it, on a GPU: torch's own addition of the same tensors, and the package's launch replayed from a CUDA graph. With
`--fake`, a stand-in for torch's tensors shows the cost of the package's own checks, without torch's and the driver's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import axe

ADD = """func.func @add(%a: tensor<256x64xf32>, %b: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %e = tensor.empty() : tensor<256x64xf32>
  %s = linalg.add ins(%a, %b : tensor<256x64xf32>, tensor<256x64xf32>) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  return %s : tensor<256x64xf32>
}"""


def microseconds(call: Callable[[], Any], calls: int, settle: Callable[[], None]) -> float:
    """The median over 21 rounds of the mean time of a call. A round is short, so that the launch queue never fills."""
    rounds = []
    for _ in range(21):
        settle()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - start) / calls * 1e6)
    settle()
    return statistics.median(rounds)


def on_gpu(package: axe.Package, calls: int) -> None:
    import torch

    settle = torch.cuda.synchronize
    shapes = [[e if isinstance(e, int) else 256 for e in spec["shape"]] for spec in package.manifest["inputs"]]
    types = [getattr(torch, {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}[s["dtype"]]) for s in package.manifest["inputs"]]
    inputs = [torch.randn(shape, device="cuda").to(dtype) for shape, dtype in zip(shapes, types)]
    made = package(*inputs)
    settle()
    if package.name == "add":
        torch.testing.assert_close(made, inputs[0] + inputs[1])
    print(f"package(...)            {microseconds(lambda: package(*inputs), calls, settle):6.2f} us")
    print(f"package(..., out=made)  {microseconds(lambda: package(*inputs, out=made), calls, settle):6.2f} us")
    print(f"torch: x + y            {microseconds(lambda: inputs[0] + inputs[-1], calls, settle):6.2f} us")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        package(*inputs, out=made)
    want = package(*inputs)
    made.zero_()
    graph.replay()
    settle()
    torch.testing.assert_close(made, want)
    print(f"graph replay            {microseconds(graph.replay, calls, settle):6.2f} us")


class Device(str):
    """A stand-in for torch.device."""

    type, index = "cuda", 0


class Tensor:
    """A stand-in for torch.Tensor with the attributes that a call reads."""

    device, dtype = Device("cuda:0"), "float32"

    def __init__(self, shape: tuple[int, ...], address: int) -> None:
        self.shape, self.address = shape, address

    def is_contiguous(self) -> bool:
        return True

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> None: ...


class Names:
    """A stand-in for axe._call._TorchNames."""

    types = (Tensor,)
    made = 0

    def empty(self, shape: tuple[int, ...], dtype: str, device: str) -> Tensor:
        # As a caching allocator: a few places in turn, so that addresses change from call to call.
        self.made = (self.made + 1) % 4
        return Tensor(shape, 0x100_0000 * (self.made + 8))

    def stream(self, device: int) -> int:
        return 0

    def dtype(self, name: str) -> str:
        return "float32"


def on_fake(package: axe.Package, calls: int) -> None:
    from axe import _tensors

    _tensors._is_torch = lambda value: isinstance(value, Tensor)
    package._calls._torch = Names()
    x, y = Tensor((256, 64), 0x100_0000), Tensor((256, 64), 0x200_0000)
    made = package(x, y)
    print(f"package(...)            {microseconds(lambda: package(x, y), calls, lambda: None):6.2f} us, fake driver")
    print(f"package(..., out=made)  {microseconds(lambda: package(x, y, out=made), calls, lambda: None):6.2f} us, fake driver")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", help="a package instead of an addition")
    parser.add_argument("--calls", type=int, default=200, help="calls of a round")
    parser.add_argument("--fake", action="store_true", help="without torch and a GPU")
    parser.add_argument("--target", default="sm_90a")
    args = parser.parse_args()
    package = axe.Package(args.package) if args.package else axe.compile(ADD, target=args.target)
    (on_fake if args.fake else on_gpu)(package, args.calls)


if __name__ == "__main__":
    main()
