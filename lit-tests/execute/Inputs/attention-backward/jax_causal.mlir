#map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d3, d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d1, d5)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> ()>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map5 = affine_map<(d0, d1, d2, d3) -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map7 = affine_map<(d0, d1) -> ()>
#map8 = affine_map<(d0, d1) -> (d0, d1)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map12 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, 0)>
#map13 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map14 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d4, d1, d2)>
#map15 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d5, d2, d3)>
#map16 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d0, d3, d4)>
#map17 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4, d5)>
#map18 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d1, d5, d3)>
#map19 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
#map20 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
#map21 = affine_map<(d0, d1, d2, d3, d4) -> (d2, d3, d0, d1, d4)>
#map22 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>
#map23 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5, d2)>
#map24 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d1, d5, d3)>
#map25 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map26 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
#map27 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1, d4)>
#map28 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
#map29 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map30 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x96x2x64xbf16>, %arg1: tensor<1x96x2x64xbf16>, %arg2: tensor<1x96x2x64xbf16>, %arg3: tensor<1x96x2x64xbf16>) -> (tensor<1x96x2x64xbf16> {jax.result_info = "result[0]"}, tensor<1x96x2x64xbf16> {jax.result_info = "result[1]"}, tensor<1x96x2x64xbf16> {jax.result_info = "result[2]"}) {
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %cst_2 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_3 = arith.constant dense<-2.38197633E+38> : tensor<f32>
    %cst_4 = arith.constant dense<true> : tensor<i1>
    %cst_5 = arith.constant dense<1.250000e-01> : tensor<f32>
    %cst_6 = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [1, 96, 2, 1, 64] : tensor<1x96x2x64xbf16> into tensor<1x96x2x1x64xbf16>
    %0 = tensor.empty() : tensor<1x2x96x1x96xf32>
    %1 = linalg.fill ins(%cst_6 : f32) outs(%0 : tensor<1x2x96x1x96xf32>) -> tensor<1x2x96x1x96xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%expanded, %arg1 : tensor<1x96x2x1x64xbf16>, tensor<1x96x2x64xbf16>) outs(%1 : tensor<1x2x96x1x96xf32>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: f32):
      %78 = arith.extf %in : bf16 to f32
      %79 = arith.extf %in_9 : bf16 to f32
      %80 = arith.mulf %78, %79 : f32
      %81 = arith.addf %out, %80 : f32
      linalg.yield %81 : f32
    } -> tensor<1x2x96x1x96xf32>
    %3 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%0 : tensor<1x2x96x1x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x96x1x96xf32>
    %4 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2, %3 : tensor<1x2x96x1x96xf32>, tensor<1x2x96x1x96xf32>) outs(%0 : tensor<1x2x96x1x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x2x96x1x96xf32>
    %5 = tensor.empty() : tensor<1x2x96x96xi1>
    %6 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_4 : tensor<i1>) outs(%5 : tensor<1x2x96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x2x96x96xi1>
    %7 = tensor.empty() : tensor<96x96xi1>
    %8 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<i1>) outs(%7 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<96x96xi1>
    %9 = call @tril(%8) : (tensor<96x96xi1>) -> tensor<96x96xi1>
    %10 = tensor.empty() : tensor<1x1x96x96xi1>
    %11 = linalg.generic {indexing_maps = [#map9, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<96x96xi1>) outs(%10 : tensor<1x1x96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x1x96x96xi1>
    %12 = linalg.generic {indexing_maps = [#map10, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<1x1x96x96xi1>) outs(%5 : tensor<1x2x96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x2x96x96xi1>
    %13 = linalg.generic {indexing_maps = [#map6, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %12 : tensor<1x2x96x96xi1>, tensor<1x2x96x96xi1>) outs(%5 : tensor<1x2x96x96xi1>) {
    ^bb0(%in: i1, %in_9: i1, %out: i1):
      %78 = arith.andi %in, %in_9 : i1
      linalg.yield %78 : i1
    } -> tensor<1x2x96x96xi1>
    %14:2 = call @_where(%13, %4, %cst_3) : (tensor<1x2x96x96xi1>, tensor<1x2x96x1x96xf32>, tensor<f32>) -> (tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xi1>)
    %15 = tensor.empty() : tensor<1x1x2x96xf32>
    %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<1x1x2x96xf32>) -> tensor<1x1x2x96xf32>
    %17 = linalg.generic {indexing_maps = [#map4, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%14#0 : tensor<1x1x2x96x96xf32>) outs(%16 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = arith.maximumf %out, %in : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96xf32>
    %18 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_2 : tensor<f32>) outs(%15 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96xf32>
    %19 = linalg.generic {indexing_maps = [#map6, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %17 : tensor<1x1x2x96xf32>, tensor<1x1x2x96xf32>) outs(%15 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.maximumf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96xf32>
    %20 = tensor.empty() : tensor<1x1x2x96x1xf32>
    %21 = linalg.generic {indexing_maps = [#map11, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<1x1x2x96xf32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x1xf32>
    %22 = tensor.empty() : tensor<1x1x2x96x96xf32>
    %23 = linalg.generic {indexing_maps = [#map12, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<1x1x2x96x1xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %24 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%14#0, %23 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.subf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %25 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = math.exp %in : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %26 = linalg.fill ins(%cst_6 : f32) outs(%15 : tensor<1x1x2x96xf32>) -> tensor<1x1x2x96xf32>
    %27 = linalg.generic {indexing_maps = [#map4, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%25 : tensor<1x1x2x96x96xf32>) outs(%26 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = arith.addf %out, %in : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96xf32>
    %28 = linalg.generic {indexing_maps = [#map11, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<1x1x2x96xf32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x1xf32>
    %29 = linalg.generic {indexing_maps = [#map12, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<1x1x2x96x1xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %30 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%25, %29 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.divf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %31 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%28, %28 : tensor<1x1x2x96x1xf32>, tensor<1x1x2x96x1xf32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x1xf32>
    %32 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%cst_0 : tensor<f32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x1xf32>
    %33 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%32, %31 : tensor<1x1x2x96x1xf32>, tensor<1x1x2x96x1xf32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.divf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x1xf32>
    %34 = tensor.empty() : tensor<1x1x2x96x96xbf16>
    %35 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x1x2x96x96xf32>) outs(%34 : tensor<1x1x2x96x96xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %78 = arith.truncf %in : f32 to bf16
      linalg.yield %78 : bf16
    } -> tensor<1x1x2x96x96xbf16>
    %expanded_7 = tensor.expand_shape %arg3 [[0], [1], [2], [3, 4]] output_shape [1, 96, 2, 1, 64] : tensor<1x96x2x64xbf16> into tensor<1x96x2x1x64xbf16>
    %36 = tensor.empty() : tensor<1x1x96x2x64xbf16>
    %37 = linalg.generic {indexing_maps = [#map13, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_7 : tensor<1x96x2x1x64xbf16>) outs(%36 : tensor<1x1x96x2x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x1x96x2x64xbf16>
    %38 = tensor.empty() : tensor<1x2x64x1x96xbf16>
    %39 = linalg.generic {indexing_maps = [#map14, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%37 : tensor<1x1x96x2x64xbf16>) outs(%38 : tensor<1x2x64x1x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x2x64x1x96xbf16>
    %40 = tensor.empty() : tensor<1x2x1x96x96xbf16>
    %41 = linalg.fill ins(%cst : bf16) outs(%40 : tensor<1x2x1x96x96xbf16>) -> tensor<1x2x1x96x96xbf16>
    %42 = linalg.generic {indexing_maps = [#map15, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%39, %arg2 : tensor<1x2x64x1x96xbf16>, tensor<1x96x2x64xbf16>) outs(%41 : tensor<1x2x1x96x96xbf16>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: bf16):
      %78 = arith.mulf %in, %in_9 : bf16
      %79 = arith.addf %out, %78 : bf16
      linalg.yield %79 : bf16
    } -> tensor<1x2x1x96x96xbf16>
    %43 = linalg.generic {indexing_maps = [#map16, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%42 : tensor<1x2x1x96x96xbf16>) outs(%34 : tensor<1x1x2x96x96xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x1x2x96x96xbf16>
    %44 = tensor.empty() : tensor<1x2x64x96xbf16>
    %45 = linalg.fill ins(%cst : bf16) outs(%44 : tensor<1x2x64x96xbf16>) -> tensor<1x2x64x96xbf16>
    %46 = linalg.generic {indexing_maps = [#map17, #map18, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%39, %35 : tensor<1x2x64x1x96xbf16>, tensor<1x1x2x96x96xbf16>) outs(%45 : tensor<1x2x64x96xbf16>) {
    ^bb0(%in: bf16, %in_9: bf16, %out: bf16):
      %78 = arith.mulf %in, %in_9 : bf16
      %79 = arith.addf %out, %78 : bf16
      linalg.yield %79 : bf16
    } -> tensor<1x2x64x96xbf16>
    %47 = tensor.empty() : tensor<1x96x2x64xbf16>
    %48 = linalg.generic {indexing_maps = [#map20, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46 : tensor<1x2x64x96xbf16>) outs(%47 : tensor<1x96x2x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<1x96x2x64xbf16>
    %49 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<1x1x2x96x96xbf16>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %78 = arith.extf %in : bf16 to f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %50 = linalg.generic {indexing_maps = [#map12, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%33 : tensor<1x1x2x96x1xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %51 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%49, %50 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %52 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%51, %25 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %53 = linalg.generic {indexing_maps = [#map4, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%52 : tensor<1x1x2x96x96xf32>) outs(%26 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = arith.addf %out, %in : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96xf32>
    %expanded_8 = tensor.expand_shape %53 [[0], [1], [2], [3, 4]] output_shape [1, 1, 2, 96, 1] : tensor<1x1x2x96xf32> into tensor<1x1x2x96x1xf32>
    %54 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<1x1x2x96x1xf32>) outs(%20 : tensor<1x1x2x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = arith.negf %in : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x1xf32>
    %55 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%49, %29 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.divf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %56 = tensor.empty() : tensor<2x96xf32>
    %57 = linalg.fill ins(%cst_6 : f32) outs(%56 : tensor<2x96xf32>) -> tensor<2x96xf32>
    %58 = linalg.generic {indexing_maps = [#map21, #map22], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%54 : tensor<1x1x2x96x1xf32>) outs(%57 : tensor<2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %78 = arith.addf %out, %in : f32
      linalg.yield %78 : f32
    } -> tensor<2x96xf32>
    %59 = linalg.generic {indexing_maps = [#map9, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%58 : tensor<2x96xf32>) outs(%15 : tensor<1x1x2x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96xf32>
    %60 = linalg.generic {indexing_maps = [#map11, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%59 : tensor<1x1x2x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %61 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%55, %60 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.addf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %62 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%61, %25 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%22 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x1x2x96x96xf32>
    %63 = call @_where_0(%14#1, %62) : (tensor<1x1x2x96x96xi1>, tensor<1x1x2x96x96xf32>) -> tensor<1x2x96x1x96xf32>
    %64 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%63, %3 : tensor<1x2x96x1x96xf32>, tensor<1x2x96x1x96xf32>) outs(%0 : tensor<1x2x96x1x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %78 = arith.mulf %in, %in_9 : f32
      linalg.yield %78 : f32
    } -> tensor<1x2x96x1x96xf32>
    %65 = tensor.empty() : tensor<1x2x96x64xf32>
    %66 = linalg.fill ins(%cst_6 : f32) outs(%65 : tensor<1x2x96x64xf32>) -> tensor<1x2x96x64xf32>
    %67 = linalg.generic {indexing_maps = [#map23, #map24, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%64, %expanded : tensor<1x2x96x1x96xf32>, tensor<1x96x2x1x64xbf16>) outs(%66 : tensor<1x2x96x64xf32>) {
    ^bb0(%in: f32, %in_9: bf16, %out: f32):
      %78 = arith.extf %in_9 : bf16 to f32
      %79 = arith.mulf %in, %78 : f32
      %80 = arith.addf %out, %79 : f32
      linalg.yield %80 : f32
    } -> tensor<1x2x96x64xf32>
    %68 = tensor.empty() : tensor<1x96x2x64xf32>
    %69 = linalg.generic {indexing_maps = [#map25, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%67 : tensor<1x2x96x64xf32>) outs(%68 : tensor<1x96x2x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x96x2x64xf32>
    %70 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%69 : tensor<1x96x2x64xf32>) outs(%47 : tensor<1x96x2x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %78 = arith.truncf %in : f32 to bf16
      linalg.yield %78 : bf16
    } -> tensor<1x96x2x64xbf16>
    %71 = tensor.empty() : tensor<1x2x96x1x64xf32>
    %72 = linalg.fill ins(%cst_6 : f32) outs(%71 : tensor<1x2x96x1x64xf32>) -> tensor<1x2x96x1x64xf32>
    %73 = linalg.generic {indexing_maps = [#map26, #map27, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%64, %arg1 : tensor<1x2x96x1x96xf32>, tensor<1x96x2x64xbf16>) outs(%72 : tensor<1x2x96x1x64xf32>) {
    ^bb0(%in: f32, %in_9: bf16, %out: f32):
      %78 = arith.extf %in_9 : bf16 to f32
      %79 = arith.mulf %in, %78 : f32
      %80 = arith.addf %out, %79 : f32
      linalg.yield %80 : f32
    } -> tensor<1x2x96x1x64xf32>
    %74 = tensor.empty() : tensor<1x96x2x1x64xf32>
    %75 = linalg.generic {indexing_maps = [#map28, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%73 : tensor<1x2x96x1x64xf32>) outs(%74 : tensor<1x96x2x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x96x2x1x64xf32>
    %76 = tensor.empty() : tensor<1x96x2x1x64xbf16>
    %77 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%75 : tensor<1x96x2x1x64xf32>) outs(%76 : tensor<1x96x2x1x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %78 = arith.truncf %in : f32 to bf16
      linalg.yield %78 : bf16
    } -> tensor<1x96x2x1x64xbf16>
    %collapsed = tensor.collapse_shape %77 [[0], [1], [2], [3, 4]] : tensor<1x96x2x1x64xbf16> into tensor<1x96x2x64xbf16>
    return %collapsed, %70, %48 : tensor<1x96x2x64xbf16>, tensor<1x96x2x64xbf16>, tensor<1x96x2x64xbf16>
  }
  func.func private @tril(%arg0: tensor<96x96xi1>) -> tensor<96x96xi1> {
    %cst = arith.constant dense<false> : tensor<i1>
    %cst_0 = arith.constant dense<0> : tensor<i32>
    %0 = tensor.empty() : tensor<96x96xi32>
    %1 = linalg.generic {indexing_maps = [#map8], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<96x96xi32>) {
    ^bb0(%out: i32):
      %9 = linalg.index 0 : index
      %10 = arith.index_cast %9 : index to i32
      linalg.yield %10 : i32
    } -> tensor<96x96xi32>
    %2 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["parallel", "parallel"]} ins(%cst_0 : tensor<i32>) outs(%0 : tensor<96x96xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<96x96xi32>
    %3 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%1, %2 : tensor<96x96xi32>, tensor<96x96xi32>) outs(%0 : tensor<96x96xi32>) {
    ^bb0(%in: i32, %in_1: i32, %out: i32):
      %9 = arith.addi %in, %in_1 : i32
      linalg.yield %9 : i32
    } -> tensor<96x96xi32>
    %4 = linalg.generic {indexing_maps = [#map8], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<96x96xi32>) {
    ^bb0(%out: i32):
      %9 = linalg.index 1 : index
      %10 = arith.index_cast %9 : index to i32
      linalg.yield %10 : i32
    } -> tensor<96x96xi32>
    %5 = tensor.empty() : tensor<96x96xi1>
    %6 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%3, %4 : tensor<96x96xi32>, tensor<96x96xi32>) outs(%5 : tensor<96x96xi1>) {
    ^bb0(%in: i32, %in_1: i32, %out: i1):
      %9 = arith.cmpi sge, %in, %in_1 : i32
      linalg.yield %9 : i1
    } -> tensor<96x96xi1>
    %7 = linalg.generic {indexing_maps = [#map7, #map8], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<i1>) outs(%5 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<96x96xi1>
    %8 = linalg.generic {indexing_maps = [#map8, #map8, #map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%6, %arg0, %7 : tensor<96x96xi1>, tensor<96x96xi1>, tensor<96x96xi1>) outs(%5 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %in_1: i1, %in_2: i1, %out: i1):
      %9 = arith.select %in, %in_1, %in_2 : i1
      linalg.yield %9 : i1
    } -> tensor<96x96xi1>
    return %8 : tensor<96x96xi1>
  }
  func.func private @_where(%arg0: tensor<1x2x96x96xi1>, %arg1: tensor<1x2x96x1x96xf32>, %arg2: tensor<f32>) -> (tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xi1>) {
    %0 = tensor.empty() : tensor<1x2x96x96xf32>
    %1 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<f32>) outs(%0 : tensor<1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x96x96xf32>
    %2 = tensor.empty() : tensor<1x1x2x96x96xi1>
    %3 = linalg.generic {indexing_maps = [#map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x2x96x96xi1>) outs(%2 : tensor<1x1x2x96x96xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<1x1x2x96x96xi1>
    %4 = tensor.empty() : tensor<1x1x2x96x96xf32>
    %5 = linalg.generic {indexing_maps = [#map29, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x2x96x96xf32>) outs(%4 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %6 = linalg.generic {indexing_maps = [#map13, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x2x96x1x96xf32>) outs(%4 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %7 = linalg.generic {indexing_maps = [#map4, #map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3, %6, %5 : tensor<1x1x2x96x96xi1>, tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%4 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %8 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %8 : f32
    } -> tensor<1x1x2x96x96xf32>
    return %7, %3 : tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xi1>
  }
  func.func private @_where_0(%arg0: tensor<1x1x2x96x96xi1>, %arg1: tensor<1x1x2x96x96xf32>) -> tensor<1x2x96x1x96xf32> {
    %cst = arith.constant dense<0.000000e+00> : tensor<f32>
    %0 = tensor.empty() : tensor<1x1x2x96x96xf32>
    %1 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%cst : tensor<f32>) outs(%0 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x2x96x96xf32>
    %2 = linalg.generic {indexing_maps = [#map4, #map4, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %1 : tensor<1x1x2x96x96xi1>, tensor<1x1x2x96x96xf32>, tensor<1x1x2x96x96xf32>) outs(%0 : tensor<1x1x2x96x96xf32>) {
    ^bb0(%in: i1, %in_0: f32, %in_1: f32, %out: f32):
      %5 = arith.select %in, %in_0, %in_1 : f32
      linalg.yield %5 : f32
    } -> tensor<1x1x2x96x96xf32>
    %3 = tensor.empty() : tensor<1x2x96x1x96xf32>
    %4 = linalg.generic {indexing_maps = [#map30, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x1x2x96x96xf32>) outs(%3 : tensor<1x2x96x1x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x96x1x96xf32>
    return %4 : tensor<1x2x96x1x96xf32>
  }
}

