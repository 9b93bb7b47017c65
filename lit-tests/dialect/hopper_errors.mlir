// RUN: axe-opt %s -split-input-file -verify-diagnostics

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

// -----

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

// -----

axe.kernel @group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(I2) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 4}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(hilbert 4)
  axe.return
}

// -----

axe.kernel @no_group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(I2) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 0}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(groups 0)
  axe.return
}

// -----

axe.kernel @negative_group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(I2) expected a swizzle of at least 1, and only for 'groups' and 'snake', got -3}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(snake -3)
  axe.return
}

// -----

axe.kernel @group_beyond_64_bits(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{integer value too large}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(groups 99999999999999999999)
  axe.return
}

// -----

axe.kernel @order_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{expected a raster order (rows, columns, groups, snake, hilbert), got 'spiral'}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(spiral)
  axe.return
}

// -----

axe.kernel @no_order_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{expected valid keyword}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(8)
  axe.return
}

// -----

axe.kernel @dimensions_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{expected ','}}
  %i0, %j = axe.tile_at %n in (%n) raster(rows)
  axe.return
}

// -----

// expected-note@+1 {{prior use here}}
axe.kernel @number_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{use of value '%i' expects different type than prior uses: 'index' vs 'i32'}}
  %i0, %j = axe.tile_at %i in (%n, %n) raster(rows)
  axe.return
}

// -----

axe.kernel @order_of_another_kind(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{invalid properties {raster = 7 : i64} for op axe.tile_at}}
  %i0, %j = "axe.tile_at"(%n, %n, %n) <{raster = 7 : i64}> : (index, index, index) -> (index, index)
  axe.return
}

// -----

axe.kernel @group_of_another_kind(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{attribute 'swizzle' failed to satisfy constraint: 64-bit signless integer attribute}}
  %i0, %j = "axe.tile_at"(%n, %n, %n) <{raster = #axe<raster_order groups>, swizzle = 2 : i32}> : (index, index, index) -> (index, index)
  axe.return
}

// -----

axe.kernel @place_without_an_order(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{requires attribute 'raster'}}
  %i0, %j = "axe.tile_at"(%n, %n, %n) : (index, index, index) -> (index, index)
  axe.return
}

// -----

axe.kernel @place_of_one_number(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{expected 2 results}}
  %i0 = "axe.tile_at"(%n, %n) <{raster = #axe<raster_order rows>}> : (index, index) -> index
  axe.return
}

// -----

axe.kernel @stages() threads(128) {
  // expected-error@+1 {{(PL1) expected at least 1 stage, got 0}}
  %r = axe.pipeline.create stages(0) : !axe.pipeline
  axe.return
}

// -----

axe.kernel @place() threads(128) {
  axe.scope warp [0, 1) {
    // expected-error@+1 {{(PL2) expected to stand in the body of a kernel}}
    %r = axe.pipeline.create stages(2) : !axe.pipeline
  }
  axe.return
}

// -----

axe.kernel @uncommitted() threads(128) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-error@+1 {{(PL3) expected one commit of the slot, got 0}}
  %slot, %stage = axe.pipeline.acquire %r : !axe.slot
  axe.return
}

// -----

axe.kernel @unreleased() threads(128) {
  %r = axe.pipeline.create stages(2) : !axe.pipeline
  // expected-error@+1 {{(PL3) expected the slot to be released once, or carried by a loop, got 0 such uses}}
  %slot, %stage = axe.pipeline.wait %r : !axe.slot
  axe.return
}

// -----

axe.kernel @signal(%a: memref<8xf16>, %slot: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C5) expected an asynchronous copy with 'multicast'}}
  axe.copy %a to %slot multicast : memref<8xf16> to memref<8xf16>
  axe.return
}

// -----

axe.kernel @barrier() threads(128) cluster(2, 1, 1) {
  axe.scope warpgroup [0, 1) {
    // expected-error@+1 {{(B1) expected 'cluster' outside of all scopes: every thread of the CTA arrives}}
    axe.barrier cluster
  }
  axe.return
}

// -----

axe.kernel @peer(%rank: index) threads(128) cluster(2, 1, 1) {
  %s = axe.alloc : memref<8x64xf16, #axe.space<shared>>
  // expected-error@+1 {{(Y1) expected shared memory, and the same type in #axe.space<cluster_shared>, got 'memref<8x64xf16, #axe.space<shared>>' and 'memref<64xf16, #axe.space<cluster_shared>>'}}
  %there = axe.peer %s at %rank : memref<8x64xf16, #axe.space<shared>> to memref<64xf16, #axe.space<cluster_shared>>
  axe.return
}

// -----

axe.kernel @own(%x: memref<8xf16>, %rank: index) threads(128) cluster(2, 1, 1) {
  // expected-error@+1 {{(Y1) expected shared memory}}
  %there = axe.peer %x at %rank : memref<8xf16> to memref<8xf16, #axe.space<cluster_shared>>
  axe.return
}

// -----

axe.kernel @sums(%a: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C6) expected 'accumulate' in a copy into storage that signals nothing}}
  %r = axe.copy %a accumulate : memref<8xf16> -> tensor<8xf16>
  axe.return
}

// -----

axe.kernel @hint(%a: memref<8xf16>, %b: memref<8xf16>) threads(128) {
  // expected-error@+1 {{(C7) expected "evict_first", "evict_normal" or "evict_last" for the option 'l2', got "never"}}
  axe.copy %a to %b options = {l2 = "never"} : memref<8xf16> to memref<8xf16>
  axe.return
}
