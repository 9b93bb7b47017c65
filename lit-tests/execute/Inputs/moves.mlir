// torch.export of the functions that moves.test names, by torch-mlir.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0) -> ()>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, 0)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d1, 0, 0)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d2, 0)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d3)>
module {
  func.func @main(%arg0: tensor<2x4x6x10xf16>, %arg1: tensor<4x1x3x3xf16>, %arg2: tensor<5x24xf16>, %arg3: tensor<5x24xf16>, %arg4: tensor<2x5x48xf16>) -> (tensor<2x4x3x5xf16>, tensor<2x4x3x5xf16>, tensor<2x4x6x10xf16>, tensor<2x5x48xf16>, tensor<2x5x48xf16>, tensor<2x4x8x12xf16>, tensor<2x5x48x2xf16>, tensor<2x2x5x8xf16>, tensor<2x2x5x8xf16>, tensor<2x2x5x8xf16>) {
    %c8_i64 = arith.constant 8 : i64
    %c-1_i64 = arith.constant -1 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0_i64 = arith.constant 0 : i64
    %c2_i64 = arith.constant 2 : i64
    %cst = arith.constant 0xFC00 : f16
    %c6_i64 = arith.constant 6 : i64
    %cst_0 = arith.constant 0.000000e+00 : f16
    %cst_1 = arith.constant 0.000000e+00 : f32
    %cst_2 = arith.constant 4.000000e+00 : f16
    %c10_i64 = arith.constant 10 : i64
    %cst_3 = arith.constant dense<9> : tensor<i64>
    %cst_4 = arith.constant dense<5> : tensor<i64>
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst : f16
    } : tensor<2x4x6x10xf16> to tensor<2x4x8x12xf16>
    %0 = tensor.empty() : tensor<2x4x3x5xf16>
    %1 = linalg.fill ins(%cst : f16) outs(%0 : tensor<2x4x3x5xf16>) -> tensor<2x4x3x5xf16>
    %2 = tensor.empty() : tensor<3x3xf16>
    %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %2 : tensor<2x4x8x12xf16>, tensor<3x3xf16>) outs(%1 : tensor<2x4x3x5xf16>) -> tensor<2x4x3x5xf16>
    %4 = linalg.fill ins(%cst_0 : f16) outs(%0 : tensor<2x4x3x5xf16>) -> tensor<2x4x3x5xf16>
    %5 = tensor.empty() : tensor<2x2xf16>
    %6 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%arg0, %5 : tensor<2x4x6x10xf16>, tensor<2x2xf16>) outs(%4 : tensor<2x4x3x5xf16>) -> tensor<2x4x3x5xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<2x4x3x5xf16>) outs(%0 : tensor<2x4x3x5xf16>) {
    ^bb0(%in: f16, %out: f16):
      %50 = arith.divf %in, %cst_2 : f16
      linalg.yield %50 : f16
    } -> tensor<2x4x3x5xf16>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x3x5xf16>) outs(%0 : tensor<2x4x3x5xf16>) {
    ^bb0(%in: f16, %out: f16):
      %50 = arith.cmpf ugt, %in, %cst_0 : f16
      %51 = arith.select %50, %in, %cst_0 : f16
      linalg.yield %51 : f16
    } -> tensor<2x4x3x5xf16>
    %padded_5 = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst_0 : f16
    } : tensor<2x4x6x10xf16> to tensor<2x4x8x12xf16>
    %9 = tensor.empty() : tensor<2x4x6x10xf32>
    %10 = linalg.fill ins(%cst_1 : f32) outs(%9 : tensor<2x4x6x10xf32>) -> tensor<2x4x6x10xf32>
    %collapsed = tensor.collapse_shape %arg1 [[0, 1], [2], [3]] : tensor<4x1x3x3xf16> into tensor<4x3x3xf16>
    %11 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_5, %collapsed : tensor<2x4x8x12xf16>, tensor<4x3x3xf16>) outs(%10 : tensor<2x4x6x10xf32>) -> tensor<2x4x6x10xf32>
    %12 = tensor.empty() : tensor<2x4x6x10xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x4x6x10xf32>) outs(%12 : tensor<2x4x6x10xf16>) {
    ^bb0(%in: f32, %out: f16):
      %50 = arith.truncf %in : f32 to f16
      linalg.yield %50 : f16
    } -> tensor<2x4x6x10xf16>
    %extracted_slice = tensor.extract_slice %arg4[0, 0, 0] [2, 5, 24] [1, 1, 2] : tensor<2x5x48xf16> to tensor<2x5x24xf16>
    %14 = tensor.empty() : tensor<2x5x24xf16>
    %15 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice, %arg2 : tensor<2x5x24xf16>, tensor<5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.mulf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %extracted_slice_6 = tensor.extract_slice %arg4[0, 0, 1] [2, 5, 24] [1, 1, 2] : tensor<2x5x48xf16> to tensor<2x5x24xf16>
    %16 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice_6, %arg3 : tensor<2x5x24xf16>, tensor<5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.mulf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %17 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15, %16 : tensor<2x5x24xf16>, tensor<2x5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.subf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %18 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice, %arg3 : tensor<2x5x24xf16>, tensor<5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.mulf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %19 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice_6, %arg2 : tensor<2x5x24xf16>, tensor<5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.mulf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %20 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %19 : tensor<2x5x24xf16>, tensor<2x5x24xf16>) outs(%14 : tensor<2x5x24xf16>) {
    ^bb0(%in: f16, %in_27: f16, %out: f16):
      %50 = arith.addf %in, %in_27 : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x24xf16>
    %expanded = tensor.expand_shape %17 [[0], [1], [2, 3]] output_shape [2, 5, 24, 1] : tensor<2x5x24xf16> into tensor<2x5x24x1xf16>
    %expanded_7 = tensor.expand_shape %20 [[0], [1], [2, 3]] output_shape [2, 5, 24, 1] : tensor<2x5x24xf16> into tensor<2x5x24x1xf16>
    %concat = tensor.concat dim(3) %expanded, %expanded_7 : (tensor<2x5x24x1xf16>, tensor<2x5x24x1xf16>) -> tensor<2x5x24x2xf16>
    %collapsed_8 = tensor.collapse_shape %concat [[0], [1], [2, 3]] : tensor<2x5x24x2xf16> into tensor<2x5x48xf16>
    %extracted_slice_9 = tensor.extract_slice %arg4[0, 0, 45] [2, 5, 3] [1, 1, 1] : tensor<2x5x48xf16> to tensor<2x5x3xf16>
    %cast = tensor.cast %extracted_slice_9 : tensor<2x5x3xf16> to tensor<2x5x?xf16>
    %extracted_slice_10 = tensor.extract_slice %arg4[0, 0, 0] [2, 5, 45] [1, 1, 1] : tensor<2x5x48xf16> to tensor<2x5x45xf16>
    %cast_11 = tensor.cast %extracted_slice_10 : tensor<2x5x45xf16> to tensor<2x5x?xf16>
    %concat_12 = tensor.concat dim(2) %cast, %cast_11 : (tensor<2x5x?xf16>, tensor<2x5x?xf16>) -> tensor<2x5x48xf16>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x6x10xf16>) outs(%9 : tensor<2x4x6x10xf32>) {
    ^bb0(%in: f16, %out: f32):
      %50 = arith.extf %in : f16 to f32
      linalg.yield %50 : f32
    } -> tensor<2x4x6x10xf32>
    %22 = tensor.empty() : tensor<8xi64>
    %23 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%22 : tensor<8xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      %52 = arith.addi %51, %c-1_i64 : i64
      linalg.yield %52 : i64
    } -> tensor<8xi64>
    %24 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%23 : tensor<8xi64>) outs(%22 : tensor<8xi64>) {
    ^bb0(%in: i64, %out: i64):
      %50 = math.absi %in : i64
      linalg.yield %50 : i64
    } -> tensor<8xi64>
    %25 = linalg.generic {indexing_maps = [#map4, #map3, #map3], iterator_types = ["parallel"]} ins(%cst_4, %24 : tensor<i64>, tensor<8xi64>) outs(%22 : tensor<8xi64>) {
    ^bb0(%in: i64, %in_27: i64, %out: i64):
      %50 = arith.subi %in, %in_27 : i64
      linalg.yield %50 : i64
    } -> tensor<8xi64>
    %26 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%25 : tensor<8xi64>) outs(%22 : tensor<8xi64>) {
    ^bb0(%in: i64, %out: i64):
      %50 = math.absi %in : i64
      linalg.yield %50 : i64
    } -> tensor<8xi64>
    %27 = linalg.generic {indexing_maps = [#map4, #map3, #map3], iterator_types = ["parallel"]} ins(%cst_4, %26 : tensor<i64>, tensor<8xi64>) outs(%22 : tensor<8xi64>) {
    ^bb0(%in: i64, %in_27: i64, %out: i64):
      %50 = arith.subi %in, %in_27 : i64
      linalg.yield %50 : i64
    } -> tensor<8xi64>
    %28 = tensor.empty() : tensor<10xi64>
    %29 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%28 : tensor<10xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<10xi64>
    %expanded_13 = tensor.expand_shape %27 [[0, 1]] output_shape [8, 1] : tensor<8xi64> into tensor<8x1xi64>
    %30 = tensor.empty() : tensor<4xi64>
    %31 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%30 : tensor<4xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<4xi64>
    %expanded_14 = tensor.expand_shape %31 [[0, 1, 2]] output_shape [4, 1, 1] : tensor<4xi64> into tensor<4x1x1xi64>
    %32 = tensor.empty() : tensor<2xi64>
    %33 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%32 : tensor<2xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<2xi64>
    %expanded_15 = tensor.expand_shape %33 [[0, 1, 2, 3]] output_shape [2, 1, 1, 1] : tensor<2xi64> into tensor<2x1x1x1xi64>
    %34 = tensor.empty() : tensor<2x4x8x10xf32>
    %35 = linalg.generic {indexing_maps = [#map5, #map6, #map7, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15, %expanded_14, %expanded_13, %29 : tensor<2x1x1x1xi64>, tensor<4x1x1xi64>, tensor<8x1xi64>, tensor<10xi64>) outs(%34 : tensor<2x4x8x10xf32>) {
    ^bb0(%in: i64, %in_27: i64, %in_28: i64, %in_29: i64, %out: f32):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c2_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_27, %c0_i64 : i64
      %55 = arith.addi %in_27, %c4_i64 : i64
      %56 = arith.select %54, %55, %in_27 : i64
      %57 = arith.index_cast %56 : i64 to index
      %58 = arith.cmpi slt, %in_28, %c0_i64 : i64
      %59 = arith.addi %in_28, %c6_i64 : i64
      %60 = arith.select %58, %59, %in_28 : i64
      %61 = arith.index_cast %60 : i64 to index
      %62 = arith.cmpi slt, %in_29, %c0_i64 : i64
      %63 = arith.addi %in_29, %c10_i64 : i64
      %64 = arith.select %62, %63, %in_29 : i64
      %65 = arith.index_cast %64 : i64 to index
      %extracted = tensor.extract %21[%53, %57, %61, %65] : tensor<2x4x6x10xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x8x10xf32>
    %36 = tensor.empty() : tensor<12xi64>
    %37 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%36 : tensor<12xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      %52 = arith.addi %51, %c-1_i64 : i64
      linalg.yield %52 : i64
    } -> tensor<12xi64>
    %38 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%37 : tensor<12xi64>) outs(%36 : tensor<12xi64>) {
    ^bb0(%in: i64, %out: i64):
      %50 = math.absi %in : i64
      linalg.yield %50 : i64
    } -> tensor<12xi64>
    %39 = linalg.generic {indexing_maps = [#map4, #map3, #map3], iterator_types = ["parallel"]} ins(%cst_3, %38 : tensor<i64>, tensor<12xi64>) outs(%36 : tensor<12xi64>) {
    ^bb0(%in: i64, %in_27: i64, %out: i64):
      %50 = arith.subi %in, %in_27 : i64
      linalg.yield %50 : i64
    } -> tensor<12xi64>
    %40 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel"]} ins(%39 : tensor<12xi64>) outs(%36 : tensor<12xi64>) {
    ^bb0(%in: i64, %out: i64):
      %50 = math.absi %in : i64
      linalg.yield %50 : i64
    } -> tensor<12xi64>
    %41 = linalg.generic {indexing_maps = [#map4, #map3, #map3], iterator_types = ["parallel"]} ins(%cst_3, %40 : tensor<i64>, tensor<12xi64>) outs(%36 : tensor<12xi64>) {
    ^bb0(%in: i64, %in_27: i64, %out: i64):
      %50 = arith.subi %in, %in_27 : i64
      linalg.yield %50 : i64
    } -> tensor<12xi64>
    %42 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%22 : tensor<8xi64>) {
    ^bb0(%out: i64):
      %50 = linalg.index 0 : index
      %51 = arith.index_cast %50 : index to i64
      linalg.yield %51 : i64
    } -> tensor<8xi64>
    %expanded_16 = tensor.expand_shape %42 [[0, 1]] output_shape [8, 1] : tensor<8xi64> into tensor<8x1xi64>
    %43 = tensor.empty() : tensor<2x4x8x12xf32>
    %44 = linalg.generic {indexing_maps = [#map5, #map6, #map7, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15, %expanded_14, %expanded_16, %41 : tensor<2x1x1x1xi64>, tensor<4x1x1xi64>, tensor<8x1xi64>, tensor<12xi64>) outs(%43 : tensor<2x4x8x12xf32>) {
    ^bb0(%in: i64, %in_27: i64, %in_28: i64, %in_29: i64, %out: f32):
      %50 = arith.cmpi slt, %in, %c0_i64 : i64
      %51 = arith.addi %in, %c2_i64 : i64
      %52 = arith.select %50, %51, %in : i64
      %53 = arith.index_cast %52 : i64 to index
      %54 = arith.cmpi slt, %in_27, %c0_i64 : i64
      %55 = arith.addi %in_27, %c4_i64 : i64
      %56 = arith.select %54, %55, %in_27 : i64
      %57 = arith.index_cast %56 : i64 to index
      %58 = arith.cmpi slt, %in_28, %c0_i64 : i64
      %59 = arith.addi %in_28, %c8_i64 : i64
      %60 = arith.select %58, %59, %in_28 : i64
      %61 = arith.index_cast %60 : i64 to index
      %62 = arith.cmpi slt, %in_29, %c0_i64 : i64
      %63 = arith.addi %in_29, %c10_i64 : i64
      %64 = arith.select %62, %63, %in_29 : i64
      %65 = arith.index_cast %64 : i64 to index
      %extracted = tensor.extract %35[%53, %57, %61, %65] : tensor<2x4x8x10xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x8x12xf32>
    %45 = tensor.empty() : tensor<2x4x8x12xf16>
    %46 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44 : tensor<2x4x8x12xf32>) outs(%45 : tensor<2x4x8x12xf16>) {
    ^bb0(%in: f32, %out: f16):
      %50 = arith.truncf %in : f32 to f16
      linalg.yield %50 : f16
    } -> tensor<2x4x8x12xf16>
    %47 = tensor.empty() : tensor<2x5x48xf16>
    %48 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg4 : tensor<2x5x48xf16>) outs(%47 : tensor<2x5x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      %50 = arith.negf %in : f16
      linalg.yield %50 : f16
    } -> tensor<2x5x48xf16>
    %expanded_17 = tensor.expand_shape %arg4 [[0], [1], [2, 3]] output_shape [2, 5, 48, 1] : tensor<2x5x48xf16> into tensor<2x5x48x1xf16>
    %expanded_18 = tensor.expand_shape %48 [[0], [1], [2, 3]] output_shape [2, 5, 48, 1] : tensor<2x5x48xf16> into tensor<2x5x48x1xf16>
    %concat_19 = tensor.concat dim(3) %expanded_17, %expanded_18 : (tensor<2x5x48x1xf16>, tensor<2x5x48x1xf16>) -> tensor<2x5x48x2xf16>
    %expanded_20 = tensor.expand_shape %arg4 [[0], [1], [2, 3, 4]] output_shape [2, 5, 3, 2, 8] : tensor<2x5x48xf16> into tensor<2x5x3x2x8xf16>
    %49 = tensor.empty() : tensor<3x2x2x5x8xf16>
    %transposed = linalg.transpose ins(%expanded_20 : tensor<2x5x3x2x8xf16>) outs(%49 : tensor<3x2x2x5x8xf16>) permutation = [2, 0, 3, 1, 4] 
    %extracted_slice_21 = tensor.extract_slice %transposed[0, 0, 0, 0, 0] [1, 2, 2, 5, 8] [1, 1, 1, 1, 1] : tensor<3x2x2x5x8xf16> to tensor<1x2x2x5x8xf16>
    %extracted_slice_22 = tensor.extract_slice %transposed[1, 0, 0, 0, 0] [1, 2, 2, 5, 8] [1, 1, 1, 1, 1] : tensor<3x2x2x5x8xf16> to tensor<1x2x2x5x8xf16>
    %extracted_slice_23 = tensor.extract_slice %transposed[2, 0, 0, 0, 0] [1, 2, 2, 5, 8] [1, 1, 1, 1, 1] : tensor<3x2x2x5x8xf16> to tensor<1x2x2x5x8xf16>
    %collapsed_24 = tensor.collapse_shape %extracted_slice_21 [[0, 1], [2], [3], [4]] : tensor<1x2x2x5x8xf16> into tensor<2x2x5x8xf16>
    %collapsed_25 = tensor.collapse_shape %extracted_slice_22 [[0, 1], [2], [3], [4]] : tensor<1x2x2x5x8xf16> into tensor<2x2x5x8xf16>
    %collapsed_26 = tensor.collapse_shape %extracted_slice_23 [[0, 1], [2], [3], [4]] : tensor<1x2x2x5x8xf16> into tensor<2x2x5x8xf16>
    return %3, %8, %13, %collapsed_8, %concat_12, %46, %concat_19, %collapsed_24, %collapsed_25, %collapsed_26 : tensor<2x4x3x5xf16>, tensor<2x4x3x5xf16>, tensor<2x4x6x10xf16>, tensor<2x5x48xf16>, tensor<2x5x48xf16>, tensor<2x4x8x12xf16>, tensor<2x5x48x2xf16>, tensor<2x2x5x8xf16>, tensor<2x2x5x8xf16>, tensor<2x2x5x8xf16>
  }
}
