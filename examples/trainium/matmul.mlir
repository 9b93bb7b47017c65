// result[M, N] = lhsT[K, M]^T rhs[K, N] on one core of trn1: all of rhs stays in SBUF, columns of lhsT are loaded while
// those before them are multiplied, and sums stay in PSUM until all of K is added.
//
//   axe trn nki examples/trainium/matmul.mlir                       NKI source
//   axe trn sim examples/trainium/matmul.mlir                       every rule enforced
//   axe trn time examples/trainium/matmul.mlir --timeline time.svg  the cost model
trn.kernel @matmul(%lhsT: !trn.hbm<1024x512xbf16>, %rhs: !trn.hbm<1024x2048xbf16>)
    outs(%result: !trn.hbm<512x2048xbf16>) chip("trn1") {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %c2048 = arith.constant 2048 : index

  %weights = trn.alloc : !trn.sbuf<128x8x2048xbf16>
  scf.for %k = %c0 to %c8 step %c1 {
    %row = arith.muli %k, %c128 : index
    %from = trn.view %rhs[%row, 0] sizes [128, 2048] : !trn.hbm<1024x2048xbf16> to !trn.hbm<128x2048xbf16>
    %to = trn.view %weights[0, %k, 0] sizes [128, 2048] dims [0, 2] : !trn.sbuf<128x8x2048xbf16> to !trn.sbuf<128x2048xbf16>
    trn.dma_copy %to, %from {trn.comment = "rows of 4 KiB: DMA at its peak"} : !trn.sbuf<128x2048xbf16>, !trn.hbm<128x2048xbf16>
  } {trn.index = "k_w"}
  scf.for %m = %c0 to %c512 step %c128 {
    %columns = trn.alloc copies(2) : !trn.sbuf<128x8x128xbf16>
    scf.for %k = %c0 to %c8 step %c1 {
      %row = arith.muli %k, %c128 : index
      %from = trn.view %lhsT[%row, %m] sizes [128, 128] : !trn.hbm<1024x512xbf16> to !trn.hbm<128x128xbf16>
      %to = trn.view %columns[0, %k, 0] sizes [128, 128] dims [0, 2] : !trn.sbuf<128x8x128xbf16> to !trn.sbuf<128x128xbf16>
      trn.dma_copy %to, %from : !trn.sbuf<128x128xbf16>, !trn.hbm<128x128xbf16>
    } {trn.index = "k_l"}
    %out = trn.alloc copies(2) : !trn.sbuf<128x2048xbf16>
    scf.for %n = %c0 to %c2048 step %c512 {
      %sums = trn.alloc copies(4) : !trn.psum<128x512xf32>
      scf.for %k = %c0 to %c8 step %c1 {
        %a = trn.view %columns[0, %k, 0] sizes [128, 128] dims [0, 2] : !trn.sbuf<128x8x128xbf16> to !trn.sbuf<128x128xbf16>
        %b = trn.view %weights[0, %k, %n] sizes [128, 512] dims [0, 2] : !trn.sbuf<128x8x2048xbf16> to !trn.sbuf<128x512xbf16>
        trn.nc_matmul %sums, %a, %b : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
      } {trn.index = "k"}
      %part = trn.view %out[0, %n] sizes [128, 512] : !trn.sbuf<128x2048xbf16> to !trn.sbuf<128x512xbf16>
      trn.tensor_copy %part, %sums : !trn.sbuf<128x512xbf16>, !trn.psum<128x512xf32>
    } {trn.index = "n"}
    %rows = trn.view %result[%m, 0] sizes [128, 2048] : !trn.hbm<512x2048xbf16> to !trn.hbm<128x2048xbf16>
    trn.dma_copy %rows, %out : !trn.hbm<128x2048xbf16>, !trn.sbuf<128x2048xbf16>
  } {trn.index = "m"}
}
