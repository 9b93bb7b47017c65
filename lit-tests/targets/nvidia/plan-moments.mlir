// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// The variance of batch normalisation is formed of those of images: a kernel of rows gives sums, means and squares of each, reading x once,
// and what is left are sums of 32 x 64 values.
// CHECK-LABEL: func.func @images
// CHECK: axe.launch @images_0_rows {{.*}} ins(%{{.*}} : tensor<2048x4096xf32>) outs(%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: axe.launch @images_1_strided_rows {{.*}}tensor<1x32x64xf32>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @images(%x: tensor<32x64x64x64xf32>) -> tensor<64xf32> {
  %n = arith.constant 131072.0 : f32
  %sum = axe.reduce <add> %x dims [0, 2, 3] : tensor<32x64x64x64xf32> -> tensor<64xf32>
  %mean = axe.map ins(%sum : tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32):
    %q = arith.divf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [0, 2, 3] : tensor<64xf32> -> tensor<32x64x64x64xf32>
  %apart = axe.map ins(%x, %means : tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>) -> tensor<32x64x64x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %apart dims [0, 2, 3] : tensor<32x64x64x64xf32> -> tensor<64xf32>
  return %squares : tensor<64xf32>
}

// -----

// Columns that no CTA holds are cut into parts which CTAs do.
// CHECK-LABEL: func.func @columns
// CHECK: axe.launch @columns_0_strided_rows {{.*}} ins(%{{.*}} : tensor<80x250x64xf32>)
// CHECK: axe.launch @columns_1_strided_rows {{.*}}tensor<1x80x64xf32>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @columns(%x: tensor<20000x64xf32>) -> tensor<64xf32> {
  %n = arith.constant 0.00005 : f32
  %sum = axe.reduce <add> %x dims [0] : tensor<20000x64xf32> -> tensor<64xf32>
  %mean = axe.map ins(%sum : tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [0] : tensor<64xf32> -> tensor<20000x64xf32>
  %apart = axe.map ins(%x, %means : tensor<20000x64xf32>, tensor<20000x64xf32>) -> tensor<20000x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    axe.yield %d : f32
  }
  %square = axe.map ins(%apart, %apart : tensor<20000x64xf32>, tensor<20000x64xf32>) -> tensor<20000x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.mulf %u, %v : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %square dims [0] : tensor<20000x64xf32> -> tensor<64xf32>
  return %squares : tensor<64xf32>
}

// -----

// Squares about something else than the mean are no variance.
// CHECK-LABEL: func.func @about
// CHECK-NOT: tensor<80x250x64xf32>
// CHECK: axe.kernel
func.func @about(%x: tensor<20000x64xf32>, %c: tensor<64xf32>) -> tensor<64xf32> {
  %means = axe.broadcast %c dims [0] : tensor<64xf32> -> tensor<20000x64xf32>
  %apart = axe.map ins(%x, %means : tensor<20000x64xf32>, tensor<20000x64xf32>) -> tensor<20000x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %apart dims [0] : tensor<20000x64xf32> -> tensor<64xf32>
  return %squares : tensor<64xf32>
}

// -----

// Reductions of the rows of one tensor are one kernel, though others are between them.
// CHECK-LABEL: func.func @extremes
// CHECK: axe.launch @extremes_0_rows {{.*}} -> tensor<64xf32>, tensor<64xf32>
// CHECK: axe.launch @extremes_1_map
// CHECK: axe.launch @extremes_2_transpose
// CHECK-NOT: axe.launch
// CHECK: return
func.func @extremes(%x: tensor<64x4096xf32>) -> (tensor<64xf32>, tensor<64x4096xf32>, tensor<64xf32>) {
  %least = axe.reduce <min> %x dims [1] : tensor<64x4096xf32> -> tensor<64xf32>
  %both = axe.broadcast %least dims [0] : tensor<64xf32> -> tensor<4096x64xf32>
  %y = axe.transpose %both [1, 0] : tensor<4096x64xf32> -> tensor<64x4096xf32>
  %most = axe.reduce <max> %x dims [1] : tensor<64x4096xf32> -> tensor<64xf32>
  return %least, %y, %most : tensor<64xf32>, tensor<64x4096xf32>, tensor<64xf32>
}

// -----

// Sums in 16 bits stay as they are: how many elements a part has may be no number of theirs.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: -> tensor<6xf16>, tensor<6xf16>
// CHECK: return
func.func @narrow(%x: tensor<2x3x70000xf16>) -> tensor<3xf16> {
  %n = arith.constant 7.1e-6 : f16
  %sum = axe.reduce <add> %x dims [0, 2] : tensor<2x3x70000xf16> -> tensor<3xf16>
  %mean = axe.map ins(%sum : tensor<3xf16>) -> tensor<3xf16> {
  ^bb0(%u: f16):
    %q = arith.mulf %u, %n : f16
    axe.yield %q : f16
  }
  %means = axe.broadcast %mean dims [0, 2] : tensor<3xf16> -> tensor<2x3x70000xf16>
  %square = axe.map ins(%x, %means : tensor<2x3x70000xf16>, tensor<2x3x70000xf16>) -> tensor<2x3x70000xf16> {
  ^bb0(%u: f16, %v: f16):
    %d = arith.subf %u, %v : f16
    %q = arith.mulf %d, %d : f16
    axe.yield %q : f16
  }
  %squares = axe.reduce <add> %square dims [0, 2] : tensor<2x3x70000xf16> -> tensor<3xf16>
  return %squares : tensor<3xf16>
}

// -----

// Rows that are so few that they are reduced in parts themselves stay: nothing of their size is stored.
// CHECK-LABEL: func.func @few
// CHECK-NOT: -> {{.*}}tensor<6x70000xf32>
// CHECK: return
func.func @few(%x: tensor<2x3x70000xf32>) -> tensor<3xf32> {
  %n = arith.constant 7.1e-6 : f32
  %sum = axe.reduce <add> %x dims [0, 2] : tensor<2x3x70000xf32> -> tensor<3xf32>
  %mean = axe.map ins(%sum : tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [0, 2] : tensor<3xf32> -> tensor<2x3x70000xf32>
  %square = axe.map ins(%x, %means : tensor<2x3x70000xf32>, tensor<2x3x70000xf32>) -> tensor<2x3x70000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %square dims [0, 2] : tensor<2x3x70000xf32> -> tensor<3xf32>
  return %squares : tensor<3xf32>
}

// -----

// Few long rows are cut into parts, and x is read once. Where values go back along the rows they stay whole.
// CHECK-LABEL: func.func @long
// CHECK: axe.launch @long_0_rows {{.*}} ins(%{{.*}} : tensor<{{[0-9]+}}x{{[0-9]+}}xf32>) outs(%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: axe.launch @long_1_rows {{.*}} -> tensor<8xf32>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @long(%x: tensor<8x100000xf32>) -> tensor<8xf32> {
  %n = arith.constant 0.00001 : f32
  %sum = axe.reduce <add> %x dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %mean = axe.map ins(%sum : tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [1] : tensor<8xf32> -> tensor<8x100000xf32>
  %square = axe.map ins(%x, %means : tensor<8x100000xf32>, tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %square dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  return %squares : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @back
// CHECK: axe.launch @back_0_rows {{.*}} ins(%{{.*}} : tensor<8x100000xf32>) {{.*}} -> tensor<8x100000xf32>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @back(%x: tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  %n = arith.constant 0.00001 : f32
  %sum = axe.reduce <add> %x dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %mean = axe.map ins(%sum : tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [1] : tensor<8xf32> -> tensor<8x100000xf32>
  %square = axe.map ins(%x, %means : tensor<8x100000xf32>, tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    axe.yield %q : f32
  }
  %squares = axe.reduce <add> %square dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %all = axe.broadcast %squares dims [1] : tensor<8xf32> -> tensor<8x100000xf32>
  %y = axe.map ins(%x, %means, %all : tensor<8x100000xf32>, tensor<8x100000xf32>, tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.divf %d, %w : f32
    axe.yield %q : f32
  }
  return %y : tensor<8x100000xf32>
}
