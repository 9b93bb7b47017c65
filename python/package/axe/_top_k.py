"""Top-k of other compilers as `axe.top_k`: what torch-mlir makes of `torch.topk`, and what JAX calls it in StableHLO."""

from __future__ import annotations

import re
from typing import Any

# Comparisons of a comparator that puts the largest, or the smallest, in front (arith's predicates: floats, integers).
_LARGEST = {"arith.cmpf": {2, 3, 9, 10}, "arith.cmpi": {4, 5}}
_SMALLEST = {"arith.cmpf": {4, 5, 11, 12}, "arith.cmpi": {2, 3}}

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


def of_sorts(module: Any) -> None:
    """Replaces sorts of torch-mlir's of which the first elements alone are read, which is what `torch.topk` becomes, in a module of its
    bindings. Raises `ValueError` for others."""
    sorts: list[Any] = []
    _collect(module.operation, "tm_tensor.sort", sorts)
    for sort in sorts:
        if not _replace(sort):
            raise ValueError(
                f"{sort.location}: a sort that is no top-k: axe.top_k sorts the first elements along the last dimension, for torch.topk(x, k)"
            )


def _collect(op: Any, name: str, found: list[Any]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == name:
                    found.append(inner.operation)
                _collect(inner.operation, name, found)


def _replace(sort: Any) -> bool:
    """Puts `axe.top_k` in the place of a sort; False where it does not give what is read of that."""
    if len(sort.results) != 2 or len(sort.operands) != 2:
        return False
    rank = len(sort.results[0].type.shape)
    smallest = _order(sort)
    users = [use.owner.operation for result in sort.results for use in result.uses]
    extents = [user for user in users if user.name == "tensor.dim"]
    slices = [user for user in users if user.name != "tensor.dim"]
    chosen = {_first(each, sort) for each in slices}
    if (
        sort.attributes["dimension"].value != rank - 1
        or smallest is None
        or not _is_places(sort.operands[1], rank - 1)
        or len(chosen) != 1
        or None in chosen
    ):
        return False
    # The source has the same extents.
    for extent in extents:
        extent.operands[0] = sort.operands[0]
    _build(sort, slices, smallest, chosen.pop())
    return True


def _build(sort: Any, slices: list[Any], smallest: bool, k: int) -> None:
    from torch_mlir import ir

    with sort.location as location:
        types = [ir.RankedTensorType(result.type) for result in sort.results]
        types = [ir.RankedTensorType.get([*own.shape[:-1], k], own.element_type) for own in types]
        location.context.allow_unregistered_dialects = True
        made = ir.Operation.create(
            "axe.top_k",
            results=types,
            operands=[sort.operands[0]],
            attributes={"smallest": ir.UnitAttr.get()} if smallest else {},
            ip=ir.InsertionPoint(sort),
        )
    for piece in slices:
        result = made.results[0 if piece.operands[0] == sort.results[0] else 1]
        piece.result.replace_all_uses_with(result)
        piece.erase()
    sort.erase()


def _order(sort: Any) -> bool | None:
    """Whether the smallest are in front; none where that is not what the comparator says."""
    block = sort.regions[0].blocks[0]
    operations = list(block.operations)
    if len(operations) != 2:
        return None
    compare = operations[0].operation
    predicate = compare.attributes["predicate"].value if "predicate" in compare.attributes else None
    if [operand for operand in compare.operands] != list(block.arguments)[:2]:
        return None
    if predicate in _LARGEST.get(compare.name, ()):
        return False
    return True if predicate in _SMALLEST.get(compare.name, ()) else None


def _first(slice: Any, sort: Any) -> int | None:
    """How many of the first elements of each row of a sort a slice is; none for another."""
    from torch_mlir import ir

    if slice.name != "tensor.extract_slice":
        return None
    offsets, sizes, strides = (list(slice.attributes[f"static_{part}"]) for part in ("offsets", "sizes", "strides"))
    unknown = ir.ShapedType.get_dynamic_size()
    if any(offsets) or any(stride != 1 for stride in strides) or sizes[-1] == unknown:
        return None
    shape = list(slice.operands[0].type.shape)
    given = iter(list(slice.operands)[1:])
    for dim, (size, extent) in enumerate(zip(sizes[:-1], shape)):
        if size != extent or (size == unknown and not _is_extent(next(given), sort, dim)):
            return None
    return sizes[-1]


def _is_extent(value: Any, sort: Any, dim: int) -> bool:
    """Whether a size is that of a sort's dimension."""
    op = getattr(value.owner, "operation", None)
    if op is None or op.name != "tensor.dim":
        return False
    number = getattr(op.operands[1].owner, "operation", None)
    own = [*sort.results, sort.operands[0]]
    is_dim = number is not None and number.name == "arith.constant" and number.attributes["value"].value == dim
    return is_dim and any(op.operands[0] == each for each in own)


def _is_places(value: Any, dim: int) -> bool:
    """Whether the elements of a tensor are their places along a dimension."""
    op = value.owner
    if getattr(op, "name", None) != "linalg.generic":
        return False
    names = [inner.operation for inner in op.regions[0].blocks[0].operations]
    if [inner.name for inner in names] != ["linalg.index", "arith.index_cast", "linalg.yield"]:
        return False
    return names[0].attributes["dim"].value == dim
