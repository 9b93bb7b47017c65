// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @uncommitted() threads(128) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-error@+1 {{(PL3) expected one commit of the slot, got 0}}
  %slot, %stage = axe.pipeline.acquire %r : !axe.slot
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-error @+1 {{(PL3) expected one commit of the slot, got 2}}
  %slot, %stage = axe.pipeline.acquire %r : !axe.slot
  axe.pipeline.commit %r, %slot
  axe.pipeline.commit %r, %slot
  axe.return
}
