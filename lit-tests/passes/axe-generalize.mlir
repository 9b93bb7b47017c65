// RUN: axe-opt %s --axe-generalize --split-input-file | FileCheck %s

// A slice's element is where its offsets and strides say; a dimension that is left out has its offset.
// CHECK-LABEL: @slice
// CHECK: %[[E:.*]] = tensor.empty() : tensor<5xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}], iterator_types = ["parallel"]} outs(%[[E]] : tensor<5xf32>)
// CHECK: %[[I:.*]] = linalg.index 0 : index
// CHECK: %[[S:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK: %[[P:.*]] = arith.addi %[[S]], %{{.*}} : index
// CHECK: tensor.extract %arg0[%{{.*}}, %[[P]]] : tensor<4x16xf32>
func.func @slice(%x: tensor<4x16xf32>) -> tensor<5xf32> {
  %y = tensor.extract_slice %x[1, 3] [1, 5] [1, 2] : tensor<4x16xf32> to tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

// The size of a dynamic slice is the result's.
// CHECK-LABEL: @dynamic_slice
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf16>, %[[O:.*]]: index, %[[N:.*]]: index
// CHECK: tensor.empty(%[[N]]) : tensor<?x8xf16>
// CHECK: arith.addi %{{.*}}, %[[O]] : index
func.func @dynamic_slice(%x: tensor<?x8xf16>, %o: index, %n: index) -> tensor<?x8xf16> {
  %y = tensor.extract_slice %x[%o, 0] [%n, 8] [1, 1] : tensor<?x8xf16> to tensor<?x8xf16>
  return %y : tensor<?x8xf16>
}

// -----

// An insertion takes each element from the source where that has one, and asks nothing of a whole dimension.
// CHECK-LABEL: @insert
// CHECK: %[[I:.*]] = linalg.index 0 : index
// CHECK: %[[J:.*]] = linalg.index 1 : index
// CHECK: %[[P:.*]] = arith.subi %[[I]], %{{.*}} : index
// CHECK: %[[L:.*]] = arith.cmpi sge, %[[P]]
// CHECK: %[[R:.*]] = arith.remsi %[[P]]
// CHECK: arith.cmpi eq, %[[R]]
// CHECK: %[[Q:.*]] = arith.divsi %[[P]]
// CHECK: arith.cmpi slt, %[[Q]]
// CHECK-NOT: arith.cmpi
// CHECK: scf.if
// CHECK: tensor.extract %arg0[%[[Q]], %[[J]]]
// CHECK: else
// CHECK: tensor.extract %arg1[%[[I]], %[[J]]]
func.func @insert(%x: tensor<3x8xi32>, %into: tensor<9x8xi32>) -> tensor<9x8xi32> {
  %y = tensor.insert_slice %x into %into[1, 0] [3, 8] [2, 1] : tensor<3x8xi32> into tensor<9x8xi32>
  return %y : tensor<9x8xi32>
}

// -----

// CHECK-LABEL: @pad
// CHECK: %[[C:.*]] = arith.constant 1.5
// CHECK: scf.if
// CHECK: tensor.extract %arg0
// CHECK: else
// CHECK: scf.yield %[[C]]
func.func @pad(%x: tensor<4xf32>) -> tensor<7xf32> {
  %c = arith.constant 1.5 : f32
  %y = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<4xf32> to tensor<7xf32>
  return %y : tensor<7xf32>
}

// -----

// CHECK-LABEL: @concat
// CHECK: scf.if
// CHECK: tensor.extract %arg0
// CHECK: else
// CHECK: scf.if
// CHECK: tensor.extract %arg1
// CHECK: else
// CHECK: tensor.extract %arg0
func.func @concat(%x: tensor<4x2xf32>, %y: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %z = tensor.concat dim(1) %x, %y, %x : (tensor<4x2xf32>, tensor<4x?xf32>, tensor<4x2xf32>) -> tensor<4x?xf32>
  return %z : tensor<4x?xf32>
}

// -----

// CHECK-LABEL: @elements
// CHECK-COUNT-2: arith.select
// CHECK: linalg.yield
// CHECK: linalg.yield %arg0
// CHECK: arith.addi
// CHECK: linalg.yield
// CHECK: scf.if
func.func @elements(%a: i64, %b: i64, %n: index) -> (tensor<3xi64>, tensor<?xi64>, tensor<?xindex>, tensor<3xi64>) {
  %0 = tensor.from_elements %a, %b, %a : tensor<3xi64>
  %1 = tensor.splat %a[%n] : tensor<?xi64>
  %2 = tensor.generate %n {
  ^bb0(%i: index):
    %j = arith.addi %i, %n : index
    tensor.yield %j : index
  } : tensor<?xindex>
  %3 = tensor.insert %b into %0[%n] : tensor<3xi64>
  return %0, %1, %2, %3 : tensor<3xi64>, tensor<?xi64>, tensor<?xindex>, tensor<3xi64>
}

// -----

// Reshapes stay, and what has a layout.
// CHECK-LABEL: @stays
// CHECK: tensor.collapse_shape
// CHECK: tensor.extract_slice
func.func @stays(%x: tensor<4x4xf32>, %y: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) -> (tensor<16xf32>, tensor<4xf32, #axe.layout<S[4 : 1@lane]>>) {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %1 = tensor.extract_slice %y[0] [4] [1] : tensor<8xf32, #axe.layout<S[8 : 1@lane]>> to tensor<4xf32, #axe.layout<S[4 : 1@lane]>>
  return %0, %1 : tensor<16xf32>, tensor<4xf32, #axe.layout<S[4 : 1@lane]>>
}
