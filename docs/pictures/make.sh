#!/bin/sh
# Draws the pictures of docs/layouts.md with the layout tools:
#   cargo build --release -p axe-layout && docs/pictures/make.sh [path to axe-layout]
set -eu
tool=${1:-target/release/axe-layout}
out=$(dirname "$0")
fragment='S[(8, 2, 4, 2) : (4@lane, 1@warp, 1@lane, 1@reg)] + R[2 : 4@warp] + 5@warp'
wgmma='S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]'

"$tool" svg 'S[(4, 8) : (8, 1)]' --shape 4,8 --caption 'Row-major' -o "$out/row-major.svg"
"$tool" svg 'S[(4, 8) : (1, 4)]' --shape 4,8 --caption 'Column-major' -o "$out/column-major.svg"
"$tool" svg "$fragment" --shape 8,16 --caption 'D, R and O: a tensor-core tile over two warps, held twice' -o "$out/fragment.svg"
"$tool" svg 'S[(2, 4, 2, 4) : (32, 4, 16, 1)]' --shape 8,8 --caption 'A 2x2 grid of 4x4 tiles' -o "$out/tiled.svg"
"$tool" svg "$wgmma" --shape 64,64 --caption 'wgmma m64n64: the accumulator of a warpgroup' -o "$out/wgmma.svg"
"$tool" svg 'S[(8, 64) : (64, 1)]' --shape 8,64 --banks 2 --memory --caption 'Eight rows of 64 halves: every chunk 0 in banks 0 to 3' -o "$out/banks-plain.svg"
"$tool" svg 'Sw<3,3,3> o S[(8, 64) : (64, 1)]' --shape 8,64 --banks 2 --memory --caption 'The same rows under Sw<3,3,3>: no two chunks of a column meet' -o "$out/banks-swizzled.svg"
"$tool" svg 'S[(2, 8, 2, 16) : (2@gpu, 16, 1@gpu, 1)]' --shape 16,32 --caption 'S0S1 over a 2x2 mesh' -o "$out/mesh-sharded.svg"
"$tool" svg 'S[(2, 8, 32) : (2@gpu, 32, 1)] + R[2 : 1@gpu]' --shape 16,32 --caption 'S0R: rows are split, columns are copied' -o "$out/mesh-copied.svg"
"$tool" svg 'S[(2, 16, 8) : (8@F, 1@P, 1@F)]' --shape 32,8 --owner P --caption 'A tile on Trainium: 16 partitions of 16 elements' -o "$out/trn-tile.svg"
"$tool" svg 'Sw<3,3,3> o S[(128, 128) : (128, 1)]' --shape 128,128 --banks 2 --caption 'Banks of a swizzled 128x128 tile of halves' -o "$out/banks-128.svg"
