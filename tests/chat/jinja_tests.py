"""jinja_tests.py UNIT_CHAT: random cases by jinja2, judged by that program. PLIMSOLL_TEST_SEED is the seed."""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = (("expressions", 1000, "test_cases"), ("programs", 500, "test_cases"), ("values", 1000, "test_cases"), ("specials", 500, "test_special"),
         ("templates", 10, "test_cases"))


def main():
    python = os.environ.get("PL_OWN_PYTHON")
    if not python:
        print("skipped: PL_OWN_PYTHON names no Python that has transformers")
        return 77
    seed, failed = os.environ.get("PLIMSOLL_TEST_SEED") or str(int(time.time())), False
    print(f"repeat with PLIMSOLL_TEST_SEED={seed}")
    for kind, count, test in KINDS:
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as cases:
            subprocess.run([python, "-B", os.path.join(HERE, "jinja_cases.py"), kind, seed, str(count)], check=True,
                           stdout=cases)
            failed |= subprocess.run([sys.argv[1], test, cases.name]).returncode != 0
    return failed


sys.exit(main())
