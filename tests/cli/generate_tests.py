"""Tests of generate: where prompts come from, several texts, texts that end one, penalties against the model's own numbers, JSON, and lines that are
answered one by one. Called as cli_tests.py is."""
import json
import math
import os
import random
import re
import select
import signal
import struct
import subprocess
import time

import cli_tests
from cli_tests import SEED, check, environment, main, read, refused, run, write_config, write_text

DRAW = random.Random(SEED)
SEQUENCE = 16


def trained():
    write_text(words=3000)
    run("train", write_config(model={"sequence": SEQUENCE}, generate={"tokens": 30}), "--quiet")


def text(*words, **options):
    """What is written behind the prompt, and what is said."""
    return run("generate", "out", *words, **options)


def behind(prompt, *words, **options):
    out, _ = text("--prompt", prompt, *words, **options)
    check(out.startswith(prompt) and out.endswith("\n"), out)
    return out[len(prompt):-1]


# ---- prompts ----

def test_places_of_prompts():
    trained()
    expected = text("--prompt", "the sea")[0]
    for name, content in (("plain", "the sea"), ("ended", "the sea\n"), ("dos", "the sea\r\n")):
        with open(name + ".txt", "w", newline="") as file:
            file.write(content)
    for words in (["the sea"], ["-p", "the sea"], ["@plain.txt"], ["--prompt", "@plain.txt"], ["-f", "plain.txt"], ["@ended.txt"], ["@dos.txt"],
                  ["--set", "generate.prompt_file=ended.txt"]):
        check(text(*words)[0] == expected, words)
    for words in (["-"], ["--prompt", "-"], []):
        for content in (b"the sea", b"the sea\n"):
            check(text(*words, input=content)[0] == expected, "standard input:", words, content)
    with open("plain.txt") as file:
        check(text(stdin=file)[0] == expected, "a file as standard input is no prompt")
    with open("plain.txt") as file:
        out, err = text("--set", "generate.prompt_file=ended.txt", stdin=file)
        check(out == expected and "standard input is not read" in err, out, err)
    check("standard input" not in text("--set", "generate.prompt_file=ended.txt", stdin=subprocess.DEVNULL)[1], "a warning of nothing")
    for words, options in ((["--prompt", ""], {}), ([], {"stdin": subprocess.DEVNULL}), ([], {"input": b""})):
        check(text(*words, **options)[0] == text("--prompt", "")[0], "an empty prompt is not a line's beginning", words, options)
    with open("two.txt", "w") as file:
        file.write("one\n\n")
    check(text("@two.txt")[0].startswith("one\n"), "more than one line break is left out")
    odd = "@ \u00e4 - \t" + "x" * 6000 # nothing that an option of the config could hold
    check(text("-", input=odd.encode())[0].startswith(odd), "a long text from standard input is changed")
    check(text(odd[1:])[0].startswith(odd[1:]), "a long text as a word is changed")


def test_refused_prompts():
    trained()
    refused(4, "none.txt", "generate", "out", "@none.txt")
    refused(2, "PROMPT after the config and -p both say", "generate", "out", "a", "-p", "b")
    refused(2, "-f and --prompt both say", "generate", "out", "-f", "a.txt", "--prompt", "b")
    refused(2, "--prompt and --interactive both say", "generate", "out", "--prompt", "a", "--interactive")
    refused(2, "one prompt only, but there is also b; .*in quotes", "generate", "out", "a", "b")
    refused(2, "generate.tokens|-n", "generate", "out", "a", "-n", "0")
    refused(2, "min_p", "generate", "out", "a", "--min-p", "1.5")
    refused(2, "repeat_penalty", "generate", "out", "a", "--repeat-penalty", "0")
    with open("big.txt", "wb") as file:
        file.truncate((16 << 20) + 1)
    refused(4, "big.txt", "generate", "out", "@big.txt")
    with open("big.txt") as file:
        refused(2, "standard input has more than 16 MiB", "generate", "out", "-", stdin=file)


def test_prompts_longer_than_the_context():
    """What was written is continued as it went on, however much of it the model no longer sees: of the prompt only what counts is fed."""
    trained()
    for arch in ("gpt", "mlp"):
        if arch == "mlp":
            run("train", write_config(model={"arch": "mlp", "sequence": SEQUENCE, "heads": None}, run={"out": "mlp"}, generate={"tokens": 30}), "--quiet")
        def of(prompt, n):
            with open("p.txt", "w") as file:
                file.write(prompt + "\n")
            out = run("generate", "out" if arch == "gpt" else "mlp", "@p.txt", "-n", str(n), "--repeat-penalty", "1.1", "--repeat-last-n", "9")[0]
            return out[len(prompt):-1]
        whole = of("the ", 80)
        if not whole.isascii():
            continue
        for n in [*range(1, 40), 55, 70, 79]:
            check(of("the " + whole[:n], 80 - n) == whole[n:], arch, "goes on in another way behind", n)


# ---- several texts, and their end ----

def test_several_texts():
    trained()
    first = behind("the ")
    texts = text("--prompt", "the ", "--num-samples", "4")[0][:-1].split("\n---------------\n")
    check(len(texts) == 4 and len(set(texts)) == 4 and texts[0] == "the " + first, texts)
    check(all(t.startswith("the ") for t in texts), texts)
    long = "the sea and the wind over the waves " * 3 # the cache is made anew in the prompt
    alone = behind(long)
    told = [json.loads(line) for line in text("--prompt", long, "--num_samples", "3", "--json")[0].splitlines()]
    check(told[0]["text"] == alone and [t["sample"] for t in told] == [0, 1, 2], told)
    check(behind("the ", "--temperature", "0") == behind("the ", "--top-k", "1"), "top_k 1 is not the likeliest")
    check(behind("the ", "--temperature", "0") == behind("the ", "--min-p", "1"), "min_p 1 is not the likeliest")


def test_json():
    trained()
    out, err = text("--prompt", "the ", "--json")
    told = json.loads(out)
    check(told["schema"] == "plimsoll.generate/1" and told["text"] == behind("the ") and told["ended_by"] == "length", told)
    check(told["tokens"] == 30 and told["prompt_tokens"] == 4 and 0 < told["first_token_seconds"] <= told["seconds"], told)
    rate = 29 / (told["seconds"] - told["first_token_seconds"])
    check(math.isclose(told["tokens_per_second"], rate, rel_tol=0.01), told, rate)
    check(re.search(r"^30 tokens in .*, .* tok/s; the first after .* \(prompt: 4 tokens\)$", err, re.M), err)
    check(text("--prompt", "the ", "--quiet")[1] == "", "--quiet says something")
    one = json.loads(text("--prompt", "the ", "--json", "-n", "1")[0])
    check(one["tokens"] == 1 and one["tokens_per_second"] == 0, one)


def test_stops():
    trained()
    whole = behind("the ", "-n", "60")
    check(whole.isascii(), "the model writes no letters")
    def first_end(stops):
        for end in range(1, len(whole) + 1):
            longest = max((len(s) for s in stops if whole[:end].endswith(s)), default=0)
            if longest:
                return whole[:end - longest]
        return whole
    for _ in range(12):
        stops = []
        for _ in range(DRAW.randint(1, 3)):
            at = DRAW.randrange(len(whole) - 5)
            stops.append(whole[at:at + DRAW.randint(1, 5)] if DRAW.random() < 0.8 else "never")
        words = [w for s in stops for w in ("--stop", s.replace("\\", "\\\\"))]
        told = json.loads(text("--prompt", "the ", "-n", "60", "--json", *words)[0])
        expected = first_end(stops)
        check(told["text"] == expected and told["ended_by"] == ("length" if expected == whole else "stop"), stops, told, whole)
    # A line break, however it is written; and the lines of a file.
    check(run("config", "out", "--stop", "a\nb", "--stop", "\\n")[0].count("a\\\\nb\\n\\\\n") == 1, run("config", "out", "--stop", "a\nb", "--stop", "\\n")[0])
    stop = whole[10]
    check(behind("the ", "-n", "60", "--set", f"generate.stop=never\n\n{stop}") == first_end([stop]), "lines of a key")


# ---- penalties ----

def logits_of(lines):
    """By infer, another program of the same model: the logits behind the last character of each line."""
    with open("lines.txt", "w") as file:
        file.write("\n".join(lines) + "\n")
    out, _ = run("infer", "out", "lines.txt", "--quiet")
    return [json.loads(o)["logits"][len(line) - 1] for o, line in zip(out.splitlines(), lines)]


def test_penalties():
    """The likeliest at each place, from the model's logits and the definition; and that penalties did something."""
    trained()
    prompt = "th"
    differ = 0
    for words in (["--repeat-penalty", "1.8"], ["--repeat-penalty", "1.5", "--repeat-last-n", "4"], ["--frequency-penalty", "0.7"],
                  ["--presence-penalty", "1.1", "--repeat-last-n", "3"], ["--repeat-penalty", "3", "--repeat-last-n", "0"],
                  ["--repeat-penalty", "0.7", "--frequency-penalty", "-0.2", "--presence-penalty", "0.4"]):
        of = dict(zip(words[::2], map(float, words[1::2])))
        repeat, frequency, presence = of.get("--repeat-penalty", 1), of.get("--frequency-penalty", 0), of.get("--presence-penalty", 0)
        last = int(of.get("--repeat-last-n", -1))
        got = behind(prompt, "--temperature", "0", "-n", str(SEQUENCE - len(prompt)), *words)
        if not got.isascii() or "\n" in got:
            continue
        differ += got != behind(prompt, "--temperature", "0", "-n", str(SEQUENCE - len(prompt)))
        before = [prompt + got[:n] for n in range(len(got))]
        for line, z, token in zip(before, logits_of(before), got):
            seen = line if last < 0 else line[len(line) - min(last, len(line)):]
            for c in set(seen):
                i = ord(c)
                z[i] = z[i] * repeat if z[i] < 0 else z[i] / repeat
                z[i] -= frequency * seen.count(c) + presence
            best = max(z)
            check(z[ord(token)] > best - 1e-3, words, "takes", token, z[ord(token)], "behind", line, "where", chr(z.index(best)), best)
    check(differ >= 2, "penalties change nothing")


# ---- no memory after "committed" ----

def test_asks_for_no_memory():
    trained()
    env = environment(PLIMSOLL_TEST_SECCOMP="kill")
    chain = ["--num-samples", "2", "--stop", "xyzzy", "--min-p", "0.02", "--repeat-penalty", "1.1", "--repeat-last-n", "64", "--presence-penalty", "0.1"]
    with open("p.txt", "w") as file:
        file.write("the sea " * 900)
    out, err = text("@p.txt", "--ledger", *chain)
    check("As planned" in err, err)
    for more in ([], ["--json"]):
        text("@p.txt", *chain, *more, env=env)
        text("--interactive", *chain, *more, input=b"the sea\n\nand\n", env=env)
    _, err = text("--interactive", *chain, "--ledger", input=b"the sea\n" * 20)
    check("As planned" in err, err)


# ---- line by line ----

def test_lines_of_a_pipe():
    trained()
    lines = ["the sea", "", "a \u00e4", "and"]
    told = [json.loads(line) for line in text("--interactive", "--json", input="\n".join(lines).encode())[0].splitlines()]
    check([t["sample"] for t in told] == [0, 1, 2, 3], told)
    for k, (line, t) in enumerate(zip(lines, told)): # the k-th answer is the k-th text behind that prompt
        alone = text("--prompt", line, "--num-samples", str(k + 1), "--json")[0].splitlines()[k]
        check(json.loads(alone)["text"] == t["text"], line, alone, t)
    check(text("--interactive", input=b"the sea\n")[0][:-1] == behind("the sea"), "another answer")
    check(text("--interactive", input=b"")[0] == "", "an answer to nothing")
    out, _ = text("--interactive", "--num-samples", "2", "--json", input=b"a\nb\n")
    check([json.loads(line)["sample"] for line in out.splitlines()] == [0, 1, 2, 3], out)
    refused(2, "a line has more than 4095 bytes", "generate", "out", "--interactive", input=b"x" * 5000)


class Terminal:
    """The command as one who types meets it."""

    def __init__(self, *words):
        import pty
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execve(cli_tests.COMMAND, [cli_tests.COMMAND, *words], environment(TERM="xterm"))
        self.text = ""

    def write(self, text):
        os.write(self.terminal, text.encode())

    def read(self, pattern, timeout=60):
        """What comes up to the pattern, which is taken."""
        end = time.monotonic() + timeout
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            check(ready, "nothing comes that matches", pattern, self.text[-500:])
            try:
                block = os.read(self.terminal, 65536)
            except OSError:
                block = b""
            check(block, "it ended before", pattern, self.text[-500:])
            self.text += block.decode(errors="replace")
        before, self.text = self.text[:found.start()], self.text[found.end():]
        return before

    def finish(self):
        try:
            while block := os.read(self.terminal, 65536):
                self.text += block.decode(errors="replace")
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def test_terminal():
    trained()
    t = Terminal("generate", "out")
    t.read("Ctrl-C ends a text, and Ctrl-D the command\r\n> ")
    t.write("the sea\n")
    t.read("the sea\r\n")
    answer = t.read(r"\r\n30 tokens in .*\r\n")
    check(answer.replace("\r\n", "\n") == behind("the sea"), answer)
    t.read("> ")
    t.write("\x04")
    check(t.finish() == 0, t.text)


def test_interrupted_answers():
    """Ctrl-C ends the answer at work, and while a line is awaited the command."""
    trained()
    t = Terminal("generate", "out", "-n", str(1 << 24))
    for line in ("the sea", "and"):
        t.read("> ")
        t.write(line + "\n")
        t.read(line + "\r\n.{20}")
        t.write("\x03")
        t.read(r"\d tokens in .*\r\n")
    t.read("> ")
    t.write("\x03")
    check(t.finish() == 130, t.text)
    process = subprocess.Popen([cli_tests.COMMAND, "generate", "out", "-n", str(1 << 24), "-p", "the", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment())
    out = process.stdout.read(200)
    process.send_signal(signal.SIGINT)
    out += process.stdout.read()
    err = process.stderr.read().decode()
    check(process.wait() == 130, err)
    check(json.loads(out)["ended_by"] == "interrupt", out[-300:])


GROUPS = {
    "generate_prompts": [test_places_of_prompts, test_refused_prompts, test_prompts_longer_than_the_context],
    "generate_texts": [test_several_texts, test_json, test_stops, test_penalties, test_asks_for_no_memory],
    "generate_lines": [test_lines_of_a_pipe, test_terminal, test_interrupted_answers],
}

if __name__ == "__main__":
    main(GROUPS)
