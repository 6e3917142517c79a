#!/bin/sh
# The demo of hybrid vision training: the tiny model learns to read the words of drawn pages. It is killed once in the middle and goes
# on. Ends with planned against measured, the time of each component, and what it reads of pages that it never saw. BUILD names the
# build folder; DEMO_STEPS says how many steps the training has (those of the example).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/hybrid

say() { printf '\n== %s\n' "$1"; }

say "What this does"
cat <<END
20,000 small pages are drawn, each of two words out of 64. Two vision transformers look at a page, one frozen and one trained;
behind a gated fusion, a recursion and a planner each capsule names a word. A tenth of the pages, by a hash of their text, is
held out: all of their words are known, and none of the pages. Guessing reads 0.016 of the words; knowing both words of a page,
but not which is the first, 0.5. All files go to $out.
END

rm -rf "$out"
mkdir -p "$out"
set -- examples/hybrid_tiny.yaml --out "$out/run" --checkpoint_every 50 ${DEMO_STEPS:+--steps "$DEMO_STEPS"}

say "What the training will take (plimsoll plan)"
"$plimsoll" plan "$@" | head -20

say "The training (plimsoll train), killed after 40 seconds"
timeout -s KILL 40 "$plimsoll" train "$@" || true

say "The same command with --resume: it goes on where it was"
"$plimsoll" train "$@" --resume=auto

say "Pages that it never saw (plimsoll eval)"
"$plimsoll" eval "$out/run"
