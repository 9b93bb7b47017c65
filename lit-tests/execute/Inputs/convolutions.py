"""Convolutions that are planned as products, beside numpy.

convolutions.py FOLDER AXE TARGET [NAME ...]    as loops.py
"""
import sys
from pathlib import Path

import numpy as np
from loops import convolution, filled, floats, integers, one, run


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def module(op, x, w, shape, types, stride=1, dilation=1, rank=2, bias=False):
    """The function of one convolution; `types` are the operands' and the result's, images of `?` are a dynamic batch."""
    of, to = types
    x, w, y = tensor(x, of), tensor(w, of), tensor(shape, to)
    size = ""
    ops = ""
    if "?" in y:
        ops += f"%c0 = arith.constant 0 : index\n%n = tensor.dim %x, %c0 : {x}\n"
        size = "%n"
    ops += f"%zero = arith.constant {'0' if to == 'i32' else '0.0'} : {to}\n%e = tensor.empty({size}) : {y}\n"
    if bias:
        ops += f"%s = linalg.broadcast ins(%b : tensor<{shape[1]}x{to}>) outs(%e : {y}) dimensions = [0, 2, 3]\n"
    else:
        ops += f"%s = linalg.fill ins(%zero : {to}) outs(%e : {y}) -> {y}\n"
    attributes = f"dilations = dense<{dilation}> : vector<{rank}xi64>, strides = dense<{stride}> : vector<{rank}xi64>"
    ops += f"%y = linalg.{op} {{{attributes}}} ins(%x, %w : {x}, {w}) outs(%s : {y}) -> {y}"
    arguments = f"%x: {x}, %w: {w}" + (f", %b: tensor<{shape[1]}x{to}>" if bias else "")
    return one(arguments, y, ops, "%y")


def biased():
    x, w, b = floats(2, 16, 34, 34, dtype=np.float16), floats(32, 16, 3, 3, dtype=np.float16), floats(32)
    text = module("conv_2d_nchw_fchw", x.shape, w.shape, [2, 32, 32, 32], ("f16", "f32"), bias=True)
    return text, [x, w, b], [convolution(x, w, 1, 1) + b[:, None, None]]


def strided():
    x, w = floats(1, 32, 51, 51), floats(32, 32, 3, 3)
    return module("conv_2d_nchw_fchw", x.shape, w.shape, [1, 32, 24, 24], ("f32", "f32"), 2, 2), [x, w], [convolution(x, w, 2, 2)]


def channels_last():
    x, w = integers(-9, 9, 3, 24, 24, 16, dtype=np.int8), integers(-9, 9, 3, 3, 16, 24, dtype=np.int8)
    text = module("conv_2d_nhwc_hwcf", ["?", 24, 24, 16], w.shape, ["?", 22, 22, 24], ("i8", "i32"))
    y = convolution(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), 1, 1)
    return text, [x, w], [y.transpose(0, 2, 3, 1).astype(np.int32)]


def grouped():
    x, w = floats(2, 2, 16, 26, 26, dtype=np.float16), floats(2, 32, 16, 3, 3, dtype=np.float16)
    text = module("conv_2d_ngchw_gfchw", x.shape, w.shape, [2, 2, 32, 24, 24], ("f16", "f32"))
    return text, [x, w], [np.stack([convolution(x[:, g], w[g], 1, 1) for g in range(2)], 1)]


def pointwise():
    x, w = floats(2, 40, 7, 9, dtype=np.float16), floats(24, 40, 1, 1, dtype=np.float16)
    return module("conv_2d_nchw_fchw", x.shape, w.shape, [2, 24, 7, 9], ("f16", "f32")), [x, w], [convolution(x, w, 1, 1)]


def sequence():
    x, w = floats(2, 32, 514), floats(64, 32, 5)
    text = module("conv_1d_ncw_fcw", x.shape, w.shape, [2, 64, 255], ("f32", "f32"), 2, rank=1)
    return text, [x, w], [convolution(x[:, :, None], w[:, :, None], 1, 1)[:, :, 0, ::2].copy()]


def main(folder, axe, target, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for made in (biased, strided, channels_last, grouped, pointwise, sequence):
        if not names or made.__name__ in names:
            run(folder, axe, target, made.__name__, made())


if __name__ == "__main__":
    main(*sys.argv[1:])
