// Loops whose points are elements of rows are part of the kernel of the rows.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules --split-input-file > %t

// The loss of a row: one of its logarithms of probabilities is computed, of the one logit that is read by its index.
// CHECK-LABEL: func.func @loss
// CHECK: axe.launch @loss_0_rows
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @loss_0_rows(%[[T:[a-z0-9]*]]: memref<64x1000xf32>
// CHECK: memref.load %[[T]]
// CHECK: axe.reduce <max>
// CHECK: axe.reduce <add>
// CHECK-NOT: memref<4x1000xf32
// CHECK: axe.return
func.func @loss(%x: tensor<64x1000xf32>, %t: tensor<64xi64>) -> tensor<64xf32> {
  %m = axe.reduce <max> %x dims [1] : tensor<64x1000xf32> -> tensor<64xf32>
  %b = axe.broadcast %m dims [1] : tensor<64xf32> -> tensor<64x1000xf32>
  %d = axe.map ins(%x, %b : tensor<64x1000xf32>, tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.subf %u, %v : f32
    axe.yield %w : f32
  }
  %e = axe.map ins(%d : tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  ^bb0(%u: f32):
    %w = math.exp %u : f32
    axe.yield %w : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x1000xf32> -> tensor<64xf32>
  %c = axe.broadcast %s dims [1] : tensor<64xf32> -> tensor<64x1000xf32>
  %p = axe.map ins(%d, %c : tensor<64x1000xf32>, tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %v : f32
    %w = arith.subf %u, %l : f32
    axe.yield %w : f32
  }
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%t : tensor<64xi64>) outs(%empty : tensor<64xf32>) {
  ^bb0(%v: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %v : i64 to index
    %q = tensor.extract %p[%i, %j] : tensor<64x1000xf32>
    %r = arith.negf %q : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// A maximum and its place: two reductions of one tile in registers. A row with a NaN is folded again.
// CHECK-LABEL: func.func @most
// CHECK: axe.launch @most_0_rows
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @most_0_rows
// CHECK-COUNT-1: axe.copy {{.*}} -> tensor<1x4096xf16
// CHECK: axe.reduce <max>
// CHECK: axe.index 1
// CHECK: arith.select {{.*}} : i32
// CHECK: axe.reduce <min> {{.*}} -> tensor<1xi32
// CHECK: scf.if
// CHECK: scf.for
func.func @most(%x: tensor<300x4096xf16>) -> (tensor<300xf16>, tensor<300xi64>) {
  %low = arith.constant 0xFC00 : f16
  %c0 = arith.constant 0 : i64
  %a = axe.fill %low : f16 -> tensor<300xf16>
  %b = axe.fill %c0 : i64 -> tensor<300xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<300x4096xf16>) outs(%a, %b : tensor<300xf16>, tensor<300xi64>) {
  ^bb0(%v: f16, %m: f16, %p: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %n = arith.maximumf %v, %m : f16
    %c = arith.cmpf ogt, %v, %m : f16
    %q = arith.select %c, %k, %p : i64
    linalg.yield %n, %q : f16, i64
  } -> (tensor<300xf16>, tensor<300xi64>)
  return %y#0, %y#1 : tensor<300xf16>, tensor<300xi64>
}

// -----

// Of what is computed, elements of a row that has to be folded again are formed again, of what is in memory and of what the row has at hand.
// CHECK-LABEL: func.func @most_of_computed
// CHECK: axe.launch @most_of_computed_0_rows {{.*}} outs(%{{.*}} : tensor<300xi64>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @most_of_computed_0_rows
// CHECK: scf.for
// CHECK: math.exp
func.func @most_of_computed(%x: tensor<300x4096xf32>) -> tensor<300xi64> {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : i64
  %a = axe.fill %low : f32 -> tensor<300xf32>
  %b = axe.fill %c0 : i64 -> tensor<300xi64>
  %z = axe.map ins(%x : tensor<300x4096xf32>) -> tensor<300x4096xf32> {
  ^bb0(%u: f32):
    %w = math.exp %u : f32
    axe.yield %w : f32
  }
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<300x4096xf32>) outs(%a, %b : tensor<300xf32>, tensor<300xi64>) {
  ^bb0(%v: f32, %m: f32, %p: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %n = arith.maximumf %v, %m : f32
    %c = arith.cmpf ogt, %v, %m : f32
    %q = arith.select %c, %k, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<300xf32>, tensor<300xi64>)
  return %y#1 : tensor<300xi64>
}

// -----

// A column's number beside a value of its row.
// CHECK-LABEL: func.func @one_hot
// CHECK: axe.launch @one_hot_0_rows
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @one_hot_0_rows
// CHECK: axe.index 1
// CHECK: arith.cmpi eq
func.func @one_hot(%x: tensor<64x1000xf32>, %t: tensor<64xi32>) -> tensor<64x1000xf32> {
  %m = axe.reduce <max> %x dims [1] : tensor<64x1000xf32> -> tensor<64xf32>
  %b = axe.broadcast %m dims [1] : tensor<64xf32> -> tensor<64x1000xf32>
  %u = axe.broadcast %t dims [1] : tensor<64xi32> -> tensor<64x1000xi32>
  %empty = tensor.empty() : tensor<64x1000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b, %u : tensor<64x1000xf32>, tensor<64x1000xf32>, tensor<64x1000xi32>) outs(%empty : tensor<64x1000xf32>) {
  ^bb0(%v: f32, %n: f32, %k: i32, %o: f32):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i32
    %c = arith.cmpi eq, %i, %k : i32
    %f = arith.uitofp %c : i1 to f32
    %d = arith.subf %v, %n : f32
    %r = arith.subf %d, %f : f32
    linalg.yield %r : f32
  } -> tensor<64x1000xf32>
  return %y : tensor<64x1000xf32>
}

// -----

// A start that hides elements is part of what is compared: the loops stay.
// CHECK-LABEL: func.func @hiding
// CHECK: axe.launch @hiding_0_loops
func.func @hiding(%x: tensor<300x4096xf32>) -> tensor<300xi64> {
  %low = arith.constant -3.0e38 : f32
  %c0 = arith.constant 0 : i64
  %a = axe.fill %low : f32 -> tensor<300xf32>
  %b = axe.fill %c0 : i64 -> tensor<300xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<300x4096xf32>) outs(%a, %b : tensor<300xf32>, tensor<300xi64>) {
  ^bb0(%v: f32, %m: f32, %p: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %n = arith.maximumf %v, %m : f32
    %c = arith.cmpf ogt, %v, %m : f32
    %q = arith.select %c, %k, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<300xf32>, tensor<300xi64>)
  return %y#1 : tensor<300xi64>
}

// -----

// Loops that nothing joins form what they read of a broadcast.
// CHECK-LABEL: func.func @alone
// CHECK: axe.launch @alone_0_{{.*}} ins(%arg0 : tensor<4xi32>)
// CHECK-NOT: axe.launch
func.func @alone(%n: tensor<4xi32>) -> tensor<4x64xi1> {
  %b = axe.broadcast %n dims [1] : tensor<4xi32> -> tensor<4x64xi32>
  %empty = tensor.empty() : tensor<4x64xi1>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<4x64xi32>) outs(%empty : tensor<4x64xi1>) {
  ^bb0(%v: i32, %o: i1):
    %j = linalg.index 1 : index
    %k = arith.index_cast %v : i32 to index
    %w = arith.cmpi slt, %j, %k : index
    linalg.yield %w : i1
  } -> tensor<4x64xi1>
  return %y : tensor<4x64xi1>
}

// -----

// Loops that read a table by numbers which a broadcast repeats read the numbers themselves.
// CHECK-LABEL: func.func @repeated
// CHECK: axe.launch @repeated_0_loops {{.*}} ins(%arg1, %arg0 : tensor<3x5xi64>, tensor<3x17x48xf16>)
// CHECK-NOT: axe.launch
func.func @repeated(%x: tensor<3x17x48xf16>, %i: tensor<3x5xi64>) -> tensor<3x5x48xf16> {
  %b = axe.broadcast %i dims [2] : tensor<3x5xi64> -> tensor<3x5x48xi64>
  %empty = tensor.empty() : tensor<3x5x48xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : tensor<3x5x48xi64>) outs(%empty : tensor<3x5x48xf16>) {
  ^bb0(%n: i64, %o: f16):
    %d = linalg.index 0 : index
    %r = arith.index_cast %n : i64 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %x[%d, %r, %c] : tensor<3x17x48xf16>
    linalg.yield %v : f16
  } -> tensor<3x5x48xf16>
  return %y : tensor<3x5x48xf16>
}
