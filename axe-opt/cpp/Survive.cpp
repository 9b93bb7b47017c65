//===- Survive.cpp - mlir-opt's main, where the parser crashes ------------===//

#include "Survive.h"

#include "mlir-c/Support.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <string>
#include <unistd.h>

using namespace llvm;

/// What in a text MLIR's parser would not survive, given to `tell`: the byte
/// where it is, or -1 (dialect/rust/src/text).
extern "C" int64_t axeRefusal(MlirStringRef text, MlirStringCallback tell,
                              void *user);

std::optional<axe::Refusal> axe::refusal(StringRef text) {
  Refusal found;
  auto keep = [](MlirStringRef text, void *user) {
    *static_cast<std::string *>(user) = unwrap(text).str();
  };
  int64_t at = axeRefusal(wrap(text), keep, &found.message);
  if (at < 0)
    return std::nullopt;
  found.at = static_cast<size_t>(at);
  return found;
}

/// Whether the text is refused, with a message in MLIR's form.
static bool refused(const MemoryBuffer &buffer) {
  std::optional<axe::Refusal> found = axe::refusal(buffer.getBuffer());
  if (!found)
    return false;
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(buffer), SMLoc());
  sources.PrintMessage(
      SMLoc::getFromPointer(buffer.getBufferStart() + found->at),
      SourceMgr::DK_Error, found->message);
  return true;
}

/// mlir-opt's work, in which a crash up to the first pass is an error. What
/// crashed is lost, and may hold locks: the process ends without destructors.
static LogicalResult survive(raw_ostream &os,
                             std::unique_ptr<MemoryBuffer> buffer,
                             mlir::DialectRegistry &registry,
                             const mlir::MlirOptMainConfig &config) {
  mlir::MlirOptMainConfig guarded = config;
  guarded.setPassPipelineSetupFn([&](mlir::PassManager &manager) {
    CrashRecoveryContext::Disable();
    return config.setupPassPipeline(manager);
  });
  std::string name = buffer->getBufferIdentifier().str();
  LogicalResult result = failure();
  CrashRecoveryContext::Enable();
  CrashRecoveryContext context;
  if (context.RunSafely([&] {
        result = mlir::MlirOptMain(os, std::move(buffer), registry, guarded);
      }))
    return result;
  errs() << name << ": error: MLIR's parser does not survive this text\n";
  errs().flush();
  sys::RunInterruptHandlers();
  _exit(1);
}

LogicalResult axe::optMain(int argc, char **argv,
                           mlir::DialectRegistry &registry) {
  // Before recovery: the handlers of the last come first.
  InitLLVM init(argc, argv);
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Axe optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  if (input == "-" && sys::Process::FileDescriptorIsDisplayed(fileno(stdin)))
    errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to "
              "interrupt)\n";
  std::string error;
  std::unique_ptr<MemoryBuffer> buffer = mlir::openInputFile(input, &error);
  if (!buffer || refused(*buffer)) {
    if (!error.empty())
      errs() << error << "\n";
    return failure();
  }
  std::unique_ptr<ToolOutputFile> file = mlir::openOutputFile(output, &error);
  if (!file) {
    errs() << error << "\n";
    return failure();
  }
  if (failed(survive(file->os(), std::move(buffer), registry, config)))
    return failure();
  file->keep();
  return success();
}
