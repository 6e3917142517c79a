#!/bin/sh
# Builds the libFuzzer targets and searches with each for FUZZ_SECONDS (60), beginning with what earlier searches found
# (kept in BUILD-fuzz/found). A target's name as argument runs that one alone. A failure prints the command that
# repeats it.
# Environment: FUZZ_SECONDS, FUZZ_SEED (the clock), BUILD, JOBS, CMAKE_OPTIONS, NO_INSTALL.
set -eu
cd "$(dirname "$0")/.."
tree=$(realpath -m "${BUILD:-build}-fuzz")
jobs=${JOBS:-$(nproc)}

tools/install-dependencies.sh build test soak
tools/has-fuzzer.sh
JOBS=$jobs tools/build-tests.sh "$tree" -DPL_FUZZ=ON -DCMAKE_C_COMPILER=clang
FUZZ_SECONDS=${FUZZ_SECONDS:-60} FUZZ_SEED=${FUZZ_SEED:-$(date +%s)} FUZZ_KEEP=$tree/found \
    ctest --test-dir "$tree" -j "$jobs" --timeout 1000000 --output-on-failure --no-tests=error -R "^fuzz/${1:-}"
