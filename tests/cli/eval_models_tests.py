"""Tests of eval for people's own language models. Called as cli_tests.py is. The oracle is the protocol, written down here, over
logits by plain loops over doubles (pretrained_models.py); where PL_OWN_PYTHON names a Python with transformers, its logits, too."""
import gzip
import json
import math
import os
import random
import subprocess

import pretrained_models
from cli_tests import SEED, Skipped, check, main, refused, run
from infer_tests import load
from own_models_tests import find_smollm2, ids_of, make

DRAW = random.Random(SEED)
WORDS = ["the", "cat", " the dog", "it's", "12", "naïve", "\n", "théâtre", ", ", "a", "東京"]
SAME = 1e-5


def text_of(count):
    return "".join(DRAW.choice(WORDS) + DRAW.choice(["", " "]) for _ in range(count))


def losses(model, ids):
    """Of each token but the first, by what is before it."""
    rows = model.logits(ids[:-1])
    out = []
    for row, target in zip(rows, ids[1:]):
        most = max(row)
        out.append(most + math.log(sum(math.exp(z - most) for z in row)) - row[target])
    return out


def chunks(model, ids, c, bos=None):
    out = []
    for at in range(0, len(ids) - c + 1, c):
        part = ids[at:at + c] if bos is None else [bos] + ids[at + 1:at + c]
        out += losses(model, part)[c // 2:]
    return out


def windows(model, ids, c, stride):
    out, before = [], 0
    for at in range(0, len(ids), stride):
        end = min(at + c, len(ids))
        if end - at > 1:
            out += losses(model, ids[at:end])[max(before - at, 1) - 1:]
        before = end
        if end == len(ids):
            break
    return out


def add_bos(folder):
    path = os.path.join(folder, "tokenizer.json")
    with open(path) as file:
        tokenizer = json.load(file)
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
                                   "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                   "special_tokens": {"<s>": {"id": "<s>", "ids": [259], "tokens": ["<s>"]}}}
    with open(path, "w") as file:
        json.dump(tokenizer, file)


def evaluate(*words, **options):
    told = json.loads(run("eval", *words, "--json", **options)[0].split("\n")[-2])
    check(told["schema"] == "plimsoll.eval/1" and told["planned_bytes"] == told["measured_bytes"], told)
    return told


def check_told(what, told, want, text):
    n, mean = len(want), math.fsum(want) / len(want)
    check(told["tokens"] == n, what, told["tokens"], n)
    check(abs(told["loss"] - mean) <= SAME * mean, what, told["loss"], mean)
    check(abs(told["perplexity"] - math.exp(mean)) <= 10 * SAME * math.exp(mean), what, told, math.exp(mean))
    error = math.sqrt(max(math.fsum(x * x for x in want) / n - mean * mean, 0) / (n - 1)) * math.exp(mean)
    check(abs(told["standard_error"] - error) <= 1e-4 * error, what, told["standard_error"], error)
    bits = mean / math.log(2) * len(ids_of(text)) / len(text.encode())
    check(abs(told["bits_per_byte"] - bits) <= SAME * bits, what, told["bits_per_byte"], bits)


def check_protocols(family, text, has_bos):
    model = make(family)
    folder = model.save(family)
    if has_bos:
        add_bos(folder)
    ids = [259] * has_bos + ids_of(text)
    c, w = DRAW.randrange(4, 18), DRAW.randrange(2, 18)
    stride = DRAW.randrange(1, w + 1)
    what = (family, "seed", SEED, "bos", has_bos, "chunks", c, "windows", w, stride)
    told = evaluate(folder, "--text", "text.txt", "--sequence", str(c))
    check(told["protocol"] == "chunks" and told["window"] == c, told)
    check_told(what, told, chunks(model, ids, c, 259 if has_bos else None), text)
    told = evaluate(folder, "--text", "text.txt", "--protocol", "windows", "--sequence", str(w), "--stride", str(stride))
    check(told["protocol"] == "windows" and told["window"] == w and told["stride"] == stride, told)
    check_told(what, told, windows(model, ids, w, stride), text)


def test_protocols():
    for family in pretrained_models.FAMILIES:
        text = text_of(14)
        while len(ids_of(text)) < 36:
            text += DRAW.choice(WORDS)
        with open("text.txt", "w") as file:
            file.write(text)
        check_protocols(family, text, DRAW.randrange(2))


def test_pieces():
    """Windows longer than what goes through the model at once, and no multiple of it."""
    model = make(DRAW.choice(["llama", "gemma2"]), context=300)
    folder, text = model.save("model"), ""
    while len(ids_of(text)) < 300:
        text += DRAW.choice(WORDS)
    with open("text.txt", "w") as file:
        file.write(text)
    c = DRAW.randrange(129, 300)
    told = evaluate(folder, "--text", "text.txt", "--protocol", "windows", "--sequence", str(c))
    check_told((model.family, SEED, c), told, windows(model, ids_of(text), c, (c + 1) // 2), text)


def test_choices():
    model = make(DRAW.choice(list(pretrained_models.FAMILIES)), context=180)
    folder, has_bos = model.save("model"), DRAW.randrange(2)
    if has_bos:
        add_bos(folder)
    items, want, right, right_normalized, answers = [], [], 0, 0, 0
    for i in range(4):
        prompt = text_of(DRAW.randrange(1, 6)) or "a"
        if i == 3:
            prompt = "x" * 150
        choices = [DRAW.choice(["", " "]) + DRAW.choice(WORDS[:6]) + text_of(DRAW.randrange(3)) for _ in range(DRAW.randrange(1, 4))]
        lead = [259] * has_bos + ids_of(prompt)
        likelihoods, tokens = [], []
        for choice in choices:
            whole = [259] * has_bos + ids_of(prompt + choice)
            first = next((k for k, (a, b) in enumerate(zip(lead, whole)) if a != b), min(len(lead), len(whole)))
            likelihoods.append(-math.fsum(losses(model, whole)[first - 1:]))
            tokens.append(len(whole) - first)
        normal = [x / len(c.lstrip(" ")) for x, c in zip(likelihoods, choices)]
        answer = DRAW.randrange(len(choices))
        items.append({"prompt": prompt, "choices": choices, "more": None, **({"answer": answer} if i else {})})
        best = [likelihoods.index(max(likelihoods)), normal.index(max(normal))]
        want.append((likelihoods, tokens, best))
        if i:
            answers, right, right_normalized = answers + 1, right + (best[0] == answer), right_normalized + (best[1] == answer)
    with open("choices.jsonl", "w") as file:
        file.write("\n\n".join(json.dumps(i, ensure_ascii=DRAW.random() < 0.5) for i in items) + "\n")
    lines = [json.loads(x) for x in run("eval", folder, "--choices", "choices.jsonl", "--json", "--sequence", "180", "--prefill_tokens", DRAW.choice(("auto", "1", "3", "8")))[0].splitlines()]
    check(len(lines) == 5, lines)
    for i, (line, (likelihoods, tokens, best), item) in enumerate(zip(lines, want, items)):
        what = ("seed", SEED, model.family, line, likelihoods, tokens, best)
        check(line["item"] == i and line["tokens"] == tokens and line.get("answer") == item.get("answer"), *what)
        check(all(abs(a - b) <= 2 * SAME * abs(b) for a, b in zip(line["log_likelihoods"], likelihoods)), *what)
        check([line["likeliest"], line["likeliest_normalized"]] == best, *what)
    told = lines[4]
    check(told["items"] == 4 and told["answers"] == 3 and told["planned_bytes"] == told["measured_bytes"], told)
    check(abs(told["accuracy"] - right / 3) < 1e-8 and abs(told["accuracy_normalized"] - right_normalized / 3) < 1e-8, told)


def test_infer_begins_alike():
    """Infer puts the same token before a line that eval and generate put before a text."""
    model = make(DRAW.choice(list(pretrained_models.FAMILIES)))
    folder, text = model.save("model"), "the cat and the dog: it's 12"
    add_bos(folder)
    ids = [259] + ids_of(text)
    with open("text.txt", "w") as file:
        file.write(text + "\n")
    run("infer", folder, "text.txt", "--npy", "got", "--sequence", str(len(ids)))
    (shape, got), want = load("got.logits.npy"), [z for row in model.logits(ids) for z in row]
    size = max(abs(z) for z in want)
    check(shape == (1, len(ids), model.vocab), shape, len(ids))
    check(all(abs(a - b) <= 1e-4 * size for a, b in zip(got, want)), model.family, SEED)
    for length in (len(ids), len(ids) // 2):  # in windows the line has it once
        told = json.loads(run("infer", folder, "text.txt", "--brief", "--sequence", str(length))[0].split("\n")[0])
        check(told["tokens"] == len(ids), told, len(ids))
        if length == len(ids):
            check(abs(told["loss"] - math.fsum(losses(model, ids)) / (len(ids) - 1)) <= 1e-4 * told["loss"], told)


def test_texts():
    """However a text is given, it is the same; several have windows of their own."""
    model = make("llama")
    folder, text, other = model.save("model"), "the cat and the dog: it's 12, " * 3, "naïve théâtre, the end " * 2
    os.makedirs("texts")
    with open("texts/a.txt", "w") as file:
        file.write(text)
    with open("texts.jsonl", "w") as file:
        file.write("".join(json.dumps({"body": t}) + "\n" for t in (text, "", other)))
    with gzip.open("a.gz", "wb") as file:
        file.write(text.encode())
    how = ["--sequence", "12", "--protocol", DRAW.choice(["chunks", "windows"])]
    numbers = lambda told: {k: v for k, v in told.items() if "second" not in k and "bytes" not in k}
    want = numbers(evaluate(folder, "--text", "texts/a.txt", *how))
    for names in (["a.gz"], ["texts"], ["texts/*.txt"]):
        check(numbers(evaluate(folder, "--text", *names, *how)) == want, names, want)
    check(numbers(evaluate(folder, "--text", "-", *how, input=text.encode())) == want, "standard input", want)
    both = evaluate(folder, "--text", "texts.jsonl", "--text_key", "body", "--sequence", "12", "--protocol", "windows")
    oracle = windows(model, ids_of(text), 12, 6) + windows(model, ids_of(other), 12, 6)
    check(both["texts"] == 2 and both["tokens"] == len(oracle), both, len(oracle))
    check(abs(both["loss"] - math.fsum(oracle) / len(oracle)) <= SAME * both["loss"], both)


def test_memory():
    """It does not depend on the text's length."""
    folder, held = make("qwen2").save("model"), []
    for count in (2000, 200_000):
        with open("text.txt", "w") as file:
            file.write("the cat and the dog: it's 12, " * (count // 30))
        held.append(evaluate(folder, "--text", "text.txt", "--sequence", "64")["measured_bytes"])
    check(held[0] == held[1], held)
    out, err = run("eval", folder, "--text", "text.txt", "--sequence", "64", "--ledger")
    check("As planned" in err or "planned" in err, err)
    out, err = run("plan", folder, "--command", "eval", "--text", "text.txt", "--sequence", "64", "--json")
    check(json.loads(out)["process"]["resident_bytes"] == held[0], out[:500], held)


def test_eval_refusals():
    make("llama").save("model")
    def bad(name, data):
        with open(name, "wb") as file:
            file.write(data)
        return name
    line = b'{"prompt": "the cat", "choices": [" a", " b"]}\n'
    refused(2, "there is nothing to judge", "eval", "model")
    refused(2, "judged one at a time", "eval", "model", "--text", bad("t", b"the cat"), "--choices", bad("c", line))
    refused(4, "t: has 5 tokens, and chunks of 64 need 128 at least", "eval", "model", "--text", "t", "--sequence", "64")
    refused(4, "no text of two tokens", "eval", "model", "--text", bad("t", b"a"), "--protocol", "windows")
    refused(4, "empty", "eval", "model", "--text", bad("t", b""))
    refused(4, "standard input .-. is empty; a text is needed", "eval", "model", "--text", "-", input=b"")
    refused(4, "t: byte 8 of the text is not UTF-8", "eval", "model", "--text", bad("t", b"the cat \xe6\x9d"), "--protocol", "windows")
    refused(4, "t: byte 3 of the text is not UTF-8", "eval", "model", "--text", bad("t", b"the\xff cat"), "--protocol", "windows")
    refused(2, "is more than a window of 8 tokens", "eval", "model", "--text", bad("t", b"the cat" * 9), "--protocol", "windows",
            "--sequence", "8", "--stride", "9")
    refused(2, "is more than the 64 tokens", "eval", "model", "--text", "t", "--sequence", "65")
    for data, said in ((b"{\n", "c:2:1: is not valid JSON"), (b"[1]\n", "c:2: is no object"),
                       (b'{"prompt": 1, "choices": ["a"]}\n', '"prompt" is no text'),
                       (b'{"prompt": "a", "choices": []}\n', "no list of 1 to 256"),
                       (b'{"prompt": "a", "choices": ["b", ""]}\n', "a choice is no text"),
                       (b'{"prompt": "a", "choices": ["b"], "answer": 1}\n', '"answer" is not the number'),
                       (b'{"prompt": "", "choices": ["b"]}\n', "nothing comes before"),
                       (b'{"prompt": "' + b"x" * 64 + b'", "choices": ["b"]}\n', "have 65 tokens, and the context 64")):
        refused(4, "c:2.*" + said if ":2" not in said else said, "eval", "model", "--choices", bad("c", line + data))


REFERENCE = """
import json, sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float64).eval()
ids, c, stride = json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def losses(part):
    with torch.no_grad():
        z = torch.log_softmax(model(torch.tensor([part])).logits[0], -1)
    return [-z[i, t].item() for i, t in enumerate(part[1:])]
out, before = [], 0
for at in range(0, len(ids), stride):
    end = min(at + c, len(ids))
    out += losses(ids[at:end])[max(before - at, 1) - 1:] if end - at > 1 else []
    before = end
    if end == len(ids):
        break
half = [x for at in range(0, len(ids) - c + 1, c) for x in losses(ids[at:at + c])[c // 2:]]
print(json.dumps([out, half]))
"""


def test_transformers():
    python = os.environ.get("PL_OWN_PYTHON")
    if not python:
        raise Skipped("PL_OWN_PYTHON names no Python with transformers")
    for family in pretrained_models.FAMILIES:
        folder, text = make(family).save(family), text_of(40)
        with open("text.txt", "w") as file:
            file.write(text)
        c = DRAW.randrange(8, 30)
        stride = DRAW.randrange(2, c + 1)
        done = subprocess.run([python, "-c", REFERENCE, folder, json.dumps(ids_of(text)), str(c), str(stride)], capture_output=True)
        check(done.returncode == 0, done.stderr.decode()[-2000:])
        by_windows, by_chunks = json.loads(done.stdout)
        how = ["--text", "text.txt", "--sequence", str(c)]
        check_told((family, SEED, c, stride), evaluate(folder, *how, "--protocol", "windows", "--stride", str(stride)), by_windows, text)
        check_told((family, SEED, c), evaluate(folder, *how), by_chunks, text)


def test_real():
    """SmolLM2 in blocks of 4 bits: the mean of its dequantised weights in f64, and choices that its own greedy text agrees with."""
    path = find_smollm2()
    with open("text.txt", "w") as file:
        file.write("The quick brown fox jumps over the lazy dog. In 1984, 3.14159 people said: \"Naïve café — 東京!\"\n")
    told = evaluate(path, "--text", "text.txt", "--protocol", "windows", "--sequence", "64")
    check(told["tokens"] == 39 and abs(told["loss"] - 4.08059405) < 2e-5, told)
    with open("choices.jsonl", "w") as file:
        file.write('{"prompt": "The capital of France is", "choices": [" the", " Paris"], "answer": 1}\n')
    out, err = run("eval", path, "--choices", "choices.jsonl", "--json", "--sequence", "64")
    told = json.loads(out.splitlines()[0])
    check(told["tokens"] == [1, 1] and told["likeliest"] == 1, told)
    a, b = told["log_likelihoods"]  # differences of log-likelihoods are those of the logits
    check(abs(b - a - (17.371259 - 14.888589)) < 1e-3, told)


if __name__ == "__main__":
    main({"eval_models": [test_protocols, test_pieces, test_choices, test_infer_begins_alike, test_texts, test_memory, test_eval_refusals],
          "eval_models_reference": [test_transformers, test_real]})
