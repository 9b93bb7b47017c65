#!/usr/bin/env bash
# Installs what building and testing Axe needs, and nothing that is already there: a second run takes well under a second.
#   system packages  tools/deps/apt.txt        (apt, through sudo when not root)
#   pinned wheels    tools/deps/python.txt     (unpacked into .deps/, nothing is installed into the system's Python)
#   .deps/lib/libMLIR-C.so                     (a linker script, see below)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
mkdir -p .deps/bin .deps/lib .deps/python

list_of() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

check_rust() {
    command -v cargo >/dev/null 2>&1 || die "cargo is not on the PATH" \
        "Install Rust $(pinned_rust) with rustup, then run 'make deps' again."
    local version
    version="$(rustc --version 2>&1)" || die "rustc does not start: $version" \
        "rust-toolchain.toml pins $(pinned_rust): 'rustup toolchain install $(pinned_rust) -c rustfmt -c clippy'."
    say "      $version"
}

missing_packages() {
    local name
    while read -r name; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
    done < <(list_of tools/deps/apt.txt)
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        # Without a terminal nobody can type a password: fail instead of hanging.
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else
        return 127
    fi
}

install_packages() {
    local missing log
    command -v dpkg-query >/dev/null 2>&1 || die "this is not a Debian system: dpkg-query is missing" \
        "Axe builds against the LLVM and MLIR 22.1 packages of Debian 12 (tools/deps/apt.txt lists them)."
    missing="$(missing_packages)"
    if [ -z "$missing" ]; then
        say "      all there"
        return
    fi
    say "      installing: $missing"
    log="$ROOT/.deps/apt.log"
    as_root apt-get -o Acquire::Retries=3 update >"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        die "apt-get update failed (log: $log)" \
            "It needs root or sudo, and a network. By hand: apt-get update && apt-get install --no-install-recommends $missing"
    }
    # shellcheck disable=SC2086 # the list is meant to be split
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y --no-install-recommends $missing >>"$log" 2>&1 || {
        tail -n 15 "$log" >&2
        die "apt-get install failed (log: $log)" \
            "LLVM and MLIR 22.1 are in Debian 12 and later; an older release does not have them."
    }
}

# mlir-sys links to libMLIR-C.so when MLIR is a shared library. Debian ships the C API as archives only,
# so the name is given to a linker script that stands for all of them.
write_linker_script() {
    local out=.deps/lib/libMLIR-C.so archives
    shopt -s nullglob
    archives=("$LLVM_PREFIX"/lib/libMLIRCAPI*.a)
    shopt -u nullglob
    [ "${#archives[@]}" -gt 0 ] || die "$LLVM_PREFIX/lib has no libMLIRCAPI*.a" \
        "The package libmlir-22-dev brings them; AXE_LLVM_PREFIX names another place."
    { printf 'GROUP (\n'; printf '%s\n' "${archives[@]}"; printf ')\n'; } >"$out.new"
    if cmp -s "$out.new" "$out"; then
        rm "$out.new"
        say "      up to date (${#archives[@]} archives)"
    else
        mv "$out.new" "$out"
        say "      written (${#archives[@]} archives)"
    fi
}

unpack_wheels() {
    local stamp=.deps/python.stamp want python downloads
    want="$(sha256sum <tools/deps/python.txt) $(python3 -c 'import sys; print(sys.version_info[:2])')"
    if [ -x .deps/bin/ptxas ] && [ -x .deps/bin/nvdisasm ] && [ -x .deps/bin/maturin ] && [ -x .deps/bin/mdbook ] && [ -d .deps/python/numpy ] &&
        [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
        say "      all there"
        return
    fi
    python="$(python_with_pip)" || {
        say "      installing: python3-pip"
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-pip \
            >>"$ROOT/.deps/apt.log" 2>&1 || die "no python3 with pip, and python3-pip could not be installed"
        python="$(python_with_pip)" || die "python3 -m pip does not start"
    }
    say "      downloading about 80 MB"
    downloads="$(mktemp -d "$ROOT/.deps/wheels.XXXXXX")"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r tools/deps/python.txt -d "$downloads" || {
        rm -rf "$downloads"
        die "the pinned wheels could not be downloaded or their hashes differ (tools/deps/python.txt)" \
            "A CPython other than 3.11 to 3.14 needs its own hash for numpy there."
    }
    "$python" tools/deps/unpack.py "$downloads" .deps
    rm -rf "$downloads"
    printf '%s\n' "$want" >"$stamp"
}

check_tools() {
    local version
    version="$("$LLVM_PREFIX/bin/llvm-config" --version 2>/dev/null)" || die "$LLVM_PREFIX/bin/llvm-config does not start"
    case "$version" in
    22.1*) ;;
    *) die "$LLVM_PREFIX has LLVM $version; Axe needs 22.1" ;;
    esac
    .deps/bin/ptxas --version >/dev/null 2>&1 || die ".deps/bin/ptxas does not start" "Remove .deps and run 'make deps' again."
    say "      LLVM $version, $(.deps/bin/ptxas --version | sed -n 's/.*\(release [0-9.]*\),.*/ptxas \1/p')"
}

step 1/5 "Rust toolchain"
check_rust
step 2/5 "system packages"
install_packages
step 3/5 "linker script for MLIR's C API"
write_linker_script
step 4/5 "ptxas, nvdisasm, maturin, mdbook and numpy in .deps"
unpack_wheels
step 5/5 "check"
check_tools
