// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=none' | FileCheck %s
// RUN: axe-opt %s --axe-nvidia='target=sm_90a until=target' | FileCheck %s --check-prefix=BOXES

// Of 200 elements of k the last step has 8, of which a product takes 16: three steps of 64 and one of 16, in boxes of their own that
// lie in rows of 128 bytes as well.
// CHECK-LABEL: axe.kernel @short_0_gemm
// CHECK: %[[BEFORE:.*]] = arith.constant 3 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[BEFORE]]
// CHECK-COUNT-2: axe.copy async {{.*}} to memref<128x64xf16, {{.*}}S[(128, 1, 64) : (64, 8192, 1)]>
// CHECK-COUNT-2: axe.copy async {{.*}} to memref<128x16xf16, {{.*}}S[(128, 16) : (64, 1)]>
// CHECK: axe.gemm async {{.*}} : memref<128x64xf16
// CHECK: scf.for
// CHECK: axe.gemm async {{.*}} : memref<128x64xf16
// CHECK: axe.gemm async {{.*}} : memref<128x16xf16
// CHECK-NOT: axe.gemm
// BOXES-LABEL: func.func @short
// BOXES: tensor_maps = [{box = [64, 128], {{[^}]*}}}, {box = [64, 128], {{[^}]*}}}, {box = [16, 128], extents = [200, 256], {{[^}]*}}swizzle = "128B"{{[^}]*}}}, {box = [16, 128],
func.func @short(%a: tensor<256x200xf16>, %w: tensor<256x200xf16>) -> tensor<256x256xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 128, 128, 64>, consumers = 2 : i64}} : tensor<256x200xf16>, tensor<256x200xf16> -> tensor<256x256xf32>
  %c = axe.cast %p : tensor<256x256xf32> -> tensor<256x256xf16>
  return %c : tensor<256x256xf16>
}

// A sum that is shorter than a stage has one step. Lines of k that four CTAs share are eight for each: the last step has 32.
// CHECK-LABEL: axe.kernel @only_0_gemm
// CHECK-COUNT-2: axe.copy async {{.*}} to memref<{{64x32|32x64}}xf16
// CHECK: axe.gemm async {{.*}} : memref<64x32xf16
// CHECK-NOT: axe.gemm
func.func @only(%a: tensor<256x8xf16>, %w: tensor<8x64xf16>) -> tensor<256x64xf16> {
  %p = axe.gemm %a, %w {axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, consumers = 1 : i64, cluster = array<i64: 4, 1>}} : tensor<256x8xf16>, tensor<8x64xf16> -> tensor<256x64xf32>
  %c = axe.cast %p : tensor<256x64xf32> -> tensor<256x64xf16>
  return %c : tensor<256x64xf16>
}
