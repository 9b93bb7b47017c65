// RUN: axe-opt %s | axe-opt | FileCheck %s
// RUN: axe-opt %s -mlir-print-op-generic | axe-opt | FileCheck %s
// RUN: axe-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// Kernels, tiles, views, loops. Names are kept; tiles that have none are called tile.

// CHECK-LABEL: trn.kernel @scale(%x: !trn.hbm<512x512xf32>) outs(%y: !trn.hbm<512x512xf32>) chip("trn1")
// GENERIC: "trn.kernel"() <{arg_names = ["x", "y"], chip = "trn1", inputs = 1 : i64, sym_name = "scale"}>
trn.kernel @scale(%x: !trn.hbm<512x512xf32>) outs(%y: !trn.hbm<512x512xf32>) chip("trn1") {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %c512 step %c128 {
    // CHECK: %t = trn.alloc copies(2) : !trn.sbuf<128x512xf32>
    // GENERIC: "trn.alloc"() <{copies = 2 : i64, name = "t"}>
    %t = trn.alloc copies(2) : !trn.sbuf<128x512xf32>
    // CHECK: trn.view %x[%{{.*}}, 0] sizes [128, 512] : !trn.hbm<512x512xf32> to !trn.hbm<128x512xf32>
    %from = trn.view %x[%i, 0] sizes [128, 512] : !trn.hbm<512x512xf32> to !trn.hbm<128x512xf32>
    %to = trn.view %y[%i, 0] sizes [128, 512] : !trn.hbm<512x512xf32> to !trn.hbm<128x512xf32>
    trn.dma_copy %t, %from : !trn.sbuf<128x512xf32>, !trn.hbm<128x512xf32>
    trn.tensor_scalar %t, %t multiply(2.0) : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
    trn.dma_copy %to, %t : !trn.hbm<128x512xf32>, !trn.sbuf<128x512xf32>
  }
}

// CHECK-LABEL: trn.kernel @views
trn.kernel @views() chip("trn2") {
  // CHECK: %sums = trn.alloc at(0, 4096) : !trn.psum<128x512xf32>
  %sums = trn.alloc at(0, 4096) : !trn.psum<128x512xf32>
  // CHECK: trn.alloc at(64, 0) : !trn.sbuf<32x512xf32>
  %0 = trn.alloc at(64, 0) : !trn.sbuf<32x512xf32>
  // CHECK: trn.view %{{.*}}[0, 0] sizes [32, 4, 128] dims [0, 1, 1] steps [1, 128, 1] : !trn.sbuf<32x512xf32> to !trn.sbuf<32x4x128xf32>
  %split = trn.view %0[0, 0] sizes [32, 4, 128] dims [0, 1, 1] steps [1, 128, 1]
      : !trn.sbuf<32x512xf32> to !trn.sbuf<32x4x128xf32>
  // CHECK: sizes [32, 128, 4] dims [0, 2, 1]
  %turned = trn.view %split[0, 0, 0] sizes [32, 128, 4] dims [0, 2, 1]
      : !trn.sbuf<32x4x128xf32> to !trn.sbuf<32x128x4xf32>
  // CHECK: sizes [32, 8] dims [0, -1]
  %repeated = trn.view %0[0, 3] sizes [32, 8] dims [0, -1] : !trn.sbuf<32x512xf32> to !trn.sbuf<32x8xf32>
}
