// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_80 --axe-lower-schedules -split-input-file -verify-diagnostics

axe.kernel @pipeline() threads(64) {
  // expected-error @below {{sm_80 cannot wait for an mbarrier's phase: pipelines need sm_90 or up}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.return
}

// -----

axe.kernel @peer(%rank: index) threads(64) {
  %s = axe.alloc : memref<64xf32, #axe.space<shared>>
  // expected-error @below {{sm_80 has no clusters: expected sm_90 or up}}
  %there = axe.peer %s at %rank : memref<64xf32, #axe.space<shared>> to memref<64xf32, #axe.space<cluster_shared>>
  axe.return
}

// -----

#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @product() threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  // expected-error @below {{sm_80 has no wgmma}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

axe.kernel @store(%x: memref<64x64xf16>) threads(128) {
  %a = axe.alloc : memref<64x64xf16, #axe.space<shared>>
  // expected-error @below {{sm_80 has no tensor memory accelerator}}
  axe.copy async %a to %x schedule = "tma.store" : memref<64x64xf16, #axe.space<shared>> to memref<64x64xf16>
  axe.return
}
