#!/usr/bin/env bash
# exports.sh LIBRARY PATTERN...: everything that the library exports matches one of the patterns, and each matches something.
set -euo pipefail
library="$1"
shift
symbols="$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u)"
others="$(printf '%s\n' "$symbols" | grep -vxE "$(IFS='|'; printf '%s' "$*")" || true)"
[ -z "$others" ] || { printf 'exported by %s:\n%s\n' "$library" "$others" >&2; exit 1; }
for pattern in "$@"; do
    # Not through a pipe: grep stops at the first one, and what writes to it would fail.
    grep -qxE "$pattern" <<<"$symbols" || { printf '%s exports no %s\n' "$library" "$pattern" >&2; exit 1; }
done
# An empty entry of the path is the current folder.
if grep -qE 'R(UN)?PATH.*(\[:|::|:\]|\[\])' <<<"$(readelf -d "$library")"; then
    printf '%s has an empty entry in its run path\n' "$library" >&2
    exit 1
fi
