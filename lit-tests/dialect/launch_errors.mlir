// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%n: index) {
  // expected-error @+1 {{(U1) '@missing' is not an axe.kernel}}
  axe.launch @missing grid(%n, %n, %n)
  return
}

// -----

axe.kernel @k(%x: memref<4xf32>) threads(32) {
  axe.return
}
func.func @f(%n: index, %x: tensor<4xf32>) {
  // expected-error @+1 {{(U1) expected 1 operands for 'k', got 2}}
  axe.launch @k grid(%n, %n, %n) ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{(U1) expected '@kernels' to be a gpu.module or a gpu.binary}}
  axe.launch @kernels::@k grid(%n, %n, %n)
  return
}

// -----

axe.kernel @k() threads(32) {
  axe.return
}
func.func @f(%n: index) {
  // expected-error @+1 {{(U1) expected '@k' to be a gpu.module or a gpu.binary}}
  axe.launch @k::@k grid(%n, %n, %n)
  return
}

// -----

gpu.module @kernels {
  gpu.func @other() kernel {
    gpu.return
  }
}
func.func @f(%n: index) {
  // expected-error @+1 {{(U1) expected '@kernels::@k' to be a gpu.func or an llvm.func}}
  axe.launch @kernels::@k grid(%n, %n, %n)
  return
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: !llvm.ptr<1>) kernel {
    gpu.return
  }
}
func.func @f(%n: index, %x: tensor<4xf32>) {
  // expected-error @+1 {{(U2) expected one result for every tensor among outs, of the same type}}
  axe.launch @kernels::@k grid(%n, %n, %n) outs(%x : tensor<4xf32>)
  return
}

// -----

axe.kernel @k(%x: memref<4xf32>) threads(32) {
  axe.return
}
func.func @f(%n: index, %x: tensor<8xf32>) {
  // expected-error @+1 {{(U1) expected argument 0 to fit 'memref<4xf32>', got 'tensor<8xf32>'}}
  axe.launch @k grid(%n, %n, %n) ins(%x : tensor<8xf32>)
  return
}

// -----

axe.kernel @k(%x: memref<4xf32>) threads(32) {
  axe.return
}
func.func @f(%n: index, %x: tensor<4xf32>) {
  // expected-error @+1 {{(U2) expected one result for every tensor among outs, of the same type}}
  axe.launch @k grid(%n, %n, %n) outs(%x : tensor<4xf32>)
  return
}
