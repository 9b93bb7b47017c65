// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

axe.kernel @nobody_releases() threads(256) {
  // expected-error @below {{a pipeline needs a role that commits its stages and one that releases them: 4 and 0 arrivals}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @nobody_commits() threads(256) {
  // expected-error @below {{a pipeline needs a role that commits its stages and one that releases them: 0 and 8 arrivals}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @carried(%n: index) threads(256) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{a commit of a slot that is not acquired beside it: expected the result of axe.pipeline.acquire}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %first, %stage = axe.pipeline.wait %ring : !axe.slot
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%held = %first) -> (!axe.slot) {
      axe.pipeline.commit %ring, %held
      %next, %at = axe.pipeline.wait %ring : !axe.slot
      scf.yield %next : !axe.slot
    }
    axe.pipeline.release %ring, %last
  }
  axe.return
}

// -----

// A barrier for each pair of 32 warps, and number 0 is the CTA's.
axe.kernel @barriers() threads(1024) {
  axe.scope warpgroup {
    axe.scope warp [0, 2) {
      axe.barrier
    }
    axe.scope warp [1, 3) {
      // expected-error @below {{the kernel's scopes need more than the 16 barriers of a CTA}}
      axe.barrier
    }
  }
  axe.return
}

// -----

axe.kernel @threads() threads(64) {
  // expected-error @below {{a scope of threads has no operators on this target: expected warps or more}}
  axe.scope thread {
    axe.barrier
  }
  axe.return
}

// -----

axe.kernel @hilbert(%n: index) threads(32) {
  %c8 = arith.constant 8 : index
  // expected-error @below {{raster(hilbert) needs counts that are known when compiling: expected another raster order}}
  axe.for_tiles (%i, %j) in (%n, %c8) raster(hilbert) {
    axe.barrier
  }
  axe.return
}

// -----

// No other copy completes a stage: one that neither a tensor map nor a run describes is no other copy.
axe.kernel @signal(%x: memref<15x9xf32>) threads(256) {
  %s = axe.alloc : memref<15x9xf32, #axe.layout<S[135 : 1]>, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    // expected-error @below {{no schedule of sm_90a takes this 'axe.copy'}}
    axe.copy async %x to %s signal %slot : memref<15x9xf32> to memref<15x9xf32, #axe.layout<S[135 : 1]>, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

// expected-error @below {{the kernel needs 262176 bytes of shared memory, and a CTA of sm_90a has 232448}}
axe.kernel @shared() threads(256) {
  %s = axe.alloc : memref<2x65536xf16, #axe.layout<S[131072 : 1]>, #axe.space<shared>>
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @unknown_turns(%n: index, %b: i1) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 3) {
    axe.scope warpgroup {
      // expected-error @below {{a loop of unknown length takes stages of a pipeline in a loop over tiles with pingpong: expected as many stages in each tile, known when compiling}}
      axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong {
        scf.for %k = %c0 to %n step %c1 {
          %slot, %stage = axe.pipeline.wait %ring : !axe.slot
          axe.pipeline.release %ring, %slot
        }
      }
    }
  }
  axe.return
}

// -----

axe.kernel @one_arm(%n: index, %b: i1) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 3) {
    axe.scope warpgroup {
      // expected-error @below {{one arm of a branch takes stages of a pipeline in a loop over tiles with pingpong: expected as many stages in each tile, known when compiling}}
      axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong {
        scf.if %b {
          %slot, %stage = axe.pipeline.wait %ring : !axe.slot
          axe.pipeline.release %ring, %slot
        }
      }
    }
  }
  axe.return
}

// -----

axe.kernel @part_of_a_team(%n: index, %b: i1) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 3) {
    axe.scope warpgroup {
      // expected-error @below {{a part of the thread group takes stages of a pipeline in a loop over tiles with pingpong: expected as many stages in each tile, known when compiling}}
      axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong {
        axe.scope warp [0, 1) {
          %slot, %stage = axe.pipeline.wait %ring : !axe.slot
          axe.pipeline.release %ring, %slot
        }
      }
    }
  }
  axe.return
}

// -----

axe.kernel @tiles_of_tiles(%n: index, %b: i1) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 3) {
    axe.scope warpgroup {
      // expected-error @below {{another loop over tiles takes stages of a pipeline in a loop over tiles with pingpong: expected as many stages in each tile, known when compiling}}
      axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong {
        axe.for_tiles (%k, %l) in (%n, %n) raster(rows) {
          %slot, %stage = axe.pipeline.wait %ring : !axe.slot
          axe.pipeline.release %ring, %slot
        }
      }
    }
  }
  axe.return
}

// -----

axe.kernel @large_groups(%n: index) threads(128) {
  // expected-error @below {{expected a swizzle of at most 65536 rows of tiles, got 4611686018427387904}}
  axe.for_tiles (%i, %j) in (%n, %n) raster(groups 4611686018427387904) {
  }
  axe.return
}

// -----

// A tile's number has 32 bits.
axe.kernel @many_tiles() threads(128) {
  %many = arith.constant 4611686018427387904 : index
  // expected-error @below {{a size or place of the kernel has no 32 bits: 4611686018427387904 * 4611686018427387904}}
  axe.for_tiles (%i, %j) in (%many, %many) raster(rows) {
  }
  axe.return
}

// -----

axe.kernel @some_tiles() threads(128) {
  %many = arith.constant 1048576 : index
  // expected-error @below {{a size or place of the kernel has no 32 bits: 1099511627776}}
  axe.for_tiles (%i, %j) in (%many, %many) raster(rows) {
  }
  axe.return
}

// -----

axe.kernel @hilbert_place(%n: index) threads(32) {
  %c8 = arith.constant 8 : index
  // expected-error @below {{raster(hilbert) needs counts that are known when compiling: expected another raster order}}
  %i, %j = axe.tile_at %n in (%n, %c8) raster(hilbert)
  axe.return
}

// -----

axe.kernel @place_in_large_groups(%n: index) threads(32) {
  // expected-error @below {{expected a swizzle of at most 65536 rows of tiles, got 4611686018427387904}}
  %i, %j = axe.tile_at %n in (%n, %n) raster(snake 4611686018427387904)
  axe.return
}

// -----

axe.kernel @place_far_away(%n: index) threads(32) {
  %many = arith.constant 4611686018427387904 : index
  // expected-error @below {{a size or place of the kernel has no 32 bits: 4611686018427387904}}
  %i, %j = axe.tile_at %many in (%n, %n) raster(columns)
  axe.return
}
