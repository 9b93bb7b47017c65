"""Calls on a GPU: the caller's memory and stream. What a call checks is kept for the next one with equal shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from axe import _axe, _tensors
from axe._axe import PackageError

# DLPack's device types that a kernel can reach: CUDA, and managed memory.
_DLPACK_CUDA = (2, 13)
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool"}
# The type codes of DLPack 1.1 for 8-bit floats.
_DLPACK_F8 = {10: "f8e4m3", 12: "f8e5m2"}


def dimension(extent: Any) -> Any:
    """A dimension of a manifest for people: a number, a symbol's name, or ? for what is computed."""
    return extent if isinstance(extent, (int, str)) else "?"


class _Tensor(NamedTuple):
    """A dense tensor on a GPU."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    device: int


class _Torch(NamedTuple):
    """A call of torch tensors of known shapes."""

    launch: Callable[[list[int], list[int], int], None]
    inputs: tuple[Any, ...]
    """The element type of each input."""
    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    """Shape and element type of each output."""


def manifest(package: _axe.Package) -> dict[str, Any]:
    """What a package says of itself, with the lists that it leaves out when they are empty."""
    found = json.loads(package.manifest())
    for key in ("symbols", "inputs", "outputs", "buffers", "kernels", "steps"):
        found.setdefault(key, [])
    return found


class Calls:
    """The calls of one package."""

    __slots__ = ("_package", "_manifest", "_executables", "_known", "_torch")

    def __init__(self, package: _axe.Package) -> None:
        self._package = package
        self._manifest: dict[str, Any] | None = None
        self._executables: dict[int, _axe.Executable] = {}
        self._known: dict[Any, _Torch] = {}
        self._torch: Any = None

    def __call__(self, inputs: tuple[Any, ...], out: Any, stream: int | None, dims: dict[str, int]) -> Any:
        torch = self._torch
        if torch is None or not inputs or type(inputs[0]) not in torch.types:
            if not inputs or not _tensors._is_torch(inputs[0]):
                return self._foreign(inputs, out, stream, dims)
            torch = self._torch = torch or _TorchNames()
        device = inputs[0].device
        key = (device, *[x.shape for x in inputs]) if not dims else (device, *[x.shape for x in inputs], *sorted(dims.items()))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._learn(torch, inputs, dims)
        addresses = []
        for x, dtype in zip(inputs, known.inputs):
            if x.dtype is not dtype or x.device != device or not x.is_contiguous():
                self._refuse(torch, inputs, known, device)
            addresses.append(x.data_ptr())
        empty = torch.empty
        if out is None:
            made = [empty(shape, dtype=dtype, device=device) for shape, dtype in known.outputs]
        else:
            made = self._given_outputs(out, known, device)
        if stream is None:
            stream = torch.stream(device.index)
        known.launch(addresses, [x.data_ptr() for x in made], stream)
        if out is not None:
            return out
        return made[0] if len(made) == 1 else tuple(made)

    def manifest(self) -> dict[str, Any]:
        if self._manifest is None:
            self._manifest = manifest(self._package)
        return self._manifest

    def _specialize(self, device: int, shapes: Sequence[Sequence[int]], dims: dict[str, int]) -> _axe.Specialization:
        executable = self._executables.get(device)
        if executable is None:
            executable = self._executables[device] = _axe.Executable.load(self._package, device)
        return executable.specialize([list(shape) for shape in shapes], {k: int(v) for k, v in dims.items()})

    def _learn(self, torch: Any, inputs: tuple[Any, ...], dims: dict[str, int]) -> _Torch:
        """The call for the shapes of these inputs."""
        specs = self.manifest()["inputs"]
        if len(specs) != len(inputs):
            names = ", ".join(f"`{spec['name']}`" for spec in specs)
            raise PackageError(f"expected {len(specs)} inputs ({names}), got {len(inputs)}")
        for spec, x in zip(specs, inputs):
            if not _tensors._is_torch(x):
                raise PackageError(f"input `{spec['name']}`: expected a torch tensor as the first input is, got {type(x).__name__}")
        device = inputs[0].device
        if device.type != "cuda":
            raise PackageError(
                f"input `{specs[0]['name']}` is on {device}: expected a CUDA device (simulate() and reference() run on the host)"
            )
        specialization = self._specialize(device.index, [x.shape for x in inputs], dims)
        outputs = tuple((tuple(shape), torch.dtype(dtype)) for _, dtype, shape in specialization.outputs())
        return _Torch(specialization.launch, tuple(torch.dtype(spec["dtype"]) for spec in specs), outputs)

    def _refuse(self, torch: Any, inputs: tuple[Any, ...], known: _Torch, device: Any) -> None:
        """Says which input is wrong."""
        for spec, x, dtype in zip(self.manifest()["inputs"], inputs, known.inputs):
            name = spec["name"]
            if x.dtype is not dtype:
                raise PackageError(f"input `{name}`: expected {dtype}, got {x.dtype}")
            if x.device != device:
                raise PackageError(f"input `{name}` is on {x.device}, the first one is on {device}")
            if not x.is_contiguous():
                raise PackageError(f"input `{name}` has strides {x.stride()}: expected a dense row-major tensor (.contiguous())")

    def _given_outputs(self, out: Any, known: _Torch, device: Any) -> list[Any]:
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(known.outputs):
            raise PackageError(f"expected {len(known.outputs)} outputs, got {len(given)}")
        for number, (x, (shape, dtype)) in enumerate(zip(given, known.outputs)):
            if not _tensors._is_torch(x):
                raise PackageError(f"output {number}: expected a torch tensor as the inputs are, got {type(x).__name__}")
            if tuple(x.shape) != shape or x.dtype is not dtype or x.device != device or not x.is_contiguous():
                raise PackageError(
                    f"output {number}: expected a dense {dtype} tensor of shape {shape} on {device}, "
                    f"got {x.dtype} of shape {tuple(x.shape)} and strides {x.stride()} on {x.device}"
                )
        return given

    def _foreign(self, inputs: tuple[Any, ...], out: Any, stream: int | None, dims: dict[str, int]) -> Any:
        """A call on tensors of other libraries."""
        specs = self.manifest()["inputs"]
        if len(specs) != len(inputs):
            raise PackageError(f"expected {len(specs)} inputs, got {len(inputs)}")
        handle = 0 if stream is None else int(stream)
        held: list[Any] = []
        given = [_described(x, f"input `{spec['name']}`", handle, held) for x, spec in zip(inputs, specs)]
        _agree(given, [(spec["dtype"], None) for spec in specs], [f"input `{spec['name']}`" for spec in specs])
        device = given[0].device if given else 0
        specialization = self._specialize(device, [x.shape for x in given], dims)
        outputs = [(dtype, tuple(shape)) for _, dtype, shape in specialization.outputs()]
        made = _outputs(inputs, out, outputs, device)
        names = [f"output {number}" for number in range(len(made))]
        places = [_described(x, name, handle, held) for x, name in zip(made, names)]
        if len(places) != len(outputs):
            raise PackageError(f"expected {len(outputs)} outputs, got {len(places)}")
        _agree(given[:1] + places, [(specs[0]["dtype"], None)] * len(given[:1]) + outputs, ["input"] * len(given[:1]) + names)
        specialization.launch([x.address for x in given], [x.address for x in places], handle)
        if out is not None:
            return out
        return made[0] if len(made) == 1 else tuple(made)


class _TorchNames:
    """What a call needs of torch, looked up once."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.types = (torch.Tensor, torch.nn.Parameter)
        self.empty = torch.empty
        # The handle without a Stream object around it, as Triton takes it.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.stream = raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)

    def dtype(self, name: str) -> Any:
        return getattr(self._torch, _tensors.TORCH[name])


def _described(value: Any, what: str, stream: int, held: list[Any]) -> _Tensor:
    """A tensor of any library. `held` keeps what must live until the launch."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(interface, value, what)
    if not hasattr(value, "__dlpack__"):
        raise PackageError(f"{what}: expected a tensor on a GPU (__dlpack__ or __cuda_array_interface__), got {type(value).__name__}")
    kind, device = value.__dlpack_device__()
    if int(kind) not in _DLPACK_CUDA:
        raise PackageError(f"{what} is not on a CUDA device: expected one (simulate() and reference() run on the host)")
    # DLPack calls CUDA's legacy default stream 1.
    capsule = value.__dlpack__(stream=stream or 1)
    held.append(capsule)
    address, _, device, code, bits, lanes, shape, strides = _axe.describe(capsule)
    dtype = _DLPACK_F8.get(code) or f"{_DLPACK_KINDS.get(code, '?')}{bits}".replace("bool8", "bool")
    if lanes != 1:
        raise PackageError(f"{what}: expected plain elements, got vectors of {lanes}")
    _dense(shape, strides, what)
    return _Tensor(address, dtype, tuple(shape), device)


def _of_interface(interface: dict[str, Any], value: Any, what: str) -> _Tensor:
    shape = tuple(interface["shape"])
    text = interface["typestr"]
    kind, bytes_each = text[1], int(text[2:])
    dtype = "bool" if kind == "b" else f"{kind}{8 * bytes_each}"
    strides = interface.get("strides")
    if strides is not None:
        _dense(shape, [stride // bytes_each for stride in strides], what)
    address, read_only = interface["data"]
    if read_only and what.startswith("output"):
        raise PackageError(f"{what} is read-only")
    device = getattr(getattr(value, "device", None), "id", None)
    return _Tensor(int(address or 0), dtype, shape, device if isinstance(device, int) else 0)


def _dense(shape: Sequence[int], strides: Sequence[int] | None, what: str) -> None:
    """Refuses what is not row-major without gaps; dimensions of one element have any stride."""
    if strides is None or 0 in shape:
        return
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            raise PackageError(f"{what} has strides {list(strides)}: expected a dense row-major tensor")
        expected *= extent


def _agree(given: list[_Tensor], wanted: Sequence[tuple[str, Any]], names: list[str]) -> None:
    for x, (dtype, shape), name in zip(given, wanted, names):
        if x.dtype != dtype:
            raise PackageError(f"{name}: expected {dtype}, got {x.dtype}")
        if shape is not None and x.shape != shape:
            raise PackageError(f"{name}: expected shape {shape}, got {x.shape}")
        if x.device != given[0].device:
            raise PackageError(f"{name} is on GPU {x.device}, the first input is on GPU {given[0].device}")


def _outputs(inputs: tuple[Any, ...], out: Any, outputs: list[tuple[str, tuple[int, ...]]], device: int) -> list[Any]:
    if out is not None:
        return list(out) if isinstance(out, (tuple, list)) else [out]
    library = type(inputs[0]).__module__.split(".")[0] if inputs else ""
    if library == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            return [cupy.empty(shape, _tensors.numpy_type(dtype)) for dtype, shape in outputs]
    shapes = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in outputs)
    raise PackageError(f"new tensors of {library or 'no library'} cannot be made here: give out= ({shapes})")
