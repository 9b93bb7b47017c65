// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a -split-input-file -verify-diagnostics

#map = affine_map<(i) -> (i)>
func.func @body(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    // expected-error @below {{'vector.broadcast' has no form in the body of a kernel's loops: expected operations on scalars, tensor.extract, scf.if and scf.for}}
    %w = vector.broadcast %v : f32 to vector<1xf32>
    %r = vector.extract %w[0] : f32 from vector<1xf32>
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#map = affine_map<(i) -> (i)>
func.func @encoded(%x: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{'linalg.generic' has a tensor with an encoding: expected logical tensors}}
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#map = affine_map<(i) -> (i)>
func.func @whole(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    // expected-error @below {{'tensor.extract_slice' of a tensor has no form in the body of a kernel's loops: expected tensor.extract}}
    %s = tensor.extract_slice %x[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    %c0 = arith.constant 0 : index
    %r = tensor.extract %s[%c0] : tensor<1xf32>
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Loops of a kernel are on its arguments.
axe.kernel @slices(%x: memref<8x8xf32, strided<[16, 1]>>, %y: memref<8x8xf32>) threads(32) {
  // expected-error @below {{no schedule of sm_90a takes this 'linalg.generic'}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32, strided<[16, 1]>>) outs(%y : memref<8x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  }
  axe.return
}
