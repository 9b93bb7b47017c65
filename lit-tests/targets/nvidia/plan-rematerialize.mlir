// Maps of few elements between reductions of rows and a broadcast are computed for each element of it.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=nvvm" --split-input-file | FileCheck %s --check-prefix=CODE

// Group normalisation with a scale for each row and channel: the kernel of the rows has all of it, and neighbours share a channel's
// weights, which are loaded once for all elements of a vector.
// CHECK-LABEL: func.func @groups
// CHECK: axe.launch @groups_0_rows
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @groups_0_rows
// CHECK-COUNT-2: memref.load %{{.*}} : memref<4x8xf32>
// CHECK: axe.return
// CODE-LABEL: llvm.func @groups_0_rows
// CODE-NOT: llvm.freeze
// CODE: llvm.return
func.func @groups(%x: tensor<6x32x1024xf16>, %w: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<6x32x1024xf16> {
  %n = arith.constant 8192.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %f = axe.cast %x : tensor<6x32x1024xf16> -> tensor<6x32x1024xf32>
  %e = tensor.expand_shape %f [[0], [1, 2], [3]] output_shape [6, 4, 8, 1024] : tensor<6x32x1024xf32> into tensor<6x4x8x1024xf32>
  %s = axe.reduce <add> %e dims [2, 3] : tensor<6x4x8x1024xf32> -> tensor<6x4xf32>
  %m = axe.map ins(%s : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    axe.yield %r : f32
  }
  %mb = axe.broadcast %m dims [2, 3] : tensor<6x4xf32> -> tensor<6x4x8x1024xf32>
  %d = axe.map ins(%e, %mb : tensor<6x4x8x1024xf32>, tensor<6x4x8x1024xf32>) -> tensor<6x4x8x1024xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.subf %u0, %u1 : f32
    %q = arith.mulf %r, %r : f32
    axe.yield %q : f32
  }
  %v = axe.reduce <add> %d dims [2, 3] : tensor<6x4x8x1024xf32> -> tensor<6x4xf32>
  %k = axe.map ins(%v : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    %q = arith.addf %r, %eps : f32
    %z = math.rsqrt %q : f32
    axe.yield %z : f32
  }
  %kb = axe.broadcast %k dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %mk = axe.broadcast %m dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %we = tensor.expand_shape %w [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %wb = axe.broadcast %we dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %be = tensor.expand_shape %b [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %bb = axe.broadcast %be dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %scale = axe.map ins(%kb, %wb : tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.mulf %u0, %u1 : f32
    axe.yield %r : f32
  }
  %shift = axe.map ins(%mk, %scale, %bb : tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.subf %u2, %r : f32
    axe.yield %q : f32
  }
  %scalec = tensor.collapse_shape %scale [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %scaleb = axe.broadcast %scalec dims [2] : tensor<6x32xf32> -> tensor<6x32x1024xf32>
  %shiftc = tensor.collapse_shape %shift [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %shiftb = axe.broadcast %shiftc dims [2] : tensor<6x32xf32> -> tensor<6x32x1024xf32>
  %y = axe.map ins(%f, %scaleb, %shiftb : tensor<6x32x1024xf32>, tensor<6x32x1024xf32>, tensor<6x32x1024xf32>) -> tensor<6x32x1024xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.addf %r, %u2 : f32
    axe.yield %q : f32
  }
  %o = axe.cast %y : tensor<6x32x1024xf32> -> tensor<6x32x1024xf16>
  return %o : tensor<6x32x1024xf16>
}

// -----

// Images of seven by seven: neighbours are of other channels, whose weights each element would load for itself.
// CHECK-LABEL: func.func @small
// CHECK-COUNT-2: axe.launch
func.func @small(%x: tensor<6x32x49xf32>, %w: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<6x32x49xf32> {
  %n = arith.constant 392.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [6, 4, 8, 49] : tensor<6x32x49xf32> into tensor<6x4x8x49xf32>
  %s = axe.reduce <add> %e dims [2, 3] : tensor<6x4x8x49xf32> -> tensor<6x4xf32>
  %m = axe.map ins(%s : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    axe.yield %r : f32
  }
  %mb = axe.broadcast %m dims [2, 3] : tensor<6x4xf32> -> tensor<6x4x8x49xf32>
  %d = axe.map ins(%e, %mb : tensor<6x4x8x49xf32>, tensor<6x4x8x49xf32>) -> tensor<6x4x8x49xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.subf %u0, %u1 : f32
    %q = arith.mulf %r, %r : f32
    axe.yield %q : f32
  }
  %v = axe.reduce <add> %d dims [2, 3] : tensor<6x4x8x49xf32> -> tensor<6x4xf32>
  %k = axe.map ins(%v : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    %q = arith.addf %r, %eps : f32
    %z = math.rsqrt %q : f32
    axe.yield %z : f32
  }
  %kb = axe.broadcast %k dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %mk = axe.broadcast %m dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %we = tensor.expand_shape %w [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %wb = axe.broadcast %we dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %be = tensor.expand_shape %b [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %bb = axe.broadcast %be dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %scale = axe.map ins(%kb, %wb : tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.mulf %u0, %u1 : f32
    axe.yield %r : f32
  }
  %shift = axe.map ins(%mk, %scale, %bb : tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.subf %u2, %r : f32
    axe.yield %q : f32
  }
  %scalec = tensor.collapse_shape %scale [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %scaleb = axe.broadcast %scalec dims [2] : tensor<6x32xf32> -> tensor<6x32x49xf32>
  %shiftc = tensor.collapse_shape %shift [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %shiftb = axe.broadcast %shiftc dims [2] : tensor<6x32xf32> -> tensor<6x32x49xf32>
  %y = axe.map ins(%x, %scaleb, %shiftb : tensor<6x32x49xf32>, tensor<6x32x49xf32>, tensor<6x32x49xf32>) -> tensor<6x32x49xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.addf %r, %u2 : f32
    axe.yield %q : f32
  }
  return %y : tensor<6x32x49xf32>
}

// -----

// An exponential is not computed again.
// CHECK-LABEL: func.func @costly
// CHECK-COUNT-2: axe.launch
func.func @costly(%x: tensor<6x32x1024xf32>, %w: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<6x32x1024xf32> {
  %n = arith.constant 8192.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [6, 4, 8, 1024] : tensor<6x32x1024xf32> into tensor<6x4x8x1024xf32>
  %s = axe.reduce <add> %e dims [2, 3] : tensor<6x4x8x1024xf32> -> tensor<6x4xf32>
  %m = axe.map ins(%s : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    axe.yield %r : f32
  }
  %mb = axe.broadcast %m dims [2, 3] : tensor<6x4xf32> -> tensor<6x4x8x1024xf32>
  %d = axe.map ins(%e, %mb : tensor<6x4x8x1024xf32>, tensor<6x4x8x1024xf32>) -> tensor<6x4x8x1024xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.subf %u0, %u1 : f32
    %q = arith.mulf %r, %r : f32
    axe.yield %q : f32
  }
  %v = axe.reduce <add> %d dims [2, 3] : tensor<6x4x8x1024xf32> -> tensor<6x4xf32>
  %k = axe.map ins(%v : tensor<6x4xf32>) -> tensor<6x4xf32> {
  ^bb0(%u0: f32):
    %r = arith.divf %u0, %n : f32
    %q = arith.addf %r, %eps : f32
    %z = math.rsqrt %q : f32
    axe.yield %z : f32
  }
  %kb = axe.broadcast %k dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %mk = axe.broadcast %m dims [2] : tensor<6x4xf32> -> tensor<6x4x8xf32>
  %we = tensor.expand_shape %w [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %wb = axe.broadcast %we dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %be = tensor.expand_shape %b [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %bb = axe.broadcast %be dims [0] : tensor<4x8xf32> -> tensor<6x4x8xf32>
  %scale = axe.map ins(%kb, %wb : tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = math.exp %r : f32
    axe.yield %q : f32
  }
  %shift = axe.map ins(%mk, %scale, %bb : tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.subf %u2, %r : f32
    axe.yield %q : f32
  }
  %scalec = tensor.collapse_shape %scale [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %scaleb = axe.broadcast %scalec dims [2] : tensor<6x32xf32> -> tensor<6x32x1024xf32>
  %shiftc = tensor.collapse_shape %shift [[0], [1, 2]] : tensor<6x4x8xf32> into tensor<6x32xf32>
  %shiftb = axe.broadcast %shiftc dims [2] : tensor<6x32xf32> -> tensor<6x32x1024xf32>
  %y = axe.map ins(%x, %scaleb, %shiftb : tensor<6x32x1024xf32>, tensor<6x32x1024xf32>, tensor<6x32x1024xf32>) -> tensor<6x32x1024xf32> {
  ^bb0(%u0: f32, %u1: f32, %u2: f32):
    %r = arith.mulf %u0, %u1 : f32
    %q = arith.addf %r, %u2 : f32
    axe.yield %q : f32
  }
  return %y : tensor<6x32x1024xf32>
}
