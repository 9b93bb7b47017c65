// RUN: not axe-opt %s --convert-linalg-to-axe --split-input-file 2>&1 | FileCheck %s

// A named product extends its operands as signed where it says nothing else.
// CHECK: signless_errors.mlir:[[#@LINE+4]]:8: error: 'linalg.matmul' extends i8 as signed, and this operand was tensor<4x8xui8>: expected cast = #linalg.type_fn<cast_unsigned>, or an arith.extui of the operand
func.func @product(%x: tensor<4x8xui8>, %w: tensor<8x4xi8>) -> tensor<4x4xi32> {
  %a = builtin.unrealized_conversion_cast %x : tensor<4x8xui8> to tensor<4x8xi8>
  %e = tensor.empty() : tensor<4x4xi32>
  %y = linalg.matmul ins(%a, %w : tensor<4x8xi8>, tensor<8x4xi8>) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  return %y : tensor<4x4xi32>
}
