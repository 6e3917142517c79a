#!/bin/sh
# Is one unsteady test listed and not fatal, and a failing one fatal? test_rerun.sh TOOLS FOLDER
# Runs tools/run-tree.sh and tools/test-summary.sh on a small suite: one test passes, one is skipped, one fails at its
# first try only, one always. Then with more failures than are worth another try.
set -eu
tools=$1
tree=$2
fail() { printf '%s\n%s\n' "$1" "$said"; exit 1; }

suite() { # CTest's lines on stdin
    rm -rf "$tree"
    mkdir -p "$tree"
    cat >"$tree/CTestTestfile.cmake"
    JOBS=2 "$tools/run-tree.sh" "$tree" >"$tree/log.txt" 2>&1
    code=0
    said=$("$tools/test-summary.sh" "$tree/junit.xml") || code=$?
    last=$(echo "$said" | tail -n 1)
}

suite <<'END'
add_test(good true)
add_test(absent sh -c "exit 77")
set_tests_properties(absent PROPERTIES SKIP_RETURN_CODE 77)
add_test(a/flaky sh -c "test -e mark || { touch mark; echo '<first> & words'; exit 1; }; echo second words")
END
[ "$last" = "2 passed, 0 failed, 1 skipped" ] && [ $code = 0 ] || fail "an unsteady test is to count as passed (exit $code)"
echo "$said" | grep -A1 '^Unsteady' | grep -q 'a/flaky' || fail "the unsteady test is not listed"
[ "$(cat "$tree/again/a/flaky.first.txt")" = "<first> & words" ] || fail "the first output is not kept: $(cat "$tree/again/a/flaky.first.txt")"
[ "$(cat "$tree/again/a/flaky.second.txt")" = "second words" ] || fail "the second output is not kept: $(cat "$tree/again/a/flaky.second.txt")"

suite <<'END'
add_test(good true)
add_test(bad false)
add_test(gone ./there-is-no-such-program)
END
[ "$last" = "1 passed, 2 failed" ] && [ $code = 1 ] || fail "what fails twice has failed, and so has what is not there (exit $code)"
echo "$said" | grep -q '^Unsteady' && fail "nothing here is unsteady"

suite <<END
$(for i in $(seq 21); do echo "add_test(bad$i sh -c \"test -e $i || { touch $i; exit 1; }\")"; done)
END
[ "$last" = "0 passed, 21 failed" ] && [ $code = 1 ] || fail "twenty-one failures are no unsteadiness (exit $code)"
rm -rf "$tree"
