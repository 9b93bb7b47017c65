// A product of vectors, which this compiler's operation does not say.
func.func @layer(%x: tensor<64xf16>, %w: tensor<64x128xf16>) -> tensor<128xf16> {
  %y = "tiny.matmul"(%x, %w) : (tensor<64xf16>, tensor<64x128xf16>) -> tensor<128xf16>
  return %y : tensor<128xf16>
}
