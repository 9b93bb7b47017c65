// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#eight = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>
axe.kernel @closed(%x: memref<1xf32>) threads(128) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<8x1xi32, #axe.space<shared>>
  axe.scope warp {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
    // expected-error @below {{expected an axe.barrier cluster between the axe.all_gather.create and this: other CTAs write its storage}}
    %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>
  }
  axe.return
}

// -----

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#eight = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>
axe.kernel @loop(%x: memref<1xf32>, %n: index) threads(128) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<8x1xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  axe.barrier cluster
  axe.scope warp {
    scf.for %i = %c0 to %n step %c1 {
      %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
      // expected-error @below {{expected outside of loops and branches: its rows are written once, or storage of two slots, in a loop}}
      %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>
    }
  }
  axe.return
}

// -----

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#four = #axe.layout<S[4 : 1@lane] + R[8 : 4@lane]>
axe.kernel @part(%x: memref<1xf32>) threads(128) {
  %all = axe.all_gather.create : memref<4x1xi32, #axe.space<shared>>
  axe.scope warp [0, 1) {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
    // expected-error @below {{expected thread groups that are all of the CTA}}
    %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<4x1xi32, #axe.space<shared>> -> tensor<1x4xf32, #four>
  }
  axe.return
}

// -----

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#eight = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>
axe.kernel @rows(%x: memref<1xf32>) threads(128) {
  %all = axe.all_gather.create : memref<8x1xi32, #axe.space<shared>>
  axe.scope warp {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
    // expected-error @below {{expected rows of 4 thread groups of 1 CTAs, got storage of [8, 1]}}
    %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>
  }
  axe.return
}

// -----

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#eight = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>
axe.kernel @branch(%x: memref<1xf32>, %is: i1) threads(128) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<2x8x1xi32, #axe.space<shared>>
  axe.barrier cluster
  scf.if %is {
    axe.scope warp {
      %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
      // expected-error @below {{expected outside of branches: all thread groups of the cluster give rows equally often}}
      %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<2x8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>
    }
  }
  axe.return
}

// -----

#all = #axe.layout<S[() : ()] + R[(2, 32) : (1@warp, 1@lane)]>
#two = #axe.layout<S[2 : 1@reg] + R[(2, 32) : (1@warp, 1@lane)]>
axe.kernel @groups(%x: memref<1xf32>, %n: index) threads(64) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<2x2x1xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  axe.barrier cluster
  scf.for %i = %c0 to %n step %c1 {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #all>
    // expected-error @below {{expected warps, in a loop}}
    %as = axe.all_gather %a through %all : tensor<1xf32, #all> through memref<2x2x1xi32, #axe.space<shared>> -> tensor<1x2xf32, #two>
  }
  axe.return
}
