// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(4, 8, 2) : (1@warp, 4@lane, 1@reg)]>

// CHECK-LABEL: func.func @rows
func.func @rows(%t: memref<?x2xf16>, %r: memref<32xi32>, %z: f16) -> tensor<32x2xf16, #frag> {
  // CHECK: axe.gather %{{.*}} at %{{.*}} : memref<?x2xf16>, memref<32xi32> -> tensor<32x2xf16
  %0 = axe.gather %t at %r : memref<?x2xf16>, memref<32xi32> -> tensor<32x2xf16, #frag>
  // CHECK: axe.gather %{{.*}} at %{{.*}} pad %{{.*}} : f16 schedule = "ld.gather" : memref
  %1 = axe.gather %t at %r pad %z : f16 schedule = "ld.gather" : memref<?x2xf16>, memref<32xi32> -> tensor<32x2xf16, #frag>
  return %1 : tensor<32x2xf16, #frag>
}

// CHECK-LABEL: func.func @nearest
func.func @nearest(%t: memref<9x2xf16>, %r: memref<32xi32>, %z: f16) -> tensor<32x2xf16, #frag> {
  // CHECK: axe.gather %{{.*}} at %{{.*}} clamp : memref<9x2xf16>, memref<32xi32> -> tensor<32x2xf16
  %0 = axe.gather %t at %r clamp : memref<9x2xf16>, memref<32xi32> -> tensor<32x2xf16, #frag>
  // CHECK: axe.gather %{{.*}} at %{{.*}} wrap clamp : memref
  %1 = axe.gather %t at %r wrap clamp : memref<9x2xf16>, memref<32xi32> -> tensor<32x2xf16, #frag>
  // CHECK: axe.gather %{{.*}} at %{{.*}} pad %{{.*}} : f16 wrap : memref
  %2 = axe.gather %t at %r pad %z : f16 wrap : memref<9x2xf16>, memref<32xi32> -> tensor<32x2xf16, #frag>
  return %0 : tensor<32x2xf16, #frag>
}

// Numbers may be in registers.
// CHECK-LABEL: func.func @held
func.func @held(%t: memref<9x2xf16>, %r: tensor<32xi32>) -> tensor<32x2xf16, #frag> {
  // CHECK: axe.gather %{{.*}} at %{{.*}} clamp : memref<9x2xf16>, tensor<32xi32> -> tensor<32x2xf16
  %0 = axe.gather %t at %r clamp : memref<9x2xf16>, tensor<32xi32> -> tensor<32x2xf16, #frag>
  return %0 : tensor<32x2xf16, #frag>
}

// Rows may be of any rank; numbers of 64 bits.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%t: memref<9x4x8xf32>, %n: memref<9xf32>, %r: memref<?xi64>) -> (tensor<?x4x8xf32>, tensor<?xf32>) {
  // CHECK: axe.gather
  %0 = axe.gather %t at %r : memref<9x4x8xf32>, memref<?xi64> -> tensor<?x4x8xf32>
  // CHECK: axe.gather
  %1 = axe.gather %n at %r : memref<9xf32>, memref<?xi64> -> tensor<?xf32>
  return %0, %1 : tensor<?x4x8xf32>, tensor<?xf32>
}
