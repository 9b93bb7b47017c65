// RUN: axe-opt %s --axe-cpu | mlir-runner-22 -e main -entry-point-result=void -shared-libs=%llvm_lib/libmlir_runner_utils.so | FileCheck %s

// A kernel on two blocks whose tiles reach beyond the end: rows 0 to 4 doubled through swizzled storage, plus their sum.
#sw = #axe.layout<Sw<1, 0, 1> o S[(4, 2) : (2, 1)]>
#frag = #axe.layout<S[(4, 2) : (1@lane, 1@reg)]>
#sum = #axe.layout<S[4 : 1@lane]>
#shared = #axe.space<shared>
axe.kernel @double(%x: memref<?x2xf32>, %y: memref<?x2xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %i = gpu.block_id x
  %m = arith.muli %i, %c4 : index
  %s = axe.alloc : memref<4x2xf32, #sw, #shared>
  %t = axe.slice %x[%m, %c0] : memref<?x2xf32> to memref<4x2xf32>
  axe.copy async %t to %s : memref<4x2xf32> to memref<4x2xf32, #sw, #shared>
  %g = axe.commit : !axe.token
  axe.wait
  axe.barrier
  %a = axe.copy %s : memref<4x2xf32, #sw, #shared> -> tensor<4x2xf32, #frag>
  %r = axe.reduce <add> %a dims [1] : tensor<4x2xf32, #frag> -> tensor<4xf32, #sum>
  %b = axe.broadcast %r dims [1] : tensor<4xf32, #sum> -> tensor<4x2xf32, #frag>
  %c = axe.map ins(%a, %b : tensor<4x2xf32, #frag>, tensor<4x2xf32, #frag>) -> tensor<4x2xf32, #frag> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %u : f32
    %z = arith.addf %w, %v : f32
    axe.yield %z : f32
  }
  %o = axe.slice %y[%m, %c0] : memref<?x2xf32> to memref<4x2xf32>
  axe.copy %c to %o : tensor<4x2xf32, #frag> to memref<4x2xf32>
  axe.return
}

func.func private @printMemrefF32(tensor<*xf32>)

// CHECK: sizes = [5, 2]
// CHECK: [1,    3],
// CHECK-NEXT: [9,    11],
// CHECK-NEXT: [17,    19],
// CHECK-NEXT: [25,    27],
// CHECK-NEXT: [33,    35]
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %d = arith.constant dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]> : tensor<5x2xf32>
  %x = tensor.cast %d : tensor<5x2xf32> to tensor<?x2xf32>
  %e = tensor.empty(%c5) : tensor<?x2xf32>
  %r = axe.launch @double grid(%c2, %c1, %c1) ins(%x : tensor<?x2xf32>) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %u = tensor.cast %r : tensor<?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}
