// Numbers of bf16 that are loaded are the upper halves of words: those of f32 are cut out of these, an instruction each. What is only compared is converted, so that
// LLVM finds that it may compare first, and ptxas compares two at once.
// REQUIRES: axe-driver
// RUN: axe compile %s --function sum --target sm_90a -o %t.axe
// RUN: tar xf %t.axe -O kernels.ptx | FileCheck %s

// CHECK-LABEL: .entry sum_0_rows
// CHECK-NOT: cvt.f32.bf16
// CHECK: ld.global.v4.b32
// CHECK: {{shl|and}}.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, {{16|-65536}}
// CHECK-NEXT: {{shl|and}}.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, {{16|-65536}}
// CHECK-NOT: cvt.f32.bf16
func.func @sum(%x: tensor<4096x1024xbf16>) -> tensor<4096xf32> {
  %w = axe.cast %x : tensor<4096x1024xbf16> -> tensor<4096x1024xf32>
  %s = axe.reduce <add> %w dims [1] : tensor<4096x1024xf32> -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// CHECK-LABEL: .entry most_0_rows
// CHECK-NOT: -65536
// CHECK: max.NaN.bf16
// CHECK-NOT: -65536
func.func @most(%x: tensor<4096x1024xbf16>) -> tensor<4096xf32> {
  %w = axe.cast %x : tensor<4096x1024xbf16> -> tensor<4096x1024xf32>
  %s = axe.reduce <max> %w dims [1] : tensor<4096x1024xf32> -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// In the body of a map, of rows of which some are outside of the tensor, too.
// CHECK-LABEL: .entry rows_0_
// CHECK-NOT: cvt.f32.bf16
// CHECK: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, -65536
// CHECK-NOT: cvt.f32.bf16
func.func @rows(%x: tensor<4099x1024xbf16>, %g: tensor<1024xbf16>) -> tensor<4099x1024xbf16> {
  %gb = axe.broadcast %g dims [0] : tensor<1024xbf16> -> tensor<4099x1024xbf16>
  %y = axe.map ins(%x, %gb : tensor<4099x1024xbf16>, tensor<4099x1024xbf16>) -> tensor<4099x1024xbf16> {
  ^bb0(%u: bf16, %v: bf16):
    %a = arith.extf %u : bf16 to f32
    %b = arith.extf %v : bf16 to f32
    %p = arith.mulf %a, %b : f32
    %r = arith.truncf %p : f32 to bf16
    axe.yield %r : bf16
  }
  return %y : tensor<4099x1024xbf16>
}

// What is compared and used otherwise, too, is cut out.
// CHECK-LABEL: .entry both_0_rows
// CHECK-NOT: cvt.f32.bf16
// CHECK: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, -65536
// CHECK-NOT: cvt.f32.bf16
func.func @both(%x: tensor<4096x1024xbf16>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %w = axe.cast %x : tensor<4096x1024xbf16> -> tensor<4096x1024xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<4096x1024xf32> -> tensor<4096xf32>
  %s = axe.reduce <add> %w dims [1] : tensor<4096x1024xf32> -> tensor<4096xf32>
  return %m, %s : tensor<4096xf32>, tensor<4096xf32>
}
