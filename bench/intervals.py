#!/usr/bin/env python3
"""What a plan says of the time, against what it takes: of every example a plan with a cold cache, then a training of ten steps (of as many as take two seconds), or the work, where nothing is trained.

    bench/intervals.py                      with nothing next to it: predicted against measured, median and worst
    bench/intervals.py --busy 2             with two processes next to it that compute all the time: is what is measured inside the interval?

By hand, on a machine that nobody else uses: no test hangs on what it prints. Flights (413 MB), texts and chains are made in --folder and stay there.
What would take longer than --longest for its ten steps is cut to the steps that fit, two at least (its evaluations come on top). Where one epoch is more, it is run whole. SMALLER says which examples are
run with fewer items or a smaller batch."""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FEW_POINTS = ["--set", "sampling.validation.check_discrepancy=false", "--set", "sampling.validation.check_correlation=false"]
# What would take too long, or only hundredths of a second.
SMALLER = {"rollout": [*FEW_POINTS, "--set", "sampling.total_samples=2"], "rollout_tiny": ["--set", "sampling.total_samples=200"],
           "rollout_fno": ["--set", "sampling.total_samples=200"], "rollout_unet": ["--set", "sampling.total_samples=50"], "capsules": ["--count", "64"], "capsules_tiny": ["--count", "20000"],
           # a step of theirs takes minutes
           "hybrid": ["--batch_size", "8"], "hybrid_pretrained": ["--batch_size", "8", "--set", "train.gradient_accumulation_steps=1"]}
STAGE = {"chain_tiny": ["--stage", "stage-0"], "clouds_tiny": ["--stage", "loo-12Feb25"], "clouds_small": ["--stage", "pretrain"],
         "clouds_full": ["--stage", "pretrain"], "hybrid_tiny": ["--stage", "task"]}
TEXT = "/usr/share/common-licenses/GPL-3"


def run(arguments, *words, timeout=None):
    done = subprocess.run([arguments.plimsoll, *words], capture_output=True, text=True, cwd=arguments.folder, timeout=timeout,
                          env={**os.environ, "XDG_CACHE_HOME": arguments.cache})
    if done.returncode:
        raise RuntimeError(f"plimsoll {' '.join(words)}: {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def words_of(arguments, name):
    if name.startswith("clouds"):
        folder, size = ("flights-tiny", ["--height", "48", "--width", "64"]) if name == "clouds_tiny" else ("flights", [])
        if not os.path.exists(os.path.join(arguments.folder, folder)):
            run(arguments, "synth", "clouds", folder, *size)
        return []
    if name.startswith("chain"):
        with open(os.path.join(arguments.folder, "chains.jsonl"), "w") as file:
            subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_chains.py"), "--count", "4000", "--terms", "3", "--modulus", "10"], stdout=file, check=True)
        return ["--chains", "chains.jsonl"]
    return ["--text", arguments.text] if name in ("gpt", "tiny", "mlp") else SMALLER.get(name, [])


def train(arguments, path, words, plan):
    """The seconds of a training of ten steps, or of as many as take two seconds: what is told of all of the work, evaluations and checkpoints in it."""
    seconds = plan["seconds_per_step"]
    steps = max(2, min(max(arguments.steps, int(2 / seconds)), int(arguments.longest / seconds)))
    out = os.path.join(arguments.folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    words = [*words, *(["--steps", str(steps)] if "epochs" not in open(path).read() else ["--epochs", "1"])]
    words += STAGE.get(os.path.basename(path)[:-5], []) + ["--early_stopping_patience", "0"]
    plan = json.loads(run(arguments, "plan", path, *words, "--out", out, "--json"))
    output = run(arguments, "train", path, *words, "--out", out, "--log_every", str(steps), "--progress", "json")
    shutil.rmtree(out, ignore_errors=True)
    measured = next(json.loads(line)["seconds"] for line in output.splitlines() if line.startswith('{"schema":"plimsoll.progress/1","event":"finished"'))
    work = plan["work"]
    return measured, (work["seconds"], work["seconds_low"], work["seconds_high"]), plan["estimated_seconds_per_step"] / seconds, work["busy"]


def repeat(arguments, path, words, plan):
    """All of the work: one figure."""
    work = plan["work"]
    out = os.path.join(arguments.folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    command = "encode" if "capsules" in path else "rollout"
    lines = run(arguments, command, path, *words, "--out", out, "--progress", "json").splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    shutil.rmtree(out, ignore_errors=True)
    measured = sum(e["times"]["runs"] * e["times"]["seconds"] for e in events if e["event"] == "times")
    return measured, (work["seconds"], work["seconds_low"], work["seconds_high"]), 0 if all(s["measured"] for s in work["shapes"]) else 1, work["busy"]


def example(arguments, path):
    name = os.path.basename(path)[:-5]
    shutil.rmtree(arguments.cache, ignore_errors=True)
    words = words_of(arguments, name)
    begin = time.monotonic()
    plan = json.loads(run(arguments, "plan", path, *words, "--json"))
    took = time.monotonic() - begin
    measured, (seconds, low, high), estimated, busy = (train if plan["seconds_per_step"] else repeat)(arguments, path, words, plan)
    print(f"{name:18} {took:7.1f} {seconds:10.4g} {low:10.4g} {high:10.4g} {measured:10.4g} {seconds / measured:6.2f} "
          f"{'yes' if low <= measured <= high else 'NO':>6} {100 * estimated:4.0f} % {busy:5.2f}", flush=True)
    return seconds / measured, low <= measured <= high


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--plimsoll", default=os.path.join(ROOT, "build", "plimsoll"))
    p.add_argument("--busy", type=int, default=0, help="processes that compute next to it")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--longest", type=float, default=300, help="seconds of the steps of one example")
    p.add_argument("--folder", default=os.path.join(ROOT, "build", "intervals"))
    p.add_argument("examples", nargs="*", help="names; all, if none is given")
    arguments = p.parse_args()
    arguments.plimsoll, arguments.folder = os.path.abspath(arguments.plimsoll), os.path.abspath(arguments.folder)
    arguments.cache, arguments.text = os.path.join(arguments.folder, "cache"), os.path.join(arguments.folder, "text.txt")
    os.makedirs(arguments.folder, exist_ok=True)
    if not os.path.exists(arguments.text):
        with open(TEXT) as source, open(arguments.text, "w") as file:
            file.write(20 * source.read())
    paths = [path for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.yaml"))) if not arguments.examples or os.path.basename(path)[:-5] in arguments.examples]
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)]
    print(f"{arguments.busy} processes next to it\n{'example':18} {'plan, s':>7} {'predicted':>10} {'low':>10} {'high':>10} {'measured':>10} {'ratio':>6} {'inside':>6} "
          f"{'est.':>6} {'busy':>5}")
    rows = []
    try:
        for path in paths:
            try:
                rows.append(example(arguments, path))
            except (RuntimeError, subprocess.SubprocessError) as error:
                print(f"{os.path.basename(path)[:-5]:18} failed: {error}", flush=True)
    finally:
        for process in others:
            process.kill()
            process.wait()
    off = [max(ratio, 1 / ratio) - 1 for ratio, _ in rows]
    print(f"told: {len(rows)} of {len(paths)}; inside the interval: {sum(ok for _, ok in rows)} of {len(rows)}; "
          f"off by {100 * statistics.median(off):.0f} % (median), {100 * max(off):.0f} % (worst)")


if __name__ == "__main__":
    main()
