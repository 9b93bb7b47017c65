// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --remarks-filter=axe-plan --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=ptx" -o %t.all
// RUN: axe-opt %s --axe-nvidia="target=sm_80 until=ptx" -o %t.all

// One block of k is one stage; its products start from zero and are added, scaled, to the sums.
// CHECK-LABEL: axe.kernel @blocks_0_gemm
// CHECK-SAME: threads(512)
// CHECK: axe.pipeline.create stages(4)
// CHECK: axe.scope warpgroup [0, 1) registers(32)
// CHECK: axe.scope warpgroup [1, 4) registers(160)
// CHECK: scf.for
// CHECK: axe.pipeline.wait
// CHECK: %[[PART:.*]] = axe.gemm async %{{.*}}, %{{.*}} {trans_b} : memref<192x128xf8E4M3FN, {{.*}}>, memref<128x128xf8E4M3FN, {{.*}}> -> tensor<192x128xf32
// The scales of the next block are fetched before the products are waited for.
// CHECK: arith.minui
// CHECK: axe.copy
// CHECK: memref.load
// CHECK: axe.wait %[[PART]] :
// CHECK: axe.pipeline.release
// CHECK: axe.map
// CHECK: axe.broadcast
// CHECK: axe.map
// CHECK: math.fma
// CHECK: scf.yield
// CHECK: axe.cast
// Without wgmma fragments come from global memory, widened in registers.
// SM80-LABEL: axe.kernel @blocks_0_gemm
// SM80-SAME: threads(128)
// SM80: axe.cast {{.*}}f8E4M3FN, {{.*}} -> {{.*}}f16
// SM80: axe.gemm {{.*}} {trans_b}
// SM80: math.fma
func.func @blocks(%a: tensor<8192x4096xf8E4M3FN>, %sa: tensor<8192x32xf32>, %w: tensor<4096x4096xf8E4M3FN>, %sw: tensor<32x32xf32>) -> tensor<8192x4096xbf16> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw : tensor<8192x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>, tensor<8192x32xf32>, tensor<32x32xf32> -> tensor<8192x4096xf32>
  %c = axe.cast %p : tensor<8192x4096xf32> -> tensor<8192x4096xbf16>
  return %c : tensor<8192x4096xbf16>
}

// Scales of rows that memory has one after the other come with the rows.
// CHECK-LABEL: axe.kernel @staged_0_gemm
// CHECK: axe.alloc : memref<4x1x192xf32
// CHECK: axe.pipeline.acquire
// CHECK-COUNT-3: axe.copy async {{.*}} signal
// CHECK: axe.pipeline.wait
// CHECK: %[[PART:.*]] = axe.gemm async
// CHECK: axe.copy %{{.*}} : memref<192xf32, {{.*}}> -> tensor<192xf32
// CHECK: axe.wait %[[PART]] :
func.func @staged(%a: tensor<8192x4096xf8E4M3FN>, %sa: tensor<32x8192xf32>, %w: tensor<4096x4096xf8E4M3FN>, %sw: tensor<32x32xf32>) -> tensor<8192x4096xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {trans_scale_a} : tensor<8192x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>, tensor<32x8192xf32>, tensor<32x32xf32> -> tensor<8192x4096xf32>
  return %p : tensor<8192x4096xf32>
}

// No tensor map takes rows of 1020 bytes: the consumers read the scales themselves.
// CHECK-LABEL: axe.kernel @unaligned_0_gemm
// CHECK: axe.pipeline.acquire
// CHECK-COUNT-2: axe.copy async {{.*}} signal
// CHECK-NOT: axe.copy async
// CHECK: axe.pipeline.commit
func.func @unaligned(%a: tensor<255x512xf8E4M3FN>, %sa: tensor<4x255xf32>, %w: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>) -> tensor<255x256xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {trans_scale_a} : tensor<255x512xf8E4M3FN>, tensor<256x512xf8E4M3FN>, tensor<4x255xf32>, tensor<2x4xf32> -> tensor<255x256xf32>
  return %p : tensor<255x256xf32>
}

// Few rows take few rows, and stages of larger blocks are deeper.
// CHECK-LABEL: axe.kernel @few_0_gemm
// CHECK-SAME: threads(256)
// CHECK: axe.gemm async {{.*}} : memref<64x256xf8E5M2, {{.*}}>, memref<{{.*}}x256xf8E4M3FN,
func.func @few(%a: tensor<?x4096xf8E5M2>, %sa: tensor<?x16xf32>, %w: tensor<1024x4096xf8E4M3FN>, %sw: tensor<8x16xf32>) -> tensor<?x1024xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {block_k = 256 : i64, axe.plan = {tile = array<i64: 64, 64, 256>}} : tensor<?x4096xf8E5M2>, tensor<1024x4096xf8E4M3FN>, tensor<?x16xf32>, tensor<8x16xf32> -> tensor<?x1024xf32>
  return %p : tensor<?x1024xf32>
}

// A tile's columns share a scale.
// CHECK-LABEL: axe.kernel @narrow_0_gemm
// CHECK: axe.gemm async {{.*}} : memref<64x128xf8E4M3FN, {{.*}}>, memref<16x128xf8E4M3FN,
func.func @narrow(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %w: tensor<256x512xf8E4M3FN>, %sw: tensor<16x4xf32>) -> tensor<256x256xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {block_n = 16 : i64} : tensor<256x512xf8E4M3FN>, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>, tensor<16x4xf32> -> tensor<256x256xf32>
  return %p : tensor<256x256xf32>
}

// Blocks that are no stage.
// REMARK: remark: [Missed] {{.*}}Function=short_0_gemm{{.*}}"not by wgmma: blocks of 64 elements along k are no stage of a multiple of 128 bytes up to 1024"
// CHECK-LABEL: axe.kernel @short_0_gemm
// CHECK-NOT: axe.pipeline
// CHECK: axe.gemm {{.*}}f16
func.func @short(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<8x256xf32>, %w: tensor<256x512xf8E4M3FN>, %sw: tensor<2x8xf32>) -> tensor<256x256xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw {block_k = 64 : i64, trans_scale_a} : tensor<256x512xf8E4M3FN>, tensor<256x512xf8E4M3FN>, tensor<8x256xf32>, tensor<2x8xf32> -> tensor<256x256xf32>
  return %p : tensor<256x256xf32>
}

// Rows that no descriptor takes.
// REMARK: remark: [Missed] {{.*}}Function=odd_0_gemm{{.*}}"not by wgmma: an operand's rows of 200 elements are no multiple of 16 bytes, which its descriptor needs, and a copy would take longer than it saves"
// CHECK-LABEL: axe.kernel @odd_0_gemm
// CHECK-NOT: axe.pipeline
func.func @odd(%a: tensor<256x200xf8E4M3FN>, %sa: tensor<256x2xf32>, %w: tensor<256x200xf8E4M3FN>, %sw: tensor<2x2xf32>) -> tensor<256x256xf32> {
  %p = axe.scaled_gemm %a, %w, %sa, %sw : tensor<256x200xf8E4M3FN>, tensor<256x200xf8E4M3FN>, tensor<256x2xf32>, tensor<2x2xf32> -> tensor<256x256xf32>
  return %p : tensor<256x256xf32>
}
