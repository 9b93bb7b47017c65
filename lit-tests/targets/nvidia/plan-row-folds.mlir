// What loops normalise rows by is formed of the rows by the lanes that have their points, where a warp has whole rows: one kernel reads and writes
// each tensor once.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=dispatched" --split-input-file | FileCheck %s --check-prefix=PLAN

// A softmax that is stored as heads: a thread has four elements, eight lanes a row; what the exponentials take is the row's largest element.
// CHECK-LABEL: func.func @heads
// CHECK: axe.launch @heads_0_loops grid(%{{.*}}) ins(%{{.*}} : tensor<64x4x32xf32>) outs(%{{.*}} : tensor<4x64x32xf32>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @heads_0_loops(%[[X:.*]]: memref<64x4x32xf32>
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[MOST:.*]] = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[M:.*]] = %{{.*}})
// CHECK: %[[E:.*]] = memref.load %[[X]][%[[J]], %[[I]], %[[K]]]
// CHECK: arith.maximumf %[[M]], %[[E]]
// CHECK: scf.for
// CHECK: arith.subf %{{.*}}, %[[MOST]]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK-NOT: scf.for
// PLAN-LABEL: func.func @heads
// PLAN: plan = {bits = 32 : i64, lanes = 8 : i64, parallel = [0, 1, 2], reductions = [], vector = 4 : i64}
// PLAN-SAME: schedule = "loops.threads"
func.func @heads(%x: tensor<64x4x32xf32>) -> tensor<4x64x32xf32> {
  %m = axe.reduce <max> %x dims [2] : tensor<64x4x32xf32> -> tensor<64x4xf32>
  %mb = axe.broadcast %m dims [2] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %e = axe.map ins(%x, %mb : tensor<64x4x32xf32>, tensor<64x4x32xf32>) -> tensor<64x4x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %s = axe.reduce <add> %e dims [2] : tensor<64x4x32xf32> -> tensor<64x4xf32>
  %sb = axe.broadcast %s dims [2] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %n = axe.map ins(%e, %sb : tensor<64x4x32xf32>, tensor<64x4x32xf32>) -> tensor<64x4x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.divf %u, %v : f32
    axe.yield %0 : f32
  }
  %t = axe.transpose %n [1, 0, 2] : tensor<64x4x32xf32> -> tensor<4x64x32xf32>
  return %t : tensor<4x64x32xf32>
}

// -----

// Both halves of a rotated row take one sum, which is in front of the branch between them.
// CHECK-LABEL: func.func @rotated
// CHECK: axe.launch @rotated_0_loops
// CHECK-NOT: axe.launch
// CHECK: scf.for
// CHECK: arith.mulf %[[A:.*]], %[[A]]
// CHECK-NOT: scf.for
// PLAN-LABEL: func.func @rotated
// PLAN: lanes = 8 : i64, {{.*}} vector = 8 : i64
func.func @rotated(%x: tensor<128x64xf16>) -> tensor<128x64xf16> {
  %f = axe.cast %x : tensor<128x64xf16> -> tensor<128x64xf32>
  %q = axe.map ins(%f : tensor<128x64xf32>) -> tensor<128x64xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %u : f32
    axe.yield %0 : f32
  }
  %s = axe.reduce <add> %q dims [1] : tensor<128x64xf32> -> tensor<128xf32>
  %r = axe.map ins(%s : tensor<128xf32>) -> tensor<128xf32> {
  ^bb0(%u: f32):
    %0 = math.rsqrt %u : f32
    axe.yield %0 : f32
  }
  %rb = axe.broadcast %r dims [1] : tensor<128xf32> -> tensor<128x64xf32>
  %m = axe.map ins(%f, %rb : tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %m : tensor<128x64xf32> -> tensor<128x64xf16>
  %a = tensor.extract_slice %n[0, 0] [128, 32] [1, 1] : tensor<128x64xf16> to tensor<128x32xf16>
  %b = tensor.extract_slice %n[0, 32] [128, 32] [1, 1] : tensor<128x64xf16> to tensor<128x32xf16>
  %o = tensor.concat dim(1) %b, %a : (tensor<128x32xf16>, tensor<128x32xf16>) -> tensor<128x64xf16>
  %z = axe.map ins(%n, %o : tensor<128x64xf16>, tensor<128x64xf16>) -> tensor<128x64xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.addf %u, %v : f16
    axe.yield %0 : f16
  }
  return %z : tensor<128x64xf16>
}

// -----

// Twelve lanes would have a row of 96: it stays a kernel of rows, which stores its largest element.
// CHECK-LABEL: func.func @twelve
// CHECK: axe.launch @twelve_0_rows {{.*}} outs({{.*}} : tensor<256xf16>)
// CHECK: axe.launch @twelve_1_loops
// CHECK-NOT: axe.launch
func.func @twelve(%x: tensor<64x4x96xf16>) -> tensor<4x64x96xf16> {
  %m = axe.reduce <max> %x dims [2] : tensor<64x4x96xf16> -> tensor<64x4xf16>
  %mb = axe.broadcast %m dims [2] : tensor<64x4xf16> -> tensor<64x4x96xf16>
  %n = axe.map ins(%x, %mb : tensor<64x4x96xf16>, tensor<64x4x96xf16>) -> tensor<64x4x96xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.subf %u, %v : f16
    axe.yield %0 : f16
  }
  %t = axe.transpose %n [1, 0, 2] : tensor<64x4x96xf16> -> tensor<4x64x96xf16>
  return %t : tensor<4x64x96xf16>
}

// -----

// Sums that are a result too are stored, and read.
// CHECK-LABEL: func.func @read
// CHECK: axe.launch @read_0_rows {{.*}} outs({{.*}} : tensor<256xf32>)
// CHECK: axe.launch @read_1_loops {{.*}} ins(%{{.*}}, %{{.*}} : tensor<64x4x32xf32>, tensor<64x4xf32>)
// CHECK-NOT: axe.launch
func.func @read(%x: tensor<64x4x32xf32>) -> (tensor<4x64x32xf32>, tensor<64x4xf32>) {
  %m = axe.reduce <max> %x dims [2] : tensor<64x4x32xf32> -> tensor<64x4xf32>
  %mb = axe.broadcast %m dims [2] : tensor<64x4xf32> -> tensor<64x4x32xf32>
  %n = axe.map ins(%x, %mb : tensor<64x4x32xf32>, tensor<64x4x32xf32>) -> tensor<64x4x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    axe.yield %0 : f32
  }
  %t = axe.transpose %n [1, 0, 2] : tensor<64x4x32xf32> -> tensor<4x64x32xf32>
  return %t, %m : tensor<4x64x32xf32>, tensor<64x4xf32>
}

// -----

// A loop over something else than the row of the point is each thread's: here over the row of another place of the table.
// PLAN-LABEL: axe.kernel @elsewhere
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], vector = 4 : i64}
axe.kernel @elsewhere(%x: memref<64x32xf32>, %y: memref<64x32xf32>) threads(128) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<64x32xf32>) attrs = {initial = [unit]} {
  ^bb0(%o: f32):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %j = linalg.index 1 : index
    %s = scf.for %k = %c0 to %c32 step %c1 iter_args(%a = %zero) -> (f32) {
      %v = memref.load %x[%j, %k] : memref<64x32xf32>
      %b = arith.addf %a, %v : f32
      scf.yield %b : f32
    }
    linalg.yield %s : f32
  }
  axe.return
}

// -----

// Neither is one that starts from another number than one that changes nothing.
// PLAN-LABEL: axe.kernel @started
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], vector = 4 : i64}
axe.kernel @started(%x: memref<64x32xf32>, %y: memref<64x32xf32>) threads(128) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<64x32xf32>) attrs = {initial = [unit]} {
  ^bb0(%o: f32):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1.0 : f32
    %i = linalg.index 0 : index
    %s = scf.for %k = %c0 to %c32 step %c1 iter_args(%a = %one) -> (f32) {
      %v = memref.load %x[%i, %k] : memref<64x32xf32>
      %b = arith.addf %a, %v : f32
      scf.yield %b : f32
    }
    linalg.yield %s : f32
  }
  axe.return
}
