"""Tests of what the command refuses, and where it writes: refused_tests.py PLIMSOLL FOLDER GROUP…

Whatever is asked for is done, or refused with one sentence and an exit code; nothing is left out without a word."""
import json
import os
import resource
import shutil
import signal
import subprocess

from cli_tests import (COMMAND, Skipped, await_event, check, environment, finish, main, read, refused, run, start, write_config,
                       write_text)
from said import unfolded


# ---- what is asked for is done or refused ----

def test_exclusive_options():
    write_text()
    config = write_config()
    for words in (("--json", "--graph"), ("--json", "--html", "-"), ("--graph", "--out-lock", "-"), ("--html", "-", "--out-lock", "-")):
        refused(2, "exclude each other; give one", "plan", config, *words)
    out, _ = run("plan", config, "--json", "--html", "page.html", "--out-lock", "plan.lock")
    check(json.loads(out)["schema"] == "plimsoll.plan/1" and read("page.html").startswith(b"<") and read("plan.lock"), "three forms at once")
    for words in (("--json", "--schema"), ("--schema", "--markdown"), ("--json", "--markdown")):
        refused(2, f"{words[0]} and {words[1]} exclude each other", "config", *words)
    for words in ((config,), ("--width", "3"), ("--set", "model.width=3")):
        refused(2, "--schema takes neither a config nor its options", "config", "--schema", *words)
    check(json.loads(run("config", "--schema")[0])["type"] == "object", "schema")
    refused(2, "unknown option --checkpoint: it is one of plimsoll generate, eval, verify, encode, quantize, infer and export, not of plimsoll train", "train", config, "--checkpoint", "x")
    refused(2, "unknown option --html=x: it is one of plimsoll plan", "config", config, "--html=x")
    refused(2, "--quiet and --verbose exclude each other", "train", config, "--quiet", "--verbose")
    check(not os.path.exists("out/checkpoints"), "a refused train made a checkpoint")
    with open("problem.csv", "w") as file:
        file.write("id,lower,upper,size\na,0,2,10\n")
    refused(2, "exclude each other", "place", "problem.csv", "--json", "--svg", "-")


def test_options_that_the_command_does_not_read():
    """On the command line; in a file, which several commands share, and in the environment they are fine."""
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    for key, words in (("run.resume", ["generate", "out", "--resume"]), ("run.resume", ["eval", config, "--no-resume"]),
                       ("generate.prompt", ["eval", "out", "--prompt", "x"]), ("data.text", ["generate", "out", "--text", "text.txt"]),
                       ("train.learning_rate", ["verify", "out", "--gradients", "g", "--set", "train.learning_rate=1"]),
                       ("train.micro_batch", ["verify", "out", "--gradients", "g", "--micro_batch", "2"]),
                       ("train.seed", ["eval", "out", "--seed", "3"]), ("train.seed", ["generate", "out", "--set", "train.seed=3"]),
                       ("model.dropout", ["eval", "out", "--dropout", "0.5"]), ("train.eval_batches", ["eval", "out", "--eval_batches", "1"]),
                       ("generate.tokens", ["plan", config, "--command", "eval", "--tokens", "3"])):
        refused(2, rf"--.*: this command does not read {key} \(.* (does|do)\); take it away", *words)
    refused(2, r"--resume: this command does not read run.resume \(train does\)", "generate", "out", "--resume")
    refused(2, r"--text: this command does not read data.text \(train, eval, verify and quantize do\)", "generate", "out", "--text=text.txt")
    for words in (["train"], ["plan"]):
        refused(2, r"--prompt: train reads generate.prompt only for samples of text; give --sample_every too", *words, config, "--prompt", "x")
    # A comparison trains and writes no samples, whatever else it is told.
    for words in ([], ["--sample_every", "5"]):
        refused(2, r"--prompt: this command does not read generate.prompt \(generate does\); take it away", "verify", config, "--prompt", "x", *words)
    refused(2, r"--prompt: train reads generate.prompt only for samples of text", "fit", config, "--prompt", "x")
    run("plan", config, "--prompt", "x", "--sample_every", "5")
    run("plan", write_config("samples.yaml", train={"sample_every": 5}), "--set", "generate.top_k=3")
    # One option for two keys: it is enough that one of them is read.
    for words in (["generate", "out"], ["plan", config], ["plan", config, "--command", "generate"], ["verify", "out", "--gradients", "g"]):
        run(*words, "--seed", "3")
    run("config", config, "--prompt", "x", "--resume", "--steps", "3")
    run("eval", "out", env=environment(PLIMSOLL_PROMPT="x", PLIMSOLL_STEPS="7"))
    # The help lists what the command takes.
    for command, there, not_there in (("generate", "--prompt", "--steps"), ("eval", "--validation_fraction", "--prompt"),
                                      ("verify", "--dropout", "--learning_rate"), ("train", "--steps", "--checkpoint "), ("plan", "--prompt", "--svg")):
        text = run("help", command)[0]
        check(there + " " in text and not_there not in text, "help", command, there, not_there)
        check("--threads N" in text and "--seed" in text or command == "eval", "help", command)


def test_guesses():
    refused(2, "did you mean eval", "evaluate")
    refused(2, "did you mean generate", "gen")
    refused(2, "did you mean train", "--train")
    refused(2, "did you mean eval", "help", "evaluate")
    refused(2, "there is no command foo; see plimsoll help", "foo")
    refused(2, "unknown option --abcd; see --help", "config", "x.yaml", "--abcd", "3")
    refused(2, "unknown key \"model.abcd\"; a key is written", "config", "x.yaml", "--set", "model.abcd=3")
    refused(2, "--set needs a value: --set section.key=VALUE, such as --set train.batch_size=8", "config", "x.yaml", "--set")
    refused(2, "is none of train, evaluate, generate, gradients", "plan", write_config(), "--command", "\x1b[31m")


def test_control_characters_are_not_echoed():
    for words in (("\x1b[31mtrain",), ("config", "\x1b[2J.yaml"), ("config", b"\xff\xc2\x9b.yaml"), ("config", "--\x1b[31m"),
                  ("plan", "a\nb.yaml"), ("place", "\x1b]0;x\x07.csv"), ("place", "x.csv", "--capacity", "\x1b[31m"),
                  ("recompute", "\x1b]0;x\x07.dag", "--min"), ("recompute", "x.dag", "--budget", "\x1b[31m")):
        done = subprocess.run([COMMAND, *words], capture_output=True, env=environment(), timeout=60)
        text = done.stderr.decode()  # UTF-8, or this fails
        check(done.returncode in (2, 4), words, done.returncode, text)
        check(text.count("\n") == 1 and text.isprintable() is False and text[:-1].isprintable(), words, repr(text))


def test_ranges_where_they_are_read():
    write_text()
    refused(2, "run.threads must be an integer from 1 to 1024, or auto .*, not 1025", "config", write_config(), "--threads", "1025")
    check("threads: auto" in run("config", write_config(), "--threads", "0")[0], "0 threads is auto")
    refused(2, "--threads: .* not -1", "config", write_config(), "--threads", "-1")
    refused(2, "data.vocab_size must be an integer from 257 to 65535", "config", write_config(), "--tokenizer", "bpe", "--vocab_size", "70000")
    refused(2, "model.window 17 is more than model.sequence 16", "config", write_config(model={"arch": "mlp", "window": 17}, ), "--set", "model.heads=2") if False else None
    with open("mlp.yaml", "w") as file:
        file.write("model: {arch: mlp, width: 16, sequence: 16, window: 17}\n")
    refused(2, r"mlp.yaml:1:\d+: model.window 17 is more than model.sequence 16", "config", "mlp.yaml")
    for key in ("train.learning_rate", "train.beta1", "model.dropout", "generate.temperature", "train.steps", "memory.budget"):
        for value in ("nan", ".nan", "-.inf", "1e999", "-1", "1_000", "99999999999999999999999", "9" * 5000, "0x", ""):
            refused(2, f"--set {key}: {key} ", "config", write_config(), "--set", f"{key}={value}")
            with open("bad.yaml", "w") as file:
                section, name = key.split(".")
                file.write(f"{section}:\n  {name}: {value}\n")
            refused(2, r"config: bad.yaml:2:\d+: " + key, "config", "bad.yaml")


def test_before_any_training():
    write_text()
    config = write_config()
    for command in ("generate", "eval"):
        refused(4, f"out: nothing was trained there yet; train first: plimsoll train {config}", command, config)
        refused(4, "missing: is not a checkpoint .*; give a folder of out/checkpoints", command, config, "--checkpoint", "missing")
    refused(4, "missing: is not a checkpoint", "verify", config, "--gradients", "g.safetensors", "--checkpoint", "missing")
    check(not os.path.exists("out"), "a refused command left a folder")


def test_evaluation_switched_off():
    """The config that a run keeps names every key, so none of them may be taken for a wish."""
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "10")
    refused(2, "data.validation_fraction above 0", "eval", "out", "--validation_fraction", "0")
    run("train", config, "--quiet", "--steps", "10", "--validation_fraction", "0", "--out", "whole")
    check(run("generate", "whole", "--tokens", "3")[0], "no text from a run without evaluation")


# ---- where output may go ----

def writers():
    """Each option that names a file to write, as the words before that name."""
    write_text()
    config = write_config()
    with open("problem.csv", "w") as file:
        file.write("id,lower,upper,size\na,0,2,10\nb,1,3,10\n")
    with open("graph.dag", "w") as file:
        file.write("dag 1 one\nnode 0 1 1 0 0\n")
    return (("plan", config, "--html"), ("plan", config, "--out-lock"), ("place", "problem.csv", "--out"), ("place", "problem.csv", "--svg"),
            ("recompute", "graph.dag", "--min", "--out"), ("verify", config, "--gradients"))


def writes(code, words, target):
    done = subprocess.run([COMMAND, *words, target], capture_output=True, text=True, env=environment(), timeout=60)
    check(done.returncode == code, *words, target, "ended with", done.returncode, done.stderr)
    return unfolded(done.stderr).strip().split("\n")[-1]


def test_output_goes_to_regular_files():
    each = writers()
    os.mkfifo("pipe")
    os.mkdir("folder")
    for link, to in (("dangling", "nothing"), ("round", "round"), ("to_pipe", "pipe"), ("to_folder", "folder"), ("to_full", "/dev/full")):
        os.symlink(to, link)
    for words in each:
        for target in ("/dev/null", "/dev/full", "pipe", "folder", "to_pipe", "to_folder", "to_full"):
            check("not a regular file; give another name" in writes(5, words, target), words, target)
        for target in ("dangling", "round"):
            check("leads nowhere" in writes(5, words, target), words, target)
        writes(5, words, "missing/file")
    check(not [n for n in os.listdir(".") + os.listdir("folder") if n.endswith(".tmp") or n == "nothing"], "left over:", os.listdir("."))
    check(os.path.islink("dangling") and os.path.islink("to_full") and not os.path.isfile("pipe"), "what was there is not there any more")


def test_output_is_no_input():
    """Nor one of the other outputs, nor what a run keeps: whatever the name, with nothing written before that is known."""
    (plan, config, _), *_ = writers()
    run("train", config, "--quiet", "--steps", "20")
    os.link("problem.csv", "hard.csv")
    os.symlink("problem.csv", "soft.csv")
    os.mkdir("folder")
    model = [f"out/checkpoints/{n}/model.safetensors" for n in sorted(os.listdir("out/checkpoints")) if n.startswith("step")][-1]
    shutil.copytree(os.path.dirname(model), "copied")
    shutil.copy("problem.csv", "named.plimsoll.tmp")
    before = {path: read(path) for path in ("problem.csv", "named.plimsoll.tmp", "graph.dag", "text.txt", config, model, "copied/model.safetensors",
                                            "out/config.yaml", "out/metrics.jsonl", "out/tokens.bin", "out/report.json")}
    verify = ["verify", "--gradients"]
    for words in (["place", "problem.csv", "--svg", "problem.csv"], ["place", "problem.csv", "--out", "./folder/../hard.csv"],
                  ["place", "problem.csv", "--svg", "soft.csv"], ["place", "soft.csv", "--out", "problem.csv"],
                  ["place", "problem.csv", "--svg", "new", "--out", "./new"], ["place", "named.plimsoll.tmp", "--svg", "named"],
                  ["recompute", "graph.dag", "--min", "--out", "graph.dag"],
                  [plan, config, "--html", "new", "--out-lock", os.path.abspath("new")], [plan, config, "--html", "new.plimsoll.tmp", "--out-lock", "new"],
                  [plan, config, "--html", config], [plan, config, "--out-lock", "text.txt"], [plan, "out", "--html", "out/config.yaml"],
                  [*verify, "text.txt", "out"], [*verify, "out/tokens.bin", "out"], [*verify, "out/metrics.jsonl", config],
                  ["train", config, "--resume", "--steps", "30", "--trace", "text.txt"], ["train", config, "--out", "new", "--trace", config],
                  ["train", config, "--resume", "--steps", "30", "--trace", "out/metrics.jsonl"],
                  ["train", config, "--resume", "--steps", "30", "--trace", "out/report.json"],
                  ["train", config, "--out", "new", "--trace", "new/metrics.jsonl"], ["train", config, "--out", "new/", "--trace", "./new//plan.lock"],
                  ["train", config, "--out", "new", "--trace", "new/x/.././report.json"], ["train", config, "--out", "new", "--trace", "new/checkpoints"],
                  ["train", config, "--text", "out/metrics.jsonl", "--resume", "--steps", "30"]):
        refused(2, " are the same file; give another name", *words)
        check({path: read(path) for path in before} == before and not os.path.exists("new"), words, "wrote something")
    for words in ([*verify, model, "out"], [*verify, "out/checkpoints/g.safetensors", "out"], [plan, config, "--html", f"{os.path.dirname(model)}/../page.html"],
                  ["train", config, "--resume", "--steps", "30", "--trace", "out/checkpoints/latest"],
                  ["train", config, "--out", "new", "--trace", "new/checkpoints/x"],
                  [*verify, "copied/model.safetensors", "out", "--checkpoint", "copied"]):
        refused(2, "lies in .*, where nothing else may be written; give another name", *words)
        check({path: read(path) for path in before} == before, words, "wrote something")
    for out, words in (("out", ["--text", "out/tokens.bin"]), ("fresh", ["--text", "out/tokenizer.json", "--out", "out"]),
                       ("cached", ["--text", "cached/tokens.bin", "--set", "data.cache=cached", "--out", "fresh"])):
        shutil.rmtree("out/checkpoints", ignore_errors=True)
        os.makedirs("cached", exist_ok=True)
        shutil.copy("text.txt", "cached/tokens.bin")
        if out == "fresh":
            shutil.copy("text.txt", "out/tokenizer.json")
        at = words[1]
        was = read(at)
        refused(2, " are the same file; give another name", plan, config, *words)
        check(read(at) == was, words, "wrote over its text")
    run(plan, config, "--html", "-", "--out-lock", "lock")
    run("place", "problem.csv", "--svg", "drawing", "--out", "placed")
    run("place", "problem.csv", "--svg", "drawing", "--out", "placed")


def test_output_follows_links():
    for number, words in enumerate(writers()):
        os.makedirs("elsewhere", exist_ok=True)
        with open("elsewhere/file", "w") as file:
            file.write("<!doctype html>")  # may be a page, of which some write one
        if number == 0:
            os.symlink("elsewhere/file", "link")
        writes(0, words, "link")
        check(os.path.islink("link") and read("elsewhere/file") != b"<!doctype html>", words, "did not follow the link")
        check(os.listdir("elsewhere") == ["file"], os.listdir("elsewhere"))


def test_output_on_full_disk():
    if os.geteuid() != 0:
        raise Skipped("only root may mount a small disk")
    each = writers()
    run("plan", each[0][1], "--json")  # the token file is there
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "small"], capture_output=True).returncode:
        raise Skipped("tmpfs cannot be mounted here")
    try:
        with open("small/filler", "wb") as file:
            file.write(bytes(8192))
        with open("small/file", "w") as file:
            file.write("<!doctype html>")
        for words in each:
            if words[0] in ("place", "recompute"):
                continue  # what these write finds room
            check("No space left" in writes(5, words, "small/file"), words)
            check(read("small/file") == b"<!doctype html>" and sorted(os.listdir("small")) == ["file", "filler"], os.listdir("small"))
        subprocess.run(["mount", "-o", "remount,ro", "small"], check=True, capture_output=True)
        for words in each:
            check("Read-only" in writes(5, words, "small/file"), words)
        refused(5, "small/run: cannot be created: Read-only file system", "train", each[0][1], "--quiet", "--out", "small/run")
    finally:
        subprocess.run(["umount", "small"])


def test_small_stack():
    """A sentence at the very beginning, not a segmentation fault somewhere later."""
    write_text()
    config = write_config()
    for kib in (32, 64, 128, 255):
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        for words in (["train", config], ["config", config], ["plan", config]):
            refused(2, rf"the main stack may have [0-9.]+ kB \({kib << 10:,} bytes\), .*ulimit -s 256", *words, preexec_fn=limit)
    kib = 256
    run("train", config, "--quiet", "--steps", "5", preexec_fn=limit)


def test_too_few_descriptors():
    """Whatever is refused for want of them, the sentence says so, not that /proc or a process is not there."""
    write_text()
    run("train", write_config(), "--quiet", "--steps", "5")
    codes = []
    for least in range(4, 12):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (least, least))
        for words in (["eval", "out"], ["doctor", "--pid", str(os.getpid())]):
            done = subprocess.run([COMMAND, *words], capture_output=True, text=True, env=environment(), preexec_fn=limit, timeout=60)
            said, codes = unfolded(done.stderr).strip().split("\n")[-1], codes + [done.returncode]
            check(done.returncode in (0, 1, 5, 127), words, least, done.returncode, said)
            if done.returncode in (1, 5):
                check("Too many open files" in said and "ulimit -n" in said and "mount /proc" not in said, words, least, done.returncode, said)
    check(5 in codes and 0 in codes, codes)


def test_exit_codes():
    """Each code that the help promises, provoked."""
    promised = " ".join(run("help")[0].split("Exit codes: ")[1].split())
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 ", "75 ", "130", "143"):
        check(code in promised, code, "is not in", promised)
    write_text()
    config = write_config()
    refused(1, "diverged|not finite|no longer finite", "train", config, "--quiet", "--out", "hot", "--learning_rate", "100", "--steps", "400",
            "--set", "train.weight_decay=100", "--warmup_steps", "0")
    refused(2, "width", "plan", config, "--width", "0")
    refused(3, "bytes", "plan", config, "--budget", "1")
    refused(4, "none.txt", "plan", config, "--text", "none.txt")
    refused(5, "not a regular file", "plan", config, "--html", "/dev/null")
    for asked, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 75)):
        process = start("train", config, "--steps", "100000", "--out", f"out{code}")
        await_event(process, "step")
        process.send_signal(asked)
        check(finish(process) == code, asked, process.returncode, "not", code)


def test_measured_differs():
    """Exit code 6: a library that somebody loads into the run takes memory that no plan has."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skipped("no compiler for the library that takes memory")
    with open("takes.c", "w") as file:
        file.write("""#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void take(void)
{
    char line[64] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY);
    if (read(fd, line, 63) > 0 && strcmp(line + strlen(line) + 1, "__run") == 0)
        memset(mmap(0, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 16 << 20);
    close(fd);
}
""")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "takes.so", "takes.c"], check=True)
    write_text()
    refused(6, "measured memory is not as planned: .* resident, .* planned", "train", write_config(), "--quiet", "--steps", "10",
            env=environment(LD_PRELOAD=os.path.abspath("takes.so")))


GROUPS = {
    "refused": [test_exclusive_options, test_options_that_the_command_does_not_read, test_guesses, test_control_characters_are_not_echoed, test_ranges_where_they_are_read,
                test_before_any_training, test_evaluation_switched_off, test_small_stack, test_too_few_descriptors, test_exit_codes, test_measured_differs],
    "files": [test_output_goes_to_regular_files, test_output_is_no_input, test_output_follows_links, test_output_on_full_disk],
}

if __name__ == "__main__":
    main(GROUPS)
