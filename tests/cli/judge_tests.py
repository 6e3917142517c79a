"""Tests of what a model of texts says of other texts: eval of a whole file, and infer of lines that are longer than its sequence. Called as
cli_tests.py is."""
import json
import math
import os
import random

from cli_tests import SEED, check, environment, main, read, refused, run, write_config, write_text

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
    refused(4, "has 1 token, and tokens are judged from the second on", "eval", "out", "--text", "one.txt")
    check(evaluate() == own, "the run's own text is no longer its own")


def test_without_held_out_part():
    write_text(words=1500)
    run("train", write_config(data={"validation_fraction": 0}, train={"eval_every": None, "eval_batches": None}), "--quiet", "--steps", "20")
    refused(2, "there is no validation part", "eval", "out")
    put("other.txt", "the sea and the wind")
    result = json.loads(run("eval", "out", "--text", "other.txt", "--json")[0])
    check(result["tokens"] == 19 and result["judged"] == "all", result)


# ---- infer of long lines ----

def by_hand(line):
    """Logits and losses of a line of any length, from windows that are lines of their own: each begins half a window behind the one before, and
    judges what is new in it. A token is judged once, and has half a window before it."""
    step = SEQUENCE // 2
    starts = [0]
    while starts[-1] + SEQUENCE < len(line):
        starts.append(starts[-1] + step)
    put("windows.txt", "\n".join(line[s:s + SEQUENCE] for s in starts) + "\n")
    logits, losses = [None] * len(line), {}
    for s, item in zip(starts, items("out", "windows.txt")):
        for i, row in enumerate(item["logits"][:len(line) - s]):
            target = s + i + 1
            if s == 0 or i + 1 >= SEQUENCE - step:
                if target < min(s + SEQUENCE, len(line)):
                    check(target not in losses and (s == 0 or i + 1 >= SEQUENCE / 2), "judged twice, or with less than half a window before it")
                    losses[target] = loss_of(row, ord(line[target]))
                    logits[s + i] = row
                elif target == len(line):
                    logits[s + i] = row
    check(sorted(losses) == list(range(1, len(line))), "not every token is judged")
    return logits, [losses[t] for t in range(1, len(line))]


def trained(**model):
    write_text(words=3000)
    run("train", write_config(model={"sequence": SEQUENCE, **model}), "--quiet")
    return read("text.txt").decode()


def some_lines(text):
    lengths = [1, 2, SEQUENCE - 1, SEQUENCE, SEQUENCE + 1, SEQUENCE + SEQUENCE // 2, SEQUENCE + SEQUENCE // 2 + 1, 3 * SEQUENCE, 0, 5]
    lengths += [DRAW.randint(0, 5 * SEQUENCE) for _ in range(6)]
    return [text[at:at + n] for n in lengths for at in [DRAW.randrange(2000)]]


def long_lines(arch, **model):
    lines = some_lines(trained(arch=arch, **model))
    for end in ("\n", "\r\n"):
        put("long.txt", end.join(lines) + end)
        told = items("out", "long.txt")
        check([t["item"] for t in told] == list(range(len(lines))) and [t["tokens"] for t in told] == [len(line) for line in lines], told)
    for line, t in zip(lines, told):
        if not line:
            check(t["remarks"] == ["empty"], t)
            continue
        logits, losses = by_hand(line)
        check(t["logits"][:len(line)] == logits and len(t["logits"]) == max(len(line), SEQUENCE), "logits of", len(line))
        check(len(line) == 1 or (close(t["loss"], sum(losses) / len(losses)) and close(t["perplexity"], math.exp(t["loss"]))), line, t)
        best = max(range(256), key=lambda i: (logits[-1][i], -i))
        check(t["next"][0]["id"] == best, t["next"], best)


def test_long_lines():
    long_lines("gpt")
    # Whatever is at work beside it.
    out = run("infer", "out", "long.txt", "--quiet")[0]
    for words in (["--batch", "1"], ["--batch", "5"], ["--threads", "3"], ["--latency"]):
        check(run("infer", "out", "long.txt", "--quiet", *words)[0] == out, "other lines with", words)
    brief = items("out", "long.txt", "--brief")
    check([{k: v for k, v in json.loads(line).items() if k != "logits"} for line in out.splitlines()] == brief, "--brief")
    run("infer", "out", "long.txt", "--to", "long.jsonl")
    check(read("long.jsonl").decode() == out, "a file has other lines")
    count = len(out.splitlines())
    done, err = run("infer", "out", "long.txt", "--json", "--ledger", "--latency")
    check(json.loads(done.splitlines()[-1])["items"] == count and f"{count} items in" in err and "As planned" in err, err)
    put("two.txt", "ab\n" + "the sea " * 5 + "\n")
    both = items("out", "two.txt", "long.txt", "--brief")
    check([b["item"] for b in both] == list(range(count + 2)) and both[1]["source"] == "two.txt[1]" and both[2]["source"] == "long.txt[0]", both[:3])
    refused(4, r"two.txt\[1\]: has more than the 16 tokens that the model takes at once, and arrays", "infer", "out", "two.txt", "--npy", "x")
    check(not any(name.startswith("x.") for name in os.listdir()), "a refused run left arrays")


def test_long_lines_of_a_perceptron():
    long_lines("mlp", heads=None)


def test_many_long_lines():
    """More lines than there are marks, in any order of lengths; and one line that is longer than what is encoded at once."""
    text = trained()
    lengths = [DRAW.randint(0, 3 * SEQUENCE) for _ in range(5000)]
    put("many.txt", "".join(text[n:2 * n] + "\n" for n in lengths))
    told = items("out", "many.txt", "--brief")
    check([t["tokens"] for t in told] == lengths, "lines are mixed up")
    one = {n: next(t for t, m in zip(told, lengths) if m == n) for n in set(lengths)}
    for n, t in zip(lengths, told):
        check(n < 2 or t["loss"] == one[n]["loss"], "the same line has another loss", n)
    line = (text * 2)[:9001]
    put("one.txt", line)
    t = items("out", "one.txt", "--brief")[0]
    _, losses = by_hand(line)
    check(t["tokens"] == len(line) and t["source"] == "one.txt" and close(t["loss"], sum(losses) / len(losses)), t)


def test_long_lines_of_learned_tokens():
    """Tokens of several bytes: as many as eval counts; what a line begins with does not hang on what follows."""
    write_text(words=6000)
    run("train", write_config(data={"tokenizer": "bpe", "vocab_size": 400}, model={"sequence": SEQUENCE}), "--quiet", "--steps", "60")
    text = read("text.txt").decode()
    lines = [text[:n].rsplit(" ", 1)[0] for n in (30, 300, 9000, 24000)]
    put("long.txt", "\n".join(lines) + "\n")
    told = items("out", "long.txt", "--brief")
    for line, t in zip(lines, told):
        put("alone.txt", line)
        check(json.loads(run("eval", "out", "--text", "alone.txt", "--json")[0])["tokens"] == t["tokens"] - 1, t)
        check({**items("out", "alone.txt", "--brief")[0], "item": t["item"], "source": t["source"]} == t, "alone it is another")
    # Items of a calibration, too: a window is a sample.
    _, err = run("quantize", "out", "--calibrate", "long.txt")
    check("8 bits" in err or "int8" in err, err)


def test_long_lines_ask_for_no_memory():
    trained()
    put("long.txt", "the sea and the wind over the waves\n" * 40)
    for words in ([], ["--brief"], ["--latency"]):
        run("infer", "out", "long.txt", *words, env=environment(PLIMSOLL_TEST_SECCOMP="kill"))
        check("As planned" in run("infer", "out", "long.txt", "--ledger", *words)[1], "not as planned", words)


GROUPS = {"eval_texts": [test_other_texts_as_a_whole, test_without_held_out_part],
          "infer_windows": [test_long_lines, test_long_lines_of_a_perceptron, test_many_long_lines, test_long_lines_of_learned_tokens,
                            test_long_lines_ask_for_no_memory]}

if __name__ == "__main__":
    main(GROUPS)
