//===- AxeMesh.cpp - Device meshes, and the layouts that name their axes --===//
//
// (L3) for axes of meshes: a layout alone cannot tell which meshes there are,
// so what names one is checked where its symbol table is.
//
//===----------------------------------------------------------------------===//

#include "AxeVerify.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace axe;

/// The mesh of this name in the closest symbol table around `op` that has it.
static MeshOp lookupMesh(Operation *op, SymbolTableCollection &symbols,
                         StringRef name) {
  for (Operation *at = op; at; at = at->getParentOp())
    if (at->hasTrait<OpTrait::SymbolTable>())
      if (auto mesh = dyn_cast_or_null<MeshOp>(symbols.lookupSymbolIn(
              at, StringAttr::get(op->getContext(), name))))
        return mesh;
  return {};
}

/// The names of all meshes around `op`, for messages.
static std::string namesOfMeshes(Operation *op) {
  SmallVector<std::string> names;
  for (Operation *at = op; at; at = at->getParentOp())
    if (at->hasTrait<OpTrait::SymbolTable>())
      for (MeshOp mesh : at->getRegion(0).getOps<MeshOp>())
        names.push_back(("@" + mesh.getSymName()).str());
  return names.empty() ? "there is none"
                       : "there is " + llvm::join(names, ", ");
}

/// The least and greatest coordinate of a layout on an axis. Sums are wide:
/// the algebra checked each alone.
static std::pair<__int128, __int128> rangeOn(LayoutAttr layout,
                                             StringAttr axis) {
  __int128 low = 0, high = 0;
  for (const OffsetData &offset : layout.getOffsets())
    if (offset.axis == axis)
      low = high = offset.value;
  for (ArrayRef<IterData> iters : {layout.getShard(), layout.getReplica()})
    for (const IterData &iter : iters)
      if (iter.axis == axis) {
        __int128 reach = static_cast<__int128>(iter.extent - 1) * iter.stride;
        (reach < 0 ? low : high) += reach;
      }
  return {low, high};
}

/// Checks one axis of a layout; an axis without a dot is no mesh's.
static LogicalResult verifyAxis(Operation *op, SymbolTableCollection &symbols,
                                LayoutAttr layout, StringAttr axis) {
  auto [meshName, name] = axis.getValue().rsplit('.');
  if (name.empty())
    return success();
  MeshOp mesh = lookupMesh(op, symbols, meshName);
  if (!mesh)
    return op->emitOpError("(L3) expected '")
           << axis.getValue() << "' to be an axis of an axe.mesh @" << meshName
           << ", and " << namesOfMeshes(op) << ": " << layout;
  SmallVector<std::string> known;
  for (auto [known_name, size] : llvm::zip(mesh.getAxes(), mesh.getSizes())) {
    StringRef candidate = cast<StringAttr>(known_name).getValue();
    known.push_back((meshName + "." + candidate).str());
    if (candidate != name)
      continue;
    for (const IterData &iter : layout.getShard())
      if (iter.axis == axis && ShapedType::isDynamic(iter.extent))
        return op->emitOpError("(L3) expected a static extent on '")
               << axis.getValue() << "', which has " << size
               << " devices: " << layout;
    auto [low, high] = rangeOn(layout, axis);
    if (low >= 0 && high < size)
      return success();
    return op->emitOpError("(L3) expected places 0 to ")
           << size - 1 << " on '" << axis.getValue() << "' (axe.mesh @"
           << meshName << "), got " << static_cast<int64_t>(low) << " to "
           << static_cast<int64_t>(high) << ": " << layout;
  }
  return op->emitOpError("(L3) unknown axis '")
         << axis.getValue() << "' of axe.mesh @" << meshName
         << ": expected one of " << llvm::join(known, ", ");
}

static LogicalResult verifyLayoutAxes(Operation *op,
                                      SymbolTableCollection &symbols,
                                      LayoutAttr layout) {
  SmallVector<StringAttr> seen;
  auto check = [&](StringAttr axis) -> LogicalResult {
    if (llvm::is_contained(seen, axis))
      return success();
    seen.push_back(axis);
    return verifyAxis(op, symbols, layout, axis);
  };
  for (ArrayRef<IterData> iters : {layout.getShard(), layout.getReplica()})
    for (const IterData &iter : iters)
      if (failed(check(iter.axis)))
        return failure();
  for (const OffsetData &offset : layout.getOffsets())
    if (failed(check(offset.axis)))
      return failure();
  return success();
}

LogicalResult axe::verifyMeshAxes(Operation *op,
                                  SymbolTableCollection &symbols) {
  auto verify = [&](Type type) -> LogicalResult {
    LayoutAttr layout = layoutOf(type);
    return layout ? verifyLayoutAxes(op, symbols, layout) : success();
  };
  for (Type type : op->getOperandTypes())
    if (failed(verify(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(verify(type)))
      return failure();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (failed(verify(type)))
          return failure();
  return success();
}

LogicalResult axe::verifyAllMeshAxes(Operation *root) {
  SymbolTableCollection symbols;
  // Each layout once: the walker keeps what it has seen.
  Operation *current = nullptr;
  AttrTypeWalker walker;
  walker.addWalk([&](LayoutAttr layout) {
    return succeeded(verifyLayoutAxes(current, symbols, layout))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  WalkResult result = root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    current = op;
    auto walk = [&](auto element) {
      return walker.walk<WalkOrder::PreOrder>(element).wasInterrupted();
    };
    if (walk(op->getAttrDictionary()) ||
        llvm::any_of(op->getResultTypes(), walk))
      return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (llvm::any_of(block.getArgumentTypes(), walk))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
/// A function's signature belongs to no operation of axe: the function is made
/// a user of the meshes that it names, so that the verifier of its symbol table
/// asks it. Without a mesh nothing else looks at it.
struct SignatureUses
    : SymbolUserOpInterface::ExternalModel<SignatureUses, func::FuncOp> {
  LogicalResult verifySymbolUses(Operation *op,
                                 SymbolTableCollection &symbols) const {
    FunctionType type = cast<func::FuncOp>(op).getFunctionType();
    for (ArrayRef<Type> types : {type.getInputs(), type.getResults()})
      for (Type each : types)
        if (LayoutAttr layout = layoutOf(each))
          if (failed(verifyLayoutAxes(op, symbols, layout)))
            return failure();
    return success();
  }
};
} // namespace

void AxeDialect::registerSignatureChecks() {
  func::FuncOp::attachInterface<SignatureUses>(*getContext());
}

/// What other operations of a symbol table hold, of any dialect and in any
/// attribute, is checked once by the first mesh in it.
LogicalResult MeshOp::verifySymbolUses(SymbolTableCollection &) {
  Operation *table = (*this)->getParentOp();
  if (!table || *table->getRegion(0).getOps<MeshOp>().begin() != *this)
    return success();
  return verifyAllMeshAxes(table);
}
