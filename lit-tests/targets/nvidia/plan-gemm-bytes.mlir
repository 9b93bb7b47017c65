// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --remarks-filter=axe-plan --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=ptx" -o %t.all

// Operands of 8 bits have tiles of the same bytes, twice as deep.
// CHECK-LABEL: axe.kernel @scaled_0_gemm
// CHECK-SAME: threads(384)
// CHECK: axe.pipeline.create stages({{[4-6]}})
// CHECK: axe.scope warpgroup [0, 1)
// CHECK-COUNT-2: axe.copy async
// CHECK: axe.scope warpgroup [1, 3)
// CHECK: axe.gemm async {{.*}} {trans_b} : memref<128x128xf8E4M3FN, {{.*}}>, memref<{{[0-9]+}}x128xf8E4M3FN, {{.*}}> -> tensor<128x
// CHECK: axe.map
// CHECK-NOT: axe.kernel
// Where there is no wgmma, floats are widened to f16.
// SM80-LABEL: axe.kernel @scaled_{{[0-9]}}_map
// SM80: axe.cast {{.*}}f8E4M3FN, {{.*}} -> {{.*}}f16
// SM80: axe.kernel @scaled_{{[0-9]}}_gemm
// SM80: axe.gemm {{.*}}f16
func.func @scaled(%a: tensor<4096x4096xf8E4M3FN>, %sa: tensor<4096xf32>, %w: tensor<4096x4096xf8E4M3FN>, %sw: tensor<4096xf32>) -> tensor<4096x4096xbf16> {
  %p = axe.gemm %a, %w {trans_b} : tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN> -> tensor<4096x4096xf32>
  %ra = axe.broadcast %sa dims [1] : tensor<4096xf32> -> tensor<4096x4096xf32>
  %rw = axe.broadcast %sw dims [0] : tensor<4096xf32> -> tensor<4096x4096xf32>
  %c = axe.map ins(%p, %ra, %rw : tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xbf16> {
  ^bb0(%x: f32, %r: f32, %s: f32):
    %y = arith.mulf %x, %r : f32
    %z = arith.mulf %y, %s : f32
    %b = arith.truncf %z : f32 to bf16
    axe.yield %b : bf16
  }
  return %c : tensor<4096x4096xbf16>
}

// Both kinds of floats in one product.
// CHECK-LABEL: axe.kernel @mixed_0_gemm
// CHECK: axe.gemm async {{.*f8E5M2, .*f8E4M3FN,|.*f8E4M3FN, .*f8E5M2,}}
func.func @mixed(%a: tensor<256x256xf8E5M2>, %w: tensor<256x256xf8E4M3FN>) -> tensor<256x256xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<256x256xf8E5M2>, tensor<256x256xf8E4M3FN> -> tensor<256x256xf32>
  return %p : tensor<256x256xf32>
}

// Integers.
// CHECK-LABEL: axe.kernel @integers_0_gemm
// CHECK: axe.gemm async {{.*}}xi8, {{.*}} -> tensor<{{.*}}xi32,
// SM80-LABEL: axe.kernel @integers_0_gemm
// SM80: axe.gemm {{.*}}xi8
func.func @integers(%a: tensor<256x256xi8>, %w: tensor<256x256xi8>) -> tensor<256x256xi32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<256x256xi8>, tensor<256x256xi8> -> tensor<256x256xi32>
  return %p : tensor<256x256xi32>
}

// No instruction takes columns of k: the product is that of f16, which has them.
// REMARK: remark: [Missed] float8 | Category:axe-plan | {{.*}}"not by wgmma: wgmma takes 8-bit operands as A [M, K] and B [N, K] alone; operands widened to f16"
// CHECK-LABEL: axe.kernel @columns_{{[0-9]}}_map
// CHECK: axe.cast {{.*}}f8E4M3FN, {{.*}} -> {{.*}}f16
// CHECK: axe.gemm async {{.*}}f16
func.func @columns(%a: tensor<1024x1024xf8E4M3FN>, %w: tensor<1024x1024xf8E4M3FN>) -> tensor<1024x1024xf32> {
  %p = axe.gemm %a, %w : tensor<1024x1024xf8E4M3FN>, tensor<1024x1024xf8E4M3FN> -> tensor<1024x1024xf32>
  return %p : tensor<1024x1024xf32>
}

// Integers then have no tensor cores.
// REMARK: remark: [Missed] {{.*}} | Category:axe-plan | Function=pairs_0_gemm {{.*}}"not by wgmma: an operand's rows of 232 elements are no multiple of 16 bytes, which its descriptor needs, and a copy would take longer than it saves"
// CHECK-LABEL: axe.kernel @pairs_0_gemm
// CHECK-NOT: axe.pipeline
// CHECK: axe.gemm {{.*}}xi8
func.func @pairs(%a: tensor<256x232xi8>, %w: tensor<256x232xi8>) -> tensor<256x256xi32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<256x232xi8>, tensor<256x232xi8> -> tensor<256x256xi32>
  return %p : tensor<256x256xi32>
}

// Sums in f64 are no tensor cores' either.
// CHECK-LABEL: axe.kernel @long_{{[0-9]}}_map
// CHECK: axe.kernel @long_{{[0-9]}}_gemm
// CHECK: axe.gemm {{.*}} -> {{.*}}f64
func.func @long(%a: tensor<256x256xf8E4M3FN>, %w: tensor<256x256xf8E4M3FN>) -> tensor<256x256xf64> {
  %p = axe.gemm %a, %w {trans_b} : tensor<256x256xf8E4M3FN>, tensor<256x256xf8E4M3FN> -> tensor<256x256xf64>
  return %p : tensor<256x256xf64>
}
