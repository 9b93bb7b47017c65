/*===- axe-c/Register.h - Targets and passes of axe ---------------*- C -*-===*\
|*                                                                            *|
|* Part of the library axe_ffi, which holds every target.                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXE_C_REGISTER_H
#define AXE_C_REGISTER_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declares the axes and memory spaces of every target. Call it before IR is
 * parsed: a layout that names an undeclared axis does not verify. Calling it
 * again does nothing. */
void axeRegisterTargets(void);

/* Registers the passes for textual pipelines, after axeRegisterTargets, which
 * registers the pipelines. Calling it again does nothing. */
void axeRegisterPasses(void);

/* All of it in one call: the targets, the passes and pipelines, MLIR's own
 * passes, and in the registry the dialects axe and trn, MLIR's dialects, and
 * the external models and translations that the pipelines down to PTX and to
 * the host need. From C++: axe::registerAll of axe/Register.h. */
void axeRegisterAll(MlirDialectRegistry registry);

#ifdef __cplusplus
}
#endif

#endif /* AXE_C_REGISTER_H */
