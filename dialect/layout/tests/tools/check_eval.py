#!/usr/bin/env python3
"""Compare `axe-layout eval` with brute force, written from the definitions alone.

    python3 dialect/layout/tests/tools/check_eval.py target/release/axe-layout [requests] [seed]

A layout is evaluated as the set-valued map x -> { D(x) + r + O }; answers are judged by evaluating them,
never by their spelling. Where the algebra may decline, the checker searches for an answer where that is
feasible and reports a wrong `none`.
"""
import itertools
import json
import random
import subprocess
import sys

AXES = ["m", "lane", "reg"]


def swz(s, a):
    if s is None:
        return a
    b, base, shift = s["swizzle_len"], s["per_element"], s["atom_len"]
    mask = ((1 << b) - 1) << base
    return a ^ ((a >> shift) & mask) if s.get("inner", True) else a ^ ((a & mask) << shift)


def size(layout):
    n = 1
    for e, _, _ in layout["shard"]:
        n *= e
    return n


def point(d, swizzle):
    d = dict(d)
    if swizzle is not None:
        d["m"] = swz(swizzle, d.get("m", 0))
    return frozenset((a, v) for a, v in d.items() if v != 0)


def image(layout, x):
    """f_L(x) as a set of points."""
    base = dict(layout.get("offset", {}))
    for e, s, a in reversed(layout["shard"]):
        base[a] = base.get(a, 0) + (x % e) * s
        x //= e
    out = set()
    for digits in itertools.product(*[range(e) for e, _, _ in layout.get("replica", [])]):
        p = dict(base)
        for j, (_, s, a) in zip(digits, layout["replica"]):
            p[a] = p.get(a, 0) + j * s
        out.add(point(p, layout.get("swizzle")))
    return out


def images(layout):
    return [image(layout, x) for x in range(size(layout))]


def flatten(shape, at):
    x = 0
    for n, c in zip(shape, at):
        x = x * n + c
    return x


def unflatten(shape, x):
    at = []
    for n in reversed(shape):
        at.append(x % n)
        x //= n
    return at[::-1]


def span(layout, axis):
    values = [dict(p).get(axis, 0) for points in images(layout) for p in points]
    return max(values) - min(values) + 1


def random_layout(rng, swizzle=False, positive=False, iters=3, replicas=2):
    strides = list(range(0, 13)) if positive else list(range(-4, 13))
    it = lambda: [rng.choice([1, 2, 2, 3, 4, 6]), rng.choice(strides), rng.choice(AXES)]
    layout = {"shard": [it() for _ in range(rng.randint(0, iters))],
              "replica": [[rng.choice([1, 2, 3]), rng.choice(strides), rng.choice(AXES)]
                          for _ in range(rng.randint(0, replicas))],
              "offset": {a: rng.randint(0 if positive else -5, 9) for a in AXES if rng.random() < 0.3},
              "swizzle": None}
    if swizzle and rng.random() < 0.5:
        b = rng.randint(0, 2)
        layout["swizzle"] = {"per_element": rng.randint(0, 2), "swizzle_len": b,
                             "atom_len": b + rng.randint(0, 1), "inner": rng.random() < 0.7}
    return layout


def factor_shape(rng, n, rank):
    shape = []
    for _ in range(rank - 1):
        d = rng.choice([d for d in range(1, n + 1) if n % d == 0])
        shape.append(d)
        n //= d
    shape.append(n)
    rng.shuffle(shape)
    return shape


def tile_points(outer, inner, s_a, s_b, scaled):
    """The map of the tiling (or direct sum) on the interleaved domain, row-major."""
    axes = {a for lay in (outer, inner) for _, _, a in lay["shard"] + lay["replica"]}
    axes |= set(outer["offset"]) | set(inner["offset"])
    factor = {a: span(inner, a) if scaled else 1 for a in axes}
    shape = [n for pair in zip(s_a, s_b) for n in pair]
    fa, fb = images(outer), images(inner)
    total = 1
    for n in shape:
        total *= n
    out = []
    for x in range(total):
        at = unflatten(shape, x)
        points = set()
        for p in fa[flatten(s_a, at[0::2])]:
            for q in fb[flatten(s_b, at[1::2])]:
                d = {a: v * factor[a] for a, v in p}
                for a, v in q:
                    d[a] = d.get(a, 0) + v
                points.add(point(d, None))
        out.append(points)
    return out


def box(shape, region):
    ranges = [range(b, e) for b, e in region]
    return [flatten(shape, at) for at in itertools.product(*ranges)]


# One generator a family of operations: returns (inputs, judge), judge(result) -> None or a complaint.

def same(want):
    def judge(result):
        got = images(result["layout"])
        return None if got == want else f"map differs: {got[:4]} expected {want[:4]}"
    return judge


def g_canonicalize(rng):
    lay = random_layout(rng, swizzle=True)
    return {"layout": lay}, same(images(lay))


def g_equal(rng):
    a = random_layout(rng, iters=2)
    b = random_layout(rng, iters=2)
    if rng.random() < 0.5:
        b = json.loads(json.dumps(a))
        if b["replica"]:
            i = rng.randrange(len(b["replica"]))
            e, s, ax = b["replica"][i]
            if rng.random() < 0.7:
                b["replica"][i] = [e, -s, ax]
                b["offset"][ax] = b["offset"].get(ax, 0) + (e - 1) * s
            rng.shuffle(b["replica"])
        if b["shard"] and rng.random() < 0.5:
            e, s, ax = b["shard"][0]
            if e % 2 == 0:
                b["shard"][0:1] = [[2, s * (e // 2), ax], [e // 2, s, ax]]
    want = size(a) == size(b) and images(a) == images(b)
    return {"a": a, "b": b}, lambda r: None if r["value"] is want else f"expected {want}"


def g_span(rng):
    lay = random_layout(rng)
    axis = rng.choice(AXES + ["absent"])
    want = span(lay, axis)
    return {"layout": lay, "axis": axis}, lambda r: None if r["value"] == want else f"expected {want}"


def g_size(rng):
    lay = random_layout(rng)
    return {"layout": lay, "axis": None}, lambda r: None if r["value"] == size(lay) else "wrong size"


def g_admits(rng):
    lay = random_layout(rng)
    shape = factor_shape(rng, max(1, size(lay) + rng.choice([0, 0, 1])), rng.randint(1, 3))
    n = 1
    for e in shape:
        n *= e
    return {"layout": lay, "shape": shape}, lambda r: None if r["value"] is (n == size(lay)) else "wrong"


def to_sets(lists):
    return [{frozenset((a, v) for a, v in p.items() if v) for p in points} for points in lists]


def g_apply(rng):
    lay = random_layout(rng, swizzle=True)
    shape = factor_shape(rng, size(lay), rng.randint(1, 3))
    coords = [[rng.randrange(n) for n in shape] for _ in range(4)]
    want = [image(lay, flatten(shape, c)) for c in coords]

    def judge(r):
        if [len(p) for p in r["points"]] != [len(w) for w in want]:
            return "points are repeated or missing"
        return None if to_sets(r["points"]) == want else f"expected {want}"
    return {"layout": lay, "shape": shape, "coords": coords}, judge


def g_invert(rng):
    lay = random_layout(rng, swizzle=True)
    all_images = images(lay)
    points = []
    for _ in range(4):
        if rng.random() < 0.7:
            points.append(dict(rng.choice(sorted(rng.choice(all_images), key=sorted))))
        else:
            points.append({a: rng.randint(-2, 12) for a in AXES})
    want = [[x for x, im in enumerate(all_images) if point(p, None) in im] for p in points]
    return {"layout": lay, "points": points}, \
        lambda r: None if [sorted(i) for i in r["indices"]] == want else f"expected {want}"


def blocks_ok(layout, seps, shape):
    if seps[0] != 0 or seps[-1] != len(layout["shard"]) or len(seps) != len(shape) + 1:
        return "bad separators"
    for k, n in enumerate(shape):
        got = 1
        for e, _, _ in layout["shard"][seps[k]:seps[k + 1]]:
            got *= e
        if got != n:
            return f"block {k} has {got}, expected {n}"
    return None


def g_group(rng):
    lay = random_layout(rng)
    shape = factor_shape(rng, size(lay), rng.randint(1, 3))
    want = images(lay)

    def judge(r):
        return blocks_ok(r["layout"], r["seps"], shape) or same(want)(r)
    return {"layout": lay, "shape": shape}, judge


def g_group_many(rng):
    lay = random_layout(rng)
    shapes = [factor_shape(rng, size(lay), rng.randint(1, 3)) for _ in range(2)]
    want = images(lay)

    def judge(r):
        for seps, shape in zip(r["seps"], shapes):
            bad = blocks_ok(r["layout"], seps, shape)
            if bad:
                return bad
        return same(want)(r)
    return {"layout": lay, "shapes": shapes}, judge


def pair(rng):
    rank = rng.randint(1, 2)
    a, b = random_layout(rng, iters=2, replicas=1), random_layout(rng, iters=2, replicas=1)
    return a, b, factor_shape(rng, size(a), rank), factor_shape(rng, size(b), rank)


def groupable(layout, shape):
    """Whether boundaries of the shape can be cut into the fused digits of D."""
    iters = []
    for e, s, a in layout["shard"]:
        if e == 1:
            continue
        if iters and iters[-1][2] == a and iters[-1][1] == e * s:
            iters[-1] = [iters[-1][0] * e, s, a]
        else:
            iters.append([e, s, a])
    cuts, p = set(), 1
    for n in reversed(shape):
        p *= n
        cuts.add(p)
    low = 1
    for e, s, _ in reversed(iters):
        for c in cuts:
            if low < c < low * e and s != 0 and (c % low or (low * e) % c):
                return False
        low *= e
    return True


def g_tile(rng):
    a, b, sa, sb = pair(rng)
    want = tile_points(a, b, sa, sb, True)

    def judge(r):
        return same(want)(r)
    return {"outer": a, "inner": b, "outer_shape": sa, "inner_shape": sb}, judge


def g_direct_sum(rng):
    a, b, sa, sb = pair(rng)
    want = tile_points(a, b, sa, sb, False)
    return {"left": a, "right": b, "left_shape": sa, "right_shape": sb}, same(want)


def relayout_tiled(a, b, sa, sb, scaled):
    """D/R/O of the tiling when both are given in blocks, one iter a dimension."""
    sp = {x: (span(b, x) if scaled else 1) for x in AXES}
    shard = []
    for (e, s, x), it in zip(a["shard"], b["shard"]):
        shard += [[e, s * sp[x], x], it]
    off = {x: a["offset"].get(x, 0) * sp[x] + b["offset"].get(x, 0) for x in AXES}
    return {"shard": shard, "replica": [[e, s * sp[x], x] for e, s, x in a["replica"]] + b["replica"],
            "offset": off, "swizzle": None}


def simple_pair(rng):
    rank = rng.randint(1, 2)
    def one(replicas):
        lay = random_layout(rng, iters=0, replicas=replicas)
        lay["shard"] = [[rng.choice([1, 2, 3, 4]), rng.randint(-3, 6), rng.choice(AXES)] for _ in range(rank)]
        return lay
    a, b = one(1), one(1)
    return a, b, [i[0] for i in a["shard"]], [i[0] for i in b["shard"]]


def g_tile_of(rng):
    a, b, sa, sb = simple_pair(rng)
    tiled = relayout_tiled(a, b, sa, sb, True)
    ts = [x * y for x, y in zip(sa, sb)]
    want = images(tiled)

    def judge(r):
        got = tile_points(r["layout"], b, sa, sb, True)
        return None if got == want else "the factor does not tile back"
    return {"tiled": tiled, "tiled_shape": ts, "inner": b, "inner_shape": sb}, judge


def g_tile_of_outer(rng):
    a, b, sa, sb = simple_pair(rng)
    tiled = relayout_tiled(a, b, sa, sb, True)
    ts = [x * y for x, y in zip(sa, sb)]
    want = images(tiled)

    def judge(r):
        got = tile_points(a, r["layout"], sa, sb, True)
        return None if got == want else "the factor does not tile back"
    return {"tiled": tiled, "tiled_shape": ts, "outer": a, "outer_shape": sa}, judge


def g_direct_sum_of(rng):
    a, b, sa, sb = simple_pair(rng)
    total = relayout_tiled(a, b, sa, sb, False)
    inter = [n for p in zip(sa, sb) for n in p]
    want = images(total)
    side = rng.choice(["left", "right"])
    known, shape = (a, sa) if side == "left" else (b, sb)

    def judge(r):
        other = r["layout"]
        got = tile_points(known, other, sa, sb, False) if side == "left" else tile_points(other, known, sa, sb, False)
        return None if got == want else "the summand does not add back"
    return {"sum": total, "interleaved_shape": inter, "known": known, "known_shape": shape, "known_side": side}, judge


def g_slice(rng):
    lay = random_layout(rng, swizzle=rng.random() < 0.3)
    shape = factor_shape(rng, size(lay), rng.randint(1, 3))
    region = []
    for n in shape:
        b = rng.randrange(n)
        region.append([b, rng.randint(b + 1, n)])
    all_images = images(lay)
    return {"layout": lay, "shape": shape, "region": region}, same([all_images[x] for x in box(shape, region)])


def g_swizzle_apply(rng):
    b = rng.randint(0, 3)
    s = {"per_element": rng.randint(0, 4), "swizzle_len": b, "atom_len": b + rng.randint(0, 2), "inner": rng.random() < 0.7}
    values = [rng.randint(0, 4095) for _ in range(6)]
    want = [swz(s, v) for v in values]
    return {"swizzle": s, "values": values}, lambda r: None if r["values"] == want else f"expected {want}"


def g_bank_ways(rng):
    lay = random_layout(rng, swizzle=True, positive=True, replicas=0)
    lay["shard"] = [[e, s * rng.choice([1, 8, 32]), "m"] for e, s, _ in lay["shard"]]
    lay["offset"] = {}
    shape = factor_shape(rng, size(lay), rng.randint(1, 2))
    coords = [[rng.randrange(n) for n in shape] for _ in range(rng.choice([1, 8, 32]))]
    eb = rng.choice([1, 2, 4, 8, 16])
    words = set()
    for c in coords:
        byte = dict(next(iter(image(lay, flatten(shape, c))))).get("m", 0) * eb
        words |= set(range(byte // 4, (byte + eb - 1) // 4 + 1))
    ways = {}
    for w in words:
        ways[w % 32] = ways.get(w % 32, 0) + 1
    want = max(ways.values())
    return {"layout": lay, "shape": shape, "coords": coords, "elem_bytes": eb}, \
        lambda r: None if r["value"] == want else f"expected {want}, got {r['value']}"


def places(layout):
    """Each place with the indices that live there."""
    out = {}
    for x, points in enumerate(images(layout)):
        for p in points:
            out.setdefault(p, set()).add(x)
    return out


def as_point(entries):
    return frozenset((a, v) for a, v in entries.items() if v != 0)


def g_alias(rng):
    lay = random_layout(rng, swizzle=True)
    found = places(lay)
    injective = all(len(xs) == 1 for xs in found.values())

    def judge(r):
        if r["injective"] != injective:
            return f"expected injective {injective}"
        if not injective:
            w = r["witness"]
            held = found.get(as_point(w["point"]), set())
            if w["first"] == w["second"] or not {w["first"], w["second"]} <= held:
                return f"the witness is wrong: {held} live there"
    return {"layout": lay}, judge


def g_overlap(rng):
    a, b = random_layout(rng, swizzle=True), random_layout(rng, swizzle=True)
    mine, its = places(a), places(b)
    shared = set(mine) & set(its)

    def judge(r):
        if r["overlap"] != bool(shared):
            return f"expected overlap {bool(shared)}"
        if shared:
            w = r["witness"]
            p = as_point(w["point"])
            if w["first"] not in mine.get(p, ()) or w["second"] not in its.get(p, ()):
                return "the witness is wrong"
    return {"a": a, "b": b}, judge


def g_intersect(rng):
    a, b = random_layout(rng), random_layout(rng)
    if rng.random() < 0.5:
        b = dict(b, shard=a["shard"][:2] + b["shard"][:1], offset=a["offset"])
    shared = set(places(a)) & set(places(b))

    def judge(r):
        got = set(places(r["layout"]))
        return None if got == shared else f"expected the places {shared}, got {got}"
    return {"a": a, "b": b}, judge


def g_vector_width(rng):
    lay = random_layout(rng, swizzle=True, replicas=1)
    if rng.random() < 0.7:
        lay["shard"] = lay["shard"] + [[rng.choice([2, 4, 8, 16]), 1, "m"]]
    shape = factor_shape(rng, size(lay), rng.randint(1, 2))
    dim = rng.randrange(len(shape))
    eb = rng.choice([1, 2, 4, 8, 16])
    base = eb * rng.choice([1, 2, 4, 16])
    maps = images(lay)
    best = None
    for v in [n // eb for n in (1, 2, 4, 8, 16) if n >= eb]:
        if shape[dim] % v:
            continue
        fine, align = True, min(16, base)
        for x in range(len(maps)):
            at = unflatten(shape, x)
            if at[dim] % v:
                continue
            for p in maps[x]:
                m = dict(p).get("m", 0)
                while m * eb % align:
                    align //= 2
                for j in range(1, v):
                    y = flatten(shape, [c + j if k == dim else c for k, c in enumerate(at)])
                    fine = fine and as_point({**dict(p), "m": m + j}) in maps[y]
        if fine and (align >= v * eb or v == 1):
            best = {"elements": v, "bytes": v * eb, "alignment": align}
    return {"layout": lay, "shape": shape, "dim": dim, "elem_bits": 8 * eb, "base_alignment": base}, \
        lambda r: None if r == best else f"expected {best}"


def random_lanes(rng):
    width = rng.choice([1, 2, 4, 8, 16])
    step = rng.choice([0, 1, 2, 4, 8, 16, 32, 33])
    lanes = [None if rng.random() < 0.1 else (lane * step + rng.choice([0, 0, 0, 5])) * width
             for lane in range(rng.choice([1, 8, 32]))]
    return width, lanes


def g_bank_conflicts(rng):
    width, lanes = random_lanes(rng)
    group = 128 // max(width, 4)
    passes = ideal = 0
    for k in range(0, len(lanes), group):
        words = {(a + i) // 4 for a in lanes[k:k + group] if a is not None for i in range(width)}
        banks = {}
        for w in words:
            banks[w % 32] = banks.get(w % 32, 0) + 1
        passes += max(banks.values(), default=0)
        ideal += bool(words)
    want = (passes, ideal, passes - ideal)
    return {"bytes": width, "addresses": lanes}, \
        lambda r: None if (r["passes"], r["ideal"], r["conflicts"]) == want else f"expected {want}"


def g_coalescing(rng):
    width, lanes = random_lanes(rng)
    touched = {a + i for a in lanes if a is not None for i in range(width)}
    want = (len({b // 32 for b in touched}), -(-len(touched) // 32), len(touched))
    return {"bytes": width, "addresses": lanes}, \
        lambda r: None if (r["sectors"], r["minimum"], r["bytes"]) == want else f"expected {want}"


def g_permute_groups(rng):
    lay = random_layout(rng)
    n = len(lay["shard"])
    k = rng.randint(1, 3)
    seps = [0] + sorted(rng.randint(0, n) for _ in range(k - 1)) + [n]
    perm = list(range(k))
    rng.shuffle(perm)
    blocks = [lay["shard"][seps[i]:seps[i + 1]] for i in range(k)]
    want = images(dict(lay, shard=[i for p in perm for i in blocks[p]]))
    return {"layout": lay, "seps": seps, "perm": perm}, same(want)


def cute_leaves(shape, stride):
    if isinstance(shape, int):
        return [(shape, stride)]
    return [leaf for s, d in zip(shape, stride) for leaf in cute_leaves(s, d)]


def cute_apply(a, i):
    leaves, out = cute_leaves(a["shape"], a["stride"]), 0
    for k, (n, d) in enumerate(leaves):
        digit = i if k == len(leaves) - 1 else i % n
        out += digit * d
        i //= n
    return out


def cute_size(a):
    n = 1
    for e, _ in cute_leaves(a["shape"], a["stride"]):
        n *= e
    return n


def random_cute(rng, compact=False):
    k = rng.randint(1, 3)
    shape = [rng.choice([1, 2, 3, 4, 6, 8]) for _ in range(k)]
    stride = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 24]) for _ in range(k)]
    if compact:
        order, at = list(range(k)), 1
        rng.shuffle(order)
        for j in order:
            stride[j] = at
            at *= shape[j]
    return {"shape": shape, "stride": stride} if k > 1 or rng.random() < 0.5 else {"shape": shape[0], "stride": stride[0]}


def g_cute_apply(rng):
    a = random_cute(rng)
    idx = [rng.randrange(cute_size(a)) for _ in range(5)]
    want = [cute_apply(a, i) for i in idx]
    return {"a": a, "indices": idx}, lambda r: None if r["values"] == want else f"expected {want}"


def g_cute_coalesce(rng):
    a = random_cute(rng)
    want = [cute_apply(a, i) for i in range(cute_size(a))]
    return {"a": a}, lambda r: None if [cute_apply(r, i) for i in range(cute_size(r))] == want else "map differs"


def g_cute_composition(rng):
    a, b = random_cute(rng, True), random_cute(rng)
    want = [cute_apply(a, cute_apply(b, i)) for i in range(cute_size(b))]
    return {"a": a, "b": b}, lambda r: None if [cute_apply(r, i) for i in range(cute_size(r))] == want else "map differs"


def xor_apply(columns, x):
    out = 0
    for k, c in enumerate(columns):
        if x >> k & 1:
            out ^= c
    return out


def g_linear_compose(rng):
    n = rng.randint(1, 4)
    a = [rng.randrange(16) for _ in range(n)]
    b = [rng.randrange(1 << n) for _ in range(rng.randint(1, 4))]
    want = [xor_apply(a, c) for c in b]
    return {"a": a, "b": b}, lambda r: None if r["columns"] == want else f"expected {want}"


def random_invertible(rng, n):
    m = [1 << i for i in range(n)]
    for _ in range(8):
        i, j = rng.randrange(n), rng.randrange(n)
        if i != j:
            m[i] ^= m[j]
    rng.shuffle(m)
    return m


def g_linear_inverse(rng):
    m = random_invertible(rng, rng.randint(1, 5))
    return {"columns": m}, lambda r: None if all(xor_apply(r["columns"], c) == 1 << k for k, c in enumerate(m)) else "no inverse"


def g_linear_convert(rng):
    n = rng.randint(1, 5)
    src, dst = random_invertible(rng, n), random_invertible(rng, n)
    return {"src": src, "dst": dst}, \
        lambda r: None if [xor_apply(dst, c) for c in r["columns"]] == src else "dst * answer is not src"


def run_steps(steps, regs):
    for st in steps:
        if st["op"] == "select":
            regs = [[regs[l][i] for i in st["map"][l]] for l in range(len(regs))]
        elif st["op"] == "select_linear":
            regs = [[regs[l][xor_apply(st["from_reg"], r) ^ xor_apply(st["from_lane"], l) ^ st["const"]]
                     for r in range(st["regs"])] for l in range(len(regs))]
        else:
            lanes = st.get("lane") or [xor_apply(st["lane_linear"], l) ^ st.get("const", 0) for l in range(len(regs))]
            src, dst = st["src"], st["dst"]
            src, dst = (src, dst) if isinstance(src, list) else ([src], [dst])
            new = [list(r) for r in regs]
            for s, d in zip(src, dst):
                for l in range(len(regs)):
                    while len(new[l]) <= d:
                        new[l].append(None)
                    new[l][d] = regs[lanes[l]][s]
            regs = new
    return regs


def g_warp_shuffle(rng):
    rb, lb = rng.randint(0, 3), rng.randint(1, 4)
    s, d = random_invertible(rng, rb + lb), random_invertible(rng, rb + lb)
    src, dst = {"reg": s[:rb], "lane": s[rb:]}, {"reg": d[:rb], "lane": d[rb:]}
    table = lambda t: [[xor_apply(t["reg"], r) ^ xor_apply(t["lane"], l) for r in range(1 << rb)] for l in range(1 << lb)]
    want = table(dst)

    def judge(r):
        got = run_steps(r["steps"], table(src))
        return None if [row[:1 << rb] for row in got] == want else "the steps do not arrive"
    return {"src": src, "dst": dst, "elem_bits": rng.choice([8, 16, 32, 64])}, judge


def g_storage(rng):
    lay = random_layout(rng, swizzle=True)
    keep = lambda its: [i for i in its if i[2] not in ("lane",)]
    want_shard = keep(lay["shard"])
    want = images(dict(lay, shard=want_shard, replica=keep(lay["replica"]),
                       offset={a: v for a, v in lay["offset"].items() if a != "lane"}))
    return {"layout": lay, "thread_axes": ["lane"]}, same(want)


def g_split_axes(rng):
    lay = random_layout(rng, positive=True)
    extent = rng.choice([2, 4, 8, 32])
    want = []
    for im in images(lay):
        points = set()
        for p in im:
            d = dict(p)
            v = d.pop("lane", 0)
            d["warp"], d["l"] = v // extent, v % extent
            points.add(point(d, None))
        want.append(points)
    return {"layout": lay, "axis": "lane", "outer": "warp", "inner": "l", "extent": extent}, same(want)


def g_fuse_axes(rng):
    lay = random_layout(rng)
    rules = {"lane": ["thread", 1], "reg": ["thread", 32]}
    want = []
    for im in images(lay):
        points = set()
        for p in im:
            d = {}
            for a, v in p:
                t, k = rules.get(a, (a, 1))
                d[t] = d.get(t, 0) + v * k
            points.add(point(d, None))
        want.append(points)
    return {"layout": lay, "rules": rules}, same(want)


def g_pack(rng):
    lay = random_layout(rng)
    num = rng.choice([2, 4])
    its = lambda k: [[e, s * (num if a == "m" else 1), a] for e, s, a in lay[k]]
    wide = dict(lay, shard=its("shard") + [[num, 1, "m"]], replica=its("replica"),
                offset={a: v * (num if a == "m" else 1) for a, v in lay["offset"].items()})
    return {"layout": wide, "num": num, "axis": "m"}, same(images(lay))


def g_unpack(rng):
    lay = random_layout(rng)
    num = rng.choice([2, 4])
    its = lambda k: [[e, s * (num if a == "m" else 1), a] for e, s, a in lay[k]]
    wide = dict(lay, shard=its("shard") + [[num, 1, "m"]], replica=its("replica"),
                offset={a: v * (num if a == "m" else 1) for a, v in lay["offset"].items()})
    return {"layout": lay, "num": num, "axis": "m"}, same(images(wide))


GENERATORS = {name[2:]: f for name, f in sorted(globals().items()) if name.startswith("g_")}
GENERATORS["compose_slice"] = g_slice
MUST = {"canonicalize", "equal", "span", "size", "admits", "apply", "invert", "direct_sum_of", "tile_of",
        "tile_of_outer", "swizzle_apply", "bank_ways", "permute_groups", "cute_apply", "cute_coalesce",
        "linear_compose", "linear_inverse", "linear_convert", "warp_shuffle", "fuse_axes", "alias", "overlap",
        "vector_width", "bank_conflicts", "coalescing"}


def main():
    binary = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    names = sys.argv[4].split(",") if len(sys.argv) > 4 else sorted(GENERATORS)
    lines, judges = [], {}
    for k in range(count):
        op = names[k % len(names)]
        inputs, judge = GENERATORS[op](rng)
        line = json.dumps({"id": str(k), "op": op, "inputs": inputs})
        lines.append(line)
        judges[str(k)] = (op, judge, line)
    out = subprocess.run([binary, "eval"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in out.stdout.splitlines()]
    assert len(answers) == count, f"{len(answers)} answers to {count} requests"
    tally, bad = {}, 0
    for answer in answers:
        op, judge, line = judges[answer["id"]]
        if "result" in answer:
            try:
                complaint = judge(answer["result"])
            except (KeyError, TypeError, IndexError) as error:
                complaint = f"malformed answer: {error!r}"
            verdict = "wrong" if complaint else "right"
        else:
            verdict = answer["error"]["kind"]
            complaint = answer["error"]["message"] if op in MUST and verdict in ("none", "invalid") else None
        counts = tally.setdefault(op, {})
        counts[verdict] = counts.get(verdict, 0) + 1
        if complaint:
            bad += 1
            if bad <= 20:
                print(f"{op}: {complaint}\n  {line}\n  {json.dumps(answer)[:400]}")
    for op in sorted(tally):
        print(f"{op:18}", tally[op])
    print("complaints:", bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
