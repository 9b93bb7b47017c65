// RUN: axe-opt %s --axe-lower-to-host | FileCheck %s

#swizzled = #axe.layout<Sw<3, 3, 3> o S[(16, 64) : (64, 1)]>
#row = #axe.layout<S[(16, 64) : (1@warp, 1@reg)]>
#repeat = #axe.layout<S[(16, 64) : (0, 1)]>
#shared = #axe.space<shared>

// Arguments, block and grid are the function's arguments; slices carry their source's bounds; storage is addressed
// through its layout.
// CHECK-LABEL: func.func private @tile
// CHECK-SAME: (%[[X:.*]]: memref<?x100xf16>, %[[BIAS:.*]]: memref<100xf16>, %[[Y:.*]]: memref<?x100xf16>, %[[S:.*]]: f16, %[[BX:.*]]: index, %[[BY:[^:]*]]: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index)
axe.kernel @tile(%x: memref<?x100xf16>, %bias: memref<100xf16>, %y: memref<?x100xf16>, %s: f16) threads(512) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[M:.*]] = arith.muli %[[BX]]
  // CHECK: %[[N:.*]] = arith.muli %[[BY]]
  %i = gpu.block_id x
  %j = gpu.block_id y
  %m = arith.muli %i, %c16 : index
  %n = arith.muli %j, %c64 : index

  // What nothing has written is a pattern of ones: NaN.
  // CHECK: %[[ST:.*]] = memref.alloc() : memref<1024xf16>
  // CHECK: %[[ONES:.*]] = arith.constant -1 : i16
  // CHECK: %[[NAN:.*]] = arith.bitcast %[[ONES]] : i16 to f16
  // CHECK: memref.store %[[NAN]], %[[ST]]
  %st = axe.alloc : memref<16x64xf16, #swizzled, #shared>

  // CHECK: %[[ROWS:.*]] = memref.dim %[[X]]
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: scf.for %[[J:.*]] =
  // CHECK: %[[P:.*]] = arith.addi %[[M]], %[[I]]
  // CHECK: %[[Q:.*]] = arith.addi %[[N]], %[[J]]
  // CHECK: %[[PIN:.*]] = arith.cmpi ult, %[[P]], %[[ROWS]]
  // CHECK: %[[C100:.*]] = arith.constant 100 : index
  // CHECK: %[[QIN:.*]] = arith.cmpi ult, %[[Q]], %[[C100]]
  // CHECK: %[[IN:.*]] = arith.andi %[[PIN]], %[[QIN]]
  // CHECK: %[[E:.*]] = scf.if %[[IN]] -> (f16)
  // CHECK: memref.load %[[X]][%[[P]], %[[Q]]]
  // CHECK: else
  // CHECK: scf.yield %[[S]]
  // CHECK: %[[ROW:.*]] = arith.muli %[[I]]
  // CHECK: %[[LINEAR:.*]] = arith.addi %[[ROW]], %[[J]]
  // CHECK: %[[LOW:.*]] = arith.divui %[[LINEAR]], %c8
  // CHECK: %[[BITS:.*]] = arith.andi %[[LOW]], %c56
  // CHECK: %[[AT:.*]] = arith.xori %[[LINEAR]], %[[BITS]]
  // CHECK: memref.store %[[E]], %[[ST]][%[[AT]]]
  %t = axe.slice %x[%m, %n] : memref<?x100xf16> to memref<16x64xf16, strided<[100, 1]>>
  axe.copy async %t to %st pad %s : f16 : memref<16x64xf16, strided<[100, 1]>> to memref<16x64xf16, #swizzled, #shared>
  %token = axe.commit : !axe.token
  axe.wait {pending = 0 : i64}
  axe.barrier

  // CHECK: tensor.generate
  // CHECK: arith.xori
  // CHECK: memref.load %[[ST]]
  %r = axe.copy %st : memref<16x64xf16, #swizzled, #shared> -> tensor<16x64xf16, #row>

  // A view of a slice keeps the bounds.
  // CHECK: ^bb0(%{{.*}}: index, %[[L:.*]]: index):
  // CHECK: %[[AT:.*]] = arith.addi %[[N]], %[[L]]
  // CHECK: arith.cmpi ult, %[[AT]], %{{.*}}
  // CHECK: memref.load %[[BIAS]][%[[AT]]]
  %part = axe.slice %bias[%n] : memref<100xf16> to memref<64xf16>
  %rows = axe.view %part : memref<64xf16> to memref<16x64xf16, #repeat>
  %b = axe.copy %rows : memref<16x64xf16, #repeat> -> tensor<16x64xf16, #row>

  // Arithmetic on halves is done in f32, and each operation rounds.
  // CHECK: %[[SUM:.*]] = arith.addf %{{.*}} : f32
  // CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to f16
  // CHECK: %[[AGAIN:.*]] = arith.extf %[[ROUNDED]]
  // CHECK: %[[SW:.*]] = arith.extf %[[S]]
  // CHECK: %[[PRODUCT:.*]] = arith.mulf %[[AGAIN]], %[[SW]] : f32
  // CHECK-NEXT: arith.truncf %[[PRODUCT]] : f32 to f16
  %q = axe.map ins(%r, %b : tensor<16x64xf16, #row>, tensor<16x64xf16, #row>) -> tensor<16x64xf16, #row> {
  ^bb0(%u: f16, %v: f16):
    %w = arith.addf %u, %v : f16
    %z = arith.mulf %w, %s : f16
    axe.yield %z : f16
  }

  // CHECK: %[[E:.*]] = tensor.extract
  // CHECK: scf.if
  // CHECK-NEXT: memref.store %[[E]], %[[Y]]
  %o = axe.slice %y[%m, %n] : memref<?x100xf16> to memref<16x64xf16, strided<[100, 1]>>
  axe.copy %q to %o : tensor<16x64xf16, #row> to memref<16x64xf16, strided<[100, 1]>>
  // CHECK: return
  axe.return
}

// A launch reads the memory of its inputs, and has memory of its own for what it writes.
// CHECK-LABEL: @launch
// CHECK-SAME: (%[[X:.*]]: tensor<?x100xf16>, %[[B:.*]]: tensor<100xf16>, %[[S:.*]]: f16)
func.func @launch(%x: tensor<?x100xf16>, %b: tensor<100xf16>, %s: f16) -> tensor<?x100xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %n = tensor.dim %x, %c0 : tensor<?x100xf16>
  // CHECK: %[[G:.*]] = arith.ceildivui
  %g = arith.ceildivui %n, %c16 : index
  %e = tensor.empty(%n) : tensor<?x100xf16>
  // CHECK: %[[XM:.*]] = bufferization.to_buffer %[[X]] read_only
  // CHECK: %[[BM:.*]] = bufferization.to_buffer %[[B]] read_only
  // CHECK: %[[OUT:.*]] = memref.alloc(%{{.*}}) : memref<?x100xf16>
  // CHECK: memref.store %{{.*}}, %[[OUT]]
  // CHECK: scf.for %[[Z:.*]] =
  // CHECK: scf.for %[[Y:.*]] =
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[G]]
  // CHECK: func.call @tile(%[[XM]], %[[BM]], %[[OUT]], %[[S]], %[[I]], %[[Y]], %[[Z]], %[[G]], %c2, %c1)
  // CHECK: %[[R:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
  %r = axe.launch @tile grid(%g, %c2, %c1) ins(%x, %b : tensor<?x100xf16>, tensor<100xf16>) outs(%e, %s : tensor<?x100xf16>, f16) -> tensor<?x100xf16>
  // CHECK: return %[[R]]
  return %r : tensor<?x100xf16>
}

// Tokens and register tensors in a loop; storage read and written by other dialects; a buffer that is filled.
// CHECK-LABEL: func.func private @loop
axe.kernel @loop(%x: memref<4x64xf32>) threads(128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[ST:.*]] = memref.alloc() : memref<4xf32>
  %s = axe.alloc : memref<4xf32, #shared>
  // CHECK: memref.store %{{.*}}, %[[ST]]
  axe.fill %zero to %s : f32 to memref<4xf32, #shared>
  %first = axe.fill %zero : f32 -> tensor<64xf32, #axe.layout<S[64 : 1@thread]>>
  %start = axe.commit : !axe.token
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<64xf32>, i1)
  %sum:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %first, %t = %start) -> (tensor<64xf32, #axe.layout<S[64 : 1@thread]>>, !axe.token) {
    // A dropped dimension of extent 1.
    // CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<4x64xf32>
    %row = axe.slice %x[%i, %c0] : memref<4x64xf32> to memref<64xf32>
    %r = axe.copy %row : memref<64xf32> -> tensor<64xf32, #axe.layout<S[64 : 1@thread]>>
    %b = axe.map ins(%a, %r : tensor<64xf32, #axe.layout<S[64 : 1@thread]>>, tensor<64xf32, #axe.layout<S[64 : 1@thread]>>) -> tensor<64xf32, #axe.layout<S[64 : 1@thread]>> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      axe.yield %w : f32
    }
    // CHECK: memref.load %[[ST]]
    %e = memref.load %s[%i] : memref<4xf32, #shared>
    // CHECK: memref.store %{{.*}}, %[[ST]]
    memref.store %e, %s[%i] : memref<4xf32, #shared>
    %next = axe.commit : !axe.token
    scf.yield %b, %next : tensor<64xf32, #axe.layout<S[64 : 1@thread]>>, !axe.token
  }
  axe.return
}

// A range of a scope is done once, by all its members together; every warp for itself is a loop over the warps.
// CHECK-LABEL: func.func private @scopes
axe.kernel @scopes(%x: memref<4xf32>) threads(256) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  // CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00
  // CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00
  // CHECK: scf.for
  // CHECK-NEXT: memref.store %[[ONE]]
  axe.scope warpgroup [1, 2) {
    axe.fill %one to %x : f32 to memref<4xf32>
    // CHECK: scf.for %{{.*}} = %{{.*}} to %c4{{.*}} step
    // CHECK: scf.for
    // CHECK: memref.store %[[TWO]]
    axe.scope warp {
      axe.fill %two to %x : f32 to memref<4xf32>
    }
  }
  axe.return
}

// All of an argument's memory under other extents.
// CHECK-LABEL: func.func private @flat
// CHECK-SAME: (%[[X:.*]]: memref<3x4xf32>
axe.kernel @flat(%x: memref<3x4xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [1, 12], strides: [12, 1]
  %flat = memref.reinterpret_cast %x to offset: [0], sizes: [1, 12], strides: [12, 1] : memref<3x4xf32> to memref<1x12xf32, strided<[12, 1]>>
  // CHECK: memref.store %{{.*}}, %[[FLAT]][%{{.*}}, %{{.*}}]
  %s = axe.slice %flat[%c0, %c0] : memref<1x12xf32, strided<[12, 1]>> to memref<12xf32, strided<[1]>>
  axe.fill %zero to %s : f32 to memref<12xf32, strided<[1]>>
  axe.return
}
