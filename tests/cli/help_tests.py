"""What -h, --help and help WORD show: that it fits a screen, that every example and every named option is taken, that words are found,
and the pager. Called as cli_tests.py is."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from cli_tests import COMMAND, check, environment, main, refused, run

OVERVIEW = run("-h")[0]
COMMANDS = re.findall(r"^  ([a-z]+)  ", OVERVIEW, re.MULTILINE)


def lines(*words):
    return run(*words)[0].splitlines()


def fits(text, most, *where):
    check(len(text) <= most, *where, len(text), "lines")
    for line in text:
        check(len(line) <= 80, *where, line)


def test_one_screen():
    check(len(COMMANDS) >= 20 and "train" in COMMANDS and "help" in COMMANDS, COMMANDS)
    check(run()[0] == OVERVIEW, "plimsoll alone")
    fits(OVERVIEW.splitlines(), 40, "plimsoll -h")
    for name in COMMANDS:
        fits(lines(name, "-h"), 40, name)
        check(len(lines(name, "--help")) > len(lines(name, "-h")) or name in ("help", "completion"), name, "--help is shorter")


def test_examples_and_options():
    """Three examples, whose options are all known; of commands with a config some options of it, each of which the long help has."""
    for name in COMMANDS:
        text, long = run(name, "-h")[0], run(name, "--help")[0]
        examples = re.findall(r"^  plimsoll (.*)$", text, re.MULTILINE)
        check(len(examples) == 3, name, examples)
        for example in examples:
            check(example.split()[0] == name, name, example)
            for option in re.findall(r" (--[a-z_-]+)", example.split(" -- ")[0]):
                check(re.search(rf"^  {option}\b", long, re.MULTILINE), name, option, "is not in its help")
        for option in re.findall(r"^  (--[a-z_-]+)", text, re.MULTILINE):
            check(re.search(rf"^  {option}\b", long, re.MULTILINE), name, option, "is not in its help")
    check(run("-h", "train")[0] == run("train", "-h")[0] and run("--help", "train")[0] == run("train", "--help")[0], "-h before the command")
    check(15 <= len(re.findall(r"^  --", run("train", "-h")[0], re.MULTILINE)) <= 28, "train")


def test_groups():
    text = run("train", "--help")[0]
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)
    check(titles[:6] == ["Options", "Data", "Model", "Optimisation", "Memory and time", "Output"], titles)
    at = {title: text.index(f"\n{title}:\n") for title in titles}
    for option, title, behind in (("--text PATH", "Data", "Model"), ("--width N", "Model", "Optimisation"),
                                  ("--learning_rate X", "Optimisation", "Memory and time"), ("--budget SIZE", "Memory and time", "Output"),
                                  ("--mixed_precision", "Memory and time", "Output"), ("--out PATH", "Output", "Everything else")):
        check(at[title] < text.index(f"\n  {option}") < at.get(behind, len(text)), option, "is not under", title)
    text = run("generate", "--help")[0] # what a command alone reads comes first
    check(re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)[:3] == ["Options", "Sampling", "Model"], text[:3000])
    for command in ("ablate", "train", "plan", "eval", "encode", "infer", "rollout", "quantize"):  # what has no group of its own changes nothing
        _, _, others = run(command, "--help")[0].partition("\nEverything else:\n")
        for key in re.split(r"\n  (?=-)", "\n" + others)[1:]:
            check("no effect here" in " ".join(key.split()) or key.startswith("--set metadata."), command, key)


def test_pretrained():
    """What holds for a pretrained model comes first, whole and alone: its config takes each of these options."""
    for command in ("generate", "chat", "eval", "infer"):
        brought, _, trained = run(command, "--help")[0].partition("\nOF MODELS THAT ARE TRAINED HERE")
        before, _, brought = brought.partition("\nOF A PRETRAINED MODEL")
        check(before and brought and trained, command)
        for option, what in (("--sequence N", "tokens of a text, its prompt among them"), ("--encoding NAME", "how the matrices")):
            check(re.search(rf"^  {option} +{what}", brought, re.MULTILINE), command, option)
        check("--tokenizer" not in brought and "--width" not in brought and "--vocab_size" not in brought, command, brought)
        check("--encoding" not in trained and "--budget" not in trained, command, trained)
    check("OF A PRETRAINED MODEL" not in run("train", "--help")[0], "a training has none")
    check("tokens of a text, its prompt among them" in run("chat", "-h")[0], "chat -h")


def test_words():
    """A key by its path, its name, its option; by what others call it; a name that is refused; a word in keys, commands, pages."""
    for word in ("train.learning_rate", "learning_rate", "--learning_rate", "lr", "--learning-rate"):
        check(run("help", word)[0].startswith("train.learning_rate   --learning_rate X\n    the highest learning rate"), word)
    check("max_steps" in run("help", "steps")[0], "other names")
    text = run("help", "warmup_ratio")[0]
    check(text.startswith("warmup_ratio is not one of Plimsoll's names\n") and "--warmup_steps N" in text, text)
    text = run("help", "quantiz")[0]
    check("plimsoll COMMAND" in text and "docs/quantize.md" in text and "Keys that mention" in text, text)
    check(run("help", "train")[0] == run("train", "--help")[0], "a command")
    for word in ("batch_size", "memory", "onnx", "a"):
        for line in lines("help", word):
            check(len(line) <= 80 or "docs/" in line, word, line)
    refused(2, "no command qqzzqq, and no key or page mentions it; see plimsoll help", "help", "qqzzqq")
    refused(2, "no command trian, and no key or page mentions it; did you mean train", "help", "trian")


def on_terminal(*words, **variables):
    """What the command shows on a terminal of 20 lines."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
    process = subprocess.Popen([COMMAND, *words], stdin=follower, stdout=follower, stderr=follower, env={**environment(), **variables})
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the last that had it open has ended
            break
        if not piece:
            break
        shown += piece
    code = process.wait(timeout=60)
    os.close(leader)
    return code, shown.decode(errors="replace").replace("\r\n", "\n")


def test_pager():
    text = run("train", "--help")[0]
    for pager, wanted in (("sed s/^/:/", ":" + text[:-1].replace("\n", "\n:") + "\n"), ("cat", text), ("", text), ("no-such-pager-here", None),
                          ("head -2", "".join(text.splitlines(True)[:2]))):
        code, shown = on_terminal("train", "--help", PAGER=pager)
        check(code == 0 and (shown == wanted if wanted else shown.endswith(text)), pager, code, shown[:300])
    check(on_terminal("train", "-h", PAGER="false") == (0, run("train", "-h")[0]), "one screen needs no pager")
    check(run("train", "--help", env={**environment(), "PAGER": "false"})[0] == text, "what is no terminal gets no pager")


if __name__ == "__main__":
    main({"help": [test_one_screen, test_examples_and_options, test_groups, test_pretrained, test_words, test_pager]})
