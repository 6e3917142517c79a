"""Several trainings in one command, all in a group whose limit is the largest one's charged figure, to the page: on a disk, on one
that is memory (tmpfs), where the files of the earlier trainings stay charged, with large stacks, and with a full file of kernels' times."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import Failure, Skip, repeat, tail

SOURCE = os.path.join(os.path.dirname(__file__), "..", "..")
MEMORY = "/dev/shm"
MODULE = "plimsoll-hdf5.so"
TIMES_BYTES = 1_000_000
CHAIN = ("stage-0", "stage-1", "stage-2", "answer")


def is_memory(folder):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return any(line.split()[4] == folder and line.split(" - ")[1].split()[0] == "tmpfs" for line in f)


def fill_times(folder):
    """As after years of other models: the file of kernels' times as large as it becomes, of entries that this plan does not ask for."""
    for path in glob.glob(os.path.join(folder, "plimsoll", "calibration-*.json")):
        with open(path, encoding="utf-8") as f:
            head, *lines = f.read().splitlines()
        entries = [line.rstrip(",") for line in lines if "[" in line]
        others, size, number = [], sum(map(len, lines)), 0
        while size < TIMES_BYTES:
            others.append(re.sub(r"\[", f"[{1000 + number},", entries[number % len(entries)], count=1))
            size += len(others[-1]) + 2
            number += 1
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join([head, *(line + "," for line in others), *lines]) + "\n")


def check_all(bench, config, words, names, before_training=lambda cache: None):
    """Each planned alone, by its name; then all in one command, at the largest figure, and one page less."""
    env = {"XDG_CACHE_HOME": bench.path("cache-of-stages")}
    charged = {}
    for name in names:
        line = bench.command("plan", config, *words, "--stage", name)
        if bench.clock:  # the kernels' times are known then; the clock itself is a library, and so a row of that plan
            bench.run(line, {**env, "LD_PRELOAD": bench.clock})
        said = re.search(r"^charged +([\d,]+)", bench.run(line, env)[0].decode(), re.M)
        if not said:
            raise Failure(f"there is no charged figure\n{repeat(line, env)}")
        charged[name] = int(said.group(1).replace(",", ""))
    before_training(env["XDG_CACHE_HOME"])
    limit = max(charged.values())
    line = bench.command("train", config, *words, "--quiet")
    out = words[words.index("--out") + 1]
    _, errors = bench.run(line, env, bench.limited(limit - 4096), expect=3)
    if any(os.path.exists(os.path.join(out, name, "checkpoints")) for name in names):
        raise Failure(f"refused when trainings were made already\n{repeat(line, env)}\n{tail(errors)}")
    bench.run(line, env, bench.limited(limit))
    if bench.group.kills():
        raise Failure(f"the kernel killed {bench.group.kills()} times at {limit:,} bytes\n{repeat(line, env)}")
    missing = [name for name in names if not os.path.exists(os.path.join(out, name, "predictions.csv"))]
    if missing:
        raise Failure(f"{missing} were not made\n{repeat(line, env)}")
    return limit


def check_chain(bench, folder, *words, before_training=lambda cache: None):
    chains = bench.path("chains.jsonl")
    with open(chains, "wb") as f:
        subprocess.run([sys.executable, os.path.join(SOURCE, "tools/make_chains.py"), "--count", "300", "--terms", "3", "--modulus", "10"],
                       stdout=f, check=True)
    return check_all(bench, os.path.join(SOURCE, "examples/chain_tiny.yaml"),
                     ["--chains", chains, "--steps", "3", "--out", os.path.join(folder, "chain"), *words], CHAIN, before_training)


def check_clouds(bench, folder):
    flights, config = bench.path("flights"), bench.path("clouds-pair.yaml")
    bench.run(bench.command("synth", "clouds", flights, "--height", "24", "--width", "32"))
    with open(os.path.join(SOURCE, "examples/clouds_tiny.yaml"), encoding="utf-8") as f:
        text = f.read().replace('"flights-tiny"', f'"{flights}"').replace("swath_slice: [4, 52]", "swath_slice: [0, 24]")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    return check_all(bench, config, ["--pretrain", "--final", "--no-loo", "--epochs", "1", "--out", os.path.join(folder, "clouds")],
                     ("pretrain", "final"))


def check_stages(bench, arguments):
    del arguments
    limits = {"chain": check_chain(bench, bench.path("disk")),
              "chain, stacks of 8 MiB": check_chain(bench, bench.path("stacks"), "--threads", "3", "--set", "memory.thread_stack=8MiB")}
    limits["chain, 1 MB of times"] = check_chain(bench, bench.path("times"), before_training=fill_times)
    has_module = bench.has_module(MODULE)
    if has_module:
        limits["clouds"] = check_clouds(bench, bench.path("disk"))
    if not is_memory(MEMORY):
        raise Skip(f"{MEMORY} is not in memory")
    folder = tempfile.mkdtemp(prefix="plimsoll-stages-", dir=MEMORY)
    try:
        limits["chain on tmpfs"] = check_chain(bench, folder)
        if has_module:
            limits["clouds on tmpfs"] = check_clouds(bench, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "at the largest one's figure: " + ", ".join(f"{name} {limit:,}" for name, limit in limits.items())
