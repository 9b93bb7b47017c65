# attention_gradients.sh AXE PYTHON SCRIPT FOLDER OPTIONS: compiles and simulates a graph; the kernel of gradients is one of the package's.
# KERNELS are the names of all of them, where they are looked at.
set -e
axe=$1 python=$2 script=$3 folder=$4; shift 4
rm -rf "$folder"; "$python" "$script" "$folder" "$@"
"$axe" compile "$folder/graph.mlir" --target sm_90a -o "$folder/p.axe"
kernels=$("$axe" info "$folder/p.axe" | sed -n 's/^kernel main_[0-9]*_\([a-z_]*\):.*/\1/p' | xargs)
case " $kernels " in *" ${KERNELS-gradients} "*) ;; *) echo "expected the kernels ${KERNELS-gradients}, got $kernels" >&2; exit 1 ;; esac
given=()
for x in "$folder"/arg*.npy; do name=${x##*/}; given+=(--input "${name%.npy}=$x"); done
for x in "$folder"/out*.npy; do name=${x##*/}; given+=(--expect "${name%.npy}=$x"); done
"$axe" sim "$folder/p.axe" "${given[@]}" --check --schedules 2
