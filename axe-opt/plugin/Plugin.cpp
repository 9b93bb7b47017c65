//===- Plugin.cpp - Axe for a stock mlir-opt ------------------------------===//
//
//   mlir-opt-22 --load-dialect-plugin=libAxePlugin.so \
//               --load-pass-plugin=libAxePlugin.so ...
//
// MLIR's C++ is left to the host process, whose libMLIR must be the one that
// this plugin was linked to: Host.h finds out.
//
//===----------------------------------------------------------------------===//

#include "Axe.h"
#include "Host.h"
#include "TrnRegister.h"
#include "axe-c/Register.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

/// Whether another copy of the plugin has registered its targets: dialects and
/// passes of two copies would be different things of one name.
static bool isSecondCopy(DialectRegistry *registry) {
  static bool first = false;
  if (first)
    return false;
  bool taken = PassPipelineInfo::lookup("axe-nvidia") ||
               (registry && registry->getDialectAllocator("axe"));
  if (taken)
    axe::complain("it is loaded from two paths, and this one is ignored: give "
                  "--load-dialect-plugin and --load-pass-plugin the same path");
  else
    first = true;
  return taken;
}

static void registerDialects(DialectRegistry *registry) {
  if (isSecondCopy(registry))
    return;
  axeRegisterTargets();
  registry->insert<axe::AxeDialect>();
  trn::registerDialect(*registry);
}

static void registerPasses() {
  if (isSecondCopy(nullptr))
    return;
  axeRegisterTargets();
  axeRegisterPasses();
}

extern "C" LLVM_ATTRIBUTE_WEAK LLVM_EXTERNAL_VISIBILITY DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  // A version that no host takes makes it say so, and go on without.
  if (!axe::hostSharesMlir())
    return {0, "Axe", LLVM_VERSION_STRING, nullptr};
  return {MLIR_PLUGIN_API_VERSION, "Axe", LLVM_VERSION_STRING,
          registerDialects};
}

extern "C" LLVM_ATTRIBUTE_WEAK LLVM_EXTERNAL_VISIBILITY PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  if (!axe::hostSharesMlir())
    return {0, "Axe", LLVM_VERSION_STRING, nullptr};
  return {MLIR_PLUGIN_API_VERSION, "Axe", LLVM_VERSION_STRING, registerPasses};
}
