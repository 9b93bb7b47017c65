//===- Axe.cpp - C API of the axe dialect ---------------------------------===//

#include "axe-c/Axe.h"

#include "../ir/Axe.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace axe;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Axe, axe, ::axe::AxeDialect)

/// Whether a string can be read: null has no characters.
static bool isReadable(MlirStringRef string) {
  return string.data || string.length == 0;
}

/// The context with the dialect loaded; null for null.
static MLIRContext *loaded(MlirContext context) {
  if (mlirContextIsNull(context))
    return nullptr;
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return unwrap(context);
}

MlirModule axeModuleCreateParse(MlirContext context, MlirStringRef module,
                                MlirStringRef name) {
  if (mlirContextIsNull(context) || !isReadable(module) || !isReadable(name))
    return MlirModule{nullptr};
  // The copy ends in the NUL that the lexer reads.
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(unwrap(module), unwrap(name)),
      SMLoc());
  return wrap(parseSourceFile<ModuleOp>(sources, ParserConfig(unwrap(context)))
                  .release());
}

/// Appends what `item` makes of each of the caller's items; fails, with a
/// diagnostic, for a negative count, null with a count, and an unreadable axis.
template <typename Item, typename Data>
static LogicalResult unwrapItems(Location loc, StringRef what, intptr_t count,
                                 const Item *items, SmallVectorImpl<Data> &data,
                                 Data (*item)(MLIRContext *, const Item &)) {
  if (count < 0)
    return emitError(loc) << "expected a count of " << what
                          << " of at least 0, got " << count;
  if (count > 0 && !items)
    return emitError(loc) << "expected " << count << ' ' << what
                          << ", got null";
  for (const Item &each : ArrayRef(items, count)) {
    if (!isReadable(each.axis))
      return emitError(loc) << "expected " << what
                            << " with an axis, got one whose name is null";
    data.push_back(item(loc.getContext(), each));
  }
  return success();
}

static IterData unwrapIter(MLIRContext *context, const AxeLayoutIter &iter) {
  return {iter.extent, iter.stride,
          StringAttr::get(context, unwrap(iter.axis))};
}

static OffsetData unwrapOffset(MLIRContext *context,
                               const AxeLayoutOffset &offset) {
  return {StringAttr::get(context, unwrap(offset.axis)), offset.value};
}

static AxeLayoutIter wrapIter(const IterData &iter) {
  return {iter.extent, iter.stride, wrap(iter.axis.getValue())};
}

/// The layout, null for what is none.
static LayoutAttr asLayout(MlirAttribute attribute) {
  return llvm::dyn_cast_or_null<LayoutAttr>(unwrap(attribute));
}

/// The item at an index, null for one that is out of range.
template <typename Data>
static const Data *at(ArrayRef<Data> items, intptr_t index) {
  bool inside = index >= 0 && static_cast<size_t>(index) < items.size();
  return inside ? &items[index] : nullptr;
}

MlirAttribute axeLayoutAttrGet(
    MlirLocation location, intptr_t shardCount, const AxeLayoutIter *shard,
    intptr_t replicaCount, const AxeLayoutIter *replica, intptr_t offsetCount,
    const AxeLayoutOffset *offsets, const AxeLayoutSwizzle *swizzle) {
  if (mlirLocationIsNull(location))
    return MlirAttribute{nullptr};
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  context->getOrLoadDialect<AxeDialect>();
  SmallVector<IterData> shardData, replicaData;
  SmallVector<OffsetData> offsetData;
  if (failed(unwrapItems(loc, "shard iters", shardCount, shard, shardData,
                         unwrapIter)) ||
      failed(unwrapItems(loc, "replica iters", replicaCount, replica,
                         replicaData, unwrapIter)) ||
      failed(unwrapItems(loc, "offsets", offsetCount, offsets, offsetData,
                         unwrapOffset)))
    return MlirAttribute{nullptr};
  llvm::erase_if(offsetData,
                 [](const OffsetData &offset) { return offset.value == 0; });
  llvm::sort(offsetData, [](const OffsetData &a, const OffsetData &b) {
    return a.axis.getValue() < b.axis.getValue();
  });
  std::optional<SwizzleData> swizzleData;
  if (swizzle)
    swizzleData = SwizzleData{swizzle->bits, swizzle->base, swizzle->shift};
  auto report = [&] { return emitError(loc); };
  return wrap(LayoutAttr::getChecked(
      function_ref<InFlightDiagnostic()>(report), context,
      ArrayRef<IterData>(shardData), ArrayRef<IterData>(replicaData),
      ArrayRef<OffsetData>(offsetData), swizzleData));
}

bool axeAttributeIsALayout(MlirAttribute attribute) {
  return static_cast<bool>(asLayout(attribute));
}

intptr_t axeLayoutAttrGetShardCount(MlirAttribute layout) {
  LayoutAttr attr = asLayout(layout);
  return attr ? attr.getShard().size() : 0;
}

AxeLayoutIter axeLayoutAttrGetShard(MlirAttribute layout, intptr_t index) {
  LayoutAttr attr = asLayout(layout);
  const IterData *iter = attr ? at(attr.getShard(), index) : nullptr;
  return iter ? wrapIter(*iter) : AxeLayoutIter{};
}

intptr_t axeLayoutAttrGetReplicaCount(MlirAttribute layout) {
  LayoutAttr attr = asLayout(layout);
  return attr ? attr.getReplica().size() : 0;
}

AxeLayoutIter axeLayoutAttrGetReplica(MlirAttribute layout, intptr_t index) {
  LayoutAttr attr = asLayout(layout);
  const IterData *iter = attr ? at(attr.getReplica(), index) : nullptr;
  return iter ? wrapIter(*iter) : AxeLayoutIter{};
}

intptr_t axeLayoutAttrGetOffsetCount(MlirAttribute layout) {
  LayoutAttr attr = asLayout(layout);
  return attr ? attr.getOffsets().size() : 0;
}

AxeLayoutOffset axeLayoutAttrGetOffset(MlirAttribute layout, intptr_t index) {
  LayoutAttr attr = asLayout(layout);
  const OffsetData *offset = attr ? at(attr.getOffsets(), index) : nullptr;
  if (!offset)
    return {};
  return {wrap(offset->axis.getValue()), offset->value};
}

bool axeLayoutAttrGetSwizzle(MlirAttribute layout, AxeLayoutSwizzle *swizzle) {
  LayoutAttr attr = asLayout(layout);
  std::optional<SwizzleData> data =
      attr ? attr.getSwizzle() : std::optional<SwizzleData>();
  if (data && swizzle)
    *swizzle = {data->bits, data->base, data->shift};
  return data.has_value();
}

MlirAttribute axeSpaceAttrGet(MlirLocation location, MlirStringRef name) {
  if (mlirLocationIsNull(location) || !isReadable(name))
    return MlirAttribute{nullptr};
  Location loc = unwrap(location);
  loc.getContext()->getOrLoadDialect<AxeDialect>();
  auto report = [&] { return emitError(loc); };
  return wrap(SpaceAttr::getChecked(function_ref<InFlightDiagnostic()>(report),
                                    loc.getContext(), unwrap(name)));
}

bool axeAttributeIsASpace(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<SpaceAttr>(unwrap(attribute));
}

MlirStringRef axeSpaceAttrGetName(MlirAttribute space) {
  auto attr = llvm::dyn_cast_or_null<SpaceAttr>(unwrap(space));
  return attr ? wrap(attr.getName()) : MlirStringRef{nullptr, 0};
}

/// The attribute of an enumerator; null for another number, or no context.
template <typename Attr, typename Enum>
static MlirAttribute enumAttr(MlirContext context, std::optional<Enum> value) {
  MLIRContext *ctx = loaded(context);
  return ctx && value ? wrap(Attr::get(ctx, *value)) : MlirAttribute{nullptr};
}

/// The number of an enumerator, -1 for another attribute.
template <typename Attr> static int enumValue(MlirAttribute attribute) {
  auto attr = llvm::dyn_cast_or_null<Attr>(unwrap(attribute));
  return attr ? static_cast<int>(attr.getValue()) : -1;
}

MlirAttribute axeCombinerAttrGet(MlirContext context, AxeCombiner combiner) {
  return enumAttr<CombinerAttr>(context, symbolizeCombiner(combiner));
}

bool axeAttributeIsACombiner(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<CombinerAttr>(unwrap(attribute));
}

AxeCombiner axeCombinerAttrGetValue(MlirAttribute combiner) {
  return static_cast<AxeCombiner>(enumValue<CombinerAttr>(combiner));
}

MlirAttribute axeLevelAttrGet(MlirContext context, AxeLevel level) {
  return enumAttr<LevelAttr>(context, symbolizeLevel(level));
}

bool axeAttributeIsALevel(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<LevelAttr>(unwrap(attribute));
}

AxeLevel axeLevelAttrGetValue(MlirAttribute level) {
  return static_cast<AxeLevel>(enumValue<LevelAttr>(level));
}

MlirAttribute axeRasterOrderAttrGet(MlirContext context, AxeRasterOrder order) {
  return enumAttr<RasterOrderAttr>(context, symbolizeRasterOrder(order));
}

bool axeAttributeIsARasterOrder(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<RasterOrderAttr>(unwrap(attribute));
}

AxeRasterOrder axeRasterOrderAttrGetValue(MlirAttribute order) {
  return static_cast<AxeRasterOrder>(enumValue<RasterOrderAttr>(order));
}

/// A type without parameters; null without a context.
template <typename T> static MlirType plainType(MlirContext context) {
  MLIRContext *ctx = loaded(context);
  return ctx ? wrap(T::get(ctx)) : MlirType{nullptr};
}

MlirType axePipelineTypeGet(MlirContext context) {
  return plainType<PipelineType>(context);
}

bool axeTypeIsAPipeline(MlirType type) {
  return llvm::isa_and_nonnull<PipelineType>(unwrap(type));
}

MlirType axeSlotTypeGet(MlirContext context) {
  return plainType<SlotType>(context);
}

bool axeTypeIsASlot(MlirType type) {
  return llvm::isa_and_nonnull<SlotType>(unwrap(type));
}

MlirType axeTokenTypeGet(MlirContext context) {
  return plainType<TokenType>(context);
}

bool axeTypeIsAToken(MlirType type) {
  return llvm::isa_and_nonnull<TokenType>(unwrap(type));
}
