// RUN: axe-opt %s --axe-lower-to-host --split-input-file --verify-diagnostics

axe.kernel @thread(%x: memref<8xf32>) threads(32) {
  // expected-error @+1 {{'gpu.thread_id' has no meaning on the CPU target: a kernel is the program of a whole block there}}
  %t = gpu.thread_id x
  axe.return
}

// -----

axe.kernel @cluster(%x: memref<8xf32>) threads(32) {
  // expected-error @+1 {{the CPU target runs one block at a time: expected a scope inside a block (cta, warpgroup, warp, thread)}}
  axe.scope cluster {
  }
  axe.return
}

// -----

#shared = #axe.space<shared>
axe.kernel @carried(%x: memref<8xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = axe.alloc : memref<8xf32, #axe.layout<S[8 : 2]>, #shared>
  %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %a) -> memref<8xf32, #axe.layout<S[8 : 2]>, #shared> {
    // expected-error @+1 {{the CPU target cannot follow storage of type}}
    %t = axe.copy %s : memref<8xf32, #axe.layout<S[8 : 2]>, #shared> -> tensor<8xf32, #axe.layout<S[8 : 1@lane]>>
    scf.yield %s : memref<8xf32, #axe.layout<S[8 : 2]>, #shared>
  }
  axe.return
}

// -----

#shared = #axe.space<shared>
axe.kernel @negative(%x: memref<8xf32>) threads(32) {
  // expected-error @+1 {{its storage is not a static range of addresses from 0}}
  %a = axe.alloc : memref<8xf32, #axe.layout<S[8 : -1]>, #shared>
  axe.return
}

// -----

#sa = #axe.layout<Sw<3, 3, 3> o S[(8, 64) : (64, 1)]>
#shared = #axe.space<shared>
axe.kernel @unswizzled(%i: index) threads(32) {
  %c0 = arith.constant 0 : index
  %a = axe.alloc : memref<16x64xf32, #axe.layout<Sw<3, 3, 3> o S[(16, 64) : (64, 1)]>, #shared>
  %s = axe.slice %a[%i, %c0] : memref<16x64xf32, #axe.layout<Sw<3, 3, 3> o S[(16, 64) : (64, 1)]>, #shared> to memref<8x64xf32, #sa, #shared>
  %v = axe.view %s : memref<8x64xf32, #sa, #shared> to memref<64x8xf32, #axe.layout<S[(64, 8) : (1, 64)]>, #shared>
  // expected-error @+1 {{its swizzle is not that of the slice that it is a view of}}
  %t = axe.copy %v : memref<64x8xf32, #axe.layout<S[(64, 8) : (1, 64)]>, #shared> -> tensor<64x8xf32, #axe.layout<S[(64, 8) : (1@reg, 1@lane)]>>
  axe.return
}

// -----

#shared = #axe.space<shared>
axe.kernel @escapes(%i: index) threads(32) {
  %a = axe.alloc : memref<16xf32, #shared>
  // expected-error @+1 {{the CPU target cannot follow storage into 'memref.cast': expected an axe operator, memref.load, memref.store or memref.dim}}
  %b = memref.cast %a : memref<16xf32, #shared> to memref<?xf32, #shared>
  axe.return
}

// -----

axe.kernel @strided(%x: memref<4x4xf32, strided<[8, 1]>>) threads(32) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{the CPU target cannot follow storage of type memref<4x4xf32, strided<[8, 1]>> through 'memref.reinterpret_cast': expected an argument of the kernel without strides or a layout}}
  %y = memref.reinterpret_cast %x to offset: [0], sizes: [32], strides: [1] : memref<4x4xf32, strided<[8, 1]>> to memref<32xf32, strided<[1]>>
  %s = axe.slice %y[%c0] : memref<32xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
  %t = axe.copy %s : memref<8xf32, strided<[1]>> -> tensor<8xf32, #axe.layout<S[8 : 1@lane]>>
  axe.return
}

// -----

axe.kernel @behind(%x: memref<4x4xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{the CPU target cannot follow storage of type memref<4x4xf32> through 'memref.reinterpret_cast': expected known extents and strides of elements that the argument has}}
  %y = memref.reinterpret_cast %x to offset: [0], sizes: [2, 8], strides: [9, 1] : memref<4x4xf32> to memref<2x8xf32, strided<[9, 1]>>
  %s = axe.slice %y[%c0, %c0] : memref<2x8xf32, strided<[9, 1]>> to memref<8xf32, strided<[1]>>
  %t = axe.copy %s : memref<8xf32, strided<[1]>> -> tensor<8xf32, #axe.layout<S[8 : 1@lane]>>
  axe.return
}

// -----

axe.kernel @unknown(%x: memref<4x4xf32>, %n: index) threads(32) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{expected known extents and strides of elements that the argument has}}
  %y = memref.reinterpret_cast %x to offset: [0], sizes: [%n], strides: [1] : memref<4x4xf32> to memref<?xf32, strided<[1]>>
  %s = axe.slice %y[%c0] : memref<?xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
  %t = axe.copy %s : memref<8xf32, strided<[1]>> -> tensor<8xf32, #axe.layout<S[8 : 1@lane]>>
  axe.return
}

// -----

func.func @scope() {
  // expected-error @+1 {{'axe.scope' has no meaning on the CPU target}}
  axe.scope warp {
  }
  return
}

// -----

axe.kernel @roles() threads(128) {
  // expected-error @+1 {{'axe.pipeline.create' has no meaning on the CPU target}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.return
}

// -----

// expected-error @+1 {{a function of the host takes no 'memref<16x8xf16, #axe.layout<S[(16, 8) : (8, 1)]>, #axe.space<shared>>': its memory is a kernel's}}
func.func private @storage(memref<16x8xf16, #axe.layout<S[(16, 8) : (8, 1)]>, #axe.space<shared>>)
