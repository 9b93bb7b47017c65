// RUN: axe-opt --convert-linalg-to-axe --split-input-file %s | FileCheck %s

// A vector is a matrix with an extent of 1, and an initial value is the accumulator.
// CHECK-LABEL: @vecmat
// CHECK: %[[V:.*]] = tensor.expand_shape %arg0 {{\[}}[0, 1]] output_shape [1, 64]
// CHECK: %[[C:.*]] = tensor.expand_shape %arg2 {{\[}}[0, 1]] output_shape [1, 32]
// CHECK: %[[D:.*]] = axe.gemm %[[V]], %arg1 acc %[[C]] : tensor<1x32xf32> : tensor<1x64xf16>, tensor<64x32xf16> -> tensor<1x32xf32>
// CHECK: tensor.collapse_shape %[[D]]
func.func @vecmat(%v: tensor<64xf16>, %m: tensor<64x32xf16>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %0 = linalg.vecmat ins(%v, %m : tensor<64xf16>, tensor<64x32xf16>) outs(%o : tensor<32xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// -----

// Several row dimensions become one; the f16-accumulating form accumulates in f32.
#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (n, k)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
// CHECK-LABEL: @linear_of_three_dimensions
// CHECK-SAME: (%[[X:.*]]: tensor<?x16x64xbf16>, %[[W:.*]]: tensor<32x64xbf16>, %[[M:.*]]: index)
// CHECK: %[[A:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]]
// CHECK: %[[D:.*]] = axe.gemm %[[A]], %[[W]] {trans_b} : tensor<?x64xbf16>, tensor<32x64xbf16> -> tensor<?x32xf32>
// CHECK: %[[E:.*]] = tensor.expand_shape %[[D]] {{\[}}[0, 1], [2]] output_shape [%[[M]], 16, 32]
// CHECK: axe.cast %[[E]] : tensor<?x16x32xf32> -> tensor<?x16x32xbf16>
func.func @linear_of_three_dimensions(%x: tensor<?x16x64xbf16>, %w: tensor<32x64xbf16>, %m: index) -> tensor<?x16x32xbf16> {
  %z = arith.constant 0.0 : bf16
  %e = tensor.empty(%m) : tensor<?x16x32xbf16>
  %f = linalg.fill ins(%z : bf16) outs(%e : tensor<?x16x32xbf16>) -> tensor<?x16x32xbf16>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x16x64xbf16>, tensor<32x64xbf16>) outs(%f : tensor<?x16x32xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %p = arith.mulf %a, %b : bf16
    %s = arith.addf %p, %c : bf16
    linalg.yield %s : bf16
  } -> tensor<?x16x32xbf16>
  return %0 : tensor<?x16x32xbf16>
}

// -----

// The transpose of a product is the product of the transposes in the other order.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (n, m)>
// CHECK-LABEL: @transposed_result
// CHECK: axe.gemm %arg1, %arg0 acc %arg2 : tensor<32x16xf32> {trans_a, trans_b} : tensor<64x32xf16>, tensor<16x64xf16> -> tensor<32x16xf32>
func.func @transposed_result(%x: tensor<16x64xf16>, %w: tensor<64x32xf16>, %o: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x64xf16>, tensor<64x32xf16>) outs(%o : tensor<32x16xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %d = arith.extf %a : f16 to f32
    %e = arith.extf %b : f16 to f32
    %p = arith.mulf %d, %e : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

// Factors of different types do not fold their casts.
// CHECK-LABEL: @mixed_factors
// CHECK: %[[A:.*]] = axe.cast %arg0 : tensor<16x64xf16> -> tensor<16x64xf32>
// CHECK: axe.gemm %[[A]], %arg1 acc %arg2 : tensor<16x32xf32> {trans_b} : tensor<16x64xf32>, tensor<32x64xf32> -> tensor<16x32xf32>
func.func @mixed_factors(%x: tensor<16x64xf16>, %w: tensor<32x64xf32>, %o: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<16x64xf16>, tensor<32x64xf32>) outs(%o : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

// CHECK-LABEL: @named
// CHECK: %[[B:.*]] = axe.broadcast %arg1 dims [0] : tensor<64xf32> -> tensor<16x64xf32>
// CHECK: %[[A:.*]] = axe.map ins(%arg0, %[[B]] : tensor<16x64xf32>, tensor<16x64xf32>)
// CHECK: arith.addf
// CHECK: %[[Q:.*]] = axe.map ins(%[[A]] : tensor<16x64xf32>)
// CHECK: math.exp
// CHECK: %[[S:.*]] = axe.reduce <add> %[[Q]] dims [1] : tensor<16x64xf32> -> tensor<16xf32>
// CHECK: axe.map ins(%[[S]], %arg3 : tensor<16xf32>, tensor<16xf32>)
// CHECK: axe.transpose %[[Q]] [1, 0] : tensor<16x64xf32> -> tensor<64x16xf32>
func.func @named(%x: tensor<16x64xf32>, %v: tensor<64xf32>, %e: tensor<16x64xf32>, %r: tensor<16xf32>,
                 %t: tensor<64x16xf32>) -> (tensor<16x64xf32>, tensor<16xf32>, tensor<64x16xf32>) {
  %b = linalg.broadcast ins(%v : tensor<64xf32>) outs(%e : tensor<16x64xf32>) dimensions = [0]
  %a = linalg.add ins(%x, %b : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %q = linalg.map { math.exp } ins(%a : tensor<16x64xf32>) outs(%e : tensor<16x64xf32>)
  %s = linalg.reduce { arith.addf } ins(%q : tensor<16x64xf32>) outs(%r : tensor<16xf32>) dimensions = [1]
  %u = linalg.transpose ins(%q : tensor<16x64xf32>) outs(%t : tensor<64x16xf32>) permutation = [1, 0]
  return %q, %s, %u : tensor<16x64xf32>, tensor<16xf32>, tensor<64x16xf32>
}

// -----

// A reduction that keeps its dimension drops it, and its reader broadcasts what was reduced.
#i = affine_map<(i, j) -> (i, j)>
#k = affine_map<(i, j) -> (i, 0)>
// CHECK-LABEL: @keep_dimension
// CHECK: %[[R:.*]] = axe.reduce <max> %arg0 dims [1] : tensor<?x8xf32> -> tensor<?xf32>
// CHECK-NOT: tensor.
// CHECK: %[[B:.*]] = axe.broadcast %[[R]] dims [1] : tensor<?xf32> -> tensor<?x8xf32>
// CHECK: axe.map ins(%arg0, %[[B]] : tensor<?x8xf32>, tensor<?x8xf32>)
func.func @keep_dimension(%x: tensor<?x8xf32>, %m: index) -> tensor<?x8xf32> {
  %z = arith.constant 0xFF800000 : f32
  %e = tensor.empty(%m) : tensor<?x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x1xf32>) -> tensor<?x1xf32>
  %r = linalg.generic {indexing_maps = [#i, #k], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8xf32>) outs(%f : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %o = tensor.empty(%m) : tensor<?x8xf32>
  %0 = linalg.generic {indexing_maps = [#i, #k, #i], iterator_types = ["parallel", "parallel"]} ins(%x, %r : tensor<?x8xf32>, tensor<?x1xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A transposed operand, a scalar one, a read initial value.
#i = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j, i)>
#k = affine_map<(i, j) -> ()>
// CHECK-LABEL: @operands
// CHECK: %[[T:.*]] = axe.transpose %arg1 [1, 0] : tensor<8x?xf32> -> tensor<?x8xf32>
// CHECK: axe.map ins(%arg0, %[[T]], %arg3 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK: %[[Q:.*]] = arith.addf %[[P]], %arg2
// CHECK: arith.addf %[[Q]], %[[C]]
func.func @operands(%x: tensor<?x8xf32>, %y: tensor<8x?xf32>, %s: f32, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = linalg.generic {indexing_maps = [#i, #j, #k, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %s : tensor<?x8xf32>, tensor<8x?xf32>, f32) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %c : f32
    %r = arith.addf %q, %d : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// An einsum, as torch-mlir writes it (`ij,kj->ik`): dimensions of extent 1 are moved along, and the product is one of a batch. Of the transposes one is the
// product's, and the other is none.
// CHECK-LABEL: @einsum
// CHECK-NOT: axe.transpose
// CHECK: axe.gemm %arg0, %arg1 {trans_b} : tensor<16x64xf16>, tensor<32x64xf16> -> tensor<16x32xf32>
// CHECK-NOT: axe.transpose
// CHECK: return
func.func @einsum(%x: tensor<16x64xf16>, %w: tensor<32x64xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %w1 = tensor.expand_shape %w [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xf16> into tensor<32x64x1xf16>
  %x1 = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, 16, 64] : tensor<16x64xf16> into tensor<1x16x64xf16>
  %te = tensor.empty() : tensor<64x32x1xf16>
  %t = linalg.transpose ins(%w1 : tensor<32x64x1xf16>) outs(%te : tensor<64x32x1xf16>) permutation = [1, 0, 2]
  %t2 = tensor.collapse_shape %t [[0], [1, 2]] : tensor<64x32x1xf16> into tensor<64x32xf16>
  %t3 = tensor.expand_shape %t2 [[0, 1], [2]] output_shape [1, 64, 32] : tensor<64x32xf16> into tensor<1x64x32xf16>
  %pe = tensor.empty() : tensor<1x16x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%pe : tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  %p = linalg.batch_matmul ins(%x1, %t3 : tensor<1x16x64xf16>, tensor<1x64x32xf16>) outs(%z : tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  %p2 = tensor.collapse_shape %p [[0, 1], [2]] : tensor<1x16x32xf32> into tensor<16x32xf32>
  %p3 = tensor.expand_shape %p2 [[0], [1, 2]] output_shape [16, 1, 32] : tensor<16x32xf32> into tensor<16x1x32xf32>
  %ue = tensor.empty() : tensor<16x32x1xf32>
  %u = linalg.transpose ins(%p3 : tensor<16x1x32xf32>) outs(%ue : tensor<16x32x1xf32>) permutation = [0, 2, 1]
  %y = tensor.collapse_shape %u [[0], [1, 2]] : tensor<16x32x1xf32> into tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// Two dimensions become a batch in front of a product whose first factor was transposed among dimensions of extent 1 (`bhsd,bhse->bhde`).
// CHECK-LABEL: @einsum_of_heads
// CHECK-NOT: axe.transpose
// CHECK: axe.gemm %{{.*}}, %{{.*}} {trans_a} : tensor<6x16x8xf16>, tensor<6x16x8xf16> -> tensor<6x8x8xf32>
func.func @einsum_of_heads(%k: tensor<2x3x16x8xf16>, %v: tensor<2x3x16x8xf16>) -> tensor<6x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %k1 = tensor.expand_shape %k [[0], [1], [2], [3, 4]] output_shape [2, 3, 16, 8, 1] : tensor<2x3x16x8xf16> into tensor<2x3x16x8x1xf16>
  %te = tensor.empty() : tensor<2x3x8x16x1xf16>
  %t = linalg.transpose ins(%k1 : tensor<2x3x16x8x1xf16>) outs(%te : tensor<2x3x8x16x1xf16>) permutation = [0, 1, 3, 2, 4]
  %t2 = tensor.collapse_shape %t [[0, 1], [2], [3, 4]] : tensor<2x3x8x16x1xf16> into tensor<6x8x16xf16>
  %v2 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x3x16x8xf16> into tensor<6x16x8xf16>
  %pe = tensor.empty() : tensor<6x8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%pe : tensor<6x8x8xf32>) -> tensor<6x8x8xf32>
  %p = linalg.batch_matmul ins(%t2, %v2 : tensor<6x8x16xf16>, tensor<6x16x8xf16>) outs(%z : tensor<6x8x8xf32>) -> tensor<6x8x8xf32>
  return %p : tensor<6x8x8xf32>
}

// -----

// A batch of one that is added to something keeps its batch.
// CHECK-LABEL: @accumulated
// CHECK: axe.gemm %arg0, %arg1 acc %arg2 : tensor<1x16x32xf32> : tensor<1x16x64xf16>, tensor<1x64x32xf16> -> tensor<1x16x32xf32>
func.func @accumulated(%x: tensor<1x16x64xf16>, %w: tensor<1x64x32xf16>, %o: tensor<1x16x32xf32>) -> tensor<1x16x32xf32> {
  %p = linalg.batch_matmul ins(%x, %w : tensor<1x16x64xf16>, tensor<1x64x32xf16>) outs(%o : tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  return %p : tensor<1x16x32xf32>
}

// -----

// Products of vectors, each with one of its own, are a reduction of rows; one of them alone is a product.
// CHECK-LABEL: @dots
// CHECK-NOT: axe.gemm
// CHECK: %[[P:.*]] = axe.map ins(%{{.*}}, %{{.*}} : tensor<50x70xf32>, tensor<50x70xf32>)
// CHECK: axe.reduce <add> %[[P]] dims [1] : tensor<50x70xf32> -> tensor<50xf32>
// CHECK-LABEL: @dot
// CHECK: axe.gemm
func.func @dots(%a: tensor<50x1x70xf16>, %b: tensor<50x70x1xf16>) -> tensor<50x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<50x1x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%pe : tensor<50x1x1xf32>) -> tensor<50x1x1xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<50x1x70xf16>, tensor<50x70x1xf16>) outs(%z : tensor<50x1x1xf32>) -> tensor<50x1x1xf32>
  return %p : tensor<50x1x1xf32>
}
func.func @dot(%a: tensor<1x70xf16>, %b: tensor<70x1xf16>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<1x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%pe : tensor<1x1xf32>) -> tensor<1x1xf32>
  %p = linalg.matmul ins(%a, %b : tensor<1x70xf16>, tensor<70x1xf16>) outs(%z : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %p : tensor<1x1xf32>
}
