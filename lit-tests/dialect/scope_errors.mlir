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
  // expected-error@+1 {{(X3) expected a multiple of 8 from 24 to 256 registers, got 20}}
  axe.scope warpgroup [0, 1) registers(20) {
  }
  axe.return
}

// -----

axe.kernel @level() threads(256) {
  // expected-error@+1 {{(X3) expected a range of warpgroups with a budget of registers}}
  axe.scope warp [0, 1) registers(40) {
  }
  axe.return
}

// -----

// expected-error@+1 {{(X3) expected roles that use at most 65536 registers together, got 95232}}
axe.kernel @too_many() threads(384) {
  axe.scope warpgroup [0, 1) registers(248) {
  }
  axe.scope warpgroup [1, 3) registers(248) {
  }
  axe.return
}

// -----

axe.kernel @overlap() threads(384) {
  axe.scope warpgroup [0, 2) registers(40) {
  }
  // expected-error@+1 {{(X3) expected roles of disjoint warpgroups, got [1, 3) and [0, 2)}}
  axe.scope warpgroup [1, 3) registers(40) {
  }
  axe.return
}
