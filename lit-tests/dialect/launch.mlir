// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

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
