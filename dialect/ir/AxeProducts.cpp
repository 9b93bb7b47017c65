//===- AxeProducts.cpp - Verification of products -------------------------===//

#include "AxeVerify.h"

using namespace mlir;
using namespace axe;

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
