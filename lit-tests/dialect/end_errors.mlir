// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(32) {
  // expected-error @+1 {{'axe.end' op expects parent op to be one of 'axe.scope, axe.for_tiles'}}
  axe.end
}
