"""From a module to a package."""

from __future__ import annotations

import os
import re
from typing import Any

from axe import _axe
from axe._errors import compiling
from axe._package import Decision, Package


def targets() -> list[str]:
    """What there is a compiler for: `cpu` and chips."""
    return _axe.targets()[0]


def default_target() -> str:
    """The chip that is compiled for where none is named."""
    return _axe.targets()[1]


def compile(
    module: Any,
    *,
    target: str | None = None,
    function: str | None = None,
    name: str | None = None,
    ptxas: str | os.PathLike[str] | None = None,
    assemble: bool = True,
) -> Package:
    """Compiles a module into a kernel package.

    `module` is the text of one (linalg on tensors, axe operators, or kernels with their launches), a path to it, a module
    of any build of MLIR's Python bindings, or a `torch.export.ExportedProgram` (which needs `torch-mlir`). `target` is a
    chip such as `sm_90a`, or `cpu`; `function` the function to compile when there are several public ones; `name` what
    diagnostics call text that is from no file. `ptxas` is NVIDIA's assembler; without, it is `$AXE_PTXAS`, or that of the
    PATH; where there is none, and with `assemble=False`, the package has PTX alone, which the driver compiles.

    Raises `CompileError`, whose `diagnostics` are located, and `PackageError`.
    """
    text, found = _text(module)
    name = name or found
    if re.search(r"\b(stablehlo|chlo)\.", text):
        from axe import jax

        text = jax.linalg(text)
    with compiling():
        made, warnings, decisions = _axe.compile(
            text, name, target or default_target(), function, None if ptxas is None else os.fspath(ptxas), assemble
        )
    return Package._of(made, warnings, [Decision(*each) for each in decisions])


def _text(module: Any) -> tuple[str, str]:
    """A module's text, and the name for places in it."""
    if isinstance(module, str):
        return module, "-"
    if isinstance(module, os.PathLike):
        with open(module, encoding="utf-8") as file:
            return file.read(), os.fspath(module)
    operation = getattr(module, "operation", None)
    if hasattr(operation, "get_asm"):
        # The text is what two builds of MLIR share; its locations come along.
        return operation.get_asm(enable_debug_info=True), "-"
    if type(module).__module__.startswith("torch.") and type(module).__name__ == "ExportedProgram":
        from axe import torch

        return torch.linalg(module), "-"
    lowered = getattr(module, "compiler_ir", None)
    if callable(lowered):
        return str(module.compiler_ir("stablehlo")), "-"
    raise TypeError(
        f"expected a module's text, a path, a module of MLIR's Python bindings, a torch.export.ExportedProgram or what "
        f"jax.jit(...).lower gives, got {type(module).__name__}"
    )
