// RUN: axe-opt %s --axe-cpu | mlir-runner-22 -e main -entry-point-result=void -shared-libs=%llvm_lib/libmlir_runner_utils.so,%llvm_lib/libmlir_c_runner_utils.so > %t.whole
// RUN: axe-opt %s --axe-tile=sizes=3,2,2 --axe-cpu | mlir-runner-22 -e main -entry-point-result=void -shared-libs=%llvm_lib/libmlir_runner_utils.so,%llvm_lib/libmlir_c_runner_utils.so > %t.tiled
// RUN: axe-opt %s --axe-tile=sizes=2,4,3 --axe-slice --axe-cpu | mlir-runner-22 -e main -entry-point-result=void -shared-libs=%llvm_lib/libmlir_runner_utils.so,%llvm_lib/libmlir_c_runner_utils.so > %t.sliced
// RUN: FileCheck %s < %t.whole
// RUN: grep -v "base@" %t.whole > %t.a
// RUN: grep -v "base@" %t.tiled > %t.b
// RUN: grep -v "base@" %t.sliced > %t.c
// RUN: diff %t.a %t.b
// RUN: diff %t.a %t.c

// Numbers do not change with tiles, ragged ones included: copies through blocked storage, a fused store, a product.
#shared = #axe.space<shared>
#blocked = #axe.layout<S[(2, 4, 2, 4) : (32, 4, 16, 1)]>
#frag = #axe.layout<S[(4, 4) : (4@reg, 1@reg)] + R[32 : 1@thread]>
#row = #axe.layout<S[4 : 1@reg] + R[32 : 1@thread]>

axe.kernel @k(%x: memref<?x7xf32>, %y: memref<?x7xf32>, %z: memref<4x4xf32>, %p: memref<4x4xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %s = axe.alloc : memref<8x8xf32, #blocked, #shared>
  %t = axe.slice %x[%c0, %c0] : memref<?x7xf32> to memref<8x8xf32, strided<[7, 1]>>
  axe.copy %t to %s pad %one : f32 : memref<8x8xf32, strided<[7, 1]>> to memref<8x8xf32, #blocked, #shared>
  axe.barrier
  %u = axe.slice %y[%c0, %c0] : memref<?x7xf32> to memref<8x8xf32, strided<[7, 1]>>
  axe.copy %s to %u : memref<8x8xf32, #blocked, #shared> to memref<8x8xf32, strided<[7, 1]>>
  %inner = axe.slice %s[%c4, %c0] : memref<8x8xf32, #blocked, #shared> to memref<4x8xf32, #axe.layout<S[(4, 2, 4) : (4, 16, 1)]>, #shared>
  %q = axe.slice %inner[%c0, %c4] : memref<4x8xf32, #axe.layout<S[(4, 2, 4) : (4, 16, 1)]>, #shared> to memref<4x4xf32, #axe.layout<S[(4, 4) : (4, 1)]>, #shared>
  %a = axe.copy %q : memref<4x4xf32, #axe.layout<S[(4, 4) : (4, 1)]>, #shared> -> tensor<4x4xf32, #frag>
  %r = axe.reduce <add> %a dims [1] : tensor<4x4xf32, #frag> -> tensor<4xf32, #row>
  %b = axe.broadcast %r dims [0] : tensor<4xf32, #row> -> tensor<4x4xf32, #frag>
  %w = axe.transpose %b [1, 0] : tensor<4x4xf32, #frag> -> tensor<4x4xf32, #frag>
  %c = axe.map ins(%a, %w : tensor<4x4xf32, #frag>, tensor<4x4xf32, #frag>) -> tensor<4x4xf32, #frag> {
  ^bb0(%e: f32, %f: f32):
    %g = arith.subf %e, %f : f32
    axe.yield %g : f32
  }
  axe.copy %c to %z : tensor<4x4xf32, #frag> to memref<4x4xf32>
  %left = axe.slice %x[%c0, %c2] : memref<?x7xf32> to memref<4x5xf32, strided<[7, 1]>>
  %right = axe.slice %x[%c2, %c0] : memref<?x7xf32> to memref<4x5xf32, strided<[7, 1]>>
  %d = axe.gemm %left, %right {trans_b} : memref<4x5xf32, strided<[7, 1]>>, memref<4x5xf32, strided<[7, 1]>> -> tensor<4x4xf32, #frag>
  axe.copy %d to %p : tensor<4x4xf32, #frag> to memref<4x4xf32>
  axe.return
}

// The same on tensors.
func.func @logical(%x: tensor<?x7xf32>) -> tensor<7x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x7xf32>
  %g = axe.gemm %x, %x {trans_a} : tensor<?x7xf32>, tensor<?x7xf32> -> tensor<7x7xf32>
  %r = axe.reduce <add> %g dims [0] : tensor<7x7xf32> -> tensor<7xf32>
  %b = axe.broadcast %r dims [0] sizes(%d) : tensor<7xf32> -> tensor<?x7xf32>
  %f = axe.fill %zero sizes(%d) : f32 -> tensor<?x7xf32>
  %m = axe.map ins(%x, %b, %f : tensor<?x7xf32>, tensor<?x7xf32>, tensor<?x7xf32>) -> tensor<?x7xf32> {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %s = arith.addf %u, %v : f32
    %t = arith.addf %s, %w : f32
    axe.yield %t : f32
  }
  %t = axe.transpose %m [1, 0] : tensor<?x7xf32> -> tensor<7x?xf32>
  return %t : tensor<7x?xf32>
}

func.func private @printMemrefF32(tensor<*xf32>)

// CHECK: sizes = [5, 7]
// CHECK: [0,    1,    2,    3,    4,    5,    6],
// CHECK: [28,    29,    30,    31,    32,    33,    34]
// CHECK: sizes = [4, 4]
// CHECK: [-68,    -67,    -66,    -99],
// CHECK: [-3,    -3,    -3,    -3]
// CHECK: sizes = [4, 4]
// CHECK: [330,    470,    610,    0],
// CHECK: sizes = [7, 5]
// CHECK: [11760,    11767,    11774,    11781,    11788]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %x = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %c7 = arith.constant 7 : index
    %r = arith.muli %i, %c7 : index
    %a = arith.addi %r, %j : index
    %b = arith.index_cast %a : index to i32
    %v = arith.sitofp %b : i32 to f32
    tensor.yield %v : f32
  } : tensor<?x7xf32>
  %e = tensor.empty(%n) : tensor<?x7xf32>
  %z = tensor.empty() : tensor<4x4xf32>
  %p = tensor.empty() : tensor<4x4xf32>
  %o:3 = axe.launch @k grid(%c1, %c1, %c1) ins(%x : tensor<?x7xf32>) outs(%e, %z, %p : tensor<?x7xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<?x7xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  %l = call @logical(%x) : (tensor<?x7xf32>) -> tensor<7x?xf32>
  %0 = tensor.cast %o#0 : tensor<?x7xf32> to tensor<*xf32>
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  %1 = tensor.cast %o#1 : tensor<4x4xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = tensor.cast %o#2 : tensor<4x4xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  %3 = tensor.cast %l : tensor<7x?xf32> to tensor<*xf32>
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
  return
}
