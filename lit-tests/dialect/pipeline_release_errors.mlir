// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(32) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-note @+1 {{prior use here}}
  %slot, %stage = axe.pipeline.wait %r : !axe.slot
  // expected-error @+1 {{use of value '%stage' expects different type than prior uses: '!axe.slot' vs 'index'}}
  axe.pipeline.release %r, %stage
  axe.return
}
