/* libaxe as its users call it: every function of axe.h, with what comes of it
 * compared with numbers that are known. */
#include "axe.h"
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static bool contains(const char *text, const char *part) {
  return text && strstr(text, part);
}

static bool equals(const char *text, const char *other) {
  return text && strcmp(text, other) == 0;
}

/* Prints why a call failed that should not have. */
#define DONE(call)                                                             \
  do {                                                                         \
    axe_status done_ = (call);                                                 \
    if (done_ != AXE_OK) {                                                     \
      fprintf(stderr, "%s:%d: status %d: %s\n", __FILE__, __LINE__, done_,     \
              error ? axe_error_message(error) : "(no error)");                \
      failures++;                                                              \
    }                                                                          \
    axe_error_free(error);                                                     \
    error = NULL;                                                              \
  } while (0)

static void library(void) {
  CHECK(axe_abi_version() == AXE_ABI_VERSION);
  CHECK(contains(axe_build(), axe_version()));
  CHECK(contains(axe_build(), "LLVM 22.1"));
  bool hopper = false, cpu = false;
  for (size_t i = 0; i < axe_target_count(); i++) {
    hopper |= equals(axe_target_name(i), "sm_90a");
    cpu |= equals(axe_target_name(i), "cpu");
  }
  CHECK(hopper && cpu);
  CHECK(equals(axe_default_target(), "sm_90a"));
}

static axe_package *compile(const char *target) {
  axe_package *package = NULL;
  axe_error *error = NULL;
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.target = target;
  options.file_name = "add.mlir";
  options.no_assembler = true;
  DONE(axe_compile(ADD, sizeof ADD - 1, &options, &package, &error));
  return package;
}

static void signature(const axe_package *package) {
  axe_tensor_type type;
  CHECK(axe_package_input_count(package) == 1);
  CHECK(axe_package_input(package, 0, &type) == AXE_OK);
  CHECK(type.rank == 2 && type.shape[0] == 8 && type.shape[1] == 64);
  CHECK(equals(type.dtype, "f32"));
  CHECK(axe_dtype_size(type.dtype) == 4 && axe_dtype_size("bf16") == 2);
  CHECK(axe_package_output_count(package) == 1);
  CHECK(axe_package_output(package, 0, &type) == AXE_OK);
  CHECK(type.rank == 2 && type.shape[0] == 8 && type.shape[1] == 64);
}

static void decisions(const axe_package *package) {
  size_t chosen = 0, planned = 0;
  for (size_t i = 0; i < axe_package_decision_count(package); i++) {
    axe_decision decision;
    CHECK(axe_package_decision(package, i, &decision) == AXE_OK);
    bool dispatch = equals(decision.category, "axe-dispatch");
    if (dispatch && decision.kind == AXE_DECISION_CHOSEN) {
      chosen++;
      planned += decision.plan[0] != 0;
      CHECK(contains(decision.message, decision.name));
      CHECK(contains(decision.location, "add.mlir:"));
    }
  }
  CHECK(chosen >= 3 && planned >= 3);
}

/* The parts of a package, and the package as bytes and back. */
static void package(void) {
  axe_error *error = NULL;
  axe_package *made = compile("sm_90a"), *read = NULL;
  signature(made);
  decisions(made);
  size_t size = 0, other = 0;
  const char *ptx = axe_package_ptx(made, &size);
  CHECK(ptx && size > 100 && strncmp(ptx, "//", 2) == 0);
  CHECK(axe_package_cubin(made, NULL) == NULL);
  CHECK(contains(axe_package_manifest(made), "\"sm_90a\""));
  CHECK(axe_package_file_count(made) == 2);
  CHECK(equals(axe_package_file_name(made, 0), "kernels.ptx"));
  const uint8_t *source = axe_package_file(made, "source.mlir", &size);
  CHECK(source && size == sizeof ADD - 1 && memcmp(source, ADD, size) == 0);

  const uint8_t *bytes = axe_package_bytes(made, &size);
  DONE(axe_package_from_bytes(bytes, size, &read, &error));
  CHECK(axe_package_bytes(read, &other) && size == other);
  CHECK(memcmp(axe_package_bytes(read, NULL), bytes, size) == 0);
  CHECK(axe_package_decision_count(read) == 0);
  axe_package_free(read);

  char path[] = "/tmp/axe-use-XXXXXX";
  int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  DONE(axe_package_save(made, path, &error));
  DONE(axe_package_open(path, &read, &error));
  unlink(path);
  CHECK(axe_package_bytes(read, &other) && size == other);
  axe_package_free(read);
  axe_package_free(made);

  axe_package *host = compile("cpu");
  CHECK(axe_package_ptx(host, &size) == NULL && size == 0);
  CHECK(axe_package_warning_count(host) == 0);
  CHECK(axe_package_warning(host, 0) == NULL);
  axe_package_free(host);
}

static void simulate(void) {
  axe_error *error = NULL;
  axe_package *made = compile("sm_80");
  float x[8 * 64];
  for (int i = 0; i < 8 * 64; i++)
    x[i] = (float)i;
  const uint64_t shape[] = {8, 64};
  axe_tensor input = {NULL, "f32", shape, 2, x, sizeof x};
  axe_run *run = NULL;
  axe_simulate_options options = AXE_SIMULATE_OPTIONS_INIT;
  options.max_seconds = 60;
  DONE(axe_simulate(made, &input, 1, &options, &run, &error));
  CHECK(axe_run_finding_count(run) == 0);
  CHECK(axe_run_output_count(run) == 1);
  CHECK(axe_run_unwritten_count(run, 0) == 0);
  axe_tensor output;
  CHECK(axe_run_output(run, 0, &output) == AXE_OK);
  CHECK(output.size == sizeof x && output.rank == 2 && output.shape[1] == 64);
  const float *y = output.data;
  for (int i = 0; i < 8 * 64; i++)
    CHECK(y[i] == 2 * x[i]);
  axe_run_free(run);
  axe_package_free(made);
}

/* Wrong modules: where, and what. */
static void diagnostics(void) {
  const char *text = "func.func @f() {\n  %x = arith.foo\n  return\n}\n";
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.file_name = "wrong.mlir";
  axe_package *none = NULL;
  axe_error *error = NULL;
  axe_diagnostic diagnostic;
  CHECK(axe_compile(text, strlen(text), &options, &none, &error) ==
        AXE_ERROR_COMPILE);
  CHECK(none == NULL && axe_error_status(error) == AXE_ERROR_COMPILE);
  CHECK(axe_error_diagnostic_count(error) >= 1);
  CHECK(axe_error_diagnostic(error, 0, &diagnostic) == AXE_OK);
  CHECK(diagnostic.severity == AXE_SEVERITY_ERROR);
  CHECK(equals(diagnostic.file, "wrong.mlir") && diagnostic.line == 2);
  CHECK(contains(diagnostic.message, "arith.foo"));
  CHECK(contains(axe_error_message(error), "wrong.mlir:2:"));
  axe_error_free(error);

  options.target = "sm_1";
  CHECK(axe_compile(ADD, sizeof ADD - 1, &options, &none, &error) ==
        AXE_ERROR_UNKNOWN_TARGET);
  CHECK(contains(axe_error_message(error), "sm_90a"));
  axe_error_free(error);
  options.target = NULL;
  options.function = "thrice";
  CHECK(axe_compile(ADD, sizeof ADD - 1, &options, &none, &error) ==
        AXE_ERROR_COMPILE);
  CHECK(contains(axe_error_message(error), "twice"));
  axe_error_free(error);
  CHECK(axe_package_from_bytes((const uint8_t *)"ELF", 3, &none, &error) ==
        AXE_ERROR_INVALID_PACKAGE);
  axe_error_free(error);
  CHECK(axe_package_open("/no/such/file", &none, &error) == AXE_ERROR_SYSTEM);
  axe_error_free(error);
}

static axe_layout *layout(const char *text) {
  axe_layout *made = NULL;
  axe_error *error = NULL;
  DONE(axe_layout_parse(text, strlen(text), &made, &error));
  return made;
}

static bool same(const axe_layout *a, const axe_layout *b) {
  bool equal = false;
  axe_error *error = NULL;
  DONE(axe_layout_equal(a, b, &equal, &error));
  return equal;
}

/* The accumulator of a 16x8 mma: element (9, 3) is lane 5, register 3. */
static void points(void) {
  axe_layout *c = layout("S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]");
  axe_error *error = NULL;
  const int64_t shape[] = {16, 8}, index[] = {9, 3};
  axe_points *points = NULL;
  DONE(axe_layout_apply(c, shape, index, 2, &points, &error));
  CHECK(axe_points_count(points) == 1);
  const axe_term *terms = NULL;
  size_t count = 0;
  CHECK(axe_points_terms(points, 0, &terms, &count) == AXE_OK && count == 2);
  for (size_t i = 0; i < count; i++)
    CHECK(terms[i].value == (equals(terms[i].axis, "lane") ? 5 : 3));
  axe_indices *indices = NULL;
  DONE(axe_layout_invert(c, terms, count, &indices, &error));
  const int64_t *data = axe_indices_data(indices, &count);
  CHECK(count == 1 && data[0] == 9 * 8 + 3);
  axe_indices_free(indices);
  axe_points_free(points);
  int64_t size = 0;
  DONE(axe_layout_size(c, &size, &error));
  CHECK(size == 128);
  axe_layout_free(c);
}

static void layouts(void) {
  axe_error *error = NULL;
  axe_layout *rows = layout("#axe.layout<S[(4, 2, 8) : (16, 8, 1)]>"), *one;
  DONE(axe_layout_canonicalize(rows, &one, &error));
  CHECK(equals(axe_layout_text(one), "S[64 : 1]"));
  axe_layout *grouped = NULL;
  const int64_t shape[] = {16, 4};
  size_t separators[3];
  DONE(axe_layout_group(one, shape, 2, &grouped, separators, &error));
  CHECK(equals(axe_layout_text(grouped), "S[(16, 4) : (4, 1)]"));
  CHECK(separators[0] == 0 && separators[1] == 1 && separators[2] == 2);
  CHECK(same(grouped, rows));

  axe_layout *warps = layout("S[(2, 2) : (2@warp, 1@warp)]");
  axe_layout *atom = layout("S[(8, 4) : (4@lane, 1@lane)]");
  axe_layout *tiled = NULL, *outer = NULL, *slice = NULL;
  const int64_t two[] = {2, 2}, eight[] = {8, 4}, whole[] = {16, 8};
  DONE(axe_layout_tile(warps, two, atom, eight, 2, &tiled, &error));
  DONE(axe_layout_tile_of(tiled, whole, atom, eight, 2, &outer, &error));
  CHECK(same(outer, warps) && !same(tiled, atom));
  const int64_t begin[] = {8, 0}, end[] = {16, 4};
  DONE(axe_layout_slice(tiled, whole, begin, end, 2, &slice, &error));
  CHECK(contains(axe_layout_text(slice), "+ 2@warp"));
  axe_layout_free(outer);
  CHECK(axe_layout_tile_of(tiled, whole, warps, two, 2, &outer, &error) ==
        AXE_ERROR_NO_ANSWER);
  CHECK(outer == NULL);
  axe_error_free(error);
  error = NULL;
  axe_text *svg = NULL;
  DONE(axe_layout_svg(tiled, whole, 2, "four warps", &svg, &error));
  CHECK(contains(axe_text_data(svg), "four warps"));
  CHECK(strlen(axe_text_data(svg)) == axe_text_length(svg));
  axe_text_free(svg);
  axe_layout *all[] = {rows, one, grouped, warps, atom, tiled, slice};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    axe_layout_free(all[i]);
}

int main(void) {
  library();
  package();
  simulate();
  diagnostics();
  points();
  layouts();
  if (failures == 0)
    printf("libaxe: all checks passed\n");
  return failures != 0;
}
