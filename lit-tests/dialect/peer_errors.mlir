// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @peer(%rank: index) threads(128) cluster(2, 1, 1) {
  %s = axe.alloc : memref<8x64xf16, #axe.space<shared>>
  // expected-error@+1 {{(Y1) expected shared memory, and the same type in #axe.space<cluster_shared>, got 'memref<8x64xf16, #axe.space<shared>>' and 'memref<64xf16, #axe.space<cluster_shared>>'}}
  %there = axe.peer %s at %rank : memref<8x64xf16, #axe.space<shared>> to memref<64xf16, #axe.space<cluster_shared>>
  axe.return
}

// -----

axe.kernel @own(%x: memref<8xf16>, %rank: index) threads(128) cluster(2, 1, 1) {
  // expected-error@+1 {{(Y1) expected shared memory}}
  %there = axe.peer %x at %rank : memref<8xf16> to memref<8xf16, #axe.space<cluster_shared>>
  axe.return
}
