// What each operator of a kernel of tiles becomes, by the layouts alone, and why not otherwise. tiles.test executes more.
// RUN: axe-opt %s --axe-dispatch-schedules="target=trn1 explain" -split-input-file -o %t.mlir 2>%t.explain
// RUN: FileCheck %s < %t.explain && FileCheck %s --check-prefix=IR < %t.mlir
// RUN: axe-opt %s --axe-trainium="target=trn2" -split-input-file | FileCheck %s --check-prefix=TRN2

// K on the partitions of both operands, in one order: products of 128 x 64 x 512, which add to one bank. The sums leave PSUM
// by way of SBUF, for no transfer reaches it.
// CHECK-LABEL: kernel @product
// CHECK: axe.copy -> dma
// CHECK-NEXT: not engine copy: s: expected it in sbuf or psum, got hbm
// CHECK-NEXT: | 1 x dma_copy 128x128 on dma
// CHECK: axe.gemm -> lhs stationary
// CHECK-NEXT: | 2 x nc_matmul 128x64x512 on tensor
// CHECK: axe.copy -> dma from sbuf
// CHECK: | 1 x activation 64x512 on scalar
// CHECK-NEXT: | 1 x dma_copy 64x512 on dma
// TRN2: trn.kernel @product(%in0: !trn.hbm<256x64xbf16>, %in1: !trn.hbm<256x512xbf16>) outs(%out0: !trn.hbm<64x512xf32>) chip("trn2")
// TRN2: trn.nc_matmul %sums
#a = #axe.layout<S[(2, 128, 64) : (64@F, 1@P, 1@F)]>
#b = #axe.layout<S[(2, 128, 512) : (512@F, 1@P, 1@F)]>
#c = #axe.layout<S[(64, 512) : (1@P, 1@F)]>
axe.kernel @product(%A: memref<256x64xbf16>, %B: memref<256x512xbf16>, %C: memref<64x512xf32>) threads(1) {
  %a = axe.copy %A : memref<256x64xbf16> -> tensor<256x64xbf16, #a>
  %b = axe.copy %B : memref<256x512xbf16> -> tensor<256x512xbf16, #b>
  %c = axe.gemm %a, %b {trans_a} : tensor<256x64xbf16, #a>, tensor<256x512xbf16, #b> -> tensor<64x512xf32, #c>
  axe.copy %c to %C : tensor<64x512xf32, #c> to memref<64x512xf32>
  axe.return
}

// -----

// Another order of K on the partitions, the same in both.
// CHECK-LABEL: kernel @pairs
// CHECK: axe.gemm -> lhs stationary
// CHECK-NEXT: | 2 x nc_matmul 128x64x512 on tensor
#a = #axe.layout<S[(128, 2, 64) : (1@P, 64@F, 1@F)]>
#b = #axe.layout<S[(128, 2, 512) : (1@P, 512@F, 1@F)]>
#c = #axe.layout<S[(64, 512) : (1@P, 1@F)]>
axe.kernel @pairs(%A: memref<256x64xbf16>, %B: memref<256x512xbf16>, %C: memref<64x512xf32>) threads(1) {
  %a = axe.copy %A : memref<256x64xbf16> -> tensor<256x64xbf16, #a>
  %b = axe.copy %B : memref<256x512xbf16> -> tensor<256x512xbf16, #b>
  %c = axe.gemm %a, %b {trans_a} : tensor<256x64xbf16, #a>, tensor<256x512xbf16, #b> -> tensor<64x512xf32, #c>
  axe.copy %c to %C : tensor<64x512xf32, #c> to memref<64x512xf32>
  axe.return
}

// -----

// Sums that a loop carries stay in one bank; products of every iteration add to it.
// CHECK-LABEL: kernel @accumulated
// CHECK: axe.gemm -> lhs stationary
// CHECK-NEXT: | 1 x nc_matmul 128x128x128 on tensor
// IR-LABEL: trn.kernel @accumulated
// IR: %[[SUMS:.*]] = trn.alloc : !trn.psum<128x128xf32>
// IR: scf.for
// IR-NOT: = trn.alloc {{.*}}trn.psum
// IR: trn.nc_matmul %[[SUMS]],
// IR: trn.index = "k"
// IR-NOT: memset
#t = #axe.layout<S[(128, 128) : (1@P, 1@F)]>
axe.kernel @accumulated(%A: memref<512x128xbf16>, %B: memref<512x128xbf16>, %C: memref<128x128xbf16>) threads(1) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f32
  %none = axe.fill %zero : f32 -> tensor<128x128xf32, #t>
  %sum = scf.for %k = %c0 to %c512 step %c128 iter_args(%acc = %none) -> (tensor<128x128xf32, #t>) {
    %a_box = axe.slice %A[%k, %c0] : memref<512x128xbf16> to memref<128x128xbf16>
    %a = axe.copy %a_box : memref<128x128xbf16> -> tensor<128x128xbf16, #t>
    %b_box = axe.slice %B[%k, %c0] : memref<512x128xbf16> to memref<128x128xbf16>
    %b = axe.copy %b_box : memref<128x128xbf16> -> tensor<128x128xbf16, #t>
    %next = axe.gemm %a, %b acc %acc : tensor<128x128xf32, #t> {trans_a} : tensor<128x128xbf16, #t>, tensor<128x128xbf16, #t> -> tensor<128x128xf32, #t>
    scf.yield %next : tensor<128x128xf32, #t>
  } {trn.index = "k"}
  %half = axe.cast %sum : tensor<128x128xf32, #t> -> tensor<128x128xbf16, #t>
  axe.copy %half to %C : tensor<128x128xbf16, #t> to memref<128x128xbf16>
  axe.return
}

// -----

// The exponential, its conversion and its sum are one instruction; a row's maximum and the number in front of it are bias and
// scale.
// CHECK-LABEL: kernel @softmax
// CHECK: axe.reduce -> vector engine
// CHECK: axe.broadcast -> view
// CHECK: axe.map -> engines
// CHECK: | 1 x activation 128x512 on scalar
// CHECK: axe.cast -> map
// CHECK-NEXT: | formed with the map that it reads
// CHECK: axe.reduce -> map
// CHECK: axe.map -> engines
// CHECK: reciprocal 128x1 on vector
#t = #axe.layout<S[(128, 512) : (1@P, 1@F)]>
#row = #axe.layout<S[128 : 1@P]>
axe.kernel @softmax(%x: memref<128x512xf32>, %y: memref<128x512xbf16>, %z: memref<128xf32>) threads(1) {
  %one = arith.constant 1.0 : f32
  %minus = arith.constant -1.0 : f32
  %v = axe.copy %x : memref<128x512xf32> -> tensor<128x512xf32, #t>
  %most = axe.reduce <max> %v dims [1] : tensor<128x512xf32, #t> -> tensor<128xf32, #row>
  %negated = axe.map ins(%most : tensor<128xf32, #row>) -> tensor<128xf32, #row> {
  ^bb0(%a: f32):
    %n = arith.mulf %a, %minus : f32
    axe.yield %n : f32
  }
  %wide = axe.broadcast %negated dims [1] : tensor<128xf32, #row> -> tensor<128x512xf32, #t>
  %e = axe.map ins(%v, %wide : tensor<128x512xf32, #t>, tensor<128x512xf32, #t>) -> tensor<128x512xf32, #t> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.addf %a, %b : f32
    %p = math.exp %d : f32
    axe.yield %p : f32
  }
  %half = axe.cast %e : tensor<128x512xf32, #t> -> tensor<128x512xbf16, #t>
  %sum = axe.reduce <add> %e dims [1] : tensor<128x512xf32, #t> -> tensor<128xf32, #row>
  %inverse = axe.map ins(%sum : tensor<128xf32, #row>) -> tensor<128xf32, #row> {
  ^bb0(%a: f32):
    %i = arith.divf %one, %a : f32
    axe.yield %i : f32
  }
  axe.copy %half to %y : tensor<128x512xbf16, #t> to memref<128x512xbf16>
  axe.copy %inverse to %z : tensor<128xf32, #row> to memref<128xf32>
  axe.return
}

// -----

// A transpose is an instruction where the layouts demand it, and another name for the tensor where they do not.
// CHECK-LABEL: kernel @transposes
// CHECK: axe.transpose -> view
// CHECK: axe.transpose -> {{.*}}transpose
// CHECK: | 1 x nc_transpose
#t = #axe.layout<S[(128, 64) : (1@P, 1@F)]>
#same = #axe.layout<S[(64, 128) : (1@F, 1@P)]>
#turned = #axe.layout<S[(64, 128) : (1@P, 1@F)]>
axe.kernel @transposes(%x: memref<128x64xbf16>, %y: memref<64x128xbf16>, %z: memref<64x128xbf16>) threads(1) {
  %v = axe.copy %x : memref<128x64xbf16> -> tensor<128x64xbf16, #t>
  %named = axe.transpose %v [1, 0] : tensor<128x64xbf16, #t> -> tensor<64x128xbf16, #same>
  axe.copy %named to %y : tensor<64x128xbf16, #same> to memref<64x128xbf16>
  %moved = axe.transpose %v [1, 0] : tensor<128x64xbf16, #t> -> tensor<64x128xbf16, #turned>
  axe.copy %moved to %z : tensor<64x128xbf16, #turned> to memref<64x128xbf16>
  axe.return
}

// -----

// The last of the boxes along rows and along columns reach outside: their iterations are taken out of the loops, and fill up
// what is not there.
// IR-LABEL: trn.kernel @edges
// IR: scf.for
// IR: sizes [64, 64] : !trn.hbm<100x144xf32>
// IR: trn.memset %{{.*}}, 0.000000e+00
// IR: sizes [64, 16] : !trn.hbm<100x144xf32>
// IR: scf.for
// IR: sizes [36, 64] : !trn.hbm<100x144xf32>
// IR: sizes [36, 16] : !trn.hbm<100x144xf32>
#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
axe.kernel @edges(%x: memref<100x144xf32>, %y: memref<100x144xf32>) threads(1) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %c144 = arith.constant 144 : index
  scf.for %i = %c0 to %c100 step %c64 {
    scf.for %j = %c0 to %c144 step %c64 {
      %from = axe.slice %x[%i, %j] : memref<100x144xf32> to memref<64x64xf32, strided<[144, 1]>>
      %v = axe.copy %from : memref<64x64xf32, strided<[144, 1]>> -> tensor<64x64xf32, #t>
      %to = axe.slice %y[%i, %j] : memref<100x144xf32> to memref<64x64xf32, strided<[144, 1]>>
      axe.copy %v to %to : tensor<64x64xf32, #t> to memref<64x64xf32, strided<[144, 1]>>
    }
  }
  axe.return
}

// -----

// Operators on whole tensors, and a launch of a kernel of tiles: both in one module.
// CHECK-LABEL: kernel @twice
// CHECK: kernel @main_0_map
// IR-LABEL: func.func @main
// IR: axe.launch @twice grid(%[[ONE:.*]], %[[ONE]], %[[ONE]])
// IR: axe.launch @main_0_map
// IR-NOT: axe.kernel
#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
axe.kernel @twice(%x: memref<64x64xf32>, %y: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #t>
  %w = axe.map ins(%v : tensor<64x64xf32, #t>) -> tensor<64x64xf32, #t> {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    axe.yield %s : f32
  }
  axe.copy %w to %y : tensor<64x64xf32, #t> to memref<64x64xf32>
  axe.return
}
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c1 = arith.constant 1 : index
  %c132 = arith.constant 132 : index
  %empty = tensor.empty() : tensor<64x64xf32>
  %y = axe.launch @twice grid(%c132, %c1, %c1) ins(%x : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = axe.map ins(%y : tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: f32):
    %t = math.tanh %a : f32
    axe.yield %t : f32
  }
  return %z : tensor<64x64xf32>
}
