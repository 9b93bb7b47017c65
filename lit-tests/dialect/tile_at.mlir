// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// The swizzle is left out where it is 1, also where it is given.
// CHECK-LABEL: axe.kernel @places
axe.kernel @places(%n: index, %rows: index, %columns: index) threads(32) {
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS:.*]], %[[COLUMNS:.*]]) raster(rows){{$}}
  %i0, %j0 = axe.tile_at %n in (%rows, %columns) raster(rows)
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(columns){{$}}
  %i1, %j1 = axe.tile_at %n in (%rows, %columns) raster(columns 1)
  // CHECK: %[[I:.*]], %[[J:.*]] = axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(groups 8){{$}}
  %i2, %j2 = axe.tile_at %n in (%rows, %columns) raster(groups 8)
  // CHECK: axe.tile_at %[[I]] in (%[[J]], %[[COLUMNS]]) raster(snake) {note}{{$}}
  %i3, %j3 = axe.tile_at %i2 in (%j2, %columns) raster(snake) {note}
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(hilbert){{$}}
  %i4, %j4 = "axe.tile_at"(%n, %rows, %columns) <{raster = #axe<raster_order hilbert>}> : (index, index, index) -> (index, index)
  axe.return
}
