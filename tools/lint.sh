#!/usr/bin/env bash
# Formatting, clippy, generated docs and the house rules; --fix rewrites what a formatter can.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
failed=()

# try NAME HELP COMMAND...: runs a check; a failure is remembered with what helps.
try() {
    local name="$1" help="$2"
    shift 2
    step lint "$name"
    if ! "$@" </dev/null; then failed+=("$name: $help"); fi
}

cxx_files() { git ls-files -- '*.cpp' '*.c' '*.h' | grep -v '^\.deps/' || true; }

clang_format() {
    local files
    files="$(cxx_files)"
    [ -n "$files" ] || return 0
    # shellcheck disable=SC2086 # a list of files
    clang-format-22 "$@" $files
}

python_parses() {
    local file
    while read -r file; do
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || return 1
    done < <(git ls-files -- '*.py')
}

shell_parses() {
    local file
    while read -r file; do bash -n "$file" || return 1; done < <(git ls-files -- '*.sh' .ci/run)
}

# Lines of tracked text that match, except in files that quote others (lock file, generated models).
forbidden() {
    local found
    found="$(git grep -nIE "$1" -- ':!Cargo.lock' ':!examples/models/*.mlir' ':!tools/lint.sh' ':!LICENSE' || true)"
    [ -z "$found" ] || { printf '%s\n' "$found" | head -n 20 >&2; return 1; }
}

if [ "${1:-}" = --fix ]; then
    cargo fmt --all
    clang_format -i
    say "formatted Rust and C++"
    exit
fi

try "Rust is formatted" "run 'make format'" cargo fmt --all --check
try "C++ is formatted" "run 'make format'" clang_format --dry-run -Werror
# The crates that are published hold all that they are built from: their file lists and versions are checked.
packaged() {
    local log="$BUILD_DIR/logs/package.log" excluded=()
    mkdir -p "$BUILD_DIR/logs"
    while read -r name; do excluded+=(--exclude "$name"); done < <(cargo metadata --no-deps --format-version 1 |
        python3 -c 'import json, sys; [print(p["name"]) for p in json.load(sys.stdin)["packages"] if p["publish"] == []]')
    cargo package --workspace --no-verify --allow-dirty "${excluded[@]}" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
    # A slow registry is none of ours.
    ! grep '^warning' "$log" | grep -v 'network' >&2
}

try "crates can be packaged" "the message names the crate" packaged
try "clippy has no warning" "see the lint's page that clippy names" \
    cargo clippy --workspace --all-targets --profile "$PROFILE" -- -D warnings
try "generated docs are current" "run 'make docs' and commit the result" tools/docs.sh --check
try "links of docs/ lead somewhere" "the message names the page" python3 tools/check_docs.py links
try "shell scripts parse" "bash -n names the line" shell_parses
try "Python parses" "the message names the line" python_parses
try "no notes to self" "finish it, or open an issue" forbidden '\b(FIXME|TODO|XXX|HACK)\b'
try "no paths of one machine" "use a path relative to the repository" forbidden '(^|[^[:alnum:]_.$}/-])/(work|root|home)/[[:alnum:]_.-]+'
if [ "${#failed[@]}" -gt 0 ]; then
    say ""
    for line in "${failed[@]}"; do say "lint failed: $line"; done
    exit 1
fi
say "lint: clean"
