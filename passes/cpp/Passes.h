//===- Passes.h - The passes of axe -----------------------------*- C++ -*-===//
//
// Each pass has a structure of options and a function that makes it, such as
// axe::createAxeTilePass(axe::AxeTilePassOptions{...});
// docs/reference/passes.md says what they do. Their work is done by what
// axe::registerAll or axeRegisterTargets registers: without, a pass fails with
// an error.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_PASSES_PASSES_H
#define AXE_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace axe {

#define GEN_PASS_DECL
#include "AxePasses.h.inc"

/// Registers every pass with MLIR, for textual pipelines. Calling it again does
/// nothing.
void registerPasses();

} // namespace axe

#endif // AXE_PASSES_PASSES_H
