// RUN: axe-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// Each numbered rule that an operation can break by itself.

trn.kernel @o1() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<64x128xf32>
  %v = trn.view %t[0, 0] sizes [32, 128] steps [2, 1] : !trn.sbuf<64x128xf32> to !trn.sbuf<32x128xf32>
  // expected-error@+1 {{'trn.memset' op (O1) dst: expected its first dimension, and no other, to count consecutive partitions}}
  trn.memset %v, 0.0 : !trn.sbuf<32x128xf32>
}

// -----

trn.kernel @o2() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x4xf32>
  %v = trn.view %t[32, 0] sizes [64, 4] : !trn.sbuf<128x4xf32> to !trn.sbuf<64x4xf32>
  // expected-error@+1 {{(O2) dst: expected 64 partitions to begin at a multiple of 64, got 32}}
  trn.memset %v, 0.0 : !trn.sbuf<64x4xf32>
}

// -----

trn.kernel @o3() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x40000xbf16>
  %v = trn.view %t[0, 0] sizes [128, 2] steps [1, 36000] : !trn.sbuf<128x40000xbf16> to !trn.sbuf<128x2xbf16>
  // expected-error@+1 {{(O3) dst: expected at most 4 free dimensions, sizes up to 65535 and steps up to 32767, got (step, size) [(36000, 2)]}}
  trn.memset %v, 0.0 : !trn.sbuf<128x2xbf16>
}

// -----

trn.kernel @case3() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x100000xui8>
  // expected-error@+1 {{(O4) dst: expected at most 65536 elements a partition in SBUF, got 100000}}
  trn.memset %t, 0.0 : !trn.sbuf<128x100000xui8>
}

// -----

trn.kernel @o5() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %v = trn.view %t[0, 32] sizes [128, 64] : !trn.sbuf<128x64xf32> to !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(O5) dst: expected indices 0 to 63 in dimension 1 of 't', got 32 to 95}}
  trn.memset %v, 0.0 : !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case5() chip("trn1") {
  %t = trn.alloc : !trn.psum<128x512xf32>
  %u = trn.alloc : !trn.sbuf<128x512xf32>
  // expected-error@+1 {{(O6) dst: the dma engine does not write psum}}
  trn.dma_copy %t, %u : !trn.psum<128x512xf32>, !trn.sbuf<128x512xf32>
}

// -----

trn.kernel @case6() chip("trn1") {
  %t = trn.alloc : !trn.psum<128x512xf32>
  // expected-error@+1 {{(O6) dst: the gpsimd engine does not write psum}}
  trn.memset %t, 0.0 on gpsimd : !trn.psum<128x512xf32>
}

// -----

trn.kernel @case7() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x512xf32>
  %u = trn.alloc : !trn.sbuf<128x512xf32>
  // expected-error@+1 {{(O7) expected engine vector or gpsimd on trn1, got scalar}}
  trn.tensor_copy %t, %u on scalar : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>
}

// -----

trn.kernel @case8() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<32x32xf32>
  %u = trn.alloc : !trn.sbuf<32x32xf32>
  // expected-error@+1 {{(O7) no engine of trn1 executes it}}
  trn.dma_transpose %t, %u : !trn.sbuf<32x32xf32>, !trn.sbuf<32x32xf32>
}

// -----

trn.kernel @case9() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x512xf32>
  %u = trn.alloc : !trn.sbuf<64x512xf32>
  // expected-error@+1 {{(O8) src: expected 128 partitions as in dst, got 64}}
  trn.tensor_copy %t, %u : !trn.sbuf<128x512xf32>, !trn.sbuf<64x512xf32>
}

// -----

trn.kernel @case10() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x512xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(O9) src: expected 512 elements a partition as in dst, got 64}}
  trn.tensor_copy %t, %u : !trn.sbuf<128x512xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @o10() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %v = trn.view %t[0, 0] sizes [128, 8] dims [0, -1] : !trn.sbuf<128x64xf32> to !trn.sbuf<128x8xf32>
  // expected-error@+1 {{(O10) dst: expected every element once, got a dimension that repeats}}
  trn.memset %v, 0.0 : !trn.sbuf<128x8xf32>
}

// -----

trn.kernel @case12() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(O11) operand0: expected one f32 element a partition, got 64 of f32}}
  trn.tensor_scalar %t, %u add(%u : !trn.sbuf<128x64xf32>) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case13() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x512xf32>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<64x512xbf16>
  // expected-error@+1 {{(MM1) expected stationary and moving with the same partitions, got 128 and 64}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<64x512xbf16>
}

// -----

trn.kernel @case14() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x512xf32>
  %a = trn.alloc : !trn.sbuf<128x256xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xbf16>
  // expected-error@+1 {{(MM2) expected at most 128 columns of stationary, got 256}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x256xbf16>, !trn.sbuf<128x512xbf16>
}

// -----

trn.kernel @case15() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x512xf32>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x1024xbf16>
  // expected-error@+1 {{(MM3) expected at most 512 columns of moving, got 1024}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x1024xbf16>
}

// -----

trn.kernel @case16() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x256xf32>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xbf16>
  // expected-error@+1 {{(MM4) expected dst of 128 x 512, got 128 x 256}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x256xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
}

// -----

trn.kernel @mm5() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x1024xf32>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xbf16>
  %v = trn.view %c[0, 256] sizes [128, 512] : !trn.psum<128x1024xf32> to !trn.psum<128x512xf32>
  // expected-error@+1 {{(MM5) expected dst inside one bank of 2048 bytes, got bytes 1024 to 3071 of 'c'}}
  trn.nc_matmul %v, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
}

// -----

trn.kernel @case18() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x512xf32>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xf32>
  // expected-error@+1 {{(MM6) expected two floats, f32 with f32 alone, got bf16 and f32}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xf32>
}

// -----

trn.kernel @case19() chip("trn1") {
  %c = trn.alloc : !trn.psum<128x512xbf16>
  %a = trn.alloc : !trn.sbuf<128x128xbf16>
  %w = trn.alloc : !trn.sbuf<128x512xbf16>
  // expected-error@+1 {{(MM7) expected dst of f32, got bf16}}
  trn.nc_matmul %c, %a, %w : !trn.psum<128x512xbf16>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
}

// -----

trn.kernel @case20() chip("trn1") {
  %t = trn.alloc : !trn.psum<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(TR1) expected dst of 64 x 128, got 128 x 64}}
  trn.nc_transpose %t, %u : !trn.psum<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case21() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<64x64xf32>
  %u = trn.alloc : !trn.sbuf<64x64xf32>
  // expected-error@+1 {{(TR2) expected at most 32 x 32, got 64 x 64}}
  trn.nc_transpose %t, %u on vector : !trn.sbuf<64x64xf32>, !trn.sbuf<64x64xf32>
}

// -----

trn.kernel @case22() chip("trn1") {
  %t = trn.alloc : !trn.psum<128x128xbf16>
  %u = trn.alloc : !trn.sbuf<128x128xbf16>
  // expected-error@+1 {{(TR3) expected dst of f32, got bf16}}
  trn.nc_transpose %t, %u : !trn.psum<128x128xbf16>, !trn.sbuf<128x128xbf16>
}

// -----

trn.kernel @case23() chip("trn2") {
  %t = trn.alloc : !trn.psum<128x128xf32>
  %u = trn.alloc : !trn.sbuf<128x128xbf16>
  // expected-error@+1 {{(TR3) expected dst of bf16, got f32}}
  trn.nc_transpose %t, %u : !trn.psum<128x128xf32>, !trn.sbuf<128x128xbf16>
}

// -----

trn.kernel @case24() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x512xf32>
  // expected-error@+1 {{(CP1) expected as many elements on both sides, got 8192 in dst and 65536 in src}}
  trn.dma_copy %t, %u : !trn.sbuf<128x64xf32>, !trn.sbuf<128x512xf32>
}

// -----

trn.kernel @case25() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(CP2) expected a predicate of u8, u16 or u32, got f32}}
  trn.tensor_copy_predicated %t, %u where %u : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case26() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xbf16>
  %m = trn.alloc : !trn.sbuf<128x64xui8>
  // expected-error@+1 {{(CP3) expected dst of bf16, got f32}}
  trn.tensor_copy_predicated %t, %u where %m : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xbf16>, !trn.sbuf<128x64xui8>
}

// -----

trn.kernel @case27() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.psum<128x64xf32>
  %m = trn.alloc : !trn.psum<128x64xui32>
  // expected-error@+1 {{(CP4) expected src or predicate in SBUF, got both in PSUM}}
  trn.tensor_copy_predicated %t, %u where %m : !trn.sbuf<128x64xf32>, !trn.psum<128x64xf32>, !trn.psum<128x64xui32>
}

// -----

trn.kernel @case28() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xi32>
  // expected-error@+1 {{(CP5) expected a value of i32, got 0.5}}
  trn.memset %t, 0.5 : !trn.sbuf<128x64xi32>
}

// -----

trn.kernel @case29() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(SH1) expected 32 entries of 0 to 31 or 255, got [0, 1]}}
  trn.nc_stream_shuffle %t, %u mask [0, 1] : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case30() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<16x64xf32>
  %u = trn.alloc : !trn.sbuf<16x64xf32>
  // expected-error@+1 {{(SH2) expected a multiple of 32 partitions and one type, got 16, f32 to f32}}
  trn.nc_stream_shuffle %t, %u mask [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : !trn.sbuf<16x64xf32>, !trn.sbuf<16x64xf32>
}

// -----

trn.kernel @case31() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(AC1) bias: expected one f32 element a partition, got 64 of f32}}
  trn.activation %t, exp(%u) bias(%u : !trn.sbuf<128x64xf32>) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case32() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  %s = trn.alloc : !trn.sbuf<128x1xf32>
  // expected-error@+1 {{(AC2) expected reduce_cmd with reduce_res, got none}}
  trn.activation %t, exp(%u) into(%s : !trn.sbuf<128x1xf32>) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case33() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.psum<128x64xf32>
  %v = trn.alloc : !trn.psum<128x64xf32>
  // expected-error@+1 {{(EW1) expected data1 or data2 in SBUF, got both in PSUM}}
  trn.tensor_tensor %t, add(%u, %v) : !trn.sbuf<128x64xf32>, !trn.psum<128x64xf32>, !trn.psum<128x64xf32>
}

// -----

trn.kernel @case34() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xi32>
  %u = trn.alloc : !trn.sbuf<128x64xi32>
  // expected-error@+1 {{(EW2) expected functions that are all arithmetic or all bitwise, got bitwise_and and add}}
  trn.tensor_scalar %t, %u bitwise_and(3.0) then add(1.0) : !trn.sbuf<128x64xi32>, !trn.sbuf<128x64xi32>
}

// -----

trn.kernel @case35() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xi32>
  // expected-error@+1 {{(EW3) expected integers of one type for a bitwise function, got f32, i32, i32}}
  trn.tensor_tensor %t, bitwise_or(%u, %u) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xi32>, !trn.sbuf<128x64xi32>
}

// -----

trn.kernel @case36() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x1xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(RD1) expected 1 to 1 dimensions to reduce, got 2}}
  trn.tensor_reduce %t, add(%u) axes 2 : !trn.sbuf<128x1xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case37() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(RD2) expected dst of 128 x 1, got 128 x 64}}
  trn.tensor_reduce %t, add(%u) axes 1 : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case38() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x1xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(RD3) no reduction of this kind is by less}}
  trn.tensor_reduce %t, less(%u) axes 1 : !trn.sbuf<128x1xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case39() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xi32>
  // expected-error@+1 {{(SE1) expected 1 steps, one for each free dimension of dst, got 2}}
  trn.iota %t pattern [1, 1] offset 0 channel 0 : !trn.sbuf<128x64xi32>
}

// -----

trn.kernel @case40() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x64xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(SE2) expected a comparison, got add}}
  trn.affine_select %t, %u else 0.0 pattern [1] offset 0 channel 1 add : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case41() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x6xf32>
  %u = trn.alloc : !trn.sbuf<128x1024xf32>
  // expected-error@+1 {{(BN1) expected at most 512 elements a partition, got 1024}}
  trn.bn_stats %t, %u : !trn.sbuf<128x6xf32>, !trn.sbuf<128x1024xf32>
}

// -----

trn.kernel @case42() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x2xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(BN1) expected triples, got 64 elements a partition}}
  trn.bn_aggr %t, %u : !trn.sbuf<128x2xf32>, !trn.sbuf<128x64xf32>
}

// -----

trn.kernel @case43() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x8xf32>
  %u = trn.alloc : !trn.sbuf<128x4xf32>
  // expected-error@+1 {{(MX1) expected 8 to 16384 elements a partition, got 4}}
  trn.max8 %t, %u : !trn.sbuf<128x8xf32>, !trn.sbuf<128x4xf32>
}

// -----

trn.kernel @case44() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x4xf32>
  %u = trn.alloc : !trn.sbuf<128x64xf32>
  // expected-error@+1 {{(MX2) expected 8 elements a partition, got 4}}
  trn.max8 %t, %u : !trn.sbuf<128x4xf32>, !trn.sbuf<128x64xf32>
}

// -----

func.func @outside(%t: !trn.sbuf<128x4xf32>) {
  // expected-error@+1 {{'trn.memset' op expected a trn.kernel around it, which names the chip}}
  trn.memset %t, 0.0 : !trn.sbuf<128x4xf32>
  return
}

// -----

trn.kernel @defined() chip("trn1") {
  %t = "test.tile"() : () -> !trn.sbuf<128x4xf32>
  // expected-error@+1 {{'trn.memset' op expected operands that come from trn.alloc, trn.view or the kernel's arguments}}
  trn.memset %t, 0.0 : !trn.sbuf<128x4xf32>
}

// -----

trn.kernel @word() chip("trn1") {
  %t = trn.alloc : !trn.sbuf<128x4xf32>
  // expected-error@+1 {{expected a function of two values, got 'divide'}}
  trn.tensor_scalar %t, %t divide(2.0) : !trn.sbuf<128x4xf32>, !trn.sbuf<128x4xf32>
}
