// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{(P1) expected input 1 to have the shape of 'tensor<4xf32>', got 'tensor<8xf32>'}}
  %0 = axe.map ins(%x, %y : tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32, %v: f32):
    axe.yield %u : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{(P2) expected the body to yield one 'f32'}}
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    axe.yield
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{(P2) expected body argument 0 of type 'f32', got 'f16'}}
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf16> {
  ^bb0(%u: f16):
    axe.yield %u : f16
  }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{(P1) expected at least one input}}
  %0 = "axe.map"() ({
    %z = arith.constant 0.0 : f32
    "axe.yield"(%z) : (f32) -> ()
  }) : () -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32, #axe.layout<S[4 : 1@lane]>>) {
  // expected-error @+1 {{(P1) expected input 0 to have the layout of}}
  %0 = axe.map ins(%x : tensor<4xf32, #axe.layout<S[4 : 1@lane]>>) -> tensor<4xf32, #axe.layout<S[4 : 1@reg]>> {
  ^bb0(%u: f32):
    axe.yield %u : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{(P2) expected 1 body arguments, got 2}}
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32, %v: f32):
    axe.yield %u : f32
  }
  return
}
