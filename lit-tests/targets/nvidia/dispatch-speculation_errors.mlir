// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

#l = #axe.layout<S[64 : 1@thread]>

axe.kernel @load(%t: memref<?xi32>, %y: memref<64xi32>) threads(64) {
  %a = axe.copy %y : memref<64xi32> -> tensor<64xi32, #l>
  %r = axe.map ins(%a : tensor<64xi32, #l>) -> tensor<64xi32, #l> {
  ^bb0(%i: i32):
    %at = arith.index_cast %i : i32 to index
    // expected-error @below {{'memref.load' cannot be in a map's body: it is not defined for all operands, and the body runs on the padding of tiles as well}}
    %v = memref.load %t[%at] : memref<?xi32>
    axe.yield %v : i32
  }
  axe.copy %r to %y : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}

// -----

#l = #axe.layout<S[64 : 1@thread]>

axe.kernel @assume(%y: memref<64xi32>) threads(64) {
  %a = axe.copy %y : memref<64xi32> -> tensor<64xi32, #l>
  %r = axe.map ins(%a : tensor<64xi32, #l>) -> tensor<64xi32, #l> {
  ^bb0(%i: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi ne, %i, %zero : i32
    // expected-error @below {{'llvm.intr.assume' cannot be in a map's body}}
    llvm.intr.assume %c : i1
    axe.yield %i : i32
  }
  axe.copy %r to %y : tensor<64xi32, #l> to memref<64xi32>
  axe.return
}
