// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s

// Rows of a cluster that are reduced twice, and have a scale in common: clusters stay for several of them, no more than a chip holds at a time. The scale
// is copied in front of the loop, and the row of the next turn in front of the reductions.
func.func @scaled(%x: tensor<1024x65536xf32>, %g: tensor<65536xf32>) -> tensor<1024x65536xf32> {
  %s = axe.reduce <add> %x dims [1] : tensor<1024x65536xf32> -> tensor<1024xf32>
  %r = axe.broadcast %s dims [1] : tensor<1024xf32> -> tensor<1024x65536xf32>
  %e = axe.map ins(%x, %r : tensor<1024x65536xf32>, tensor<1024x65536xf32>) -> tensor<1024x65536xf32> {
  ^bb0(%u: f32, %v: f32):
    %a = arith.subf %u, %v : f32
    %b = math.absf %a : f32
    axe.yield %b : f32
  }
  %t = axe.reduce <add> %e dims [1] : tensor<1024x65536xf32> -> tensor<1024xf32>
  %q = axe.broadcast %t dims [1] : tensor<1024xf32> -> tensor<1024x65536xf32>
  %w = axe.broadcast %g dims [0] : tensor<65536xf32> -> tensor<1024x65536xf32>
  %y = axe.map ins(%x, %q, %w : tensor<1024x65536xf32>, tensor<1024x65536xf32>, tensor<1024x65536xf32>) -> tensor<1024x65536xf32> {
  ^bb0(%u: f32, %v: f32, %c: f32):
    %a = arith.divf %u, %v : f32
    %b = arith.mulf %a, %c : f32
    axe.yield %b : f32
  }
  return %y : tensor<1024x65536xf32>
}

// CHECK-LABEL: func.func @scaled
// CHECK-DAG: %[[CLUSTERS:.*]] = arith.constant 30 : index
// CHECK-DAG: %[[CTAS:.*]] = arith.constant 8 : index
// CHECK: %[[X:.*]] = arith.muli %[[CLUSTERS]], %[[CTAS]]
// CHECK: axe.launch @scaled_0_rows grid(%[[X]],
// CHECK: axe.kernel @scaled_0_rows{{.*}} threads(128) cluster(8, 1, 1)
// CHECK: %[[RING:.*]] = axe.alloc : memref<2x8192xf32
// CHECK: %[[SCALE:.*]] = axe.alloc : memref<8192xf32
// CHECK: axe.copy async %{{.*}} to %[[SCALE]]
// CHECK: axe.slice %[[RING]]
// CHECK: axe.copy async
// CHECK: axe.commit
// CHECK-COUNT-2: axe.all_gather.create : memref<2x32x1xi32
// CHECK: axe.barrier cluster
// CHECK: scf.for
// CHECK-NEXT: axe.wait
// CHECK-NEXT: axe.barrier
// CHECK: scf.if
// CHECK: axe.slice %[[RING]]
// CHECK: axe.copy async
// CHECK: axe.commit
// CHECK: axe.scope warp
// CHECK-COUNT-2: axe.all_gather
// CHECK-NOT: axe.barrier
// CHECK: axe.return
