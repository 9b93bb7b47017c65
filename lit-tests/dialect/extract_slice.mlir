// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]>
#half = #axe.layout<S[(8, 2, 2) : (4@lane, 1@lane, 1@reg)]>

// CHECK-LABEL: func.func @boxes
func.func @boxes(%x: tensor<8x8xf16, #frag>) {
  // CHECK: axe.extract_slice %{{.*}} [0, 4] schedule = "registers" : tensor<8x8xf16, #{{.*}}> -> tensor<8x4xf16, #{{.*}}>
  %0 = axe.extract_slice %x [0, 4] schedule = "registers" : tensor<8x8xf16, #frag> -> tensor<8x4xf16, #half>
  return
}
