#!/bin/sh
# The demo of deployment: the documented encoder (first values) in 32 and in 8 bits. It is exported to ONNX, calibrated, and run on lines
# of text one by one inside 100 and 45 MB, in some two minutes; where a Python with onnxruntime is (PL_ONNX_PYTHON, else python3),
# ONNX Runtime runs the same models beside it. BUILD names the build folder.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/deploy
python=${PL_ONNX_PYTHON:-python3}
config=examples/capsules.yaml

say() { printf '\n== %s\n' "$1"; }
bytes() { wc -c <"$1" | tr -d ' '; }
# Of the last line of `infer --json`.
milliseconds() { sed -n 's/.*"median_seconds":\([0-9.e-]*\).*/\1/p' "$1" | awk 'END { printf "%.0f", 1000 * $1 }'; }

say "What this does"
cat <<END
The documented encoder, 15.6 million numbers as they begin, is what a trained one costs. It goes to ONNX; a calibration on 16 pages finds how
large what comes to each layer is, and writes its weights in 8 bits; then both read lines of text one by one, each in a process whose memory
is planned to the byte. All files go to $out.
END

rm -rf "$out"
mkdir -p "$out"
"$plimsoll" synth texts "$out/whole.txt" --count 16 --seed 3 >/dev/null
cut -c1-60 "$out/whole.txt" >"$out/texts.txt" # what a page shows

say "A calibration, and the weights in 8 bits (plimsoll quantize)"
"$plimsoll" quantize "$config" --samples 16 --method minmax --out "$out/int8" --quiet >"$out/quantize.txt" 2>&1
"$plimsoll" quantize "$config" --samples 16 --method minmax --out "$out/again" >"$out/quantize.txt" 2>&1
cmp "$out/int8/int8.safetensors" "$out/again/int8.safetensors" && echo "Made twice: the same file, to the last bit"
sed -n '/^layer /,/^what comes/p' "$out/quantize.txt" | sed '$d' | head -6
sed -n '/^what comes out, in 8 bits and in f32/,/: .* layers in 8 bits/p' "$out/quantize.txt" | sed '$d'

say "The model for other programs, in 32 and in 8 bits (plimsoll export)"
if "$plimsoll" export "$config" --format onnx --out "$out/f32.onnx" --seeded >"$out/export.txt" 2>&1; then
    "$plimsoll" export "$config" --format onnx --set "encoder.weights=$out/int8/int8.safetensors" --out "$out/int8.onnx" >>"$out/export.txt" 2>&1
    printf 'f32.onnx   %10s bytes\nint8.onnx  %10s bytes\n' "$(bytes "$out/f32.onnx")" "$(bytes "$out/int8.onnx")"
else
    cat "$out/export.txt"
fi

say "Sixteen texts one by one inside 100 MB, in 32 bits (plimsoll infer)"
"$plimsoll" infer "$config" "$out/texts.txt" --npy "$out/f32" --latency --budget 100MB --ledger --json >"$out/f32.txt" 2>&1
grep -E '^(resident|peak|As planned)' "$out/f32.txt"

say "The same inside 45 MB, in 8 bits"
"$plimsoll" infer "$config" "$out/texts.txt" --npy "$out/int8" --latency --budget 45MB --weights "$out/int8/int8.safetensors" --ledger --json \
    >"$out/int8.txt" 2>&1
grep -E '^(resident|peak|As planned)' "$out/int8.txt"

say "What does not fit is refused before anything is taken"
if "$plimsoll" infer "$config" "$out/texts.txt" --npy "$out/none" --budget 45MB 2>"$out/refused.txt"; then
    echo "demo: 32 bits ran inside 45 MB, which was to be refused" >&2
    exit 1
fi
cat "$out/refused.txt"

say "Beside each other"
f32=$(milliseconds "$out/f32.txt")
int8=$(milliseconds "$out/int8.txt")
echo "A text takes $f32 ms in 32 bits and $int8 ms in 8: $(awk -v a="$f32" -v b="$int8" 'BEGIN { printf "%.1f", a / b }') times as fast"

if [ -e "$out/int8.onnx" ] && "$python" -c 'import onnxruntime, numpy' 2>/dev/null; then
    say "ONNX Runtime on the same models, in turns (bench/ort_pairs.py)"
    python3 bench/ort_pairs.py "$config" --python "$python" --plimsoll "$plimsoll" --turns 2
else
    echo "No Python with onnxruntime and numpy here: install them and set PL_ONNX_PYTHON to see ONNX Runtime beside it."
fi
