#!/usr/bin/env bash
# header.sh HEADER LIBRARY: the library exports the functions that the header declares, no more and no fewer.
set -euo pipefail
declared="$(sed 's|/\*.*\*/||' "$1" | grep -oE '\baxe(_[a-z_]+|rt[A-Z][A-Za-z]*)\(' | tr -d '(' | sort -u)"
exported="$(nm -D --defined-only "$2" | awk '{ print $NF }' | sort -u)"
diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported") || {
    echo "<: declared by $1 alone; >: exported by $2 alone" >&2
    exit 1
}
