#!/usr/bin/env bash
# Builds the example by pkg-config alone and runs it.
#
#   examples/embed-c/pkg-config.sh WHERE_AXE_IS_INSTALLED
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export PKG_CONFIG_PATH="$1/lib/pkgconfig"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # the flags are words
cc -std=c11 -Wall -Werror "$here/main.c" -o "$work/axe-embed-c" $(pkg-config --cflags --libs axe) -Wl,-rpath,"$1/lib"
cc -std=gnu11 -Wall -Werror "$here/launch.c" -o "$work/axe-launch" $(pkg-config --cflags --libs axe axert) -ldl -Wl,-rpath,"$1/lib"
"$work/axe-embed-c" "$here/layer.mlir" sm_80 "$work/layer.ptx"
grep -q 'target sm_80' "$work/layer.ptx"
