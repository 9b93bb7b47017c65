#!/bin/sh
# Instructions a call of each operation, averaged over the forty layouts, counted by callgrind: the
# difference between 11 rounds and 1 round, so that start and parsing cancel.
# Usage: dialect/layout/benches/instructions.sh    (from the root of the tree; needs valgrind)
set -eu
bench=$(CARGO_PROFILE_BENCH_DEBUG=0 cargo bench -q -p axe-layout --bench layouts --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*layouts-[^"]*\)".*/\1/p' | tail -1)
rounds() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" count "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
for operation in canonicalize equality group apply slice tile tile_of tile_of_outer; do
    one=$(rounds "$operation" 1)
    eleven=$(rounds "$operation" 11)
    echo "$operation $(((eleven - one) / 400))"
done
