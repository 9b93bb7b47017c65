/* The C API, from C: every function of axe-c/Axe.h is called, and what it
 * returns is checked. Exits with 1 when a check fails. No assert(): it would
 * vanish in a release build. */
#include "axe-c/Axe.h"
#include "axe-c/Compile.h"
#include "axe-c/Register.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/IR.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      failures++;                                                              \
    }                                                                          \
  } while (0)

static MlirStringRef text(const char *string) {
  return mlirStringRefCreateFromCString(string);
}

static bool equals(MlirStringRef a, const char *b) {
  return mlirStringRefEqual(a, text(b));
}

/* The last diagnostic, kept so that its words can be checked. */
typedef struct {
  char message[1024];
  size_t length;
  int count;
} Log;

/* What cannot go on after a failed check: prints why and stops. */
#define REQUIRE(condition, log)                                                \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s: %s\n", __FILE__, __LINE__,           \
              #condition, (log)->message);                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void append(MlirStringRef part, void *user) {
  Log *log = user;
  size_t room = sizeof(log->message) - 1 - log->length;
  size_t length = part.length < room ? part.length : room;
  memcpy(log->message + log->length, part.data, length);
  log->length += length;
  log->message[log->length] = 0;
}

static MlirLogicalResult record(MlirDiagnostic diagnostic, void *user) {
  Log *log = user;
  log->length = 0;
  log->count++;
  mlirDiagnosticPrint(diagnostic, append, log);
  return mlirLogicalResultSuccess();
}

/* Whether the one diagnostic since the last call contains `words`. */
static bool said(Log *log, const char *words) {
  bool found = log->count == 1 && strstr(log->message, words) != NULL;
  if (!found)
    fprintf(stderr, "%d diagnostics, the last: %s\n", log->count, log->message);
  log->count = 0;
  return found;
}

static void testLayout(MlirContext context, Log *log) {
  MlirLocation here = mlirLocationUnknownGet(context);
  const AxeLayoutIter shard[] = {
      {8, 4, text("lane")}, {2, 1, text("warp")}, {4, 1, text("lane")}};
  const AxeLayoutIter replica[] = {{2, 4, text("warp")}};
  const AxeLayoutOffset offsets[] = {{text("warp"), 5}};

  MlirAttribute layout =
      axeLayoutAttrGet(here, 3, shard, 1, replica, 1, offsets, NULL);
  REQUIRE(!mlirAttributeIsNull(layout), log);
  CHECK(axeAttributeIsALayout(layout));
  CHECK(!axeAttributeIsALayout(mlirUnitAttrGet(context)));
  CHECK(axeLayoutAttrGetShardCount(layout) == 3);
  CHECK(axeLayoutAttrGetShard(layout, 0).extent == 8);
  CHECK(axeLayoutAttrGetShard(layout, 0).stride == 4);
  CHECK(equals(axeLayoutAttrGetShard(layout, 1).axis, "warp"));
  CHECK(axeLayoutAttrGetReplicaCount(layout) == 1);
  CHECK(axeLayoutAttrGetReplica(layout, 0).extent == 2);
  CHECK(axeLayoutAttrGetOffsetCount(layout) == 1);
  CHECK(axeLayoutAttrGetOffset(layout, 0).value == 5);
  CHECK(equals(axeLayoutAttrGetOffset(layout, 0).axis, "warp"));
  AxeLayoutSwizzle none;
  CHECK(!axeLayoutAttrGetSwizzle(layout, &none));

  /* The text of a layout gives the same attribute: there is one form. */
  MlirAttribute parsed = mlirAttributeParseGet(
      context, text("#axe.layout<S[(8, 2, 4) : (4@lane, 1@warp, 1@lane)] + "
                    "R[2 : 4@warp] + 5@warp>"));
  REQUIRE(!mlirAttributeIsNull(parsed), log);
  CHECK(mlirAttributeEqual(parsed, layout));

  const AxeLayoutIter rows[] = {{64, 64, text("m")}, {64, 1, text("m")}};
  const AxeLayoutSwizzle swizzle = {3, 3, 3};
  AxeLayoutSwizzle got = {0, 0, 0};
  MlirAttribute swizzled =
      axeLayoutAttrGet(here, 2, rows, 0, NULL, 0, NULL, &swizzle);
  REQUIRE(!mlirAttributeIsNull(swizzled), log);
  CHECK(axeLayoutAttrGetSwizzle(swizzled, &got));
  CHECK(got.bits == 3 && got.base == 3 && got.shift == 3);
  CHECK(axeLayoutAttrGetReplicaCount(swizzled) == 0);
  CHECK(!mlirAttributeEqual(swizzled, layout));
  CHECK(log->count == 0);

  /* An unknown axis and a bad extent are diagnostics, never attributes. */
  const AxeLayoutIter unknown[] = {{4, 1, text("nowhere")}};
  CHECK(mlirAttributeIsNull(
      axeLayoutAttrGet(here, 1, unknown, 0, NULL, 0, NULL, NULL)));
  CHECK(said(log, "nowhere"));
  const AxeLayoutIter negative[] = {{-4, 1, text("m")}};
  CHECK(mlirAttributeIsNull(
      axeLayoutAttrGet(here, 1, negative, 0, NULL, 0, NULL, NULL)));
  CHECK(said(log, "-4"));
}

static void testOthers(MlirContext context, Log *log) {
  MlirLocation here = mlirLocationUnknownGet(context);
  MlirAttribute unit = mlirUnitAttrGet(context);

  MlirAttribute space = axeSpaceAttrGet(here, text("shared"));
  REQUIRE(!mlirAttributeIsNull(space), log);
  CHECK(axeAttributeIsASpace(space) && !axeAttributeIsASpace(unit));
  CHECK(equals(axeSpaceAttrGetName(space), "shared"));
  CHECK(mlirAttributeIsNull(axeSpaceAttrGet(here, text("nowhere"))));
  CHECK(said(log, "nowhere"));

  for (int value = AxeCombinerAdd; value <= AxeCombinerOr; value++) {
    MlirAttribute combiner = axeCombinerAttrGet(context, (AxeCombiner)value);
    CHECK(axeAttributeIsACombiner(combiner));
    CHECK(axeCombinerAttrGetValue(combiner) == (AxeCombiner)value);
  }
  CHECK(!axeAttributeIsACombiner(unit));
  CHECK(mlirAttributeIsNull(axeCombinerAttrGet(context, (AxeCombiner)99)));

  for (int value = AxeLevelDevice; value <= AxeLevelThread; value++) {
    MlirAttribute level = axeLevelAttrGet(context, (AxeLevel)value);
    CHECK(axeAttributeIsALevel(level));
    CHECK(axeLevelAttrGetValue(level) == (AxeLevel)value);
  }
  CHECK(!axeAttributeIsALevel(unit));
  CHECK(mlirAttributeIsNull(axeLevelAttrGet(context, (AxeLevel)99)));

  CHECK(axeTypeIsAToken(axeTokenTypeGet(context)));
  CHECK(!axeTypeIsAToken(mlirNoneTypeGet(context)));
}

/* What no function takes: none crashes, each gives nothing. */
static void testHostile(MlirContext context, Log *log) {
  MlirLocation here = mlirLocationUnknownGet(context);
  MlirLocation nowhere = {NULL};
  MlirContext none = {NULL};
  MlirAttribute wrong[] = {{NULL}, mlirUnitAttrGet(context)};
  MlirStringRef unreadable = {NULL, 7};
  const AxeLayoutIter iter[] = {{4, 1, text("m")}};
  const AxeLayoutIter noAxis[] = {{4, 1, {NULL, 3}}};
  const AxeLayoutOffset noOffset[] = {{{NULL, 3}, 1}};

#define REFUSED(attribute, words)                                              \
  CHECK(mlirAttributeIsNull(attribute) && said(log, words))
  REFUSED(axeLayoutAttrGet(here, -1, iter, 0, NULL, 0, NULL, NULL), "got -1");
  REFUSED(axeLayoutAttrGet(here, 1, iter, -2, iter, 0, NULL, NULL), "got -2");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, -3, NULL, NULL), "got -3");
  REFUSED(axeLayoutAttrGet(here, 2, NULL, 0, NULL, 0, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 1, NULL, 0, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, 1, NULL, NULL), "got null");
  REFUSED(axeLayoutAttrGet(here, 1, noAxis, 0, NULL, 0, NULL, NULL), "null");
  REFUSED(axeLayoutAttrGet(here, 1, iter, 0, NULL, 1, noOffset, NULL), "null");
#undef REFUSED
  CHECK(mlirAttributeIsNull(
      axeLayoutAttrGet(nowhere, 1, iter, 0, NULL, 0, NULL, NULL)));
  CHECK(mlirAttributeIsNull(axeSpaceAttrGet(nowhere, text("shared"))));
  CHECK(mlirAttributeIsNull(axeSpaceAttrGet(here, unreadable)));
  CHECK(mlirAttributeIsNull(axeCombinerAttrGet(none, AxeCombinerAdd)));
  CHECK(mlirAttributeIsNull(axeLevelAttrGet(none, AxeLevelCta)));
  CHECK(mlirAttributeIsNull(axeRasterOrderAttrGet(none, AxeRasterOrderRows)));
  CHECK(
      mlirAttributeIsNull(axeRasterOrderAttrGet(context, (AxeRasterOrder)99)));
  CHECK(mlirTypeIsNull(axeTokenTypeGet(none)));
  CHECK(mlirTypeIsNull(axePipelineTypeGet(none)));
  CHECK(mlirTypeIsNull(axeSlotTypeGet(none)));
  CHECK(mlirModuleIsNull(axeModuleCreateParse(none, text(""), text("x"))));
  CHECK(mlirModuleIsNull(axeModuleCreateParse(context, unreadable, text("x"))));
  CHECK(mlirModuleIsNull(axeModuleCreateParse(context, text(""), unreadable)));

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
  }
  MlirAttribute layout =
      axeLayoutAttrGet(here, 1, iter, 0, NULL, 0, NULL, NULL);
  const intptr_t outside[] = {-1, 1, INTPTR_MIN, INTPTR_MAX};
  for (int i = 0; i < 4; i++) {
    CHECK(axeLayoutAttrGetShard(layout, outside[i]).extent == 0);
    CHECK(axeLayoutAttrGetReplica(layout, outside[i]).extent == 0);
    CHECK(axeLayoutAttrGetOffset(layout, outside[i]).value == 0);
  }
  const AxeLayoutSwizzle swizzle = {1, 0, 1};
  MlirAttribute swizzled =
      axeLayoutAttrGet(here, 1, iter, 0, NULL, 0, NULL, &swizzle);
  CHECK(axeLayoutAttrGetSwizzle(swizzled, NULL));
  CHECK(log->count == 0);
}

/* Attributes and types load the dialect, where nobody has. */
static void testUnloaded(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  for (int i = 0; i < 6; i++) {
    MlirContext context = mlirContextCreateWithRegistry(registry, false);
    MlirLocation here = mlirLocationUnknownGet(context);
    CHECK(i != 0 || axeAttributeIsARasterOrder(
                        axeRasterOrderAttrGet(context, AxeRasterOrderSnake)));
    CHECK(i != 1 ||
          axeAttributeIsALevel(axeLevelAttrGet(context, AxeLevelCta)));
    CHECK(i != 2 ||
          axeAttributeIsACombiner(axeCombinerAttrGet(context, AxeCombinerMax)));
    CHECK(i != 3 || axeTypeIsAPipeline(axePipelineTypeGet(context)));
    CHECK(i != 4 || axeTypeIsASlot(axeSlotTypeGet(context)));
    CHECK(i != 5 ||
          axeAttributeIsASpace(axeSpaceAttrGet(here, text("shared"))));
    mlirContextDestroy(context);
  }
  mlirDialectRegistryDestroy(registry);
}

/* A module of this program's own MLIR becomes a package, and stays. */
static void testCompile(MlirContext context) {
  MlirModule module = axeModuleCreateParse(
      context,
      text("func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
           "  %y = axe.map ins(%x : tensor<64xf32>) -> tensor<64xf32> {\n"
           "  ^bb0(%a: f32):\n"
           "    %s = arith.addf %a, %a : f32\n"
           "    axe.yield %s : f32\n"
           "  }\n"
           "  return %y : tensor<64xf32>\n"
           "}\n"),
      text("host.mlir"));
  CHECK(!mlirModuleIsNull(module));
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.no_assembler = true;
  axe_package *package = NULL;
  axe_error *error = NULL;
  CHECK(axeCompileModule(module, &options, &package, &error) == AXE_OK);
  if (error)
    fprintf(stderr, "%s\n", axe_error_message(error));
  CHECK(axe_package_ptx(package, NULL) != NULL);
  CHECK(mlirOperationVerify(mlirModuleGetOperation(module)));
  axe_package_free(package);
  CHECK(axeCompileModule((MlirModule){NULL}, NULL, &package, &error) ==
        AXE_ERROR_INVALID_ARGUMENT);
  CHECK(package == NULL && error != NULL);
  axe_error_free(error);
  CHECK(axeCompileModule(module, NULL, NULL, NULL) ==
        AXE_ERROR_INVALID_ARGUMENT);
  mlirModuleDestroy(module);
}

/* A module is parsed, and refused, through the registered dialect. */
static void testModule(MlirContext context, Log *log) {
  MlirModule good = mlirModuleCreateParse(
      context, text("func.func private @f(tensor<8x8xf16, "
                    "#axe.layout<S[(8, 8) : (8, 1)]>>)"));
  REQUIRE(!mlirModuleIsNull(good), log);
  CHECK(mlirOperationVerify(mlirModuleGetOperation(good)));
  mlirModuleDestroy(good);
  CHECK(log->count == 0);

  MlirModule bad = mlirModuleCreateParse(
      context, text("func.func private @f(tensor<8x7xf16, "
                    "#axe.layout<S[(8, 8) : (8, 1)]>>)"));
  CHECK(mlirModuleIsNull(bad));
  CHECK(log->count >= 1);
  log->count = 0;
}

static MlirLogicalResult locate(MlirDiagnostic diagnostic, void *user) {
  Log *log = user;
  log->length = 0;
  log->count++;
  mlirLocationPrint(mlirDiagnosticGetLocation(diagnostic), append, log);
  return mlirLogicalResultSuccess();
}

/* Modules are located in the file that they are said to be from. */
static void testNamedModule(MlirContext context, Log *log) {
  MlirModule good = axeModuleCreateParse(context, text("module @m {}\n"),
                                         text("some/good.mlir"));
  REQUIRE(!mlirModuleIsNull(good), log);
  MlirLocation location =
      mlirOperationGetLocation(mlirModuleGetOperation(good));
  CHECK(equals(
      mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location)),
      "some/good.mlir"));
  mlirModuleDestroy(good);
  CHECK(log->count == 0);

  MlirDiagnosticHandlerID handler =
      mlirContextAttachDiagnosticHandler(context, locate, log, NULL);
  CHECK(mlirModuleIsNull(axeModuleCreateParse(
      context, text("module {\n  func.func @f("), text("bad.mlir"))));
  CHECK(said(log, "loc(\"bad.mlir\":2:"));
  mlirContextDetachDiagnosticHandler(context, handler);
}

/* One call registers what a compilation needs. */
static void testEverything(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  axeRegisterAll((MlirDialectRegistry){NULL});
  axeRegisterAll(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  testCompile(context);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
}

int main(void) {
  axeRegisterTargets();
  axeRegisterTargets(); /* a second call does nothing */
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__axe__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  CHECK(equals(mlirDialectHandleGetNamespace(mlirGetDialectHandle__axe__()),
               "axe"));
  mlirContextLoadAllAvailableDialects(context);

  Log log = {{0}, 0, 0};
  MlirDiagnosticHandlerID handler =
      mlirContextAttachDiagnosticHandler(context, record, &log, NULL);
  testLayout(context, &log);
  testOthers(context, &log);
  testModule(context, &log);
  testNamedModule(context, &log);
  testHostile(context, &log);
  mlirContextDetachDiagnosticHandler(context, handler);

  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  testUnloaded();
  testEverything();
  if (failures == 0)
    printf("C API: all checks passed\n");
  return failures == 0 ? 0 : 1;
}
