// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

// Rings whose stages are not given back once on every path, or whose barriers would count other arrivals than come.

axe.kernel @sometimes_signalled(%x: memref<64xf32>, %n: index) threads(64) {
  %c8 = arith.constant 8 : index
  %s = axe.alloc : memref<64xf32, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    %some = arith.cmpi ult, %n, %c8 : index
    // expected-error @below {{a slot is committed or signalled in one arm of this branch and not in the other}}
    scf.if %some {
      axe.copy async %x to %s signal %slot : memref<64xf32> to memref<64xf32, #axe.space<shared>>
    }
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warp [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @signalled_by_turns(%x: memref<64xf32>, %n: index) threads(64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = axe.alloc : memref<64xf32, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    // expected-error @below {{copies in this loop signal a slot from outside, as often as it turns}}
    scf.for %i = %c0 to %n step %c1 {
      axe.copy async %x to %s signal %slot : memref<64xf32> to memref<64xf32, #axe.space<shared>>
    }
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warp [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @released_by_turns(%n: index) threads(64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warp [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    // expected-error @below {{a slot from outside is released in this loop, in every turn: expected the loop to carry it}}
    scf.for %i = %c0 to %n step %c1 {
      axe.pipeline.release %ring, %slot
    }
  }
  axe.return
}

// -----

// A product under way holds its stage while the next one is waited for: one stage is too few.
axe.kernel @holds_all(%n: index) threads(64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    scf.for %i = %c0 to %n step %c1 {
      %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
      axe.pipeline.commit %ring, %slot
    }
  }
  axe.scope warp [1, 2) {
    %first, %stage = axe.pipeline.wait %ring : !axe.slot
    %last = scf.for %i = %c1 to %n step %c1 iter_args(%held = %first) -> (!axe.slot) {
      // expected-error @below {{1 stages of 1 are held already, and none of them will be free: expected one of them released before}}
      %next, %at = axe.pipeline.wait %ring : !axe.slot
      axe.pipeline.release %ring, %held
      scf.yield %next : !axe.slot
    }
    axe.pipeline.release %ring, %last
  }
  axe.return
}

// -----

// The bytes of copies are announced by the scope that acquires, once; the barrier would count one for each warp that commits.
axe.kernel @commits_inside(%x: memref<64xf32>) threads(256) {
  %s = axe.alloc : memref<64xf32, #axe.space<shared>>
  // expected-error @below {{the barrier of full stages counts 4 arrivals, and 1 are made}}
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.copy async %x to %s signal %slot : memref<64xf32> to memref<64xf32, #axe.space<shared>>
    axe.scope warp {
      axe.pipeline.commit %ring, %slot
    }
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @copies_or_stores(%x: memref<64xf32>) threads(256) {
  %s = axe.alloc : memref<64xf32, #axe.space<shared>>
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %a, %p = axe.pipeline.acquire %ring : !axe.slot
    axe.copy async %x to %s signal %a : memref<64xf32> to memref<64xf32, #axe.space<shared>>
    axe.pipeline.commit %ring, %a
    %b, %q = axe.pipeline.acquire %ring : !axe.slot
    // expected-error @below {{the same warps arrive 4 times at full stages here and 1 times elsewhere: expected a role that fills its stages by copies alone or by stores alone}}
    axe.pipeline.commit %ring, %b
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @overlapping() threads(256) {
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
    axe.scope warp [0, 1) {
      %again, %at = axe.pipeline.wait %ring : !axe.slot
      // expected-error @below {{1 of the warps that give empty stages back here give them back as part of another scope too: expected scopes that are the same or disjoint}}
      axe.pipeline.release %ring, %again
    }
  }
  axe.return
}
