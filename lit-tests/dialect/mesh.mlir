// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK: axe.mesh @pod(dp = 4, tp = 8)
axe.mesh @pod(dp = 4, tp = 8)
// CHECK: axe.mesh @rack("1st" = 2) {note}
axe.mesh @rack("1st" = 2) {note}
