// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>, %i: index, %z: f32) {
  // expected-error @+1 {{(Q1) expected 2 origins and limits, got 1 and 1}}
  %0 = axe.mask %x at(%i) in(%i) else %z : f32, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: index, %z: f16) {
  // expected-error @+1 {{(Q2) expected a value of the element type and a result of type 'tensor<4x8xf32>'}}
  %0 = axe.mask %x at(%i, %i) in(%i, %i) else %z : f16, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
