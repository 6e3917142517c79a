"""Signs of life (bar, ticks, signals), limits of files and outputs, numbers that are none: called as cli_tests.py is."""
import json
import math
import os
import re
import resource
import select
import signal
import struct
import subprocess
import time

from cli_tests import (COMMAND, Failed, check, environment, last_checkpoint, main, metrics, read, reference, refused, run, same_run, write_config,
                       write_text)

# A step of many small parts: seconds long on any machine, and no report for as long as a test lasts.
SLOW = {"batch_size": 4096, "micro_batch": 4, "steps": 100000, "log_every": 100000, "eval_every": 100000, "checkpoint_every": 100000}


def await_text(process, pattern, seconds=60):
    """What the process says until the pattern is there."""
    said, end = b"", time.monotonic() + seconds
    while not re.search(pattern, said):
        ready = select.select([process.stderr], [], [], max(0, end - time.monotonic()))[0]
        block = os.read(process.stderr.fileno(), 65536) if ready else b""
        if not block:
            process.kill()
            raise Failed(f"{pattern} did not come: {said.decode(errors='replace')}")
        said += block
    return said


def await_caught(process, number, seconds=60):
    """Until the process has a handler for the signal: what plans ignores SIGUSR1, and the runner that it becomes says nothing of its own."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        caught = re.search(rb"SigCgt:\t([0-9a-f]+)", read(f"/proc/{process.pid}/status"))
        if int(caught[1], 16) >> number - 1 & 1:
            return
        time.sleep(0.01)
    process.kill()
    raise Failed(f"signal {number} is not awaited: {process.communicate()}")


def test_ledger_within_a_step():
    write_text()
    process = subprocess.Popen([COMMAND, "train", write_config(train=SLOW)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    await_text(process, b"committed: ")
    began = time.monotonic()
    process.send_signal(signal.SIGUSR1)
    said = await_text(process, b"As planned")
    check(time.monotonic() - began < 2, "the ledger took", time.monotonic() - began, "s")
    check(b"step " not in said, "a step was over already; the test needs a longer one:", said)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_first_loss_at_once_and_no_flood():
    write_text()
    process = subprocess.Popen([COMMAND, "train", write_config(train={**SLOW, "batch_size": 64})], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=environment())
    said = await_text(process, rb"step +1/100000  loss \d\.\d+")
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    said += process.communicate(timeout=60)[1]
    check(process.returncode == 143 and len(re.findall(rb"^step ", said, re.M)) <= 2, process.returncode, said)


def test_stop_within_a_step():
    """Whoever asks for the end is told what it waits for; a run that ends at once has no need of it."""
    write_text()
    process = subprocess.Popen([COMMAND, "train", write_config(train={**SLOW, "batch_size": 1 << 22})], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment())
    await_text(process, b"committed: ")
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # at once: the same end told twice
    await_text(process, rb"stopping: finishing this step first \(about .*s\); a second signal exits at once\n")
    time.sleep(0.6)
    check(process.poll() is None, "a signal that comes twice at once counts as two")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    check(process.returncode == 1 and time.monotonic() - began < 5, "nothing is saved:", process.returncode, time.monotonic() - began, "s")
    check(b"stopping" not in said and b"stopped" not in said, said)
    process = subprocess.Popen([COMMAND, "train", write_config(train={"steps": 100000}), "--out", "quick"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment())
    await_text(process, rb"step +\d+/")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    check(process.returncode == 143 and b"stopped at step" in said and b"stopping" not in said, process.returncode, said)


def on_terminal(columns, act, *words, term="xterm"):
    """The lines that the command draws on a terminal; act(terminal, child) is called a second after the first one."""
    import fcntl
    import pty
    import termios
    child, terminal = pty.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        time.sleep(0.2)
        os.execve(COMMAND, [COMMAND, *words], environment(TERM=term))
    def resize(to):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, to, 0, 0))
    resize(columns)
    text, began, acts = b"", None, list(act)
    try:
        while block := os.read(terminal, 65536):
            text += block
            began = began or (time.monotonic() if b"\r\033[K[" in text or b"/100000" in text else None)
            while acts and began and time.monotonic() - began > 1:
                what, began = acts.pop(0), time.monotonic()
                resize(what) if what > 0 else os.kill(child, -what)
                text += b"\n<acted>\n"
    except OSError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, re.sub(rb"\033\[[0-9;]*m", b"", text).decode()


def test_bar_moves_and_fits():
    write_text()
    code, text = on_terminal(80, [40, 120, -signal.SIGINT], "train", write_config(train={**SLOW, "batch_size": 256}), "--set", "run.progress=bar")
    check(code == 130, code, text[-800:])
    begins = text.index("committed")
    for columns, phase in zip((80, 40, 120), text[begins:].split("<acted>")):
        drawn = [line.split("\n")[0].rstrip("\r") for line in phase.split("\r\033[K")[1:]]
        drawn = [line for line in drawn if "/100000" in line]
        check(4 <= len(drawn) <= 25, len(drawn), "lines in a second at", columns, "columns:", drawn)
        check(len(set(drawn)) > 3, "the bar does not move:", drawn)
        if columns == 80 or columns == 120: # the last one of a phase may be of the time after the resize
            check(all(len(line) < columns for line in drawn[:-1]), "too long:", drawn)
        else:
            check(all(len(line) < columns for line in drawn[1:-1]), "too long:", drawn)
        check(all("loss" in line and "eta" in line for line in drawn[3:-1] if "step 0/" not in line and not line.startswith("0/") and "step      0/" not in line),
              "loss or time left is missing at", columns, ":", drawn)


def test_dumb_terminal_gets_lines():
    write_text()
    for words in (["train", write_config()], ["doctor", "--", "sleep", "0.5"]):
        code, text = on_terminal(80, [], *words, term="dumb")
        check(code == 0 and "\033" not in text and "\r" not in text.replace("\r\n", "\n"), words, text)
    check(text, "the doctor says nothing")


def test_json_has_reports_only():
    write_text()
    out, _ = run("train", write_config(train={"log_every": 30}), "--progress", "json")
    events = [json.loads(line) for line in out.splitlines()]
    check([e["step"] for e in events if e["event"] == "step"] == [30, 60, 90, 120], events)
    known = {"committed", "step", "evaluated", "saved", "text", "text_end", "warning", "finished", "times", "ledger"}
    check({e["event"] for e in events} <= known, "an event that is not documented", events)


def limit_files(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_run_goes_on_without_a_trace():
    config = write_config(train={"steps": 200})
    reference(config)
    largest = max(os.path.getsize(os.path.join(folder, n)) for folder, _, names in os.walk("whole") for n in names if n != "tokens.bin")
    run("train", config, "--budget", "1MB", code=3)  # the text's tokens are there before the limit is
    _, err = run("train", config, "--quiet", "--trace", "trace.json", preexec_fn=limit_files(largest + 4096))
    check(re.search(r"warning: trace.json: writing the trace failed: File too large; .*; the trace ends there", err), err)
    check(err.count("warning") == 1, err)
    same_run("whole", "out")
    check(len(json.loads(read("trace.json") + b"]")) > 100, "no whole events")


def test_file_limit():
    config = write_config(model={"width": 24}, train={"steps": 1200, "log_every": 1, "checkpoint_every": 20, "eval_every": 400, "keep_best": "false"})
    reference(config)
    run("train", config, "--budget", "1MB", code=3)  # refused, but the text's tokens are there before the limit is
    largest = max(os.path.getsize(f"{last_checkpoint('whole')}/{n}") for n in ("model.safetensors", "state.safetensors"))
    size = max(largest, os.path.getsize("whole/plan.html"), os.path.getsize("whole/plan.lock")) + 4096
    check(os.path.getsize("whole/metrics.jsonl") > size, "the test needs longer metrics")
    refused(5, r"metrics.jsonl: writing at byte \d+ failed: File too large; .*ulimit -f.*; step \d+ is saved, its line of metrics is lost: .*--resume",
            "train", config, "--quiet", preexec_fn=limit_files(size))
    # No step is lost: the checkpoint is of the step whose line there was no room for.
    written = metrics("out")[-1]["step"]
    check(int(last_checkpoint("out")[-8:]) == written + 1, last_checkpoint("out"), written)
    run("train", config, "--resume", "--quiet")
    with open("whole/metrics.jsonl", "rb") as file:
        lines = [line for line in file if json.loads(line)["step"] != written + 1]
    with open("whole/metrics.jsonl", "wb") as file:
        file.writelines(lines)
    same_run("whole", "out")
    run("train", config, "--out", "small", "--budget", "1MB", code=3)
    # A checkpoint that the limit forbids is refused before the first step.
    refused(5, rf"small: .*file of .*\({largest:,} bytes\), .*\({largest - 1:,} bytes\) .*ulimit -f", "train", config, "--out", "small", "--quiet",
            preexec_fn=limit_files(largest - 1))
    check(not os.path.exists("small/metrics.jsonl"), "it began all the same")


def is_finite(path):
    data = read(path)
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    return all(math.isfinite(x) for (x,) in struct.iter_unpack("<f", data[begin:]))


def checkpoints_are_finite(out):
    for folder, _, names in os.walk(f"{out}/checkpoints"):
        for name in names:
            check(not name.endswith(".safetensors") or is_finite(f"{folder}/{name}"), f"{folder}/{name} holds a number that is none")


def test_diverged():
    """The rate is so high that the weights overflow within a few steps: seen in the loss, in a validation, at a save."""
    write_text()
    wild = {"learning_rate": 100, "warmup_steps": 0, "weight_decay": 1, "schedule": "constant", "grad_clip": 0}
    never = {"eval_every": 1000, "checkpoint_every": 1000}
    for out, more, pattern in (("a", {}, r"the loss is no longer finite at step \d+ .*no checkpoint yet.*learning_rate"),
                               ("b", {"eval_every": 1}, r"the validation loss is no longer finite at step \d+ .*learning_rate"),
                               ("c", {"checkpoint_every": 1}, r"\.weight is no longer finite at step \d+ .*the last checkpoint, of step \d+, is unchanged")):
        refused(1, pattern, "train", write_config(train={**wild, **never, **more}), "--quiet", "--out", out)
        checkpoints_are_finite(out)
        check(all(math.isfinite(v) for line in metrics(out) for k, v in line.items() if k != "perplexity" and v is not None), metrics(out))
    run("train", write_config(), "--steps", "20", "--quiet")
    kept = {n: read(last_checkpoint("out") + "/" + n) for n in ("model.safetensors", "state.safetensors", "run.json")}
    refused(1, r"at step \d+ .*the last checkpoint, of step 20, is unchanged", "train", write_config(train={**wild, **never}), "--resume", "--quiet")
    check(kept == {n: read(last_checkpoint("out") + "/" + n) for n in kept}, "the last checkpoint is not as it was")
    run("train", write_config(), "--resume", "--quiet")
    checkpoints_are_finite("out")


def test_full_output():
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    with open("buffers.csv", "w") as file:
        file.write("id,lower,upper,size\na,0,2,10\nb,1,3,20\n")
    with open("graph.dag", "w") as file:
        file.write("dag 1 one\nnode 0 1 1 0 0\n")
    for words in (["plan", config], ["plan", config, "--json"], ["plan", config, "--graph"], ["config", config], ["config", config, "--json"],
                  ["config", "--schema"], ["place", "buffers.csv"], ["place", "--json", "buffers.csv"], ["place", "--out", "-", "buffers.csv"],
                  ["recompute", "--min", "graph.dag"], ["recompute", "--min", "--json", "graph.dag"], ["recompute", "--min", "--out", "-", "graph.dag"],
                  ["eval", "out"], ["eval", "out", "--json"], ["generate", "out"], ["verify", "--gradients", "g.safetensors", "out"], ["help"],
                  ["help", "train"], ["plan", "--help"], ["--help"], ["--version"], ["completion", "bash"], ["completion", "zsh"], ["completion", "fish"],
                  ["train", config, "--progress", "json", "--out", "other", "--steps", "20"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60)
        last = done.stderr.decode().strip().split("\n")[-1]
        check(done.returncode == 5 and re.search("the standard output cannot be written: No space left on device", last), words, done.returncode, last)
    check(os.path.exists("other/checkpoints/latest"), "a run whose progress cannot be written does not end")


def test_reader_leaves():
    """plan | head: as every Unix tool, by SIGPIPE and without a word. A training goes on."""
    write_text()
    for words, code in ((["plan", write_config(), "--json"], -signal.SIGPIPE), (["train", write_config(), "--progress", "json"], 0),
                        (["infer", "out", "text.txt", "--out", "items.jsonl", "--json"], 0)):
        process = subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdout.close()
        err = process.stderr.read()
        check(process.wait(60) == code and b"standard output" not in err, words, process.returncode, err)
    check(os.path.exists("out/checkpoints/latest") and os.path.exists("items.jsonl"), "the work did not end")


def test_stopped_generate_and_eval():
    write_text()
    run("train", write_config(), "--quiet", "--steps", "20")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = subprocess.Popen([COMMAND, "generate", "out", "--tokens", "16777216"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        check(len(process.stdout.read(64)) == 64, "no text")
        process.send_signal(number)
        text, err = process.communicate(timeout=60)
        check(process.returncode == code and text.endswith(b"\n") and re.fullmatch(rb"[\d,]+ tokens in .* \(prompt: 1 token\)\n", err),
              process.returncode, err[-500:])
    write_text("long.txt", words=1000000)
    config = write_config(model={"width": 256, "layers": 4}, data={"text": "long.txt", "validation_fraction": 0.9})  # minutes of it
    run("train", config, "--quiet", "--steps", "1", "--out", "large")
    process = subprocess.Popen([COMMAND, "eval", config, "--out", "large", "--ledger"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    await_caught(process, signal.SIGUSR1)
    process.send_signal(signal.SIGUSR1)
    await_text(process, b"As planned")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    check(process.returncode == 143 and out == b"", process.returncode, out, err)


GROUPS = {
    "alive": [test_ledger_within_a_step, test_stop_within_a_step, test_first_loss_at_once_and_no_flood, test_bar_moves_and_fits, test_dumb_terminal_gets_lines,
              test_json_has_reports_only,
              test_stopped_generate_and_eval],
    "limits": [test_file_limit, test_run_goes_on_without_a_trace, test_diverged, test_full_output, test_reader_leaves],
}
if __name__ == "__main__":
    main(GROUPS)
