// Rows that are parts of longer ones are read where they lie by the kernel that reduces them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @columns
// CHECK: axe.launch @columns_0_rows {{.*}} ins(%arg0 : tensor<64x576xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @columns_0_rows(%[[X:.*]]: memref<64x576xf16>, %{{.*}}: memref<64x512xf16>)
// CHECK: %[[FIRST:.*]] = arith.constant 64 : index
// CHECK: axe.slice %[[X]][%{{.*}}, %{{.*}}] : memref<64x576xf16> to memref<{{.*}}x512xf16, #axe.layout<S[({{.*}}, 512) : (576, 1)]>>
func.func @columns(%x: tensor<64x576xf16>) -> tensor<64x512xf16> {
  %s = tensor.extract_slice %x[0, 64] [64, 512] [1, 1] : tensor<64x576xf16> to tensor<64x512xf16>
  %m = axe.reduce <max> %s dims [1] : tensor<64x512xf16> -> tensor<64xf16>
  %b = axe.broadcast %m dims [1] : tensor<64xf16> -> tensor<64x512xf16>
  %y = axe.map ins(%s, %b : tensor<64x512xf16>, tensor<64x512xf16>) -> tensor<64x512xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.subf %u, %v : f16
    axe.yield %0 : f16
  }
  return %y : tensor<64x512xf16>
}

// -----

// One of three tensors that lie between each other.
// CHECK-LABEL: func.func @between
// CHECK: axe.launch @between_0_rows {{.*}} ins(%{{.*}} : tensor<64x1536xf16>)
// CHECK-NOT: axe.launch
func.func @between(%x: tensor<4x16x3x8x64xf16>) -> tensor<4x16xf16> {
  %s = tensor.extract_slice %x[0, 0, 1, 0, 0] [4, 16, 1, 8, 64] [1, 1, 1, 1, 1] : tensor<4x16x3x8x64xf16> to tensor<4x16x8x64xf16>
  %m = axe.reduce <max> %s dims [2, 3] : tensor<4x16x8x64xf16> -> tensor<4x16xf16>
  return %m : tensor<4x16xf16>
}

// -----

// What begins at no vector's boundary is copied, as is what is reduced along other rows.
// CHECK-LABEL: func.func @odd
// CHECK: axe.launch @odd_0_loops
// CHECK: axe.launch @odd_1_rows
func.func @odd(%x: tensor<64x576xf16>) -> tensor<64xf16> {
  %s = tensor.extract_slice %x[0, 63] [64, 512] [1, 1] : tensor<64x576xf16> to tensor<64x512xf16>
  %m = axe.reduce <max> %s dims [1] : tensor<64x512xf16> -> tensor<64xf16>
  return %m : tensor<64xf16>
}
// CHECK-LABEL: func.func @heads
// CHECK: axe.launch @heads_0_loops
// CHECK: axe.launch @heads_1_rows
func.func @heads(%x: tensor<64x576xf16>) -> tensor<64x8xf16> {
  %s = tensor.extract_slice %x[0, 64] [64, 512] [1, 1] : tensor<64x576xf16> to tensor<64x512xf16>
  %h = tensor.expand_shape %s [[0], [1, 2]] output_shape [64, 8, 64] : tensor<64x512xf16> into tensor<64x8x64xf16>
  %m = axe.reduce <max> %h dims [2] : tensor<64x8x64xf16> -> tensor<64x8xf16>
  return %m : tensor<64x8xf16>
}

// -----

// How many rows there are may be known at run time only: of what is reduced, and of what a product's result is multiplied by.
// CHECK-LABEL: func.func @counted
// CHECK: axe.launch @counted_0_rows {{.*}} ins(%arg0 : tensor<?x576xf16>)
// CHECK-NOT: axe.launch
// CHECK-LABEL: func.func @counted_gate
// CHECK: axe.launch @counted_gate_0_gemm {{.*}} ins(%{{.*}} : tensor<?x64xf16>, tensor<512x64xf16>, tensor<?x576xf16>)
// CHECK-NOT: axe.launch
func.func @counted(%x: tensor<?x576xf16>) -> tensor<?xf16> {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %x, %zero : tensor<?x576xf16>
  %s = tensor.extract_slice %x[0, 64] [%rows, 512] [1, 1] : tensor<?x576xf16> to tensor<?x512xf16>
  %m = axe.reduce <max> %s dims [1] : tensor<?x512xf16> -> tensor<?xf16>
  return %m : tensor<?xf16>
}
func.func @counted_gate(%a: tensor<?x64xf16>, %w: tensor<512x64xf16>, %x: tensor<?x576xf16>) -> tensor<?x512xf16> {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %x, %zero : tensor<?x576xf16>
  %p = axe.gemm %a, %w {trans_b} : tensor<?x64xf16>, tensor<512x64xf16> -> tensor<?x512xf32>
  %h = axe.cast %p : tensor<?x512xf32> -> tensor<?x512xf16>
  %s = tensor.extract_slice %x[0, 64] [%rows, 512] [1, 1] : tensor<?x576xf16> to tensor<?x512xf16>
  %y = axe.map ins(%h, %s : tensor<?x512xf16>, tensor<?x512xf16>) -> tensor<?x512xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.mulf %u, %v : f16
    axe.yield %0 : f16
  }
  return %y : tensor<?x512xf16>
}

// -----

// What is returned, too, is stored by the kernel that reads it.
// CHECK-LABEL: func.func @stored
// CHECK: axe.launch @stored_0_rows {{.*}} ins(%arg0 : tensor<64x576xf16>) outs(%{{.*}}, %{{.*}} : tensor<64xf16>, tensor<64x512xf16>)
// CHECK-NOT: axe.launch
func.func @stored(%x: tensor<64x576xf16>) -> (tensor<64x512xf16>, tensor<64xf16>) {
  %s = tensor.extract_slice %x[0, 64] [64, 512] [1, 1] : tensor<64x576xf16> to tensor<64x512xf16>
  %m = axe.reduce <max> %s dims [1] : tensor<64x512xf16> -> tensor<64xf16>
  return %s, %m : tensor<64x512xf16>, tensor<64xf16>
}

// -----

// What a product's result is multiplied by is read so, too, with the numbers that its rows share.
// CHECK-LABEL: func.func @gated
// CHECK: axe.launch @gated_0_gemm {{.*}} ins(%{{.*}} : tensor<256xf16>, tensor<256x256xf16>, tensor<4x256x128xf16>, tensor<4x256x256xf16>)
// CHECK-NOT: axe.launch
func.func @gated(%x: tensor<4x256x256xf16>, %w: tensor<256x256xf16>, %v: tensor<4x256x128xf16>, %c: tensor<256xf16>) -> tensor<4x256x128xf16> {
  %wb = axe.broadcast %w dims [0] : tensor<256x256xf16> -> tensor<4x256x256xf16>
  %p = axe.gemm %wb, %v : tensor<4x256x256xf16>, tensor<4x256x128xf16> -> tensor<4x256x128xf32>
  %h = axe.cast %p : tensor<4x256x128xf32> -> tensor<4x256x128xf16>
  %cb = axe.broadcast %c dims [0, 2] : tensor<256xf16> -> tensor<4x256x128xf16>
  %u = tensor.extract_slice %x[0, 0, 0] [4, 256, 128] [1, 1, 1] : tensor<4x256x256xf16> to tensor<4x256x128xf16>
  %y = axe.map ins(%u, %h, %cb : tensor<4x256x128xf16>, tensor<4x256x128xf16>, tensor<4x256x128xf16>) -> tensor<4x256x128xf16> {
  ^bb0(%s: f16, %t: f16, %r: f16):
    %0 = arith.addf %t, %r : f16
    %1 = arith.mulf %s, %0 : f16
    axe.yield %1 : f16
  }
  return %y : tensor<4x256x128xf16>
}
