"""Writes the attention kernels of this folder for other sizes: attention.mlir is what it writes without options, attention_causal.mlir
what it writes with --causal.

    python3 attention.py --batch 2 --length 8192 --heads 32 --kv-heads 8 --dim 128 [--causal] [--dtype bf16] > kernel.mlir
    python3 attention.py ... --window 4096 --soft-cap 50 --lse     # the 4096 last places, Gemma 2's cap, log sum exp as a second result
    python3 attention.py --packed --batch 8 --length 16384 ...     # 8 sequences of any lengths in 16384 rows, by their offsets (cu_seqlens)
"""
import argparse

HEADER = """// O = softmax(Q K^T / sqrt(D)) V for {what}, in {dtype} with sums in f32: FlashAttention-3's loop (arXiv 2407.08608)
// written by hand. Tensors are {tensors}, {d}]; {group} query heads share a head of K and V. attention.py writes it for other sizes.
//
//   axe compile examples/kernels/{file} --target sm_90a -o attention.axe
//
// The idea. A CTA has {rows} rows of Q; its producer brings K and V in blocks of {columns} rows through a ring of two stages each, from the
// last block to the first. {Consumers} consumers of 64 rows each multiply and keep the row's greatest score m, its sum l and O in registers:
// a new block with scores S makes m' = max(m, S), P = exp(S - m'), l' = l exp(m - m') + sum P, O' = O exp(m - m') + P V. The
// loop issues the scores of a block before P V of the block before it, so that the tensor cores work while exponentials are formed.{more}

// {d} columns of 16 bits are {panels} of 64, the 128 bytes that the widest swizzle works on.
#q_layout = {q_layout}
#kv_layout = {kv_layout}
#ring_layout = {ring_layout}
// The accumulators of wgmma (see gemm_roles.mlir). P has the layout of S: as operand A it stays in its registers. Four lanes hold a row.
#s_layout = {s_layout}
#o_layout = {o_layout}
#row_layout = {row_layout}
{strides}
!qo_memory = memref<{q_memory}x{d}x{dtype}>
!kv_memory = memref<{kv_memory}x{d}x{dtype}>
!qo_heads = memref<{qo_heads}>
!kv_heads = memref<{kv_heads}>
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
!qo_tensor = tensor<{q_memory}x{d}x{dtype}>
!kv_tensor = tensor<{kv_memory}x{d}x{dtype}>

axe.kernel @attention(%Q: !qo_memory, %K: !kv_memory, %V: !kv_memory{parameters}) threads({threads}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{constants}
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  // {scaled}, and exponentials are powers of two.
  %scale = arith.constant {scale} : f32
  %minus_scale = arith.constant -{scale} : f32
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
        %q = axe.slice %Qh[{q_at}] : !qo_heads to !qo_box
        axe.copy async %q to %Qs signal %q_slot : !qo_box to !q_shared
        axe.pipeline.commit %q_ring, %q_slot
        scf.for %t = %c1 to {n} step %c1 {{
          %j = arith.subi %top, %t : index
          %above = arith.addi %j, %c1 : index
{load_k_next}
{load_v_next}
        }}
{load_v}
      {close}
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
        %scaled = arith.mulf %y, %minus_scale : f32
        %z = math.fma %x, %scale, %scaled : f32
        %e = math.exp2 %z fastmath<afn> : f32
        axe.yield %e : f32 }}
      %l0 = axe.reduce <add> %e0 dims [1] : !scores -> !row
      %p0 = axe.cast %e0 : !scores -> !p
      %v0_slot, %v0_stage = axe.pipeline.wait %v_ring : !axe.slot

      // V's stage is that of the block before. S of this block and P V of that one are issued together; `pending = 1` waits for S.
{loops}
      axe.pipeline.release %q_ring, %q_slot
      %v_last = axe.slice %Vs[{last}#5, %c0, %c0] : !ring to !kv_shared
      %o_last = axe.gemm async {last}#1, %v_last acc {last}#0 : !o : !p, !kv_shared -> !o
      %o_sums = axe.wait %o_last : !o
      axe.pipeline.release %v_ring, {last}#4
      %inverse = axe.map ins({last}#3 : !row) -> !row {{ ^bb0(%x: f32): %y = arith.divf %one, %x : f32 axe.yield %y : f32 }}
      %inverse_wide = axe.broadcast %inverse dims [1] : !row -> !o
      %result = axe.map ins(%o_sums, %inverse_wide : !o, !o) -> !o {{ ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }}
      %narrow = axe.cast %result : !o -> !o_narrow
{store}
    {close_consumer}
  }}
  axe.return
}}

func.func @main({arguments}) -> {results} {{
  %c1 = arith.constant 1 : index
  %ctas = arith.constant {ctas} : index
  %empty = tensor.empty() : !qo_tensor
{launch}
}}
"""

LOOP = """%{last}:6 = scf.for %t = {first} to {end} step %c1 iter_args(%o = {o}, %p = {p}, %m_old = {m}, %l = {l}, %v_slot = {slot}, %v_stage = {stage}) -> (!o, !p, !row, !row, !axe.slot, index) {{
  %kn_slot, %kn_stage = axe.pipeline.wait %k_ring : !axe.slot
  %kn = axe.slice %Ks[%kn_stage, %c0, %c0] : !ring to !kv_shared
  %sn_issued = axe.gemm async %Qs, %kn {{trans_b}} : !q_shared, !kv_shared -> !scores
  %v = axe.slice %Vs[%v_stage, %c0, %c0] : !ring to !kv_shared
  %o_issued = axe.gemm async %p, %v acc %o : !o : !p, !kv_shared -> !o
  %s = axe.wait %sn_issued {{pending = 1 : i64}} : !scores
  axe.pipeline.release %k_ring, %kn_slot
{mask}
  %m_block = axe.reduce <max> {s} dims [1] : !scores -> !row
  %m_new = axe.map ins(%m_old, %m_block : !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32): %z = arith.maxnumf %x, %y : f32 axe.yield %z : f32 }}
  %wide = axe.broadcast %m_new dims [1] : !row -> !scores
  %e = axe.map ins({s}, %wide : !scores, !scores) -> !scores {{ ^bb0(%x: f32, %y: f32):
    %scaled = arith.mulf %y, %minus_scale : f32
    %z = math.fma %x, %scale, %scaled : f32
    %power = math.exp2 %z fastmath<afn> : f32
    axe.yield %power : f32 }}
  %a = axe.map ins(%m_old, %m_new : !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32):
    %scaled = arith.mulf %y, %minus_scale : f32
    %z = math.fma %x, %scale, %scaled : f32
    %power = math.exp2 %z fastmath<afn> : f32
    axe.yield %power : f32 }}
  %sum = axe.reduce <add> %e dims [1] : !scores -> !row
  %l_new = axe.map ins(%l, %a, %sum : !row, !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32, %z: f32): %w = math.fma %x, %y, %z : f32 axe.yield %w : f32 }}
  // ptxas would move the wait for P V, which is next, above the exponentials: the wait for V, a loop, ends their basic block.
  %vn_slot, %vn_stage = axe.pipeline.wait %v_ring : !axe.slot
  %o_old, %e_done = axe.wait %o_issued, %e : !o, !scores
  axe.pipeline.release %v_ring, %v_slot
  %p_new = axe.cast %e_done : !scores -> !p
  %a_wide = axe.broadcast %a dims [1] : !row -> !o
  %o_new = axe.map ins(%o_old, %a_wide : !o, !o) -> !o {{ ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }}
  scf.yield %o_new, %p_new, %m_new, %l_new, %vn_slot, %vn_stage : !o, !p, !row, !row, !axe.slot, index
}}"""

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

# Every CTA walks the sequences, and has each so manieth of their tiles, counted through all of them. Offsets are data: the end of a
# sequence is at least its beginning, and at most the number of rows.
PACKED_LOOP = """%offset = memref.load %Offsets[%c0] : {offsets}
%offset_row = arith.index_cast %offset : i32 to index
%offset_most = arith.minsi %offset_row, %total : index
%start = arith.maxsi %offset_most, %c0 : index
%cta = gpu.block_id x
%ctas = gpu.grid_dim x
%walk:2 = scf.for %g = %c0 to %sequences step %c1 iter_args(%begin = %start, %next = %cta) -> (index, index) {{
%g_next = arith.addi %g, %c1 : index
%offset_end = memref.load %Offsets[%g_next] : {offsets}
%end_row = arith.index_cast %offset_end : i32 to index
%end_most = arith.minsi %end_row, %total : index
%end = arith.maxsi %end_most, %begin : index
%length = arith.subi %end, %begin : index
%tiles = arith.ceildivui %length, %rows : index
%count = arith.muli %tiles, %heads : index
%after = scf.for %tile = %next to %count step %ctas iter_args(%mine = %next) -> (index) {{"""

PACKED_CLOSE = """  %tile_next = arith.addi %tile, %ctas : index
  scf.yield %tile_next : index
}
%left = arith.subi %after, %count : index
scf.yield %end, %left : index, index
}"""

PLACE = """%b = arith.divui %bh, %heads : index
%h = arith.remui %bh, %heads : index
{m}"""

# Long tiles first.
PACKED_PLACE = """%h = arith.remui %tile, %heads : index
%h_column = arith.muli %h, %dim : index
%i_back = arith.divui %tile, %heads : index
%i_next = arith.addi %i_back, %c1 : index
%i = arith.subi %tiles, %i_next : index
%m = arith.muli %i, %rows : index
%q_row = arith.addi %begin, %m : index"""

# Blocks [%bottom, %top] of keys: those up to the diagonal, from the first that some row of the tile sees in its window.
ENDS = """%end_place = arith.addi %m, %rows : index
%needed = arith.ceildivui %end_place, %columns : index"""
ALL_ENDS = "%needed = arith.ceildivui {keys}, %columns : index"
LIMITED = """%all_blocks = arith.ceildivui {keys}, %columns : index
%blocks_end = arith.minui %needed, %all_blocks : index"""
WINDOW_ENDS = """%window_start = arith.subi %m, %reach : index
%window_first = arith.maxsi %window_start, %c0 : index
%bottom = arith.divui %window_first, %columns : index
%n = arith.subi {end}, %bottom : index"""
# Those after %whole_blocks, counted from the top, are where windows begin.
WHOLE = """%whole_start = arith.addi %m, %inside : index
%whole_first = arith.maxsi %whole_start, %c0 : index
%whole_block = arith.ceildivui %whole_first, %columns : index
%whole_from = arith.minui %whole_block, %top : index
%whole_above = arith.subi %top, %whole_from : index
%whole_blocks = arith.addi %whole_above, %c1 : index"""

LOAD = """%{x}{s}_slot, %{x}{s}_stage = axe.pipeline.acquire %{x}_ring : !axe.slot
%{x}{s}_first = arith.muli {j}, %columns : index{begin}
%{x}{s} = axe.slice %{X}h[{at}] : !kv_heads to !kv_box
%{x}{s}_shared = axe.slice %{X}s[%{x}{s}_stage, %c0, %c0] : !ring to !kv_shared
axe.copy async %{x}{s} to %{x}{s}_shared signal %{x}{s}_slot : !kv_box to !kv_shared
axe.pipeline.commit %{x}_ring, %{x}{s}_slot"""

# Scores are what is yielded times the cap.
CAP = """{to} = axe.map ins({of} : !scores) -> !scores {{ ^bb0(%x: f32):
  %quotient = arith.mulf %x, %per_cap : f32
  %y = math.tanh %quotient fastmath<afn> : f32
  axe.yield %y : f32 }}"""

MASK = """%block{s} = arith.muli {block}, %columns : index
%ends{s} = arith.subi {limit}, %block{s} : index
%limit{s} = arith.index_cast %ends{s} : index to i32
{to} = axe.map ins({of} : !scores) -> !scores {{ ^bb0(%x: f32):
  %j_index = axe.index 1
  %j = arith.index_cast %j_index : index to i32
{compare}
  %y = arith.select %seen, %x, %lowest : f32
  axe.yield %y : f32 }}"""

DIAGONAL = """  %i_index = axe.index 0
  %i_row = arith.index_cast %i_index : index to i32
  %diagonal = arith.addi %i_row, %limit{s} : i32"""
BEHIND = "  %seen = arith.cmpi slt, %j, %limit : i32"
CAUSAL = "  %seen = arith.cmpi sle, %j, %diagonal : i32"
BEFORE = """  %out_of_window = arith.subi %diagonal, %width : i32
  %{to} = arith.cmpi sgt, %j, %out_of_window : i32"""
BOTH = """  %not_after = arith.cmpi sle, %j, %diagonal : i32
  %seen = arith.andi %not_after, %in_window : i1"""

LSE = """%lse = axe.map ins({last}#2, {last}#3 : !row, !row) -> !row {{ ^bb0(%x: f32, %y: f32):
  %log = math.log2 %y fastmath<afn> : f32
  %z = math.fma %x, %scale, %log : f32
  %w = arith.mulf %z, %ln2 : f32
  axe.yield %w : f32 }}
%lse_box = axe.slice %L[%b, %h, %m] : !lse_memory to !lse_box
axe.copy %lse to %lse_box : !row to !lse_box"""

STORE = """%box = axe.slice %Oh[{at}] : !qo_heads to !qo_box
axe.copy %narrow to %box : !o_narrow to !qo_box"""

# A tile that reaches over its sequence's end leaves out the rows behind it.
PACKED_STORE = """%tile_end = arith.addi %q_row, %rows : index
%is_whole = arith.cmpi ule, %tile_end, %end : index
scf.if %is_whole {{
  %box = axe.slice %Oh[%q_row, %h_column] : !qo_heads to !qo_box
  axe.copy %narrow to %box : !o_narrow to !qo_box
}} else {{
  %own = memref.subview %Oh[0, 0] [%end, {width}] [1, 1] : !qo_heads to memref<?x{width}x{dtype}, strided<[{width}, 1]>>
  %part = axe.slice %own[%q_row, %h_column] : memref<?x{width}x{dtype}, strided<[{width}, 1]>> to !qo_box
  axe.copy %narrow to %part : !o_narrow to !qo_box
}}"""


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


def mask_of(name, of, to, block="%top", keys=None):
    """Scores without what their row does not see: `last` keys behind the last, `causal`, `window` (both), or `start` (of windows)."""
    s = "_start" if name == "start" else ""
    compare = {"last": BEHIND, "causal": DIAGONAL + "\n" + CAUSAL, "window": "\n".join([DIAGONAL, BEFORE.format(to="in_window"), BOTH]),
               "start": DIAGONAL + "\n" + BEFORE.format(to="seen")}[name].replace("{s}", s)
    return MASK.format(s=s, block=block, limit=keys if name == "last" else "%m", compare=compare, of=of, to=to)


def loop_of(last, before, first, end, cap, mask):
    values = [f"%{before}#{at}" for at in range(6)] if before else ["%o0", "%p0", "%m0", "%l0", "%v0_slot", "%v0_stage"]
    lines, s = [], "%s"
    if cap:
        lines, s = [CAP.format(to="%s_capped", of=s)], "%s_capped"
    if mask:
        lines += ["%jb = arith.subi %top, %t : index", mask_of("start", s, "%s_seen", "%jb")]
        s = "%s_seen"
    return LOOP.format(last=last, first=first, end=end, mask=indent("\n".join(lines), 2) if lines else "", s=s,
                       **dict(zip(("o", "p", "m", "l", "slot", "stage"), values)))


def constants_of(**values):
    return "\n".join(f"  %{name} = arith.constant {value} : {'i32' if name == 'width' else 'index'}" for name, value in values.items() if value is not None)


def kernel(batch, length, heads, kv_heads, d, causal=False, dtype="f16", ctas=132, keys=None, consumers=None, columns=None, window=None, soft_cap=None,
           lse=False, packed=False):
    """The kernel's text. Rows of D must be panels of 64 elements; with a causal mask or a window blocks are as long as tiles.

    window: a row sees the last so many places up to its own. packed: `length` rows of all sequences, `batch` of them.
    """
    causal = causal or window is not None
    consumers = consumers or (3 if d == 64 and not causal else 2)
    rows, keys = 64 * consumers, keys or length
    columns = columns or (128 if causal else {64: 128, 128: 176, 256: 64}[d])
    if d % 64 or columns % 16 or heads % kv_heads or (causal and (columns % rows or keys != length)):
        raise ValueError("expected D in multiples of 64, blocks in multiples of 16 (of the rows with a causal mask), groups of heads, one length with a causal mask")
    if (window is not None and window < 1) or (soft_cap is not None and soft_cap <= 0):
        raise ValueError("expected a window of at least one place, and a positive cap")
    if packed and (lse or keys != length):
        raise ValueError("expected as many keys as queries of packed sequences, and no log sum exp")
    warps, group, all_keys = 4 * consumers, heads // kv_heads, "%length" if packed else "%keys"
    kv_head = "%h_kv = arith.divui %h, %group : index" + ("\n%kv_column = arith.muli %h_kv, %dim : index" if packed else "")
    # Blocks: from %top down, {n} of them, to {bottom}.
    n, bottom, ends = ("%n", "%bottom", []) if window else ("%blocks", "%c0", [])
    if causal or packed:
        n, end = (n if window else "%blocks_end"), "%blocks_end"
        ends = [ENDS if causal else ALL_ENDS.format(keys=all_keys), LIMITED.format(keys=all_keys)]
    else:
        end = "%blocks"
    if window:
        ends.append(WINDOW_ENDS.format(end=end))
    ends.append(f"%top = arith.subi {end}, %c1 : index")
    if packed:
        place, loop, close = PACKED_PLACE, PACKED_LOOP.format(offsets=f"memref<{batch + 1}xi32>"), PACKED_CLOSE
    else:
        m = "%from_end = arith.subi %last_tile, %i : index\n%m = arith.muli %from_end, %rows : index" if causal else "%m = arith.muli %i, %rows : index"
        place, loop, close = PLACE.format(m=m), SNAKE_LOOP if causal else FULL_LOOP, "}"
    place = "\n".join([place, *ends])
    box = lambda first: f"{first}, %kv_column" if packed else f"%b, %h_kv, {first}, %c0"
    begin = lambda x: f"\n%{x}_row = arith.addi %begin, %{x}_first : index" if packed else ""
    load = lambda x, j, s="": LOAD.format(x=x, X=x.upper(), j=j, s=s, begin=begin(x + s), at=box(f"%{x}{s}_row" if packed else f"%{x}{s}_first"))
    kind = "window" if window else "causal" if causal else "last" if packed or keys % columns else None
    lines, s0 = [], "%s_all"
    if soft_cap:
        lines, s0 = [CAP.format(to="%s0_capped", of=s0)], "%s0_capped"
    if kind:
        lines, s0 = lines + [mask_of(kind, s0, "%s0", keys=all_keys)], "%s0"
    loops = [loop_of("last", None, "%c1", "%whole_blocks" if window else n, soft_cap, False)]
    if window:
        loops = ["// Whole blocks, and those in which windows begin.", WHOLE, loop_of("inner", None, "%c1", "%whole_blocks", soft_cap, False),
                 loop_of("last", "inner", "%whole_blocks", "%n", soft_cap, True)]
    q_at = "%q_row, %h_column" if packed else "%b, %h, %m, %c0"
    store = PACKED_STORE.format(width=heads * d, dtype=dtype) if packed else STORE.format(at=q_at)
    scale = d ** -0.5 * 1.4426950408889634
    more, types, parameters, results, launched = "", [], ", %O: !qo_memory", "!qo_tensor", ""
    q_memory, kv_memory = (f"{length}x{heads}", f"{length}x{kv_heads}") if packed else (f"{batch}x{length}x{heads}", f"{batch}x{keys}x{kv_heads}")
    arguments, ins, in_types = "%q: !qo_tensor, %k: !kv_tensor, %v: !kv_tensor", "%q, %k, %v", "!qo_tensor, !kv_tensor, !kv_tensor"
    if packed:
        parameters = f", %Offsets: memref<{batch + 1}xi32>" + parameters
        arguments, ins, in_types = (f"{arguments}, %offsets: tensor<{batch + 1}xi32>", ins + ", %offsets", f"{in_types}, tensor<{batch + 1}xi32>")
        more = f"\n//\n// Rows are those of {batch} sequences one after the other, whose offsets are the fourth argument; rows of none are left as they are."
    launch = [f"  %o = axe.launch @attention grid(%ctas, %c1, %c1) ins({ins} : {in_types}) outs(%empty : !qo_tensor) -> !qo_tensor", "  return %o : !qo_tensor"]
    strides_of = "// Memory as [place, head and column]." if packed else (
        f"// Memory as [batch, head, place, column], by strides.\n#qo_strides = {strides(batch, length, heads, d)}\n#kv_strides = {strides(batch, keys, kv_heads, d)}")
    if lse:
        strides_of += f"\n!lse_memory = memref<{batch}x{heads}x{length}xf32>\n!lse_box = memref<{rows}xf32, strided<[1]>>\n!lse_tensor = tensor<{batch}x{heads}x{length}xf32>"
        parameters, results, store = parameters + ", %L: !lse_memory", "(!qo_tensor, !lse_tensor)", LSE.format(last="%last") + "\n" + store
        launch = ["  %lse_empty = tensor.empty() : !lse_tensor",
                  f"  %o:2 = axe.launch @attention grid(%ctas, %c1, %c1) ins({ins} : {in_types}) outs(%empty, %lse_empty : !qo_tensor, !lse_tensor) -> !qo_tensor, !lse_tensor",
                  "  return %o#0, %o#1 : !qo_tensor, !lse_tensor"]
    tiles = -(-length // rows)
    constants = [constants_of(heads=heads, group=group, rows=rows, columns=columns, dim=d if packed else None, keys=None if packed else keys,
                              sequences=batch if packed else batch * heads, tiles=None if packed else tiles, total=length if packed else None,
                              blocks=None if causal or packed else -(-keys // columns), reach=window and window - 1, inside=window and rows - window, width=window)]
    if lse:
        constants.append("  %ln2 = arith.constant 0.6931471805599453 : f32")
    if soft_cap:
        constants.append(f"  %per_cap = arith.constant {d ** -0.5 / soft_cap!r} : f32")
        scale = soft_cap * 1.4426950408889634
    scaled = f"Scores are {soft_cap} tanh(s / {soft_cap}), and scaled by log2(e)" if soft_cap else f"Scores are scaled by log2(e) / sqrt({d})"
    what = f"the last {window} places" if window else "a causal mask" if causal else "all places"
    text = HEADER.format(
        what=what, dtype=dtype, d=d, group=group, rows=rows, columns=columns, tensors="[place, head" if packed else "[batch, place, head",
        file="attention_causal.mlir" if causal else "attention.mlir", Consumers={1: "One", 2: "Two", 3: "Three"}[consumers], more=more,
        panels={1: "a panel", 2: "two panels", 3: "three panels", 4: "four panels"}[d // 64], q_layout=swizzled(rows, d), kv_layout=swizzled(columns, d),
        ring_layout=swizzled(columns, d, 2), s_layout=sums(warps, columns), o_layout=sums(warps, d),
        row_layout=f"#axe.layout<S[({warps}, 2, 8) : (1@warp, 1@reg, 4@lane)] + R[4 : 1@lane]>", strides=strides_of, q_memory=q_memory, kv_memory=kv_memory,
        qo_heads=f"{length}x{heads * d}x{dtype}" if packed else f"{batch}x{heads}x{length}x{d}x{dtype}, #qo_strides",
        kv_heads=f"{length}x{kv_heads * d}x{dtype}" if packed else f"{batch}x{kv_heads}x{keys}x{d}x{dtype}, #kv_strides",
        qo_row=heads * d, kv_row=kv_heads * d, threads=128 * (consumers + 1), parameters=parameters, constants="\n".join(constants), scaled=scaled, scale=repr(scale),
        schedule="\n" + SNAKE if causal and not packed else "", producer={1: 56, 2: 24, 3: 32}[consumers], consumer={1: 240, 2: 240, 3: 160}[consumers],
        ends=consumers + 1, loop=indent(loop, 6).strip(), loop_consumer=indent(loop, 4).strip(), close=indent(close, 6).strip(),
        close_consumer=indent(close, 4).strip(), place=indent(place.replace("%top =", kv_head + "\n%top =", 1), 8), place_consumer=indent(place, 6),
        load_k=indent(load("k", "%top"), 8), load_k_next=indent(load("k", "%j", "n"), 10), load_v_next=indent(load("v", "%above", "n"), 10),
        load_v=indent(load("v", bottom), 8), q_at=q_at, n=n, mask=indent("\n".join(lines), 6) if lines else "", masked={
            None: "", "last": ", without the places behind the last key", "causal": ", without the places behind each row",
            "window": ", without the places behind each row and before its window"}[kind],
        s0=s0, loops=indent("\n".join(loops), 6), last="%last", store=indent(store, 6), arguments=arguments, results=results, ctas=ctas, launch="\n".join(launch))
    # What an option leaves out is no line; one that is empty in the text separates parts.
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join(line for at, line in enumerate(lines) if line or lines[at - 1].startswith(("// The idea", "// loop", "!kv_tensor", "  }", "}", "      %v0_slot", "//")) or not lines[at:][1:])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(batch=2, length=8192, heads=32, dim=128, ctas=132).items():
        options.add_argument(f"--{name}", type=int, default=default)
    for name in ("kv-heads", "keys", "columns", "consumers", "window"):
        options.add_argument(f"--{name}", type=int)
    options.add_argument("--soft-cap", type=float)
    options.add_argument("--lse", action="store_true")
    options.add_argument("--packed", action="store_true")
    options.add_argument("--causal", action="store_true")
    options.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
    given = options.parse_args()
    kv_heads = given.kv_heads or (8 if given.heads == 32 else given.heads)
    print(kernel(given.batch, given.length, given.heads, kv_heads, given.dim, given.causal, given.dtype, given.ctas, given.keys,
                 given.consumers, given.columns, given.window, given.soft_cap, given.lse, given.packed), end="")
