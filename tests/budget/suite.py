"""Checks by name, run one after the other: what budget.py and enforce.py share.

A check takes (bench, arguments), gives the words for its line, raises Failure or Skip. Exit 1 when anything failed, 77 when
the machine allows none of what was asked for."""

import argparse
import os
import sys
import time

from harness import Failure, Skip
from soak import share_of


def options(document, checks, count):
    """A parser with the options that all have."""
    p = argparse.ArgumentParser(description=document.split("\n", maxsplit=1)[0])
    p.add_argument("--plimsoll", required=True, help="the command")
    p.add_argument("--only", default=",".join(checks), help=f"of {', '.join(checks)}")
    seed = int(os.environ.get("PLIMSOLL_TEST_SEED", int(time.time()) % 10**9))
    p.add_argument("--seed", type=int, default=seed, help="of the random configurations; default: PLIMSOLL_TEST_SEED, or by the clock")
    p.add_argument("--count", type=int, default=count, help="random configurations")
    p.add_argument("--index", type=int, default=-1, help="only this one of them")
    p.add_argument("--keep", action="store_true", help="keep all folders")
    return p


def run_random(arguments, run_one):
    """run_one(index) for each configuration asked for; how many. All are tried before the first failure is told."""
    failures = []
    indices = [arguments.index] if arguments.index >= 0 else range(share_of(arguments.count))
    for index in indices:
        try:
            run_one(index)
        except Failure as reason:
            failures.append(reason)
            print(f"random --seed {arguments.seed} --index {index}: {reason}", flush=True)
    if failures:
        raise Failure(f"{len(failures)} of {len(indices)} configurations failed, the first: {failures[0]}")
    return len(indices)


def run_check(check, name, arguments, make_bench):
    """(verdict, what its line says)"""
    bench, failed = make_bench(arguments), True
    try:
        words = check(bench, arguments)
        failed = False
        return "passed", words
    except Skip as reason:
        failed = False
        return "skipped", str(reason)
    except Failure as reason:
        print(f"{name}: {reason}", flush=True)
        return "FAILED", str(reason).splitlines()[0]
    finally:
        bench.close(failed)


def run(checks, arguments, make_bench):
    """Never comes back."""
    names = arguments.only.split(",")
    for name in names:
        if name not in checks:
            sys.exit(f"--only: {name} is none of {', '.join(checks)}")
    print(f"seed {arguments.seed}", flush=True)
    verdicts = set()
    for name in names:
        began = time.monotonic()
        verdict, words = run_check(checks[name], name, arguments, make_bench)
        verdicts.add(verdict)
        print(f"{name:12} {verdict:8} {time.monotonic() - began:7.1f} s  {words}", flush=True)
    sys.exit(1 if "FAILED" in verdicts else 77 if verdicts == {"skipped"} else 0)
