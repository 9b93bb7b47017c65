// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK: axe.mesh @pod(dp = 4, tp = 8)
axe.mesh @pod(dp = 4, tp = 8)

// CHECK-LABEL: axe.kernel @scale(%{{.*}}: memref<?x128xf32>, %{{.*}}: index) threads(128) cluster(2, 1) {
axe.kernel @scale(%x: memref<?x128xf32>, %row: index) threads(128) cluster(2, 1) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[S:.*]] = axe.alloc : memref<16x128xf32, #axe.space<shared>>
  %s = axe.alloc : memref<16x128xf32, #axe.space<shared>>
  // CHECK: %[[T:.*]] = axe.slice %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x128xf32> to memref<16x128xf32>
  %t = axe.slice %x[%row, %c0] : memref<?x128xf32> to memref<16x128xf32>
  // CHECK: axe.copy async %[[T]] to %[[S]] : memref<16x128xf32> to memref<16x128xf32, #axe.space<shared>>
  axe.copy async %t to %s : memref<16x128xf32> to memref<16x128xf32, #axe.space<shared>>
  // CHECK: axe.commit : !axe.token
  %token = axe.commit : !axe.token
  // CHECK: axe.wait {pending = 1 : i64}
  axe.wait {pending = 1 : i64}
  // CHECK: axe.barrier
  axe.barrier
  // CHECK: axe.view %[[S]] : memref<16x128xf32, #axe.space<shared>> to memref<128x16xf32, #axe.layout<S[(128, 16) : (1, 128)]>, #axe.space<shared>>
  %v = axe.view %s : memref<16x128xf32, #axe.space<shared>> to memref<128x16xf32, #axe.layout<S[(128, 16) : (1, 128)]>, #axe.space<shared>>
  // CHECK: axe.scope warpgroup [0, 1) {
  axe.scope warpgroup [0, 1) {
    // CHECK: axe.scope warp {
    axe.scope warp {
      // CHECK-NEXT: axe.barrier
      axe.barrier
    }
  }
  // CHECK: axe.return
  axe.return
}

// CHECK-LABEL: func.func @launch
func.func @launch(%x: tensor<?x128xf32>, %n: index) -> tensor<?x128xf32> {
  // CHECK: axe.launch @out grid(%{{.*}}, %{{.*}}, %{{.*}}) ins(%{{.*}} : index) outs(%{{.*}} : tensor<?x128xf32>) -> tensor<?x128xf32>
  %r = axe.launch @out grid(%n, %n, %n) ins(%n : index) outs(%x : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
}
axe.kernel @out(%row: index, %x: memref<?x128xf32>) threads(32) {
  axe.return
}

// A kernel that is bound to a target: in its module, lowered to LLVM, or compiled.
gpu.module @kernels {
  gpu.func @out(%x: !llvm.ptr<1>, %rows: i64) kernel {
    gpu.return
  }
}
gpu.module @lowered {
  llvm.func @out(%x: !llvm.ptr<1>, %rows: i64) {
    llvm.return
  }
}
gpu.binary @compiled [#gpu.object<#nvvm.target<chip = "sm_90a">, assembly = ".version 8.0">]

// CHECK-LABEL: func.func @bound
func.func @bound(%x: tensor<?x128xf32>, %n: index) -> tensor<?x128xf32> {
  // CHECK: axe.launch @kernels::@out grid(%{{.*}}) outs(%{{.*}} : tensor<?x128xf32>) {shared_bytes = 0 : i64, threads = 32 : i64} -> tensor<?x128xf32>
  %r = axe.launch @kernels::@out grid(%n, %n, %n) outs(%x : tensor<?x128xf32>) {threads = 32 : i64, shared_bytes = 0 : i64} -> tensor<?x128xf32>
  // CHECK: axe.launch @lowered::@out
  %s = axe.launch @lowered::@out grid(%n, %n, %n) outs(%r : tensor<?x128xf32>) -> tensor<?x128xf32>
  // CHECK: axe.launch @compiled::@out
  %t = axe.launch @compiled::@out grid(%n, %n, %n) outs(%s : tensor<?x128xf32>) -> tensor<?x128xf32>
  return %t : tensor<?x128xf32>
}
