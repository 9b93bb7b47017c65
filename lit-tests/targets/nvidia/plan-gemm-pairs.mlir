// Gated activations of two columns of a product's result: its kernel forms them, where that is predicted to take no more time than a
// kernel of their own.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// A stage of B is made of a box of each half. What is stored is half as wide.
// CHECK-LABEL: func.func @halves
// CHECK: axe.launch @halves_0_gemm {{.*}} outs(%{{.*}} : tensor<512x4096xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @halves_0_gemm(%{{.*}}: memref<512x1024xf16>, %[[B:.*]]: memref<8192x1024xf16>, %{{.*}}: memref<8192xf16>, %{{.*}}: memref<512x4096xf16>)
// CHECK: %[[HALF:.*]] = arith.constant 4096 : index
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST:.*]], %[[HALF]] : index
// CHECK: axe.slice %[[B]][%[[FIRST]], %{{.*}}] : memref<8192x1024xf16> to memref<[[STAGE:[0-9]+x64xf16]],
// CHECK: axe.slice %[[B]][%[[SECOND]], %{{.*}}] : memref<8192x1024xf16> to memref<[[STAGE]],
func.func @halves(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>, %b: tensor<8192xf16>) -> tensor<512x4096xf16> {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %bb = axe.broadcast %b dims [0] : tensor<8192xf16> -> tensor<512x8192xf16>
  %h = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %l = axe.map ins(%h, %bb : tensor<512x8192xf16>, tensor<512x8192xf16>) -> tensor<512x8192xf16> {
  ^bb0(%x: f16, %y: f16):
    %1 = arith.addf %x, %y : f16
    axe.yield %1 : f16
  }
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %t = math.tanh %x : f16
    %m = arith.mulf %t, %y : f16
    axe.yield %m : f16
  }
  return %o : tensor<512x4096xf16>
}

// -----

// A matrix of neighbours is read as rows of pairs, one behind the other.
// CHECK-LABEL: func.func @neighbours
// CHECK: axe.launch @neighbours_0_gemm {{.*}} ins(%{{.*}} : tensor<512x1024xf16>, tensor<4096x2048xf16>)
// CHECK-NOT: axe.launch
func.func @neighbours(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>) -> tensor<512x4096xf16> {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %l = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 2] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 1] [512, 4096] [1, 2] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o : tensor<512x4096xf16>
}

// -----

// The function returns the product's result too, as the forward pass of a model does that is trained: one kernel stores both.
// CHECK-LABEL: func.func @also_read
// CHECK: axe.launch @also_read_0_gemm {{.*}} outs(%{{.*}} : tensor<512x8192xf16>, tensor<512x4096xf16>)
// CHECK-NOT: axe.launch
func.func @also_read(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>) -> (tensor<512x4096xf16>, tensor<512x8192xf16>) {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %l = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o, %l : tensor<512x4096xf16>, tensor<512x8192xf16>
}

// -----

// Neighbours, too, of which a thread has one column in two.
// CHECK-LABEL: func.func @neighbours_read
// CHECK: axe.launch @neighbours_read_0_gemm {{.*}} outs(%{{.*}} : tensor<512x8192xf16>, tensor<512x4096xf16>)
// CHECK-NOT: axe.launch
func.func @neighbours_read(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>) -> (tensor<512x4096xf16>, tensor<512x8192xf16>) {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %l = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 2] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 1] [512, 4096] [1, 2] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o, %l : tensor<512x4096xf16>, tensor<512x8192xf16>
}

// -----

// Rows that are counted at run time: loops that take one column of each pair are formed by what reads them, or are a kernel.
// CHECK-LABEL: func.func @counted
// CHECK: axe.launch @counted_0_gemm {{.*}} outs(%{{.*}} : tensor<?x4096xf16>)
// CHECK-NOT: axe.launch
func.func @counted(%a: tensor<?x1024xf16>, %w: tensor<8192x1024xf16>) -> tensor<?x4096xf16> {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %a, %zero : tensor<?x1024xf16>
  %p = axe.gemm %a, %w {trans_b} : tensor<?x1024xf16>, tensor<8192x1024xf16> -> tensor<?x8192xf32>
  %l = axe.cast %p : tensor<?x8192xf32> -> tensor<?x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [%rows, 4096] [1, 1] : tensor<?x8192xf16> to tensor<?x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [%rows, 4096] [1, 1] : tensor<?x8192xf16> to tensor<?x4096xf16>
  %t = axe.map ins(%g : tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  ^bb0(%x: f16):
    %t = math.tanh %x : f16
    axe.yield %t : f16
  }
  %o = axe.map ins(%t, %u : tensor<?x4096xf16>, tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o : tensor<?x4096xf16>
}

// -----

// What the gate is formed of is stored too, and read where it lies.
// CHECK-LABEL: func.func @counted_read
// CHECK: %[[L:.*]] = axe.launch @counted_read_0_gemm
// CHECK: axe.launch @counted_read_1_map {{.*}} ins(%[[L]], %[[L]] : tensor<?x8192xf16>, tensor<?x8192xf16>)
// CHECK-NOT: axe.launch
func.func @counted_read(%a: tensor<?x1024xf16>, %w: tensor<8192x1024xf16>) -> (tensor<?x4096xf16>, tensor<?x8192xf16>) {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %a, %zero : tensor<?x1024xf16>
  %p = axe.gemm %a, %w {trans_b} : tensor<?x1024xf16>, tensor<8192x1024xf16> -> tensor<?x8192xf32>
  %l = axe.cast %p : tensor<?x8192xf32> -> tensor<?x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [%rows, 4096] [1, 1] : tensor<?x8192xf16> to tensor<?x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [%rows, 4096] [1, 1] : tensor<?x8192xf16> to tensor<?x4096xf16>
  %o = axe.map ins(%g, %u : tensor<?x4096xf16>, tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o, %l : tensor<?x4096xf16>, tensor<?x8192xf16>
}

// -----

// One of them is a product's operand.
// CHECK-LABEL: func.func @counted_apart
// CHECK: axe.launch @counted_apart_0_gemm
// CHECK: axe.launch @counted_apart_1_loops
// CHECK: axe.launch @counted_apart_2_gemm
// CHECK-NOT: axe.launch
func.func @counted_apart(%a: tensor<?x1024xf16>, %w: tensor<2048x1024xf16>, %v: tensor<1024x1024xf16>) -> tensor<?x1024xf32> {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %a, %zero : tensor<?x1024xf16>
  %p = axe.gemm %a, %w {trans_b} : tensor<?x1024xf16>, tensor<2048x1024xf16> -> tensor<?x2048xf32>
  %l = axe.cast %p : tensor<?x2048xf32> -> tensor<?x2048xf16>
  %g = tensor.extract_slice %l[0, 0] [%rows, 1024] [1, 1] : tensor<?x2048xf16> to tensor<?x1024xf16>
  %o = axe.gemm %g, %v {trans_b} : tensor<?x1024xf16>, tensor<1024x1024xf16> -> tensor<?x1024xf32>
  return %o : tensor<?x1024xf32>
}

// -----

// Three columns are no pair.
// CHECK-LABEL: func.func @thirds
// CHECK: axe.launch @thirds_0_gemm
// CHECK: axe.launch @thirds_1_loops
func.func @thirds(%a: tensor<512x1024xf16>, %w: tensor<6144x1024xf16>) -> tensor<512x2048xf16> {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<6144x1024xf16> -> tensor<512x6144xf32>
  %l = axe.cast %p : tensor<512x6144xf32> -> tensor<512x6144xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 2048] [1, 1] : tensor<512x6144xf16> to tensor<512x2048xf16>
  %u = tensor.extract_slice %l[0, 2048] [512, 2048] [1, 1] : tensor<512x6144xf16> to tensor<512x2048xf16>
  %o = axe.map ins(%g, %u : tensor<512x2048xf16>, tensor<512x2048xf16>) -> tensor<512x2048xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o : tensor<512x2048xf16>
}

// -----

// What the rows are reduced to in blocks of columns is formed beside them, and not the pairs.
// CHECK-LABEL: func.func @blocks
// CHECK: axe.launch @blocks_0_gemm
// CHECK: axe.launch @blocks_{{[12]}}_loops
func.func @blocks(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>) -> (tensor<512xf16>, tensor<512x4096xf16>) {
  %p = axe.gemm %a, %w {trans_b} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %l = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %max = axe.reduce <max> %l dims [1] : tensor<512x8192xf16> -> tensor<512xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %max, %o : tensor<512xf16>, tensor<512x4096xf16>
}

// -----

// The plan's tile has both columns of no pair.
// CHECK-LABEL: func.func @planned
// CHECK: axe.launch @planned_0_gemm
// CHECK: axe.launch @planned_1_loops
func.func @planned(%a: tensor<512x1024xf16>, %w: tensor<8192x1024xf16>) -> tensor<512x4096xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 168, 64>}} : tensor<512x1024xf16>, tensor<8192x1024xf16> -> tensor<512x8192xf32>
  %l = axe.cast %p : tensor<512x8192xf32> -> tensor<512x8192xf16>
  %g = tensor.extract_slice %l[0, 0] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %u = tensor.extract_slice %l[0, 4096] [512, 4096] [1, 1] : tensor<512x8192xf16> to tensor<512x4096xf16>
  %o = axe.map ins(%g, %u : tensor<512x4096xf16>, tensor<512x4096xf16>) -> tensor<512x4096xf16> {
  ^bb0(%x: f16, %y: f16):
    %m = arith.mulf %x, %y : f16
    axe.yield %m : f16
  }
  return %o : tensor<512x4096xf16>
}
