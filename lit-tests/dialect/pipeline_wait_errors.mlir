// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @unreleased() threads(128) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-error@+1 {{(PL4) expected the slot to be released once, or carried by a loop, got 0 such uses}}
  %slot, %stage = axe.pipeline.wait %r : !axe.slot
  axe.return
}
