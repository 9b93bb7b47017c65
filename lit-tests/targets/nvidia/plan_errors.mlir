// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a -split-input-file -verify-diagnostics

func.func @inner(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error @below {{expected every extent but the leading one to be static, got tensor<4x?xf32>}}
  %y = axe.map ins(%x : tensor<4x?xf32>) -> tensor<4x?xf32> {
  ^bb0(%p: f32):
    axe.yield %p : f32
  }
  return %y : tensor<4x?xf32>
}

// -----

func.func @depth(%x: tensor<?x8xf16>, %w: tensor<?x8xf16>) -> tensor<8x8xf32> {
  // expected-error @below {{expected a matrix product whose only dynamic extent is the leading one of A and the result}}
  %y = axe.gemm %x, %w {trans_a} : tensor<?x8xf16>, tensor<?x8xf16> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

func.func @nibbles(%x: tensor<8x8xi4>) -> tensor<8x8xi4> {
  // expected-error @below {{expected elements of 1, 8, 16, 32 or 64 bits in a kernel's tensors, got i4}}
  %y = axe.transpose %x [1, 0] : tensor<8x8xi4> -> tensor<8x8xi4>
  return %y : tensor<8x8xi4>
}

// -----

// Every operator that has no kernel is listed, those of other functions too.
func.func @several(%x: tensor<8x8xi4>, %y: tensor<4x?xf32>) -> (tensor<8x8xi4>, tensor<8x8xf32>) {
  %c = arith.constant dense<1.0> : tensor<8x8xf32>
  // expected-error @below {{got i4}}
  %a = axe.transpose %x [1, 0] : tensor<8x8xi4> -> tensor<8x8xi4>
  %b = axe.map ins(%c : tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%p: f32):
    %q = math.sin %p : f32
    axe.yield %q : f32
  }
  return %a, %b : tensor<8x8xi4>, tensor<8x8xf32>
}

func.func @more(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error @below {{expected every extent but the leading one to be static, got tensor<4x?xf32>}}
  %y = axe.map ins(%x : tensor<4x?xf32>) -> tensor<4x?xf32> {
  ^bb0(%p: f32):
    axe.yield %p : f32
  }
  return %y : tensor<4x?xf32>
}

// -----

func.func @narrow(%x: tensor<8x8xi1>) -> tensor<8x8xi1> {
  // expected-error @below {{expected floats of 8 to 64 bits or integers in a matrix product, got i1}}
  %y = axe.gemm %x, %x : tensor<8x8xi1>, tensor<8x8xi1> -> tensor<8x8xi1>
  return %y : tensor<8x8xi1>
}

// -----

func.func @columns_of_bytes(%x: tensor<64x64xf8E4M3FN>) -> tensor<64x64xf32> {
  // expected-error @below {{wgmma takes 8-bit operands as A [M, K] and B [N, K] alone}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "wgmma"}} : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @rows_of_bytes(%x: tensor<64x72xf8E5M2>) -> tensor<64x64xf32> {
  // expected-error @below {{an operand's rows of 72 elements are no multiple of 16 bytes, which its descriptor needs}}
  %y = axe.gemm %x, %x {trans_b, axe.plan = {mainloop = "wgmma"}} : tensor<64x72xf8E5M2>, tensor<64x72xf8E5M2> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @other_bytes(%x: tensor<64x64xf8E4M3FNUZ>) -> tensor<64x64xf32> {
  // expected-error @below {{wgmma takes no f8E4M3FNUZ}}
  %y = axe.gemm %x, %x {trans_b, axe.plan = {mainloop = "wgmma"}} : tensor<64x64xf8E4M3FNUZ>, tensor<64x64xf8E4M3FNUZ> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @large(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{a ring of 8 stages takes 262144 bytes of shared memory, and a CTA of sm_90a has 232448}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 256, 256, 32>, warps = array<i64: 2, 4>, stages = 8 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @tile(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{tile 40 x 64 x 32: expected a multiple of 32 x 16 x 16}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 40, 64, 32>, warps = array<i64: 2, 2>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @wide(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected tile = [rows, columns, depth] in axe.plan with 64 rows or a multiple for each of 1 to 3 consumers (or for each tile of 2 or 3 with schedule = "pingpong"), up to 256 columns in 8 (in 64 with B stored [k, n]), or the other way round with swap_ab = true (and A not stored [k, m]), a depth in 128 bytes up to 1024, sums that fit in registers, and two stages in shared memory, got [100, 64, 64] and 1 consumers}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 100, 64, 64>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @rows(%x: tensor<512x255xf8E4M3FN>, %w: tensor<64x255xf8E4M3FN>) -> tensor<512x64xf32> {
  // expected-error @below {{an operand's rows of 255 elements are no multiple of 16 bytes, which its descriptor needs, and a copy would take longer than it saves}}
  %y = axe.gemm %x, %w {trans_b, axe.plan = {mainloop = "wgmma"}} : tensor<512x255xf8E4M3FN>, tensor<64x255xf8E4M3FN> -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}

// -----

func.func @kernel(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected "wgmma" or "mma" as 'mainloop' of axe.plan, got "magic"}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "magic"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @order(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected "rows" or "columns" or "groups" or "snake" or "hilbert" as 'raster' of axe.plan, got "spiral"}}
  %y = axe.gemm %x, %x {axe.plan = {raster = "spiral"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @stages(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{stages in axe.plan, got 1}}
  %y = axe.gemm %x, %x {axe.plan = {stages = 1 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @empty(%x: tensor<0x8xf32>) -> tensor<0x8xf32> {
  // expected-error @below {{expected a tensor with elements, got tensor<0x8xf32>}}
  %y = axe.map ins(%x : tensor<0x8xf32>) -> tensor<0x8xf32> {
  ^bb0(%p: f32):
    axe.yield %p : f32
  }
  return %y : tensor<0x8xf32>
}

// -----

func.func @split(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected splits of 2, 4 or 8 with decomposition = "cluster_split_k" in axe.plan, a step along k and eight columns for each, or rows where A and B are swapped, and all consumers at one tile, got 3 of {mainloop}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 64>, decomposition = "cluster_split_k", splits = 3 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @split_and_cluster(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected no cluster with decomposition = "cluster_split_k" in axe.plan, got [2, 1]}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 64>, cluster = array<i64: 2, 1>, decomposition = "cluster_split_k", splits = 4 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @swapped_columns(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{or the other way round with swap_ab = true (and A not stored [k, m])}}
  %y = axe.gemm %x, %x {trans_a, axe.plan = {tile = array<i64: 16, 64, 64>, swap_ab = true}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @no_stage(%a: tensor<64x256xf8E4M3FN>, %sa: tensor<64x4xf32>, %sw: tensor<1x4xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{blocks of 64 elements along k are no stage of a multiple of 128 bytes up to 1024}}
  %y = axe.scaled_gemm %a, %a, %sa, %sw {block_k = 64 : i64, axe.plan = {mainloop = "wgmma"}} : tensor<64x256xf8E4M3FN>, tensor<64x256xf8E4M3FN>, tensor<64x4xf32>, tensor<1x4xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @two_scales(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %sw: tensor<2x2xf32>) -> tensor<256x256xf32> {
  // expected-error @below {{for blocks with scales 64 rows for each consumer, columns that divide a block's, and its depth, not swapped or split, got {mainloop = "wgmma", tile = array<i64: 128, 256, 128>, consumers = 2}}
  %y = axe.scaled_gemm %a, %a, %sa, %sw {axe.plan = {tile = array<i64: 128, 256, 128>}} : tensor<256x256xf8E4M3FN>, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>, tensor<2x2xf32> -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

func.func @pingpong(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{(or for each tile of 2 or 3 with schedule = "pingpong"), up to 256 columns}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, consumers = 1 : i64, schedule = "pingpong"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @split_k_in_pingpong(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected splits of 1 to 64 with decomposition = "split_k" in axe.plan, a step along k for each, and all consumers at one tile, got 2 of}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "split_k", splits = 2 : i64, schedule = "pingpong"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @more_splits_than_steps(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{a step along k for each, and all consumers at one tile, got 9 of}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "split_k", splits = 9 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @split_k_of_a_batch(%x: tensor<2x512x512xf16>) -> tensor<2x512x512xf32> {
  // expected-error @below {{expected no depth shared through memory in axe.plan for a batch}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "split_k", splits = 2 : i64}} : tensor<2x512x512xf16>, tensor<2x512x512xf16> -> tensor<2x512x512xf32>
  return %y : tensor<2x512x512xf32>
}

// -----

func.func @no_stream_k(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 128 as 'splits' of axe.plan, got 0}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = 0 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @long_stream_k(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 128 as 'splits' of axe.plan, got 129}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = 129 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @negative_stream_k(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 128 as 'splits' of axe.plan, got -1}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = -1 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @least_stream_k(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 128 as 'splits' of axe.plan, got -9223372036854775808}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = -9223372036854775808 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @stream_k_of_a_batch(%x: tensor<2x512x512xf16>) -> tensor<2x512x512xf32> {
  // expected-error @below {{expected no depth shared through memory in axe.plan for a batch}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = 2 : i64}} : tensor<2x512x512xf16>, tensor<2x512x512xf16> -> tensor<2x512x512xf32>
  return %y : tensor<2x512x512xf32>
}

// -----

func.func @swapped_stream_k(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected splits of 1 to 64 with decomposition = "stream_k" in axe.plan, and A and B not swapped, got 2 of {mainloop}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 16, 64, 64>, swap_ab = true, decomposition = "stream_k", splits = 2 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @stream_k_of_rows_at_run_time(%x: tensor<?x512xf16>, %w: tensor<512x512xf16>) -> tensor<?x512xf32> {
  // expected-error @below {{expected no depth shared through memory in axe.plan for rows that are counted at run time}}
  %y = axe.gemm %x, %w {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "stream_k", splits = 2 : i64}} : tensor<?x512xf16>, tensor<512x512xf16> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

func.func @stream_k_of_warps(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected decomposition = "data_parallel" or "split_k" in axe.plan of a product by mma.sync, got "stream_k"}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "mma", decomposition = "stream_k", splits = 2 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @more_parts_than_steps(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected splits of 1 to 64 with decomposition = "split_k" in axe.plan, and a step along k for each, got 9 of {mainloop = "mma", tile = array<i64: 64, 64, 64>}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "mma", tile = array<i64: 64, 64, 64>, warps = array<i64: 2, 2>, stages = 3 : i64, decomposition = "split_k", splits = 9 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @parts_of_a_batch_by_warps(%x: tensor<4x512x512xf16>) -> tensor<4x512x512xf32> {
  // expected-error @below {{expected no depth shared through memory in axe.plan for a batch}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "mma", decomposition = "split_k", splits = 2 : i64}} : tensor<4x512x512xf16>, tensor<4x512x512xf16> -> tensor<4x512x512xf32>
  return %y : tensor<4x512x512xf32>
}

// -----

func.func @split_k_of_blocks(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %sw: tensor<2x2xf32>) -> tensor<256x256xf32> {
  // expected-error @below {{its depth, not swapped or split, got {mainloop}}
  %y = axe.scaled_gemm %a, %a, %sa, %sw {axe.plan = {tile = array<i64: 128, 128, 128>, decomposition = "split_k", splits = 2 : i64}} : tensor<256x256xf8E4M3FN>, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>, tensor<2x2xf32> -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

func.func @parts_of_a(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a tile in axe.plan whose part of A falls into 2 parts of whole periods of 8 rows for a cluster of 2, got [8, 64, 64]}}
  %y = axe.gemm %x, %x {trans_b, axe.plan = {tile = array<i64: 8, 64, 64>, cluster = array<i64: 1, 2>, swap_ab = true}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @parts_of_b(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a tile in axe.plan whose part of B falls into 2 parts of whole periods of 8 rows for a cluster of 2, got [128, 152, 64]}}
  %y = axe.gemm %x, %x {trans_b, axe.plan = {tile = array<i64: 128, 152, 64>, cluster = array<i64: 2, 1>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @unknown(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{unknown entry 'tiel' of axe.plan: expected mainloop, tile, warps, }}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "wgmma", tiel = array<i64: 64, 64, 64>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @no_plan(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a dictionary as axe.plan, got "wgmma"}}
  %y = axe.gemm %x, %x {axe.plan = "wgmma"} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @two_numbers(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected three numbers as in array<i64: 128, 128, 64> as 'tile' of axe.plan, got array<i64: 64, 64>}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @text(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a number as in 2 : i64 as 'stages' of axe.plan, got "four"}}
  %y = axe.gemm %x, %x {axe.plan = {stages = "four"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @flag(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected true or false as 'swap_ab' of axe.plan, got 1 : i64}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 64>, swap_ab = 1 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @alone(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 'tile' with 'schedule' in axe.plan}}
  %y = axe.gemm %x, %x {axe.plan = {schedule = "pingpong"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @two_kernels(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected entries of one mainloop in axe.plan, got 'cluster' with mainloop = "mma"}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "mma", cluster = array<i64: 2, 1>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @warps_of_roles(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected entries of one mainloop in axe.plan, got 'warps' with mainloop = "wgmma"}}
  %y = axe.gemm %x, %x {axe.plan = {mainloop = "wgmma", warps = array<i64: 2, 2>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @far(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{a depth in 128 bytes up to 1024}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 4611686018427387904>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @rows_far(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{a depth in 128 bytes up to 1024}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 4611686018427387904, 8, 64>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @no_number(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a number as in 2 : i64 as 'stages' of axe.plan, got true}}
  %y = axe.gemm %x, %x {axe.plan = {stages = true}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @no_splits(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 128 as 'splits' of axe.plan, got 0}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 64>, decomposition = "cluster_split_k", splits = 0 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @no_rows_of_tiles(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 65536 as 'swizzle' of axe.plan, got 0}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 64, 64, 64>, swizzle = 0 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @many_rows_of_tiles(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected 1 to 65536 as 'swizzle' of axe.plan, got 4611686018427387904}}
  %y = axe.gemm %x, %x {axe.plan = {swizzle = 4611686018427387904 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @cluster_split_k_in_pingpong(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{with decomposition = "cluster_split_k" in axe.plan, a step along k and eight columns for each, or rows where A and B are swapped, and all consumers at one tile, got 2 of}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, decomposition = "cluster_split_k", splits = 2 : i64, schedule = "pingpong"}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @cluster_of_too_many(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a cluster of 1, 2, 4 or 8 CTAs in axe.plan, got [2305843009213693953, 8]}}
  %y = axe.gemm %x, %x {axe.plan = {cluster = array<i64: 2305843009213693953, 8>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @cluster_of_six(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected a cluster of 1, 2, 4 or 8 CTAs in axe.plan, got [3, 2]}}
  %y = axe.gemm %x, %x {axe.plan = {cluster = array<i64: 3, 2>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

// Keys of the database's older entries are not those of IR.
func.func @old_key(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{unknown entry 'turns' of axe.plan: expected schedule = "pingpong"}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, turns = true}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}

// -----

func.func @registers(%x: tensor<512x512xf16>) -> tensor<512x512xf32> {
  // expected-error @below {{expected registers in eights in axe.plan, and of all warpgroups no more than 64 K, got [40, 240] beside 2 consumers}}
  %y = axe.gemm %x, %x {axe.plan = {tile = array<i64: 128, 128, 64>, registers = array<i64: 40, 240>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
