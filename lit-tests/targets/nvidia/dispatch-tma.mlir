// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=nvvm" | FileCheck %s --check-prefix=NVVM

// Copies by the tensor memory accelerator: a descriptor from the global memory's layout, boxes from the shared one's.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#half = #axe.layout<Sw<2, 3, 3> o S[(64, 32) : (32, 1)]>
#panels = #axe.layout<Sw<3, 3, 3> o S[(64, 2, 64) : (64, 4096, 1)]>
#blocks = #axe.layout<S[(8, 8, 8, 8) : (64, 8, 512, 1)]>
#batch = #axe.layout<Sw<3, 3, 3> o S[(2, 32, 64) : (2048, 64, 1)]>

// CHECK-LABEL: kernel @loads
// The leading extent is the launch's to know.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map {type = "f16", extents = [256, -1], strides = [512], box = [64, 64], swizzle = "128B"}
// CHECK-NEXT: | box [x1, x0] <-> shared + 0
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map {type = "f16", extents = [256, -1], strides = [512], box = [32, 64], swizzle = "64B"}
// Rows wider than the swizzle are panels.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map {type = "f16", extents = [256, -1], strides = [512], box = [64, 64], swizzle = "128B"}
// CHECK-NEXT: | box [x1, x0] <-> shared + 0
// CHECK-NEXT: | box [x1 + 64, x0] <-> shared + 4096
// Core matrices one after another: rows of 16 bytes, and a box for each column of them.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map {type = "f16", extents = [256, -1], strides = [512], box = [8, 64], swizzle = "none"}
// CHECK-COUNT-8: | box
// Three dimensions in one box.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map {type = "f16", extents = [128, 96, 6], strides = [256, 24576], box = [64, 32, 2], swizzle = "128B"}
// CHECK-NEXT: | box [x2, x1, x0] <-> shared + 0

// CHECK-LABEL: kernel @stores
// CHECK: axe.copy -> tma.store
// CHECK-NEXT: not tma.load: the copy signals no pipeline
// CHECK-NEXT: | tensor map {type = "f32", extents = [64, 64], strides = [256], box = [32, 64], swizzle = "128B"}
// CHECK-NEXT: | box [x1, x0] <-> shared + 0
// CHECK-NEXT: | box [x1 + 32, x0] <-> shared + 2048
// CHECK: axe.commit -> cp.async.commit_group

// The launch has the maps, each once; the kernel has them as parameters.
// CHECK: axe.launch @kernels::@loads
// CHECK-SAME: tensor_maps = [
// CHECK-SAME: {box = [64, 64], extents = [256, -1], offset = 0 : i64, source = 0 : i64, strides = [512], swizzle = "128B", type = "f16"},
// CHECK-SAME: {box = [32, 64], {{[^{}]*}} swizzle = "64B", type = "f16"},
// CHECK-SAME: {box = [8, 64], {{[^{}]*}} swizzle = "none", type = "f16"},
// CHECK-SAME: {box = [64, 32, 2], extents = [128, 96, 6], offset = 0 : i64, source = 1 : i64, strides = [256, 24576], swizzle = "128B", type = "f16"}]
// CHECK: llvm.func @loads
// CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// One thread says how many bytes are to come and asks for them.
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: %[[SHARED:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr<7>
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[SHARED]], %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}]
// CHECK: box[%{{.*}}, %{{.*}}, %{{.*}}]

// What threads stored is published before it is read; the group is waited for, also by the kernel's end.
// CHECK: llvm.func @stores
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK: nvvm.cp.async.bulk.wait_group 0
// CHECK: llvm.return

// NVVM: llvm.func @loads
// NVVM-SAME: nvvm.grid_constant
// NVVM-SAME: nvvm.reqntid
axe.kernel @loads(%x: memref<?x256xf16>, %y: memref<6x96x128xf16>) threads(256) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %m = arith.muli %block, %c64 : index
  %tile = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %half = axe.alloc : memref<64x32xf16, #half, #axe.space<shared>>
  %panels = axe.alloc : memref<64x128xf16, #panels, #axe.space<shared>>
  %blocks = axe.alloc : memref<64x64xf16, #blocks, #axe.space<shared>>
  %batch = axe.alloc : memref<2x32x64xf16, #batch, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    %a = axe.slice %x[%m, %c64] : memref<?x256xf16> to memref<64x64xf16, strided<[256, 1]>>
    axe.copy async %a to %tile signal %slot : memref<64x64xf16, strided<[256, 1]>> to memref<64x64xf16, #tile, #axe.space<shared>>
    %b = axe.slice %x[%m, %c32] : memref<?x256xf16> to memref<64x32xf16, strided<[256, 1]>>
    axe.copy async %b to %half signal %slot : memref<64x32xf16, strided<[256, 1]>> to memref<64x32xf16, #half, #axe.space<shared>>
    %c = axe.slice %x[%m, %c0] : memref<?x256xf16> to memref<64x128xf16, strided<[256, 1]>>
    axe.copy async %c to %panels signal %slot : memref<64x128xf16, strided<[256, 1]>> to memref<64x128xf16, #panels, #axe.space<shared>>
    axe.copy async %a to %blocks signal %slot : memref<64x64xf16, strided<[256, 1]>> to memref<64x64xf16, #blocks, #axe.space<shared>>
    %d = axe.slice %y[%c0, %c32, %c64] : memref<6x96x128xf16> to memref<2x32x64xf16, strided<[12288, 128, 1]>>
    axe.copy async %d to %batch signal %slot : memref<2x32x64xf16, strided<[12288, 128, 1]>> to memref<2x32x64xf16, #batch, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

#out = #axe.layout<Sw<3, 2, 3> o S[(64, 2, 32) : (32, 2048, 1)]>
axe.kernel @stores(%x: memref<64x64xf32>, %y: memref<64x64xf32>) threads(128) {
  %s = axe.alloc : memref<64x64xf32, #out, #axe.space<shared>>
  axe.copy %x to %s : memref<64x64xf32> to memref<64x64xf32, #out, #axe.space<shared>>
  axe.barrier async
  axe.copy async %s to %y : memref<64x64xf32, #out, #axe.space<shared>> to memref<64x64xf32>
  %group = axe.commit : !axe.token
  axe.wait
  axe.return
}

func.func @launches(%x: tensor<?x256xf16>, %y: tensor<6x96x128xf16>, %g: index) {
  %c1 = arith.constant 1 : index
  axe.launch @loads grid(%g, %c1, %c1) ins(%x, %y : tensor<?x256xf16>, tensor<6x96x128xf16>)
  return
}
