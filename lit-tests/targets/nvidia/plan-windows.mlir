// RUN: axe-opt %s --convert-linalg-to-axe=for-kernels --axe-generalize --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --convert-linalg-to-axe=for-kernels --axe-generalize --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules --split-input-file | FileCheck %s --check-prefix=PLAN

// A window of two elements is reduced in the body, where the padding in front of it and the quotient behind it are too.
// CHECK-LABEL: func.func @window
// CHECK: axe.launch @window_0_loops
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @window_0_loops(%[[X:.*]]: memref<4x14xf32>, %[[Y:.*]]: memref<4x8xf32>)
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK-COUNT-2: arith.addf
// CHECK: arith.divf
// PLAN-LABEL: func.func @window
// PLAN: axe.kernel @window_0_loops
// PLAN: vector = 4 : i64
func.func @window(%x: tensor<4x14xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %p = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x14xf32> to tensor<4x16xf32>
  %w = tensor.empty() : tensor<2xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j * 2 + k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %w : tensor<4x16xf32>, tensor<2xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %unused: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.divf %a, %two : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %q : tensor<4x8xf32>
}

// -----

// What is computed for each element of overlapping windows is computed once, by a kernel of its own.
// CHECK-LABEL: func.func @once
// CHECK: axe.launch @once_0_map
// CHECK: axe.launch @once_1_loops
func.func @once(%x: tensor<4x21xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %h = tensor.empty() : tensor<4x21xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x21xf32>) outs(%h : tensor<4x21xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4x21xf32>
  %w = tensor.empty() : tensor<6xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j + k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%g, %w : tensor<4x21xf32>, tensor<6xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%a: f32, %unused: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  return %s : tensor<4x16xf32>
}

// -----

// Slices read through a transpose of whole rows, and through reshapes.
// CHECK-LABEL: func.func @split
// CHECK-COUNT-2: axe.launch @split_{{[01]}}_loops
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @split_0_loops(%{{.*}}: memref<3x{{.*}}xf32>, %{{.*}}: memref<1x3x8xf32>)
func.func @split(%x: tensor<3x16xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %v = tensor.expand_shape %x [[0], [1, 2]] output_shape [3, 2, 8] : tensor<3x16xf32> into tensor<3x2x8xf32>
  %e = tensor.empty() : tensor<2x3x8xf32>
  %t = linalg.transpose ins(%v : tensor<3x2x8xf32>) outs(%e : tensor<2x3x8xf32>) permutation = [1, 0, 2]
  %a = tensor.extract_slice %t[0, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<2x3x8xf32> to tensor<1x3x8xf32>
  %b = tensor.extract_slice %t[1, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<2x3x8xf32> to tensor<1x3x8xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<1x3x8xf32> into tensor<3x8xf32>
  %d = tensor.collapse_shape %b [[0, 1], [2]] : tensor<1x3x8xf32> into tensor<3x8xf32>
  return %c, %d : tensor<3x8xf32>, tensor<3x8xf32>
}
