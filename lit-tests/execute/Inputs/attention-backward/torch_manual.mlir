#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, 0)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> ()>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @main(%arg0: tensor<1x2x96x64xbf16>, %arg1: tensor<1x2x96x64xbf16>, %arg2: tensor<1x2x96x64xbf16>, %arg3: tensor<1x2x96x64xbf16>) -> (tensor<1x2x96x64xbf16>, tensor<1x2x96x64xbf16>, tensor<1x2x96x64xbf16>) {
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_2 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_3 = arith.constant dense<true> : tensor<96x96xi1>
    %cst_4 = arith.constant 1.250000e-01 : bf16
    %0 = tensor.empty() : tensor<1x2x64x96xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x2x96x64xbf16>) outs(%0 : tensor<1x2x64x96xbf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<1x2x96x64xbf16> into tensor<2x96x64xbf16>
    %collapsed_5 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x64x96xbf16> into tensor<2x64x96xbf16>
    %1 = tensor.empty() : tensor<2x96x96xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x96x96xf32>) -> tensor<2x96x96xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_5 : tensor<2x96x64xbf16>, tensor<2x64x96xbf16>) outs(%2 : tensor<2x96x96xf32>) -> tensor<2x96x96xf32>
    %4 = tensor.empty() : tensor<2x96x96xbf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x96x96xf32>) outs(%4 : tensor<2x96x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x96x96xbf16>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [1, 2, 96, 96] : tensor<2x96x96xbf16> into tensor<1x2x96x96xbf16>
    %6 = tensor.empty() : tensor<1x2x96x96xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x2x96x96xbf16>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %54 = arith.mulf %in, %cst_4 : bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %8 = tensor.empty() : tensor<96xi64>
    %9 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%8 : tensor<96xi64>) {
    ^bb0(%out: i64):
      %54 = linalg.index 0 : index
      %55 = arith.index_cast %54 : index to i64
      linalg.yield %55 : i64
    } -> tensor<96xi64>
    %expanded_6 = tensor.expand_shape %9 [[0, 1]] output_shape [1, 96] : tensor<96xi64> into tensor<1x96xi64>
    %expanded_7 = tensor.expand_shape %9 [[0, 1]] output_shape [96, 1] : tensor<96xi64> into tensor<96x1xi64>
    %10 = tensor.empty() : tensor<96x96xi64>
    %11 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded_6, %expanded_7 : tensor<1x96xi64>, tensor<96x1xi64>) outs(%10 : tensor<96x96xi64>) {
    ^bb0(%in: i64, %in_22: i64, %out: i64):
      %54 = arith.subi %in, %in_22 : i64
      linalg.yield %54 : i64
    } -> tensor<96x96xi64>
    %12 = tensor.empty() : tensor<96x96xi1>
    %13 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<96x96xi64>) outs(%12 : tensor<96x96xi1>) {
    ^bb0(%in: i64, %out: i1):
      %54 = arith.cmpi sge, %in, %c1_i64 : i64
      linalg.yield %54 : i1
    } -> tensor<96x96xi1>
    %14 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%13, %cst_3 : tensor<96x96xi1>, tensor<96x96xi1>) outs(%12 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %in_22: i1, %out: i1):
      %54 = arith.andi %in, %in_22 : i1
      linalg.yield %54 : i1
    } -> tensor<96x96xi1>
    %15 = linalg.generic {indexing_maps = [#map6, #map7, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %cst_2, %7 : tensor<96x96xi1>, tensor<bf16>, tensor<1x2x96x96xbf16>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: i1, %in_22: bf16, %in_23: bf16, %out: bf16):
      %54 = arith.select %in, %in_22, %in_23 : bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %16 = tensor.empty() : tensor<1x2x96x96xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<1x2x96x96xbf16>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %54 = arith.extf %in : bf16 to f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %18 = tensor.empty() : tensor<1x2x96xi64>
    %19 = linalg.fill ins(%c0_i64 : i64) outs(%18 : tensor<1x2x96xi64>) -> tensor<1x2x96xi64>
    %20 = tensor.empty() : tensor<1x2x96xf32>
    %21 = linalg.fill ins(%cst_0 : f32) outs(%20 : tensor<1x2x96xf32>) -> tensor<1x2x96xf32>
    %22:2 = linalg.generic {indexing_maps = [#map1, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%17 : tensor<1x2x96x96xf32>) outs(%21, %19 : tensor<1x2x96xf32>, tensor<1x2x96xi64>) {
    ^bb0(%in: f32, %out: f32, %out_22: i64):
      %54 = linalg.index 3 : index
      %55 = arith.index_cast %54 : index to i64
      %56 = arith.maximumf %in, %out : f32
      %57 = arith.cmpf ogt, %in, %out : f32
      %58 = arith.select %57, %55, %out_22 : i64
      linalg.yield %56, %58 : f32, i64
    } -> (tensor<1x2x96xf32>, tensor<1x2x96xi64>)
    %expanded_8 = tensor.expand_shape %22#0 [[0], [1], [2, 3]] output_shape [1, 2, 96, 1] : tensor<1x2x96xf32> into tensor<1x2x96x1xf32>
    %23 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %expanded_8 : tensor<1x2x96x96xf32>, tensor<1x2x96x1xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %54 = arith.subf %in, %in_22 : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %24 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<1x2x96x96xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = math.exp %in : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %25 = tensor.empty() : tensor<1x2x96x1xf32>
    %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<1x2x96x1xf32>) -> tensor<1x2x96x1xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x2x96x96xf32>) outs(%26 : tensor<1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = arith.addf %in, %out : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x1xf32>
    %28 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %27 : tensor<1x2x96x96xf32>, tensor<1x2x96x1xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %54 = arith.divf %in, %in_22 : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %29 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<1x2x96x96xf32>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %collapsed_9 = tensor.collapse_shape %29 [[0, 1], [2], [3]] : tensor<1x2x96x96xbf16> into tensor<2x96x96xbf16>
    %collapsed_10 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<1x2x96x64xbf16> into tensor<2x96x64xbf16>
    %collapsed_11 = tensor.collapse_shape %arg3 [[0, 1], [2], [3]] : tensor<1x2x96x64xbf16> into tensor<2x96x64xbf16>
    %transposed_12 = linalg.transpose ins(%collapsed_9 : tensor<2x96x96xbf16>) outs(%4 : tensor<2x96x96xbf16>) permutation = [0, 2, 1] 
    %30 = tensor.empty() : tensor<2x96x64xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
    %32 = linalg.batch_matmul ins(%transposed_12, %collapsed_11 : tensor<2x96x96xbf16>, tensor<2x96x64xbf16>) outs(%31 : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
    %33 = tensor.empty() : tensor<2x96x64xbf16>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%32 : tensor<2x96x64xf32>) outs(%33 : tensor<2x96x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x96x64xbf16>
    %35 = tensor.empty() : tensor<2x64x96xbf16>
    %transposed_13 = linalg.transpose ins(%collapsed_10 : tensor<2x96x64xbf16>) outs(%35 : tensor<2x64x96xbf16>) permutation = [0, 2, 1] 
    %36 = linalg.batch_matmul ins(%collapsed_11, %transposed_13 : tensor<2x96x64xbf16>, tensor<2x64x96xbf16>) outs(%2 : tensor<2x96x96xf32>) -> tensor<2x96x96xf32>
    %37 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%36 : tensor<2x96x96xf32>) outs(%4 : tensor<2x96x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x96x96xbf16>
    %expanded_14 = tensor.expand_shape %34 [[0, 1], [2], [3]] output_shape [1, 2, 96, 64] : tensor<2x96x64xbf16> into tensor<1x2x96x64xbf16>
    %expanded_15 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 2, 96, 96] : tensor<2x96x96xbf16> into tensor<1x2x96x96xbf16>
    %38 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15 : tensor<1x2x96x96xbf16>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %54 = arith.extf %in : bf16 to f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %39 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<1x2x96x96xbf16>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %54 = arith.extf %in : bf16 to f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %40 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %39 : tensor<1x2x96x96xf32>, tensor<1x2x96x96xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %54 = arith.mulf %in, %in_22 : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %41 = linalg.generic {indexing_maps = [#map1, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<1x2x96x96xf32>) outs(%26 : tensor<1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %54 = arith.addf %in, %out : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x1xf32>
    %42 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39, %41 : tensor<1x2x96x96xf32>, tensor<1x2x96x1xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %54 = arith.mulf %in, %in_22 : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %43 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %42 : tensor<1x2x96x96xf32>, tensor<1x2x96x96xf32>) outs(%16 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %54 = arith.subf %in, %in_22 : f32
      linalg.yield %54 : f32
    } -> tensor<1x2x96x96xf32>
    %44 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<1x2x96x96xf32>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %45 = linalg.generic {indexing_maps = [#map6, #map7, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %cst_1, %44 : tensor<96x96xi1>, tensor<bf16>, tensor<1x2x96x96xbf16>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: i1, %in_22: bf16, %in_23: bf16, %out: bf16):
      %54 = arith.select %in, %in_22, %in_23 : bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %46 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45 : tensor<1x2x96x96xbf16>) outs(%6 : tensor<1x2x96x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %54 = arith.mulf %in, %cst_4 : bf16
      linalg.yield %54 : bf16
    } -> tensor<1x2x96x96xbf16>
    %collapsed_16 = tensor.collapse_shape %46 [[0, 1], [2], [3]] : tensor<1x2x96x96xbf16> into tensor<2x96x96xbf16>
    %transposed_17 = linalg.transpose ins(%collapsed : tensor<2x96x64xbf16>) outs(%35 : tensor<2x64x96xbf16>) permutation = [0, 2, 1] 
    %47 = tensor.empty() : tensor<2x64x96xf32>
    %48 = linalg.fill ins(%cst : f32) outs(%47 : tensor<2x64x96xf32>) -> tensor<2x64x96xf32>
    %49 = linalg.batch_matmul ins(%transposed_17, %collapsed_16 : tensor<2x64x96xbf16>, tensor<2x96x96xbf16>) outs(%48 : tensor<2x64x96xf32>) -> tensor<2x64x96xf32>
    %50 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%49 : tensor<2x64x96xf32>) outs(%35 : tensor<2x64x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x64x96xbf16>
    %transposed_18 = linalg.transpose ins(%collapsed_5 : tensor<2x64x96xbf16>) outs(%33 : tensor<2x96x64xbf16>) permutation = [0, 2, 1] 
    %51 = linalg.batch_matmul ins(%collapsed_16, %transposed_18 : tensor<2x96x96xbf16>, tensor<2x96x64xbf16>) outs(%31 : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51 : tensor<2x96x64xf32>) outs(%33 : tensor<2x96x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %54 = arith.truncf %in : f32 to bf16
      linalg.yield %54 : bf16
    } -> tensor<2x96x64xbf16>
    %expanded_19 = tensor.expand_shape %50 [[0, 1], [2], [3]] output_shape [1, 2, 64, 96] : tensor<2x64x96xbf16> into tensor<1x2x64x96xbf16>
    %expanded_20 = tensor.expand_shape %52 [[0, 1], [2], [3]] output_shape [1, 2, 96, 64] : tensor<2x96x64xbf16> into tensor<1x2x96x64xbf16>
    %53 = tensor.empty() : tensor<1x2x96x64xbf16>
    %transposed_21 = linalg.transpose ins(%expanded_19 : tensor<1x2x64x96xbf16>) outs(%53 : tensor<1x2x96x64xbf16>) permutation = [0, 1, 3, 2] 
    return %expanded_20, %transposed_21, %expanded_14 : tensor<1x2x96x64xbf16>, tensor<1x2x96x64xbf16>, tensor<1x2x96x64xbf16>
  }
}
