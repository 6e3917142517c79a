"""What every check of tests/budget uses: texts, commands, planned and measured figures.

The idea: the planned figures come from `plimsoll plan --json` in one process, the measured ones from a later `plimsoll
train` with the same options, twice: from the rows it writes to report.json, and from /proc/PID, read here while it runs.
For the second, its progress goes through a pipe of one page: a command that is ahead of us waits in write(2), holding
all that it holds, so that it is looked at several times up to its last moments and not whenever the scheduler lets us.

Source: proc(5) (smaps_rollup, status), pipe(7) (F_SETPIPE_SZ)."""

import fcntl
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from said import plain  # noqa: F401: for those who import from here

F_SETPIPE_SZ = 1031
ALLOWED_BYTES = 1_000_000  # or 1 % of the plan, whichever is larger
ALLOWED_SHARE = 0.01
PROGRESS = ("--progress", "json")  # in both processes: the config is a part of the plan, and its text of the heap


class Failure(Exception):
    """One sentence with what differs, and the command that shows it again."""


class Skip(Exception):
    """This machine does not allow the check."""


def allowed(planned_bytes):
    return max(ALLOWED_BYTES, ALLOWED_SHARE * planned_bytes)


def write_text(path, size_bytes, seed):
    """English-like words, some not ASCII, some bytes not UTF-8: the same for the same seed, of exactly this size."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(rng.choice(letters[: rng.randint(3, 26)]) for _ in range(rng.randint(1, 9))) for _ in range(3000)]
    words += ["naïve", "Übung", "東京", "42", "1997", "don't", "…", "«so»"]
    block = bytearray()
    while len(block) < min(size_bytes, 1 << 20):
        line = " ".join(words[int(len(words) * rng.random() ** 3)] for _ in range(rng.randint(3, 16)))
        block += line.encode() + rng.choice([b".\n", b"\n", b"!\n\n", b"\t-\r\n", b"\xff\xfe\n"])
    with open(path, "wb") as f:
        left = size_bytes
        while left > 0:
            left -= f.write(block[:left])


class Bench:
    """A folder for one check, and the commands under test in it."""

    def __init__(self, tools, keep=False):
        self.plimsoll, self.preload, self.thp_always = tools
        self.folder = tempfile.mkdtemp(prefix="plimsoll-budget-")
        self.keep = keep
        self.count = 0
        self.config = self.path("config.yaml")
        open(self.config, "w").close()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("PLIMSOLL_", "OMP_", "GOMP_", "LD_"))}
        # Who waits does not spin: these tests run beside others, often with more threads than cores.
        self.environment.update(XDG_CACHE_HOME=self.path("cache"), OMP_WAIT_POLICY="passive")
        self.clock = os.environ.get("PL_PRELOAD_CLOCK", "")  # of tests/support/process; "": kernels are measured
        self.measures, self.known = not self.clock, set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, size_bytes=60_000, seed=1):
        path = self.path(f"text-{size_bytes}-{seed}.txt")
        if not os.path.exists(path):
            write_text(path, size_bytes, seed)
        return path

    def out(self):
        self.count += 1
        return self.path(f"run-{self.count}")

    def close(self, failed):
        if self.keep or failed:
            print(f"  everything is kept in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- commands ----

    def command(self, *words):
        return [self.plimsoll, *map(str, words)]

    def run(self, command, env=None, prefix=(), expect=0, timeout=600):
        """(stdout, stderr) as bytes and text; Failure unless it exits with `expect`."""
        extra = env or {}
        line = [*prefix, *command]
        done = subprocess.run(line, env={**self.environment, **extra}, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        errors = done.stderr.decode(errors="replace")
        if done.returncode not in (expect if isinstance(expect, tuple) else (expect,)):
            raise Failure(f"exit {done.returncode} where {expect} is expected\n{repeat(line, extra)}\n{tail(errors)}")
        return done.stdout, errors

    def know_kernels(self, options, config, prefix=()):
        """A plan under the clock that steps by itself: the next one finds its kernels' times in the cache. Measuring takes
        over a second for each configuration, and what is planned and held in memory does not depend on it."""
        if self.measures or "--lock" in options or (config, *options) in self.known:
            return
        line, extra = [*prefix, *self.command("plan", config, *options)], {"LD_PRELOAD": self.clock}
        done = subprocess.run(line, env={**self.environment, **extra}, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        if b"LD_PRELOAD" in done.stderr:  # the loader goes on without it
            raise Failure(f"the clock is not used\n{repeat(line, extra)}\n{tail(done.stderr.decode(errors='replace'))}")
        self.known.add((config, *options))

    def plan(self, options=(), command="train", env=None, prefix=(), config=None):
        if command in ("train", "rollout", "encode"):  # the others measure nothing
            self.know_kernels(options, config or self.config, prefix)
        line = self.command("plan", config or self.config, "--json", "--command", command, *options)
        out, _ = self.run([*line, *PROGRESS] if command == "train" else line, env, prefix)
        return json.loads(out)

    def ledger(self, name, folder, planned_bytes, env=None, options=()):
        """generate or eval in the folder of a run; its differences."""
        line = self.command(name, folder, "--ledger", *options)
        _, errors = self.run(line, env)
        return judge_ledger_text(errors, planned_bytes, line)

    def train(self, options, out, env=None, prefix=(), expect=0, watch=True):
        """Runs it and looks at it from outside; a Run."""
        self.know_kernels(options, self.config)
        extra = env or {}
        line = [*prefix, *self.command("train", self.config, "--ledger", *options, *PROGRESS)]
        return Run(line, {**self.environment, **extra}, extra, out, expect, watch)


def repeat(line, extra):
    return "  repeat: " + " ".join([*(f"{k}={shlex.quote(v)}" for k, v in extra.items()), *map(shlex.quote, line)])


def tail(text, lines=12):
    return "\n".join("  | " + x for x in text.strip().splitlines()[-lines:])


# ---- /proc ----


def read_fields(path):
    fields = {}
    with open(path, encoding="ascii", errors="replace") as f:
        for text in f:
            key, _, rest = text.partition(":")
            words = rest.split()
            if words and words[0].isdigit():
                fields[key] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return fields


def look(pid):
    """Rss of the mappings, VmHWM, threads and seccomp mode; None when the process is gone."""
    try:
        rollup, status = read_fields(f"/proc/{pid}/smaps_rollup"), read_fields(f"/proc/{pid}/status")
        peak = max(status["VmHWM"], rollup["Rss"])  # the mark lags behind (docs/memory.md)
        return {"rss": rollup["Rss"], "peak": peak, "page_tables": status["VmPTE"], "threads": status["Threads"],
                "seccomp": status["Seccomp"]}
    except (OSError, KeyError):
        return None


class Run:
    """A finished `plimsoll train --progress json`."""

    def __init__(self, line, env, extra, out, expect, watch):
        self.witness = None
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, bufsize=0)
            with child:
                self.output = self.read_along(child, watch)
            errors.seek(0)
            self.errors = errors.read().decode(errors="replace")
        self.repeat = repeat(line, extra)
        if child.returncode != expect:
            raise Failure(f"exit {child.returncode} where {expect} is expected\n{self.repeat}\n{tail(self.errors)}")
        self.report = {}
        if expect == 0:
            with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
                self.report = json.load(f)
        faults = re.search(r"page faults since step 2: (\d+)", self.errors)
        self.faults = int(faults.group(1)) if faults else None

    def read_along(self, child, watch):
        data = bytearray()
        fcntl.fcntl(child.stdout, F_SETPIPE_SZ, 4096)
        while chunk := os.read(child.stdout.fileno(), 512 if watch else 65536):
            data += chunk
            if watch and b'"event":"committed"' in data:
                seen = look(child.pid)
                # The largest: at its very end the loader's thread has already given its stack back.
                if seen and seen["rss"] >= (self.witness or seen)["rss"] > 0:
                    self.witness = seen
        return bytes(data)

    def judge(self, plan):
        """Differences measured − planned in bytes, after everything that must hold exactly."""
        process, report = plan["process"], self.report
        planned = process["resident_bytes"]
        rows = {(r["kind"], r["name"]): r["resident_bytes"] for r in process["rows"]}
        for r in report["rows"]:
            key = (r["kind"], r["name"])
            rows[key] = r["measured_bytes"] - rows.get(key, 0)
        measured = {(r["kind"], r["name"]) for r in report["rows"]}
        rows = {key: value if key in measured else -value for key, value in rows.items()}
        worst = max(rows, key=lambda key: abs(rows[key]))
        found = {"planned": planned, "worst": worst[1], "rows": abs(rows[worst]), "resident": report["rollup_bytes"] - planned,
                 "peak": report["peak_bytes"] - planned, "unexplained": report["unexplained_bytes"],
                 "page_tables": report["measured_page_table_bytes"] - process["page_table_bytes"]}
        if self.witness:
            found["seen_resident"] = self.witness["rss"] - planned
            found["seen_peak"] = self.witness["peak"] - planned
        for key in ("resident", "peak", "seen_resident", "seen_peak", "rows"):
            if abs(found.get(key, 0)) > allowed(planned):
                raise Failure(f"{key}: {found[key]:+,} bytes beside the {planned:,} planned\n{self.repeat}\n{tail(self.errors, 30)}")
        # What a part of it holds is called by nobody who leaves it out (src/base/parts.h): not one page more than planned.
        for (kind, name), difference in rows.items():
            if kind == "program" and difference:
                raise Failure(f"program {name}: {difference:+,} bytes beside what is planned, which is exact\n{self.repeat}")
        sums = sum(r["measured_bytes"] for r in report["rows"]) + report["unexplained_bytes"]
        if sums != report["rollup_bytes"]:
            raise Failure(f"the measured rows add up to {sums:,}, the kernel counts {report['rollup_bytes']:,}\n{self.repeat}")
        if found["page_tables"] > 0:
            raise Failure(f"page tables: {found['page_tables']:,} bytes more than planned at most\n{self.repeat}")
        if self.faults not in (0, None):
            raise Failure(f"{self.faults} page faults since step 2\n{self.repeat}")
        return found


def judge_ledger_text(errors, planned, line):
    """The ledger that commands print with --ledger: the measured resident and peak against an earlier plan."""
    found = {}
    for key in ("resident", "peak"):
        row = re.search(rf"^{key} +([\d,]+) +([\d,]+)", errors, re.M)
        if not row:
            raise Failure(f"there is no ledger\n{repeat(line, {})}\n{tail(errors)}")
        found[key] = int(row.group(2).replace(",", "")) - planned
        if abs(found[key]) > allowed(planned):
            raise Failure(f"{key}: {found[key]:+,} bytes beside the {planned:,} planned\n{repeat(line, {})}\n{tail(errors, 30)}")
    program = re.search(r"^plimsoll +([\d,]+) +([\d,]+)", errors, re.M)
    if not program or program.group(1) != program.group(2):
        raise Failure(f"the program's row is not as planned\n{repeat(line, {})}\n{tail(errors, 30)}")
    return found
