//===- Tiny.h - A dialect of its own ----------------------------*- C++ -*-===//
//
// Two operations, and the pass that says them in linalg. A compiler of some
// size would make the classes with ODS.
//
//===----------------------------------------------------------------------===//
#ifndef TINY_H
#define TINY_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Pass/Pass.h"

namespace tiny {

/// `tiny.matmul`: the product of two matrices.
class MatmulOp
    : public mlir::Op<MatmulOp, mlir::OpTrait::ZeroRegions,
                      mlir::OpTrait::OneResult, mlir::OpTrait::ZeroSuccessors,
                      mlir::OpTrait::NOperands<2>::Impl> {
public:
  using Op::Op;
  static llvm::StringRef getOperationName() { return "tiny.matmul"; }
  static llvm::ArrayRef<llvm::StringRef> getAttributeNames() { return {}; }
};

/// `tiny.relu`: each element, or 0 where that is larger.
class ReluOp
    : public mlir::Op<ReluOp, mlir::OpTrait::ZeroRegions,
                      mlir::OpTrait::OneResult, mlir::OpTrait::ZeroSuccessors,
                      mlir::OpTrait::OneOperand> {
public:
  using Op::Op;
  static llvm::StringRef getOperationName() { return "tiny.relu"; }
  static llvm::ArrayRef<llvm::StringRef> getAttributeNames() { return {}; }
};

class TinyDialect : public mlir::Dialect {
public:
  explicit TinyDialect(mlir::MLIRContext *context);
  static llvm::StringRef getDialectNamespace() { return "tiny"; }
};

/// Says the operations of a module in linalg on tensors, which Axe takes.
std::unique_ptr<mlir::Pass> createLowerTinyPass();

} // namespace tiny

MLIR_DECLARE_EXPLICIT_TYPE_ID(tiny::TinyDialect)
MLIR_DECLARE_EXPLICIT_TYPE_ID(tiny::MatmulOp)
MLIR_DECLARE_EXPLICIT_TYPE_ID(tiny::ReluOp)

#endif // TINY_H
