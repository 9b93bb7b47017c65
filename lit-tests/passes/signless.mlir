// RUN: axe-opt %s --convert-linalg-to-axe | FileCheck %s

// The sign of integers is in the types of arguments and results alone, and goes.
// CHECK-LABEL: func.func @most
// CHECK-SAME: (%[[X:.*]]: tensor<5x33xi8>) -> tensor<5xi8>
// CHECK-NOT: unrealized_conversion_cast
// CHECK: axe.reduce <maxui> %[[X]]
func.func @most(%x: tensor<5x33xui8>) -> tensor<5xui8> {
  %c0 = arith.constant 0 : i8
  %s = builtin.unrealized_conversion_cast %x : tensor<5x33xui8> to tensor<5x33xi8>
  %e = tensor.empty() : tensor<5xi8>
  %f = linalg.fill ins(%c0 : i8) outs(%e : tensor<5xi8>) -> tensor<5xi8>
  %m = linalg.reduce { arith.maxui } ins(%s : tensor<5x33xi8>) outs(%f : tensor<5xi8>) dimensions = [1]
  %y = builtin.unrealized_conversion_cast %m : tensor<5xi8> to tensor<5xui8>
  return %y : tensor<5xui8>
}

// A cast that a front end wrote for another reason stays.
// CHECK-LABEL: func.func @other
// CHECK: unrealized_conversion_cast
func.func @other(%x: tensor<4xui8>, %n: index) -> (tensor<4xui8>, i64) {
  %m = builtin.unrealized_conversion_cast %n : index to i64
  return %x, %m : tensor<4xui8>, i64
}
