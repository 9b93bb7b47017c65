#!/usr/bin/env bash
# A stock mlir-opt with Axe as a plugin: the layer of embed-c to PTX, and the function that launches it.
#
#   examples/embed-plugin/run.sh WHERE_AXE_IS_INSTALLED [MLIR_OPT]
set -euo pipefail
prefix="$1" mlir_opt="${2:-mlir-opt-22}"
plugin="$prefix/lib/libAxePlugin.so"
layer="$(dirname "${BASH_SOURCE[0]}")/../embed-c/layer.mlir"

with_axe() {
    "$mlir_opt" --load-dialect-plugin="$plugin" --load-pass-plugin="$plugin" "$@"
}

# Axe's pipeline between passes of MLIR's own.
with_axe "$layer" --pass-pipeline='builtin.module(canonicalize,axe-nvidia{target=sm_90a},cse)'
