// Loads of which a `select` takes no element are not made, where its condition is computed.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=nvvm" --split-input-file | FileCheck %s

// A triangle: each vector is loaded where one of its elements is in it.
// CHECK-LABEL: llvm.func @lower_0_map
// CHECK: llvm.or
// CHECK: llvm.cond_br
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.cond_br
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.return
func.func @lower(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<512xi64>
  %row = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%rows : tensor<512xi64>) {
  ^bb0(%o: i64):
    %at = linalg.index 0 : index
    %r = arith.index_cast %at : index to i64
    linalg.yield %r : i64
  } -> tensor<512xi64>
  %columns = tensor.empty() : tensor<1024xi64>
  %column = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%columns : tensor<1024xi64>) {
  ^bb0(%o: i64):
    %at = linalg.index 0 : index
    %r = arith.index_cast %at : index to i64
    linalg.yield %r : i64
  } -> tensor<1024xi64>
  %i = axe.broadcast %row dims [1] : tensor<512xi64> -> tensor<512x1024xi64>
  %j = axe.broadcast %column dims [0] : tensor<1024xi64> -> tensor<512x1024xi64>
  %c = axe.map ins(%j, %i : tensor<512x1024xi64>, tensor<512x1024xi64>) -> tensor<512x1024xi1> {
  ^bb0(%u: i64, %v: i64):
    %r = arith.cmpi sle, %u, %v : i64
    axe.yield %r : i1
  }
  %y = axe.map ins(%c, %x : tensor<512x1024xi1>, tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  ^bb0(%u: i1, %v: f32):
    %r = arith.select %u, %v, %zero : f32
    axe.yield %r : f32
  }
  return %y : tensor<512x1024xf32>
}

// -----

// A condition that is loaded would have to be waited for.
// CHECK-LABEL: llvm.func @loaded_0_map
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.return
func.func @loaded(%x: tensor<512x1024xf32>, %z: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %c = axe.map ins(%z : tensor<512x1024xf32>) -> tensor<512x1024xi1> {
  ^bb0(%u: f32):
    %r = arith.cmpf ogt, %u, %zero : f32
    axe.yield %r : i1
  }
  %y = axe.map ins(%c, %x : tensor<512x1024xi1>, tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  ^bb0(%u: i1, %v: f32):
    %r = arith.select %u, %v, %zero : f32
    axe.yield %r : f32
  }
  return %y : tensor<512x1024xf32>
}

// -----

// What something else reads too is loaded.
// CHECK-LABEL: llvm.func @both_0_map
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.return
func.func @both(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %rows = tensor.empty() : tensor<512xi64>
  %row = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%rows : tensor<512xi64>) {
  ^bb0(%o: i64):
    %at = linalg.index 0 : index
    %r = arith.index_cast %at : index to i64
    linalg.yield %r : i64
  } -> tensor<512xi64>
  %columns = tensor.empty() : tensor<1024xi64>
  %column = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%columns : tensor<1024xi64>) {
  ^bb0(%o: i64):
    %at = linalg.index 0 : index
    %r = arith.index_cast %at : index to i64
    linalg.yield %r : i64
  } -> tensor<1024xi64>
  %i = axe.broadcast %row dims [1] : tensor<512xi64> -> tensor<512x1024xi64>
  %j = axe.broadcast %column dims [0] : tensor<1024xi64> -> tensor<512x1024xi64>
  %c = axe.map ins(%j, %i : tensor<512x1024xi64>, tensor<512x1024xi64>) -> tensor<512x1024xi1> {
  ^bb0(%u: i64, %v: i64):
    %r = arith.cmpi sle, %u, %v : i64
    axe.yield %r : i1
  }
  %y = axe.map ins(%c, %x : tensor<512x1024xi1>, tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  ^bb0(%u: i1, %v: f32):
    %d = arith.addf %v, %v : f32
    %r = arith.select %u, %v, %d : f32
    axe.yield %r : f32
  }
  return %y : tensor<512x1024xf32>
}
