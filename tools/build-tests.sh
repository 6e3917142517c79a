#!/bin/sh
# Configures a build folder with the tests and builds all of it, warnings being errors:
#   tools/build-tests.sh FOLDER [CMAKE-OPTION…]            -DPL_BUILD_BENCHES=ON: the benchmarks, too
# Environment: JOBS, CMAKE_OPTIONS (what the caller of make gave, -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF for example).
set -eu
cd "$(dirname "$0")/.."
folder=$1
shift
benches=
case " $* " in *" -DPL_BUILD_BENCHES=ON "*) benches=bench/all ;; esac
# shellcheck disable=SC2086
cmake -S . -B "$folder" -G Ninja --log-level=WARNING -DPL_BUILD_TESTS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
    ${CMAKE_OPTIONS:-} "$@"
# shellcheck disable=SC2086
cmake --build "$folder" -j "${JOBS:-$(nproc)}" --target all tests/all $benches
# Programs of tests that are no more would be taken for tests.
cmake --build "$folder" -- -t cleandead >/dev/null
