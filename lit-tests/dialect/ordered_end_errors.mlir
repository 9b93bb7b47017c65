// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @not_a_turn() threads(256) {
  %token = axe.commit : !axe.token
  // expected-error @+1 {{(OE1) expected the token of an axe.ordered.begin}}
  axe.ordered.end %token
  axe.return
}

// -----

axe.kernel @not_a_token(%turn: index) threads(256) { // expected-note {{prior use here}}
  // expected-error @+1 {{use of value '%turn' expects different type than prior uses: '!axe.token' vs 'index'}}
  axe.ordered.end %turn
  axe.return
}
