#!/bin/sh
# Runs one libFuzzer target: run.sh PROGRAM SEED-FOLDER…
# First every seed and regression, then new inputs. An input that breaks a promise is left in the folder of the program's
# build tree, fuzz-failures/, and the command that repeats it is printed.
#   FUZZ_SECONDS  of searching (3)
#   FUZZ_SEED     of the random numbers (1: the same search in every run, as far as the seconds reach)
#   FUZZ_KEEP     a folder to keep new inputs in, one folder a target, so that the next search begins there
set -eu
program=$1
shift
target=$(basename "$program")
thing=${target#fuzz_}
here=$(cd "$(dirname "$0")" && pwd)
failures=$(dirname "$program")/fuzz-failures
mkdir -p "$failures"
if [ -n "${FUZZ_KEEP:-}" ]; then
    found=$FUZZ_KEEP/$thing
    mkdir -p "$found"
else
    found=$(mktemp -d)
    trap 'rm -rf "$found"' EXIT
fi
dictionary=
[ ! -e "$here/dictionaries/$thing.dict" ] || dictionary=-dict=$here/dictionaries/$thing.dict

# An input of some kilobytes may neither take a second nor 256 MB at once.
status=0
# shellcheck disable=SC2086
"$program" -seed="${FUZZ_SEED:-1}" -max_total_time="${FUZZ_SECONDS:-3}" -timeout=5 -rss_limit_mb=1024 \
    -malloc_limit_mb=256 -print_final_stats=1 -entropic_scale_per_exec_time=1 -artifact_prefix="$failures/$thing-" $dictionary \
    "$found" "$@" >"$failures/$thing.log" 2>&1 || status=$?
if [ "$status" = 0 ]; then
    awk '/DONE|stat::/' "$failures/$thing.log"
else
    grep -aE "\.c:[0-9]+|ERROR:|SUMMARY:|stat::" "$failures/$thing.log" | grep -v "^    #.*fuzzer::" | cut -c 1-400 |
        head -n 40
    echo "FAILED; to repeat: $program $(sed -n 's/.*Test unit written to //p' "$failures/$thing.log" | tail -n 1)"
fi
exit "$status"
