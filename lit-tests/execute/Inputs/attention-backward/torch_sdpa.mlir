#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>
module {
  func.func @main(%arg0: tensor<1x4x96x64xf16>, %arg1: tensor<1x2x96x64xf16>, %arg2: tensor<1x2x96x64xf16>, %arg3: tensor<1x4x96x64xf16>) -> (tensor<1x4x96x64xf16>, tensor<1x2x96x64xf16>, tensor<1x2x96x64xf16>) {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x4x96x96xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = arith.constant dense<true> : tensor<96x96xi1>
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %cst_6 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<1x4x96x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x4x96x64xf16>) outs(%0 : tensor<1x4x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %66 = arith.extf %in : f16 to f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x64xf32>
    %2 = tensor.empty() : tensor<1x2x96x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x2x96x64xf16>) outs(%2 : tensor<1x2x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %66 = arith.extf %in : f16 to f32
      linalg.yield %66 : f32
    } -> tensor<1x2x96x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<1x2x96x64xf16>) outs(%2 : tensor<1x2x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %66 = arith.extf %in : f16 to f32
      linalg.yield %66 : f32
    } -> tensor<1x2x96x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x4x96x64xf32>) outs(%0 : tensor<1x4x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.truncf %cst_6 : f64 to f32
      %67 = arith.mulf %in, %66 : f32
      linalg.yield %67 : f32
    } -> tensor<1x4x96x64xf32>
    %6 = tensor.empty() : tensor<96xi64>
    %7 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%6 : tensor<96xi64>) {
    ^bb0(%out: i64):
      %66 = linalg.index 0 : index
      %67 = arith.index_cast %66 : index to i64
      linalg.yield %67 : i64
    } -> tensor<96xi64>
    %expanded = tensor.expand_shape %7 [[0, 1]] output_shape [1, 96] : tensor<96xi64> into tensor<1x96xi64>
    %expanded_7 = tensor.expand_shape %7 [[0, 1]] output_shape [96, 1] : tensor<96xi64> into tensor<96x1xi64>
    %8 = tensor.empty() : tensor<96x96xi64>
    %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_7 : tensor<1x96xi64>, tensor<96x1xi64>) outs(%8 : tensor<96x96xi64>) {
    ^bb0(%in: i64, %in_28: i64, %out: i64):
      %66 = arith.subi %in, %in_28 : i64
      linalg.yield %66 : i64
    } -> tensor<96x96xi64>
    %10 = tensor.empty() : tensor<96x96xi1>
    %11 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<96x96xi64>) outs(%10 : tensor<96x96xi1>) {
    ^bb0(%in: i64, %out: i1):
      %66 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %66 : i1
    } -> tensor<96x96xi1>
    %12 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_4 : tensor<96x96xi1>, tensor<96x96xi1>) outs(%10 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %66 = arith.andi %in, %in_28 : i1
      linalg.yield %66 : i1
    } -> tensor<96x96xi1>
    %13 = tensor.empty() : tensor<96x96xf32>
    %14 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%12, %cst_2, %cst_3 : tensor<96x96xi1>, tensor<f32>, tensor<f32>) outs(%13 : tensor<96x96xf32>) {
    ^bb0(%in: i1, %in_28: f32, %in_29: f32, %out: f32):
      %66 = arith.select %in, %in_28, %in_29 : f32
      linalg.yield %66 : f32
    } -> tensor<96x96xf32>
    %15 = tensor.empty() : tensor<1x2x2x96x64xf32>
    %16 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x2x96x64xf32>) outs(%15 : tensor<1x2x2x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x2x96x64xf32>
    %collapsed = tensor.collapse_shape %16 [[0], [1, 2], [3], [4]] : tensor<1x2x2x96x64xf32> into tensor<1x4x96x64xf32>
    %17 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x2x96x64xf32>) outs(%15 : tensor<1x2x2x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x2x96x64xf32>
    %18 = tensor.empty() : tensor<1x4x64x96xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<1x4x96x64xf32>) outs(%18 : tensor<1x4x64x96xf32>) permutation = [0, 1, 3, 2] 
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x4x64x96xf32>) outs(%18 : tensor<1x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.truncf %cst_6 : f64 to f32
      %67 = arith.mulf %in, %66 : f32
      linalg.yield %67 : f32
    } -> tensor<1x4x64x96xf32>
    %collapsed_8 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<1x4x96x64xf32> into tensor<4x96x64xf32>
    %collapsed_9 = tensor.collapse_shape %19 [[0, 1], [2], [3]] : tensor<1x4x64x96xf32> into tensor<4x64x96xf32>
    %20 = tensor.empty() : tensor<4x96x96xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<4x96x96xf32>) -> tensor<4x96x96xf32>
    %22 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<4x96x64xf32>, tensor<4x64x96xf32>) outs(%21 : tensor<4x96x96xf32>) -> tensor<4x96x96xf32>
    %expanded_10 = tensor.expand_shape %22 [[0, 1], [2], [3]] output_shape [1, 4, 96, 96] : tensor<4x96x96xf32> into tensor<1x4x96x96xf32>
    %23 = tensor.empty() : tensor<1x4x96x96xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10, %14 : tensor<1x4x96x96xf32>, tensor<96x96xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.addf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %25 = tensor.empty() : tensor<1x4x96xi64>
    %26 = linalg.fill ins(%c0_i64 : i64) outs(%25 : tensor<1x4x96xi64>) -> tensor<1x4x96xi64>
    %27 = tensor.empty() : tensor<1x4x96xf32>
    %28 = linalg.fill ins(%cst_0 : f32) outs(%27 : tensor<1x4x96xf32>) -> tensor<1x4x96xf32>
    %29:2 = linalg.generic {indexing_maps = [#map, #map9, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<1x4x96x96xf32>) outs(%28, %26 : tensor<1x4x96xf32>, tensor<1x4x96xi64>) {
    ^bb0(%in: f32, %out: f32, %out_28: i64):
      %66 = linalg.index 3 : index
      %67 = arith.index_cast %66 : index to i64
      %68 = arith.maximumf %in, %out : f32
      %69 = arith.cmpf ogt, %in, %out : f32
      %70 = arith.select %69, %67, %out_28 : i64
      linalg.yield %68, %70 : f32, i64
    } -> (tensor<1x4x96xf32>, tensor<1x4x96xi64>)
    %expanded_11 = tensor.expand_shape %29#0 [[0], [1], [2, 3]] output_shape [1, 4, 96, 1] : tensor<1x4x96xf32> into tensor<1x4x96x1xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %expanded_11 : tensor<1x4x96x96xf32>, tensor<1x4x96x1xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.subf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x4x96x96xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = math.exp %in : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %32 = tensor.empty() : tensor<1x4x96x1xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<1x4x96x1xf32>) -> tensor<1x4x96x1xf32>
    %34 = linalg.generic {indexing_maps = [#map, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<1x4x96x96xf32>) outs(%33 : tensor<1x4x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.addf %in, %out : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x1xf32>
    %35 = linalg.generic {indexing_maps = [#map, #map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %34 : tensor<1x4x96x96xf32>, tensor<1x4x96x1xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.divf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %36 = tensor.empty() : tensor<1x4x96x96xi1>
    %37 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x4x96x96xf32>) outs(%36 : tensor<1x4x96x96xi1>) {
    ^bb0(%in: f32, %out: i1):
      %66 = arith.extf %in : f32 to f64
      %67 = arith.cmpf oeq, %66, %cst_5 : f64
      linalg.yield %67 : i1
    } -> tensor<1x4x96x96xi1>
    %38 = tensor.empty() : tensor<1x4x96x1xi1>
    %39 = linalg.fill ins(%true : i1) outs(%38 : tensor<1x4x96x1xi1>) -> tensor<1x4x96x1xi1>
    %40 = linalg.generic {indexing_maps = [#map, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%37 : tensor<1x4x96x96xi1>) outs(%39 : tensor<1x4x96x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %66 = arith.andi %in, %out : i1
      linalg.yield %66 : i1
    } -> tensor<1x4x96x1xi1>
    %41 = linalg.generic {indexing_maps = [#map10, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %cst_1, %35 : tensor<1x4x96x1xi1>, tensor<1x4x96x96xf32>, tensor<1x4x96x96xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: i1, %in_28: f32, %in_29: f32, %out: f32):
      %66 = arith.select %in, %in_28, %in_29 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %collapsed_12 = tensor.collapse_shape %41 [[0, 1], [2], [3]] : tensor<1x4x96x96xf32> into tensor<4x96x96xf32>
    %collapsed_13 = tensor.collapse_shape %17 [[0, 1, 2], [3], [4]] : tensor<1x2x2x96x64xf32> into tensor<4x96x64xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3 : tensor<1x4x96x64xf16>) outs(%0 : tensor<1x4x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %66 = arith.extf %in : f16 to f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x64xf32>
    %collapsed_14 = tensor.collapse_shape %42 [[0, 1], [2], [3]] : tensor<1x4x96x64xf32> into tensor<4x96x64xf32>
    %transposed_15 = linalg.transpose ins(%collapsed_12 : tensor<4x96x96xf32>) outs(%20 : tensor<4x96x96xf32>) permutation = [0, 2, 1] 
    %43 = tensor.empty() : tensor<4x96x64xf32>
    %44 = linalg.fill ins(%cst : f32) outs(%43 : tensor<4x96x64xf32>) -> tensor<4x96x64xf32>
    %45 = linalg.batch_matmul ins(%transposed_15, %collapsed_14 : tensor<4x96x96xf32>, tensor<4x96x64xf32>) outs(%44 : tensor<4x96x64xf32>) -> tensor<4x96x64xf32>
    %46 = tensor.empty() : tensor<4x64x96xf32>
    %transposed_16 = linalg.transpose ins(%collapsed_13 : tensor<4x96x64xf32>) outs(%46 : tensor<4x64x96xf32>) permutation = [0, 2, 1] 
    %47 = linalg.batch_matmul ins(%collapsed_14, %transposed_16 : tensor<4x96x64xf32>, tensor<4x64x96xf32>) outs(%21 : tensor<4x96x96xf32>) -> tensor<4x96x96xf32>
    %expanded_17 = tensor.expand_shape %47 [[0, 1], [2], [3]] output_shape [1, 4, 96, 96] : tensor<4x96x96xf32> into tensor<1x4x96x96xf32>
    %48 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_17, %41 : tensor<1x4x96x96xf32>, tensor<1x4x96x96xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.mulf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %49 = linalg.generic {indexing_maps = [#map, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%48 : tensor<1x4x96x96xf32>) outs(%33 : tensor<1x4x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.addf %in, %out : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x1xf32>
    %50 = linalg.generic {indexing_maps = [#map, #map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%41, %49 : tensor<1x4x96x96xf32>, tensor<1x4x96x1xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.mulf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%48, %50 : tensor<1x4x96x96xf32>, tensor<1x4x96x96xf32>) outs(%23 : tensor<1x4x96x96xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %66 = arith.subf %in, %in_28 : f32
      linalg.yield %66 : f32
    } -> tensor<1x4x96x96xf32>
    %collapsed_18 = tensor.collapse_shape %51 [[0, 1], [2], [3]] : tensor<1x4x96x96xf32> into tensor<4x96x96xf32>
    %transposed_19 = linalg.transpose ins(%collapsed_8 : tensor<4x96x64xf32>) outs(%46 : tensor<4x64x96xf32>) permutation = [0, 2, 1] 
    %52 = linalg.fill ins(%cst : f32) outs(%46 : tensor<4x64x96xf32>) -> tensor<4x64x96xf32>
    %53 = linalg.batch_matmul ins(%transposed_19, %collapsed_18 : tensor<4x64x96xf32>, tensor<4x96x96xf32>) outs(%52 : tensor<4x64x96xf32>) -> tensor<4x64x96xf32>
    %transposed_20 = linalg.transpose ins(%collapsed_9 : tensor<4x64x96xf32>) outs(%43 : tensor<4x96x64xf32>) permutation = [0, 2, 1] 
    %54 = linalg.batch_matmul ins(%collapsed_18, %transposed_20 : tensor<4x96x96xf32>, tensor<4x96x64xf32>) outs(%44 : tensor<4x96x64xf32>) -> tensor<4x96x64xf32>
    %expanded_21 = tensor.expand_shape %53 [[0, 1], [2], [3]] output_shape [1, 4, 64, 96] : tensor<4x64x96xf32> into tensor<1x4x64x96xf32>
    %expanded_22 = tensor.expand_shape %54 [[0, 1], [2], [3]] output_shape [1, 4, 96, 64] : tensor<4x96x64xf32> into tensor<1x4x96x64xf32>
    %55 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_21 : tensor<1x4x64x96xf32>) outs(%18 : tensor<1x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.truncf %cst_6 : f64 to f32
      %67 = arith.mulf %in, %66 : f32
      linalg.yield %67 : f32
    } -> tensor<1x4x64x96xf32>
    %transposed_23 = linalg.transpose ins(%55 : tensor<1x4x64x96xf32>) outs(%0 : tensor<1x4x96x64xf32>) permutation = [0, 1, 3, 2] 
    %expanded_24 = tensor.expand_shape %45 [[0, 1, 2], [3], [4]] output_shape [1, 2, 2, 96, 64] : tensor<4x96x64xf32> into tensor<1x2x2x96x64xf32>
    %56 = tensor.empty() : tensor<1x2x1x96x64xf32>
    %57 = linalg.fill ins(%cst : f32) outs(%56 : tensor<1x2x1x96x64xf32>) -> tensor<1x2x1x96x64xf32>
    %58 = linalg.generic {indexing_maps = [#map7, #map11], iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel"]} ins(%expanded_24 : tensor<1x2x2x96x64xf32>) outs(%57 : tensor<1x2x1x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.addf %in, %out : f32
      linalg.yield %66 : f32
    } -> tensor<1x2x1x96x64xf32>
    %collapsed_25 = tensor.collapse_shape %58 [[0], [1, 2], [3], [4]] : tensor<1x2x1x96x64xf32> into tensor<1x2x96x64xf32>
    %expanded_26 = tensor.expand_shape %transposed_23 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 96, 64] : tensor<1x4x96x64xf32> into tensor<1x2x2x96x64xf32>
    %59 = linalg.generic {indexing_maps = [#map7, #map11], iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel"]} ins(%expanded_26 : tensor<1x2x2x96x64xf32>) outs(%57 : tensor<1x2x1x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.addf %in, %out : f32
      linalg.yield %66 : f32
    } -> tensor<1x2x1x96x64xf32>
    %collapsed_27 = tensor.collapse_shape %59 [[0], [1, 2], [3], [4]] : tensor<1x2x1x96x64xf32> into tensor<1x2x96x64xf32>
    %60 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_22 : tensor<1x4x96x64xf32>) outs(%0 : tensor<1x4x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %66 = arith.truncf %cst_6 : f64 to f32
      %67 = arith.mulf %in, %66 : f32
      linalg.yield %67 : f32
    } -> tensor<1x4x96x64xf32>
    %61 = tensor.empty() : tensor<1x2x96x64xf16>
    %62 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_25 : tensor<1x2x96x64xf32>) outs(%61 : tensor<1x2x96x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %66 = arith.truncf %in : f32 to f16
      linalg.yield %66 : f16
    } -> tensor<1x2x96x64xf16>
    %63 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_27 : tensor<1x2x96x64xf32>) outs(%61 : tensor<1x2x96x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %66 = arith.truncf %in : f32 to f16
      linalg.yield %66 : f16
    } -> tensor<1x2x96x64xf16>
    %64 = tensor.empty() : tensor<1x4x96x64xf16>
    %65 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%60 : tensor<1x4x96x64xf32>) outs(%64 : tensor<1x4x96x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %66 = arith.truncf %in : f32 to f16
      linalg.yield %66 : f16
    } -> tensor<1x4x96x64xf16>
    return %65, %63, %62 : tensor<1x4x96x64xf16>, tensor<1x2x96x64xf16>, tensor<1x2x96x64xf16>
  }
}
