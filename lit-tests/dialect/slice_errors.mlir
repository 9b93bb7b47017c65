// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V1) expected 2 origins, got 1}}
  %0 = axe.slice %x[%i] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1]>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V2) expected element type 'f32', got 'f16'}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf16, strided<[8, 1]>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V3) expected stride 8 in dimension 0 of the box, got 4}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf32>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V2) expected the source's memory space in}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1]>, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V2) expected a static box of rank at most 2}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<?x4xf32, strided<[8, 1]>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V2) expected a static box of rank at most 2}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<1x4x4xf32, strided<[64, 8, 1]>>
  axe.return
}
