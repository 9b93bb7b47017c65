// Some hundred long rows are a kernel of rows: CTAs of clusters have parts of them, or all of a CTA's warps take turns.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// The place of the largest element: in clusters.
// CHECK-LABEL: func.func @largest
// CHECK: axe.launch @largest_0_rows
// CHECK-NOT: axe.launch
func.func @largest(%x: tensor<256x262144xf32>) -> tensor<256xi64> {
  %zero = arith.constant 0 : i64
  %least = arith.constant 0xFF800000 : f32
  %i = tensor.empty() : tensor<256xi64>
  %v = tensor.empty() : tensor<256xf32>
  %fi = linalg.fill ins(%zero : i64) outs(%i : tensor<256xi64>) -> tensor<256xi64>
  %fv = linalg.fill ins(%least : f32) outs(%v : tensor<256xf32>) -> tensor<256xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<256x262144xf32>) outs(%fv, %fi : tensor<256xf32>, tensor<256xi64>) {
  ^bb0(%a: f32, %m: f32, %at: i64):
    %index = linalg.index 1 : index
    %own = arith.index_cast %index : index to i64
    %max = arith.maximumf %a, %m : f32
    %above = arith.cmpf ogt, %a, %m : f32
    %place = arith.select %above, %own, %at : i64
    linalg.yield %max, %place : f32, i64
  } -> (tensor<256xf32>, tensor<256xi64>)
  return %r#1 : tensor<256xi64>
}

// A cross entropy of rows, whose maximum is used behind the sum below it, too: the sum is not cut into parts of rows that are one kernel's.
// CHECK-LABEL: func.func @entropy
// CHECK: axe.launch @entropy_0_rows
// CHECK-NOT: axe.launch
func.func @entropy(%x: tensor<256x262144xf32>, %y: tensor<256xi64>) -> tensor<256xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %v = tensor.empty() : tensor<256xf32>
  %e = tensor.empty() : tensor<256x262144xf32>
  %fv = linalg.fill ins(%least : f32) outs(%v : tensor<256xf32>) -> tensor<256xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<256x262144xf32>) outs(%fv : tensor<256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maximumf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<256xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<256x262144xf32>, tensor<256xf32>) outs(%e : tensor<256x262144xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<256x262144xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<256x262144xf32>) outs(%e : tensor<256x262144xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<256x262144xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%v : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<256x262144xf32>) outs(%fs : tensor<256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<256xf32>
  %g = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%s : tensor<256xf32>) outs(%v : tensor<256xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = math.log %a : f32
    linalg.yield %r : f32
  } -> tensor<256xf32>
  %t = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d, %g : tensor<256x262144xf32>, tensor<256xf32>) outs(%e : tensor<256x262144xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<256x262144xf32>
  %l = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%y : tensor<256xi64>) outs(%v : tensor<256xf32>) {
  ^bb0(%at: i64, %c: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %at : i64 to index
    %own = tensor.extract %t[%i, %j] : tensor<256x262144xf32>
    %r = arith.negf %own : f32
    linalg.yield %r : f32
  } -> tensor<256xf32>
  return %l : tensor<256xf32>
}

// A sum of all elements, of what rows are reduced to: the rows' kernel adds them up.
// CHECK-LABEL: func.func @all
// CHECK: axe.launch @all_0_rows {{.*}} outs(%{{.*}} : tensor<2048xf32>)
// CHECK: axe.launch @all_1_rows
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @largest_0_rows{{.*}} cluster(16, 1, 1)
// CHECK: axe.kernel @entropy_0_rows{{.*}} threads(512)
func.func @all(%x: tensor<2048x32000xf32>) -> tensor<f32> {
  %m = axe.reduce <max> %x dims [1] : tensor<2048x32000xf32> -> tensor<2048xf32>
  %mb = axe.broadcast %m dims [1] : tensor<2048xf32> -> tensor<2048x32000xf32>
  %e = axe.map ins(%x, %mb : tensor<2048x32000xf32>, tensor<2048x32000xf32>) -> tensor<2048x32000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [0, 1] : tensor<2048x32000xf32> -> tensor<f32>
  return %s : tensor<f32>
}
