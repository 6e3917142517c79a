#!/usr/bin/env python3
"""The same run in every environment: environments.py --plimsoll FILE [--only NAME,…] [--full] [--units FOLDER]

In each environment of table.py a small transformer is trained, resumed, evaluated, asked for text and for its gradients, and
some texts are encoded.
The oracle is the plan made before, in a plain environment: what the kernel counts must be planned to the byte, and all that
the commands leave and print must be what they leave and print there. What does not fit a table (closed descriptors, odd
paths, terminals, languages) is in special.py. One line each; exit 1 when one fails, 77 when none could be tried.

--full takes the environments that `make test` leaves out; --units runs the unit programs of that folder in each, too.
Most of the ways in which a container differs need root; without, they are skipped and say so."""

import argparse
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time

import special
from table import TABLE

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "budget"))
import checks  # noqa: E402  (tests/budget: the harness is shared)
import random_config  # noqa: E402
from harness import PROGRESS, Bench, Failure, Run, Skip, repeat  # noqa: E402

UNIT_FOLDERS = ("base", "config", "data", "store", "kernels", "backend", "plan", "run")
# The high-water mark is kept from counters of which each processor holds back up to 31 pages (since Linux 6.2): where pages
# were given back before "committed" it can stand that much too high. Rss is counted page by page, and must be exact.
HIGH_WATER_SLACK = 32 * os.sysconf("SC_PAGE_SIZE") * os.cpu_count()
DRAW = "plimsoll-draw.so"  # where it was not built no texts are encoded
LONG = ("unit_run_test_process_plan", "unit_run_test_process_rules")  # programs of their own; they measure themselves


def hash_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def variables_of(bench, environment):
    plain = {k: v for k, v in bench.environment.items() if k not in environment.without}
    return {**plain, **environment.variables}


def run(bench, environment, *words):
    line = environment.command(bench.command(*words))
    done = subprocess.run(line, env=variables_of(bench, environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise Failure(f"exit {done.returncode}: {said[-600:]}\n{repeat(line, environment.variables)}")
    return done.stdout


def is_linked_with_libomp(path):
    with open(path, "rb") as f:
        return b"libomp.so" in f.read()


def may_be_tried(bench, environment):
    if not environment.libomp and is_linked_with_libomp(bench.plimsoll):
        raise Skip("LLVM's OpenMP needs /dev/shm")
    line = environment.command(["true"])
    try:
        done = subprocess.run(line, env=variables_of(bench, environment), capture_output=True, timeout=60)
    except FileNotFoundError:
        raise Skip(f"there is no {line[0]}") from None
    if done.returncode:
        raise Skip(f"not allowed here: {done.stderr.decode(errors='replace').strip()[-200:]}")


def plan_of(bench, environment, options):
    return json.loads(run(bench, environment, "plan", bench.config, "--json", *options, *PROGRESS))


def train(bench, environment, options, out, plan):
    line = environment.command(bench.command("train", bench.config, *options, *PROGRESS))
    run_of = Run(line, variables_of(bench, environment), environment.variables, out, 0, watch=False)
    found = run_of.judge(plan)
    beside = {k: found[k] for k in ("resident", "peak", "rows", "unexplained") if found[k]}
    if 0 < beside.get("peak", 0) < HIGH_WATER_SLACK and len(beside) == 1:
        print(f"  VmHWM {beside['peak']:+,} bytes: within what the kernel leaves uncounted", flush=True)
        beside = {}
    if beside:
        raise Failure(f"not to the byte: {beside}\n{repeat(line, environment.variables)}")


ENCODER = {"model.arch": "capsules", "texts.format": "grammar", "texts.count": 5, "encoder.image_size": 40, "encoder.patch_size": 20,
           "encoder.hidden_size": 16, "encoder.num_heads": 2, "encoder.num_layers": 1, "encoder.H_cycles": 1, "encoder.L_cycles": 1,
           "encoder.target_capsules": 2, "encoder.capsule_grid_shape": "[1, 2]", "encoder.children_per_capsule": 2,
           "pipeline.batch_size": 2, "pipeline.block_texts": 2, "run.threads": 2}


def encode(bench, environment, planned):
    """The hash of what an encoder stores, and its resident bytes: as planned, to the byte, and as `planned` unless that is None."""
    out = bench.out()
    options = random_config.options_of({**ENCODER, **{k.replace("__", "."): v for k, v in environment.keys.items()}, "run.out": out})
    line = environment.command(bench.command("encode", bench.config, "--ledger", *options))
    done = subprocess.run(line, env=variables_of(bench, environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    said = done.stderr.decode(errors="replace")
    resident = re.search(r"^resident +([\d,]+) +([\d,]+) ", said, re.M)
    if done.returncode or not resident or resident[1] != resident[2] or planned not in (None, resident[1]):
        raise Failure(f"exit {done.returncode}, {planned} planned: {said[-600:]}\n{repeat(line, environment.variables)}")
    return hash_of(os.path.join(out, "results.blocks")), resident[1]


def results(bench, environment, plan=None):
    """What the commands leave and print; the plans they were held to."""
    out, gradients = bench.out(), bench.path("gradients.safetensors")
    options = checks.tiny(bench, out, train__steps=6, train__sample_every=0, train__learning_rate=0.01, **environment.keys)
    plan, encoder = plan if plan and environment.plan != "own" else (plan_of(bench, environment, options), None)
    train(bench, environment, options, out, plan)
    found = {"weights": checks.weights_of(out), "eval": run(bench, environment, "eval", out, "--json"),
             "text": run(bench, environment, "generate", out, "--prompt", "the ")}
    run(bench, environment, "verify", "--gradients", gradients, out)
    found["gradients"] = hash_of(gradients)
    run(bench, environment, "train", out, "--resume", "--steps", "8", "--quiet")
    found["resumed"] = checks.weights_of(out)
    learned(out)
    if os.path.exists(os.path.join(os.path.dirname(bench.plimsoll), DRAW)):
        found["capsules"], encoder = encode(bench, environment, encoder)
    return found, (plan, encoder)


def learned(out):
    losses = special.losses_of(out)
    if not losses[-1] < losses[0]:
        raise Failure(f"it does not learn: losses {losses} in {out}/metrics.jsonl")


def commands_of_units(folder):
    """One a file of tests: a folder's program and the name, or a program of its own."""
    commands = []
    for unit in (os.path.join(os.path.abspath(folder), f"unit_{f}") for f in UNIT_FOLDERS):
        if os.path.exists(unit):
            listed = subprocess.run([unit, "--list"], capture_output=True, text=True, timeout=60, check=True)
            commands += [[unit, name] for name in listed.stdout.split()]
        commands += [[p] for p in sorted(glob.glob(f"{unit}_test_*")) if os.path.basename(p) not in LONG]
    return commands


def run_units(bench, environment, folder):
    commands = commands_of_units(folder)
    if not commands:
        raise Failure(f"{folder}: no unit programs are there; build them first")
    for command in commands:
        line = environment.command(command)
        done = subprocess.run(line, env=variables_of(bench, environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600, cwd=bench.folder)
        if done.returncode not in (0, 77):
            raise Failure(f"exit {done.returncode}\n{repeat(line, environment.variables)}\n{done.stdout.decode(errors='replace')[-1500:]}")
    return len(commands)


class Examiner:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bench = Bench((os.path.abspath(arguments.plimsoll), "", arguments.thp_always))
        self.plain, self.plan = results(self.bench, special.PLAIN)
        self.failed = False

    def examine(self, environment):
        may_be_tried(self.bench, environment)
        found, _ = results(self.bench, environment, self.plan)
        differ = [k for k in found if environment.bits and found[k] != self.plain[k]]
        if differ:
            raise Failure(f"other than in a plain environment: {', '.join(differ)}")
        words = "planned = measured" + (", same bits" if environment.bits else "")
        if self.arguments.units and environment.units:
            words += f", {run_units(self.bench, environment, self.arguments.units)} unit tests"
        return words

    def one(self, name):
        began = time.monotonic()
        try:
            words = self.examine(TABLE[name]) if name in TABLE else special.ALL[name](self.bench, self.arguments)
            verdict = "passed"
        except Skip as reason:
            verdict, words = "skipped", str(reason)
        except (Failure, subprocess.TimeoutExpired) as reason:
            verdict, words, self.failed = "FAILED", str(reason), True
        print(f"{name:32} {verdict:8} {time.monotonic() - began:6.1f} s  {words}", flush=True)
        return verdict


def names_of(arguments):
    if arguments.only:
        return arguments.only.split(";" if ";" in arguments.only else ",") if arguments.only not in TABLE else [arguments.only]
    return [n for n, e in TABLE.items() if arguments.full or e.brief] + list(special.ALL)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--plimsoll", required=True, help="the command")
    p.add_argument("--thp-always", default="", help="the program that emulates huge pages set to always")
    p.add_argument("--host", default="", help="the program that plans under a locale of its own (host.c)")
    p.add_argument("--only", default="", help="names of environments, with ; or , between them")
    p.add_argument("--full", action="store_true", help="all of them")
    p.add_argument("--units", default="", help="folder of the unit programs to run in each environment, too")
    arguments = p.parse_args()
    names = names_of(arguments)
    for name in names:
        if name not in TABLE and name not in special.ALL:
            sys.exit(f"--only: {name} is none of {'; '.join([*TABLE, *special.ALL])}")
    try:
        examiner = Examiner(arguments)
    except Failure as reason:
        sys.exit(f"in a plain environment: {reason}")
    try:
        verdicts = [examiner.one(name) for name in names]
    finally:
        examiner.bench.close(examiner.failed)
    print(", ".join(f"{verdicts.count(v)} {v.lower()}" for v in ("passed", "FAILED", "skipped") if v in verdicts))
    sys.exit(1 if examiner.failed else 0 if "passed" in verdicts else 77)


if __name__ == "__main__":
    main()
