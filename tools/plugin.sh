#!/usr/bin/env bash
# Configures and builds the CMake package: the libraries, build/lib/libAxePlugin.so and the C API's tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
log="$BUILD_DIR/logs/cmake.log"
mkdir -p "$BUILD_DIR/logs"
selection="${CARGO_SELECTION:---package axe-ffi --package axe-runtime-capi}"
wanted="$selection;$PROFILE;$TARGET_DIR;$LLVM_PREFIX"
# Configuring takes a second or two: only where there is something new.
if [ ! -f "$BUILD_DIR/build.ninja" ] || [ "$(cat "$BUILD_DIR/configured" 2>/dev/null)" != "$wanted" ]; then
    cmake -S . -B "$BUILD_DIR" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$LLVM_PREFIX/bin/clang++" -DMLIR_DIR="$LLVM_PREFIX/lib/cmake/mlir" \
        -DAXE_CARGO_PROFILE="$PROFILE" -DAXE_CARGO_TARGET_DIR="$TARGET_DIR" \
        -DAXE_CARGO_SELECTION="${selection// /;}" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "CMake could not configure (log: $log)"
    }
    printf '%s\n' "$wanted" >"$BUILD_DIR/configured"
fi
cmake --build "$BUILD_DIR" -j "$JOBS" || die "the CMake build failed" "'cmake --build $BUILD_DIR -v' shows each command."
say "built: $BUILD_DIR/lib/libAxePlugin.so"
