// C = A^T B for A: [K, M] = 640 x 1000, B: [K, N] = 640 x 768 in bf16, sums in f32: a matrix product as operators on tiles
// whose layouts say where their elements are. Other sizes are other constants: tiles that reach over an edge read zeros there
// and write nothing.
//
//   axe explain examples/trainium/gemm_tiles.mlir --target trn1       # which instructions, and why not others
//   axe compile examples/trainium/gemm_tiles.mlir --target trn1 --emit nki -o -
//   axe compile examples/trainium/gemm_tiles.mlir --target trn1 -o gemm.axe && axe sim gemm.axe --check --stats

// K lies on the partitions of both operands, 128 rows at a time: 5 * 128 = 640. Element (k, n) is on partition k mod 128, behind
// k / 128 rows of 512.
#a = #axe.layout<S[(5, 128, 128) : (128@F, 1@P, 1@F)]>
#b = #axe.layout<S[(5, 128, 512) : (512@F, 1@P, 1@F)]>
// A row of C is a partition: 128 x 512 sums in f32 are one bank of PSUM.
#c = #axe.layout<S[(128, 512) : (1@P, 1@F)]>

axe.kernel @gemm(%A: memref<640x1000xbf16>, %B: memref<640x768xbf16>, %C: memref<1000x768xbf16>) threads(1) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %M = arith.constant 1000 : index
  %N = arith.constant 768 : index
  // Columns of B stay in SBUF while rows of A^T stream by.
  scf.for %n = %c0 to %N step %c512 {
    %b_box = axe.slice %B[%c0, %n] : memref<640x768xbf16> to memref<640x512xbf16, strided<[768, 1]>>
    %b = axe.copy %b_box {trn.name = "b"} : memref<640x512xbf16, strided<[768, 1]>> -> tensor<640x512xbf16, #b>
    scf.for %m = %c0 to %M step %c128 {
      %a_box = axe.slice %A[%c0, %m] : memref<640x1000xbf16> to memref<640x128xbf16, strided<[1000, 1]>>
      %a = axe.copy %a_box {trn.name = "a"} : memref<640x128xbf16, strided<[1000, 1]>> -> tensor<640x128xbf16, #a>
      %sum = axe.gemm %a, %b {trans_a} : tensor<640x128xbf16, #a>, tensor<640x512xbf16, #b> -> tensor<128x512xf32, #c>
      %half = axe.cast %sum {trn.name = "c"} : tensor<128x512xf32, #c> -> tensor<128x512xbf16, #c>
      %c_box = axe.slice %C[%m, %n] : memref<1000x768xbf16> to memref<128x512xbf16, strided<[768, 1]>>
      axe.copy %half to %c_box : tensor<128x512xbf16, #c> to memref<128x512xbf16, strided<[768, 1]>>
    } {trn.index = "m"}
  } {trn.index = "n"}
  axe.return
}

func.func @main(%a: tensor<640x1000xbf16>, %b: tensor<640x768xbf16>) -> tensor<1000x768xbf16> {
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<1000x768xbf16>
  %c = axe.launch @gemm grid(%c1, %c1, %c1) ins(%a, %b : tensor<640x1000xbf16>, tensor<640x768xbf16>) outs(%empty : tensor<1000x768xbf16>) -> tensor<1000x768xbf16>
  return %c : tensor<1000x768xbf16>
}
