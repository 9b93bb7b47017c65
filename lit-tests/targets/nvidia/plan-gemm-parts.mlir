// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=none' | FileCheck %s

// Three CTAs share each tile's 20 steps along k; a second kernel adds their sums up, and has the epilogue.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUMS:.*]] = axe.launch @main_0_gemm {{.*}} outs(%{{.*}} : tensor<3x200x320xf32>)
// CHECK: axe.launch @main_1_sum {{.*}} ins(%[[SUMS]], %{{.*}} : tensor<3x200x320xf32>, tensor<300xf32>) outs(%{{.*}} : tensor<200x300xf16>)
// CHECK-LABEL: axe.kernel @main_0_gemm
// CHECK-SAME: (%{{.*}}, %{{.*}}, %[[OUT:.*]]: memref<3x200x320xf32>)
// CHECK: axe.for_tiles (%[[PART:.*]], %{{.*}}, %{{.*}}) in
// CHECK: arith.muli %[[PART]]
// CHECK: axe.copy async
// CHECK: axe.for_tiles (%[[PART:.*]], %[[I:.*]], %[[J:.*]]) in
// CHECK: axe.gemm async
// CHECK: %[[BOX:.*]] = axe.slice %[[OUT]][%[[PART]],
// CHECK-NOT: axe.map
// CHECK: axe.copy %{{.*}} to %[[BOX]]
// CHECK-LABEL: axe.kernel @main_1_sum
// CHECK-COUNT-3: axe.slice %{{.*}} : memref<3x200x320xf32>
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: arith.truncf
func.func @main(%a: tensor<200x1280xf16>, %w: tensor<300x1280xf16>, %b: tensor<300xf32>) -> tensor<200x300xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "split_k", splits = 3 : i64}} : tensor<200x1280xf16>, tensor<300x1280xf16> -> tensor<200x300xf32>
  %c = axe.broadcast %b dims [0] : tensor<300xf32> -> tensor<200x300xf32>
  %r = axe.map ins(%p, %c : tensor<200x300xf32>, tensor<200x300xf32>) -> tensor<200x300xf16> {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    %t = arith.truncf %s : f32 to f16
    axe.yield %t : f16
  }
  return %r : tensor<200x300xf16>
}
