// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules | FileCheck %s

// What a map's body is undefined for becomes harmless: registers of a tile that hold no element are computed as well.
#l = #axe.layout<S[64 : 1@thread]>

// CHECK-LABEL: gpu.func @signed
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK: %[[DIVISOR:.*]] = llvm.freeze %{{.*}} : i32
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[DIVISOR]], %{{.*}} : i32
// CHECK: %[[DIVIDEND:.*]] = llvm.freeze %{{.*}} : i32
// CHECK: %[[LEAST:.*]] = arith.cmpi eq, %[[DIVIDEND]], %{{.*}} : i32
// CHECK: %[[MINUS:.*]] = arith.cmpi eq, %[[DIVISOR]], %{{.*}} : i32
// CHECK: %[[WRAPS:.*]] = arith.andi %[[LEAST]], %[[MINUS]] : i1
// CHECK: %[[HARMFUL:.*]] = arith.ori %[[ZERO]], %[[WRAPS]] : i1
// CHECK: %[[BY:.*]] = arith.select %[[HARMFUL]], %{{.*}}, %[[DIVISOR]] : i32
// CHECK: arith.divsi %[[DIVIDEND]], %[[BY]] : i32
// CHECK-COUNT-3: llvm.freeze
// CHECK: arith.{{rem|floordiv|ceildiv}}si
axe.kernel @signed(%x: memref<?xi32>, %y: memref<?xi32>) threads(64) {
  %c0 = arith.constant 0 : index
  %s = axe.slice %x[%c0] : memref<?xi32> to memref<64xi32>
  %d = axe.slice %y[%c0] : memref<?xi32> to memref<64xi32>
  %a = axe.copy %s : memref<64xi32> -> tensor<64xi32, #l>
  %b = axe.copy %d : memref<64xi32> -> tensor<64xi32, #l>
  %r = axe.map ins(%a, %b : tensor<64xi32, #l>, tensor<64xi32, #l>) -> tensor<64xi32, #l> {
  ^bb0(%i: i32, %j: i32):
    %0 = arith.divsi %i, %j : i32
    %1 = arith.remsi %0, %j : i32
    %2 = arith.floordivsi %1, %j : i32
    %3 = arith.ceildivsi %2, %j : i32
    axe.yield %3 : i32
  }
  axe.copy %r to %d : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}

// CHECK-LABEL: gpu.func @unsigned
// CHECK-COUNT-3: llvm.freeze
// CHECK-NOT: llvm.freeze
// Where the divisor is known, nothing is added.
// CHECK: arith.divsi %{{.*}}, %[[SEVEN:.*]] : i32
// CHECK-NEXT: arith.remui %{{.*}}, %{{.*}} : i32
// A branch on poison is frozen.
// CHECK: %[[COND:.*]] = llvm.freeze %{{.*}} : i1
// CHECK: scf.if %[[COND]]
axe.kernel @unsigned(%x: memref<?xi32>, %y: memref<?xi32>) threads(64) {
  %c0 = arith.constant 0 : index
  %s = axe.slice %x[%c0] : memref<?xi32> to memref<64xi32>
  %d = axe.slice %y[%c0] : memref<?xi32> to memref<64xi32>
  %a = axe.copy %s : memref<64xi32> -> tensor<64xi32, #l>
  %b = axe.copy %d : memref<64xi32> -> tensor<64xi32, #l>
  %r = axe.map ins(%a, %b : tensor<64xi32, #l>, tensor<64xi32, #l>) -> tensor<64xi32, #l> {
  ^bb0(%i: i32, %j: i32):
    %seven = arith.constant 7 : i32
    %minus = arith.constant -1 : i32
    %0 = arith.divui %i, %j : i32
    %1 = arith.remui %0, %j : i32
    %2 = arith.ceildivui %1, %j : i32
    %3 = arith.divsi %2, %seven : i32
    %4 = arith.remui %3, %minus : i32
    %5 = arith.shli %4, %j : i32
    %6 = arith.cmpi slt, %5, %i : i32
    %7 = scf.if %6 -> i32 {
      scf.yield %i : i32
    } else {
      scf.yield %j : i32
    }
    axe.yield %7 : i32
  }
  axe.copy %r to %d : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}

// Outside of maps an index is the kernel's own.
// CHECK-LABEL: gpu.func @index
// CHECK-NOT: llvm.freeze
axe.kernel @index(%x: memref<?xi32>, %n: index) threads(64) {
  %i = gpu.block_id x
  %j = arith.remui %i, %n : index
  %d = axe.slice %x[%j] : memref<?xi32> to memref<64xi32>
  %a = axe.copy %d : memref<64xi32> -> tensor<64xi32, #l>
  axe.copy %a to %d : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}

// An element of known extents is loaded wherever the index is: poison is frozen, and the index brought into the extent.
// CHECK-LABEL: gpu.func @load
// CHECK: %[[INDEX:.*]] = llvm.freeze %{{.*}} : i64
// CHECK: %[[BELOW:.*]] = arith.minsi %{{.*}}, %{{.*}} : i64
// CHECK: arith.maxsi %[[BELOW]], %{{.*}} : i64
// CHECK: llvm.load
axe.kernel @load(%t: memref<50xi32>, %x: memref<?xi32>, %y: memref<?xi32>) threads(64) {
  %c0 = arith.constant 0 : index
  %s = axe.slice %x[%c0] : memref<?xi32> to memref<64xi32>
  %d = axe.slice %y[%c0] : memref<?xi32> to memref<64xi32>
  %a = axe.copy %s : memref<64xi32> -> tensor<64xi32, #l>
  %r = axe.map ins(%a : tensor<64xi32, #l>) -> tensor<64xi32, #l> {
  ^bb0(%i: i32):
    %at = arith.index_cast %i : i32 to index
    %v = memref.load %t[%at] : memref<50xi32>
    axe.yield %v : i32
  }
  axe.copy %r to %d : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}
