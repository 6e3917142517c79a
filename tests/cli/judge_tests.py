"""Tests of what a model of texts says of other texts: eval of a whole file, and infer of lines that are longer than its sequence. Called as
cli_tests.py is."""
import json
import math
import os
import random

from cli_tests import SEED, check, main, read, refused, run, write_config, write_text

DRAW = random.Random(SEED)
SEQUENCE = 16


def loss_of(logits, token):
    most = max(logits)
    return most + math.log(sum(math.exp(z - most) for z in logits)) - logits[token]


def items(*words):
    return [json.loads(line) for line in run("infer", *words, "--quiet")[0].splitlines()]


def put(path, text):
    with open(path, "w", newline="") as file:
        file.write(text)


def close(a, b):
    return math.isclose(a, b, rel_tol=2e-5)


# ---- eval --text ----

def test_other_texts_as_a_whole():
    write_text(words=1500)
    text = read("text.txt").decode()
    half = text[len(text) - len(text) // 2:]
    run("train", write_config(data={"validation_fraction": 0.5}, model={"sequence": SEQUENCE}), "--quiet")
    evaluate = lambda *words: json.loads(run("eval", "out", "--json", *words)[0])
    own = evaluate()
    check("judged" not in own and own["tokens"] == len(half) - 1, own)
    check("judged" not in run("eval", "out")[0], "the held-out part is all")
    put("half.txt", half)
    put("copy.txt", text)
    # The held-out part as a file of its own is judged as it was; a copy of the run's own text is its own text.
    whole = evaluate("--text", "half.txt")
    check(whole == {**own, "judged": "all"}, whole, own)
    check(evaluate("--text", "copy.txt") == own and evaluate("--text", "text.txt") == own, "the run's own text is another")
    check("judged          all of it: the run was not trained on this text\n" in run("eval", "out", "--text", "half.txt")[0], "it is not said")
    # By the model's own numbers, as another program gives them out.
    other = half[5:5 + 3 * SEQUENCE + DRAW.randrange(2, SEQUENCE)]
    put("other.txt", other)
    chunks = [other[i:i + SEQUENCE] for i in range(0, len(other) - 1, SEQUENCE)]
    put("lines.txt", "\n".join(chunks) + "\n")
    logits = [row for item, chunk in zip(items("out", "lines.txt"), chunks) for row in item["logits"][:len(chunk)]]
    losses = [loss_of(row, ord(c)) for row, c in zip(logits, other[1:])]
    got = evaluate("--text", "other.txt")
    check(got["tokens"] == len(other) - 1 and close(got["loss"], sum(losses) / len(losses)), got, sum(losses) / len(losses))
    put("two.txt", other[:2])
    check(close(evaluate("--text", "two.txt")["loss"], losses[0]), "two tokens")
    put("one.txt", "a")
    refused(4, "has 1 token, and the second is the first to be foretold", "eval", "out", "--text", "one.txt")
    check(evaluate() == own, "the run's own text is no longer its own")


def test_without_held_out_part():
    write_text(words=1500)
    run("train", write_config(data={"validation_fraction": 0}, train={"eval_every": None, "eval_batches": None}), "--quiet", "--steps", "20")
    refused(2, "there is no validation part", "eval", "out")
    put("other.txt", "the sea and the wind")
    result = json.loads(run("eval", "out", "--text", "other.txt", "--json")[0])
    check(result["tokens"] == 19 and result["judged"] == "all", result)


GROUPS = {"eval_texts": [test_other_texts_as_a_whole, test_without_held_out_part]}

if __name__ == "__main__":
    main(GROUPS)
