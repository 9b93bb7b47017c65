// Rows of more tiles than a grid has blocks along y: the tiles are numbered along x.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s

// CHECK-LABEL: func.func @transposed
// CHECK: %[[TILES:.*]] = arith.constant 78125 : index
// CHECK: %[[BLOCKS:.*]] = arith.muli %{{.*}}, %[[TILES]] : index
// CHECK: axe.launch @transposed_0_transpose grid(%[[BLOCKS]], %{{.*}}, %{{.*}})
func.func @transposed(%x: tensor<5000000x16xf32>) -> tensor<16x5000000xf32> {
  %e = tensor.empty() : tensor<16x5000000xf32>
  %t = linalg.transpose ins(%x : tensor<5000000x16xf32>) outs(%e : tensor<16x5000000xf32>) permutation = [1, 0]
  return %t : tensor<16x5000000xf32>
}

// CHECK-LABEL: axe.kernel @transposed_0_transpose
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[TILES:.*]] = arith.constant 78125 : index
// CHECK: arith.remui %[[BLOCK]], %[[TILES]] : index
// CHECK: arith.divui %[[BLOCK]], %[[TILES]] : index
