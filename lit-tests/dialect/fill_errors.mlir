// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%z: f16) {
  // expected-error @+1 {{(F1) expected element type 'f16', got 'f32'}}
  %0 = axe.fill %z : f16 -> tensor<8xf32>
  return
}

// -----

func.func @f(%z: f16) {
  // expected-error @+1 {{(F2) expected 1 sizes, got 0}}
  %0 = axe.fill %z : f16 -> tensor<?xf16>
  return
}

// -----

func.func @f(%z: f16) {
  // expected-error @+1 {{(F1) expected a destination or a result, and not both}}
  axe.fill %z : f16
  return
}
