// RUN: axe-opt %s --axe-plan-kernels="target=trn1" -split-input-file -verify-diagnostics

func.func @integers(%x: tensor<8x8xi32>) -> tensor<8x8xi32> {
  // expected-error@+1 {{tensor 'in0' of i32: expected f32, bf16, f16 or bits in memory}}
  %y = axe.map ins(%x : tensor<8x8xi32>) -> tensor<8x8xi32> {
  ^bb0(%a: i32):
    axe.yield %a : i32
  }
  return %y : tensor<8x8xi32>
}

// -----

func.func @sum_of_integers(%x: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %y = axe.map ins(%x : tensor<8x8xi32>) -> tensor<8x8xi32> {
  ^bb0(%a: i32):
    // expected-error@+1 {{'arith.addi' is not planned: maps are of floats and bits}}
    %0 = arith.addi %a, %a : i32
    axe.yield %0 : i32
  }
  return %y : tensor<8x8xi32>
}

// -----

func.func @sine(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = axe.map ins(%x : tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: f32):
    // expected-error@+1 {{'math.sin' has a table from -pi to pi alone}}
    %0 = math.sin %a : f32
    axe.yield %0 : f32
  }
  return %y : tensor<8x8xf32>
}

// -----

func.func @floor(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = axe.map ins(%x : tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: f32):
    // expected-error@+1 {{'math.floor' is no function of an engine}}
    %0 = math.floor %a : f32
    axe.yield %0 : f32
  }
  return %y : tensor<8x8xf32>
}

// -----

func.func @always(%x: tensor<8x8xf32>) -> tensor<8x8xi1> {
  %y = axe.map ins(%x : tensor<8x8xf32>) -> tensor<8x8xi1> {
  ^bb0(%a: f32):
    // expected-error@+1 {{'arith.cmpf' is always true or false}}
    %0 = arith.cmpf true, %a, %a : f32
    axe.yield %0 : i1
  }
  return %y : tensor<8x8xi1>
}

// -----

func.func @scalar(%x: tensor<8x8xf32>, %s: f32) -> tensor<8x8xf32> {
  // expected-error@+1 {{kernels of Trainium have tensors as arguments alone}}
  %y = axe.map ins(%x : tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: f32):
    %0 = arith.addf %a, %s : f32
    axe.yield %0 : f32
  }
  return %y : tensor<8x8xf32>
}

// -----

func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{expected static extents: a kernel of Trainium is compiled for its sizes}}
  %y = axe.map ins(%x : tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%a: f32):
    %0 = arith.addf %a, %a : f32
    axe.yield %0 : f32
  }
  return %y : tensor<?x8xf32>
}

// -----

func.func @doubles(%a: tensor<8x8xf64>, %b: tensor<8x8xf64>) -> tensor<8x8xf64> {
  // expected-error@+1 {{a product of f64 and f64: the tensor engine takes f32, bf16 or f16 of one type}}
  %c = axe.gemm %a, %b : tensor<8x8xf64>, tensor<8x8xf64> -> tensor<8x8xf64>
  return %c : tensor<8x8xf64>
}

// -----

#map = affine_map<(i) -> (i)>
func.func @gather(%x: tensor<8xf32>, %at: tensor<4xindex>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{'linalg.generic' is a loop nest that no operator says}}
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%at : tensor<4xindex>) outs(%empty : tensor<4xf32>) {
  ^bb0(%i: index, %o: f32):
    %v = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @experts(%x: tensor<8x128xf32>) -> (tensor<8x8xf32>, tensor<8x8xi32>) {
  // expected-error@+1 {{'axe.top_k' has no kernel of its own on Trainium: expected a kernel with trn.max8, which finds eight at a time}}
  %v, %i = axe.top_k %x : tensor<8x128xf32> -> tensor<8x8xf32>, tensor<8x8xi32>
  return %v, %i : tensor<8x8xf32>, tensor<8x8xi32>
}
