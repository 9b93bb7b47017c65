/*===- axe-c/Axe.h - C API of the axe dialect ---------------------*- C -*-===*\
|*                                                                            *|
|* Registration, and every attribute and type that operations need; the      *|
|* operations themselves are built with mlir-c/IR.h.                          *|
|*                                                                            *|
|* Attributes and types belong to their context, and so do the strings that   *|
|* are read from them. Functions load the dialect where it is needed. What a  *|
|* function does not take (null, an attribute of another kind, an index that  *|
|* is out of range, a negative count) gives null, false, 0, or a structure of *|
|* zeros; where there is a location, with a diagnostic.                       *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXE_C_AXE_H
#define AXE_C_AXE_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Axe, axe);

/* Enumerations are as wide as an int in C++ too, where a number that is no
 * enumerator could not be passed, nor -1 be given back, without one. */
#ifdef __cplusplus
#define AXE_C_ANY_INT : int
#else
#define AXE_C_ANY_INT
#endif

/* Parses `module`, whose diagnostics and operations are located in a file of
 * this name: mlirModuleCreateParse knows none and says "-". Null, with
 * diagnostics, when it does not parse or verify. */
MLIR_CAPI_EXPORTED MlirModule axeModuleCreateParse(MlirContext context,
                                                   MlirStringRef module,
                                                   MlirStringRef name);

/*===--- Layouts ----------------------------------------------------------===*/

/* `extent` positions, `stride` apart, on an axis ("m" is linear memory). */
typedef struct {
  int64_t extent;
  int64_t stride;
  MlirStringRef axis;
} AxeLayoutIter;

/* A constant displacement on an axis. */
typedef struct {
  MlirStringRef axis;
  int64_t value;
} AxeLayoutOffset;

/* CuTe's Sw<bits, base, shift>, on the axis m. */
typedef struct {
  int64_t bits;
  int64_t base;
  int64_t shift;
} AxeLayoutSwizzle;

/* The layout attribute `swizzle o S + R + O`. Null, with a diagnostic at the
 * location, when the layout is malformed or names an unknown axis. `swizzle`
 * may be null. An extent of INT64_MIN is dynamic: the first of shard only. */
MLIR_CAPI_EXPORTED MlirAttribute axeLayoutAttrGet(
    MlirLocation location, intptr_t shardCount, const AxeLayoutIter *shard,
    intptr_t replicaCount, const AxeLayoutIter *replica, intptr_t offsetCount,
    const AxeLayoutOffset *offsets, const AxeLayoutSwizzle *swizzle);

MLIR_CAPI_EXPORTED bool axeAttributeIsALayout(MlirAttribute attribute);

MLIR_CAPI_EXPORTED intptr_t axeLayoutAttrGetShardCount(MlirAttribute layout);
MLIR_CAPI_EXPORTED AxeLayoutIter axeLayoutAttrGetShard(MlirAttribute layout,
                                                       intptr_t index);
MLIR_CAPI_EXPORTED intptr_t axeLayoutAttrGetReplicaCount(MlirAttribute layout);
MLIR_CAPI_EXPORTED AxeLayoutIter axeLayoutAttrGetReplica(MlirAttribute layout,
                                                         intptr_t index);
MLIR_CAPI_EXPORTED intptr_t axeLayoutAttrGetOffsetCount(MlirAttribute layout);
MLIR_CAPI_EXPORTED AxeLayoutOffset axeLayoutAttrGetOffset(MlirAttribute layout,
                                                          intptr_t index);

/* Whether the layout has a swizzle, which is then written to `swizzle`. */
MLIR_CAPI_EXPORTED bool axeLayoutAttrGetSwizzle(MlirAttribute layout,
                                                AxeLayoutSwizzle *swizzle);

/*===--- Other attributes and types ---------------------------------------===*/

/* `#axe.space<name>`; null, with a diagnostic, when no target declares it. */
MLIR_CAPI_EXPORTED MlirAttribute axeSpaceAttrGet(MlirLocation location,
                                                 MlirStringRef name);
MLIR_CAPI_EXPORTED bool axeAttributeIsASpace(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirStringRef axeSpaceAttrGetName(MlirAttribute space);

typedef enum AXE_C_ANY_INT {
  AxeCombinerAdd = 0,
  AxeCombinerMul = 1,
  AxeCombinerMax = 2,
  AxeCombinerMin = 3,
  AxeCombinerAnd = 4,
  AxeCombinerOr = 5,
  AxeCombinerXor = 6,
  AxeCombinerMaxUI = 7,
  AxeCombinerMinUI = 8
} AxeCombiner;

/* Null when `combiner` is not one of the enumerators. */
MLIR_CAPI_EXPORTED MlirAttribute axeCombinerAttrGet(MlirContext context,
                                                    AxeCombiner combiner);
MLIR_CAPI_EXPORTED bool axeAttributeIsACombiner(MlirAttribute attribute);
/* -1 for another attribute; so are the values below. */
MLIR_CAPI_EXPORTED AxeCombiner axeCombinerAttrGetValue(MlirAttribute combiner);

typedef enum AXE_C_ANY_INT {
  AxeLevelDevice = 0,
  AxeLevelCluster = 1,
  AxeLevelCta = 2,
  AxeLevelWarpgroup = 3,
  AxeLevelWarp = 4,
  AxeLevelThread = 5
} AxeLevel;

/* Null when `level` is not one of the enumerators. */
MLIR_CAPI_EXPORTED MlirAttribute axeLevelAttrGet(MlirContext context,
                                                 AxeLevel level);
MLIR_CAPI_EXPORTED bool axeAttributeIsALevel(MlirAttribute attribute);
MLIR_CAPI_EXPORTED AxeLevel axeLevelAttrGetValue(MlirAttribute level);

/* The order in which a grid of tiles is visited. */
typedef enum AXE_C_ANY_INT {
  AxeRasterOrderRows = 0,
  AxeRasterOrderColumns = 1,
  AxeRasterOrderGroups = 2,
  AxeRasterOrderSnake = 3,
  AxeRasterOrderHilbert = 4
} AxeRasterOrder;

/* Null when `order` is not one of the enumerators. */
MLIR_CAPI_EXPORTED MlirAttribute axeRasterOrderAttrGet(MlirContext context,
                                                       AxeRasterOrder order);
MLIR_CAPI_EXPORTED bool axeAttributeIsARasterOrder(MlirAttribute attribute);
MLIR_CAPI_EXPORTED AxeRasterOrder
axeRasterOrderAttrGetValue(MlirAttribute order);

/* `!axe.token`, `!axe.pipeline` and `!axe.slot`. */
MLIR_CAPI_EXPORTED MlirType axeTokenTypeGet(MlirContext context);
MLIR_CAPI_EXPORTED bool axeTypeIsAToken(MlirType type);
MLIR_CAPI_EXPORTED MlirType axePipelineTypeGet(MlirContext context);
MLIR_CAPI_EXPORTED bool axeTypeIsAPipeline(MlirType type);
MLIR_CAPI_EXPORTED MlirType axeSlotTypeGet(MlirContext context);
MLIR_CAPI_EXPORTED bool axeTypeIsASlot(MlirType type);

#ifdef __cplusplus
}
#endif

#endif /* AXE_C_AXE_H */
