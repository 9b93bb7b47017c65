// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

#all = #axe.layout<S[(8, 128) : (1@reg, 1@thread)]>
#part = #axe.layout<S[(4, 128) : (1@reg, 1@thread)]>
axe.kernel @ctas(%x: memref<8x128xf32>) threads(128) cluster(4, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x4x128xf32, #axe.space<shared>>
  %a = axe.copy %x : memref<8x128xf32> -> tensor<8x128xf32, #all>
  // expected-error @below {{expected as many parts as the cluster has CTAs, 4, got 2}}
  %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<8x128xf32, #all> through memref<1x4x128xf32, #axe.space<shared>> -> tensor<4x128xf32, #part>
  axe.return
}

// -----

// The other CTA's thread would have to send what this one holds.
#all = #axe.layout<S[(8, 128) : (1@reg, 1@thread)]>
#part = #axe.layout<S[(8, 64) : (1@reg, 2@thread)]>
axe.kernel @threads(%x: memref<8x128xf32>) threads(128) cluster(2, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x8x64xf32, #axe.space<shared>>
  %a = axe.copy %x : memref<8x128xf32> -> tensor<8x128xf32, #all>
  // expected-error @below {{expected elements that one thread holds each}}
  %s = axe.reduce_scatter <add> %a dim 1 through %parts : tensor<8x128xf32, #all> through memref<1x8x64xf32, #axe.space<shared>> -> tensor<8x64xf32, #part>
  axe.return
}

// -----

#all = #axe.layout<S[(8, 128) : (1@reg, 1@thread)]>
#part = #axe.layout<S[(2, 2, 2, 64) : (1@reg, 64@thread, 2@reg, 1@thread)]>
axe.kernel @places(%x: memref<8x128xf32>) threads(128) cluster(2, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x4x128xf32, #axe.space<shared>>
  %a = axe.copy %x : memref<8x128xf32> -> tensor<8x128xf32, #all>
  // expected-error @below {{no register holds, in every thread, what result register}}
  %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<8x128xf32, #all> through memref<1x4x128xf32, #axe.space<shared>> -> tensor<4x128xf32, #part>
  axe.return
}

// -----

#all = #axe.layout<S[(4, 128) : (1@reg, 1@thread)]>
#part = #axe.layout<S[(2, 128) : (1@reg, 1@thread)]>
axe.kernel @few(%x: memref<4x128xf32>) threads(128) cluster(2, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x2x128xf32, #axe.space<shared>>
  %a = axe.copy %x : memref<4x128xf32> -> tensor<4x128xf32, #all>
  // expected-error @below {{expected parts of a multiple of 4 elements of each thread, got 2}}
  %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<4x128xf32, #all> through memref<1x2x128xf32, #axe.space<shared>> -> tensor<2x128xf32, #part>
  axe.return
}

// -----

#all = #axe.layout<S[(8, 32) : (1@reg, 1@lane)]>
#part = #axe.layout<S[(4, 32) : (1@reg, 1@lane)]>
axe.kernel @groups(%x: memref<8x32xf32>) threads(128) cluster(2, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x4x32xf32, #axe.space<shared>>
  axe.scope warp {
    %a = axe.copy %x : memref<8x32xf32> -> tensor<8x32xf32, #all>
    // expected-error @below {{expected one thread group: its storage is one's}}
    %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<8x32xf32, #all> through memref<1x4x32xf32, #axe.space<shared>> -> tensor<4x32xf32, #part>
  }
  axe.return
}
