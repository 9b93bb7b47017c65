/*===- PassAbi.h - How a pass calls its Rust body -----------------*- C -*-===*\
|*                                                                            *|
|* A pass object holds options and statistics, as Passes.td declares them;    *|
|* its work is the Rust function registered under the same name.              *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXE_PASSES_PASSABI_H
#define AXE_PASSES_PASSABI_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One option of a pass, as text. */
typedef struct {
  MlirStringRef name;
  MlirStringRef value;
} AxePassOption;

/* One option of a pipeline; `value` is its default. */
typedef struct {
  MlirStringRef name;
  MlirStringRef help;
  MlirStringRef value;
} AxePipelineOption;

/* Registers a pipeline with MLIR, once for a name. The strings live as long as
 * the program. */
void axeRegisterPipeline(MlirStringRef name, MlirStringRef summary,
                         intptr_t optionCount,
                         const AxePipelineOption *options);

/* Adds `count` to the pass's statistic `name`. */
typedef void (*AxeStatisticSink)(MlirStringRef name, int64_t count, void *pass);

/* Runs the pass `name` on an operation; false after an error diagnostic. */
bool axeRunPass(MlirStringRef name, MlirOperation operation,
                intptr_t optionCount, const AxePassOption *options,
                AxeStatisticSink statistics, void *pass);

/* Inserts the dialects that the registered targets build operations of, and
 * the external models that their pipelines need. */
void axeTargetDialects(MlirDialectRegistry registry);

/* Emits an optimization remark when its category is enabled. `kind`: 0 passed,
 * 1 missed, 2 analysis. */
void axeEmitRemark(MlirLocation location, int kind, MlirStringRef name,
                   MlirStringRef category, MlirStringRef function,
                   MlirStringRef message);

/* Replaces each layout in the types and attributes below an operation by what
 * `replace` gives (the layout itself, or null, keeps it). Returns how many
 * distinct layouts changed. */
int64_t axeReplaceLayouts(MlirOperation operation,
                          MlirAttribute (*replace)(MlirAttribute, void *),
                          void *user);

/* Takes the layouts off the tensors below an operation, and turns tokens into
 * i1. Memrefs keep theirs. */
void axePlainTypes(MlirOperation operation);

/* The bytes of a dense resource, and how many; null for another attribute or a
 * resource that is not there. */
const uint8_t *axeResourceData(MlirAttribute attribute, intptr_t *size);

/* Whether an operation has no undefined behaviour on any operands, by its
 * ConditionallySpeculatable interface. */
bool axeIsSpeculatable(MlirOperation operation);

/* Replaces an operation of linalg by what upstream takes it apart into: an
 * aggregated one (softmax) and pack and unpack by several operations, a named
 * one whose operands are indexed by loops and zeros by `linalg.generic`. False
 * where there is no such form; the operation stays then. */
bool axeExpandNamed(MlirOperation operation);

#ifdef __cplusplus
}
#endif

#endif /* AXE_PASSES_PASSABI_H */
