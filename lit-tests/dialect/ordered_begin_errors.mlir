// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @no_scope() threads(256) {
  // expected-error @+1 {{(OB1) expected a scope of several warpgroups around it}}
  %turn = axe.ordered.begin warpgroup : !axe.token
  axe.ordered.end %turn
  axe.return
}

// -----

axe.kernel @one_member() threads(256) {
  axe.scope warpgroup [1, 2) {
    // expected-error @+1 {{(OB1) expected a scope of several warpgroups around it}}
    %turn = axe.ordered.begin warpgroup : !axe.token
    axe.ordered.end %turn
  }
  axe.return
}

// -----

axe.kernel @threads_have_no_order() threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error @+1 {{(OB1) expected a scope of several warps around it}}
    %turn = axe.ordered.begin thread : !axe.token
    axe.ordered.end %turn
  }
  axe.return
}

// -----

axe.kernel @no_end() threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error @+1 {{(OB2) expected one axe.ordered.end of the token, in the same block, got 0}}
    %turn = axe.ordered.begin warpgroup : !axe.token
  }
  axe.return
}

// -----

axe.kernel @two_ends() threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error @+1 {{(OB2) expected one axe.ordered.end of the token, in the same block, got 2}}
    %turn = axe.ordered.begin warpgroup : !axe.token
    axe.ordered.end %turn
    axe.ordered.end %turn
  }
  axe.return
}

// -----

axe.kernel @end_elsewhere(%which: i1) threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error @+1 {{(OB2) expected one axe.ordered.end of the token, in the same block, got 0}}
    %turn = axe.ordered.begin warpgroup : !axe.token
    scf.if %which {
      axe.ordered.end %turn
    }
  }
  axe.return
}

// -----

axe.kernel @turn_within_a_turn(%which: i1) threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error @+1 {{(OB3) expected no other turn within a turn}}
    %turn = axe.ordered.begin warpgroup : !axe.token
    scf.if %which {
      %other = axe.ordered.begin warpgroup : !axe.token
      axe.ordered.end %other
    }
    axe.ordered.end %turn
  }
  axe.return
}
