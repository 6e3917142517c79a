"""Golden replay: the same results to the bit, whatever is rebuilt inside.

    replay.py PLIMSOLL FOLDER            compares with expected.txt beside this file (77: this machine cannot)
    replay.py PLIMSOLL FOLDER --write    records expected.txt anew
    replay.py PLIMSOLL FOLDER --against OTHER    compares two builds, line by line of what differs

Eight configurations (*.yaml beside this file) through four commands each, and two of an encoder through its own. A line of
expected.txt is

    CONFIG COMMAND WHAT HASH

with WHAT among: plan (the lock file), program (the calls in their order), metrics, weights, state, text, loss, gradients; page (as
the libraries of Debian 12 draw it; without the module that draws, the encoder's lines are left out), sketches, checksums,
children, remarks. Out of the plan goes what another compiler, machine or clock changes: pages of program and libraries, the heap's and other totals that
contain them, predicted times and the rates that they rest on, how an arena was found, the checksum over these, and the hash of a config that names its text by a path of this machine;
out of the metrics the times. Every choice that a search could take is given in the configuration, the instruction set is avx2
and the team two threads, so that results do not hang on the machine.
"""
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")
FIXED = ["--isa", "avx2", "--threads", "2", "--set", "memory.huge_pages=off"]
OF_THIS_BUILD = re.compile(r"^(row (3|4|5|7) |process |totals |time |rates |disk |checksum |config \"  (out|text|cache|dump):)")
ENCODERS = "capsules-"
TIMES = ("tokens_per_second", "seconds")


def text():
    """A page of words drawn by a linear congruential generator: the same on every machine."""
    words = "the sea is wide and a ship that carries more than its line allows will not see land again".split()
    state, out = 12345, []
    for i in range(3000):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(words[state // 65536 % len(words)] + (".\n" if i % 13 == 12 else ""))
    return " ".join(out)


def run(command, folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    env.update(XDG_CACHE_HOME=os.path.join(folder, "cache"), LC_ALL="C", OMP_WAIT_POLICY="passive")
    done = subprocess.run([command, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    if done.returncode:
        sys.exit(f"plimsoll {' '.join(words)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def plan_of(lock, relative=True):
    kept = [line for line in lock.decode().splitlines() if not OF_THIS_BUILD.match(line)]
    plan = re.sub(r" by=.*", "", "\n".join(kept))
    return (plan if relative else re.sub(r" hash=[0-9]+", "", plan)).encode()


def metrics_of(lines):
    rows = [json.loads(line) for line in lines.splitlines()]
    return json.dumps([{k: v for k, v in row.items() if k not in TIMES} for row in rows]).encode()


def encode(command, folder, name):
    """As replay: an encoder's program, what it stored, and of its last text what another program would need."""
    config, out = os.path.join(HERE, name + ".yaml"), os.path.join(folder, name)
    last = re.search(r"count: (\d+)", read(config).decode())
    run(command, folder, "encode", config, "--out", name, *FIXED, "--dump", "program")
    run(command, folder, "encode", config, "--out", name, *FIXED, "--witness", name + "-witness", "--only", str(int(last[1]) - 1))
    found = [("encode", "program", read(out, "dump-program.txt"))]
    found += [("encode", what, read(out + "-witness", file)) for what, file in (("page", "page.npy"), ("weights", "weights.safetensors"))]
    for what in ("sketches", "checksums", "children", "remarks"):
        run(command, folder, "results", "export", f"{name}/results.blocks", "--dataset", what, "--out", f"{name}/{what}.npy")
        found.append(("encode", what, read(out, what + ".npy")))
    return found


def replay(command, folder, name):
    """[(command, what, bytes)] of one configuration."""
    config = os.path.join(HERE, name + ".yaml")
    if name.startswith(ENCODERS):
        return encode(command, folder, name)
    given = [config, "--text", "text.txt", "--out", name, *FIXED]
    out = os.path.join(folder, name)
    run(command, folder, "train", *given, "--dump", "program")
    newest = os.path.join(out, "checkpoints", read(out, "checkpoints", "latest").decode().strip())
    found = [("train", "plan", plan_of(read(out, "plan.lock"))), ("train", "program", read(out, "dump-program.txt")),
             ("train", "metrics", metrics_of(read(out, "metrics.jsonl"))),
             ("train", "weights", read(newest, "model.safetensors")), ("train", "state", read(newest, "state.safetensors"))]
    ways = {"eval": "evaluate", "generate": "generate", "gradients": "gradients"}
    if "validation_fraction: 0}" in read(config).decode():
        del ways["eval"]
    for short, long in ways.items():
        found.append((short, "plan", plan_of(run(command, folder, "plan", name, "--command", long, "--out-lock", "-"), False)))
    if "eval" in ways:
        found.append(("eval", "loss", run(command, folder, "eval", name, *FIXED, "--json")))
    found.append(("generate", "text", run(command, folder, "generate", name, *FIXED)))
    run(command, folder, "verify", name, *FIXED[:4], "--gradients", name + ".gradients")
    found.append(("gradients", "gradients", read(folder, name + ".gradients")))
    return found


def replay_all(command, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "text.txt"), "w") as f:
        f.write(text())
    names = sorted(f[:-5] for f in os.listdir(HERE) if f.endswith(".yaml") and (can_draw(command) or not f.startswith(ENCODERS)))
    return {(name, *found[:2]): found[2] for name in names for found in replay(command, folder, name)}


def lines_of(found):
    return [" ".join((*key, hashlib.sha256(data).hexdigest()[:16])) for key, data in sorted(found.items())]


def can_draw(command):
    return os.path.exists(os.path.join(os.path.dirname(command), "plimsoll-draw.so"))


def can_replay():
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    return all(f" {flag} " in flags + " " for flag in ("avx2", "fma", "f16c"))


def against(one, other):
    """Prints what differs; how many."""
    differ = [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
    for key in differ:
        print(*key, "differs")
        if key[2] in ("plan", "program", "metrics", "loss", "text"):
            before, after = (str(side.get(key, b""), errors="replace").splitlines() for side in (one, other))
            print("\n".join(list(difflib.unified_diff(before, after, lineterm="", n=0))[:20]))
    return len(differ)


def main():
    command, folder = os.path.abspath(sys.argv[1]), os.path.join(os.path.abspath(sys.argv[2]), "golden-replay")  # emptied: its own
    if not can_replay():
        print("skipped: this processor has no AVX2, for which the results are recorded")
        return 77
    if sys.argv[3:4] == ["--against"]:
        one, other = replay_all(os.path.abspath(sys.argv[4]), folder + "-other"), replay_all(command, folder)
        differ = against(one, other)
        print(f"{len(one)} results, {differ} differ")
        return differ > 0
    lines = lines_of(replay_all(command, folder))
    if sys.argv[3:] == ["--write"]:
        with open(EXPECTED, "w") as f:
            f.write("\n".join(lines) + "\n")
        return 0
    expected = [line for line in read(EXPECTED).decode().splitlines() if can_draw(command) or not line.startswith(ENCODERS)]
    wrong = list(difflib.unified_diff(expected, lines, "expected", "found", lineterm="", n=0))
    print("\n".join(wrong) if wrong else f"{len(lines)} results are the same to the bit")
    if wrong:
        print("build the version that expected.txt was recorded with, and see what differs: replay.py … --against THAT")
    return len(wrong) > 0


sys.exit(main())
