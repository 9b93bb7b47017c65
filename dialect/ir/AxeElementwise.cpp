//===- AxeElementwise.cpp - Verification of elementwise operators ---------===//

#include "AxeVerify.h"

using namespace mlir;
using namespace axe;

LogicalResult CastOp::verify() {
  Type source = getSource().getType(), result = getResult().getType();
  if (!canMatch(shapeOf(source), shapeOf(result)))
    return emitOpError("(T1) expected the source's shape, got ")
           << source << " and " << result;
  if (!haveEqualLayouts(source, result))
    return emitOpError("(T1) expected equal layouts, got ")
           << source << " and " << result;
  for (Type type : {elementType(source), elementType(result)})
    if (!type.isIntOrFloat())
      return emitOpError("(T1) expected float or integer elements, got ")
             << type;
  return success();
}

/// (P1) for one input.
static LogicalResult verifyMapInput(MapOp op, size_t index, Type result) {
  Type input = op.getInputs()[index].getType();
  if (!canMatch(shapeOf(input), shapeOf(result)))
    return op.emitOpError("(P1) expected input ")
           << index << " to have the shape of " << result << ", got " << input;
  if (!haveEqualLayouts(input, result))
    return op.emitOpError("(P1) expected input ")
           << index << " to have the layout of " << result << ", got " << input;
  return success();
}

LogicalResult MapOp::verify() {
  Type result = getResult().getType();
  if (getInputs().empty())
    return emitOpError("(P1) expected at least one input");
  for (size_t i = 0; i < getInputs().size(); ++i)
    if (failed(verifyMapInput(*this, i, result)))
      return failure();
  Block &body = getBody().front();
  if (body.getNumArguments() != getInputs().size())
    return emitOpError("(P2) expected ")
           << getInputs().size() << " body arguments, got "
           << body.getNumArguments();
  for (auto [index, argument] : llvm::enumerate(body.getArguments())) {
    Type expected = elementType(getInputs()[index].getType());
    if (argument.getType() != expected)
      return emitOpError("(P2) expected body argument ")
             << index << " of type " << expected << ", got "
             << argument.getType();
  }
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().size() != 1 ||
      yield.getValues()[0].getType() != elementType(result))
    return emitOpError("(P2) expected the body to yield one ")
           << elementType(result);
  return success();
}

LogicalResult IndexOp::verify() {
  auto map = (*this)->getParentOfType<MapOp>();
  if (!map)
    return emitOpError("(IX1) expected to be in the body of an axe.map");
  size_t rank = shapeOf(map.getResult().getType()).size();
  if (getDim() >= rank)
    return emitOpError("(IX1) expected a dimension below ")
           << rank << ", got " << getDim();
  return success();
}

LogicalResult MaskOp::verify() {
  Type source = getSource().getType();
  size_t rank = shapeOf(source).size();
  if (getOrigin().size() != rank || getLimit().size() != rank)
    return emitOpError("(Q1) expected ")
           << rank << " origins and limits, got " << getOrigin().size()
           << " and " << getLimit().size();
  if (getValue().getType() != elementType(source) ||
      getResult().getType() != source)
    return emitOpError("(Q2) expected a value of the element type and a result "
                       "of type ")
           << source;
  return success();
}
