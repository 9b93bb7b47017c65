/* What a shared library needs of C: the rest is Rust (src/) and MLIR. The
 * header is compiled as C on the way. */
#include "axe.h"

_Static_assert(AXE_ABI_VERSION == 1, "as in src/version.rs and CMakeLists.txt");
