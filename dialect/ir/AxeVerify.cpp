//===- AxeVerify.cpp - Checks that several verifiers share ----------------===//

#include "AxeVerify.h"

using namespace mlir;
using namespace axe;

void axe::addRead(Effects &effects, OpOperand &operand) {
  if (isa<MemRefType>(operand.get().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

LayoutAttr axe::layoutOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_or_null<LayoutAttr>(tensor.getEncoding());
  if (auto memref = dyn_cast<MemRefType>(type))
    return dyn_cast<LayoutAttr>(memref.getLayout());
  return {};
}

bool axe::haveEqualLayouts(Type a, Type b) {
  LayoutAttr first = layoutOf(a), second = layoutOf(b);
  if (first == second)
    return true;
  return first && second &&
         axeLayoutEqual(first.getView().get(), second.getView().get());
}

bool axe::canMatch(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

bool axe::canMatch(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           return canMatch(std::get<0>(pair), std::get<1>(pair));
         });
}

int64_t axe::storageElements(MemRefType type) {
  if (LayoutAttr layout = layoutOf(type))
    return axeLayoutStorage(layout.getView().get());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)))
    return -1;
  int64_t last = 0;
  for (auto [extent, stride] : llvm::zip(type.getShape(), strides)) {
    int64_t reach;
    if (ShapedType::isDynamic(stride) ||
        llvm::MulOverflow(extent - 1, stride, reach) ||
        llvm::AddOverflow(last, reach, last))
      return -1;
  }
  return last + 1;
}

LogicalResult axe::verifySameStorage(Operation *op, StringRef constraint,
                                     MemRefType a, MemRefType b) {
  if (a.getElementType() != b.getElementType())
    return op->emitOpError("(")
           << constraint << ") expected element type " << a.getElementType()
           << ", got " << b.getElementType();
  if (a.getMemorySpace() != b.getMemorySpace())
    return op->emitOpError("(")
           << constraint << ") expected the source's memory space in " << b;
  return success();
}

LogicalResult axe::verifySliceLayout(Operation *op, MemRefType source,
                                     MemRefType result) {
  SmallVector<int64_t> from, to;
  int64_t offset;
  if (failed(source.getStridesAndOffset(from, offset)) ||
      failed(result.getStridesAndOffset(to, offset)))
    return success();
  ArrayRef<int64_t> tail = ArrayRef(from).take_back(to.size());
  for (auto [index, pair] : llvm::enumerate(llvm::zip(tail, to))) {
    auto [expected, got] = pair;
    if (result.getDimSize(index) != 1 && !canMatch(expected, got))
      return op->emitOpError("(V3) expected stride ")
             << expected << " in dimension " << index << " of the box, got "
             << got;
  }
  return success();
}
