#!/bin/sh
# The demo: trains a language model of 5 million parameters on 24 MB of English, on all cores, in about five minutes.
#   tools/demo.sh TEXT            (`make demo` makes the text and builds; BUILD names the build folder)
# As many steps as are predicted to take 280 seconds, on a slow machine the 360 that the goal needs. Ends with 1 when the
# model is not at least 0.2 nat per token better on held-out text than a smoothed bigram model of the whole training text.
# DEMO_SECONDS bounds the training whatever the goal, DEMO_STEPS fixes its steps: with fewer than 360 nothing is judged.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
text=${1:-$build/demo/text.txt}
plimsoll=$build/plimsoll
out=$build/demo/run
cache=$build/demo/cache
budget=${DEMO_SECONDS:-280}
most=600
goal=360
least=$goal
[ -z "${DEMO_SECONDS:-}" ] || least=50

[ -r "$text" ] || { echo "demo: $text is not there; run make demo" >&2; exit 1; }

say() { printf '\n== %s\n' "$1"; }
clock() { date +%s; }
# The number behind "key": on one line of JSON.
number() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" | head -n 1; }

began=$(clock)
say "What this does"
cat <<END
A transformer language model (6 layers, width 256, 8 heads, sequence 128, vocabulary 788: 4,967,424 parameters) is trained
on $(wc -c <"$text") bytes of English, a dictionary, with AdamW at a learning rate of 1e-3, batch 32, on all cores. Before
the first step the plan says where every byte of the process will be; at the end the process is measured, mapping by
mapping, and both stand side by side. All files go to $out.
END

rm -rf "$out"
mkdir -p "$cache"
set -- examples/gpt.yaml --text "$text" --out "$out" --cache "$cache" --learning_rate 1e-3

say "The plan (plimsoll plan; it prepares the text once and measures this machine's kernels once)"
"$plimsoll" plan "$@" --json >"$build/demo/plan.json"
"$plimsoll" plan "$@"

step_seconds=$(number seconds_per_step <"$build/demo/plan.json")
# Evaluations, samples and checkpoints take about a tenth; what planning took is gone already.
steps=${DEMO_STEPS:-$(awk -v s="$step_seconds" -v b="$budget" -v used=$(($(clock) - began)) -v most=$most -v least=$least 'BEGIN {
    left = b - used; if (left < b / 2) left = b / 2
    n = s > 0 ? int(left * 0.9 / s) : most; n = int(n / 10) * 10
    print (n > most ? most : (n < least ? least : n)) }')}
every=$((steps / 5))
[ "$every" -gt 0 ] || every=1

say "Training: $steps steps, predicted $(awk -v s="$step_seconds" -v n="$steps" 'BEGIN { printf "%.0f", s * n }') s; a sample of what the model writes every $every steps"
"$plimsoll" train "$@" --steps "$steps" --eval_every "$every" --checkpoint_every "$every" --sample_every "$every" --tokens 120

say "Text from the trained model (plimsoll generate)"
"$plimsoll" generate "$out" --prompt "The meaning of the word" --tokens 150

say "Held-out text (plimsoll eval), against a smoothed bigram model of the whole training text"
"$plimsoll" eval "$out" --json >"$build/demo/eval.json"
loss=$(number loss <"$build/demo/eval.json")
tokens=$(find "$cache" "$out" -name 'tokens*.bin' | head -n 1)
bigram=$("$build/tools/bigram" "$tokens")
result=0
awk -v m="$loss" -v b="$bigram" -v n="$steps" -v t=$(($(clock) - began)) 'BEGIN {
    if (m + 0 <= 0 || b + 0 <= 0) { print "demo: no loss: \"" m "\", \"" b "\"" >"/dev/stderr"; exit 1 }
    printf "plimsoll  %.3f nats per token after %d steps\nbigram    %.3f nats per token\n", m, n, b
    printf "%.3f nat below the bigram; %d min %02d s in all\n", b - m, t / 60, t % 60
    exit b - m < 0.2 ? 3 : 0 }' || result=$?
if [ $result = 3 ] && [ "$steps" -lt $goal ]; then
    echo "cut short: the goal of 0.2 nat needs $goal steps and is not judged"
    result=0
fi
echo
echo "The plan as a page: $out/plan.html   the ledger: $out/report.json   more text: $plimsoll generate $out"
[ "$result" != 3 ] || echo "demo: the model did not get 0.2 nat below the bigram" >&2
[ "$result" = 0 ]
