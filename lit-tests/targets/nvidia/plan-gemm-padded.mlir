// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=none' | FileCheck %s

// An operand whose rows no descriptor takes is multiplied as a copy whose rows begin with a line; the other stays.
// CHECK-LABEL: func.func @padded
// CHECK: %[[X:.*]] = arith.constant 999 : index
// CHECK: %[[COPY:.*]] = axe.launch @padded_0_pad grid(%[[X]], %{{.*}}, %{{.*}}) ins(%{{.*}} : tensor<999x1001xf16>) outs(%{{.*}} : tensor<999x1024xf16>)
// CHECK: axe.launch @padded_1_gemm {{.*}} ins(%[[COPY]], %{{.*}} : tensor<999x1024xf16>, tensor<1001x1008xf16>)
// CHECK-LABEL: axe.kernel @padded_0_pad
// CHECK-SAME: (%[[FROM:.*]]: memref<999x1001xf16>, %[[TO:.*]]: memref<999x1024xf16>)
// CHECK-DAG: %[[BOX:.*]] = axe.slice %[[FROM]]
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK: axe.copy %[[BOX]] pad %[[ZERO]]
// CHECK-LABEL: axe.kernel @padded_1_gemm
// CHECK-SAME: memref<999x1024xf16>
// CHECK: axe.pipeline.create
func.func @padded(%a: tensor<999x1001xf16>, %w: tensor<1001x1008xf16>) -> tensor<999x1008xf32> {
  %p = axe.gemm %a, %w : tensor<999x1001xf16>, tensor<1001x1008xf16> -> tensor<999x1008xf32>
  return %p : tensor<999x1008xf32>
}
