#!/bin/sh
# The whole suite: tools/run-tests.sh [--quick]
#   build        unit, property, structure, cli, budget, golden, valgrind, install tests (labels: docs/testing.md)
#   build-san    the unit and some property programs under AddressSanitizer and UndefinedBehaviorSanitizer
# What is labelled soak runs in `make soak`, and so does the search with libFuzzer.
# What failed runs once more, alone: passing then, it counts as passed and is listed as unsteady (run-tree.sh).
# However it ends, the last line is `N passed, N failed[, N skipped]`, alone; a build that fails counts as one failure.
# Random cases are the same in each run, those of PLIMSOLL_TEST_SEED (1); `make soak` goes through new ones.
# Environment: BUILD (build), JOBS, CMAKE_OPTIONS, NO_INSTALL, PLIMSOLL_TEST_SEED.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
san=$build-san
jobs=${JOBS:-$(nproc)}
quick=${1:-}
case $build in *[[:space:]]*) echo "BUILD=\"$build\": the name of the build folder may have no blanks" >&2; exit 2 ;; esac
export PLIMSOLL_TEST_SEED="${PLIMSOLL_TEST_SEED:-1}"

fail_build() {
    echo "The build in $1 failed (above); its tests did not run." >&2
    reports="$reports --failed-build=$1"
}

run_tree() { # folder, CTest's options
    JOBS=$jobs tools/run-tree.sh "$@" || true
    reports="$reports $1/junit.xml"
}

started=$(date +%s)
reports=
if tools/install-dependencies.sh build test; then
    benches=-DPL_BUILD_BENCHES=ON
    [ "$quick" != --quick ] || benches=
    # shellcheck disable=SC2086
    if tools/build-tests.sh "$build" $benches; then
        if [ "$quick" = --quick ]; then run_tree "$build" -L '^(unit|structure)$'; else run_tree "$build" -LE '^soak$'; fi
    else
        fail_build "$build"
    fi
    if [ "$quick" != --quick ]; then
        if tools/build-tests.sh "$san" -DPL_SANITIZE=ON; then run_tree "$san" -LE '^soak$'; else fail_build "$san"; fi
    fi
else
    reports=--failed-build=dependencies
fi
echo "Whole run: $(($(date +%s) - started)) s"
# shellcheck disable=SC2086
exec tools/test-summary.sh $reports
