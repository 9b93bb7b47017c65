//===- AxeVerify.h - Checks that several verifiers share --------*- C++ -*-===//
#ifndef AXE_IR_AXEVERIFY_H
#define AXE_IR_AXEVERIFY_H

#include "Axe.h"

namespace axe {

using Effects = llvm::SmallVectorImpl<
    mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>;

/// The element type of a tensor or memref type.
inline mlir::Type elementType(mlir::Type type) {
  return llvm::cast<mlir::ShapedType>(type).getElementType();
}

/// The shape of a tensor or memref type.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Type type) {
  return llvm::cast<mlir::ShapedType>(type).getShape();
}

/// Adds that an operator reads an operand, where that is memory.
void addRead(Effects &effects, mlir::OpOperand &operand);

/// Checks that two memrefs have one element type and memory space.
llvm::LogicalResult verifySameStorage(mlir::Operation *op,
                                      llvm::StringRef constraint,
                                      mlir::MemRefType a, mlir::MemRefType b);

/// (V3): where source and result are both strided, the strides of the result
/// are those of the source's trailing dimensions.
llvm::LogicalResult verifySliceLayout(mlir::Operation *op,
                                      mlir::MemRefType source,
                                      mlir::MemRefType result);

/// (L3) for every layout below `root`, in any type or attribute: the axes of
/// meshes are those of an `axe.mesh` around, and places on them are devices.
llvm::LogicalResult verifyAllMeshAxes(mlir::Operation *root);

/// Elements of storage that a memref spans; -1 when that is not known.
int64_t storageElements(mlir::MemRefType type);

/// The layout of a tensor or memref type; null when it has none.
LayoutAttr layoutOf(mlir::Type type);

/// Whether both types have no layout, or layouts that induce the same map.
bool haveEqualLayouts(mlir::Type a, mlir::Type b);

/// Whether two extents can be the same at run time.
bool canMatch(int64_t a, int64_t b);

/// Whether two shapes can be the same at run time.
bool canMatch(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

} // namespace axe

#endif // AXE_IR_AXEVERIFY_H
