// What has no kernel on the chip stays in the function, for the host, at every level; what has one is launched.
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a allow-unsupported" | FileCheck %s --check-prefix=PLAN
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a allow-unsupported" --remarks-filter=axe-plan 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: axe-opt %s --axe-nvidia="target=sm_90a allow-unsupported=true" | FileCheck %s --check-prefix=PTX
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a allow-unsupported" --axe-lower-to-host | FileCheck %s --check-prefix=HOST
// RUN: not axe-opt %s --axe-nvidia="target=sm_90a allow-unsupported=perhaps" 2>&1 | FileCheck %s --check-prefix=OPTION

// PLAN-LABEL: func.func @between
// PLAN: %[[FIRST:.*]] = axe.launch @between_0{{.*}}
// PLAN: %[[LEFT:.*]] = axe.map ins({{.*}} : tensor<4x?xf32>)
// PLAN: axe.launch @between_1

// REMARK: left for the host: expected every extent but the leading one to be static, got tensor<4x?xf32>

// PTX: func.func @between
// PTX: axe.map ins({{.*}} : tensor<4x?xf32>)
// PTX: gpu.binary

// HOST-NOT: axe.

// OPTION: expected true or false, got allow-unsupported=perhaps
func.func @between(%x: tensor<8x8xf32>, %d: tensor<4x?xf32>) -> (tensor<8x8xf32>, tensor<4x?xf32>, tensor<8x8xf32>) {
  %a = axe.map ins(%x : tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    axe.yield %q : f32
  }
  %b = axe.map ins(%d : tensor<4x?xf32>) -> tensor<4x?xf32> {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    axe.yield %q : f32
  }
  %t = axe.transpose %a [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  return %a, %b, %t : tensor<8x8xf32>, tensor<4x?xf32>, tensor<8x8xf32>
}
