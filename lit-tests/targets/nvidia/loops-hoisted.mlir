// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=target" | FileCheck %s

// Neighbours that are loaded in a branch each have their addresses formed in front of it: the products once for all, and of each its last index.
// CHECK-LABEL: gpu.func @padded_0_loops
// CHECK-COUNT-3: arith.muli {{.*}} : i64
// CHECK: %[[FIRST:.*]] = llvm.getelementptr
// CHECK-NEXT: scf.if
// CHECK-NEXT: llvm.load %[[FIRST]]
// CHECK-NEXT: scf.yield
// CHECK-NOT: arith.muli
// CHECK: %[[LAST:.*]] = llvm.getelementptr %arg0
// CHECK-NEXT: scf.if
// CHECK-NEXT: llvm.load %[[LAST]]
func.func @padded(%x: tensor<8x16x28x28xf16>) -> tensor<8x16x30x32xf16> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 3] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<8x16x28x28xf16> to tensor<8x16x30x32xf16>
  return %p : tensor<8x16x30x32xf16>
}

// A quotient by a constant may stand in front of the branch, one by a number that may be zero there may not.
// CHECK-LABEL: gpu.func @divided_0_loops
// CHECK: arith.divui %{{.*}}, %{{c2.*}} : index
// CHECK: scf.if
// CHECK: arith.select
// CHECK: arith.divui %{{.*}}, %{{.*}} : index
// CHECK: llvm.load
func.func @divided(%x: tensor<512xf16>, %by: tensor<4096xi32>) -> tensor<4096xf16> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c512 = arith.constant 512 : index
  %e = tensor.empty() : tensor<4096xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%by : tensor<4096xi32>) outs(%e : tensor<4096xf16>) {
  ^bb0(%n: i32, %o: f16):
    %i = linalg.index 0 : index
    %d = arith.index_castui %n : i32 to index
    %some = arith.cmpi ne, %d, %c0 : index
    %y = scf.if %some -> (f16) {
      %half = arith.divui %i, %c2 : index
      %q = arith.divui %half, %d : index
      %in = arith.remui %q, %c512 : index
      %v = tensor.extract %x[%in] : tensor<512xf16>
      scf.yield %v : f16
    } else {
      scf.yield %zero : f16
    }
    linalg.yield %y : f16
  } -> tensor<4096xf16>
  return %r : tensor<4096xf16>
}
