// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules

// Sums to rows that no tensor map takes: through subtiles that the threads read back along their rows.
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
#subtile = #axe.layout<S[(4, 2, 8, 1, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

// Rows of 4 bytes' multiples: a warp stores one of 64 columns at once, two of each thread's.
// CHECK-LABEL: kernel @pairs
// CHECK: axe.copy -> st.staged
// CHECK-NEXT: not tma.store.staged: a stride of 2052 bytes: expected a positive multiple of 16 below 2^40
// CHECK-NEXT: | 1 subtiles of 64 x 64 for each of 1 parts, through 4 slots
// CHECK: m8n8.x4
// CHECK: | by rows: address = (t / 32 mod 4) * 64 + (t / 1 mod 32) * 2
// CHECK-NEXT: | r[0..2] <-> m[address + 0]
// CHECK-NEXT: | r[2..4] <-> m[address + 256]
// CHECK: | address = (t / 32 mod 4) * 1026 + (t / 1 mod 32) * 2
// CHECK-NEXT: | r[0..2] <-> m[address + 0]
// CHECK-NEXT: | r[2..4] <-> m[address + 4104]

// Rows of 2 bytes' multiples: half a row of one element of each thread.
// CHECK-LABEL: kernel @odd
// CHECK: axe.copy -> st.staged
// CHECK-NEXT: not tma.store.staged: a stride of 2050 bytes
// CHECK: | address = (t / 32 mod 4) * 1025 + (t / 1 mod 32) * 1
// CHECK-NEXT: | r[0..1] <-> m[address + 0]
// CHECK-NEXT: | r[1..2] <-> m[address + 32]
// CHECK-NEXT: | r[2..3] <-> m[address + 4100]

// Four lanes with two of 32 bits each fill a sector as it is; one at a time they do not.
// CHECK-LABEL: kernel @words
// CHECK: axe.copy -> st.vector
// CHECK-NEXT: not tma.store.staged: a stride of 4104 bytes
// CHECK-NEXT: not st.staged: the threads' own elements fill whole sectors of 32 bytes
// CHECK: axe.copy -> st.staged
// CHECK-NEXT: not tma.store.staged: a stride of 4100 bytes

// CHECK-LABEL: kernel @narrow
// CHECK: axe.copy -> st.vector
// CHECK-NEXT: not tma.store.staged: 8 columns: expected a multiple of 16, subtiles of 32 bytes or more
// CHECK-NEXT: not st.staged: 8 columns: expected a multiple of 16, subtiles of 32 bytes or more

// Strides of columns; without roles; without room.
// CHECK-LABEL: kernel @columns
// CHECK: axe.copy -> st.vector
// CHECK: not st.staged: expected rows of consecutive elements
// CHECK-LABEL: kernel @alone
// CHECK: axe.copy -> st.vector
// CHECK: not st.staged: expected a kernel with roles
// CHECK-LABEL: kernel @full
// CHECK: axe.copy -> st.vector
// CHECK: not st.staged: subtiles take 8192 bytes of shared memory, and {{[0-9]+}} are left

// No fence of the accelerator's proxy, and one barrier a subtile. Rows and columns that do not exist leave nothing to store: one
// comparison a vector.
// CHECK: gpu.func @pairs
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK-NOT: nvvm.fence.proxy
// CHECK: nvvm.barrier id
// CHECK-NOT: nvvm.barrier id
// CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> vector<2xf16>
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: %[[LEFT:.*]] = arith.select %[[INSIDE]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %[[LEFT]]
// CHECK: scf.if %[[EXISTS]]
// CHECK: llvm.store {{.*}} : vector<2xf16>, !llvm.ptr<1>
axe.kernel @pairs(%x: memref<64x64xf32>, %y: memref<1000x1026xf16>) threads(256) {
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %row = arith.muli %block, %c64 : index
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
    %h = axe.cast %v : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
    %to = axe.slice %y[%row, %row] : memref<1000x1026xf16> to memref<64x64xf16, strided<[1026, 1]>>
    axe.copy %h to %to : tensor<64x64xf16, #sums> to memref<64x64xf16, strided<[1026, 1]>>
  }
  axe.return
}

axe.kernel @odd(%x: memref<64x64xf32>, %y: memref<1000x1025xf16>) threads(256) {
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %row = arith.muli %block, %c64 : index
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
    %h = axe.cast %v : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
    %to = axe.slice %y[%row, %row] : memref<1000x1025xf16> to memref<64x64xf16, strided<[1025, 1]>>
    axe.copy %h to %to : tensor<64x64xf16, #sums> to memref<64x64xf16, strided<[1025, 1]>>
  }
  axe.return
}

axe.kernel @words(%x: memref<64x64xf32>, %y: memref<1000x1026xf32>, %z: memref<1000x1025xf32>) threads(256) {
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %row = arith.muli %block, %c64 : index
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
    %to = axe.slice %y[%row, %row] : memref<1000x1026xf32> to memref<64x64xf32, strided<[1026, 1]>>
    axe.copy %v to %to : tensor<64x64xf32, #sums> to memref<64x64xf32, strided<[1026, 1]>>
    %too = axe.slice %z[%row, %row] : memref<1000x1025xf32> to memref<64x64xf32, strided<[1025, 1]>>
    axe.copy %v to %too : tensor<64x64xf32, #sums> to memref<64x64xf32, strided<[1025, 1]>>
  }
  axe.return
}

axe.kernel @narrow(%x: memref<64x8xf32>, %y: memref<64x8xf16, strided<[9, 1]>>) threads(256) {
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x8xf32> -> tensor<64x8xf32, #subtile>
    %h = axe.cast %v : tensor<64x8xf32, #subtile> -> tensor<64x8xf16, #subtile>
    axe.copy %h to %y : tensor<64x8xf16, #subtile> to memref<64x8xf16, strided<[9, 1]>>
  }
  axe.return
}

axe.kernel @columns(%x: memref<64x64xf32>, %y: memref<64x64xf16, strided<[1, 65]>>) threads(256) {
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
    %h = axe.cast %v : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
    axe.copy %h to %y : tensor<64x64xf16, #sums> to memref<64x64xf16, strided<[1, 65]>>
  }
  axe.return
}

axe.kernel @alone(%x: memref<64x64xf32>, %y: memref<64x64xf16, strided<[65, 1]>>) threads(128) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
  %h = axe.cast %v : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
  axe.copy %h to %y : tensor<64x64xf16, #sums> to memref<64x64xf16, strided<[65, 1]>>
  axe.return
}

axe.kernel @full(%x: memref<64x64xf32>, %y: memref<64x64xf16, strided<[65, 1]>>) threads(256) {
  %s = axe.alloc : memref<57600xf32, #axe.space<shared>>
  axe.scope warpgroup [1, 2) {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #sums>
    %h = axe.cast %v : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
    axe.copy %h to %y : tensor<64x64xf16, #sums> to memref<64x64xf16, strided<[65, 1]>>
  }
  %zero = arith.constant 0.0 : f32
  axe.fill %zero to %s : f32 to memref<57600xf32, #axe.space<shared>>
  axe.return
}
