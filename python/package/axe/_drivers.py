"""The commands of the package: `axe` and `axe-opt`."""

import sys

from axe import _axe


def axe() -> int:
    """Runs `axe` with the arguments of this process."""
    return _axe.axe(["axe", *sys.argv[1:]])


def axe_opt() -> int:
    """Runs `axe-opt`, `mlir-opt` with Axe in it, with the arguments of this process."""
    return _axe.opt(["axe-opt", *sys.argv[1:]])
