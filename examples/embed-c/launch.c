/* A module to a running kernel from C: libaxe compiles it, libaxert launches it
 * on this program's memory and stream, and then in a CUDA graph of this
 * program's.
 *
 *   axe-launch sm_90a
 */
#include "driver.h"
#include <axe.h>
#include <axert.h>

#include <stdio.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float) };

/* y = x + x, of any number of elements. */
static const char TWICE[] =
    "func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
    "  %zero = arith.constant 0 : index\n"
    "  %n = tensor.dim %x, %zero : tensor<?xf32>\n"
    "  %e = tensor.empty(%n) : tensor<?xf32>\n"
    "  %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>)\n"
    "                  outs(%e : tensor<?xf32>) -> tensor<?xf32>\n"
    "  return %y : tensor<?xf32>\n"
    "}\n";

/* The package of the module; NULL, with a message, where it is refused. */
static axe_package *compiled(const char *chip) {
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.target = chip;
  options.no_assembler = true; /* the driver makes machine code of the PTX */
  axe_package *package = NULL;
  axe_error *error = NULL;
  if (axe_compile(TWICE, strlen(TWICE), &options, &package, &error) != AXE_OK)
    fprintf(stderr, "%s\n", axe_error_message(error));
  axe_error_free(error);
  return package;
}

/* Whether a call of axert's succeeded; says why where it did not. */
static int done(AxertError *error) {
  if (error)
    fprintf(stderr, "%s\n", axertErrorMessage(error));
  int failed = error != NULL;
  axertErrorDestroy(error);
  return !failed;
}

/* Whether y is 2 x in the memory of the GPU, which is then filled with 0xff. */
static int right(const Driver *cuda, CUdeviceptr y, const float *x,
                 CUstream stream) {
  static float got[N];
  int all = !cuda->streamSynchronize(stream) && !cuda->copyOut(got, y, BYTES) &&
            !cuda->fill(y, 0xff, BYTES);
  for (int i = 0; i < N; i++)
    all = all && got[i] == 2 * x[i];
  return all;
}

/* On the stream, twice in a graph, and by tensors as DLPack has them. */
static int launches(const Driver *cuda, const AxertExecutable *executable,
                    CUstream stream) {
  static float values[N];
  for (int i = 0; i < N; i++)
    values[i] = 0.25f * (float)i - 100;
  CUdeviceptr x = 0, y = 0;
  if (cuda->allocate(&x, BYTES) || cuda->allocate(&y, BYTES) ||
      cuda->copyIn(x, values, BYTES))
    return 0;
  void *inputs[] = {(void *)(uintptr_t)x}, *outputs[] = {(void *)(uintptr_t)y};
  int64_t n = N;
  AxertShape shape = {&n, 1};
  AxertSpecialization *call = NULL;
  if (!done(axertSpecialize(executable, &shape, 1, NULL, 0, &call)) ||
      !done(axertLaunch(call, inputs, 1, outputs, 1, stream)) ||
      !right(cuda, y, values, stream))
    return 0;

  CUgraph graph = NULL;
  CUgraphExec replay = NULL;
  if (cuda->beginCapture(stream, 0) ||
      !done(axertLaunch(call, inputs, 1, outputs, 1, stream)) ||
      cuda->endCapture(stream, &graph) || cuda->instantiate(&replay, graph, 0))
    return 0;
  for (int i = 0; i < 2; i++)
    if (cuda->graphLaunch(replay, stream) || !right(cuda, y, values, stream))
      return 0;

  AxertTensor in = {inputs[0], 2, 0, 1, 2, 32, 1, &n, NULL, 0};
  AxertTensor out = in;
  out.data = outputs[0];
  int called = done(axertCall(executable, &in, 1, &out, 1, NULL, 0, stream)) &&
               right(cuda, y, values, stream);
  axertSpecializationDestroy(call);
  return called;
}

int main(int argc, char **argv) {
  axe_package *package = compiled(argc > 1 ? argv[1] : "sm_90a");
  size_t size = 0;
  const uint8_t *bytes = axe_package_bytes(package, &size);
  if (!bytes)
    return 1;
  Driver cuda;
  CUstream stream = NULL;
  AxertExecutable *executable = NULL;
  /* Without a GPU, loading says so. */
  int ready = driverOpen(&cuda) && !cuda.streamCreate(&stream, 1);
  int loaded = done(axertLoad(bytes, size, 0, &executable));
  axe_package_free(package);
  if (!ready || !loaded)
    return 3;
  int passed = launches(&cuda, executable, stream);
  axertExecutableDestroy(executable);
  printf(passed ? "on a stream, in a graph, by tensors: all right\n"
                : "the kernel computes something else\n");
  return !passed;
}
