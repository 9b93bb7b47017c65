/*===- fake_cuda.c - a libcuda.so.1 for machines without a GPU ----*- C -*-===*\
|*                                                                            *|
|* One device of compute capability 9.0 whose memory is the host's. Launches  *|
|* do nothing and are written to the file that FAKE_CUDA_LOG names, with      *|
|* stream, grid and parameters. Only what axe-runtime calls is here. PTX is   *|
|* "loaded" by reading the parameters of its entries.                         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
enum {
  OK = 0,
  INVALID_VALUE = 1,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  CAPTURE_UNSUPPORTED = 900
};
enum { MAX_PARAMS = 64 };

typedef struct {
  char name[256];
  int count;
  size_t bytes[MAX_PARAMS];
} Function;
typedef struct {
  char *text;
  Function functions[16];
  int count;
} Module;

/* The primary context and one that a test makes. */
static int primary, other;
static _Thread_local void *current;
static _Thread_local int relaxed;

static void note(const char *format, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  if (!path)
    return;
  FILE *file = fopen(path, "a");
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

/* Streams from 0x100 on are captured, with their handle as the capture's
 * number. */
static int captured(void *stream) {
  return (uintptr_t)stream >= 0x100 && (uintptr_t)stream < 0x1000;
}

CUresult cuInit(unsigned flags) { return OK; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, OK; }
CUresult cuDeviceGetCount(int *count) { return *count = 1, OK; }
CUresult cuDeviceGet(int *device, int ordinal) {
  return *device = ordinal, ordinal ? INVALID_VALUE : OK;
}
CUresult cuDeviceGetName(char *name, int length, int device) {
  return snprintf(name, length, "Fake GPU"), OK;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 75:
    *value = 9;
    break; /* compute capability, major */
  case 76:
    *value = 0;
    break; /* minor */
  case 16:
    *value = 132;
    break; /* multiprocessors */
  case 38:
    *value = 50 << 20;
    break; /* L2 */
  case 97:
    *value = 227 << 10;
    break; /* shared memory a block, opt in */
  default:
    *value = 0;
  }
  return OK;
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
  return *context = &primary, OK;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) { return OK; }
CUresult cuCtxSetCurrent(void *context) { return current = context, OK; }
CUresult cuCtxGetCurrent(void **context) { return *context = current, OK; }
CUresult cuCtxGetDevice(int *device) {
  return *device = 0, current ? OK : INVALID_CONTEXT;
}
CUresult cuCtxSynchronize(void) { return OK; }
CUresult cuCtxDestroy_v2(void *context) { return note("destroy\n"), OK; }
/* What a test makes current; not in CUDA. */
void *fakeOtherContext(void) { return &other; }
static _Thread_local void *below;
CUresult cuCtxPushCurrent_v2(void *context) {
  return below = current, current = context, OK;
}
CUresult cuCtxPopCurrent_v2(void **context) {
  return *context = current, current = below, OK;
}

CUresult cuStreamCreate(void **stream, unsigned flags) {
  return *stream = (void *)0x2000, OK;
}
CUresult cuStreamDestroy_v2(void *stream) { return OK; }
CUresult cuStreamSynchronize(void *stream) {
  return captured(stream) ? CAPTURE_UNSUPPORTED : OK;
}
CUresult cuStreamQuery(void *stream) { return OK; }
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return OK;
}
CUresult cuEventCreate(void **event, unsigned flags) {
  return *event = (void *)1, OK;
}
CUresult cuEventRecord(void *event, void *stream) { return OK; }
CUresult cuEventDestroy_v2(void *event) { return OK; }
CUresult cuStreamIsCapturing(void *stream, int *status) {
  return *status = captured(stream), OK;
}
CUresult cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *number,
                                   void **graph, const void **nodes,
                                   const void **edges, size_t *count) {
  *status = captured(stream);
  *number = (uintptr_t)stream;
  return OK;
}
CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = relaxed ? 2 : 0;
  relaxed = *mode == 2;
  return *mode = before, OK;
}

/* Allocation is what a capture forbids to threads that are not relaxed: here,
 * always. */
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
  if (!relaxed)
    return CAPTURE_UNSUPPORTED;
  void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  note("allocate %zu\n", bytes);
  return *at = (CUdeviceptr)(uintptr_t)memory, memory ? OK : 2;
}
CUresult cuMemFree_v2(CUdeviceptr at) {
  return free((void *)(uintptr_t)at), OK;
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count,
                         void *stream) {
  if (stream != (void *)0x2000)
    note("fill stream=%p bytes=%zu value=%u\n", stream, count, value);
  return memset((void *)(uintptr_t)at, value, count), OK;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t count,
                              void *stream) {
  return memcpy((void *)(uintptr_t)to, from, count), OK;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t count,
                              void *stream) {
  return memcpy(to, (void *)(uintptr_t)from, count), OK;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t count,
                              void *stream) {
  note("copy stream=%p bytes=%zu\n", stream, count);
  return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, count), OK;
}

static size_t param_bytes(const char *text, const char *end) {
  const char *array = memchr(text, '[', end - text);
  if (array)
    return strtoul(array + 1, NULL, 10);
  return strstr(text, "64 ") && strstr(text, "64 ") < end ? 8 : 4;
}

static void read_entry(Module *module, const char *at) {
  Function *function = &module->functions[module->count++];
  sscanf(at, ".entry %255[^( \n]", function->name);
  const char *end = strchr(at, ')');
  for (const char *param = strstr(at, ".param"); end && param && param < end;
       param = strstr(param + 1, ".param")) {
    const char *stop = param + strcspn(param, ",)");
    function->bytes[function->count++] = param_bytes(param, stop);
  }
}

CUresult cuModuleLoadDataEx(void **out, const void *image, unsigned count,
                            void *options, void **values) {
  if (!strstr(image, ".version"))
    return INVALID_IMAGE;
  Module *module = calloc(1, sizeof *module);
  module->text = strdup(image);
  for (const char *at = strstr(module->text, ".entry ");
       at && module->count < 16; at = strstr(at + 1, ".entry "))
    read_entry(module, at);
  return *out = module, OK;
}
CUresult cuModuleUnload(void *handle) {
  Module *module = handle;
  free(module->text);
  free(module);
  return OK;
}
CUresult cuModuleGetFunction(void **out, void *handle, const char *name) {
  Module *module = handle;
  for (int i = 0; i < module->count; ++i)
    if (!strcmp(module->functions[i].name, name))
      return *out = &module->functions[i], OK;
  return NOT_FOUND;
}
CUresult cuFuncGetParamInfo(void *handle, size_t index, size_t *offset,
                            size_t *bytes) {
  Function *function = handle;
  if (index >= (size_t)function->count)
    return INVALID_VALUE;
  return *offset = 0, *bytes = function->bytes[index], OK;
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
  return *value = attribute == 0 ? 1024 : 0,
         OK; /* threads a block; no static shared memory */
}
CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
  return OK;
}
CUresult cuTensorMapEncodeTiled(void *map, int type, unsigned rank,
                                void *address, const uint64_t *dims,
                                const uint64_t *strides, const unsigned *box,
                                const unsigned *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  memset(map, 0, 128);
  memcpy(map, &address, sizeof address);
  return OK;
}

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  void *attributes;
  unsigned count;
} Config;

CUresult cuLaunchKernelEx(const Config *config, void *handle, void **arguments,
                          void **extra) {
  Function *function = handle;
  if (!current)
    return INVALID_CONTEXT;
  if (!getenv("FAKE_CUDA_LOG"))
    return OK;
  note("launch %s stream=%p context=%s grid=%u", function->name, config->stream,
       current == &other ? "other" : "primary", config->grid[0]);
  for (int i = 0; i < function->count; ++i) {
    uint64_t value = 0;
    memcpy(&value, arguments[i],
           function->bytes[i] < 8 ? function->bytes[i] : 8);
    note(" %llx", (unsigned long long)value);
  }
  note("\n");
  return OK;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  return *name = "FAKE_ERROR", OK;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  return *text = "of the fake driver", OK;
}
