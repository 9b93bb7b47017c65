// Gathers that stay as they are: nothing is known of an index, or it is no sum of digits.
// RUN: axe-opt %s --axe-simplify-gathers --split-input-file -verify-diagnostics | FileCheck %s

// Two thirds of an index, rounded down, have no digits.
// CHECK-LABEL: func.func @uneven
// CHECK: linalg.generic
// CHECK: math.floor
// CHECK: tensor.extract
func.func @uneven(%x: tensor<4xf32>) -> tensor<6xf32> {
  %c = arith.constant 0.66666 : f32
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<6xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %g = arith.mulf %f, %c : f32
    %h = math.floor %g : f32
    %s = arith.fptosi %h : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

// The last indices are behind the tensor's end.
// CHECK-LABEL: func.func @outside
// CHECK: linalg.generic
// CHECK: math.floor
// CHECK: tensor.extract
func.func @outside(%x: tensor<3xf32>) -> tensor<8xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %g = arith.divf %f, %c : f32
    %h = math.floor %g : f32
    %s = arith.fptosi %h : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<3xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A quotient by zero is no integer.
// CHECK-LABEL: func.func @no_number
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.extract
func.func @no_number(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %g = arith.divf %f, %c : f32
    %s = arith.fptosi %g : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A narrow integer is another one.
// CHECK-LABEL: func.func @wraps
// CHECK: linalg.generic
// CHECK: arith.trunci
// CHECK: tensor.extract
func.func @wraps(%x: tensor<400xf32>) -> tensor<400xf32> {
  %e = tensor.empty() : tensor<400xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<400xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %g = arith.trunci %n : i64 to i8
    %s = arith.extui %g : i8 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<400xf32>
    linalg.yield %v : f32
  } -> tensor<400xf32>
  return %y : tensor<400xf32>
}

// -----

// Of f16 no roundings are known.
// CHECK-LABEL: func.func @narrow
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: tensor.extract
func.func @narrow(%x: tensor<8xf32>) -> tensor<16xf32> {
  %c = arith.constant 2.0 : f16
  %e = tensor.empty() : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<16xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f16
    %g = arith.divf %f, %c : f16
    %s = arith.fptosi %g : f16 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// Indices that are data.
// CHECK-LABEL: func.func @data
// CHECK: linalg.generic
// CHECK: arith.index_cast
// CHECK: tensor.extract
func.func @data(%x: tensor<8xf32>, %p: tensor<8xi64>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %t = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%t] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// More points than are evaluated.
// CHECK-LABEL: func.func @many
// CHECK: linalg.generic
// CHECK: math.floor
// CHECK: tensor.extract
func.func @many(%x: tensor<140000xf32>) -> tensor<280000xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<280000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<280000xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %g = arith.divf %f, %c : f32
    %h = math.floor %g : f32
    %s = arith.fptosi %h : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<140000xf32>
    linalg.yield %v : f32
  } -> tensor<280000xf32>
  return %y : tensor<280000xf32>
}

// -----

// Extents that are known at run time only.
// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.generic
// CHECK: math.floor
// CHECK: tensor.extract
func.func @dynamic(%x: tensor<?xf32>, %d: index) -> tensor<?xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty(%d) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %g = arith.divf %f, %c : f32
    %h = math.floor %g : f32
    %s = arith.fptosi %h : f32 to i64
    %t = arith.index_cast %s : i64 to index
    %v = tensor.extract %x[%t] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A resource that is not in the module.
// CHECK-LABEL: func.func @lost
// CHECK: linalg.generic
// CHECK: arith.index_cast
// CHECK: tensor.extract
func.func @lost(%x: tensor<8xf32>) -> tensor<8xf32> {
  %p = arith.constant dense_resource<lost> : tensor<8xi64>
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %t = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%t] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Indices that are integers of loops already.
// CHECK-LABEL: func.func @plain
// CHECK: linalg.generic
// CHECK: arith.muli
// CHECK: tensor.extract
func.func @plain(%x: tensor<16xf32>) -> tensor<8xf32> {
  %c = arith.constant 2 : index
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %t = arith.muli %i, %c : index
    %v = tensor.extract %x[%t] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Constants that are no integers of a known width are no indices.
// CHECK-LABEL: func.func @floats
// CHECK: ins(%{{.*}} : tensor<2xf32>)
// CHECK: tensor.extract
func.func @floats(%x: tensor<4xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%c : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.fptosi %a : f32 to i64
    %t = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%t] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %y : tensor<2xf32>
}
