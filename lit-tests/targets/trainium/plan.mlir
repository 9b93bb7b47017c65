// From linalg to kernels of the trn dialect: a product with bias and relu, a softmax, an elementwise chain, a transpose, a
// reduction in the middle. compile.test compares such kernels with the CPU target.
// RUN: axe-opt %s --axe-trainium="target=trn1" -split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-trainium="target=trn2" -split-input-file | FileCheck %s --check-prefix=TRN2
// RUN: axe-opt %s --axe-trainium="chip=trn1 until=logical" -split-input-file | FileCheck %s --check-prefix=LOGICAL

// CHECK-LABEL: func.func @linear
// CHECK: %[[E:.*]] = tensor.empty() : tensor<64x40xf32>
// CHECK: %[[R:.*]] = axe.launch @linear_0_gemm
// CHECK: return %[[R]]
// CHECK: trn.kernel @linear_0_gemm(%lhs: !trn.hbm<64x96xbf16>, %rhs: !trn.hbm<96x40xbf16>, %in0: !trn.hbm<40xf32>)
// CHECK-SAME: outs(%out0: !trn.hbm<64x40xf32>) chip("trn1")
// CHECK: trn.nc_transpose
// CHECK: trn.nc_matmul
// CHECK: trn.tensor_tensor %{{.*}}, add(
// CHECK: trn.activation %{{.*}}, relu(
// CHECK: trn.dma_copy %out0,
// TRN2: trn.dma_transpose
// TRN2: trn.nc_matmul
// LOGICAL: axe.gemm
// LOGICAL-NOT: trn.
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @linear(%x: tensor<64x96xbf16>, %w: tensor<96x40xbf16>, %bias: tensor<40xf32>) -> tensor<64x40xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x40xf32>) -> tensor<64x40xf32>
  %sums = linalg.matmul ins(%x, %w : tensor<64x96xbf16>, tensor<96x40xbf16>) outs(%start : tensor<64x40xf32>) -> tensor<64x40xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %bias : tensor<64x40xf32>, tensor<40xf32>) outs(%empty : tensor<64x40xf32>) {
  ^bb0(%s: f32, %b: f32, %o: f32):
    %sum = arith.addf %s, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<64x40xf32>
  return %y : tensor<64x40xf32>
}

// -----

// The exponential has the maximum as its bias, and sums up its results: one instruction.
// CHECK-LABEL: trn.kernel @softmax_0_rows
// CHECK: trn.tensor_reduce %[[MAX:[a-z0-9_]+]], maximum(%[[X:[a-z0-9_]+]]) axes 1
// CHECK: trn.tensor_scalar %[[NEGATED:[a-z0-9_]+]], %[[MAX]] multiply(-1
// CHECK: trn.activation %[[EXP:[a-z0-9_]+]], exp(%[[X]]) bias(%[[NEGATED]] {{.*}}) registers(reset_reduce) into(%[[SUM:[a-z0-9_]+]] :
// CHECK: trn.reciprocal %[[INVERSE:[a-z0-9_]+]], %[[SUM]]
// CHECK: trn.tensor_scalar %{{.*}}, %[[EXP]] multiply(%[[INVERSE]]
func.func @softmax(%x: tensor<128x1000xf32>) -> tensor<128x1000xf32> {
  %max = axe.reduce <max> %x dims [1] : tensor<128x1000xf32> -> tensor<128xf32>
  %wide = axe.broadcast %max dims [1] : tensor<128xf32> -> tensor<128x1000xf32>
  %exp = axe.map ins(%x, %wide : tensor<128x1000xf32>, tensor<128x1000xf32>) -> tensor<128x1000xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %sum = axe.reduce <add> %exp dims [1] : tensor<128x1000xf32> -> tensor<128xf32>
  %all = axe.broadcast %sum dims [1] : tensor<128xf32> -> tensor<128x1000xf32>
  %y = axe.map ins(%exp, %all : tensor<128x1000xf32>, tensor<128x1000xf32>) -> tensor<128x1000xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  return %y : tensor<128x1000xf32>
}

// -----

// CHECK-LABEL: trn.kernel @silu_0_map
// CHECK: trn.activation %{{.*}}, silu(
// CHECK-NOT: trn.activation
func.func @silu(%x: tensor<96x40xf16>) -> tensor<96x40xf16> {
  %one = arith.constant 1.0 : f32
  %y = axe.map ins(%x : tensor<96x40xf16>) -> tensor<96x40xf16> {
  ^bb0(%a: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.negf %0 : f32
    %2 = math.exp %1 : f32
    %3 = arith.addf %2, %one : f32
    %4 = arith.divf %0, %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    axe.yield %5 : f16
  }
  return %y : tensor<96x40xf16>
}

// -----

// CHECK-LABEL: trn.kernel @columns_0_move
// CHECK: trn.view %in0[0, 0] sizes [40, 96] dims [1, 0]
// CHECK: trn.dma_copy %out0,
// CHECK-LABEL: trn.kernel @columns_1_rows
// CHECK: trn.tensor_reduce
func.func @columns(%x: tensor<96x40xf32>) -> tensor<40xf32> {
  %sum = axe.reduce <add> %x dims [0] : tensor<96x40xf32> -> tensor<40xf32>
  return %sum : tensor<40xf32>
}
