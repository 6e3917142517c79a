#!/usr/bin/env python3
"""Planned is measured, on whole commands: budget.py --plimsoll FILE [--only random,seccomp,…] [--seed N] [--count N].

Each check plans in one process, runs in another and compares; a line for each. A failure prints the command that shows it
again and keeps its folder. `--only random --seed S --index I` repeats one configuration of the random check."""

import checks
import suite
from harness import Bench


def main():
    p = suite.options(__doc__, checks.ALL, 40)
    p.add_argument("--preload", default="", help="pl_preload_malloc.so")
    p.add_argument("--thp-always", default="", help="the program that emulates huge pages set to always")
    p.add_argument("--soak", action="store_true", help="longer runs, larger texts")
    suite.run(checks.ALL, p.parse_args(), lambda a: Bench((a.plimsoll, a.preload, a.thp_always), a.keep))


if __name__ == "__main__":
    main()
