// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_80 --axe-lower-schedules -split-input-file -verify-diagnostics

// A register tensor needs a layout.
axe.kernel @no_layout(%x: memref<64xf32>) threads(64) {
  // expected-error @below {{no schedule of sm_80 takes this 'axe.copy'}}
  %v = axe.copy %x : memref<64xf32> -> tensor<64xf32>
  axe.return
}

// -----

axe.kernel @outside(%x: memref<128xf32>) threads(64) {
  // expected-error @below {{threads 0 to 127 are not all among the scope's 64}}
  %v = axe.copy %x : memref<128xf32> -> tensor<128xf32, #axe.layout<S[128 : 1@thread]>>
  axe.return
}

// -----

axe.kernel @unknown(%x: memref<64xf32>) threads(64) {
  // expected-error @below {{'axe.copy' has no schedule "tma" on sm_80: expected one of ldmatrix, ld.funnel, ld.vector, ld.scalar}}
  %v = axe.copy %x schedule = "tma" : memref<64xf32> -> tensor<64xf32, #axe.layout<S[64 : 1@thread]>>
  axe.return
}

// -----

axe.kernel @forced(%x: memref<64xf32>) threads(64) {
  // expected-error @below {{ldmatrix: expected shared memory}}
  %v = axe.copy %x schedule = "ldmatrix" : memref<64xf32> -> tensor<64xf32, #axe.layout<S[64 : 1@thread]>>
  axe.return
}

// -----

axe.kernel @logical(%x: memref<64xf32>) threads(64) {
  // expected-error @below {{'tensor.empty' has no form in a kernel of this target}}
  %v = tensor.empty() : tensor<64xf32>
  axe.return
}

// -----

// expected-error @below {{the kernel needs 262144 bytes of shared memory, and a CTA of sm_80 has 166912}}
axe.kernel @large() threads(64) {
  %s = axe.alloc : memref<65536xf32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @dynamic(%x: memref<4x?xf32>) threads(64) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{only the outermost extent may be dynamic}}
  %s = axe.slice %x[%c0, %c0] : memref<4x?xf32> to memref<4x8xf32>
  axe.return
}

// -----

// What skips factors of 1 multiplies, and does nothing else.
#rows = #axe.layout<S[(4, 32) : (1@warp, 1@lane)]>
axe.kernel @adds(%z: f32) threads(128) {
  %x = axe.fill %z : f32 -> tensor<4x32xf32, #rows>
  // expected-error @below {{rescale: the body is not the product of two inputs (arith.mulf)}}
  %v = axe.map ins(%x, %x : tensor<4x32xf32, #rows>, tensor<4x32xf32, #rows>) -> tensor<4x32xf32, #rows> schedule = "rescale" {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    axe.yield %c : f32
  }
  axe.return
}
