"""A small stand-in for the documented operations of NKI, in numpy, for tests of printed source.

It computes what the documentation says and refuses what the documentation refuses: operands in the wrong memory, too
many partitions, illegal start partitions, wrong shapes and types, keywords that an operation does not have, indices that
the generation does not have, reads of elements that were never written. Nothing of the vendor's is in it.

`install(generation, chip)` puts the modules of one generation into `sys.modules`: `nki` ("new") or `neuronxcc.nki`
("old"). Iterations of an `affine_range` are executed last to first: they must not depend on each other.
"""

import enum
import math
import sys
import types

import numpy as np

FLOATS = {"bfloat16", "float16", "float32"}
SIZES = {"bfloat16": 2, "float16": 2, "float32": 4, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
PSUM_BYTES, BANK_BYTES = 16384, 2048


class Refused(Exception):
    """What the documentation does not allow."""


def need(holds, message):
    if not holds:
        raise Refused(message)


def rounded(values, dtype):
    """Values as `dtype` holds them: floats to nearest even, integers to the nearest even one, saturated."""
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        whole = values if np.issubdtype(np.asarray(values).dtype, np.integer) else np.rint(values)
        return np.clip(whole, info.min, info.max).astype(np.int64)
    values = np.asarray(values, dtype=np.float32)
    if dtype == "bfloat16":
        bits = values.view(np.uint32).astype(np.uint64)
        even = bits + 0x7FFF + ((bits >> 16) & 1)
        kept = ((even >> 16) << 16).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(values), values, kept)
    return values.astype(np.float16).astype(np.float32) if dtype == "float16" else values


class Space(enum.Enum):
    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    shared_hbm = "shared_hbm"


class Tensor:
    """A tensor or tile: its elements, and which of them were written."""

    machine = None

    def __init__(self, shape, dtype, buffer, zeros=False):
        need(dtype in SIZES, f"no element type {dtype}")
        need(isinstance(buffer, Space), "buffer must be a memory of nki.language")
        need(len(shape) >= 1 and all(isinstance(n, int) and n >= 1 for n in shape), f"shape {shape}")
        self.shape, self.dtype, self.buffer = tuple(shape), dtype, buffer
        if self.on_chip:
            need(shape[0] <= 128, f"{shape[0]} partitions")
            free = math.prod(shape[1:]) * SIZES[dtype]
            need(buffer is not Space.psum or free <= PSUM_BYTES, f"{free} bytes of PSUM a partition")
        kind = np.float32 if dtype in FLOATS else np.int64
        self.values = np.zeros(shape, kind) if zeros else np.full(shape, np.nan if dtype in FLOATS else 4, kind)
        self.written = np.full(shape, zeros)

    @property
    def on_chip(self):
        return self.buffer in (Space.sbuf, Space.psum)

    def __getitem__(self, index):
        return Part(self, index)

    def __setitem__(self, index, value):
        if isinstance(value, Part) and value.added:
            value.added = False
            return
        need(isinstance(value, Value), "only results of operations are assigned")
        need(Tensor.machine.generation == "old", "results are written through dst=")
        part = Part(self, index)
        if not value.loaded:
            part.start_rule()
        part.set(value.values)

    def ap(self, pattern, offset):
        need(Tensor.machine.generation == "new", ".ap is of the new generation")
        row = math.prod(self.shape[1:])
        if self.on_chip:
            need(pattern[0][0] == row or pattern[0][1] == 1, f"partition step {pattern[0][0]}, a tile has {row}")
            need(len(pattern) <= 5, f"pattern of {len(pattern)} dimensions")
        index = np.full([count for _, count in pattern], offset)
        for axis, (step, count) in enumerate(pattern):
            shape = [1] * len(pattern)
            shape[axis] = count
            index = index + step * np.arange(count).reshape(shape)
        need(index.min() >= 0 and index.max() < self.values.size, f"pattern {pattern} at {offset} leaves its tensor")
        return Part(self, None, np.unravel_index(index, self.shape))


class Part:
    """A part of a tensor."""

    def __init__(self, tensor, index, arrays=None):
        self.tensor, self.added = tensor, False
        if arrays is None:
            index = index if isinstance(index, tuple) else (index,)
            need(len(index) == len(tensor.shape), f"{len(index)} indices for {len(tensor.shape)} dimensions")
            for at, extent in zip(index, tensor.shape):
                self.check(at, extent)
            arrays = index
        self.index = arrays
        self.values_shape = tensor.values[arrays].shape
        self.partition_rules()

    def check(self, at, extent):
        if isinstance(at, slice):
            begin, end, step = at.start or 0, extent if at.stop is None else at.stop, at.step or 1
            need(0 <= begin < end <= extent and step >= 1, f"slice {begin}:{end}:{step} of {extent}")
        elif isinstance(at, np.ndarray):
            need(Tensor.machine.generation == "old", "indices are integers and slices")
            need(at.min() >= 0 and at.max() < extent, f"indices up to {at.max()} of {extent}")
        else:
            need(isinstance(at, int) and 0 <= at < extent, f"index {at} of {extent}")

    def partition_rules(self):
        if not self.tensor.on_chip:
            return
        touched = np.unique(np.indices(self.tensor.shape, sparse=True)[0].reshape(-1)[self.index[0]])
        begin, count = int(touched[0]), len(touched)
        need(touched[-1] - begin == count - 1, f"partitions {touched} are not consecutive")
        self.begin, self.count = begin, count

    def start_rule(self):
        """Of operands of engines; DMA begins at any partition."""
        if not self.tensor.on_chip:
            return
        begin, count = self.begin, self.count
        step = 32 if count <= 32 else 64 if count <= 64 else 128
        need(begin % step == 0, f"{count} partitions begin at {begin}")

    @property
    def shape(self):
        return self.values_shape

    @property
    def dtype(self):
        return self.tensor.dtype

    @property
    def buffer(self):
        return self.tensor.buffer

    @property
    def rows(self):
        return 1 if not self.shape else self.shape[0]

    @property
    def free(self):
        return math.prod(self.shape[1:])

    def get(self):
        need(self.tensor.written[self.index].all(), "read of elements that were not written")
        return self.tensor.values[self.index]

    def two(self):
        """The values as partitions by elements."""
        return self.get().reshape(self.rows, -1)

    def set(self, values, where=None):
        values = rounded(np.asarray(values).reshape(self.shape), self.dtype)
        if where is None:
            self.tensor.values[self.index] = values
            self.tensor.written[self.index] = True
            return
        where = where.reshape(self.shape)
        self.tensor.values[self.index] = np.where(where, values, self.tensor.values[self.index])
        self.tensor.written[self.index] = self.tensor.written[self.index] | where

    def __iadd__(self, value):
        need(isinstance(value, Value) and value.product and self.buffer is Space.psum, "only products are added, in PSUM")
        self.set(self.get() + value.values.reshape(self.shape))
        self.added = True
        return self


class Value:
    """What an operation of the old generation returns."""

    def __init__(self, values, dtype, product=False):
        self.values, self.dtype, self.product = rounded(values, dtype), dtype, product
        self.loaded = False


class engine(enum.Enum):
    tensor = 1
    vector = 2
    scalar = 3
    gpsimd = 4
    unknown = 5


class reduce_cmd(enum.Enum):
    reduce = 1
    reset_reduce = 2


TRUTH = lambda compare: lambda a, b: compare(a, b).astype(np.float32)
ALU = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "max": np.maximum, "min": np.minimum, "power": np.power,
    "equal": TRUTH(np.equal), "not_equal": TRUTH(np.not_equal), "greater": TRUTH(np.greater),
    "greater_equal": TRUTH(np.greater_equal), "less": TRUTH(np.less), "less_equal": TRUTH(np.less_equal),
    "logical_and": TRUTH(np.logical_and), "logical_or": TRUTH(np.logical_or), "logical_xor": TRUTH(np.logical_xor),
}
BITWISE = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}
erf = np.vectorize(math.erf)
sigmoid = lambda x: 1 / (1 + np.exp(-x))
FUNCTIONS = {
    "copy": lambda x: x, "square": np.square, "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), "silu": lambda x: x * sigmoid(x), "tanh": np.tanh,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "abs": np.abs, "sign": np.sign, "erf": erf, "softplus": lambda x: np.log1p(np.exp(x)), "sin": np.sin,
}


class Op:
    """A function of `nki.language`, by name."""

    def __init__(self, name):
        self.name = name

    def two(self, a, b):
        need(self.name in ALU or self.name in BITWISE, f"nl.{self.name} is no function of two values")
        return (ALU.get(self.name) or BITWISE[self.name])(a, b)

    def one(self, x):
        need(self.name in FUNCTIONS, f"nl.{self.name} is no activation function")
        return FUNCTIONS[self.name](x.astype(np.float64))


def tile(part, *spaces, by_dma=False):
    need(isinstance(part, Part), f"expected a tile, got {type(part).__name__}")
    need(part.buffer in spaces, f"a tile in {part.buffer.name}, expected {[s.name for s in spaces]}")
    if not by_dma and Space.hbm not in spaces:
        part.start_rule()
    return part


ON_CHIP, MEMORY = (Space.sbuf, Space.psum), (Space.sbuf, Space.hbm, Space.shared_hbm)


class Machine:
    """The operations. Each gives the values of its destination; what they are written to is the generation's affair."""

    def __init__(self, generation, chip):
        self.generation, self.chip = generation, chip
        self.registers = np.zeros(128, np.float32)

    def same(self, first, *others):
        for other in others:
            need((first.rows, first.free) == (other.rows, other.free), f"shapes {first.shape} and {other.shape}")

    def scalar(self, value, rows):
        if isinstance(value, Part):
            need((value.rows, value.free) == (rows, 1) and value.dtype in FLOATS, f"a [P, 1] tile, got {value.shape}")
            return value.two()
        need(isinstance(value, (int, float)), f"a number or a tile, got {type(value).__name__}")
        return np.float32(value)

    def exact(self, *parts):
        return all(part.dtype not in FLOATS for part in parts)

    def nc_matmul(self, stationary, moving):
        tile(stationary, Space.sbuf), tile(moving, Space.sbuf)
        need(stationary.rows == moving.rows and stationary.free <= 128 and moving.free <= 512,
             f"stationary {stationary.shape}, moving {moving.shape}")
        need(stationary.dtype in FLOATS and moving.dtype in FLOATS, "products are of floats")
        need((stationary.dtype == "float32") == (moving.dtype == "float32"), "float32 goes with float32 alone")
        return stationary.two().T @ moving.two()

    def nc_transpose(self, data, engine=engine.unknown):
        most = 32 if engine.name == "vector" else 128
        need(data.rows <= most and data.free <= most, f"a transpose of {data.shape}")
        return data.two().T

    def dma_transpose(self, src):
        need(self.chip != "trn1", "dma_transpose is of trn2")
        return tile(src, *MEMORY).two().T

    def dma_copy(self, src):
        return tile(src, *MEMORY).get()

    def tensor_copy(self, src, engine=engine.unknown):
        return tile(src, *([Space.sbuf] if engine.name == "gpsimd" else ON_CHIP)).two()

    def reciprocal(self, data):
        return 1 / tile(data, *ON_CHIP).two()

    def tensor_tensor(self, data1, data2, op, engine=engine.unknown):
        tile(data1, *ON_CHIP), tile(data2, *ON_CHIP), self.same(data1, data2)
        need(not data1.buffer is data2.buffer is Space.psum, "data1 and data2 are both in PSUM")
        return op.two(data1.two(), data2.two())

    def tensor_scalar(self, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False,
                      engine=engine.unknown):
        values = tile(data, *ON_CHIP).two()
        for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
            if op is None:
                continue
            with_ = self.scalar(operand, data.rows)
            if op.name in BITWISE:
                need(self.exact(data), f"nl.{op.name} of {data.dtype}")
                with_ = np.int64(with_)
            values = op.two(with_, values) if reverse else op.two(values, with_)
        return values

    def scalar_tensor_tensor(self, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False):
        self.same(data, operand1)
        need(not data.buffer is operand1.buffer is Space.psum, "data and operand1 are both in PSUM")
        values, with_ = data.two(), self.scalar(operand0, data.rows)
        values = op0.two(with_, values) if reverse0 else op0.two(values, with_)
        return op1.two(operand1.two(), values) if reverse1 else op1.two(values, operand1.two())

    def activation(self, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=None):
        values = tile(data, *ON_CHIP).two() * self.scalar(scale, data.rows)
        if bias is not None:
            need(isinstance(bias, Part), "a bias is a tile")
            values = values + self.scalar(bias, data.rows)
        values = op.one(values).astype(np.float32)
        need((reduce_cmd is None) == (reduce_op is None), "reduce_cmd and reduce_op go together")
        if reduce_cmd is not None:
            need(reduce_op.name == "add", "activation reduces by add alone")
            rows = self.registers[: data.rows]
            rows[:] = values.sum(1) + (0 if reduce_cmd.name == "reset_reduce" else rows)
            if reduce_res is not None:
                reduce_res.set(rows.reshape(-1, 1))
        return values

    def tensor_reduce(self, op, data, axis, negate=False):
        rank = len(data.shape)
        axis = axis if isinstance(axis, tuple) else (axis,)
        need(axis == tuple(range(rank - len(axis), rank)) and 0 not in axis, f"axis {axis} of {data.shape}")
        need(op.name not in ("maximum", "minimum"), "reductions are by nl.max and nl.min")
        values = tile(data, *ON_CHIP).get().reshape(-1, math.prod(data.shape[-len(axis):]))
        result = values[:, 0]
        for column in range(1, values.shape[1]):
            result = op.two(result, values[:, column])
        return -result if negate else result

    def tensor_scalar_reduce(self, data, op0, operand0, reduce_op, reduce_res, reverse0=False):
        need(op0.name not in BITWISE, "op0 is arithmetic")
        need(reduce_op.name in ("add", "multiply", "max", "min"), f"no reduction by nl.{reduce_op.name}")
        values = self.tensor_scalar(data, op0, operand0, reverse0)
        reduced = {"add": np.sum, "multiply": np.prod, "max": np.max, "min": np.min}[reduce_op.name](values, axis=1)
        reduce_res.set(reduced.reshape(-1, 1))
        return values

    def tensor_partition_reduce(self, op, data):
        values = tile(data, Space.sbuf).two()
        result = values[0]
        for row in values[1:]:
            result = op.two(result, row)
        return result

    def tensor_tensor_scan(self, data0, data1, initial, op0, op1):
        self.same(data0, data1)
        a, b = data0.two(), data1.two()
        state, columns = np.broadcast_to(self.scalar(initial, data0.rows), (data0.rows, 1)).reshape(-1), []
        for column in range(data0.free):
            state = op1.two(op0.two(state, a[:, column]), b[:, column]).astype(np.float32)
            columns.append(state)
        return np.stack(columns, 1)

    def range_select(self, on_true_tile, comp_op0, comp_op1, bound0, bound1, range_start=0, on_false_value=0,
                     reduce_cmd=None, reduce_res=None, reduce_op=None):
        need(self.chip != "trn1", "range_select is of trn2")
        index = range_start + np.arange(on_true_tile.free, dtype=np.float32)
        inside = [op.two(index[None, :], self.scalar(bound, on_true_tile.rows)) != 0
                  for op, bound in ((comp_op0, bound0), (comp_op1, bound1))]
        values = np.where(inside[0] & inside[1], on_true_tile.two(), np.float32(on_false_value))
        if reduce_res is not None:
            reduce_res.set(values.max(1).reshape(-1, 1))
        return values

    def bn_stats(self, data):
        need(data.free <= 512, f"bn_stats of {data.free} elements")
        values = tile(data, *ON_CHIP).two()
        halves = [values[:, odd::2] for odd in (0, 1)]
        return np.stack([s for h in halves for s in (np.full(len(h), h.shape[1]), h.mean(1), h.var(1) * h.shape[1])], 1)

    def bn_aggr(self, data):
        count, mean, spread = np.moveaxis(tile(data, *ON_CHIP).two().reshape(data.rows, -1, 3), 2, 0).astype(np.float64)
        total = count.sum(1)
        centre = (count * mean).sum(1) / total
        return np.stack([centre, (spread + count * (mean - centre[:, None]) ** 2).sum(1) / total], 1)

    def max8(self, src):
        need(8 <= src.free <= 16384, f"max8 of {src.free} elements")
        return -np.sort(-src.two(), axis=1)[:, :8]

    def places(self, data, vals):
        need(vals.free == 8 and 8 <= data.free <= 16384, f"eight values among {data.free} elements")
        found = []
        for row, values in zip(data.two(), vals.two()):
            taken = []
            for value in values:
                taken.append(next(i for i in range(len(row)) if row[i] == value and i not in taken))
            found.append(taken)
        return np.array(found)

    def nc_find_index8(self, data, vals):
        return self.places(data, vals)

    def nc_match_replace8(self, data, vals, imm):
        values = data.two().copy()
        np.put_along_axis(values, self.places(data, vals), np.float32(imm), 1)
        return values


RETURNING = ["nc_transpose", "dma_transpose", "tensor_copy", "reciprocal", "tensor_tensor", "tensor_scalar",
             "scalar_tensor_tensor", "activation", "tensor_reduce", "tensor_scalar_reduce", "tensor_partition_reduce",
             "tensor_tensor_scan", "range_select", "bn_stats", "bn_aggr", "max8", "nc_find_index8", "nc_match_replace8"]


def affine(pattern, offset, channel_multiplier, rows):
    value = np.full([rows] + [count for _, count in pattern], offset, np.int64)
    for axis, (step, count) in enumerate([[channel_multiplier, rows]] + pattern):
        value = value + step * np.arange(count).reshape([-1 if at == axis else 1 for at in range(value.ndim)])
    return value


def common(isa, machine):
    """What both generations write through `dst`."""

    def nc_stream_shuffle(dst, src, shuffle_mask):
        need(len(shuffle_mask) == 32 and dst.rows % 32 == 0, "a shuffle is of groups of 32 partitions")
        order = [group + (at if to == 255 else to) for group in range(0, dst.rows, 32)
                 for at, to in enumerate(shuffle_mask)]
        dst.set(tile(src, *ON_CHIP).two()[order])

    def tensor_copy_predicated(dst, src, predicate, reverse_pred=False):
        need(predicate.dtype.startswith("uint") and src.dtype == dst.dtype, "a predicate of unsigned integers, one type")
        dst.set(src.two(), (predicate.two() != 0) != reverse_pred)

    def dma_copy(dst, src):
        need(math.prod(dst.shape) == math.prod(src.shape), f"shapes {dst.shape} and {src.shape}")
        tile(dst, *MEMORY).set(machine.dma_copy(src).reshape(dst.shape))

    isa.nc_stream_shuffle, isa.tensor_copy_predicated, isa.dma_copy = nc_stream_shuffle, tensor_copy_predicated, dma_copy
    isa.reduce_cmd = reduce_cmd


def new_isa(machine):
    isa = types.ModuleType("nki.isa")
    common(isa, machine)
    isa.engine = engine

    def writing(name):
        def call(*, dst, **arguments):
            for value in arguments.values():
                need(not isinstance(value, (str, Tensor)), f"{name}: parts of tiles and enums, got {value!r}")
            values = getattr(machine, name)(**arguments)
            need(dst.buffer in ON_CHIP or name == "dma_transpose", f"{name} writes {dst.buffer.name}")
            need(values.size == math.prod(dst.shape), f"{name}: dst {dst.shape}")
            dst.set(values)
        return call

    for name in RETURNING:
        setattr(isa, name, writing(name))

    def nc_matmul(*, dst, stationary, moving, accumulate=None):
        values = machine.nc_matmul(stationary, moving)
        tile(dst, Space.psum)
        need(dst.dtype == "float32" and (dst.rows, dst.free) == values.shape, f"dst {dst.shape} of {dst.dtype}")
        begun = dst.tensor.written[dst.index]
        need(accumulate is False or begun.all() or not begun.any(), "one product meets begun and fresh elements")
        need(accumulate is not True or begun.all(), "accumulate=True on fresh elements")
        adds = accumulate is not False and begun.all()
        dst.set(values.reshape(dst.shape) + (dst.get() if adds else 0))

    def memset(*, dst, value, engine=engine.unknown):
        need(isinstance(value, float) == (dst.dtype in FLOATS), f"memset of {dst.dtype} with {value!r}")
        dst.set(np.full(dst.shape, value))

    def affine_select(*, dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op, offset=0):
        tile(dst, Space.sbuf), tile(on_true_tile, Space.sbuf)
        chosen = cmp_op.two(affine(pattern, offset, channel_multiplier, dst.rows), 0) != 0
        need(chosen.shape == dst.shape, f"pattern {pattern} for {dst.shape}")
        dst.set(np.where(chosen, on_true_tile.get(), np.float32(on_false_value)))

    def iota(*, dst, pattern, offset, channel_multiplier):
        values = affine(pattern, offset, channel_multiplier, tile(dst, Space.sbuf).rows)
        need(values.shape == dst.shape, f"pattern {pattern} for {dst.shape}")
        dst.set(values)

    isa.nc_matmul, isa.memset, isa.affine_select, isa.iota = nc_matmul, memset, affine_select, iota
    return isa


def old_isa(machine):
    isa = types.ModuleType("neuronxcc.nki.isa")
    common(isa, machine)
    for kind in engine:
        setattr(isa, f"{kind.name}_engine", kind)

    def returning(name):
        def call(*, dtype, **arguments):
            return Value(getattr(machine, name)(**arguments), dtype)
        return call

    for name in RETURNING:
        setattr(isa, name, returning(name))
    isa.nc_matmul = lambda stationary, moving: Value(machine.nc_matmul(stationary, moving), "float32", product=True)
    isa.memset = lambda *, shape, value, dtype, engine=engine.unknown: Value(np.full(shape, value), dtype)
    isa.iota = lambda expr, dtype: Value(expr, dtype)

    def affine_select(*, pred, on_true_tile, on_false_value, dtype):
        need(pred.shape == on_true_tile.shape, f"predicate {pred.shape} for {on_true_tile.shape}")
        return Value(np.where(pred, tile(on_true_tile, Space.sbuf).get(), np.float32(on_false_value)), dtype)

    isa.affine_select = affine_select
    return isa


class ParDim(int):
    """The partition dimension of a tile in the old generation."""


def language(generation):
    nl = types.ModuleType("nki.language")
    for space in Space:
        setattr(nl, space.name, space)
    for dtype in SIZES:
        setattr(nl, dtype, dtype)
    for name in ALU.keys() | BITWISE.keys() | FUNCTIONS.keys():
        setattr(nl, name, Op(name))

    def make(zeros):
        def ndarray(shape, dtype, buffer, address=None):
            if generation == "old" and buffer in ON_CHIP:
                need(isinstance(shape[0], ParDim), "the partition dimension of a tile is nl.par_dim")
            if address is not None:
                need(generation == "new", "address= is of the new generation")
                need(buffer is not Space.psum or address[1] % BANK_BYTES == 0, f"PSUM at byte {address[1]}")
            return Tensor([int(n) for n in shape], dtype, buffer, zeros)
        return ndarray

    nl.ndarray = make(False)
    if generation == "old":
        nl.zeros, nl.par_dim, nl.arange = make(True), ParDim, np.arange
        nl.affine_range = lambda *bounds: reversed(range(*bounds))
        nl.sequential_range = range

        def load(src, dtype=None):
            need(src.rows <= 128, f"load of {src.rows} partitions")
            value = Value(tile(src, Space.hbm, Space.shared_hbm).get(), dtype or src.dtype)
            value.loaded = True
            return value

        nl.load = load
        nl.store = lambda dst, value: tile(dst, Space.shared_hbm, by_dma=True).set(tile(value, *ON_CHIP, by_dma=True).get())
    return nl


def install(generation, chip):
    """Makes the modules of one generation importable."""
    machine = Machine(generation, chip)
    Tensor.machine = machine
    root = types.ModuleType("nki")
    root.jit = lambda kernel: kernel
    root.language, root.isa = language(generation), (new_isa if generation == "new" else old_isa)(machine)
    prefix = "nki" if generation == "new" else "neuronxcc.nki"
    if generation == "old":
        package = types.ModuleType("neuronxcc")
        package.nki = root
        sys.modules["neuronxcc"] = package
    sys.modules.update({prefix: root, f"{prefix}.isa": root.isa, f"{prefix}.language": root.language})
