//===- AxeMovement.cpp - Verification of what moves elements --------------===//

#include "AxeVerify.h"

using namespace mlir;
using namespace axe;

/// The type that a copy or a fill writes.
static Type targetType(Value dest, Value result) {
  return dest ? dest.getType() : result.getType();
}

/// (C7)
static LogicalResult verifyCacheHint(CopyOp copy) {
  Attribute hint =
      copy.getOptionsAttr() ? copy.getOptionsAttr().get("l2") : Attribute();
  if (!hint)
    return success();
  auto name = dyn_cast<StringAttr>(hint);
  if (name && llvm::is_contained({"evict_first", "evict_normal", "evict_last"},
                                 name.getValue()))
    return success();
  return copy.emitOpError("(C7) expected \"evict_first\", \"evict_normal\" or "
                          "\"evict_last\" for the option 'l2', got ")
         << hint;
}

LogicalResult CopyOp::verify() {
  if (bool(getDest()) == bool(getResult()))
    return emitOpError("(C2) expected a destination or a result, and not both");
  Type source = getSource().getType();
  Type target = targetType(getDest(), getResult());
  if (!canMatch(shapeOf(source), shapeOf(target)) ||
      elementType(source) != elementType(target))
    return emitOpError("(C1) expected source and destination of one shape and "
                       "element type, got ")
           << source << " and " << target;
  if (getIsAsync() && !(isa<MemRefType>(source) && isa<MemRefType>(target)))
    return emitOpError("(C3) expected memrefs on both sides of an asynchronous "
                       "copy, got ")
           << source << " and " << target;
  if ((getSignal() || getMulticast()) && !getIsAsync())
    return emitOpError("(C5) expected an asynchronous copy with '")
           << (getSignal() ? "signal" : "multicast") << "'";
  if (std::optional<ArrayRef<int64_t>> among = getAmong())
    if (!getMulticast() || among->size() != 2 ||
        llvm::any_of(*among, [](int64_t number) { return number < 1; }))
      return emitOpError(
          "(C8) expected 'among' to have a number of CTAs and how "
          "far apart they are, of 'multicast'");
  if (getAccumulate() && (!getDest() || getSignal()))
    return emitOpError("(C6) expected 'accumulate' in a copy into storage that "
                       "signals nothing");
  if (failed(verifyCacheHint(*this)))
    return failure();
  if (!getPad())
    return success();
  if (getPad().getType() != elementType(source) || !isa<MemRefType>(source))
    return emitOpError("(C4) expected padding of type ")
           << elementType(source) << " for a memref source, got "
           << getPad().getType();
  return success();
}

void CopyOp::getEffects(Effects &effects) {
  addRead(effects, getSourceMutable());
  if (!getDest())
    return;
  OpOperand &dest = *getDestMutable().begin();
  if (getAccumulate())
    addRead(effects, dest);
  effects.emplace_back(MemoryEffects::Write::get(), &dest);
}

LogicalResult FillOp::verify() {
  if (bool(getDest()) == bool(getResult()))
    return emitOpError("(F1) expected a destination or a result, and not both");
  Type target = targetType(getDest(), getResult());
  if (elementType(target) != getValue().getType())
    return emitOpError("(F1) expected element type ")
           << getValue().getType() << ", got " << elementType(target);
  int64_t dynamic =
      getResult() ? llvm::count_if(shapeOf(target), ShapedType::isDynamic) : 0;
  if (static_cast<int64_t>(getSizes().size()) != dynamic)
    return emitOpError("(F2) expected ")
           << dynamic << " sizes, got " << getSizes().size();
  return success();
}

void FillOp::getEffects(Effects &effects) {
  if (getDest())
    effects.emplace_back(MemoryEffects::Write::get(),
                         &*getDestMutable().begin());
}

LogicalResult GatherOp::verify() {
  auto rows = cast<ShapedType>(getRows().getType());
  Type number = rows.getElementType();
  if (rows.getRank() != 1 ||
      !(number.isSignlessInteger(32) || number.isSignlessInteger(64)))
    return emitOpError("(GA1) expected numbers of rows in one dimension of "
                       "'i32' or 'i64', got ")
           << Type(rows);
  Type table = getTable().getType(), result = getResult().getType();
  SmallVector<int64_t> shape(shapeOf(table));
  if (!shape.empty())
    shape.front() = rows.getDimSize(0);
  if (shape.empty() || !canMatch(shape, shapeOf(result)) ||
      elementType(table) != elementType(result))
    return emitOpError("(GA2) expected a result of ")
           << (rows.isDynamicDim(0) ? "?" : std::to_string(rows.getDimSize(0)))
           << " rows of " << table << ", got " << result;
  if (getPad() && getPad().getType() != elementType(table))
    return emitOpError("(GA3) expected padding of type ")
           << elementType(table) << ", got " << getPad().getType();
  int64_t count = shapeOf(table).front();
  if (getClamp() && (getPad() || ShapedType::isDynamic(count) || count < 1))
    return emitOpError("(GA4) expected no padding, and a table with rows, got ")
           << table;
  return success();
}

void GatherOp::getEffects(Effects &effects) {
  addRead(effects, getTableMutable());
  addRead(effects, getRowsMutable());
}

LogicalResult WaitOp::verify() {
  int64_t pending = getPending();
  if (pending < 0)
    return emitOpError("(G1) expected at least 0 pending groups, got ")
           << pending;
  return success();
}

LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       ValueRange operands, DictionaryAttr,
                                       OpaqueProperties, RegionRange,
                                       SmallVectorImpl<Type> &inferred) {
  llvm::append_range(inferred, operands.getTypes());
  return success();
}
