#!/usr/bin/env bash
# Runs the test suites named, or all of them, and closes with one line of totals:
#   rust    unit, property and documentation tests of the workspace, the example in Rust
#   lit     lit-tests/ through axe-opt
#   stock   lit-tests/ through a stock mlir-opt that loads the plugin
#   capi    the C API compiled as C, and a project that finds the CMake package
#   python  the wheel in a fresh environment, the example's notebook, and the snippets of docs/ that are marked as executed
# A suite that fails does not stop the others; the exit status does say so.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

# One selection for every build of a test run: cargo unifies features over what it is asked to build, and would compile
# half of the workspace a second time for the binaries alone.
export AXE_CARGO_SELECTION="--workspace --all-targets"
CARGO_SELECTION="$AXE_CARGO_SELECTION"

ALL=(rust lit stock capi python)
passed=0 failed=0 skipped=0 broken=()
mkdir -p "$BUILD_DIR/logs"

# Adds the numbers that a log's closing lines report: count LABEL-OF-TOTAL PATTERN LOG.
count() {
    local total
    total="$(sed -nE "s/$2/\1/p" "$3" | awk '{ n += $1 } END { print n + 0 }')"
    printf -v "$1" '%d' "$((${!1} + total))"
}

run_logged() {
    local log="$1"
    shift
    "$@" </dev/null 2>&1 | tee "$log"
}

suite_rust() {
    local log="$BUILD_DIR/logs/rust.log" doc="$BUILD_DIR/logs/rustdoc.log" status=0
    if cargo nextest --version >/dev/null 2>&1; then
        run_logged "$log" cargo nextest run --workspace --cargo-profile "$PROFILE" --no-fail-fast || status=1
        count passed '.*Summary .* ([0-9]+) passed.*' "$log"
        count failed '.*Summary .* ([0-9]+) failed.*' "$log"
        count skipped '.*Summary .* ([0-9]+) skipped.*' "$log"
    else
        run_logged "$log" cargo test --workspace --profile "$PROFILE" --lib --bins --tests --no-fail-fast || status=1
        count passed '^test result: .* ([0-9]+) passed.*' "$log"
        count failed '^test result: .* ([0-9]+) failed.*' "$log"
        count skipped '^test result: .* ([0-9]+) ignored.*' "$log"
    fi
    run_logged "$doc" cargo test --workspace --profile "$PROFILE" --doc --no-fail-fast || status=1
    count passed '^test result: .* ([0-9]+) passed.*' "$doc"
    count failed '^test result: .* ([0-9]+) failed.*' "$doc"
    # The tests have not linked every program; the suites that follow want them too.
    { tools/build.sh && example embed-rust examples/embed-rust/run.sh "$BIN_DIR/embed-rust"; } || status=1
    return "$status"
}

# example NAME COMMAND...: one test, of an example of embedding.
example() {
    local name="$1"
    shift
    if run_logged "$BUILD_DIR/logs/$name.log" "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        return 1
    fi
}

# lit_suite DRIVER LOG: one of the two configurations of lit-tests/.
lit_suite() {
    local log="$2" status=0
    run_logged "$log" "$LLVM_PREFIX/bin/lit" -v --time-tests -j "$JOBS" --param "driver=$1" \
        --param "bin_dir=$BIN_DIR" --param "build_dir=$BUILD_DIR" --param "llvm_prefix=$LLVM_PREFIX" lit-tests || status=1
    count passed '^ *Passed *: *([0-9]+).*' "$log"
    count failed '^ *Failed *: *([0-9]+).*' "$log"
    count failed '^ *Unresolved *: *([0-9]+).*' "$log"
    count skipped '^ *Unsupported *: *([0-9]+).*' "$log"
    return "$status"
}

suite_lit() {
    tools/build.sh && lit_suite axe-opt "$BUILD_DIR/logs/lit.log"
}

suite_stock() {
    tools/plugin.sh && lit_suite stock "$BUILD_DIR/logs/lit-stock.log"
}

suite_capi() {
    local log="$BUILD_DIR/logs/capi.log" status=0
    tools/plugin.sh || return 1
    run_logged "$log" ctest --test-dir "$BUILD_DIR" --output-on-failure --no-tests=error || status=1
    count failed '.* ([0-9]+) tests? failed out of [0-9]+.*' "$log"
    count passed '.* tests? failed out of ([0-9]+).*' "$log"
    passed=$((passed - $(sed -nE 's/.* ([0-9]+) tests? failed out of [0-9]+.*/\1/p' "$log" | tail -n 1 | grep . || echo 0)))
    return "$status"
}

# A fresh environment with the wheel, NumPy (of .deps), and a driver that writes down what it is asked for.
python_environment() {
    local venv="$1"
    rm -rf "$venv"
    python3 -m venv --without-pip "$venv" || return 1
    "$(python_with_pip)" -m pip --python "$venv/bin/python" install --quiet --no-index --no-deps \
        "$BUILD_DIR"/wheels/axe_mlir-*.whl || return 1
    mkdir -p "$venv/driver"
    "$LLVM_PREFIX/bin/clang" -shared -fPIC -w targets/runtime/capi/test/fake_cuda.c -o "$venv/driver/libcuda.so.1"
}

suite_python() {
    local log="$BUILD_DIR/logs/python.log" docs="$BUILD_DIR/logs/docs.log" venv="$BUILD_DIR/venv" status=0
    { tools/wheel.sh && python_environment "$venv"; } || return 1
    AXE_FAKE_CUDA="$venv/driver" run_logged "$log" "$venv/bin/python" -m unittest discover -s python/tests || status=1
    local ran=0 bad=0 left=0
    count ran '^Ran ([0-9]+) tests? in .*' "$log"
    count bad '^FAILED \(.*failures=([0-9]+).*' "$log"
    count bad '^FAILED \(.*errors=([0-9]+).*' "$log"
    count left '.*skipped=([0-9]+)\)$' "$log"
    passed=$((passed + ran - bad - left)) failed=$((failed + bad)) skipped=$((skipped + left))
    run_logged "$docs" "$venv/bin/python" tools/check_docs.py run || status=1
    passed=$((passed + $(grep -c '^ok ' "$docs" || true)))
    failed=$((failed + $(grep -c '^FAILED ' "$docs" || true)))
    example embed-python "$venv/bin/python" tools/notebook.py run examples/embed-python/*.ipynb || status=1
    return "$status"
}

suites=("$@")
[ "${#suites[@]}" -gt 0 ] || suites=("${ALL[@]}")
number=0
for suite in "${suites[@]}"; do
    number=$((number + 1))
    declare -F "suite_$suite" >/dev/null || die "no test suite '$suite'; there are: ${ALL[*]}"
    step "$number/${#suites[@]}" "$suite"
    # A test that is killed or cannot start leaves no count: the suite is named as broken all the same.
    "suite_$suite" || broken+=("$suite")
done
if [ "${#broken[@]}" -gt 0 ]; then
    [ "$failed" -gt 0 ] || failed=1
    say "failed: ${broken[*]} (logs: $BUILD_DIR/logs)"
fi
say "$passed passed, $failed failed, $skipped skipped"
[ "${#broken[@]}" -eq 0 ] && [ "$failed" -eq 0 ]
