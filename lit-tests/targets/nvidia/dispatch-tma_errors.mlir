// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

// What the accelerator does not take, and what it would have to be.
axe.kernel @strides(%x: memref<16x9xf32>) threads(32) {
  %s = axe.alloc : memref<16x9xf32, #axe.layout<S[144 : 1]>, #axe.space<shared>>
  // expected-error @below {{multiple of 16}}
  axe.copy async %s to %x schedule = "tma.store" : memref<16x9xf32, #axe.layout<S[144 : 1]>, #axe.space<shared>> to memref<16x9xf32>
  axe.return
}

// -----

#other = #axe.layout<Sw<2, 4, 3> o S[(64, 64) : (64, 1)]>
axe.kernel @swizzle(%x: memref<64x64xf16>) threads(32) {
  %s = axe.alloc : memref<64x64xf16, #other, #axe.space<shared>>
  // expected-error @below {{the accelerator has no swizzle Sw<2,4,3> on elements of 2 bytes: expected 1 to 3 bits that move 16 bytes by rows of 128}}
  axe.copy async %s to %x schedule = "tma.store" : memref<64x64xf16, #other, #axe.space<shared>> to memref<64x64xf16>
  axe.return
}

// -----

// The accelerator stops on an innermost coordinate that is no multiple of 16 bytes.
axe.kernel @origin(%x: memref<64x64xf16>, %n: index) threads(32) {
  %c0 = arith.constant 0 : index
  %s = axe.alloc : memref<16x16xf16, #axe.space<shared>>
  %t = axe.slice %x[%c0, %n] : memref<64x64xf16> to memref<16x16xf16, strided<[64, 1]>>
  // expected-error @below {{the tile begins at a multiple of 2 bytes: expected one of 16}}
  axe.copy async %s to %t schedule = "tma.store" : memref<16x16xf16, #axe.space<shared>> to memref<16x16xf16, strided<[64, 1]>>
  axe.return
}

// -----

axe.kernel @columns(%x: memref<64x64xf16, strided<[1, 64]>>) threads(32) {
  %s = axe.alloc : memref<64x64xf16, #axe.space<shared>>
  // expected-error @below {{tma.store: the inner box is 2 bytes: expected a multiple of 16}}
  axe.copy async %s to %x schedule = "tma.store" : memref<64x64xf16, #axe.space<shared>> to memref<64x64xf16, strided<[1, 64]>>
  axe.return
}

// -----

axe.kernel @pad(%x: memref<64x64xf16>) threads(64) {
  %one = arith.constant 1.0 : f16
  %s = axe.alloc : memref<64x64xf16, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    // expected-error @below {{tma.load: elements that do not exist become zero, and the copy asks for others}}
    axe.copy async %x to %s pad %one : f16 signal %slot schedule = "tma.load" : memref<64x64xf16> to memref<64x64xf16, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warp [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// -----

axe.kernel @direction(%x: memref<64x64xf16>) threads(64) {
  %s = axe.alloc : memref<64x64xf16, #axe.space<shared>>
  // expected-error @below {{tma.store: expected a copy from shared to global memory}}
  axe.copy async %x to %s schedule = "tma.store" : memref<64x64xf16> to memref<64x64xf16, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @synchronous(%x: memref<64x64xf16>) threads(64) {
  %s = axe.alloc : memref<64x64xf16, #axe.space<shared>>
  // expected-error @below {{tma.store: the copy is not asynchronous}}
  axe.copy %s to %x schedule = "tma.store" : memref<64x64xf16, #axe.space<shared>> to memref<64x64xf16>
  axe.return
}

// -----

#sums = #axe.layout<S[(4, 2, 8, 1, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @subtiles(%x: memref<64x8xf16>, %y: memref<64x8xf32>) threads(128) {
  axe.scope warpgroup [0, 1) {
    %v = axe.copy %y : memref<64x8xf32> -> tensor<64x8xf32, #sums>
    %h = axe.cast %v : tensor<64x8xf32, #sums> -> tensor<64x8xf16, #sums>
    // expected-error @below {{tma.store.staged: 8 columns: expected a multiple of 16, subtiles of 32 bytes or more}}
    axe.copy %h to %x schedule = "tma.store.staged" : tensor<64x8xf16, #sums> to memref<64x8xf16>
  }
  axe.return
}

// -----

#sums = #axe.layout<S[(4, 2, 8, 2, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
axe.kernel @rows(%y: memref<64x16xf32>) threads(128) {
  %s = axe.alloc : memref<64x16xf32, #axe.space<shared>>
  axe.scope warpgroup [0, 1) {
    %v = axe.copy %y : memref<64x16xf32> -> tensor<64x16xf32, #sums>
    // expected-error @below {{st.staged: expected a copy to global memory}}
    axe.copy %v to %s schedule = "st.staged" : tensor<64x16xf32, #sums> to memref<64x16xf32, #axe.space<shared>>
  }
  axe.return
}
