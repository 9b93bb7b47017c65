#!/usr/bin/env bash
# run.sh PROGRAM: what this project needs is found in a copy of it outside of the repository, offline, and its program, built
# there or in the repository's workspace, runs there.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
program="$(realpath "$1")"
copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
cp -r "$here/Cargo.toml" "$here/src" "$here/.cargo" "$root/rust-toolchain.toml" "$root/Cargo.lock" "$copy"
# Users name versions or their own paths.
sed -i "s|path = \"../../|path = \"$root/|" "$copy/Cargo.toml"
cd "$copy"
# Crates of other platforms have not been downloaded.
host="$(rustc -vV | sed -n 's/^host: //p')"
cargo metadata --offline --filter-platform "$host" --format-version 1 >/dev/null
printed="$("$program")"
printf '%s\n' "$printed"
grep -q "the kernel computes relu(x + y)" <<<"$printed"
grep -q "^kernels: 1$" <<<"$printed"
grep -q "axe.copy: ld.vector" <<<"$printed"
