//===- Driver.cpp - mlir-opt's command line over the axe dialect ----------===//

#include "Axe.h"
#include "Passes.h"
#include "Survive.h"
#include "TrnRegister.h"

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

extern "C" MlirDialectHandle mlirGetDialectHandle__axe_tm_tensor__();

/// Adds a line of ours to --version, which LLVM prints.
static void sayVersion(llvm::raw_ostream &os) { os << "Axe " AXE_VERSION "\n"; }

static void registerEverything(mlir::DialectRegistry &registry) {
  llvm::cl::AddExtraVersionPrinter(sayVersion);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllGPUToLLVMIRTranslations(registry);
  registry.insert<axe::AxeDialect>();
  trn::registerDialect(registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__axe_tm_tensor__(),
                                 wrap(&registry));
}

/// Runs mlir-opt's main over all upstream dialects and passes, and axe's.
extern "C" int axeOptMain(int argc, char **argv) {
  mlir::registerAllPasses();
  axe::registerPasses();
  mlir::DialectRegistry registry;
  registerEverything(registry);
  return mlir::asMainReturnCode(axe::optMain(argc, argv, registry));
}

/// Runs the language server over the same dialects.
extern "C" int axeLspServerMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerEverything(registry);
  return mlir::failed(axe::lspMain(argc, argv, registry));
}
