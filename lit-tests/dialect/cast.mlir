// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]>

// CHECK-LABEL: func.func @casts
func.func @casts(%x: tensor<8x8xf16, #frag>) -> tensor<8x8xf32, #frag> {
  // CHECK: axe.cast %{{.*}} : tensor<8x8xf16, #{{.*}}> -> tensor<8x8xf32, #{{.*}}>
  %0 = axe.cast %x : tensor<8x8xf16, #frag> -> tensor<8x8xf32, #frag>
  return %0 : tensor<8x8xf32, #frag>
}

// Layouts that are written differently and induce the same map are equal.
// CHECK-LABEL: func.func @equal
func.func @equal(%x: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) {
  // CHECK: axe.cast
  %0 = axe.cast %x : tensor<8xf32, #axe.layout<S[8 : 1@lane]>> -> tensor<8xf16, #axe.layout<S[(2, 4) : (4@lane, 1@lane)]>>
  return
}
