// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]>
#half = #axe.layout<S[(8, 2, 2) : (4@lane, 1@lane, 1@reg)]>

// CHECK-LABEL: @operators
func.func @operators(%a: tensor<?x64xf16>, %w: tensor<32x64xf16>, %b: tensor<32xf32>, %n: index) -> tensor<?xf32> {
  // CHECK: axe.gemm %{{.*}}, %{{.*}} {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  %0 = axe.gemm %a, %w {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  // CHECK: axe.gemm %{{.*}}, %{{.*}} acc %{{.*}} : tensor<?x32xf32> {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  %1 = axe.gemm %a, %w acc %0 : tensor<?x32xf32> {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  // CHECK: axe.broadcast %{{.*}} dims [0] sizes(%{{.*}}) : tensor<32xf32> -> tensor<?x32xf32>
  %2 = axe.broadcast %b dims [0] sizes(%n) : tensor<32xf32> -> tensor<?x32xf32>
  // CHECK: axe.map ins(%{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  %3 = axe.map ins(%1, %2 : tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %s = arith.addf %u, %v : f32
    // CHECK: axe.yield %{{.*}} : f32
    axe.yield %s : f32
  }
  // CHECK: axe.transpose %{{.*}} [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  %4 = axe.transpose %3 [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  // CHECK: axe.reduce <add> %{{.*}} dims [0] : tensor<32x?xf32> -> tensor<?xf32>
  %5 = axe.reduce <add> %4 dims [0] : tensor<32x?xf32> -> tensor<?xf32>
  return %5 : tensor<?xf32>
}

// CHECK-LABEL: @fragments
func.func @fragments(%x: memref<8x8xf16, #axe.space<shared>>, %i: index, %z: f16) {
  // CHECK: axe.copy %{{.*}} pad %{{.*}} : f16 : memref<8x8xf16, #axe.space<shared>> -> tensor<8x8xf16, #{{.*}}>
  %0 = axe.copy %x pad %z : f16 : memref<8x8xf16, #axe.space<shared>> -> tensor<8x8xf16, #frag>
  // CHECK: axe.cast
  %1 = axe.cast %0 : tensor<8x8xf16, #frag> -> tensor<8x8xf32, #frag>
  // CHECK: axe.fill %{{.*}} : f16 -> tensor<8x8xf16
  %2 = axe.fill %z : f16 -> tensor<8x8xf16, #frag>
  // CHECK: axe.fill %{{.*}} to %{{.*}} : f16 to memref<8x8xf16, #axe.space<shared>>
  axe.fill %z to %x : f16 to memref<8x8xf16, #axe.space<shared>>
  // CHECK: axe.mask %{{.*}} at(%{{.*}}, %{{.*}}) in(%{{.*}}, %{{.*}}) else %{{.*}} : f16, tensor<8x8xf16
  %3 = axe.mask %2 at(%i, %i) in(%i, %i) else %z : f16, tensor<8x8xf16, #frag> -> tensor<8x8xf16, #frag>
  // CHECK: axe.extract_slice %{{.*}} [0, 4] schedule = "registers" : tensor<8x8xf16, #{{.*}}> -> tensor<8x4xf16, #{{.*}}>
  %4 = axe.extract_slice %3 [0, 4] schedule = "registers" : tensor<8x8xf16, #frag> -> tensor<8x4xf16, #half>
  // CHECK: axe.copy %{{.*}} to %{{.*}} schedule = "ldst" options = {width = 4 : i64} : tensor<8x8xf16
  axe.copy %3 to %x schedule = "ldst" options = {width = 4 : i64} : tensor<8x8xf16, #frag> to memref<8x8xf16, #axe.space<shared>>
  return
}

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
