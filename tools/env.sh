# Sourced by the scripts beside it: where things are, and three ways to speak to the person who runs them.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
LLVM_PREFIX="${AXE_LLVM_PREFIX:-/usr/lib/llvm-22}"
PROFILE="${PROFILE:-dev}"
TARGET_DIR="${CARGO_TARGET_DIR:-$ROOT/target}"
# Cargo writes the profile `dev` to a folder named `debug`; every other folder is named as its profile.
case "$PROFILE" in dev) BIN_DIR="$TARGET_DIR/debug" ;; *) BIN_DIR="$TARGET_DIR/$PROFILE" ;; esac
BUILD_DIR="${AXE_BUILD_DIR:-$ROOT/build}"
# What cargo builds where a script needs binaries. The test run selects everything at once (see test.sh).
CARGO_SELECTION="${AXE_CARGO_SELECTION:-}"
JOBS="${JOBS:-$(nproc 2>/dev/null || echo 2)}"

export PATH="$ROOT/.deps/bin:$PATH"
export PYTHONPATH="$ROOT/.deps/python${PYTHONPATH:+:$PYTHONPATH}"
export CARGO_TERM_PROGRESS_WHEN="${CARGO_TERM_PROGRESS_WHEN:-auto}"
[ -z "${CI:-}" ] || export CARGO_TERM_PROGRESS_WHEN=never

# The pinned toolchain may be installed under the name `stable` only; rustup would then try to download it again.
pinned_rust() { sed -n 's/^channel *= *"\(.*\)"/\1/p' "$ROOT/rust-toolchain.toml"; }
if [ -z "${RUSTUP_TOOLCHAIN:-}" ] && command -v rustup >/dev/null 2>&1; then
    if ! rustup toolchain list 2>/dev/null | grep -q "^$(pinned_rust)"; then
        if [[ "$(rustup run stable rustc --version 2>/dev/null)" == "rustc $(pinned_rust) "* ]]; then
            export RUSTUP_TOOLCHAIN=stable
        fi
    fi
fi

say() { printf '%s\n' "$*"; }
step() { printf '[%s] %s\n' "$1" "$2"; }
die() {
    printf 'error: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

# The first Python that has pip; the one on the PATH wins.
python_with_pip() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -m pip --version >/dev/null 2>&1; then
            printf '%s' "$python"
            return
        fi
    done
    return 1
}
