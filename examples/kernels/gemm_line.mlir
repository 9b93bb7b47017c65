// C = A W^T in f16 with f32 sums, in two lines. With axe.plan = {tile = array<i64: 128, 256, 64>} on the product the compiler
// plans the kernel that gemm_roles.mlir spells out; left alone it chooses a tile at which the two warpgroups take turns.
func.func @main(%a: tensor<8192x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<8192x4096xf16> {
  %sums = axe.gemm %a, %w {trans_b} : tensor<8192x4096xf16>, tensor<4096x4096xf16> -> tensor<8192x4096xf32>
  %c = axe.cast %sums : tensor<8192x4096xf32> -> tensor<8192x4096xf16>
  return %c : tensor<8192x4096xf16>
}
