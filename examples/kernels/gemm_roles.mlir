// C = A W^T for A: 8192 x 4096, W: 4096 x 4096 in f16 with sums in f32: the fast matrix product of Hopper written by hand. It is
// what the compiler makes of the two lines of gemm_line.mlir in tiles of 128 x 256, spelled out, so that each construct can be
// read and changed.
//
//   axe compile examples/kernels/gemm_roles.mlir --target sm_90a -o gemm.axe
//   axe explain examples/kernels/gemm_roles.mlir --target sm_90a
//
// The idea. One CTA has three warpgroups of 128 threads with two roles. A producer asks the tensor memory accelerator (TMA) for
// tiles of A and W; two consumers multiply them on the tensor cores (wgmma) as they arrive. Between the roles is a ring of four
// stages, so that tiles are on their way while others are multiplied. A CTA a multiprocessor goes through many tiles of C
// ("persistent"), and the next tile's copies run while this tile's results are stored.
//
// Nothing below names an instruction. Layouts say where elements are, and dispatch derives instructions from them; `axe explain`
// prints which, and why not others.

// A stage of A is 128 rows of 64 elements, dense: rows of 128 bytes, which is what the widest swizzle of TMA and wgmma works on.
// S[32768 : 1] are all elements of the four stages, one after another. Sw<3, 3, 3> exchanges chunks of 2^3 elements (16 bytes)
// by the 3 bits of the address that number the row modulo 8: eight rows of a column meet no bank twice.
#a_ring  = #axe.layout<Sw<3, 3, 3> o S[32768 : 1]>
#a_stage = #axe.layout<Sw<3, 3, 3> o S[8192 : 1]>
#w_ring  = #axe.layout<Sw<3, 3, 3> o S[65536 : 1]>
#w_stage = #axe.layout<Sw<3, 3, 3> o S[16384 : 1]>

// The accumulators of wgmma.m64n256 (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"). Outermost first, rows are 8 warps x
// 2 registers x 8 lanes (8 * 2 * 8 = 128), columns 32 registers x 4 lanes x 2 registers (32 * 4 * 2 = 256): a thread holds 128
// sums, and the 8 warps of both consumers hold the tile together.
#sums = #axe.layout<S[(8, 2, 8, 32, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

axe.kernel @gemm(%A: memref<8192x4096xf16>, %W: memref<4096x4096xf16>, %C: memref<8192x4096xf16>) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %M = arith.constant 8192 : index
  %N = arith.constant 4096 : index
  %K = arith.constant 4096 : index
  %rows = arith.ceildivui %M, %c128 : index
  %columns = arith.ceildivui %N, %c256 : index
  %steps = arith.ceildivui %K, %c64 : index

  // Shared memory for four stages: 64 KiB of A and 128 KiB of W. The ring has two barriers a stage, "full" and "empty"; who
  // arrives at them, and how often, follows from the scopes that commit and release below.
  %As = axe.alloc : memref<4x128x64xf16, #a_ring, #axe.space<shared>>
  %Ws = axe.alloc : memref<4x256x64xf16, #w_ring, #axe.space<shared>>
  %ring = axe.pipeline.create stages(4) : !axe.pipeline

  // The producer needs few registers, the consumers many: the budgets move registers between warpgroups (128 * 40 + 256 * 232
  // fit the 64 K of a multiprocessor). Of its four warps one works.
  axe.scope warpgroup [0, 1) registers(40) {
    axe.scope warp [0, 1) {
      // The tiles of C are numbered 8 rows at a time, so that CTAs that run together share tiles of A and W in the L2 cache.
      // CTA b of g takes the tiles b, b + g, b + 2 g, ...: any grid is right.
      axe.for_tiles (%i, %j) in (%rows, %columns) raster(groups 8) {
        %m = arith.muli %i, %c128 : index
        %n = arith.muli %j, %c256 : index
        scf.for %k = %c0 to %K step %c64 {
          // Waits until the stage is free, then says that it is full when both copies are complete. A slice carries the
          // bounds of its source: what lies outside of A or W reads as zero.
          %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
          %a = axe.slice %A[%m, %k] : memref<8192x4096xf16> to memref<128x64xf16, strided<[4096, 1]>>
          %as = axe.slice %As[%stage, %c0, %c0] : memref<4x128x64xf16, #a_ring, #axe.space<shared>> to memref<128x64xf16, #a_stage, #axe.space<shared>>
          axe.copy async %a to %as signal %slot : memref<128x64xf16, strided<[4096, 1]>> to memref<128x64xf16, #a_stage, #axe.space<shared>>
          %w = axe.slice %W[%n, %k] : memref<4096x4096xf16> to memref<256x64xf16, strided<[4096, 1]>>
          %ws = axe.slice %Ws[%stage, %c0, %c0] : memref<4x256x64xf16, #w_ring, #axe.space<shared>> to memref<256x64xf16, #w_stage, #axe.space<shared>>
          axe.copy async %w to %ws signal %slot : memref<256x64xf16, strided<[4096, 1]>> to memref<256x64xf16, #w_stage, #axe.space<shared>>
          axe.pipeline.commit %ring, %slot
        }
      }
    }
  }

  // Both warpgroups multiply a tile together, 64 rows each. They could take turns at tiles of 128 x 128 instead, so that one
  // multiplies while the other stores: `axe.scope warpgroup { axe.for_tiles ... turns { ... } }` (docs/kernels.md).
  axe.scope warpgroup [1, 3) registers(232) {
    axe.for_tiles (%i, %j) in (%rows, %columns) raster(groups 8) {
      %m = arith.muli %i, %c128 : index
      %n = arith.muli %j, %c256 : index

      // The first step has no sums before it.
      %slot, %stage = axe.pipeline.wait %ring : !axe.slot
      %as = axe.slice %As[%stage, %c0, %c0] : memref<4x128x64xf16, #a_ring, #axe.space<shared>> to memref<128x64xf16, #a_stage, #axe.space<shared>>
      %ws = axe.slice %Ws[%stage, %c0, %c0] : memref<4x256x64xf16, #w_ring, #axe.space<shared>> to memref<256x64xf16, #w_stage, #axe.space<shared>>
      %first = axe.gemm async %as, %ws {trans_b} : memref<128x64xf16, #a_stage, #axe.space<shared>>, memref<256x64xf16, #w_stage, #axe.space<shared>> -> tensor<128x256xf32, #sums>

      // One product stays under way: when the next one has been issued, the one before it is complete and its stage is free.
      // `axe.wait` takes the sums and gives them back, so that nothing can read them before.
      %last:2 = scf.for %step = %c1 to %steps step %c1 iter_args(%before = %first, %held = %slot) -> (tensor<128x256xf32, #sums>, !axe.slot) {
        %next, %at = axe.pipeline.wait %ring : !axe.slot
        %a = axe.slice %As[%at, %c0, %c0] : memref<4x128x64xf16, #a_ring, #axe.space<shared>> to memref<128x64xf16, #a_stage, #axe.space<shared>>
        %w = axe.slice %Ws[%at, %c0, %c0] : memref<4x256x64xf16, #w_ring, #axe.space<shared>> to memref<256x64xf16, #w_stage, #axe.space<shared>>
        %sum = axe.gemm async %a, %w acc %before : tensor<128x256xf32, #sums> {trans_b} : memref<128x64xf16, #a_stage, #axe.space<shared>>, memref<256x64xf16, #w_stage, #axe.space<shared>> -> tensor<128x256xf32, #sums>
        %after = axe.wait %sum {pending = 1 : i64} : tensor<128x256xf32, #sums>
        axe.pipeline.release %ring, %held
        scf.yield %after, %next : tensor<128x256xf32, #sums>, !axe.slot
      }
      %done = axe.wait %last#0 : tensor<128x256xf32, #sums>
      axe.pipeline.release %ring, %last#1

      // The results leave through subtiles of shared memory: stmatrix, then a store by TMA, which drops what lies outside of C.
      %half = axe.cast %done : tensor<128x256xf32, #sums> -> tensor<128x256xf16, #sums>
      %c = axe.slice %C[%m, %n] : memref<8192x4096xf16> to memref<128x256xf16, strided<[4096, 1]>>
      axe.copy %half to %c : tensor<128x256xf16, #sums> to memref<128x256xf16, strided<[4096, 1]>>
    }
  }
  axe.return
}

// A CTA for each of the 132 multiprocessors of an H100 or H200.
func.func @main(%a: tensor<8192x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<8192x4096xf16> {
  %c1 = arith.constant 1 : index
  %ctas = arith.constant 132 : index
  %empty = tensor.empty() : tensor<8192x4096xf16>
  %c = axe.launch @gemm grid(%ctas, %c1, %c1) ins(%a, %w : tensor<8192x4096xf16>, tensor<4096x4096xf16>) outs(%empty : tensor<8192x4096xf16>) -> tensor<8192x4096xf16>
  return %c : tensor<8192x4096xf16>
}
