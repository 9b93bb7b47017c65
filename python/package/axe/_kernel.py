"""Bare kernels, anyone's PTX, in the simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axe import _axe
from axe._package import Finding, SimulationError, finding

# `python -m axe sim`: the simulator of this package, in a process of its own.
_COMMAND = [sys.executable, "-m", "axe", "sim"]

Extent = int | Sequence[int]


def simulate_kernel(
    kernel: str | os.PathLike[str],
    arguments: Sequence[Any] | Mapping[str, Any] = (),
    *,
    grid: Extent = 1,
    block: Extent | None = None,
    cluster: Extent | None = None,
    smem: int | None = None,
    name: str | None = None,
    check: bool = True,
    schedules: int = 1,
    limit: int | None = None,
    timeout: float | None = None,
) -> dict[str, np.ndarray]:
    """Runs a kernel of a PTX file, of nvcc, Triton or anyone, in the simulator; the arrays that it leaves, by name.

    `kernel` is a file, or a folder of Triton's cache, which brings block, shared memory and cluster. `arguments` are the
    kernel's in their order, or by names of your own: NumPy arrays (the kernel gets the address, the one given is not
    changed), numbers (a NumPy scalar has its own type, others the parameter's), or texts as `axe sim --arg` takes them:
    "f32[4096]" is an array that nothing has written, "&x+64" an address in the argument `x`, "{i32:1, &x}" a
    structure. `name` is the kernel's where the module holds several. `check` looks for races, unwritten memory and misused
    barriers in `schedules` interleavings of the warps; `limit` (instructions of a warp) and `timeout` (seconds) end each.

    Raises `SimulationError` for what is found, `PackageError` for what cannot be run.
    """
    named = arguments if isinstance(arguments, Mapping) else {f"arg{at}": value for at, value in enumerate(arguments)}
    options: dict[str, Any] = {"grid": _extent(grid), "kernel": name, "smem": smem, "limit": limit, "timeout": timeout}
    options |= {"block": _extent(block), "cluster": _extent(cluster), "schedules": schedules, "format": "json"}
    with tempfile.TemporaryDirectory() as folder:
        command = [*_COMMAND, os.fspath(kernel), f"--out={folder}/out"]
        command += [f"--{option}={value}" for option, value in options.items() if value is not None]
        command += [f"--arg={key}={_written(key, value, Path(folder))}" for key, value in named.items()]
        command += [] if check else ["--no-check"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):
            raise _axe.PackageError(run.stderr.strip() or f"axe sim ends with {run.returncode}")
        _raise_findings(run.stdout)
        left = {file.stem: np.load(file) for file in Path(folder, "out").glob("*.npy")}
    return {key: _as_given(array, named.get(key)) for key, array in left.items()}


def _extent(extent: Extent | None) -> str | None:
    if extent is None or isinstance(extent, int):
        return None if extent is None else str(extent)
    return ",".join(map(str, extent))


def _written(name: str, value: Any, folder: Path) -> str:
    """The argument as the command line takes it; arrays go into files."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in "fiub":
            # ml_dtypes' floats: the integers of their bits.
            array = array.view(f"u{array.dtype.itemsize}")
        np.save(folder / f"{name}.npy", array)
        return str(folder / f"{name}.npy")
    if isinstance(value, np.generic) and value.dtype.kind in "fiu":
        return f"{value.dtype.kind}{8 * value.dtype.itemsize}:{value}"
    return str(int(value) if isinstance(value, (bool, np.bool_)) else value)


def _as_given(array: np.ndarray, given: Any) -> np.ndarray:
    return array.view(given.dtype) if isinstance(given, np.ndarray) else array


def _raise_findings(lines: str) -> None:
    """Raises what the schedules found."""
    outcomes = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    found: list[Finding] = []
    for seed, outcome in enumerate(outcomes):
        report = outcome.get("report") or outcome
        ended = outcome.get("ended_by")
        all_found = [*report.get("findings", []), *([ended] if ended else [])]
        found += [finding((each.get("place") or {}).get("function", ""), each) for each in all_found]
        if differs := outcome.get("differs_from_schedule_0"):
            message = f"schedule {seed} leaves {', '.join(map(str, differs))} otherwise than the first"
            found.append(Finding("", "race", message, None, outcome))
    if found:
        raise SimulationError(found)
