"""Axe: layouts over named hardware axes, and the kernels that they give.

>>> import axe
>>> lanes = axe.Layout("S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]")
>>> lanes.apply(2, 5, shape=(8, 8))
{'lane': 10, 'reg': 1}

`compile` makes a kernel package of a module, `Package` runs it: in the simulator, on the host, on a GPU. `simulate_kernel`
runs anyone's PTX. `axe.torch` and `axe.jax` convert what those frameworks trace.
"""

from axe._axe import AxeError, DeviceError, LayoutError, PackageError, __version__
from axe._compile import compile, default_target, targets
from axe._errors import CompileError, Diagnostic
from axe._kernel import simulate_kernel
from axe._layout import Layout
from axe._package import Decision, Finding, Package, SimulationError

__all__ = [
    "AxeError",
    "CompileError",
    "Decision",
    "DeviceError",
    "Diagnostic",
    "Finding",
    "Layout",
    "LayoutError",
    "Package",
    "PackageError",
    "SimulationError",
    "__version__",
    "compile",
    "default_target",
    "simulate_kernel",
    "targets",
]
