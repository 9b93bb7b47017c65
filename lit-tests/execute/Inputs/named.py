"""Named operations of linalg, and products whose bodies convert their operands, beside numpy.

named.py FOLDER AXE TARGET [NAME ...]    compiles each module, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                         and compares the results; what it writes is left in FOLDER
"""
import subprocess
import sys
from pathlib import Path

import numpy as np

R = np.random.default_rng(2)
CASES = {}


def case(*inputs):
    def made(function):
        CASES[function.__name__] = (function, inputs)
        return function

    return made


def floats(*shape):
    return R.uniform(-2, 2, shape).astype(np.float32)


def bytes_(*shape, dtype=np.int8):
    info = np.iinfo(dtype)
    return R.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def exact(x):
    return x.astype(np.int64)


def wrapped(x):
    return (x & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


MATMUL = 'indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]'


def product(a, b, m, n, body, element="i32"):
    """A module of one generic product of %a and %b, of the types `a` and `b`, whose body is given from %x and %y to %r."""
    x, y = a[:-1].split("x")[-1], b[:-1].split("x")[-1]
    zero = "0.0" if element.startswith("f") else "0"
    return f"""func.func @main(%a: {a}, %b: {b}) -> tensor<{m}x{n}x{element}> {{
  %z = arith.constant {zero} : {element}
  %e = tensor.empty() : tensor<{m}x{n}x{element}>
  %f = linalg.fill ins(%z : {element}) outs(%e : tensor<{m}x{n}x{element}>) -> tensor<{m}x{n}x{element}>
  %r = linalg.generic {{{MATMUL}}} ins(%a, %b : {a}, {b}) outs(%f : tensor<{m}x{n}x{element}>) {{
  ^bb0(%x: {x}, %y: {y}, %o: {element}):
    {body}
    linalg.yield %s : {element}
  }} -> tensor<{m}x{n}x{element}>
  return %r : tensor<{m}x{n}x{element}>
}}
"""


@case(floats(17, 65))
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return """func.func @main(%x: tensor<17x65xf32>) -> tensor<17x65xf32> {
  %e = tensor.empty() : tensor<17x65xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<17x65xf32>) outs(%e : tensor<17x65xf32>) -> tensor<17x65xf32>
  return %r : tensor<17x65xf32>
}
""", e / e.sum(axis=1, keepdims=True)


@case(floats(2, 3, 40, 24), floats(2, 3, 40, 16))
def einsum(a, b):
    """`bhsd,bhse->bhed`, as torch-mlir writes it: dimensions of extent 1 are moved along with the others."""
    want = np.einsum("bhsd,bhse->bhed", a.astype(np.float64), b.astype(np.float64))
    return """func.func @main(%a: tensor<2x3x40x24xf32>, %b: tensor<2x3x40x16xf32>) -> tensor<2x3x16x24xf32> {
  %z = arith.constant 0.0 : f32
  %a1 = tensor.expand_shape %a [[0], [1], [2], [3, 4]] output_shape [2, 3, 40, 24, 1] : tensor<2x3x40x24xf32> into tensor<2x3x40x24x1xf32>
  %te = tensor.empty() : tensor<2x3x24x40x1xf32>
  %t = linalg.transpose ins(%a1 : tensor<2x3x40x24x1xf32>) outs(%te : tensor<2x3x24x40x1xf32>) permutation = [0, 1, 3, 2, 4]
  %t2 = tensor.collapse_shape %t [[0, 1], [2], [3, 4]] : tensor<2x3x24x40x1xf32> into tensor<6x24x40xf32>
  %b2 = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x40x16xf32> into tensor<6x40x16xf32>
  %pe = tensor.empty() : tensor<6x24x16xf32>
  %p0 = linalg.fill ins(%z : f32) outs(%pe : tensor<6x24x16xf32>) -> tensor<6x24x16xf32>
  %p = linalg.batch_matmul ins(%t2, %b2 : tensor<6x24x40xf32>, tensor<6x40x16xf32>) outs(%p0 : tensor<6x24x16xf32>) -> tensor<6x24x16xf32>
  %p5 = tensor.expand_shape %p [[0, 1], [2], [3, 4]] output_shape [2, 3, 24, 1, 16] : tensor<6x24x16xf32> into tensor<2x3x24x1x16xf32>
  %ue = tensor.empty() : tensor<2x3x16x24x1xf32>
  %u = linalg.transpose ins(%p5 : tensor<2x3x24x1x16xf32>) outs(%ue : tensor<2x3x16x24x1xf32>) permutation = [0, 1, 4, 2, 3]
  %y = tensor.collapse_shape %u [[0], [1], [2], [3, 4]] : tensor<2x3x16x24x1xf32> into tensor<2x3x16x24xf32>
  return %y : tensor<2x3x16x24xf32>
}
""", want.astype(np.float32)


@case(floats(40, 24), floats(16, 24))
def einsum_of_one(a, b):
    """`ij,kj->ik`: a product of a batch of one."""
    want = np.einsum("ij,kj->ik", a.astype(np.float64), b.astype(np.float64))
    return """func.func @main(%a: tensor<40x24xf32>, %b: tensor<16x24xf32>) -> tensor<40x16xf32> {
  %z = arith.constant 0.0 : f32
  %b1 = tensor.expand_shape %b [[0], [1, 2]] output_shape [16, 24, 1] : tensor<16x24xf32> into tensor<16x24x1xf32>
  %a1 = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 40, 24] : tensor<40x24xf32> into tensor<1x40x24xf32>
  %te = tensor.empty() : tensor<24x16x1xf32>
  %t = linalg.transpose ins(%b1 : tensor<16x24x1xf32>) outs(%te : tensor<24x16x1xf32>) permutation = [1, 0, 2]
  %t2 = tensor.collapse_shape %t [[0], [1, 2]] : tensor<24x16x1xf32> into tensor<24x16xf32>
  %t3 = tensor.expand_shape %t2 [[0, 1], [2]] output_shape [1, 24, 16] : tensor<24x16xf32> into tensor<1x24x16xf32>
  %pe = tensor.empty() : tensor<1x40x16xf32>
  %p0 = linalg.fill ins(%z : f32) outs(%pe : tensor<1x40x16xf32>) -> tensor<1x40x16xf32>
  %p = linalg.batch_matmul ins(%a1, %t3 : tensor<1x40x24xf32>, tensor<1x24x16xf32>) outs(%p0 : tensor<1x40x16xf32>) -> tensor<1x40x16xf32>
  %y = tensor.collapse_shape %p [[0, 1], [2]] : tensor<1x40x16xf32> into tensor<40x16xf32>
  return %y : tensor<40x16xf32>
}
""", want.astype(np.float32)


@case(floats(50, 70), floats(50, 70))
def dots(a, b):
    """`nd,nd->n`: a product of a vector and one of its own for each."""
    want = np.einsum("nd,nd->n", a.astype(np.float64), b.astype(np.float64))
    return """func.func @main(%a: tensor<50x70xf32>, %b: tensor<50x70xf32>) -> tensor<50xf32> {
  %z = arith.constant 0.0 : f32
  %a1 = tensor.expand_shape %a [[0], [1, 2]] output_shape [50, 1, 70] : tensor<50x70xf32> into tensor<50x1x70xf32>
  %b1 = tensor.expand_shape %b [[0], [1, 2]] output_shape [50, 70, 1] : tensor<50x70xf32> into tensor<50x70x1xf32>
  %pe = tensor.empty() : tensor<50x1x1xf32>
  %p0 = linalg.fill ins(%z : f32) outs(%pe : tensor<50x1x1xf32>) -> tensor<50x1x1xf32>
  %p = linalg.batch_matmul ins(%a1, %b1 : tensor<50x1x70xf32>, tensor<50x70x1xf32>) outs(%p0 : tensor<50x1x1xf32>) -> tensor<50x1x1xf32>
  %y = tensor.collapse_shape %p [[0, 1, 2]] : tensor<50x1x1xf32> into tensor<50xf32>
  return %y : tensor<50xf32>
}
""", want.astype(np.float32)


@case(floats(17, 65))
def softmax_of_columns(x):
    e = np.exp(x - x.max(axis=0, keepdims=True))
    return """func.func @main(%x: tensor<17x65xf32>) -> tensor<17x65xf32> {
  %e = tensor.empty() : tensor<17x65xf32>
  %r = linalg.softmax dimension(0) ins(%x : tensor<17x65xf32>) outs(%e : tensor<17x65xf32>) -> tensor<17x65xf32>
  return %r : tensor<17x65xf32>
}
""", e / e.sum(axis=0, keepdims=True)


@case(floats(17, 24), floats(40, 24))
def contract(a, b):
    return """func.func @main(%a: tensor<17x24xf32>, %b: tensor<40x24xf32>) -> tensor<17x40xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<17x40xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<17x40xf32>) -> tensor<17x40xf32>
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<17x24xf32>, tensor<40x24xf32>) outs(%f : tensor<17x40xf32>) -> tensor<17x40xf32>
  return %r : tensor<17x40xf32>
}
""", a @ b.T


@case(floats(17, 24), floats(17, 24))
def elementwise(a, b):
    kind = "tensor<17x24xf32>"
    return f"""func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %s = linalg.elementwise kind=#linalg.elementwise_kind<add> ins(%a, %b : {kind}, {kind}) outs(%e : {kind}) -> {kind}
  %r = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%s : {kind}) outs(%e : {kind}) -> {kind}
  return %r : {kind}
}}
""", np.exp(a + b)


@case(floats(16, 24))
def map_reduce_broadcast(x):
    return """func.func @main(%x: tensor<16x24xf32>) -> tensor<24x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %v = tensor.empty() : tensor<16xf32>
  %t = tensor.empty() : tensor<24x16xf32>
  %q = linalg.map { math.absf } ins(%x : tensor<16x24xf32>) outs(%e : tensor<16x24xf32>)
  %f = linalg.fill ins(%z : f32) outs(%v : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.reduce { arith.addf } ins(%q : tensor<16x24xf32>) outs(%f : tensor<16xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<16xf32>) outs(%t : tensor<24x16xf32>) dimensions = [0]
  %u = linalg.transpose ins(%q : tensor<16x24xf32>) outs(%t : tensor<24x16xf32>) permutation = [1, 0]
  %r = linalg.div ins(%u, %b : tensor<24x16xf32>, tensor<24x16xf32>) outs(%t : tensor<24x16xf32>) -> tensor<24x16xf32>
  return %r : tensor<24x16xf32>
}
""", (abs(x) / abs(x).sum(axis=1, keepdims=True)).T


@case(floats(3, 17, 24), floats(3, 24, 40), floats(3, 24))
def batches(a, b, v):
    return """func.func @main(%a: tensor<3x17x24xf32>, %b: tensor<3x24x40xf32>, %v: tensor<3x24xf32>) -> (tensor<3x17x40xf32>, tensor<3x17xf32>, tensor<3x40xf32>, tensor<17x40xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x17x40xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3x17x40xf32>) -> tensor<3x17x40xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<3x17x24xf32>, tensor<3x24x40xf32>) outs(%f : tensor<3x17x40xf32>) -> tensor<3x17x40xf32>
  %g = tensor.empty() : tensor<3x17xf32>
  %h = linalg.fill ins(%z : f32) outs(%g : tensor<3x17xf32>) -> tensor<3x17xf32>
  %s = linalg.batch_matvec ins(%a, %v : tensor<3x17x24xf32>, tensor<3x24xf32>) outs(%h : tensor<3x17xf32>) -> tensor<3x17xf32>
  %i = tensor.empty() : tensor<3x40xf32>
  %j = linalg.fill ins(%z : f32) outs(%i : tensor<3x40xf32>) -> tensor<3x40xf32>
  %t = linalg.batch_vecmat ins(%v, %b : tensor<3x24xf32>, tensor<3x24x40xf32>) outs(%j : tensor<3x40xf32>) -> tensor<3x40xf32>
  %k = tensor.empty() : tensor<17x40xf32>
  %l = linalg.fill ins(%z : f32) outs(%k : tensor<17x40xf32>) -> tensor<17x40xf32>
  %u = linalg.batch_reduce_matmul ins(%a, %b : tensor<3x17x24xf32>, tensor<3x24x40xf32>) outs(%l : tensor<17x40xf32>) -> tensor<17x40xf32>
  return %r, %s, %t, %u : tensor<3x17x40xf32>, tensor<3x17xf32>, tensor<3x40xf32>, tensor<17x40xf32>
}
""", a @ b, np.einsum("bmk,bk->bm", a, v), np.einsum("bk,bkn->bn", v, b), np.einsum("bmk,bkn->mn", a, b)


@case(floats(32, 48))
def pack(x):
    return """func.func @main(%x: tensor<32x48xf32>) -> tensor<6x4x8x8xf32> {
  %e = tensor.empty() : tensor<6x4x8x8xf32>
  %r = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %e : tensor<32x48xf32> -> tensor<6x4x8x8xf32>
  return %r : tensor<6x4x8x8xf32>
}
""", x.reshape(4, 8, 6, 8).transpose(2, 0, 1, 3)


@case(floats(4, 6, 8, 8))
def unpack(x):
    return """func.func @main(%x: tensor<4x6x8x8xf32>) -> tensor<32x48xf32> {
  %e = tensor.empty() : tensor<32x48xf32>
  %r = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %e : tensor<4x6x8x8xf32> -> tensor<32x48xf32>
  return %r : tensor<32x48xf32>
}
""", x.transpose(0, 2, 1, 3).reshape(32, 48)


@case(bytes_(17, 48), bytes_(48, 40))
def quantized_matmul(a, b):
    return """func.func @main(%a: tensor<17x48xi8>, %b: tensor<48x40xi8>) -> tensor<17x40xi32> {
  %z = arith.constant 0 : i32
  %za = arith.constant 7 : i32
  %zb = arith.constant -3 : i32
  %e = tensor.empty() : tensor<17x40xi32>
  %f = linalg.fill ins(%z : i32) outs(%e : tensor<17x40xi32>) -> tensor<17x40xi32>
  %r = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<17x48xi8>, tensor<48x40xi8>, i32, i32) outs(%f : tensor<17x40xi32>) -> tensor<17x40xi32>
  return %r : tensor<17x40xi32>
}
""", wrapped((exact(a) - 7) @ (exact(b) + 3))


@case(bytes_(2, 17, 48), bytes_(2, 48, 40))
def quantized_batch_matmul(a, b):
    return """func.func @main(%a: tensor<2x17x48xi8>, %b: tensor<2x48x40xi8>) -> tensor<2x17x40xi32> {
  %z = arith.constant 0 : i32
  %za = arith.constant 7 : i32
  %e = tensor.empty() : tensor<2x17x40xi32>
  %f = linalg.fill ins(%z : i32) outs(%e : tensor<2x17x40xi32>) -> tensor<2x17x40xi32>
  %r = linalg.quantized_batch_matmul ins(%a, %b, %za, %z : tensor<2x17x48xi8>, tensor<2x48x40xi8>, i32, i32) outs(%f : tensor<2x17x40xi32>) -> tensor<2x17x40xi32>
  return %r : tensor<2x17x40xi32>
}
""", wrapped((exact(a) - 7) @ exact(b))


WIDEN = "%c = arith.{0} %x : i8 to i32\n    %d = arith.{1} %y : i8 to i32\n    %p = arith.muli %c, %d : i32\n    %s = arith.addi %o, %p : i32"


@case(bytes_(17, 48), bytes_(48, 40))
def signed_bytes(a, b):
    return product("tensor<17x48xi8>", "tensor<48x40xi8>", 17, 40, WIDEN.format("extsi", "extsi")), wrapped(exact(a) @ exact(b))


@case(bytes_(17, 16), bytes_(16, 40))
def short_bytes(a, b):
    return product("tensor<17x16xi8>", "tensor<16x40xi8>", 17, 40, WIDEN.format("extsi", "extsi")), wrapped(exact(a) @ exact(b))


@case(bytes_(64, 16), bytes_(32, 16))
def short_rows(a, b):
    text = product("tensor<64x16xi8>", "tensor<32x16xi8>", 64, 32, WIDEN.format("extsi", "extsi"))
    return text.replace("(m, n, k) -> (k, n)", "(m, n, k) -> (n, k)"), wrapped(exact(a) @ exact(b).T)


@case(bytes_(17, 48, dtype=np.uint8), bytes_(48, 40, dtype=np.uint8))
def unsigned_bytes(a, b):
    return product("tensor<17x48xi8>", "tensor<48x40xi8>", 17, 40, WIDEN.format("extui", "extui")), wrapped(exact(a) @ exact(b))


@case(bytes_(17, 48, dtype=np.uint8), bytes_(48, 40))
def mixed_bytes(a, b):
    zero = WIDEN.format("extui", "extsi").replace("%p = arith.muli %c, %d", "%k = arith.constant 128 : i32\n    %q = arith.subi %c, %k : i32\n    %p = arith.muli %q, %d")
    return product("tensor<17x48xi8>", "tensor<48x40xi8>", 17, 40, zero), wrapped((exact(a) - 128) @ exact(b))


@case(floats(17, 48).astype(np.float16), bytes_(48, 40))
def bytes_beside_halves(a, b):
    body = "%d = arith.sitofp %y : i8 to f16\n    %p = arith.mulf %x, %d : f16\n    %w = arith.extf %p : f16 to f32\n    %s = arith.addf %o, %w : f32"
    return product("tensor<17x48xf16>", "tensor<48x40xi8>", 17, 40, body, "f32"), a.astype(np.float32) @ b.astype(np.float32)


@case(floats(17, 48).astype(np.float16), bytes_(48, 20), R.uniform(0.01, 0.1, 40).astype(np.float16))
def nibbles(a, b, scales):
    """Weights of 4 bits, two a byte, with a scale a column."""
    low, high = (exact(b) << 60) >> 60, exact(b) >> 4
    weights = np.stack([low, high], axis=2).reshape(48, 40)
    return """func.func @main(%a: tensor<17x48xf16>, %b: tensor<48x20xi8>, %c: tensor<40xf16>) -> tensor<17x40xf32> {
  %z = arith.constant 0.0 : f32
  %u = tensor.empty() : tensor<48x20x2xf16>
  %shifts = arith.constant dense<[4, 0]> : tensor<2xi8>
  %w = linalg.generic {indexing_maps = [affine_map<(k, n, h) -> (k, n)>, affine_map<(k, n, h) -> (h)>, affine_map<(k, n, h) -> (k, n, h)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b, %shifts : tensor<48x20xi8>, tensor<2xi8>) outs(%u : tensor<48x20x2xf16>) {
  ^bb0(%x: i8, %h: i8, %o: f16):
    %four = arith.constant 4 : i8
    %up = arith.shli %x, %h : i8
    %down = arith.shrsi %up, %four : i8
    %f = arith.sitofp %down : i8 to f16
    linalg.yield %f : f16
  } -> tensor<48x20x2xf16>
  %v = tensor.collapse_shape %w [[0], [1, 2]] : tensor<48x20x2xf16> into tensor<48x40xf16>
  %e = tensor.empty() : tensor<17x40xf32>
  %g = linalg.fill ins(%z : f32) outs(%e : tensor<17x40xf32>) -> tensor<17x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %v, %c : tensor<17x48xf16>, tensor<48x40xf16>, tensor<40xf16>) outs(%g : tensor<17x40xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f16, %o: f32):
    %d = arith.mulf %y, %s : f16
    %p = arith.extf %x : f16 to f32
    %q = arith.extf %d : f16 to f32
    %t = arith.mulf %p, %q : f32
    %n = arith.addf %o, %t : f32
    linalg.yield %n : f32
  } -> tensor<17x40xf32>
  return %r : tensor<17x40xf32>
}
""", a.astype(np.float32) @ (weights.astype(np.float16) * scales).astype(np.float32)


@case(floats(5, 7))
def static_of_dynamic(x):
    """A dynamic operand of an operation whose result says its extents."""
    return """func.func @main(%x: tensor<?x7xf32>) -> tensor<5x7xf32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %d = tensor.empty() : tensor<5x1xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%d : tensor<5x1xf32>) -> tensor<5x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x7xf32>) outs(%f : tensor<5x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<5x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x7xf32>, tensor<5x1xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.subf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}
""", x - x.sum(axis=1, keepdims=True)


def run(axe, *arguments):
    done = subprocess.run([axe, *map(str, arguments)], capture_output=True, text=True)
    return f"axe {arguments[0]}: {done.stdout}{done.stderr}" if done.returncode != 0 else ""


def check(folder, axe, target, name):
    function, inputs = CASES[name]
    text, *wants = function(*inputs)
    folder = folder / f"{name}.{target}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "module.mlir").write_text(text)
    failed = run(axe, "compile", folder / "module.mlir", "--target", target, "-o", folder / "module.axe")
    arguments = []
    for at, array in enumerate(inputs):
        np.save(folder / f"arg{at}.npy", array)
        arguments += ["--input", f"arg{at}={folder / f'arg{at}.npy'}"]
    failed = failed or run(axe, "run" if target == "cpu" else "sim", folder / "module.axe", *arguments, "--out", folder / "out")
    if failed:
        print(f"{name}: {failed}")
        return 1
    for at, want in enumerate(wants):
        got = np.load(folder / f"out/out{at}.npy")
        same = got.shape == want.shape and got.dtype == want.dtype
        close = (got == want).all() if want.dtype.kind == "i" else np.allclose(got, want, rtol=2e-3 if len(inputs) > 1 else 1e-5, atol=1e-3 * abs(want).max() if len(inputs) > 1 else 1e-5)
        if not (same and close):
            print(f"{name}: result {at}: expected {want.dtype} {want.shape}, got {got.dtype} {got.shape}: {want.flat[:4]} {got.flat[:4]}")
            return 1
    return 0


if __name__ == "__main__":
    folder, axe, target, *names = sys.argv[1:]
    sys.exit(1 if sum([check(Path(folder), axe, target, name) for name in names or CASES]) else 0)
