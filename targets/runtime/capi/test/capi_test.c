/*===- capi_test.c - axert.h from C, with and without a driver ------------===*/

#include "axert.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);          \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* The error has this code and says this; destroys it. */
static void expect(AxertError *error, AxertCode code, const char *says,
                   int line) {
  const char *message = axertErrorMessage(error);
  if (!error || axertErrorCode(error) != code || !message ||
      !strstr(message, says)) {
    fprintf(stderr, "line %d: expected error %d with '%s', got %d: %s\n", line,
            code, says, error ? axertErrorCode(error) : 0,
            message ? message : "none");
    ++failures;
  }
  axertErrorDestroy(error);
}
#define EXPECT(error, code, says) expect(error, code, says, __LINE__)

static void succeed(AxertError *error, int line) {
  if (error) {
    fprintf(stderr, "line %d: %s\n", line, axertErrorMessage(error));
    ++failures;
  }
  axertErrorDestroy(error);
}
#define SUCCEED(error) succeed(error, __LINE__)

static void hostile(void) {
  AxertExecutable *executable = NULL;
  AxertSpecialization *specialization = NULL;
  AxertOutput output;
  CHECK(axertVersion()[0] != 0);
  CHECK(axertErrorCode(NULL) == 0 && !axertErrorMessage(NULL));
  axertErrorDestroy(NULL);
  axertExecutableDestroy(NULL);
  axertSpecializationDestroy(NULL);
  CHECK(axertNumInputs(NULL) == 0 && axertNumOutputs(NULL) == 0);
  EXPECT(axertLoad(NULL, 0, 0, NULL), AXERT_INVALID_ARGUMENT, "no place");
  EXPECT(axertLoad(NULL, 4, 0, &executable), AXERT_INVALID_ARGUMENT, "NULL");
  EXPECT(axertLoad("ELF", 3, 0, &executable), AXERT_INVALID_PACKAGE,
         "not a kernel package");
  EXPECT(axertLoad(NULL, 0, 0, &executable), AXERT_INVALID_PACKAGE,
         "not a kernel package");
  EXPECT(axertLoadFile(NULL, 0, &executable), AXERT_INVALID_ARGUMENT, "NULL");
  EXPECT(axertLoadFile("/no/such/package", 0, &executable),
         AXERT_INVALID_PACKAGE, "/no/such/package");
  EXPECT(axertSpecialize(NULL, NULL, 0, NULL, 0, &specialization),
         AXERT_INVALID_ARGUMENT, "executable");
  EXPECT(axertSpecialize(NULL, NULL, 0, NULL, 0, NULL), AXERT_INVALID_ARGUMENT,
         "no place");
  EXPECT(axertOutput(NULL, 0, &output), AXERT_INVALID_ARGUMENT,
         "specialization");
  EXPECT(axertLaunch(NULL, NULL, 0, NULL, 0, NULL), AXERT_INVALID_ARGUMENT,
         "specialization");
  EXPECT(axertCall(NULL, NULL, 0, NULL, 0, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "executable");
  CHECK(!executable && !specialization);
}

/* Without a driver, every package is an error value. */
static void no_driver(const char *package) {
  AxertExecutable *executable = NULL;
  EXPECT(axertLoadFile(package, 0, &executable), AXERT_NO_DEVICE,
         "no NVIDIA driver");
  EXPECT(axertLoadFile(package, AXERT_CURRENT_CONTEXT, &executable),
         AXERT_NO_DEVICE, "no NVIDIA driver");
  CHECK(!executable);
}

static AxertSpecialization *specialized(const AxertExecutable *executable,
                                        int64_t n) {
  AxertShape shapes[2] = {{&n, 1}, {&n, 1}};
  AxertSpecialization *specialization = NULL;
  SUCCEED(axertSpecialize(executable, shapes, 2, NULL, 0, &specialization));
  return specialization;
}

static void shapes(const AxertExecutable *executable) {
  int64_t extents[2] = {256, 128}, negative = -1;
  AxertShape different[2] = {{extents, 1}, {extents + 1, 1}},
             below[2] = {{&negative, 1}, {&negative, 1}};
  AxertShape null_shape[2] = {{NULL, 1}, {NULL, 1}},
             scalar[2] = {{NULL, 0}, {NULL, 0}};
  AxertDim dim = {"m", 3}, unnamed = {NULL, 3};
  AxertSpecialization *made = NULL;
  CHECK(axertNumInputs(executable) == 2 && axertNumOutputs(executable) == 1);
  EXPECT(axertSpecialize(executable, different, 2, NULL, 0, &made),
         AXERT_INVALID_PACKAGE, "`n` is 256");
  EXPECT(axertSpecialize(executable, different, 1, NULL, 0, &made),
         AXERT_INVALID_ARGUMENT, "expected 2 inputs, got 1");
  EXPECT(axertSpecialize(executable, below, 2, NULL, 0, &made),
         AXERT_INVALID_ARGUMENT, "an extent is -1");
  EXPECT(axertSpecialize(executable, null_shape, 2, NULL, 0, &made),
         AXERT_INVALID_ARGUMENT, "extents");
  EXPECT(axertSpecialize(executable, scalar, 2, NULL, 0, &made),
         AXERT_INVALID_PACKAGE, "expected shape");
  EXPECT(axertSpecialize(executable, different, 2, &dim, 1, &made),
         AXERT_INVALID_PACKAGE, "no dimension `m`");
  EXPECT(axertSpecialize(executable, different, 2, &unnamed, 1, &made),
         AXERT_INVALID_ARGUMENT, "the name of a dimension");
  CHECK(!made);
}

static void launches(const AxertExecutable *executable) {
  AxertSpecialization *s = specialized(executable, 256);
  AxertOutput output;
  EXPECT(axertOutput(s, 1, &output), AXERT_INVALID_ARGUMENT, "no output 1");
  EXPECT(axertOutput(s, 0, NULL), AXERT_INVALID_ARGUMENT, "NULL");
  SUCCEED(axertOutput(s, 0, &output));
  CHECK(!strcmp(output.name, "c") && !strcmp(output.type, "f32") &&
        output.bytes == 1024);
  CHECK(output.shape.rank == 1 && output.shape.extents[0] == 256);
  void *a = (void *)0x10000, *b = (void *)0x20000, *c = (void *)0x30000;
  void *in[2] = {a, b}, *odd[2] = {a, (char *)b + 2}, *null_in[2] = {a, NULL},
       *overlapping = (char *)b + 1020;
  EXPECT(axertLaunch(s, in, 1, &c, 1, NULL), AXERT_INVALID_ARGUMENT,
         "expected the addresses of 2 inputs, got 1");
  EXPECT(axertLaunch(s, in, 2, NULL, 0, NULL), AXERT_INVALID_ARGUMENT,
         "1 outputs, got 0");
  EXPECT(axertLaunch(s, in, 2, NULL, 1, NULL), AXERT_INVALID_ARGUMENT,
         "outputs");
  EXPECT(axertLaunch(s, null_in, 2, &c, 1, NULL), AXERT_INVALID_ARGUMENT,
         "`b`: the address is null");
  EXPECT(axertLaunch(s, in, 2, &overlapping, 1, NULL), AXERT_INVALID_ARGUMENT,
         "`c`: it overlaps `b`");
  EXPECT(axertLaunch(s, odd, 2, &c, 1, NULL), AXERT_INVALID_PACKAGE,
         "no multiple of 4");
  SUCCEED(axertLaunch(s, in, 2, &c, 1, NULL));
  /* Other memory, another stream, and a stream that is captured. */
  SUCCEED(axertLaunch(s, (void *[]){b, a}, 2, &c, 1, NULL));
  SUCCEED(axertLaunch(s, in, 2, &c, 1, (void *)0x40));
  SUCCEED(axertLaunch(s, in, 2, &c, 1, (void *)0x100));
  SUCCEED(axertLaunch(s, in, 2, &c, 1, (void *)0x100));
  axertSpecializationDestroy(s);
}

static void dlpack(const AxertExecutable *executable) {
  int64_t n = 64, one = 1, two = 2;
  AxertTensor in[2] = {{(void *)0x10000, 2, 0, 1, 2, 32, 1, &n, NULL, 0},
                       {(void *)0x20000, 2, 0, 1, 2, 32, 1, &n, &one, 0}};
  AxertTensor out = {(void *)0x30000, 13, 0, 1, 2, 32, 1, &n, NULL, 16};
  SUCCEED(axertCall(executable, in, 2, &out, 1, NULL, 0, (void *)0x40));
  AxertTensor wrong[2] = {in[0], in[1]};
  wrong[1].device_type = 1;
  EXPECT(axertCall(executable, wrong, 2, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "`b`: expected memory of GPU 0");
  wrong[1] = in[1];
  wrong[1].type_bits = 16;
  EXPECT(axertCall(executable, wrong, 2, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "`b`: expected f32");
  wrong[1] = in[1];
  wrong[1].strides = &two;
  EXPECT(axertCall(executable, wrong, 2, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "strides [2]");
  wrong[1] = in[1];
  wrong[1].ndim = -1;
  EXPECT(axertCall(executable, wrong, 2, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "rank of -1");
  EXPECT(axertCall(executable, in, 1, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "expected 2 inputs");
  EXPECT(axertCall(executable, in, 2, NULL, 0, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "expected 1 outputs");
  out.shape = &one;
  EXPECT(axertCall(executable, in, 2, &out, 1, NULL, 0, NULL),
         AXERT_INVALID_ARGUMENT, "`c`: expected shape [64]");
}

/* In the caller's own context, which stays current and is never destroyed. */
static void contexts(const char *package) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *(*fake_other)(void) =
      (void *(*)(void))dlsym(driver, "fakeOtherContext");
  int (*set_current)(void *) =
      (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
  int (*get_current)(void **) =
      (int (*)(void **))dlsym(driver, "cuCtxGetCurrent");
  AxertExecutable *executable = NULL;
  void *current = NULL, *in[2] = {(void *)0x10000, (void *)0x20000},
       *c = (void *)0x30000;
  set_current(NULL);
  EXPECT(axertLoadFile(package, AXERT_CURRENT_CONTEXT, &executable),
         AXERT_NO_DEVICE, "no CUDA context is current");
  set_current(fake_other());
  SUCCEED(axertLoadFile(package, AXERT_CURRENT_CONTEXT, &executable));
  set_current(NULL);
  AxertSpecialization *s = specialized(executable, 512);
  SUCCEED(axertLaunch(s, in, 2, &c, 1, (void *)0x41));
  CHECK(get_current(&current) == 0 && current == NULL);
  axertExecutableDestroy(executable);
  axertSpecializationDestroy(s);
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  hostile();
  if (!strcmp(argv[2], "no-driver")) {
    no_driver(argv[1]);
    return failures != 0;
  }
  AxertExecutable *executable = NULL;
  EXPECT(axertLoadFile(argv[1], 7, &executable), AXERT_NO_DEVICE, "no GPU 7");
  EXPECT(axertLoadFile(argv[1], -2, &executable), AXERT_INVALID_ARGUMENT,
         "no device -2");
  SUCCEED(axertLoadFile(argv[1], 0, &executable));
  shapes(executable);
  launches(executable);
  dlpack(executable);
  axertExecutableDestroy(executable);
  contexts(argv[1]);
  return failures != 0;
}
