//===- Slices.cpp - Slices of results become slices of operands -----------===//
//
// MLIR has the patterns and gives C no way to them.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// Moves every `tensor.extract_slice` below `operation` up through what
/// computes its source, as far as that is linalg, a reshape or empty; what no
/// slice needs is erased. False when the rewriting does not end.
extern "C" bool axeBubbleUpSlices(MlirOperation operation) {
  Operation *root = unwrap(operation);
  RewritePatternSet patterns(root->getContext());
  linalg::populateBubbleUpExtractSliceOpPatterns(patterns);
  tensor::populateBubbleUpExtractSliceOpPatterns(patterns);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  tensor::populateMergeConsecutiveInsertExtractSlicePatterns(patterns);
  tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns,
                                                      root->getContext());
  return succeeded(applyPatternsGreedily(root, std::move(patterns)));
}
