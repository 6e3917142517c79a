#!/bin/sh
# Builds and runs every benchmark of bench/, one after the other (never two at once: they measure the machine), then the
# control. Exit: 0 when all of them ended well; otherwise 1, and the last line names those that did not.
# Environment: BUILD (build), JOBS; OMP_WAIT_POLICY or GOMP_SPINCOUNT, how long a thread spins before it sleeps.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
failed=

# As long as in the command's own runs (src/base/process_exec.c): libgomp would spin away what others need to go on.
[ -n "${OMP_WAIT_POLICY:-}" ] || export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-2000}"

run() { # name, command…
    name=$1
    shift
    code=0
    echo "== $name"
    "$@" || code=$?
    [ "$code" -eq 0 ] || [ "$name,$code" = control,77 ] || failed="$failed $name (exit $code)"
}

cmake --build "$build" -j "${JOBS:-$(nproc)}" --target plimsoll bench/all
for source in bench/bench_*.c; do
    name=$(basename "$source" .c)
    run "$name" "$build/bench/$name"
done
if command -v python3 >/dev/null; then
    run control python3 -B bench/control.py --plimsoll "$build/plimsoll"
else
    echo "== control: skipped, there is no python3"
fi
[ -z "$failed" ] || { echo "Failed:$failed" && exit 1; }
