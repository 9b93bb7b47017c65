//===- Survive.h - MLIR's mains, where the parser crashes -----------------===//

#ifndef AXE_OPT_SURVIVE_H
#define AXE_OPT_SURVIVE_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace axe {

/// What in a text MLIR's parser would not survive.
struct Refusal {
  /// The byte where it is.
  size_t at;
  /// What was expected.
  std::string message;
};

/// The first of it, if there is any (dialect/rust/src/text).
std::optional<Refusal> refusal(llvm::StringRef text);

/// mlir-opt's main. Text that MLIR's parser does not survive is an error, as
/// other text that does not parse; after parsing a crash is what it is in
/// mlir-opt.
llvm::LogicalResult optMain(int argc, char **argv,
                            mlir::DialectRegistry &registry);

/// The language server's main, which takes texts of editors in the same way.
llvm::LogicalResult lspMain(int argc, char **argv,
                            mlir::DialectRegistry &registry);

} // namespace axe

#endif // AXE_OPT_SURVIVE_H
