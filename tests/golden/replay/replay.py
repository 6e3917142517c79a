"""Golden replay: the same results to the bit, whatever is rebuilt inside.

    replay.py PLIMSOLL FOLDER            compares with expected.txt beside this file (77: this machine cannot)
    replay.py PLIMSOLL FOLDER --write    records expected.txt anew
    replay.py PLIMSOLL FOLDER --against OTHER    compares two builds, line by line of what differs

Every configuration (*.yaml beside this file) goes through the commands of its kind; the part of its name before "-" says which. A
line of expected.txt is

    CONFIG ISA COMMAND WHAT HASH

Texts are hashed apart from results, so that a plan that is written in another way leaves the lines of results as they are. Texts: plan
(the lock file), program (the calls in their order). Results: metrics, weights, state, predictions, text, loss, gradients, int8 and
packed (weights in 8 bits and in signs), fields and what else a rollout stores; page (as the libraries of Debian 12 draw it), sketches,
checksums, children, remarks. Of several trainings each has its own, by the name of its folder.

Out of the plan goes what another compiler, machine or clock changes: pages of program and libraries, the heap's and other totals that
contain them, predicted times and the rates that they rest on, how an arena was found, the checksum over these, and the hash of a config that names its text by a path of this machine;
out of the metrics the times. Every choice that a search could take is given in the configuration, and the team is two threads, so that
results do not hang on the machine. With AVX2 kernels everything is compared; with AVX-512's, where this machine has them, what was
trained and computed. Lines of an instruction set, or of a module (drawing, HDF5), that is not here are left out.
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
OF_THIS_BUILD = re.compile(r"^(row (3|4|5|7) |process |totals |time |rates |disk |checksum |config \"(  )?(out|text|cache|dump|file|data_directory|denoiser_path):)")
TIME = re.compile(r"\w+_per_second|seconds")
TEXTS = ("plan", "program", "metrics", "loss", "text")  # what can be shown line by line
MODULE = {"capsules": "draw", "hybrid": "draw", "clouds": "hdf5"}
FLAGS = {"avx2": ("avx2", "fma", "f16c"), "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl"), "avx512_bf16": ("avx512_bf16",)}


def isas_of(name):
    """AVX-512 BF16 has kernels for bf16 alone."""
    return ("avx2", "avx512", "avx512_bf16") if name.endswith("bf16") else ("avx2", "avx512")


class Draws:
    """A linear congruential generator: the same numbers on every machine."""

    def __init__(self):
        self.state = 12345

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state // 65536 % n


def text():
    """A page of words."""
    words = "the sea is wide and a ship that carries more than its line allows will not see land again".split()
    draws = Draws()
    return " ".join(words[draws.below(len(words))] + (".\n" if i % 13 == 12 else "") for i in range(3000))


def chains():
    """Sums of three numbers modulo 5, step by step."""
    draws, lines = Draws(), []
    for _ in range(40):
        a, b, c = (draws.below(5) for _ in range(3))
        steps = [f"{a}+{b}={(a + b) % 5}", f"{(a + b) % 5}+{c}={(a + b + c) % 5}"]
        lines.append(json.dumps({"question": f"{a}+{b}+{c}", "steps": steps, "answer": str((a + b + c) % 5)}))
    return "\n".join(lines) + "\n"


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def plan_of(lock, relative=True):
    kept = [line for line in lock.decode().splitlines() if not OF_THIS_BUILD.match(line)]
    plan = re.sub(r" by=.*", "", "\n".join(kept))
    return (plan if relative else re.sub(r" hash=[0-9]+", "", plan)).encode()


def metrics_of(lines):
    rows = [json.loads(line) for line in lines.splitlines()]
    return json.dumps([{k: v for k, v in row.items() if not TIME.fullmatch(k)} for row in rows]).encode()


def weights_of(file):
    """Without the config in it, which names paths and gets keys that are new, and the checksum over all."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8:8 + size])
    header["__metadata__"] = {k: v for k, v in header["__metadata__"].items() if not k.endswith(("config", "checksum"))}
    return json.dumps(header).encode() + file[8 + size:]


class Replay:
    """One configuration with the kernels of one instruction set; `found`: {(command, what): bytes}."""

    def __init__(self, command, folder, name, isa):
        self.command, self.folder, self.name, self.whole = command, folder, name, isa == "avx2"
        self.kind, self.sort = name.split("-", 1)
        self.config, self.out = os.path.join(HERE, name + ".yaml"), f"{name}-{isa}"
        self.fixed = ["--isa", isa, "--threads", "2", "--set", "memory.huge_pages=off"]
        self.found = {}
        getattr(self, self.kind if self.kind not in ("gpt", "mlp") else "language_model")()

    def run(self, *words):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        env.update(XDG_CACHE_HOME=os.path.join(self.folder, "cache"), LC_ALL="C", OMP_WAIT_POLICY="passive")
        done = subprocess.run([self.command, *words], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        if done.returncode:
            sys.exit(f"plimsoll {' '.join(words)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}")
        return done.stdout

    def keep(self, command, what, data):
        self.found[command, what] = data

    def train(self, *words, more=()):
        """Of each folder of a training that the command leaves, what it learnt."""
        self.run("train", *words, "--out", self.out, *self.fixed, "--dump", "program", "--quiet", *more)
        top = os.path.join(self.folder, self.out)
        for path, folders, _ in os.walk(top):
            if "checkpoints" not in folders:
                continue
            stage = "" if path == top else os.path.relpath(path, top) + "/"
            newest = os.path.join(path, "checkpoints", read(path, "checkpoints", "latest").decode().strip())
            if self.whole:
                self.keep("train", stage + "plan", plan_of(read(path, "plan.lock"), self.kind in ("gpt", "mlp")))
                self.keep("train", stage + "program", read(path, "dump-program.txt"))
            self.keep("train", stage + "metrics", metrics_of(read(path, "metrics.jsonl")))
            self.keep("train", stage + "weights", read(newest, "model.safetensors"))
            self.keep("train", stage + "state", read(newest, "state.safetensors"))
            if os.path.exists(os.path.join(path, "predictions.csv")):
                self.keep("train", stage + "predictions", read(path, "predictions.csv"))

    def evaluate(self, folder, *words, command="eval"):
        self.keep(command, "loss", self.run("eval", folder, *self.fixed, "--json", *words))

    def plans(self, folder, *commands):
        ways = {"eval": "evaluate", "generate": "generate", "gradients": "gradients"}
        for command in commands:
            self.keep(command, "plan", plan_of(self.run("plan", folder, "--command", ways[command], "--out-lock", "-"), False))

    def gradients(self, folder):
        file = self.out + ".gradients"
        self.run("verify", folder, *self.fixed[:4], "--gradients", file)
        self.keep("gradients", "gradients", read(self.folder, file))

    def in_8_bits(self, folder):
        self.run("quantize", folder, *self.fixed, "--quiet")
        self.keep("quantize", "int8", weights_of(read(self.folder, folder, "int8.safetensors")))
        self.evaluate(folder, "--weights", f"{folder}/int8.safetensors", command="eval-int8")

    def language_model(self):
        self.train(self.config, "--text", "text.txt")
        holds_out = "validation_fraction: 0}" not in read(self.config).decode()
        if self.whole:
            self.plans(self.out, *(["eval"] if holds_out else []), "generate", "gradients")
        if holds_out:
            self.evaluate(self.out)
        self.keep("generate", "text", self.run("generate", self.out, *self.fixed))
        self.gradients(self.out)
        if self.sort == "int8":
            self.in_8_bits(self.out)
            self.keep("generate-int8", "text", self.run("generate", self.out, *self.fixed, "--weights", f"{self.out}/int8.safetensors"))
        if self.sort == "binary":
            self.run("export", self.out, "--format", "safetensors", "--packed", "--out", self.out + ".packed")
            self.keep("export", "packed", weights_of(read(self.folder, self.out + ".packed")))

    def chain(self):
        self.train(self.config, "--set", "chain.file=chains.jsonl")
        self.evaluate(f"{self.out}/answer")
        self.gradients(f"{self.out}/answer")

    def hybrid(self):
        one = "n2n_pretrain" not in read(self.config).decode()
        if not one:
            self.train(self.config, more=("--stage", "denoiser"))
        self.train(self.config, more=() if one else ("--set", f"dataset.denoiser_path={self.out}/denoiser"))
        last = self.out if one else f"{self.out}/finetune"
        self.evaluate(last)
        self.gradients(last)
        if self.sort == "int8":
            self.in_8_bits(last)

    def clouds(self):
        config = os.path.join(self.folder, self.name + ".yaml")
        if not os.path.exists(os.path.join(self.folder, "flights")):
            self.run("synth", "clouds", "flights", "--flights", "3", "--height", "16", "--width", "16", "--labels", "10")
        with open(config, "wb") as f:
            f.write(read(self.config) + read(self.folder, "flights", "synthetic_flights.yaml"))
        self.train(config)
        last = f"{self.out}/{'final' if self.sort == 'final' else 'loo-30Oct24'}"
        self.evaluate(last)
        self.gradients(last)

    def rollout(self):
        self.run("rollout", self.config, "--out", self.out, *self.fixed, "--dump", "program", "--quiet")
        for name in sorted(os.listdir(os.path.join(self.folder, self.out))):
            if name.startswith("dump-program") and self.whole:
                self.keep("rollout", name.removeprefix("dump-").removesuffix(".txt"), read(self.folder, self.out, name))
        for what in ("outputs/fields", "metrics/energy", "metrics/entropy", "metrics/autocorrelation", "metrics/variance"):
            self.export("rollout", what)

    def export(self, command, what):
        file = f"{self.out}/{what.replace('/', '-')}.npy"
        self.run("results", "export", f"{self.out}/results.blocks", "--dataset", what, "--out", file)
        self.keep(command, what, read(self.folder, file))

    def capsules(self):
        """What an encoder stored, and of its last text what another program would need."""
        last, seen = re.search(r"count: (\d+)", read(self.config).decode()), self.out + "-witness"
        self.run("encode", self.config, "--out", self.out, *self.fixed, "--dump", "program")
        self.run("encode", self.config, "--out", self.out, *self.fixed, "--witness", seen, "--only", str(int(last[1]) - 1))
        if self.whole:
            self.keep("encode", "program", read(self.folder, self.out, "dump-program.txt"))
            for what, file in (("page", "page.npy"), ("weights", "weights.safetensors")):
                self.keep("encode", what, read(self.folder, seen, file))
        for what in ("sketches", "checksums", "children", "remarks"):
            self.export("encode", what)


def has_modules(command, name):
    module = MODULE.get(name.split("-")[0])
    return not module or os.path.exists(os.path.join(os.path.dirname(command), f"plimsoll-{module}.so"))


def has_isa(isa):
    with open("/proc/cpuinfo") as f:
        flags = set(f.read().split())
    return all(flag in flags for flag in FLAGS[isa])


def is_here(command, name, isa):
    return has_modules(command, name) and has_isa(isa)


def replay_all(command, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, make in (("text.txt", text), ("chains.jsonl", chains)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(make())
    names = sorted(f[:-5] for f in os.listdir(HERE) if f.endswith(".yaml"))
    return {(name, isa, *key): data for name in names for isa in isas_of(name) if is_here(command, name, isa)
            for key, data in Replay(command, folder, name, isa).found.items()}


def lines_of(found):
    return [" ".join((*key, hashlib.sha256(data).hexdigest()[:16])) for key, data in sorted(found.items())]


def against(one, other):
    """Prints what differs; how many."""
    differ = [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
    for key in differ:
        print(*key, "differs")
        if key[-1].split("/")[-1] in TEXTS:
            before, after = (str(side.get(key, b""), errors="replace").splitlines() for side in (one, other))
            print("\n".join(list(difflib.unified_diff(before, after, lineterm="", n=0))[:20]))
    return len(differ)


def main():
    command, folder = os.path.abspath(sys.argv[1]), os.path.join(os.path.abspath(sys.argv[2]), "golden-replay")  # emptied: its own
    if not has_isa("avx2"):
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
    expected = [line for line in read(EXPECTED).decode().splitlines() if is_here(command, *line.split()[:2])]
    wrong = list(difflib.unified_diff(expected, lines, "expected", "found", lineterm="", n=0))
    print("\n".join(wrong) if wrong else f"{len(lines)} results are the same to the bit")
    if wrong:
        print("build the version that expected.txt was recorded with, and see what differs: replay.py … --against THAT")
    return len(wrong) > 0


sys.exit(main())
