//===- Host.h - Whose MLIR a plugin is in -----------------------*- C++ -*-===//
#ifndef AXE_PLUGIN_HOST_H
#define AXE_PLUGIN_HOST_H

namespace axe {

/// Whether the MLIR that the plugin calls is the shared library of its release,
/// and was in the process before the plugin was. Where the host has another,
/// its registries must not be touched; says so on standard error.
bool hostSharesMlir();

/// Prints a message of the plugin, with its path.
void complain(const char *message);

} // namespace axe

#endif // AXE_PLUGIN_HOST_H
