// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{'axe.return' op expects parent op 'axe.kernel'}}
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  // expected-error @+1 {{'axe.return' op must be the last operation in the parent block}}
  axe.return
  axe.return
}
