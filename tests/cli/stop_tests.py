"""Tests of what must end at once and with a sentence or as asked: damaged files of absurd sizes, pipes, limits of threads, signals before
the first step. Called as cli_tests.py is."""
import glob
import os
import shutil
import signal
import subprocess
import time

from alive_tests import await_text
from cli_tests import (COMMAND, Skipped, check, environment, last_checkpoint, main, read, refused, run, write_config, write_text)
from folder_tests import record, write_record

HUGE = 200 << 30  # as a hole: it takes no disk, but minutes to read


def test_huge_checkpoint():
    write_text()
    run("train", write_config(), "--quiet", "--steps", "20")
    model = last_checkpoint("out") + "/model.safetensors"
    bytes_before = os.path.getsize(model)
    os.truncate(model, HUGE)
    began = time.monotonic()
    refused(4, rf"model.safetensors: has .*\({HUGE:,} bytes\), but run.json says .*\({bytes_before:,} bytes\); it is damaged", "eval", "out", "--checkpoint", last_checkpoint("out"))
    check(time.monotonic() - began < 20, "it took", time.monotonic() - began, "s")


def test_huge_metrics():
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    whole = read("out/metrics.jsonl")
    os.truncate("out/metrics.jsonl", HUGE)
    began = time.monotonic()
    run("train", config, "--quiet", "--steps", "20", "--resume")
    check(time.monotonic() - began < 20 and read("out/metrics.jsonl") == whole, "it took", time.monotonic() - began, "s")
    with open("out/metrics.jsonl", "wb") as file:
        file.write(b'{"step":1,"loss":' + b"1" * 5000 + b"}\n")
    refused(4, r"metrics.jsonl:1:1: this is not a line of a run's metrics", "train", config, "--quiet", "--steps", "30", "--resume")


def test_trace_goes_to_a_regular_file():
    write_text()
    config = write_config()
    os.mkfifo("pipe")
    os.symlink("pipe", "to_pipe")
    for number, target in enumerate(("pipe", "to_pipe", "/dev/null", "/dev/full", ".")):
        refused(5, "not a regular file; give another name", "train", config, "--quiet", "--steps", "20", "--out", f"out{number}", "--trace", target)


def test_no_threads_to_measure_with():
    """libgomp would end the planner without a sentence."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skipped("root has no limit of processes, and there is no setpriv")
    write_text()
    config = write_config(run={"threads": 8})
    run("train", config, "--budget", "1MB", code=3)  # refused, but the token file is there
    step_down = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    env = {k: v for k, v in environment(HOME="/nonexistent").items() if k != "XDG_CACHE_HOME"}
    done = subprocess.run([*step_down, "bash", "-c", 'ulimit -u 2; exec "$@"', "bash", COMMAND, "plan", config], capture_output=True, text=True, env=env,
                          timeout=60)
    if done.returncode in (126, 127) or "setpriv" in done.stderr:
        raise Skipped("the command cannot be started as nobody: " + done.stderr)
    check(done.returncode == 1 and "plimsoll plan: the system refuses thread" in done.stderr and "of 8" in done.stderr and "libgomp" not in done.stderr,
          done.returncode, done.stderr)


def start(*words, env=None):
    return subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env or environment())


SIGNALS = ((signal.SIGHUP, 75), (signal.SIGINT, 130), (signal.SIGTERM, 143))


def test_signals_while_text_is_prepared():
    """Nothing half-written is left, and the exit code is the one that the help promises."""
    with open("text.txt", "wb") as file:
        for _ in range(96):
            file.write(b"so much text " * 80000)
    for tokenizer in ("bytes", "chars"):
        config = write_config(data={"tokenizer": tokenizer})
        for number, code in SIGNALS:
            process = start("train", config, *["--quiet"][:code == 75])
            end = time.monotonic() + 60
            while process.poll() is None and not glob.glob("out/tokens.bin*") and time.monotonic() < end:
                time.sleep(0.001)
            process.send_signal(number)
            said = process.communicate(timeout=60)[1].decode()
            check(process.returncode == code and "plimsoll" not in said, number, "gave", process.returncode, said)
            check(not os.path.exists("out"), "left over:", os.path.exists("out") and os.listdir("out"))


def test_signals_while_pairs_are_merged():
    """All words differ, so this vocabulary takes a minute."""
    with open("text.txt", "w", encoding="ascii") as file:
        file.write(" ".join(f"{number * 0x9E3779B97F4A7C15 % 26**8:x}" for number in range(250_000)))
    config = write_config(data={"tokenizer": "bpe", "vocab_size": 65535})
    for number, code in SIGNALS:
        process = start("train", config)
        await_text(process, b"merging pairs")
        began = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=300)[1].decode()
        check(process.returncode == code and "plimsoll" not in said, number, "gave", process.returncode, said)
        check(time.monotonic() - began < 1 and not os.path.exists("out"), time.monotonic() - began)


def test_signals_while_planning():
    write_text()
    config = write_config()
    for number, code in SIGNALS:
        process = start("train", config, env={**environment(), "XDG_CACHE_HOME": os.path.abspath(f"cache{code}")})
        await_text(process, b"measuring kernels")
        began = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[1].decode()
        check(process.returncode == code and "plimsoll" not in said and time.monotonic() - began < 1, number, "gave", process.returncode, said)
        check(not glob.glob("out/*.tmp"), os.listdir("out"))


def test_signals_while_loading():
    """A checkpoint that takes minutes to check."""
    write_text()
    run("train", write_config(), "--quiet", "--steps", "20")
    os.truncate(last_checkpoint("out") + "/model.safetensors", HUGE)
    changed = record()
    for name, file in changed["files"].items():
        file["bytes"] = HUGE if name.startswith("model") else file["bytes"]
    write_record(changed)
    for number, code in SIGNALS:
        process = start("eval", "out", "--checkpoint", last_checkpoint("out"))
        while process.poll() is None and b"\0__run\0" not in read(f"/proc/{process.pid}/cmdline"):
            time.sleep(0.01)
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[1].decode()
        check(process.returncode == code and "plimsoll" not in said and time.monotonic() - began < 1, number, "gave", process.returncode, said)


def test_odd_words():
    refused(2, "one word only, but there is also extra", "help", "train", "extra")
    with open("problem.csv", "w") as file:
        file.write("id,lower,upper,size\na,0,2,10\n")
    refused(2, "--capacity expects a size", "place", "problem.csv", "--capacity", "0.1")
    run("place", "problem.csv", "--capacity", "0.5", code=3)  # half a byte is one
    write_text()
    refused(2, "gradients are binary and cannot go to stdout", "verify", "--gradients", "-", write_config())
    check(not os.path.exists("-"), "a file named -")
    refused(2, "/proc/version: has more bytes than its size of 0 says", "config", "/proc/version")


GROUPS = {"stop": [test_huge_checkpoint, test_huge_metrics, test_trace_goes_to_a_regular_file, test_no_threads_to_measure_with,
                   test_signals_while_text_is_prepared, test_signals_while_pairs_are_merged, test_signals_while_planning,
                   test_signals_while_loading, test_odd_words]}

if __name__ == "__main__":
    main(GROUPS)
