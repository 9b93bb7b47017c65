"""JAX's top-k, which StableHLO has as `chlo.top_k`, as `axe.top_k`."""

from __future__ import annotations

import re

_CHLO = re.compile(
    r"chlo\.top_k\((?P<x>%[\w$.#-]+), k = \d+\)(?: \{largest = (?P<largest>true|false)\})? : (?P<from>tensor<[^<>]*>) -> "
    r"\((?P<values>tensor<[^<>]*>), (?P<indices>tensor<[^<>]*>)\)"
)


def of_chlo(text: str) -> str:
    """The text of a module, with `axe.top_k` for `chlo.top_k`."""

    def made(found: re.Match[str]) -> str:
        flag = " {smallest}" if found["largest"] == "false" else ""
        return f"axe.top_k {found['x']}{flag} : {found['from']} -> {found['values']}, {found['indices']}"

    return _CHLO.sub(made, text)
