//===- Survive.h - mlir-opt's main, where the parser crashes --------------===//

#ifndef AXE_OPT_SURVIVE_H
#define AXE_OPT_SURVIVE_H

#include "mlir/IR/DialectRegistry.h"

namespace axe {

/// mlir-opt's main. Text that MLIR's parser does not survive is an error, as
/// other text that does not parse; after parsing a crash is what it is in
/// mlir-opt.
llvm::LogicalResult optMain(int argc, char **argv,
                            mlir::DialectRegistry &registry);

} // namespace axe

#endif // AXE_OPT_SURVIVE_H
