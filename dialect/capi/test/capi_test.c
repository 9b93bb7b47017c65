/* The C API, from C: every function of axe-c/Axe.h is called, and what it
 * returns is checked. Exits with 1 when a check fails. No assert(): it would
 * vanish in a release build. */
#include "axe-c/Axe.h"
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
  mlirContextDetachDiagnosticHandler(context, handler);

  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  if (failures == 0)
    printf("C API: all checks passed\n");
  return failures == 0 ? 0 : 1;
}
