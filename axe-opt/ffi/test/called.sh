#!/usr/bin/env bash
# called.sh SOURCE HEADER...: the source calls every function that the headers declare.
set -euo pipefail
source="$1"
shift
# The names before a parenthesis, outside of comments and macros.
names() {
    perl -0777 -pe 's{/\*.*?\*/}{ }gs; s{^\s*#.*$}{}gm' "$@" | grep -oE '\b(axe[A-Za-z_]*|mlirGetDialectHandle__axe__)[[:space:]]*\(' | tr -d '( ' | sort -u
}
# The dialect's handle is declared by a macro of MLIR's.
declared="$(names "$@"; grep -hoE 'MLIR_DECLARE_CAPI_DIALECT_REGISTRATION\(Axe, axe\)' "$@" | sed 's/.*/mlirGetDialectHandle__axe__/' || true)"
[ -n "$declared" ] || { echo "no function is declared by $*" >&2; exit 1; }
missing="$(comm -23 <(printf '%s\n' "$declared" | sort -u) <(names "$source"))"
[ -z "$missing" ] || { printf '%s does not call:\n%s\n' "$source" "$missing" >&2; exit 1; }
printf '%s functions are called\n' "$(printf '%s\n' "$declared" | sort -u | wc -l)"
