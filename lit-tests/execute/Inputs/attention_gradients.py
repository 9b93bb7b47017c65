"""Attention's gradients as programs write them in linalg, with inputs and what numpy makes of them in f64.

    python3 attention_gradients.py FOLDER --length 150 --keys 200 --form torch --mask causal ...
"""
import argparse
from pathlib import Path

import numpy as np

options = argparse.ArgumentParser()
options.add_argument("folder", type=Path)
for name, default in dict(batch=1, length=0, keys=0, heads=1, kv_heads=0, dim=64, values=0, window=0).items():
    options.add_argument("--" + name.replace("_", "-"), type=int, default=default)
options.add_argument("--form", choices=["torch", "jax"], default="torch", help="P dP - P D, or P (dP - D)")
options.add_argument("--mask", choices=["none", "causal", "window", "chosen"], default="none", help="chosen: dS is 0 of hidden keys")
options.add_argument("--layout", choices=["bhsd", "bshd"], default="bhsd")
options.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
options.add_argument("--result", action="store_true", help="the result is returned too")
options.add_argument("--scale", choices=["scores", "operands"], default="scores")
options.add_argument("--break", dest="broken", choices=["sum", "early", "tanh"], help="what is no gradient, or is not taken")
options.add_argument("--given", default="", help="what of the forward pass is an argument: logs, result, products; several, with commas")
options.add_argument("--base", choices=["e", "two"], default="e", help="the base of logarithms that are given")
options.add_argument("--products", choices=["weights", "result"], default="weights", help="rowsum(P dP), or rowsum(dO O)")
options.add_argument("--again", action="store_true", help="weights of the gradients are formed again, of logarithms of sums")
options.add_argument("--step", action="store_true", help="the result's gradient is the result less an argument: a training step")
options.add_argument("--text", action="store_true", help="the program alone, without data")
options.add_argument("--bias", default="", help="a tensor is added to scores, of these dimensions of b(atch), h(ead), s (row) and k(ey)")
options.add_argument("--bias-type", choices=["f16", "bf16", "f32"], default="f32")
options.add_argument("--bits", default="", help="a tensor of bits says which keys are seen, of these dimensions")
options.add_argument("--hides", choices=["infinity", "guarded", "low"], default="infinity", help="keys are hidden by minus infinity; rows that see none have weights of 0; by a low number")
options.add_argument("--lengths", default="", help="keys of each problem of the batch, repeated")
options.add_argument("--query-lengths", default="", help="rows of each problem of the batch, repeated: others see no key")
options.add_argument("--segments", choices=["none", "documents", "random", "apart"], default="none", help="rows see keys of the same label; apart: of two tensors")
options.add_argument("--id-type", choices=["i8", "i16", "i32", "i64"], default="i32")
options.add_argument("--cap", type=float, default=0, help="scores are cap * tanh(score / cap)")
options.add_argument("--alibi", action="store_true", help="the distance of row and key times a number of the head is subtracted")
options.add_argument("--chosen", action="store_true", help="the scores' gradients are chosen to be 0 of hidden keys")
options.add_argument("--nest", action="store_true", help="each mask is a choice of its own")
options.add_argument("--bias-gradient", action="store_true", help="the gradient of the bias is returned, too")
a = options.parse_args()
given = set(filter(None, a.given.split(",")))
log2e = 1.4426950408889634
keys, kv, values, t = a.keys or a.length, a.kv_heads or a.heads, a.values or a.dim, a.dtype
group, scale = a.heads // kv, a.dim ** -0.5
lines, count = [], 0


def tensor(shape, element="f32"):
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


class Value:
    def __init__(self, shape, element="f32", name=None):
        global count
        self.name, self.shape, self.element = name or f"%v{count}", list(shape), element
        count += 1

    @property
    def type(self):
        return tensor(self.shape, self.element)


def line(text, shape, element="f32"):
    made = Value(shape, element)
    lines.append(f"    {made.name} = {text}")
    return made


def empty(shape, element="f32"):
    return line(f"tensor.empty() : {tensor(shape, element)}", shape, element)


def zeros(shape):
    into = empty(shape)
    return line(f"linalg.fill ins(%zero : f32) outs({into.name} : {into.type}) -> {into.type}", shape)


def generic(maps, iterators, ins, into, body):
    maps = ", ".join(f"affine_map<{m}>" for m in maps)
    kinds = ", ".join(f'"{k}"' for k in iterators)
    names, types = ", ".join(x.name for x in ins), ", ".join(x.type for x in ins)
    given = f"ins({names} : {types}) " if ins else ""
    arguments = ", ".join(f"%x{i}: {x.element}" for i, x in enumerate(ins + [into]))
    return line(f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {given}outs({into.name} : {into.type}) {{\n"
                f"    ^bb0({arguments}):\n{body}\n    }} -> {into.type}", into.shape, into.element)


def axes(dims):
    return "(" + ", ".join(dims) + ")"


def each(ins, body, element="f32"):
    """A map of [problem, row, key]; operands of two dimensions are of rows."""
    rank = len(ins[0].shape)
    dims = [f"d{i}" for i in range(rank)]
    maps = [f"{axes(dims)} -> {axes(dims[:len(x.shape)])}" for x in ins] + [f"{axes(dims)} -> {axes(dims)}"]
    return generic(maps, ["parallel"] * rank, ins, empty(ins[0].shape, element), body)


def product(x, y, of_x, of_y, to, shape):
    """sum of x y, by the names of dimensions: p(roblem) and three others."""
    dims = "p" + "".join(sorted(set(of_x + of_y + to) - {"p"}))
    maps = [f"{axes(dims)} -> {axes(m)}" for m in (of_x, of_y, to)]
    kinds = ["parallel" if d in to else "reduction" for d in dims]
    body = f"""      %a = arith.extf %x0 : {x.element} to f32
      %b = arith.extf %x1 : {y.element} to f32
      %c = arith.mulf %a, %b : f32
      %d = arith.addf %x2, %c : f32
      linalg.yield %d : f32"""
    return generic(maps, kinds, [x, y], zeros(shape), body)


def rows(x, op):
    start = zeros(x.shape[:2])
    if op == "maximumf":
        into = empty(x.shape[:2])
        start = line(f"linalg.fill ins(%none : f32) outs({into.name} : {into.type}) -> {into.type}", into.shape)
    body = f"      %a = arith.{op} %x0, %x1 : f32\n      linalg.yield %a : f32"
    return generic(["(d0, d1, d2) -> (d0, d1, d2)", "(d0, d1, d2) -> (d0, d1)"], ["parallel", "parallel", "reduction"], [x], start, body)


def transposed(x, order):
    shape = [x.shape[i] for i in order]
    into = empty(shape, x.element)
    return line(f"linalg.transpose ins({x.name} : {x.type}) outs({into.name} : {into.type}) permutation = {order}", shape, x.element)


def reshaped(x, shape, groups, way):
    groups = str(groups)
    size = f" output_shape {shape}" if way == "expand" else ""
    return line(f"tensor.{way}_shape {x.name} {groups}{size} : {x.type} into {tensor(shape, x.element)}", shape, x.element)


def problems(x, heads):
    """An argument as [problem, place, column]; shared heads are repeated."""
    if a.layout == "bshd":
        x = transposed(x, [0, 2, 1, 3])
    b, _, n, d = x.shape
    if heads != a.heads:
        into = empty([b, heads, group, n, d], x.element)
        x = generic(["(b, h, g, n, d) -> (b, h, n, d)", "(b, h, g, n, d) -> (b, h, g, n, d)"], ["parallel"] * 5, [x], into,
                    f"      linalg.yield %x0 : {x.element}")
        return reshaped(x, [b * a.heads, n, d], [[0, 1, 2], [3], [4]], "collapse")
    return reshaped(x, [b * heads, n, d], [[0, 1], [2], [3]], "collapse")


def stored(x, heads):
    """A gradient by problem as the program stores it: that of shared heads is added up."""
    _, n, d = x.shape
    if heads != a.heads:
        x = reshaped(x, [a.batch, heads, group, n, d], [[0, 1, 2], [3], [4]], "expand")
        x = generic(["(b, h, n, d, g) -> (b, h, g, n, d)", "(b, h, n, d, g) -> (b, h, n, d)"], ["parallel"] * 4 + ["reduction"], [x],
                    zeros([a.batch, heads, n, d]), "      %a = arith.addf %x1, %x0 : f32\n      linalg.yield %a : f32")
    else:
        x = reshaped(x, [a.batch, heads, n, d], [[0, 1], [2], [3]], "expand")
    x = each([x], f"      %a = arith.truncf %x0 : f32 to {t}\n      linalg.yield %a : {t}", t)
    return transposed(x, [0, 2, 1, 3]) if a.layout == "bshd" else x


def narrowed(x):
    return each([x], f"      %a = arith.truncf %x0 : f32 to {t}\n      linalg.yield %a : {t}", t)


SEEN = """      %near = arith.cmpi sle, %j, %i : index
      %end = arith.addi %j, %window : index
      %late = arith.cmpi sgt, %end, %i : index
      %seen = arith.andi %near, %late : i1
"""
PLACES = "      %i = linalg.index 1 : index\n      %j = linalg.index 2 : index\n"


def spread(x, dims):
    """A tensor of some dimensions of b, h, s and k as [problem, row, key]."""
    shape = [a.batch, a.heads, a.length, keys]
    maps = [f"(b, h, s, k) -> {axes(list(dims))}", "(b, h, s, k) -> (b, h, s, k)"]
    wide = generic(maps, ["parallel"] * 4, [x], empty(shape, x.element), f"      linalg.yield %x0 : {x.element}")
    return reshaped(wide, [a.batch * a.heads, a.length, keys], [[0, 1], [2], [3]], "collapse")


def conditions(read):
    """The conditions of masks, `(name, lines)`; `read` gives the name of what a tensor has of an element."""
    found = []
    if a.mask != "none":
        found.append(("%seen", SEEN))
    if a.bits:
        found.append((read("bits"), ""))
    for name, of in (("lengths", "%j"), ("query_lengths", "%i")):
        if getattr(a, name):
            found.append((f"%in_{name}", f"      %at_{name} = arith.index_cast {of} : index to i32\n      %in_{name} = arith.cmpi slt, %at_{name}, {read(name)} : i32\n"))
    if a.segments != "none":
        found.append(("%same", f"      %same = arith.cmpi eq, {read('row_labels')}, {read('key_labels')} : {a.id_type}\n"))
    return found


def combined(all):
    """All conditions as one: its lines, and its name."""
    (own, text), *rest = all
    for number, (name, lines) in enumerate(rest):
        text += lines + f"      %all{number} = arith.andi {own}, {name} : i1\n"
        own = f"%all{number}"
    return text, own


def place(heads, n):
    return [a.batch, n, heads] if a.layout == "bshd" else [a.batch, heads, n]


def by_problem(x):
    """A value of each row as [problem, row]."""
    return reshaped(x, [a.batch * a.heads, a.length], [[0, 1], [2]], "collapse")


def weights(s, log):
    """exp(s - log), of logarithms of a base."""
    if a.base == "two":
        body = "      %l = arith.constant 1.4426950408889634 : f32\n      %y = arith.mulf %x0, %l : f32\n      %a = arith.subf %y, %x1 : f32\n      %b = math.exp2 %a : f32\n"
    else:
        body = "      %a = arith.subf %x0, %x1 : f32\n      %b = math.exp %a : f32\n"
    if a.mask == "chosen":
        return each([s, log], PLACES + SEEN + body + "      %c = arith.select %seen, %b, %zero : f32\n      linalg.yield %c : f32")
    return each([s, log], body + "      linalg.yield %b : f32")


def wide(x):
    return each([x], f"      %a = arith.extf %x0 : {t} to f32\n      linalg.yield %a : f32")


def reads():
    """What maps of scores read beside those, as operands, and the name of an element by that of its tensor."""
    names = [name for name in more if name != "bias_values"]
    ins = [spread(more[name][0], more[name][1]) for name in names]
    return ins, lambda name, first: f"%x{first + names.index(name)}"


def scores(q, k, square, masked):
    s = product(q, k, "pid", "pjd", "pij", square)
    ins, element = reads()
    read = lambda name: element(name, 1)
    body = PLACES + ("      %s = arith.mulf %x0, %scale : f32\n" if a.scale == "scores" else "      %s = arith.addf %x0, %zero : f32\n")
    last = "%s"
    if a.broken == "tanh":
        body, last = body + "      %u = math.tanh %s : f32\n", "%u"
    if a.cap:
        body += f"      %cap = arith.constant {a.cap} : f32\n      %in = arith.divf {last}, %cap : f32\n      %tanh = math.tanh %in : f32\n      %capped = arith.mulf %tanh, %cap : f32\n"
        last = "%capped"
    if a.alibi:
        body += "      %far = arith.subi %i, %j : index\n      %far32 = arith.index_cast %far : index to i32\n      %distance = arith.sitofp %far32 : i32 to f32\n"
        body += f"      %less = arith.mulf %distance, {read('slopes')} : f32\n      %steep = arith.subf {last}, %less : f32\n"
        last = "%steep"
    if a.bias:
        wide = f"      %bias = arith.extf {read('bias')} : {a.bias_type} to f32\n" if a.bias_type != "f32" else f"      %bias = arith.addf {read('bias')}, %zero : f32\n"
        body, last = body + wide + f"      %biased = arith.addf {last}, %bias : f32\n", "%biased"
    all = [own for own in conditions(read) if own[0] != "%seen" or masked]
    if all and not a.nest:
        text, name = combined(all)
        all = [(name, text)]
    for number, (name, text) in enumerate(all):
        body, last = body + text + f"      %y{number} = arith.select {name}, {last}, %hidden : f32\n", f"%y{number}"
    return each([s, *ins], body + f"      linalg.yield {last} : f32")


def tanh(q, k, square):
    """The tanh of capped scores, formed again."""
    s = product(q, k, "pid", "pjd", "pij", square)
    scaled = "      %s = arith.mulf %x0, %scale : f32\n" if a.scale == "scores" else "      %s = arith.addf %x0, %zero : f32\n"
    return each([s], scaled + f"      %cap = arith.constant {a.cap} : f32\n      %in = arith.divf %s, %cap : f32\n      %t = math.tanh %in : f32\n      linalg.yield %t : f32")


def graph(q, k, v, do, l=None, o=None, d=None):
    q, do, k, v = problems(q, a.heads), problems(do, a.heads), problems(k, kv), problems(v, kv)
    n = a.batch * a.heads
    square = [n, a.length, keys]
    masked = a.mask != "none"
    if a.scale == "operands":
        body = f"      %w = arith.extf %x0 : {t} to f32\n      %s = arith.mulf %w, %scale : f32\n      %a = arith.truncf %s : f32 to {t}\n      linalg.yield %a : {t}"
        q = each([q], body, t)
    s = scores(q, k, square, masked and not (l and a.mask == "chosen"))
    if l:
        p = weights(s, by_problem(l))
    else:
        m = rows(s, "maximumf")
        empty_row = "      %empty = arith.cmpf oeq, %MAX, %none : f32\n"
        body = "      %a = arith.subf %x0, %x1 : f32\n"
        if a.hides == "guarded":
            body = empty_row.replace("MAX", "x1") + "      %m = arith.select %empty, %zero, %x1 : f32\n      %a = arith.subf %x0, %m : f32\n"
        e = each([s, m], body + "      %b = math.exp %a : f32\n      linalg.yield %b : f32")
        sums = rows(e, "addf")
        body = "      %a = arith.divf %x0, %x1 : f32\n"
        if a.hides == "guarded":
            body += empty_row.replace("MAX", "x2") + "      %p = arith.select %empty, %zero, %a : f32\n      linalg.yield %p : f32"
            p = each([e, sums, m], body)
        else:
            p = each([e, sums], body + "      linalg.yield %a : f32")
    narrow = narrowed(p)
    formed = a.result or a.step or (a.products == "result" and not o)
    result = stored(product(narrow, v, "pij", "pjc", "pic", [n, a.length, values]), a.heads) if formed else None
    if a.step:
        # of sum((o - target)^2) / 2, in the type of the result
        do = each([wide(problems(result, a.heads)), wide(do)], "      %a = arith.subf %x0, %x1 : f32\n      linalg.yield %a : f32")
        do = narrowed(do)
    if a.again:
        log = each([sums, m], "      %a = math.log %x0 : f32\n      %b = arith.addf %a, %x1 : f32\n      linalg.yield %b : f32")
        p = weights(scores(q, k, square, masked), log)
        narrow = narrowed(p)
    dv = stored(product(narrow, do, "pij", "pic", "pjc", [n, keys, values]), kv)
    early = each([dv], f"      %a = arith.addf %x0, %x0 : {t}\n      linalg.yield %a : {t}", t) if a.broken == "early" else dv
    dp = product(do, v, "pic", "pjc", "pij", square)
    both = each([dp, p], "      %a = arith.mulf %x0, %x1 : f32\n      linalg.yield %a : f32")
    if a.products == "result":
        own = problems(o, a.heads) if o else problems(result, a.heads)
        d = rows(each([wide(do), wide(own)], "      %a = arith.mulf %x0, %x1 : f32\n      linalg.yield %a : f32"), "addf")
    else:
        d = by_problem(d) if d else rows(dp if a.broken == "sum" else both, "addf")
    if a.form == "torch":
        body = "      %a = arith.mulf %x1, %x2 : f32\n      %b = arith.subf %x0, %a : f32\n"
        ins = [both, p, d]
    else:
        body = "      %a = arith.subf %x0, %x2 : f32\n      %b = arith.mulf %x1, %a : f32\n"
        ins = [dp, p, d]
    last = "%b"
    more_ins, element = reads()
    read = lambda name: element(name, 3)
    if a.mask == "chosen" or a.chosen:
        text, seen = combined(conditions(read))
        body += PLACES + text + f"      %ch = arith.select {seen}, {last}, %zero : f32\n"
        last = "%ch"
    if a.cap:
        # As torch writes it, of the tanh of the forward pass formed again, or JAX.
        ins.append(tanh(q, k, square))
        of_tanh = f"%x{len(ins) + len(more_ins) - 1}"
        if a.form == "torch":
            body += f"      %sq = arith.mulf {of_tanh}, {of_tanh} : f32\n      %sl = arith.subf %one, %sq : f32\n      %gr = arith.mulf {last}, %sl : f32\n"
        else:
            body += f"      %mo = arith.mulf {last}, {of_tanh} : f32\n      %sl = arith.addf {last}, %mo : f32\n      %sq = arith.subf %one, {of_tanh} : f32\n      %gr = arith.mulf %sl, %sq : f32\n"
        last = "%gr"
    body += f"      %c = arith.mulf {last}, %{'one' if a.scale == 'operands' else 'scale'} : f32\n      linalg.yield %c : f32"
    ds = narrowed(each(ins[:3] + more_ins + ins[3:], body))
    dq = product(ds, k, "pij", "pjd", "pid", [n, a.length, a.dim])
    if a.scale == "operands":
        dq = each([dq], "      %a = arith.mulf %x0, %scale : f32\n      linalg.yield %a : f32")
    dk = stored(product(ds, q, "pij", "pid", "pjd", [n, keys, a.dim]), kv)
    out = [stored(dq, a.heads), dk, early]
    if a.bias_gradient:
        # Of one row and key, over the problems that have the bias, in f32.
        of_bias = each(ins[:3], body[:body.index("      %c =")] + "      linalg.yield %b : f32") if not a.cap and not a.chosen else None
        of_heads = reshaped(of_bias, [a.batch, a.heads, a.length, keys], [[0, 1], [2], [3]], "expand")
        kept = list(a.bias)
        kinds = ["parallel" if d in kept else "reduction" for d in "bhsk"]
        start = empty([sizes[d] for d in kept])
        start = line(f"linalg.fill ins(%zero : f32) outs({start.name} : {start.type}) -> {start.type}", start.shape)
        out.append(generic(["(b, h, s, k) -> (b, h, s, k)", f"(b, h, s, k) -> {axes(kept)}"], kinds, [of_heads], start, "      %a = arith.addf %x0, %x1 : f32\n      linalg.yield %a : f32"))
    return out + ([dv] if a.broken == "early" else []) + ([result] if a.result else [])


shapes = dict(q=[*place(a.heads, a.length), a.dim], k=[*place(kv, keys), a.dim], v=[*place(kv, keys), values], do=[*place(a.heads, a.length), values])
arguments = [Value(shape, t, f"%{name}") for name, shape in shapes.items()]
of_rows = [a.batch, a.heads, a.length]
named = dict(logs=("l", of_rows, "f32"), result=("o", shapes["do"], t), products=("d", of_rows, "f32"))
extra = {name: Value(shape, element, "%given_" + name) for what, (name, shape, element) in named.items() if what in given}
sizes = dict(b=a.batch, h=a.heads, s=a.length, k=keys)
more, extras = {}, []


def also(name, dims, element):
    """An argument that scores read."""
    value = Value([sizes[d] for d in dims], element, f"%of_{name}")
    more[name] = (value, dims)
    extras.append((name, value))


if a.alibi:
    also("slopes", "h", "f32")
if a.bias:
    also("bias", a.bias, a.bias_type)
if a.bits:
    also("bits", a.bits, "i1")
if a.lengths:
    also("lengths", "b", "i32")
if a.query_lengths:
    also("query_lengths", "b", "i32")
if a.segments != "none":
    also("row_labels", "bs", a.id_type)
    if a.segments == "apart" or keys != a.length:
        also("key_labels", "bk", a.id_type)
    else:
        more["key_labels"] = (more["row_labels"][0], "bk")
results = graph(*arguments, **extra)
arguments += [*extra.values(), *(value for _, value in extras)]
window = a.window or a.length + keys
header = ", ".join(f"{x.name}: {x.type}" for x in arguments)
text = f"""func.func @main({header}) -> ({", ".join(x.type for x in results)}) {{
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %none = arith.constant 0xFF800000 : f32
    %hidden = arith.constant {"-2.38e+38" if a.hides == "low" else "0xFF800000"} : f32
    %scale = arith.constant {scale!r} : f32
    %window = arith.constant {window} : index
""" + "\n".join(lines) + f"""
    return {", ".join(x.name for x in results)} : {", ".join(x.type for x in results)}
}}
"""
a.folder.mkdir(exist_ok=True)
(a.folder / "graph.mlir").write_text(text)
if a.text:
    raise SystemExit

random = np.random.default_rng(7)


def drawn(shape):
    """Numbers that both types have: 8 bits of mantissa."""
    x = random.standard_normal(shape).astype(np.float32)
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


def as_type(x):
    """As the type's file: bf16 is f32 without its lower half."""
    if t == "f16":
        return x.astype(np.float16)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


drawn_like = drawn
drawn = {name: drawn(shape) for name, shape in shapes.items()}
heads_first = lambda x: x.astype(np.float64).transpose(0, 2, 1, 3) if a.layout == "bshd" else x.astype(np.float64)
q, k, v, do = (heads_first(drawn[name]) for name in ("q", "k", "v", "do"))
k, v = (np.repeat(x, group, 1) for x in (k, v))
s = q @ k.swapaxes(2, 3) * scale
i, j = np.arange(a.length)[:, None], np.arange(keys)
data, grown, seen = {}, 1.0, np.ones((a.batch, a.heads, a.length, keys), bool)
spread_out = lambda name, dims: data[name][tuple(slice(None) if d in dims else None for d in "bhsk")]
if a.cap:
    t_of = np.tanh(s / a.cap)
    s, grown = a.cap * t_of, 1 - t_of ** 2
if a.alibi:
    data["slopes"] = (2.0 ** -np.arange(1, a.heads + 1)).astype(np.float32)
    s = s - (i - j) * spread_out("slopes", "h")
if a.bias:
    data["bias"] = drawn_like([sizes[d] for d in a.bias])
    s = s + spread_out("bias", a.bias)
if a.mask != "none":
    seen = seen & (j <= i) & (j + window > i)
if a.bits:
    data["bits"] = random.random([sizes[d] for d in a.bits]) < 0.5
    seen = seen & spread_out("bits", a.bits)
if a.lengths:
    data["lengths"] = np.resize(np.array(a.lengths.split(","), np.int32), a.batch)
    seen = seen & (j < data["lengths"][:, None, None, None])
if a.query_lengths:
    data["query_lengths"] = np.resize(np.array(a.query_lengths.split(","), np.int32), a.batch)
    seen = seen & (i < data["query_lengths"][:, None, None, None])
if a.segments != "none":
    def labels(n):
        own = random.integers(-3, 4, (a.batch, n))
        own = (np.sort(own, 1) if a.segments == "documents" else own).astype(f"int{a.id_type[1:]}")
        # Those of 64 bits differ above the lower half.
        return own * 2 ** 33 if a.id_type == "i64" else own
    data["row_labels"] = labels(a.length)
    data["key_labels"] = labels(keys) if len(more) and more["key_labels"][0] is not more["row_labels"][0] else data["row_labels"]
    seen = seen & (data["row_labels"][:, None, :, None] == data["key_labels"][:, None, None, :])
s = np.where(seen, s, -2.38e38 if a.hides == "low" else -np.inf)
m = s.max(-1, keepdims=True)
with np.errstate(invalid="ignore", divide="ignore"):
    p = np.exp(s - m)
    l = m + np.log(p.sum(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
if a.hides == "guarded":
    p = np.where(np.isfinite(m), p, 0)
if given or a.again:
    p = np.where(np.isfinite(l), p, 0)
o = p @ v
if a.step:
    do = o - do
dp = do @ v.swapaxes(2, 3)
plain = p * (dp - (do * o).sum(-1, keepdims=True))
if a.chosen:
    plain = np.where(seen, plain, 0)
ds = plain * grown * scale
of_group = lambda x: x.reshape(a.batch, kv, group, keys, -1).sum(2)
expected = [ds @ k, of_group(ds.swapaxes(2, 3) @ q), of_group(p.swapaxes(2, 3) @ do)] + ([o] if a.result else [])
if a.bias_gradient:
    of_bias = plain.sum(tuple(at for at, d in enumerate("bhsk") if d not in a.bias))
back = lambda x: x.transpose(0, 2, 1, 3) if a.layout == "bshd" else x
known = [as_type(x) for x in drawn.values()]
of_given = dict(logs=(l[..., 0] * (log2e if a.base == "two" else 1)).astype(np.float32), result=as_type(back(o)), products=(do * o).sum(-1).astype(np.float32))
known += [of_given[what] for what in named if what in given]
of_type = lambda x, element: x if element in ("i1", "i8", "i16", "i32", "i64", "f32") else x.astype(np.float16) if element == "f16" else (x.view(np.uint32) >> 16).astype(np.uint16)
known += [of_type(data[name], value.element) for name, value in extras]
for number, x in enumerate(known):
    np.save(a.folder / f"arg{number}.npy", np.ascontiguousarray(x))
for number, x in enumerate(expected):
    np.save(a.folder / f"out{number}.npy", np.ascontiguousarray(as_type(heads_first(x) if a.layout == "bshd" else x)))
if a.bias_gradient:
    np.save(a.folder / f"out{len(expected)}.npy", of_bias.astype(np.float32))
