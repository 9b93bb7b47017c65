// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a -split-input-file -verify-diagnostics

axe.kernel @dynamic(%x: memref<?x8xf16>, %y: memref<?x8xf16>) threads(64) {
  // expected-error @below {{operand 0 has a dynamic extent: expected a box of a known shape, as axe.slice makes}}
  axe.copy %x to %y : memref<?x8xf16> to memref<?x8xf16>
  axe.return
}

// -----

#shared = #axe.space<shared>
axe.kernel @alloc() threads(64) {
  // expected-error @below {{expected storage of fewer than 2^63 bytes, got memref<4611686018427387904x4xf32, #axe.space<shared>>}}
  %s = axe.alloc : memref<4611686018427387904x4xf32, #shared>
  axe.return
}

// -----

// expected-error @below {{expected storage of fewer than 2^63 bytes, got memref<4611686018427387904x4xf32>}}
axe.kernel @argument(%x: memref<4611686018427387904x4xf32>) threads(64) {
  axe.return
}

// -----

axe.kernel @box(%x: memref<?x4xf32>) threads(64) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected storage of fewer than 2^63 bytes, got memref<4611686018427387904x4xf32>}}
  %s = axe.slice %x[%c0, %c0] : memref<?x4xf32> to memref<4611686018427387904x4xf32>
  axe.return
}
