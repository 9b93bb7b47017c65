// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// Of columns that no CTA holds, maximum and sum of exponentials are formed of those of parts: a kernel reads x once, the other merges.
// CHECK-LABEL: func.func @columns
// CHECK: axe.launch @columns_0_strided_rows {{.*}} ins(%{{.*}} : tensor<64x256x4096xf32>) {{.*}} -> tensor<64x4096xf32>, tensor<64x4096xf32>
// CHECK: axe.launch @columns_1_strided_rows {{.*}} -> tensor<1x4096xf32>
// CHECK-NOT: axe.launch
// CHECK: return
// A part of minus infinities alone is less zero, so that its sum is zero.
// CHECK: axe.kernel @columns_0_strided_rows
// CHECK: arith.cmpf oeq
// CHECK: math.exp {{.*}}{axe.reaches_one}
func.func @columns(%x: tensor<16384x4096xf32>) -> tensor<4096xf32> {
  %z = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %m = axe.reduce <max> %x dims [0] : tensor<16384x4096xf32> -> tensor<4096xf32>
  %f = axe.map ins(%m : tensor<4096xf32>) -> tensor<4096xf32> {
  ^bb0(%u: f32):
    %s = math.absf %u : f32
    %i = arith.cmpf oeq, %s, %inf : f32
    %o = arith.select %i, %z, %u : f32
    axe.yield %o : f32
  }
  %ms = axe.broadcast %f dims [0] : tensor<4096xf32> -> tensor<16384x4096xf32>
  %e = axe.map ins(%x, %ms : tensor<16384x4096xf32>, tensor<16384x4096xf32>) -> tensor<16384x4096xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %o = math.exp %d : f32
    axe.yield %o : f32
  }
  %s = axe.reduce <add> %e dims [0] : tensor<16384x4096xf32> -> tensor<4096xf32>
  %r = axe.map ins(%s, %f : tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %u : f32
    %o = arith.addf %l, %v : f32
    axe.yield %o : f32
  }
  return %r : tensor<4096xf32>
}

// -----

// Where exponentials go back along the columns, x is read for their maximum and sum once, and once more.
// CHECK-LABEL: func.func @softmax
// CHECK: axe.launch @softmax_0_strided_rows {{.*}} ins(%{{.*}} : tensor<64x256x4096xf16>) {{.*}} -> tensor<64x4096xf16>, tensor<64x4096xf16>
// CHECK-COUNT-2: axe.launch {{.*}}tensor<1x64x4096xf16>
// CHECK: axe.launch {{.*}}_map {{.*}} -> tensor<16384x4096xf16>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @softmax(%x: tensor<16384x4096xf16>) -> tensor<16384x4096xf16> {
  %m = axe.reduce <max> %x dims [0] : tensor<16384x4096xf16> -> tensor<4096xf16>
  %ms = axe.broadcast %m dims [0] : tensor<4096xf16> -> tensor<16384x4096xf16>
  %e = axe.map ins(%x, %ms : tensor<16384x4096xf16>, tensor<16384x4096xf16>) -> tensor<16384x4096xf16> {
  ^bb0(%u: f16, %v: f16):
    %d = arith.subf %u, %v : f16
    %o = math.exp %d : f16
    axe.yield %o : f16
  }
  %s = axe.reduce <add> %e dims [0] : tensor<16384x4096xf16> -> tensor<4096xf16>
  %ss = axe.broadcast %s dims [0] : tensor<4096xf16> -> tensor<16384x4096xf16>
  %r = axe.map ins(%e, %ss : tensor<16384x4096xf16>, tensor<16384x4096xf16>) -> tensor<16384x4096xf16> {
  ^bb0(%u: f16, %v: f16):
    %o = arith.divf %u, %v : f16
    axe.yield %o : f16
  }
  return %r : tensor<16384x4096xf16>
}

// -----

// Columns that a CTA holds stay.
// CHECK-LABEL: func.func @held
// CHECK: axe.launch @held_0_strided_rows {{.*}} ins(%{{.*}} : tensor<1x1024x65536xf32>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @held(%x: tensor<1024x65536xf32>) -> tensor<65536xf32> {
  %m = axe.reduce <max> %x dims [0] : tensor<1024x65536xf32> -> tensor<65536xf32>
  %ms = axe.broadcast %m dims [0] : tensor<65536xf32> -> tensor<1024x65536xf32>
  %e = axe.map ins(%x, %ms : tensor<1024x65536xf32>, tensor<1024x65536xf32>) -> tensor<1024x65536xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %o = math.exp %d : f32
    axe.yield %o : f32
  }
  %s = axe.reduce <add> %e dims [0] : tensor<1024x65536xf32> -> tensor<65536xf32>
  %r = axe.map ins(%s, %m : tensor<65536xf32>, tensor<65536xf32>) -> tensor<65536xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %u : f32
    %o = arith.addf %l, %v : f32
    axe.yield %o : f32
  }
  return %r : tensor<65536xf32>
}

// -----

// Few long rows are cut.
// CHECK-LABEL: func.func @rows
// CHECK: axe.launch @rows_0_rows {{.*}} -> tensor<{{[0-9]+}}xf32>, tensor<{{[0-9]+}}xf32>
// CHECK: axe.launch @rows_1_rows {{.*}} -> tensor<8xf32>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @rows(%x: tensor<8x100000xf32>) -> tensor<8xf32> {
  %z = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %m = axe.reduce <max> %x dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %f = axe.map ins(%m : tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%u: f32):
    %s = math.absf %u : f32
    %i = arith.cmpf oeq, %s, %inf : f32
    %o = arith.select %i, %z, %u : f32
    axe.yield %o : f32
  }
  %ms = axe.broadcast %f dims [1] : tensor<8xf32> -> tensor<8x100000xf32>
  %e = axe.map ins(%x, %ms : tensor<8x100000xf32>, tensor<8x100000xf32>) -> tensor<8x100000xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %o = math.exp %d : f32
    axe.yield %o : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<8x100000xf32> -> tensor<8xf32>
  %r = axe.map ins(%s, %f : tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %u : f32
    %o = arith.addf %l, %v : f32
    axe.yield %o : f32
  }
  return %r : tensor<8xf32>
}

// -----

// Exponentials less something else than their maximum are no such sum.
// CHECK-LABEL: func.func @other
// CHECK-NOT: tensor<64x256x4096xf32>
// CHECK: axe.kernel
func.func @other(%x: tensor<16384x4096xf32>) -> tensor<4096xf32> {
  %m = axe.reduce <min> %x dims [0] : tensor<16384x4096xf32> -> tensor<4096xf32>
  %ms = axe.broadcast %m dims [0] : tensor<4096xf32> -> tensor<16384x4096xf32>
  %e = axe.map ins(%x, %ms : tensor<16384x4096xf32>, tensor<16384x4096xf32>) -> tensor<16384x4096xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %o = math.exp %d : f32
    axe.yield %o : f32
  }
  %s = axe.reduce <add> %e dims [0] : tensor<16384x4096xf32> -> tensor<4096xf32>
  %r = axe.map ins(%s, %m : tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %u : f32
    %o = arith.addf %l, %v : f32
    axe.yield %o : f32
  }
  return %r : tensor<4096xf32>
}
