// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @views
axe.kernel @views(%bias: memref<256xf16>) threads(32) {
  // CHECK: axe.view %{{.*}} : memref<256xf16> to memref<128x256xf16, #axe.layout<S[(128, 256) : (0, 1)]>>
  %0 = axe.view %bias : memref<256xf16> to memref<128x256xf16, #axe.layout<S[(128, 256) : (0, 1)]>>
  axe.return
}
