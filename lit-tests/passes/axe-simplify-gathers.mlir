// RUN: axe-opt %s --axe-simplify-gathers --split-input-file | FileCheck %s

// Nearest upsampling as torch exports it: indices are halved.
// CHECK-LABEL: func.func @upsampled
// CHECK-SAME: (%[[X:.*]]: tensor<3x8xf16>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<3x16xf16>)
// CHECK-DAG: %[[I:.*]] = linalg.index 0
// CHECK-DAG: %[[J:.*]] = linalg.index 1
// CHECK-DAG: %[[H:.*]] = arith.divui %[[J]], %{{.*}} : index
// CHECK: %[[E:.*]] = tensor.extract %[[X]][%[[I]], %[[H]]]
// CHECK-NEXT: linalg.yield %[[E]]
func.func @upsampled(%x: tensor<3x8xf16>) -> tensor<3x16xf16> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %last = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<3x16xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<3x16xf16>) {
  ^bb0(%o: f16):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %f = arith.sitofp %n : i64 to f32
    %h = arith.divf %f, %two : f32
    %w = math.floor %h : f32
    %a = arith.maximumf %w, %zero : f32
    %b = arith.minimumf %a, %last : f32
    %s = arith.fptosi %b : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%i, %t] : tensor<3x8xf16>
    linalg.yield %v : f16
  } -> tensor<3x16xf16>
  return %y : tensor<3x16xf16>
}

// -----

// By tensors of constants, in the order in which the elements lie: group normalisation's scales. Negative indices count from the end.
// CHECK-LABEL: func.func @ordered
// CHECK-SAME: (%[[X:.*]]: tensor<2x2x3x1xf32>)
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0], [1, 2, 3]]
// CHECK: return %[[Y]]
func.func @ordered(%x: tensor<2x2x3x1xf32>) -> tensor<2x6xf32> {
  %n = arith.constant dense<[[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]> : tensor<2x6xi64>
  %a = arith.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi64>
  %b = arith.constant dense_resource<places> : tensor<6xi64>
  %c0 = arith.constant 0 : i64
  %c3 = arith.constant 3 : i64
  %z = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%n, %a, %b : tensor<2x6xi64>, tensor<6xi64>, tensor<6xi64>) outs(%e : tensor<2x6xf32>) {
  ^bb0(%p: i64, %q: i64, %r: i64, %o: f32):
    %i = arith.index_cast %p : i64 to index
    %j = arith.index_cast %q : i64 to index
    %l = arith.cmpi slt, %r, %c0 : i64
    %m = arith.addi %r, %c3 : i64
    %s = arith.select %l, %m, %r : i64
    %k = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%i, %j, %k, %z] : tensor<2x2x3x1xf32>
    linalg.yield %v : f32
  } -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

{-#
  dialect_resources: {
    builtin: {
      places: "0x080000000000000000000000FEFFFFFFFFFFFFFF02000000000000000000000000000000FEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
    }
  }
#-}

// -----

// By a constant that is no order but has digits: each third element twice.
// CHECK-LABEL: func.func @digits
// CHECK-SAME: (%[[X:.*]]: tensor<12xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK-DAG: %[[I:.*]] = linalg.index 0
// CHECK-DAG: %[[H:.*]] = arith.divui %[[I]], %[[TWO:.*]] : index
// CHECK-DAG: %[[T:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK: tensor.extract %[[X]]
func.func @digits(%x: tensor<12xf32>) -> tensor<8xf32> {
  %p = arith.constant dense<[1, 1, 4, 4, 7, 7, 10, 10]> : tensor<8xi32>
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<8xi32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i32, %o: f32):
    %i = arith.index_cast %a : i32 to index
    %v = tensor.extract %x[%i] : tensor<12xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Integers of which f32 has no exact form are rounded once, not by way of f64: 2^54 + 2^30 + 1 is 2^54 + 2^31 in f32.
// CHECK-LABEL: func.func @rounded_once
// CHECK-NOT: arith.sitofp
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: tensor.extract %{{.*}}[%[[I]]]
func.func @rounded_once(%x: tensor<4xf32>) -> tensor<2xf32> {
  %far = arith.constant 18014399583223808 : i64
  %first = arith.constant 1.8014398509481984e16 : f32
  %by = arith.constant 2147483648.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<2xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %s = arith.addi %n, %far : i64
    %f = arith.sitofp %s : i64 to f32
    %d = arith.subf %f, %first : f32
    %q = arith.divf %d, %by : f32
    %p = arith.fptosi %q : f32 to i64
    %t = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%t] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %y : tensor<2xf32>
}
