// RUN: axe-opt %s -split-input-file -verify-diagnostics

// (L3) an axis that the mesh does not have, in a signature alone
axe.mesh @pod(dp = 4, tp = 8)
// expected-error @+1 {{(L3) unknown axis 'pod.pp' of axe.mesh @pod: expected one of pod.dp, pod.tp}}
func.func private @f(tensor<8xf32, #axe.layout<S[8 : 1@pod.pp]>>)

// -----

// (L3) a mesh that is not there
axe.mesh @pod(dp = 4, tp = 8)
// expected-error @+1 {{(L3) expected 'rack.tp' to be an axis of an axe.mesh @rack, and there is @pod}}
func.func private @f(tensor<8xf32, #axe.layout<S[8 : 1@rack.tp]>>)

// -----

// (L3) no mesh at all, in a signature that no operator of axe uses: an argument, ...
// expected-error @+1 {{'func.func' op (L3) expected 'pod.tp' to be an axis of an axe.mesh @pod, and there is none}}
func.func @f(%x: tensor<8xf32, #axe.layout<S[8 : 1@pod.tp]>>) {
  return
}

// -----

// ... a result of a declaration, ...
// expected-error @+1 {{'func.func' op (L3) expected 'pod.tp' to be an axis of an axe.mesh @pod, and there is none}}
func.func private @f() -> (i32, memref<8xf32, #axe.layout<S[8 : 1@pod.tp]>>)

// -----

// ... and in a module inside one, which sees no mesh of a sibling
module {
  module @a {
    axe.mesh @pod(tp = 8)
  }
  module @b {
    // expected-error @+1 {{'func.func' op (L3) expected 'pod.tp' to be an axis of an axe.mesh @pod, and there is none}}
    func.func private @f(tensor<8xf32, #axe.layout<S[8 : 1@pod.tp]>>)
  }
}

// -----

// (L3) no mesh at all, in an operator
func.func @f() {
  %x = tensor.empty() : tensor<8xf32, #axe.layout<S[8 : 1@pod.tp]>>
  // expected-error @+1 {{(L3) expected 'pod.tp' to be an axis of an axe.mesh @pod, and there is none}}
  %y = axe.cast %x : tensor<8xf32, #axe.layout<S[8 : 1@pod.tp]>> -> tensor<8xf16, #axe.layout<S[8 : 1@pod.tp]>>
  return
}

// -----

// (L3) more places than devices
axe.mesh @pod(tp = 8)
// expected-error @+1 {{(L3) expected places 0 to 7 on 'pod.tp' (axe.mesh @pod), got 0 to 15}}
func.func private @f(tensor<16xf32, #axe.layout<S[16 : 1@pod.tp]>>)

// -----

// (L3) a stride that leaves the axis
axe.mesh @pod(tp = 8)
// expected-error @+1 {{(L3) expected places 0 to 7 on 'pod.tp' (axe.mesh @pod), got 0 to 9}}
func.func private @f(memref<4xf32, #axe.layout<S[4 : 3@pod.tp]>>)

// -----

// (L3) replicas and an offset count too
axe.mesh @pod(tp = 8)
// expected-error @+1 {{got 5 to 8}}
func.func private @f(tensor<2xf32, #axe.layout<S[2 : 1] + R[4 : 1@pod.tp] + 5@pod.tp>>)

// -----

// (L3) below the first device
axe.mesh @pod(tp = 8)
// expected-error @+1 {{got -3 to 0}}
func.func private @f(tensor<4xf32, #axe.layout<S[4 : -1@pod.tp]>>)

// -----

// (L3) in the type of an operation that is not of axe, below a function
axe.mesh @pod(tp = 2)
func.func @f() {
  // expected-error @+1 {{(L3) expected places 0 to 1}}
  %x = tensor.empty() : tensor<4xf32, #axe.layout<S[4 : 1@pod.tp]>>
  return
}

// -----

// (L3) a dynamic extent has no place
axe.mesh @pod(tp = 2)
// expected-error @+1 {{(L3) expected a static extent on 'pod.tp', which has 2 devices}}
func.func private @f(tensor<?x4xf32, #axe.layout<S[(?, 4) : (1@pod.tp, 1)]>>)
