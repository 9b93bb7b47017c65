"""JAX: functions as packages, through StableHLO.

    package = axe.jax.compile(function, x, w, target="sm_90a")

A converter of StableHLO to linalg is needed: `stablehlo-opt` or `torch-mlir-opt` (of `pip install torch-mlir`), beside
the Python that runs or on the PATH; there is a `ConversionError` where neither is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axe import _axe, _top_k
from axe._compile import compile as _compile
from axe._package import Package

# Programs and their passes from StableHLO to linalg.
_CONVERTERS = {
    "stablehlo-opt": ["--stablehlo-legalize-to-linalg", "--canonicalize", "--cse"],
    "torch-mlir-opt": ["--stablehlo-legalize-to-linalg", "--canonicalize", "--cse"],
}


class ConversionError(_axe.AxeError):
    """A module of StableHLO that was not converted: no converter, or one that refuses it."""


def _converter() -> list[str]:
    for name, passes in _CONVERTERS.items():
        beside = Path(sys.executable).with_name(name)
        found = str(beside) if beside.is_file() else shutil.which(name)
        if found:
            return [found, *passes]
    raise ConversionError(
        f"StableHLO becomes linalg by {' or '.join(_CONVERTERS)}, and there is none: pip install torch-mlir -f "
        "https://github.com/llvm/torch-mlir-release/releases/expanded_assets/dev-wheels"
    )


def linalg(stablehlo: str) -> str:
    """A module of StableHLO as linalg on tensors; `jax.lax.top_k`, which is CHLO's there, as `axe.top_k`."""
    run = subprocess.run([*_converter(), "-"], input=stablehlo, capture_output=True, text=True, check=False)
    if run.returncode:
        raise ConversionError(run.stderr.strip() or f"the converter ended with status {run.returncode}")
    return _top_k.of_chlo(run.stdout)


def compile(function: Callable[..., Any], *arguments: Any, target: str | None = None, **options: Any) -> Package:
    """Compiles a function for arguments like these."""
    import jax

    return _compile(jax.jit(function).lower(*arguments), target=target, **options)
