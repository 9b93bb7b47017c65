// O = softmax(Q K^T / sqrt(D)) V for a causal mask, in f16 with sums in f32: FlashAttention-3's loop (arXiv 2407.08608)
// written by hand. Tensors are [batch, place, head, 128]; 4 query heads share a head of K and V. attention.py writes it for other sizes.
//
//   axe compile examples/kernels/attention_causal.mlir --target sm_90a -o attention.axe
//
// The idea. A CTA has 128 rows of Q; its producer brings K and V in blocks of 128 rows through a ring of two stages each, from the
// last block to the first. Two consumers of 64 rows each multiply and keep the row's greatest score m, its sum l and O in registers:
// a new block with scores S makes m' = max(m, S), P = exp(S - m'), l' = l exp(m - m') + sum P, O' = O exp(m - m') + P V. The
// loop issues the scores of a block before P V of the block before it, so that the tensor cores work while exponentials are formed.

// 128 columns of 16 bits are two panels of 64, the 128 bytes that the widest swizzle works on.
#q_layout = #axe.layout<Sw<3, 3, 3> o S[(128, 2, 64) : (64, 8192, 1)]>
#kv_layout = #axe.layout<Sw<3, 3, 3> o S[(128, 2, 64) : (64, 8192, 1)]>
#ring_layout = #axe.layout<Sw<3, 3, 3> o S[(2, 128, 2, 64) : (16384, 64, 8192, 1)]>
// The accumulators of wgmma (see gemm_roles.mlir). P has the layout of S: as operand A it stays in its registers. Four lanes hold a row.
#s_layout = #axe.layout<S[(8, 2, 8, 16, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#o_layout = #axe.layout<S[(8, 2, 8, 16, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#row_layout = #axe.layout<S[(8, 2, 8) : (1@warp, 1@reg, 4@lane)] + R[4 : 1@lane]>
// Memory as [batch, head, place, column], by strides.
#qo_strides = #axe.layout<S[(2, 32, 8192, 128) : (33554432, 128, 4096, 1)]>
#kv_strides = #axe.layout<S[(2, 8, 8192, 128) : (8388608, 128, 1024, 1)]>
!qo_memory = memref<2x8192x32x128xf16>
!kv_memory = memref<2x8192x8x128xf16>
!qo_heads = memref<2x32x8192x128xf16, #qo_strides>
!kv_heads = memref<2x8x8192x128xf16, #kv_strides>
!qo_box = memref<128x128xf16, strided<[4096, 1]>>
!kv_box = memref<128x128xf16, strided<[1024, 1]>>
!q_shared = memref<128x128xf16, #q_layout, #axe.space<shared>>
!kv_shared = memref<128x128xf16, #kv_layout, #axe.space<shared>>
!ring = memref<2x128x128xf16, #ring_layout, #axe.space<shared>>
!scores = tensor<128x128xf32, #s_layout>
!p = tensor<128x128xf16, #s_layout>
!o = tensor<128x128xf32, #o_layout>
!o_narrow = tensor<128x128xf16, #o_layout>
!row = tensor<128xf32, #row_layout>
!qo_tensor = tensor<2x8192x32x128xf16>
!kv_tensor = tensor<2x8192x8x128xf16>

axe.kernel @attention(%Q: !qo_memory, %K: !kv_memory, %V: !kv_memory, %O: !qo_memory) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %heads = arith.constant 32 : index
  %group = arith.constant 4 : index
  %rows = arith.constant 128 : index
  %columns = arith.constant 128 : index
  %keys = arith.constant 8192 : index
  %sequences = arith.constant 64 : index
  %tiles = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  // Scores are scaled by log2(e) / sqrt(128), and exponentials are powers of two.
  %scale = arith.constant 0.12751743082459868 : f32
  %minus_scale = arith.constant -0.12751743082459868 : f32
  %Qh = axe.view %Q : !qo_memory to !qo_heads
  %Kh = axe.view %K : !kv_memory to !kv_heads
  %Vh = axe.view %V : !kv_memory to !kv_heads
  %Oh = axe.view %O : !qo_memory to !qo_heads
  %Qs = axe.alloc : !q_shared
  %Ks = axe.alloc : !ring
  %Vs = axe.alloc : !ring
  %q_ring = axe.pipeline.create stages(1) : !axe.pipeline
  %k_ring = axe.pipeline.create stages(2) : !axe.pipeline
  %v_ring = axe.pipeline.create stages(2) : !axe.pipeline
  %c2 = arith.constant 2 : index
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
  %rounds = arith.addi %whole, %one_more : index
  axe.scope warpgroup [0, 1) registers(24) {
    axe.scope warp [0, 1) {
      scf.for %round = %c0 to %rounds step %c1 {
        %round_parity = arith.remui %round, %c2 : index
        %round_odd = arith.cmpi ne, %round_parity, %c0 : index
        %own = arith.select %round_odd, %backwards, %cta : index
        %before = arith.muli %round, %ctas : index
        %number = arith.addi %before, %own : index
        %i, %bh = axe.tile_at %number in (%tiles, %sequences) raster(rows)
        %b = arith.divui %bh, %heads : index
        %h = arith.remui %bh, %heads : index
        %from_end = arith.subi %last_tile, %i : index
        %m = arith.muli %from_end, %rows : index
        %end_place = arith.addi %m, %rows : index
        %needed = arith.ceildivui %end_place, %columns : index
        %all_blocks = arith.ceildivui %keys, %columns : index
        %blocks_end = arith.minui %needed, %all_blocks : index
        %h_kv = arith.divui %h, %group : index
        %top = arith.subi %blocks_end, %c1 : index
        %k_slot, %k_stage = axe.pipeline.acquire %k_ring : !axe.slot
        %k_first = arith.muli %top, %columns : index
        %k = axe.slice %Kh[%b, %h_kv, %k_first, %c0] : !kv_heads to !kv_box
        %k_shared = axe.slice %Ks[%k_stage, %c0, %c0] : !ring to !kv_shared
        axe.copy async %k to %k_shared signal %k_slot : !kv_box to !kv_shared
        axe.pipeline.commit %k_ring, %k_slot
        %q_slot, %q_stage = axe.pipeline.acquire %q_ring : !axe.slot
        %q = axe.slice %Qh[%b, %h, %m, %c0] : !qo_heads to !qo_box
        axe.copy async %q to %Qs signal %q_slot : !qo_box to !q_shared
        axe.pipeline.commit %q_ring, %q_slot
        scf.for %t = %c1 to %blocks_end step %c1 {
          %j = arith.subi %top, %t : index
          %above = arith.addi %j, %c1 : index
          %kn_slot, %kn_stage = axe.pipeline.acquire %k_ring : !axe.slot
          %kn_first = arith.muli %j, %columns : index
          %kn = axe.slice %Kh[%b, %h_kv, %kn_first, %c0] : !kv_heads to !kv_box
          %kn_shared = axe.slice %Ks[%kn_stage, %c0, %c0] : !ring to !kv_shared
          axe.copy async %kn to %kn_shared signal %kn_slot : !kv_box to !kv_shared
          axe.pipeline.commit %k_ring, %kn_slot
          %vn_slot, %vn_stage = axe.pipeline.acquire %v_ring : !axe.slot
          %vn_first = arith.muli %above, %columns : index
          %vn = axe.slice %Vh[%b, %h_kv, %vn_first, %c0] : !kv_heads to !kv_box
          %vn_shared = axe.slice %Vs[%vn_stage, %c0, %c0] : !ring to !kv_shared
          axe.copy async %vn to %vn_shared signal %vn_slot : !kv_box to !kv_shared
          axe.pipeline.commit %v_ring, %vn_slot
        }
        %v_slot, %v_stage = axe.pipeline.acquire %v_ring : !axe.slot
        %v_first = arith.muli %c0, %columns : index
        %v = axe.slice %Vh[%b, %h_kv, %v_first, %c0] : !kv_heads to !kv_box
        %v_shared = axe.slice %Vs[%v_stage, %c0, %c0] : !ring to !kv_shared
        axe.copy async %v to %v_shared signal %v_slot : !kv_box to !kv_shared
        axe.pipeline.commit %v_ring, %v_slot
      }
    }
  }

  axe.scope warpgroup [1, 3) registers(240) {
    scf.for %round = %c0 to %rounds step %c1 {
      %round_parity = arith.remui %round, %c2 : index
      %round_odd = arith.cmpi ne, %round_parity, %c0 : index
      %own = arith.select %round_odd, %backwards, %cta : index
      %before = arith.muli %round, %ctas : index
      %number = arith.addi %before, %own : index
      %i, %bh = axe.tile_at %number in (%tiles, %sequences) raster(rows)
      %b = arith.divui %bh, %heads : index
      %h = arith.remui %bh, %heads : index
      %from_end = arith.subi %last_tile, %i : index
      %m = arith.muli %from_end, %rows : index
      %end_place = arith.addi %m, %rows : index
      %needed = arith.ceildivui %end_place, %columns : index
      %all_blocks = arith.ceildivui %keys, %columns : index
      %blocks_end = arith.minui %needed, %all_blocks : index
      %top = arith.subi %blocks_end, %c1 : index
      // The last block alone, without the places behind each row.
      %o0 = axe.fill %zero : f32 -> !o
      %q_slot, %q_stage = axe.pipeline.wait %q_ring : !axe.slot
      %k_slot, %k_stage = axe.pipeline.wait %k_ring : !axe.slot
      %k = axe.slice %Ks[%k_stage, %c0, %c0] : !ring to !kv_shared
      %s_issued = axe.gemm async %Qs, %k {trans_b} : !q_shared, !kv_shared -> !scores
      %s_all = axe.wait %s_issued : !scores
      axe.pipeline.release %k_ring, %k_slot
      %block = arith.muli %top, %columns : index
      %ends = arith.subi %m, %block : index
      %limit = arith.index_cast %ends : index to i32
      %s0 = axe.map ins(%s_all : !scores) -> !scores { ^bb0(%x: f32):
        %j_index = axe.index 1
        %j = arith.index_cast %j_index : index to i32
        %i_index = axe.index 0
        %i_row = arith.index_cast %i_index : index to i32
        %diagonal = arith.addi %i_row, %limit : i32
        %seen = arith.cmpi sle, %j, %diagonal : i32
        %y = arith.select %seen, %x, %lowest : f32
        axe.yield %y : f32 }
      %m0 = axe.reduce <max> %s0 dims [1] : !scores -> !row
      %m0_wide = axe.broadcast %m0 dims [1] : !row -> !scores
      %e0 = axe.map ins(%s0, %m0_wide : !scores, !scores) -> !scores { ^bb0(%x: f32, %y: f32):
        %scaled = arith.mulf %y, %minus_scale : f32
        %z = math.fma %x, %scale, %scaled : f32
        %e = math.exp2 %z fastmath<afn> : f32
        axe.yield %e : f32 }
      %l0 = axe.reduce <add> %e0 dims [1] : !scores -> !row
      %p0 = axe.cast %e0 : !scores -> !p
      %v0_slot, %v0_stage = axe.pipeline.wait %v_ring : !axe.slot

      // V's stage is that of the block before. S of this block and P V of that one are issued together; `pending = 1` waits for S.
      %last:6 = scf.for %t = %c1 to %blocks_end step %c1 iter_args(%o = %o0, %p = %p0, %m_old = %m0, %l = %l0, %v_slot = %v0_slot, %v_stage = %v0_stage) -> (!o, !p, !row, !row, !axe.slot, index) {
        %kn_slot, %kn_stage = axe.pipeline.wait %k_ring : !axe.slot
        %kn = axe.slice %Ks[%kn_stage, %c0, %c0] : !ring to !kv_shared
        %sn_issued = axe.gemm async %Qs, %kn {trans_b} : !q_shared, !kv_shared -> !scores
        %v = axe.slice %Vs[%v_stage, %c0, %c0] : !ring to !kv_shared
        %o_issued = axe.gemm async %p, %v acc %o : !o : !p, !kv_shared -> !o
        %s = axe.wait %sn_issued {pending = 1 : i64} : !scores
        axe.pipeline.release %k_ring, %kn_slot
        %m_block = axe.reduce <max> %s dims [1] : !scores -> !row
        %m_new = axe.map ins(%m_old, %m_block : !row, !row) -> !row { ^bb0(%x: f32, %y: f32): %z = arith.maxnumf %x, %y : f32 axe.yield %z : f32 }
        %wide = axe.broadcast %m_new dims [1] : !row -> !scores
        %e = axe.map ins(%s, %wide : !scores, !scores) -> !scores { ^bb0(%x: f32, %y: f32):
          %scaled = arith.mulf %y, %minus_scale : f32
          %z = math.fma %x, %scale, %scaled : f32
          %power = math.exp2 %z fastmath<afn> : f32
          axe.yield %power : f32 }
        %a = axe.map ins(%m_old, %m_new : !row, !row) -> !row { ^bb0(%x: f32, %y: f32):
          %scaled = arith.mulf %y, %minus_scale : f32
          %z = math.fma %x, %scale, %scaled : f32
          %power = math.exp2 %z fastmath<afn> : f32
          axe.yield %power : f32 }
        %sum = axe.reduce <add> %e dims [1] : !scores -> !row
        %l_new = axe.map ins(%l, %a, %sum : !row, !row, !row) -> !row { ^bb0(%x: f32, %y: f32, %z: f32): %w = math.fma %x, %y, %z : f32 axe.yield %w : f32 }
        // ptxas would move the wait for P V, which is next, above the exponentials: the wait for V, a loop, ends their basic block.
        %vn_slot, %vn_stage = axe.pipeline.wait %v_ring : !axe.slot
        %o_old, %e_done = axe.wait %o_issued, %e : !o, !scores
        axe.pipeline.release %v_ring, %v_slot
        %p_new = axe.cast %e_done : !scores -> !p
        %a_wide = axe.broadcast %a dims [1] : !row -> !o
        %o_new = axe.map ins(%o_old, %a_wide : !o, !o) -> !o { ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }
        scf.yield %o_new, %p_new, %m_new, %l_new, %vn_slot, %vn_stage : !o, !p, !row, !row, !axe.slot, index
      }
      axe.pipeline.release %q_ring, %q_slot
      %v_last = axe.slice %Vs[%last#5, %c0, %c0] : !ring to !kv_shared
      %o_last = axe.gemm async %last#1, %v_last acc %last#0 : !o : !p, !kv_shared -> !o
      %o_sums = axe.wait %o_last : !o
      axe.pipeline.release %v_ring, %last#4
      %inverse = axe.map ins(%last#3 : !row) -> !row { ^bb0(%x: f32): %y = arith.divf %one, %x : f32 axe.yield %y : f32 }
      %inverse_wide = axe.broadcast %inverse dims [1] : !row -> !o
      %result = axe.map ins(%o_sums, %inverse_wide : !o, !o) -> !o { ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 axe.yield %z : f32 }
      %narrow = axe.cast %result : !o -> !o_narrow
      %box = axe.slice %Oh[%b, %h, %m, %c0] : !qo_heads to !qo_box
      axe.copy %narrow to %box : !o_narrow to !qo_box
    }
  }
  axe.return
}

func.func @main(%q: !qo_tensor, %k: !kv_tensor, %v: !kv_tensor) -> !qo_tensor {
  %c1 = arith.constant 1 : index
  %ctas = arith.constant 132 : index
  %empty = tensor.empty() : !qo_tensor
  %o = axe.launch @attention grid(%ctas, %c1, %c1) ins(%q, %k, %v : !qo_tensor, !kv_tensor, !kv_tensor) outs(%empty : !qo_tensor) -> !qo_tensor
  return %o : !qo_tensor
}
