// RUN: axe-opt %s --axe-lower-to-host -verify-diagnostics

axe.kernel @k(%x: memref<4x256xf32>, %v: memref<4x5xf32>, %i: memref<4x5xi32>) threads(256) {
  // expected-error @below {{'axe.top_k' of storage has no meaning on the CPU target, which runs one block after the other}}
  axe.top_k %x to %v, %i : memref<4x256xf32> to memref<4x5xf32>, memref<4x5xi32>
  axe.return
}
func.func @main(%x: tensor<4x256xf32>) -> (tensor<4x5xf32>, tensor<4x5xi32>) {
  %c1 = arith.constant 1 : index
  %v = tensor.empty() : tensor<4x5xf32>
  %i = tensor.empty() : tensor<4x5xi32>
  %y:2 = axe.launch @k grid(%c1, %c1, %c1) ins(%x : tensor<4x256xf32>) outs(%v, %i : tensor<4x5xf32>, tensor<4x5xi32>) -> tensor<4x5xf32>, tensor<4x5xi32>
  return %y#0, %y#1 : tensor<4x5xf32>, tensor<4x5xi32>
}
