//===- AxeDialect.cpp - Registration of the axe dialect -------------------===//

#include "Axe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace axe;

#include "AxeDialect.cpp.inc"
#include "AxeEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "AxeTypes.cpp.inc"

void AxeDialect::initialize() {
  registerAttributes();
  registerSignatureChecks();
  addTypes<
#define GET_TYPEDEF_LIST
#include "AxeTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "AxeOps.cpp.inc"
      >();
}
