#!/usr/bin/env bash
# Builds the documentation site into build/site.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
python3 tools/check_docs.py links
mdbook build --dest-dir "$BUILD_DIR/site" >"$BUILD_DIR/site.log" 2>&1 || {
    tail -n 20 "$BUILD_DIR/site.log" >&2
    die "mdbook could not build the site"
}
say "built: $BUILD_DIR/site/index.html"
