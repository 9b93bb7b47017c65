/*===- axe.h - libaxe: the compiler, the layouts, the simulator ---*- C -*-===*\
|*                                                                            *|
|* For any program in C, or in a language that calls C. No MLIR is needed to  *|
|* use it: libaxe.so has its own inside, which shares nothing with another    *|
|* MLIR or LLVM of the process. Programs that have MLIR and want to share it  *|
|* use axe-c/ and axe/ and link the CMake target Axe::Axe.                    *|
|*                                                                            *|
|* OWNERSHIP. A function that makes an object writes its handle to a place of *|
|* the caller's (`axe_package **package`); the caller frees it, once, by the  *|
|* function of its type (axe_package_free). Where a function fails, the place *|
|* holds NULL. What the caller passes in is read during the call and not kept.*|
|*                                                                            *|
|* LIFETIME. Pointers that functions give (texts, bytes, shapes) belong to    *|
|* the object that they were asked of and are valid until it is freed. Texts  *|
|* are UTF-8 and end in a NUL. Those of axe_version and the like live as long *|
|* as the process. Objects do not depend on each other.                       *|
|*                                                                            *|
|* ERRORS. A function that can fail gives an axe_status. The last argument of *|
|* most is a place for an axe_error, which says more; NULL where nobody wants *|
|* to know. Functions that only look give 0 or NULL for what they do not      *|
|* take. Nothing is printed, and no error ends the process.                   *|
|*                                                                            *|
|* HANDLES are not addresses. One that is NULL, was freed, is of another type *|
|* or never was a handle is found out: AXE_ERROR_INVALID_ARGUMENT; freeing it *|
|* does nothing. So are indices that are out of range, NULL for an argument   *|
|* that is needed, texts that are not UTF-8, and counts that no array has,    *|
|* such as negative numbers. What cannot be found out is an array or a text   *|
|* that is shorter than the caller says, and a place that is no memory.       *|
|*                                                                            *|
|* THREADS. Every function may be called from several threads at once, on the *|
|* same objects too, as long as none frees what another uses.                 *|
|*                                                                            *|
|* VERSIONS. Functions and enumerators are added; what is there keeps its     *|
|* meaning while AXE_ABI_VERSION stays. The structures of options begin with  *|
|* their size. The shared library's name has the ABI version: libaxe.so.1.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AXE_H
#define AXE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AXE_ABI_VERSION 1

/*===--- The library ------------------------------------------------------===*/

/* "0.1.0". */
const char *axe_version(void);
/* AXE_ABI_VERSION of the library; compare it with the header's. */
uint32_t axe_abi_version(void);
/* Version, commit and LLVM's version, for people. */
const char *axe_build(void);

/* The targets of axe_compile: chips such as "sm_90a", and "cpu". NULL for an
 * index that is out of range. */
size_t axe_target_count(void);
const char *axe_target_name(size_t index);
const char *axe_default_target(void);

/*===--- Errors -----------------------------------------------------------===*/

typedef enum axe_status {
  AXE_OK = 0,
  /* An argument is not what the function takes. */
  AXE_ERROR_INVALID_ARGUMENT = 1,
  /* The module does not compile; the error has diagnostics. */
  AXE_ERROR_COMPILE = 2,
  AXE_ERROR_UNKNOWN_TARGET = 3,
  /* ptxas was not found where options->ptxas says, failed, gave up what the
   * code is written for (its C75xx warnings), or is a release that is known to
   * miscompile it. */
  AXE_ERROR_ASSEMBLER = 4,
  /* Bytes or a file that are no package, or damaged. */
  AXE_ERROR_INVALID_PACKAGE = 5,
  /* A kernel did in the simulator what ends it: a fault, a deadlock, a limit.*/
  AXE_ERROR_SIMULATION = 6,
  /* It is proven that no layout, or no element, is the answer. */
  AXE_ERROR_NO_ANSWER = 7,
  /* The answer needs numbers beyond 64 bits. */
  AXE_ERROR_OVERFLOW = 8,
  /* The library does not decide the question. */
  AXE_ERROR_UNSUPPORTED = 9,
  /* The operating system refused. */
  AXE_ERROR_SYSTEM = 10,
  /* A fault of the library: please report it. */
  AXE_ERROR_INTERNAL = 11
} axe_status;

typedef struct axe_error axe_error;

typedef enum axe_severity {
  AXE_SEVERITY_ERROR = 0,
  AXE_SEVERITY_WARNING = 1,
  AXE_SEVERITY_REMARK = 2,
  /* Belongs to the diagnostic before it. */
  AXE_SEVERITY_NOTE = 3
} axe_severity;

typedef struct axe_diagnostic {
  axe_severity severity;
  const char *file;     /* NULL where it is in no file. */
  uint32_t line;        /* From 1. */
  uint32_t column;      /* From 1. */
  const char *location; /* "file:line:column", or MLIR's text of another. */
  const char *message;
} axe_diagnostic;

axe_status axe_error_status(const axe_error *error);
const char *axe_error_message(const axe_error *error);
size_t axe_error_diagnostic_count(const axe_error *error);
axe_status axe_error_diagnostic(const axe_error *error, size_t index,
                                axe_diagnostic *diagnostic);
void axe_error_free(axe_error *error);

/*===--- Texts ------------------------------------------------------------===*/

typedef struct axe_text axe_text;

const char *axe_text_data(const axe_text *text);
size_t axe_text_length(const axe_text *text);
void axe_text_free(axe_text *text);

/*===--- Compilation ------------------------------------------------------===*/

/* What becomes of failures of LLVM's code generator, which only the target
 * "cpu" and the reference on the host call. */
typedef enum axe_recovery {
  /* LLVM ends the process, or calls the handler of fatal errors that the
   * program installed in it: for programs that link libaxe_ffi.a and have such
   * a handler. LLVM holds one, and has no function that gives it, so that it
   * could be put back. */
  AXE_RECOVERY_NONE = 0,
  /* What LLVM reports before it would end the process is an error: while
   * machine code of the host is made, and not before or after, LLVM's handler
   * is the library's. No signal handler is touched. This is so where nobody
   * chooses. */
  AXE_RECOVERY_ERRORS = 1,
  /* Crashes are errors too: while machine code is made, the process's handlers
   * of SIGSEGV, SIGABRT and the like are LLVM's. */
  AXE_RECOVERY_CRASHES = 2
} axe_recovery;

/* Chooses for the whole process, from now on. */
axe_status axe_set_recovery(axe_recovery recovery);

typedef struct axe_package axe_package;

/* Begin with AXE_COMPILE_OPTIONS_INIT; NULL stands for the default. */
typedef struct axe_compile_options {
  size_t struct_size;    /* sizeof(axe_compile_options) */
  const char *target;    /* Default: axe_default_target(). */
  const char *function;  /* Default: the only public one. */
  const char *file_name; /* What diagnostics call the module; "-". */
  const char *ptxas;     /* A path; default: AXE_PTXAS, then PATH. */
  bool no_assembler;     /* PTX alone, no machine code. */
} axe_compile_options;

#define AXE_COMPILE_OPTIONS_INIT                                               \
  {sizeof(axe_compile_options), NULL, NULL, NULL, NULL, false}

/* Compiles a module, as MLIR's text of `length` bytes (a NUL at its end is not
 * needed): linalg on tensors, axe operators, or kernels with their launches.
 * `options` may be NULL. Makes the same checks as `axe compile`. */
axe_status axe_compile(const char *module, size_t length,
                       const axe_compile_options *options,
                       axe_package **package, axe_error **error);

/*===--- Packages ---------------------------------------------------------===*/

/* A tar file or a folder. */
axe_status axe_package_open(const char *path, axe_package **package,
                            axe_error **error);
/* The bytes of a tar file. */
axe_status axe_package_from_bytes(const uint8_t *data, size_t size,
                                  axe_package **package, axe_error **error);
/* Writes one tar file, atomically; replaces a package and nothing else. */
axe_status axe_package_save(const axe_package *package, const char *path,
                            axe_error **error);
void axe_package_free(axe_package *package);

/* Each writes the size in bytes to `size`, unless that is NULL. NULL and 0
 * where there is none. PTX does not end in a NUL. */
const uint8_t *axe_package_bytes(const axe_package *package, size_t *size);
const char *axe_package_ptx(const axe_package *package, size_t *size);
const uint8_t *axe_package_cubin(const axe_package *package, size_t *size);
const uint8_t *axe_package_file(const axe_package *package, const char *name,
                                size_t *size);
size_t axe_package_file_count(const axe_package *package);
const char *axe_package_file_name(const axe_package *package, size_t index);

/* JSON; docs/packages.md describes it. */
const char *axe_package_manifest(const axe_package *package);

typedef struct axe_tensor_type {
  const char *name;
  const char *dtype;    /* "f16", "bf16", "f32", "i8", "bool", ... */
  const int64_t *shape; /* Outermost first; -1 where known at run time. */
  size_t rank;
} axe_tensor_type;

/* Bytes of an element; 0 for what is no type. */
size_t axe_dtype_size(const char *dtype);

size_t axe_package_input_count(const axe_package *package);
axe_status axe_package_input(const axe_package *package, size_t index,
                             axe_tensor_type *type);
size_t axe_package_output_count(const axe_package *package);
axe_status axe_package_output(const axe_package *package, size_t index,
                              axe_tensor_type *type);

/* Of the assembler, or that there is none. */
size_t axe_package_warning_count(const axe_package *package);
const char *axe_package_warning(const axe_package *package, size_t index);

typedef enum axe_decision_kind {
  AXE_DECISION_CHOSEN = 0,
  AXE_DECISION_DECLINED = 1,
  AXE_DECISION_FACT = 2
} axe_decision_kind;

/* A decision of the compiler. Declines come before what was chosen. */
typedef struct axe_decision {
  axe_decision_kind kind;
  const char *category; /* "axe-plan": a kernel's configuration;
                           "axe-dispatch": an operator's schedule. */
  const char *name;     /* The schedule, or where a plan comes from. */
  const char *kernel;
  const char *message;  /* What was chosen, or why not. */
  const char *plan;     /* The schedule's plan as text; "" for the rest. */
  const char *location; /* "file:line:column" of the operator. */
} axe_decision;

/* Those of a package that axe_compile just made; one that was read has none. */
size_t axe_package_decision_count(const axe_package *package);
axe_status axe_package_decision(const axe_package *package, size_t index,
                                axe_decision *decision);

/*===--- The simulator ----------------------------------------------------===*/

typedef struct axe_tensor {
  const char *name;      /* Of an input: NULL takes the one at this place. */
  const char *dtype;     /* As in axe_tensor_type. */
  const uint64_t *shape; /* Outermost first. */
  size_t rank;
  const void *data; /* Dense, row-major, little-endian. */
  size_t size;      /* In bytes. */
} axe_tensor;

typedef struct axe_simulate_options {
  size_t struct_size; /* sizeof(axe_simulate_options) */
  bool no_checks;     /* Faults alone; no races, bounds, barriers. */
  uint32_t threads;   /* Of the host; 0: all cores. */
  uint64_t seed;      /* Of the interleaving of warps. */
  double max_seconds; /* Then the run ends with an error; 0: no limit. */
} axe_simulate_options;

#define AXE_SIMULATE_OPTIONS_INIT                                              \
  {sizeof(axe_simulate_options), false, 0, 0, 0.0}

typedef struct axe_run axe_run;

/* Executes the kernels of a package with PTX, without a GPU. */
axe_status axe_simulate(const axe_package *package, const axe_tensor *inputs,
                        size_t count, const axe_simulate_options *options,
                        axe_run **run, axe_error **error);
size_t axe_run_output_count(const axe_run *run);
axe_status axe_run_output(const axe_run *run, size_t index, axe_tensor *output);
/* How many elements of an output no kernel wrote. */
size_t axe_run_unwritten_count(const axe_run *run, size_t index);

typedef struct axe_finding {
  axe_severity severity; /* AXE_SEVERITY_ERROR or AXE_SEVERITY_WARNING. */
  const char *kind;      /* "race", "out-of-bounds", "unwritten", ... */
  const char *kernel;
  const char *source; /* "file:line:column" in the module; "" where unknown. */
  uint32_t ptx_line;
  const char *message;
  const char *advice;
} axe_finding;

size_t axe_run_finding_count(const axe_run *run);
axe_status axe_run_finding(const axe_run *run, size_t index,
                           axe_finding *finding);
void axe_run_free(axe_run *run);

/*===--- Layouts ----------------------------------------------------------===*/

typedef struct axe_layout axe_layout;

/* "S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]", with "#axe.layout<...>" around it
 * or without. */
axe_status axe_layout_parse(const char *text, size_t length,
                            axe_layout **layout, axe_error **error);
const char *axe_layout_text(const axe_layout *layout);
void axe_layout_free(axe_layout *layout);

/* The number of logical indices; AXE_ERROR_UNSUPPORTED for a dynamic one. */
axe_status axe_layout_size(const axe_layout *layout, int64_t *size,
                           axe_error **error);
/* Whether two layouts are the same map. */
axe_status axe_layout_equal(const axe_layout *a, const axe_layout *b,
                            bool *equal, axe_error **error);
/* The representative of all layouts that are the same map. */
axe_status axe_layout_canonicalize(const axe_layout *layout,
                                   axe_layout **canonical, axe_error **error);

/* The coordinate on one axis; axes that a point does not name are at 0. */
typedef struct axe_term {
  const char *axis;
  int64_t value;
} axe_term;

typedef struct axe_points axe_points;

/* Where the element at `index` of a tensor of this shape is: one point for
 * each of its copies. Arrays have `rank` elements. */
axe_status axe_layout_apply(const axe_layout *layout, const int64_t *shape,
                            const int64_t *index, size_t rank,
                            axe_points **points, axe_error **error);
size_t axe_points_count(const axe_points *points);
axe_status axe_points_terms(const axe_points *points, size_t point,
                            const axe_term **terms, size_t *count);
void axe_points_free(axe_points *points);

typedef struct axe_indices axe_indices;

/* The logical indices (row-major) of the elements that are at a point. */
axe_status axe_layout_invert(const axe_layout *layout, const axe_term *terms,
                             size_t count, axe_indices **indices,
                             axe_error **error);
const int64_t *axe_indices_data(const axe_indices *indices, size_t *count);
void axe_indices_free(axe_indices *indices);

/* The same map with iters that end where dimensions do: dimension k owns the
 * iters from separators[k] to below separators[k + 1]. `separators` is NULL or
 * has room for `rank + 1`. */
axe_status axe_layout_group(const axe_layout *layout, const int64_t *shape,
                            size_t rank, axe_layout **grouped,
                            size_t *separators, axe_error **error);
/* A copy of `inner` at every element of `outer`. */
axe_status axe_layout_tile(const axe_layout *outer, const int64_t *outer_shape,
                           const axe_layout *inner, const int64_t *inner_shape,
                           size_t rank, axe_layout **tiled, axe_error **error);
/* The `outer` that axe_layout_tile makes `layout` of with `inner`. */
axe_status axe_layout_tile_of(const axe_layout *layout, const int64_t *shape,
                              const axe_layout *inner,
                              const int64_t *inner_shape, size_t rank,
                              axe_layout **outer, axe_error **error);
/* The layout of the elements from `begin` to below `end`. */
axe_status axe_layout_slice(const axe_layout *layout, const int64_t *shape,
                            const int64_t *begin, const int64_t *end,
                            size_t rank, axe_layout **slice, axe_error **error);
/* A picture; rank 0 takes the layout's own shape. `caption` may be NULL. */
axe_status axe_layout_svg(const axe_layout *layout, const int64_t *shape,
                          size_t rank, const char *caption, axe_text **svg,
                          axe_error **error);

#ifdef __cplusplus
}
#endif

#endif /* AXE_H */
