// RUN: axe-opt %s --axe-tile=sizes=64,32,16 --canonicalize | FileCheck %s
// RUN: axe-opt %s --axe-tile="sizes=64,32,16 operators=gemm" | FileCheck %s --check-prefix=GEMM
// RUN: axe-opt %s --axe-tile=sizes=64,32,16 --remarks-filter-missed=axe-tile --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#shared = #axe.space<shared>
#swizzled = #axe.layout<Sw<3, 3, 3> o S[(128, 64) : (64, 1)]>
// 128 threads, each with a row of 64.
#rows = #axe.layout<S[(128, 64) : (1@thread, 1@reg)]>
// A thread has every 32nd row, all of it; the four warps hold the same.
#frag = #axe.layout<S[(4, 32, 64) : (64@reg, 1@thread, 1@reg)] + R[4 : 32@thread]>
#column = #axe.layout<S[64 : 1@reg] + R[128 : 1@thread]>
#sums = #axe.layout<S[(4, 32) : (1@reg, 1@thread)] + R[4 : 32@thread]>

// Only products.
// GEMM-LABEL: axe.kernel @copies
// GEMM-NOT: scf.for
// GEMM-LABEL: axe.kernel @product

// Ragged ends by the slices' bounds: the last tile is as large as the others.
// CHECK-LABEL: axe.kernel @copies
// CHECK-SAME: (%[[X:.*]]: memref<?x100xf16>, %[[Y:.*]]: memref<?x100xf16>)
axe.kernel @copies(%x: memref<?x100xf16>, %y: memref<?x100xf16>) threads(128) {
  // CHECK-DAG: %[[D:.*]] = memref.dim %[[Y]], %c0
  // CHECK: scf.for %[[I:.*]] = %c0 to %[[D]] step %c64
  // CHECK: scf.for %[[J:.*]] = %c0 to %c100 step %c32
  // CHECK: %[[A:.*]] = axe.slice %[[X]][%[[I]], %[[J]]] : memref<?x100xf16> to memref<64x32xf16, strided<[100, 1]>>
  // CHECK: %[[B:.*]] = axe.slice %[[Y]][%[[I]], %[[J]]] : memref<?x100xf16> to memref<64x32xf16, strided<[100, 1]>>
  // CHECK: axe.copy %[[A]] to %[[B]]
  axe.copy %x to %y : memref<?x100xf16> to memref<?x100xf16>
  axe.return
}

// Swizzled storage: a tile's addresses count before the swizzle. Asynchronous copies stay so.
// CHECK-LABEL: axe.kernel @swizzled
axe.kernel @swizzled(%y: memref<128x64xf16>) threads(128) {
  %zero = arith.constant 0.0 : f16
  // CHECK: %[[S:.*]] = axe.alloc
  %s = axe.alloc : memref<128x64xf16, #swizzled, #shared>
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: axe.slice %[[S]][{{.*}} to memref<64x32xf16, #axe.layout<Sw<3, 3, 3> o S[(64, 32) : (64, 1)]>, #axe.space<shared>>
  // CHECK: axe.copy async
  axe.copy async %y to %s : memref<128x64xf16> to memref<128x64xf16, #swizzled, #shared>
  %g = axe.commit : !axe.token
  // CHECK: axe.wait
  axe.wait
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: axe.fill %{{.*}} to %{{.*}} : f16 to memref<64x32xf16, #axe.layout<Sw<3, 3, 3> o S[(64, 32) : (64, 1)]>, #axe.space<shared>>
  axe.fill %zero to %s : f16 to memref<128x64xf16, #swizzled, #shared>
  axe.return
}

// A tile of blocks that begins inside one has no layout: the copy stays.
// CHECK-LABEL: axe.kernel @blocks
axe.kernel @blocks(%y: memref<64x96xf32>) threads(128) {
  %s = axe.alloc : memref<64x96xf32, #axe.layout<S[(64, 2, 48) : (48, 3072, 1)]>, #shared>
  // REMARK-DAG: :[[#@LINE+3]]:{{[0-9]+}}: remark: {{.*}}axe.copy{{.*}}the box at [0, 32] is
  // CHECK-NOT: scf.for
  // CHECK: axe.copy
  axe.copy %y to %s : memref<64x96xf32> to memref<64x96xf32, #axe.layout<S[(64, 2, 48) : (48, 3072, 1)]>, #shared>
  axe.return
}

// A store takes what computes its value into the loop. A tile is the same threads', and its registers count from 0.
// CHECK-LABEL: axe.kernel @fused
axe.kernel @fused(%x: memref<128x64xf32>, %b: memref<64xf32>, %y: memref<128x64xf16>) threads(128) {
  // CHECK: scf.for %[[I:.*]] = %c0 to %c128 step %c64
  // CHECK: scf.for %[[J:.*]] = %c0 to %c64 step %c32
  // CHECK: %[[X:.*]] = axe.slice %{{.*}}[%[[I]], %[[J]]] : memref<128x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  // CHECK: axe.copy %[[X]] : {{.*}} -> tensor<64x32xf32, #axe.layout<S[(2, 32, 32) : (32@reg, 1@thread, 1@reg)] + R[4 : 32@thread]>>
  // CHECK: %[[B:.*]] = axe.slice %{{.*}}[%[[J]]] : memref<64xf32> to memref<32xf32, strided<[1]>>
  // CHECK: axe.broadcast
  // CHECK: axe.map
  // CHECK: axe.cast
  // CHECK: axe.copy {{.*}} to memref<64x32xf16, strided<[64, 1]>>
  // CHECK-NOT: axe.cast
  %v = axe.copy %x : memref<128x64xf32> -> tensor<128x64xf32, #frag>
  %r = axe.copy %b : memref<64xf32> -> tensor<64xf32, #column>
  %w = axe.broadcast %r dims [0] : tensor<64xf32, #column> -> tensor<128x64xf32, #frag>
  %s = axe.map ins(%v, %w : tensor<128x64xf32, #frag>, tensor<128x64xf32, #frag>) -> tensor<128x64xf32, #frag> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    axe.yield %o : f32
  }
  %h = axe.cast %s : tensor<128x64xf32, #frag> -> tensor<128x64xf16, #frag>
  axe.copy %h to %y : tensor<128x64xf16, #frag> to memref<128x64xf16>
  axe.return
}

// Tiles on other threads, a barrier on the way, storage that is written itself: the store stays.
// CHECK-LABEL: axe.kernel @stays
// CHECK-NOT: scf.for
// CHECK-LABEL: axe.kernel @rows
axe.kernel @stays(%x: memref<128x64xf32>, %y: memref<128x64xf32>) threads(128) {
  %v = axe.copy %x : memref<128x64xf32> -> tensor<128x64xf32, #rows>
  // REMARK-DAG: :[[#@LINE+1]]:{{[0-9]+}}: remark: {{.*}}axe.copy{{.*}}tiles of [64, 32] lie on different threads
  axe.copy %v to %y : tensor<128x64xf32, #rows> to memref<128x64xf32>
  %w = axe.copy %x : memref<128x64xf32> -> tensor<128x64xf32, #frag>
  axe.barrier
  // REMARK-DAG: :[[#@LINE+1]]:{{[0-9]+}}: remark: {{.*}}axe.copy{{.*}}the stored value is loaded in front of 'axe.barrier'
  axe.copy %w to %y : tensor<128x64xf32, #frag> to memref<128x64xf32>
  %u = axe.copy %x : memref<128x64xf32> -> tensor<128x64xf32, #frag>
  // REMARK-DAG: :[[#@LINE+1]]:{{[0-9]+}}: remark: {{.*}}axe.copy{{.*}}the stored value is read from the storage that the copy writes
  axe.copy %u to %x : tensor<128x64xf32, #frag> to memref<128x64xf32>
  axe.return
}

// Sums of rows: the columns of a row stay together.
axe.kernel @rows(%x: memref<128x64xf32>, %y: memref<128xf32>) threads(128) {
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: axe.slice %{{.*}}[%[[I]], %c0] : memref<128x64xf32> to memref<64x64xf32, strided<[64, 1]>>
  // CHECK: axe.reduce <add> {{.*}} -> tensor<64xf32, #axe.layout<S[(2, 32) : (1@reg, 1@thread)] + R[4 : 32@thread]>>
  %v = axe.copy %x : memref<128x64xf32> -> tensor<128x64xf32, #frag>
  %s = axe.reduce <add> %v dims [1] : tensor<128x64xf32, #frag> -> tensor<128xf32, #sums>
  axe.copy %s to %y : tensor<128xf32, #sums> to memref<128xf32>
  axe.return
}

// A product of operands in storage: along K with the accumulator in registers, and wholly in the loop of a store.
// CHECK-LABEL: axe.kernel @product
axe.kernel @product(%x: memref<128x64xf16>, %w: memref<64x64xf16>, %y: memref<128x64xf32>, %z: memref<128x64xf32>) threads(128) {
  %zero = arith.constant 0.0 : f32
  // CHECK: axe.fill {{.*}} -> tensor<128x64xf32
  // CHECK: %[[D:.*]] = scf.for %[[K:.*]] = %c0 to %c64 step %c16 iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<128x64xf32
  // CHECK: axe.slice %{{.*}}[%c0, %[[K]]] : memref<128x64xf16> to memref<128x16xf16
  // CHECK: axe.slice %{{.*}}[%c0, %[[K]]] : memref<64x64xf16> to memref<64x16xf16
  // CHECK: axe.gemm {{.*}} acc %[[C]]
  // GEMM: iter_args
  // GEMM: axe.gemm
  %c = axe.fill %zero : f32 -> tensor<128x64xf32, #rows>
  %d = axe.gemm %x, %w acc %c : tensor<128x64xf32, #rows> {trans_b} : memref<128x64xf16>, memref<64x64xf16> -> tensor<128x64xf32, #rows>
  axe.copy %d to %y : tensor<128x64xf32, #rows> to memref<128x64xf32>
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: axe.fill {{.*}} -> tensor<64x32xf32
  // CHECK: scf.for {{.*}} iter_args
  // CHECK: axe.gemm {{.*}} : memref<64x16xf16, strided<[64, 1]>>, memref<16x32xf16, strided<[64, 1]>> -> tensor<64x32xf32
  %e = axe.gemm %x, %w : memref<128x64xf16>, memref<64x64xf16> -> tensor<128x64xf32, #frag>
  axe.copy %e to %z : tensor<128x64xf32, #frag> to memref<128x64xf32>
  axe.return
}

// Tensors without layouts: an end that no tile divides has a dynamic extent.
// CHECK-LABEL: func.func @tensors
// GEMM-LABEL: func.func @tensors
// GEMM: scf.for
// GEMM-NOT: tensor.extract_slice {{.*}}f32
// GEMM: return
func.func @tensors(%x: tensor<?x40xf16>, %w: tensor<40x64xf16>, %v: tensor<64xf32>) -> tensor<64x?xf16> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x40xf16>
  // CHECK: tensor.empty(%[[D:.*]]) : tensor<?x64xf32>
  // CHECK: scf.for %[[I:.*]] = %c0 to %[[D]] step %c64 iter_args
  // CHECK: arith.minsi
  // CHECK: scf.for %[[J:.*]] = %c0 to %c64 step %c32 iter_args
  // CHECK: axe.fill {{.*}} -> tensor<?x32xf32>
  // CHECK: scf.for %[[K:.*]] = %c0 to %c40 step %c16 iter_args
  // CHECK: tensor.extract_slice %{{.*}}[%[[I]], %[[K]]]
  // CHECK: axe.gemm {{.*}} : tensor<?x?xf16>, tensor<?x32xf16> -> tensor<?x32xf32>
  // CHECK: tensor.insert_slice
  %c = axe.gemm %x, %w : tensor<?x40xf16>, tensor<40x64xf16> -> tensor<?x64xf32>
  // CHECK: axe.broadcast
  %b = axe.broadcast %v dims [0] sizes(%d) : tensor<64xf32> -> tensor<?x64xf32>
  // CHECK: axe.map
  %s = axe.map ins(%c, %b : tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    axe.yield %o : f32
  }
  // CHECK: axe.cast {{.*}} : tensor<?x32xf32> -> tensor<?x32xf16>
  %h = axe.cast %s : tensor<?x64xf32> -> tensor<?x64xf16>
  // CHECK: axe.transpose {{.*}} : tensor<?x64xf16> -> tensor<64x?xf16>
  %t = axe.transpose %h [1, 0] : tensor<?x64xf16> -> tensor<64x?xf16>
  return %t : tensor<64x?xf16>
}
