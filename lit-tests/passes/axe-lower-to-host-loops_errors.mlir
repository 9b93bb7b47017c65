// RUN: axe-opt %s --axe-lower-to-host -split-input-file -verify-diagnostics

axe.kernel @loops(%x: memref<8xf32>, %y: memref<8xf32>) threads(32) {
  // expected-error @below {{loops that a whole grid executes have no meaning on the CPU target, which runs one block after the other}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) attrs = {initial = [unit]} {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  axe.return
}
