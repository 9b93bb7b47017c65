// RUN: axe-opt %s --axe-slice | FileCheck %s
// RUN: axe-opt %s --axe-slice --remarks-filter-missed=axe-slice --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#shared = #axe.space<shared>
#swizzled = #axe.layout<Sw<3, 3, 3> o S[(4, 64, 64) : (4096, 64, 1)]>
#blocked = #axe.layout<S[(2, 8, 2, 8) : (128, 8, 64, 1)]>

// CHECK-LABEL: axe.kernel @constant
axe.kernel @constant(%x: memref<?x100xf32>, %y: memref<8x16xf32>) threads(32) {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %i = gpu.block_id x
  // CHECK: %[[M:.*]] = arith.addi %{{.*}}, %c8
  // CHECK: %[[N:.*]] = arith.constant 32 : index
  // CHECK: %[[T:.*]] = axe.slice %{{.*}}[%[[M]], %[[N]]] : memref<?x100xf32> to memref<8x16xf32, strided<[100, 1]>>
  // CHECK-NOT: axe.slice
  // CHECK: axe.copy %[[T]]
  %a = axe.slice %x[%i, %c16] : memref<?x100xf32> to memref<16x32xf32, strided<[100, 1]>>
  %b = axe.slice %a[%c8, %c16] : memref<16x32xf32, strided<[100, 1]>> to memref<8x16xf32, strided<[100, 1]>>
  axe.copy %b to %y : memref<8x16xf32, strided<[100, 1]>> to memref<8x16xf32>
  axe.return
}

// The dropped dimension gets its origin back, and a loop's variable has a range.
// CHECK-LABEL: axe.kernel @dropped
axe.kernel @dropped(%x: memref<4x64xf32>, %y: memref<16xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %i = gpu.block_id x
  // CHECK: scf.for %[[K:.*]] =
  // CHECK-NEXT: axe.slice %{{.*}}[%{{.*}}, %[[K]]] : memref<4x64xf32> to memref<16xf32, strided<[1]>>
  %row = axe.slice %x[%i, %c0] : memref<4x64xf32> to memref<64xf32, strided<[1]>>
  scf.for %k = %c0 to %c64 step %c16 {
    %part = axe.slice %row[%k] : memref<64xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
    axe.copy %part to %y : memref<16xf32, strided<[1]>> to memref<16xf32>
  }
  axe.return
}

// A dimension that the inner slice takes whole has the storage's own bounds.
// CHECK-LABEL: axe.kernel @whole
axe.kernel @whole(%x: memref<32x100xf32>, %y: memref<8x16xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %i = gpu.block_id x
  %j = gpu.block_id y
  // CHECK: %[[I:.*]] = gpu.block_id x
  // CHECK: %[[J:.*]] = gpu.block_id y
  // CHECK: axe.slice %{{.*}}[%[[I]], %[[J]]] : memref<32x100xf32> to memref<8x16xf32
  // CHECK-NOT: axe.slice
  %a = axe.slice %x[%i, %c0] : memref<32x100xf32> to memref<8x100xf32>
  %b = axe.slice %a[%c0, %j] : memref<8x100xf32> to memref<8x16xf32, strided<[100, 1]>>
  axe.copy %b to %y : memref<8x16xf32, strided<[100, 1]>> to memref<8x16xf32>
  axe.return
}

// What leaves the inner box reads padding there, and elements of the storage after a fold: it stays.
// CHECK-LABEL: axe.kernel @outside
axe.kernel @outside(%x: memref<64xf32>, %y: memref<16xf32>) threads(32) {
  %c8 = arith.constant 8 : index
  %i = gpu.block_id x
  // CHECK: %[[A:.*]] = axe.slice %{{.*}}[%c8]
  // CHECK: axe.slice %[[A]][%c8]
  // CHECK: axe.slice %[[A]][%{{.*}}]
  %a = axe.slice %x[%c8] : memref<64xf32> to memref<16xf32, strided<[1]>>
  // REMARK-DAG: :[[#@LINE+1]]:8: remark: {{.*}}axe.slice{{.*}}this slice of a slice stays: along dimension 0 its 16 elements are not known to lie inside the 16 of its source
  %b = axe.slice %a[%c8] : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
  %c = axe.slice %a[%i] : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
  axe.copy %b to %y : memref<16xf32, strided<[1]>> to memref<16xf32>
  axe.copy %c to %y : memref<16xf32, strided<[1]>> to memref<16xf32>
  axe.return
}

// Boxes of a kernel's own storage at constant origins are views; a swizzle stays right, for it comes after the origin.
// CHECK-LABEL: axe.kernel @exact
// CHECK-SAME: %[[Y:.*]]: memref<64x16xf16>, %[[Z:.*]]: memref<8x4xf32>
axe.kernel @exact(%y: memref<64x16xf16>, %z: memref<8x4xf32>) threads(32) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  // CHECK: %[[S:.*]] = axe.alloc
  %s = axe.alloc : memref<4x64x64xf16, #swizzled, #shared>
  %b = axe.alloc : memref<16x16xf32, #blocked, #shared>
  // CHECK: axe.view %[[S]] : {{.*}} to memref<64x16xf16, #axe.layout<Sw<3, 3, 3> o S[(64, 16) : (64, 1)] + 4112>, #axe.space<shared>>
  %stage = axe.slice %s[%c1, %c0, %c0] : memref<4x64x64xf16, #swizzled, #shared> to memref<64x64xf16, #shared>
  %part = axe.slice %stage[%c0, %c16] : memref<64x64xf16, #shared> to memref<64x16xf16, strided<[64, 1]>, #shared>
  axe.copy %part to %y : memref<64x16xf16, strided<[64, 1]>, #shared> to memref<64x16xf16>
  // CHECK: axe.view %{{.*}} : {{.*}} to memref<8x4xf32, #axe.layout<S[(8, 4) : (8, 1)] + 196>, #axe.space<shared>>
  %tile = axe.slice %b[%c8, %c12] : memref<16x16xf32, #blocked, #shared> to memref<8x4xf32, #shared>
  axe.copy %tile to %z : memref<8x4xf32, #shared> to memref<8x4xf32>
  // CHECK-NOT: axe.slice
  axe.return
}

// Views of such a box count from the storage's zero; views of views fold.
// CHECK-LABEL: axe.kernel @views
axe.kernel @views(%x: memref<32x4xf32>, %y: memref<4x32xf32>, %z: memref<64x2xf32>) threads(32) {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  // CHECK: %[[S:.*]] = axe.alloc
  %s = axe.alloc : memref<8x32xf32, #shared>
  // CHECK: %[[W:.*]] = axe.view %[[S]] : {{.*}} to memref<4x32xf32, strided<[32, 1], offset: 64>, #axe.space<shared>>
  %half = axe.slice %s[%c2, %c0] : memref<8x32xf32, #shared> to memref<4x32xf32, #shared>
  // CHECK: %[[V:.*]] = axe.view %[[S]] : {{.*}} to memref<32x4xf32, strided<[4, 1], offset: 64>, #axe.space<shared>>
  %other = axe.view %half : memref<4x32xf32, #shared> to memref<32x4xf32, #shared>
  // CHECK: axe.copy %[[V]]
  // CHECK: axe.copy %[[W]]
  axe.copy %other to %x : memref<32x4xf32, #shared> to memref<32x4xf32>
  axe.copy %half to %y : memref<4x32xf32, #shared> to memref<4x32xf32>
  %one = axe.view %s : memref<8x32xf32, #shared> to memref<256xf32, #shared>
  // CHECK: %[[B:.*]] = axe.view %[[S]] : {{.*}} to memref<64x2xf32, strided<[2, 1]>, #axe.space<shared>>
  %two = axe.view %one : memref<256xf32, #shared> to memref<64x2xf32, strided<[2, 1]>, #shared>
  // CHECK: axe.copy %[[B]]
  axe.copy %two to %z : memref<64x2xf32, strided<[2, 1]>, #shared> to memref<64x2xf32>
  axe.return
}

// A stage of a ring at run time: a type without a layout gets that of the box, which is the same at every origin.
// CHECK-LABEL: axe.kernel @ring
axe.kernel @ring(%y: memref<64x64xf16>, %z: memref<64x16xf16>) threads(32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %s = axe.alloc : memref<4x64x64xf16, #swizzled, #shared>
  scf.for %k = %c0 to %c9 step %c1 {
    %stage = arith.remui %k, %c4 : index
    // CHECK: axe.slice {{.*}} to memref<64x64xf16, #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>, #axe.space<shared>>
    %tile = axe.slice %s[%stage, %c0, %c0] : memref<4x64x64xf16, #swizzled, #shared> to memref<64x64xf16, #shared>
    axe.copy %tile to %y : memref<64x64xf16, #shared> to memref<64x64xf16>
    scf.for %n = %c0 to %c64 step %c16 {
      // Inside the swizzle's period: addresses count before the swizzle.
      // CHECK: axe.slice {{.*}} to memref<64x16xf16, #axe.layout<Sw<3, 3, 3> o S[(64, 16) : (64, 1)]>, #axe.space<shared>>
      %part = axe.slice %s[%stage, %c0, %n] : memref<4x64x64xf16, #swizzled, #shared> to memref<64x16xf16, #shared>
      axe.copy %part to %z : memref<64x16xf16, #shared> to memref<64x16xf16>
    }
  }
  axe.return
}

// Columns of blocks: a box that begins at a multiple of 4 may cross a block.
// CHECK-LABEL: axe.kernel @blocks
axe.kernel @blocks(%y: memref<8x8xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  %s = axe.alloc : memref<16x16xf32, #blocked, #shared>
  scf.for %k = %c0 to %c16 step %c8 {
    // CHECK: axe.slice {{.*}} to memref<8x8xf32, #axe.layout<S[(8, 8) : (8, 1)]>, #axe.space<shared>>
    %a = axe.slice %s[%k, %k] : memref<16x16xf32, #blocked, #shared> to memref<8x8xf32, #shared>
    axe.copy %a to %y : memref<8x8xf32, #shared> to memref<8x8xf32>
  }
  scf.for %k = %c0 to %c12 step %c4 {
    // REMARK-DAG: :[[#@LINE+2]]:{{[0-9]+}}: remark: {{.*}}axe.slice{{.*}}its type stays without a layout: the box at [0, 4] is
    // CHECK: axe.slice {{.*}} to memref<8x8xf32, #axe.space<shared>>
    %a = axe.slice %s[%c0, %k] : memref<16x16xf32, #blocked, #shared> to memref<8x8xf32, #shared>
    axe.copy %a to %y : memref<8x8xf32, #shared> to memref<8x8xf32>
  }
  axe.return
}

// The elements from 3 on are a row apart and not a step apart.
// CHECK-LABEL: axe.kernel @no_layout
axe.kernel @no_layout(%y: memref<3xf32>) threads(32) {
  %c3 = arith.constant 3 : index
  %s = axe.alloc : memref<16xf32, #axe.layout<S[(4, 4) : (32, 1)]>, #shared>
  // REMARK-DAG: :[[#@LINE+2]]:{{[0-9]+}}: remark: {{.*}}axe.slice{{.*}}this slice at a constant origin stays:
  // CHECK: axe.slice
  %a = axe.slice %s[%c3] : memref<16xf32, #axe.layout<S[(4, 4) : (32, 1)]>, #shared> to memref<3xf32, #shared>
  axe.copy %a to %y : memref<3xf32, #shared> to memref<3xf32>
  axe.return
}

// What nothing uses goes; what another dialect uses keeps its type.
// CHECK-LABEL: axe.kernel @used_elsewhere
axe.kernel @used_elsewhere(%i: i1) threads(32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %s = axe.alloc : memref<8x32xf32, #shared>
  // CHECK-NOT: memref<2x32xf32
  %dead = axe.slice %s[%c0, %c0] : memref<8x32xf32, #shared> to memref<2x32xf32, #shared>
  // CHECK: axe.slice
  // REMARK-DAG: :[[#@LINE+1]]:{{[0-9]+}}: remark: {{.*}}a user needs this very type
  %a = axe.slice %s[%c0, %c0] : memref<8x32xf32, #shared> to memref<4x32xf32, #shared>
  %b = arith.select %i, %a, %a : memref<4x32xf32, #shared>
  axe.fill %zero to %b : f32 to memref<4x32xf32, #shared>
  axe.return
}
