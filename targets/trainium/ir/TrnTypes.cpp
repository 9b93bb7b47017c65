//===- TrnTypes.cpp - Tiles, and what Rust reads of them ------------------===//

#include "Trn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace trn;

#define GET_TYPEDEF_CLASSES
#include "TrnTypes.cpp.inc"

void TrnDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "TrnTypes.cpp.inc"
      >();
}

/// Parses `<128x512xbf16>`.
template <typename TileType> static Type parseTile(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<TileType>(loc, parser.getContext(),
                                     ArrayRef<int64_t>(shape), element);
}

static void printTile(AsmPrinter &printer, ArrayRef<int64_t> shape,
                      Type element) {
  printer << "<";
  for (int64_t extent : shape)
    printer << extent << "x";
  printer << element << ">";
}

static LogicalResult verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type element,
                                size_t least) {
  if (shape.size() < least || shape.size() > 8)
    return emitError() << "(T1) expected " << least << " to 8 extents, got "
                       << shape.size();
  for (int64_t extent : shape)
    if (extent < 1 || extent > (int64_t(1) << 40))
      return emitError() << "(T1) expected extents of 1 to 2^40, got "
                         << extent;
  bool isFloat = isa<BFloat16Type, Float16Type, Float32Type, Float8E4M3FNType,
                     Float8E5M2Type>(element);
  auto integer = dyn_cast<IntegerType>(element);
  unsigned width = integer ? integer.getWidth() : 0;
  if (!isFloat && width != 8 && width != 16 && width != 32)
    return emitError() << "(T2) expected elements of bf16, f16, f32, "
                          "f8E4M3FN, f8E5M2 or integers of 8, 16 or 32 "
                          "bits, got "
                       << element;
  return success();
}

#define TRN_TILE(TYPE, LEAST)                                                  \
  Type TYPE::parse(AsmParser &parser) { return parseTile<TYPE>(parser); }      \
  void TYPE::print(AsmPrinter &printer) const {                                \
    printTile(printer, getShape(), getElementType());                          \
  }                                                                            \
  LogicalResult TYPE::verify(function_ref<InFlightDiagnostic()> emitError,     \
                             ArrayRef<int64_t> shape, Type element) {          \
    return verifyTile(emitError, shape, element, LEAST);                       \
  }

TRN_TILE(HbmType, 1)
TRN_TILE(SbufType, 2)
TRN_TILE(PsumType, 2)

//===----------------------------------------------------------------------===//
// What Rust reads
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeOf(MlirType type) {
  return TypeSwitch<Type, ArrayRef<int64_t>>(unwrap(type))
      .Case<HbmType, SbufType, PsumType>(
          [](auto tile) { return tile.getShape(); })
      .Default(ArrayRef<int64_t>());
}

int32_t trnTypeSpace(MlirType type) {
  return TypeSwitch<Type, int32_t>(unwrap(type))
      .Case([](HbmType) { return 0; })
      .Case([](SbufType) { return 1; })
      .Case([](PsumType) { return 2; })
      .Default(-1);
}

intptr_t trnTypeRank(MlirType type) { return shapeOf(type).size(); }

int64_t trnTypeExtent(MlirType type, intptr_t index) {
  return shapeOf(type)[index];
}

MlirType trnTypeElement(MlirType type) {
  return wrap(TypeSwitch<Type, Type>(unwrap(type))
                  .Case<HbmType, SbufType, PsumType>(
                      [](auto tile) { return tile.getElementType(); })
                  .Default(Type()));
}
