// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @k() threads(128) {
  axe.scope warp [0, 1) {
    // expected-error @+1 {{(X1) expected a level inside 'warp', got 'warpgroup'}}
    axe.scope warpgroup {
    }
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{(X2) expected a range [begin, end) with begin < end}}
  axe.scope warp [2, 2) {
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{(X2) expected a range inside the 4 warps of the enclosing scope, got [3, 5)}}
  axe.scope warp [3, 5) {
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{expected an execution scope}}
  axe.scope galaxy {
  }
  axe.return
}

// -----

axe.kernel @budget() threads(256) {
  // expected-error@+1 {{(X3) expected at least 1 register, got 0}}
  axe.scope warpgroup [0, 1) registers(0) {
  }
  axe.return
}

// -----

axe.kernel @level() threads(256) {
  // expected-error@+1 {{(X3) expected a range with a budget of registers}}
  axe.scope warp registers(40) {
  }
  axe.return
}

// -----

axe.kernel @overlap() threads(384) {
  axe.scope warpgroup [0, 2) registers(40) {
  }
  // expected-error@+1 {{(X3) expected roles of disjoint threads, got [128, 384) and [0, 256)}}
  axe.scope warpgroup [1, 3) registers(40) {
  }
  axe.return
}

// -----

axe.kernel @overlap_of_levels() threads(384) {
  axe.scope warpgroup [0, 2) registers(40) {
  }
  // expected-error@+1 {{(X3) expected roles of disjoint threads, got [224, 256) and [0, 256)}}
  axe.scope warp [7, 8) registers(40) {
  }
  axe.return
}
