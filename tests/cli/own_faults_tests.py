"""Tests of what goes wrong with people's own language models: weights that are no numbers, messages that are refused,
files that cannot be had. Called as cli_tests.py is."""
import os
import random

import pretrained_models
from cli_tests import SEED, check, main, read, refused, run, unfolded

DRAW = random.Random(SEED)
TEXT = "the cat and the dog: it's 12"
BRIEF = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


def make(family, **more):
    layers = 7 if family == "gemma3_text" else 4
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=layers, **more)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def test_prompt_cache_first():
    """What a prompt's cache is refused for is said before the prompt is shown, and what keeps nothing says so."""
    model = make(DRAW.choice(["llama", "mistral", "gemma3_text"]), context=200)
    model.save("model")
    more = ["--prefill_tokens", "8", "--tokens", "4", "--temperature", "0"]
    write("notes.txt", "not a prompt's cache, but what somebody wrote down, and wants to keep\n" * 2)
    for prompt in (TEXT * 2, "the"):
        refused(4, "is no prompt's cache", "generate", "model", prompt, *more, "--prompt_cache", "notes.txt")
    refused(5, "nowhere/prompt.bin", "generate", "model", TEXT * 2, *more, "--prompt_cache", "nowhere/prompt.bin")
    out, err = run("generate", "model", "the cat", *more, "--prompt_cache", "prompt.bin")
    check("warning: the prompt has 5 tokens, of which nothing is kept in prompt.bin: that takes whole chunks of 8 tokens" in
          unfolded(err) and not os.path.exists("prompt.bin"), err)
    _, err = run("generate", "model", TEXT * 2, *more, "--prompt_cache", "prompt.bin")
    before = read("prompt.bin")
    same, err = run("generate", "model", "the cat", *more, "--prompt_cache", "prompt.bin")
    check(same == out and read("prompt.bin") == before and "nothing is kept" in unfolded(err), err)
    write("brief.jinja", BRIEF)
    out, err = run("chat", "model", "--chat_template", "./brief.jinja", *more, "--prompt_cache", "kept.bin", input=b"the\n" + TEXT.encode() + b"\n")
    check(unfolded(err).count("nothing is kept") == 1, err)


if __name__ == "__main__":
    main({"own_faults": [test_prompt_cache_first]})
