// RUN: axe-opt %s --axe-dispatch-schedules="target=trn1" -split-input-file -verify-diagnostics

// What threads have, and a NeuronCore has not.

// expected-error@+1 {{'axe.kernel': is a kernel of 32 threads, which trn1 has not: expected threads(1)}}
axe.kernel @threads(%x: memref<64x64xf32>) threads(32) {
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': a NeuronCore has no cluster around it}}
axe.kernel @cluster() threads(1) cluster(2, 1, 1) {
  axe.return
}

// -----

axe.kernel @scope() threads(1) {
  // expected-error@+1 {{'axe.scope': each engine has one stream of instructions, and no threads to give roles to}}
  axe.scope thread {
  }
  axe.return
}

// -----

axe.kernel @barrier() threads(1) {
  // expected-error@+1 {{'axe.barrier': engines wait for each other by what they read and write: expected none}}
  axe.barrier
  axe.return
}

// -----

axe.kernel @pipeline() threads(1) {
  // expected-error@+1 {{'axe.pipeline.create': tiles in a loop take turns by themselves}}
  %ring = axe.pipeline.create stages(2) : !axe.pipeline
  axe.return
}

// -----

axe.kernel @wait() threads(1) {
  // expected-error@+1 {{'axe.wait': copies and products are waited for by what reads them}}
  axe.wait
  axe.return
}

// -----

axe.kernel @thread() threads(1) {
  // expected-error@+1 {{'gpu.thread_id': a NeuronCore has no threads to number}}
  %t = gpu.thread_id x
  axe.return
}

// -----

axe.kernel @asynchronous(%x: memref<64x64xf32>) threads(1) {
  %s = axe.alloc : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  // expected-error@+1 {{'axe.copy': expected no 'async': transfers run beside the engines anyway}}
  axe.copy async %x to %s : memref<64x64xf32> to memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  axe.return
}

// -----

axe.kernel @accumulate(%x: memref<64x64xf32>, %y: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>>
  // expected-error@+1 {{'axe.copy': expected no 'accumulate': no transfer adds; read, add and write}}
  axe.copy %v to %y accumulate : tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>> to memref<64x64xf32>
  axe.return
}

// -----

axe.kernel @branch(%x: memref<64x64xf32>, %y: memref<64x64xf32>) threads(1) {
  %true = arith.constant true
  // expected-error@+1 {{'scf.if': branches on data have no instruction}}
  scf.if %true {
    %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>>
    axe.copy %v to %y : tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>> to memref<64x64xf32>
  }
  axe.return
}

// -----

// Arguments.

// expected-error@+1 {{'axe.kernel': argument 0 is a scalar: kernels of Trainium have tensors as arguments alone}}
axe.kernel @scalar(%n: index) threads(1) {
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 0: expected static extents: a kernel of Trainium is compiled for its sizes, got memref<?x64xf32>}}
axe.kernel @dynamic(%x: memref<?x64xf32>) threads(1) {
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 0: expected elements of 8, 16 or 32 bits, got f64}}
axe.kernel @wide(%x: memref<64x64xf64>) threads(1) {
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 0: expected a tensor in HBM in row-major order, got one at S[(64, 64) : (1@P, 1@F)] in sbuf}}
axe.kernel @on_chip(%x: memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>) threads(1) {
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 0 is read and written: expected a result of its own}}
axe.kernel @updated(%x: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>>
  axe.copy %v to %x : tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>> to memref<64x64xf32>
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 1 is read behind argument 0, which is written: expected those that are written last}}
axe.kernel @order(%y: memref<64x64xf32>, %x: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>>
  axe.copy %v to %y : tensor<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>> to memref<64x64xf32>
  axe.return
}

// -----

axe.kernel @block(%x: memref<64x64xf32>) threads(1) {
  // expected-error@+1 {{'gpu.block_id': expected a launch of the kernel, which says how many blocks there are}}
  %b = gpu.block_id x
  axe.return
}

// -----

// Layouts and boxes.

axe.kernel @no_layout(%x: memref<64x64xf32>) threads(1) {
  // expected-error@+1 {{'axe.copy': expected a layout on partitions (P) and elements of them (F), got tensor<64x64xf32>}}
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32>
  axe.return
}

// -----

axe.kernel @lanes(%x: memref<64x64xf32>) threads(1) {
  // expected-error@+1 {{'axe.copy': a layout on chip names partitions (P), elements of them (F) and banks of PSUM, got the axis lane}}
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #axe.layout<S[(32, 128) : (1@lane, 1@F)]>>
  axe.return
}

// -----

axe.kernel @shared() threads(1) {
  // expected-error@+1 {{'axe.alloc': a NeuronCore has no memory 'shared': expected sbuf or psum, or none for HBM}}
  %s = axe.alloc : memref<64x64xf32, #axe.space<shared>>
  axe.return
}

// -----

axe.kernel @partitions(%x: memref<256x64xf32>) threads(1) {
  // expected-error@+1 {{'axe.copy': a tile: (B1) expected partitions of 0 to 128, got 0 to 256}}
  %v = axe.copy %x : memref<256x64xf32> -> tensor<256x64xf32, #axe.layout<S[(256, 64) : (1@P, 1@F)]>>
  axe.return
}

// -----

axe.kernel @other_box(%x: memref<64x64xf32>) threads(1) {
  %c0 = arith.constant 0 : index
  %s = axe.alloc : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  // expected-error@+1 {{'axe.slice': the box lies at S[(16, 64) : (1@P, 1@F)], and its type says S[(16, 64) : (1@P, 2@F)]}}
  %b = axe.slice %s[%c0, %c0] : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>> to memref<16x64xf32, #axe.layout<S[(16, 64) : (1@P, 2@F)]>, #axe.space<sbuf>>
  axe.return
}

// -----

axe.kernel @outside() threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %s = axe.alloc : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  // The last box begins at 48.
  %b = axe.slice %s[%c16, %c0] : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>> to memref<32x64xf32, #axe.layout<S[(32, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  // expected-error@+1 {{'axe.slice': dimension 0 of the box reaches 16 elements behind its source in sbuf: it begins at up to 16}}
  %c = axe.slice %b[%c16, %c0] : memref<32x64xf32, #axe.layout<S[(32, 64) : (1@P, 1@F)]>, #axe.space<sbuf>> to memref<32x64xf32, #axe.layout<S[(32, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  axe.return
}

// -----

// expected-error@+1 {{'axe.kernel': argument 0: expected a tensor in HBM in row-major order, got one at S[(64, 64) : (1, 64)] in hbm: axe.view says another order}}
axe.kernel @columns(%x: memref<64x64xf32, #axe.layout<S[(64, 64) : (1, 64)]>>) threads(1) {
  axe.return
}

// -----

axe.kernel @swizzled(%x: memref<64x64xf32>) threads(1) {
  // expected-error@+1 {{'axe.view': no engine or transfer swizzles addresses, as Sw<3,0,3> o S[(64, 64) : (64, 1)] does}}
  %v = axe.view %x : memref<64x64xf32> to memref<64x64xf32, #axe.layout<Sw<3, 0, 3> o S[(64, 64) : (64, 1)]>>
  axe.return
}

// -----

axe.kernel @larger_view() threads(1) {
  %s = axe.alloc : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  // expected-error@+1 {{'axe.view': expected a view of at most 64 partitions of 64 elements, got 128 of 32}}
  %v = axe.view %s : memref<64x64xf32, #axe.layout<S[(64, 64) : (1@P, 1@F)]>, #axe.space<sbuf>> to memref<128x32xf32, #axe.layout<S[(128, 32) : (1@P, 1@F)]>, #axe.space<sbuf>>
  axe.return
}

// -----

// A digit of 128 partitions is crossed where boxes of 128 begin at multiples of 64.
axe.kernel @crosses() threads(1) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c384 = arith.constant 384 : index
  %s = axe.alloc : memref<512x64xf32, #axe.layout<S[(4, 128, 64) : (64@F, 1@P, 1@F)]>, #axe.space<sbuf>>
  scf.for %i = %c0 to %c384 step %c64 {
    // expected-error@+1 {{'axe.slice': dimension 0: a box of 128 that begins at multiples of less crosses digits of 128}}
    %b = axe.slice %s[%i, %c0] : memref<512x64xf32, #axe.layout<S[(4, 128, 64) : (64@F, 1@P, 1@F)]>, #axe.space<sbuf>> to memref<128x64xf32, #axe.layout<S[(128, 64) : (1@P, 1@F)]>, #axe.space<sbuf>>
  }
  axe.return
}

// -----

// Loops.

axe.kernel @unknown_bound(%x: memref<64x64xf32>) threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    // expected-error@+1 {{'scf.for': expected bounds and a step known when compiling}}
    scf.for %j = %c0 to %i step %c1 {
    }
  }
  axe.return
}

// -----

axe.kernel @carries_index() threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{'scf.for': carries a scalar or storage: expected tensors alone}}
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %c0) -> (index) {
    %y = arith.addi %x, %c1 : index
    scf.yield %y : index
  }
  axe.return
}

// -----

axe.kernel @hilbert() threads(1) {
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{'axe.for_tiles': Hilbert's curve is no nest of loops: expected rows, columns, groups or snake}}
  axe.for_tiles (%i, %j) in (%c4, %c4) raster(hilbert) {
  }
  axe.return
}

// -----

// What fits no memory: the largest holders are named.

#wide = #axe.layout<S[(128, 32768) : (1@P, 1@F)]>
axe.kernel @too_large(%x: memref<128x32768xf32>, %y: memref<128x32768xf32>) threads(1) {
  %a = axe.copy %x {trn.name = "a"} : memref<128x32768xf32> -> tensor<128x32768xf32, #wide>
  // expected-error@+1 {{'b' does not fit sbuf: 180224 bytes a partition, 262144 are needed at once: 'a' 131072, 'b' 131072, all told}}
  %b = axe.map ins(%a : tensor<128x32768xf32, #wide>) -> tensor<128x32768xf32, #wide> attributes {trn.name = "b"} {
  ^bb0(%u: f32):
    %e = math.exp %u : f32
    axe.yield %e : f32
  }
  axe.copy %a to %y : tensor<128x32768xf32, #wide> to memref<128x32768xf32>
  axe.copy %b to %y : tensor<128x32768xf32, #wide> to memref<128x32768xf32>
  axe.return
}

// -----

// Layouts that no instruction takes: each schedule says why.

// K on the partitions of both, but not the same k on the same partition.
#a = #axe.layout<S[(2, 128, 64) : (64@F, 1@P, 1@F)]>
#b = #axe.layout<S[(128, 2, 512) : (1@P, 512@F, 1@F)]>
#c = #axe.layout<S[(64, 512) : (1@P, 1@F)]>
axe.kernel @orders(%A: memref<256x64xbf16>, %B: memref<256x512xbf16>) threads(1) {
  %a = axe.copy %A : memref<256x64xbf16> -> tensor<256x64xbf16, #a>
  %b = axe.copy %B : memref<256x512xbf16> -> tensor<256x512xbf16, #b>
  // expected-error@+1 {{lhs stationary: k: a digit of 64 moves by 2 in lhs, 1 in rhs partitions: the same index is not on the same partition}}
  %c = axe.gemm %a, %b {trans_a} : tensor<256x64xbf16, #a>, tensor<256x512xbf16, #b> -> tensor<64x512xf32, #c>
  axe.return
}

// -----

// An operator that has no form on the engines.
#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
axe.kernel @floor(%x: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #t>
  %w = axe.map ins(%v : tensor<64x64xf32, #t>) -> tensor<64x64xf32, #t> {
  ^bb0(%a: f32):
    // expected-error@+1 {{'math.floor' is no function of an engine}}
    %f = math.floor %a : f32
    axe.yield %f : f32
  }
  axe.return
}

// -----

#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
#r = #axe.layout<S[64 : 1@P]>
axe.kernel @bits(%x: memref<64x64xi32>) threads(1) {
  %v = axe.copy %x : memref<64x64xi32> -> tensor<64x64xi32, #t>
  // expected-error@+1 {{'axe.reduce' of i32: the engines reduce floats by add, mul, max and min}}
  %w = axe.reduce <add> %v dims [1] : tensor<64x64xi32, #t> -> tensor<64xi32, #r>
  axe.return
}

// -----

// A schedule that the layouts do not give.
#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
axe.kernel @forced(%x: memref<64x64xf32>) threads(1) {
  // expected-error@+1 {{'axe.copy' has no schedule "tma.load" on trn1: expected one of dma}}
  %v = axe.copy %x schedule = "tma.load" : memref<64x64xf32> -> tensor<64x64xf32, #t>
  axe.return
}

// -----

// The launch says otherwise than the kernel what is read and written.
#t = #axe.layout<S[(64, 64) : (1@P, 1@F)]>
axe.kernel @swapped(%x: memref<64x64xf32>, %y: memref<64x64xf32>) threads(1) {
  %v = axe.copy %x : memref<64x64xf32> -> tensor<64x64xf32, #t>
  axe.copy %v to %y : tensor<64x64xf32, #t> to memref<64x64xf32>
  axe.return
}
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'axe.launch': expected 1 tensors among ins and 1 among outs, as the kernel reads and writes them, got 2 and 0}}
  axe.launch @swapped grid(%c1, %c1, %c1) ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>)
  return
}
