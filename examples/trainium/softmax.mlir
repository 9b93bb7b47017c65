// Softmax of rows on one core of trn1: the scalar engine computes exp(x - max) and its sums in one instruction, the
// vector engine the maxima before and the products after.
trn.kernel @softmax(%x: !trn.hbm<512x1024xf32>) outs(%y: !trn.hbm<512x1024xf32>) chip("trn1") {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %c512 step %c128 {
    %rows = trn.alloc copies(2) : !trn.sbuf<128x1024xf32>
    %negated = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
    %exps = trn.alloc copies(2) : !trn.sbuf<128x1024xf32>
    %sums = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
    %scales = trn.alloc copies(2) : !trn.sbuf<128x1xf32>
    %from = trn.view %x[%i, 0] sizes [128, 1024] : !trn.hbm<512x1024xf32> to !trn.hbm<128x1024xf32>
    %to = trn.view %y[%i, 0] sizes [128, 1024] : !trn.hbm<512x1024xf32> to !trn.hbm<128x1024xf32>
    trn.dma_copy %rows, %from : !trn.sbuf<128x1024xf32>, !trn.hbm<128x1024xf32>
    trn.tensor_reduce %negated, maximum(%rows) axes 1 negated : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1024xf32>
    trn.activation %exps, exp(%rows) bias(%negated : !trn.sbuf<128x1xf32>) registers(reset_reduce)
        into(%sums : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x1024xf32>, !trn.sbuf<128x1024xf32>
    trn.reciprocal %scales, %sums : !trn.sbuf<128x1xf32>, !trn.sbuf<128x1xf32>
    trn.tensor_scalar %exps, %exps multiply(%scales : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x1024xf32>, !trn.sbuf<128x1024xf32>
    trn.dma_copy %to, %exps : !trn.hbm<128x1024xf32>, !trn.sbuf<128x1024xf32>
  } {trn.index = "i"}
}
