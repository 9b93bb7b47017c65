// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s

// Sizes that a program forms of known numbers are those numbers: of bits of whole integers, and of numbers below zero, too.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[FIVE:.*]] = arith.constant 5 : index
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: return %{{.*}}, %[[FIVE]], %[[ZERO]], %[[ONE]] : tensor<5x?xf32>, index, index, i64
func.func @sizes(%t: tensor<?x5xf32>) -> (tensor<5x?xf32>, index, index, i64) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %below = arith.constant -5 : index
  %true = arith.constant true
  %d = tensor.dim %t, %c0 : tensor<?x5xf32>
  %five = arith.xori %c6, %c3 : index
  %zero = arith.maxsi %below, %c0 : index
  %one = arith.extui %true : i1 to i64
  %shape = tensor.from_elements %five, %d : tensor<2xindex>
  %r = tensor.reshape %t(%shape) : (tensor<?x5xf32>, tensor<2xindex>) -> tensor<5x?xf32>
  return %r, %five, %zero, %one : tensor<5x?xf32>, index, index, i64
}
