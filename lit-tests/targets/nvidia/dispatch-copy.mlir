// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_80 explain" --axe-lower-schedules 2>&1 | FileCheck %s --check-prefix=AMPERE
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules | FileCheck %s --check-prefix=SAME

// Verifying changes nothing.
// SAME: axe.kernel @tile
// SAME-NOT: gpu.module

#row = #axe.layout<S[(64, 16, 8) : (8@reg, 1@thread, 1@reg)] + R[8 : 16@thread]>
#swizzled = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#a = #axe.layout<S[(4, 2, 8, 2, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#step = #axe.layout<Sw<3, 3, 3> o S[(64, 16) : (64, 1)]>

// CHECK-LABEL: kernel @tile
// CHECK: axe.copy -> cp.async
// CHECK: | 8 elements at from + 0 -> to + 0
// CHECK: axe.commit -> cp.async.commit_group
// CHECK: axe.wait -> cp.async.wait_group
// CHECK: axe.barrier -> bar.sync
// CHECK: axe.copy -> ldmatrix
// CHECK: | w[0..] <-> m8n8.x4 [row + 0]
// CHECK: axe.copy -> stmatrix
// CHECK: axe.copy -> st.vector
// CHECK-NEXT: not tma.store.staged: {{.*}}
// CHECK-NEXT: not st.staged: expected a kernel with roles on a chip with a tensor memory accelerator
// CHECK-NEXT: not stmatrix: expected shared memory
// AMPERE: not stmatrix: sm_80 has no stmatrix

// CHECK: gpu.module @kernels
// CHECK: llvm.mlir.global external @axe_shared() {addr_space = 3 : i32
// CHECK: gpu.func @tile(%{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64}, %{{.*}}: i64, %{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64})
// CHECK-SAME: kernel attributes {nvvm.reqntid = array<i32: 128>}
// Rows beyond the end are read as zeros.
// CHECK: %[[SIZE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[SIZE]]
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.stmatrix
// CHECK-NOT: axe.copy
axe.kernel @tile(%x: memref<?x64xf16>, %y: memref<64x16xf16>) threads(128) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %r = arith.muli %block, %c64 : index
  %s = axe.alloc : memref<64x64xf16, #swizzled, #axe.space<shared>>
  %t = axe.slice %x[%r, %c0] : memref<?x64xf16> to memref<64x64xf16>
  axe.copy async %t to %s : memref<64x64xf16> to memref<64x64xf16, #swizzled, #axe.space<shared>>
  %g = axe.commit : !axe.token
  axe.wait
  axe.barrier
  %k = axe.slice %s[%c0, %c0] : memref<64x64xf16, #swizzled, #axe.space<shared>> to memref<64x16xf16, #step, #axe.space<shared>>
  %f = axe.copy %k : memref<64x16xf16, #step, #axe.space<shared>> -> tensor<64x16xf16, #a>
  axe.barrier
  axe.copy %f to %k : tensor<64x16xf16, #a> to memref<64x16xf16, #step, #axe.space<shared>>
  axe.copy %f to %y : tensor<64x16xf16, #a> to memref<64x16xf16>
  axe.return
}
