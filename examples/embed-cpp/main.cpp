//===- main.cpp - A compiler of its own that embeds Axe -------------------===//
//
// Reads a module in the dialect tiny, lowers it to linalg, has Axe plan and
// emit kernels, and prints their PTX. The function that is left launches them
// (docs/launch.md).
//
//===----------------------------------------------------------------------===//
#include "Tiny.h"

#include <axe/Passes.h>
#include <axe/Register.h>

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: tiny-compiler FILE CHIP\n";
    return 2;
  }
  DialectRegistry registry;
  axe::registerAll(registry);
  registry.insert<tiny::TinyDialect>();
  MLIRContext context(registry);
  // Diagnostics show the line that they are of.
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(argv[1], sources, &context);
  if (!module)
    return 1;

  PassManager passes(&context);
  passes.addPass(tiny::createLowerTinyPass());
  std::string pipeline = std::string("axe-nvidia{target=") + argv[2] + "}";
  if (failed(parsePassPipeline(pipeline, passes)))
    return 1;
  // Passes of Axe are made as MLIR's are.
  passes.addPass(axe::createAxeVerifyCodePass());
  if (failed(passes.run(*module)))
    return 1;

  for (gpu::BinaryOp binary : module->getOps<gpu::BinaryOp>())
    for (Attribute object : binary.getObjects())
      llvm::outs() << cast<gpu::ObjectAttr>(object).getObject().getValue();
  return 0;
}
