//===- Named.cpp - Named operations of linalg in terms of others ----------===//

#include "PassAbi.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

/// Whether every operand is indexed by distinct loops and zeros.
static bool isProjected(linalg::LinalgOp op) {
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation(/*allowZeroInResults=*/true);
  });
}

bool axeExpandNamed(MlirOperation operation) {
  Operation *op = unwrap(operation);
  IRRewriter rewriter(op);
  if (auto pack = dyn_cast<linalg::PackOp>(op))
    return pack.hasPureTensorSemantics() &&
           succeeded(linalg::lowerPack(rewriter, pack));
  if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
    return unpack.hasPureTensorSemantics() &&
           succeeded(linalg::lowerUnPack(rewriter, unpack));
  if (auto aggregated = dyn_cast<linalg::AggregatedOpInterface>(op)) {
    if (op->getNumResults() == 0)
      return false;
    FailureOr<SmallVector<Value>> parts =
        aggregated.decomposeOperation(rewriter);
    if (failed(parts) || parts->size() != op->getNumResults())
      return false;
    rewriter.replaceOp(op, *parts);
    return true;
  }
  auto named = dyn_cast<linalg::LinalgOp>(op);
  if (!named || isa<linalg::GenericOp>(op) || !named.hasPureTensorSemantics() ||
      !isProjected(named))
    return false;
  return succeeded(linalg::generalizeNamedOp(rewriter, named));
}
