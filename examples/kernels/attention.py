"""Writes the attention kernels of this folder for other sizes: attention.mlir is what it writes without options, attention_causal.mlir
what it writes with --causal.

    python3 attention.py --batch 2 --length 8192 --heads 32 --kv-heads 8 --dim 128 [--causal] [--dtype bf16] > kernel.mlir
"""
import argparse

HEADER = """// O = softmax(Q K^T / sqrt(D)) V for {what}, in {dtype} with sums in f32: FlashAttention-3's loop
// (arXiv 2407.08608) written by hand. Tensors are [batch, place, head, {d}]; {group} query heads share a head of K and V.
// attention.py writes it for other sizes.
//
//   axe compile examples/kernels/{file} --target sm_90a -o attention.axe
//   axe explain examples/kernels/{file} --target sm_90a
//
// The idea. A CTA has {rows} rows of Q; its producer brings K and V in blocks of {columns} rows through a ring of two stages each, from the
// last block to the first. {Consumers} consumers of 64 rows each multiply and keep the row's greatest score m, its sum l and O in registers:
// a new block with scores S makes m' = max(m, S), P = exp(S - m'), l' = l exp(m - m') + sum P, O' = O exp(m - m') + P V. The
// loop issues the scores of a block before P V of the block before it, so that the tensor cores work while exponentials are formed.

// {d} columns of 16 bits are {panels} of 64, the 128 bytes that the widest swizzle works on.
#q_layout = {q_layout}
#kv_layout = {kv_layout}
#ring_layout = {ring_layout}
// The accumulators of wgmma (see gemm_roles.mlir). P has the layout of S: as operand A it stays in its registers. A value a row is
// held by the four lanes that hold parts of the row.
#s_layout = {s_layout}
#o_layout = {o_layout}
#row_layout = {row_layout}
// Memory as [batch, head, place, column], by strides.
#qo_strides = {qo_strides}
#kv_strides = {kv_strides}
!qo_memory = memref<{batch}x{length}x{heads}x{d}x{dtype}>
!kv_memory = memref<{batch}x{keys}x{kv_heads}x{d}x{dtype}>
!qo_heads = memref<{batch}x{heads}x{length}x{d}x{dtype}, #qo_strides>
!kv_heads = memref<{batch}x{kv_heads}x{keys}x{d}x{dtype}, #kv_strides>
!qo_box = memref<{rows}x{d}x{dtype}, strided<[{qo_row}, 1]>>
!kv_box = memref<{columns}x{d}x{dtype}, strided<[{kv_row}, 1]>>
!q_shared = memref<{rows}x{d}x{dtype}, #q_layout, #axe.space<shared>>
!kv_shared = memref<{columns}x{d}x{dtype}, #kv_layout, #axe.space<shared>>
!ring = memref<2x{columns}x{d}x{dtype}, #ring_layout, #axe.space<shared>>
!scores = tensor<{rows}x{columns}xf32, #s_layout>
!p = tensor<{rows}x{columns}x{dtype}, #s_layout>
!o = tensor<{rows}x{d}xf32, #o_layout>
!o_narrow = tensor<{rows}x{d}x{dtype}, #o_layout>
!row = tensor<{rows}xf32, #row_layout>
!qo_tensor = tensor<{batch}x{length}x{heads}x{d}x{dtype}>
!kv_tensor = tensor<{batch}x{keys}x{kv_heads}x{d}x{dtype}>

axe.kernel @attention(%Q: !qo_memory, %K: !kv_memory, %V: !kv_memory, %O: !qo_memory) threads({threads}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %heads = arith.constant {heads} : index
  %group = arith.constant {group} : index
  %rows = arith.constant {rows} : index
  %columns = arith.constant {columns} : index
  %keys = arith.constant {keys} : index
  %sequences = arith.constant {sequences} : index
  %tiles = arith.constant {tiles} : index
  %blocks = arith.constant {blocks} : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  // Scores are scaled by log2(e) / sqrt({d}), and exponentials are powers of two.
  %scale = arith.constant {scale} : f32
  %Qh = axe.view %Q : !qo_memory to !qo_heads
  %Kh = axe.view %K : !kv_memory to !kv_heads
  %Vh = axe.view %V : !kv_memory to !kv_heads
  %Oh = axe.view %O : !qo_memory to !qo_heads
  %Qs = axe.alloc : !q_shared
  %Ks = axe.alloc : !ring
  %Vs = axe.alloc : !ring
  %q_ring = axe.pipeline.create stages(1) : !axe.pipeline
  %k_ring = axe.pipeline.create stages(2) : !axe.pipeline
  %v_ring = axe.pipeline.create stages(2) : !axe.pipeline{schedule}
  axe.scope warpgroup [0, 1) registers({producer}) {{
    axe.scope warp [0, 1) {{
      {loop}
{place}
{load_k}
        %q_slot, %q_stage = axe.pipeline.acquire %q_ring : !axe.slot
        %q = axe.slice %Qh[%b, %h, %m, %c0] : !qo_heads to !qo_box
        axe.copy async %q to %Qs signal %q_slot : !qo_box to !q_shared
        axe.pipeline.commit %q_ring, %q_slot
        scf.for %t = %c1 to %n step %c1 {{
          %j = arith.subi %top, %t : index
          %above = arith.addi %j, %c1 : index
{load_k_next}
{load_v_next}
        }}
{load_v}
      }}
    }}
  }}

  axe.scope warpgroup [1, {ends}) registers({consumer}) {{
    {loop_consumer}
{place_consumer}
      // The last block alone{masked}.
      %o0 = axe.fill %zero : f32 -> !o
      %q_slot, %q_stage = axe.pipeline.wait %q_ring : !axe.slot
      %k_slot, %k_stage = axe.pipeline.wait %k_ring : !axe.slot
      %k = axe.slice %Ks[%k_stage, %c0, %c0] : !ring to !kv_shared
      %s_issued = axe.gemm async %Qs, %k {{trans_b}} : !q_shared, !kv_shared -> !scores
      %s_all = axe.wait %s_issued : !scores
      axe.pipeline.release %k_ring, %k_slot
{mask}
      %m0 = axe.reduce <max> {s0} dims [1] : !scores -> !row
      %m0_wide = axe.broadcast %m0 dims [1] : !row -> !scores
      %e0 = axe.map ins({s0}, %m0_wide : !scores, !scores) -> !scores {{ ^bb0(%x: f32, %y: f32):
        %scaled = arith.mulf %y, %scale : f32
        %negated = arith.negf %scaled : f32
        %z = math.fma %x, %scale, %negated : f32
        %e = math.exp2 %z fastmath<afn> : f32
        axe.yield %e : f32 }}
      %l0 = axe.reduce <add> %e0 dims [1] : !scores -> !row
      %p0 = axe.cast %e0 : !scores -> !p
      %v0_slot, %v0_stage = axe.pipeline.wait %v_ring : !axe.slot

      // V's stage is that of the block before. S of this block and P V of that one are issued together; `pending = 1` waits for S.
      %last:6 = scf.for %t = %c1 to %n step %c1 iter_args(%o = %o0, %p = %p0, %m_old = %m0, %l = %l0, %v_slot = %v0_slot, %v_stage = %v0_stage) -> (!o, !p, !row, !row, !axe.slot, index) {{
        %kn_slot, %kn_stage = axe.pipeline.wait %k_ring : !axe.slot
        %kn = axe.slice %Ks[%kn_stage, %c0, %c0] : !ring to !kv_shared
        %sn_issued = axe.gemm async %Qs, %kn {{trans_b}} : !q_shared, !kv_shared -> !scores
        %v = axe.slice %Vs[%v_stage, %c0, %c0] : !ring to !kv_shared
        %o_issued = axe.gemm async %p, %v acc %o : !o : !p, !kv_shared -> !o
        %s = axe.wait %sn_issued {{pending = 1 : i64}} : !scores
        axe.pipeline.release %k_ring, %kn_slot
        %m_block = axe.reduce <max> %s dims [1] : !scores -> !row
        %m_new = axe.map ins(%m_old, %m_block : !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32): %z = arith.maxnumf %x, %y : f32 axe.yield %z : f32 }}
        %wide = axe.broadcast %m_new dims [1] : !row -> !scores
        %e = axe.map ins(%s, %wide : !scores, !scores) -> !scores {{ ^bb0(%x: f32, %y: f32):
          %scaled = arith.mulf %y, %scale : f32
          %negated = arith.negf %scaled : f32
          %z = math.fma %x, %scale, %negated : f32
          %power = math.exp2 %z fastmath<afn> : f32
          axe.yield %power : f32 }}
        %a = axe.map ins(%m_old, %m_new : !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32):
          %scaled = arith.mulf %y, %scale : f32
          %negated = arith.negf %scaled : f32
          %z = math.fma %x, %scale, %negated : f32
          %power = math.exp2 %z fastmath<afn> : f32
          axe.yield %power : f32 }}
        %sum = axe.reduce <add> %e dims [1] : !scores -> !row
        %l_new = axe.map ins(%l, %a, %sum : !row, !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32, %z: f32): %w = math.fma %x, %y, %z : f32 axe.yield %w : f32 }}
        // The wait for this block's V stands here because ptxas moves the wait for P V, which is next, above the exponentials else: a
        // loop of its own ends a basic block.
        %vn_slot, %vn_stage = axe.pipeline.wait %v_ring : !axe.slot
        %o_old, %e_done = axe.wait %o_issued, %e : !o, !scores
        axe.pipeline.release %v_ring, %v_slot
        %p_new = axe.cast %e_done : !scores -> !p
        %a_wide = axe.broadcast %a dims [1] : !row -> !o
        %o_new = axe.map ins(%o_old, %a_wide : !o, !o) -> !o {{ ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }}
        scf.yield %o_new, %p_new, %m_new, %l_new, %vn_slot, %vn_stage : !o, !p, !row, !row, !axe.slot, index
      }}
      axe.pipeline.release %q_ring, %q_slot
      %v_last = axe.slice %Vs[%last#5, %c0, %c0] : !ring to !kv_shared
      %o_last = axe.gemm async %last#1, %v_last acc %last#0 : !o : !p, !kv_shared -> !o
      %o_sums = axe.wait %o_last : !o
      axe.pipeline.release %v_ring, %last#4
      %inverse = axe.map ins(%last#3 : !row) -> !row {{ ^bb0(%x: f32): %y = arith.divf %one, %x : f32 axe.yield %y : f32 }}
      %inverse_wide = axe.broadcast %inverse dims [1] : !row -> !o
      %result = axe.map ins(%o_sums, %inverse_wide : !o, !o) -> !o {{ ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }}
      %narrow = axe.cast %result : !o -> !o_narrow
      %box = axe.slice %Oh[%b, %h, %m, %c0] : !qo_heads to !qo_box
      axe.copy %narrow to %box : !o_narrow to !qo_box
    }}
  }}
  axe.return
}}

func.func @main(%q: !qo_tensor, %k: !kv_tensor, %v: !kv_tensor) -> !qo_tensor {{
  %c1 = arith.constant 1 : index
  %ctas = arith.constant {ctas} : index
  %empty = tensor.empty() : !qo_tensor
  %o = axe.launch @attention grid(%ctas, %c1, %c1) ins(%q, %k, %v : !qo_tensor, !kv_tensor, !kv_tensor) outs(%empty : !qo_tensor) -> !qo_tensor
  return %o : !qo_tensor
}}
"""

SNAKE = """  %c2 = arith.constant 2 : index
  // Long tiles first, and every other round of the CTAs backwards: each CTA gets long and short ones.
  %last_tile = arith.subi %tiles, %c1 : index
  %cta = gpu.block_id x
  %ctas = gpu.grid_dim x
  %last_cta = arith.subi %ctas, %c1 : index
  %backwards = arith.subi %last_cta, %cta : index
  %all = arith.muli %sequences, %tiles : index
  %whole = arith.divui %all, %ctas : index
  %rest = arith.remui %all, %ctas : index
  %parity = arith.remui %whole, %c2 : index
  %odd = arith.cmpi ne, %parity, %c0 : index
  %place = arith.select %odd, %backwards, %cta : index
  %more = arith.cmpi ult, %place, %rest : index
  %one_more = arith.select %more, %c1, %c0 : index
  %rounds = arith.addi %whole, %one_more : index"""

SNAKE_LOOP = """scf.for %round = %c0 to %rounds step %c1 {
  %round_parity = arith.remui %round, %c2 : index
  %round_odd = arith.cmpi ne, %round_parity, %c0 : index
  %own = arith.select %round_odd, %backwards, %cta : index
  %before = arith.muli %round, %ctas : index
  %number = arith.addi %before, %own : index
  %i, %bh = axe.tile_at %number in (%tiles, %sequences) raster(rows)"""

FULL_LOOP = "axe.for_tiles (%bh, %i) in (%sequences, %tiles) raster(rows) {"

PLACE = """%b = arith.divui %bh, %heads : index
%h = arith.remui %bh, %heads : index
{m}
{n}
%top = arith.subi %n, %c1 : index"""

LOAD = """%{x}{s}_slot, %{x}{s}_stage = axe.pipeline.acquire %{x}_ring : !axe.slot
%{x}{s}_first = arith.muli {j}, %columns : index
%{x}{s} = axe.slice %{X}h[%b, %h_kv, %{x}{s}_first, %c0] : !kv_heads to !kv_box
%{x}{s}_shared = axe.slice %{X}s[%{x}{s}_stage, %c0, %c0] : !ring to !kv_shared
axe.copy async %{x}{s} to %{x}{s}_shared signal %{x}{s}_slot : !kv_box to !kv_shared
axe.pipeline.commit %{x}_ring, %{x}{s}_slot"""

MASK = """%block = arith.muli %top, %columns : index
%ends = arith.subi {limit}, %block : index
%limit = arith.index_cast %ends : index to i32
%s0 = axe.map ins(%s_all : !scores) -> !scores {{ ^bb0(%x: f32):
  %j_index = axe.index 1
  %j = arith.index_cast %j_index : index to i32
{compare}
  %y = arith.select %seen, %x, %lowest : f32
  axe.yield %y : f32 }}"""

CAUSAL = """  %i_index = axe.index 0
  %i_row = arith.index_cast %i_index : index to i32
  %diagonal = arith.addi %i_row, %limit : i32
  %seen = arith.cmpi sle, %j, %diagonal : i32"""


def indent(text, columns):
    return "\n".join(" " * columns + line for line in text.split("\n"))


def swizzled(rows, dim, stages=None):
    panels = f"{rows}, {dim // 64}, 64", f"64, {rows * 64}, 1"
    if stages is None:
        return f"#axe.layout<Sw<3, 3, 3> o S[({panels[0]}) : ({panels[1]})]>"
    return f"#axe.layout<Sw<3, 3, 3> o S[({stages}, {panels[0]}) : ({rows * dim}, {panels[1]})]>"


def sums(warps, columns):
    return f"#axe.layout<S[({warps}, 2, 8, {columns // 8}, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>"


def strides(batch, length, heads, dim):
    return f"#axe.layout<S[({batch}, {heads}, {length}, {dim}) : ({length * heads * dim}, {dim}, {heads * dim}, 1)]>"


def kernel(batch, length, heads, kv_heads, d, causal=False, dtype="f16", ctas=132, keys=None, consumers=None, columns=None):
    """The kernel's text. Rows of D must be panels of 64 elements; with a causal mask blocks are as long as tiles."""
    consumers = consumers or (3 if d == 64 and not causal else 2)
    rows, keys = 64 * consumers, keys or length
    columns = columns or (128 if causal else {64: 128, 128: 176, 256: 64}[d])
    if d % 64 or columns % 16 or heads % kv_heads or (causal and (columns % rows or keys != length)):
        raise ValueError("expected D in multiples of 64, blocks in multiples of 16 (of the rows with a causal mask), groups of heads, one length with a causal mask")
    tiles, blocks = -(-length // rows), -(-keys // columns)
    warps, group = 4 * consumers, heads // kv_heads
    kv = "%h_kv = arith.divui %h, %group : index"
    if causal:
        m = "%from_end = arith.subi %last_tile, %i : index\n%m = arith.muli %from_end, %rows : index"
        n = "%end = arith.addi %m, %rows : index\n%needed = arith.ceildivui %end, %columns : index\n%n = arith.minui %needed, %blocks : index"
        mask, masked = MASK.format(limit="%m", compare=CAUSAL), ", without the places behind each row"
    else:
        m, n = "%m = arith.muli %i, %rows : index", "%n = arith.addi %blocks, %c0 : index"
        compare = "  %seen = arith.cmpi slt, %j, %limit : i32"
        mask, masked = MASK.format(limit="%keys", compare=compare), ", without the places behind the last key"
    place = PLACE.format(m=m, n=n)
    loop = SNAKE_LOOP if causal else FULL_LOOP
    load = lambda x, j, s="": LOAD.format(x=x, X=x.upper(), j=j, s=s)
    ragged = causal or keys % columns != 0
    text = HEADER.format(
        what="a causal mask" if causal else "all places", dtype=dtype, d=d, group=group, rows=rows, columns=columns,
        file="attention_causal.mlir" if causal else "attention.mlir", Consumers={2: "Two", 3: "Three"}[consumers],
        panels={1: "a panel", 2: "two panels", 4: "four panels"}[d // 64], q_layout=swizzled(rows, d), kv_layout=swizzled(columns, d),
        ring_layout=swizzled(columns, d, 2), s_layout=sums(warps, columns), o_layout=sums(warps, d),
        row_layout=f"#axe.layout<S[({warps}, 2, 8) : (1@warp, 1@reg, 4@lane)] + R[4 : 1@lane]>",
        qo_strides=strides(batch, length, heads, d), kv_strides=strides(batch, keys, kv_heads, d), batch=batch, length=length, heads=heads,
        kv_heads=kv_heads, keys=keys, qo_row=heads * d, kv_row=kv_heads * d, threads=128 * (consumers + 1), sequences=batch * heads, tiles=tiles,
        blocks=blocks, scale=repr(d ** -0.5 * 1.4426950408889634), schedule="\n" + SNAKE if causal else "", producer={2: 24, 3: 32}[consumers],
        consumer={2: 240, 3: 160}[consumers], ends=consumers + 1, loop=indent(loop, 6).strip(), loop_consumer=indent(loop, 4).strip(),
        place=indent(place.replace("%top", kv + "\n%top", 1), 8), place_consumer=indent(place, 6), load_k=indent(load("k", "%top"), 8),
        load_k_next=indent(load("k", "%j", "n"), 10), load_v_next=indent(load("v", "%above", "n"), 10), load_v=indent(load("v", "%c0"), 8),
        mask=indent(mask, 6) if ragged else "", masked=masked if ragged else "", s0="%s0" if ragged else "%s_all", ctas=ctas)
    return "\n".join(line.rstrip() for line in text.split("\n"))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(batch=2, length=8192, heads=32, dim=128, ctas=132).items():
        options.add_argument(f"--{name}", type=int, default=default)
    for name in ("kv-heads", "keys", "columns", "consumers"):
        options.add_argument(f"--{name}", type=int)
    options.add_argument("--causal", action="store_true")
    options.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
    given = options.parse_args()
    kv_heads = given.kv_heads or (8 if given.heads == 32 else given.heads)
    print(kernel(given.batch, given.length, given.heads, kv_heads, given.dim, given.causal, given.dtype, given.ctas, given.keys,
                 given.consumers, given.columns), end="")
