// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @barrier() threads(128) cluster(2, 1, 1) {
  axe.scope warpgroup [0, 1) {
    // expected-error@+1 {{(BA1) expected 'cluster' outside of all scopes: every thread of the CTA arrives}}
    axe.barrier cluster
  }
  axe.return
}
