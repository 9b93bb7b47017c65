// Gradients of O = softmax(Q K^T / sqrt(D)) V for all places, in f16 with sums in f32: FlashAttention-3's backward
// pass (arXiv 2407.08608) written by hand. Tensors are [batch, place, head, 128]; 4 query heads share a head of K and V.
// L is log(sum(exp(Q K^T / sqrt(D)))) of each row, which the forward pass leaves. attention_backward.py writes it for other sizes.
//
//   axe compile examples/kernels/attention_backward.mlir --target sm_90a -o backward.axe
//   axe explain examples/kernels/attention_backward.mlir --target sm_90a
//
// The idea. A CTA owns 128 keys of one head of K and V; its producer brings Q and dO of all heads that share them in blocks of 64 rows.
// Two consumers of 64 keys each form everything transposed, so that what is formed of sums is operand A of the next product in its registers:
//   P^T = exp(K Q^T / sqrt(D) - L)      dP^T = V dO^T      dS^T = P^T (dP^T - rowsum(dO O))
//   dV += P^T dO                        dK += dS^T Q       dQ += dS K
// dV and dK stay in registers. dQ needs the dS^T of both consumers, through shared memory: each forms half of its columns, which all
// blocks of keys add up in memory, in f32.

// 128 columns of 16 bits are panels of 64, the 128 bytes that the widest swizzle works on.
#kv_layout = #axe.layout<Sw<3, 3, 3> o S[(128, 2, 64) : (64, 8192, 1)]>
#q_layout = #axe.layout<Sw<3, 3, 3> o S[(64, 2, 64) : (64, 4096, 1)]>
#q_ring = #axe.layout<Sw<3, 3, 3> o S[(2, 64, 2, 64) : (8192, 64, 4096, 1)]>
#ds_layout = #axe.layout<Sw<3, 3, 3> o S[(128, 1, 64) : (64, 8192, 1)]>
#ds_ring = #axe.layout<Sw<3, 3, 3> o S[(2, 128, 1, 64) : (8192, 64, 8192, 1)]>
#stat_layout = #axe.layout<S[64 : 1]>
#stat_ring = #axe.layout<S[(2, 64) : (64, 1)]>
// The accumulators of wgmma (see gemm_roles.mlir). A value a query is one a column here, which 8 warps and 8 groups of lanes hold. Of
// dQ four warps hold the columns of the first half, four the others.
#s_layout = #axe.layout<S[(8, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#d_layout = #axe.layout<S[(8, 2, 8, 16, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#dq_layout = #axe.layout<S[(4, 2, 8, 2, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@warp, 4@reg, 1@lane, 1@reg)]>
#column_layout = #axe.layout<S[(8, 4, 2) : (2@reg, 1@lane, 1@reg)] + R[(8, 8) : (1@warp, 4@lane)]>
// Memory as [batch, head, place, column], by strides.
#qo_strides = #axe.layout<S[(2, 32, 8192, 128) : (33554432, 128, 4096, 1)]>
#kv_strides = #axe.layout<S[(2, 8, 8192, 128) : (8388608, 128, 1024, 1)]>
!qo_memory = memref<2x8192x32x128xf16>
!kv_memory = memref<2x8192x8x128xf16>
!stat_memory = memref<2x32x8192xf32>
!dq_memory = memref<2x8192x32x128xf32>
!dq_heads = memref<2x32x8192x128xf32, #qo_strides>
!qo_heads = memref<2x32x8192x128xf16, #qo_strides>
!kv_heads = memref<2x8x8192x128xf16, #kv_strides>
!qo_box = memref<64x128xf16, strided<[4096, 1]>>
!kv_box = memref<128x128xf16, strided<[1024, 1]>>
!stat_box = memref<64xf32, strided<[1]>>
!dq_box = memref<64x128xf32, strided<[4096, 1]>>
!kv_shared = memref<128x128xf16, #kv_layout, #axe.space<shared>>
!q_shared = memref<64x128xf16, #q_layout, #axe.space<shared>>
!q_stages = memref<2x64x128xf16, #q_ring, #axe.space<shared>>
!stat_shared = memref<64xf32, #stat_layout, #axe.space<shared>>
!stat_stages = memref<2x64xf32, #stat_ring, #axe.space<shared>>
!ds_shared = memref<128x64xf16, #ds_layout, #axe.space<shared>>
!ds_stages = memref<2x128x64xf16, #ds_ring, #axe.space<shared>>
!s = tensor<128x64xf32, #s_layout>
!p = tensor<128x64xf16, #s_layout>
!sums = tensor<128x128xf32, #d_layout>
!narrow = tensor<128x128xf16, #d_layout>
!dq = tensor<64x128xf32, #dq_layout>
!stat = tensor<64xf32, #column_layout>
!qo_tensor = tensor<2x8192x32x128xf16>
!kv_tensor = tensor<2x8192x8x128xf16>
!row_tensor = tensor<2x8192x32xf32>
!stat_tensor = tensor<2x32x8192xf32>
!dq_tensor = tensor<2x8192x32x128xf32>

axe.kernel @attention_backward(%Q: !qo_memory, %K: !kv_memory, %V: !kv_memory, %dO: !qo_memory, %L: !stat_memory, %D: !stat_memory,
                               %dQ: !dq_memory, %dK: !kv_memory, %dV: !kv_memory) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %masked = arith.constant 2 : index
  %kv_heads = arith.constant 8 : index
  %group = arith.constant 4 : index
  %rows = arith.constant 64 : index
  %columns = arith.constant 128 : index
  %places = arith.constant 8192 : index
  %sequences = arith.constant 16 : index
  %tiles = arith.constant 64 : index
  %blocks = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  // Scores are scaled by log2(e) / sqrt(128), as L is, and exponentials are powers of two. dK has 1 / sqrt(128) left.
  %scale = arith.constant 0.12751743082459868 : f32
  %root = arith.constant 0.08838834764831845 : f32
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
  %q_ring = axe.pipeline.create stages(2) : !axe.pipeline
  %do_ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 1) registers(24) {
    axe.scope warp [0, 1) {
      axe.for_tiles (%bh, %j) in (%sequences, %tiles) raster(rows) {
        %b = arith.divui %bh, %kv_heads : index
        %h_kv = arith.remui %bh, %kv_heads : index
        %first_head = arith.muli %h_kv, %group : index
        %n = arith.muli %j, %columns : index
        %first = arith.addi %c0, %c0 : index
        %kv_slot, %kv_stage = axe.pipeline.acquire %kv_ring : !axe.slot
        %k = axe.slice %Kh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
        axe.copy async %k to %Ks signal %kv_slot : !kv_box to !kv_shared
        %v = axe.slice %Vh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
        axe.copy async %v to %Vs signal %kv_slot : !kv_box to !kv_shared
        axe.pipeline.commit %kv_ring, %kv_slot
        scf.for %g = %c0 to %group step %c1 {
          %h = arith.addi %first_head, %g : index
          scf.for %i = %first to %blocks step %c1 {
            %m = arith.muli %i, %rows : index
            %q_slot, %q_stage = axe.pipeline.acquire %q_ring : !axe.slot
            %q = axe.slice %Qh[%b, %h, %m, %c0] : !qo_heads to !qo_box
            %q_shared = axe.slice %Qs[%q_stage, %c0, %c0] : !q_stages to !q_shared
            axe.copy async %q to %q_shared signal %q_slot : !qo_box to !q_shared
            %l = axe.slice %L[%b, %h, %m] : !stat_memory to !stat_box
            %l_shared = axe.slice %Ls[%q_stage, %c0] : !stat_stages to !stat_shared
            axe.copy async %l to %l_shared signal %q_slot : !stat_box to !stat_shared
            axe.pipeline.commit %q_ring, %q_slot
            %do_slot, %do_stage = axe.pipeline.acquire %do_ring : !axe.slot
            %do = axe.slice %dOh[%b, %h, %m, %c0] : !qo_heads to !qo_box
            %do_shared = axe.slice %dOs[%do_stage, %c0, %c0] : !q_stages to !q_shared
            axe.copy async %do to %do_shared signal %do_slot : !qo_box to !q_shared
            %d = axe.slice %D[%b, %h, %m] : !stat_memory to !stat_box
            %d_shared = axe.slice %Ds[%do_stage, %c0] : !stat_stages to !stat_shared
            axe.copy async %d to %d_shared signal %do_slot : !stat_box to !stat_shared
            axe.pipeline.commit %do_ring, %do_slot
          }
        }
      }
    }
  }

  axe.scope warpgroup [1, 3) registers(240) {
    axe.for_tiles (%bh, %j) in (%sequences, %tiles) raster(rows) {
      %b = arith.divui %bh, %kv_heads : index
      %h_kv = arith.remui %bh, %kv_heads : index
      %first_head = arith.muli %h_kv, %group : index
      %n = arith.muli %j, %columns : index
      %first = arith.addi %c0, %c0 : index
      %none = axe.fill %zero : f32 -> !sums
      %kv_slot, %kv_stage = axe.pipeline.wait %kv_ring : !axe.slot
      %all:2 = scf.for %g = %c0 to %group step %c1 iter_args(%dk_of = %none, %dv_of = %none) -> (!sums, !sums) {
        %h = arith.addi %first_head, %g : index
        %head:2 = scf.for %i = %first to %blocks step %c1 iter_args(%dk = %dk_of, %dv = %dv_of) -> (!sums, !sums) {
          %m = arith.muli %i, %rows : index
          %q_slot, %q_stage = axe.pipeline.wait %q_ring : !axe.slot
          %q = axe.slice %Qs[%q_stage, %c0, %c0] : !q_stages to !q_shared
          %s_issued = axe.gemm async %Ks, %q {trans_b} : !kv_shared, !q_shared -> !s
          %do_slot, %do_stage = axe.pipeline.wait %do_ring : !axe.slot
          %do = axe.slice %dOs[%do_stage, %c0, %c0] : !q_stages to !q_shared
          %dp_issued = axe.gemm async %Vs, %do {trans_b} : !kv_shared, !q_shared -> !s
          %l_shared = axe.slice %Ls[%q_stage, %c0] : !stat_stages to !stat_shared
          %l = axe.copy %l_shared : !stat_shared -> !stat
          %l_wide = axe.broadcast %l dims [0] : !stat -> !s
          %s = axe.wait %s_issued {pending = 1 : i64} : !s
          %p = axe.map ins(%s, %l_wide : !s, !s) -> !s { ^bb0(%x: f32, %y: f32):
            %negated = arith.negf %y : f32
            %z = math.fma %x, %scale, %negated : f32
            %power = math.exp2 %z fastmath<afn> : f32
            axe.yield %power : f32 }
          %d_shared = axe.slice %Ds[%do_stage, %c0] : !stat_stages to !stat_shared
          %d = axe.copy %d_shared : !stat_shared -> !stat
          %d_wide = axe.broadcast %d dims [0] : !stat -> !s
          %dp, %p_then = axe.wait %dp_issued, %p : !s, !s
          %ds = axe.map ins(%p_then, %dp, %d_wide : !s, !s, !s) -> !s { ^bb0(%x: f32, %y: f32, %z: f32):
            %difference = arith.subf %y, %z : f32
            %product = arith.mulf %x, %difference : f32
            axe.yield %product : f32 }
          %p_narrow = axe.cast %p_then : !s -> !p
          %ds_narrow = axe.cast %ds : !s -> !p
          %dv_issued = axe.gemm async %p_narrow, %do acc %dv : !sums : !p, !q_shared -> !sums
          // Both consumers multiply all of dS. Several places for it make one barrier enough.
          %ds_shared = axe.slice %dSs[%q_stage, %c0, %c0] : !ds_stages to !ds_shared
          axe.copy %ds_narrow to %ds_shared : !p to !ds_shared
          axe.barrier async
          %dq_issued = axe.gemm async %ds_shared, %Ks {trans_a} : !ds_shared, !kv_shared -> !dq
          %dv_next = axe.wait %dv_issued {pending = 1 : i64} : !sums
          axe.pipeline.release %do_ring, %do_slot
          %dk_issued = axe.gemm async %ds_narrow, %q acc %dk : !sums : !p, !q_shared -> !sums
          %dq = axe.wait %dq_issued {pending = 1 : i64} : !dq
          %dq_box = axe.slice %dQh[%b, %h, %m, %c0] : !dq_heads to !dq_box
          axe.copy %dq to %dq_box accumulate : !dq to !dq_box
          %dk_next = axe.wait %dk_issued : !sums
          axe.pipeline.release %q_ring, %q_slot
          scf.yield %dk_next, %dv_next : !sums, !sums
        }
        scf.yield %head#0, %head#1 : !sums, !sums
      }
      axe.pipeline.release %kv_ring, %kv_slot
      %dv_narrow = axe.cast %all#1 : !sums -> !narrow
      %dv_box = axe.slice %dVh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
      axe.copy %dv_narrow to %dv_box : !narrow to !kv_box
      %dk_scaled = axe.map ins(%all#0 : !sums) -> !sums { ^bb0(%x: f32): %y = arith.mulf %x, %root : f32 axe.yield %y : f32 }
      %dk_narrow = axe.cast %dk_scaled : !sums -> !narrow
      %dk_box = axe.slice %dKh[%b, %h_kv, %n, %c0] : !kv_heads to !kv_box
      axe.copy %dk_narrow to %dk_box : !narrow to !kv_box
    }
  }
  axe.return
}

#rows = affine_map<(b, s, h, d) -> (b, s, h, d)>
#row = affine_map<(b, s, h, d) -> (b, s, h)>
#stat = affine_map<(b, h, s) -> (b, h, s)>
func.func @main(%q: !qo_tensor, %k: !kv_tensor, %v: !kv_tensor, %o: !qo_tensor, %do: !qo_tensor, %l: !stat_tensor) -> (!qo_tensor, !kv_tensor, !kv_tensor) {
  %c1 = arith.constant 1 : index
  %ctas = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %root = arith.constant 0.08838834764831845 : f32
  %log2e = arith.constant 1.4426950408889634 : f32
  // One value a row before: rowsum(dO O), and L for powers of two.
  %row = tensor.empty() : !row_tensor
  %row0 = linalg.fill ins(%zero : f32) outs(%row : !row_tensor) -> !row_tensor
  %d_rows = linalg.generic {indexing_maps = [#rows, #rows, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%o, %do : !qo_tensor, !qo_tensor) outs(%row0 : !row_tensor) { ^bb0(%x: f16, %y: f16, %sum: f32):
    %xw = arith.extf %x : f16 to f32
    %yw = arith.extf %y : f16 to f32
    %z = arith.mulf %xw, %yw : f32
    %w = arith.addf %sum, %z : f32
    linalg.yield %w : f32
  } -> !row_tensor
  %stat = tensor.empty() : !stat_tensor
  %d = linalg.transpose ins(%d_rows : !row_tensor) outs(%stat : !stat_tensor) permutation = [0, 2, 1]
  %l2 = linalg.generic {indexing_maps = [#stat, #stat], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%l : !stat_tensor) outs(%stat : !stat_tensor) { ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %log2e : f32
    linalg.yield %z : f32
  } -> !stat_tensor
  %dq_empty = tensor.empty() : !dq_tensor
  %dq0 = linalg.fill ins(%zero : f32) outs(%dq_empty : !dq_tensor) -> !dq_tensor
  %kv_empty = tensor.empty() : !kv_tensor
  %dq_sums, %dk, %dv = axe.launch @attention_backward grid(%ctas, %c1, %c1)
      ins(%q, %k, %v, %do, %l2, %d : !qo_tensor, !kv_tensor, !kv_tensor, !qo_tensor, !stat_tensor, !stat_tensor)
      outs(%dq0, %kv_empty, %kv_empty : !dq_tensor, !kv_tensor, !kv_tensor) -> !dq_tensor, !kv_tensor, !kv_tensor
  // And after: the type of dQ.
  %qo_empty = tensor.empty() : !qo_tensor
  %dq = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%dq_sums : !dq_tensor) outs(%qo_empty : !qo_tensor) { ^bb0(%x: f32, %y: f16):
    %z = arith.mulf %x, %root : f32
    %w = arith.truncf %z : f32 to f16
    linalg.yield %w : f16
  } -> !qo_tensor
  return %dq, %dk, %dv : !qo_tensor, !kv_tensor, !kv_tensor
}
