// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: f32) {
  // expected-error @+1 {{'axe.yield' op expects parent op 'axe.map'}}
  axe.yield %x : f32
}
