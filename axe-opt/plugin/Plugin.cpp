//===- Plugin.cpp - Axe for a stock mlir-opt ------------------------------===//
//
//   mlir-opt-22 --load-dialect-plugin=libAxePlugin.so \
//               --load-pass-plugin=libAxePlugin.so ...
//
// MLIR's C++ is left to the host process: both must be of one LLVM version.
//
//===----------------------------------------------------------------------===//

#include "Axe.h"
#include "TrnRegister.h"
#include "axe-c/Register.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_EXTERNAL_VISIBILITY mlir::DialectPluginLibraryInfo
    mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Axe", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            axeRegisterTargets();
            registry->insert<axe::AxeDialect>();
            trn::registerDialect(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_EXTERNAL_VISIBILITY mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Axe", LLVM_VERSION_STRING, [] {
            axeRegisterTargets();
            axeRegisterPasses();
          }};
}
