// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @barriers
axe.kernel @barriers() threads(128) cluster(2, 1, 1) {
  // CHECK: axe.barrier{{$}}
  axe.barrier
  // CHECK: axe.barrier async{{$}}
  axe.barrier async
  // CHECK: axe.barrier cluster{{$}}
  axe.barrier cluster
  // CHECK: axe.barrier async cluster {note}
  axe.barrier async cluster {note}
  axe.return
}
