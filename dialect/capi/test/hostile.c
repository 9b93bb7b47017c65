/* Hostile calls of every function of axe-c/: none crashes, none succeeds. Built
 * with AddressSanitizer and UndefinedBehaviorSanitizer, as the C++ of the C API
 * is for it. What cannot be seen through a pointer (a context that is freed, an
 * array that is shorter than it is said to be) is the caller's. */
#include "axe-c/Axe.h"
#include "axe-c/Compile.h"
#include "axe-c/Register.h"
#include "check.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <limits.h>
#include <stdint.h>

static const MlirContext noContext = {NULL};
static const MlirStringRef unreadable = {NULL, 7};
static const int numbers[] = {-1, 99, INT_MIN, INT_MAX};

/* Counts, arrays and names of layouts that are none. */
static void layouts(MlirContext context, Log *log) {
  MlirLocation here = mlirLocationUnknownGet(context), nowhere = {NULL};
  const AxeLayoutIter iter[] = {{4, 1, text("m")}};
  const AxeLayoutIter noAxis[] = {{4, 1, {NULL, 3}}};
  const AxeLayoutIter huge[] = {{INT64_MAX, INT64_MIN, text("m")},
                                {INT64_MAX, INT64_MIN, text("m")}};
  const AxeLayoutOffset noOffset[] = {{{NULL, 3}, 1}};
  const AxeLayoutSwizzle swizzle = {1, 0, 1}, wild = {INT64_MAX, INT64_MIN, -1};

#define REFUSED(attribute, words)                                              \
  CHECK(mlirAttributeIsNull(attribute) && said(log, words))
  REFUSED(axeLayoutAttrGet(here, -1, iter, 0, NULL, 0, NULL, NULL), "got -1");
  REFUSED(axeLayoutAttrGet(here, 1, iter, -2, iter, 0, NULL, NULL), "got -2");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, -3, NULL, NULL), "got -3");
  REFUSED(axeLayoutAttrGet(here, INTPTR_MIN, iter, 0, NULL, 0, NULL, NULL),
          "got -");
  REFUSED(axeLayoutAttrGet(here, 2, NULL, 0, NULL, 0, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 1, NULL, 0, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, 1, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, noAxis, 0, NULL, 0, NULL, NULL), "null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, 1, noOffset, NULL), "null");
  REFUSED(axeLayoutAttrGet(here, 2, huge, 0, NULL, 0, NULL, NULL), "");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, 0, NULL, &wild), "");
  REFUSED(axeSpaceAttrGet(here, text("")), "");
#undef REFUSED
  CHECK(mlirAttributeIsNull(
      axeLayoutAttrGet(nowhere, 1, iter, 0, NULL, 0, NULL, NULL)));
  CHECK(mlirAttributeIsNull(axeSpaceAttrGet(nowhere, text("shared"))));
  CHECK(mlirAttributeIsNull(axeSpaceAttrGet(here, unreadable)));

  MlirAttribute layout =
      axeLayoutAttrGet(here, 1, iter, 0, NULL, 0, NULL, NULL);
  const intptr_t outside[] = {-1, 1, INTPTR_MIN, INTPTR_MAX};
  for (int i = 0; i < 4; i++) {
    CHECK(axeLayoutAttrGetShard(layout, outside[i]).extent == 0);
    CHECK(axeLayoutAttrGetReplica(layout, outside[i]).extent == 0);
    CHECK(axeLayoutAttrGetOffset(layout, outside[i]).value == 0);
  }
  MlirAttribute swizzled =
      axeLayoutAttrGet(here, 1, iter, 0, NULL, 0, NULL, &swizzle);
  CHECK(axeLayoutAttrGetSwizzle(swizzled, NULL));
}

/* No context, and numbers that are no enumerators. */
static void makers(MlirContext context) {
  CHECK(mlirAttributeIsNull(axeCombinerAttrGet(noContext, AxeCombinerAdd)));
  CHECK(mlirAttributeIsNull(axeLevelAttrGet(noContext, AxeLevelCta)));
  CHECK(mlirAttributeIsNull(
      axeRasterOrderAttrGet(noContext, AxeRasterOrderRows)));
  for (int i = 0; i < 4; i++) {
    int number = numbers[i];
    CHECK(
        mlirAttributeIsNull(axeCombinerAttrGet(context, (AxeCombiner)number)));
    CHECK(mlirAttributeIsNull(axeLevelAttrGet(context, (AxeLevel)number)));
    CHECK(mlirAttributeIsNull(
        axeRasterOrderAttrGet(context, (AxeRasterOrder)number)));
  }
  CHECK(mlirTypeIsNull(axeTokenTypeGet(noContext)));
  CHECK(mlirTypeIsNull(axePipelineTypeGet(noContext)));
  CHECK(mlirTypeIsNull(axeSlotTypeGet(noContext)));
}

/* Null, and attributes and types of another kind. */
static void readers(MlirContext context) {
  const MlirAttribute wrong[] = {{NULL}, mlirUnitAttrGet(context)};
  const MlirType types[] = {{NULL}, mlirNoneTypeGet(context)};
  for (int i = 0; i < 2; i++) {
    AxeLayoutSwizzle swizzle = {9, 9, 9};
    CHECK(!axeAttributeIsALayout(wrong[i]));
    CHECK(!axeAttributeIsASpace(wrong[i]));
    CHECK(!axeAttributeIsACombiner(wrong[i]));
    CHECK(!axeAttributeIsALevel(wrong[i]));
    CHECK(!axeAttributeIsARasterOrder(wrong[i]));
    CHECK(axeLayoutAttrGetShardCount(wrong[i]) == 0);
    CHECK(axeLayoutAttrGetShard(wrong[i], 0).extent == 0);
    CHECK(axeLayoutAttrGetReplicaCount(wrong[i]) == 0);
    CHECK(axeLayoutAttrGetReplica(wrong[i], 0).extent == 0);
    CHECK(axeLayoutAttrGetOffsetCount(wrong[i]) == 0);
    CHECK(axeLayoutAttrGetOffset(wrong[i], 0).value == 0);
    CHECK(!axeLayoutAttrGetSwizzle(wrong[i], &swizzle) && swizzle.bits == 9);
    CHECK(axeSpaceAttrGetName(wrong[i]).length == 0);
    CHECK((int)axeCombinerAttrGetValue(wrong[i]) == -1);
    CHECK((int)axeLevelAttrGetValue(wrong[i]) == -1);
    CHECK((int)axeRasterOrderAttrGetValue(wrong[i]) == -1);
    CHECK(!axeTypeIsAToken(types[i]));
    CHECK(!axeTypeIsAPipeline(types[i]));
    CHECK(!axeTypeIsASlot(types[i]));
  }
}

/* Texts that are no modules, and no context for one. */
static void modules(MlirContext context, Log *log) {
  CHECK(mlirModuleIsNull(axeModuleCreateParse(noContext, text(""), text("x"))));
  CHECK(mlirModuleIsNull(axeModuleCreateParse(context, unreadable, text("x"))));
  CHECK(mlirModuleIsNull(axeModuleCreateParse(context, text(""), unreadable)));
  CHECK(log->count == 0);
  const char *texts[] = {"}", "module {", "\"axe.gemm\"() : ()",
                         "module attributes {x = #axe.layout<>} {}",
                         "module attributes {x = #axe.space<>} {}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    CHECK(mlirModuleIsNull(
        axeModuleCreateParse(context, text(texts[i]), text(""))));
    CHECK(log->count > 0);
    log->count = 0;
  }
  /* Not ended by a NUL. */
  char *open = malloc(8);
  memcpy(open, "module {", 8);
  CHECK(mlirModuleIsNull(axeModuleCreateParse(
      context, mlirStringRefCreate(open, 8), text("open"))));
  free(open);
  log->count = 0;
}

/* The refusals of axeCompileModule: a status, an error, no package. */
static void compiling(MlirContext context) {
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(context));
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  axe_package *package = (axe_package *)(uintptr_t)1;
  axe_error *error = (axe_error *)(uintptr_t)1;
#define REFUSED(module, options, status)                                       \
  do {                                                                         \
    CHECK(axeCompileModule(module, options, &package, &error) == (status));    \
    CHECK(!package && error && axe_error_message(error)[0] != 0);              \
    axe_error_free(error);                                                     \
  } while (0)
  REFUSED((MlirModule){NULL}, NULL, AXE_ERROR_INVALID_ARGUMENT);
  REFUSED(module, NULL, AXE_ERROR_COMPILE);
  options.target = "sm_1";
  REFUSED(module, &options, AXE_ERROR_UNKNOWN_TARGET);
  options.target = "\xff";
  REFUSED(module, &options, AXE_ERROR_INVALID_ARGUMENT);
  options.target = NULL;
  options.function = "no_such_function";
  REFUSED(module, &options, AXE_ERROR_COMPILE);
  options.struct_size = 3;
  REFUSED(module, &options, AXE_ERROR_INVALID_ARGUMENT);
#undef REFUSED
  CHECK(axeCompileModule(module, NULL, NULL, NULL) ==
        AXE_ERROR_INVALID_ARGUMENT);
  mlirModuleDestroy(module);
}

int main(void) {
  axeRegisterAll((MlirDialectRegistry){NULL});
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  /* Each a second time, and after all of them. */
  for (int i = 0; i < 2; i++) {
    axeRegisterTargets();
    axeRegisterPasses();
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__axe__(), registry);
    axeRegisterAll(registry);
  }
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  Log log = {{0}, 0, 0};
  MlirDiagnosticHandlerID handler =
      mlirContextAttachDiagnosticHandler(context, record, &log, NULL);
  layouts(context, &log);
  makers(context);
  readers(context);
  modules(context, &log);
  CHECK(log.count == 0);
  mlirContextDetachDiagnosticHandler(context, handler);
  compiling(context);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  if (failures == 0)
    printf("hostile calls: all refused\n");
  return failures != 0;
}
