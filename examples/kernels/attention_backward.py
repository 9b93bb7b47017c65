"""Writes the kernel of attention's gradients for other sizes: attention_backward.mlir is what it writes without options.

    python3 attention_backward.py --batch 2 --length 8192 --heads 32 --kv-heads 8 --dim 128 [--causal] [--dtype bf16] > kernel.mlir
"""
import argparse

HEADER = """// Gradients of O = softmax(Q K^T / sqrt(D)) V for {what}, in {dtype} with sums in f32: FlashAttention-3's backward
// pass (arXiv 2407.08608) written by hand. Tensors are [batch, place, head, {d}]; {group} query heads share a head of K and V.
// L is log(sum(exp(Q K^T / sqrt(D)))) of each row, which the forward pass leaves. attention_backward.py writes it for other sizes.
//
//   axe compile examples/kernels/attention_backward.mlir --target sm_90a -o backward.axe
//   axe explain examples/kernels/attention_backward.mlir --target sm_90a
//
// The idea. A CTA owns {keys} keys of one head of K and V; its producer brings Q and dO of all heads that share them in blocks of {rows} rows.
// Two consumers of 64 keys each form everything transposed, so that what is formed of sums is operand A of the next product in its registers:
//   P^T = exp(K Q^T / sqrt(D) - L)      dP^T = V dO^T      dS^T = P^T (dP^T - rowsum(dO O))
//   dV += P^T dO                        dK += dS^T Q       dQ += dS K
// dV and dK stay in registers. dQ needs the dS^T of both consumers, through shared memory: each forms half of its columns, which all
// blocks of keys add up in memory, in f32.

// {d} columns of 16 bits are panels of 64, the 128 bytes that the widest swizzle works on.
#kv_layout = {kv_layout}
#q_layout = {q_layout}
#q_ring = {q_ring}
#ds_layout = {ds_layout}
#ds_ring = {ds_ring}
#stat_layout = #axe.layout<S[{rows} : 1]>
#stat_ring = #axe.layout<S[({stages}, {rows}) : ({rows}, 1)]>
// The accumulators of wgmma (see gemm_roles.mlir). A value a query is one a column here, which 8 warps and 8 groups of lanes hold. Of
// dQ four warps hold the columns of the first half, four the others.
#s_layout = {s_layout}
#d_layout = {d_layout}
#dq_layout = {dq_layout}
#column_layout = #axe.layout<S[({eighths}, 4, 2) : (2@reg, 1@lane, 1@reg)] + R[(8, 8) : (1@warp, 4@lane)]>
// Memory as [batch, head, place, column], by strides.
#qo_strides = {qo_strides}
#kv_strides = {kv_strides}
!qo_memory = memref<{batch}x{length}x{heads}x{d}x{dtype}>
!kv_memory = memref<{batch}x{length}x{kv_heads}x{d}x{dtype}>
!stat_memory = memref<{batch}x{heads}x{length}xf32>
!dq_memory = memref<{batch}x{length}x{heads}x{d}xf32>
!dq_heads = memref<{batch}x{heads}x{length}x{d}xf32, #qo_strides>
!qo_heads = memref<{batch}x{heads}x{length}x{d}x{dtype}, #qo_strides>
!kv_heads = memref<{batch}x{kv_heads}x{length}x{d}x{dtype}, #kv_strides>
!qo_box = memref<{rows}x{d}x{dtype}, strided<[{qo_row}, 1]>>
!kv_box = memref<{keys}x{d}x{dtype}, strided<[{kv_row}, 1]>>
!stat_box = memref<{rows}xf32, strided<[1]>>
!dq_box = memref<{rows}x{d}xf32, strided<[{qo_row}, 1]>>
!kv_shared = memref<{keys}x{d}x{dtype}, #kv_layout, #axe.space<shared>>
!q_shared = memref<{rows}x{d}x{dtype}, #q_layout, #axe.space<shared>>
!q_stages = memref<{stages}x{rows}x{d}x{dtype}, #q_ring, #axe.space<shared>>
!stat_shared = memref<{rows}xf32, #stat_layout, #axe.space<shared>>
!stat_stages = memref<{stages}x{rows}xf32, #stat_ring, #axe.space<shared>>
!ds_shared = memref<{keys}x{rows}x{dtype}, #ds_layout, #axe.space<shared>>
!ds_stages = memref<{stages}x{keys}x{rows}x{dtype}, #ds_ring, #axe.space<shared>>
!s = tensor<{keys}x{rows}xf32, #s_layout>
!p = tensor<{keys}x{rows}x{dtype}, #s_layout>
!sums = tensor<{keys}x{d}xf32, #d_layout>
!narrow = tensor<{keys}x{d}x{dtype}, #d_layout>
!dq = tensor<{rows}x{d}xf32, #dq_layout>
!stat = tensor<{rows}xf32, #column_layout>
!qo_tensor = tensor<{batch}x{length}x{heads}x{d}x{dtype}>
!kv_tensor = tensor<{batch}x{length}x{kv_heads}x{d}x{dtype}>
!row_tensor = tensor<{batch}x{length}x{heads}xf32>
!stat_tensor = tensor<{batch}x{heads}x{length}xf32>
!dq_tensor = tensor<{batch}x{length}x{heads}x{d}xf32>

axe.kernel @attention_backward(%Q: !qo_memory, %K: !kv_memory, %V: !kv_memory, %dO: !qo_memory, %L: !stat_memory, %D: !stat_memory,
                               %dQ: !dq_memory, %dK: !kv_memory, %dV: !kv_memory) threads(384) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %masked = arith.constant {masked_blocks} : index
  %kv_heads = arith.constant {kv_heads} : index
  %group = arith.constant {group} : index
  %rows = arith.constant {rows} : index
  %columns = arith.constant {keys} : index
  %places = arith.constant {length} : index
  %sequences = arith.constant {sequences} : index
  %tiles = arith.constant {tiles} : index
  %blocks = arith.constant {blocks} : index
  %zero = arith.constant 0.0 : f32
  // Scores are scaled by log2(e) / sqrt({d}), as L is, and exponentials are powers of two. dK has 1 / sqrt({d}) left.
  %scale = arith.constant {scale} : f32
  %root = arith.constant {root} : f32
  %Qh = axe.view %Q : !qo_memory to !qo_heads
  %dOh = axe.view %dO : !qo_memory to !qo_heads
  %Kh = axe.view %K : !kv_memory to !kv_heads
  %Vh = axe.view %V : !kv_memory to !kv_heads
  %dQh = axe.view %dQ : !dq_memory to !dq_heads
  %dKh = axe.view %dK : !kv_memory to !kv_heads
  %dVh = axe.view %dV : !kv_memory to !kv_heads
  %Ks = axe.alloc : !kv_shared
  %Vs = axe.alloc : !kv_shared
  %Qs = axe.alloc : !q_stages
  %dOs = axe.alloc : !q_stages
  %Ls = axe.alloc : !stat_stages
  %Ds = axe.alloc : !stat_stages
  %dSs = axe.alloc : !ds_stages
  %kv_ring = axe.pipeline.create stages(1) : !axe.pipeline
  %q_ring = axe.pipeline.create stages({stages}) : !axe.pipeline
  %do_ring = axe.pipeline.create stages({stages}) : !axe.pipeline
  axe.scope warpgroup [0, 1) registers(24) {{
    axe.scope warp [0, 1) {{
      axe.for_tiles (%bh, %j) in (%sequences, %tiles) raster({raster}) {{
        %b = arith.divui %bh, %kv_heads : index
        %h_kv = arith.remui %bh, %kv_heads : index
        %first_head = arith.muli %h_kv, %group : index
        %n = arith.muli %j, %columns : index
{first_producer}
        %kv_slot, %kv_stage = axe.pipeline.acquire %kv_ring : !axe.slot
        %k = axe.slice %Kh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
        axe.copy async %k to %Ks signal %kv_slot : !kv_box to !kv_shared
        %v = axe.slice %Vh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
        axe.copy async %v to %Vs signal %kv_slot : !kv_box to !kv_shared
        axe.pipeline.commit %kv_ring, %kv_slot
        scf.for %g = %c0 to %group step %c1 {{
          %h = arith.addi %first_head, %g : index
          scf.for %i = %first to %blocks step %c1 {{
            %m = arith.muli %i, %rows : index
{load_q}
{load_do}
          }}
        }}
      }}
    }}
  }}

  axe.scope warpgroup [1, 3) registers(240) {{
    axe.for_tiles (%bh, %j) in (%sequences, %tiles) raster({raster}) {{
      %b = arith.divui %bh, %kv_heads : index
      %h_kv = arith.remui %bh, %kv_heads : index
      %first_head = arith.muli %h_kv, %group : index
      %n = arith.muli %j, %columns : index
{first_consumer}
      %none = axe.fill %zero : f32 -> !sums
      %kv_slot, %kv_stage = axe.pipeline.wait %kv_ring : !axe.slot
      %all:2 = scf.for %g = %c0 to %group step %c1 iter_args(%dk_of = %none, %dv_of = %none) -> (!sums, !sums) {{
        %h = arith.addi %first_head, %g : index
{loops}
        scf.yield {sums} : !sums, !sums
      }}
      axe.pipeline.release %kv_ring, %kv_slot
      %dv_narrow = axe.cast %all#1 : !sums -> !narrow
      %dv_box = axe.slice %dVh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
      axe.copy %dv_narrow to %dv_box : !narrow to !kv_box
      %dk_scaled = axe.map ins(%all#0 : !sums) -> !sums {{ ^bb0(%x: f32): %y = arith.mulf %x, %root : f32 axe.yield %y : f32 }}
      %dk_narrow = axe.cast %dk_scaled : !sums -> !narrow
      %dk_box = axe.slice %dKh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
      axe.copy %dk_narrow to %dk_box : !narrow to !kv_box
    }}
  }}
  axe.return
}}

#rows = affine_map<(b, s, h, d) -> (b, s, h, d)>
#row = affine_map<(b, s, h, d) -> (b, s, h)>
#stat = affine_map<(b, h, s) -> (b, h, s)>
func.func @main(%q: !qo_tensor, %k: !kv_tensor, %v: !kv_tensor, %o: !qo_tensor, %do: !qo_tensor, %l: !stat_tensor) -> (!qo_tensor, !kv_tensor, !kv_tensor) {{
  %c1 = arith.constant 1 : index
  %ctas = arith.constant {ctas} : index
  %zero = arith.constant 0.0 : f32
  %root = arith.constant {root} : f32
  %log2e = arith.constant 1.4426950408889634 : f32
  // One value a row before: rowsum(dO O), and L for powers of two.
  %row = tensor.empty() : !row_tensor
  %row0 = linalg.fill ins(%zero : f32) outs(%row : !row_tensor) -> !row_tensor
  %d_rows = linalg.generic {{indexing_maps = [#rows, #rows, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%o, %do : !qo_tensor, !qo_tensor) outs(%row0 : !row_tensor) {{ ^bb0(%x: {dtype}, %y: {dtype}, %sum: f32):
    %xw = arith.extf %x : {dtype} to f32
    %yw = arith.extf %y : {dtype} to f32
    %z = arith.mulf %xw, %yw : f32
    %w = arith.addf %sum, %z : f32
    linalg.yield %w : f32
  }} -> !row_tensor
  %stat = tensor.empty() : !stat_tensor
  %d = linalg.transpose ins(%d_rows : !row_tensor) outs(%stat : !stat_tensor) permutation = [0, 2, 1]
  %l2 = linalg.generic {{indexing_maps = [#stat, #stat], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%l : !stat_tensor) outs(%stat : !stat_tensor) {{ ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %log2e : f32
    linalg.yield %z : f32
  }} -> !stat_tensor
  %dq_empty = tensor.empty() : !dq_tensor
  %dq0 = linalg.fill ins(%zero : f32) outs(%dq_empty : !dq_tensor) -> !dq_tensor
  %kv_empty = tensor.empty() : !kv_tensor
  %dq_sums, %dk, %dv = axe.launch @attention_backward grid(%ctas, %c1, %c1)
      ins(%q, %k, %v, %do, %l2, %d : !qo_tensor, !kv_tensor, !kv_tensor, !qo_tensor, !stat_tensor, !stat_tensor)
      outs(%dq0, %kv_empty, %kv_empty : !dq_tensor, !kv_tensor, !kv_tensor) -> !dq_tensor, !kv_tensor, !kv_tensor
  // And after: the type of dQ.
  %qo_empty = tensor.empty() : !qo_tensor
  %dq = linalg.generic {{indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%dq_sums : !dq_tensor) outs(%qo_empty : !qo_tensor) {{ ^bb0(%x: f32, %y: {dtype}):
    %z = arith.mulf %x, %root : f32
    %w = arith.truncf %z : f32 to {dtype}
    linalg.yield %w : {dtype}
  }} -> !qo_tensor
  return %dq, %dk, %dv : !qo_tensor, !kv_tensor, !kv_tensor
}}
"""

LOAD = """%{x}_slot, %{x}_stage = axe.pipeline.acquire %{x}_ring : !axe.slot
%{x} = axe.slice %{X}h[%b, %h, %m, %c0] : !qo_heads to !qo_box
%{x}_shared = axe.slice %{X}s[%{x}_stage, %c0, %c0] : !q_stages to !q_shared
axe.copy async %{x} to %{x}_shared signal %{x}_slot : !qo_box to !q_shared
%{s} = axe.slice %{S}[%b, %h, %m] : !stat_memory to !stat_box
%{s}_shared = axe.slice %{S}s[%{x}_stage, %c0] : !stat_stages to !stat_shared
axe.copy async %{s} to %{s}_shared signal %{x}_slot : !stat_box to !stat_shared
axe.pipeline.commit %{x}_ring, %{x}_slot"""

LOOP = """%{to}:2 = scf.for %i = {begin} to {end} step %c1 iter_args(%dk = {dk}, %dv = {dv}) -> (!sums, !sums) {{
  %m = arith.muli %i, %rows : index
  %q_slot, %q_stage = axe.pipeline.wait %q_ring : !axe.slot
  %q = axe.slice %Qs[%q_stage, %c0, %c0] : !q_stages to !q_shared
  %s_issued = axe.gemm async %Ks, %q {{trans_b}} : !kv_shared, !q_shared -> !s
  %do_slot, %do_stage = axe.pipeline.wait %do_ring : !axe.slot
  %do = axe.slice %dOs[%do_stage, %c0, %c0] : !q_stages to !q_shared
  %dp_issued = axe.gemm async %Vs, %do {{trans_b}} : !kv_shared, !q_shared -> !s
  %l_shared = axe.slice %Ls[%q_stage, %c0] : !stat_stages to !stat_shared
  %l = axe.copy %l_shared : !stat_shared -> !stat
  %l_wide = axe.broadcast %l dims [0] : !stat -> !s
  %s = axe.wait %s_issued {{pending = 1 : i64}} : !s
  %p = axe.map ins(%s, %l_wide : !s, !s) -> !s {{ ^bb0(%x: f32, %y: f32):
    %negated = arith.negf %y : f32
    %z = math.fma %x, %scale, %negated : f32
    %power = math.exp2 %z fastmath<afn> : f32
    axe.yield %power : f32 }}{mask}
  %d_shared = axe.slice %Ds[%do_stage, %c0] : !stat_stages to !stat_shared
  %d = axe.copy %d_shared : !stat_shared -> !stat
  %d_wide = axe.broadcast %d dims [0] : !stat -> !s
  %dp, %p_then = axe.wait %dp_issued, {p} : !s, !s
  %ds = axe.map ins(%p_then, %dp, %d_wide : !s, !s, !s) -> !s {{ ^bb0(%x: f32, %y: f32, %z: f32):
    %difference = arith.subf %y, %z : f32
    %product = arith.mulf %x, %difference : f32
    axe.yield %product : f32 }}
  %p_narrow = axe.cast %p_then : !s -> !p
  %ds_narrow = axe.cast %ds : !s -> !p
  %dv_issued = axe.gemm async %p_narrow, %do acc %dv : !sums : !p, !q_shared -> !sums
  // Both consumers multiply all of dS. Several places for it make one barrier enough.
  %ds_shared = axe.slice %dSs[%q_stage, %c0, %c0] : !ds_stages to !ds_shared
  axe.copy %ds_narrow to %ds_shared : !p to !ds_shared
  axe.barrier async
  %dq_issued = axe.gemm async %ds_shared, %Ks {{trans_a}} : !ds_shared, !kv_shared -> !dq
  %dv_next = axe.wait %dv_issued {{pending = 1 : i64}} : !sums
  axe.pipeline.release %do_ring, %do_slot
  %dk_issued = axe.gemm async %ds_narrow, %q acc %dk : !sums : !p, !q_shared -> !sums
  %dq = axe.wait %dq_issued {{pending = 1 : i64}} : !dq
  %dq_box = axe.slice %dQh[%b, %h, %m, %c0] : !dq_heads to !dq_box
  axe.copy %dq to %dq_box accumulate : !dq to !dq_box
  %dk_next = axe.wait %dk_issued : !sums
  axe.pipeline.release %q_ring, %q_slot
  scf.yield %dk_next, %dv_next : !sums, !sums
}}"""

MASK = """
{limit}
  %limit = arith.index_cast %limit_index : index to i32
  %p_seen = axe.map ins(%p : !s) -> !s {{ ^bb0(%x: f32):
    %key_index = axe.index 0
    %key = arith.index_cast %key_index : index to i32
{compare}
    %y = arith.select %seen, %x, %zero : f32
    axe.yield %y : f32 }}"""

# A key is seen by the queries at its place and behind it; keys behind the last one by none.
CAUSAL = ("  %limit_index = arith.subi %m, %n : index", """    %query_index = axe.index 1
    %query = arith.index_cast %query_index : index to i32
    %diagonal = arith.addi %query, %limit : i32
    %seen = arith.cmpi sle, %key, %diagonal : i32""")
RAGGED = ("  %limit_index = arith.subi %places, %n : index", "    %seen = arith.cmpi slt, %key, %limit : i32")


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


def kernel(batch, length, heads, kv_heads, d, causal=False, dtype="f16", stages=2):
    """The kernel's text, of blocks of 64 queries and 128 keys."""
    if d not in (64, 128) or heads % kv_heads or length % 4:
        raise ValueError("expected D of 64 or 128, groups of heads, places in multiples of 4")
    rows, keys = 64, 128
    tiles, blocks = -(-length // keys), -(-length // rows)
    dq = f"#axe.layout<S[(4, 2, 8, 2, {d // 16}, 4, 2) : (1@warp, 2@reg, 4@lane, 4@warp, 4@reg, 1@lane, 1@reg)]>"
    first = "%keys_first = arith.divui %n, %rows : index\n%first = arith.addi %keys_first, %c0 : index" if causal else "%first = arith.addi %c0, %c0 : index"
    # Problem after problem, so that queries stay in L2; long tiles first where four CTAs of 132 or more have the same problem.
    raster = "columns" if causal and 4 * batch * kv_heads <= 132 else "rows"
    mask = CAUSAL if causal else RAGGED if length % keys else None
    masked = MASK.format(limit=mask[0], compare=mask[1]) if mask else ""

    def loop(to, begin, end, state, mask):
        return LOOP.format(to=to, begin=begin, end=end, dk=state[0], dv=state[1], mask=mask, p="%p_seen" if mask else "%p")

    if causal:
        bounds = "%c_diagonal = arith.addi %first, %masked : index\n%diagonal_end = arith.minui %c_diagonal, %blocks : index\n"
        loops = bounds + loop("diagonal", "%first", "%diagonal_end", ("%dk_of", "%dv_of"), masked) + "\n" + \
            loop("below", "%diagonal_end", "%blocks", ("%diagonal#0", "%diagonal#1"), "")
    else:
        loops = loop("head", "%first", "%blocks", ("%dk_of", "%dv_of"), masked)
    result = "%below" if causal else "%head"
    text = HEADER.format(
        what="a causal mask" if causal else "all places", dtype=dtype, d=d, group=heads // kv_heads, rows=rows, keys=keys, batch=batch,
        length=length, heads=heads, kv_heads=kv_heads, stages=stages, tiles=tiles, raster=raster, blocks=blocks, masked_blocks=keys // rows, sequences=batch * kv_heads,
        ctas=tiles * batch * kv_heads, kv_layout=swizzled(keys, d), q_layout=swizzled(rows, d), q_ring=swizzled(rows, d, stages),
        ds_layout=swizzled(keys, rows), ds_ring=swizzled(keys, rows, stages), s_layout=sums(8, rows), d_layout=sums(8, d), dq_layout=dq,
        eighths=rows // 8, qo_strides=strides(batch, length, heads, d), kv_strides=strides(batch, length, kv_heads, d), qo_row=heads * d,
        kv_row=kv_heads * d, scale=repr(d ** -0.5 * 1.4426950408889634), root=repr(d ** -0.5), first_producer=indent(first, 8),
        first_consumer=indent(first, 6), load_q=indent(LOAD.format(x="q", X="Q", s="l", S="L"), 12),
        load_do=indent(LOAD.format(x="do", X="dO", s="d", S="D"), 12), loops=indent(loops, 8), sums=f"{result}#0, {result}#1")
    return "\n".join(line.rstrip() for line in text.split("\n"))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(batch=2, length=8192, heads=32, dim=128, stages=2).items():
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--kv-heads", type=int)
    options.add_argument("--causal", action="store_true")
    options.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
    given = options.parse_args()
    kv_heads = given.kv_heads or (8 if given.heads == 32 else given.heads)
    print(kernel(given.batch, given.length, given.heads, kv_heads, given.dim, given.causal, given.dtype, given.stages), end="")
