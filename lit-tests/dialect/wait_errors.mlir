// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(G1) expected at least 0 pending groups, got -1}}
  axe.wait {pending = -1 : i64}
  axe.return
}

// -----

func.func @f(%d: tensor<8xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{'axe.wait' op inferred type(s) 'tensor<8xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  %e = "axe.wait"(%d) <{pending = 0 : i64}> : (tensor<8xf32>) -> tensor<4xf32>
  return
}
