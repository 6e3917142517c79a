#!/bin/sh
# Runs the tests of a build folder: tools/run-tree.sh FOLDER [CTEST-OPTION…]
# Writes FOLDER/junit.xml. What failed runs once more, alone, into FOLDER/again.xml, and both outputs of it are kept in
# FOLDER/again/NAME.first.txt and .second.txt (how it ended at first: FOLDER/again/first.log): what passes then is unsteady,
# says tools/test-summary.sh. When more than twenty failed, something is broken rather than unsteady, and nothing runs
# again. Exit: 0, whatever the tests say.
# Environment: JOBS.
set -eu
folder=$(cd "$1" && pwd)
shift
most=20
rm -rf "$folder/junit.xml" "$folder/again.xml" "$folder/again"

# "name" of each test of a report that failed, in JUnit form, as CTest writes it: one tag a line.
failed_of() {
    awk '/<testcase / { match($0, / name="[^"]*"/); name = substr($0, RSTART + 7, RLENGTH - 8) }
         /<failure / { print name }' "$1"
}

output_of() { # report, name
    awk -v name="$2" '
    /<testcase / { inside = index($0, " name=\"" name "\"") }
    inside && /<system-out>/ { printing = 1; sub(/.*<system-out>/, "") }
    inside && /<\/system-out>/ { sub(/<\/system-out>.*/, ""); if ($0 != "") print; printing = 0 }
    inside && printing' "$1" | sed -e 's/&lt;/</g' -e 's/&gt;/>/g' -e 's/&quot;/"/g' -e "s/&apos;/'/g" -e 's/&amp;/\&/g'
}

run() { # report, CTest's options
    report=$1
    shift
    ctest --test-dir "$folder" --output-junit "$report" --test-output-size-passed 1000000 --test-output-size-failed 1000000 "$@" || true
}

run "$folder/junit.xml" -j "${JOBS:-$(nproc)}" --output-on-failure --no-tests=error "$@"
[ -e "$folder/junit.xml" ] || exit 0
failed=$(failed_of "$folder/junit.xml")
count=$(printf '%s' "$failed" | grep -c . || true)
[ "$count" -gt 0 ] || exit 0
if [ "$count" -gt "$most" ]; then
    echo "$count tests failed: more than $most, so none runs again"
    exit 0
fi
echo "$count failed; once more, alone:"
mkdir -p "$folder/again"
cp "$folder/Testing/Temporary/LastTest.log" "$folder/again/first.log" 2>/dev/null || true # how each ended: a time-out, a signal
run "$folder/again.xml" --rerun-failed -j 1 -V
for name in $failed; do
    mkdir -p "$(dirname "$folder/again/$name")"
    output_of "$folder/junit.xml" "$name" >"$folder/again/$name.first.txt"
    output_of "$folder/again.xml" "$name" >"$folder/again/$name.second.txt"
done
