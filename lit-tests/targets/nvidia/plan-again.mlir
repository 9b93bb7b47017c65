// Normalised rows that loops read elsewhere are not stored: the loops form them again, of what they are normalised from and a value a row.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// Behind a product that adds up the squares of each head: two kernels.
// CHECK-LABEL: func.func @heads
// CHECK: axe.launch @heads_0_gemm {{.*}} outs({{.*}} : tensor<512x2048xf16>, tensor<512x16xf32>)
// CHECK: axe.launch @heads_1_loops {{.*}} ins({{.*}} : tensor<512x16x128xf16>, tensor<512x16xf32>, tensor<512x128xf16>)
// CHECK-NOT: axe.launch
func.func @heads(%x: tensor<512x256xf16>, %w: tensor<2048x256xf16>, %c: tensor<512x128xf16>) -> tensor<16x512x128xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<512x256xf16>, tensor<2048x256xf16> -> tensor<512x2048xf32>
  %h = axe.cast %p : tensor<512x2048xf32> -> tensor<512x2048xf16>
  %s = tensor.expand_shape %h [[0], [1, 2]] output_shape [512, 16, 128] : tensor<512x2048xf16> into tensor<512x16x128xf16>
  %t = axe.transpose %s [1, 0, 2] : tensor<512x16x128xf16> -> tensor<16x512x128xf16>
  %f = axe.cast %t : tensor<16x512x128xf16> -> tensor<16x512x128xf32>
  %q = axe.map ins(%f : tensor<16x512x128xf32>) -> tensor<16x512x128xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %u : f32
    axe.yield %0 : f32
  }
  %sum = axe.reduce <add> %q dims [2] : tensor<16x512x128xf32> -> tensor<16x512xf32>
  %r = axe.map ins(%sum : tensor<16x512xf32>) -> tensor<16x512xf32> {
  ^bb0(%u: f32):
    %0 = math.rsqrt %u : f32
    axe.yield %0 : f32
  }
  %rb = axe.broadcast %r dims [2] : tensor<16x512xf32> -> tensor<16x512x128xf32>
  %m = axe.map ins(%f, %rb : tensor<16x512x128xf32>, tensor<16x512x128xf32>) -> tensor<16x512x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %m : tensor<16x512x128xf32> -> tensor<16x512x128xf16>
  %a = tensor.extract_slice %n[0, 0, 0] [16, 512, 64] [1, 1, 1] : tensor<16x512x128xf16> to tensor<16x512x64xf16>
  %b = tensor.extract_slice %n[0, 0, 64] [16, 512, 64] [1, 1, 1] : tensor<16x512x128xf16> to tensor<16x512x64xf16>
  %o = tensor.concat dim(2) %b, %a : (tensor<16x512x64xf16>, tensor<16x512x64xf16>) -> tensor<16x512x128xf16>
  %cb = axe.broadcast %c dims [0] : tensor<512x128xf16> -> tensor<16x512x128xf16>
  %z = axe.map ins(%n, %o, %cb : tensor<16x512x128xf16>, tensor<16x512x128xf16>, tensor<16x512x128xf16>) -> tensor<16x512x128xf16> {
  ^bb0(%u: f16, %v: f16, %k: f16):
    %0 = arith.mulf %v, %k : f16
    %1 = arith.addf %u, %0 : f16
    axe.yield %1 : f16
  }
  return %z : tensor<16x512x128xf16>
}

// -----

// Rows in another order: the transpose forms them.
// CHECK-LABEL: func.func @turned
// CHECK: axe.launch @turned_0_rows {{.*}} outs({{.*}} : tensor<8192xf32>)
// CHECK: axe.launch @turned_1_loops {{.*}} ins({{.*}} : tensor<512x16x96xf32>, tensor<512x16xf32>)
// CHECK-NOT: axe.launch
func.func @turned(%x: tensor<512x16x96xf32>) -> tensor<16x512x96xf32> {
  %m = axe.reduce <max> %x dims [2] : tensor<512x16x96xf32> -> tensor<512x16xf32>
  %mb = axe.broadcast %m dims [2] : tensor<512x16xf32> -> tensor<512x16x96xf32>
  %n = axe.map ins(%x, %mb : tensor<512x16x96xf32>, tensor<512x16x96xf32>) -> tensor<512x16x96xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    axe.yield %0 : f32
  }
  %t = axe.transpose %n [1, 0, 2] : tensor<512x16x96xf32> -> tensor<16x512x96xf32>
  return %t : tensor<16x512x96xf32>
}

// -----

// What a product reads too is stored in any case.
// CHECK-LABEL: func.func @read
// CHECK: axe.launch @read_0_rows {{.*}} outs({{.*}} : tensor<4096x128xf32>)
func.func @read(%x: tensor<4096x128xf32>, %w: tensor<64x128xf32>) -> (tensor<4096x64xf32>, tensor<4096x64xf32>) {
  %m = axe.reduce <max> %x dims [1] : tensor<4096x128xf32> -> tensor<4096xf32>
  %mb = axe.broadcast %m dims [1] : tensor<4096xf32> -> tensor<4096x128xf32>
  %n = axe.map ins(%x, %mb : tensor<4096x128xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    axe.yield %0 : f32
  }
  %b = tensor.extract_slice %n[0, 64] [4096, 64] [1, 1] : tensor<4096x128xf32> to tensor<4096x64xf32>
  %p = axe.gemm %n, %w {trans_b} : tensor<4096x128xf32>, tensor<64x128xf32> -> tensor<4096x64xf32>
  return %b, %p : tensor<4096x64xf32>, tensor<4096x64xf32>
}

// -----

// An exponential is not computed again.
// CHECK-LABEL: func.func @costly
// CHECK: axe.launch @costly_0_rows {{.*}} outs({{.*}} : tensor<4096x128xf32>)
// CHECK: axe.launch @costly_1_loops
// CHECK-NOT: axe.launch
func.func @costly(%x: tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  %m = axe.reduce <max> %x dims [1] : tensor<4096x128xf32> -> tensor<4096xf32>
  %mb = axe.broadcast %m dims [1] : tensor<4096xf32> -> tensor<4096x128xf32>
  %n = axe.map ins(%x, %mb : tensor<4096x128xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %a = tensor.extract_slice %n[0, 0] [4096, 64] [1, 1] : tensor<4096x128xf32> to tensor<4096x64xf32>
  %b = tensor.extract_slice %n[0, 64] [4096, 64] [1, 1] : tensor<4096x128xf32> to tensor<4096x64xf32>
  %o = tensor.concat dim(1) %b, %a : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4096x128xf32>
  return %o : tensor<4096x128xf32>
}
