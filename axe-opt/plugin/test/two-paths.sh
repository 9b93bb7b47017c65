#!/usr/bin/env bash
# two-paths.sh MLIR_OPT PLUGIN: a second copy of the plugin, from another path, says that it is ignored, and the program goes on.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$2" "$work/libCopy.so"
printf 'func.func private @f(tensor<8xf32, #axe.layout<S[8 : 1]>>)\n' >"$work/in.mlir"

# Both as dialect and pass plugin: the first is used.
"$1" "$work/in.mlir" --load-dialect-plugin="$2" --load-dialect-plugin="$work/libCopy.so" --load-pass-plugin="$2" \
    --pass-pipeline='builtin.module(axe-canonicalize-layouts)' >"$work/out" 2>"$work/err"
grep -q 'libCopy.so: .*two paths' "$work/err"
grep -q 'axe.layout' "$work/out"

# One as dialect, the other as pass plugin: its passes are not there, and that is said.
if "$1" "$work/in.mlir" --load-dialect-plugin="$2" --load-pass-plugin="$work/libCopy.so" \
    --pass-pipeline='builtin.module(axe-canonicalize-layouts)' >"$work/out" 2>"$work/err"; then
    exit 1
fi
grep -q 'libCopy.so: .*two paths' "$work/err"
grep -q "axe-canonicalize-layouts" "$work/err"
