// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k(%x: memref<8x8xf32>) threads(32) {
  // expected-error @+1 {{(W2) expected a view of at most 64 elements of storage, got one that spans 72}}
  %0 = axe.view %x : memref<8x8xf32> to memref<8x9xf32>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>) threads(32) {
  // expected-error @+1 {{(W1) expected element type 'f32', got 'f16'}}
  %0 = axe.view %x : memref<8x8xf32> to memref<8x8xf16>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>) threads(32) {
  // expected-error @+1 {{(W1) expected the source's memory space in}}
  %0 = axe.view %x : memref<8x8xf32> to memref<8x8xf32, #axe.space<shared>>
  axe.return
}
