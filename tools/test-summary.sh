#!/bin/sh
# The end of a test run: tools/test-summary.sh FOLDER/junit.xml… [--failed-build=FOLDER]…
# Reads CTest's JUnit reports, prints the slowest tests, the failed and the skipped ones with the command that repeats
# them, and as the last line, alone, `N passed, N failed[, N skipped]`. What failed and passed when it ran once more,
# alone (FOLDER/again.xml, tools/run-tree.sh), counts as passed and is listed as unsteady. A report that is missing or was
# cut off counts as one failure: a suite that did not end has not passed; so does a test whose program is not there, which
# CTest itself calls "skipped". Exit: 0 when nothing failed and something passed.
set -eu
here=$(pwd)/

# One line a test: state|seconds|name|folder, state "unsteady" for what passed at its second try. What a test printed is
# escaped in the report, so it cannot look like a tag.
read_report() {
    folder=$(dirname "$1")
    report=$1
    [ -e "$report" ] || report=/dev/null
    again=$folder/again.xml
    [ -e "$again" ] || again=/dev/null
    awk -v folder="${folder#"$here"}" '
    function value(key) {
        if (!match($0, " " key "=\"[^\"]*\"")) return ""
        return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
    }
    /<testcase / { name = value("name"); state = value("status"); seconds = value("time") }
    /<skipped /  { if (value("message") !~ /^SKIP_/) state = "fail" }
    /<\/testcase>/ && FILENAME ~ /\/again\.xml$/ { second[name] = state; next }
    FILENAME ~ /\/again\.xml$/ { next }
    /<\/testcase>/ && state == "fail" && second[name] == "run" { state = "unsteady" }
    /<\/testcase>/  { printf "%s|%s|%s|%s\n", state, seconds, name, folder }
    /<\/testsuite>/ { ended = 1 }
    END { if (!ended) printf "fail|0|(the report is missing or cut off)|%s\n", folder }
    ' "$again" "$report"
}

cases=
for argument in "$@"; do
    case $argument in
    --failed-build=*) found="fail|0|(the build)|${argument#*=}" ;;
    *) found=$(read_report "$argument") ;;
    esac
    cases="$cases$found
"
done

show() { # state, heading
    found=$(printf '%s' "$cases" | awk -F'|' -v state="$1" '$1 == state { printf "  %s  in %s\n", $3, $4 }')
    [ -z "$found" ] || printf '%s\n%s\n' "$2" "$found"
}
count() { printf '%s' "$cases" | awk -F'|' -v state="$1" '$1 == state { n++ } END { print n + 0 }'; }

echo "Slowest tests, seconds:"
printf '%s' "$cases" | LC_ALL=C sort -t'|' -k2,2 -rg | awk -F'|' 'NR <= 10 && $2 > 0 { printf "%8.1f  %s  in %s\n", $2, $3, $4 }'
show notrun "Skipped (each says why: ctest --test-dir FOLDER -V -R '^NAME\$'):"
show disabled "Disabled:"
show unsteady "Unsteady: failed, and passed alone; a defect. What it printed: FOLDER/again/NAME.first.txt and .second.txt"
show fail "Failed (to repeat one: ctest --test-dir FOLDER -V -R '^NAME\$'):"

passed=$(($(count run) + $(count unsteady)))
failed=$(count fail)
skipped=$(($(count notrun) + $(count disabled)))
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
