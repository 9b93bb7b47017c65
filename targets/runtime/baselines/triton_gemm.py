#!/usr/bin/env python3
"""Compiles Triton's matrix product, C = A * W^T, in many configurations, as kernel packages.

    python3 triton_gemm.py --out triton
    axe-run bench gemm --suite llm --packages PACKAGES --rival triton=triton

`axe-run` checks each, drops the slower ones for each shape and times the fastest in turns with Axe's and cuBLASLt's:
Triton's autotuner in other words, with the same clock, operands and turns for all. It needs Triton alone (3.6 is what
it was written with; no GPU and no PyTorch), and writes code for compute capability 9.0.

The kernel is the field's usual one on Hopper: tiles through tensor descriptors, in groups of rows so that L2 is shared,
over a grid of as many programs as fit (persistent) or of one for each tile, software pipelined or warp specialised.
Sizes are arguments, so that a package computes every shape whose N and K are multiples of 16.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import io
import itertools
import json
import os
import pathlib
import re
import sys
import tarfile
import tempfile

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as error:
    sys.exit(f"{sys.argv[0]}: {error}; install Triton, for example `pip install triton==3.6.0`")

CAPABILITY = 90
SHARED_BYTES = 232448  # a block of compute capability 9.0 (CUDA programming guide, technical specifications)
TYPES = {"f16": "fp16", "bf16": "bf16"}
SWIZZLES = ["none", "b32", "b64", "b128"]  # CUtensorMapSwizzle


@triton.jit
def matmul(
    a,
    w,
    c,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    STORE: tl.constexpr,
    FLATTEN: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    rows = tl.cdiv(m, BM)
    columns = tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    if SPECIALIZE:
        # Roles split a tile and with it descriptors made here; those of the host would keep the whole tile's box, and
        # copy more bytes than the barriers expect.
        a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
        w = tl.make_tensor_descriptor(w, [n, k], [k, 1], [BN, BK])
        c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    for tile in tl.range(
        tl.program_id(0), rows * columns, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIALIZE
    ):
        first = tile // (GROUP * columns) * GROUP
        height = min(rows - first, GROUP)
        within = tile % (GROUP * columns)
        i = (first + within % height) * BM
        j = within // height * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            sums = tl.dot(a.load([i, step * BK]), w.load([j, step * BK]).T, sums)
        if STORE == "whole":
            c.store([i, j], sums.to(c.dtype))
        else:
            low, high = tl.split(tl.permute(tl.reshape(sums, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([i, j], low.to(c.dtype))
            c.store([i, j + BN // 2], high.to(c.dtype))


@dataclasses.dataclass(frozen=True)
class Config:
    """One way to compile the kernel and launch it."""

    dtype: str
    tile: tuple  # rows and columns of C, and the step along K
    warps: int
    stages: int
    group: int
    store: str  # C is written in "whole" tiles or in "halves", which take less shared memory
    flatten: bool = False
    specialize: bool = False
    ctas: int = 1  # programs a multiprocessor; 0 is one for each tile

    def name(self):
        tile = "x".join(map(str, self.tile))
        words = [self.dtype, tile, f"w{self.warps}", f"s{self.stages}", f"g{self.group}", self.store]
        words += ["flat"] * self.flatten + ["ws"] * self.specialize
        return "_".join(words + [f"c{self.ctas}" if self.ctas else "tiles"])


def configs(dtype):
    """What is tried: what published kernels for Hopper use, and what lies around it."""
    out = []

    def add(tile, warps, stages, stores, ctas, **more):
        for group, store, programs in itertools.product((8, 16), stores, ctas):
            out.append(Config(dtype, tile, warps, stages, group, store, ctas=programs, **more))

    for tile in [(128, 256, 64), (256, 128, 64)]:
        add(tile, 8, 3, ["whole", "halves"], [1])
        add(tile, 8, 3, ["whole", "halves"], [1], flatten=True)
        add(tile, 8, 4, ["halves"], [1])
        add(tile, 8, 4, ["halves"], [1], flatten=True)
        add(tile, 8, 3, ["whole"], [0])
        add(tile, 8, 4, ["halves"], [0])
        # Triton counts the warps of one role: two such roles multiply, one copies.
        add(tile, 4, 3, ["whole"], [1], specialize=True)
    add((128, 256, 128), 8, 2, ["halves"], [1, 0])
    add((128, 128, 64), 4, 3, ["halves"], [2, 0])
    add((128, 128, 64), 8, 4, ["whole"], [1, 0])
    add((128, 128, 64), 8, 4, ["whole"], [1], flatten=True)
    add((128, 128, 128), 8, 3, ["halves"], [1, 0])
    add((128, 128, 64), 4, 4, ["whole"], [1], specialize=True)
    return out


def compiled(config):
    """Triton's compiled kernel."""
    element = TYPES[config.dtype]
    bm, bn, bk = config.tile
    boxes = {"a": [bm, bk], "w": [bn, bk], "c": [bm, bn // 2 if config.store == "halves" else bn]}
    operands = {
        name: f"*{element}" if config.specialize else f"tensordesc<{element}{box}>" for name, box in boxes.items()
    }
    constants = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "GROUP": config.group,
        "STORE": config.store,
        "FLATTEN": config.flatten,
        "SPECIALIZE": config.specialize,
    }
    place = matmul.arg_names.index
    # What Triton's launcher finds out of aligned memory and round sizes.
    aligned = [["tt.divisibility", 16]]
    attributes = {(place(name),): aligned for name in ["n", "k"] + list(operands) * config.specialize}
    source = ASTSource(
        matmul,
        operands | dict.fromkeys(["m", "n", "k"], "i32") | dict.fromkeys(constants, "constexpr"),
        {(place(name),): value for name, value in constants.items()},
        attributes,
    )
    options = {"num_warps": config.warps, "num_stages": config.stages}
    return triton.compile(source, target=GPUTarget("cuda", CAPABILITY, 32), options=options)


def entry(ptx):
    """The entry's name, its threads and the sizes of its parameters in bytes."""
    head = re.search(r"\.entry\s+(\w+)\((.*?)\)(.*?)\{", ptx, re.DOTALL)
    if not head:
        raise ValueError("no .entry in the PTX")
    name, params, directives = head.groups()
    threads = re.search(r"\.reqntid\s+(\d+)", directives) or re.search(r"\.maxntid\s+(\d+)", directives)
    if not threads:
        raise ValueError("the PTX does not say how many threads a block has")
    sizes = []
    for param in params.split(".param")[1:]:
        array = re.search(r"\[(\d+)\]", param)
        width = re.search(r"\.[a-z](\d+)", param.replace(".align", ""))
        sizes.append(int(array.group(1)) if array else int(width.group(1)) // 8)
    return name, int(threads.group(1)), sizes


def arguments(config, metadata, programs):
    """The kernel's parameters and what is passed: each a name, a size, a kind, an argument; and the buffers."""
    # A descriptor is passed as a tensor map, then its extents (32 bits) and strides in elements (64 bits).
    tensors = {"a": ("A", "M", "K"), "w": ("W", "N", "K"), "c": ("C", "M", "N")}
    described = list(metadata.tensordesc_meta or [])
    element = {"f16": "f16", "bf16": "bf16"}[config.dtype]
    out, buffers = [], []
    for name in ["a", "w", "c"]:
        memory, rows, columns = tensors[name]
        access = "write" if name == "c" else "read"
        if config.specialize:
            out.append((name, 8, {"pointer": {"access": access, "align": 16}}, {"memory": {"name": memory}}))
            continue
        meta = described.pop(0)
        if meta["elem_size"] != 2 or meta["fp4_padded"]:
            raise ValueError(f"a tensor map of other elements: {meta}")
        box = {
            "dtype": element,
            "box": list(reversed(meta["block_size"])),
            "swizzle": SWIZZLES[meta["swizzle"]],
            "l2_promotion": "b128",  # as Triton's launcher
        }
        tensor = {"at": {"name": memory}, "dims": [columns, rows], "strides_bytes": [{"mul": [columns, 2]}]}
        out.append((f"{name}_map", 128, {"tensor_map": {"access": access, "map": box}}, {"tensor": tensor}))
        numbers = [("rows", 4, rows), ("columns", 4, columns), ("stride", 8, columns), ("one", 8, 1)]
        for what, size, value in numbers:
            kind = {"scalar": {"type": f"i{8 * size}"}}
            out.append((f"{name}_{what}", size, kind, {"int": value}))
    for name in ["m", "n", "k"]:
        out.append((name, 4, {"scalar": {"type": "i32"}}, {"int": name.upper()}))
    # Two scratch pointers come last; one without memory is null.
    for name, size in [("scratch", metadata.global_scratch_size), ("profile", metadata.profile_scratch_size)]:
        if size == 0:
            out.append((name, 8, {"scalar": {"type": "i64"}}, {"int": 0}))
            continue
        shape = [{"mul": [programs, size]}]
        buffers.append({"name": name, "dtype": "u8", "shape": shape, "init": "undefined"})
        out.append((name, 8, {"pointer": {"access": "read_write", "align": 128}}, {"memory": {"name": name}}))
    return out, buffers


def package(config):
    """The bytes of a package, or why there is none."""
    kernel = compiled(config)
    metadata = kernel.metadata
    if metadata.shared > SHARED_BYTES:
        return f"{metadata.shared} bytes of shared memory"
    name, threads, sizes = entry(kernel.asm["ptx"])
    bm, bn, _ = config.tile
    tiles = {"mul": [{"ceil_div": ["M", bm]}, {"ceil_div": ["N", bn]}]}
    programs = {"min": [tiles, {"mul": ["$sm_count", config.ctas]}]} if config.ctas else tiles
    passed, buffers = arguments(config, metadata, programs)
    if [p[1] for p in passed] != sizes:
        raise ValueError(f"this Triton passes parameters of {sizes} bytes, expected {[p[1] for p in passed]}")
    symbol = {"M": ("A", 0, 1), "N": ("W", 0, 16), "K": ("A", 1, 16)}
    cubin = kernel.asm["cubin"]
    manifest = {
        "version": 1,
        "name": "matmul",
        "target": {"kind": "nvidia", "chip": f"sm_{CAPABILITY}a"},
        "tools": {"triton": triton.__version__},
        "candidate": config.name(),
        "source_sha256": hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest(),
        "symbols": [
            {"name": s, "from": {"input": tensor, "dim": dim}, "max": 2**31 - 1, "multiple_of": multiple}
            for s, (tensor, dim, multiple) in symbol.items()
        ],
        "inputs": [
            {"name": "A", "dtype": config.dtype, "shape": ["M", "K"]},
            {"name": "W", "dtype": config.dtype, "shape": ["N", "K"]},
        ],
        "outputs": [{"name": "C", "dtype": config.dtype, "shape": ["M", "N"]}],
        "buffers": buffers,
        "kernels": [
            {
                "name": "matmul",
                "symbol": name,
                "cubin": "matmul.cubin",
                "params": [{"name": p[0], "kind": p[2]} for p in passed],
                "block": [threads, 1, 1],
                "dynamic_shared_bytes": metadata.shared,
            }
        ],
        "steps": [{"launch": {"kernel": "matmul", "args": [p[3] for p in passed], "grid": [programs, 1, 1]}}],
        "files": {"matmul.cubin": {"bytes": len(cubin), "sha256": hashlib.sha256(cubin).hexdigest()}},
    }
    return tar({"manifest.json": json.dumps(manifest).encode(), "matmul.cubin": cubin})


def tar(files):
    """A tar file's bytes, the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def work(config):
    """`package`, with the error as text."""
    try:
        return package(config)
    except Exception as error:  # noqa: BLE001, whatever a compiler raises
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder for the packages")
    parser.add_argument("--dtype", default="f16,bf16", help="f16, bf16 or both, with a comma (the default)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at a time")
    parser.add_argument("--only", default="", help="only configurations whose name has this")
    options = parser.parse_args()
    types = options.dtype.split(",")
    if unknown := set(types) - set(TYPES):
        parser.error(f"no type {', '.join(sorted(unknown))}; f16 or bf16")
    every = [c for dtype in types for c in configs(dtype) if options.only in c.name()]
    options.out.mkdir(parents=True, exist_ok=True)
    made = 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        with concurrent.futures.ProcessPoolExecutor(max(1, options.jobs or 1)) as pool:
            for config, got in zip(every, pool.map(work, every)):
                if isinstance(got, str):
                    print(f"left out {config.name()}: {got}", file=sys.stderr)
                    continue
                (options.out / f"{config.name()}.axe").write_bytes(got)
                made += 1
    print(f"{made} packages of Triton {triton.__version__} in {options.out}")
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
