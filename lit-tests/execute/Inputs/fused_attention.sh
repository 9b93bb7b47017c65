# fused_attention.sh AXE AXE_OPT PYTHON SCRIPT FOLDER OPTIONS...: one kernel, and its results.
set -e
axe=$1 opt=$2 folder=$5
shift 2
rm -rf "$folder"
"$@"
if [ -n "$PLAN" ]; then
  # The second product is the one whose operands are not transposed.
  "$opt" "$folder/module.mlir" --axe-nvidia="target=sm_90a until=logical" | sed "/axe.gemm/{/trans_b/!s/ : / {axe.plan = $PLAN} : /}" > "$folder/asked.mlir"
  mv "$folder/asked.mlir" "$folder/module.mlir"
fi
"$axe" compile "$folder/module.mlir" --target sm_90a -o "$folder/package.axe" | tee "$folder/log"
grep -q ": ${KERNELS:-1} kernels" "$folder/log"
inputs=()
for file in "$folder"/arg*.npy; do
  inputs+=(--input "$(basename "$file" .npy)=$file")
done
expected=()
for file in "$folder"/out*.npy; do
  expected+=(--expect "$(basename "$file" .npy)=$file")
done
"$axe" sim "$folder/package.axe" "${inputs[@]}" "${expected[@]}" --check --schedules "${SCHEDULES:-1}" ${TOLERANCE:+--tolerance "$TOLERANCE"}
