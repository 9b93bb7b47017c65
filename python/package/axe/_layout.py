"""Layouts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from axe import _axe

Shape = Sequence[int]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in np.atleast_1d(np.asarray(values, dtype=np.int64))]


class Layout:
    """Where each element of a tensor lives: `f(x) = {D(x) + r + O | r in R}` over named axes.

    A value: immutable, compared and hashed by the map that it is, whatever the list of iters. Errors are `LayoutError`,
    whose `kind` is `none` (a proof that there is no answer), `invalid`, `overflow` or `unsupported`.

    >>> Layout("S[(4, 2, 8) : (16, 8, 1)]") == Layout("S[64 : 1]")
    True
    """

    __slots__ = ("_layout",)

    def __init__(self, text: str | Layout) -> None:
        """Parses `S[extents : strides] + R[...] + offset`; docs/layouts.md has the notation."""
        self._layout = text._layout if isinstance(text, Layout) else _axe.Layout.parse(text)

    @classmethod
    def _of(cls, layout: _axe.Layout) -> Layout:
        made = cls.__new__(cls)
        made._layout = layout
        return made

    @classmethod
    def strided(cls, shape: Shape, strides: Shape) -> Layout:
        """One stride in elements for each dimension, on the memory axis `m`."""
        return cls._of(_axe.Layout.strided(_ints(shape), _ints(strides)))

    @classmethod
    def row_major(cls, shape: Shape) -> Layout:
        """Dense row-major storage."""
        return cls._of(_axe.Layout.row_major(_ints(shape)))

    @classmethod
    def of(cls, array: Any) -> Layout:
        """The layout of an array's memory: of anything with `shape`, and `strides` in bytes or `stride()` in elements."""
        if hasattr(array, "stride") and callable(array.stride):
            return cls.strided(array.shape, array.stride())
        array = np.asarray(array)
        if any(stride % array.itemsize for stride in array.strides):
            raise ValueError(f"strides of {array.strides} bytes are no multiples of {array.itemsize}")
        return cls.strided(array.shape, [stride // array.itemsize for stride in array.strides])

    @property
    def size(self) -> int | None:
        """How many indices it has; None when the outermost extent is dynamic."""
        return self._layout.size()

    @property
    def axes(self) -> list[str]:
        """The axes that it names, sorted."""
        return self._layout.axes()

    def parts(self) -> dict[str, Any]:
        """Shard, replica, offset and swizzle, as numbers and names."""
        return json.loads(self._layout.parts())

    def apply(self, *index: Any, shape: Shape | None = None) -> dict[str, Any]:
        """The places of indices, by axis.

        With `shape`, one index for each dimension; without, one row-major index. Indices are integers or integer arrays,
        which broadcast. Each axis has an array of their shape, with the copies of an index along one more dimension, the
        last, where the layout has any; integers and no copies give integers.

        >>> Layout("S[(8, 4) : (4@lane, 1@lane)]").apply(np.arange(3), 2, shape=(8, 4))["lane"]
        array([ 2,  6, 10])
        """
        arrays = np.broadcast_arrays(*(np.asarray(i) for i in index))
        if any(array.dtype.kind not in "iu" for array in arrays):
            raise TypeError("indices are integers")
        if shape is None:
            if len(arrays) != 1:
                raise TypeError(f"{len(arrays)} indices without a shape: give one, or shape=")
            linear = arrays[0].astype(np.int64)
        else:
            if len(arrays) != len(tuple(shape)):
                raise TypeError(f"{len(arrays)} indices for a shape of {len(tuple(shape))} dimensions")
            outside = [np.any((a < 0) | (a >= n)) for a, n in zip(arrays, shape)]
            if any(outside):
                raise IndexError(f"an index is outside of the shape {tuple(shape)}")
            extents = _ints(shape)
            linear = np.zeros(arrays[0].shape, np.int64)
            for array, extent in zip(arrays, extents):
                linear = linear * extent + array.astype(np.int64)
        axes, copies, raw = self._layout.points(np.ascontiguousarray(linear).tobytes())
        points = np.frombuffer(raw, np.int64).reshape(*linear.shape, copies, len(axes))
        if copies == 1:
            points = points[..., 0, :]
        found = {axis: points[..., k] for k, axis in enumerate(axes)}
        if linear.shape == () and copies == 1:
            return {axis: int(value) for axis, value in found.items()}
        return {axis: value.copy() for axis, value in found.items()}

    def invert(self, **point: int) -> np.ndarray:
        """The row-major indices that live at a point, ascending: `layout.invert(lane=3, reg=1)`."""
        return np.array(self._layout.invert({k: int(v) for k, v in point.items()}), np.int64)

    def group(self, shape: Shape) -> tuple[Layout, list[int]]:
        """The same map with iters that end where dimensions do, and where each dimension's iters begin and end."""
        layout, ends = self._layout.group(_ints(shape))
        return Layout._of(layout), ends

    def tile(self, shape: Shape, inner: Layout | str, inner_shape: Shape) -> Layout:
        """A copy of `inner` (of `inner_shape`) at every element of this layout (of `shape`)."""
        inner = Layout(inner)
        return Layout._of(self._layout.tile(_ints(shape), inner._layout, _ints(inner_shape)))

    def tile_of(self, shape: Shape, inner: Layout | str, inner_shape: Shape) -> Layout:
        """The layout of which this one (of `shape`) is the tiling by `inner`."""
        inner = Layout(inner)
        return Layout._of(self._layout.tile_of(_ints(shape), inner._layout, _ints(inner_shape)))

    def slice(self, shape: Shape, *region: slice | int) -> Layout:
        """The layout of a box: one slice or index for each dimension of `shape`, with steps of 1.

        >>> Layout("S[(8, 8) : (8, 1)]").slice((8, 8), slice(2, 6), slice(4, 8))
        Layout('S[(4, 4) : (8, 1)] + 20')
        """
        extents = _ints(shape)
        if len(region) != len(extents):
            raise TypeError(f"{len(region)} slices for a shape of {len(extents)} dimensions")
        begin, end = [], []
        for part, extent in zip(region, extents):
            if not isinstance(part, slice):
                part = slice(int(part), int(part) + 1) if part >= 0 else slice(extent + part, extent + part + 1)
            first, last, step = part.indices(extent)
            if step != 1:
                raise ValueError("slices of layouts have steps of 1")
            begin.append(first)
            end.append(last)
        return Layout._of(self._layout.slice(extents, begin, end))

    def permute(self, shape: Shape, order: Shape) -> Layout:
        """The layout with the dimensions of `shape` in another order, as `numpy.transpose` has it."""
        return Layout._of(self._layout.permute(_ints(shape), _ints(order)))

    def canonicalize(self) -> Layout:
        """The one form of the map."""
        return Layout._of(self._layout.canonicalize())

    def span(self, axis: str) -> int:
        """How many places of an axis lie from its first to its last."""
        return self._layout.span(axis)

    def table(self, shape: Shape = (), *, owner: Sequence[str] | None = None, width: int = 120) -> str:
        """The layout as a table of text."""
        return self._layout.table(_ints(shape) if len(shape) else [], _names(owner), width)

    def svg(
        self,
        shape: Shape = (),
        *,
        owner: Sequence[str] | None = None,
        banks: int | None = None,
        caption: str = "",
    ) -> str:
        """The layout as a picture. `owner` names the axes that colour cells; `banks` colours by the bank of shared memory
        of elements of so many bytes."""
        return self._layout.svg(_ints(shape) if len(shape) else [], _names(owner), banks, caption)

    def _repr_svg_(self) -> str | None:
        """What notebooks show."""
        try:
            return self.svg()
        except _axe.LayoutError:
            # Too large for a picture, or of dynamic extent: the notebook falls back to the text.
            return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self._layout.equivalent(other._layout)

    def __hash__(self) -> int:
        return self._layout.hash()

    def __str__(self) -> str:
        return str(self._layout)

    def __repr__(self) -> str:
        return f"Layout({str(self._layout)!r})"

    def __reduce__(self) -> tuple[type[Layout], tuple[str]]:
        return Layout, (str(self),)


def _names(owner: Sequence[str] | None) -> list[str] | None:
    return None if owner is None else [str(name) for name in owner]
