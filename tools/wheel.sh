#!/usr/bin/env bash
# Builds the Python wheel into build/wheels: the extension with LLVM and MLIR linked into it, so that it needs neither.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
out="$BUILD_DIR/wheels"
rm -rf "$out"
cp LICENSE python/LICENSE
trap 'rm -f python/LICENSE' EXIT
AXE_STATIC_MLIR=1 maturin build --manifest-path python/Cargo.toml --profile "$PROFILE" --out "$out" \
    --auditwheel check --strip true || die "the wheel was not built" "'make deps' brings maturin."
say "built: $(ls "$out"/*.whl)"
