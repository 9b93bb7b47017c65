// RUN: axe-opt %s --axe-lower-to-host | FileCheck %s

// Halves are extended before they saturate; an integer is rounded once.
// CHECK-LABEL: @cast
func.func @cast(%x: tensor<4x?xf16>, %i: tensor<8xi32>) -> (tensor<4x?xi8>, tensor<8xf16>) {
  // CHECK: %[[DIM:.*]] = tensor.dim %{{.*}}, %{{.*}} : tensor<4x?xf16>
  // CHECK: tensor.generate %[[DIM]]
  // CHECK: %[[X:.*]] = tensor.extract %{{.*}} : tensor<4x?xf16>
  // CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]] : f16 to f32
  // CHECK: %[[HIGH:.*]] = arith.cmpf oge, %[[W]], %{{.*}} : f32
  // CHECK: %[[LOW:.*]] = arith.cmpf olt, %[[W]], %{{.*}} : f32
  // CHECK: arith.cmpf uno, %[[W]], %[[W]] : f32
  // CHECK: %[[I:.*]] = arith.fptosi %{{.*}} : f32 to i8
  // CHECK: %[[I1:.*]] = arith.select %[[HIGH]], %c127_i8, %[[I]]
  // CHECK: arith.select %[[LOW]], %c-128_i8, %[[I1]]
  %a = axe.cast %x : tensor<4x?xf16> -> tensor<4x?xi8>
  // CHECK: arith.sitofp %{{.*}} : i32 to f64
  // CHECK-NEXT: arith.truncf %{{.*}} : f64 to f16
  %b = axe.cast %i : tensor<8xi32> -> tensor<8xf16>
  return %a, %b : tensor<4x?xi8>, tensor<8xf16>
}

// bf16 and f16 meet in f32.
// CHECK-LABEL: @halves
func.func @halves(%x: tensor<4xbf16>) -> tensor<4xf16> {
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
  %a = axe.cast %x : tensor<4xbf16> -> tensor<4xf16>
  return %a : tensor<4xf16>
}

// CHECK-LABEL: @fill
// CHECK-SAME: (%[[V:.*]]: f32, %[[N:.*]]: index)
func.func @fill(%v: f32, %n: index) -> tensor<4x?xf32> {
  // CHECK: tensor.generate %[[N]]
  // CHECK: tensor.yield %[[V]] : f32
  %a = axe.fill %v sizes(%n) : f32 -> tensor<4x?xf32>
  return %a : tensor<4x?xf32>
}

// A body moves as it is, its regions and what it uses from above included.
// CHECK-LABEL: @map
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>, %[[C:.*]]: i1)
func.func @map(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  // CHECK: %[[U:.*]] = tensor.extract %[[X]][%[[I:.*]]]
  // CHECK: %[[W:.*]] = tensor.extract %[[Y]][%[[I]]]
  // CHECK: %[[B:.*]] = llvm.freeze %[[C]] : i1
  // CHECK: %[[R:.*]] = scf.if %[[B]] -> (f32)
  // CHECK: scf.yield %[[U]]
  // CHECK: arith.addf %[[U]], %[[W]]
  // CHECK: tensor.yield %[[R]]
  %a = axe.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = scf.if %c -> f32 {
      scf.yield %u : f32
    } else {
      %s = arith.addf %u, %v : f32
      scf.yield %s : f32
    }
    axe.yield %w : f32
  }
  return %a : tensor<4xf32>
}

// Sums of floats are taken in f64 and rounded once; integers stay what they are, and rank 0 is one element.
// CHECK-LABEL: @reduce
func.func @reduce(%x: tensor<4x8xf32>, %i: tensor<8xi8>) -> (tensor<4xf32>, tensor<i8>) {
  // CHECK: tensor.generate
  // CHECK: %[[Z:.*]] = arith.constant 0.000000e+00 : f64
  // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %[[Z]]) -> (f64)
  // CHECK: arith.extf %{{.*}} : f32 to f64
  // CHECK: arith.addf %[[S]]
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  %a = axe.reduce <add> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  // CHECK: %[[L:.*]] = arith.constant -128 : i8
  // CHECK: iter_args(%{{.*}} = %[[L]]) -> (i8)
  // CHECK: arith.maxsi
  // CHECK: tensor.from_elements %{{.*}} : tensor<i8>
  %b = axe.reduce <max> %i dims [0] : tensor<8xi8> -> tensor<i8>
  return %a, %b : tensor<4xf32>, tensor<i8>
}

// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<?x8xf32>, %n: index) -> (tensor<?x?x8xf32>, tensor<8x?xf32>) {
  // CHECK: ^bb0(%{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK-NEXT: tensor.extract %{{.*}}[%[[I]], %[[J]]]
  %a = axe.broadcast %x dims [0] sizes(%n) : tensor<?x8xf32> -> tensor<?x?x8xf32>
  // CHECK: ^bb0(%[[K:.*]]: index, %[[L:.*]]: index):
  // CHECK-NEXT: tensor.extract %{{.*}}[%[[L]], %[[K]]]
  %b = axe.transpose %x [1, 0] : tensor<?x8xf32> -> tensor<8x?xf32>
  return %a, %b : tensor<?x?x8xf32>, tensor<8x?xf32>
}

// CHECK-LABEL: @extract_slice
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @extract_slice(%x: tensor<4x8xf32>) -> tensor<4x3xf32> {
  // CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK: %[[C:.*]] = arith.addi %{{.*}}, %[[J]]
  // CHECK: tensor.extract %[[X]][%[[I]], %[[C]]]
  %a = axe.extract_slice %x [0, 5] : tensor<4x8xf32> -> tensor<4x3xf32>
  return %a : tensor<4x3xf32>
}

// CHECK-LABEL: @mask
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[M:.*]]: index, %[[N:.*]]: index, %[[V:.*]]: f32)
func.func @mask(%x: tensor<4x8xf32>, %m: index, %n: index, %v: f32) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: %[[E:.*]] = tensor.extract %[[X]][%[[I:.*]], %[[J:.*]]]
  // CHECK: %[[A:.*]] = arith.cmpi slt, %[[I]], %[[N]]
  // CHECK: %[[P:.*]] = arith.addi %[[M]], %[[J]]
  // CHECK: %[[B:.*]] = arith.cmpi slt, %[[P]], %[[N]]
  // CHECK: %[[IN:.*]] = arith.andi %[[A]], %[[B]]
  // CHECK: arith.select %[[IN]], %[[E]], %[[V]]
  %a = axe.mask %x at (%c0, %m) in (%n, %n) else %v : f32, tensor<4x8xf32> -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// CHECK-LABEL: @gemm
func.func @gemm(%a: tensor<2x16x?xf16>, %b: tensor<2x16x8xf16>, %c: tensor<2x?x8xf32>) -> tensor<2x?x8xf32> {
  // CHECK: ^bb0(%[[N:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args(%{{.*}}) -> (f64)
  // CHECK: tensor.extract %{{.*}}[%[[N]], %[[K]], %[[I]]]
  // CHECK: tensor.extract %{{.*}}[%[[N]], %[[K]], %[[J]]]
  // CHECK: arith.mulf %{{.*}} : f64
  // CHECK: arith.addf %{{.*}} : f64
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  %d = axe.gemm %a, %b acc %c : tensor<2x?x8xf32> {trans_a} : tensor<2x16x?xf16>, tensor<2x16x8xf16> -> tensor<2x?x8xf32>
  return %d : tensor<2x?x8xf32>
}

// What a mesh shares out is one tensor on one host.
// CHECK-NOT: axe.mesh
axe.mesh @pod(tp = 8)
// CHECK-LABEL: @shared
// CHECK-SAME: (%{{.*}}: tensor<64x32xf32>) -> tensor<64x32xf32>
func.func @shared(%x: tensor<64x32xf32, #axe.layout<S[(8, 8, 32) : (1@pod.tp, 32, 1)]>>) -> tensor<64x32xf32, #axe.layout<S[(8, 8, 32) : (1@pod.tp, 32, 1)]>> {
  return %x : tensor<64x32xf32, #axe.layout<S[(8, 8, 32) : (1@pod.tp, 32, 1)]>>
}

// A division that a host would stop at divides by 1.
// CHECK-LABEL: func.func @divided
// CHECK: %[[DIVISOR:.*]] = llvm.freeze %{{.*}} : i8
// CHECK: %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %[[DIVISOR]] : i8
// CHECK: arith.remsi %{{.*}}, %[[BY]] : i8
// CHECK: llvm.freeze
// CHECK: %[[ZERO:.*]] = arith.cmpi eq
// CHECK: %[[EXPONENT:.*]] = arith.select %[[ZERO]]
// CHECK: math.ipowi %{{.*}}, %[[EXPONENT]] : i8
// CHECK-NOT: llvm.freeze
// CHECK: arith.divui
func.func @divided(%x: tensor<5xi8>, %y: tensor<5xi8>) -> tensor<5xi8> {
  %z = axe.map ins(%x, %y : tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8> {
  ^bb0(%i: i8, %j: i8):
    %c3 = arith.constant 3 : i8
    %0 = arith.remsi %i, %j : i8
    %1 = math.ipowi %0, %j : i8
    %2 = arith.divui %1, %c3 : i8
    axe.yield %2 : i8
  }
  return %z : tensor<5xi8>
}
