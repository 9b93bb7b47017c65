// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

#words = #axe.layout<Sw<3, 2, 3> o S[(64, 32) : (32, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @rounded() threads(128) {
  %a = axe.alloc : memref<64x32xf32, #words, #axe.space<shared>>
  // expected-error @below {{wgmma: f32 operands would be rounded to tf32: allow it with options = {precision =}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x32xf32, #words, #axe.space<shared>>, memref<64x32xf32, #words, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @synchronous() threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  // expected-error @below {{wgmma: the product is not asynchronous}}
  %p = axe.gemm %a, %a schedule = "wgmma" {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @global(%x: memref<64x64xf16>) threads(128) {
  // expected-error @below {{wgmma: expected shared memory}}
  %p = axe.gemm async %x, %x schedule = "wgmma" {trans_b} : memref<64x64xf16>, memref<64x64xf16> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @shorts() threads(128) {
  %a = axe.alloc : memref<64x64xi16, #axe.space<shared>>
  // expected-error @below {{wgmma: there is no wgmma of i16}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x64xi16, #axe.space<shared>>, memref<64x64xi16, #axe.space<shared>> -> tensor<64x64xi32, #sums>
  axe.return
}

// -----

// The accumulators' registers are the instruction's.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#rows = #axe.layout<S[(64, 2, 32) : (1@lane, 64@lane, 1@reg)]>
axe.kernel @fragment() threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  // expected-error @below {{wgmma: D: register 0 of warpgroup 0 begins no 64 x 8 block of the instruction}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #rows>
  axe.return
}

// -----

// Rows that are 16 bytes apart by a stride that no descriptor has.
#odd = #axe.layout<S[(64, 64) : (72, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @padded() threads(128) {
  %a = axe.alloc : memref<64x64xf16, #odd, #axe.space<shared>>
  // expected-error @below {{wgmma: B: with rows of k: expected rows 16 bytes apart, got 144}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x64xf16, #odd, #axe.space<shared>>, memref<64x64xf16, #odd, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}

// -----

// Half a warpgroup is none.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(2, 2, 2, 8, 8, 4, 2) : (1@warp, 32@reg, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @warps() threads(64) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  // expected-error @below {{wgmma: expected whole warpgroups of 128 threads, got 64 threads}}
  %p = axe.gemm async %a, %a schedule = "wgmma" {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  axe.return
}
