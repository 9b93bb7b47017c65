// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @rank(%n: index) threads(128) {
  // expected-error@+1 {{(I1) expected at least two counts, and one index argument for each, got 1 and 1}}
  axe.for_tiles (%i) in (%n) raster(rows) {
  }
  axe.return
}

// -----

axe.kernel @group(%n: index) threads(128) {
  // expected-error@+1 {{(I2) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 4}}
  axe.for_tiles (%i, %j) in (%n, %n) raster(rows 4) {
  }
  axe.return
}

// -----

axe.kernel @turns_of_one_team(%n: index) threads(256) {
  axe.scope warpgroup [0, 2) {
    // expected-error@+1 {{(I3) expected 'pingpong' in a scope of several thread groups: of warps or warpgroups, without a range}}
    axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong {
    }
  }
  axe.return
}

// -----

axe.kernel @order(%n: index) threads(128) {
  // expected-error@+1 {{expected a raster order (rows, columns, groups, snake, hilbert), got 'spiral'}}
  axe.for_tiles (%i, %j) in (%n, %n) raster(spiral) {
  }
  axe.return
}
