//===- Register.h - All of Axe in one call ----------------------*- C++ -*-===//
#ifndef AXE_REGISTER_H
#define AXE_REGISTER_H

#include "axe-c/Register.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/DialectRegistry.h"

namespace axe {

/// Registers what a program needs that compiles with Axe: targets, passes and
/// pipelines, with MLIR's own passes that pipelines name; and, in the registry,
/// the dialects axe and trn, MLIR's dialects, and the external models and
/// translations down to PTX and to the host. Call it before contexts are made.
inline void registerAll(mlir::DialectRegistry &registry) {
  axeRegisterAll(wrap(&registry));
}

} // namespace axe

#endif // AXE_REGISTER_H
