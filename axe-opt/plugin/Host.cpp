//===- Host.cpp - Whose MLIR a plugin is in -------------------------------===//

#include "Host.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringRef.h"

#include <cstdio>
#include <dlfcn.h>
#include <link.h>

namespace {

/// What the loader says of two addresses.
struct Order {
  uintptr_t first, second;
  unsigned seen = 0;
  /// Places in the order of loading, from 1; 0 for none.
  unsigned firstAt = 0, secondAt = 0;
};

bool holds(const dl_phdr_info &object, uintptr_t address) {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin &&
        address - begin < segment.p_memsz)
      return true;
  }
  return false;
}

int visit(dl_phdr_info *object, size_t, void *data) {
  auto *order = static_cast<Order *>(data);
  ++order->seen;
  if (holds(*object, order->first))
    order->firstAt = order->seen;
  if (holds(*object, order->second))
    order->secondAt = order->seen;
  return 0;
}

uintptr_t addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

} // namespace

void axe::complain(const char *message) {
  Dl_info self;
  bool found = dladdr(reinterpret_cast<void *>(&axe::complain), &self);
  std::fprintf(stderr, "%s: Axe's plugin: %s\n",
               found && self.dli_fname ? self.dli_fname : "libAxePlugin.so",
               message);
}

/// Whether an object is the shared libMLIR of this plugin's release. A program
/// may hold MLIR itself, of any release, and lend its symbols.
static bool isSharedMlir(const char *path) {
  llvm::StringRef name = llvm::StringRef(path).rsplit('/').second;
  if (name.empty())
    name = path;
  return name == "libMLIR.so" || name == "libMLIR.so." AXE_LLVM_RELEASE;
}

bool axe::hostSharesMlir() {
  // The address is that of the definition that the loader bound.
  auto *bound = reinterpret_cast<void *>(&mlir::registerPass);
  auto *own = reinterpret_cast<void *>(&axe::complain);
  Order order = {addressOf(bound), addressOf(own)};
  dl_iterate_phdr(visit, &order);
  Dl_info holder;
  if (order.firstAt != 0 && order.firstAt < order.secondAt &&
      dladdr(bound, &holder) && holder.dli_fname &&
      isSharedMlir(holder.dli_fname))
    return true;
  complain(
      "this program does not use the shared libMLIR of LLVM " AXE_LLVM_RELEASE
      ", which the plugin is for: it is not loaded. Use "
      "that release's mlir-opt (Debian: mlir-opt-22), or axe-opt");
  return false;
}
