"""Tests of plimsoll top: what it says of a training against the run's own files, /proc and --progress json; on a terminal, once, and
of one that ended. Called as cli_tests.py is."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import cli_tests
from cli_tests import COMMAND, check, environment, main, read, refused, run, write_config, write_text


def lines(out):
    return [json.loads(line) for line in read(f"{out}/metrics.jsonl").splitlines()]


def top(*words):
    told = json.loads(run("top", *words, "--json")[0])
    check(told["schema"] == "plimsoll.top/1", told)
    return told


def named(text):
    """The lines of the text by their first word."""
    return {line.split()[0]: line for line in text.split("\n") if line and not line.startswith(" ")}


def snapshot(folder):
    return {at: (os.stat(at).st_mtime_ns, sorted(names)) for at, _, names in os.walk(folder)}


def begin(config, *words):
    """A training that goes on until it is killed; there is a line of metrics."""
    process = subprocess.Popen([COMMAND, "train", config, "--quiet", *words], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 100
    while time.monotonic() < until and process.poll() is None:
        if os.path.exists("out/metrics.jsonl") and os.path.exists("out/checkpoints/latest") and os.path.getsize("out/metrics.jsonl"):
            return process
        time.sleep(0.02)
    process.kill()
    check(False, "the training does not begin")


class Terminal:
    """top on a terminal of its own."""

    def __init__(self, *words):
        self.text = ""
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.execve(COMMAND, [COMMAND, "top", *words], environment(TERM="xterm", COLUMNS="80"))

    def wait(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.text) and time.monotonic() < until:
            if select.select([self.fd], [], [], 0.1)[0] and not self.read():
                break
        check(re.search(pattern, self.text), pattern, "is not in", repr(self.text[-3000:]))

    def read(self):
        try:
            got = os.read(self.fd, 1 << 16).decode(errors="replace")
        except OSError: # Linux: the other side is closed
            got = ""
        self.text += got
        return got

    def end(self):
        """What it leaves on the terminal, after its own screen; its exit code is 0."""
        until = time.monotonic() + 60
        while time.monotonic() < until and (not select.select([self.fd], [], [], 0.1)[0] or self.read()):
            pass
        _, status = os.waitpid(self.process, 0)
        os.close(self.fd)
        check(status == 0, "status", status, repr(self.text[-2000:]))
        screens = self.text.split("\033[?1049l")
        check(len(screens) == 2 and self.text.count("\033[?1049h") == 1 and "\033[?25h" in self.text, "the screen is not as before", repr(self.text[-500:]))
        return screens[1]


def test_finished():
    write_text()
    config = write_config(train={"steps": 60, "eval_every": 20, "checkpoint_every": 30, "log_every": 4})
    run("train", config)
    before = snapshot("out")
    told, text = top("out"), run("top", "out")[0]
    check(snapshot("out") == before, "top changed something")
    steps = [line for line in lines("out") if "loss" in line]
    validated = [line for line in lines("out") if "validation_loss" in line]
    last = steps[-1]
    check(told["state"] == "finished" and told["process"] is None and told["resident_bytes"] is None, told)
    check((told["step"], told["steps"], told["loss"], told["lr"], told["epoch"]) == (60, 60, last["loss"], last["lr"], last["epoch"]), told, last)
    check((told["items"], told["items_per_second"]) == ("tokens", last["tokens_per_second"]), told)
    check((told["validation_step"], told["validation_loss"]) == (60, validated[-1]["validation_loss"]), told)
    check(told["best_validation_loss"] == min(line["validation_loss"] for line in validated), told)
    check(len(told["losses"]) == len(steps) and all(abs(a - b["loss"]) < 1e-6 for a, b in zip(told["losses"], steps)), told["losses"])
    check(told["planned_bytes"] == json.loads(read("out/report.json"))["planned_bytes"] and told["checkpoint"] == "step-00000060", told)
    said = named(text)
    check(text.startswith("out  finished\n") and "60 of 60  100 %" in said["step"] and f"{last['loss']:.4f}" in said["loss"], text)
    check(re.search("[▁-█]{15}\n", text) and "step-00000060" in said["saved"] and "plimsoll report out" in text and "\033" not in text, text)


def test_epochs():
    """How many steps there are says the run itself; one that ended in the middle is not finished."""
    write_text(words=3000)
    config = write_config(train={"steps": None, "epochs": 2, "eval_every": 10, "checkpoint_every": 10, "log_every": 3})
    events = [json.loads(line) for line in run("train", config, "--progress", "json")[0].splitlines()]
    told = top("out")
    check((told["state"], told["steps"]) == ("finished", next(e["steps"] for e in events if "steps" in e)), told)
    config = write_config(train={"steps": None, "epochs": 3, "eval_every": 10, "checkpoint_every": 10, "log_every": 3})
    run("train", config, "--out", "longer", "--steps", "20")
    check((top("longer")["state"], top("longer")["steps"]) == ("finished", 20), top("longer"))


def test_many_lines():
    """More losses than are shown: means of equal stretches, from the first to the last; a torn line is not read."""
    write_text(words=3000)
    run("train", write_config(train={"steps": 4}))
    values = [10 - i / 500 for i in range(4000)]
    with open("out/metrics.jsonl", "w") as file:
        file.write("".join(json.dumps({"step": i + 1, "epoch": 1.0, "tokens": 1, "loss": v, "lr": 1e-3, "tokens_per_second": 5.0, "seconds": 1.0},
                                      separators=(",", ":")) + "\n" for i, v in enumerate(values)))
        file.write('{"step":1e300,"epoch":1e-300,"loss":1}\nnot a line of ours\n{"step":-1}\n{"step":9999,"epoch":1.0,"lo')
    told = top("out")
    points = told["losses"]
    check(told["step"] == 4000 and 64 < len(points) <= 128, len(points), told["step"])
    stretch = next(n for n in (2 ** k for k in range(13)) if len(points) == -(-4000 // n))
    means = [sum(part) / len(part) for part in (values[i:i + stretch] for i in range(0, 4000, stretch))]
    check(all(abs(a - b) < 1e-6 for a, b in zip(points, means)), points[:3], means[:3], points[-1], means[-1])


def test_running():
    write_text()
    config = write_config(train={"steps": 10000000, "eval_every": 50, "checkpoint_every": 50, "log_every": 10})
    training = begin(config)
    try:
        told = top("out")
        status = read(f"/proc/{training.pid}/status").decode()
        resident = int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024
        check(told["state"] == "running" and told["process"] == training.pid and told["steps"] == 10000000, told)
        check(abs(told["resident_bytes"] - resident) < 1 << 20 and told["peak_bytes"] >= told["resident_bytes"], told, resident)
        for key in ("q", "\x03"): # a key, and what the terminal makes of Ctrl-C
            terminal = Terminal("out")
            terminal.wait(f"running, process {training.pid}")
            terminal.wait("q ends watching")
            os.write(terminal.fd, key.encode())
            left = terminal.end()
            check(f"running, process {training.pid}" in left.replace("\033[36m", "") and "loss" in left, left)
        check(training.poll() is None, "the training ended, too")
        text = run("top", "out", "--once")[0]
        check("left" in named(text)["step"] and "planned" in named(text)["memory"] and "now" in named(text)["memory"], text)
        terminal = Terminal("out")
        terminal.wait("running, process")
        training.send_signal(signal.SIGKILL)
        training.wait()
        left = terminal.end() # by itself
        check("not running" in left and "go on with: plimsoll train out --resume" in left, left)
    finally:
        training.kill()
        training.wait()
    told = top("out")
    check(told["state"] == "ended" and told["process"] is None and told["seconds_left"] is None, told)


def test_refused():
    refused(2, "the folder of one training is expected", "top")
    refused(2, "none: No such file or directory; give the folder of a training", "top", "none")
    os.makedirs("empty/below")
    refused(2, "empty: there is no training in it", "top", "empty")
    refused(2, "unknown option --twice", "top", "empty", "--twice")
    # Of several below it the last; one that has not begun has nothing to say.
    write_text(words=3000)
    run("train", write_config(train={"steps": 4}), "--out", "several/first")
    run("train", write_config(train={"steps": 5}), "--out", "several/second")
    check(top("several")["folder"] == "several/second" and top("several/first")["steps"] == 4, top("several"))
    os.remove("several/second/metrics.jsonl")
    os.remove("several/second/checkpoints/latest")
    told = top("several/second")
    check((told["state"], told["step"], told["loss"], told["losses"], told["checkpoint"]) == ("ended", 0, None, [], ""), told)
    check("nothing yet" in run("top", "several/second")[0], "saved")


main({"top": [test_finished, test_epochs, test_many_lines, test_running, test_refused]})
