// torch.index_put, scatter and index_add as torch-mlir writes them: each element finds the last update of its own, or goes through all.
// REQUIRES: axe-driver
// RUN: axe-opt %s --convert-linalg-to-axe=for-kernels | FileCheck %s

// Rows that take the place of others: the number of the last update of each row, and the rows.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: tm_tensor
// CHECK: %[[LAST:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<16xi64>) outs(%{{.*}} : tensor<512xi32>)
// CHECK: arith.cmpi eq, {{.*}} : i64
// CHECK: arith.select {{.*}} : i32
// CHECK: arith.maxsi {{.*}} : i32
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]} outs(%{{.*}} : tensor<512x4x64xf16>)
// CHECK: %[[N:.*]] = tensor.extract %[[LAST]]
// CHECK: arith.cmpi sge, %[[N]], %{{.*}} : i32
// CHECK: scf.if
// CHECK: tensor.extract %{{.*}} : tensor<16x4x64xf16>
// CHECK: else
// CHECK: tensor.extract %arg0[
func.func @rows(%x: tensor<512x4x64xf16>, %i: tensor<16x1xi64>, %u: tensor<16x1x4x64xf16>) -> tensor<512x4x64xf16> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(true) ins(%u, %i : tensor<16x1x4x64xf16>, tensor<16x1xi64>) outs(%x : tensor<512x4x64xf16>) {
  ^bb0(%new: f16, %old: f16):
    tm_tensor.yield %new : f16
  } -> tensor<512x4x64xf16>
  return %0 : tensor<512x4x64xf16>
}

// A row of ones along the first dimension, fixed, and data along the second: nothing but that row is searched.
// CHECK-LABEL: func.func @fixed
// CHECK: tensor.extract_slice %arg0[3, 0] [1, 9] [1, 1] : tensor<6x9xf32> to tensor<1x9xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<4xi64>) outs(%{{.*}} : tensor<9xi32>)
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : tensor<1x9xf32>)
// CHECK: tensor.insert_slice %{{.*}} into %arg0[3, 0] [1, 9] [1, 1] : tensor<1x9xf32> into tensor<6x9xf32>
func.func @fixed(%x: tensor<6x9xf32>, %i: tensor<4x1xi64>, %u: tensor<4xf32>) -> tensor<6x9xf32> {
  %three = arith.constant dense<3> : tensor<4x1xi64>
  %both = tensor.concat dim(1) %three, %i : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %both : tensor<4xf32>, tensor<4x2xi64>) outs(%x : tensor<6x9xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<6x9xf32>
  return %0 : tensor<6x9xf32>
}

// A dimension of the updates is one of the tensor: there is nothing to find along it, and the updates are read as they lie.
// CHECK-LABEL: func.func @digits
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<5x3xi64>, tensor<5x3xf32>) outs(%arg0 : tensor<5x9xf32>)
// CHECK: arith.addf
// CHECK: arith.select
func.func @digits(%x: tensor<5x9xf32>, %i: tensor<15x1xi64>, %u: tensor<15xf32>) -> tensor<5x9xf32> {
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<15x1xi64>
  %row = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<15x1xi64>) {
  ^bb0(%o: i64):
    %n = linalg.index 0 : index
    %own = arith.divsi %n, %c3 : index
    %r = arith.index_cast %own : index to i64
    linalg.yield %r : i64
  } -> tensor<15x1xi64>
  %both = tensor.concat dim(1) %row, %i : (tensor<15x1xi64>, tensor<15x1xi64>) -> tensor<15x2xi64>
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %both : tensor<15xf32>, tensor<15x2xi64>) outs(%x : tensor<5x9xf32>) {
  ^bb0(%new: f32, %old: f32):
    %sum = arith.addf %old, %new : f32
    tm_tensor.yield %sum : f32
  } -> tensor<5x9xf32>
  return %0 : tensor<5x9xf32>
}

// Many updates that are added up: their order by the row that they are of, the first of each row, and a loop over a row's own; 16-bit floats in f32.
// CHECK-LABEL: func.func @sums
// CHECK: linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<40xi32>, tensor<40xi32>) outs(%{{.*}} : tensor<40xi32>)
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : tensor<10xi32>)
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c6
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : tensor<9x5xf32>)
// CHECK: %[[FROM:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[TO:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step
// CHECK: arith.extf
// CHECK: arith.addf %{{.*}} : f32
// CHECK: axe.cast %{{.*}} : tensor<9x5xf32> -> tensor<9x5xf16>
func.func @sums(%x: tensor<9x5xf16>, %i: tensor<40x1xi64>, %u: tensor<40x5xf16>) -> tensor<9x5xf16> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<40x5xf16>, tensor<40x1xi64>) outs(%x : tensor<9x5xf16>) {
  ^bb0(%new: f16, %old: f16):
    %sum = arith.addf %old, %new : f16
    tm_tensor.yield %sum : f16
  } -> tensor<9x5xf16>
  return %0 : tensor<9x5xf16>
}

// Of many elements and updates, the updates are put in order first, too.
// CHECK-LABEL: func.func @long
// CHECK: linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<300xi32>, tensor<300xi32>)
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : tensor<100001xi32>)
// CHECK: scf.if
func.func @long(%x: tensor<100000xf32>, %i: tensor<300x1xi32>, %u: tensor<300xf32>) -> tensor<100000xf32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<300xf32>, tensor<300x1xi32>) outs(%x : tensor<100000xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<100000xf32>
  return %0 : tensor<100000xf32>
}

// One place of a cache: nothing is counted, the place is compared with each element's own.
// CHECK-LABEL: func.func @place
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%{{.*}} : tensor<i64>) outs(%{{.*}} : tensor<33xi32>)
// CHECK-NOT: reduction
func.func @place(%x: tensor<4x33xf16>, %i: tensor<1xi64>, %u: tensor<4xf16>) -> tensor<4x33xf16> {
  %e = tensor.empty() : tensor<4xi64>
  %own = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<4xi64>) {
  ^bb0(%o: i64):
    %n = linalg.index 0 : index
    %r = arith.index_cast %n : index to i64
    linalg.yield %r : i64
  } -> tensor<4xi64>
  %all = linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<1xi64>) outs(%e : tensor<4xi64>) {
  ^bb0(%in: i64, %o: i64):
    linalg.yield %in : i64
  } -> tensor<4xi64>
  %a = tensor.expand_shape %own [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
  %b = tensor.expand_shape %all [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
  %both = tensor.concat dim(1) %a, %b : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(true) ins(%u, %both : tensor<4xf16>, tensor<4x2xi64>) outs(%x : tensor<4x33xf16>) {
  ^bb0(%new: f16, %old: f16):
    tm_tensor.yield %new : f16
  } -> tensor<4x33xf16>
  return %0 : tensor<4x33xf16>
}

// Columns of parts whose width is not known are read of the whole.
// CHECK-LABEL: func.func @width
// CHECK: %[[BOTH:.*]] = tensor.concat dim(1) %{{.*}}, %{{.*}} : (tensor<4x?xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
// CHECK: tensor.extract %[[BOTH]][
func.func @width(%x: tensor<6x9xf32>, %i: tensor<4x?xi64>, %j: tensor<4x1xi64>, %u: tensor<4xf32>) -> tensor<6x9xf32> {
  %both = tensor.concat dim(1) %i, %j : (tensor<4x?xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %both : tensor<4xf32>, tensor<4x2xi64>) outs(%x : tensor<6x9xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<6x9xf32>
  return %0 : tensor<6x9xf32>
}

// CHECK-LABEL: func.func @old
// CHECK-NEXT: return %arg0
func.func @old(%x: tensor<6xf32>, %i: tensor<4x1xi64>, %u: tensor<4xf32>) -> tensor<6xf32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4xf32>, tensor<4x1xi64>) outs(%x : tensor<6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %old : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
