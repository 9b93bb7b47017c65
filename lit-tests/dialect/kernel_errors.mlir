// RUN: axe-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{(K1) expected at least 1 thread, got 0}}
axe.kernel @k() threads(0) {
  axe.return
}

// -----

// expected-error @+1 {{(K2) expected a memref or a scalar as argument 0, got 'tensor<4xf32>'}}
axe.kernel @k(%x: tensor<4xf32>) threads(32) {
  axe.return
}

// -----

// expected-error @+1 {{(K2) expected no results, got 1}}
axe.kernel @k() -> f32 threads(32) {
  axe.return
}

// -----

// expected-error @+1 {{(K3) expected cluster extents of at least 1}}
axe.kernel @k() threads(32) cluster(0) {
  axe.return
}
