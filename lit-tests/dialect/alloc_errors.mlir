// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(A1) expected a memory space of the kernel's own}}
  %0 = axe.alloc : memref<4xf32>
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(A2) expected a layout on the axes of 'shared' alone}}
  %0 = axe.alloc : memref<4xf32, #axe.layout<S[4 : 1@lane]>, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(A1) expected a static shape, got}}
  %0 = axe.alloc : memref<?xf32, #axe.space<shared>>
  axe.return
}
