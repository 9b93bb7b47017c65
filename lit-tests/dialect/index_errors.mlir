// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @no_map() -> index {
  // expected-error @+1 {{(IX1) expected to be in the body of an axe.map}}
  %i = axe.index 0
  return %i : index
}

// -----

func.func @beyond_the_rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    // expected-error @+1 {{(IX1) expected a dimension below 1, got 1}}
    %i = axe.index 1
    axe.yield %u : f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @negative(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    // expected-error @+1 {{attribute 'dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
    %i = axe.index -1
    axe.yield %u : f32
  }
  return %0 : tensor<4xf32>
}
