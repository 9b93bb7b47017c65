// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @dim(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR1) expected a dim below 1, got 1}}
  %b = axe.reduce_scatter <add> %a dim 1 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @negative(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR1) expected a dim below 1, got -1}}
  %b = axe.reduce_scatter <add> %a dim -1 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @uneven(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x48xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR2) expected a part of 'tensor<128xf32>' along dim 0, got 'tensor<48xf32>'}}
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<1x48xf32, #axe.space<shared>> -> tensor<48xf32>
  axe.return
}

// -----

axe.kernel @all(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x128xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR2) expected a part of 'tensor<128xf32>' along dim 0, got 'tensor<128xf32>'}}
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<1x128xf32, #axe.space<shared>> -> tensor<128xf32>
  axe.return
}

// -----

axe.kernel @other(%m: memref<4x128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x2x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<4x128xf32> -> tensor<4x128xf32>
  // expected-error@+1 {{(SR2) expected a part of 'tensor<4x128xf32>' along dim 1, got 'tensor<2x64xf32>'}}
  %b = axe.reduce_scatter <add> %a dim 1 through %parts : tensor<4x128xf32> through memref<1x2x64xf32, #axe.space<shared>> -> tensor<2x64xf32>
  axe.return
}

// -----

axe.kernel @dynamic(%m: memref<?xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<?xf32> -> tensor<?xf32>
  // expected-error@+1 {{(SR2) expected a part of 'tensor<?xf32>' along dim 0, got 'tensor<64xf32>'}}
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<?xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @rooms(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<2x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR3) expected storage of an axe.reduce_scatter.create of the shape [1, 64] and elements of 'f32', got 'memref<2x64xf32, #axe.space<shared>>'}}
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<2x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @storage(%m: memref<128xf32>) threads(64) {
  %parts = axe.alloc : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR3) expected storage of an axe.reduce_scatter.create of the shape [1, 64] and elements of 'f32'}}
  %b = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @combiner(%m: memref<128xf32>) threads(64) {
  %parts = axe.reduce_scatter.create : memref<1x64xf32, #axe.space<shared>>
  %a = axe.copy %m : memref<128xf32> -> tensor<128xf32>
  // expected-error@+1 {{(SR4) expected integer elements for 'and', got 'f32'}}
  %b = axe.reduce_scatter <and> %a dim 0 through %parts : tensor<128xf32> through memref<1x64xf32, #axe.space<shared>> -> tensor<64xf32>
  axe.return
}
