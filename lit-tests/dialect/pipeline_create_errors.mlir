// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @stages() threads(128) {
  // expected-error@+1 {{(PL1) expected at least 1 stage, got 0}}
  %r = axe.pipeline.create stages(0) : !axe.pipeline
  axe.return
}

// -----

axe.kernel @place() threads(128) {
  axe.scope warp [0, 1) {
    // expected-error@+1 {{(PL2) expected to stand in the body of a kernel}}
    %r = axe.pipeline.create stages(2) : !axe.pipeline
  }
  axe.return
}
