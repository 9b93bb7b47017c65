//===- TMTensor.cpp - torch-mlir's tm_tensor, to read it ------------------===//

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "TMTensorDialect.h.inc"
#define GET_OP_CLASSES
#include "TMTensorOps.h.inc"

using namespace mlir;
using namespace axe::tm_tensor;

#include "TMTensorDialect.cpp.inc"

void TMTensorDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TMTensorOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "TMTensorOps.cpp.inc"

// A name of its own: torch-mlir's C API may be in the same process.
extern "C" {
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(AxeTMTensor, axe_tm_tensor);
}
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(AxeTMTensor, axe_tm_tensor,
                                      TMTensorDialect)
