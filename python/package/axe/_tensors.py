"""Element types, and host tensors as the extension takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from axe._axe import PackageError

# The names of a manifest, and NumPy's.
_NUMPY = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
}

# What NumPy has no type for: ml_dtypes' name, and the unsigned integers that hold the bits.
_EXTENDED = {
    "bf16": ("bfloat16", np.uint16),
    "f8e4m3": ("float8_e4m3fn", np.uint8),
    "f8e5m2": ("float8_e5m2", np.uint8),
}

# The names of torch's types.
TORCH = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
}

Given = tuple[str, list[int], bytes]


def numpy_type(name: str) -> np.dtype:
    """NumPy's type of that name: ml_dtypes' where it is installed, else the integers that hold the bits."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    extended, bits = _EXTENDED[name]
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(bits)
    return np.dtype(getattr(ml_dtypes, extended))


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "untyped_storage")


def given(value: Any, spec: dict[str, Any]) -> Given:
    """A host tensor for the input `spec` of a manifest. Types are never converted: a wrong one is an error."""
    name, want = spec["name"], spec["dtype"]
    if _is_torch(value):
        return _of_torch(value, name, want)
    array = np.asarray(value)
    names = [array.dtype.name]
    allowed = {np.dtype(_NUMPY[want]).name} if want in _NUMPY else {_EXTENDED[want][0], np.dtype(_EXTENDED[want][1]).name}
    if not allowed.intersection(names):
        raise PackageError(f"input `{name}`: expected {want} ({' or '.join(sorted(allowed))}), got {array.dtype.name}")
    return want, list(array.shape), np.ascontiguousarray(array).tobytes()


def _of_torch(value: Any, name: str, want: str) -> Given:
    import torch

    if value.dtype is not getattr(torch, TORCH[want], None):
        raise PackageError(f"input `{name}`: expected {want}, got {value.dtype}")
    host = value.detach().cpu().contiguous()
    return want, list(host.shape), host.flatten().view(torch.uint8).numpy().tobytes()


def made(dtype: str, shape: list[int], raw: bytes) -> np.ndarray:
    """A tensor of the extension's as an array of its own memory."""
    return np.frombuffer(raw, numpy_type(dtype)).reshape(shape).copy()
