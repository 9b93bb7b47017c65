// Elements that are written wider than they are read are in vectors of what is written, so that each store writes whole sectors: of maps, and of
// rows that begin at boundaries.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// CHECK-LABEL: axe.kernel @map_0_map
// CHECK: axe.copy {{.*}} -> tensor<1x1024xf16, #axe.layout<S[(2, 4, 32, 4) : (4@reg, 1@warp, 1@lane, 1@reg)]>>
// CHECK: axe.copy {{.*}} to {{.*}} : tensor<1x1024xf32, #axe.layout<S[(2, 4, 32, 4) : (4@reg, 1@warp, 1@lane, 1@reg)]>>
func.func @map(%x: tensor<300x512xf16>) -> tensor<300x512xf32> {
  %w = axe.cast %x : tensor<300x512xf16> -> tensor<300x512xf32>
  return %w : tensor<300x512xf32>
}

// -----

// CHECK-LABEL: axe.kernel @rows_0_rows
// CHECK: axe.copy {{.*}} -> tensor<16x256xf16, #axe.layout<S[(4, 4, 8, 8, 4) : (1@warp, 8@lane, 4@reg, 1@lane, 1@reg)]>>
func.func @rows(%x: tensor<300x256xf16>) -> tensor<300x256xf32> {
  %w = axe.cast %x : tensor<300x256xf16> -> tensor<300x256xf32>
  %s = axe.reduce <add> %w dims [1] : tensor<300x256xf32> -> tensor<300xf32>
  %b = axe.broadcast %s dims [1] : tensor<300xf32> -> tensor<300x256xf32>
  %d = axe.map ins(%w, %b : tensor<300x256xf32>, tensor<300x256xf32>) -> tensor<300x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.divf %u, %v : f32
    axe.yield %r : f32
  }
  return %d : tensor<300x256xf32>
}
