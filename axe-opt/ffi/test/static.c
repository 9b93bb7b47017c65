/* libaxe in its static form: a module to PTX. */
#include "axe.h"
#include "check.h"

int main(void) {
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.no_assembler = true;
  axe_package *package = NULL;
  size_t size = 0;
  CHECK(axe_compile(ADD, sizeof ADD - 1, &options, &package, NULL) == AXE_OK);
  CHECK(axe_package_ptx(package, &size) && size > 100);
  axe_package_free(package);
  return failures != 0;
}
