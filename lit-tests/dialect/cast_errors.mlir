// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) {
  // expected-error @+1 {{(T1) expected equal layouts}}
  %0 = axe.cast %x : tensor<8xf32, #axe.layout<S[8 : 1@lane]>> -> tensor<8xf16, #axe.layout<S[8 : 1@reg]>>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{(T1) expected the source's shape, got 'tensor<8xf32>' and 'tensor<4xf16>'}}
  %0 = axe.cast %x : tensor<8xf32> -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<8xindex>) {
  // expected-error @+1 {{(T1) expected float or integer elements, got 'index'}}
  %0 = axe.cast %x : tensor<8xindex> -> tensor<8xf16>
  return
}
