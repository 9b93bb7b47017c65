// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4xf32>, %m: memref<8xf32>) {
  // expected-error @+1 {{(C1) expected source and destination of one shape and element type}}
  axe.copy %x to %m : tensor<4xf32> to memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>) {
  // expected-error @+1 {{(C2) expected a destination or a result, and not both}}
  axe.copy %m : memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>) {
  // expected-error @+1 {{(C3) expected memrefs on both sides of an asynchronous copy}}
  %0 = axe.copy async %m : memref<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %z: f16) {
  // expected-error @+1 {{(C4) expected padding of type 'f32' for a memref source, got 'f16'}}
  %0 = axe.copy %m pad %z : f16 : memref<8xf32> -> tensor<8xf32>
  return
}

// -----

axe.kernel @signal(%a: memref<8xf16>, %slot: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C5) expected an asynchronous copy with 'multicast'}}
  axe.copy %a to %slot multicast : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

axe.kernel @among(%a: memref<8xf16>, %b: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C8) expected 'among' to have a number of CTAs and how far apart they are, of 'multicast'}}
  axe.copy async %a to %b multicast among [4] : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

axe.kernel @among_none(%a: memref<8xf16>, %b: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C8) expected 'among'}}
  axe.copy async %a to %b multicast among [0, 2] : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

axe.kernel @among_alone(%a: memref<8xf16>, %b: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C8) expected 'among'}}
  axe.copy async %a to %b among [2, 4] : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

axe.kernel @sums(%a: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C6) expected 'accumulate' in a copy into storage that signals nothing}}
  %r = axe.copy %a accumulate : memref<8xf16> -> tensor<8xf16>
  axe.return
}

// -----

axe.kernel @hint(%a: memref<8xf16>, %b: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C7) expected "evict_first", "evict_normal" or "evict_last" for the option 'l2', got "never"}}
  axe.copy %a to %b options = {l2 = "never"} : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

func.func @f(%m: memref<8xf32>, %n: memref<8xf32>) {
  // expected-error @+1 {{(C2) expected a destination or a result, and not both}}
  %0 = axe.copy %m to %n : memref<8xf32> to memref<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %z: f32) {
  // expected-error @+1 {{(C4) expected padding of type 'f32' for a memref source, got 'f32'}}
  %0 = axe.copy %x pad %z : f32 : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %n: memref<8xf32>, %s: !axe.slot) {
  // expected-error @+1 {{(C5) expected an asynchronous copy with 'signal'}}
  axe.copy %m to %n signal %s : memref<8xf32> to memref<8xf32>
  return
}
