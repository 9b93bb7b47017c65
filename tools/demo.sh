#!/usr/bin/env bash
# The road in one go: an MLP exported from PyTorch, which schedule each of its operators gets, machine code for sm_90a, a run
# (on a GPU when there is one, in the simulator otherwise) beside numpy, and the picture of a layout.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
out="$BUILD_DIR/demo"
model=mlp_f16
rm -rf "$out"
mkdir -p "$out/data"

step 1/5 "build the drivers"
tools/build.sh

step 2/5 "what becomes of examples/models/$model.mlir: kernels, and the schedule of each operator"
"$BIN_DIR/axe" explain "examples/models/$model.mlir" --target sm_90a 2>"$out/decisions.txt"
grep -E '^kernel|^  axe' "$out/decisions.txt" | sed -E 's/ +loc\(.*//' | uniq -c | sed -E 's/^ *1 //; s/^ *([0-9]+) (.*)/\2 (\1 times)/'
say "      with every plan and decline: $out/decisions.txt"

step 3/5 "compile it for sm_90a"
"$BIN_DIR/axe" compile "examples/models/$model.mlir" --target sm_90a -o "$out/$model.axe"

step 4/5 "run it on random inputs, and compare with numpy"
python3 examples/models/reference.py inputs "$model" "$out/data" >"$out/inputs.txt"
inputs=()
number=0
while read -r file; do
    inputs+=(--input "arg$number=$file")
    number=$((number + 1))
done < <(grep -oE "[^ ]+\.npy" "$out/inputs.txt")
if [ -e /dev/nvidiactl ]; then
    "$BIN_DIR/axe" run "$out/$model.axe" "${inputs[@]}" --check --out "$out"
else
    say "      no NVIDIA GPU here: the simulator executes the PTX, with every check on, beside the CPU reference"
    "$BIN_DIR/axe" sim "$out/$model.axe" "${inputs[@]}" --check --out "$out"
fi
python3 examples/models/reference.py check "$model" "$out/data" "$out/out0.npy"

step 5/5 "a picture: where the tensor cores leave an accumulator"
"$BIN_DIR/axe" layout svg 'S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]' --shape 8,8 -o "$out/mma-accumulator.svg"
say "      $out/mma-accumulator.svg"
