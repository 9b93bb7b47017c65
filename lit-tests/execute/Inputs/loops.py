"""Modules that no operator of axe says, as front ends write them, beside numpy.

loops.py FOLDER AXE TARGET [NAME ...]    compiles each module, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                         and compares the results; what it writes is left in FOLDER
"""
import subprocess
import sys
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(7)


def floats(*shape, dtype=np.float32):
    return (RNG.integers(-16, 17, shape) * 0.125).astype(dtype)


def integers(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, shape).astype(dtype)


def generic(maps, kinds, ins, outs, body, types):
    kinds = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in kinds)
    affine = ", ".join(f"affine_map<{one}>" for one in maps)
    ins = f"ins({ins}) " if ins else ""
    return f"linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}} {ins}outs({outs}) {{\n{body}\n}} -> {types}"


def one(arguments, results, lines, values):
    return f"func.func @main({arguments}) -> ({results}) {{\n{lines}\n  return {values} : {results}\n}}\n"


def filled(name, number, kind):
    element = kind[:-1].split("x")[-1].removeprefix("tensor<")
    return f"%{name}c = arith.constant {number} : {element}\n%{name}e = tensor.empty() : {kind}\n%{name} = linalg.fill ins(%{name}c : {element}) outs(%{name}e : {kind}) -> {kind}\n"


def causal():
    x = floats(9, 13)
    body = """^bb0(%v: f32, %o: f32):
  %i = linalg.index 0 : index
  %j = linalg.index 1 : index
  %c = arith.cmpi sle, %j, %i : index
  %r = arith.select %c, %v, %m : f32
  linalg.yield %r : f32"""
    ops = "%m = arith.constant -1.0e30 : f32\n%e = tensor.empty() : tensor<9x13xf32>\n%y = "
    ops += generic(["(i, j) -> (i, j)"] * 2, "pp", "%x : tensor<9x13xf32>", "%e : tensor<9x13xf32>", body, "tensor<9x13xf32>")
    want = np.where(np.arange(13) <= np.arange(9)[:, None], x, np.float32(-1e30))
    return one("%x: tensor<9x13xf32>", "tensor<9x13xf32>", ops, "%y"), [x], [want]


def embedding():
    """Rows of a dynamic table by a dynamic number of indices."""
    table, at = floats(30, 24, dtype=np.float16), integers(0, 30, 11)
    body = """^bb0(%v: i64, %o: f16):
  %i = arith.index_cast %v : i64 to index
  %j = linalg.index 1 : index
  %l = arith.cmpi slt, %i, %rows : index
  cf.assert %l, "index must be smaller than dim size"
  %r = tensor.extract %t[%i, %j] : tensor<?x?xf16>
  linalg.yield %r : f16"""
    ops = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%rows = tensor.dim %t, %c0 : tensor<?x?xf16>
%n = tensor.dim %at, %c0 : tensor<?xi64>
%m = tensor.dim %t, %c1 : tensor<?x?xf16>
%e = tensor.empty(%n, %m) : tensor<?x?xf16>
%y = """
    ops += generic(["(i, j) -> (i)", "(i, j) -> (i, j)"], "pp", "%at : tensor<?xi64>", "%e : tensor<?x?xf16>", body, "tensor<?x?xf16>")
    return one("%t: tensor<?x?xf16>, %at: tensor<?xi64>", "tensor<?x?xf16>", ops, "%y"), [table, at], [table[at]]


def reused():
    """Rows of a table that half of a small L2 does not hold are read twice each: in slices of columns."""
    t, at = floats(800, 1024), integers(0, 800, 1600)
    body = """^bb0(%n: i64, %o: f32):
  %i = arith.index_cast %n : i64 to index
  %j = linalg.index 1 : index
  %v = tensor.extract %t[%i, %j] : tensor<800x1024xf32>
  linalg.yield %v : f32"""
    ops = "%e = tensor.empty() : tensor<1600x1024xf32>\n  %y = "
    ops += generic(["(i, j) -> (i)", "(i, j) -> (i, j)"], "pp", "%at : tensor<1600xi64>", "%e : tensor<1600x1024xf32>", body, "tensor<1600x1024xf32>")
    return one("%t: tensor<800x1024xf32>, %at: tensor<1600xi64>", "tensor<1600x1024xf32>", ops, "%y"), [t, at], [t[at]]


def outside():
    """Indices of which some are outside the table, where the element is not asked for."""
    table, at = floats(17), integers(-40, 60, 33)
    body = """^bb0(%v: i64, %o: f32):
  %i = arith.index_cast %v : i64 to index
  %l = arith.cmpi sge, %i, %c0 : index
  %h = arith.cmpi slt, %i, %c17 : index
  %c = arith.andi %l, %h : i1
  %s = arith.select %c, %i, %c0 : index
  %g = tensor.extract %t[%s] : tensor<17xf32>
  %r = arith.select %c, %g, %z : f32
  linalg.yield %r : f32"""
    ops = "%c0 = arith.constant 0 : index\n%c17 = arith.constant 17 : index\n%z = arith.constant -9.0 : f32\n%e = tensor.empty() : tensor<33xf32>\n%y = "
    ops += generic(["(i) -> (i)"] * 2, "p", "%at : tensor<33xi64>", "%e : tensor<33xf32>", body, "tensor<33xf32>")
    inside = (at >= 0) & (at < 17)
    return one("%t: tensor<17xf32>, %at: tensor<33xi64>", "tensor<33xf32>", ops, "%y"), [table, at], [np.where(inside, table[np.clip(at, 0, 16)], np.float32(-9))]


def argmax():
    x = integers(-99, 99, 6, 137, dtype=np.int32).astype(np.float32)
    body = """^bb0(%v: f32, %n: f32, %p: i64):
  %i = linalg.index 1 : index
  %j = arith.index_cast %i : index to i64
  %m = arith.maximumf %v, %n : f32
  %c = arith.cmpf ogt, %v, %n : f32
  %s = arith.select %c, %j, %p : i64
  linalg.yield %m, %s : f32, i64"""
    ops = filled("a", "0xFF800000", "tensor<6xf32>") + filled("b", 0, "tensor<6xi64>") + "%y:2 = "
    ops += generic(["(i, j) -> (i, j)", "(i, j) -> (i)", "(i, j) -> (i)"], "pr", "%x : tensor<6x137xf32>", "%a, %b : tensor<6xf32>, tensor<6xi64>", body, "(tensor<6xf32>, tensor<6xi64>)")
    return one("%x: tensor<6x137xf32>", "tensor<6xf32>, tensor<6xi64>", ops, "%y#0, %y#1"), [x], [x.max(1), x.argmax(1)]


def most(x, least=False):
    """What torch's loops give along the last dimension: the extremum, NaN once there is one, and the place of the first extremum before."""
    values, places = np.full(x.shape[:-1], np.inf if least else -np.inf, x.dtype), np.zeros(x.shape[:-1], np.int64)
    for at in range(x.shape[-1]):
        v = x[..., at]
        places = np.where(v < values if least else v > values, at, places)
        values = (np.minimum if least else np.maximum)(v, values)
    return values, places


def arg(rows, length, kind, least=False):
    """Text of argmax or argmin as torch writes it; rows are a dimension, or none."""
    bound, compared = ("0x7F800000", "olt") if least else ("0xFF800000", "ogt")
    body = f"""^bb0(%v: f32, %n: f32, %p: i64):
  %i = linalg.index {kind.count("p")} : index
  %j = arith.index_cast %i : index to i64
  %m = arith.{"minimumf" if least else "maximumf"} %v, %n : f32
  %c = arith.cmpf {compared}, %v, %n : f32
  %s = arith.select %c, %j, %p : i64
  linalg.yield %m, %s : f32, i64"""
    dims, out = ("i, j", "i") if rows else ("j", "")
    values, places = (f"tensor<{rows}f32>", f"tensor<{rows}i64>")
    source = f"tensor<{rows}{length}xf32>"
    ops = filled("a", bound, values) + filled("b", 0, places) + "%y:2 = "
    ops += generic([f"({dims}) -> ({dims})"] + [f"({dims}) -> ({out})"] * 2, kind, f"%x : {source}", f"%a, %b : {values}, {places}", body, f"({values}, {places})")
    return one(f"%x: {source}", f"{values}, {places}", ops, "%y#0, %y#1")


def upsampled():
    """Nearest upsampling by two and by three, whose indices torch computes in f32, of rows that no vector divides."""
    x = floats(3, 5, 7, dtype=np.float16)
    body = """^bb0(%o: f16):
  %z = linalg.index 0 : index
"""
    for dim, by in ((1, 2), (2, 3)):
        body += f"""  %i{dim} = linalg.index {dim} : index
  %n{dim} = arith.index_cast %i{dim} : index to i64
  %f{dim} = arith.sitofp %n{dim} : i64 to f32
  %h{dim} = arith.divf %f{dim}, %by{dim} : f32
  %w{dim} = math.floor %h{dim} : f32
  %s{dim} = arith.fptosi %w{dim} : f32 to i64
  %t{dim} = arith.index_cast %s{dim} : i64 to index
"""
    body += "  %v = tensor.extract %x[%z, %t1, %t2] : tensor<3x5x7xf16>\n  linalg.yield %v : f16"
    ops = "%by1 = arith.constant 2.0 : f32\n%by2 = arith.constant 3.0 : f32\n%e = tensor.empty() : tensor<3x10x21xf16>\n%y = "
    ops += generic(["(i, j, k) -> (i, j, k)"], "ppp", "", "%e : tensor<3x10x21xf16>", body, "tensor<3x10x21xf16>")
    return one("%x: tensor<3x5x7xf16>", "tensor<3x10x21xf16>", ops, "%y"), [x], [x.repeat(2, 1).repeat(3, 2)]


def by_constants():
    """Elements that constants name: in order, by digits, and in no order that digits have."""
    x = floats(6, 4)
    ops, wanted = "", []
    for at, (rows, columns) in enumerate((([0, 0, 1, 1, 2, 2], [0, 1, 2, 3]), ([5, 5, 5, 2, 2, 2], [3, 1]), ([0, 4, 1, 3], [2, 0, 3]))):
        shape = f"{len(rows)}x{len(columns)}xf32"
        body = f"""^bb0(%p: i64, %q: i64, %o: f32):
  %i = arith.index_cast %p : i64 to index
  %j = arith.index_cast %q : i64 to index
  %v = tensor.extract %x[%i, %j] : tensor<6x4xf32>
  linalg.yield %v : f32"""
        ops += f"%r{at} = arith.constant dense<{rows}> : tensor<{len(rows)}xi64>\n%c{at} = arith.constant dense<{columns}> : tensor<{len(columns)}xi64>\n"
        ops += f"%e{at} = tensor.empty() : tensor<{shape}>\n%y{at} = "
        ops += generic(["(i, j) -> (i)", "(i, j) -> (j)", "(i, j) -> (i, j)"], "pp", f"%r{at}, %c{at} : tensor<{len(rows)}xi64>, tensor<{len(columns)}xi64>", f"%e{at} : tensor<{shape}>", body, f"tensor<{shape}>") + "\n"
        wanted.append(x[np.ix_(rows, columns)])
    kinds = ", ".join(f"tensor<{w.shape[0]}x{w.shape[1]}xf32>" for w in wanted)
    return one("%x: tensor<6x4xf32>", kinds, ops, "%y0, %y1, %y2"), [x], wanted


def argmax_of_all():
    """One point: parts of the reduction are folded by threads, and the first of equal places is kept across them."""
    x = integers(-40, 40, 5003, dtype=np.int32).astype(np.float32)
    return arg("", 5003, "r"), [x], list(most(x))


def argmin_with_nan():
    """Few points, with NaN in the middle of parts, twice in a row, first, and nowhere."""
    x = integers(-900, 900, 5, 3000, dtype=np.int32).astype(np.float32)
    x[0, 1234], x[1, 7], x[1, 2000], x[2, 0], x[3, 2999] = [np.nan] * 5
    x[0, 1230] = -2000
    return arg("5x", 3000, "pr", least=True), [x], list(most(x, least=True))


def argmax_of_columns():
    """A thread has four columns, whose parts it goes through together; one column has a NaN."""
    x = integers(-900, 900, 1024, 72, dtype=np.int32).astype(np.float32)
    x[700, 5] = np.nan
    body = """^bb0(%v: f32, %n: f32, %p: i64):
  %i = linalg.index 0 : index
  %j = arith.index_cast %i : index to i64
  %m = arith.maximumf %v, %n : f32
  %c = arith.cmpf ogt, %v, %n : f32
  %s = arith.select %c, %j, %p : i64
  linalg.yield %m, %s : f32, i64"""
    kinds = "tensor<72xf32>, tensor<72xi64>"
    ops = filled("a", "0xFF800000", "tensor<72xf32>") + filled("b", 0, "tensor<72xi64>") + "%y:2 = "
    ops += generic(["(i, j) -> (i, j)"] + ["(i, j) -> (j)"] * 2, "rp", "%x : tensor<1024x72xf32>", f"%a, %b : {kinds}", body, f"({kinds})")
    return one("%x: tensor<1024x72xf32>", kinds, ops, "%y#0, %y#1"), [x], list(most(x.T))


def argmax_dynamic():
    """An extent that is known at run time only, and that parts do not divide."""
    x = integers(-40, 40, 3, 777, dtype=np.int32).astype(np.float32)
    return arg("3x", "?", "pr"), [x], list(most(x))


def argmax_of_pairs():
    """JAX's form: places are a second input, the smaller of equal ones is kept, and a NaN is the largest."""
    x = integers(-40, 40, 2, 1500, dtype=np.int32).astype(np.float32)
    x[1, 700], x[1, 701] = np.nan, np.nan
    body = """^bb0(%v: f32, %i: i32, %n: f32, %p: i32):
  %g = arith.cmpf ogt, %n, %v : f32
  %u = arith.cmpf une, %n, %n : f32
  %m = arith.ori %g, %u : i1
  %e = arith.cmpf oeq, %n, %v : f32
  %l = arith.cmpi slt, %p, %i : i32
  %t = arith.andi %e, %l : i1
  %k = arith.ori %m, %t : i1
  %q = arith.select %m, %n, %v : f32
  %w = arith.select %k, %p, %i : i32
  linalg.yield %q, %w : f32, i32"""
    kinds = "tensor<2xf32>, tensor<2xi32>"
    ops = filled("a", "0xFF800000", "tensor<2xf32>") + filled("b", 0, "tensor<2xi32>") + "%y:2 = "
    ops += generic(["(i, j) -> (i, j)"] * 2 + ["(i, j) -> (i)"] * 2, "pr", "%x, %at : tensor<2x1500xf32>, tensor<2x1500xi32>", f"%a, %b : {kinds}", body, f"({kinds})")
    at = np.broadcast_to(np.arange(1500, dtype=np.int32), x.shape).copy()
    value, place = np.full(2, -np.inf, np.float32), np.zeros(2, np.int32)
    for j in range(1500):
        v, i = x[:, j], at[:, j]
        own = (value > v) | np.isnan(value)
        value, place = np.where(own, value, v), np.where(own | ((value == v) & (place < i)), place, i)
    return one("%x: tensor<2x1500xf32>, %at: tensor<2x1500xi32>", kinds, ops, "%y#0, %y#1"), [x, at], [value, place]


def empty_table():
    """A table whose size the function computes and that turns out to be empty has zeros for kernels, and is not read."""
    table, at = floats(4, 24, dtype=np.float16), integers(-3, 30, 11)
    body = """^bb0(%v: i64, %o: f16):
  %i = arith.index_cast %v : i64 to index
  %j = linalg.index 1 : index
  %r = tensor.extract %s[%i, %j] : tensor<?x24xf16>
  linalg.yield %r : f16"""
    ops = """%c0 = arith.constant 0 : index
%c4 = arith.constant 4 : index
%rows = tensor.dim %t, %c0 : tensor<?x24xf16>
%n = arith.subi %rows, %c4 : index
%s = tensor.extract_slice %t[0, 0] [%n, 24] [1, 1] : tensor<?x24xf16> to tensor<?x24xf16>
%e = tensor.empty() : tensor<11x24xf16>
%y = """
    ops += generic(["(i, j) -> (i)", "(i, j) -> (i, j)"], "pp", "%at : tensor<11xi64>", "%e : tensor<11x24xf16>", body, "tensor<11x24xf16>")
    return one("%t: tensor<?x24xf16>, %at: tensor<11xi64>", "tensor<11x24xf16>", ops, "%y"), [table, at], [np.zeros((11, 24), np.float16)]


def unsigned():
    """JAX's integers: their sign is in the types of arguments and results alone."""
    x = integers(0, 256, 5, 33, dtype=np.uint8)
    ops = "%s = builtin.unrealized_conversion_cast %x : tensor<5x33xui8> to tensor<5x33xi8>\n" + filled("a", 0, "tensor<5xi8>")
    ops += "%m = linalg.reduce { arith.maxui } ins(%s : tensor<5x33xi8>) outs(%a : tensor<5xi8>) dimensions = [1]\n"
    ops += "%y = builtin.unrealized_conversion_cast %m : tensor<5xi8> to tensor<5xui8>"
    return one("%x: tensor<5x33xui8>", "tensor<5xui8>", ops, "%y"), [x], [x.max(1)]


def on_tensors():
    """Operations on scalars that take whole tensors."""
    x, y = floats(6, 10), floats(6, 10)
    kind = "tensor<6x10xf32>"
    ops = f"%a = arith.maxnumf %x, %y : {kind}\n%b = arith.mulf %a, %x : {kind}\n%r = math.absf %b : {kind}"
    return one(f"%x: {kind}, %y: {kind}", kind, ops, "%r"), [x, y], [np.abs(np.maximum(x, y) * x)]


def cumulative():
    """Sums up to each element, as loops in order: the result is indexed by the reduction."""
    x = integers(-9, 9, 5, 21, dtype=np.int32)
    body = """^bb0(%v: i32, %o: i32, %s: i32):
  %t = arith.addi %v, %s : i32
  linalg.yield %t, %t : i32, i32"""
    ops = "%a = tensor.empty() : tensor<5x21xi32>\n" + filled("b", 0, "tensor<5xi32>") + "%y:2 = "
    ops += generic(["(i, j) -> (i, j)", "(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", "%x : tensor<5x21xi32>", "%a, %b : tensor<5x21xi32>, tensor<5xi32>", body, "(tensor<5x21xi32>, tensor<5xi32>)")
    return one("%x: tensor<5x21xi32>", "tensor<5x21xi32>, tensor<5xi32>", ops, "%y#0, %y#1"), [x], [x.cumsum(1).astype(np.int32), x.sum(1).astype(np.int32)]


def triangle():
    """Sums up to each element, as a masked reduction."""
    x = floats(4, 19)
    body = """^bb0(%v: f32, %o: f32):
  %j = linalg.index 1 : index
  %k = linalg.index 2 : index
  %c = arith.cmpi sle, %k, %j : index
  %m = arith.select %c, %v, %z : f32
  %t = arith.addf %m, %o : f32
  linalg.yield %t : f32"""
    ops = "%z = arith.constant 0.0 : f32\n" + filled("a", 0.0, "tensor<4x19xf32>") + "%y = "
    ops += generic(["(i, j, k) -> (i, k)", "(i, j, k) -> (i, j)"], "ppr", "%x : tensor<4x19xf32>", "%a : tensor<4x19xf32>", body, "tensor<4x19xf32>")
    return one("%x: tensor<4x19xf32>", "tensor<4x19xf32>", ops, "%y"), [x], [x.cumsum(1)]


def slices():
    x = floats(12, 20)
    ops = """%a = tensor.extract_slice %x[1, 3] [5, 4] [2, 4] : tensor<12x20xf32> to tensor<5x4xf32>
%b = tensor.extract_slice %x[7, 0] [1, 20] [1, 1] : tensor<12x20xf32> to tensor<20xf32>
%c = tensor.insert_slice %a into %x[2, 1] [5, 4] [1, 3] : tensor<5x4xf32> into tensor<12x20xf32>
%d = tensor.insert_slice %b into %x[11, 0] [1, 20] [1, 1] : tensor<20xf32> into tensor<12x20xf32>"""
    c, d = x.copy(), x.copy()
    c[2:7, 1:13:3], d[11] = x[1:11:2, 3:19:4], x[7]
    kinds = "tensor<5x4xf32>, tensor<20xf32>, tensor<12x20xf32>, tensor<12x20xf32>"
    return one("%x: tensor<12x20xf32>", kinds, ops, "%a, %b, %c, %d"), [x], [x[1:11:2, 3:19:4].copy(), x[7].copy(), c, d]


def dynamic_slices():
    """As JAX slices and updates at places that are data, which are brought into bounds."""
    x, at, u = floats(10, 16), np.int32([13]), floats(3, 16)
    ops = """%c0 = arith.constant 0 : index
%c7 = arith.constant 7 : index
%p = tensor.extract %at[%c0] : tensor<1xi32>
%q = arith.index_cast %p : i32 to index
%r = arith.minsi %q, %c7 : index
%s = arith.maxsi %r, %c0 : index
%a = tensor.extract_slice %x[%s, 0] [3, 16] [1, 1] : tensor<10x16xf32> to tensor<3x16xf32>
%b = tensor.insert_slice %u into %x[%s, 0] [3, 16] [1, 1] : tensor<3x16xf32> into tensor<10x16xf32>"""
    b = x.copy()
    b[7:] = u
    return one("%x: tensor<10x16xf32>, %at: tensor<1xi32>, %u: tensor<3x16xf32>", "tensor<3x16xf32>, tensor<10x16xf32>", ops, "%a, %b"), [x, at, u], [x[7:].copy(), b]


def assembled():
    x, y = floats(5, 7), floats(5, 3)
    ops = """%z = arith.constant 2.5 : f32
%a = tensor.concat dim(1) %x, %y, %x : (tensor<5x7xf32>, tensor<5x3xf32>, tensor<5x7xf32>) -> tensor<5x17xf32>
%b = tensor.pad %x low[2, 0] high[1, 4] {
^bb0(%i: index, %j: index):
  tensor.yield %z : f32
} : tensor<5x7xf32> to tensor<8x11xf32>"""
    b = np.pad(x, [(2, 1), (0, 4)], constant_values=np.float32(2.5))
    return one("%x: tensor<5x7xf32>, %y: tensor<5x3xf32>", "tensor<5x17xf32>, tensor<8x11xf32>", ops, "%a, %b"), [x, y], [np.concatenate([x, y, x], 1), b]


def dynamic_pieces():
    """Slices, paddings and concatenations of tensors whose extents are all dynamic."""
    x, y = floats(5, 7), floats(2, 7)
    ops = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%z = arith.constant 0.0 : f32
%n = tensor.dim %x, %c0 : tensor<?x?xf32>
%m = tensor.dim %x, %c1 : tensor<?x?xf32>
%h = arith.divui %m, %c2 : index
%a = tensor.extract_slice %x[0, %h] [%n, %h] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
%b = tensor.concat dim(0) %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
%c = tensor.pad %a low[%c1, 0] high[0, %c2] {
^bb0(%i: index, %j: index):
  tensor.yield %z : f32
} : tensor<?x?xf32> to tensor<?x?xf32>
%d = tensor.collapse_shape %b [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>"""
    b = np.concatenate([x, y])
    kinds = "tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>"
    return one("%x: tensor<?x?xf32>, %y: tensor<?x?xf32>", kinds, ops, "%c, %b, %d"), [x, y], [np.pad(x[:, 3:6], [(1, 0), (0, 2)]), b, b.reshape(-1)]


def inner_dynamic():
    """Everything on tensors whose inner dimensions are dynamic: a product, its rows' maxima, a transpose, a reshape."""
    x, w = floats(3, 6, 16), floats(3, 16, 9)
    kind = "tensor<3x?x?xf32>"
    ops = f"""%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%z = arith.constant 0.0 : f32
%low = arith.constant -1.0e30 : f32
%n = tensor.dim %x, %c1 : {kind}
%m = tensor.dim %w, %c2 : {kind}
%e = tensor.empty(%n, %m) : {kind}
%f = linalg.fill ins(%z : f32) outs(%e : {kind}) -> {kind}
%p = linalg.batch_matmul ins(%x, %w : {kind}, {kind}) outs(%f : {kind}) -> {kind}
%te = tensor.empty(%m, %n) : {kind}
%t = linalg.transpose ins(%p : {kind}) outs(%te : {kind}) permutation = [0, 2, 1]
%re = tensor.empty(%n) : tensor<3x?xf32>
%rf = linalg.fill ins(%low : f32) outs(%re : tensor<3x?xf32>) -> tensor<3x?xf32>
%r = linalg.reduce {{ arith.maximumf }} ins(%p : {kind}) outs(%rf : tensor<3x?xf32>) dimensions = [2]
%s = tensor.collapse_shape %p [[0, 1], [2]] : {kind} into tensor<?x?xf32>
%g = tensor.empty(%n, %m) : {kind}
%v = linalg.exp ins(%p : {kind}) outs(%g : {kind}) -> {kind}"""
    p = x @ w
    kinds = f"{kind}, tensor<3x?xf32>, tensor<?x?xf32>, {kind}"
    return one(f"%x: {kind}, %w: {kind}", kinds, ops, "%t, %r, %s, %v"), [x, w], [p.transpose(0, 2, 1).copy(), p.max(2), p.reshape(18, 9), np.exp(p)]


def rope():
    """The halves of each row exchanged, one of them negated, by cosines and sines of places."""
    x, c, s = floats(2, 6, 8), floats(6, 8), floats(6, 8)
    ops = """%a = tensor.extract_slice %x[0, 0, 0] [2, 6, 4] [1, 1, 1] : tensor<2x6x8xf32> to tensor<2x6x4xf32>
%b = tensor.extract_slice %x[0, 0, 4] [2, 6, 4] [1, 1, 1] : tensor<2x6x8xf32> to tensor<2x6x4xf32>
%e = tensor.empty() : tensor<2x6x4xf32>
%n = linalg.negf ins(%b : tensor<2x6x4xf32>) outs(%e : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
%r = tensor.concat dim(2) %n, %a : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x8xf32>
%f = tensor.empty() : tensor<2x6x8xf32>
%y = """
    body = """^bb0(%v: f32, %w: f32, %p: f32, %q: f32, %o: f32):
  %l = arith.mulf %v, %p : f32
  %m = arith.mulf %w, %q : f32
  %z = arith.addf %l, %m : f32
  linalg.yield %z : f32"""
    whole, part = "(b, i, j) -> (b, i, j)", "(b, i, j) -> (i, j)"
    kinds = "tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>"
    ops += generic([whole, whole, part, part, whole], "ppp", f"%x, %r, %c, %s : {kinds}", "%f : tensor<2x6x8xf32>", body, "tensor<2x6x8xf32>")
    turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    return one("%x: tensor<2x6x8xf32>, %c: tensor<6x8xf32>, %s: tensor<6x8xf32>", "tensor<2x6x8xf32>", ops, "%y"), [x, c, s], [x * c + turned * s]


def convolution(x, w, stride, dilation):
    n, c, h, width = x.shape
    f, _, kh, kw = w.shape
    oh, ow = (h - (kh - 1) * dilation - 1) // stride + 1, (width - (kw - 1) * dilation - 1) // stride + 1
    y = np.zeros((n, f, oh, ow), np.float32)
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dilation, i * dilation + (oh - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (ow - 1) * stride + 1, stride)
            y += np.einsum("nchw,fc->nfhw", x[:, :, rows, columns].astype(np.float32), w[:, :, i, j].astype(np.float32))
    return y


def convolutions():
    x, w, d = floats(2, 3, 9, 11), floats(4, 3, 3, 2), floats(3, 3, 3)
    ops = filled("a", 0.0, "tensor<2x4x4x5xf32>")
    ops += "%y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x3x9x11xf32>, tensor<4x3x3x2xf32>) outs(%a : tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>\n"
    ops += filled("b", 0.0, "tensor<2x4x5x9xf32>")
    ops += "%z = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x3x9x11xf32>, tensor<4x3x3x2xf32>) outs(%b : tensor<2x4x5x9xf32>) -> tensor<2x4x5x9xf32>\n"
    ops += filled("c", 0.0, "tensor<2x3x7x9xf32>")
    ops += "%v = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %d : tensor<2x3x9x11xf32>, tensor<3x3x3xf32>) outs(%c : tensor<2x3x7x9xf32>) -> tensor<2x3x7x9xf32>\n"
    depth = np.stack([convolution(x[:, c : c + 1], d[c][None, None], 1, 1)[:, 0] for c in range(3)], 1)
    kinds = "tensor<2x4x4x5xf32>, tensor<2x4x5x9xf32>, tensor<2x3x7x9xf32>"
    arguments = "%x: tensor<2x3x9x11xf32>, %w: tensor<4x3x3x2xf32>, %d: tensor<3x3x3xf32>"
    return one(arguments, kinds, ops, "%y, %z, %v"), [x, w, d], [convolution(x, w, 2, 1), convolution(x, w, 1, 2), depth]


def channels_last():
    x, w, k = floats(1, 8, 8, 5), floats(3, 3, 5, 6), floats(4, 2, 3)
    s = floats(2, 2, 17)
    ops = filled("a", 0.0, "tensor<1x6x6x6xf32>")
    ops += "%y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x8x5xf32>, tensor<3x3x5x6xf32>) outs(%a : tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>\n"
    ops += filled("b", 0.0, "tensor<2x4x8xf32>")
    ops += "%z = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%s, %k : tensor<2x2x17xf32>, tensor<4x2x3xf32>) outs(%b : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>\n"
    y = convolution(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), 1, 1).transpose(0, 2, 3, 1)
    z = convolution(s[:, :, None], k[:, :, None], 1, 1)[:, :, 0, ::2]
    arguments = "%x: tensor<1x8x8x5xf32>, %w: tensor<3x3x5x6xf32>, %s: tensor<2x2x17xf32>, %k: tensor<4x2x3xf32>"
    return one(arguments, "tensor<1x6x6x6xf32>, tensor<2x4x8xf32>", ops, "%y, %z"), [x, w, s, k], [y.copy(), z.copy()]


def pooling():
    x = floats(2, 3, 10, 8)
    ops = "%k = tensor.empty() : tensor<3x2xf32>\n" + filled("a", "0xFF800000", "tensor<2x3x4x4xf32>")
    attributes = "{dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}"
    ops += f"%y = linalg.pooling_nchw_max {attributes} ins(%x, %k : tensor<2x3x10x8xf32>, tensor<3x2xf32>) outs(%a : tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>\n"
    ops += filled("b", 0.0, "tensor<2x3x4x4xf32>")
    ops += f"%z = linalg.pooling_nchw_sum {attributes} ins(%x, %k : tensor<2x3x10x8xf32>, tensor<3x2xf32>) outs(%b : tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>\n"
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3))[:, :, ::2, ::2]
    return one("%x: tensor<2x3x10x8xf32>", "tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>", ops, "%y, %z"), [x], [windows.max((4, 5)), windows.sum((4, 5))]


def unfold():
    x = floats(3, 20)
    ops = "%e = tensor.empty() : tensor<3x9x4xf32>\n%y = "
    ops += generic(["(b, i, j) -> (b, i * 2 + j)", "(b, i, j) -> (b, i, j)"], "ppp", "%x : tensor<3x20xf32>", "%e : tensor<3x9x4xf32>", "^bb0(%v: f32, %o: f32):\n  linalg.yield %v : f32", "tensor<3x9x4xf32>")
    return one("%x: tensor<3x20xf32>", "tensor<3x9x4xf32>", ops, "%y"), [x], [np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2].copy()]


def accumulated():
    """A reduction on top of a tensor, which stays as it is."""
    x, y = floats(7, 11), floats(7)
    body = """^bb0(%v: f32, %o: f32):
  %i = linalg.index 1 : index
  %j = arith.index_cast %i : index to i32
  %f = arith.sitofp %j : i32 to f32
  %m = arith.mulf %v, %f : f32
  %t = arith.addf %o, %m : f32
  linalg.yield %t : f32"""
    ops = "%r = " + generic(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", "%x : tensor<7x11xf32>", "%y : tensor<7xf32>", body, "tensor<7xf32>")
    ops += "\n%e = tensor.empty() : tensor<7xf32>\n%n = linalg.negf ins(%y : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>"
    return one("%x: tensor<7x11xf32>, %y: tensor<7xf32>", "tensor<7xf32>, tensor<7xf32>", ops, "%r, %n"), [x, y], [y + (x * np.arange(11, dtype=np.float32)).sum(1), -y]


def empty():
    """Tensors without elements: results, and reductions over none."""
    x = floats(0, 5)
    body = "^bb0(%v: f32, %o: f32):\n  %t = arith.addf %v, %o : f32\n  linalg.yield %t : f32"
    ops = filled("a", 0.0, "tensor<5xf32>") + "%r = " + generic(["(i, j) -> (j, i)", "(i, j) -> (i)"], "pr", "%x : tensor<0x5xf32>", "%a : tensor<5xf32>", body, "tensor<5xf32>")
    ops += "\n%e = tensor.empty() : tensor<0x5xf32>\n%n = linalg.exp ins(%x : tensor<0x5xf32>) outs(%e : tensor<0x5xf32>) -> tensor<0x5xf32>"
    return one("%x: tensor<0x5xf32>", "tensor<5xf32>, tensor<0x5xf32>", ops, "%r, %n"), [x], [np.zeros(5, np.float32), x]


def calls():
    """Functions that are called, and scalars of the function that bodies take."""
    x = floats(6, 10)
    text = """func.func private @scaled(%x: tensor<6x10xf32>, %by: f32) -> tensor<6x10xf32> {
  %e = tensor.empty() : tensor<6x10xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %by : tensor<6x10xf32>, f32) outs(%t : tensor<10x6xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.mulf %v, %s : f32
    linalg.yield %r : f32
  } -> tensor<10x6xf32>
  %f = linalg.transpose ins(%y : tensor<10x6xf32>) outs(%e : tensor<6x10xf32>) permutation = [1, 0]
  return %f : tensor<6x10xf32>
}
""".replace("%e = tensor.empty() : tensor<6x10xf32>\n", "%e = tensor.empty() : tensor<6x10xf32>\n  %t = tensor.empty() : tensor<10x6xf32>\n", 1)
    text += """func.func @main(%x: tensor<6x10xf32>) -> tensor<6x10xf32> {
  %two = arith.constant 2.0 : f32
  %a = call @scaled(%x, %two) : (tensor<6x10xf32>, f32) -> tensor<6x10xf32>
  %b = call @scaled(%a, %two) : (tensor<6x10xf32>, f32) -> tensor<6x10xf32>
  return %b : tensor<6x10xf32>
}
"""
    return text, [x], [4 * x]


def control():
    """A loop with known bounds, whose turns read slices at its index; and branches by a number of the data, and of the loop's."""
    x, flag = floats(6, 10), np.int32([1])
    text = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c5 = arith.constant 5 : index
%one = arith.constant 1 : i32
%z = arith.constant 0.0 : f32
%e = tensor.empty() : tensor<10xf32>
%s = linalg.fill ins(%z : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
%y = scf.for %i = %c0 to %c5 step %c2 iter_args(%a = %s) -> (tensor<10xf32>) {
  %r = tensor.extract_slice %x[%i, 0] [1, 10] [1, 1] : tensor<6x10xf32> to tensor<10xf32>
  %q = arith.cmpi eq, %i, %c2 : index
  %n = scf.if %q -> tensor<10xf32> {
    %d = linalg.sub ins(%a, %r : tensor<10xf32>, tensor<10xf32>) outs(%e : tensor<10xf32>) -> tensor<10xf32>
    scf.yield %d : tensor<10xf32>
  } else {
    %d = linalg.add ins(%a, %r : tensor<10xf32>, tensor<10xf32>) outs(%e : tensor<10xf32>) -> tensor<10xf32>
    scf.yield %d : tensor<10xf32>
  }
  scf.yield %n : tensor<10xf32>
}
%f = tensor.extract %flag[%c0] : tensor<1xi32>
%p = arith.cmpi eq, %f, %one : i32
%w = scf.if %p -> tensor<10xf32> {
  %d = linalg.exp ins(%y : tensor<10xf32>) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  scf.yield %d : tensor<10xf32>
} else {
  scf.yield %y : tensor<10xf32>
}
%m = arith.subi %f, %one : i32
%b = arith.cmpi eq, %m, %one : i32
%v = scf.if %b -> tensor<10xf32> {
  %d = linalg.exp ins(%y : tensor<10xf32>) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  scf.yield %d : tensor<10xf32>
} else {
  scf.yield %y : tensor<10xf32>
}"""
    y = x[0] - x[2] + x[4]
    return one("%x: tensor<6x10xf32>, %flag: tensor<1xi32>", "tensor<10xf32>, tensor<10xf32>", text, "%w, %v"), [x, flag], [np.exp(y), y]


def batches():
    """More products, rows and reductions than a grid has along z."""
    x, w = floats(66000, 1, 2), floats(66000, 2, 2)
    ops = filled("a", 0.0, "tensor<66000x1x2xf32>")
    ops += "%y = linalg.batch_matmul ins(%x, %w : tensor<66000x1x2xf32>, tensor<66000x2x2xf32>) outs(%a : tensor<66000x1x2xf32>) -> tensor<66000x1x2xf32>\n"
    ops += filled("b", 0.0, "tensor<66000x2xf32>")
    ops += "%z = linalg.reduce { arith.addf } ins(%w : tensor<66000x2x2xf32>) outs(%b : tensor<66000x2xf32>) dimensions = [1]"
    return one("%x: tensor<66000x1x2xf32>, %w: tensor<66000x2x2xf32>", "tensor<66000x1x2xf32>, tensor<66000x2xf32>", ops, "%y, %z"), [x, w], [x @ w, w.sum(1)]


CASES = [
    causal, embedding, reused, outside, argmax, upsampled, by_constants, argmax_of_all, argmin_with_nan, argmax_of_columns, argmax_dynamic, argmax_of_pairs, empty_table, unsigned, on_tensors, cumulative, triangle, slices, dynamic_slices, assembled, dynamic_pieces, inner_dynamic,
    rope, convolutions, channels_last, pooling, unfold, accumulated, empty, calls, control, batches,
]
# What reads outside of its tensors: kernels do not, and the CPU target does what the program says.
CHIPS_ONLY = [empty_table]


def compare(name, at, want, got):
    if got.shape != want.shape or got.dtype != want.dtype:
        sys.exit(f"{name} out{at}: expected {want.dtype} of {want.shape}, got {got.dtype} of {got.shape}")
    if want.dtype.kind == "f":
        wide = want.astype(np.float64)
        # Of halves, one number beside the expected one.
        unit = np.abs(np.spacing(want)).astype(np.float64) if want.dtype == np.float16 else 1e-5 * np.maximum(1, np.abs(wide))
        with np.errstate(invalid="ignore"):
            wrong = np.abs(got.astype(np.float64) - wide) > unit
        wrong |= np.isnan(got) != np.isnan(want)
        wrong |= np.isinf(want) & (got != want)
    else:
        wrong = got != want
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0])
        sys.exit(f"{name} out{at}: {wrong.sum()} differ, the first at {first}: expected {want[first]}, got {got[first]}")


def run(folder, axe, target, name, made):
    text, inputs, wanted = made
    module, package, outputs = folder / f"{name}.mlir", folder / f"{name}.axe", folder / f"{name}.results"
    module.write_text(text)
    files = [folder / f"{name}.arg{at}.npy" for at in range(len(inputs))]
    for file, array in zip(files, inputs):
        np.save(file, array)
    inputs = [f"--input=arg{at}={file}" for at, file in enumerate(files)]
    outputs.mkdir(exist_ok=True)
    execute = ["run"] if target == "cpu" else ["sim"]
    subprocess.run([axe, "compile", module, "--function", "main", "--target", target, "-o", package], check=True)
    subprocess.run([axe, *execute, package, *inputs, "--out", outputs], check=True, stdout=subprocess.DEVNULL)
    for at, want in enumerate(wanted):
        compare(name, at, want, np.load(outputs / f"out{at}.npy"))


def main(folder, axe, target, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for made in CASES:
        if target == "cpu" and made in CHIPS_ONLY:
            continue
        if not names or made.__name__ in names:
            run(folder, axe, target, made.__name__, made())


if __name__ == "__main__":
    main(*sys.argv[1:])
