/*===- axert.h - kernel packages inside of another program --------*- C -*-===*\
|*                                                                            *|
|* Loads kernel packages (docs/packages.md) and launches them on the caller's *|
|* device memory, streams and context. The library needs libc and, when a     *|
|* package is loaded, NVIDIA's driver (CUDA 12.4 or newer); without one there *|
|* is an error value.                                                         *|
|*                                                                            *|
|* ERRORS. A function that can fail returns NULL when it did not, else an     *|
|* error that the caller destroys. A result is written through the last       *|
|* argument on success alone. NULL where an object is expected, wrong counts  *|
|* and wrong types are errors. No function prints, exits or throws.           *|
|*                                                                            *|
|* OWNERSHIP. The caller destroys what it is given by a function with `**`    *|
|* and nothing else; destroying NULL does nothing. Objects are addresses: one *|
|* that was destroyed is not to be used. Strings and arrays that a function   *|
|* returns belong to the object that was asked. An executable, its            *|
|* specializations and what they point to may be destroyed in any order, once *|
|* the work that they launched is done.                                       *|
|*                                                                            *|
|* THREADS. All functions may be called from any thread. The context that is  *|
|* current on a thread is the same after a call as before.                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXERT_H
#define AXERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An error value. */
typedef struct AxertError AxertError;
/* A package whose code is loaded in a context. */
typedef struct AxertExecutable AxertExecutable;
/* An executable for one set of shapes. */
typedef struct AxertSpecialization AxertSpecialization;

typedef enum AxertCode {
  AXERT_INVALID_ARGUMENT = 1, /* NULL, a count or an index that does not fit */
  AXERT_INVALID_PACKAGE =
      2, /* not a package, a damaged one, or one that the call does not fit */
  AXERT_NO_DEVICE =
      3,          /* no driver, no such GPU, or not one that the package fits */
  AXERT_CUDA = 4, /* the driver refused; the message has its error */
  AXERT_INTERNAL = 5 /* a defect of the library */
} AxertCode;

/* A dense tensor in device memory: the same bytes as DLPack's DLTensor, so that
 * a `DLTensor *` may be cast. */
typedef struct AxertTensor {
  void *data;
  int32_t device_type; /* kDLCUDA (2) or kDLCUDAManaged (13) */
  int32_t device_id;
  int32_t ndim;
  uint8_t type_code; /* DLDataTypeCode */
  uint8_t type_bits;
  uint16_t type_lanes; /* 1 */
  int64_t *shape;
  int64_t *strides; /* in elements; NULL for row-major */
  uint64_t byte_offset;
} AxertTensor;

/* The extents of a tensor, outermost first. */
typedef struct AxertShape {
  const int64_t *extents;
  size_t rank;
} AxertShape;

/* The value of a dimension that no input has. */
typedef struct AxertDim {
  const char *name;
  int64_t value;
} AxertDim;

/* What an output is. */
typedef struct AxertOutput {
  const char *name;
  const char *type; /* as manifests have it: "f16", "bf16", "i32" */
  AxertShape shape;
  uint64_t bytes;
} AxertOutput;

/* The context that is current on the calling thread, where a device's number is
   expected. A context that is not its device's primary one has to live until
   the process ends. */
#define AXERT_CURRENT_CONTEXT (-1)

/* The library's version. */
const char *axertVersion(void);

AxertCode axertErrorCode(const AxertError *error);
/* What is wrong, and where: the input, the kernel, the action. */
const char *axertErrorMessage(const AxertError *error);
void axertErrorDestroy(AxertError *error);

/* Loads a package of `size` bytes, which may be freed afterwards, on GPU number
   `device` (in its primary context, as the CUDA runtime and PyTorch use it) or
   in the current context. */
AxertError *axertLoad(const void *bytes, size_t size, int device,
                      AxertExecutable **executable);
/* Loads a package from a file or a folder. */
AxertError *axertLoadFile(const char *path, int device,
                          AxertExecutable **executable);
void axertExecutableDestroy(AxertExecutable *executable);
/* 0 for NULL. */
size_t axertNumInputs(const AxertExecutable *executable);
size_t axertNumOutputs(const AxertExecutable *executable);

/* Fits an executable to the shapes of its inputs, in the manifest's order. What
   is fitted once is kept by the executable: the second time is cheap. */
AxertError *axertSpecialize(const AxertExecutable *executable,
                            const AxertShape *inputs, size_t num_inputs,
                            const AxertDim *dims, size_t num_dims,
                            AxertSpecialization **specialization);
void axertSpecializationDestroy(AxertSpecialization *specialization);
AxertError *axertOutput(const AxertSpecialization *specialization, size_t index,
                        AxertOutput *output);

/* Puts the package's steps on a stream (a CUstream or cudaStream_t; NULL for
   the context's default stream) and does not wait. `inputs` and `outputs` are
   addresses of dense row-major tensors in device memory, which live until the
   stream has run the steps; outputs overlap nothing. Nothing is allocated but,
   once for each stream and each capture, the package's own buffers. On a stream
   that is captured, the steps become nodes of the graph; keep the
   specialization while the graph is replayed. */
AxertError *axertLaunch(const AxertSpecialization *specialization,
                        void *const *inputs, size_t num_inputs,
                        void *const *outputs, size_t num_outputs, void *stream);

/* axertSpecialize and axertLaunch on tensors as DLPack describes them, which
   are checked: types, devices, shapes, strides. */
AxertError *axertCall(const AxertExecutable *executable,
                      const AxertTensor *inputs, size_t num_inputs,
                      const AxertTensor *outputs, size_t num_outputs,
                      const AxertDim *dims, size_t num_dims, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* AXERT_H */
