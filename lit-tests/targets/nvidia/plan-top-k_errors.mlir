// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a -split-input-file -verify-diagnostics
// RUN: not axe-opt %s --axe-dispatch-schedules=target=sm_90a -split-input-file 2>&1 | FileCheck %s

func.func @f(%x: tensor<4x256xf32>) -> (tensor<4x65xf32>, tensor<4x65xi32>) {
  // expected-error @+1 {{'axe.top_k': expected at most 64 of at most 1073741824 elements of a row, got 65 of 256}}
  %v, %i = axe.top_k %x : tensor<4x256xf32> -> tensor<4x65xf32>, tensor<4x65xi32>
  return %v, %i : tensor<4x65xf32>, tensor<4x65xi32>
}

// -----

func.func @f(%x: tensor<4x256xf64>) -> (tensor<4x5xf64>, tensor<4x5xi32>) {
  // expected-error @+1 {{'axe.top_k': expected elements of f16, bf16, f32 or i32, got f64}}
  %v, %i = axe.top_k %x : tensor<4x256xf64> -> tensor<4x5xf64>, tensor<4x5xi32>
  return %v, %i : tensor<4x5xf64>, tensor<4x5xi32>
}

// -----

func.func @f(%x: tensor<4x?x256xf32>) -> (tensor<4x?x5xf32>, tensor<4x?x5xi32>) {
  // expected-error @+1 {{expected every extent but the leading one to be static, got tensor<4x?x256xf32>}}
  %v, %i = axe.top_k %x : tensor<4x?x256xf32> -> tensor<4x?x5xf32>, tensor<4x?x5xi32>
  return %v, %i : tensor<4x?x5xf32>, tensor<4x?x5xi32>
}

// -----

axe.kernel @k(%x: memref<4x256xf32>, %v: memref<4x5xf32>, %i: memref<4x5xi32>) threads(128) {
  // CHECK: top_k.warp: expected a CTA of 256 threads, without a scope
  // CHECK: top_k.cta: expected a CTA of 256 threads, without a scope
  // expected-error @+1 {{no schedule of sm_90a takes this 'axe.top_k'}}
  axe.top_k %x to %v, %i : memref<4x256xf32> to memref<4x5xf32>, memref<4x5xi32>
  axe.return
}

// -----

axe.kernel @k(%x: memref<4x256xf32>, %v: memref<4x5xf32>, %i: memref<4x5xi32>) threads(256) {
  // CHECK: top_k.cta: rows of 256 elements are a warp's
  // expected-error @+1 {{no schedule of sm_90a takes this 'axe.top_k'}}
  axe.top_k %x to %v, %i schedule = "top_k.cta" : memref<4x256xf32> to memref<4x5xf32>, memref<4x5xi32>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x256xf32>, %v: memref<4x5xf32>, %i: memref<4x5xi32>) threads(256) {
  %c0 = arith.constant 0 : index
  %s = axe.slice %x[%c0, %c0] : memref<8x256xf32> to memref<4x256xf32>
  // CHECK: top_k.warp: expected arguments of the kernel that are memrefs without layouts, got memref<4x256xf32>
  // CHECK: top_k.cta: expected arguments of the kernel that are memrefs without layouts, got memref<4x256xf32>
  // expected-error @+1 {{no schedule of sm_90a takes this 'axe.top_k'}}
  axe.top_k %s to %v, %i : memref<4x256xf32> to memref<4x5xf32>, memref<4x5xi32>
  axe.return
}
