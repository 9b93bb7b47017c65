//===- Pipelines.cpp - From linalg to the end, as registered pipelines ----===//
//
// A pipeline's text comes from Rust, where each target writes its own; this
// file gives it the options of mlir-opt's command line.
//
//===----------------------------------------------------------------------===//

#include "PassAbi.h"
#include "Passes.h"

#include "mlir/CAPI/Support.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

/// The passes of a pipeline as text, given to `sink`; false, with a message
/// given to `sink`, when the options do not fit.
extern "C" bool axePipelineText(MlirStringRef pipeline, intptr_t optionCount,
                                const AxePassOption *options,
                                MlirStringCallback sink, void *user);

namespace {

struct NvidiaOptions : PassPipelineOptions<NvidiaOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("The chip to compile for"),
                           llvm::cl::init("sm_90a")};
  Option<std::string> stop{
      *this, "until",
      llvm::cl::desc(
          "Stop after this level: logical, scheduled, target, nvvm, ptx"),
      llvm::cl::init("ptx")};
  Option<std::string> tuned{
      *this, "tuned",
      llvm::cl::desc("The database of tuned plans: a file, none, or (default) "
                     "the compiler's own"),
      llvm::cl::init("")};
};

struct CpuOptions : PassPipelineOptions<CpuOptions> {};

/// Fails with a message: a pipeline cannot refuse its options when it is built.
struct RefusePass : PassWrapper<RefusePass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RefusePass)
  explicit RefusePass(std::string message = {}) : message(std::move(message)) {}
  StringRef getArgument() const override { return "axe-refuse"; }
  void runOnOperation() override {
    getOperation()->emitError() << message;
    signalPassFailure();
  }
  std::string message;
};

void append(std::string &text, MlirStringRef part) {
  text += unwrap(part).str();
}

void build(OpPassManager &manager, StringRef name,
           ArrayRef<AxePassOption> options) {
  std::string text;
  auto sink = [](MlirStringRef part, void *user) {
    append(*static_cast<std::string *>(user), part);
  };
  if (!axePipelineText(wrap(name), options.size(), options.data(), sink,
                       &text)) {
    manager.addPass(std::make_unique<RefusePass>((name + ": " + text).str()));
    return;
  }
  if (failed(parsePassPipeline(text, manager)))
    manager.addPass(std::make_unique<RefusePass>(
        (name + ": cannot build the pipeline: " + text).str()));
}

} // namespace

namespace axe {

void registerPipelines() {
  PassPipelineRegistration<NvidiaOptions>(
      "axe-nvidia", "From linalg on tensors to PTX, through the axe dialect",
      [](OpPassManager &manager, const NvidiaOptions &options) {
        std::string chip = options.chip, until = options.stop,
                    tuned = options.tuned;
        AxePassOption passed[] = {
            {wrap(StringRef("chip")), wrap(StringRef(chip))},
            {wrap(StringRef("until")), wrap(StringRef(until))},
            {wrap(StringRef("tuned")), wrap(StringRef(tuned))}};
        build(manager, "axe-nvidia", passed);
      });
  PassPipelineRegistration<CpuOptions>(
      "axe-cpu",
      "From linalg on tensors to LLVM for the host, through the axe dialect",
      [](OpPassManager &manager, const CpuOptions &) {
        build(manager, "axe-cpu", {});
      });
}

} // namespace axe
