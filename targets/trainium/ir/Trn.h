//===- Trn.h - The trn dialect ----------------------------------*- C++ -*-===//
#ifndef TRN_IR_TRN_H
#define TRN_IR_TRN_H

#include "TrnAbi.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace trn {

/// Operations that the rules of targets/trainium/program verify.
template <typename ConcreteOp>
class VerifiedByRules
    : public mlir::OpTrait::TraitBase<ConcreteOp, VerifiedByRules> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return mlir::success(trnVerify(wrap(op)));
  }
};

} // namespace trn

#include "TrnDialect.h.inc"
#include "TrnEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "TrnTypes.h.inc"

#define GET_OP_CLASSES
#include "TrnOps.h.inc"

#endif // TRN_IR_TRN_H
