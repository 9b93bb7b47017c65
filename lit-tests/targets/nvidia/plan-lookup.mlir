// Rows of a table that data names are read where they lie by the kernels that take them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @embedding
// CHECK: axe.launch @embedding_0_rows {{.*}} ins(%arg1, %arg0 : tensor<500x512xf16>, tensor<64xi64>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @embedding_0_rows(%[[T:.*]]: memref<500x512xf16>, %[[N:.*]]: memref<64xi64>, %{{.*}}: memref<64x512xf16>)
// CHECK: %[[TABLE:.*]] = axe.slice %[[T]]{{.*}} to memref<500x512xf16
// CHECK: %[[ROWS:.*]] = axe.slice %[[N]]{{.*}} to memref<{{[0-9]*}}xi64
// CHECK: axe.gather %[[TABLE]] at %[[ROWS]] clamp
func.func @embedding(%ids: tensor<64xi64>, %w: tensor<500x512xf16>) -> tensor<64x512xf16> {
  %e = tensor.empty() : tensor<64x512xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<64xi64>) outs(%e : tensor<64x512xf16>) {
  ^bb0(%n: i64, %o: f16):
    %r = arith.index_cast %n : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %w[%r, %c] : tensor<500x512xf16>
    linalg.yield %v : f16
  } -> tensor<64x512xf16>
  %m = axe.reduce <max> %x dims [1] : tensor<64x512xf16> -> tensor<64xf16>
  %b = axe.broadcast %m dims [1] : tensor<64xf16> -> tensor<64x512xf16>
  %y = axe.map ins(%x, %b : tensor<64x512xf16>, tensor<64x512xf16>) -> tensor<64x512xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.subf %u, %v : f16
    axe.yield %0 : f16
  }
  return %y : tensor<64x512xf16>
}

// -----

// Where rows are long, a CTA finds its own, and copies it to shared memory; the function's result is stored on the way, too.
// CHECK-LABEL: func.func @long
// CHECK: axe.launch @long_0_rows {{.*}} outs(%{{.*}}, %{{.*}} : tensor<64x65536xf16>, tensor<64x65536xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @long_0_rows(%[[T:.*]]: memref<500x65536xf16>, %[[N:.*]]: memref<64xi64>
// CHECK: %[[NUMBER:.*]] = memref.load %[[N]]
// CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[NUMBER]]
// CHECK: %[[OWN:.*]] = arith.select %[[NEGATIVE]]
// CHECK: arith.minsi %[[OWN]]
// CHECK: arith.maxsi
// CHECK: %[[ROW:.*]] = arith.index_cast
// CHECK: axe.slice %[[T]][%[[ROW]]
func.func @long(%ids: tensor<64xi64>, %w: tensor<500x65536xf16>) -> (tensor<64x65536xf16>, tensor<64x65536xf16>) {
  %c0 = arith.constant 0 : i64
  %c500 = arith.constant 500 : i64
  %e = tensor.empty() : tensor<64x65536xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<64xi64>) outs(%e : tensor<64x65536xf16>) {
  ^bb0(%n: i64, %o: f16):
    %is = arith.cmpi slt, %n, %c0 : i64
    %l = arith.addi %n, %c500 : i64
    %own = arith.select %is, %l, %n : i64
    %r = arith.index_cast %own : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %w[%r, %c] : tensor<500x65536xf16>
    linalg.yield %v : f16
  } -> tensor<64x65536xf16>
  %m = axe.reduce <max> %x dims [1] : tensor<64x65536xf16> -> tensor<64xf16>
  %b = axe.broadcast %m dims [1] : tensor<64xf16> -> tensor<64x65536xf16>
  %y = axe.map ins(%x, %b : tensor<64x65536xf16>, tensor<64x65536xf16>) -> tensor<64x65536xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.subf %u, %v : f16
    axe.yield %0 : f16
  }
  return %x, %y : tensor<64x65536xf16>, tensor<64x65536xf16>
}

// -----

// A reduction of columns, of which each has rows of the table.
// CHECK-LABEL: func.func @bags
// CHECK: axe.launch @bags_0_columns {{.*}} ins(%arg1, %{{.*}} : tensor<500x64xf16>, tensor<96xi64>)
// CHECK-NOT: axe.launch
func.func @bags(%ids: tensor<8x12xi64>, %w: tensor<500x64xf16>) -> tensor<8x64xf16> {
  %e = tensor.empty() : tensor<8x12x64xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<8x12xi64>) outs(%e : tensor<8x12x64xf16>) {
  ^bb0(%n: i64, %o: f16):
    %r = arith.index_cast %n : i64 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %w[%r, %c] : tensor<500x64xf16>
    linalg.yield %v : f16
  } -> tensor<8x12x64xf16>
  %s = axe.reduce <add> %x dims [1] : tensor<8x12x64xf16> -> tensor<8x64xf16>
  return %s : tensor<8x64xf16>
}

// -----

// A table that is formed is stored by a kernel of its own first, also where its elements are read beside its rows.
// CHECK-LABEL: func.func @formed
// CHECK: %[[H:.*]] = axe.launch @formed_0_map {{.*}} ins(%{{.*}} : tensor<{{.*}}xf16>)
// CHECK: axe.launch @formed_1_rows
// CHECK-NOT: axe.launch
func.func @formed(%x: tensor<40x64xf16>, %ids: tensor<40xi64>) -> tensor<40xf16> {
  %h = axe.map ins(%x : tensor<40x64xf16>) -> tensor<40x64xf16> {
  ^bb0(%u: f16):
    %0 = arith.addf %u, %u : f16
    axe.yield %0 : f16
  }
  %e = tensor.empty() : tensor<40x64xf16>
  %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<40xi64>) outs(%e : tensor<40x64xf16>) {
  ^bb0(%n: i64, %o: f16):
    %r = arith.index_cast %n : i64 to index
    %c = linalg.index 1 : index
    %t = tensor.extract %h[%r, %c] : tensor<40x64xf16>
    linalg.yield %t : f16
  } -> tensor<40x64xf16>
  %s = axe.map ins(%h, %v : tensor<40x64xf16>, tensor<40x64xf16>) -> tensor<40x64xf16> {
  ^bb0(%a: f16, %b: f16):
    %0 = arith.subf %a, %b : f16
    axe.yield %0 : f16
  }
  %m = axe.reduce <max> %s dims [1] : tensor<40x64xf16> -> tensor<40xf16>
  return %m : tensor<40xf16>
}

// -----

// Some rows of each matrix of a batch.
// CHECK-LABEL: func.func @places
// CHECK: axe.launch @places_0_rows {{.*}} ins(%{{.*}} : tensor<21x64xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @places_0_rows
// CHECK: axe.gather %{{.*}} at %{{.*}} clamp : {{.*}}, tensor<{{[0-9]+}}xi32
func.func @places(%x: tensor<3x7x64xf16>) -> tensor<3x6xf16> {
  %s = tensor.extract_slice %x[0, 1, 0] [3, 6, 64] [1, 1, 1] : tensor<3x7x64xf16> to tensor<3x6x64xf16>
  %m = axe.reduce <max> %s dims [2] : tensor<3x6x64xf16> -> tensor<3x6xf16>
  return %m : tensor<3x6xf16>
}
