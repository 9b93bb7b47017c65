//===- LayoutAbi.h - What C++ asks of the layout algebra ----------*- C -*-===//
//
// The algebra is the Rust crate axe-layout. These are the only questions that
// the dialect's C++ asks of it; dialect/rust/src/abi.rs answers them. Views
// borrow: nothing is kept after a call returns.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_IR_LAYOUTABI_H
#define AXE_IR_LAYOUTABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// `extent` positions, `stride` apart on the axis; the name is not terminated.
typedef struct {
  int64_t extent;
  int64_t stride;
  const char *axis;
  size_t axisLength;
} AxeIter;

/// A constant displacement on one axis.
typedef struct {
  const char *axis;
  size_t axisLength;
  int64_t value;
} AxeOffset;

/// CuTe's `Sw<bits, base, shift>` on the axis `m`.
typedef struct {
  int64_t bits;
  int64_t base;
  int64_t shift;
} AxeSwizzle;

/// A layout; `swizzle` is null when there is none.
typedef struct {
  const AxeIter *shard;
  size_t shardCount;
  const AxeIter *replica;
  size_t replicaCount;
  const AxeOffset *offsets;
  size_t offsetCount;
  const AxeSwizzle *swizzle;
} AxeLayoutView;

/// Receives a message of `length` bytes, not terminated.
typedef void (*AxeErrorSink)(const char *message, size_t length, void *user);

/// Whether the layout is well formed and its axes are in the vocabulary.
bool axeLayoutVerify(AxeLayoutView layout, AxeErrorSink sink, void *user);

/// Whether the layout admits the shape (`INT64_MIN` marks a dynamic extent).
bool axeLayoutAdmits(AxeLayoutView layout, const int64_t *shape, size_t rank,
                     AxeErrorSink sink, void *user);

/// Whether two layouts induce the same map.
bool axeLayoutEqual(AxeLayoutView a, AxeLayoutView b);

/// Strides (elements) and offset when the layout is one stride a dimension on
/// `m` for this shape; false otherwise.
bool axeLayoutStrides(AxeLayoutView layout, const int64_t *shape, size_t rank,
                      int64_t *strides, int64_t *offset);

/// The span on `m`, offset included: elements that storage must hold; -1 when
/// that is not finite.
int64_t axeLayoutStorage(AxeLayoutView layout);

/// Whether every axis that the layout names counts places of this memory space.
bool axeSpaceHasLayout(const char *space, size_t length, AxeLayoutView layout);

/// Whether a target declared this axis, or memory space.
bool axeVocabularyHasAxis(const char *name, size_t length);
bool axeVocabularyHasSpace(const char *name, size_t length);

#ifdef __cplusplus
}
#endif

#endif // AXE_IR_LAYOUTABI_H
