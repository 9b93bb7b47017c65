/* Hostile calls of every function of axe.h: none crashes, none succeeds. Built
 * with AddressSanitizer and UndefinedBehaviorSanitizer. */
#include "axe.h"
#include "check.h"

#include <stdint.h>
#include <stdlib.h>

/* A handle that never was one: null, of another type, freed, garbage. */
#define HANDLES 5
static void *bad[HANDLES];
static axe_package *package;
static axe_layout *layout;

/* A failing call: an invalid argument, a message, and no result. */
#define REFUSED(call)                                                          \
  do {                                                                         \
    axe_error *error = (axe_error *)(uintptr_t)1;                              \
    axe_status status_ = (call);                                               \
    CHECK(status_ == AXE_ERROR_INVALID_ARGUMENT);                              \
    CHECK(error != NULL && axe_error_message(error)[0] != 0);                  \
    CHECK(axe_error_status(error) == status_);                                 \
    axe_error_free(error);                                                     \
  } while (0)

static void looks(void *handle) {
  size_t size = 1;
  CHECK(axe_error_status(handle) == AXE_ERROR_INVALID_ARGUMENT);
  CHECK(!axe_error_message(handle) && !axe_error_diagnostic_count(handle));
  CHECK(!axe_text_data(handle) && !axe_text_length(handle));
  CHECK(!axe_package_bytes(handle, &size) && size == 0);
  CHECK(!axe_package_ptx(handle, NULL) && !axe_package_cubin(handle, NULL));
  CHECK(!axe_package_file(handle, "source.mlir", &size));
  CHECK(!axe_package_file_count(handle) && !axe_package_file_name(handle, 0));
  CHECK(!axe_package_manifest(handle));
  CHECK(!axe_package_input_count(handle) && !axe_package_output_count(handle));
  CHECK(!axe_package_warning_count(handle) && !axe_package_warning(handle, 0));
  CHECK(!axe_package_decision_count(handle));
  CHECK(!axe_run_output_count(handle) && !axe_run_finding_count(handle));
  CHECK(!axe_run_unwritten_count(handle, 0));
  CHECK(!axe_points_count(handle));
  size = 1;
  CHECK(!axe_indices_data(handle, &size) && size == 0);
}

static void records(void *handle) {
  axe_diagnostic diagnostic;
  axe_tensor_type type;
  axe_decision decision;
  axe_tensor tensor;
  axe_finding finding;
  const axe_term *terms;
  size_t count;
  CHECK(axe_error_diagnostic(handle, 0, &diagnostic));
  CHECK(axe_package_input(handle, 0, &type));
  CHECK(axe_package_output(handle, 0, &type));
  CHECK(axe_package_decision(handle, 0, &decision));
  CHECK(axe_run_output(handle, 0, &tensor));
  CHECK(axe_run_finding(handle, 0, &finding));
  CHECK(axe_points_terms(handle, 0, &terms, &count));
}

static void questions(void *handle) {
  const int64_t one[] = {1};
  axe_layout *made = NULL;
  axe_points *points = NULL;
  axe_indices *indices = NULL;
  axe_text *text = NULL;
  axe_run *run = NULL;
  bool equal;
  int64_t size;
  CHECK(!axe_layout_text(handle));
  REFUSED(axe_package_save(handle, "/dev/null/x", &error));
  REFUSED(axe_simulate(handle, NULL, 0, NULL, &run, &error));
  REFUSED(axe_layout_size(handle, &size, &error));
  REFUSED(axe_layout_equal(handle, layout, &equal, &error));
  REFUSED(axe_layout_equal(layout, handle, &equal, &error));
  REFUSED(axe_layout_canonicalize(handle, &made, &error));
  REFUSED(axe_layout_apply(handle, one, one, 1, &points, &error));
  REFUSED(axe_layout_invert(handle, NULL, 0, &indices, &error));
  REFUSED(axe_layout_group(handle, one, 1, &made, NULL, &error));
  REFUSED(axe_layout_tile(handle, one, layout, one, 1, &made, &error));
  REFUSED(axe_layout_tile(layout, one, handle, one, 1, &made, &error));
  REFUSED(axe_layout_tile_of(handle, one, layout, one, 1, &made, &error));
  REFUSED(axe_layout_tile_of(layout, one, handle, one, 1, &made, &error));
  REFUSED(axe_layout_slice(handle, one, one, one, 1, &made, &error));
  REFUSED(axe_layout_svg(handle, one, 1, NULL, &text, &error));
  CHECK(!made && !points && !indices && !text && !run);
}

static void frees(void *handle) {
  axe_error_free(handle);
  axe_text_free(handle);
  axe_run_free(handle);
  axe_points_free(handle);
  axe_indices_free(handle);
  if (handle != (void *)layout)
    axe_layout_free(handle);
  if (handle != (void *)package)
    axe_package_free(handle);
}

/* Places for results that are null. */
static void nowhere(void) {
  const int64_t shape[] = {4};
  axe_term term = {"m", 0};
  REFUSED(axe_compile(ADD, 0, NULL, NULL, &error));
  REFUSED(axe_package_open("x", NULL, &error));
  REFUSED(axe_package_from_bytes((const uint8_t *)"x", 1, NULL, &error));
  REFUSED(axe_simulate(package, NULL, 0, NULL, NULL, &error));
  REFUSED(axe_layout_parse("S[4 : 1]", 8, NULL, &error));
  REFUSED(axe_layout_size(layout, NULL, &error));
  REFUSED(axe_layout_equal(layout, layout, NULL, &error));
  REFUSED(axe_layout_canonicalize(layout, NULL, &error));
  REFUSED(axe_layout_apply(layout, shape, shape, 1, NULL, &error));
  REFUSED(axe_layout_invert(layout, &term, 1, NULL, &error));
  REFUSED(axe_layout_group(layout, shape, 1, NULL, NULL, &error));
  REFUSED(axe_layout_tile(layout, shape, layout, shape, 1, NULL, &error));
  REFUSED(axe_layout_tile_of(layout, shape, layout, shape, 1, NULL, &error));
  REFUSED(axe_layout_slice(layout, shape, shape, shape, 1, NULL, &error));
  REFUSED(axe_layout_svg(layout, shape, 1, NULL, NULL, &error));
  CHECK(axe_package_input(package, 0, NULL) == AXE_ERROR_INVALID_ARGUMENT);
  CHECK(axe_package_output(package, 0, NULL) == AXE_ERROR_INVALID_ARGUMENT);
  CHECK(axe_package_decision(package, 0, NULL) == AXE_ERROR_INVALID_ARGUMENT);
  /* A caller who wants no error gets a status. */
  CHECK(axe_compile(NULL, 9, NULL, NULL, NULL) == AXE_ERROR_INVALID_ARGUMENT);
}

/* Arrays and texts that are none. */
static void arguments(void) {
  axe_layout *made = NULL;
  axe_points *points = NULL;
  axe_indices *indices = NULL;
  axe_package *none = NULL;
  const int64_t shape[] = {4}, index[] = {4};
  REFUSED(axe_layout_parse(NULL, 4, &made, &error));
  REFUSED(axe_layout_parse("S[4 : 1]", SIZE_MAX, &made, &error));
  REFUSED(axe_layout_parse("\xff\xfe", 2, &made, &error));
  REFUSED(axe_layout_parse("", 0, &made, &error));
  REFUSED(axe_layout_parse("S[4 : 1@]", 9, &made, &error));
  REFUSED(axe_layout_apply(layout, NULL, index, 1, &points, &error));
  REFUSED(axe_layout_apply(layout, shape, NULL, 1, &points, &error));
  REFUSED(axe_layout_apply(layout, shape, index, (size_t)-1, &points, &error));
  REFUSED(axe_layout_apply(layout, shape, index, 1, &points, &error));
  REFUSED(axe_layout_apply(layout, (const int64_t *)((const char *)shape + 1),
                           index, 1, &points, &error));
  axe_term terms[] = {{NULL, 0}, {"", 0}, {"\xff", 0}};
  for (int i = 0; i < 3; i++)
    REFUSED(axe_layout_invert(layout, &terms[i], 1, &indices, &error));
  REFUSED(axe_layout_invert(layout, NULL, 1, &indices, &error));
  REFUSED(axe_layout_invert(layout, terms, SIZE_MAX, &indices, &error));
  REFUSED(axe_compile(NULL, 4, NULL, &none, &error));
  REFUSED(axe_compile(ADD, SIZE_MAX, NULL, &none, &error));
  REFUSED(axe_compile("\xff", 1, NULL, &none, &error));
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.struct_size = 3;
  REFUSED(axe_compile(ADD, sizeof ADD - 1, &options, &none, &error));
  options.struct_size = sizeof options;
  options.target = "\xff";
  REFUSED(axe_compile(ADD, sizeof ADD - 1, &options, &none, &error));
  REFUSED(axe_package_open(NULL, &none, &error));
  REFUSED(axe_package_open("\xff", &none, &error));
  REFUSED(axe_package_from_bytes(NULL, 1, &none, &error));
  REFUSED(axe_package_save(package, NULL, &error));
  CHECK(!axe_dtype_size(NULL) && !axe_dtype_size("") && !axe_dtype_size("f"));
  CHECK(!axe_dtype_size("\xff"));
  CHECK(!axe_package_file(package, NULL, NULL));
  CHECK(!axe_package_file(package, "\xff", NULL));
  CHECK(!made && !points && !indices && !none);
}

static void tensors(void) {
  static const float data[8 * 64];
  const uint64_t shape[] = {8, 64}, huge[] = {UINT64_MAX, UINT64_MAX};
  const axe_tensor good = {NULL, "f32", shape, 2, data, sizeof data};
  axe_tensor wrong[10];
  for (int i = 0; i < 10; i++)
    wrong[i] = good;
  wrong[0].dtype = NULL;
  wrong[1].dtype = "float";
  wrong[2].data = NULL;
  wrong[3].shape = NULL;
  wrong[4].rank = SIZE_MAX;
  wrong[5].shape = huge;
  wrong[6].size = 4;
  wrong[7].name = "no_such_input";
  wrong[8].name = "\xff";
  wrong[9].size = SIZE_MAX;
  axe_run *run = NULL;
  for (int i = 0; i < 10; i++)
    REFUSED(axe_simulate(package, &wrong[i], 1, NULL, &run, &error));
  REFUSED(axe_simulate(package, NULL, 1, NULL, &run, &error));
  REFUSED(axe_simulate(package, &good, 0, NULL, &run, &error));
  REFUSED(axe_simulate(package, &good, SIZE_MAX, NULL, &run, &error));
  const axe_tensor two[] = {good, good};
  REFUSED(axe_simulate(package, two, 2, NULL, &run, &error));
  axe_simulate_options options = AXE_SIMULATE_OPTIONS_INIT;
  options.max_seconds = -1;
  REFUSED(axe_simulate(package, &good, 1, &options, &run, &error));
  options.struct_size = 0;
  REFUSED(axe_simulate(package, &good, 1, &options, &run, &error));
  CHECK(!run);
}

static void indices(void) {
  axe_tensor_type type;
  axe_decision decision;
  const size_t far[] = {1000000, SIZE_MAX, (size_t)INT64_MAX};
  for (int i = 0; i < 3; i++) {
    CHECK(!axe_target_name(far[i]));
    CHECK(!axe_package_file_name(package, far[i]));
    CHECK(!axe_package_warning(package, far[i]));
    CHECK(axe_package_input(package, far[i], &type));
    CHECK(axe_package_output(package, far[i], &type));
    CHECK(axe_package_decision(package, far[i], &decision));
  }
}

/* Every prefix of a package, and every kind of text as a module. */
static void inputs(void) {
  size_t size = 0;
  const uint8_t *bytes = axe_package_bytes(package, &size);
  axe_package *none = NULL;
  for (size_t i = 0; i < size; i += 61) {
    uint8_t *part = malloc(i ? i : 1);
    memcpy(part, bytes, i);
    axe_status status = axe_package_from_bytes(part, i, &none, NULL);
    /* The end of a tar file is zeros that nobody needs. */
    CHECK(status != AXE_OK || i + 1024 >= size);
    axe_package_free(none);
    free(part);
  }
  const char *modules[] = {"", "}", "module {", "func.func @f(", "\"x\"() : ()",
                           "#axe.layout<>", "module { func.func @f() }",
                           "func.func @f(%x: tensor<4x!axe.token>) { return }",
                           /* MLIR's parser survives none of these. */
                           "module attributes {a.b = array<index: 1>} {}",
                           "func.func @f(%a: tensor<4x5xf32>) {\n"
                           "  linalg.transpose ins(%a : tensor<4x5xf32>)\n"
                           "    outs(%a : tensor<4x5xf32>) permutation = [x]"};
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    axe_error *error = NULL;
    CHECK(axe_compile(modules[i], strlen(modules[i]), NULL, &none, &error) ==
          AXE_ERROR_COMPILE);
    CHECK(!none && axe_error_message(error)[0]);
    axe_error_free(error);
  }
  /* Not ended by a NUL, and with one inside. */
  CHECK(axe_compile("module {}\0}", 11, NULL, &none, NULL));
}

static void recovery(void) {
  const unsigned wrong[] = {3, 99, UINT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    axe_recovery given;
    memcpy(&given, &wrong[i], sizeof given);
    CHECK(axe_set_recovery(given) == AXE_ERROR_INVALID_ARGUMENT);
  }
}

/* What takes nothing, and so refuses nothing. */
static void facts(void) {
  CHECK(axe_abi_version() && axe_version()[0] && axe_build()[0]);
  CHECK(axe_target_count() && axe_default_target()[0]);
}

int main(void) {
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.no_assembler = true;
  char *unended = malloc(sizeof ADD - 1);
  memcpy(unended, ADD, sizeof ADD - 1);
  CHECK(axe_compile(unended, sizeof ADD - 1, &options, &package, NULL) ==
        AXE_OK);
  free(unended);
  CHECK(axe_layout_parse("S[4 : 1]", 8, &layout, NULL) == AXE_OK);

  axe_layout *freed = NULL;
  CHECK(axe_layout_parse("S[4 : 1]", 8, &freed, NULL) == AXE_OK);
  axe_layout_free(freed);
  bad[1] = freed;
  bad[2] = (void *)(uintptr_t)12345;
  bad[3] = (void *)UINTPTR_MAX;
  bad[4] = &options;
  for (int i = 0; i < HANDLES; i++) {
    looks(bad[i]);
    records(bad[i]);
    questions(bad[i]);
    frees(bad[i]);
  }
  /* Of another type. */
  records(layout);
  CHECK(!axe_package_manifest((axe_package *)layout));
  CHECK(!axe_layout_text((axe_layout *)package));
  const int64_t zero[] = {0}, four[] = {4};
  axe_points *points = NULL;
  CHECK(axe_layout_apply(layout, four, zero, 1, &points, NULL) == AXE_OK);
  questions(points);
  CHECK(axe_points_terms(points, 1, &(const axe_term *){NULL}, &(size_t){0}));
  axe_points_free(points);
  frees(layout);
  frees(package);
  CHECK(axe_layout_text(layout) && axe_package_manifest(package));
  recovery();
  facts();
  nowhere();
  arguments();
  tensors();
  indices();
  inputs();
  axe_package_free(package);
  axe_package_free(package);
  axe_layout_free(layout);
  axe_layout_free(layout);
  if (failures == 0)
    printf("hostile calls: all refused\n");
  return failures != 0;
}
