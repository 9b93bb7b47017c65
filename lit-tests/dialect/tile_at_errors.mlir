// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(TA1) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 4}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(hilbert 4)
  axe.return
}

// -----

axe.kernel @no_group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(TA1) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 0}}
  %i0, %j = axe.tile_at %n in (%n, %n) raster(groups 0)
  axe.return
}

// -----

axe.kernel @negative_group_of_a_place(%n: index, %i: i32) threads(128) {
  // expected-error@+1 {{(TA1) expected a swizzle of at least 1, and only for 'groups' and 'snake', got -3}}
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
