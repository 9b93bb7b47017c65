// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @small() threads(64) {
  // expected-error@+1 {{(SC1) expected elements of 32 bits in #axe.space<shared>, of static shape and without a layout, got 'memref<1x64xf16, #axe.space<shared>>'}}
  %parts = axe.reduce_scatter.create : memref<1x64xf16, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @space() threads(64) {
  // expected-error@+1 {{(SC1) expected elements of 32 bits in #axe.space<shared>, of static shape and without a layout, got 'memref<1x64xf32>'}}
  %parts = axe.reduce_scatter.create : memref<1x64xf32>
  axe.return
}

// -----

axe.kernel @dynamic() threads(64) {
  // expected-error@+1 {{(SC1) expected elements of 32 bits in #axe.space<shared>, of static shape and without a layout}}
  %parts = axe.reduce_scatter.create : memref<1x?xf32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @vector() threads(64) {
  // expected-error@+1 {{(SC1) expected elements of 32 bits in #axe.space<shared>, of static shape and without a layout, got 'memref<64xi32, #axe.space<shared>>'}}
  %parts = axe.reduce_scatter.create : memref<64xi32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @scope() threads(64) {
  axe.scope warp {
    // expected-error@+1 {{(SC2) expected to stand in the body of a kernel}}
    %parts = axe.reduce_scatter.create : memref<1x64xi32, #axe.space<shared>>
  }
  axe.return
}

// -----

axe.kernel @twice(%m: memref<128xf32>) threads(64) {
  // expected-error@+1 {{(SC3) expected one axe.reduce_scatter through it, got 2}}
  %parts = axe.reduce_scatter.create : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  %c = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}
