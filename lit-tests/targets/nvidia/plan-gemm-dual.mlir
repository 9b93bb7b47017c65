// Two products of the same rows that an operator reads of are one kernel, where nothing else stands between them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// A stage of B is made of a box of each matrix.
// CHECK-LABEL: func.func @gated
// CHECK: axe.launch @gated_0_gemm {{.*}} outs(%{{.*}} : tensor<512x2048xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @gated_0_gemm(%{{.*}}: memref<512x1024xf16>, %[[G:.*]]: memref<2048x1024xf16>, %[[U:.*]]: memref<2048x1024xf16>, %{{.*}}: memref<512x2048xf16>)
// CHECK: axe.slice %[[G]][%{{.*}}, %{{.*}}] : memref<2048x1024xf16> to memref<[[STAGE:[0-9]+x64xf16]],
// CHECK: axe.slice %[[U]][%{{.*}}, %{{.*}}] : memref<2048x1024xf16> to memref<[[STAGE]],
func.func @gated(%x: tensor<512x1024xf16>, %g: tensor<2048x1024xf16>, %u: tensor<2048x1024xf16>) -> tensor<512x2048xf16> {
  %p = axe.gemm %x, %g {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %q = axe.gemm %x, %u {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %o = axe.map ins(%p, %q : tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<512x2048xf16> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    %t = arith.truncf %m : f32 to f16
    axe.yield %t : f16
  }
  return %o : tensor<512x2048xf16>
}

// -----

// Rows of another tensor.
// CHECK-LABEL: func.func @others
// CHECK: axe.launch @others_0_gemm
// CHECK: axe.launch @others_1_gemm
func.func @others(%x: tensor<512x1024xf16>, %y: tensor<512x1024xf16>, %g: tensor<2048x1024xf16>, %u: tensor<2048x1024xf16>) -> tensor<512x2048xf16> {
  %p = axe.gemm %x, %g {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %q = axe.gemm %y, %u {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %o = axe.map ins(%p, %q : tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<512x2048xf16> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    %t = arith.truncf %m : f32 to f16
    axe.yield %t : f16
  }
  return %o : tensor<512x2048xf16>
}

// -----

// Matrices that are stored in other orders.
// CHECK-LABEL: func.func @orders
// CHECK: axe.launch @orders_0_gemm
// CHECK: axe.launch @orders_1_gemm
func.func @orders(%x: tensor<512x2048xf16>, %g: tensor<2048x2048xf16>, %u: tensor<2048x2048xf16>) -> tensor<512x2048xf16> {
  %p = axe.gemm %x, %g {trans_b} : tensor<512x2048xf16>, tensor<2048x2048xf16> -> tensor<512x2048xf32>
  %q = axe.gemm %x, %u : tensor<512x2048xf16>, tensor<2048x2048xf16> -> tensor<512x2048xf32>
  %o = axe.map ins(%p, %q : tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<512x2048xf16> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    %t = arith.truncf %m : f32 to f16
    axe.yield %t : f16
  }
  return %o : tensor<512x2048xf16>
}

// -----

// The second product is of what the first one gives.
// CHECK-LABEL: func.func @after
// CHECK: axe.launch @after_0_gemm
// CHECK: axe.launch @after_1_gemm
func.func @after(%x: tensor<512x512xf16>, %g: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %p = axe.gemm %x, %g {trans_b} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  %h = axe.cast %p : tensor<512x512xf32> -> tensor<512x512xf16>
  %q = axe.gemm %x, %h {trans_b} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  %o = axe.map ins(%p, %q : tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf16> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    %t = arith.truncf %m : f32 to f16
    axe.yield %t : f16
  }
  return %o : tensor<512x512xf16>
}

// -----

// Three products are two kernels.
// CHECK-LABEL: func.func @three
// CHECK-COUNT-2: axe.launch
// CHECK-NOT: axe.launch
func.func @three(%x: tensor<512x1024xf16>, %g: tensor<2048x1024xf16>, %u: tensor<2048x1024xf16>, %t: tensor<2048x1024xf16>) -> tensor<512x2048xf16> {
  %p = axe.gemm %x, %g {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %q = axe.gemm %x, %u {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %s = axe.gemm %x, %t {trans_b} : tensor<512x1024xf16>, tensor<2048x1024xf16> -> tensor<512x2048xf32>
  %o = axe.map ins(%p, %q : tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<512x2048xf32> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    axe.yield %m : f32
  }
  %r = axe.map ins(%o, %s : tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<512x2048xf16> {
  ^bb0(%v: f32, %w: f32):
    %m = arith.mulf %v, %w : f32
    %h = arith.truncf %m : f32 to f16
    axe.yield %h : f16
  }
  return %r : tensor<512x2048xf16>
}
