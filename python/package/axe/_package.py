"""Kernel packages."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from axe import _axe, _call, _tensors
from axe._errors import compiling


@dataclass(frozen=True)
class Decision:
    """What the compiler chose or declined, and why."""

    kind: str
    """chosen, declined or fact."""
    category: str
    """The pass: `axe-plan` chooses the configurations of kernels, `axe-dispatch` the schedules of operators."""
    name: str
    """The schedule, or where the configuration is from."""
    function: str
    """The kernel; empty where there is none."""
    message: str
    plan: str
    """The schedule's plan, as `axe.plan` has it; empty for the rest."""
    place: str
    """`file:line:column`."""

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.message}"


@dataclass(frozen=True)
class Finding:
    """What the simulator found wrong."""

    kernel: str
    kind: str
    message: str
    line: int | None
    """The line of the PTX."""
    detail: dict[str, Any]
    """All that the simulator says of it."""

    def __str__(self) -> str:
        return f"{self.kernel}, PTX line {self.line}: {self.kind}: {self.message}"


class SimulationError(_axe.AxeError):
    """Kernels that race, leave their memory, or misuse barriers: `findings`."""

    findings: list[Finding]

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


class Package:
    """A kernel package: machine code, PTX, what launches it, and the module that it is from."""

    __slots__ = ("_package", "_manifest", "_calls", "_decisions", "warnings", "__weakref__")

    warnings: list[str]
    """What the assembler warned of, or that there was none; empty for a package that was read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Reads a package: a file or a folder that `save` or `axe compile` wrote."""
        self._set(_axe.Package.open(os.fspath(path)), [], None)

    def _set(self, package: _axe.Package, warnings: list[str], decisions: list[Decision] | None) -> None:
        self._package = package
        self._manifest: dict[str, Any] | None = None
        self._calls = _call.Calls(package)
        self._decisions = decisions
        self.warnings = warnings

    @classmethod
    def _of(cls, package: _axe.Package, warnings: list[str], decisions: list[Decision] | None) -> Package:
        made = cls.__new__(cls)
        made._set(package, warnings, decisions)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Package:
        """The package that `to_bytes` gave, or that is in a file."""
        return cls._of(_axe.Package.from_bytes(bytes(data)), [], None)

    def to_bytes(self) -> bytes:
        """The package as one file's bytes."""
        return self._package.to_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the package, atomically: a file, or a folder when the path ends with a slash."""
        path = os.fspath(path)
        if path.endswith("/"):
            self._package.write_dir(path)
        else:
            self._package.write_file(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """What the package says of itself; docs/packages.md has the format."""
        if self._manifest is None:
            self._manifest = _call.manifest(self._package)
        return self._manifest

    @property
    def name(self) -> str:
        """The function that it computes."""
        return self.manifest["name"]

    @property
    def target(self) -> str:
        """The chip, or `cpu`."""
        target = self.manifest["target"]
        return "cpu" if target["kind"] == "cpu" else target["chip"]

    def files(self) -> list[str]:
        """The names of its files."""
        return self._package.files()

    def file(self, name: str) -> bytes:
        """The content of a file."""
        content = self._package.file(name)
        if content is None:
            raise KeyError(name)
        return content

    def _code(self, kind: str) -> bytes | None:
        names = [kernel.get(kind) for kernel in self.manifest["kernels"]]
        return next((self._package.file(name) for name in names if name), None)

    @property
    def ptx(self) -> str | None:
        """The kernels as PTX; None for `cpu`, and where a function needs no kernel."""
        code = self._code("ptx")
        return None if code is None else code.decode()

    @property
    def cubin(self) -> bytes | None:
        """The kernels as machine code; None where there was no assembler."""
        return self._code("cubin")

    @property
    def source(self) -> str | None:
        """The module that it was compiled from, where the package holds it."""
        name = self.manifest.get("source")
        content = self._package.file(name) if name else None
        return None if content is None else content.decode()

    def decisions(self) -> list[Decision]:
        """What was chosen and declined when it was compiled. A package that was read is compiled again from its source.

        Raises `CompileError` where that source does not compile, and `PackageError` where there is none.
        """
        if self._decisions is None:
            source = self.source
            if source is None:
                raise _axe.PackageError("the package does not hold the module that it was compiled from")
            with compiling():
                _, _, decisions = _axe.compile(source, self.manifest["source"], self.target, self.name, None, False)
            self._decisions = [Decision(*each) for each in decisions]
        return list(self._decisions)

    def _given(self, inputs: tuple[Any, ...]) -> list[_tensors.Given]:
        specs = self.manifest["inputs"]
        if len(inputs) != len(specs):
            names = ", ".join(f"`{spec['name']}`" for spec in specs)
            raise _axe.PackageError(f"expected {len(specs)} inputs ({names}), got {len(inputs)}")
        return [_tensors.given(value, spec) for value, spec in zip(inputs, specs)]

    def simulate(
        self,
        *inputs: Any,
        dims: dict[str, int] | None = None,
        check: bool = True,
        seed: int = 0,
        ctas: int | None = None,
        threads: int = 0,
    ) -> Any:
        """Runs the kernels in the simulator: one array, or a tuple of them.

        Inputs are arrays, or torch tensors, of the manifest's types; bf16 and f8 are `ml_dtypes`' or, without it, the
        integers of their bits. `check` looks for races, accesses out of bounds, unwritten memory and misused barriers,
        which raise `SimulationError`. `seed` chooses the interleaving of warps, `ctas` runs the first of each grid alone.
        """
        outputs, report = self._package.simulate(self._given(inputs), dims or {}, check, seed, ctas, threads)
        findings = [finding(launch["kernel"], each) for launch in json.loads(report) for each in launch["findings"]]
        if findings:
            raise SimulationError(findings)
        return _one([_tensors.made(*output) for output in outputs])

    def reference(self, *inputs: Any) -> Any:
        """Runs the module on the host, by MLIR's own lowering of it: what the kernels should compute.

        Raises `CompileError` where the module does not compile for the host, and `PackageError` for inputs that do not
        fit it.
        """
        given = self._given(inputs)
        with compiling():
            results = self._package.reference(given)
        return _one([_tensors.made(*result) for result in results])

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None, **dims: int) -> Any:
        """Runs the kernels on the GPU that the inputs are on; does not wait.

        Inputs are dense tensors on a GPU: torch's, or of any library with `__dlpack__` or `__cuda_array_interface__`.
        Outputs are `out` (a tensor, or a sequence of them), else new ones of the library of the first input. `stream` is
        the handle of a CUDA stream; torch's current one where it is not given, and for other libraries the default one.
        `dims` are the dimensions that no input has. Of a package for `cpu`, inputs and results are on the host.
        """
        if self.target == "cpu":
            return self.reference(*inputs)
        return self._calls(inputs, out, stream, dims)

    def __repr__(self) -> str:
        def shown(specs: list[dict[str, Any]]) -> str:
            return ", ".join(f"{spec['dtype']}{list(map(_call.dimension, spec['shape']))}" for spec in specs)

        manifest = self.manifest
        return f"<axe.Package {self.name}({shown(manifest['inputs'])}) -> ({shown(manifest['outputs'])}) for {self.target}>"

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return Package.from_bytes, (self.to_bytes(),)


def finding(kernel: str, each: dict[str, Any]) -> Finding:
    """A finding of the simulator's report."""
    place = each.get("place") or {}
    return Finding(kernel, str(each.get("kind")), str(each.get("message")), place.get("line"), each)


def _one(arrays: list[np.ndarray]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
