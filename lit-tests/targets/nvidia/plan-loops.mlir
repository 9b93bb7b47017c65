// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules --split-input-file | FileCheck %s --check-prefix=PLAN

// Indices of a gather are brought into the table, unless they are a loop's that is inside.
// CHECK-LABEL: func.func @gather
// CHECK: axe.launch @gather_0_loops grid(
// CHECK: axe.kernel @gather_0_loops(%[[AT:.*]]: memref<7xi64>, %[[T:.*]]: memref<30x16xf32>, %[[Y:.*]]: memref<7x16xf32>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[AT]] : memref<7xi64>) outs(%[[Y]] : memref<7x16xf32>) attrs = {initial = [unit]}
// CHECK-NOT: cf.assert
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[H:.*]] = arith.minsi
// CHECK: %[[L:.*]] = arith.maxsi %[[H]]
// CHECK: memref.load %[[T]][%[[L]], %[[J]]]
// PLAN-LABEL: func.func @gather
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], vector = 4 : i64}
// PLAN-SAME: schedule = "loops.threads"
func.func @gather(%t: tensor<30x16xf32>, %at: tensor<7xi64>) -> tensor<7x16xf32> {
  %true = arith.constant true
  %e = tensor.empty() : tensor<7x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<7xi64>) outs(%e : tensor<7x16xf32>) {
  ^bb0(%a: i64, %o: f32):
    %i = arith.index_cast %a : i64 to index
    cf.assert %true, "inside"
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<30x16xf32>
    linalg.yield %v : f32
  } -> tensor<7x16xf32>
  return %y : tensor<7x16xf32>
}

// -----

// Two results of a reduction start from numbers, and are carried; threads have the parallel loop.
// CHECK-LABEL: func.func @most
// CHECK: attrs = {initial = [0xFF800000 : f32, 0 : i32]}
// PLAN-LABEL: func.func @most
// PLAN: plan = {bits = 32 : i64, parallel = [1], reductions = [0]}
func.func @most(%x: tensor<9x40xf32>) -> (tensor<40xf32>, tensor<40xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : i32
  %a = axe.fill %low : f32 -> tensor<40xf32>
  %b = axe.fill %c0 : i32 -> tensor<40xi32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<9x40xf32>) outs(%a, %b : tensor<40xf32>, tensor<40xi32>) {
  ^bb0(%v: f32, %m: f32, %p: i32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %c = arith.cmpf ogt, %v, %m : f32
    %n = arith.select %c, %v, %m : f32
    %q = arith.select %c, %k, %p : i32
    linalg.yield %n, %q : f32, i32
  } -> (tensor<40xf32>, tensor<40xi32>)
  return %y#0, %y#1 : tensor<40xf32>, tensor<40xi32>
}

// -----

// Every extent may be dynamic; scalars of the function are passed, or computed again.
// CHECK-LABEL: func.func @dynamic
// CHECK: arith.ceildivui
// CHECK: arith.minui
// CHECK: axe.launch @dynamic_0_loops
// CHECK: axe.kernel @dynamic_0_loops(%{{.*}}: memref<?x?xf32>, %[[P:.*]]: memref<1xi32>, %{{.*}}: memref<?x?xf32>)
// CHECK: memref.load %[[P]]
// PLAN-LABEL: func.func @dynamic
// PLAN: plan = {bits = 64 : i64, parallel = [1, 0], reductions = []}
func.func @dynamic(%x: tensor<?x?xf32>, %p: tensor<1xi32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %s = tensor.extract %p[%c0] : tensor<1xi32>
  %f = arith.sitofp %s : i32 to f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.mulf %v, %f : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Few points of a long reduction that compares and chooses: parts are folded, and their states merged; a part with a NaN is folded again.
// CHECK-LABEL: func.func @most_of_few
// CHECK: %[[S:.*]]:2 = axe.launch @most_of_few_0_loops
// CHECK: axe.launch @most_of_few_1_loops{{.*}}%[[S]]#0, %[[S]]#1
// CHECK: axe.kernel @most_of_few_0_loops
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: scf.for
// CHECK: axe.kernel @most_of_few_1_loops
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.cmpf uno
// CHECK: scf.if
// CHECK: scf.for
// PLAN-LABEL: func.func @most_of_few
// PLAN: parallel = [1, 0], reductions = []
// PLAN: parallel = [0], reductions = [1]
func.func @most_of_few(%x: tensor<3x30000xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : i64
  %a = axe.fill %low : f32 -> tensor<3xf32>
  %b = axe.fill %c0 : i64 -> tensor<3xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x30000xf32>) outs(%a, %b : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%v: f32, %m: f32, %p: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %n = arith.maximumf %v, %m : f32
    %c = arith.cmpf ogt, %v, %m : f32
    %q = arith.select %c, %k, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %y#0, %y#1 : tensor<3xf32>, tensor<3xi64>
}

// -----

// As many parts as a turn merges, or a multiple: the states of all of them are loaded before one is looked at, and a NaN is asked for
// once.
// CHECK-LABEL: func.func @together
// CHECK: %[[S:.*]]:2 = axe.launch @together_0_loops{{.*}}tensor<48x3xf32>, tensor<48x3xi64>
// CHECK: %[[G:.*]] = tensor.expand_shape %[[S]]#0 {{.*}} into tensor<6x8x3xf32>
// CHECK: axe.launch @together_1_loops
// CHECK: axe.kernel @together_1_loops
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK-COUNT-8: arith.maximumf
// CHECK: scf.if
func.func @together(%x: tensor<3072x3xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : i64
  %a = axe.fill %low : f32 -> tensor<3xf32>
  %b = axe.fill %c0 : i64 -> tensor<3xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<3072x3xf32>) outs(%a, %b : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%v: f32, %m: f32, %p: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %n = arith.maximumf %v, %m : f32
    %c = arith.cmpf ogt, %v, %m : f32
    %q = arith.select %c, %k, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %y#0, %y#1 : tensor<3xf32>, tensor<3xi64>
}

// -----

// What does more than compare stays as it is, and so does a comparison that merging would change: the place of the element before.
// CHECK-LABEL: func.func @other
// CHECK-COUNT-2: iterator_types = ["parallel", "reduction"]
// CHECK-NOT: iterator_types
// PLAN-LABEL: func.func @other
// PLAN-COUNT-2: parallel = [0], reductions = [1]
// PLAN-NOT: plan =
func.func @other(%x: tensor<3x3000xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %c0 = arith.constant 0.0 : f32
  %a = axe.fill %c0 : f32 -> tensor<3xf32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x3000xf32>) outs(%a, %a : tensor<3xf32>, tensor<3xf32>) {
  ^bb0(%v: f32, %m: f32, %p: f32):
    %n = arith.addf %v, %m : f32
    %q = arith.maximumf %n, %p : f32
    linalg.yield %n, %q : f32, f32
  } -> (tensor<3xf32>, tensor<3xf32>)
  %z:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x3000xf32>) outs(%a, %a : tensor<3xf32>, tensor<3xf32>) {
  ^bb0(%v: f32, %m: f32, %p: f32):
    %c = arith.cmpf ogt, %v, %p : f32
    %n = arith.select %c, %m, %p : f32
    linalg.yield %v, %n : f32, f32
  } -> (tensor<3xf32>, tensor<3xf32>)
  return %y#0, %y#1, %z#0, %z#1 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// Slices, a concatenation and what is computed element by element around them are one kernel; a table that is repeated is read where it is.
// CHECK-LABEL: func.func @rope
// CHECK: axe.launch @rope_0_loops {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8xf32>)
// CHECK-NOT: axe.launch
// Both sides of the concatenation read the same tensor, so that one load is at the place that the side has.
// CHECK: axe.kernel @rope_0_loops
// CHECK-NOT: scf.if
// CHECK: %[[LOW:.*]] = arith.cmpi slt
// CHECK: %[[AT:.*]] = arith.select %[[LOW]], %{{.*}}, %{{.*}} : index
// CHECK: %[[READ:.*]] = memref.load %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK: %[[SIGNED:.*]] = arith.negf %[[READ]]
// CHECK: arith.select %[[LOW]], %[[SIGNED]], %[[READ]] : f32
// CHECK-NOT: memref.store
// CHECK: arith.mulf
// PLAN-LABEL: func.func @rope
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], vector = 4 : i64}
func.func @rope(%x: tensor<4x8xf32>, %t: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%o: f32):
    %c3 = arith.constant 3 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.addi %j, %c3 : index
    %v = tensor.extract %x[%i, %k] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %n = axe.map ins(%a : tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%u: f32):
    %r = arith.negf %u : f32
    axe.yield %r : f32
  }
  %f = tensor.empty() : tensor<4x8xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%f : tensor<4x8xf32>) {
  ^bb0(%o: f32):
    %c4 = arith.constant 4 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %low = arith.cmpi slt, %j, %c4 : index
    %v = scf.if %low -> (f32) {
      %l = tensor.extract %n[%i, %j] : tensor<4x4xf32>
      scf.yield %l : f32
    } else {
      %k = arith.subi %j, %c4 : index
      %h = tensor.extract %x[%i, %k] : tensor<4x8xf32>
      scf.yield %h : f32
    }
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %b = axe.broadcast %t dims [0] : tensor<8xf32> -> tensor<4x8xf32>
  %y = axe.map ins(%c, %b : tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.mulf %u, %v : f32
    axe.yield %r : f32
  }
  return %y : tensor<4x8xf32>
}

// -----

// Sides that read different tensors stay.
// CHECK-LABEL: func.func @both
// CHECK: axe.kernel @both_0_loops
// CHECK: scf.if
// CHECK: memref.load
// CHECK: } else {
// CHECK: memref.load
// PLAN-LABEL: func.func @both
func.func @both(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x8xf32> {
  %f = tensor.empty() : tensor<4x8xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%f : tensor<4x8xf32>) {
  ^bb0(%o: f32):
    %c4 = arith.constant 4 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %low = arith.cmpi slt, %j, %c4 : index
    %v = scf.if %low -> (f32) {
      %l = tensor.extract %x[%i, %j] : tensor<4x4xf32>
      scf.yield %l : f32
    } else {
      %k = arith.subi %j, %c4 : index
      %h = tensor.extract %y[%i, %k] : tensor<4x4xf32>
      scf.yield %h : f32
    }
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

// What a broadcast repeats is converted by the loops: a table of angles has no kernel of its own. Each thread has four neighbours.
// CHECK-LABEL: func.func @angles
// CHECK: %[[CTAS:.*]] = arith.constant 8 : index
// CHECK: axe.launch @angles_0_loops grid(%[[CTAS]], {{.*}} ins(%{{.*}}, %{{.*}} : tensor<128xi64>, tensor<32xf32>)
// CHECK-NOT: axe.launch
// PLAN-LABEL: func.func @angles
func.func @angles(%p: tensor<128xi64>, %f: tensor<32xf32>) -> tensor<128x64xf32> {
  %n = axe.cast %p : tensor<128xi64> -> tensor<128xf32>
  %nb = axe.broadcast %n dims [1] : tensor<128xf32> -> tensor<128x32xf32>
  %fb = axe.broadcast %f dims [0] : tensor<32xf32> -> tensor<128x32xf32>
  %a = axe.map ins(%nb, %fb : tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<128x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %e = tensor.empty() : tensor<128x64xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<128x64xf32>) {
  ^bb0(%o: f32):
    %c32 = arith.constant 32 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.remui %j, %c32 : index
    %v = tensor.extract %a[%i, %k] : tensor<128x32xf32>
    linalg.yield %v : f32
  } -> tensor<128x64xf32>
  return %c : tensor<128x64xf32>
}

// -----

// Maps that join a reduction's kernel read what loops store.
// CHECK-LABEL: func.func @rows
// CHECK: axe.launch @rows_0_loops
// CHECK: axe.launch @rows_1_rows
// PLAN-LABEL: func.func @rows
func.func @rows(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x4xf32>) {
  ^bb0(%o: f32):
    %c3 = arith.constant 3 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.addi %j, %c3 : index
    %v = tensor.extract %x[%i, %k] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %n = axe.map ins(%a : tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %n dims [1] : tensor<4x4xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Parts of a reduction along columns are outside of them: neighbouring lanes read neighbouring elements of a row.
// CHECK-LABEL: func.func @most_of_columns
// CHECK: axe.kernel @most_of_columns_0_loops(%{{.*}}: memref<4096x64xf32>, %{{.*}}: memref<64x64xf32>, %{{.*}}: memref<64x64xi64>)
// CHECK: scf.for
// CHECK-COUNT-8: memref.load
// PLAN-LABEL: func.func @most_of_columns
// PLAN: parallel = [0, 1], reductions = []
// PLAN: parallel = [1], reductions = [0]
func.func @most_of_columns(%x: tensor<4096x64xf32>) -> (tensor<64xf32>, tensor<64xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %f = axe.fill %least : f32 -> tensor<64xf32>
  %j = axe.fill %zero : i64 -> tensor<64xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (n)>, affine_map<(k, n) -> (n)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<4096x64xf32>) outs(%f, %j : tensor<64xf32>, tensor<64xi64>) {
  ^bb0(%v: f32, %m: f32, %a: i64):
    %k = linalg.index 0 : index
    %at = arith.index_cast %k : index to i64
    %most = arith.maximumf %v, %m : f32
    %more = arith.cmpf ogt, %v, %m : f32
    %where = arith.select %more, %at, %a : i64
    linalg.yield %most, %where : f32, i64
  } -> (tensor<64xf32>, tensor<64xi64>)
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xi64>
}

// -----

// Parts of a long reduction are of whole turns, which lie inside: no index is brought into the tensor. Neighbouring points go through
// their parts together.
// CHECK-LABEL: func.func @places
// CHECK: axe.launch @places_0_loops
// CHECK: axe.launch @places_1_loops
// CHECK: axe.kernel @places_0_loops
// CHECK: scf.for
// CHECK-NOT: arith.minsi
// CHECK: scf.yield
// PLAN-LABEL: func.func @places
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], vector = 4 : i64}
func.func @places(%x: tensor<1024x72xf32>) -> tensor<72xi64> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %c = axe.fill %least : f32 -> tensor<72xf32>
  %d = axe.fill %zero : i64 -> tensor<72xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<1024x72xf32>) outs(%c, %d : tensor<72xf32>, tensor<72xi64>) {
  ^bb0(%v: f32, %n: f32, %p: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %m = arith.maximumf %v, %n : f32
    %g = arith.cmpf ogt, %v, %n : f32
    %s = arith.select %g, %j, %p : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<72xf32>, tensor<72xi64>)
  return %y#1 : tensor<72xi64>
}

// -----

// Rows of a table that half of L2 does not hold, each read four times over: every thread has its points once, and all rows' first slice is
// gone through before the next.
// CHECK-LABEL: func.func @reused
// CHECK: %[[CTAS:.*]] = arith.constant 65536 : index
// CHECK: axe.launch @reused_0_loops grid(%[[CTAS]],
// PLAN-LABEL: func.func @reused
// PLAN: plan = {bits = 32 : i64, parallel = [0, 1], reductions = [], slices = 8 : i64, vector = 4 : i64}
func.func @reused(%t: tensor<4096x4096xf32>, %at: tensor<16384xi64>) -> tensor<16384x4096xf32> {
  %e = tensor.empty() : tensor<16384x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<16384xi64>) outs(%e : tensor<16384x4096xf32>) {
  ^bb0(%a: i64, %o: f32):
    %i = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<4096x4096xf32>
    linalg.yield %v : f32
  } -> tensor<16384x4096xf32>
  return %y : tensor<16384x4096xf32>
}
