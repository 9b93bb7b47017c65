//===- AxeOperators.cpp - Verification of the operators -------------------===//

#include "AxeVerify.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace axe;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static Type elementType(Type type) {
  return cast<ShapedType>(type).getElementType();
}

static ArrayRef<int64_t> shapeOf(Type type) {
  return cast<ShapedType>(type).getShape();
}

/// The type that a copy or a fill writes.
static Type targetType(Value dest, Value result) {
  return dest ? dest.getType() : result.getType();
}

static void addRead(Effects &effects, OpOperand &operand) {
  if (isa<MemRefType>(operand.get().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

//===----------------------------------------------------------------------===//
// Copy and fill
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  auto rows = cast<MemRefType>(getRows().getType());
  Type number = rows.getElementType();
  if (rows.getRank() != 1 ||
      !(number.isSignlessInteger(32) || number.isSignlessInteger(64)))
    return emitOpError("(GA1) expected numbers of rows in one dimension of "
                       "'i32' or 'i64', got ")
           << rows;
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
  return success();
}

void GatherOp::getEffects(Effects &effects) {
  addRead(effects, getTableMutable());
  addRead(effects, getRowsMutable());
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Reductions, broadcasts, transposes
//===----------------------------------------------------------------------===//

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
    auto expected = RankedTensorType::get({1, through.getDimSize(0)}, element);
    if (shapeOf(result.getType()) != expected.getShape() ||
        elementType(result.getType()) != element)
      return emitOpError("(AG2) expected a result of ")
             << expected << ", got " << result.getType();
  }
  int64_t words = wordsOfRow(getSources().getTypes());
  if (through.getDimSize(1) != words)
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

//===----------------------------------------------------------------------===//
// Gemm
//===----------------------------------------------------------------------===//

/// The rows and columns of the last two dimensions, swapped by `transposed`.
static std::pair<int64_t, int64_t> matrixOf(Type type, bool transposed) {
  ArrayRef<int64_t> shape = shapeOf(type).take_back(2);
  return transposed ? std::pair(shape[1], shape[0])
                    : std::pair(shape[0], shape[1]);
}

static LogicalResult verifyGemmShapes(GemmOp op) {
  Type a = op.getA().getType(), b = op.getB().getType(),
       d = op.getResult().getType();
  size_t rank = shapeOf(d).size();
  if (rank < 2 || shapeOf(a).size() != rank || shapeOf(b).size() != rank)
    return op.emitOpError("(E1) expected operands and result of one rank of "
                          "at least 2, got ")
           << a << ", " << b << " and " << d;
  ArrayRef<int64_t> batch = shapeOf(d).drop_back(2);
  if (!canMatch(batch, shapeOf(a).drop_back(2)) ||
      !canMatch(batch, shapeOf(b).drop_back(2)))
    return op.emitOpError("(E1) expected the same batch dimensions, got ")
           << a << ", " << b << " and " << d;
  auto [m, ka] = matrixOf(a, op.getTransA());
  auto [kb, n] = matrixOf(b, op.getTransB());
  auto [dm, dn] = matrixOf(d, false);
  if (canMatch(ka, kb) && canMatch(m, dm) && canMatch(n, dn))
    return success();
  return op.emitOpError("(E1) expected [M, K] * [K, N] -> [M, N], got [")
         << m << ", " << ka << "] * [" << kb << ", " << n << "] -> [" << dm
         << ", " << dn << "]";
}

static bool isFloat8(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
}

/// Whether sums of products of `element` are formed in `sum`.
static bool accumulates(Type element, Type sum) {
  bool floats = isa<FloatType>(element) && isa<FloatType>(sum);
  bool integers = isa<IntegerType>(element) && isa<IntegerType>(sum);
  return (floats || integers) &&
         sum.getIntOrFloatBitWidth() >= element.getIntOrFloatBitWidth();
}

LogicalResult GemmOp::verify() {
  if (failed(verifyGemmShapes(*this)))
    return failure();
  Type a = elementType(getA().getType()), b = elementType(getB().getType()),
       d = elementType(getResult().getType());
  if (a != b && !(isFloat8(a) && isFloat8(b)))
    return emitOpError("(E2) expected A and B of one element type, got ")
           << a << " and " << b;
  if (!accumulates(a, d))
    return emitOpError("(E2) expected an accumulator of the kind of ")
           << a << " and at least its width, got " << d;
  if (getAcc() && getAcc().getType() != getResult().getType())
    return emitOpError("(E3) expected an accumulator of type ")
           << getResult().getType() << ", got " << getAcc().getType();
  return success();
}

void GemmOp::getEffects(Effects &effects) {
  addRead(effects, getAMutable());
  addRead(effects, getBMutable());
}

/// `extent / by` rounded up; dynamic when `extent` is.
static int64_t blocksOf(int64_t extent, int64_t by) {
  return ShapedType::isDynamic(extent) ? extent : llvm::divideCeil(extent, by);
}

/// (H3).
static LogicalResult verifyScales(ScaledGemmOp op, int64_t m, int64_t n,
                                  int64_t k) {
  int64_t blocks = blocksOf(k, op.getBlockK());
  SmallVector<int64_t> ofA = {m, blocks};
  if (op.getTransScaleA())
    std::swap(ofA[0], ofA[1]);
  SmallVector<int64_t> ofB = {blocksOf(n, op.getBlockN()), blocks};
  for (auto [scale, expected] :
       {std::pair(op.getScaleA(), ofA), std::pair(op.getScaleB(), ofB)}) {
    if (canMatch(shapeOf(scale.getType()), expected))
      continue;
    auto extent = [](int64_t size) {
      return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
    };
    return op.emitOpError("(H3) expected scales of shape [")
           << extent(expected[0]) << ", " << extent(expected[1]) << "], got "
           << scale.getType();
  }
  return success();
}

LogicalResult ScaledGemmOp::verify() {
  Type a = getA().getType(), b = getB().getType(), d = getResult().getType();
  int64_t blockN = getBlockN(), blockK = getBlockK();
  if (blockN < 16 || blockN % 16 != 0 || blockK < 32 || blockK % 32 != 0)
    return emitOpError("(H4) expected block_n a positive multiple of 16 and "
                       "block_k of 32, got ")
           << blockN << " and " << blockK;
  for (Type type : {a, b, d})
    if (shapeOf(type).size() != 2)
      return emitOpError("(H1) expected matrices, got ") << type;
  auto [m, ka] = matrixOf(a, false);
  auto [n, kb] = matrixOf(b, false);
  auto [dm, dn] = matrixOf(d, false);
  if (!canMatch(ka, kb) || !canMatch(m, dm) || !canMatch(n, dn))
    return emitOpError("(H1) expected [M, K], [N, K] -> [M, N], got ")
           << a << ", " << b << " -> " << d;
  Type f32 = Float32Type::get(getContext());
  if (!isFloat8(elementType(a)) || !isFloat8(elementType(b)))
    return emitOpError("(H2) expected 8-bit floats, got ") << a << " and " << b;
  Type scaleA = getScaleA().getType(), scaleB = getScaleB().getType();
  for (Type type : {scaleA, scaleB, d})
    if (elementType(type) != f32)
      return emitOpError("(H2) expected scales and sums in f32, got ") << type;
  return verifyScales(*this, m, n, ShapedType::isDynamic(ka) ? kb : ka);
}

void ScaledGemmOp::getEffects(Effects &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable(),
                             &getScaleAMutable(), &getScaleBMutable()})
    addRead(effects, *operand);
}

/// `[8, ?]`.
static std::string extentsOf(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shapeOf(type), stream << '[', [&](int64_t extent) {
    if (ShapedType::isDynamic(extent))
      stream << '?';
    else
      stream << extent;
  });
  stream << ']';
  return text;
}

/// (GP1).
static LogicalResult verifyGroups(GroupedGemmOp op) {
  Type a = op.getA().getType(), b = op.getB().getType(),
       d = op.getResult().getType();
  bool ranks = shapeOf(a).size() == 2 && shapeOf(b).size() == 3 &&
               shapeOf(d).size() == 2;
  if (ranks) {
    auto [m, ka] = matrixOf(a, false);
    auto [kb, n] = matrixOf(b, op.getTransB());
    auto [dm, dn] = matrixOf(d, false);
    if (canMatch(ka, kb) && canMatch(m, dm) && canMatch(n, dn))
      return success();
  }
  return op.emitOpError("(GP1) expected [M, K] * ")
         << (op.getTransB() ? "[G, N, K]" : "[G, K, N]") << " -> [M, N], got "
         << extentsOf(a) << " * " << extentsOf(b) << " -> " << extentsOf(d);
}

LogicalResult GroupedGemmOp::verify() {
  if (failed(verifyGroups(*this)))
    return failure();
  Type a = elementType(getA().getType()), b = elementType(getB().getType()),
       d = elementType(getResult().getType());
  if (a != b)
    return emitOpError("(GP2) expected A and B of one element type, got ")
           << a << " and " << b;
  if (!accumulates(a, d))
    return emitOpError("(GP2) expected an accumulator of the kind of ")
           << a << " and at least its width, got " << d;
  int64_t groups = shapeOf(getB().getType()).front();
  int64_t count = ShapedType::isDynamic(groups)
                      ? groups
                      : llvm::SaturatingAdd<uint64_t>(groups, 1);
  Type type = getOffsets().getType();
  auto expected =
      RankedTensorType::get({count}, IntegerType::get(getContext(), 32));
  if (elementType(type) != expected.getElementType() ||
      !canMatch(shapeOf(type), expected.getShape()))
    return emitOpError("(GP3) expected offsets of type ")
           << expected << ", got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Top k
//===----------------------------------------------------------------------===//

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
