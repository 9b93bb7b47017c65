// RUN: not axe-opt %s --axe-tile 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not axe-opt %s --axe-tile=sizes=0,0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not axe-opt %s --axe-tile=sizes=16,-4 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not axe-opt %s --axe-tile="sizes=16 operators=copy,conv" 2>&1 | FileCheck %s --check-prefix=OPERATOR
// RUN: axe-opt %s --axe-tile=sizes=16 --remarks-filter-missed=axe-tile --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// NONE: error: expected the extents of a tile: sizes=64,64
// NEGATIVE: error: sizes: expected numbers from 0 up (0 keeps a dimension whole), got '-4'
// OPERATOR: error: operators: expected some of broadcast, cast, copy, fill, gemm, map, mask, reduce, transpose, got 'conv'

#row = #axe.layout<S[32 : 1@reg]>
axe.kernel @k(%x: memref<32x?xf32>, %y: memref<32x?xf32>, %z: memref<32xf32>) threads(32) {
  // REMARK: :[[#@LINE+1]]:3: remark: {{.*}}dimension 1 is dynamic: expected a size for it, for a slice has a static shape
  axe.copy %x to %y : memref<32x?xf32> to memref<32x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %s = axe.fill %zero : f32 -> tensor<32xf32, #row>
  %l = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %s) -> tensor<32xf32, #row> {
    scf.yield %t : tensor<32xf32, #row>
  }
  // REMARK: :[[#@LINE+1]]:3: remark: {{.*}}the stored value comes from 'scf.for', which cannot be computed tile by tile
  axe.copy %l to %z : tensor<32xf32, #row> to memref<32xf32>
  axe.return
}
