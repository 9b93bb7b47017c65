/* A module to PTX from C, with libaxe: says what was decided, runs the kernels
 * in the simulator on zeros, and writes the PTX.
 *
 *   axe-embed-c model.mlir sm_90a out.ptx
 */
#include <axe.h>

#include <stdio.h>
#include <stdlib.h>

/* The text of a file; NULL where it cannot be read. */
static char *contents(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t size = 0, room = 0;
  while (file && !feof(file) && !ferror(file)) {
    if (size == room)
      text = realloc(text, room = 2 * room + 4096);
    if (!text)
      break;
    size += fread(text + size, 1, room - size, file);
  }
  if (file)
    fclose(file);
  *length = size;
  return text;
}

static int fail(axe_error *error) {
  fprintf(stderr, "%s\n", axe_error_message(error));
  axe_error_free(error);
  return 1;
}

/* What was chosen for each operator, and what was not, and why. */
static void explain(const axe_package *package) {
  for (size_t i = 0; i < axe_package_decision_count(package); i++) {
    axe_decision decision;
    if (axe_package_decision(package, i, &decision) == AXE_OK)
      printf("%s: %s%s\n", decision.location,
             decision.kind == AXE_DECISION_DECLINED ? "not " : "",
             decision.message);
  }
}

/* An input of zeros; extents that are known at run time only are 1. */
static axe_tensor zeros(const axe_tensor_type *type) {
  uint64_t *shape = calloc(type->rank + 1, sizeof *shape);
  size_t bytes = axe_dtype_size(type->dtype);
  for (size_t d = 0; shape && d < type->rank; d++)
    bytes *= shape[d] = type->shape[d] < 0 ? 1 : (uint64_t)type->shape[d];
  void *data = calloc(bytes ? bytes : 1, 1);
  return (axe_tensor){type->name, type->dtype, shape, type->rank, data, bytes};
}

/* Runs the kernels on zeros and says what the simulator found. */
static axe_status simulate(const axe_package *package, axe_error **error) {
  size_t count = axe_package_input_count(package);
  axe_tensor *inputs = calloc(count + 1, sizeof *inputs);
  for (size_t i = 0; inputs && i < count; i++) {
    axe_tensor_type type;
    if (axe_package_input(package, i, &type) == AXE_OK)
      inputs[i] = zeros(&type);
  }
  axe_run *run = NULL;
  axe_status status = axe_simulate(package, inputs, count, NULL, &run, error);
  if (status == AXE_OK)
    printf("%zu findings in the simulator\n", axe_run_finding_count(run));
  axe_run_free(run);
  for (size_t i = 0; inputs && i < count; i++) {
    free((void *)inputs[i].shape);
    free((void *)inputs[i].data);
  }
  free(inputs);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: axe-embed-c MODULE CHIP PTX\n");
    return 2;
  }
  size_t length = 0, size = 0;
  char *text = contents(argv[1], &length);
  if (!text) {
    fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 1;
  }
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.target = argv[2];
  options.file_name = argv[1];
  options.no_assembler = true;
  axe_package *package = NULL;
  axe_error *error = NULL;
  axe_status status = axe_compile(text, length, &options, &package, &error);
  free(text);
  if (status != AXE_OK)
    return fail(error);
  explain(package);
  if (simulate(package, &error) != AXE_OK)
    return fail(error);

  const char *ptx = axe_package_ptx(package, &size);
  FILE *out = fopen(argv[3], "wb");
  int written = out && fwrite(ptx, 1, size, out) == size;
  if (out)
    written &= fclose(out) == 0;
  axe_package_free(package);
  if (!written)
    fprintf(stderr, "%s: cannot be written\n", argv[3]);
  return !written;
}
