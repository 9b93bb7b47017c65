// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// Softmax along a dimension that another follows: a CTA has neighbouring rows, whose columns are 50 elements apart, and reads them once.
// The number of matrices is known at run time only.
// CHECK-LABEL: func.func @softmax
// CHECK: axe.launch @softmax_0_strided_rows grid(%{{.*}}) ins(%{{.*}} : tensor<?x21x50xf16>)
// CHECK-NOT: axe.launch
// CHECK: return
// CHECK-LABEL: axe.kernel @softmax_0_strided_rows
// CHECK: %[[BOX:.*]] = axe.slice %arg0[%block_id_x, %{{.*}}, %{{.*}}] : memref<?x21x50xf16> to memref<22x64xf16, #axe.layout<S[(22, 64) : (50, 1)]>>
// CHECK: %[[ROWS:.*]] = axe.view %[[BOX]] : {{.*}} to memref<64x22xf16, #axe.layout<S[(64, 22) : (1, 50)]>>
// CHECK: axe.copy %[[ROWS]]
// CHECK-COUNT-2: axe.reduce
// CHECK: axe.copy {{.*}} to %{{.*}} : {{.*}} to memref<64x22xf16
// CHECK: axe.copy {{.*}} to %{{.*}} : {{.*}} to memref<64xf32
func.func @softmax(%x: tensor<?x21x50xf16>) -> (tensor<?x21x50xf16>, tensor<?x50xf32>) {
  %w = axe.cast %x : tensor<?x21x50xf16> -> tensor<?x21x50xf32>
  %peak = axe.reduce <max> %w dims [1] : tensor<?x21x50xf32> -> tensor<?x50xf32>
  %peaks = axe.broadcast %peak dims [1] : tensor<?x50xf32> -> tensor<?x21x50xf32>
  %e = axe.map ins(%w, %peaks : tensor<?x21x50xf32>, tensor<?x21x50xf32>) -> tensor<?x21x50xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = math.exp %d : f32
    axe.yield %q : f32
  }
  %sum = axe.reduce <add> %e dims [1] : tensor<?x21x50xf32> -> tensor<?x50xf32>
  %sums = axe.broadcast %sum dims [1] : tensor<?x50xf32> -> tensor<?x21x50xf32>
  %y = axe.map ins(%e, %sums : tensor<?x21x50xf32>, tensor<?x21x50xf32>) -> tensor<?x21x50xf16> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.divf %u, %v : f32
    %t = arith.truncf %q : f32 to f16
    axe.yield %t : f16
  }
  %lse = axe.map ins(%sum, %peak : tensor<?x50xf32>, tensor<?x50xf32>) -> tensor<?x50xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = math.log %u : f32
    %t = arith.addf %q, %v : f32
    axe.yield %t : f32
  }
  return %y, %lse : tensor<?x21x50xf16>, tensor<?x50xf32>
}

// -----

// Rows that registers do not hold go through shared memory.
// CHECK-LABEL: func.func @staged
// CHECK: axe.launch @staged_0_strided_rows
// CHECK-NOT: axe.launch
// CHECK: return
// CHECK-LABEL: axe.kernel @staged_0_strided_rows
// CHECK: %[[SHARED:.*]] = axe.alloc : memref<{{.*}}#axe.space<shared>>
// CHECK: axe.copy async {{.*}} to %[[SHARED]]
// CHECK: axe.wait
// CHECK-COUNT-3: scf.for
func.func @staged(%x: tensor<64x2000x512xf32>) -> tensor<64x2000x512xf32> {
  %peak = axe.reduce <max> %x dims [1] : tensor<64x2000x512xf32> -> tensor<64x512xf32>
  %peaks = axe.broadcast %peak dims [1] : tensor<64x512xf32> -> tensor<64x2000x512xf32>
  %e = axe.map ins(%x, %peaks : tensor<64x2000x512xf32>, tensor<64x2000x512xf32>) -> tensor<64x2000x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = math.exp %d : f32
    axe.yield %q : f32
  }
  %sum = axe.reduce <add> %e dims [1] : tensor<64x2000x512xf32> -> tensor<64x512xf32>
  %sums = axe.broadcast %sum dims [1] : tensor<64x512xf32> -> tensor<64x2000x512xf32>
  %y = axe.map ins(%e, %sums : tensor<64x2000x512xf32>, tensor<64x2000x512xf32>) -> tensor<64x2000x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.divf %u, %v : f32
    axe.yield %q : f32
  }
  return %y : tensor<64x2000x512xf32>
}

// -----

// Rows of which no CTA holds a sector's: three kernels read along memory, two of them in parts, which a kernel more each
// puts together.
// CHECK-LABEL: func.func @long
// CHECK: axe.launch @long_0_columns
// CHECK: axe.launch @long_1_columns
// CHECK: axe.launch @long_2_columns
// CHECK: axe.launch @long_3_columns
// CHECK: axe.launch @long_4_map
// CHECK-NOT: axe.launch
// CHECK: return
func.func @long(%x: tensor<20011x512xf32>) -> tensor<20011x512xf32> {
  %peak = axe.reduce <max> %x dims [0] : tensor<20011x512xf32> -> tensor<512xf32>
  %peaks = axe.broadcast %peak dims [0] : tensor<512xf32> -> tensor<20011x512xf32>
  %e = axe.map ins(%x, %peaks : tensor<20011x512xf32>, tensor<20011x512xf32>) -> tensor<20011x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = math.exp %d : f32
    axe.yield %q : f32
  }
  %sum = axe.reduce <add> %e dims [0] : tensor<20011x512xf32> -> tensor<512xf32>
  %sums = axe.broadcast %sum dims [0] : tensor<512xf32> -> tensor<20011x512xf32>
  %y = axe.map ins(%e, %sums : tensor<20011x512xf32>, tensor<20011x512xf32>) -> tensor<20011x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.divf %u, %v : f32
    axe.yield %q : f32
  }
  return %y : tensor<20011x512xf32>
}

// -----

// A reduction whose result does not go back along its rows reads along memory, by itself.
// CHECK-LABEL: func.func @largest
// CHECK: axe.launch @largest_0_reduce
// CHECK-NOT: strided_rows
func.func @largest(%x: tensor<8x64x512xf32>) -> tensor<8x512xf32> {
  %y = axe.reduce <max> %x dims [1] : tensor<8x64x512xf32> -> tensor<8x512xf32>
  return %y : tensor<8x512xf32>
}
