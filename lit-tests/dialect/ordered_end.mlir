// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @turns
axe.kernel @turns(%n: index) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  axe.scope warpgroup [1, 3) {
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: %[[TURN:.+]] = axe.ordered.begin warpgroup : !axe.token
      %turn = axe.ordered.begin warpgroup : !axe.token
      // CHECK: axe.ordered.end %[[TURN]]
      axe.ordered.end %turn
    }
    // CHECK: axe.ordered.begin warp : !axe.token
    %warps = axe.ordered.begin warp : !axe.token
    axe.ordered.end %warps
  }
  axe.return
}
