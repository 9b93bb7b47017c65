// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: @scaled
func.func @scaled(%a: tensor<?x520xf8E4M3FN>, %w: tensor<300x520xf8E5M2>, %sa: tensor<?x5xf32>, %sw: tensor<3x5xf32>, %ta: tensor<9x?xf32>, %tw: tensor<19x9xf32>) -> (tensor<?x300xf32>, tensor<?x300xf32>) {
  // CHECK: axe.scaled_gemm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x520xf8E4M3FN>, tensor<300x520xf8E5M2>, tensor<?x5xf32>, tensor<3x5xf32> -> tensor<?x300xf32>
  %0 = axe.scaled_gemm %a, %w, %sa, %sw : tensor<?x520xf8E4M3FN>, tensor<300x520xf8E5M2>, tensor<?x5xf32>, tensor<3x5xf32> -> tensor<?x300xf32>
  // CHECK: axe.scaled_gemm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {block_k = 64 : i64, block_n = 16 : i64, trans_scale_a} : tensor<?x520xf8E4M3FN>, tensor<300x520xf8E5M2>, tensor<9x?xf32>, tensor<19x9xf32> -> tensor<?x300xf32>
  %1 = axe.scaled_gemm %a, %w, %ta, %tw {trans_scale_a, block_n = 16 : i64, block_k = 64 : i64} : tensor<?x520xf8E4M3FN>, tensor<300x520xf8E5M2>, tensor<9x?xf32>, tensor<19x9xf32> -> tensor<?x300xf32>
  return %0, %1 : tensor<?x300xf32>, tensor<?x300xf32>
}

// CHECK-LABEL: axe.kernel @scaled_in_memory
axe.kernel @scaled_in_memory(%a: memref<64x128xf8E4M3FN>, %w: memref<16x128xf8E4M3FN>, %sa: memref<64x1xf32>, %sw: memref<1x1xf32>) threads(32) {
  // CHECK: axe.scaled_gemm {{.*}} : memref<64x128xf8E4M3FN>, memref<16x128xf8E4M3FN>, memref<64x1xf32>, memref<1x1xf32> -> tensor<64x16xf32>
  %0 = axe.scaled_gemm %a, %w, %sa, %sw : memref<64x128xf8E4M3FN>, memref<16x128xf8E4M3FN>, memref<64x1xf32>, memref<1x1xf32> -> tensor<64x16xf32>
  axe.return
}
