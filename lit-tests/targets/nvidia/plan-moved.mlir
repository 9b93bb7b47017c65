// What the kernel of a product or of rows forms is stored by it where loops, or transposes of whole rows, read it elsewhere, and those are one
// kernel with what is computed of them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s

// Two of three parts of the columns: the bias is the product's.
// CHECK-LABEL: func.func @parts
// CHECK: axe.launch @parts_0_gemm {{.*}} outs({{.*}} : tensor<256x768xf16>)
// CHECK: axe.launch @parts_1_loops
// CHECK-NOT: axe.launch
func.func @parts(%x: tensor<256x128xf16>, %w: tensor<768x128xf16>, %bias: tensor<768xf32>) -> tensor<256x256xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<256x128xf16>, tensor<768x128xf16> -> tensor<256x768xf32>
  %b = axe.broadcast %bias dims [0] : tensor<768xf32> -> tensor<256x768xf32>
  %s = axe.map ins(%p, %b : tensor<256x768xf32>, tensor<256x768xf32>) -> tensor<256x768xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %u, %v : f32
    axe.yield %0 : f32
  }
  %h = axe.cast %s : tensor<256x768xf32> -> tensor<256x768xf16>
  %g = tensor.extract_slice %h[0, 0] [256, 256] [1, 1] : tensor<256x768xf16> to tensor<256x256xf16>
  %l = tensor.extract_slice %h[0, 256] [256, 256] [1, 1] : tensor<256x768xf16> to tensor<256x256xf16>
  %r = axe.map ins(%g, %l : tensor<256x256xf16>, tensor<256x256xf16>) -> tensor<256x256xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = math.tanh %u : f16
    %1 = arith.mulf %0, %v : f16
    axe.yield %1 : f16
  }
  return %r : tensor<256x256xf16>
}

// Halves of rows that are normalised, beside the rows themselves.
// CHECK-LABEL: func.func @rotated
// CHECK: axe.launch @rotated_0_rows {{.*}} outs({{.*}} : tensor<4096x128xf32>)
// CHECK: axe.launch @rotated_1_loops
// CHECK-NOT: axe.launch
func.func @rotated(%x: tensor<4096x128xf32>, %c: tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  %m = axe.reduce <max> %x dims [1] : tensor<4096x128xf32> -> tensor<4096xf32>
  %mb = axe.broadcast %m dims [1] : tensor<4096xf32> -> tensor<4096x128xf32>
  %n = axe.map ins(%x, %mb : tensor<4096x128xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.divf %u, %v : f32
    axe.yield %0 : f32
  }
  %a = tensor.extract_slice %n[0, 0] [4096, 64] [1, 1] : tensor<4096x128xf32> to tensor<4096x64xf32>
  %b = tensor.extract_slice %n[0, 64] [4096, 64] [1, 1] : tensor<4096x128xf32> to tensor<4096x64xf32>
  %t = tensor.concat dim(1) %b, %a : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4096x128xf32>
  %r = axe.map ins(%n, %t, %c : tensor<4096x128xf32>, tensor<4096x128xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %1 = arith.mulf %v, %w : f32
    %2 = arith.addf %u, %1 : f32
    axe.yield %2 : f32
  }
  return %r : tensor<4096x128xf32>
}

// Heads of what a linear layer gives: no kernel transposes alone.
// CHECK-LABEL: func.func @heads
// CHECK: axe.launch @heads_0_gemm {{.*}} outs({{.*}} : tensor<512x2048xf16>)
// CHECK: axe.launch @heads_1_loops
// CHECK-NOT: axe.launch
func.func @heads(%x: tensor<512x256xf16>, %w: tensor<2048x256xf16>, %c: tensor<16x512x128xf16>) -> tensor<16x512x128xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<512x256xf16>, tensor<2048x256xf16> -> tensor<512x2048xf32>
  %h = axe.cast %p : tensor<512x2048xf32> -> tensor<512x2048xf16>
  %s = tensor.expand_shape %h [[0], [1, 2]] output_shape [512, 16, 128] : tensor<512x2048xf16> into tensor<512x16x128xf16>
  %n = axe.transpose %s [1, 0, 2] : tensor<512x16x128xf16> -> tensor<16x512x128xf16>
  %a = tensor.extract_slice %n[0, 0, 0] [16, 512, 64] [1, 1, 1] : tensor<16x512x128xf16> to tensor<16x512x64xf16>
  %b = tensor.extract_slice %n[0, 0, 64] [16, 512, 64] [1, 1, 1] : tensor<16x512x128xf16> to tensor<16x512x64xf16>
  %t = tensor.concat dim(2) %b, %a : (tensor<16x512x64xf16>, tensor<16x512x64xf16>) -> tensor<16x512x128xf16>
  %r = axe.map ins(%n, %t, %c : tensor<16x512x128xf16>, tensor<16x512x128xf16>, tensor<16x512x128xf16>) -> tensor<16x512x128xf16> {
  ^bb0(%u: f16, %v: f16, %z: f16):
    %1 = arith.mulf %v, %z : f16
    %2 = arith.addf %u, %1 : f16
    axe.yield %2 : f16
  }
  return %r : tensor<16x512x128xf16>
}

// The four gates of an LSTM, which are all of the columns: the product stores them once. The state is returned, and the output is formed of it.
// CHECK-LABEL: func.func @gates
// CHECK: axe.launch @gates_0_gemm {{.*}} outs({{.*}} : tensor<256x1024xf16>)
// CHECK: %[[C:.*]] = axe.launch @gates_1_loops {{.*}} outs({{.*}} : tensor<256x256xf16>)
// CHECK: axe.launch @gates_2_loops {{.*}}%[[C]]
// CHECK-NOT: axe.launch
func.func @gates(%x: tensor<256x128xf16>, %w: tensor<1024x128xf16>, %c: tensor<256x256xf16>) -> (tensor<256x256xf16>, tensor<256x256xf16>) {
  %p = axe.gemm %x, %w {trans_b} : tensor<256x128xf16>, tensor<1024x128xf16> -> tensor<256x1024xf32>
  %h = axe.cast %p : tensor<256x1024xf32> -> tensor<256x1024xf16>
  %i = tensor.extract_slice %h[0, 0] [256, 256] [1, 1] : tensor<256x1024xf16> to tensor<256x256xf16>
  %f = tensor.extract_slice %h[0, 256] [256, 256] [1, 1] : tensor<256x1024xf16> to tensor<256x256xf16>
  %g = tensor.extract_slice %h[0, 512] [256, 256] [1, 1] : tensor<256x1024xf16> to tensor<256x256xf16>
  %o = tensor.extract_slice %h[0, 768] [256, 256] [1, 1] : tensor<256x1024xf16> to tensor<256x256xf16>
  %state = axe.map ins(%i, %f, %g, %c : tensor<256x256xf16>, tensor<256x256xf16>, tensor<256x256xf16>, tensor<256x256xf16>) -> tensor<256x256xf16> {
  ^bb0(%a: f16, %b: f16, %d: f16, %e: f16):
    %0 = arith.mulf %b, %e : f16
    %1 = arith.mulf %a, %d : f16
    %2 = arith.addf %0, %1 : f16
    axe.yield %2 : f16
  }
  %y = axe.map ins(%o, %state : tensor<256x256xf16>, tensor<256x256xf16>) -> tensor<256x256xf16> {
  ^bb0(%a: f16, %b: f16):
    %0 = math.tanh %b : f16
    %1 = arith.mulf %a, %0 : f16
    axe.yield %1 : f16
  }
  return %y, %state : tensor<256x256xf16>, tensor<256x256xf16>
}

// Neighbouring patches next to each other, whose rows are reduced: one kernel moves them.
// CHECK-LABEL: func.func @patches
// CHECK: axe.launch @patches_0_loops {{.*}} outs({{.*}} : tensor<8x28x192xf16>)
// CHECK: axe.launch @patches_1_rows
// CHECK-NOT: axe.launch
func.func @patches(%x: tensor<8x56x96xf16>) -> tensor<8x28xf32> {
  %a = tensor.extract_slice %x[0, 0, 0] [8, 28, 96] [1, 2, 1] : tensor<8x56x96xf16> to tensor<8x28x96xf16>
  %b = tensor.extract_slice %x[0, 1, 0] [8, 28, 96] [1, 2, 1] : tensor<8x56x96xf16> to tensor<8x28x96xf16>
  %c = tensor.concat dim(2) %a, %b : (tensor<8x28x96xf16>, tensor<8x28x96xf16>) -> tensor<8x28x192xf16>
  %w = axe.cast %c : tensor<8x28x192xf16> -> tensor<8x28x192xf32>
  %m = axe.reduce <max> %w dims [2] : tensor<8x28x192xf32> -> tensor<8x28xf32>
  %mb = axe.broadcast %m dims [2] : tensor<8x28xf32> -> tensor<8x28x192xf32>
  %d = axe.map ins(%w, %mb : tensor<8x28x192xf32>, tensor<8x28x192xf32>) -> tensor<8x28x192xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    axe.yield %0 : f32
  }
  %s = axe.reduce <add> %d dims [2] : tensor<8x28x192xf32> -> tensor<8x28xf32>
  return %s : tensor<8x28xf32>
}
