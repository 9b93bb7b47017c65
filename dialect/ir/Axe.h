//===- Axe.h - The axe dialect ----------------------------------*- C++ -*-===//
#ifndef AXE_IR_AXE_H
#define AXE_IR_AXE_H

#include "LayoutAbi.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace axe {

/// One iter of a layout, as the attribute stores it.
struct IterData {
  int64_t extent;
  int64_t stride;
  mlir::StringAttr axis;
  bool operator==(const IterData &other) const {
    return extent == other.extent && stride == other.stride &&
           axis == other.axis;
  }
};

/// The offset on one axis, as the attribute stores it.
struct OffsetData {
  mlir::StringAttr axis;
  int64_t value;
  bool operator==(const OffsetData &other) const {
    return axis == other.axis && value == other.value;
  }
};

/// A swizzle, as the attribute stores it.
struct SwizzleData {
  int64_t bits;
  int64_t base;
  int64_t shift;
  bool operator==(const SwizzleData &other) const {
    return bits == other.bits && base == other.base && shift == other.shift;
  }
};

inline llvm::hash_code hash_value(const IterData &iter) {
  return llvm::hash_combine(iter.extent, iter.stride, iter.axis);
}
inline llvm::hash_code hash_value(const OffsetData &offset) {
  return llvm::hash_combine(offset.axis, offset.value);
}
inline llvm::hash_code hash_value(const SwizzleData &swizzle) {
  return llvm::hash_combine(swizzle.bits, swizzle.base, swizzle.shift);
}

/// The C ABI's arrays for the data of a layout; `view` points into them.
class LayoutView {
public:
  LayoutView(llvm::ArrayRef<IterData> shard, llvm::ArrayRef<IterData> replica,
             llvm::ArrayRef<OffsetData> offsets,
             std::optional<SwizzleData> swizzle);
  AxeLayoutView get() const;

private:
  llvm::SmallVector<AxeIter, 8> shard;
  llvm::SmallVector<AxeIter, 4> replica;
  llvm::SmallVector<AxeOffset, 4> offsets;
  std::optional<AxeSwizzle> swizzle;
};

/// (L3) for the types of an operation's values: the axes of meshes are those of
/// an `axe.mesh` around it, and places on them are devices.
llvm::LogicalResult verifyMeshAxes(mlir::Operation *op,
                                   mlir::SymbolTableCollection &symbols);

/// An operation whose types may name axes of meshes.
template <typename ConcreteOp>
class UsesMeshAxes : public mlir::OpTrait::TraitBase<ConcreteOp, UsesMeshAxes> {
public:
  llvm::LogicalResult
  verifySymbolUses(mlir::SymbolTableCollection &symbolTable) {
    return verifyMeshAxes(this->getOperation(), symbolTable);
  }
};

// What operations are (AxeTraits.td): marks, without anything of their own.
#define AXE_TRAIT(Name)                                                        \
  template <typename ConcreteOp>                                               \
  class Name : public mlir::OpTrait::TraitBase<ConcreteOp, Name> {}
AXE_TRAIT(Operator);
AXE_TRAIT(Logical);
AXE_TRAIT(Elementwise);
AXE_TRAIT(Lazy);
AXE_TRAIT(Product);
AXE_TRAIT(Reduction);
AXE_TRAIT(Relayout);
AXE_TRAIT(Tileable);
AXE_TRAIT(StorageView);
AXE_TRAIT(TakesStage);
AXE_TRAIT(GivesStage);
#undef AXE_TRAIT

} // namespace axe

#include "AxeDialect.h.inc"
#include "AxeEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "AxeAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "AxeTypes.h.inc"

#define GET_OP_CLASSES
#include "AxeOps.h.inc"

#endif // AXE_IR_AXE_H
