// C = A W^T in f16 with f32 sums, one line of linalg's idea: what `axe compile` makes a pipelined kernel of. The figures are in
// docs/performance.md.
func.func @main(%a: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %sums = axe.gemm %a, %w {trans_b} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf32>
  %c = axe.cast %sums : tensor<4096x4096xf32> -> tensor<4096x4096xf16>
  return %c : tensor<4096x4096xf16>
}
