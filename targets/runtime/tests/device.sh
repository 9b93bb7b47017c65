#!/usr/bin/env bash
# Proves axe-run on a machine with a Hopper GPU. Arguments: the binary, the folder that the example
# `samples` wrote. Ends with 0 if every case that must pass passes and every other fails as it should.
set -u
run=$1 folder=$2
fault=0
expect() { # expected exit code, command...
    local want=$1 got; shift
    "$@"; got=$?
    if [ "$got" != "$want" ]; then echo "UNEXPECTED exit code $got, expected $want: $*"; fault=1; fi
}
cd "$folder" || exit 1
expect 0 "$run" info tma.axe
expect 0 "$run" saxpy.axe --dim N=1000 --expect out=saxpy.npy --out out
expect 0 "$run" saxpy.axe --dim N=1000 --input y=random:1 --expect out=out/out.npy --json
expect 0 "$run" saxpy-cubin.axe --dim N=1000000 --time --repeat 30
expect 0 "$run" tma.axe --input a=tma.npy --expect b=tma.npy --time
expect 1 "$run" saxpy.axe --dim N=1000 --input x=random:3 --expect out=saxpy.npy
expect 1 "$run" one-too-many.axe
expect 5 "$run" fault.axe
expect 4 "$run" blackwell.axe --dim N=10
expect 3 "$run" wrong-params.axe --dim N=10
expect 4 "$run" saxpy.axe --dim N=10 --device 99
"$run" batch cases.txt > batch.log; cat batch.log
tail -1 batch.log | grep -qx '9 passed, 7 failed' || { echo "UNEXPECTED batch summary"; fault=1; }
yes 'saxpy-cubin.axe --dim N=1000 --expect out=saxpy.npy' | head -500 > many.txt
time expect 0 "$run" batch --quiet many.txt
expect 0 "$run" bench gemm --case 8192,8192,8192,bf16 --case 4096,4096,4096,f16,nn --case 1024,1024,1024,f16,nt,gemm.axe \
    --case 1000,520,264,f16,nt,gemm.axe --case 640,2048,512,f16,nt,gemm.axe --case 1,4096,4096,bf16 --json bench.json --plot bench.svg
expect 0 "$run" bench gemm --suite llm --only 8B --ms 2000
expect 0 "$run" bench gemm-fp8 --case 4096,4096,7168,e4m3-tensor --case 4096,4096,7168,e4m3-row --case 4096,4096,7168,e4m3-block --case 1000,1040,1040,e4m3-block
expect 0 "$run" tune --case 1024,1024,1024,f16,nt,gemm.axe --case 1000,520,264,f16,nt,gemm.axe --out tuned.json
cat tuned.json
expect 0 "$run" tune --case 1024,1024,1024,f16,nt,gemm.axe --out tuned.json --resume
[ "$fault" = 0 ] && echo "device test passed"
exit "$fault"
