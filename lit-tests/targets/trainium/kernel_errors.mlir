// RUN: axe-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{(K1) expected chip trn1 or trn2, got "trn9"}}
trn.kernel @chip() chip("trn9") {
}

// -----

// expected-error@+1 {{(K2) expected arguments in HBM, got '!trn.sbuf<128x4xf32>'}}
trn.kernel @argument(%x: !trn.sbuf<128x4xf32>) chip("trn1") {
}

// -----

// expected-error@+1 {{(K2) expected different names, got "x" twice}}
"trn.kernel"() <{sym_name = "names", chip = "trn1", inputs = 2, arg_names = ["x", "x"]}> ({
^bb0(%0: !trn.hbm<4xf32>, %1: !trn.hbm<4xf32>):
}) : () -> ()

// -----

// expected-error@+1 {{(T1) expected 2 to 8 extents, got 1}}
func.func private @rank(!trn.sbuf<128xf32>)

// -----

// expected-error@+1 {{(T1) expected extents of 1 to 2^40, got 0}}
func.func private @extent(!trn.hbm<0x4xf32>)

// -----

// expected-error@+1 {{(T2) expected elements of bf16, f16, f32, f8E4M3FN, f8E5M2 or integers of 8, 16 or 32 bits, got 'f64'}}
func.func private @element(!trn.hbm<4xf64>)

// -----

trn.kernel @partitions() chip("trn1") {
  // expected-error@+1 {{'trn.alloc' op (B1) expected partitions of 0 to 128, got 0 to 256}}
  %t = trn.alloc : !trn.sbuf<256x4xf32>
}

// -----

trn.kernel @capacity() chip("trn1") {
  // expected-error@+1 {{(B2) expected at most 180224 bytes a partition in sbuf of trn1, got 196608}}
  %t = trn.alloc copies(3) : !trn.sbuf<128x32768xbf16>
}

// -----

trn.kernel @bank() chip("trn1") {
  // expected-error@+1 {{(B3) expected a multiple of 2048 bytes, the beginning of a bank, got 1024}}
  %t = trn.alloc at(0, 1024) : !trn.psum<128x512xf32>
}

// -----

trn.kernel @banks() chip("trn1") {
  // expected-error@+1 {{(B4) expected at most 16384 bytes a partition in psum of trn1, got 18432}}
  %t = trn.alloc copies(9) : !trn.psum<128x512xf32>
}

// -----

trn.kernel @copies() chip("trn1") {
  // expected-error@+1 {{expected 1 to 1024 copies, got 0}}
  %t = trn.alloc copies(0) : !trn.sbuf<128x4xf32>
}

// -----

// expected-error@+1 {{'trn.alloc' op expected a trn.kernel around it, which names the chip}}
%t = trn.alloc : !trn.sbuf<128x4xf32>

// -----

trn.kernel @origins(%x: !trn.hbm<256x512xf32>) chip("trn1") {
  // expected-error@+1 {{'trn.view' op (V1) expected 2 origins, got 1}}
  %v = trn.view %x[0] sizes [128, 512] : !trn.hbm<256x512xf32> to !trn.hbm<128x512xf32>
}

// -----

trn.kernel @sizes(%x: !trn.hbm<256x512xf32>) chip("trn1") {
  // expected-error@+1 {{(V2) expected 2 sizes and steps, got 1 and 1}}
  %v = trn.view %x[0, 0] sizes [128] : !trn.hbm<256x512xf32> to !trn.hbm<128xf32>
}

// -----

trn.kernel @dims(%x: !trn.hbm<256x512xf32>) chip("trn1") {
  // expected-error@+1 {{(V3) expected dims of 0 to 1 or -1, got 2}}
  %v = trn.view %x[0, 0] sizes [128] dims [2] : !trn.hbm<256x512xf32> to !trn.hbm<128xf32>
}

// -----

trn.kernel @result(%x: !trn.hbm<256x512xf32>) chip("trn1") {
  // expected-error@+1 {{(V4) expected a result of 128x512 f32 in hbm}}
  %v = trn.view %x[0, 0] sizes [128, 512] : !trn.hbm<256x512xf32> to !trn.hbm<128x256xf32>
}

// -----

trn.kernel @index(%x: !trn.hbm<256x512xf32>) chip("trn1") {
  %c1 = arith.constant 1 : index
  %a = arith.maxui %c1, %c1 : index
  // expected-error@+1 {{(V5) expected an index of constants, variables of scf.for}}
  %v = trn.view %x[%a, 0] sizes [128, 512] : !trn.hbm<256x512xf32> to !trn.hbm<128x512xf32>
}
