/* What the tests of the C API share: checks that count, and the diagnostics of
 * a context. No assert(): it would vanish in a release build. */
#ifndef AXE_C_TEST_CHECK_H
#define AXE_C_TEST_CHECK_H

#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      failures++;                                                              \
    }                                                                          \
  } while (0)

static MlirStringRef text(const char *string) {
  return mlirStringRefCreateFromCString(string);
}

/* The last diagnostic, kept so that its words can be checked. */
typedef struct {
  char message[1024];
  size_t length;
  int count;
} Log;

/* What cannot go on after a failed check: prints why and stops. */
#define REQUIRE(condition, log)                                                \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s: %s\n", __FILE__, __LINE__,           \
              #condition, (log)->message);                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void append(MlirStringRef part, void *user) {
  Log *log = user;
  size_t room = sizeof(log->message) - 1 - log->length;
  size_t length = part.length < room ? part.length : room;
  memcpy(log->message + log->length, part.data, length);
  log->length += length;
  log->message[log->length] = 0;
}

static MlirLogicalResult record(MlirDiagnostic diagnostic, void *user) {
  Log *log = user;
  log->length = 0;
  log->count++;
  mlirDiagnosticPrint(diagnostic, append, log);
  return mlirLogicalResultSuccess();
}

/* Whether the one diagnostic since the last call contains `words`. */
static bool said(Log *log, const char *words) {
  bool found = log->count == 1 && strstr(log->message, words) != NULL;
  if (!found)
    fprintf(stderr, "%d diagnostics, the last: %s\n", log->count, log->message);
  log->count = 0;
  return found;
}

#endif /* AXE_C_TEST_CHECK_H */
