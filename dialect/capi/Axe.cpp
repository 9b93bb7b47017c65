//===- Axe.cpp - C API of the axe dialect ---------------------------------===//

#include "axe-c/Axe.h"

#include "../ir/Axe.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace axe;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Axe, axe, ::axe::AxeDialect)

MlirModule axeModuleCreateParse(MlirContext context, MlirStringRef module,
                                MlirStringRef name) {
  return wrap(parseSourceString<ModuleOp>(
                  unwrap(module), ParserConfig(unwrap(context)), unwrap(name))
                  .release());
}

static SmallVector<IterData> unwrapIters(MLIRContext *context, intptr_t count,
                                         const AxeLayoutIter *iters) {
  SmallVector<IterData> data;
  for (const AxeLayoutIter &iter : ArrayRef(iters, count))
    data.push_back({iter.extent, iter.stride,
                    StringAttr::get(context, unwrap(iter.axis))});
  return data;
}

static AxeLayoutIter wrapIter(const IterData &iter) {
  return {iter.extent, iter.stride, wrap(iter.axis.getValue())};
}

static LayoutAttr asLayout(MlirAttribute attribute) {
  return llvm::cast<LayoutAttr>(unwrap(attribute));
}

MlirAttribute axeLayoutAttrGet(
    MlirLocation location, intptr_t shardCount, const AxeLayoutIter *shard,
    intptr_t replicaCount, const AxeLayoutIter *replica, intptr_t offsetCount,
    const AxeLayoutOffset *offsets, const AxeLayoutSwizzle *swizzle) {
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  context->getOrLoadDialect<AxeDialect>();
  SmallVector<OffsetData> offsetData;
  for (const AxeLayoutOffset &offset : ArrayRef(offsets, offsetCount))
    if (offset.value != 0)
      offsetData.push_back(
          {StringAttr::get(context, unwrap(offset.axis)), offset.value});
  llvm::sort(offsetData, [](const OffsetData &a, const OffsetData &b) {
    return a.axis.getValue() < b.axis.getValue();
  });
  std::optional<SwizzleData> swizzleData;
  if (swizzle)
    swizzleData = SwizzleData{swizzle->bits, swizzle->base, swizzle->shift};
  SmallVector<IterData> shardData = unwrapIters(context, shardCount, shard);
  SmallVector<IterData> replicaData =
      unwrapIters(context, replicaCount, replica);
  auto report = [&] { return emitError(loc); };
  return wrap(LayoutAttr::getChecked(
      function_ref<InFlightDiagnostic()>(report), context,
      ArrayRef<IterData>(shardData), ArrayRef<IterData>(replicaData),
      ArrayRef<OffsetData>(offsetData), swizzleData));
}

bool axeAttributeIsALayout(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<LayoutAttr>(unwrap(attribute));
}

intptr_t axeLayoutAttrGetShardCount(MlirAttribute layout) {
  return asLayout(layout).getShard().size();
}

AxeLayoutIter axeLayoutAttrGetShard(MlirAttribute layout, intptr_t index) {
  return wrapIter(asLayout(layout).getShard()[index]);
}

intptr_t axeLayoutAttrGetReplicaCount(MlirAttribute layout) {
  return asLayout(layout).getReplica().size();
}

AxeLayoutIter axeLayoutAttrGetReplica(MlirAttribute layout, intptr_t index) {
  return wrapIter(asLayout(layout).getReplica()[index]);
}

intptr_t axeLayoutAttrGetOffsetCount(MlirAttribute layout) {
  return asLayout(layout).getOffsets().size();
}

AxeLayoutOffset axeLayoutAttrGetOffset(MlirAttribute layout, intptr_t index) {
  const OffsetData &offset = asLayout(layout).getOffsets()[index];
  return {wrap(offset.axis.getValue()), offset.value};
}

bool axeLayoutAttrGetSwizzle(MlirAttribute layout, AxeLayoutSwizzle *swizzle) {
  std::optional<SwizzleData> data = asLayout(layout).getSwizzle();
  if (data)
    *swizzle = {data->bits, data->base, data->shift};
  return data.has_value();
}

MlirAttribute axeSpaceAttrGet(MlirLocation location, MlirStringRef name) {
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
  return wrap(llvm::cast<SpaceAttr>(unwrap(space)).getName());
}

MlirAttribute axeCombinerAttrGet(MlirContext context, AxeCombiner combiner) {
  std::optional<Combiner> value = symbolizeCombiner(combiner);
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return value ? wrap(CombinerAttr::get(unwrap(context), *value))
               : MlirAttribute{nullptr};
}

bool axeAttributeIsACombiner(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<CombinerAttr>(unwrap(attribute));
}

AxeCombiner axeCombinerAttrGetValue(MlirAttribute combiner) {
  return static_cast<AxeCombiner>(
      llvm::cast<CombinerAttr>(unwrap(combiner)).getValue());
}

MlirAttribute axeLevelAttrGet(MlirContext context, AxeLevel level) {
  std::optional<Level> value = symbolizeLevel(level);
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return value ? wrap(LevelAttr::get(unwrap(context), *value))
               : MlirAttribute{nullptr};
}

bool axeAttributeIsALevel(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<LevelAttr>(unwrap(attribute));
}

AxeLevel axeLevelAttrGetValue(MlirAttribute level) {
  return static_cast<AxeLevel>(llvm::cast<LevelAttr>(unwrap(level)).getValue());
}

MlirAttribute axeRasterOrderAttrGet(MlirContext context, AxeRasterOrder order) {
  std::optional<RasterOrder> value = symbolizeRasterOrder(order);
  return value ? wrap(RasterOrderAttr::get(unwrap(context), *value))
               : MlirAttribute{nullptr};
}

bool axeAttributeIsARasterOrder(MlirAttribute attribute) {
  return llvm::isa_and_nonnull<RasterOrderAttr>(unwrap(attribute));
}

AxeRasterOrder axeRasterOrderAttrGetValue(MlirAttribute order) {
  return static_cast<AxeRasterOrder>(
      llvm::cast<RasterOrderAttr>(unwrap(order)).getValue());
}

MlirType axePipelineTypeGet(MlirContext context) {
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return wrap(PipelineType::get(unwrap(context)));
}

MlirType axeSlotTypeGet(MlirContext context) {
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return wrap(SlotType::get(unwrap(context)));
}

MlirType axeTokenTypeGet(MlirContext context) {
  unwrap(context)->getOrLoadDialect<AxeDialect>();
  return wrap(TokenType::get(unwrap(context)));
}

bool axeTypeIsAToken(MlirType type) {
  return llvm::isa_and_nonnull<TokenType>(unwrap(type));
}
