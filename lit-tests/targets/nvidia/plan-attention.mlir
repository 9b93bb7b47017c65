// Attention in one kernel: one launch, of the function's own tensors.
// RUN: split-file %s %t
// RUN: axe-opt %t/torch.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=TORCH
// RUN: axe-opt %t/torch.mlir --axe-plan-kernels="target=sm_90a explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: axe-opt %t/grouped.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=GROUPED
// RUN: axe-opt %t/asked.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=ASKED

// Scores that scale both operands, the row's maximum, a guard of rows whose keys are all hidden, a result that is rounded.
// TORCH-LABEL: func.func @torch
// TORCH-NOT: axe.gemm
// TORCH: axe.launch @torch_0_attention grid({{.*}}) ins(%arg0, %arg1, %arg2, %arg3 : tensor<2x3x300x64xf16>, tensor<2x3x200x64xf16>, tensor<2x3x200x64xf16>, tensor<300x200xi1>) outs
// TORCH-NOT: axe.launch
// TORCH: axe.kernel @torch_0_attention
// Queries and keys lie as [6, rows, 64]; the mask has no batch.
// TORCH-DAG: axe.view %arg0 : memref<2x3x300x64xf16> to memref<6x300x64xf16
// TORCH-DAG: axe.view %arg3 : memref<300x200xi1> to memref<300x200xi1
// TORCH: axe.scope warpgroup [0, 1)
// TORCH: axe.scope warpgroup [1,
// TORCH: axe.gemm async {{.*}} {trans_b}
// TORCH: scf.for
// TORCH: axe.gemm async {{.*}} {trans_b}
// TORCH: axe.gemm async {{.*}} acc
// TORCH: axe.wait {{.*}} {pending = 1 : i64}
// TORCH: math.exp2 {{.*}} fastmath<afn>
// TORCH-NOT: axe.kernel

// EXPLAIN: plan @torch_0_attention: attention of 6 x 300 queries to 200 keys of 64, values of 64, of f16, masked by a tensor
// EXPLAIN-NEXT: from: cost model
// EXPLAIN-NEXT: clocks predicted {tile = array<i64: {{[0-9]+}}, {{[0-9]+}}, 64>, consumers = {{[123]}} : i64, stages = 2 : i64}

// Heads of keys and values are found by division, and [B, S, H, D] by strides: nothing is copied. A causal mask skips blocks.
// GROUPED-LABEL: func.func @grouped
// GROUPED: axe.launch @grouped_0_attention {{.*}} ins(%arg0, %arg1, %arg2 : tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) outs(%{{.*}} : tensor<1x256x4x64xbf16>)
// GROUPED-NOT: axe.launch
// GROUPED: axe.kernel
// GROUPED: axe.view %arg0 : memref<1x256x4x64xbf16> to memref<4x256x64xbf16, #axe.layout<S[(4, 256, 64) : (64, 256, 1)]>>
// GROUPED: axe.view %arg1 : memref<1x256x2x64xbf16> to memref<2x256x64xbf16, #axe.layout<S[(2, 256, 64) : (64, 128, 1)]>>
// GROUPED: axe.tile_at
// GROUPED: arith.minsi
// GROUPED: arith.divui %{{.*}}, %c2

// ASKED: axe.kernel @asked_0_attention{{.*}} threads(384)
// ASKED: axe.alloc : memref<3x96x128xf16

//--- torch.mlir
module {
  func.func @torch(%arg0: tensor<2x3x300x64xf16>, %arg1: tensor<2x3x200x64xf16>, %arg2: tensor<2x3x200x64xf16>, %arg3: tensor<300x200xi1>) -> tensor<2x3x300x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFFF0000000000000 : f64
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant 0.353553385 : f32
    %0 = axe.cast %arg0 : tensor<2x3x300x64xf16> -> tensor<2x3x300x64xf32>
    %1 = axe.cast %arg1 : tensor<2x3x200x64xf16> -> tensor<2x3x200x64xf32>
    %2 = axe.cast %arg2 : tensor<2x3x200x64xf16> -> tensor<2x3x200x64xf32>
    %3 = axe.map ins(%0 : tensor<2x3x300x64xf32>) -> tensor<2x3x300x64xf32> {
    ^bb0(%arg4: f32):
      %21 = arith.mulf %arg4, %cst_2 : f32
      axe.yield %21 : f32
    }
    %4 = axe.map ins(%1 : tensor<2x3x200x64xf32>) -> tensor<2x3x200x64xf32> {
    ^bb0(%arg4: f32):
      %21 = arith.mulf %arg4, %cst_2 : f32
      axe.yield %21 : f32
    }
    %collapsed = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x3x300x64xf32> into tensor<6x300x64xf32>
    %collapsed_3 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x3x200x64xf32> into tensor<6x200x64xf32>
    %5 = axe.gemm %collapsed, %collapsed_3 {trans_b} : tensor<6x300x64xf32>, tensor<6x200x64xf32> -> tensor<6x300x200xf32>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [2, 3, 300, 200] : tensor<6x300x200xf32> into tensor<2x3x300x200xf32>
    %6 = axe.broadcast %arg3 dims [0, 1] : tensor<300x200xi1> -> tensor<2x3x300x200xi1>
    %7 = axe.map ins(%expanded, %6 : tensor<2x3x300x200xf32>, tensor<2x3x300x200xi1>) -> tensor<2x3x300x200xf32> {
    ^bb0(%arg4: f32, %arg5: i1):
      %21 = arith.select %arg5, %arg4, %cst_1 : f32
      axe.yield %21 : f32
    }
    %8 = axe.reduce <max> %7 dims [3] : tensor<2x3x300x200xf32> -> tensor<2x3x300xf32>
    %9 = axe.broadcast %8 dims [3] : tensor<2x3x300xf32> -> tensor<2x3x300x200xf32>
    %10 = axe.map ins(%7, %9 : tensor<2x3x300x200xf32>, tensor<2x3x300x200xf32>) -> tensor<2x3x300x200xf32> {
    ^bb0(%arg4: f32, %arg5: f32):
      %21 = arith.subf %arg4, %arg5 : f32
      axe.yield %21 : f32
    }
    %11 = axe.map ins(%10 : tensor<2x3x300x200xf32>) -> tensor<2x3x300x200xf32> {
    ^bb0(%arg4: f32):
      %21 = math.exp %arg4 : f32
      axe.yield %21 : f32
    }
    %12 = axe.reduce <add> %11 dims [3] : tensor<2x3x300x200xf32> -> tensor<2x3x300xf32>
    %13 = axe.broadcast %12 dims [3] : tensor<2x3x300xf32> -> tensor<2x3x300x200xf32>
    %14 = axe.map ins(%11, %13 : tensor<2x3x300x200xf32>, tensor<2x3x300x200xf32>) -> tensor<2x3x300x200xf32> {
    ^bb0(%arg4: f32, %arg5: f32):
      %21 = arith.divf %arg4, %arg5 : f32
      axe.yield %21 : f32
    }
    %15 = axe.map ins(%7 : tensor<2x3x300x200xf32>) -> tensor<2x3x300x200xi1> {
    ^bb0(%arg4: f32):
      %21 = arith.extf %arg4 : f32 to f64
      %22 = arith.cmpf oeq, %21, %cst_0 : f64
      axe.yield %22 : i1
    }
    %16 = axe.reduce <and> %15 dims [3] : tensor<2x3x300x200xi1> -> tensor<2x3x300xi1>
    %17 = axe.broadcast %16 dims [3] : tensor<2x3x300xi1> -> tensor<2x3x300x200xi1>
    %18 = axe.map ins(%17, %14 : tensor<2x3x300x200xi1>, tensor<2x3x300x200xf32>) -> tensor<2x3x300x200xf32> {
    ^bb0(%arg4: i1, %arg5: f32):
      %21 = arith.select %arg4, %cst, %arg5 : f32
      axe.yield %21 : f32
    }
    %collapsed_4 = tensor.collapse_shape %18 [[0, 1], [2], [3]] : tensor<2x3x300x200xf32> into tensor<6x300x200xf32>
    %collapsed_5 = tensor.collapse_shape %2 [[0, 1], [2], [3]] : tensor<2x3x200x64xf32> into tensor<6x200x64xf32>
    %19 = axe.gemm %collapsed_4, %collapsed_5 : tensor<6x300x200xf32>, tensor<6x200x64xf32> -> tensor<6x300x64xf32>
    %expanded_6 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 3, 300, 64] : tensor<6x300x64xf32> into tensor<2x3x300x64xf32>
    %20 = axe.cast %expanded_6 : tensor<2x3x300x64xf32> -> tensor<2x3x300x64xf16>
    return %20 : tensor<2x3x300x64xf16>
  }
}


//--- grouped.mlir
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @grouped(%arg0: tensor<1x256x4x64xbf16>, %arg1: tensor<1x256x2x64xbf16>, %arg2: tensor<1x256x2x64xbf16>) -> tensor<1x256x4x64xbf16> {
    %cst = arith.constant 1.250000e-01 : bf16
    %cst_0 = arith.constant 0xFF800000 : f32
    %0 = axe.transpose %arg0 [0, 2, 1, 3] : tensor<1x256x4x64xbf16> -> tensor<1x4x256x64xbf16>
    %1 = axe.transpose %arg1 [0, 2, 1, 3] : tensor<1x256x2x64xbf16> -> tensor<1x2x256x64xbf16>
    %2 = axe.broadcast %1 dims [2] : tensor<1x2x256x64xbf16> -> tensor<1x2x2x256x64xbf16>
    %3 = axe.transpose %arg2 [0, 2, 1, 3] : tensor<1x256x2x64xbf16> -> tensor<1x2x256x64xbf16>
    %4 = axe.broadcast %3 dims [2] : tensor<1x2x256x64xbf16> -> tensor<1x2x2x256x64xbf16>
    %collapsed = tensor.collapse_shape %0 [[0, 1], [2], [3]] : tensor<1x4x256x64xbf16> into tensor<4x256x64xbf16>
    %collapsed_1 = tensor.collapse_shape %2 [[0, 1, 2], [3], [4]] : tensor<1x2x2x256x64xbf16> into tensor<4x256x64xbf16>
    %5 = axe.gemm %collapsed, %collapsed_1 {trans_b} : tensor<4x256x64xbf16>, tensor<4x256x64xbf16> -> tensor<4x256x256xf32>
    %6 = axe.cast %5 : tensor<4x256x256xf32> -> tensor<4x256x256xbf16>
    %expanded = tensor.expand_shape %6 [[0, 1], [2], [3]] output_shape [1, 4, 256, 256] : tensor<4x256x256xbf16> into tensor<1x4x256x256xbf16>
    %7 = axe.map ins(%expanded : tensor<1x4x256x256xbf16>) -> tensor<1x4x256x256xbf16> {
    ^bb0(%arg3: bf16):
      %22 = arith.mulf %arg3, %cst : bf16
      axe.yield %22 : bf16
    }
    %8 = axe.cast %7 : tensor<1x4x256x256xbf16> -> tensor<1x4x256x256xf32>
    %9 = tensor.empty() : tensor<1x4x256x256xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<1x4x256x256xf32>) outs(%9 : tensor<1x4x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %22 = linalg.index 2 : index
      %23 = linalg.index 3 : index
      %24 = arith.cmpi ule, %23, %22 : index
      %25 = arith.select %24, %in, %cst_0 : f32
      linalg.yield %25 : f32
    } -> tensor<1x4x256x256xf32>
    %11 = axe.reduce <max> %10 dims [3] : tensor<1x4x256x256xf32> -> tensor<1x4x256xf32>
    %12 = axe.broadcast %11 dims [3] : tensor<1x4x256xf32> -> tensor<1x4x256x256xf32>
    %13 = axe.map ins(%10, %12 : tensor<1x4x256x256xf32>, tensor<1x4x256x256xf32>) -> tensor<1x4x256x256xf32> {
    ^bb0(%arg3: f32, %arg4: f32):
      %22 = arith.subf %arg3, %arg4 : f32
      axe.yield %22 : f32
    }
    %14 = axe.map ins(%13 : tensor<1x4x256x256xf32>) -> tensor<1x4x256x256xf32> {
    ^bb0(%arg3: f32):
      %22 = math.exp %arg3 : f32
      axe.yield %22 : f32
    }
    %15 = axe.reduce <add> %14 dims [3] : tensor<1x4x256x256xf32> -> tensor<1x4x256xf32>
    %16 = axe.broadcast %15 dims [3] : tensor<1x4x256xf32> -> tensor<1x4x256x256xf32>
    %17 = axe.map ins(%14, %16 : tensor<1x4x256x256xf32>, tensor<1x4x256x256xf32>) -> tensor<1x4x256x256xf32> {
    ^bb0(%arg3: f32, %arg4: f32):
      %22 = arith.divf %arg3, %arg4 : f32
      axe.yield %22 : f32
    }
    %18 = axe.cast %17 : tensor<1x4x256x256xf32> -> tensor<1x4x256x256xbf16>
    %collapsed_2 = tensor.collapse_shape %18 [[0, 1], [2], [3]] : tensor<1x4x256x256xbf16> into tensor<4x256x256xbf16>
    %collapsed_3 = tensor.collapse_shape %4 [[0, 1, 2], [3], [4]] : tensor<1x2x2x256x64xbf16> into tensor<4x256x64xbf16>
    %19 = axe.gemm %collapsed_2, %collapsed_3 : tensor<4x256x256xbf16>, tensor<4x256x64xbf16> -> tensor<4x256x64xf32>
    %20 = axe.cast %19 : tensor<4x256x64xf32> -> tensor<4x256x64xbf16>
    %expanded_4 = tensor.expand_shape %20 [[0, 1], [2], [3]] output_shape [1, 4, 256, 64] : tensor<4x256x64xbf16> into tensor<1x4x256x64xbf16>
    %21 = axe.transpose %expanded_4 [0, 2, 1, 3] : tensor<1x4x256x64xbf16> -> tensor<1x256x4x64xbf16>
    return %21 : tensor<1x256x4x64xbf16>
  }
}


//--- asked.mlir
module {
  func.func @asked(%arg0: tensor<1x1x512x128xf16>, %arg1: tensor<1x1x512x128xf16>, %arg2: tensor<1x1x512x128xf16>) -> tensor<1x1x512x128xf16> {
    %cst = arith.constant 0.0883883461 : f32
    %0 = axe.cast %arg2 : tensor<1x1x512x128xf16> -> tensor<1x1x512x128xf32>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<1x1x512x128xf16> into tensor<1x512x128xf16>
    %collapsed_0 = tensor.collapse_shape %arg1 [[0, 1], [2], [3]] : tensor<1x1x512x128xf16> into tensor<1x512x128xf16>
    %1 = axe.gemm %collapsed, %collapsed_0 {trans_b} : tensor<1x512x128xf16>, tensor<1x512x128xf16> -> tensor<1x512x512xf32>
    %expanded = tensor.expand_shape %1 [[0, 1], [2], [3]] output_shape [1, 1, 512, 512] : tensor<1x512x512xf32> into tensor<1x1x512x512xf32>
    %2 = axe.map ins(%expanded : tensor<1x1x512x512xf32>) -> tensor<1x1x512x512xf32> {
    ^bb0(%arg3: f32):
      %12 = arith.mulf %arg3, %cst : f32
      axe.yield %12 : f32
    }
    %3 = axe.reduce <max> %2 dims [3] : tensor<1x1x512x512xf32> -> tensor<1x1x512xf32>
    %4 = axe.broadcast %3 dims [3] : tensor<1x1x512xf32> -> tensor<1x1x512x512xf32>
    %5 = axe.map ins(%2, %4 : tensor<1x1x512x512xf32>, tensor<1x1x512x512xf32>) -> tensor<1x1x512x512xf32> {
    ^bb0(%arg3: f32, %arg4: f32):
      %12 = arith.subf %arg3, %arg4 : f32
      axe.yield %12 : f32
    }
    %6 = axe.map ins(%5 : tensor<1x1x512x512xf32>) -> tensor<1x1x512x512xf32> {
    ^bb0(%arg3: f32):
      %12 = math.exp %arg3 : f32
      axe.yield %12 : f32
    }
    %7 = axe.reduce <add> %6 dims [3] : tensor<1x1x512x512xf32> -> tensor<1x1x512xf32>
    %collapsed_1 = tensor.collapse_shape %6 [[0, 1], [2], [3]] : tensor<1x1x512x512xf32> into tensor<1x512x512xf32>
    %collapsed_2 = tensor.collapse_shape %0 [[0, 1], [2], [3]] : tensor<1x1x512x128xf32> into tensor<1x512x128xf32>
    %8 = axe.gemm %collapsed_1, %collapsed_2 {axe.plan = {tile = array<i64: 128, 96, 128>, consumers = 2 : i64, stages = 3 : i64}} : tensor<1x512x512xf32>, tensor<1x512x128xf32> -> tensor<1x512x128xf32>
    %expanded_3 = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [1, 1, 512, 128] : tensor<1x512x128xf32> into tensor<1x1x512x128xf32>
    %9 = axe.broadcast %7 dims [3] : tensor<1x1x512xf32> -> tensor<1x1x512x128xf32>
    %10 = axe.map ins(%expanded_3, %9 : tensor<1x1x512x128xf32>, tensor<1x1x512x128xf32>) -> tensor<1x1x512x128xf32> {
    ^bb0(%arg3: f32, %arg4: f32):
      %12 = arith.divf %arg3, %arg4 : f32
      axe.yield %12 : f32
    }
    %11 = axe.cast %10 : tensor<1x1x512x128xf32> -> tensor<1x1x512x128xf16>
    return %11 : tensor<1x1x512x128xf16>
  }
}
