#!/bin/sh
# Property tests with fresh seeds for SOAK_MINUTES (30), in the plain and in the sanitizer tree by turns, after each
# round a search with every fuzz target (20 seconds each, going on from what was found before), at the end the tests that
# are labelled soak and the environments (run-environments.sh). In less than 30 minutes these long ones are shorter, too:
# one in 100 of their cases (PLIMSOLL_SOAK_SHARE), and two of the environments' trees, drawn by the seed. A failure prints
# the command that repeats it, and the search goes on.
# A property test takes the seed as its first argument (or reads PLIMSOLL_TEST_SEED); those without a seed run once.
# Environment: SOAK_MINUTES, SOAK_SEED (where to begin; the clock), BUILD, JOBS, CMAKE_OPTIONS, NO_INSTALL.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
seed=${SOAK_SEED:-$(date +%s)}

tools/install-dependencies.sh build test soak
for tree in "$build" "$build-san"; do
    sanitize=OFF
    [ "$tree" = "$build" ] || sanitize=ON
    JOBS=$jobs tools/build-tests.sh "$tree" -DPL_SANITIZE=$sanitize
done

fuzzer=yes
tools/has-fuzzer.sh || fuzzer=

until=$(($(date +%s) + ${SOAK_MINUTES:-30} * 60)) # the builds do not count
log=$build/soak.log
round=0
runs=0
failures=0

has_time() { [ $round = 0 ] || [ "$(date +%s)" -lt "$until" ]; } # the first round is a whole one

try() { # one test: a program and, of a folder's program, the file
    has_time || return 0
    runs=$((runs + 1))
    if ! PLIMSOLL_TEST_SEED=$seed timeout 900 "$@" "$seed" >"$log" 2>&1 </dev/null; then
        failures=$((failures + 1))
        tail -n 20 "$log"
        echo "FAILED; to repeat: PLIMSOLL_TEST_SEED=$seed $* $seed"
    fi
}

while has_time; do
    for program in "$build"/tests/property_* "$build-san"/tests/property_*; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        case ${program##*/} in
        *_test_*) try "$program" ;; # a file that is a program of its own (tests_alone in tests/CMakeLists.txt)
        *)
            names=$("$program" --list)
            for name in $names; do try "$program" "$name"; done
            ;;
        esac
    done
    if [ -n "$fuzzer" ] && has_time; then
        runs=$((runs + 1))
        FUZZ_SECONDS=20 FUZZ_SEED=$seed tools/run-fuzz.sh || failures=$((failures + 1))
    fi
    seed=$((seed + 1))
    round=$((round + 1))
    echo "$runs runs, $failures failed, next seed $seed"
done
# Property tests whose cases are fixed take a seed for the one case to run: here they run whole, in both trees.
[ "${SOAK_MINUTES:-30}" -ge 30 ] || export PLIMSOLL_SOAK_SHARE="${PLIMSOLL_SOAK_SHARE:-100}"
for tree in "$build" "$build-san"; do
    ctest --test-dir "$tree" -j "$jobs" -L '^soak$' --output-on-failure || failures=$((failures + 1))
done
environments=
[ "${SOAK_MINUTES:-30}" -ge 30 ] || environments="table $(tools/run-environments.sh draw 2 "$seed")"
tools/run-environments.sh $environments || failures=$((failures + 1))
echo "$runs runs, $failures failed"
[ "$failures" = 0 ]
