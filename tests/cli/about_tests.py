"""Tests of what plimsoll says of itself: --version. Called as cli_tests.py is."""
import json
import os
import re
import shutil
import subprocess

from cli_tests import COMMAND, check, environment, main, refused, run


def test_version():
    """What a report of a fault needs: the same as text and as JSON; modules are those beside the command."""
    lines, told = run("--version")[0].split("\n"), json.loads(run("--version", "--json")[0])
    check(re.fullmatch(r"plimsoll \d+\.\d+\.\d+", lines[0]) and lines[0].split()[1] == told["version"], lines[0])
    said = {line[:10].strip(): line[10:] for line in lines[1:] if line}
    check(told["schema"] == "plimsoll.version/1" and (said["commit"] == told["commit"] or (told["commit"], said["commit"]) == (None, "not known")), said)
    checkout = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True) if shutil.which("git") and os.path.exists(checkout + "/.git") else None
    if done and done.returncode == 0 and told["commit"]: # or the build is of another commit: of one of this repository, then
        known = subprocess.run(["git", "-C", checkout, "cat-file", "-e", told["commit"].split("-")[0] + "^{commit}"], capture_output=True)
        check(known.returncode == 0, told["commit"], "is no commit")
    check(said["build"] == f"{told['build_type']}, {told['compiler']}" and said["kernels"] == ", ".join([told["isa"], *told["isa_extras"]]), said)
    loads = sorted(name for name, what in told["modules"].items() if what == "loads")
    check(said["modules"] == (", ".join(loads) or "none"), said)
    beside = sorted(name[9:-3] for name in os.listdir(os.path.dirname(COMMAND)) if re.fullmatch(r"plimsoll-\w+\.so", name))
    check(loads == beside, "modules:", told["modules"], "but there are", beside)
    os.mkdir("alone")
    shutil.copy(COMMAND, "alone/plimsoll")
    alone = subprocess.run(["alone/plimsoll", "--version"], capture_output=True, text=True, env=environment())
    check("modules   none\nmissing   cache: there is no plimsoll-cache.so\n" in alone.stdout, alone.stdout, alone.stderr)
    check(all(run(word)[0] == run("--version")[0] for word in ("version", "-v", "-V")), "other words for it")
    refused(2, "--version takes nothing but --json, not --yaml", "--version", "--yaml")


main({"about": [test_version]})
