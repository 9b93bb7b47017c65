//===- Tiny.cpp - A dialect of its own, in terms of linalg ----------------===//

#include "Tiny.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

MLIR_DEFINE_EXPLICIT_TYPE_ID(tiny::TinyDialect)
MLIR_DEFINE_EXPLICIT_TYPE_ID(tiny::MatmulOp)
MLIR_DEFINE_EXPLICIT_TYPE_ID(tiny::ReluOp)

tiny::TinyDialect::TinyDialect(MLIRContext *context)
    : Dialect(getDialectNamespace(), context, TypeID::get<TinyDialect>()) {
  addOperations<MatmulOp, ReluOp>();
}

namespace {

/// A tensor of zeros.
Value zeros(OpBuilder &builder, Location loc, RankedTensorType type) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

struct LowerMatmul : OpRewritePattern<tiny::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tiny::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    for (Type type : op->getOperandTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || tensor.getRank() != 2)
        return op.emitOpError("has no form in linalg: expected matrices, got ")
               << type;
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value init = zeros(rewriter, op.getLoc(), type);
    rewriter.replaceOpWithNewOp<linalg::MatmulOp>(op, op->getOperands(), init);
    return success();
  }
};

struct LowerRelu : OpRewritePattern<tiny::ReluOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tiny::ReluOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return op.emitOpError("has no form in arith: expected floats");
    Value zero = arith::ConstantOp::create(
        rewriter, op.getLoc(), cast<TypedAttr>(rewriter.getZeroAttr(type)));
    rewriter.replaceOpWithNewOp<arith::MaximumFOp>(op, op->getOperand(0), zero);
    return success();
  }
};

struct LowerTinyPass : PassWrapper<LowerTinyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerTinyPass)
  StringRef getArgument() const override { return "lower-tiny"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, linalg::LinalgDialect,
                    tensor::TensorDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerMatmul, LowerRelu>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    bool left = false;
    getOperation().walk([&](Operation *op) {
      left |= isa_and_nonnull<tiny::TinyDialect>(op->getDialect());
    });
    if (left)
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> tiny::createLowerTinyPass() {
  return std::make_unique<LowerTinyPass>();
}
