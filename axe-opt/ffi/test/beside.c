/* libaxe beside another MLIR of the same process: the shared libMLIR, which
 * this program is linked to. Each compiles, before and after the other. */
#include "axe.h"
#include "check.h"

#include "mlir-c/Conversion.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "mlir-c/Transforms.h"

#include <dlfcn.h>

static void uses_mlir(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, true);
  MlirModule module = mlirModuleCreateParse(
      context, mlirStringRefCreateFromCString("func.func @f() { return }"));
  CHECK(!mlirModuleIsNull(module));
  MlirPassManager passes = mlirPassManagerCreate(context);
  mlirPassManagerAddOwnedPass(passes, mlirCreateTransformsCanonicalizer());
  CHECK(mlirLogicalResultIsSuccess(
      mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module))));
  /* What libaxe knows is not known here. */
  CHECK(mlirDialectHandleGetNamespace(mlirGetDialectHandle__func__()).length ==
        4);
  CHECK(mlirContextGetOrLoadDialect(context,
                                    mlirStringRefCreateFromCString("axe"))
            .ptr == NULL);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
}

typedef axe_status (*Compile)(const char *, size_t, const axe_compile_options *,
                              axe_package **, axe_error **);
typedef void (*Free)(axe_package *);

static void uses_axe(void *library) {
  Compile compile = (Compile)(uintptr_t)dlsym(library, "axe_compile");
  Free release = (Free)(uintptr_t)dlsym(library, "axe_package_free");
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.no_assembler = true;
  axe_package *package = NULL;
  CHECK(compile(ADD, sizeof ADD - 1, &options, &package, NULL) == AXE_OK);
  CHECK(package != NULL);
  release(package);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: beside LIBAXE\n");
    return 2;
  }
  uses_mlir();
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  /* No symbol of the MLIR inside is seen. */
  CHECK(dlsym(library, "mlirContextCreate") == NULL);
  uses_axe(library);
  uses_mlir();
  uses_axe(library);
  if (failures == 0)
    printf("two MLIRs: both work\n");
  return failures != 0;
}
