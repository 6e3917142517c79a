"""I/O that fails: io_tests.py PLIMSOLL SHIM FOLDER GROUP… [--all] [--jobs N] [--only COMMAND[:KIND[:ACTION[:N]]]]

For each command, each kind of call and each way to fail, the n-th call fails (io_shim.c), for every n with --all, else for a
sample of them with a printed seed (PLIMSOLL_TEST_SEED). The oracle is the command that nothing happened to:

    exit code 0     the outputs are those of the undisturbed command, but for what a warning says is missing
    another one     a documented code, and one sentence at the end of stderr with the reason
    in any case     the same command (train: with --resume) without faults then ends with the undisturbed files, bit for bit,
                    and nothing else is left in the folder

A process that is killed owes no sentence, only the last line. Prints calls counted, cases run and what failed, with the
words that repeat it."""
import argparse
import concurrent.futures
import errno
import functools
import gzip
import hashlib
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from checksum import xxh64
from soak import SHARE

CONFIG = """model:
  width: 8
  layers: 1
  heads: 2
  sequence: 8
data:
  text: text.txt
  tokenizer: bytes
train:
  batch_size: 4
  micro_batch: 4
  steps: %d
  learning_rate: 1e-2
  schedule: constant
  warmup_steps: 0
  checkpoint_every: 1
  eval_every: 1
  eval_batches: 2
  log_every: 1
  keep_last: 2
generate:
  tokens: 20
run:
  threads: 1
  out: out
"""
ENCODER = """model: {arch: capsules}
texts: {path: %s}
encoder: {image_size: 40, patch_size: 20, hidden_size: 8, num_heads: 1, num_layers: 1, H_cycles: 1, L_cycles: 1, target_capsules: 2,
  capsule_grid_shape: [1, 2], children_per_capsule: 1, checksum_dim: 2}
pipeline: {batch_size: 2, block_texts: 2, num_workers: 2}
run: {threads: 1, out: out}
"""
BUFFERS = "id,lower,upper,size\na,0,2,10\nb,1,3,20\nc,2,5,30\n"

E = errno
ERRORS = {  # kind: (errno, once or forever)
    "open": [(E.EIO, 0), (E.EMFILE, 1), (E.EINTR, 0)],
    "close": [(E.EIO, 0), (E.EINTR, 0)],
    "read": [(E.EIO, 0), (E.EIO, 1), (E.EINTR, 0), ("short", 0), ("short", 1)],
    "write": [(E.ENOSPC, 0), (E.ENOSPC, 1), (E.EIO, 0), (E.EDQUOT, 1), (E.EINTR, 0), ("short", 0), ("short", 1)],
    "sync": [(E.EIO, 0), (E.EIO, 1), (E.EINTR, 0), (E.ENOSPC, 0)],
    "rename": [(E.EIO, 0), (E.ENOSPC, 1)],
    "cut": [(E.EIO, 0), (E.EINTR, 0)],
    "lock": [(E.ENOLCK, 0), (E.EINTR, 0)],
    "mkdir": [(E.ENOSPC, 0), (E.EIO, 1)],
    "unlink": [(E.EIO, 0), (E.EIO, 1)],
    "list": [(E.EIO, 0), (E.EIO, 1)],
    "look": [(E.EIO, 0), (E.EIO, 1)],
    "memory": [(E.EMFILE, 0), (E.ENOMEM, 0)],  # files in memory, from the planner to the runner
}
DEATHS = {"open": ["kill"], "write": ["kill", "torn", "lost"], "sync": ["kill", "lost"], "rename": ["kill", "lost"], "cut": ["kill"],
          "mkdir": ["kill"], "unlink": ["kill", "lost"], "close": ["lost"]}
CLOCK = os.environ.get("PL_PRELOAD_CLOCK")  # of tests/support/process: measuring kernels takes no time, and nothing disturbs it
RETRIED = ("4", "short")  # EINTR, and what is cut short: nobody may notice
CODES = (1, 2, 3, 4, 5, 6)
CASES_MIN = 3  # of each command, however short the time is
# Times are of one process: where it died behind the last step, the next one has nothing to tell.
SIDE = re.compile(r"(^|/)(lock|(.*\.)?times\.json(\.plimsoll\.tmp)?|events\.out\.tfevents\..*|std(out|err)\.txt|calls\.log)$")
PROCESSES = "results.processes.jsonl"
WARNED = (f"out/{PROCESSES}", "out/results.html")  # what is whole without them is done: they are only warned of
OF_ONE = (f"out/{PROCESSES}", "trace.json")  # what one process says of itself
TIMES = ("tokens_per_second", "seconds")


class Failed(Exception):
    pass


# ---- commands: how they begin, what they leave ----

class Command:
    """`calls`: so many of each kind are tried, for the rest is more of the same."""

    def __init__(self, name, words, base="fresh", again=None, warm=True, weight=1, calls=math.inf):
        self.name, self.words, self.base, self.again, self.warm, self.weight = name, words, base, again or words, warm, weight
        self.calls = calls


FOUND = "found.lock"  # by a search
RESUMED = ["train", "config.yaml", "--resume=auto", "--trace", "trace.json"]  # a fault may have come before anything was saved
NEWER = ["--mixed_precision", "fp16", "--optimizer_state", "8bit", "--gradient_checkpointing", "full", "--micro_batch", "2"]
BY_LAYERS = ["--mixed_precision", "bf16", "--set", "train.layer_major=1", "--set", "train.update_in_backward=on", "--optimizer_state", "bf16"]
TEXTS = ["--text", "rows.jsonl.gz", "--text", "texts", "--text", "text.txt"]
IN_CHUNKS = ["--set", "train.feed_forward_rows=8", "--micro_batch", "auto", "--budget", "LITTLE"]
COMMANDS = [
    Command("train", ["train", "config.yaml", "--trace", "trace.json"], again=RESUMED, weight=6),
    Command("resume", ["train", "config.yaml", "--resume", "--trace", "trace.json"], base="begun", again=RESUMED, weight=5),
    Command("plan", ["plan", "config.yaml", "--out-lock", "a.lock", "--html", "a.html"]),
    Command("plan-cold", ["plan", "config.yaml"], warm=False, weight=2),
    Command("fit", ["fit", "config.yaml", "--lock", FOUND]),
    Command("fit-pages", ["fit", "config.yaml", "--json", "--html", "a.html"]),
    Command("train-lock", ["train", "config.yaml", "--lock", "a.lock"], base="planned", again=["train", "config.yaml", "--lock", "a.lock", "--resume=auto"]),
    Command("train-fp16", ["train", "config.yaml", *NEWER], again=["train", "config.yaml", "--resume=auto", *NEWER]),
    Command("train-layers", ["train", "config.yaml", *BY_LAYERS], again=["train", "config.yaml", "--resume=auto", *BY_LAYERS]),
    Command("train-chunks", ["train", "config.yaml", *IN_CHUNKS], again=["train", "config.yaml", "--resume=auto", *IN_CHUNKS]),
    Command("train-texts", ["train", "config.yaml", *TEXTS], again=["train", "config.yaml", "--resume=auto", *TEXTS]),
    Command("compare", ["verify", "config.yaml", "--set", "train.batch_size=1", "--micro_batch", "auto"], base="trained", calls=200),
    Command("generate", ["generate", "out", "--prompt", "a"], base="trained"),
    Command("eval", ["eval", "out", "--json"], base="trained"),
    Command("eval-other", ["eval", "out", "--text", "other.txt"], base="trained"),
    Command("verify", ["verify", "--gradients", "g.safetensors", "out"], base="trained"),
    Command("encode", ["encode", "lines.yaml", "--trace", "trace.json"], weight=3),
    Command("encode-folder", ["encode", "folder.yaml", "--storage", "npy"]),
    Command("encode-gathered", ["encode", "lines.yaml", "--texts", "rows.jsonl.gz", "--texts", "texts"]),
    Command("witness", ["encode", "lines.yaml", "--witness", "w", "--only", "3"]),
    Command("quantize", ["quantize", "lines.yaml", "--samples", "3", "--quantized", "q.safetensors"]),
    Command("quantize-trained", ["quantize", "out", "--samples", "3", "--quantized", "q.safetensors"], base="trained"),
    Command("quantize-files", ["quantize", "out", "--calibrate", "short.txt", "@names", "--quantized", "q.safetensors"], base="trained"),
    Command("export", ["export", "lines.yaml", "--format", "onnx", "--out", "m.onnx", "--external-data"]),
    Command("export-weights", ["export", "out", "--format", "safetensors", "--out", "m.safetensors"], base="trained"),
    Command("storage", ["storage", "clean", "store", "--consolidate", "--keep-last", "1", "--cache-size", "0"], base="stored", weight=3),
    Command("place", ["place", "buffers.csv", "--out", "placed.csv"]),
    Command("config", ["config", "config.yaml"]),
]


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    env.update(XDG_CACHE_HOME=os.path.join(ROOT, "cache"), OMP_WAIT_POLICY="passive", LC_ALL="C", **more)
    return env


def execute(folder, words, warm=True, out=None, **more):
    """What it says goes to files in its folder, or to out.stdout and out.stderr."""
    env = environment(**more)
    if not warm:
        env["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    names = (f"{out}.stdout", f"{out}.stderr") if out else (f"{folder}/stdout.txt", f"{folder}/stderr.txt")
    with open(names[0], "wb") as said, open(names[1], "wb") as told:
        return subprocess.run([COMMAND, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=told, timeout=120).returncode


def faulty(folder, command, fault=None):
    more = {"LD_PRELOAD": SHIM, "PL_FAULT_LOG": os.path.join(folder, "calls.log")}
    if fault:
        more["PL_FAULT"] = fault
    return execute(folder, command.words, command.warm, **more)


def write_text(path, words, seed):
    source = random.Random(seed)
    known = ["".join(source.choice("etaoinshrdlu") for _ in range(source.randint(2, 7))) for _ in range(50)]
    with open(path, "w") as file:
        file.write(" ".join(source.choice(known) for _ in range(words)))


def make_store():
    """What storage clean has to do with: a run with checkpoints, parts of a job in both forms that are copied, left-overs, a cache."""
    base = f"{ROOT}/base/stored"
    shutil.copytree(f"{ROOT}/base/fresh", base)
    shutil.copytree(f"{ROOT}/base/trained/out", f"{base}/store/models/run")
    for form in ("native", "npy"):
        for part in ("1/2", "2/2"):
            if execute(base, ["encode", "lines.yaml", "--quiet", "--out", f"store/temp/{form}", "--storage", form, "--part", part]) != 0:
                raise Failed(read(f"{base}/stderr.txt").decode())
    for name in ("stdout.txt", "stderr.txt"):
        os.remove(f"{base}/{name}")
    shutil.copytree(f"{base}/store/models/run/checkpoints/step-00000003", f"{base}/store/models/run/checkpoints/step-00000001.tmp")
    os.makedirs(f"{base}/store/temp/made.plimsoll.tmp")
    os.makedirs(f"{base}/store/pages")
    for name, data in (("temp/made.plimsoll.tmp/index", b"x"), ("temp/made.plimsoll.tmp/a.npy", b"x"), ("models/run/plan.html.plimsoll.tmp", b"x"),
                       ("pages/plimsoll-pages.sqlite", b"SQLite format 3\0" + bytes(52) + b"Plmp" + bytes(60)), ("pages/plimsoll-pages.sqlite-journal", b"x")):
        with open(f"{base}/store/{name}", "wb") as file:
            file.write(data)


def make_bases():
    """fresh: a config and texts; planned: and the plan's lock file; begun: trained half way; trained: all the way; stored: much of it."""
    base = f"{ROOT}/base/fresh"
    os.makedirs(base)
    write_text(f"{base}/text.txt", 200, 1)
    write_text(f"{base}/other.txt", 100, 2)
    os.mkdir(f"{base}/texts")
    for i in range(5):
        write_text(f"{base}/texts/{i}.txt", 9, i)
    texts = [read(f"{base}/texts/{i}.txt").decode() for i in range(5)]
    rows = gzip.compress("".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), mtime=0)
    for name, data in (("lines.txt", "\n".join([*texts, ""])), ("rows.jsonl.gz", rows), ("short.txt", "a line\nanother\n"), ("names", "short.txt\n"), ("buffers.csv", BUFFERS),
                       ("lines.yaml", ENCODER % "lines.txt"), ("folder.yaml", ENCODER % "texts")):
        with open(f"{base}/{name}", "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
    for name, steps in (("begun", 2), ("trained", 4)):
        copy = f"{ROOT}/base/{name}"
        shutil.copytree(base, copy)
        with open(f"{copy}/config.yaml", "w") as file:
            file.write(CONFIG % steps)
        if execute(copy, ["train", "config.yaml", "--quiet"]) != 0:
            raise Failed(read(f"{copy}/stderr.txt").decode())
    for name in ("fresh", "begun"):
        with open(f"{ROOT}/base/{name}/config.yaml", "w") as file:
            file.write(CONFIG % 4)
    shutil.copytree(f"{ROOT}/base/fresh", f"{ROOT}/base/planned")
    if execute(f"{ROOT}/base/planned", ["plan", "config.yaml", "--out-lock", "a.lock"]) != 0:
        raise Failed(read(f"{ROOT}/base/planned/stderr.txt").decode())
    make_store()
    for name in ("planned", "begun", "trained"):
        for extra in ("stdout.txt", "stderr.txt"):
            os.remove(f"{ROOT}/base/{name}/{extra}")


def fill_in_budgets():
    """LITTLE: a little more than the smallest plan, which differs from machine to machine."""
    folder = tempfile.mkdtemp(dir=ROOT)
    shutil.copytree(f"{ROOT}/base/fresh", folder, dirs_exist_ok=True)
    execute(folder, ["fit", "config.yaml", *IN_CHUNKS[:-1], "2MB"])
    told = read(f"{folder}/stderr.txt").decode()
    least = re.search(r"the smallest plan needs [^(]*\(([\d,]+) bytes", told)
    if not least:
        raise Failed(f"the smallest plan is not named: {told}")
    little = str(int(least[1].replace(",", "")) + 100000)
    for command in COMMANDS:
        command.words, command.again = ([little if word == "LITTLE" else word for word in words] for words in (command.words, command.again))
    shutil.rmtree(folder)


# ---- what is left ----

def read(path):
    with open(path, "rb") as file:
        return file.read()


# Where a header says how its source is known here: each case has a copy of it, with an inode and a time of its own.
KNOWN = {"tokens.bin": (56, 104), "chains.bin": (56, 104),  # docs/formats.md
         "texts.index": (72, 104, 112)}  # data/pages/texts_index.h; 72: a folder's files, with their inodes and times
HEADER_CHECKSUM = 120


def without_source(data, known):
    """A file that was prepared, but for what differs from copy to copy of its source; its header must be whole."""
    if xxh64(data[:HEADER_CHECKSUM]).to_bytes(8, "little") != data[HEADER_CHECKSUM:HEADER_CHECKSUM + 8]:
        raise ValueError("the header's checksum is another one")
    for at in (*known, HEADER_CHECKSUM):
        data = data[:at] + bytes(8) + data[at + 8:]
    return data


def without_seal(data):
    """A config; one that a run keeps names its place, so that its checksum, which must be right, hangs on it."""
    body, sealed, checksum = data.rpartition(b"# checksum ")
    if not data.startswith(b"# plimsoll.config/2"):
        return data
    if not sealed or checksum != b"%016x\n" % xxh64(body):
        raise ValueError("the config's checksum is another one")
    return body


def essence(path, folder):
    """The content without times, without where it lies, and without that a run was resumed."""
    name, data = os.path.basename(path), read(path).replace(folder.encode(), b"HERE")
    if name == "metrics.jsonl":
        return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in data.splitlines()]
    if name == "run.json":
        record = json.loads(data)
        return {k: v for k, v in record.items() if k not in ("config", "checksum")}
    if name == PROCESSES:  # of each that came to its end; its bytes count the shim, too
        return {json.loads(line)["as_planned"] for line in data.splitlines()}
    of_results = name.startswith("results") and name.endswith(".yaml")
    if name == "config.yaml" or of_results:
        config = without_seal(read(path)).replace(folder.encode(), b"HERE")
        return [line for line in config.splitlines() if of_results or b"resume" not in line]
    if name == FOUND:  # see output()
        return data.endswith(b"end plan\n")
    if name.endswith(".lock") and b"micro_batch: auto" in data:  # searched by what was measured: see output()
        return data.endswith(b"end plan\n")
    if name.endswith(".lock"):
        return sum(not line.startswith((b"time ", b"totals ", b"row ", b"config ")) for line in data.splitlines()), data.endswith(b"end plan\n")
    if name.endswith(".html"):
        return data.rstrip().endswith(b"</html>")
    if name in ("report.json", "starts.jsonl"):  # of the latter, which has a line for each start, the last
        return sorted(json.loads(data if name == "report.json" else data.splitlines()[-1]))
    if name in KNOWN:
        data = without_source(data, KNOWN[name])
    if name == "trace.json" or name.startswith("calibration"):
        return len(data) > 0
    return hashlib.sha256(data).hexdigest()


def leftovers(folder):
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if not SIDE.search(path) and "/cache/" not in path:  # without a cache it is measured again
                try:
                    content = essence(path, folder)
                except (ValueError, KeyError) as error:
                    content = f"cannot be read: {error}"
                found[re.sub("texts/[0-9a-f]{16}", "texts/HASH", os.path.relpath(path, folder))] = content
    return found


def output(folder):
    """What was printed, without the place and the time; of a plan without what was measured here; where many plans were made, without
    figures, for the heap of one may be a step of 64 kB larger. Of a search, that it is whole: where it is told nothing of its cache or
    of the machine, it knows less and may end at another plan. What searches find is the matter of tests/cli/fit_tests.py."""
    text = re.sub(rb" in \d+\.\d+ s\b", b"", read(f"{folder}/stdout.txt").replace(folder.encode(), b"HERE"))
    if b"plimsoll.fit/1" in text:
        return sorted(json.loads(text))
    if b"The front: " in text:
        return b"\nChosen\n" in text
    if b"gradient  verdict" in text:
        text = re.sub(rb"[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?( ?([kM]?B|ns|us|ms|s)\b)?| +", b"#", text)
    return text[text.find(b"Memory of the process"):text.find(b"page tables")] if b"Memory of the process" in text else text


def difference(was, wanted):
    return [f"{n}: {'missing' if n not in was else 'left over' if n not in wanted else 'differs'}" for n in sorted(was.keys() | wanted.keys())
            if was.get(n) != wanted.get(n)]


class Reference:
    """A command that nothing happened to: what it leaves, what it says, and its calls."""

    def __init__(self, command):
        self.folder, self.most = tempfile.mkdtemp(prefix=f"{command.name}.", dir=ROOT), command.calls
        if command.warm:  # kernels that none before it had are measured now, and none on a busy machine, so that all runs look up the same
            self.begin(command)
            execute(self.folder, command.words, **({"LD_PRELOAD": CLOCK} if CLOCK else {}))
        self.begin(command)
        if faulty(self.folder, command) != 0:
            raise Failed(f"{command.name}: {read(self.folder + '/stderr.txt').decode()}")
        self.left, self.out = leftovers(self.folder), output(self.folder)
        self.calls = [line[1:].split(" ", 2) for line in read(f"{self.folder}/calls.log").decode().splitlines()]

    def begin(self, command):
        shutil.rmtree(self.folder)
        shutil.copytree(f"{ROOT}/base/{command.base}", self.folder)

    def count(self, kind):
        return sum(call[0] == kind for call in self.calls)


@functools.cache
def reference_of(name):
    return Reference(next(c for c in COMMANDS if c.name == name))


# ---- one case ----

def hits(folder):
    return [line[1:].split(" ", 2) for line in read(f"{folder}/calls.log").decode(errors="replace").splitlines() if line.startswith("!")]


def judge_success(reference, folder, hit, action):
    said = read(f"{folder}/stderr.txt").decode(errors="replace")
    wrong = difference(leftovers(folder), reference.left)
    if any(h[2].endswith("/stderr.txt") for h in hit):  # a warning that nobody could be told
        wrong = [w for w in wrong if w.split(":")[0] not in WARNED]
    if "warning: " in said and action not in RETRIED:
        wrong = [w for w in wrong if os.path.basename(w.split(":")[0]) not in said]
    renamed = any(h[2] == "/proc/self/exe" for h in hit)  # then the ledger's row of the program has another name
    if output(folder) != reference.out and not renamed:
        wrong.append("another output")
    if wrong:
        raise Failed(f"exit code 0, but {', '.join(wrong)}")


def judge_failure(code, folder, hit, action):
    if code not in CODES:
        raise Failed(f"exit code {code}")
    if action in RETRIED:
        raise Failed(f"exit code {code} where it had to go on")
    if code != 5 and not any(h[2].startswith(("/proc", "/sys", "/memfd:")) or h[0] == "memory" for h in hit):
        raise Failed(f"exit code {code}, but nothing is wrong with the data, with the config or with what was asked for: 5 is for storage")
    if any(h[2].endswith("/stderr.txt") for h in hit):
        return  # nobody could be told
    lines = read(f"{folder}/stderr.txt").decode(errors="replace").replace("\n  ", "; ").strip().split("\n")
    if not re.match(r"plimsoll( [a-z_]+)?: \S", lines[-1]):
        raise Failed(f"exit code {code} without a sentence")
    reasons = (os.strerror(int(action)), *["this file system has no locks"] * (int(action) == E.ENOLCK))  # see tests/cli/places_tests.py
    if not any(reason in line for reason in reasons for line in lines):
        raise Failed(f"exit code {code}, the sentence does not say {os.strerror(int(action))!r}")


def judge_after(command, reference, folder, lost_metrics):
    """Without faults, as if nothing had been."""
    code = execute(folder, command.again, command.warm)
    if code != 0:
        raise Failed(f"then exit code {code}: {read(folder + '/stderr.txt').decode(errors='replace').strip()[-300:]}")
    wrong = difference(leftovers(folder), reference.left)
    if lost_metrics:
        wrong = [w for w in wrong if w != "out/metrics.jsonl: differs"]
    if "all is done" in read(f"{folder}/stderr.txt").decode(errors="replace"):  # who made it did not come to its end
        wrong = [w for w in wrong if w.split(":")[0] not in OF_ONE]
    if wrong:
        raise Failed(f"then {', '.join(wrong)}")


def try_fault(command, reference, fault):
    folder = tempfile.mkdtemp(dir=f"{ROOT}/cases")
    os.rmdir(folder)
    shutil.copytree(f"{ROOT}/base/{command.base}", folder)
    action, said, hit = fault.split(":")[3], "", []
    try:
        try:
            code = faulty(folder, command, fault)
        finally:
            hit = hits(folder)
        said = read(f"{folder}/stderr.txt").decode(errors="replace").strip()[-500:]
        if not hit:
            return None  # another order of threads; the reference had one call more
        if action in ("kill", "torn", "lost"):
            if code != -signal.SIGKILL:
                raise Failed(f"exit code {code}, though it was killed")
        elif code == 0:
            judge_success(reference, folder, hit, action)
        else:
            judge_failure(code, folder, hit, action)
        if code != 0:
            judge_after(command, reference, folder, "its line of metrics is lost" in said)
        shutil.rmtree(folder)
        return code
    except (Failed, subprocess.TimeoutExpired) as error:
        raise Failed(f"{command.name}:{fault} at {' '.join(hit[0]) if hit else 'no call'}: {error}\n    it said: {said}\n    kept in {folder}")


# ---- which cases ----

def places(reference, kind, edges):
    """The n of that kind; with edges only where a row of the same call on the same file begins and ends."""
    row = [call[1:] for call in reference.calls if call[0] == kind]
    return [n + 1 for n in range(min(len(row), reference.most)) if not edges or not 0 < n < len(row) - 1 or not row[n - 1] == row[n] == row[n + 1]]


def all_faults(command, reference, edges):
    for kind, ways in ERRORS.items():
        for what, forever in ways:
            for n in places(reference, kind, edges):
                yield f"{kind}:{n}:{'forever' if forever else 'once'}:{what}"
    if command.words[0] in ("train", "encode", "storage"):
        for kind, ways in DEATHS.items():
            for what in ways:
                for n in places(reference, kind, edges):
                    yield f"{kind}:{n}:once:{what}"


def sample(faults, share, source):
    """Some of each kind and action, so that none is left out."""
    groups = {}
    for fault in faults:
        kind, n, often, action = fault.split(":")
        groups.setdefault((kind, often, action), []).append(fault)
    return [f for group in groups.values() for f in source.sample(group, min(len(group), max(1, round(len(group) * share))))]


def choose(command, reference, arguments, source):
    faults = list(all_faults(command, reference, arguments.edges))
    if arguments.only:
        return [f for f in faults if matches(command, f, arguments.only)]
    if not (arguments.all or arguments.edges):
        faults = sample(faults, arguments.share, source)
    elif SHARE > 1:
        faults = sample(faults, 1 / SHARE, source)
    source.shuffle(faults)
    return faults


def sweep(names, arguments):
    """The commands share the time there is, beside their undisturbed runs; training, whose files matter most, gets more of it."""
    failures, lock = [], threading.Lock()
    source = random.Random(SEED)
    chosen = [c for c in COMMANDS if c.name in names]
    total = sum(c.weight for c in chosen)
    for command in chosen:
        reference, done = reference_of(command.name), {}
        faults = choose(command, reference, arguments, source)
        began = time.time()
        until = began + arguments.seconds * command.weight / total if arguments.seconds else math.inf

        def one(fault):
            if time.time() > until and sum(done.values()) >= CASES_MIN:
                return
            try:
                code = try_fault(command, reference, fault)
                with lock:
                    done[code] = done.get(code, 0) + 1
            except Failed as error:
                with lock:
                    failures.append(str(error))
                    print("FAILED", error, flush=True)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(one, faults))
        if done.get(None, 0) > max(3, len(faults) / 5):
            failures.append(f"{command.name}: {done[None]} of {len(faults)} faults were not reached; does the shim work?")
        calls = " ".join(f"{k} {reference.count(k)}" for k in ERRORS if reference.count(k))
        codes = ", ".join(f"{done[k]} x {'killed' if k == -signal.SIGKILL else 'not reached' if k is None else k}" for k in sorted(done, key=str))
        print(f"{command.name}: {len(reference.calls)} calls ({calls}); {sum(done.values())} of {len(faults)} cases, exit codes {codes}, "
              f"{time.time() - began:.0f} s", flush=True)
    return failures


def matches(command, fault, only):
    kind, n, often, action = fault.split(":")
    wanted = only.split(":")
    have = [command.name, kind, n, often, action]
    return all(w in ("", h) for w, h in zip(wanted, have))


# ---- the tool itself: nothing passes it by ----

SYSTEM_CALLS = {"open": ["open", "openat"], "close": ["close"], "read": ["read", "pread64", "readv", "preadv", "preadv2"],
                "write": ["write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range"],
                "sync": ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"], "rename": ["rename", "renameat", "renameat2", "link", "linkat"],
                "cut": ["ftruncate", "truncate", "fallocate"], "lock": ["flock"], "mkdir": ["mkdir", "mkdirat"],
                "unlink": ["unlink", "unlinkat", "rmdir"], "list": ["getdents64"]}


def strace_counts(folder, command):
    """What the kernel was asked for, of paths in this folder; also whether a file was mapped."""
    names = [n for names in SYSTEM_CALLS.values() for n in names] + ["mmap"]
    done = subprocess.run(["strace", "-f", "-y", "-qq", "-e", "trace=" + ",".join(names), "-o", f"{folder}/strace.txt", COMMAND, *command.words],
                          cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    if done.returncode != 0:
        return None
    counts = dict.fromkeys(SYSTEM_CALLS, 0)
    for line in read(f"{folder}/strace.txt").decode(errors="replace").splitlines():
        call = re.match(r"\d+ +(\w+)\((.*)", line)
        by_name = call and (call[1].endswith(("at", "at2")) or not re.match(r"\d+<", call[2]))
        target = call and re.search(r", \d+<([^>]*)>" if call[1] == "mmap" else r'"([^"]*)"' if by_name else r"\d+<([^>]*)>", call[2])
        if not target or "resumed>" in line or not is_ours(target[1]):
            continue
        if call[1] == "mmap":
            raise Failed(f"{command.name} maps a file; io_shim.c has to learn mmap: {line}")
        for kind, calls in SYSTEM_CALLS.items():
            counts[kind] += call[1] in calls
    return counts


def is_ours(path):
    """Not the system's, nor the loader's, nor what is said to whoever started it."""
    return (path.startswith(ROOT) or path[:1] not in ("/", "")) and not re.search(r"^(pipe|socket|anon_inode):|^plimsoll |/cache(/|$)|std(out|err)\.txt$", path)


def check_shim():
    if not shutil.which("strace"):
        print("calls are not compared: there is no strace")
        return []
    failures = []
    for command in (c for c in COMMANDS if c.warm and c.calls == math.inf):
        reference = reference_of(command.name)
        folder = tempfile.mkdtemp(dir=f"{ROOT}/cases")
        os.rmdir(folder)
        shutil.copytree(f"{ROOT}/base/{command.base}", folder)
        seen = strace_counts(folder, command)
        if seen is None:
            print("calls are not compared: strace may not trace here")
            return failures
        here = {kind: sum(c[0] == kind and is_ours(c[2]) for c in reference.calls) for kind in SYSTEM_CALLS}
        for kind, count in here.items():
            # The loader's thread is some batches ahead; the plan and its page, copied in blocks, are as long as the times that
            # the planner knew are many: each may have a block more. readdir has many entries of one call.
            slack = {"read": 30, "write": 2, "list": sum(c[1] == "readdir" for c in reference.calls)}.get(kind, 0)
            if abs(seen[kind] - count) > slack:
                failures.append(f"{command.name}: the kernel saw {seen[kind]} calls of the kind {kind}, io_shim {count}")
                print("FAILED", failures[-1], flush=True)
        print(f"{command.name}: strace and io_shim count the same: " + " ".join(f"{k} {here[k]}/{seen[k]}" for k in here if here[k] or seen[k]), flush=True)
    return failures


# ---- a disk that is full, and one that cannot be written ----

def mount(folder, options):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "plimsoll-test", folder], capture_output=True).returncode == 0


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True, capture_output=True)


def train_on_disk(folder, kilobytes, reference):
    """As much of a run as has room, then the rest of it."""
    shutil.copytree(f"{ROOT}/base/fresh", folder, dirs_exist_ok=True)
    code = execute(folder, COMMANDS[0].words, out=f"{ROOT}/said")
    said = read(f"{ROOT}/said.stderr").decode(errors="replace").replace("\n  ", "; ").strip().split("\n")[-1]
    if code == 0:
        return code
    if code != 5 or not re.match("plimsoll train: .*(No space left|free)", said):
        raise Failed(f"{kilobytes} kB: exit code {code}: {said}")
    lost = "its line of metrics is lost" in said
    remount(folder, "size=16M")
    code = execute(folder, RESUMED, out=f"{ROOT}/said")
    if code != 0:
        raise Failed(f"{kilobytes} kB, then room: exit code {code}: {read(f'{ROOT}/said.stderr').decode(errors='replace')[-300:]}")
    wrong = [w for w in difference(leftovers(folder), reference.left) if not (lost and w == "out/metrics.jsonl: differs")]
    if wrong:
        raise Failed(f"{kilobytes} kB, {said}; then {', '.join(wrong)}")
    return 5


def check_read_only(folder):
    shutil.copytree(f"{ROOT}/base/trained", folder, dirs_exist_ok=True)
    remount(folder, "ro")
    for words, code in ((["generate", "out"], 0), (["eval", "out"], 0), (["train", "config.yaml", "--out", "new"], 5),
                        (["train", "config.yaml", "--resume"], 5), (["verify", "--gradients", "g.safetensors", "out"], 5)):
        got = execute(folder, words, out=f"{ROOT}/said")
        said = read(f"{ROOT}/said.stderr").decode(errors="replace").replace("\n  ", "; ").strip().split("\n")[-1]
        if got != code or (code and "Read-only file system" not in said):
            raise Failed(f"read-only: {' '.join(words)}: exit code {got}: {said}")


def check_disks(step):
    """In a mount namespace of its own, so that nothing stays mounted."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("full disks are skipped: mounting needs root")
        return []
    probe = f"{ROOT}/disk"
    os.makedirs(probe)
    if not mount(probe, "size=1M"):
        print("full disks are skipped: mounting is not allowed here")
        return []
    subprocess.run(["umount", probe], check=True)
    reference, failures, stopped, sizes = reference_of(COMMANDS[0].name), [], 0, list(range(64, 641, step))
    for kilobytes in sizes + [0]:
        mount(probe, f"size={kilobytes}k" if kilobytes else "size=4M")
        try:
            if kilobytes:
                stopped += train_on_disk(probe, kilobytes, reference) == 5
            else:
                check_read_only(probe)
        except Failed as error:
            failures.append(str(error))
            print("FAILED", error, flush=True)
        subprocess.run(["umount", probe], check=True)
    print(f"disks of {sizes[0]} to {sizes[-1]} kB: {len(sizes)} runs, {stopped} stopped for want of room and were completed; a read-only one", flush=True)
    return failures


def main():
    global COMMAND, SHIM, ROOT, SEED
    parser = argparse.ArgumentParser()
    parser.add_argument("command"), parser.add_argument("shim"), parser.add_argument("folder")
    parser.add_argument("groups", nargs="*", help="calls, disks, or a command; all of them")
    parser.add_argument("--all", action="store_true", help="every n")
    parser.add_argument("--edges", action="store_true", help="every n but those in the middle of a row of the same call on the same file")
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--seconds", type=float, help="begin no case after that time")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    COMMAND, SHIM = os.path.abspath(arguments.command), os.path.abspath(arguments.shim)
    os.makedirs(arguments.folder, exist_ok=True)
    ROOT = tempfile.mkdtemp(prefix="io.", dir=os.path.abspath(arguments.folder))
    SEED = int(os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30)))
    make_bases()
    fill_in_budgets()
    os.makedirs(f"{ROOT}/cases")
    print(f"PLIMSOLL_TEST_SEED={SEED}")
    groups, failures = arguments.groups or ["calls", "disks", *(c.name for c in COMMANDS)], []
    if "calls" in groups:
        failures += check_shim()
    if "disks" in groups:
        failures += check_disks(16 if arguments.all or arguments.edges else 64)
    failures += sweep(groups, arguments)
    print(f"{len(failures)} failed")
    if not failures:
        shutil.rmtree(ROOT)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
