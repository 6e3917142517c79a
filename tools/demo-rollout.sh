#!/bin/sh
# The demo of rollouts: a few operators of the documented parameter space, a dozen states each, in about three minutes.
# It is killed in the middle once, and goes on. Ends with planned against measured, one operator against the slow scalar
# reference, and a page with pictures. BUILD names the build folder; DEMO_OPERATORS and DEMO_STATES say how much is done (8, 16).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/rollout
operators=${DEMO_OPERATORS:-8}
states=${DEMO_STATES:-16}

say() { printf '\n== %s\n' "$1"; }

say "What this does"
cat <<END
$operators random convolutional operators of the documented space (examples/rollout.yaml: 2 to 5 layers, 16 to 64 channels, kernels
of 3 to 7, fields of 128 x 128) are iterated for $states states from a random field each, twice with different noise. States
go to the disk as they come, so the process is no larger for 5,000 of them. Operators of one shape share a plan and a process;
one follows the other. All files go to $out.
END

rm -rf "$out"
# So few points are never even: the check of a large sample is left out.
set -- examples/rollout.yaml --out "$out" --total_samples "$operators" --num_realizations 2 --num_timesteps "$states" \
    --store both --set sampling.validation.check_discrepancy=false --set sampling.validation.check_correlation=false

say "The run (plimsoll rollout), which is killed after 20 seconds"
timeout -s KILL 20 "$plimsoll" rollout "$@" || true

say "The same command again: it goes on where the file ends"
"$plimsoll" rollout "$@"

say "What the file holds (plimsoll results)"
"$plimsoll" results ls "$out"/results.h5
"$plimsoll" results check "$out"/results.h5

say "One operator, one step, against the scalar reference (plimsoll rollout --witness, --isa ref)"
for isa in auto ref; do
    "$plimsoll" rollout "$@" --precision float32 --isa $isa --only 0 --steps 1 --witness "$out/witness-$isa"
done
error=$("$build/tools/npy_difference" "$out/witness-ref/states.npy" "$out/witness-auto/states.npy")
echo "largest difference over the largest number of the state: $error"
awk -v e="$error" 'BEGIN { exit !(e < 1e-4) }' || { echo "demo: the fast kernels do not do what the reference does" >&2; exit 1; }
echo
echo "Repeat it in another framework: docs/rollouts.md; the files of one operator are in $out/witness-auto"
echo "Fields, metrics over time, the parameter space, memory: $out/results.html"
