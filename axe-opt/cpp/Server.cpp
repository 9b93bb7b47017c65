//===- Server.cpp - MLIR's language server, where the parser crashes ------===//

#include "Survive.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/SourceMgr.h"

#include <dlfcn.h>

using namespace mlir;

/// Parses a text that MLIR's parser survives; any other is an error where it
/// begins to be one. MLIR's server calls this function on each text of an
/// editor, and has no other place to look at it: the definition here stands
/// before that of libMLIR.so, and is weak, so that it gives way to MLIR's where
/// that is linked in.
__attribute__((weak)) LogicalResult mlir::parseAsmSourceFile(
    const llvm::SourceMgr &sources, Block *block, const ParserConfig &config,
    AsmParserState *state, AsmParserCodeCompleteContext *complete) {
  const llvm::MemoryBuffer &buffer =
      *sources.getMemoryBuffer(sources.getMainFileID());
  if (std::optional<axe::Refusal> found = axe::refusal(buffer.getBuffer())) {
    auto [line, column] = sources.getLineAndColumn(
        llvm::SMLoc::getFromPointer(buffer.getBufferStart() + found->at));
    return emitError(FileLineColLoc::get(config.getContext(),
                                         buffer.getBufferIdentifier(), line,
                                         column),
                     found->message);
  }
  using Parse =
      LogicalResult(const llvm::SourceMgr &, Block *, const ParserConfig &,
                    AsmParserState *, AsmParserCodeCompleteContext *);
  auto *parse = reinterpret_cast<Parse *>(
      dlsym(RTLD_NEXT,
            "_ZN4mlir18parseAsmSourceFileERKN4llvm9SourceMgrEPNS_5BlockERKNS_"
            "12ParserConfigEPNS_14AsmParserStateEPNS_"
            "28AsmParserCodeCompleteContextE"));
  if (!parse)
    return emitError(UnknownLoc::get(config.getContext()),
                     "MLIR's parser is not there");
  return parse(sources, block, config, state, complete);
}

LogicalResult axe::lspMain(int argc, char **argv, DialectRegistry &registry) {
  return MlirLspServerMain(argc, argv, registry);
}
