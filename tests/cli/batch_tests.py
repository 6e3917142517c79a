"""Tests of many prompts at the same time (generate --prompts). Called as cli_tests.py is. The oracles: the same prompt by
itself, whose text must be the same to the letter, the loops of pretrained_models.py, and transformers where
PL_OWN_PYTHON names a Python that has it."""
import json
import os
import random
import signal
import subprocess

import pretrained_models
from cli_tests import COMMAND, SEED, Skipped, check, environment, main, refused, run, unfolded
from own_models_tests import ids_of

DRAW = random.Random(SEED + 5)
SAME = ("sample", "text", "ended_by", "prompt_tokens", "tokens")
WORDS = "the cat and a dog\n0123 Äß é 日本 of them; there".split(" ")


def make(family, **more):
    layers = 7 if family == "gemma3_text" else 3
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=layers, **dict(context=160, **more))


def draw_prompts(count, most=12):
    return [" ".join(DRAW.choices(WORDS, k=DRAW.randrange(most + 1))) for _ in range(count)]


def write_prompts(prompts, path="prompts.jsonl"):
    with open(path, "w") as file:
        for prompt in prompts:
            file.write(json.dumps({"id": len(prompt), "prompt": prompt}, ensure_ascii=DRAW.random() < 0.5) + "\n" * DRAW.choice((1, 2)))


def texts_of(*words):
    out, err = run("generate", *words, "--json", "--ledger")
    check("As planned, to the byte." in err, err)
    return [json.loads(line) for line in out.splitlines()]


def check_alone(folder, prompts, batch, *more):
    """Each text is that of its prompt alone."""
    write_prompts(prompts)
    told = texts_of(folder, "--prompts", "prompts.jsonl", "--batch", str(batch), *more)
    for number, prompt in enumerate(prompts):
        for alone in texts_of(folder, "--prompt", prompt, *more):
            text = told.pop(0)
            check(text["prompt"] == number, text, number)
            check([text[key] for key in SAME] == [alone[key] for key in SAME], text, alone, batch, *more)
    check(not told, "more texts", told)


def test_alone():
    """Whatever the model, the cache, the chunks and the sampling, and whoever else is there."""
    ways = [["--temperature", "0"], ["--temperature", "1", "--num-samples", "2"],
            ["--repeat-penalty", "1.4", "--repeat-last-n", "6", "--stop", "e", "--stop", "t "],
            ["--frequency-penalty", "0.5", "--top-k", "40", "--min-p", "0.01"]]
    for family in ("gpt2", "llama", "mistral", "gemma2", "gemma3_text"):
        model = make(family, width=128, head_width=32)
        folder = model.save(family, DRAW.choice(("F32", "BF16")))
        for way in DRAW.sample(ways, 2):
            more = [*way, "--tokens", str(DRAW.choice((1, 9, 30))), "--seed", str(DRAW.randrange(1 << 20)),
                    "--prefill_tokens", str(DRAW.choice((4, 16, 128))), "--sequence", str(DRAW.choice((100, 160))),
                    "--cache_type", DRAW.choice(("f32", "bf16", "fp16", "q8_0")),
                    "--encoding", DRAW.choice(("stored", "q8_0", "q4_0")), "--threads", str(DRAW.choice((1, 2)))]
            check_alone(folder, draw_prompts(5), DRAW.choice((1, 2, 3, 8)), *more)


def test_context():
    """Texts end where the context is full, each at its own place, and the next prompts take their rows."""
    folder = make("llama", vocab=261).save("model")
    check_alone(folder, ["x" * n for n in (30, 3, 31, 1, 12, 31, 2, 20)], 3, "--sequence", "32", "--tokens", "40", "--temperature", "1")


def test_samples():
    """Several texts of one prompt, at the same time."""
    folder = make("qwen3").save("model")
    more = ["--num-samples", "5", "--tokens", "12", "--temperature", "1"]
    one, many = [texts_of(folder, "the cat", *more, *batch) for batch in ([], ["--batch", "3"])]
    check([[t[key] for key in SAME] for t in one] == [[t[key] for key in SAME] for t in many], one, many)


def test_oracle():
    """Greedy, as plain loops compute it."""
    for family in ("llama", "gpt2"):
        model = make(family)
        prompts = draw_prompts(3, 6)
        write_prompts(prompts)
        for told, prompt in zip(texts_of(model.save(family), "--prompts", "prompts.jsonl", "--temperature", "0", "--tokens", "6"), prompts):
            want, lead = model.greedy(ids_of(prompt or "\n"), 6)
            if lead < 1e-3:  # the reference's best two are too near
                continue
            tokens = want[:want.index(260)] if 260 in want else want
            text = b"".join(bytes([t]) if t < 256 else {256: b"th", 257: b"the", 258: b" the"}.get(t, b"") for t in tokens)
            check(told["text"].encode() == text or "\ufffd" in told["text"], told, want)
            check(told["tokens"] == len(tokens) + (260 in want), told, want)


TRANSFORMERS = """import json, sys, torch, transformers
folder, count = sys.argv[1], int(sys.argv[2])
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
for prompt in json.loads(sys.argv[3]):
    ids = tokenizer(prompt, return_tensors="pt")
    out = model.generate(**ids, do_sample=False, max_new_tokens=count, output_logits=True, return_dict_in_generate=True, pad_token_id=260)
    lead = min((z[0].topk(2).values.diff().abs().item() for z in out.logits))
    print(json.dumps([tokenizer.decode(out.sequences[0, ids["input_ids"].shape[1]:], skip_special_tokens=True), lead]))"""


def test_transformers():
    python = os.environ.get("PL_OWN_PYTHON")
    if not python:
        raise Skipped("PL_OWN_PYTHON names no Python with transformers")
    for family in ("llama", "gpt2", "gemma3_text"):
        folder, prompts = make(family).save(family), [prompt or "x" for prompt in draw_prompts(6)]
        write_prompts(prompts)
        done = subprocess.run([python, "-c", TRANSFORMERS, folder, "16", json.dumps(prompts)], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        for told, line in zip(texts_of(folder, "--prompts", "prompts.jsonl", "--batch", "4", "--temperature", "0", "--tokens", "16"),
                              done.stdout.splitlines(), strict=True):
            text, lead = json.loads(line)
            check(told["text"] == text or lead < 1e-3, family, told, text)


def test_readable():
    """Texts between lines of dashes, and one line for all of them on stderr."""
    folder = make("llama").save("model")
    write_prompts(["the", "cat", "dog"])
    more = [folder, "--prompts", "prompts.jsonl", "--tokens", "4", "--temperature", "0", "--top-k", "1"]
    out, err = run("generate", *more)
    check(out.count("---------------\n") == 2 and "3 texts, " in err and err.count("tok/s") == 1, out, err)
    check(run("generate", *more, "--quiet")[1] == "", "not quiet")
    lines = open("prompts.jsonl").read()
    piped = run("generate", folder, "--prompts", "-", "--tokens", "4", "--temperature", "0", "--top-k", "1", input=lines.encode())[0]
    check(piped == out, piped, out)
    with open("config.yaml", "w") as file:  # a prompt on the command line comes in place of the config's
        file.write("model: {arch: decoder, source: model}\ngenerate: {prompts: prompts.jsonl, temperature: 0, tokens: 4, top_k: 1}\n")
    check(run("generate", "config.yaml")[0] == out, out)
    check(run("generate", "config.yaml", "cat")[0] == "cat" + out.split("---------------\n")[1], out)


def test_bad_input():
    """Refused before anything is computed, with the file's name and the line."""
    folder = make("llama").save("model")

    def told(text, code, pattern, *more):
        with open("bad.jsonl", "wb") as file:
            file.write(text)
        refused(code, pattern, "generate", folder, "--prompts", "bad.jsonl", *more)

    good = b'{"prompt": "x"}\n'
    told(b"", 4, "bad.jsonl: has no prompts")
    told(b"\n \n\r\n", 4, "bad.jsonl: has no prompts")
    told(good + b"\nThe sea\n", 4, "bad.jsonl:3: is not valid JSON")
    told(good + b'{"text": "x"}\n', 4, 'bad.jsonl:2: has no text "prompt"')
    told(good + b'{"prompt": 7}\n', 4, 'bad.jsonl:2: has no text "prompt"')
    told(good + b'["prompt"]\n', 4, 'bad.jsonl:2: has no text "prompt"')
    told(good + b'{"prompt": "\xff"}\n', 4, "bad.jsonl:2: is not valid JSON")
    told(good * 2 + b'{"prompt": "' + b"x" * 40 + b'"}\n', 2, "bad.jsonl:3: the prompt has 40 tokens", "--sequence", "40")
    refused(4, "no.jsonl", "generate", folder, "--prompts", "no.jsonl")
    write_prompts(["x"])
    refused(2, "PROMPT after the config and --prompts both say", "generate", folder, "x", "--prompts", "prompts.jsonl")
    refused(2, "answered one at a time", "generate", folder, "--interactive", "--batch", "2")
    refused(2, "prompt_cache keeps what one prompt leaves", "generate", folder, "--prompts", "prompts.jsonl", "--prompt_cache", "x.bin")
    check(not os.path.exists("x.bin"), "a cache was written")


def charged(*words, code=0):
    return json.loads(run("plan", *words, "--json", code=code)[0])["process"]["charged_bytes"]


def test_plan():
    """Each text has a cache; what a budget is too small for is left out where nobody asked for it, else refused."""
    model = make("llama", head_width=32, inner=64)
    model.context = 4096
    folder = model.save("model")
    cache = 2 * 4 * model.layers * model.key_heads * model.head_width * 4096
    more = [folder, "--command", "generate", "--sequence", "4096"]
    one, eight = charged(*more), charged(*more, "--batch", "8")
    check(abs(eight - one - 7 * cache) < 0.4 * cache, one, eight, cache)
    write_prompts(["x", "the cat"] * 5)
    more = [folder, "--prompts", "prompts.jsonl", "--sequence", "4096"]
    budget = str(one + 4 * cache)
    refused(3, "the smallest plan needs.*it fits with --batch [45]: [0-9.]+ MB charged$", "generate", *more, "--batch", "8", "--budget", budget)
    refused(3, "the smallest plan needs", "generate", *more, "--budget", str(one // 2))
    out, err = run("generate", *more, "--tokens", "5", "--temperature", "0", "--budget", budget, "--json", "--ledger")
    check("As planned, to the byte." in err and len(out.splitlines()) == 10, err)
    check("4 texts are written at a time to fit the budget (--batch)" in err, err)
    check([json.loads(line)["text"] for line in out.splitlines()] ==
          [text["text"] for text in texts_of(*more, "--tokens", "5", "--temperature", "0", "--batch", "8")], out)


def test_interrupt():
    """The texts that are at work end where they are, in their order, and what was told is whole."""
    model = make("llama")
    model.context = 1 << 16
    folder = model.save("model")
    write_prompts(["x"] * 40)
    running = subprocess.Popen([COMMAND, "generate", folder, "--prompts", "prompts.jsonl", "--batch", "4", "--json", "--sequence", "65536",
                                "--tokens", "60000", "--temperature", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    running.stdout.read(80)  # the first text is at work
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    check(running.returncode == 130, running.returncode, err)
    ended = [json.loads(line)["ended_by"] for line in out.decode().splitlines()[1:]]
    check(ended[-1] == "interrupt" and set(ended) <= {"interrupt", "end", "length"}, ended, unfolded(err.decode()))


GROUPS = {"batch": [test_alone, test_context, test_samples, test_oracle, test_readable, test_bad_input, test_plan, test_interrupt],
          "batch_reference": [test_transformers]}

if __name__ == "__main__":
    main(GROUPS)
