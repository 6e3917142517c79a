#!/usr/bin/env python3
"""Planned is measured, on whole commands: budget.py --plimsoll FILE [--only random,seccomp,…] [--seed N] [--count N].

Each check plans in one process, runs in another and compares. The last lines are a table; exit 1 when anything failed,
77 when the machine allows none of what was asked for. A failure prints the command that shows it again and keeps its
folder. `--only random --seed S --index I` repeats one configuration of the random check."""

import argparse
import sys
import time

import checks
from harness import Bench, Failure, Skip


def read_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--plimsoll", required=True, help="the command")
    p.add_argument("--preload", default="", help="pl_preload_malloc.so")
    p.add_argument("--thp-always", default="", help="the program that emulates huge pages set to always")
    p.add_argument("--only", default=",".join(checks.ALL), help=f"of {', '.join(checks.ALL)}")
    p.add_argument("--seed", type=int, default=0, help="of the random configurations; 0: by the clock")
    p.add_argument("--count", type=int, default=40, help="random configurations")
    p.add_argument("--index", type=int, default=-1, help="only this one of them")
    p.add_argument("--soak", action="store_true", help="longer runs, larger texts")
    p.add_argument("--keep", action="store_true", help="keep all folders")
    a = p.parse_args()
    a.seed = a.seed or int(time.time()) % 10**9
    return a


def run_check(name, arguments):
    """(verdict, what the table says)"""
    bench = Bench((arguments.plimsoll, arguments.preload, arguments.thp_always), arguments.keep)
    failed = True
    try:
        words = checks.ALL[name](bench, arguments)
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


def main():
    arguments = read_arguments()
    names = arguments.only.split(",")
    for name in names:
        if name not in checks.ALL:
            sys.exit(f"--only: {name} is none of {', '.join(checks.ALL)}")
    print(f"seed {arguments.seed}")
    table = []
    for name in names:
        began = time.monotonic()
        table.append((name, *run_check(name, arguments), time.monotonic() - began))
    print()
    for name, verdict, words, seconds in table:
        print(f"{name:12} {verdict:8} {seconds:7.1f} s  {words}")
    verdicts = {row[1] for row in table}
    sys.exit(1 if "FAILED" in verdicts else 77 if verdicts == {"skipped"} else 0)


if __name__ == "__main__":
    main()
