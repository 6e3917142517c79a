#!/bin/sh
# Builds and runs every benchmark of bench/, one after the other (never two at once: they measure the machine).
# Environment: BUILD (build), JOBS.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
names=$(for file in bench/bench_*.c; do basename "$file" .c; done)
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target plimsoll bench/all
[ ! -e bench/run.sh ] || exec env BUILD="$build" bench/run.sh
status=0
for name in $names; do
    echo "== $name"
    "$build/bench/$name" || status=1
done
echo "== control"
code=0
python3 -B bench/control.py --plimsoll "$build/plimsoll" || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || status=1
exit $status
