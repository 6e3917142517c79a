#!/bin/sh
# The important tests in every environment: tools/run-environments.sh [table] [TREE…]
#   table    the build folder as it is: everything of tests/environments, with the unit programs in each environment
#   TREE     a compiler and its options, from the list below (gcc-O0 … clang-O3, gcc-lto, …), in a build folder of its own:
#            compiled with -Werror; unit, gradient, command, learning, memory tests and the brief table
#   draw N SEED      only prints N trees, drawn by the seed
# Without a word: all of them, about an hour on two cores. One line each; the exit status is 1 when one failed.
# Environment: BUILD (build; trees are in BUILD-matrix), JOBS, CMAKE_OPTIONS, NO_INSTALL.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
# name | compiler | options of everything | of the kernels, which are never without optimisation (src/kernels/kernels.cmake)
trees='
gcc-O0|gcc|-O0|-O1
gcc-O1|gcc|-O1|-O1
gcc-O2|gcc|-O2|-O2
gcc-O3|gcc|-O3|-O3
gcc-lto|gcc|-O2 -flto=auto -ffat-lto-objects -Werror|-O3
gcc-native|gcc|-O3 -march=native|-O3
gcc-ndebug|gcc|-O2 -DNDEBUG|-O3
clang-O0|clang|-O0|-O1
clang-O1|clang|-O1|-O1
clang-O2|clang|-O2|-O2
clang-O3|clang|-O3|-O3
clang-native|clang|-O3 -march=native|-O3
'
important='^(unit/.*|property/grad/.*|property/backend/.*|cli/(train|interrupted|errors)|learning/.*|budget/(random|seccomp|heap|bits|faults)|environments)$'
failed=0

if [ "${1:-}" = draw ]; then
    [ $# = 3 ] || { echo "draw N SEED" >&2; exit 2; }
    echo "$trees" | cut -d'|' -f1 | xargs -n1 | awk -v n="$2" -v seed="$3" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -g |
        cut -f2 | head -n "$2" | xargs
    exit 0
fi

say() { printf '%-14s %-8s %5d s  %s\n' "$1" "$2" "$3" "$4"; }

build_tree() { # folder, compiler, options, options of the kernels
    JOBS=$jobs tools/build-tests.sh "$1" -DCMAKE_C_COMPILER="$2" -DCMAKE_BUILD_TYPE=Matrix \
        -DCMAKE_C_FLAGS_MATRIX="$3" -DPL_KERNEL_OPTIMIZATION="$4"
}

run_tree() { # name, compiler, options, options of the kernels
    started=$(date +%s)
    folder=$build-matrix/$1
    log=$folder/environments.log
    if ! command -v "$2" >/dev/null 2>&1; then
        say "$1" skipped 0 "there is no $2"
        return
    fi
    mkdir -p "$folder"
    if ! build_tree "$folder" "$2" "$3" "$4" >"$log" 2>&1; then
        verdict=FAILED words="the build: $log"
    elif ctest --test-dir "$folder" -j "$jobs" --no-tests=error --output-on-failure -R "$important" >"$log" 2>&1; then
        verdict=passed words=$(grep 'tests passed' "$log")
    else
        verdict=FAILED words="$(grep 'tests passed' "$log"): $log"
    fi
    [ "$verdict" = passed ] || failed=1
    say "$1" "$verdict" $(($(date +%s) - started)) "$words"
}

run_table() {
    JOBS=$jobs tools/build-tests.sh "$build" >/dev/null
    python3 -B tests/environments/environments.py --plimsoll "$build/plimsoll" --full --units "$build/tests" \
        --thp-always "$build/tests/support/process/thp_always" --host "$build/tests/environments/environments_host" || failed=1
}

tools/install-dependencies.sh build test soak
[ $# -gt 0 ] || set -- table $(echo "$trees" | cut -d'|' -f1)
for word in "$@"; do
    if [ "$word" = table ]; then
        run_table
        continue
    fi
    row=$(echo "$trees" | grep "^$word|") || { echo "$word: no such tree; there are: table $(echo "$trees" | cut -d'|' -f1 | xargs)" >&2; exit 2; }
    IFS='|' read -r name compiler options kernels <<ROW
$row
ROW
    run_tree "$name" "$compiler" "$options" "$kernels"
done
exit $failed
