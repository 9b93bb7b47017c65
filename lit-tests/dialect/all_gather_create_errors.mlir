// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @vector() threads(64) {
  // expected-error@+1 {{(AC1) expected a matrix of 'i32', or two, in #axe.space<shared>, without a layout, got 'memref<64xi32, #axe.space<shared>>'}}
  %all = axe.all_gather.create : memref<64xi32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @three() threads(64) {
  // expected-error@+1 {{(AC1) expected a matrix of 'i32', or two, in #axe.space<shared>, without a layout, got 'memref<3x64x1xi32, #axe.space<shared>>'}}
  %all = axe.all_gather.create : memref<3x64x1xi32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @scope() threads(64) {
  axe.scope warp {
    // expected-error@+1 {{(AC2) expected to stand in the body of a kernel}}
    %all = axe.all_gather.create : memref<64x1xi32, #axe.space<shared>>
  }
  axe.return
}

// -----

axe.kernel @twice(%m: memref<1xf32>) threads(64) {
  // expected-error@+1 {{(AC3) expected one axe.all_gather through it, got 2}}
  %all = axe.all_gather.create : memref<2x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf32> -> tensor<1xf32>
  %as = axe.all_gather %a through %all : tensor<1xf32> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x2xf32>
  %bs = axe.all_gather %a through %all : tensor<1xf32> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x2xf32>
  axe.return
}
