// A layer of a model in the compiler's own dialect.
func.func @layer(%x: tensor<128x64xf16>, %w: tensor<64x128xf16>) -> tensor<128x128xf16> {
  %y = "tiny.matmul"(%x, %w) : (tensor<128x64xf16>, tensor<64x128xf16>) -> tensor<128x128xf16>
  %z = "tiny.relu"(%y) : (tensor<128x128xf16>) -> tensor<128x128xf16>
  return %z : tensor<128x128xf16>
}
