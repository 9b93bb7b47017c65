// RUN: axe-opt %s --axe-nvidia=target=sm_90a -split-input-file -verify-diagnostics
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a -split-input-file -verify-diagnostics

// Work in a module inside the module is refused, and does not stay as it is.

module {
  // expected-error @below {{modules inside the module are not compiled: run the pass on this one}}
  module @inner {
    func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
      %y = axe.map ins(%x : tensor<64xf32>) -> tensor<64xf32> {
      ^bb0(%a: f32):
        %s = arith.addf %a, %a : f32
        axe.yield %s : f32
      }
      return %y : tensor<64xf32>
    }
  }
}

// -----

// A module without work stays.
module {
  module @empty {
    func.func private @f()
  }
}
