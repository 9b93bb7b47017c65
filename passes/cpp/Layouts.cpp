//===- Layouts.cpp - Replaces layouts wherever an operation has them ------===//

#include "PassAbi.h"

#include "Axe.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

int64_t axeReplaceLayouts(MlirOperation operation,
                          MlirAttribute (*replace)(MlirAttribute, void *),
                          void *user) {
  int64_t changed = 0;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](axe::LayoutAttr layout) -> std::optional<Attribute> {
        Attribute replacement = unwrap(replace(wrap(Attribute(layout)), user));
        if (!replacement || replacement == layout)
          return std::nullopt;
        ++changed;
        return replacement;
      });
  replacer.recursivelyReplaceElementsIn(unwrap(operation),
                                        /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  return changed;
}

void axePlainTypes(MlirOperation operation) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
    if (!isa_and_nonnull<axe::LayoutAttr>(type.getEncoding()))
      return std::nullopt;
    return RankedTensorType::get(type.getShape(), type.getElementType());
  });
  replacer.addReplacement([](axe::TokenType type) -> std::optional<Type> {
    return IntegerType::get(type.getContext(), 1);
  });
  replacer.recursivelyReplaceElementsIn(unwrap(operation),
                                        /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

const uint8_t *axeResourceData(MlirAttribute attribute, intptr_t *size) {
  auto dense = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute));
  AsmResourceBlob *blob = dense ? dense.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return nullptr;
  *size = blob->getData().size();
  return reinterpret_cast<const uint8_t *>(blob->getData().data());
}
