//===- Host.h - Whose MLIR a plugin is in -----------------------*- C++ -*-===//
#ifndef AXE_PLUGIN_HOST_H
#define AXE_PLUGIN_HOST_H

namespace axe {

/// Whether the MLIR that the plugin calls was in the process before the plugin
/// was. Where loading the plugin brought it, the host has another, whose
/// registries this one must not touch; says so on standard error.
bool hostSharesMlir();

/// Prints a message of the plugin, with its path.
void complain(const char *message);

} // namespace axe

#endif // AXE_PLUGIN_HOST_H
