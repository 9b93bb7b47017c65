// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#acc = #axe.layout<S[(2, 4, 2, 8, 1, 4, 2) : (4@warp, 1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<?x64xf16>, %w: tensor<32x64xf16>) -> tensor<?x32xf32> {
  // CHECK: axe.gemm %{{.*}}, %{{.*}} {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  %0 = axe.gemm %a, %w {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  // CHECK: axe.gemm %{{.*}}, %{{.*}} acc %{{.*}} : tensor<?x32xf32> {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  %1 = axe.gemm %a, %w acc %0 : tensor<?x32xf32> {trans_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// CHECK-LABEL: axe.kernel @asynchronous
axe.kernel @asynchronous() threads(256) {
  %s = axe.alloc : memref<128x64xf16, #axe.space<shared>>
  %w = axe.alloc : memref<8x64xf16, #axe.space<shared>>
  // CHECK: axe.gemm async %{{.*}}, %{{.*}} {trans_b} : memref<128x64xf16, #axe.space<shared>>, memref<8x64xf16, #axe.space<shared>> -> tensor<128x8xf32, #{{.*}}>
  %0 = axe.gemm async %s, %w {trans_b} : memref<128x64xf16, #axe.space<shared>>, memref<8x64xf16, #axe.space<shared>> -> tensor<128x8xf32, #acc>
  axe.return
}
