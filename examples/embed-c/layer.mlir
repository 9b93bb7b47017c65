func.func @layer(%x: tensor<128x64xf16>, %w: tensor<64x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<128x64xf16>, tensor<64x128xf16>)
                     outs(%init : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
