"""Attention in linalg, as frameworks write it, with inputs and what numpy makes of them in f64.

    python3 fused_attention.py FOLDER [--length 300 ...]     # module.mlir, arg0.npy, ..., out0.npy
    python3 fused_attention.py FOLDER --draw SEED            # the same, of options that are drawn
    python3 fused_attention.py FOLDER --text ...             # module.mlir alone
"""
import argparse
import copy
import random
import re
from pathlib import Path

import numpy as np

# Pages of a cache for each that is read.
PAGES = 2
# Offsets of documents.
OFFSETS = 6
SUMS = ["none", "own", "apart", "jax", "plain", "weights", "log2"]
MASKS = ["none", "additive", "boolean", "guarded", "padding", "causal", "triangle", "added_causal", "window", "causal_bias", "jax", "capped", "segments"]
# Masks by the lengths of sequences, which are data. `_low` hides keys as JAX does, `_guarded` makes rows that see none zero.
LENGTHS = ["lengths", "lengths_guarded", "lengths_low", "cached", "cached_low", "both_guarded", "both_low", "behind"]
# Masks by the segments of packed sequences. `segments_low` hides keys as JAX does, and has one tensor for rows and keys.
SEGMENTS = ["segments", "segments_causal", "segments_guarded", "segments_low"]
ELEMENT = {"f16": "f16", "bf16": "bf16", "e4m3": "f8E4M3FN"}
GUARDED = ["guarded", "lengths_guarded", "both_guarded", "segments_guarded"]


def options(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name, default in dict(batch=1, length=0, keys=0, heads=1, kv_heads=0, dim=64, values=0, window=20, seed=7, page=0).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--text", action="store_true", help="write module.mlir alone")
    parser.add_argument("--dynamic", action="store_true", help="batch, queries and keys are extents of the arguments, known at run time only")
    parser.add_argument("--dtype", choices=["f16", "bf16", "e4m3"], default="f16", help="of operands; results have it too, but for e4m3")
    parser.add_argument("--result", choices=["f16", "bf16"], help="the type of results, of operands in e4m3")
    parser.add_argument("--descale", choices=["none", "apart", "divided"], default="none", help="scores are multiplied by a number of the queries' head and one of "
                        "the keys', results by one of the values' (or divided by its inverse)")
    parser.add_argument("--raised", type=float, default=1.0, help="weights are multiplied by this before they are rounded to e4m3")
    parser.add_argument("--narrow", action="store_true", help="products are of operands in e4m3")
    parser.add_argument("--exact", action="store_true", help="weights are powers of two, which e4m3 has: scores are integers times ln 2")
    parser.add_argument("--keep-weights", action="store_true", help="weights are not rounded to e4m3")
    parser.add_argument("--layout", choices=["bhsd", "bshd"], default="bhsd")
    parser.add_argument("--mask", choices=MASKS + ["boolean_low"] + LENGTHS + SEGMENTS[1:], default="none")
    parser.add_argument("--lengths", default="", help="one a problem of the batch, repeated; --lengths=-1,... where the first is negative")
    parser.add_argument("--index", choices=["i32", "i64"], default="i32", help="the type of lengths")
    parser.add_argument("--ids", choices=["even", "documents", "random", "apart", "offsets"], default="even", help="segments: four of a size; documents one after the other; "
                        "in any order; such that most queries have no key; documents whose offsets are data, and numbers computed of those")
    parser.add_argument("--id-type", choices=["i8", "i16", "i32", "i64"], default="i32")
    parser.add_argument("--soft-cap", type=float, default=0, help="scores are cap * tanh(score / cap)")
    parser.add_argument("--cap-last", action="store_true", help="the mask comes first, as a program may write it too")
    parser.add_argument("--alibi", action="store_true", help="the distance of row and key times a number of the head is subtracted")
    parser.add_argument("--steep", type=float, default=1, help="queries are as many times as large (a power of two, which bf16 keeps): maxima of rows grow more from block to block")
    parser.add_argument("--scale", choices=["operands", "scores", "divided"], default="scores")
    parser.add_argument("--divide", choices=["before", "after", "reciprocal"], default="before")
    parser.add_argument("--round", action="store_true", help="scores and weights go through 16 bits, as torch rounds them")
    parser.add_argument("--no-maximum", action="store_true", help="the row's maximum is not subtracted")
    parser.add_argument("--exp2", action="store_true", help="weights are powers of two")
    parser.add_argument("--sums", choices=SUMS, default="none", help="a second result, log sum exp of each row's scores: of the softmax's own maximum "
                        "and sum, apart from them with a maximum that is finite (torch, JAX), without one; weights of it; to base two")
    a = parser.parse_args(arguments)
    if a.draw is not None:
        draw(a)
    a.result = a.result or ("bf16" if a.dtype == "e4m3" else a.dtype)
    a.keys, a.kv_heads, a.values = a.keys or a.length, a.kv_heads or a.heads, a.values or a.dim
    return a


def draw(a):
    r = random.Random(a.draw)
    a.batch, a.kv_heads = r.choice([1, 2]), r.choice([1, 1, 2])
    a.heads = a.kv_heads * r.choice([1, 1, 2, 3])
    a.length, a.keys = r.choice([1, 16, 77, 130, 200]), r.choice([8, 33, 100, 257])
    a.dim = r.choice([16, 32, 64, 80, 96])
    a.values = r.choice([a.dim, a.dim, 48])
    a.dtype, a.layout = r.choice(["f16", "bf16"]), r.choice(["bhsd", "bshd"])
    a.mask, a.scale = r.choice(MASKS), r.choice(["operands", "scores", "divided"])
    a.divide, a.round, a.exp2 = r.choice(["before", "after", "reciprocal"]), r.random() < 0.3, r.random() < 0.3
    a.no_maximum = a.mask in ("none", "causal") and a.dim <= 32 and r.random() < 0.3
    a.seed = a.draw
    a.steep = 1 if a.no_maximum else random.Random(a.draw).choice([1, 1, 4, 32])
    a.soft_cap, a.alibi = r.choice([0, 0, 0, 5.0]), r.random() < 0.2
    a.cap_last = a.soft_cap and a.mask in ("none", "additive") and r.random() < 0.5
    if a.mask == "segments":
        a.mask, a.ids = r.choice(["segments", "segments_guarded"]), r.choice(["even", "documents", "random"])
    print("drawn:", {key: value for key, value in vars(a).items() if key not in ("folder", "draw")})


class Module:
    """The text of a function, value by value."""

    def __init__(self):
        self.lines, self.number = [], 0

    def add(self, text):
        self.number += 1
        self.lines.append(f"  %v{self.number} = {text}")
        return f"%v{self.number}"

    def generic(self, ins, shape, element, body, loops=None, reduced=0, init=None):
        """`ins` are (value, its indices, shape, element type); `body` names them %a0, %a1, ..."""
        loops = loops or len(shape) + reduced
        dims = ", ".join(f"d{at}" for at in range(loops))
        maps = [f"affine_map<({dims}) -> ({', '.join(index)})>" for _, index, _, _ in ins]
        maps.append(f"affine_map<({dims}) -> ({', '.join(f'd{at}' for at in range(len(shape)))})>")
        kinds = ", ".join(['"parallel"'] * (loops - reduced) + ['"reduction"'] * reduced)
        result = tensor(shape, element)
        out = self.add(f"tensor.empty() : {result}")
        if init is not None:
            constant = self.add(f"arith.constant {init}" + (f" : {element}" if element != "i1" else ""))
            out = self.add(f"linalg.fill ins({constant} : {element}) outs({out} : {result}) -> {result}")
        given = f"ins({', '.join(v for v, *_ in ins)} : {', '.join(tensor(s, e) for _, _, s, e in ins)}) " if ins else ""
        arguments = ", ".join([f"%a{at}: {e}" for at, (*_, e) in enumerate(ins)] + [f"%acc: {element}"])
        return self.add(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} {given}outs({out} : {result}) {{\n"
            f"  ^bb0({arguments}):\n    {body}\n  }} -> {result}")


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, shape))}{'x' if shape else ''}{element}>"


# Extents that stand for those which are known at run time only: primes, which no other number of a module is a multiple of.
BATCH, LENGTH, KEYS = 1009, 1013, 1019


def dynamic(a):
    """The module's text with dynamic batch, queries and keys: as for these extents, which are then read of the arguments."""
    own = copy.copy(a)
    own.batch, own.length, own.keys = BATCH, LENGTH, LENGTH if a.keys == a.length else KEYS
    text, _ = module(own)
    at = ["0", "2"] if a.layout == "bhsd" else ["0", "1"]
    types = re.search(r"%arg0: (tensor<[^>]*>), %arg1: (tensor<[^>]*>)", text).groups()
    known = {BATCH: ("%arg0", at[0]), LENGTH: ("%arg0", at[1]), own.keys: ("%arg1", at[1])}
    names, lines = {}, []

    def name(number):
        if number in names:
            return names[number]
        names[number] = f"%n{number}"
        prime = next(prime for prime in known if number % prime == 0)
        if number == prime:
            argument, dim = known[prime]
            lines.append(f"  %c{number} = arith.constant {dim} : index\n  %n{number} = tensor.dim {argument}, %c{number} : {types[int(argument[-1])]}")
        else:
            rest = name(number // prime) if is_dynamic(number // prime) else f"%k{number}"
            if rest[1] == "k":
                lines.append(f"  %k{number} = arith.constant {number // prime} : index")
            lines.append(f"  %n{number} = arith.muli {name(prime)}, {rest} : index")
        return names[number]

    is_dynamic = lambda number: any(number % prime == 0 for prime in known)
    dims = lambda type: [int(dim) for dim in re.findall(r"(\d+)x", type)]
    sizes = lambda numbers: [name(number) for number in numbers if is_dynamic(number)]
    text = re.sub(r"tensor.empty\(\) : (tensor<[^>]*>)", lambda found: f"tensor.empty({', '.join(sizes(dims(found[1])))}) : {found[1]}", text)
    shape = lambda found: "output_shape [" + ", ".join(name(int(own)) if is_dynamic(int(own)) else own for own in found[1].split(", ")) + "]"
    text = re.sub(r"output_shape \[([^\]]*)\]", shape, text)
    head, rest = text.split("\n", 1)
    text = "\n".join([head, *lines, rest])
    text = re.sub(r"tensor<([^>]*)>", lambda found: "tensor<" + re.sub(r"\d+(?=x)", lambda own: "?" if is_dynamic(int(own[0])) else own[0], found[1]) + ">", text)
    assert not re.search(rf"[^%nck\d]({BATCH}|{LENGTH}|{KEYS})\b", text), "a mask that says an extent"
    return text


def scale_of(a):
    return float(np.log(2)) if a.exact else a.dim ** -0.5


def all_dims(rank):
    return [f"d{at}" for at in range(rank)]


def module(a):
    """The module's text, and the types of a mask's tensor."""
    m, t, group = Module(), ELEMENT[a.dtype], a.heads // a.kv_heads
    b, h, s, k, d, v = a.batch, a.heads, a.length, a.keys, a.dim, a.values
    stored = lambda heads, length, dim: (b, heads, length, dim) if a.layout == "bhsd" else (b, length, heads, dim)
    arguments = [(stored(h, s, d), t), (stored(a.kv_heads, k, d), t), (stored(a.kv_heads, k, v), t)]
    operands = []
    for number, (heads, length, dim) in enumerate([(h, s, d), (a.kv_heads, k, d), (a.kv_heads, k, v)]):
        value, shape = f"%arg{number}", (b, heads, length, dim)
        if number and a.page:
            value = of_pages(m, a, number, (heads, length, dim), arguments)
        elif a.layout == "bshd":
            out = m.add(f"tensor.empty() : {tensor(shape, t)}")
            value = m.add(f"linalg.transpose ins({value} : {tensor(stored(heads, length, dim), t)}) outs({out} : {tensor(shape, t)}) permutation = [0, 2, 1, 3]")
        if number and group > 1:
            wide = (b, heads, group, length, dim)
            value = m.generic([(value, ["d0", "d1", "d3", "d4"], shape, t)], wide, t, f"linalg.yield %a0 : {t}")
            shape = (b, h, length, dim)
            value = m.add(f"tensor.collapse_shape {value} [[0], [1, 2], [3], [4]] : {tensor(wide, t)} into {tensor(shape, t)}")
        if not a.round and not a.narrow:
            value = m.generic([(value, all_dims(4), shape, t)], shape, "f32", f"%0 = arith.extf %a0 : {t} to f32\n    linalg.yield %0 : f32")
        operands.append((value, shape))
    e = t if a.round else "f32"
    # The type of products' operands.
    f = t if a.narrow else e
    scale, each = scale_of(a), d ** -0.25
    if a.scale == "operands":
        for number in (0, 1):
            value, shape = operands[number]
            body = f"%c = arith.constant {each!r} : {e}\n    %0 = arith.mulf %a0, %c : {e}\n    linalg.yield %0 : {e}"
            operands[number] = m.generic([(value, all_dims(4), shape, e)], shape, e, body), shape
    (q, _), (key, _), (value, _) = operands
    key_t = (b, h, d, k)
    out = m.add(f"tensor.empty() : {tensor(key_t, f)}")
    key = m.add(f"linalg.transpose ins({key} : {tensor((b, h, k, d), f)}) outs({out} : {tensor(key_t, f)}) permutation = [0, 1, 3, 2]")
    flat = lambda value, shape, element: m.add(f"tensor.collapse_shape {value} [[0, 1], [2], [3]] : {tensor(shape, element)} into {tensor((b * h, *shape[2:]), element)}")

    def product(x, xs, y, ys, shape):
        x, y = flat(x, xs, f), flat(y, ys, f)
        low = (b * h, *shape[2:])
        zero, out = m.add(f"arith.constant 0.0 : {e}"), m.add(f"tensor.empty() : {tensor(low, e)}")
        out = m.add(f"linalg.fill ins({zero} : {e}) outs({out} : {tensor(low, e)}) -> {tensor(low, e)}")
        flat_types = f"{tensor((b * h, *xs[2:]), f)}, {tensor((b * h, *ys[2:]), f)}"
        z = m.add(f"linalg.batch_matmul ins({x}, {y} : {flat_types}) outs({out} : {tensor(low, e)}) -> {tensor(low, e)}")
        return m.add(f"tensor.expand_shape {z} [[0, 1], [2], [3]] output_shape {list(shape)} : {tensor(low, e)} into {tensor(shape, e)}")

    full = (b, h, s, k)
    x = product(q, (b, h, s, d), key, key_t, full)
    each = lambda ins, element, body: m.generic(ins, full, element, body)
    of = lambda value, element=e: (value, all_dims(4), full, element)
    if a.descale != "none":
        for name in ("qs", "ks"):
            x = each([of(x), of_head(m, a, name)], e, f"%0 = arith.mulf %a0, %a1 : {e}\n    linalg.yield %0 : {e}")
    if a.scale == "scores":
        x = each([of(x)], e, f"%c = arith.constant {scale!r} : {e}\n    %0 = arith.mulf %a0, %c : {e}\n    linalg.yield %0 : {e}")
    if a.scale == "divided":
        x = each([of(x)], e, f"%c = arith.constant {1 / scale!r} : {e}\n    %0 = arith.divf %a0, %c : {e}\n    linalg.yield %0 : {e}")
    if a.round:
        x = each([of(x)], "f32", f"%0 = arith.extf %a0 : {t} to f32\n    linalg.yield %0 : f32")
    if not a.cap_last:
        x = capped(a, x, each, of)
    if a.alibi:
        body = "%i = linalg.index 2 : index\n    %j = linalg.index 3 : index\n    %d = arith.subi %i, %j : index\n    %e = arith.index_cast %d : index to i32\n"
        body += "    %f = arith.sitofp %e : i32 to f32\n    %g = arith.mulf %a1, %f : f32\n    %0 = arith.subf %a0, %g : f32\n    linalg.yield %0 : f32"
        x = each([of(x, "f32"), ("%slopes", ["d1"], (h,), "f32")], "f32", body)
    x, hidden = masked(m, a, x, arguments)
    if a.cap_last:
        x = capped(a, x, each, of)
    if a.exp2:
        x = each([of(x, "f32")], "f32", f"%c = arith.constant {float(np.log2(np.e))!r} : f32\n    %0 = arith.mulf %a0, %c : f32\n    linalg.yield %0 : f32")
    p = x
    rows = ["d0", "d1", "d2"]
    top, sums = None, None
    if a.sums not in ("none", "own", "log2"):
        sums = log_sums(m, a, each, of, x)
    if not a.no_maximum:
        top = m.generic([of(x, "f32")], full[:3], "f32", "%0 = arith.maximumf %a0, %acc : f32\n    linalg.yield %0 : f32", 4, 1, "0xFF800000")
        p = each([of(x, "f32"), (sums if a.sums == "weights" else top, rows, full[:3], "f32")], "f32", "%0 = arith.subf %a0, %a1 : f32\n    linalg.yield %0 : f32")
    p = each([of(p, "f32")], "f32", f"%0 = math.{'exp2' if a.exp2 else 'exp'} %a0 : f32\n    linalg.yield %0 : f32")
    total = m.generic([of(p, "f32")], full[:3], "f32", "%0 = arith.addf %a0, %acc : f32\n    linalg.yield %0 : f32", 4, 1, "0.0")
    if a.sums in ("own", "log2"):
        log = "log2" if a.sums == "log2" else "log"
        # Of scores in powers of two, log2 of them is that of the scores.
        sums = m.generic([(total, rows[:3], full[:3], "f32")], full[:3], "f32", f"%0 = math.{log} %a0 : f32\n    linalg.yield %0 : f32")
        if top:
            body = "%0 = arith.addf %a0, %a1 : f32\n    linalg.yield %0 : f32"
            if a.sums == "log2" and not a.exp2:
                body = f"%c = arith.constant {float(np.log2(np.e))!r} : f32\n    %m = arith.mulf %a1, %c : f32\n    %0 = arith.addf %a0, %m : f32\n    linalg.yield %0 : f32"
            sums = m.generic([(sums, rows, full[:3], "f32"), (top, rows, full[:3], "f32")], full[:3], "f32", body)
    if a.divide == "before" and a.sums != "weights":
        p = each([of(p, "f32"), (total, rows, full[:3], "f32")], "f32", "%0 = arith.divf %a0, %a1 : f32\n    linalg.yield %0 : f32")
    if a.divide == "reciprocal":
        body = "%c = arith.constant 1.0 : f32\n    %0 = arith.divf %c, %a0 : f32\n    linalg.yield %0 : f32"
        inverse = m.generic([(total, rows, full[:3], "f32")], full[:3], "f32", body)
        p = each([of(p, "f32"), (inverse, rows, full[:3], "f32")], "f32", "%0 = arith.mulf %a0, %a1 : f32\n    linalg.yield %0 : f32")
    if a.mask in GUARDED:
        body = "%c = arith.constant 0xFFF0000000000000 : f64\n    %0 = arith.extf %a0 : f32 to f64\n    %1 = arith.cmpf oeq, %0, %c : f64\n    linalg.yield %1 : i1"
        bits = each([of(hidden, "f32")], "i1", body)
        every = m.generic([(bits, all_dims(4), full, "i1")], full[:3], "i1", "%0 = arith.andi %a0, %acc : i1\n    linalg.yield %0 : i1", 4, 1, "true")
        body = "%c = arith.constant 0.0 : f32\n    %0 = arith.select %a0, %c, %a1 : f32\n    linalg.yield %0 : f32"
        p = each([(every, rows, full[:3], "i1"), of(p, "f32")], "f32", body)
    if a.round:
        p = each([of(p, "f32")], t, f"%0 = arith.truncf %a0 : f32 to {t}\n    linalg.yield %0 : {t}")
    if t == "f8E4M3FN" and not a.keep_weights:
        body = "%c = arith.constant RAISED : f32\n    %x = arith.mulf %a0, %c : f32\n    %0 = arith.truncf %x : f32 to f8E4M3FN\n    linalg.yield %0 : f8E4M3FN"
        p = each([of(p, "f32")], t, body.replace("RAISED", repr(a.raised)))
        if not a.narrow:
            p = each([of(p, t)], "f32", f"%0 = arith.extf %a0 : {t} to f32\n    linalg.yield %0 : f32")
    o_shape = (b, h, s, v)
    o = product(p, full, value, (b, h, k, v), o_shape)
    if a.divide == "after":
        e_of = lambda value: (value, all_dims(4), o_shape, e)
        body = f"%0 = arith.divf %a0, %a1 : f32\n    linalg.yield %0 : f32"
        if a.round:
            body = f"%0 = arith.truncf %a1 : f32 to {t}\n    %1 = arith.divf %a0, %0 : {t}\n    linalg.yield %1 : {t}"
        o = m.generic([e_of(o), (total, rows, full[:3], "f32")], o_shape, e, body)
    if a.raised != 1:
        body = f"%c = arith.constant {a.raised!r} : f32\n    %0 = arith.divf %a0, %c : f32\n    linalg.yield %0 : f32"
        o = m.generic([(o, all_dims(4), o_shape, "f32")], o_shape, "f32", body)
    if a.descale != "none":
        name = "arith.divf" if a.descale == "divided" else "arith.mulf"
        o = m.generic([(o, all_dims(4), o_shape, "f32"), of_head(m, a, "vs")], o_shape, "f32", f"%0 = {name} %a0, %a1 : f32\n    linalg.yield %0 : f32")
    t = a.result
    if not a.round:
        o = m.generic([(o, all_dims(4), o_shape, "f32")], o_shape, t, f"%0 = arith.truncf %a0 : f32 to {t}\n    linalg.yield %0 : {t}")
    result = stored(h, s, v)
    if a.layout == "bshd":
        out = m.add(f"tensor.empty() : {tensor(result, t)}")
        o = m.add(f"linalg.transpose ins({o} : {tensor(o_shape, t)}) outs({out} : {tensor(result, t)}) permutation = [0, 2, 1, 3]")
    if a.alibi:
        arguments.append(((h,), "f32"))
        m.lines = [line.replace("%slopes", f"%arg{len(arguments) - 1}") for line in m.lines]
    if a.descale != "none":
        for name in ("qs", "ks", "vs"):
            arguments.append(((b, a.kv_heads), "f32"))
            m.lines = [line.replace(f"%{name} ", f"%arg{len(arguments) - 1} ") for line in m.lines]
    if a.page:
        arguments.append(((b, k // a.page), a.index))
        m.lines = [line.replace("%table", f"%arg{len(arguments) - 1}") for line in m.lines]
    given = ", ".join(f"%arg{at}: {tensor(*argument)}" for at, argument in enumerate(arguments))
    lines = "\n".join(m.lines)
    types, values = tensor(result, t), o
    if sums:
        types, values = f"{types}, {tensor(full[:3], 'f32')}", f"{values}, {sums}"
    return f"func.func @main({given}) -> ({types}) {{\n{lines}\n  return {values} : {types}\n}}\n", arguments


def of_head(m, a, name):
    """A number of each head of the keys, for all of its queries' heads: what a generic reads."""
    b, kv, group = a.batch, a.kv_heads, a.heads // a.kv_heads
    wide = m.generic([(f"%{name}", ["d0", "d1"], (b, kv), "f32")], (b, kv, group), "f32", "linalg.yield %a0 : f32")
    value = m.add(f"tensor.collapse_shape {wide} [[0], [1, 2]] : {tensor((b, kv, group), 'f32')} into {tensor((b, a.heads), 'f32')}")
    return value, ["d0", "d1"], (b, a.heads), "f32"


def capped(a, x, each, of):
    """Scores that are never greater than a cap, nor less than its negative (Gemma 2)."""
    if not a.soft_cap:
        return x
    body = f"%c = arith.constant {a.soft_cap!r} : f32\n    %0 = arith.divf %a0, %c : f32\n    %1 = math.tanh %0 : f32\n    %2 = arith.mulf %1, %c : f32\n    linalg.yield %2 : f32"
    return each([of(x, "f32")], "f32", body)


def of_pages(m, a, number, sizes, arguments):
    """Keys or values of pages that a table numbers, as `cache[table]` reads them: [pages, page, heads, dim] or [pages, heads, page, dim]."""
    (heads, length, dim), t, bshd = sizes, ELEMENT[a.dtype], a.layout == "bshd"
    count = PAGES * a.batch * length // a.page
    cache = (count, a.page, heads, dim) if bshd else (count, heads, a.page, dim)
    arguments[number] = (cache, t)
    pages = length // a.page
    wide = (a.batch, pages, *cache[1:]) if bshd else (a.batch, heads, pages, a.page, dim)
    kept = [2, 3, 4] if bshd else [1, 3, 4]
    body = "".join(f"%x{at} = linalg.index {at} : index\n    " for at in kept)
    body += f"%z = arith.constant 0 : {a.index}\n    %n = arith.constant {count} : {a.index}\n    %w = arith.addi %a0, %n : {a.index}\n    %l = arith.cmpi slt, %a0, %z : {a.index}\n"
    body += f"    %s = arith.select %l, %w, %a0 : {a.index}\n    %i = arith.index_cast %s : {a.index} to index\n"
    body += f"    %0 = tensor.extract %arg{number}[%i, {', '.join(f'%x{at}' for at in kept)}] : {tensor(cache, t)}\n    linalg.yield %0 : {t}"
    value = m.generic([("%table", ["d0", "d1" if bshd else "d2"], (a.batch, pages), a.index)], wide, t, body)
    flat = (a.batch, length, heads, dim) if bshd else (a.batch, heads, length, dim)
    value = m.add(f"tensor.collapse_shape {value} {'[[0], [1, 2], [3], [4]]' if bshd else '[[0], [1], [2, 3], [4]]'} : {tensor(wide, t)} into {tensor(flat, t)}")
    if bshd:
        shape = (a.batch, heads, length, dim)
        out = m.add(f"tensor.empty() : {tensor(shape, t)}")
        value = m.add(f"linalg.transpose ins({value} : {tensor(flat, t)}) outs({out} : {tensor(shape, t)}) permutation = [0, 2, 1, 3]")
    return value


def log_sums(m, a, each, of, x):
    """log sum exp of rows, apart from the softmax."""
    full, rows = (a.batch, a.heads, a.length, a.keys), ["d0", "d1", "d2"]
    row = lambda ins, body: m.generic([(value, rows, full[:3], "f32") for value in ins], full[:3], "f32", body + "linalg.yield %0 : f32")
    e = x
    if a.sums != "plain":
        top = m.generic([of(x, "f32")], full[:3], "f32", "%0 = arith.maximumf %a0, %acc : f32\n    linalg.yield %0 : f32", 4, 1, "0xFF800000")
        finite = "%i = arith.constant 0x7F800000 : f32\n    %z = arith.constant 0.0 : f32\n    %b = math.absf %a0 : f32\n    "
        if a.sums == "jax":
            top = row([top], finite + "%f = arith.cmpf one, %b, %i : f32\n    %0 = arith.select %f, %a0, %z : f32\n    ")
        else:
            top = row([top], finite + "%f = arith.cmpf oeq, %b, %i : f32\n    %0 = arith.select %f, %z, %a0 : f32\n    ")
        e = each([of(x, "f32"), (top, rows, full[:3], "f32")], "f32", "%0 = arith.subf %a0, %a1 : f32\n    linalg.yield %0 : f32")
    e = each([of(e, "f32")], "f32", "%0 = math.exp %a0 : f32\n    linalg.yield %0 : f32")
    total = m.generic([of(e, "f32")], full[:3], "f32", "%0 = arith.addf %a0, %acc : f32\n    linalg.yield %0 : f32", 4, 1, "0.0")
    log = row([total], "%0 = math.log %a0 : f32\n    ")
    return log if a.sums == "plain" else row([log, top], "%0 = arith.addf %a0, %a1 : f32\n    ")


def masked(m, a, x, arguments):
    """Scores with their mask, and what a guard looks at."""
    b, h, s, k = a.batch, a.heads, a.length, a.keys
    full = (b, h, s, k)
    at = (x, all_dims(4), full, "f32")
    none = "%none = arith.constant 0xFF800000 : f32\n    "
    if a.mask == "additive":
        arguments.append(((b, 1, s, k), a.result))
        body = f"%0 = arith.extf %a1 : {a.result} to f32\n    %1 = arith.addf %a0, %0 : f32\n    linalg.yield %1 : f32"
        x = m.generic([at, ("%arg3", ["d0", "0", "d2", "d3"], (b, 1, s, k), a.result)], full, "f32", body)
    if a.mask in ("boolean", "guarded", "boolean_low"):
        none = none.replace("0xFF800000", "-2.38197633E+38") if a.mask == "boolean_low" else none
        arguments.append(((s, k), "i1"))
        body = none + "%0 = arith.select %a1, %a0, %none : f32\n    linalg.yield %0 : f32"
        x = m.generic([at, ("%arg3", ["d2", "d3"], (s, k), "i1")], full, "f32", body)
    if a.mask == "padding":
        arguments.append(((b, k), "i1"))
        body = none + "%0 = arith.select %a1, %none, %a0 : f32\n    linalg.yield %0 : f32"
        x = m.generic([at, ("%arg3", ["d0", "d3"], (b, k), "i1")], full, "f32", body)
    if a.mask in ("causal", "window", "causal_bias"):
        body = none + "%i = linalg.index 2 : index\n    %j = linalg.index 3 : index\n    %y = arith.addf %a0, %none : f32\n    %0 = arith.cmpi ule, %j, %i : index\n    "
        if a.mask == "window":
            body += f"%w = arith.constant {a.window} : i64\n    %d = arith.subi %i, %j : index\n    %e = arith.index_cast %d : index to i64\n    %n = arith.cmpi slt, %e, %w : i64\n    %both = arith.andi %0, %n : i1\n    "
        seen = "%both" if a.mask == "window" else "%0"
        x = m.generic([at], full, "f32", body + f"%1 = arith.select {seen}, %a0, %none : f32\n    linalg.yield %1 : f32")
    if a.mask == "causal_bias":
        arguments.append(((h, s, k), "f32"))
        body = "%1 = arith.addf %a0, %a1 : f32\n    linalg.yield %1 : f32"
        x = m.generic([(x, all_dims(4), full, "f32"), ("%arg3", ["d1", "d2", "d3"], (h, s, k), "f32")], full, "f32", body)
    if a.mask == "jax":
        # As jax.nn.dot_product_attention hides keys: indices of 32 bits, and seven tenths of the lowest number.
        body = "%i = linalg.index 2 : index\n    %j = linalg.index 3 : index\n    %r = arith.index_cast %i : index to i32\n    %c = arith.index_cast %j : index to i32\n    "
        body += "%low = arith.constant -2.38197633E+38 : f32\n    %0 = arith.cmpi sge, %r, %c : i32\n    %1 = arith.select %0, %a0, %low : f32\n    linalg.yield %1 : f32"
        x = m.generic([at], full, "f32", body)
    if a.mask == "capped":
        body = "%c = arith.constant 5.0 : f32\n    %0 = arith.divf %a0, %c : f32\n    %1 = math.tanh %0 : f32\n    %2 = arith.mulf %1, %c : f32\n    linalg.yield %2 : f32"
        x = m.generic([at], full, "f32", body)
    if a.mask in SEGMENTS:
        t, one = a.id_type, a.mask == "segments_low"
        if a.ids == "offsets":
            arguments.append(((b, OFFSETS), t))
            body = f"%i = linalg.index 1 : index\n    %j = arith.index_cast %i : index to {t}\n    %c = arith.cmpi sle, %a0, %j : {t}\n    %e = arith.extui %c : i1 to {t}\n"
            ids = m.generic([("%arg3", ["d0", "d2"], (b, OFFSETS), t)], (b, s), t, body + f"    %0 = arith.addi %acc, %e : {t}\n    linalg.yield %0 : {t}", reduced=1, init="0")
            body = none + f"%0 = arith.cmpi eq, %a1, %a2 : {t}\n    %1 = arith.select %0, %a0, %none : f32\n    linalg.yield %1 : f32"
            x = m.generic([at, (ids, ["d0", "d2"], (b, s), t), (ids, ["d0", "d3"], (b, k), t)], full, "f32", body)
            return x, x
        arguments += [((b, s), t)] if one else [((b, s), t), ((b, k), t)]
        none = none.replace("0xFF800000", "-2.38197633E+38") if one else none
        body = none + f"%0 = arith.cmpi eq, %a1, %a2 : {t}\n    "
        if a.mask == "segments_causal":
            body += "%i = linalg.index 2 : index\n    %j = linalg.index 3 : index\n    %l = arith.cmpi ule, %j, %i : index\n    %b = arith.andi %0, %l : i1\n    "
        body += f"%1 = arith.select {'%b' if a.mask == 'segments_causal' else '%0'}, %a0, %none : f32\n    linalg.yield %1 : f32"
        x = m.generic([at, ("%arg3", ["d0", "d2"], (b, s), t), ("%arg3" if one else "%arg4", ["d0", "d3"], (b, k), t)], full, "f32", body)
    if a.mask in LENGTHS:
        x = by_lengths(m, a, at, full, arguments)
    if a.mask == "triangle":
        rows = ", ".join("[" + ", ".join("true" if j <= i else "false" for j in range(k)) + "]" for i in range(s))
        triangle = m.add(f"arith.constant dense<[{rows}]> : {tensor((s, k), 'i1')}")
        body = none + "%0 = arith.select %a1, %a0, %none : f32\n    linalg.yield %0 : f32"
        x = m.generic([at, (triangle, ["d2", "d3"], (s, k), "i1")], full, "f32", body)
    if a.mask == "added_causal":
        body = none + "%i = linalg.index 0 : index\n    %j = linalg.index 1 : index\n    %z = arith.constant 0.0 : f32\n    %0 = arith.cmpi sgt, %j, %i : index\n    %1 = arith.select %0, %none, %z : f32\n    linalg.yield %1 : f32"
        bias = m.generic([], (s, k), "f32", body)
        x = m.generic([at, (bias, ["d2", "d3"], (s, k), "f32")], full, "f32", "%0 = arith.addf %a0, %a1 : f32\n    linalg.yield %0 : f32")
    return x, x


def by_lengths(m, a, at, full, arguments):
    """Scores with a mask that compares indices with lengths, in their type."""
    t, both = a.index, a.mask.startswith("both")
    arguments += [((a.batch,), t)] * (2 if both else 1)
    bits = lambda body, ins=1: m.generic([(f"%arg{3 + n}", ["d0"], (a.batch,), t) for n in range(ins)], (a.batch, a.length, a.keys), "i1",
                                         f"%i = linalg.index 1 : index\n    %j = linalg.index 2 : index\n    %r = arith.index_cast %i : index to {t}\n"
                                         f"    %k = arith.index_cast %j : index to {t}\n    " + body + "    linalg.yield %0 : i1")
    if both:
        seen = bits(f"%x = arith.cmpi slt, %k, %a0 : {t}\n    %y = arith.cmpi slt, %r, %a1 : {t}\n    %0 = arith.andi %x, %y : i1\n", 2)
    elif a.mask.startswith("cached"):
        seen = bits(f"%s = arith.constant {a.length} : {t}\n    %f = arith.subi %a0, %s : {t}\n    %e = arith.addi %r, %f : {t}\n    %0 = arith.cmpi sge, %e, %k : {t}\n")
    elif a.mask == "behind":
        seen = bits(f"%0 = arith.cmpi sge, %k, %a0 : {t}\n")
    else:
        seen = bits(f"%0 = arith.cmpi slt, %k, %a0 : {t}\n")
    hidden = "-2.38197633E+38" if a.mask.endswith("low") else "0xFF800000"
    body = f"%none = arith.constant {hidden} : f32\n    %0 = arith.select %a1, %a0, %none : f32\n    linalg.yield %0 : f32"
    return m.generic([at, (seen, ["d0", "d2", "d3"], (a.batch, a.length, a.keys), "i1")], full, "f32", body)


def seen_by_lengths(a, given, i, j):
    """The keys that rows see, and what the scores of others are."""
    n = given[3].astype(np.int64)[:, None, None, None]
    seen = j < n
    if a.mask.startswith("both"):
        seen = seen & (i < given[4].astype(np.int64)[:, None, None, None])
    elif a.mask.startswith("cached"):
        seen = j <= i + n - a.length
    elif a.mask == "behind":
        seen = j >= n
    return seen, -2.38e38 if a.mask.endswith("low") else -np.inf


def drawn(r, shape):
    """Numbers that both types have: 8 bits of mantissa."""
    x = r.standard_normal(shape).astype(np.float32)
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


def e4m3():
    """The numbers of f8E4M3FN that are not negative, by their bits."""
    bits = np.arange(0x7F)
    exponent, mantissa = bits >> 3, bits & 7
    return np.where(exponent == 0, mantissa / 8 * 2.0 ** -6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0)).astype(np.float32)


def bits_of_e4m3(x):
    """The bits of the nearest f8E4M3FN, of two that are as near those of the even one."""
    own, size = e4m3().astype(np.float64), np.abs(np.asarray(x, np.float64)).clip(0, 448)
    above = np.searchsorted(own, size).clip(1, len(own) - 1)
    down, up = size - own[above - 1], own[above] - size
    bits = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    return (bits | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


def stored(dtype, x):
    """As the type's file: bf16 is f32 without its lower half."""
    if dtype == "e4m3":
        return bits_of_e4m3(x)
    if dtype == "f16":
        return x.astype(np.float16)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def segments(a, r, shape, number):
    """The segments of rows, or of keys."""
    n = shape[-1]
    if a.ids == "offsets":
        return np.sort(r.integers(0, a.keys, shape), axis=-1)
    if a.ids == "documents" or a.ids == "random":
        # Rows and keys have the same ends, as far as both have so many.
        ends = np.random.default_rng(a.seed).integers(1, max(a.length, a.keys), 5)
        ids = np.broadcast_to((np.arange(n)[:, None] >= ends).sum(1), shape)
        if a.ids == "documents" or n <= 4:
            return ids
        return r.permuted(ids * 7 - 9, axis=-1)
    # Each query's segment has a key, or not.
    ids = np.arange(np.prod(shape)).reshape(shape) % n * 4 // n if n > 4 else np.zeros(shape)
    return ids - (3 if a.ids == "apart" and number == 4 else 0)


def inputs(a, arguments):
    r = np.random.default_rng(a.seed)
    given = [drawn(r, shape) for shape, _ in arguments[:3]]
    if a.dtype == "e4m3":
        bits = [bits_of_e4m3(x) for x in given]
        given = [np.where(x & 0x80, -1, 1) * e4m3()[x & 0x7F] for x in bits]
    if a.exact:
        # Four places of a query count, each by one: scores are from -4 to 4.
        few = r.permuted(np.broadcast_to(np.arange(a.dim) < 4, given[0].shape), axis=-1)
        given[0], given[1] = np.where(few, np.sign(given[0]), 0), np.sign(given[1])
    given[0] *= np.float32(a.steep)
    for number, (shape, element) in enumerate(arguments[3:], 3):
        if a.page and number == len(arguments) - 1:
            # Each page once, in any order, some counted from the end.
            count = arguments[1][0][0]
            own = r.permutation(count)[:np.prod(shape)].reshape(shape)
            given.append(np.where(r.random(shape) < 0.3, own - count, own).astype(np.int32 if element == "i32" else np.int64))
            continue
        if a.descale != "none" and number >= len(arguments) - 3:
            size = 1 if a.exact and number < len(arguments) - 1 else r.uniform(0.5, 2, shape)
            given.append((size * r.choice([-1, 1], shape)).astype(np.float32))
            continue
        if a.alibi and (shape, element) == ((a.heads,), "f32"):
            given.append(2.0 ** -(1 + np.arange(a.heads, dtype=np.float32)))
            continue
        if a.mask in LENGTHS:
            # The second tensor has them in another order.
            own = [int(n) for n in a.lengths.split(",")]
            own = np.resize(own if len(given) == 3 else own[::-1], shape)
            given.append(own.astype(np.int32 if element == "i32" else np.int64))
            continue
        if a.mask in SEGMENTS and element == a.id_type:
            own = segments(a, r, shape, number).astype(f"int{element[1:]}")
            # Those of 64 bits differ above the lower half.
            given.append(own * 2 ** 33 if element == "i64" and a.ids != "offsets" else own)
            continue
        if element == "i1":
            bits = r.random(shape) < (0.2 if a.mask == "padding" else 0.7)
            if a.mask in ("guarded", "boolean_low"):
                bits[::3] = False
            elif a.mask == "boolean":
                bits[:, 0] = True
            else:
                bits[:, 0] = False
            given.append(bits)
        else:
            given.append(drawn(r, shape))
    return given


def expected(a, given):
    if a.page:
        k, v = (x[given[-1]] for x in given[1:3])
        if a.layout == "bhsd":
            k, v = (x.transpose(0, 2, 1, 3, 4).reshape(a.batch, a.kv_heads, a.keys, -1) for x in (k, v))
        else:
            k, v = (x.reshape(a.batch, a.keys, a.kv_heads, -1) for x in (k, v))
        given = [given[0], k, v, *given[3:]]
    q, k, v = (x.astype(np.float64) if a.layout == "bhsd" else x.astype(np.float64).transpose(0, 2, 1, 3) for x in given[:3])
    k, v = (np.repeat(x, a.heads // a.kv_heads, 1) for x in (k, v))
    x = q @ k.swapaxes(2, 3) * scale_of(a)
    if a.descale != "none":
        qs, ks, vs = (np.repeat(own.astype(np.float64), a.heads // a.kv_heads, 1)[:, :, None, None] for own in given[-3:])
        x, v = x * qs * ks, v / vs if a.descale == "divided" else v * vs
        given = given[:-3]
    i, j = np.arange(a.length)[:, None], np.arange(a.keys)
    if a.soft_cap and not a.cap_last:
        x = a.soft_cap * np.tanh(x / a.soft_cap)
    if a.alibi:
        x = x - given[-2 if a.page else -1][:, None, None] * (i - j)
    if a.mask in ("additive", "causal_bias"):
        x = x + given[3]
    if a.mask in ("boolean", "guarded"):
        x = np.where(given[3], x, -np.inf)
    if a.mask == "boolean_low":
        x = np.where(given[3], x, -2.38e38)
    if a.mask == "padding":
        x = np.where(given[3][:, None, None, :], -np.inf, x)
    if a.mask == "capped":
        x = 5 * np.tanh(x / 5)
    if a.mask in SEGMENTS:
        if a.ids == "offsets":
            given = [*given[:3], *[(given[3][:, :, None] <= j).sum(1)] * 2]
        keys = given[3 if a.mask == "segments_low" else 4]
        seen = given[3][:, None, :, None] == keys[:, None, None, :]
        seen = seen & (j <= i) if a.mask == "segments_causal" else seen
        x = np.where(seen, x, -2.38e38 if a.mask == "segments_low" else -np.inf)
    if a.mask in ("causal", "triangle", "added_causal", "window", "causal_bias", "jax"):
        x = np.where(j <= i, x, -np.inf)
    if a.mask == "window":
        x = np.where(i - j < a.window, x, -np.inf)
    if a.mask in LENGTHS:
        seen, other = seen_by_lengths(a, given, i, j)
        x = np.where(seen, x, other)
    if a.cap_last:
        x = a.soft_cap * np.tanh(x / a.soft_cap)
    with np.errstate(invalid="ignore"):
        p = np.exp(x - x.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True)
        m = x.max(-1)
        safe = m if a.sums in ("own", "log2") and not a.no_maximum else np.where(np.isfinite(m), m, 0)
        with np.errstate(divide="ignore"):
            sums = safe + np.log(np.exp(x - safe[..., None]).sum(-1))
        if a.exp2 or a.sums == "log2":
            sums = sums * (np.log2(np.e) if a.sums == "log2" else 1)
    if a.mask in GUARDED:
        p = np.nan_to_num(p)
    o = p @ v
    return o if a.layout == "bhsd" else o.transpose(0, 2, 1, 3), sums


if __name__ == "__main__":
    a = options()
    a.folder.mkdir(parents=True, exist_ok=True)
    text, arguments = module(a)
    (a.folder / "module.mlir").write_text(dynamic(a) if a.dynamic else text)
    if a.text:
        raise SystemExit
    given = inputs(a, arguments)
    for number, (x, (_, element)) in enumerate(zip(given, arguments)):
        np.save(a.folder / f"arg{number}.npy", stored(a.dtype, x) if element == ELEMENT[a.dtype] else stored(a.result, x) if element == a.result else x)
    result, sums = expected(a, given)
    np.save(a.folder / "out0.npy", np.ascontiguousarray(stored(a.result, result)))
    if a.sums != "none":
        np.save(a.folder / "out1.npy", np.ascontiguousarray(sums.astype(np.float32)))
