#!/bin/sh
# The demo of the encoder: texts of a grammar, drawn as pages and encoded to capsules by a small model and by the documented one.
# The small one is killed once in the middle and goes on. Ends with planned against measured, the shards checked, the nearest
# neighbours of a text, and its page as a picture. BUILD names the build folder; DEMO_TEXTS says how many texts the documented
# model encodes (480).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/encode
texts=${DEMO_TEXTS:-480}

say() { printf '\n== %s\n' "$1"; }

say "What this does"
cat <<END
A grammar makes texts: code, prose and formulas. Each is drawn as a page, which a vision transformer reads, the same two blocks
twelve times over, and turns into twelve capsules: sketches, checksums and children, 92,928 bytes a text. They go to their place
in one file as they come, so memory does not grow with the number of texts. All files go to $out.
END

rm -rf "$out"
mkdir -p "$out"

say "What 1,907,747 texts would take with the documented model (plimsoll plan)"
"$plimsoll" plan examples/capsules.yaml --text_format auto --count 1907747 --out "$out/planned" | sed -n '/^resident/,/^on disk/p;/^All of the work/,/^$/p'

say "200,000 texts through a small model (plimsoll encode), killed after three seconds"
timeout -s KILL 3 "$plimsoll" encode examples/capsules_tiny.yaml --count 200000 --out "$out/small" || true

say "The same command again: it goes on where it was"
"$plimsoll" encode examples/capsules_tiny.yaml --count 200000 --out "$out/small"

say "The documented model, $texts texts"
"$plimsoll" encode examples/capsules.yaml --count "$texts" --out "$out/full"

say "What has been written is read again and compared with its checksums (plimsoll results check)"
"$plimsoll" results check "$out/small/results.blocks" "$out/full/results.blocks"

say "The texts nearest to text 7, by the angle between their sketches"
"$plimsoll" synth texts "$out/texts.txt" --count "$texts" --seed 1 > /dev/null
"$plimsoll" results export "$out/full/results.blocks" --dataset sketches --out "$out/sketches.npy" > /dev/null
"$build/tools/npy_nearest" "$out/sketches.npy" 7 5 | while read -r number cosine; do
    printf '%s  %s\n' "$cosine" "$(sed -n "$((number + 1))p" "$out/texts.txt" | cut -c1-90)"
done

say "Text 7, drawn (plimsoll draw)"
sed -n 8p "$out/texts.txt" > "$out/text-7.txt"
"$plimsoll" draw --file "$out/text-7.txt" --out "$out/page.png"

echo
echo "The page: $out/page.png"
