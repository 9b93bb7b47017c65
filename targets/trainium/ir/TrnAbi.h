//===- TrnAbi.h - Between the dialect's C++ and the rules in Rust -*- C -*-===//
//
// The rules are the Rust crate axe-trn; axe-trainium reads operations for them.
//
//===----------------------------------------------------------------------===//
#ifndef TRN_IR_TRNABI_H
#define TRN_IR_TRNABI_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Checks an operation by the rules; false after it reported what it breaks.
bool trnVerify(MlirOperation op);

/// The memory of a tile type: 0 HBM, 1 SBUF, 2 PSUM; -1 for another type.
int32_t trnTypeSpace(MlirType type);

/// The rank of a tile type; 0 for another type.
intptr_t trnTypeRank(MlirType type);

/// An extent of a tile type, with index below the rank.
int64_t trnTypeExtent(MlirType type, intptr_t index);

/// The element type of a tile type; null for another type.
MlirType trnTypeElement(MlirType type);

/// The handle of the dialect.
MlirDialectHandle mlirGetDialectHandle__trn__(void);

#ifdef __cplusplus
}
#endif

#endif // TRN_IR_TRNABI_H
