#!/usr/bin/env python3
"""The control: where Plimsoll trains to the end, the same job in the classic way is killed by the kernel.

    bench/control.py --plimsoll build/plimsoll [--budget 110MB] [--steps N] [--peer FILE] [--python FILE]

A memory cgroup gets the charged figure of the plan for a budget as its limit, to the page, swap
closed (tests/budget/group.py). In it run, one after the other, each in a fresh group:

  planned      that plan: all its steps, none killed
  classic      the plan of the classic way (whole batch, everything saved for the backward pass, update at the end, no
               budget): refused in a sentence, for the command reads the limit before it commits
  unprotected  the same where the command cannot see its limit (something is mounted over the group's files, for this
               process only), as if nothing were checked: killed. Where nothing can be mounted the verdict is "skipped",
               with the reason, once all the others were right
  PyTorch      the same model in the program of --peer, where there is one; and once without a limit, for its own peak

--curves FILE keeps what the group held over time, for the first and the third (JSON; tools/refresh-docs draws them).
Model: the default, 4.97 million parameters, batch 32 x 128. Exit 1 when one of them ends otherwise, 77 where no group can
be made or nothing mounted. A size is decimal: 1 MB = 10^6 bytes."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "budget"))

import suite  # noqa: E402
from group import Inside  # noqa: E402
from harness import Failure, Skip, repeat, tail  # noqa: E402

CLASSIC = {"train.micro_batch": 32, "train.gradient_checkpointing": "off", "train.update_in_backward": "off",
           "train.layer_major": 0, "train.feed_forward_rows": 0}
UNLIMITED = 1 << 40
SIGKILL = 9
Ended = namedtuple("Ended", "code output kills peak")


def run_in_group(bench, line, limit, curve=None):
    """curve: gets (seconds, bytes of the group) as long as it runs."""
    with tempfile.TemporaryFile() as said:
        prefix, began = bench.limited(limit), time.monotonic()
        process = subprocess.Popen([*prefix, *line], env=bench.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None and time.monotonic() - began < 1200:
            if curve is not None:
                curve.append((round(time.monotonic() - began, 3), bench.group.now()))
            time.sleep(0.02)
        process.kill()
        process.wait()
        said.seek(0)
        return Ended(process.returncode, said.read().decode(errors="replace"), bench.group.kills(), bench.group.peak())


def row(job, planned, limit, ended, words):
    def size(bytes_):
        return "-" if bytes_ is None else f"{bytes_ / 1e6:.2f}"

    print(f"{job:12} {size(planned):>10} {size(limit):>10} {size(ended.peak):>10}  {words}", flush=True)


def expect(ended, line, kills, code, pattern=""):
    if (ended.kills > 0) != (kills > 0) or ended.code != code or not re.search(pattern, ended.output):
        raise Failure(f"exit {ended.code} and {ended.kills} kills where {code} and {kills} are expected\n{repeat(line, {})}\n"
                      f"{tail(ended.output)}")


def killed(ended):
    return f"killed by signal {-ended.code}; out-of-memory kills counted by the group: {ended.kills}"


def plan(bench, options, name):
    """(charged bytes, the command that runs it)"""
    lock = bench.path(name + ".lock")
    process = bench.plan([*options, "--out-lock", lock])["process"]
    return process["charged_bytes"], bench.command("train", bench.config, *options, "--lock", lock)


def options_of(bench, name, steps, keys):
    keys = {"data.text": bench.text(600_000), "data.cache": bench.path("tokens"), "data.validation_fraction": 0, "train.steps": steps,
            "train.checkpoint_every": steps, "run.out": bench.path(name), **keys}
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


def why_not_hidden():
    """"": something can be mounted for one process only; else what is in the way."""
    if not shutil.which("unshare"):
        return "there is no unshare(1)"
    line = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0"', os.path.dirname(os.path.abspath(__file__))]
    done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}" if done.returncode else ""


def hidden(bench, line):
    """The command with an empty folder mounted over the files of its group: of this process only, gone with it."""
    mount = os.path.dirname(bench.group.folder)
    return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', mount, *line]


def run_peer(bench, arguments, limit):
    found = subprocess.run([arguments.python, "-c", "import torch"], capture_output=True) if os.path.exists(arguments.peer) else None
    if found is None or found.returncode:
        print(f"PyTorch      skipped: {'no torch in ' + arguments.python if found else 'no peer ' + repr(arguments.peer)}")
        return
    line = [arguments.python, arguments.peer, "eager", "fp32", str(max(3, arguments.steps)), "32"]
    free = run_in_group(bench, line, UNLIMITED)
    expect(free, line, 0, 0)
    row("PyTorch", None, None, free, "without a limit: ran")
    dead = run_in_group(bench, line, limit)
    expect(dead, line, 1, -SIGKILL)
    row("PyTorch", None, limit, dead, killed(dead))


def check_control(bench, arguments):
    limit, line = plan(bench, options_of(bench, "planned", arguments.steps, {"memory.budget": arguments.budget}), "planned")
    classic, classic_line = plan(bench, options_of(bench, "classic", arguments.steps, CLASSIC), "classic")
    print(f"{'MB':12} {'planned':>10} {'limit':>10} {'peak':>10}  what happened ({arguments.steps} steps; peak: the group's, page cache included)")
    curves = {"limit": limit, "planned": [], "usual": []}
    done = run_in_group(bench, line, limit, curves["planned"])
    expect(done, line, 0, 0)
    row("planned", limit, limit, done, "trained to the end, nothing killed")
    refused = run_in_group(bench, classic_line, limit)
    expect(refused, classic_line, 0, 3, rf"charged [^(]*\({classic:,} bytes\), [^(]*\({classic - limit:,} bytes\) more than the cgroup limit")
    row("classic", classic, limit, refused, "refused before the first step: " + refused.output.strip().splitlines()[-1])
    why_not = why_not_hidden()
    if not why_not:
        blind = hidden(bench, classic_line)
        dead = run_in_group(bench, blind, limit, curves["usual"])
        expect(dead, blind, 1, -SIGKILL)
        row("unprotected", classic, limit, dead, killed(dead))
    if arguments.curves:
        with open(arguments.curves, "w") as file:
            json.dump({**curves, "classic_bytes": classic}, file)
    run_peer(bench, arguments, limit)
    if why_not:
        raise Skip(f"what the kernel does to who cannot see the limit is not shown, for nothing can be mounted here: {why_not}")
    return f"the classic way needs {classic / limit:.1f} times the bytes that the plan for {arguments.budget} trains in"


def main():
    checks = {"control": check_control}
    p = suite.options(__doc__, checks, 1)
    beside = os.path.dirname(ROOT)
    own = os.path.join(beside, "venv", "bin", "python")
    p.add_argument("--budget", default="110MB", help="that fit plans for")
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--curves", metavar="FILE")
    p.add_argument("--peer", default=os.path.join(beside, "shared", "peers", "peer_lm.py"), help="the same in PyTorch")
    p.add_argument("--python", default=own if os.path.exists(own) else sys.executable, help="with torch, for the peer")
    suite.run(checks, p.parse_args(), lambda a: Inside(a.plimsoll, a.keep))


if __name__ == "__main__":
    main()
