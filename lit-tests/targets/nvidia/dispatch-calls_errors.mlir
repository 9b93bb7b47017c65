// Maps that no call is made for.
// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a" -split-input-file -verify-diagnostics

#rows = #axe.layout<S[(4, 32, 16) : (1@warp, 1@lane, 1@reg)]>

axe.kernel @elsewhere(%x: memref<4x512xf32>) threads(128) {
  %v = axe.copy %x : memref<4x512xf32> -> tensor<4x512xf32, #rows>
  // expected-error @below {{the map does not follow a tile's sums}}
  %m = axe.map ins(%v : tensor<4x512xf32, #rows>) -> tensor<4x512xf32, #rows> schedule = "call" {
  ^bb0(%u: f32):
    %t = math.tanh %u : f32
    axe.yield %t : f32
  }
  axe.copy %m to %x : tensor<4x512xf32, #rows> to memref<4x512xf32>
  axe.return
}

// -----

#rows = #axe.layout<S[(4, 32, 16) : (1@warp, 1@lane, 1@reg)]>

axe.kernel @short(%x: memref<4x512xf32>) threads(128) {
  %v = axe.copy %x : memref<4x512xf32> -> tensor<4x512xf32, #rows>
  // expected-error @below {{the body is a few instructions}}
  %m = axe.map ins(%v : tensor<4x512xf32, #rows>) -> tensor<4x512xf32, #rows> schedule = "call" {
  ^bb0(%u: f32):
    %t = arith.addf %u, %u : f32
    axe.yield %t : f32
  }
  axe.copy %m to %x : tensor<4x512xf32, #rows> to memref<4x512xf32>
  axe.return
}

// -----

#rows = #axe.layout<S[(4, 32, 16) : (1@warp, 1@lane, 1@reg)]>

axe.kernel @captures(%x: memref<4x512xf32>, %z: f32) threads(128) {
  %v = axe.copy %x : memref<4x512xf32> -> tensor<4x512xf32, #rows>
  // expected-error @below {{the body has values of the kernel around it}}
  %m = axe.map ins(%v : tensor<4x512xf32, #rows>) -> tensor<4x512xf32, #rows> schedule = "call" {
  ^bb0(%u: f32):
    %t = math.tanh %u : f32
    %s = arith.addf %t, %z : f32
    axe.yield %s : f32
  }
  axe.copy %m to %x : tensor<4x512xf32, #rows> to memref<4x512xf32>
  axe.return
}

// -----

#rows = #axe.layout<S[(4, 32, 4) : (1@warp, 1@lane, 1@reg)]>

axe.kernel @registers(%x: memref<4x128xf32>) threads(128) {
  %v = axe.copy %x : memref<4x128xf32> -> tensor<4x128xf32, #rows>
  // expected-error @below {{4 registers: expected a multiple of 16 from 16 on}}
  %m = axe.map ins(%v : tensor<4x128xf32, #rows>) -> tensor<4x128xf32, #rows> schedule = "call" {
  ^bb0(%u: f32):
    %t = math.tanh %u : f32
    axe.yield %t : f32
  }
  axe.copy %m to %x : tensor<4x128xf32, #rows> to memref<4x128xf32>
  axe.return
}
