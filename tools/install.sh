#!/usr/bin/env bash
# install.sh PREFIX: builds and installs libraries, headers, the CMake package, the plugin, drivers, man pages and completions
# under PREFIX. DESTDIR is put in front of it, for those who make packages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
[ -n "${1:-}" ] || die "where to?" "make install PREFIX=/opt/axe"
case "$1" in /*) prefix="$1" ;; *) prefix="$PWD/$1" ;; esac
# One selection for both: cargo unifies features over what it is asked to build, and would compile most of it a second time.
export AXE_CARGO_SELECTION="${AXE_CARGO_SELECTION:---workspace --lib --bins}"
tools/build.sh
tools/plugin.sh
root="${DESTDIR:-}$prefix"
cmake --install "$BUILD_DIR" --prefix "$prefix" >"$BUILD_DIR/logs/install.log" || die "CMake could not install (log: $BUILD_DIR/logs/install.log)"
find "$root" -name 'libaxe_ffi.a' -exec strip --strip-debug {} +
find "$root" \( -name 'libAxePlugin.so' -o -name 'libaxert.so' \) -exec strip {} +
install -d "$root/bin" "$root/share/man/man1" "$root/share/bash-completion/completions" \
    "$root/share/zsh/site-functions" "$root/share/fish/vendor_completions.d"
for driver in axe axe-opt axe-run axe-lsp-server; do
    install -m 755 --strip "$BIN_DIR/$driver" "$root/bin/$driver"
done
"$BIN_DIR/axe" manual "$root/share/man/man1"
install -m 644 tools/man/*.1 "$root/share/man/man1"
"$BIN_DIR/axe" completions bash >"$root/share/bash-completion/completions/axe"
"$BIN_DIR/axe" completions zsh >"$root/share/zsh/site-functions/_axe"
"$BIN_DIR/axe" completions fish >"$root/share/fish/vendor_completions.d/axe.fish"
say "installed: $root"
