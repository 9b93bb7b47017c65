// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=none' -split-input-file | FileCheck %s

// 13 x 12 tiles are one for each of 132 multiprocessors and 24 more, which are the work of three CTAs each: 72 parts of three of the nine
// steps. Their sums are below each other; a second kernel writes the 24 tiles into the result that has the others.
// CHECK-LABEL: func.func @alone(
// CHECK: %[[PIECES:.*]] = arith.constant 204 : index
// CHECK: %[[BOTH:.*]]:2 = axe.launch @alone_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<832x760xf16>, tensor<3x1536x64xf32>)
// CHECK: %[[BLOCKS:.*]] = arith.constant 48 : index
// CHECK: %[[ALL:.*]] = axe.launch @alone_1_sum grid(%[[BLOCKS]], {{.*}} ins(%[[BOTH]]#1 : tensor<3x1536x64xf32>) outs(%[[BOTH]]#0 : tensor<832x760xf16>)
// CHECK: return %[[ALL]]
// CHECK-LABEL: axe.kernel @alone_0_gemm
// CHECK-SAME: %[[OUT:[a-z0-9]*]]: memref<832x760xf16>, %[[SUMS:[a-z0-9]*]]: memref<3x1536x64xf32>)
// CHECK: axe.scope warp [0, 1)
// CHECK: %[[WHOLE:.*]] = arith.constant 132 : index
// CHECK: axe.for_tiles (%{{.*}}, %[[NUMBER:.*]]) in (%{{.*}}, %[[WHOLE]]) raster(rows)
// CHECK: axe.tile_at %[[NUMBER]] in (%{{.*}}, %{{.*}}) raster(groups 8)
// CHECK: arith.constant 9 : index
// CHECK: axe.for_tiles
// CHECK: axe.tile_at
// CHECK: axe.scope warpgroup [1, 2)
// CHECK: axe.for_tiles
// CHECK: axe.tile_at
// CHECK: axe.gemm async
// CHECK: axe.slice %[[OUT]]
// CHECK: %[[PARTS:.*]] = arith.constant 3 : index
// CHECK: %[[REST:.*]] = arith.constant 24 : index
// CHECK: axe.for_tiles (%[[PART:.*]], %[[NUMBER:.*]]) in (%[[PARTS]], %[[REST]]) raster(rows)
// CHECK: %[[PLACE:.*]] = arith.muli %[[NUMBER]], %{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.constant 132 : index
// CHECK: %[[TILE:.*]] = arith.addi %[[NUMBER]], %[[FIRST]] : index
// CHECK: axe.tile_at %[[TILE]] in
// CHECK-NOT: axe.slice %[[OUT]]
// CHECK: axe.slice %[[SUMS]][%[[PART]], %[[PLACE]],
// CHECK-LABEL: axe.kernel @alone_1_sum
// CHECK-SAME: %[[SUMS:[a-z0-9]*]]: memref<3x1536x64xf32>, %[[OUT:[a-z0-9]*]]: memref<832x760xf16>)
// CHECK: %[[FIRST:.*]] = arith.constant 132 : index
// CHECK: %[[TILE:.*]] = arith.addi %{{.*}}, %[[FIRST]] : index
// CHECK: axe.tile_at %[[TILE]] in (%{{.*}}, %{{.*}}) raster(groups 8)
// CHECK-COUNT-3: axe.slice %[[SUMS]]
// CHECK: axe.cast
// CHECK: axe.slice %[[OUT]]
func.func @alone(%a: tensor<832x576xf16>, %w: tensor<760x576xf16>) -> tensor<832x760xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 3 : i64}} : tensor<832x576xf16>, tensor<760x576xf16> -> tensor<832x760xf32>
  %c = axe.cast %p : tensor<832x760xf32> -> tensor<832x760xf16>
  return %c : tensor<832x760xf16>
}

// -----

// 15 rows of tiles in pairs and 13 columns: 104 clusters, of which 66 run at once. The 38 others have 76 tiles. Four parts of nine steps
// have three each; the last has none of them, so that there is no tail.
// CHECK-LABEL: func.func @below(
// CHECK: axe.launch @below_0_gemm {{.*}} outs(%{{.*}} : tensor<960x776xf16>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @below(%a: tensor<960x576xf16>, %w: tensor<776x576xf16>) -> tensor<960x776xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, cluster = array<i64: 2, 1>, decomposition = "stream_k", splits = 4 : i64}} : tensor<960x576xf16>, tensor<776x576xf16> -> tensor<960x776xf32>
  %c = axe.cast %p : tensor<960x776xf32> -> tensor<960x776xf16>
  return %c : tensor<960x776xf16>
}

// -----

// With three parts there is one. The pair's tiles are below each other among the sums as well.
// CHECK-LABEL: func.func @pairs(
// CHECK: %[[BOTH:.*]]:2 = axe.launch @pairs_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<960x776xf16>, tensor<3x4864x64xf32>)
// CHECK: %[[BLOCKS:.*]] = arith.constant 152 : index
// CHECK: axe.launch @pairs_1_sum grid(%[[BLOCKS]], {{.*}} ins(%[[BOTH]]#1 : {{.*}}) outs(%[[BOTH]]#0 :
// CHECK-LABEL: axe.kernel @pairs_0_gemm
// CHECK-SAME: cluster(2, 1, 1)
// CHECK: axe.for_tiles
// CHECK: axe.for_tiles
// CHECK: axe.for_tiles
// CHECK: axe.for_tiles (%{{.*}}, %[[NUMBER:.*]]) in
// CHECK: %[[PAIR:.*]] = arith.muli %[[NUMBER]], %{{.*}} : index
// CHECK: %[[RANK:.*]] = gpu.cluster_block_id
// CHECK: arith.addi %[[PAIR]], %[[RANK]] : index
// CHECK-LABEL: axe.kernel @pairs_1_sum
// CHECK: %[[NUMBER:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK: %[[CLUSTER:.*]] = arith.divui %[[NUMBER]], %{{.*}} : index
// CHECK: %[[RANK:.*]] = arith.remui %[[NUMBER]], %{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.constant 66 : index
// CHECK: %[[TILE:.*]] = arith.addi %[[CLUSTER]], %[[FIRST]] : index
// CHECK: %[[ROW:.*]], %[[COLUMN:.*]] = axe.tile_at %[[TILE]]
// CHECK: %[[ROWS:.*]] = arith.muli %[[ROW]], %{{.*}} : index
// CHECK: arith.addi %[[ROWS]], %[[RANK]] : index
func.func @pairs(%a: tensor<960x576xf16>, %w: tensor<776x576xf16>) -> tensor<960x776xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, cluster = array<i64: 2, 1>, decomposition = "stream_k", splits = 3 : i64}} : tensor<960x576xf16>, tensor<776x576xf16> -> tensor<960x776xf32>
  %c = axe.cast %p : tensor<960x776xf32> -> tensor<960x776xf16>
  return %c : tensor<960x776xf16>
}

// -----

// 13 rows of tiles and 12 pairs of columns.
// CHECK-LABEL: func.func @beside(
// CHECK: %[[BOTH:.*]]:2 = axe.launch @beside_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<832x1528xf16>, tensor<2x3072x64xf32>)
// CHECK: axe.launch @beside_1_sum {{.*}} ins(%[[BOTH]]#1 : {{.*}}) outs(%[[BOTH]]#0 :
// CHECK-LABEL: axe.kernel @beside_1_sum
// CHECK: %[[NUMBER:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK: %[[RANK:.*]] = arith.remui %[[NUMBER]], %{{.*}} : index
// CHECK: %[[ROW:.*]], %[[COLUMN:.*]] = axe.tile_at %{{.*}} in (%{{.*}}, %{{.*}}) raster(hilbert)
// CHECK: %[[COLUMNS:.*]] = arith.muli %[[COLUMN]], %{{.*}} : index
// CHECK: arith.addi %[[COLUMNS]], %[[RANK]] : index
func.func @beside(%a: tensor<832x576xf16>, %w: tensor<1528x576xf16>) -> tensor<832x1528xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, raster = "hilbert", cluster = array<i64: 1, 2>, decomposition = "stream_k", splits = 2 : i64}} : tensor<832x576xf16>, tensor<1528x576xf16> -> tensor<832x1528xf32>
  %c = axe.cast %p : tensor<832x1528xf32> -> tensor<832x1528xf16>
  return %c : tensor<832x1528xf16>
}

// -----

// Warpgroups take turns at the parts as well; what is left of turns is the same.
// CHECK-LABEL: func.func @turns(
// CHECK: axe.launch @turns_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<1600x760xf16>, tensor<2x3072x64xf32>)
// CHECK: axe.launch @turns_1_sum
// CHECK-LABEL: axe.kernel @turns_0_gemm
// CHECK: axe.scope warpgroup [1, 3)
// CHECK-NEXT: axe.scope warpgroup {
// CHECK: axe.for_tiles {{.*}} raster(rows) pingpong
// CHECK: axe.for_tiles {{.*}} raster(rows) pingpong
// CHECK-LABEL: axe.kernel @turns_1_sum
func.func @turns(%a: tensor<1600x576xf16>, %w: tensor<760x576xf16>) -> tensor<1600x760xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 128, 64, 64>, decomposition = "stream_k", splits = 2 : i64, schedule = "pingpong"}} : tensor<1600x576xf16>, tensor<760x576xf16> -> tensor<1600x760xf32>
  %c = axe.cast %p : tensor<1600x760xf32> -> tensor<1600x760xf16>
  return %c : tensor<1600x760xf16>
}

// -----

// All tiles fill a turn.
// CHECK-LABEL: func.func @full(
// CHECK: axe.launch @full_0_gemm {{.*}} outs(%{{.*}} : tensor<704x768xf16>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @full(%a: tensor<704x576xf16>, %w: tensor<768x576xf16>) -> tensor<704x768xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 3 : i64}} : tensor<704x576xf16>, tensor<768x576xf16> -> tensor<704x768xf32>
  %c = axe.cast %p : tensor<704x768xf32> -> tensor<704x768xf16>
  return %c : tensor<704x768xf16>
}

// -----

// No tile does.
// CHECK-LABEL: func.func @few(
// CHECK: axe.launch @few_0_gemm {{.*}} outs(%{{.*}} : tensor<704x704xf16>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @few(%a: tensor<704x576xf16>, %w: tensor<704x576xf16>) -> tensor<704x704xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 3 : i64}} : tensor<704x576xf16>, tensor<704x576xf16> -> tensor<704x704xf32>
  %c = axe.cast %p : tensor<704x704xf32> -> tensor<704x704xf16>
  return %c : tensor<704x704xf16>
}

// -----

// One part is a whole tile.
// CHECK-LABEL: func.func @one(
// CHECK: axe.launch @one_0_gemm {{.*}} outs(%{{.*}} : tensor<832x760xf16>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @one(%a: tensor<832x576xf16>, %w: tensor<760x576xf16>) -> tensor<832x760xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 1 : i64}} : tensor<832x576xf16>, tensor<760x576xf16> -> tensor<832x760xf32>
  %c = axe.cast %p : tensor<832x760xf32> -> tensor<832x760xf16>
  return %c : tensor<832x760xf16>
}

// -----

// Ten blocks in three parts of four: the third has two that do not exist. Their factors are zeros; the scales of B are the last block's.
// CHECK-LABEL: func.func @staged(
// CHECK: axe.launch @staged_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<832x752xbf16>, tensor<3x1536x64xf32>)
// CHECK: axe.launch @staged_1_sum {{.*}} ins(%{{[0-9]+}}#1 : tensor<3x1536x64xf32>) outs(%{{[0-9]+}}#0 :
// CHECK-LABEL: axe.kernel @staged_0_gemm
// CHECK-SAME: %{{.*}}, %{{.*}}, %[[A:[a-z0-9]*]]: memref<10x832xf32>, %[[B:[a-z0-9]*]]: memref<6x10xf32>,
// CHECK: axe.scope warpgroup [1, 2)
// CHECK: axe.for_tiles
// CHECK: axe.for_tiles (%[[PART:.*]], %{{.*}}) in
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]]
// CHECK: %[[BLOCK:.*]] = arith.addi %[[FIRST]]
// CHECK: %[[LAST:.*]] = arith.constant 9 : index
// CHECK: %[[AT:.*]] = arith.minui %[[BLOCK]], %[[LAST]]
// CHECK: memref.load %[[B]][%{{.*}}, %[[AT]]]
// CHECK-LABEL: axe.kernel @staged_1_sum
func.func @staged(%a: tensor<832x1200xf8E4M3FN>, %sa: tensor<10x832xf32>, %w: tensor<752x1200xf8E4M3FN>, %sw: tensor<6x10xf32>) -> tensor<832x752xbf16> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {trans_scale_a, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 128>, decomposition = "stream_k", splits = 3 : i64}} : tensor<832x1200xf8E4M3FN>, tensor<752x1200xf8E4M3FN>, tensor<10x832xf32>, tensor<6x10xf32> -> tensor<832x752xf32>
  %c = axe.cast %p : tensor<832x752xf32> -> tensor<832x752xbf16>
  return %c : tensor<832x752xbf16>
}

// -----

// Scales of A that the consumers read themselves are the last block's too.
// CHECK-LABEL: func.func @fetched(
// CHECK: axe.launch @fetched_0_gemm {{.*}} outs(%{{.*}}, %{{.*}} : tensor<832x752xbf16>, tensor<3x1536x64xf32>)
// CHECK: axe.launch @fetched_1_sum
// CHECK-LABEL: axe.kernel @fetched_0_gemm
// CHECK-SAME: %{{.*}}, %{{.*}}, %[[A:[a-z0-9]*]]: memref<832x10xf32>,
// CHECK: axe.scope warpgroup [1, 2)
// CHECK: axe.for_tiles
// CHECK: axe.for_tiles
// CHECK: %[[AT:.*]] = arith.minui
// CHECK: axe.slice %[[A]][%{{.*}}, %[[AT]]]
// CHECK-LABEL: axe.kernel @fetched_1_sum
func.func @fetched(%a: tensor<832x1200xf8E4M3FN>, %sa: tensor<832x10xf32>, %w: tensor<752x1200xf8E4M3FN>, %sw: tensor<6x10xf32>) -> tensor<832x752xbf16> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 128>, decomposition = "stream_k", splits = 3 : i64}} : tensor<832x1200xf8E4M3FN>, tensor<752x1200xf8E4M3FN>, tensor<832x10xf32>, tensor<6x10xf32> -> tensor<832x752xf32>
  %c = axe.cast %p : tensor<832x752xf32> -> tensor<832x752xbf16>
  return %c : tensor<832x752xbf16>
}

// -----

// What follows the product, in two results, and what its sums start from: the whole tiles' in the first kernel, the others' in the second,
// which alone adds the start to the sums of parts.
// CHECK-LABEL: func.func @epilogue(
// CHECK: %[[ALL:.*]]:3 = axe.launch @epilogue_0_gemm {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<832x760xf32>, tensor<832x760xf16>, tensor<2x1536x64xf32>)
// CHECK: axe.launch @epilogue_1_sum {{.*}} ins(%[[ALL]]#2, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x1536x64xf32>, {{.*}}) outs(%[[ALL]]#0, %[[ALL]]#1 : tensor<832x760xf32>, tensor<832x760xf16>)
// CHECK-LABEL: axe.kernel @epilogue_0_gemm
// CHECK: axe.scope warpgroup [1, 2)
// CHECK: axe.for_tiles
// CHECK: axe.gemm async {{.*}} acc
// CHECK: axe.map
// CHECK: axe.for_tiles
// CHECK-NOT: axe.map
// CHECK-LABEL: axe.kernel @epilogue_1_sum
// CHECK-SAME: %[[SUMS:[a-z0-9]*]]: memref<2x1536x64xf32>
// CHECK: axe.copy %{{.*}} : memref<{{.*}}xf32{{.*}} -> tensor<32x64xf32
// CHECK-COUNT-2: axe.slice %[[SUMS]]
// CHECK: arith.truncf
func.func @epilogue(%a: tensor<832x576xf16>, %w: tensor<760x576xf16>, %y: tensor<832x760xf32>, %b: tensor<760xf32>, %r: tensor<832x760xf16>) -> (tensor<832x760xf32>, tensor<832x760xf16>) {
  %p = axe.gemm %a, %w acc %y : tensor<832x760xf32> {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 2 : i64}} : tensor<832x576xf16>, tensor<760x576xf16> -> tensor<832x760xf32>
  %c = axe.broadcast %b dims [0] : tensor<760xf32> -> tensor<832x760xf32>
  %q = axe.map ins(%p, %c, %r : tensor<832x760xf32>, tensor<832x760xf32>, tensor<832x760xf16>) -> tensor<832x760xf16> {
  ^bb0(%s: f32, %t: f32, %u: f16):
    %v = arith.addf %s, %t : f32
    %e = arith.extf %u : f16 to f32
    %x = arith.addf %v, %e : f32
    %h = arith.truncf %x : f32 to f16
    axe.yield %h : f16
  }
  return %p, %q : tensor<832x760xf32>, tensor<832x760xf16>
}
