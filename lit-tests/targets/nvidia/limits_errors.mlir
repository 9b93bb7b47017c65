// What a kernel's threads and roles cannot be on a GPU.
// RUN: axe-opt %s -split-input-file -verify-diagnostics --axe-dispatch-schedules=target=sm_90a

// expected-error@+1 {{expected threads to be a multiple of 32 from 32 to 1024, got 48}}
axe.kernel @threads() threads(48) {
  axe.return
}

// -----

// expected-error@+1 {{expected threads to be a multiple of 32 from 32 to 1024, got 2048}}
axe.kernel @many() threads(2048) {
  axe.return
}

// -----

axe.kernel @budget() threads(256) {
  // expected-error@+1 {{expected a multiple of 8 from 24 to 256 registers, got 20}}
  axe.scope warpgroup [0, 1) registers(20) {
  }
  axe.return
}

// -----

axe.kernel @level() threads(256) {
  // expected-error@+1 {{expected a range of warpgroups with a budget of registers}}
  axe.scope warp [0, 1) registers(40) {
  }
  axe.return
}

// -----

// expected-error@+1 {{expected roles that use at most 65536 registers together, got 95232}}
axe.kernel @too_many() threads(384) {
  axe.scope warpgroup [0, 1) registers(248) {
  }
  axe.scope warpgroup [1, 3) registers(248) {
  }
  axe.return
}
