"""Tests of the command: cli_tests.py PLIMSOLL FOLDER GROUP…   (PLIMSOLL_TEST_SEED repeats the random instants)

Each test gets a folder of its own below FOLDER; kernels are measured once, in a cache that all share (but where what is
known decides: main). A check that fails prints the command, what it said and what was expected. The oracle of every
interrupted run is the run that was not."""
import atexit
import fcntl
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from said import needed, plain, unfolded  # noqa: F401: for those who import from here

COMMAND = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(sys.argv[2])
cache_folder = os.path.join(ROOT, "cache")
SEED = int(os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30)))
TINY = {
    "model": {"width": 16, "layers": 1, "heads": 2, "sequence": 16},
    "data": {"text": "text.txt", "tokenizer": "bytes"},
    "train": {"batch_size": 8, "micro_batch": 4, "steps": 120, "learning_rate": "3e-3", "checkpoint_every": 20, "eval_every": 40,
              "eval_batches": 2, "log_every": 5},
    "generate": {"tokens": 40},
    "run": {"threads": 1, "out": "out"},
}
TIMES = ("tokens_per_second", "words_per_second", "pages_per_second", "samples_per_second", "seconds")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    env.update(XDG_CACHE_HOME=cache_folder, OMP_WAIT_POLICY="passive", LC_ALL="C")
    if "PL_PRELOAD_NO_TIME" in os.environ:  # of tests/support/process: measuring is over when it begins, and all is estimated
        env.update(LD_PRELOAD=os.environ["PL_PRELOAD_NO_TIME"], PL_PRELOAD_CLOCK_STEP_NS="30000000000")
    env.update(more)
    return env


def run(*words, code=0, env=None, timeout=120, **options):
    """Runs the command and returns (stdout, stderr); the exit code must be the one expected. What it reads is said: it has no terminal."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([COMMAND, *words], capture_output=True, env=env or environment(), timeout=timeout, **options)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode != code:
        raise Failed(f"plimsoll {' '.join(words)}: exit code {done.returncode}, not {code}\n{out[-2000:]}\n{err[-2000:]}")
    return out, err


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def refused(code, pattern, *words, **options):
    """One sentence that says `pattern`, behind the command's name, at the end of stderr; nothing on stdout."""
    out, err = run(*words, code=code, **options)
    line = unfolded(err).strip().split("\n")[-1]
    check(re.search(pattern, line) or re.search(pattern, plain(line)), f"plimsoll {' '.join(words)} said\n  {line}\nnot\n  {pattern}")
    check(re.match("plimsoll( [a-z_]+)?: ", line), "the command's name is missing:", line)
    check(out == "", "there is output:", out[:200])


def write_config(path="config.yaml", **sections):
    merged = {name: {**TINY.get(name, {}), **sections.get(name, {})} for name in {**TINY, **sections}}
    with open(path, "w") as file:
        for name, keys in merged.items():
            file.write(f"{name}:\n" + "".join(f"  {k}: {v}\n" for k, v in keys.items() if v is not None))
    return path


def write_text(path="text.txt", words=12000, seed=5):
    source = random.Random(seed)
    known = ["".join(source.choice("etaoinshrdlu") for _ in range(source.randint(2, 7))) for _ in range(200)]
    with open(path, "w") as file:
        file.write(" ".join(known[int(source.random() ** 2 * 200)] for _ in range(words)))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def metrics(out):
    lines = [json.loads(line) for line in read(f"{out}/metrics.jsonl").splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines]


def last_checkpoint(out):
    return f"{out}/checkpoints/" + read(f"{out}/checkpoints/latest").decode().strip()


def same_run(a, b):
    """All that a run leaves, but times: weights, optimizer, metrics, which checkpoints there are."""
    check(metrics(a) == metrics(b), f"{a}/metrics.jsonl and {b}/metrics.jsonl differ")
    names = [sorted(os.listdir(f"{o}/checkpoints")) for o in (a, b)]
    check(names[0] == names[1], "checkpoints differ:", *names)
    for name in ("model.safetensors", "state.safetensors"):
        check(read(f"{last_checkpoint(a)}/{name}") == read(f"{last_checkpoint(b)}/{name}"), f"{name} of {a} and {b} differ")


# ---- texts: help, version, completion, config ----

def test_help_names_every_command():
    out, _ = run("help")
    for name in ("plan", "fit", "train", "generate", "chat", "eval", "verify", "export", "place", "recompute", "results", "storage", "report", "top", "synth", "draw", "doctor", "config", "completion", "help"):
        check(f"  {name} " in out, name, "is not in the help")
        text, _ = run("help", name)
        check(text.startswith(f"plimsoll {name}: ") and "usage: plimsoll " + name in text, text[:200])
        check(run(name, "--help")[0] == text, f"{name} --help is not help {name}")
    check(run("--help")[0] == out, "--help is not help")
    check("--batch_size N" in run("help", "train")[0], "the config's options are not in the help")
    check(re.match(r"plimsoll \d+\.\d+\.\d+\n", run("--version")[0]), "version")
    check("__run" not in out, "the runner is shown")


def test_words_that_mean_nothing():
    refused(2, "there is no command trian; did you mean train", "trian")
    refused(2, "there is no command xyzzy; see plimsoll help", "xyzzy")
    refused(2, "no command frobnicate", "help", "frobnicate")
    refused(2, "unknown option --batchsize; did you mean --batch_size", "train", "x.yaml", "--batchsize", "8")
    refused(2, "unknown option --verbos; did you mean --verbose", "train", "x.yaml", "--verbos")
    refused(2, "a config file is missing: plimsoll plan CONFIG", "plan")
    refused(2, "generate: --seed must be an integer from 0 to", "generate", write_config(), "--seed", "-1")
    refused(2, "one config only", "plan", write_config(), "b.yaml")
    refused(2, "--html needs a value", "plan", write_config(), "--html")
    refused(2, "--html needs a value: --html FILE; --json is an option", "plan", write_config(), "--html", "--json")
    refused(2, "--out needs a value: --out VALUE; --threads is an option", "plan", write_config(), "--out", "--threads", "1")
    refused(2, "--json takes no value", "plan", write_config(), "--json=yes")
    refused(2, "--ledger needs --gradients", "verify", write_config(), "--ledger")
    refused(2, "__run is internal", "__run")
    refused(2, "which shell", "completion", "tcsh")
    refused(2, "is none of train, evaluate", "plan", write_config(), "--command", "fly")


def test_completion():
    for shell in ("bash", "zsh", "fish"):
        out, _ = run("completion", shell)
        check("generate" in out and "batch_size" in out, shell, out[:300])
    out, _ = run("completion", "bash")
    with open("completion.bash", "w") as file:
        file.write(out)
    if not shutil.which("bash"):
        raise Skipped("no bash")
    ask = "source completion.bash; COMP_WORDS=(plimsoll %s); COMP_CWORD=%d; _plimsoll; echo ${COMPREPLY[@]}"
    for words, at, expected in (("tr", 1, "train"), ("train --batch_s", 2, "--batch_size"), ("plan --js", 2, "--json"), ("generate --temp", 2, "--temperature"),
                                ("eval --tempe", 2, None), ("train --isa base", 3, "baseline"), ("train --isa = base", 4, "baseline"),
                                ("train --set run.is", 3, "run.isa="), ("train --set run.isa = base", 5, "baseline"), ("eval --set train.steps", 3, None),
                                ("plan --command ev", 3, "evaluate"), ("doctor --at p", 3, "peak"), ("recompute --mi", 2, "--min"), ("results rep", 2, "report"), ("completion fi", 2, "fish"),
                                ("results ls rep", 3, None)):
        done = subprocess.run(["bash", "-c", ask % (words, at)], capture_output=True, text=True)
        check(done.stdout.split() == ([expected] if expected else []), words, "gives", done.stdout, done.stderr)


def test_config():
    out, _ = run("config", write_config(), "--batch_size", "24", "--set", "train.seed=9", env=environment(PLIMSOLL_WIDTH="48"))
    with open("effective.yaml", "w") as file:
        file.write(out)
    check("batch_size: 24" in out and "seed: 9" in out and "width: 16" not in out and "width: 48" in out, out)
    check(run("config", "effective.yaml")[0] == out, "the effective config does not read back as itself")
    check(json.loads(run("config", "effective.yaml", "--json")[0])["train"]["batch_size"] == 24, "json")
    check("properties" in json.loads(run("config", "--schema")[0]), "schema")
    check(run("config", "--markdown")[0].startswith("# Configuration reference"), "markdown")


# ---- errors: each kind once, exact code, sentence ----

def test_config_errors():
    write_text()
    def of(text):
        with open("bad.yaml", "w") as file:
            file.write(text)
        return "bad.yaml"
    refused(2, r"bad.yaml:2:3: .*widht.*did you mean .*width", "train", of("model:\n  widht: 3\n"))
    refused(2, r"bad.yaml:3:3: .*width", "train", of("model:\n  width: 32\n  width: 64\n"))
    refused(2, r"bad.yaml:2:10: .*width", "train", of("model:\n  width: many\n"))
    refused(2, r"bad.yaml:2:10: .*width", "train", of("model:\n  width: 99999999999999999999\n"))
    refused(2, r"heads", "train", write_config(model={"heads": 3}))
    refused(2, r"missing.yaml", "train", "missing.yaml")
    os.mkdir("folder")
    refused(2, r"folder: is not a readable folder of a run", "generate", "folder")
    refused(2, r"--steps", "train", write_config(), "--steps", "-4")
    refused(2, r"PLIMSOLL_WIDHT.*did you mean PLIMSOLL_WIDTH", "train", write_config(), env=environment(PLIMSOLL_WIDHT="3"))
    check(not os.path.exists("out"), "a refused config left a folder")


def test_absurd_sizes():
    write_text()
    for absurd in ({"width": 16777216, "heads": 1}, {"layers": 300, "width": 4096}, {"feed_forward": 67108864, "width": 8192}):
        words = [w for k, v in absurd.items() for w in ("--" + k, str(v))]
        done = subprocess.run([COMMAND, "plan", write_config(), *words, "--budget", "100MB"], capture_output=True, env=environment(), timeout=60)
        check(done.returncode in (2, 3), absurd, done.returncode, done.stderr[-500:])
        check(done.stderr.startswith(b"plimsoll plan: ") or b"\nplimsoll plan: " in done.stderr, done.stderr[-500:])


def test_does_not_fit():
    write_text()
    refused(3, r"bytes|MB", "train", write_config(), "--budget", "1MB")
    refused(3, r"bytes|MB", "plan", write_config(), "--budget", "1MB")


def test_text_errors():
    refused(4, r"none.txt", "train", write_config(data={"text": "none.txt"}))
    open("empty.txt", "w").close()
    refused(4, r"empty.txt: .*empty", "train", write_config(data={"text": "empty.txt"}))
    with open("short.txt", "w") as file:
        file.write("short")
    refused(4, r"short|token", "train", write_config(data={"text": "short.txt"}))
    refused(2, r"out: lies in ., a folder of texts", "train", write_config(data={"text": "."}))
    refused(2, r"this command needs data.text", "train", write_config(data={"text": "none"}))
    if os.geteuid() != 0:
        write_text("secret.txt")
        os.chmod("secret.txt", 0)
        refused(5, r"secret.txt: .*ermission", "train", write_config(data={"text": "secret.txt"}))


def test_damaged_files():
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    tokens = [n for n in os.listdir("out") if n.startswith("tokens")]
    check(tokens, "no token file in out:", os.listdir("out"))
    model = last_checkpoint("out") + "/model.safetensors"
    whole = read(model)
    with open(model, "r+b") as file:
        file.truncate(len(whole) // 2)
    refused(4, r"model.safetensors.*damaged", "eval", config, "--checkpoint", last_checkpoint("out"))
    with open(model, "wb") as file:
        file.write(whole)
    # A truncated token file is made again, not read.
    with open("out/" + tokens[0], "r+b") as file:
        file.truncate(1000)
    out, _ = run("eval", config, "--json")
    check(json.loads(out)["schema"] == "plimsoll.eval/1", out)


def damage(path):
    """One bit; twice is as it was."""
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))


def test_damaged_checkpoints():
    """No command takes other weights than it says without a word."""
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "60")
    best = "out/checkpoints/" + read("out/checkpoints/best").decode().strip()
    damage(f"{best}/model.safetensors")
    for words in (["eval"], ["generate"], ["verify", "--gradients", "g.safetensors"]):
        refused(4, rf"{best}/model.safetensors: does not match its checksum .* best checkpoint: .*--checkpoint", *words, "out")
    damage(f"{best}/model.safetensors")
    run("eval", "out")
    with open("out/checkpoints/best", "w") as file:
        file.write("nonsense\n")
    refused(4, r"out/checkpoints/best: does not name a checkpoint", "eval", "out")
    # Without a best one it is the newest.
    os.remove("out/checkpoints/best")
    check(json.loads(run("eval", "out", "--json")[0])["step"] == 60, "not the newest")
    damage("out/checkpoints/step-00000060/model.safetensors")
    warning = r"warning: .*step-00000060/model.safetensors: does not match its checksum .*; step 40 is used instead"
    for words in (["eval", "out", "--json"], ["eval", "out", "--json", "--progress", "json"]):
        out, err = run(*words)
        check(json.loads(out)["step"] == 40 and re.search(warning, err), words, out, err)
    out, err = run("train", config, "--resume", "--quiet", "--steps", "80")
    check(re.search(warning, err) and last_checkpoint("out").endswith("80"), err)
    for name in os.listdir("out/checkpoints"):
        if name.startswith("step"):
            damage(f"out/checkpoints/{name}/model.safetensors")
    refused(4, "no sound checkpoint is left", "train", config, "--resume", "--steps", "90")


def test_best_checkpoint_that_is_not_kept():
    write_text()
    config = write_config(train={"steps": 6, "eval_every": 1, "checkpoint_every": 1, "keep_last": 1, "keep_best": "false", "learning_rate": 1,
                                 "log_every": 1})
    run("train", config, "--quiet")
    losses = [m["validation_loss"] for m in metrics("out") if "validation_loss" in m]
    check(losses.index(min(losses)) + 1 < len(losses), "the best is the last; the test needs a worse learning rate:", losses)
    check(not os.path.exists("out/checkpoints/best"), "a best checkpoint is named that is not kept")
    check(json.loads(run("eval", "out", "--json")[0])["step"] == 6, "not the newest")


def test_checkpoint_of_another_model():
    write_text()
    run("train", write_config(), "--quiet", "--steps", "20")
    refused(2, r"width|model|shape", "train", write_config(), "--resume", "--width", "32", "--steps", "30")
    before = read(last_checkpoint("out") + "/model.safetensors")
    refused(2, r"width|model|shape", "generate", write_config(), "--width", "32")
    check(read(last_checkpoint("out") + "/model.safetensors") == before, "the checkpoint changed")


def test_second_run():
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    files = {n: read("out/" + n) for n in ("config.yaml", "plan.lock", "metrics.jsonl", "report.json")}
    refused(5, r"out: holds a run that is at step 20; .*--resume.*--out", "train", config, "--quiet", "--seed", "7")
    check(files == {n: read("out/" + n) for n in files}, "a refused run changed files")
    first = start("train", config, "--resume", "--steps", "100000")
    await_event(first, "step")
    files = {n: read("out/" + n) for n in ("config.yaml", "plan.lock")}
    refused(5, r"out.*(process|used|running|lock)", "train", config, "--resume", "--quiet", "--steps", "90")
    check(files == {n: read("out/" + n) for n in files}, "a refused run changed files")
    first.send_signal(signal.SIGINT)
    check(finish(first) == 130, "the first run did not end as asked")


def without_rights(*words):
    """As root everything may be written: step down to nobody."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", COMMAND, *words] if os.geteuid() == 0 else [COMMAND, *words]


def test_read_only_folder():
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skipped("root may write everything, and there is no setpriv")
    write_text()
    os.mkdir("closed")
    os.chmod("closed", 0o555)
    done = subprocess.run(without_rights("train", write_config(), "--out", "closed/out", "--quiet"), capture_output=True, text=True,
                          env=environment(), timeout=60)
    if done.returncode in (126, 127) or "ermission denied" in done.stderr and "setpriv" in done.stderr:
        raise Skipped("the command cannot be started as nobody: " + done.stderr)
    check(done.returncode == 5 and "closed/out" in done.stderr, done.returncode, done.stderr)


def test_full_disk():
    if os.geteuid() != 0:
        raise Skipped("only root may mount a small disk")
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", "small"], capture_output=True).returncode:
        raise Skipped("tmpfs cannot be mounted here")
    try:
        write_text()
        refused(5, r"small.*(space|free|bytes)", "train", write_config(), "--out", "small/out", "--quiet", "--width", "64", "--micro_batch", "8")
        check(not os.path.exists("small/out/checkpoints/latest"), "a checkpoint that cannot be kept")
    finally:
        subprocess.run(["umount", "small"])


def test_closed_output():
    write_text()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COMMAND, "plan", write_config(), "--json"], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60)
    check(done.returncode == 5 and b"standard output" in done.stderr, done.returncode, done.stderr)


# ---- plan ----

def test_plan_json():
    write_text()
    plan = json.loads(run("plan", write_config(), "--json")[0])
    check(plan["schema"] == "plimsoll.plan/1", plan["schema"])
    check(plan["model"]["micro_batch"] == 4 and plan["model"]["accumulation"] == 2, plan["model"])
    rows = sum(row["resident_bytes"] for row in plan["process"]["rows"])
    check(rows == plan["process"]["resident_bytes"], "rows and resident differ", rows)
    run("train", write_config(), "--steps", "1", "--quiet") # generate's plan needs the tokenizer
    for command in ("train", "evaluate", "generate", "gradients"):
        check(json.loads(run("plan", write_config(), "--command", command, "--json")[0])["process"]["resident_bytes"] > 0, command)


def test_plan_files():
    write_text()
    out, err = run("plan", write_config(), "--html", "plan.html", "--out-lock", "plan.lock")
    check("resident" in out and "charged" in out and "Arena" in out or "arena" in out, out[:500])
    check(b"<svg" in read("plan.html") and read("plan.lock"), "files")
    check("turning text" in err or "text" in err, "it does not say that it prepares the text:", err)
    refused(5, r"nowhere/plan.html", "plan", write_config(), "--html", "nowhere/plan.html")
    check(b"node" in run("plan", write_config(), "--graph")[0].encode(), "graph")


def test_plan_without_home():
    write_text()
    env = environment()
    del env["XDG_CACHE_HOME"]
    env.pop("HOME", None)
    run("plan", write_config(), "--json", env=env)
    run("plan", write_config(), "--json", env={**env, "HOME": "/proc/nothing"})


# ---- train ----

def test_train():
    write_text()
    out, err = run("train", write_config(), "--sample_every", "60")
    check(out == "", "train writes to stdout:", out[:200])
    for part in ("plan: ", "committed: ", "step 120/120", "validation", "sample at step 60", "done: 120 steps"):
        check(part in err, part, "is not said:\n", err)
    report = json.loads(read("out/report.json"))
    check(report["schema"] == "plimsoll.ledger/1" and report["as_planned"], "report")
    check(report["unexplained_bytes"] <= 0.01 * report["measured_bytes"], "unexplained", report["unexplained_bytes"])
    check(all(os.path.getsize("out/" + n) for n in ("plan.lock", "plan.html", "config.yaml", "metrics.jsonl")), "files")
    losses = [m["loss"] for m in metrics("out") if "loss" in m]
    check(losses[-1] < losses[0] - 1, "it does not learn:", losses)
    quiet_out, quiet_err = run("train", write_config(), "--sample_every", "60", "--out", "quiet", "--quiet")
    check(quiet_out == "" and quiet_err == "", "not quiet:", quiet_err)
    same_run("out", "quiet")


def test_train_json():
    write_text()
    out, _ = run("train", write_config(), "--progress", "json", "--sample_every", "60")
    lines = [json.loads(line) for line in out.split("\n") if line]
    check(all(line["schema"] == "plimsoll.progress/1" for line in lines), "schema")
    kinds = [line["event"] for line in lines]
    for kind in ("committed", "step", "evaluated", "saved", "text", "text_end", "finished", "times", "ledger"):
        check(kind in kinds, kind, "is missing in", kinds)
    check(kinds[0] == "committed" and kinds[-1] == "ledger" and lines[-1]["ledger"]["as_planned"], "order")
    check(all(math.isfinite(line["loss"]) for line in lines if line["event"] == "step"), "loss")
    documents = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/formats.md")).decode().split("## --progress json")[1]
    for line in lines:
        row = next((r for r in documents.splitlines() if r.startswith("|") and f"`{line['event']}`" in r.split(" | ")[0]), "")
        check(row and all(f"`{key}`" in row for key in line if key not in ("schema", "event", "step", "steps")), "not in docs/formats.md:", line)


def test_no_memory_after_committed():
    write_text()
    env = environment(PLIMSOLL_TEST_SECCOMP="kill")
    run("train", write_config(), "--quiet", "--sample_every", "60", env=env)
    run("eval", "out", env=env)
    run("generate", "out", env=env)
    run("verify", "--gradients", "g.safetensors", "out", env=env)


def test_threads_do_not_change_bits():
    write_text()
    run("train", write_config(), "--quiet", "--out", "one")
    run("train", write_config(), "--quiet", "--out", "three", "--threads", "3")
    same_run("one", "three")


def test_bar():
    write_text()
    import pty
    child, terminal = pty.fork()
    if child == 0:
        os.execve(COMMAND, [COMMAND, "train", write_config(), "--set", "run.progress=bar"], environment(TERM="xterm"))
    text = b""
    try:
        while block := os.read(terminal, 65536):
            text += block
    except OSError:
        pass
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text[-800:])
    check(b"\r\033[K[" in text and b"step 120/120" in text and b"As planned" in text, text[-800:])


# ---- interrupted ----

def start(*words):
    return subprocess.Popen([COMMAND, *words, "--progress", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())


def start_closely(*words):
    """As start, but it is never more than a page of its lines, some fifteen steps, ahead of who reads them: however busy the machine is, a kill
    comes in time."""
    process = subprocess.Popen([COMMAND, *words, "--progress", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), bufsize=0)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    return process


def await_event(process, kind, count=1):
    while line := process.stdout.readline():
        count -= json.loads(line)["event"] == kind
        if count == 0:
            return
    raise Failed(f"the run ended before {kind}: {process.stderr.read()}")


def finish(process):
    process.communicate(timeout=60)
    return process.returncode


def reference(config):
    write_text()
    run("train", config, "--quiet", "--out", "whole")


def test_signals_and_resume():
    config = write_config()
    reference(config)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 75)):
        process = start("train", config, "--resume=auto")
        await_event(process, "step", 2)
        process.send_signal(number)
        check(finish(process) == code, number, "gave", process.returncode, "not", code)
    run("train", config, "--resume", "--quiet")
    same_run("whole", "out")
    _, err = run("train", config, "--resume")
    check("committed" in err, "resuming what is finished is no failure")
    same_run("whole", "out")


def test_micro_batch_may_change():
    write_text()
    process = start("train", write_config(train={"micro_batch": 3})) # of 8: 3, 3 and 2
    await_event(process, "step", 2)
    process.send_signal(signal.SIGTERM)
    check(finish(process) == 143, process.returncode)
    run("train", write_config(train={"micro_batch": "auto"}), "--resume", "--quiet")
    run("train", write_config(train={"micro_batch": 1}), "--quiet", "--out", "whole")
    same_run("whole", "out")


def test_killed_at_random():
    config = write_config(train={"steps": 400})
    reference(config)
    source = random.Random(SEED)
    for _ in range(8):
        process = start("train", config, "--resume=auto")
        time.sleep(source.random() * 0.8)
        process.kill()
        if finish(process) == 0:
            break
    run("train", config, "--resume=auto", "--quiet")
    same_run("whole", "out")
    left = [f"{folder}/{n}" for folder, folders, names in os.walk("out") for n in folders + names if re.search(r"\.(tmp|old)$", n)]
    check(not left, "left over:", left)


def test_killed_before_thinning():
    """A kill after the last save and before it thinned out; nothing is left to be done."""
    config = write_config()
    reference(config)
    shutil.copytree("whole", "out")
    steps = sorted(n for n in os.listdir("out/checkpoints") if n.startswith("step-"))
    shutil.copytree(f"out/checkpoints/{steps[0]}", "out/checkpoints/step-00000001")
    run("train", config, "--resume", "--quiet")
    same_run("whole", "out")


def test_ledger_on_request():
    write_text()
    process = start("train", write_config(), "--steps", "100000")
    await_event(process, "step", 2)
    process.send_signal(signal.SIGUSR1)
    await_event(process, "step", 3)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    check(process.returncode == 143 and b"\nunexplained " in err and err.count(b"As planned") == 1, process.returncode, err)


# ---- generate, eval, verify ----

def test_generate():
    write_text()
    run("train", write_config(), "--quiet")
    def text(*words):
        return run("generate", "out", "--prompt", "the ", *words)[0]
    first = text()
    check(first.startswith("the ") and len(first) > 20, first)
    check(first == text() and first == text("--threads", "2"), "not the same text twice")
    check(first != text("--set", "generate.seed=2"), "the seed does nothing")
    check(text("--temperature", "0") == text("--temperature", "0", "--set", "generate.seed=2"), "temperature 0 draws")
    check(run("generate", write_config(), "--prompt", "the ")[0] == first, "config and folder differ")
    _, err = run("generate", "out", "--ledger")
    check("As planned" in err, err)
    quoted = 'a "b" \\ c\u00e4\n'
    check(run("generate", "out", "--prompt", quoted)[0].startswith(quoted), "the prompt is changed")
    for prompt in ("long " * 800, '"\\' * 2000): # as long as a prompt may be: no line of the plan is too long for its reader
        check(run("generate", "out", "--prompt", prompt)[0].startswith(prompt), "a long prompt is changed")


def test_eval():
    write_text()
    run("train", write_config(train={"eval_batches": 1000}), "--quiet")
    result = json.loads(run("eval", "out", "--json")[0])
    last = [m for m in metrics("out") if "validation_loss" in m][-1]
    best = min(m["validation_loss"] for m in metrics("out") if "validation_loss" in m)
    check(abs(result["loss"] - best) < 1e-6 * best, result, last)
    check(abs(result["perplexity"] - math.exp(result["loss"])) < 1e-3, result)
    check(abs(result["bits_per_token"] - result["loss"] / math.log(2)) < 1e-6, result)
    check(abs(result["bits_per_byte"] - result["bits_per_token"]) < 1e-6, "one byte is one token here", result)
    out, _ = run("eval", "out")
    check(f"{result['loss']:.5f} nats per token" in out, out)


def test_bits_per_byte():
    """Of the text that was evaluated, which may be in another alphabet than most of the text."""
    write_text(words=4000)
    with open("text.txt", "a") as file:
        file.write("".join(chr(0x4e00 + i % 97) for i in range(6000)))
    text = read("text.txt").decode()
    held_out = text[len(text) - int(len(text) * 0.25):]
    config = write_config(data={"tokenizer": "chars", "validation_fraction": 0.25}, train={"eval_batches": 2})
    out, _ = run("train", config, "--progress", "json", "--steps", "40")
    result = json.loads(run("eval", "out", "--json")[0])
    check(abs(result["bits_per_byte"] - result["loss"] / math.log(2) * (len(held_out) - 1) / len(held_out[1:].encode())) < 1e-5, result)
    check(result["tokens"] == len(held_out) - 1, result)
    # While training: the targets of the first two batches of 8 sequences of 16 characters.
    seen = held_out[1:1 + 2 * 8 * 16]
    event = [e for e in map(json.loads, out.splitlines()) if e["event"] == "evaluated"][-1]
    check(abs(event["bits_per_byte"] - event["loss"] / math.log(2) * len(seen) / len(seen.encode())) < 1e-5, event)


def test_verify_gradients():
    write_text()
    run("train", write_config(), "--quiet", "--steps", "20")
    out, _ = run("verify", "--gradients", "g.safetensors", "out")
    data = read("g.safetensors")
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    names = [n for n in header if n != "__metadata__"]
    for name in names:
        check(name in out, name, "is not listed")
    check(f"{len(names)} tensors in g.safetensors" in out, out)
    check(any(n.startswith("grad.") for n in names) and "loss" in names, names)


def test_verify():
    write_text()
    config = write_config()
    small = ["--set", "train.batch_size=2", "--set", "train.micro_batch=auto", "--set", "run.threads=1"]
    out, _ = run("verify", config, *small)
    check(all(len(line) <= 80 for line in out.splitlines()), "too wide for a terminal:", out)
    lines = re.sub(r"\n {40,}(?! *not planned)", " ", out).splitlines() # a row's words go on below
    check("verdict" in lines[0] and "mixed_precision off, micro_batch 2, gradient_checkpointing off" in lines[1], out)
    end = re.fullmatch(r"(\d+) plans: (\d+) the same bits, 2 within bounds, 0 failed; (\d+) not planned", lines[-1])
    check(end and int(end.group(1)) == int(end.group(2)) + 2 and int(end.group(1)) + int(end.group(3)) == len(lines) - 2, out)
    for precision, bound in (("bf16", 0.2), ("fp16", 0.025)):
        alone = next(line for line in lines if re.search(rf"  mixed_precision {precision} \(", line))
        told = re.search(r" +(\S+) +(\S+)  within bounds .*; bound (\S+)\)", alone)
        check(told and 0 < float(told.group(2)) <= float(told.group(3)) < bound, alone)
    check(not os.path.exists("out/checkpoints"), "verify has left checkpoints")
    out, _ = run("verify", config, *small, "--json")
    told = json.loads(out)
    check(told["schema"] == "plimsoll.verify/1" and told["failed"] == 0 and told["plans"] == int(end.group(1)), out)
    check(len(told["rows"]) == len(lines) - 2 and all(row.get("within", "refused" in row) for row in told["rows"]), out)
    other = [row["choices"] for row in told["rows"] if not row.get("same_bits", "refused" in row)]
    check(other == ["mixed_precision bf16", "mixed_precision fp16"], other)
    refused(2, "--all and --json belong to the comparison", "verify", config, "--gradients", "g", "--all")


GROUPS = {
    "texts": [test_help_names_every_command, test_words_that_mean_nothing, test_completion, test_config],
    "errors": [test_config_errors, test_absurd_sizes, test_does_not_fit, test_text_errors, test_damaged_files, test_damaged_checkpoints,
               test_best_checkpoint_that_is_not_kept, test_checkpoint_of_another_model,
               test_second_run, test_read_only_folder, test_full_disk, test_closed_output],
    "plan": [test_plan_json, test_plan_files, test_plan_without_home],
    "train": [test_train, test_train_json, test_no_memory_after_committed, test_threads_do_not_change_bits, test_bar],
    "interrupted": [test_signals_and_resume, test_micro_batch_may_change, test_killed_at_random, test_killed_before_thinning, test_ledger_on_request],
    "generate": [test_generate, test_eval, test_bits_per_byte, test_verify, test_verify_gradients],
}


def run_one(test):
    folder = tempfile.mkdtemp(prefix=test.__name__ + ".", dir=ROOT)
    os.chmod(folder, 0o755)
    os.chdir(folder)
    began, verdict = time.time(), "ok"
    try:
        test()
    except Skipped as reason:
        verdict = f"skipped: {reason}"
    except Exception as error:
        verdict = f"FAILED in {folder} (PLIMSOLL_TEST_SEED={SEED})\n{error if isinstance(error, Failed) else traceback.format_exc()}"
    print(f"{test.__name__} {verdict}  ({time.time() - began:.1f} s)", flush=True)
    os.chdir(ROOT)
    if not verdict.startswith("FAILED"):
        shutil.rmtree(folder)
    return verdict


def main(groups, own_cache=False):
    """own_cache: kernels that another program, or the last run of this one, has measured are not known."""
    global cache_folder
    os.makedirs(ROOT, exist_ok=True)
    if own_cache:
        cache_folder = tempfile.mkdtemp(prefix="cache.", dir=ROOT)
        atexit.register(shutil.rmtree, cache_folder, ignore_errors=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = sys.argv[3:] or list(groups)
    tests = [t for group in groups for t in groups[group] if group in wanted or t.__name__ in wanted]
    verdicts = [run_one(test) for test in tests]
    sys.exit(1 if any(v.startswith("FAILED") for v in verdicts) else 77 if all(v.startswith("skipped") for v in verdicts) else 0)


if __name__ == "__main__":
    main(GROUPS)
