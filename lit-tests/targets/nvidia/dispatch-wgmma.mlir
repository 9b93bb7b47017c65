// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-nvidia=target=sm_90a | FileCheck %s --check-prefix=PTX

// Products by warpgroups: descriptors come from the operands' layouts, registers from the fragments'.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

// Both operands have k innermost: four steps of 16, 32 bytes apart.
// CHECK-LABEL: kernel @k_major
// CHECK: axe.gemm -> wgmma
// CHECK-NEXT: | 4 x wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 a warpgroup
// CHECK-NEXT: | A: K-major, swizzle 128B, leading 16 B, stride 1024 B
// CHECK-NEXT: | B: K-major, swizzle 128B, leading 16 B, stride 1024 B
// CHECK-NEXT: | k0: d[0..] += [A + 0] * [B + 0]
// CHECK-NEXT: | k1: d[0..] += [A + 32] * [B + 32]
// CHECK-NEXT: | k2: d[0..] += [A + 64] * [B + 64]
// CHECK-NEXT: | k3: d[0..] += [A + 96] * [B + 96]
// CHECK: axe.wait -> wgmma.wait_group
// CHECK-NEXT: not cp.async.wait_group: the wait is for products

// M and N innermost: the descriptor says so, and a step of 16 is 16 rows.
// CHECK-LABEL: kernel @mn_major
// CHECK: | A: Mn-major, swizzle 128B
// CHECK-NEXT: | B: Mn-major, swizzle 128B
// CHECK: | k1: d[0..] += [A + 2048] * [B + 2048]

// CHECK-LABEL: kernel @registers
// CHECK: | 1 x wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 a warpgroup
// CHECK: | A: registers

// CHECK-LABEL: kernel @tf32
// CHECK: | 4 x wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 a warpgroup

// CHECK-LABEL: kernel @float8
// CHECK: | 4 x wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2 a warpgroup

// CHECK-LABEL: kernel @int8
// CHECK: | 4 x wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 a warpgroup

// The group of a product begins with a fence and ends with a commit. One that begins sums is inline PTX, and nothing writes zeros
// first; one that adds to sums is NVVM's. The wait takes the sums and gives them back, so that what reads them comes after it.
// CHECK: llvm.func @k_major
// CHECK: %[[SUMS:.*]] = llvm.inline_asm has_side_effects "{{.*}}wgmma.fence.sync.aligned;{{.*}}wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16{{.*}}wgmma.commit_group.sync.aligned;
// CHECK: %[[FIRST:.*]] = llvm.extractvalue %[[SUMS]][0]
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: llvm.insertvalue %[[FIRST]],
// CHECK: %[[K0:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %{{.*}}, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <col>]
// CHECK: %[[K1:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[K0]],
// CHECK: %[[K2:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[K1]],
// CHECK: %[[MORE:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[K2]],
// CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned
// CHECK: %[[NEXT:.*]] = llvm.extractvalue %[[MORE]][0]
// CHECK: %[[DONE:.*]] = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,{{.*}} %[[NEXT]],
// CHECK: llvm.extractvalue %[[DONE]][0]
// CHECK-NOT: llvm.extractvalue %[[SUMS]]
// CHECK: llvm.func @mn_major
// CHECK: nvvm.wgmma.mma_async {{.*}} A[<f16>, <one>, <col>], B[<f16>, <one>, <row>]

// PTX: gpu.binary
// PTX-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// PTX-SAME: wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32
// PTX-SAME: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2
// PTX-SAME: wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8
axe.kernel @k_major(%c: memref<64x64xf32>) threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %b = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %q = axe.gemm async %a, %b acc %p : tensor<64x64xf32, #sums> {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %q : tensor<64x64xf32, #sums>
  axe.copy %d to %c : tensor<64x64xf32, #sums> to memref<64x64xf32>
  axe.return
}

axe.kernel @mn_major(%c: memref<64x64xf32>) threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %b = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_a} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %q = axe.gemm async %a, %b acc %p : tensor<64x64xf32, #sums> {trans_a} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %q : tensor<64x64xf32, #sums>
  axe.copy %d to %c : tensor<64x64xf32, #sums> to memref<64x64xf32>
  axe.return
}

#a = #axe.layout<S[(4, 2, 8, 2, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#k16 = #axe.layout<Sw<1, 3, 3> o S[(64, 16) : (16, 1)]>
axe.kernel @registers(%x: memref<64x16xbf16>, %c: memref<64x64xf32>) threads(128) {
  %a = axe.copy %x : memref<64x16xbf16> -> tensor<64x16xbf16, #a>
  %b = axe.alloc : memref<64x16xbf16, #k16, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_b} : tensor<64x16xbf16, #a>, memref<64x16xbf16, #k16, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %p : tensor<64x64xf32, #sums>
  axe.copy %d to %c : tensor<64x64xf32, #sums> to memref<64x64xf32>
  axe.return
}

#words = #axe.layout<Sw<3, 2, 3> o S[(64, 32) : (32, 1)]>
axe.kernel @tf32(%c: memref<64x64xf32>) threads(128) {
  %a = axe.alloc : memref<64x32xf32, #words, #axe.space<shared>>
  %b = axe.alloc : memref<64x32xf32, #words, #axe.space<shared>>
  %p = axe.gemm async %a, %b options = {precision = "tf32"} {trans_b} : memref<64x32xf32, #words, #axe.space<shared>>, memref<64x32xf32, #words, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %p : tensor<64x64xf32, #sums>
  axe.copy %d to %c : tensor<64x64xf32, #sums> to memref<64x64xf32>
  axe.return
}

#bytes = #axe.layout<Sw<3, 4, 3> o S[(64, 128) : (128, 1)]>
axe.kernel @float8(%c: memref<64x64xf32>) threads(128) {
  %a = axe.alloc : memref<64x128xf8E4M3FN, #bytes, #axe.space<shared>>
  %b = axe.alloc : memref<64x128xf8E5M2, #bytes, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_b} : memref<64x128xf8E4M3FN, #bytes, #axe.space<shared>>, memref<64x128xf8E5M2, #bytes, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %p : tensor<64x64xf32, #sums>
  axe.copy %d to %c : tensor<64x64xf32, #sums> to memref<64x64xf32>
  axe.return
}

axe.kernel @int8(%c: memref<64x64xi32>) threads(128) {
  %a = axe.alloc : memref<64x128xi8, #bytes, #axe.space<shared>>
  %b = axe.alloc : memref<64x128xi8, #bytes, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_b} : memref<64x128xi8, #bytes, #axe.space<shared>>, memref<64x128xi8, #bytes, #axe.space<shared>> -> tensor<64x64xi32, #sums>
  %d = axe.wait %p : tensor<64x64xi32, #sums>
  axe.copy %d to %c : tensor<64x64xi32, #sums> to memref<64x64xi32>
  axe.return
}
