//===- Speculation.cpp - Whether an operation may run unasked -------------===//

#include "PassAbi.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

bool axeIsSpeculatable(MlirOperation operation) {
  return mlir::isSpeculatable(unwrap(operation));
}
