#!/bin/sh
# The demo of cloud heights: synthetic flights, and a small model that learns to read the height of clouds off their shadows,
# judged flight by flight by what it never saw. It is killed once in the middle, and goes on. Ends with the table, and planned
# against measured. BUILD names the build folder; DEMO_EPOCHS says how long each training is (32).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/clouds
epochs=${DEMO_EPOCHS:-32}

say() { printf '\n== %s\n' "$1"; }

say "What this does"
cat <<END
Six flights over an ocean with clouds are drawn: a camera's frames, a lidar's profiles, the navigation, in HDF5. Nothing in a
picture tells how high a cloud is but its shadow, whose length grows with the height and with the angle of the sun, which the
model is told. For each flight a model is trained on the other five ($epochs epochs) and guesses the heights of the one left
out. Each training has a plan and a process of its own, which holds what was planned. All files go to $out.
END

rm -rf "$out"
mkdir -p "$out"

say "The flights (plimsoll synth clouds)"
"$plimsoll" synth clouds "$out/flights" --height 48 --width 64 --labels full > /dev/null

# Twice the channels of the tiny model, which learns too slowly for a demo; and no training is stopped early.
set -- examples/clouds_tiny.yaml --data_directory "$out/flights" --out "$out/run" --loo_epochs "$epochs" \
    --set 'channels=[16, 32, 64]' --set 'dense=[64, 32]' --set train.schedule=cosine --early_stopping_patience 0

say "What it will take (plimsoll plan)"
"$plimsoll" plan "$@" | head -20

say "The trainings (plimsoll train), killed after 20 seconds"
timeout -s KILL 20 "$plimsoll" train "$@" || true

say "The same command with --resume: it goes on where it was"
"$plimsoll" train "$@" --resume=auto

echo
echo "Predicted against true, flight by flight: $out/run/results.html"
