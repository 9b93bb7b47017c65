/*===- axe-c/Compile.h - Modules of the caller's MLIR to packages -*- C -*-===*\
|*                                                                            *|
|* For programs that link Axe::CAPI or Axe::Axe and have an MLIR already.     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXE_C_COMPILE_H
#define AXE_C_COMPILE_H

#include "axe.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As axe_compile, of a module in any context, which stays as it is. It has to
 * verify, and to hold operations of MLIR's own dialects and of axe alone:
 * others have to be lowered first. Diagnostics name the places that the
 * module's locations name. */
axe_status axeCompileModule(MlirModule module,
                            const axe_compile_options *options,
                            axe_package **package, axe_error **error);

#ifdef __cplusplus
}
#endif

#endif /* AXE_C_COMPILE_H */
