//===- Pipelines.cpp - From linalg to the end, as registered pipelines ----===//
//
// Targets register their pipelines from Rust: a name, options, and a function
// that writes the passes as text for them. This file gives them to mlir-opt's
// command line.
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

/// An option as Rust declares it; its strings live as long as the program.
struct Declared {
  StringRef name, help, value;
};
using Declarations = SmallVector<Declared, 4>;

/// The options of one pipeline, all of them text.
struct TextOptions : PassPipelineOptions<TextOptions> {
  explicit TextOptions(ArrayRef<Declared> declarations) {
    for (const Declared &declared : declarations)
      values.push_back(std::make_unique<Option<std::string>>(
          *this, declared.name, llvm::cl::desc(declared.help),
          llvm::cl::init(declared.value.str())));
  }
  SmallVector<std::unique_ptr<Option<std::string>>, 4> values;
};

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
           ArrayRef<Declared> declarations, const TextOptions &options) {
  SmallVector<AxePassOption, 4> passed;
  for (auto [declared, value] : llvm::zip(declarations, options.values)) {
    const std::string &text = *value;
    passed.push_back({wrap(declared.name), wrap(StringRef(text))});
  }
  std::string text;
  auto sink = [](MlirStringRef part, void *user) {
    append(*static_cast<std::string *>(user), part);
  };
  if (!axePipelineText(wrap(name), passed.size(), passed.data(), sink, &text)) {
    manager.addPass(std::make_unique<RefusePass>((name + ": " + text).str()));
    return;
  }
  if (failed(parsePassPipeline(text, manager)))
    manager.addPass(std::make_unique<RefusePass>(
        (name +
         ": cannot build the pipeline: it names a pass that is not "
         "registered (axe::registerAll registers all): " +
         text)
            .str()));
}

} // namespace

void axeRegisterPipeline(MlirStringRef name, MlirStringRef summary,
                         intptr_t optionCount,
                         const AxePipelineOption *options) {
  Declarations declarations;
  for (const AxePipelineOption &option : ArrayRef(options, optionCount))
    declarations.push_back(
        {unwrap(option.name), unwrap(option.help), unwrap(option.value)});
  registerPassPipeline(
      unwrap(name), unwrap(summary),
      [name = unwrap(name), declarations](
          OpPassManager &manager, StringRef text,
          function_ref<LogicalResult(const Twine &)>) -> LogicalResult {
        TextOptions options(declarations);
        if (failed(options.parseFromString(text)))
          return failure();
        build(manager, name, declarations, options);
        return success();
      },
      [declarations](function_ref<void(const detail::PassOptions &)> show) {
        show(TextOptions(declarations));
      });
}
