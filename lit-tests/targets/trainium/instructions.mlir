// RUN: axe-opt %s | axe-opt | FileCheck %s
// RUN: axe-opt %s -mlir-print-op-generic | axe-opt | FileCheck %s

// Every instruction, custom and generic.

trn.kernel @all(%x: !trn.hbm<128x512xf32>) outs(%y: !trn.hbm<128x512xf32>) chip("trn2") {
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xbf16>
  %t = trn.alloc : !trn.sbuf<128x512xf32>
  %u = trn.alloc : !trn.sbuf<128x512xf32>
  %i = trn.alloc : !trn.sbuf<128x512xi32>
  %m = trn.alloc : !trn.sbuf<128x512xui32>
  %c = trn.alloc : !trn.sbuf<128x1xf32>
  %d = trn.alloc : !trn.sbuf<128x1xf32>
  %one = trn.alloc : !trn.sbuf<1x512xf32>
  %sums = trn.alloc : !trn.psum<128x512xf32>
  %turned = trn.alloc : !trn.psum<128x128xbf16>
  %eight = trn.alloc : !trn.sbuf<128x8xf32>
  %places = trn.alloc : !trn.sbuf<128x8xui32>
  %stats = trn.alloc : !trn.sbuf<128x6xf32>
  %mean = trn.alloc : !trn.sbuf<128x2xf32>
  %p = trn.alloc : !trn.sbuf<32x32xf32>
  %q = trn.alloc : !trn.sbuf<32x32xf32>

  // CHECK: trn.dma_copy %t, %x : !trn.sbuf<128x512xf32>, !trn.hbm<128x512xf32>
  trn.dma_copy %t, %x : !trn.sbuf<128x512xf32>, !trn.hbm<128x512xf32>
  // CHECK: trn.nc_matmul %sums, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
  trn.nc_matmul %sums, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
  // CHECK: trn.nc_matmul %sums, %a, %w accumulate(always) :
  trn.nc_matmul %sums, %a, %w accumulate(always) : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
  // CHECK: trn.nc_transpose %turned, %a : !trn.psum<128x128xbf16>, !trn.sbuf<128x128xbf16>
  trn.nc_transpose %turned, %a : !trn.psum<128x128xbf16>, !trn.sbuf<128x128xbf16>
  // CHECK: trn.nc_transpose %p, %q on vector : !trn.sbuf<32x32xf32>, !trn.sbuf<32x32xf32>
  trn.nc_transpose %p, %q on vector : !trn.sbuf<32x32xf32>, !trn.sbuf<32x32xf32>
  // CHECK: trn.dma_transpose %p, %q : !trn.sbuf<32x32xf32>, !trn.sbuf<32x32xf32>
  trn.dma_transpose %p, %q : !trn.sbuf<32x32xf32>, !trn.sbuf<32x32xf32>
  // CHECK: trn.tensor_copy %w, %sums on scalar : !trn.sbuf<128x512xbf16>, !trn.psum<128x512xf32>
  trn.tensor_copy %w, %sums on scalar : !trn.sbuf<128x512xbf16>, !trn.psum<128x512xf32>
  // CHECK: trn.memset %t, 1.000000e+00 on gpsimd : !trn.sbuf<128x512xf32>
  trn.memset %t, 1.0 on gpsimd : !trn.sbuf<128x512xf32>
  // CHECK: trn.tensor_copy_predicated %t, %u where %m reversed :
  trn.tensor_copy_predicated %t, %u where %m reversed : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xui32>
  // CHECK: trn.nc_stream_shuffle %t, %u mask [1, 0, 255,
  trn.nc_stream_shuffle %t, %u mask [1, 0, 255, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
      : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.activation %t, exp(%sums) : !trn.sbuf<128x512xf32>, !trn.psum<128x512xf32>
  trn.activation %t, exp(%sums) : !trn.sbuf<128x512xf32>, !trn.psum<128x512xf32>
  // CHECK: trn.activation %t, exp(%sums) scale(1.250000e-01) bias(%c : !trn.sbuf<128x1xf32>) registers(reset_reduce) into(%d : !trn.sbuf<128x1xf32>) :
  trn.activation %t, exp(%sums) scale(0.125) bias(%c : !trn.sbuf<128x1xf32>) registers(reset_reduce)
      into(%d : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x512xf32>, !trn.psum<128x512xf32>
  // CHECK: trn.activation %t, gelu_apprx_tanh(%u) scale(%c : !trn.sbuf<128x1xf32>) registers(reduce) :
  trn.activation %t, gelu_apprx_tanh(%u) scale(%c : !trn.sbuf<128x1xf32>) registers(reduce) : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.tensor_tensor %t, maximum(%u, %sums) :
  trn.tensor_tensor %t, maximum(%u, %sums) : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.psum<128x512xf32>
  // CHECK: trn.tensor_tensor %i, add(%i, %i) on gpsimd :
  trn.tensor_tensor %i, add(%i, %i) on gpsimd : !trn.sbuf<128x512xi32>, !trn.sbuf<128x512xi32>, !trn.sbuf<128x512xi32>
  // CHECK: trn.tensor_scalar %t, %u subtract(%c : !trn.sbuf<128x1xf32>) reversed then multiply(2.000000e+00) :
  trn.tensor_scalar %t, %u subtract(%c : !trn.sbuf<128x1xf32>) reversed then multiply(2.0) : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.scalar_tensor_tensor %t, %u multiply(%c : !trn.sbuf<128x1xf32>) then subtract(%sums) reversed :
  trn.scalar_tensor_tensor %t, %u multiply(%c : !trn.sbuf<128x1xf32>) then subtract(%sums) reversed
      : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.psum<128x512xf32>
  // CHECK: trn.reciprocal %d, %c : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>
  trn.reciprocal %d, %c : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>
  // CHECK: trn.tensor_tensor_scan %t, multiply(%u) then add(%u) from(0.000000e+00) :
  trn.tensor_tensor_scan %t, multiply(%u) then add(%u) from (0.0) : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.tensor_reduce %d, maximum(%sums) axes 1 negated : !trn.sbuf<128x1xf32>, !trn.psum<128x512xf32>
  trn.tensor_reduce %d, maximum(%sums) axes 1 negated : !trn.sbuf<128x1xf32>, !trn.psum<128x512xf32>
  // CHECK: trn.tensor_scalar_reduce %t, %u multiply(1.000000e+00) reduce maximum into %d :
  trn.tensor_scalar_reduce %t, %u multiply(1.0) reduce maximum into %d : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x1xf32>
  // CHECK: trn.tensor_partition_reduce %one, add(%t) : !trn.sbuf<1x512xf32>, !trn.sbuf<128x512xf32>
  trn.tensor_partition_reduce %one, add(%t) : !trn.sbuf<1x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.affine_select %t, %u else -1.000000e+30 pattern [-1] offset 0 channel 1 greater_equal :
  trn.affine_select %t, %u else -1.0e+30 pattern [-1] offset 0 channel 1 greater_equal : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.range_select %t, %u else 0.000000e+00 greater_equal(%c) and less(%d) start 4 into(%c : !trn.sbuf<128x1xf32>) :
  trn.range_select %t, %u else 0.0 greater_equal(%c) and less(%d) start 4 into(%c : !trn.sbuf<128x1xf32>)
      : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>
  // CHECK: trn.iota %i pattern [1] offset 0 channel 512 : !trn.sbuf<128x512xi32>
  trn.iota %i pattern [1] offset 0 channel 512 : !trn.sbuf<128x512xi32>
  // CHECK: trn.bn_stats %stats, %t : !trn.sbuf<128x6xf32>, !trn.sbuf<128x512xf32>
  trn.bn_stats %stats, %t : !trn.sbuf<128x6xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.bn_aggr %mean, %stats : !trn.sbuf<128x2xf32>, !trn.sbuf<128x6xf32>
  trn.bn_aggr %mean, %stats : !trn.sbuf<128x2xf32>, !trn.sbuf<128x6xf32>
  // CHECK: trn.max8 %eight, %t : !trn.sbuf<128x8xf32>, !trn.sbuf<128x512xf32>
  trn.max8 %eight, %t : !trn.sbuf<128x8xf32>, !trn.sbuf<128x512xf32>
  // CHECK: trn.nc_find_index8 %places, %t, %eight :
  trn.nc_find_index8 %places, %t, %eight : !trn.sbuf<128x8xui32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x8xf32>
  // CHECK: trn.nc_match_replace8 %u, %t, %eight by -9.000000e+00 :
  trn.nc_match_replace8 %u, %t, %eight by -9.0 : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>, !trn.sbuf<128x8xf32>
}
