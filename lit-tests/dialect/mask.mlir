// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @masks
func.func @masks(%x: tensor<8x8xf16>, %i: index, %z: f16) {
  // CHECK: axe.mask %{{.*}} at(%{{.*}}, %{{.*}}) in(%{{.*}}, %{{.*}}) else %{{.*}} : f16, tensor<8x8xf16>
  %0 = axe.mask %x at(%i, %i) in(%i, %i) else %z : f16, tensor<8x8xf16> -> tensor<8x8xf16>
  return
}
