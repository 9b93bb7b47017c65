// softmax(q k^T / 8) v of two heads on one core of trn1, q and k as [elements, rows]: the largest scores first, then weights,
// whose transposes are the stationary operand of the product with v. `axe trn attention` plans a faster one.
//
//   axe trn nki examples/trainium/attention.mlir
//   axe trn sim examples/trainium/attention.mlir
//   axe trn time examples/trainium/attention.mlir --timeline time.svg
trn.kernel @attention(%q: !trn.hbm<2x64x256xbf16>, %k: !trn.hbm<2x64x1024xbf16>, %v: !trn.hbm<2x1024x64xbf16>)
    outs(%result: !trn.hbm<2x256x64xbf16>) chip("trn1") {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  scf.for %h = %c0 to %c2 step %c1 {
    %keys = trn.alloc copies(2) : !trn.sbuf<64x1024xbf16>
    %values = trn.alloc copies(2) : !trn.sbuf<128x8x64xbf16>
    %k_h = trn.view %k[%h, 0, 0] sizes [64, 1024] dims [1, 2] : !trn.hbm<2x64x1024xbf16> to !trn.hbm<64x1024xbf16>
    %v_h = trn.view %v[%h, 0, 0] sizes [128, 8, 64] dims [1, 1, 2] steps [1, 128, 1] : !trn.hbm<2x1024x64xbf16> to !trn.hbm<128x8x64xbf16>
    trn.dma_copy %keys, %k_h : !trn.sbuf<64x1024xbf16>, !trn.hbm<64x1024xbf16>
    trn.dma_copy %values, %v_h : !trn.sbuf<128x8x64xbf16>, !trn.hbm<128x8x64xbf16>
    scf.for %i = %c0 to %c256 step %c128 {
      %queries = trn.alloc copies(2) : !trn.sbuf<64x128xbf16>
      %q_i = trn.view %q[%h, 0, %i] sizes [64, 128] dims [1, 2] : !trn.hbm<2x64x256xbf16> to !trn.hbm<64x128xbf16>
      trn.dma_copy %queries, %q_i : !trn.sbuf<64x128xbf16>, !trn.hbm<64x128xbf16>

      %maxima = trn.alloc copies(2) : !trn.sbuf<128x2xf32>
      scf.for %j = %c0 to %c2 step %c1 {
        %key = arith.muli %j, %c512 : index
        %some = trn.view %keys[0, %key] sizes [64, 512] : !trn.sbuf<64x1024xbf16> to !trn.sbuf<64x512xbf16>
        %scores = trn.alloc copies(2) : !trn.psum<128x512xf32>
        trn.nc_matmul %scores, %queries, %some : !trn.psum<128x512xf32>, !trn.sbuf<64x128xbf16>, !trn.sbuf<64x512xbf16>
        %largest = trn.view %maxima[0, %j] sizes [128, 1] : !trn.sbuf<128x2xf32> to !trn.sbuf<128x1xf32>
        trn.tensor_reduce %largest, maximum(%scores) axes 1 : !trn.sbuf<128x1xf32>, !trn.psum<128x512xf32>
      } {trn.index = "j_max"}
      %negated = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
      %bias = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
      trn.tensor_reduce %negated, maximum(%maxima) axes 1 negated : !trn.sbuf<128x1xf32>, !trn.sbuf<128x2xf32>
      trn.tensor_scalar %bias, %negated multiply(0.125) : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>

      %sums = trn.alloc copies(2) : !trn.sbuf<128x2xf32>
      %context = trn.alloc : !trn.psum<128x64xf32>
      scf.for %j = %c0 to %c2 step %c1 {
        %key = arith.muli %j, %c512 : index
        %some = trn.view %keys[0, %key] sizes [64, 512] : !trn.sbuf<64x1024xbf16> to !trn.sbuf<64x512xbf16>
        %scores = trn.alloc copies(2) : !trn.psum<128x512xf32>
        trn.nc_matmul %scores, %queries, %some : !trn.psum<128x512xf32>, !trn.sbuf<64x128xbf16>, !trn.sbuf<64x512xbf16>
        %weights = trn.alloc copies(2) : !trn.sbuf<128x512xbf16>
        %sum = trn.view %sums[0, %j] sizes [128, 1] : !trn.sbuf<128x2xf32> to !trn.sbuf<128x1xf32>
        trn.activation %weights, exp(%scores) scale(0.125) bias(%bias : !trn.sbuf<128x1xf32>) registers(reset_reduce)
            into(%sum : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x512xbf16>, !trn.psum<128x512xf32>
        %turned = trn.alloc copies(2) : !trn.psum<128x4x128xf32>
        scf.for %t = %c0 to %c4 step %c1 {
          %column = arith.muli %t, %c128 : index
          %from = trn.view %weights[0, %column] sizes [128, 128] : !trn.sbuf<128x512xbf16> to !trn.sbuf<128x128xbf16>
          %to = trn.view %turned[0, %t, 0] sizes [128, 128] dims [0, 2] : !trn.psum<128x4x128xf32> to !trn.psum<128x128xf32>
          trn.nc_transpose %to, %from : !trn.psum<128x128xf32>, !trn.sbuf<128x128xbf16>
        } {trn.index = "t"}
        %stationary = trn.alloc copies(2) : !trn.sbuf<128x4x128xbf16>
        trn.tensor_copy %stationary, %turned : !trn.sbuf<128x4x128xbf16>, !trn.psum<128x4x128xf32>
        %chunk = arith.muli %j, %c4 : index
        scf.for %t = %c0 to %c4 step %c1 {
          %at = arith.addi %chunk, %t : index
          %w = trn.view %stationary[0, %t, 0] sizes [128, 128] dims [0, 2] : !trn.sbuf<128x4x128xbf16> to !trn.sbuf<128x128xbf16>
          %x = trn.view %values[0, %at, 0] sizes [128, 64] dims [0, 2] : !trn.sbuf<128x8x64xbf16> to !trn.sbuf<128x64xbf16>
          trn.nc_matmul %context, %w, %x : !trn.psum<128x64xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x64xbf16>
        } {trn.index = "t_v"}
      } {trn.index = "j"}

      %total = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
      %inverse = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
      %out = trn.alloc copies(2) : !trn.sbuf<128x64xbf16>
      trn.tensor_reduce %total, add(%sums) axes 1 : !trn.sbuf<128x1xf32>, !trn.sbuf<128x2xf32>
      trn.reciprocal %inverse, %total : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>
      trn.tensor_scalar %out, %context multiply(%inverse : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x64xbf16>, !trn.psum<128x64xf32>
      %rows = trn.view %result[%h, %i, 0] sizes [128, 64] dims [1, 2] : !trn.hbm<2x256x64xbf16> to !trn.hbm<128x64xbf16>
      trn.dma_copy %rows, %out : !trn.hbm<128x64xbf16>, !trn.sbuf<128x64xbf16>
    } {trn.index = "i"}
  } {trn.index = "h"}
}
