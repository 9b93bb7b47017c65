#!/usr/bin/env bash
# Writes the reference pages of docs/ from ODS, Passes.td and what targets say of themselves; with --check, says which are out of date and fails.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

# One page a line: mlir-tblgen's generator, its input, the page.
PAGES=(
    "-gen-dialect-doc -dialect=axe|dialect/ir/AxeOps.td|docs/reference/dialect.md"
    "-gen-dialect-doc -dialect=trn|targets/trainium/ir/TrnOps.td|docs/reference/trn.md"
    "-gen-pass-doc|passes/cpp/Passes.td|docs/reference/passes.md"
)

stale=()
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
for page in "${PAGES[@]}"; do
    IFS='|' read -r generator input output <<<"$page"
    [ -f "$input" ] || die "$input is missing" "tools/docs.sh lists what the pages are made from."
    # shellcheck disable=SC2086 # generator options are words
    "$LLVM_PREFIX/bin/mlir-tblgen" $generator -I "$(dirname "$input")" -I dialect/ir -I "$LLVM_PREFIX/include" \
        "$input" -o "$work/page.md" || die "mlir-tblgen could not read $input"
    if ! cmp -s "$work/page.md" "$output"; then
        stale+=("$output")
        if [ "${1:-}" != --check ]; then
            mkdir -p "$(dirname "$output")"
            cp "$work/page.md" "$output"
        fi
    fi
done
# Each target writes a page of its own; the tests check that it is current.
if [ "${1:-}" != --check ]; then
    AXE_WRITE_DOCS=1 cargo test --quiet -p axe-nvidia -p axe-targets -- the_reference_page_is_the_table pages_of_targets_are_current >/dev/null || die "the targets' pages could not be written"
fi
if [ "${#stale[@]}" -eq 0 ]; then
    say "docs are current (${#PAGES[@]} generated pages)"
elif [ "${1:-}" = --check ]; then
    die "out of date: ${stale[*]}" "Run 'make docs' and commit the result."
else
    say "written: ${stale[*]}"
fi
