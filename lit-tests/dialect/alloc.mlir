// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @storage
axe.kernel @storage() threads(32) {
  // CHECK: axe.alloc : memref<16x128xf32, #axe.space<shared>>
  %0 = axe.alloc : memref<16x128xf32, #axe.space<shared>>
  // CHECK: axe.alloc {alignment = 1024 : i64} : memref<128x64xf16, #axe.layout<Sw<3, 3, 3> o S[(128, 64) : (64, 1)]>, #axe.space<shared>>
  %1 = axe.alloc {alignment = 1024 : i64} : memref<128x64xf16, #axe.layout<Sw<3, 3, 3> o S[(128, 64) : (64, 1)]>, #axe.space<shared>>
  axe.return
}
