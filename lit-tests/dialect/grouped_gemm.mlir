// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s
// RUN: axe-opt %s --canonicalize | FileCheck %s --check-prefix=DEAD

// CHECK-LABEL: @grouped
func.func @grouped(%a: tensor<?x512xbf16>, %w: tensor<8x512x96xbf16>, %wt: tensor<8x96x512xbf16>, %o: tensor<9xi32>) -> (tensor<?x96xbf16>, tensor<?x96xf32>) {
  // CHECK: axe.grouped_gemm %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x512xbf16>, tensor<8x512x96xbf16>, tensor<9xi32> -> tensor<?x96xbf16>
  %0 = axe.grouped_gemm %a, %w, %o : tensor<?x512xbf16>, tensor<8x512x96xbf16>, tensor<9xi32> -> tensor<?x96xbf16>
  // CHECK: axe.grouped_gemm %{{.*}}, %{{.*}}, %{{.*}} {trans_b} : tensor<?x512xbf16>, tensor<8x96x512xbf16>, tensor<9xi32> -> tensor<?x96xf32>
  %1 = axe.grouped_gemm %a, %wt, %o {trans_b} : tensor<?x512xbf16>, tensor<8x96x512xbf16>, tensor<9xi32> -> tensor<?x96xf32>
  return %0, %1 : tensor<?x96xbf16>, tensor<?x96xf32>
}

// A number of groups that is known at run time.
// CHECK-LABEL: @groups
func.func @groups(%a: tensor<64x32xi8>, %w: tensor<?x32x16xi8>, %o: tensor<?xi32>) -> tensor<64x16xi32> {
  // CHECK: axe.grouped_gemm {{.*}} : tensor<64x32xi8>, tensor<?x32x16xi8>, tensor<?xi32> -> tensor<64x16xi32>
  %0 = axe.grouped_gemm %a, %w, %o : tensor<64x32xi8>, tensor<?x32x16xi8>, tensor<?xi32> -> tensor<64x16xi32>
  return %0 : tensor<64x16xi32>
}

// Nothing reads it.
// DEAD-LABEL: @dead
// DEAD-NOT: axe.grouped_gemm
// DEAD: return
func.func @dead(%a: tensor<8x16xf16>, %w: tensor<2x16x8xf16>, %o: tensor<3xi32>) {
  %0 = axe.grouped_gemm %a, %w, %o : tensor<8x16xf16>, tensor<2x16x8xf16>, tensor<3xi32> -> tensor<8x8xf16>
  return
}
