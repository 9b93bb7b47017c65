// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @lower_triangle
func.func @lower_triangle(%x: tensor<4x4xf32>, %zero: f32) -> tensor<4x4xf32> {
  %0 = axe.map ins(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%u: f32):
    // CHECK: %[[ROW:.+]] = axe.index 0
    %row = axe.index 0
    // CHECK: %[[COLUMN:.+]] = axe.index 1
    %column = axe.index 1
    // CHECK: arith.cmpi ule, %[[COLUMN]], %[[ROW]] : index
    %seen = arith.cmpi ule, %column, %row : index
    %v = arith.select %seen, %u, %zero : f32
    axe.yield %v : f32
  }
  return %0 : tensor<4x4xf32>
}

// Also below the body's own regions.
// CHECK-LABEL: func.func @in_a_branch
func.func @in_a_branch(%x: tensor<4xf32>, %which: i1) -> tensor<4xf32> {
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    %v = scf.if %which -> f32 {
      // CHECK: axe.index 0
      %i = axe.index 0
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      scf.yield %f : f32
    } else {
      scf.yield %u : f32
    }
    axe.yield %v : f32
  }
  return %0 : tensor<4xf32>
}
