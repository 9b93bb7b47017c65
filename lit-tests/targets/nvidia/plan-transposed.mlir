// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// One kernel of rows as they lie in memory: no element is transposed.
// CHECK-LABEL: func.func @main
// CHECK: axe.launch @main_0_strided_rows {{.*}} ins(%{{.*}}, %{{.*}} : tensor<32x64x4096xf16>, tensor<64xf32>)
// CHECK-NOT: axe.launch
// CHECK: return
// Layer normalisation of channels, as a program with channels last writes it of a tensor with channels first.
func.func @main(%x: tensor<32x64x64x64xf16>, %g: tensor<64xf32>) -> tensor<32x64x64x64xf16> {
  %n = arith.constant 64.0 : f32
  %one = arith.constant 1.0 : f32
  %t = axe.transpose %x [0, 2, 3, 1] : tensor<32x64x64x64xf16> -> tensor<32x64x64x64xf16>
  %w = axe.cast %t : tensor<32x64x64x64xf16> -> tensor<32x64x64x64xf32>
  %s = axe.reduce <add> %w dims [3] : tensor<32x64x64x64xf32> -> tensor<32x64x64xf32>
  %mean = axe.map ins(%s : tensor<32x64x64xf32>) -> tensor<32x64x64xf32> {
  ^bb0(%u: f32):
    %q = arith.divf %u, %n : f32
    axe.yield %q : f32
  }
  %means = axe.broadcast %mean dims [3] : tensor<32x64x64xf32> -> tensor<32x64x64x64xf32>
  %d = axe.map ins(%w, %means : tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>) -> tensor<32x64x64x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.subf %u, %v : f32
    axe.yield %q : f32
  }
  %e = axe.map ins(%d, %d : tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>) -> tensor<32x64x64x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.mulf %u, %v : f32
    axe.yield %q : f32
  }
  %v = axe.reduce <add> %e dims [3] : tensor<32x64x64x64xf32> -> tensor<32x64x64xf32>
  %r = axe.map ins(%v : tensor<32x64x64xf32>) -> tensor<32x64x64xf32> {
  ^bb0(%u: f32):
    %q = arith.divf %u, %n : f32
    %a = arith.addf %q, %one : f32
    %b = math.rsqrt %a : f32
    axe.yield %b : f32
  }
  %rs = axe.broadcast %r dims [3] : tensor<32x64x64xf32> -> tensor<32x64x64x64xf32>
  %gs = axe.broadcast %g dims [0, 1, 2] : tensor<64xf32> -> tensor<32x64x64x64xf32>
  %ones = axe.fill %one : f32 -> tensor<32x64x64x64xf32>
  %y = axe.map ins(%d, %rs, %gs, %ones : tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>, tensor<32x64x64x64xf32>) -> tensor<32x64x64x64xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %p = arith.mulf %q, %c : f32
    %z = arith.addf %p, %o : f32
    axe.yield %z : f32
  }
  %c = axe.cast %y : tensor<32x64x64x64xf32> -> tensor<32x64x64x64xf16>
  %o = axe.transpose %c [0, 3, 1, 2] : tensor<32x64x64x64xf16> -> tensor<32x64x64x64xf16>
  return %o : tensor<32x64x64x64xf16>
}

// -----

// Elementwise operators between transposes are those of what is transposed.
// CHECK-LABEL: func.func @map
// CHECK: axe.launch @map_0_map {{.*}} ins(%{{.*}} : tensor<{{.*}}xf32>)
// CHECK-NOT: axe.launch
// CHECK: return
func.func @map(%x: tensor<64x32x64xf32>) -> tensor<64x32x64xf32> {
  %t = axe.transpose %x [0, 2, 1] : tensor<64x32x64xf32> -> tensor<64x64x32xf32>
  %y = axe.map ins(%t : tensor<64x64x32xf32>) -> tensor<64x64x32xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %u : f32
    axe.yield %q : f32
  }
  %o = axe.transpose %y [0, 2, 1] : tensor<64x64x32xf32> -> tensor<64x32x64xf32>
  return %o : tensor<64x32x64xf32>
}

// -----

// What something else reads in the other order stays in it.
// CHECK-LABEL: func.func @read
// CHECK: axe.launch @read_0_transpose
// CHECK: axe.launch @read_1_map
// CHECK: axe.launch @read_2_transpose
func.func @read(%x: tensor<64x32x64xf32>) -> (tensor<64x32x64xf32>, tensor<64x64x32xf32>) {
  %t = axe.transpose %x [0, 2, 1] : tensor<64x32x64xf32> -> tensor<64x64x32xf32>
  %y = axe.map ins(%t : tensor<64x64x32xf32>) -> tensor<64x64x32xf32> {
  ^bb0(%u: f32):
    %q = arith.mulf %u, %u : f32
    axe.yield %q : f32
  }
  %o = axe.transpose %y [0, 2, 1] : tensor<64x64x32xf32> -> tensor<64x32x64xf32>
  return %o, %y : tensor<64x32x64xf32>, tensor<64x64x32xf32>
}

// -----

// So does what is computed with a tensor that is in that order.
// CHECK-LABEL: func.func @with
// CHECK: axe.launch @with_0_transpose
func.func @with(%x: tensor<64x32x64xf32>, %z: tensor<64x64x32xf32>) -> tensor<64x32x64xf32> {
  %t = axe.transpose %x [0, 2, 1] : tensor<64x32x64xf32> -> tensor<64x64x32xf32>
  %y = axe.map ins(%t, %z : tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.mulf %u, %v : f32
    axe.yield %q : f32
  }
  %o = axe.transpose %y [0, 2, 1] : tensor<64x64x32xf32> -> tensor<64x32x64xf32>
  return %o : tensor<64x32x64xf32>
}

// -----

// And reductions that leave dimensions in another order.
// CHECK-LABEL: func.func @order
// CHECK: axe.launch @order_0_transpose
func.func @order(%x: tensor<8x32x64xf32>) -> tensor<64x32xf32> {
  %t = axe.transpose %x [2, 1, 0] : tensor<8x32x64xf32> -> tensor<64x32x8xf32>
  %y = axe.reduce <add> %t dims [2] : tensor<64x32x8xf32> -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

// Rows of a transpose, of which loops read one element each: it is read where it lies.
// CHECK-LABEL: func.func @main
// CHECK-NOT: _transpose
// CHECK: return
// CHECK: axe.kernel
// CHECK: memref.load %{{.*}}[%[[I:.*]], %[[I]]] : memref<4096x4096xf16>
func.func @main(%x: tensor<4096x4096xf16>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %t = axe.transpose %x [1, 0] : tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  %w = axe.cast %t : tensor<4096x4096xf16> -> tensor<4096x4096xf32>
  %s = axe.reduce <max> %w dims [1] : tensor<4096x4096xf32> -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4096xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %q = tensor.extract %w[%i, %i] : tensor<4096x4096xf32>
    linalg.yield %q : f32
  } -> tensor<4096xf32>
  return %s, %d : tensor<4096xf32>, tensor<4096xf32>
}
