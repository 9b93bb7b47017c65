//===- AxeStorage.cpp - Verification of storage and its views -------------===//

#include "AxeVerify.h"

using namespace mlir;
using namespace axe;

LogicalResult AllocOp::verify() {
  MemRefType type = cast<MemRefType>(getResult().getType());
  if (!type.hasStaticShape())
    return emitOpError("(A1) expected a static shape, got ") << type;
  auto space = dyn_cast_or_null<SpaceAttr>(type.getMemorySpace());
  if (!space || space.getName() == "global")
    return emitOpError("(A1) expected a memory space of the kernel's own, such "
                       "as #axe.space<shared>, got ")
           << type;
  if (auto layout = dyn_cast<LayoutAttr>(type.getLayout()))
    if (!axeSpaceHasLayout(space.getName().data(), space.getName().size(),
                           layout.getView().get()))
      return emitOpError("(A2) expected a layout on the axes of '")
             << space.getName() << "' alone, got " << layout;
  return success();
}

void AllocOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(),
                       getOperation()->getOpResult(0));
}

LogicalResult SliceOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  if (static_cast<int64_t>(getOrigin().size()) != source.getRank())
    return emitOpError("(V1) expected ")
           << source.getRank() << " origins, got " << getOrigin().size();
  if (failed(verifySameStorage(*this, "V2", source, result)))
    return failure();
  if (!result.hasStaticShape() || result.getRank() > source.getRank())
    return emitOpError("(V2) expected a static box of rank at most ")
           << source.getRank() << ", got " << result;
  return verifySliceLayout(*this, source, result);
}

LogicalResult ViewOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  if (failed(verifySameStorage(*this, "W1", source, result)))
    return failure();
  if (!source.hasStaticShape() || !result.hasStaticShape())
    return success();
  int64_t has = storageElements(source), needs = storageElements(result);
  if (has < 0 || needs < 0 || needs <= has)
    return success();
  return emitOpError("(W2) expected a view of at most ")
         << has << " elements of storage, got one that spans " << needs;
}

/// The name of a memref's space; empty for global memory.
static StringRef spaceOf(MemRefType type) {
  auto space = dyn_cast_or_null<SpaceAttr>(type.getMemorySpace());
  return space ? space.getName() : StringRef();
}

LogicalResult PeerOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  bool sameStorage = source.getShape() == result.getShape() &&
                     source.getElementType() == result.getElementType() &&
                     source.getLayout() == result.getLayout();
  if (sameStorage && spaceOf(source) == "shared" &&
      spaceOf(result) == "cluster_shared")
    return success();
  return emitOpError("(Y1) expected shared memory, and the same type in "
                     "#axe.space<cluster_shared>, got ")
         << source << " and " << result;
}

LogicalResult AllGatherCreateOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  bool areSlots = type.getRank() == 3 && type.getDimSize(0) == 2;
  if (!type.hasStaticShape() || (type.getRank() != 2 && !areSlots) ||
      !type.getElementType().isSignlessInteger(32) ||
      !type.getLayout().isIdentity() || spaceOf(type) != "shared")
    return emitOpError("(AC1) expected a matrix of 'i32', or two, in "
                       "#axe.space<shared>, without a layout, got ")
           << type;
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return emitOpError("(AC2) expected to stand in the body of a kernel");
  auto gathers =
      llvm::count_if(getResult().getUsers(), llvm::IsaPred<AllGatherOp>);
  if (gathers > 1)
    return emitOpError("(AC3) expected one axe.all_gather through it, got ")
           << gathers;
  return success();
}

LogicalResult ReduceScatterCreateOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  Type element = type.getElementType();
  if (!type.hasStaticShape() || type.getRank() < 2 || !element.isIntOrFloat() ||
      element.getIntOrFloatBitWidth() != 32 || !type.getLayout().isIdentity() ||
      spaceOf(type) != "shared")
    return emitOpError("(SC1) expected elements of 32 bits in "
                       "#axe.space<shared>, of static shape and without a "
                       "layout, got ")
           << type;
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return emitOpError("(SC2) expected to stand in the body of a kernel");
  auto scatters =
      llvm::count_if(getResult().getUsers(), llvm::IsaPred<ReduceScatterOp>);
  if (scatters > 1)
    return emitOpError("(SC3) expected one axe.reduce_scatter through it, got ")
           << scatters;
  return success();
}
