//===- AxeDimensions.cpp - Verification of what changes dimensions --------===//

#include "AxeVerify.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace axe;

/// Checks that `dims` ascend inside `rank`, and that `small` is `large`
/// without them.
static LogicalResult verifyDropped(Operation *op, StringRef dimsConstraint,
                                   StringRef shapeConstraint,
                                   ArrayRef<int64_t> dims, Type large,
                                   Type small) {
  int64_t rank = shapeOf(large).size(), last = -1;
  SmallVector<int64_t> kept(shapeOf(large));
  for (int64_t dim : dims) {
    if (dim <= last || dim >= rank)
      return op->emitOpError("(")
             << dimsConstraint << ") expected ascending dims below " << rank
             << ", got " << dim;
    last = dim;
  }
  for (int64_t dim : llvm::reverse(dims))
    kept.erase(kept.begin() + dim);
  if (!canMatch(kept, shapeOf(small)) ||
      elementType(large) != elementType(small))
    return op->emitOpError("(")
           << shapeConstraint << ") expected " << large
           << " without the dims, of the same element type, got " << small;
  return success();
}

/// Combiners of bits, and unsigned ones, are for integers.
static LogicalResult verifyCombiner(Operation *op, StringRef constraint,
                                    Combiner combiner, Type type) {
  Type element = elementType(type);
  if (combiner >= Combiner::And && !element.isInteger())
    return op->emitOpError("(")
           << constraint << ") expected integer elements for '"
           << stringifyCombiner(combiner) << "', got " << element;
  return success();
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyDropped(*this, "R1", "R2", getDims(), getSource().getType(),
                           getResult().getType())))
    return failure();
  return verifyCombiner(*this, "R3", getCombiner(), getResult().getType());
}

/// The words of a row that has elements of these types, as vectors are stored.
static int64_t wordsOfRow(TypeRange types) {
  int64_t words = 0;
  for (Type type : types)
    words += elementType(type).getIntOrFloatBitWidth() > 32 ? 2 : 1;
  return words < 3 ? words : llvm::alignTo(words, 4);
}

LogicalResult AllGatherOp::verify() {
  size_t sources = getSources().size(), results = getResults().size();
  if (sources == 0 || sources != results)
    return emitOpError("(AG1) expected a result for each source, got ")
           << results << " of " << sources;
  auto through = cast<MemRefType>(getThrough().getType());
  if (!getThrough().getDefiningOp<AllGatherCreateOp>())
    return emitOpError("(AG3) expected storage of an axe.all_gather.create");
  for (auto [source, result] : llvm::zip(getSources(), getResults())) {
    Type element = elementType(source.getType());
    if (shapeOf(source.getType()) != ArrayRef<int64_t>{1} ||
        !element.isIntOrFloat() || element.getIntOrFloatBitWidth() > 64)
      return emitOpError("(AG2) expected a source of the shape [1] and "
                         "elements of at most 64 bits, got ")
             << source.getType();
    int64_t rows = through.getDimSize(through.getRank() - 2);
    auto expected = RankedTensorType::get({1, rows}, element);
    if (shapeOf(result.getType()) != expected.getShape() ||
        elementType(result.getType()) != element)
      return emitOpError("(AG2) expected a result of ")
             << expected << ", got " << result.getType();
  }
  int64_t words = wordsOfRow(getSources().getTypes());
  if (through.getShape().back() != words)
    return emitOpError("(AG3) expected rows of ")
           << words << " words, got " << through;
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  Type source = getSource().getType(), result = getResult().getType();
  ArrayRef<int64_t> whole = shapeOf(source), part = shapeOf(result);
  int64_t rank = whole.size(), dim = getDim();
  if (dim < 0 || dim >= rank)
    return emitOpError("(SR1) expected a dim below ")
           << rank << ", got " << dim;
  bool isPart = part.size() == whole.size() && part[dim] > 0 &&
                whole[dim] > part[dim] && whole[dim] % part[dim] == 0;
  for (int64_t other = 0; isPart && other < rank; ++other)
    isPart = other == dim || whole[other] == part[other];
  if (!isPart || elementType(source) != elementType(result))
    return emitOpError("(SR2) expected a part of ")
           << source << " along dim " << dim << ", got " << result;
  SmallVector<int64_t> room{whole[dim] / part[dim] - 1};
  llvm::append_range(room, part);
  auto through = cast<MemRefType>(getThrough().getType());
  if (!getThrough().getDefiningOp<ReduceScatterCreateOp>() ||
      through.getShape() != ArrayRef(room) ||
      through.getElementType() != elementType(source))
    return emitOpError("(SR3) expected storage of an "
                       "axe.reduce_scatter.create of the shape [")
           << room << "] and elements of " << elementType(source) << ", got "
           << through;
  return verifyCombiner(*this, "SR4", getCombiner(), result);
}

LogicalResult BroadcastOp::verify() {
  Type result = getResult().getType();
  if (failed(verifyDropped(*this, "B1", "B2", getDims(), result,
                           getSource().getType())))
    return failure();
  size_t dynamic = llvm::count_if(getDims(), [&](int64_t dim) {
    return ShapedType::isDynamic(shapeOf(result)[dim]);
  });
  if (getSizes().size() != dynamic)
    return emitOpError("(B3) expected ")
           << dynamic << " sizes, got " << getSizes().size();
  return success();
}

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> source = shapeOf(getSource().getType());
  SmallVector<bool> seen(source.size(), false);
  SmallVector<int64_t> permuted;
  for (int64_t dim : getPermutation()) {
    if (dim < 0 || dim >= static_cast<int64_t>(source.size()) || seen[dim])
      return emitOpError("(N1) expected a permutation of ")
             << source.size() << " dimensions";
    seen[dim] = true;
    permuted.push_back(source[dim]);
  }
  if (permuted.size() != source.size())
    return emitOpError("(N1) expected a permutation of ")
           << source.size() << " dimensions";
  if (!canMatch(permuted, shapeOf(getResult().getType())) ||
      elementType(getSource().getType()) != elementType(getResult().getType()))
    return emitOpError("(N2) expected the permuted shape and the source's "
                       "element type, got ")
           << getResult().getType();
  return success();
}

LogicalResult ExtractSliceOp::verify() {
  Type source = getSource().getType(), result = getResult().getType();
  ArrayRef<int64_t> extents = shapeOf(source), box = shapeOf(result);
  ArrayRef<int64_t> origin = getOrigin();
  if (origin.size() != extents.size() ||
      llvm::any_of(origin, [](int64_t at) { return at < 0; }))
    return emitOpError("(J1) expected ")
           << extents.size() << " origins of at least 0, got "
           << llvm::interleaved_array(origin).str();
  if (box.size() != extents.size() || ShapedType::isDynamicShape(box) ||
      elementType(source) != elementType(result))
    return emitOpError("(J2) expected a static result of the source's rank and "
                       "element type, got ")
           << result << " of " << source;
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    // Not `origin + box`, which may overflow.
    if (!ShapedType::isDynamic(extent) && box[dim] <= extent &&
        origin[dim] <= extent - box[dim])
      continue;
    return emitOpError("(J3) expected dimension ")
           << dim << " of the box to lie in the source's " << source << ", got "
           << box[dim] << " elements from " << origin[dim] << " on";
  }
  return success();
}

/// (TK2) for values or indices.
static LogicalResult verifyChosen(TopKOp op, Type chosen) {
  ArrayRef<int64_t> from = shapeOf(op.getSource().getType()),
                    to = shapeOf(chosen);
  bool fits = !from.empty() && from.size() == to.size() &&
              canMatch(from.drop_back(), to.drop_back()) &&
              !ShapedType::isDynamic(from.back()) && to.back() >= 1 &&
              to.back() <= from.back();
  if (fits)
    return success();
  if (from.empty() || ShapedType::isDynamic(from.back()))
    return op.emitOpError("(TK2) expected a source with a static last extent, "
                          "got ")
           << op.getSource().getType();
  return op.emitOpError("(TK2) expected the shape of ")
         << op.getSource().getType() << " with a last extent of 1 to "
         << from.back() << ", got " << chosen;
}

LogicalResult TopKOp::verify() {
  Type source = getSource().getType();
  bool isMemory = isa<MemRefType>(source);
  size_t dests = getDests().size(), results = getResults().size();
  if (dests != (isMemory ? 2 : 0) || results != (isMemory ? 0 : 2))
    return emitOpError("(TK1) expected values and indices, got ")
           << dests << " destinations and " << results << " results of "
           << source;
  Type values = isMemory ? getDests()[0].getType() : getResults()[0].getType();
  Type indices = isMemory ? getDests()[1].getType() : getResults()[1].getType();
  if (failed(verifyChosen(*this, values)) ||
      failed(verifyChosen(*this, indices)))
    return failure();
  if (shapeOf(values).back() != shapeOf(indices).back())
    return emitOpError("(TK2) expected as many values as indices, got ")
           << values << " and " << indices;
  Type element = elementType(source), index = elementType(indices);
  if (!isa<FloatType, IntegerType>(element))
    return emitOpError("(TK3) expected float or integer elements, got ")
           << element;
  if (elementType(values) != element)
    return emitOpError("(TK3) expected values of type ")
           << element << ", got " << elementType(values);
  if (!index.isSignlessInteger(32) && !index.isSignlessInteger(64))
    return emitOpError("(TK3) expected indices of 'i32' or 'i64', got ")
           << index;
  return success();
}

void TopKOp::getEffects(Effects &effects) {
  addRead(effects, getSourceMutable());
  for (OpOperand &dest : getDestsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &dest);
}
