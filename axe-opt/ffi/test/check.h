/* What the tests of the C API share: checks that count, and a sample. No
 * assert(): it would vanish in a release build. */
#ifndef AXE_TEST_CHECK_H
#define AXE_TEST_CHECK_H

#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      failures++;                                                              \
    }                                                                          \
  } while (0)

/* y = x + x, of 8 x 64 floats. */
static const char ADD[] =
    "func.func @twice(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {\n"
    "  %e = tensor.empty() : tensor<8x64xf32>\n"
    "  %y = linalg.add ins(%x, %x : tensor<8x64xf32>, tensor<8x64xf32>)\n"
    "                  outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>\n"
    "  return %y : tensor<8x64xf32>\n"
    "}\n";

#endif /* AXE_TEST_CHECK_H */
