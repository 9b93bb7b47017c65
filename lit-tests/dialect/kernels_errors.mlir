// RUN: axe-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{(M1) expected distinct axes, got 'a' twice}}
axe.mesh @pod(a = 4, a = 8)

// -----

// expected-error @+1 {{(M1) expected a size of at least 1 on axis 'a', got 0}}
axe.mesh @pod(a = 0)

// -----

// expected-error @+1 {{(M1) expected at least one axis}}
axe.mesh @pod()

// -----

// expected-error @+1 {{(K1) expected threads to be a multiple of 32 from 32 to 1024, got 48}}
axe.kernel @k() threads(48) {
  axe.return
}

// -----

// expected-error @+1 {{(K2) expected a memref or a scalar as argument 0, got 'tensor<4xf32>'}}
axe.kernel @k(%x: tensor<4xf32>) threads(32) {
  axe.return
}

// -----

// expected-error @+1 {{(K2) expected no results, got 1}}
axe.kernel @k() -> f32 threads(32) {
  axe.return
}

// -----

// expected-error @+1 {{(K3) expected cluster extents of at least 1}}
axe.kernel @k() threads(32) cluster(0) {
  axe.return
}

// -----

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

// -----

axe.kernel @k() threads(128) {
  axe.scope warp [0, 1) {
    // expected-error @+1 {{(X1) expected a level inside 'warp', got 'warpgroup'}}
    axe.scope warpgroup {
    }
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{(X2) expected a range [begin, end) with begin < end}}
  axe.scope warp [2, 2) {
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{(X2) expected a range inside the 4 warps of the enclosing scope, got [3, 5)}}
  axe.scope warp [3, 5) {
  }
  axe.return
}

// -----

axe.kernel @k() threads(128) {
  // expected-error @+1 {{expected an execution scope}}
  axe.scope galaxy {
  }
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(A1) expected a memory space of the kernel's own}}
  %0 = axe.alloc : memref<4xf32>
  axe.return
}

// -----

axe.kernel @k() threads(32) {
  // expected-error @+1 {{(A2) expected a layout on the memory axis m alone}}
  %0 = axe.alloc : memref<4xf32, #axe.layout<S[4 : 1@lane]>, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V1) expected 2 origins, got 1}}
  %0 = axe.slice %x[%i] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1]>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V2) expected element type 'f32', got 'f16'}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf16, strided<[8, 1]>>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>, %i: index) threads(32) {
  // expected-error @+1 {{(V3) expected stride 8 in dimension 0 of the box, got 4}}
  %0 = axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf32>
  axe.return
}

// -----

axe.kernel @k(%x: memref<8x8xf32>) threads(32) {
  // expected-error @+1 {{(W2) expected a view of at most 64 elements of storage, got one that spans 72}}
  %0 = axe.view %x : memref<8x8xf32> to memref<8x9xf32>
  axe.return
}
