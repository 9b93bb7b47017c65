/* The functions of CUDA's driver that launch.c calls. With the CUDA toolkit
 * this is <cuda.h>, and -lcuda. */
#ifndef DRIVER_H
#define DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned long long CUdeviceptr;
typedef void *CUstream, *CUgraph, *CUgraphExec;

typedef struct {
  int (*init)(unsigned);
  int (*primaryContext)(void **, int);
  int (*setCurrent)(void *);
  int (*allocate)(CUdeviceptr *, size_t);
  int (*copyIn)(CUdeviceptr, const void *, size_t);
  int (*copyOut)(void *, CUdeviceptr, size_t);
  int (*fill)(CUdeviceptr, unsigned char, size_t);
  int (*streamCreate)(CUstream *, unsigned);
  int (*streamSynchronize)(CUstream);
  int (*beginCapture)(CUstream, int);
  int (*endCapture)(CUstream, CUgraph *);
  int (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
  int (*graphLaunch)(CUgraphExec, CUstream);
} Driver;

/* Opens the driver and makes GPU 0's primary context current; 0 where there is
 * none. */
static int driverOpen(Driver *cuda) {
  static const char *const names[] = {
      "cuInit",
      "cuDevicePrimaryCtxRetain",
      "cuCtxSetCurrent",
      "cuMemAlloc_v2",
      "cuMemcpyHtoD_v2",
      "cuMemcpyDtoH_v2",
      "cuMemsetD8_v2",
      "cuStreamCreate",
      "cuStreamSynchronize",
      "cuStreamBeginCapture_v2",
      "cuStreamEndCapture",
      "cuGraphInstantiateWithFlags",
      "cuGraphLaunch",
  };
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *found = library ? dlsym(library, names[i]) : NULL;
    if (!found)
      return 0;
    memcpy((char *)cuda + i * sizeof found, &found, sizeof found);
  }
  return !cuda->init(0) && !cuda->primaryContext(&context, 0) &&
         !cuda->setCurrent(context);
}

#endif /* DRIVER_H */
