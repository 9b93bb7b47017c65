/* A program that loads plugins as mlir-opt does and has no libMLIR of its own:
 * the plugin brings one, must find that out, and must not be taken. Built with
 * LENDS, it has a definition of MLIR's that the loader prefers, as programs do
 * that link MLIR statically. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  uint32_t version;
  const char *name;
  const char *release;
  void (*callback)(void *);
} Info;

#ifdef LENDS
/* mlir::registerPass */
void lends(void) __asm__(
    "_ZN4mlir12registerPassERKSt8functionIFSt10unique_ptrINS_4PassESt14default_"
    "deleteIS2_EEvEE");
void lends(void) {}
#endif

int main(int argc, char **argv) {
  void *plugin = argc == 2 ? dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL) : NULL;
  if (!plugin) {
    fprintf(stderr, "cannot load: %s\n", argc == 2 ? dlerror() : "usage");
    return 2;
  }
  static const char *const entries[] = {"mlirGetDialectPluginInfo",
                                        "mlirGetPassPluginInfo"};
  for (int i = 0; i < 2; i++) {
    Info (*entry)(void);
    *(void **)&entry = dlsym(plugin, entries[i]);
    Info info = entry();
    if (info.version != 0 || info.callback) {
      fprintf(stderr, "%s offers itself\n", entries[i]);
      return 1;
    }
  }
  return 0;
}
