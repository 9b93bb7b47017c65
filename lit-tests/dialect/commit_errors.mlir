// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(32) {
  // expected-error @+1 {{invalid kind of type specified: expected axe.token, but found}}
  %token = axe.commit : index
  axe.return
}
