/* The C API, from C: every function of axe-c/ is called, and what it
 * returns is checked. Exits with 1 when a check fails. No assert(): it would
 * vanish in a release build. */
#include "axe-c/Axe.h"
#include "axe-c/Compile.h"
#include "axe-c/Register.h"
#include "check.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/Dialect/Linalg.h"
#include "mlir-c/Dialect/Tensor.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "mlir-c/RegisterEverything.h"

static bool equals(MlirStringRef a, const char *b) {
  return mlirStringRefEqual(a, text(b));
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

  for (int value = AxeRasterOrderRows; value <= AxeRasterOrderHilbert;
       value++) {
    MlirAttribute order = axeRasterOrderAttrGet(context, (AxeRasterOrder)value);
    CHECK(axeAttributeIsARasterOrder(order));
    CHECK(axeRasterOrderAttrGetValue(order) == (AxeRasterOrder)value);
  }

  CHECK(axeTypeIsAToken(axeTokenTypeGet(context)));
  CHECK(!axeTypeIsAToken(mlirNoneTypeGet(context)));
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
  axeRegisterAll(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  testCompile(context);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
}

/* Lowers a module to PTX in a context that knows its dialects and no more. */
static bool lowers(Log *log) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__linalg__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__tensor__(), registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirContextAttachDiagnosticHandler(context, record, log, NULL);
  MlirModule module = mlirModuleCreateParse(
      context,
      text("func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
           "  %e = tensor.empty() : tensor<64xf32>\n"
           "  %y = linalg.add ins(%x, %x : tensor<64xf32>, tensor<64xf32>)\n"
           "                  outs(%e : tensor<64xf32>) -> tensor<64xf32>\n"
           "  return %y : tensor<64xf32>\n"
           "}\n"));
  REQUIRE(!mlirModuleIsNull(module), log);
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirOperation root = mlirModuleGetOperation(module);
  Log parsing = {{0}, 0, 0};
  bool done = mlirLogicalResultIsSuccess(mlirParsePassPipeline(
                  mlirPassManagerGetAsOpPassManager(passes),
                  text("builtin.module(axe-nvidia{target=sm_90a})"), append,
                  &parsing)) &&
              mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(passes, root));
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  return done;
}

/* Who registers less than everything: what passes of Axe need they declare, and
 * that MLIR's passes are missing, which the pipeline names, is an error. */
static void testFewer(void) {
  Log log = {{0}, 0, 0};
  CHECK(!lowers(&log) && said(&log, "a pass that is not registered"));
  mlirRegisterAllPasses();
  CHECK(lowers(&log) && log.count == 0);
}

int main(void) {
  axeRegisterTargets();
  axeRegisterTargets(); /* a second call does nothing */
  axeRegisterPasses();
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
  testUnloaded();
  testFewer();
  testEverything();
  if (failures == 0)
    printf("C API: all checks passed\n");
  return failures == 0 ? 0 : 1;
}
