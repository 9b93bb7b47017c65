// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s

// A chain with reductions of rows reads its rows once; columns beyond the end change no reduction.
func.func @softmax(%x: tensor<?x1000xf16>) -> tensor<?x1000xf16> {
  %c0 = arith.constant 0 : index
  %w = axe.cast %x : tensor<?x1000xf16> -> tensor<?x1000xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<?x1000xf32> -> tensor<?xf32>
  %mb = axe.broadcast %m dims [1] : tensor<?xf32> -> tensor<?x1000xf32>
  %e = axe.map ins(%w, %mb : tensor<?x1000xf32>, tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<?x1000xf32> -> tensor<?xf32>
  %sb = axe.broadcast %s dims [1] : tensor<?xf32> -> tensor<?x1000xf32>
  %q = axe.map ins(%e, %sb : tensor<?x1000xf32>, tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.divf %u, %v : f32
    axe.yield %r : f32
  }
  %y = axe.cast %q : tensor<?x1000xf32> -> tensor<?x1000xf16>
  return %y : tensor<?x1000xf16>
}

// Rows that do not fit in registers go through them tile by tile, once for each reduction and once for the result: out of the
// shared memory of a cluster, whose warps have a part of the columns each and exchange their sums. One of them stores the sum.
func.func @long(%x: tensor<8x100000xf32>) -> (tensor<8x100000xf32>, tensor<8xf32>) {
  %s = axe.reduce <add> %x dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %b = axe.broadcast %s dims [1] : tensor<8xf32> -> tensor<8x100000xf32>
  %y = axe.map ins(%x, %b : tensor<8x100000xf32>, tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.divf %u, %v : f32
    axe.yield %r : f32
  }
  return %y, %s : tensor<8x100000xf32>, tensor<8xf32>
}

// A reduction of leading dimensions has a kernel of its own, and the chain behind it another.
func.func @columns(%x: tensor<?x300xf32>) -> tensor<300xf32> {
  %s = axe.reduce <max> %x dims [0] : tensor<?x300xf32> -> tensor<300xf32>
  %y = axe.map ins(%s : tensor<300xf32>) -> tensor<300xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  return %y : tensor<300xf32>
}

// Dimensions that are not neighbours are reduced one run after the other.
func.func @apart(%x: tensor<4x8x16xf32>) -> tensor<8xf32> {
  %y = axe.reduce <add> %x dims [0, 2] : tensor<4x8x16xf32> -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// Few results are reduced in parts, which CTAs share, and then the parts.
func.func @total(%x: tensor<2048x4096xf32>) -> tensor<f32> {
  %s = axe.reduce <add> %x dims [0, 1] : tensor<2048x4096xf32> -> tensor<f32>
  return %s : tensor<f32>
}
func.func @statistics(%x: tensor<16384x512xf16>) -> tensor<512xf16> {
  %s = axe.reduce <max> %x dims [0] : tensor<16384x512xf16> -> tensor<512xf16>
  return %s : tensor<512xf16>
}

// CHECK-LABEL: func.func @softmax
// CHECK-COUNT-1: axe.launch @softmax_0_rows
// CHECK-NOT: axe.launch

// CHECK-LABEL: func.func @long
// CHECK: axe.launch @long_0_rows {{.*}} -> tensor<8xf32>, tensor<8x100000xf32>

// CHECK-LABEL: func.func @columns
// CHECK: %[[S:.*]] = axe.launch @columns_0_reduce
// CHECK: axe.launch @columns_1_map {{.*}} ins(%{{.*}})

// CHECK-LABEL: func.func @apart
// CHECK: axe.launch @apart_0_rows
// CHECK: axe.launch @apart_1_reduce

// CHECK-LABEL: func.func @total
// CHECK: axe.launch @total_0_rows {{.*}} ins(%{{.*}} : tensor<1024x8192xf32>
// CHECK: axe.launch @total_1_rows

// CHECK-LABEL: func.func @statistics
// CHECK: axe.launch @statistics_0_reduce {{.*}} ins(%{{.*}} : tensor<128x128x512xf16>) {{.*}} -> tensor<128x512xf16>
// CHECK: axe.launch @statistics_1_reduce
// CHECK-NOT: axe.launch

// CHECK-LABEL: axe.kernel @softmax_0_rows(%{{.*}}: memref<?x1000xf16>, %{{.*}}: memref<?x1000xf16>) threads(128)
// CHECK: memref.dim
// CHECK-COUNT-1: axe.copy %{{.*}} -> tensor<4x1024xf16
// CHECK: axe.mask %{{.*}} else %{{.*}} : f32, tensor<4x1024xf32
// CHECK: axe.reduce <max> %{{.*}} dims [1] : {{.*}} -> tensor<4xf32, #axe.layout<S[4 : 1@warp] + R[32 : 1@lane]>>
// CHECK: axe.mask
// CHECK: axe.reduce <add>
// CHECK: axe.copy %{{.*}} to %{{.*}} : tensor<4x1024xf16

// CHECK-LABEL: axe.kernel @long_0_rows
// CHECK-SAME: threads(512) cluster(8, 1, 1)
// CHECK: axe.copy async %{{.*}} to %{{.*}} : memref<1x14336xf32, {{.*}}> to memref<1x14336xf32, {{.*}}, #axe.space<shared>>
// CHECK: axe.all_gather.create : memref<128x1xi32
// CHECK: axe.barrier cluster
// CHECK: axe.wait
// CHECK: axe.scope warp
// CHECK: scf.for
// CHECK: axe.slice {{.*}} to memref<1x128xf32, {{.*}}, #axe.space<shared>>
// CHECK-NOT: axe.mask
// CHECK: scf.for
// CHECK: axe.mask
// CHECK: scf.yield
// CHECK: %[[SUM:.*]] = axe.reduce <add>
// CHECK: %[[ALL:.*]] = axe.all_gather %[[SUM]] through
// CHECK: axe.reduce <add> %[[ALL]] dims [1]
// CHECK: scf.if
// CHECK: axe.copy %{{.*}} to %{{.*}} : tensor<1xf32
// CHECK: scf.for
// CHECK-NOT: axe.reduce
// CHECK: axe.copy %{{.*}} to
// CHECK-NOT: axe.barrier
// CHECK: axe.return

// CHECK-LABEL: axe.kernel @columns_0_reduce
// CHECK: scf.for
// CHECK: axe.copy %{{.*}} pad %{{.*}} : f32
// CHECK: axe.reduce <max> %{{.*}} dims [0]
