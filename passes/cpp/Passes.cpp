//===- Passes.cpp - Pass objects of axe -----------------------------------===//
//
// Options, statistics, documentation and registration come from Passes.td; each
// pass's work is a Rust function (PassAbi.h).
//
//===----------------------------------------------------------------------===//

#include "Passes.h"
#include "PassAbi.h"

#include "Axe.h"
#include "axe-c/Register.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace axe {

#define GEN_PASS_DEF_CONVERTLINALGTOAXEPASS
#define GEN_PASS_DEF_AXEGENERALIZEPASS
#define GEN_PASS_DEF_AXESIMPLIFYGATHERSPASS
#define GEN_PASS_DEF_AXESIMPLIFYPOWERSPASS
#define GEN_PASS_DEF_AXECANONICALIZELAYOUTSPASS
#define GEN_PASS_DEF_AXESLICEPASS
#define GEN_PASS_DEF_AXETILEPASS
#define GEN_PASS_DEF_AXEPLANKERNELSPASS
#define GEN_PASS_DEF_AXEDISPATCHSCHEDULESPASS
#define GEN_PASS_DEF_AXELOWERSCHEDULESPASS
#define GEN_PASS_DEF_AXEVERIFYSCHEDULESPASS
#define GEN_PASS_DEF_AXEVERIFYCODEPASS
#define GEN_PASS_DEF_AXEPRINTLAYOUTSPASS
#define GEN_PASS_DEF_AXELOWERTOHOSTPASS
#include "AxePasses.h.inc"

namespace {

using Options = SmallVector<std::pair<StringRef, std::string>, 4>;

/// Statistics count in builds of LLVM that keep them; Debian's does not.
void addToStatistic([[maybe_unused]] MlirStringRef name,
                    [[maybe_unused]] int64_t count,
                    [[maybe_unused]] void *pass) {
#if LLVM_ENABLE_STATS
  for (Pass::Statistic *statistic : static_cast<Pass *>(pass)->getStatistics())
    if (StringRef(statistic->getName()) == unwrap(name))
      *statistic += count;
#endif
}

/// Runs the Rust body of a pass; false after it reported an error.
bool runBody(Pass *pass, StringRef name, Operation *operation,
             const Options &options) {
  SmallVector<AxePassOption, 4> passed;
  for (const auto &[key, value] : options)
    passed.push_back({wrap(key), wrap(StringRef(value))});
  return axeRunPass(wrap(name), wrap(operation), passed.size(), passed.data(),
                    addToStatistic, pass);
}

StringRef text(bool value) { return value ? "true" : "false"; }

template <typename T> std::string text(ArrayRef<T> values) {
  std::string joined;
  llvm::raw_string_ostream os(joined);
  llvm::interleave(values, os, ",");
  return joined;
}

/// A pass whose body is the Rust function of the same name.
template <typename Base> struct RustPass : Base {
  using Base::Base;
  virtual Options options() { return {}; }
  void runOnOperation() override {
    if (!runBody(this, this->getArgument(), this->getOperation(), options()))
      this->signalPassFailure();
  }
};

/// A pass that a target has a part in: it may build operations of the target's
/// dialects.
template <typename Base> struct TargetPass : RustPass<Base> {
  using RustPass<Base>::RustPass;
  void getDependentDialects(DialectRegistry &registry) const override {
    RustPass<Base>::getDependentDialects(registry);
    axeTargetDialects(wrap(&registry));
  }
};

struct ConvertLinalgToAxePass
    : RustPass<impl::ConvertLinalgToAxePassBase<ConvertLinalgToAxePass>> {
  using RustPass::RustPass;
  Options options() override {
    return {{"allow-unsupported", text(allowUnsupported).str()},
            {"for-kernels", text(forKernels).str()},
            {"explain", text(explain).str()}};
  }
};

struct AxeGeneralizePass
    : RustPass<impl::AxeGeneralizePassBase<AxeGeneralizePass>> {
  using RustPass::RustPass;
};

struct AxeSimplifyPowersPass
    : RustPass<impl::AxeSimplifyPowersPassBase<AxeSimplifyPowersPass>> {
  using RustPass::RustPass;
};

struct AxeSimplifyGathersPass
    : RustPass<impl::AxeSimplifyGathersPassBase<AxeSimplifyGathersPass>> {
  using RustPass::RustPass;
};

struct AxeCanonicalizeLayoutsPass
    : RustPass<
          impl::AxeCanonicalizeLayoutsPassBase<AxeCanonicalizeLayoutsPass>> {
  using RustPass::RustPass;
};

struct AxeSlicePass : RustPass<impl::AxeSlicePassBase<AxeSlicePass>> {
  using RustPass::RustPass;
};

struct AxeTilePass : RustPass<impl::AxeTilePassBase<AxeTilePass>> {
  using RustPass::RustPass;
  Options options() override {
    return {{"sizes", text(ArrayRef<int64_t>(sizes))},
            {"operators", text(ArrayRef<std::string>(operators))}};
  }
};

struct AxePlanKernelsPass
    : TargetPass<impl::AxePlanKernelsPassBase<AxePlanKernelsPass>> {
  using TargetPass::TargetPass;
  Options options() override {
    return {{"target", target},
            {"tuned", tuned},
            {"explain", text(explain).str()},
            {"allow-unsupported", text(allowUnsupported).str()}};
  }
};

struct AxeDispatchSchedulesPass
    : TargetPass<impl::AxeDispatchSchedulesPassBase<AxeDispatchSchedulesPass>> {
  using TargetPass::TargetPass;
  Options options() override {
    return {{"target", target},
            {"explain", text(explain).str()},
            {"allow-unsupported", text(allowUnsupported).str()}};
  }
};

struct AxeLowerSchedulesPass
    : TargetPass<impl::AxeLowerSchedulesPassBase<AxeLowerSchedulesPass>> {
  using TargetPass::TargetPass;
  Options options() override {
    return {{"target", target},
            {"check", text(check).str()},
            {"allow-unsupported", text(allowUnsupported).str()}};
  }
};

struct AxeVerifySchedulesPass
    : TargetPass<impl::AxeVerifySchedulesPassBase<AxeVerifySchedulesPass>> {
  using TargetPass::TargetPass;
  Options options() override { return {{"target", target}}; }
};

struct AxeVerifyCodePass
    : RustPass<impl::AxeVerifyCodePassBase<AxeVerifyCodePass>> {
  using RustPass::RustPass;
};

struct AxePrintLayoutsPass
    : RustPass<impl::AxePrintLayoutsPassBase<AxePrintLayoutsPass>> {
  using RustPass::RustPass;
};

struct AxeLowerToHostPass
    : RustPass<impl::AxeLowerToHostPassBase<AxeLowerToHostPass>> {
  using RustPass::RustPass;
};

} // namespace

template <typename PassType> static void registerOne() {
  PassRegistration<PassType>();
}

void registerPasses() {
  registerOne<ConvertLinalgToAxePass>();
  registerOne<AxeGeneralizePass>();
  registerOne<AxeSimplifyPowersPass>();
  registerOne<AxeSimplifyGathersPass>();
  registerOne<AxeCanonicalizeLayoutsPass>();
  registerOne<AxeSlicePass>();
  registerOne<AxeTilePass>();
  registerOne<AxePlanKernelsPass>();
  registerOne<AxeDispatchSchedulesPass>();
  registerOne<AxeLowerSchedulesPass>();
  registerOne<AxeVerifySchedulesPass>();
  registerOne<AxeVerifyCodePass>();
  registerOne<AxePrintLayoutsPass>();
  registerOne<AxeLowerToHostPass>();
}

} // namespace axe

void axeRegisterPasses(void) { axe::registerPasses(); }

void axeEmitRemark(MlirLocation location, int kind, MlirStringRef name,
                   MlirStringRef category, MlirStringRef function,
                   MlirStringRef message) {
  auto options = remark::RemarkOpts::name(unwrap(name))
                     .category(unwrap(category))
                     .function(unwrap(function));
  Location loc = unwrap(location);
  StringRef text = unwrap(message);
  if (kind == 0)
    remark::passed(loc, options) << text;
  else if (kind == 1)
    remark::missed(loc, options) << text;
  else
    remark::analysis(loc, options) << text;
}
