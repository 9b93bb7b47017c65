"""Loops that join the kernel of their rows: losses by an index of a class, their gradients, places of extremes, masks by index.

row_loops.py FOLDER AXE TARGET [NAME ...]    as loops.py, whose modules these are like
"""
import sys

import numpy as np

import loops
from loops import filled, generic, integers, most, one

KINDS = {"f16": np.float16, "f32": np.float32, "i32": np.int32}


def normal(*shape, dtype=np.float32):
    return loops.RNG.standard_normal(shape).astype(dtype)


def log_softmax(n, columns, kind):
    """Text of %lp, logarithms of probabilities in f32, of %x."""
    full, row = f"tensor<{n}x{columns}x{kind}>", f"tensor<{n}xf32>"
    wide = "" if kind == "f32" else f"%w = arith.extf %v : {kind} to f32\n"
    v = "%v" if kind == "f32" else "%w"
    all_, of_row = "(i, j) -> (i, j)", "(i, j) -> (i)"
    text = filled("least", "0xFF800000", row) + filled("zero", 0.0, row) + f"%le = tensor.empty() : tensor<{n}x{columns}xf32>\n"
    text += "%mx = " + generic([all_, of_row], "pr", f"%x : {full}", f"%least : {row}", f"^bb0(%v: {kind}, %o: f32):\n{wide}%r = arith.maximumf {v}, %o : f32\nlinalg.yield %r : f32", row)
    text += "\n%sm = " + generic([all_, of_row, of_row], "pr", f"%x, %mx : {full}, {row}", f"%zero : {row}", f"^bb0(%v: {kind}, %m: f32, %o: f32):\n{wide}%d = arith.subf {v}, %m : f32\n%p = math.exp %d : f32\n%r = arith.addf %p, %o : f32\nlinalg.yield %r : f32", row)
    text += "\n%lp = " + generic([all_, of_row, of_row, all_], "pp", f"%x, %mx, %sm : {full}, {row}, {row}", f"%le : tensor<{n}x{columns}xf32>", f"^bb0(%v: {kind}, %m: f32, %s: f32, %o: f32):\n{wide}%d = arith.subf {v}, %m : f32\n%l = math.log %s : f32\n%r = arith.subf %d, %l : f32\nlinalg.yield %r : f32", f"tensor<{n}x{columns}xf32>")
    return text + "\n"


def reference(x):
    x = x.astype(np.float64)
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def targets(n, columns):
    t = integers(0, columns, n)
    t[0], t[-1] = columns - 1, 0
    return t


def torch_loss(n, columns, kind, mean):
    """torch's `cross_entropy` of class indices: those that are -100 count for nothing."""
    t = targets(n, columns)
    t[1::3] = -100
    x = normal(n, columns, dtype=KINDS[kind])
    vector = f"tensor<{n}xi64>"
    same, row = "(i) -> (i)", f"tensor<{n}xf32>"
    text = log_softmax(n, columns, kind) + f"%none = arith.constant -100 : i64\n%n0 = arith.constant 0 : i64\n%f0 = arith.constant 0.0 : f32\n%cols = arith.constant {columns} : index\n"
    text += f"%be = tensor.empty() : tensor<{n}xi1>\n%te = tensor.empty() : {vector}\n%re = tensor.empty() : {row}\n%ge = tensor.empty() : tensor<{n}x1xf32>\n"
    text += "%keep = " + generic([same] * 2, "p", f"%t : {vector}", f"%be : tensor<{n}xi1>", "^bb0(%v: i64, %o: i1):\n%r = arith.cmpi ne, %v, %none : i64\nlinalg.yield %r : i1", f"tensor<{n}xi1>")
    text += "\n%tt = " + generic([same] * 3, "p", f"%keep, %t : tensor<{n}xi1>, {vector}", f"%te : {vector}", "^bb0(%k: i1, %v: i64, %o: i64):\n%r = arith.select %k, %v, %n0 : i64\nlinalg.yield %r : i64", vector)
    text += f"\n%t1 = tensor.expand_shape %tt [[0, 1]] output_shape [{n}, 1] : {vector} into tensor<{n}x1xi64>\n%g = "
    body = f"""^bb0(%v: i64, %o: f32):
  %i = linalg.index 0 : index
  %j = arith.index_cast %v : i64 to index
  %l = arith.cmpi slt, %j, %cols : index
  cf.assert %l, "index must be smaller than dim size"
  %q = tensor.extract %lp[%i, %j] : tensor<{n}x{columns}xf32>
  linalg.yield %q : f32"""
    text += generic(["(i, j) -> (i, j)"] * 2, "pp", f"%t1 : tensor<{n}x1xi64>", f"%ge : tensor<{n}x1xf32>", body, f"tensor<{n}x1xf32>")
    text += f"\n%g1 = tensor.collapse_shape %g [[0, 1]] : tensor<{n}x1xf32> into {row}\n%y = "
    text += generic([same] * 3, "p", f"%keep, %g1 : tensor<{n}xi1>, {row}", f"%re : {row}", "^bb0(%k: i1, %v: f32, %o: f32):\n%m = arith.negf %v : f32\n%r = arith.select %k, %m, %f0 : f32\nlinalg.yield %r : f32", row) + "\n"
    want = np.where(t < 0, 0, -reference(x)[np.arange(n), np.maximum(t, 0)])
    head = f"%x: tensor<{n}x{columns}x{kind}>, %t: {vector}"
    if not mean:
        return one(head, row, text, "%y"), [x, t], [want.astype(np.float32)]
    none = "(i) -> ()"
    text += filled("z", 0.0, "tensor<f32>") + "%u = " + generic([same, none], "r", f"%y : {row}", "%z : tensor<f32>", "^bb0(%v: f32, %o: f32):\n%r = arith.addf %v, %o : f32\nlinalg.yield %r : f32", "tensor<f32>")
    text += "\n%c = " + generic([same, none], "r", f"%keep : tensor<{n}xi1>", "%z : tensor<f32>", "^bb0(%v: i1, %o: f32):\n%w = arith.uitofp %v : i1 to f32\n%r = arith.addf %w, %o : f32\nlinalg.yield %r : f32", "tensor<f32>")
    text += "\n%se = tensor.empty() : tensor<f32>\n%l = " + generic(["() -> ()"] * 3, "", "%u, %c : tensor<f32>, tensor<f32>", "%se : tensor<f32>", "^bb0(%v: f32, %w: f32, %o: f32):\n%r = arith.divf %v, %w : f32\nlinalg.yield %r : f32", "tensor<f32>")
    return one(head, "tensor<f32>", text, "%l"), [x, t], [np.float32(want.sum() / (t >= 0).sum()).reshape(())]


def loss():
    return torch_loss(7, 1000, "f16", False)


def loss_mean():
    return torch_loss(9, 1003, "f32", True)


def loss_in_shared_memory():
    return torch_loss(3, 20_000, "f16", False)


def loss_of_a_cluster():
    return torch_loss(4, 40_008, "f16", False)


def loss_in_a_window():
    """Rows that begin between boundaries of 16 bytes, of an odd number of elements in all."""
    return torch_loss(5, 20_003, "f16", False)


def loss_in_windows_of_a_cluster():
    return torch_loss(3, 150_001, "f16", False)


def halves(n, columns, text, result, want, x):
    """A module whose result is rounded to f16."""
    full = f"tensor<{n}x{columns}x"
    text += f"%he = tensor.empty() : {full}f16>\n%y = "
    text += generic(["(i, j) -> (i, j)"] * 2, "pp", f"{result} : {full}f32>", f"%he : {full}f16>", "^bb0(%v: f32, %o: f16):\n%r = arith.truncf %v : f32 to f16\nlinalg.yield %r : f16", f"{full}f16>")
    return one(f"%x: {full}f16>", f"{full}f16>", text, "%y"), [x], [want.astype(np.float16)]


def log_softmax_of_halves(columns=2000):
    """One that is certain, some that are hidden, equal ones, wide and narrow ones: exponentials need not be f32's here."""
    n = 6
    x = normal(n, columns, dtype=np.float16)
    x[0], x[0, 7] = -60_000, 60_000
    x[1, 5], x[2], x[3] = 9, 1.5, x[3] * np.float16(8)
    x[4, ::3], x[5] = -np.inf, x[5] * np.float16(2**-9)
    return halves(n, columns, log_softmax(n, columns, "f16"), "%lp", reference(x), x)


def log_softmax_of_windows():
    return log_softmax_of_halves(40_009)


def log_of_small_sums():
    """Without a maximum: all exponentials are below the least normal number, and so is their sum."""
    n, columns = 4, 300
    x = (normal(n, columns) - np.float32([20, 90, 96, 8])[:, None]).astype(np.float16)
    full, row = f"tensor<{n}x{columns}x", f"tensor<{n}xf32>"
    text = filled("zero", 0.0, row) + f"%le = tensor.empty() : {full}f32>\n%sm = "
    text += generic(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", f"%x : {full}f16>", f"%zero : {row}", "^bb0(%v: f16, %o: f32):\n%w = arith.extf %v : f16 to f32\n%p = math.exp %w : f32\n%r = arith.addf %p, %o : f32\nlinalg.yield %r : f32", row)
    text += "\n%lp = " + generic(["(i, j) -> (i, j)", "(i, j) -> (i)", "(i, j) -> (i, j)"], "pp", f"%x, %sm : {full}f16>, {row}", f"%le : {full}f32>", "^bb0(%v: f16, %s: f32, %o: f32):\n%w = arith.extf %v : f16 to f32\n%l = math.log %s : f32\n%r = arith.subf %w, %l : f32\nlinalg.yield %r : f32", f"{full}f32>") + "\n"
    return halves(n, columns, text, "%lp", reference(x), x)


def loss_or_nan():
    """JAX's `take_along_axis`: negative indices count from the end, and what is out of range is NaN."""
    n, columns = 6, 500
    x, t = normal(n, columns), targets(n, columns).astype(np.int32)
    t[1], t[2], t[3] = -3, columns, -columns - 1
    vector, row = f"tensor<{n}xi32>", f"tensor<{n}xf32>"
    body = f"""^bb0(%v: i32, %o: f32):
  %i = linalg.index 0 : index
  %b = arith.cmpi slt, %v, %n0 : i32
  %w = arith.addi %v, %n : i32
  %s = arith.select %b, %w, %v : i32
  %l = arith.cmpi sge, %s, %n0 : i32
  %h = arith.cmpi slt, %s, %n : i32
  %c = arith.andi %l, %h : i1
  %j = arith.index_cast %s : i32 to index
  %j0 = arith.minsi %j, %last : index
  %j1 = arith.maxsi %j0, %first : index
  %q = tensor.extract %lp[%i, %j1] : tensor<{n}x{columns}xf32>
  %m = arith.negf %q : f32
  %r = arith.select %c, %m, %nan : f32
  linalg.yield %r : f32"""
    text = log_softmax(n, columns, "f32") + f"%n0 = arith.constant 0 : i32\n%n = arith.constant {columns} : i32\n%nan = arith.constant 0x7FC00000 : f32\n%first = arith.constant 0 : index\n%last = arith.constant {columns - 1} : index\n%re = tensor.empty() : {row}\n%y = "
    text += generic(["(i) -> (i)"] * 2, "p", f"%t : {vector}", f"%re : {row}", body, row)
    own = np.where(t < 0, t + columns, t)
    inside = (own >= 0) & (own < columns)
    want = np.where(inside, -reference(x)[np.arange(n), own.clip(0, columns - 1)], np.nan)
    return one(f"%x: tensor<{n}x{columns}xf32>, %t: {vector}", row, text, "%y"), [x, t], [want.astype(np.float32)]


def gradient():
    """softmax minus one at the class."""
    n, columns = 5, 1500
    x, t = normal(n, columns), targets(n, columns)
    full = f"tensor<{n}x{columns}xf32>"
    body = """^bb0(%l: f32, %v: i64, %o: f32):
  %j = linalg.index 1 : index
  %k = arith.index_cast %j : index to i64
  %c = arith.cmpi eq, %k, %v : i64
  %p = math.exp %l : f32
  %f = arith.uitofp %c : i1 to f32
  %r = arith.subf %p, %f : f32
  linalg.yield %r : f32"""
    text = log_softmax(n, columns, "f32") + f"%te = tensor.empty() : tensor<{n}x{columns}xi64>\n%tb = "
    text += generic(["(i, j) -> (i)", "(i, j) -> (i, j)"], "pp", f"%t : tensor<{n}xi64>", f"%te : tensor<{n}x{columns}xi64>", "^bb0(%v: i64, %o: i64):\nlinalg.yield %v : i64", f"tensor<{n}x{columns}xi64>")
    text += "\n%y = " + generic(["(i, j) -> (i, j)"] * 3, "pp", f"%lp, %tb : {full}, tensor<{n}x{columns}xi64>", f"%le : {full}", body, full)
    want = np.exp(reference(x))
    want[np.arange(n), t] -= 1
    return one(f"%x: {full}, %t: tensor<{n}xi64>", full, text, "%y"), [x, t], [want.astype(np.float32)]


def masked_softmax():
    """Columns behind the row are hidden, by index, of rows that are two dimensions."""
    b, n, columns = 2, 5, 100
    x = normal(b, n, columns)
    full, row = f"tensor<{b}x{n}x{columns}xf32>", f"tensor<{b}x{n}xf32>"
    all_, of_row = "(b, i, j) -> (b, i, j)", "(b, i, j) -> (b, i)"
    body = """^bb0(%v: f32, %o: f32):
  %i = linalg.index 1 : index
  %j = linalg.index 2 : index
  %c = arith.cmpi sle, %j, %i : index
  %r = arith.select %c, %v, %low : f32
  linalg.yield %r : f32"""
    text = filled("least", "0xFF800000", row) + filled("zero", 0.0, row) + f"%e = tensor.empty() : {full}\n%low = arith.constant -1.0e30 : f32\n"
    text += "%s2 = " + generic([all_] * 2, "ppp", f"%x : {full}", f"%e : {full}", "^bb0(%v: f32, %o: f32):\n%r = arith.addf %v, %v : f32\nlinalg.yield %r : f32", full)
    text += "\n%h = " + generic([all_] * 2, "ppp", f"%s2 : {full}", f"%e : {full}", body, full)
    text += "\n%m = " + generic([all_, of_row], "ppr", f"%h : {full}", f"%least : {row}", "^bb0(%v: f32, %o: f32):\n%r = arith.maximumf %v, %o : f32\nlinalg.yield %r : f32", row)
    text += "\n%p = " + generic([all_, of_row, all_], "ppp", f"%h, %m : {full}, {row}", f"%e : {full}", "^bb0(%v: f32, %m0: f32, %o: f32):\n%d = arith.subf %v, %m0 : f32\n%r = math.exp %d : f32\nlinalg.yield %r : f32", full)
    h = np.where(np.arange(columns) <= np.arange(n)[:, None], 2 * x, np.float32(-1e30))
    return one(f"%x: {full}", full, text, "%p"), [x], [np.exp(h - h.max(2, keepdims=True))]


def choose(x, kind, names, start, index="i64"):
    """A value of each row and its place, by a comparison."""
    n, columns = x.shape
    extreme, compared, ordered = names
    row, places = f"tensor<{n}x{kind}>", f"tensor<{n}x{index}>"
    body = f"""^bb0(%v: {kind}, %n: {kind}, %p: {index}):
  %i = linalg.index 1 : index
  %j = arith.index_cast %i : index to {index}
  %m = arith.{extreme} %v, %n : {kind}
  %c = arith.{compared} {ordered}, %v, %n : {kind}
  %s = arith.select %c, %j, %p : {index}
  linalg.yield %m, %s : {kind}, {index}"""
    ops = filled("a", start, row) + filled("b", 0, places) + "%y:2 = "
    ops += generic(["(i, j) -> (i, j)", "(i, j) -> (i)", "(i, j) -> (i)"], "pr", f"%x : tensor<{n}x{columns}x{kind}>", f"%a, %b : {row}, {places}", body, f"({row}, {places})")
    return one(f"%x: tensor<{n}x{columns}x{kind}>", f"{row}, {places}", ops, "%y#0, %y#1")


def most_of_halves():
    """Ties, infinities, zeros of both signs, and NaN at all places, in f16."""
    x = integers(-40, 40, 9, 3001).astype(np.float16)
    x[0, 1234], x[1, 0], x[2], x[3], x[4, 3000] = np.nan, np.nan, np.nan, -np.inf, np.nan
    x[5, 17], x[5, 2999], x[6] = np.inf, np.inf, 0
    x[6, ::2] = -0.0
    return choose(x, "f16", ("maximumf", "cmpf", "ogt"), "0xFC00"), [x], list(most(x))


def least_of_computed():
    """Of sums of products with a column's and a row's number, which are formed again where a row has a NaN."""
    n, columns = 7, 3000
    x = integers(-40, 40, n, columns, dtype=np.int32).astype(np.float32)
    w, r = integers(1, 4, columns, dtype=np.int32).astype(np.float32), integers(-9, 9, n, dtype=np.int32).astype(np.float32)
    x[1, 1234], x[2, 0], x[3], x[4, 2999], x[5] = np.nan, np.nan, np.nan, np.nan, np.inf
    full, all_ = f"tensor<{n}x{columns}xf32>", "(i, j) -> (i, j)"
    ops = f"%ze = tensor.empty() : {full}\n%z = " + generic([all_, "(i, j) -> (j)", "(i, j) -> (i)", all_], "pp", f"%x, %w, %r : {full}, tensor<{columns}xf32>, tensor<{n}xf32>", f"%ze : {full}", "^bb0(%v: f32, %c: f32, %d: f32, %o: f32):\n%p = arith.mulf %v, %c : f32\n%q = arith.addf %p, %d : f32\nlinalg.yield %q : f32", full)
    z = x * w + r[:, None]
    text = choose(z, "f32", ("minimumf", "cmpf", "olt"), "0x7F800000")
    text = text.replace(f"(%x: {full})", f"(%x: {full}, %w: tensor<{columns}xf32>, %r: tensor<{n}xf32>)").replace(f"ins(%x : {full})", f"ins(%z : {full})")
    head, _, rest = text.partition("{\n")
    return head + "{\n" + ops + "\n" + rest, [x, w, r], list(most(z, least=True))


def most_of_rows():
    """Of probabilities: rows of a NaN have none, which the maximum and the sum of the row are."""
    n, columns = 5, 1200
    x = normal(n, columns)
    x[1, 7], x[3] = np.nan, np.nan
    text = log_softmax(n, columns, "f32")
    whole = choose(x, "f32", ("maximumf", "cmpf", "ogt"), "0xFF800000").replace(f"ins(%x : tensor<{n}x{columns}xf32>)", f"ins(%lp : tensor<{n}x{columns}xf32>)")
    head, _, rest = whole.partition("{\n")
    rest = rest.replace(f"return %y#0, %y#1 : tensor<{n}xf32>, tensor<{n}xi64>", f"return %y#1 : tensor<{n}xi64>")
    head = head.replace(f"-> (tensor<{n}xf32>, tensor<{n}xi64>)", f"-> (tensor<{n}xi64>)")
    return head + "{\n" + text + rest, [x], [most(reference(x).astype(np.float32))[1]]


def most_in_shared_memory():
    x = normal(3, 40_000, dtype=np.float16)
    x[1, 39_999] = np.nan
    # Few rows of which each is a cluster's: parts of the loops, not of rows.
    return choose(x, "f16", ("maximumf", "cmpf", "ogt"), "0xFC00"), [x], list(most(x))


def least_of_integers():
    x = integers(-5, 5, 300, 70, dtype=np.int32)
    return choose(x, "i32", ("minsi", "cmpi", "slt"), 2**31 - 1, "i32"), [x], [x.min(1), x.argmin(1).astype(np.int32)]


def last_of_equals():
    """At least as great takes the place: the last of equal ones."""
    x = integers(-5, 5, 4, 333, dtype=np.int32)
    want = 332 - x[:, ::-1].argmax(1)
    return choose(x, "i32", ("maxsi", "cmpi", "sge"), -(2**31)), [x], [x.max(1), want]


def most_with_numbers():
    """JAX's argmax: a NaN is the greatest, and the indices are a tensor."""
    n, columns = 4, 700
    x = integers(-40, 40, n, columns, dtype=np.int32).astype(np.float32)
    x[1, 600], x[1, 601] = np.nan, np.nan
    full, kinds = f"tensor<{n}x{columns}", f"tensor<{n}xf32>, tensor<{n}xi32>"
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
    ops = filled("a", "0xFF800000", f"tensor<{n}xf32>") + filled("b", 0, f"tensor<{n}xi32>") + f"%ne = tensor.empty() : {full}xi32>\n%at = "
    ops += generic(["(i, j) -> (i, j)"], "pp", "", f"%ne : {full}xi32>", "^bb0(%o: i32):\n%j = linalg.index 1 : index\n%k = arith.index_cast %j : index to i32\nlinalg.yield %k : i32", f"{full}xi32>")
    ops += "\n%y:2 = " + generic(["(i, j) -> (i, j)"] * 2 + ["(i, j) -> (i)"] * 2, "pr", f"%x, %at : {full}xf32>, {full}xi32>", f"%a, %b : {kinds}", body, f"({kinds})")
    return one(f"%x: {full}xf32>", f"tensor<{n}xi32>", ops, "%y#1"), [x], [x.argmax(1).astype(np.int32)]


def variance(columns):
    """torch-mlir's, of sums in f64: rows far from zero of which one element is another, infinite ones, NaN, and equal ones."""
    x = normal(7, columns, dtype=np.float16)
    x[1], x[1, 77] = 30_000, 30_016
    x[2] += 500
    x[3, 5], x[4, 9], x[5] = np.inf, np.nan, 3
    x[6] = np.where(np.arange(columns) % 2, 60_000, 59_968)
    whole, row, ones = f"tensor<7x{columns}x", "tensor<7xf64>", "(i, j) -> (i, j)"
    text = filled("zero", 0.0, row) + f"%n = arith.constant {columns}.0 : f64\n%we = tensor.empty() : {whole}f32>\n%de = tensor.empty() : {whole}f64>\n%re = tensor.empty() : tensor<7xf32>\n"
    convert = lambda to, name, frm, kind: f"%{name} = " + generic([ones] * 2, "pp", f"%{frm} : {whole}{kind}>", f"%{name}e : {whole}{to}>", f"^bb0(%v: {kind}, %o: {to}):\n%r = arith.extf %v : {kind} to {to}\nlinalg.yield %r : {to}", f"{whole}{to}>") + "\n"
    text += convert("f32", "w", "x", "f16") + convert("f64", "d", "w", "f32")
    add = "^bb0(%v: f64, %o: f64):\n%r = arith.addf %v, %o : f64\nlinalg.yield %r : f64"
    text += "%s = " + generic([ones, "(i, j) -> (i)"], "pr", f"%d : {whole}f64>", f"%zero : {row}", add, row)
    text += "\n%m = " + generic(["(i) -> (i)"] * 2, "p", f"%s : {row}", f"%zeroe : {row}", "^bb0(%v: f64, %o: f64):\n%r = arith.divf %v, %n : f64\nlinalg.yield %r : f64", row)
    text += "\n%a = " + generic([ones, "(i, j) -> (i)", ones], "pp", f"%d, %m : {whole}f64>, {row}", f"%de : {whole}f64>", "^bb0(%v: f64, %c: f64, %o: f64):\n%r = arith.subf %v, %c : f64\nlinalg.yield %r : f64", f"{whole}f64>")
    text += "\n%q = " + generic([ones] * 3, "pp", f"%a, %a : {whole}f64>, {whole}f64>", f"%de : {whole}f64>", "^bb0(%v: f64, %c: f64, %o: f64):\n%r = arith.mulf %v, %c : f64\nlinalg.yield %r : f64", f"{whole}f64>")
    text += "\n%t = " + generic([ones, "(i, j) -> (i)"], "pr", f"%q : {whole}f64>", f"%zero : {row}", add, row)
    text += "\n%y = " + generic(["(i) -> (i)"] * 2, "p", f"%t : {row}", "%re : tensor<7xf32>", "^bb0(%v: f64, %o: f32):\n%u = arith.divf %v, %n : f64\n%r = arith.truncf %u : f64 to f32\nlinalg.yield %r : f32", "tensor<7xf32>")
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64).var(1).astype(np.float32)
    return one(f"%x: {whole}f16>", "tensor<7xf32>", text, "%y"), [x], [want]


def variance_in_registers():
    return variance(4096)


def variance_in_shared_memory():
    return variance(20_000)


loops.CASES = [
    loss, loss_mean, loss_in_shared_memory, loss_of_a_cluster, loss_in_a_window, loss_in_windows_of_a_cluster, loss_or_nan,
    log_softmax_of_halves, log_softmax_of_windows, log_of_small_sums, gradient, masked_softmax,
    most_of_halves, least_of_computed, most_of_rows, most_in_shared_memory, least_of_integers, last_of_equals, most_with_numbers,
    variance_in_registers, variance_in_shared_memory,
]

if __name__ == "__main__":
    loops.main(*sys.argv[1:])
