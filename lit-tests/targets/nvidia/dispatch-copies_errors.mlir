// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules -split-input-file -verify-diagnostics

// What copies of runs and copies that add do not take, and what it would have to be.
axe.kernel @odd(%x: memref<12xf16>) threads(32) {
  %s = axe.alloc : memref<12xf16, #axe.space<shared>>
  // expected-error @below {{bulk.store: a run of 24 bytes: expected a multiple of 16}}
  axe.copy async %s to %x schedule = "bulk.store" : memref<12xf16, #axe.space<shared>> to memref<12xf16>
  axe.return
}

// -----

axe.kernel @origin(%x: memref<64xf16>) threads(32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c48 = arith.constant 48 : index
  %s = axe.alloc : memref<16xf16, #axe.space<shared>>
  scf.for %m = %c0 to %c48 step %c4 {
    %t = axe.slice %x[%m] : memref<64xf16> to memref<16xf16>
    // expected-error @below {{bulk.store: a run at a multiple of 8 bytes of global memory: expected one of 16}}
    axe.copy async %s to %t schedule = "bulk.store" : memref<16xf16, #axe.space<shared>> to memref<16xf16>
  }
  axe.return
}

// -----

axe.kernel @apart(%x: memref<512xf16, strided<[2]>>) threads(32) {
  %s = axe.alloc : memref<512xf16, #axe.space<shared>>
  // expected-error @below {{bulk.store: 512 runs of elements that follow each other on both sides: expected at most 256}}
  axe.copy async %s to %x schedule = "bulk.store" : memref<512xf16, #axe.space<shared>> to memref<512xf16, strided<[2]>>
  axe.return
}

// -----

axe.kernel @edge(%x: memref<100xf16>, %n: index) threads(64) {
  %c16 = arith.constant 16 : index
  %m = arith.muli %n, %c16 : index
  %s = axe.alloc : memref<16xf16, #axe.space<shared>>
  %t = axe.slice %x[%m] : memref<100xf16> to memref<16xf16>
  // expected-error @below {{bulk.store: the box may reach outside its source, and a run is copied as a whole}}
  axe.copy async %s to %t schedule = "bulk.store" : memref<16xf16, #axe.space<shared>> to memref<16xf16>
  axe.return
}

// -----

axe.kernel @bytes(%x: memref<64xi8>) threads(32) {
  %s = axe.alloc : memref<64xi8, #axe.space<shared>>
  // expected-error @below {{ld.red.scalar: sums of i8: expected f16, bf16, f32, f64, i32 or i64}}
  axe.copy async %s to %x accumulate : memref<64xi8, #axe.space<shared>> to memref<64xi8>
  axe.return
}

// -----

// A store would lose what others add.
axe.kernel @stored(%x: memref<64xf16>) threads(32) {
  %s = axe.alloc : memref<64xf16, #axe.space<shared>>
  // expected-error @below {{'axe.copy' has no schedule "bulk.store" on sm_90a: expected one of tma.store, ld.red.scalar}}
  axe.copy async %s to %x accumulate schedule = "bulk.store" : memref<64xf16, #axe.space<shared>> to memref<64xf16>
  axe.return
}
