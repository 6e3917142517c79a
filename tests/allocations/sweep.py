"""Every request for memory of every command is refused: sweep.py PROGRAM FOLDER [--sample N] [--seed S] [--jobs N] [CASE…]

PROGRAM is plimsoll_refused (refuse.c). For each command below the requests of a good run are counted, of the planner and of
the runner that it becomes (and of the planner that begins anew with a module); then each one is refused, once and from then
on. Each time the command must end by itself, with
status 1 and one sentence that names memory, or else as the good run did, to the byte, in what it says and in the files that
it leaves (times apart); it must have given everything back; and what it left in the folder must not disturb the good run
that follows.

--seconds S begins no command later than that, in an order by the seed; what does not search comes first.
--sample N takes N random requests of each series instead of all (all where there are few more); the seed is printed.
--paths takes of each series only the first request that comes by the same calls (the innermost eight), and none that came so in
an earlier series of the kind: most of what all requests would find, in minutes. Series of more than 20,000 requests, of which
a search has two million, are always taken so, unless sampled.
--planner leaves out the commands that become a runner, for a sanitizer's memory is in no plan, and what takes long.
--only planner:12:once repeats one. A failure prints the command that repeats it."""
import argparse
import concurrent.futures
import hashlib
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import pretrained_models
from io_tests import difference, leftovers
from soak import share_of

TINY = {
    "model": {"width": 8, "layers": 1, "heads": 2, "sequence": 8},
    "data": {"text": "text.txt", "tokenizer": "bytes", "validation_fraction": 0.2},
    "train": {"batch_size": 4, "micro_batch": 2, "steps": 2, "learning_rate": "3e-3", "eval_batches": 1},
    "generate": {"tokens": 3},
    "memory": {"budget": "1GB"},
    "run": {"threads": 1, "out": "out"},
}
TRAINED = ["train c.yaml --quiet"]
PREPARED = ["train c.yaml --steps 1 --quiet"] # a plan leaves nothing: what it finds prepared is a training's
PREPARED_MLP = ["train mlp.yaml --steps 1 --quiet"]
# Name: (what is done before, the command line). What differs from case to case is what is asked for, and by whom.
CASES = {
    "plan": (PREPARED, "plan c.yaml"),
    "plan-first": ([], "plan c.yaml"),
    "plan-bpe": ([], "plan c.yaml --tokenizer bpe --vocab_size 300"),
    "plan-chars": ([], "plan c.yaml --tokenizer chars"),
    "plan-tokenizer": (["train c.yaml --steps 1 --tokenizer bpe --vocab_size 270 --out other"], "plan c.yaml --tokenizer other/tokenizer.json"),
    "plan-mlp": (PREPARED_MLP, "plan mlp.yaml"),
    "plan-json": (PREPARED, "plan c.yaml --json"),
    "plan-html": (PREPARED, "plan c.yaml --html page.html"),
    "plan-lock": (PREPARED, "plan c.yaml --out-lock plan.lock"),
    "plan-graph": (PREPARED, "plan c.yaml --graph"),
    "plan-generate": (PREPARED, "plan c.yaml --command generate"),
    "plan-evaluate": (PREPARED, "plan c.yaml --command evaluate"),
    "plan-gradients": (PREPARED, "plan c.yaml --command gradients"),
    "plan-major": (PREPARED, "plan c.yaml --set train.layer_major=1"),
    "plan-fit": (PREPARED, "plan c.yaml --micro_batch auto"),
    "plan-small": (PREPARED, "plan c.yaml --budget 6MB --micro_batch auto"),
    "plan-measure": (PREPARED_MLP, "plan mlp.yaml --graph"),
    "plan-pretrained": ([], "plan model --json"),
    "plan-elsewhere": (["machine --output m.json"], "plan model --machine m.json"),
    "fit": (PREPARED, "fit c.yaml"),
    "fit-json": (PREPARED_MLP, "fit mlp.yaml --json"),
    "fit-html": (PREPARED_MLP, "fit mlp.yaml --html page.html --lock plan.lock"),
    "fit-lock": (PREPARED_MLP, "fit mlp.yaml --lock -"),
    "fit-allow": (PREPARED_MLP, "fit mlp.yaml --set fit.allow=optimizer_bf16,optimizer_8bit"),
    "fit-small": (PREPARED_MLP, "fit mlp.yaml --budget 6MB --json"),
    "train": ([], "train c.yaml"),
    "train-bpe": ([], "train c.yaml --tokenizer bpe --vocab_size 270 --dropout 0.1 --sample_every 1 --progress json --trace trace.json"),
    "train-lock": (["plan c.yaml --out-lock plan.lock"], "train c.yaml --lock plan.lock"),
    "train-fit": ([], "train c.yaml --micro_batch auto --budget LITTLE"),
    "train-bf16": ([], "train c.yaml --mixed_precision bf16 --optimizer_state 8bit --gradient_checkpointing full"),
    "train-fp16": ([], "train c.yaml --mixed_precision fp16 --optimizer_state bf16"),
    "train-major": ([], "train c.yaml --set train.layer_major=1 --set train.update_in_backward=on --gradient_checkpointing full"),
    "train-chunks": ([], "train c.yaml --set train.feed_forward_rows=4 --optimizer_state 8bit --micro_batch 4 --set train.update_in_backward=on"),
    "train-chain": ([], "train chain.yaml"),
    "train-resume": (TRAINED, "train c.yaml --resume --steps 3 --verbose"),
    "generate": (TRAINED, "generate out --prompt a"),
    "generate-file": (TRAINED, "generate out @long.txt --json --num_samples 2 --stop x --repeat_penalty 1.1 --repeat_last_n 4"),
    "generate-lines": (TRAINED, "generate out --interactive --stop x"),
    "eval": (TRAINED, "eval out"),
    "eval-text": (TRAINED, "eval out --text long.txt"),
    "eval-json": (TRAINED, "eval out --json --ledger"),
    "verify": (TRAINED, "verify --gradients g.safetensors out"),
    "compare": (PREPARED_MLP, "verify mlp.yaml --set train.micro_batch=4"),
    "storage-report": (TRAINED, "storage report out --keep-last 1 --json"),
    "storage-clean": (TRAINED, "storage clean out --keep-last 1"),
    "storage-join": (["encode e.yaml --quiet --out temp/e --part 1/2", "encode e.yaml --quiet --out temp/e --part 2/2"], "storage clean . --consolidate"),
    "encode": ([], "encode e.yaml"),
    "encode-jsonl": ([], "encode e.yaml --texts t.jsonl --storage npy --num_workers 2 --trace trace.json --verbose"),
    "encode-csv": ([], "encode e.yaml --texts t.csv --text_key 1 --batch_size 2"), # libhdf5 brings GnuTLS, which does not survive that
    "encode-grammar": ([], "encode e.yaml --texts none --text_format grammar --count 5 --precision bfloat16 --recursion trm"),
    "encode-on": (["encode e.yaml --quiet --part 1/2"], "encode e.yaml --part 2/2"),
    "encode-done": (["encode e.yaml --quiet"], "encode e.yaml"),
    "plan-encode": ([], "plan e.yaml --json"),
    "quantize": ([], "quantize e.yaml --samples 2 --method entropy --keep_f32 1 --quantized q.safetensors"),
    "quantize-trained": (TRAINED, "quantize c.yaml --samples 3 --method percentile"),
    "quantize-files": (TRAINED, "quantize out --calibrate lines.txt lines.txt --method entropy --quiet"),
    "quantize-picture": ([], "quantize e.yaml --calibrate picture.png --scratch . --quantized q.safetensors"),
    "eval-8-bits": ([*TRAINED, "quantize c.yaml --quiet --samples 2"], "eval c.yaml --weights out/int8.safetensors"),
    "generate-8-bits": ([*TRAINED, "quantize c.yaml --quiet --samples 2"], "generate c.yaml --weights out/int8.safetensors"),
    "encode-8-bits": (["quantize e.yaml --quiet --samples 2 --quantized q.safetensors"], "encode e.yaml --weights q.safetensors"),
    "export": ([], "export e.yaml --format onnx --out m.onnx --external-data"),
    "export-trained": (TRAINED, "export c.yaml --format onnx --out m.onnx"),
    "export-weights": (TRAINED, "export c.yaml --format safetensors --out m.safetensors"),
    "infer": (TRAINED, "infer out lines.txt --json"),
    "infer-long": (TRAINED, "infer out long.txt"),
    "infer-brief": (TRAINED, "infer out lines.txt lines.txt --brief --latency --to told.jsonl --ledger"),
    "infer-seeded": (PREPARED, "infer c.yaml tokens=lines.txt --seeded --npy got --verbose"),
    "infer-pages": ([], "infer e.yaml page.txt --batch 1"),
    "infer-listed": (PREPARED, "infer c.yaml @listed.txt --seeded"),
    "infer-picture": ([], "infer e.yaml picture.png --scratch . --brief"),
    "witness": ([], "encode e.yaml --witness w --only 1"),
    "draw": ([], "draw --file t.csv --out page.png"),
    "synth-texts": ([], "synth texts made.txt --count 20"),
    "place": ([], "place b.csv"),
    "place-json": ([], "place b.csv --json --svg a.svg --out o.csv"),
    "place-tight": ([], "place hard.csv --capacity 300"),
    "place-time": ([], "place hard.csv --time 0.01"),
    "report": (["rollout r.yaml --quiet"], "results report out --html page.html"),
    "doctor": ([], "doctor --pid THIS"),
    "doctor-json": ([], "doctor --pid THIS --all --json"),
    "doctor-command": ([], "doctor -- sleep 0.2"),
    "config": ([], "config c.yaml"),
    "config-json": ([], "config c.yaml --json --set run.log=debug"),
    "config-folder": (TRAINED, "config out"),
    "config-schema": ([], "config --schema"),
    "config-markdown": ([], "config --markdown"),
    "completion-bash": ([], "completion bash"),
    "completion-zsh": ([], "completion zsh"),
    "completion-fish": ([], "completion fish"),
    "help": ([], "help"),
    "help-train": ([], "help train"),
    "help-generate": ([], "generate --help"),
    # Not --version: it loads every module, and GLib, which comes with one, ends a process whose memory is refused.
    "wrong-command": ([], "trian"),
    "wrong-option": ([], "plan c.yaml --widht 3"),
    "wrong-yaml": ([], "plan wrong.yaml"),
    "wrong-value": ([], "plan c.yaml --width 0"),
    "wrong-text": ([], "plan c.yaml --text none.txt"),
    "wrong-csv": ([], "place wrong.csv"),
    "wrong-machine": ([], "plan model --machine wrong.json"),
    "wrong-model": ([], "plan org/none"),
    "wrong-lines": (TRAINED, "infer out text.txt --npy rows"),
    "wrong-tokenizer": ([], "plan c.yaml --tokenizer wrong.json"),
}
SEARCHES = ("plan", "fit", "train", "compare", "encode", "infer")
PROCESSES = ("planner", "module", "runner") # refuse.c says what they are
MANY = 20000
DO_NOT_FIT = ("plan-small", "fit-small", "place-tight")
VARIES = ("doctor-command",) # how often it looks depends on the time
DURATION = re.compile(rb"[0-9.e+-]+ (ns|us|ms|s|min)\b|\"(\w*seconds|tokens_per_second|(minor|major)_faults|measured_(page_table|proportional)_bytes)\": ?[0-9.e+-]+")
FIGURE = re.compile(rb"[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?( ?([kMGT]?B|ns|us|ms|s|min|h|%)\b)?|0x[0-9a-f]+|\s+|--+|(?<=\s)-(?=\s)") # where lines are broken, too, and the - of a figure that is 0
FREE = re.compile(rb"[0-9.]+\s+[kMGT]?B(?=\s+are\s+free|\s+of\s+[0-9.]+\s+[kMGT]?B\s)") # on a disk, of the machine's memory
ADVICE = re.compile(rb"^--\w+ .*", re.MULTILINE) # rows of what could be changed: their rates rest on what was measured in this run
# What a control group is charged with, row by row: what is 0 has none, and all processes of the group, the tests beside this one too, decide that.
ACCOUNT = re.compile(rb"(?<=charged to the first of them, with all processes in it:\n)(?: {4}.*\n)*|(?<=\"charged\":)\s*\{[^{}]*\}")
TELLS_CHANGES = ("storage-clean", "storage-join")
SENTENCE = re.compile(r"\b(memory|stack)\b.*; .*raise the limit|refuses thread .* raise the limit .*memory")
OWN = re.compile(r" (program|libyaml\S*|libjansson\S*|unknown)\+\S+ \d+")


def runs(case):
    return any(line.split()[0] in ("train", "generate", "eval", "verify", "rollout", "encode", "quantize", "infer") and "--help" not in line for line in [*CASES[case][0], CASES[case][1]])


class Failure(Exception):
    pass


def write_inputs(folder):
    pretrained_models.Model().save(os.path.join(folder, "model"))
    source = random.Random(1)
    words = ["the", "ship", "sea", "line", "load", "deep", "wind", "of", "men"]
    with open(os.path.join(folder, "text.txt"), "w") as file:
        file.write(" ".join(source.choice(words) for _ in range(400)))
    for path, more in (("c.yaml", {}), ("mlp.yaml", {"model": {"arch": "mlp", "width": 8, "layers": 1, "window": 4, "sequence": 8}})):
        with open(os.path.join(folder, path), "w") as file:
            for name, keys in {**TINY, **more}.items():
                file.write(f"{name}:\n" + "".join(f"  {k}: {v}\n" for k, v in keys.items()))
    texts = {
        "r.yaml": "model: {arch: cnn_operator}\n"
                  "parameter_space: {architecture: {num_layers: {type: choice, choices: [1, 2]}, base_channels: {type: choice, choices: [2]}},\n"
                  "  operator: {grid_size: {type: choice, choices: [8]}}}\n"
                  "sampling: {total_samples: 3, validation: {check_discrepancy: false, check_correlation: false}}\n"
                  "simulation: {num_timesteps: 4, num_realizations: 2}\ndataset: {store: both}\nrun: {threads: 1, out: out}\n",
        "e.yaml": "model: {arch: capsules}\ntexts: {path: texts}\npipeline: {block_texts: 2, batch_size: auto}\nrun: {threads: 1, out: out}\n"
                  "encoder: {image_size: 40, patch_size: 20, hidden_size: 8, num_heads: 1, num_layers: 1, H_cycles: 1, L_cycles: 1, "
                  "target_capsules: 2, capsule_grid_shape: [1, 2], children_per_capsule: 1, checksum_dim: 2}\n",
        "chain.yaml": "model: {arch: chain, width: 8, layers: 1, heads: 2, sequence: 20}\n"
                      "chain: {file: chains.jsonl, question: 5, latents: 1, stages: 0, replaced: 1, held_out: 0.5}\n"
                      "train: {batch_size: 4, micro_batch: 2, steps: 2, eval_batches: 1}\nmemory: {budget: 1GB}\nrun: {threads: 1, out: out}\n",
        "chains.jsonl": '{"question": "1+2*3", "steps": ["1+2=3", "3*3=9"], "answer": "9"}\n' * 8,
        "texts/a.txt": "the ship\n",
        "texts/b.txt": "عربي\n",
        "t.jsonl": '{"text": "the ship"}\n{"text": "e\u0301"}\n{"text": ""}\n',
        "t.csv": 'n,text\n1,"the ship"\n2,שלום\n3,東京\n',
        "lines.txt": "the\nship\n",
        "page.txt": "a\nb\n",
        "long.txt": "the\nthe ship sails over the sea\n",
        "listed.txt": "lines.txt\ntokens=lines.txt\n",
        "wrong.yaml": "model:\n  width: 16\n  layres: 2\n",
        "wrong.csv": "id,lower,upper,size\na,0,2,10\nb,3,1,20\n",
        "wrong.json": '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}\n',
        "b.csv": "id,lower,upper,size,alignment\na,0,2,10,1\nb,1,3,20,4\nc,2,5,8,1\n",
        "hard.csv": "id,lower,upper,size\n" + "".join(f"b{i},{at},{at + source.randint(1, 9)},{source.randint(1, 60)}\n"
                                                    for i, at in enumerate(source.choices(range(30), k=40))),
    }
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    with open(os.path.join(folder, "picture.png"), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(b"\0\1\2\0\3\4")) + chunk(b"IEND", b""))
    os.mkdir(os.path.join(folder, "texts"))
    for path, text in texts.items():
        with open(os.path.join(folder, path), "w") as file:
            file.write(text)
    for path in ("text.txt", "long.txt", "chains.jsonl", "texts", "texts/a.txt", "texts/b.txt", "t.jsonl", "t.csv"):
        os.utime(os.path.join(folder, path), (1, 1)) # files of tokens and indices hold its time


class Place:
    """A folder of one worker: what the case needs is in it, and a copy beside it brings it back."""

    def __init__(self, sweep, case, number):
        self.sweep, (self.before, line) = sweep, CASES[case]
        self.measures = case == "plan-measure"
        self.path = os.path.join(sweep.folder, f"{case}.{number}")
        self.kept, self.cache = self.path + ".kept", self.path + ".cache"
        for path in (self.path, self.kept, self.cache):
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(self.path)
        write_inputs(self.path)
        self.restore_cache()
        self.words = self.fill_in(line)
        for line in self.before:
            done = self.run(self.fill_in(line), {})
            if done.returncode:
                raise Failure(f"{case}: {line}: {done.stderr.decode(errors='replace')}")
        shutil.copytree(self.path, self.kept, symlinks=True)
        self.restore_cache()
        self.state = self.sign()

    def fill_in(self, line):
        """The words of a line: what differs from machine to machine is asked for."""
        if "LITTLE" in line and not self.sweep.little:
            told = self.run("fit c.yaml --micro_batch auto --budget 2MB".split(), {}).stderr.decode(errors="replace")
            least = re.search(r"the smallest plan needs [^(]*\(([\d,]+) bytes", told)
            if not least:
                raise Failure(f"the smallest plan is not named: {told}")
            self.sweep.little = int(least[1].replace(",", "")) + 100000
            shutil.rmtree(os.path.join(self.path, "out"), ignore_errors=True)
        return line.replace("THIS", str(self.sweep.idle.pid)).replace("LITTLE", str(self.sweep.little)).split()

    def restore_cache(self):
        """Kernels are measured once, in the good run before all others, so that their figures are the same in all."""
        shutil.rmtree(self.cache, ignore_errors=True)
        os.mkdir(self.cache)
        if os.path.exists(self.sweep.cache) and not self.measures:
            shutil.copytree(self.sweep.cache, self.cache, dirs_exist_ok=True)

    def run(self, words, more):
        environment = {**self.sweep.environment, "XDG_CACHE_HOME": self.cache, **more}
        return subprocess.run([self.sweep.program, *words], cwd=self.path, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120)

    def sign(self):
        found = []
        for folder, _, names in [*sorted(os.walk(self.path)), *sorted(os.walk(self.cache))]:
            found.append(folder)
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as file:
                    found += [name, hashlib.sha1(file.read()).hexdigest()]
        return hashlib.sha1("\n".join(found).encode()).hexdigest()

    def names(self):
        return {os.path.relpath(os.path.join(folder, name), self.path) for folder, _, names in os.walk(self.path) for name in names}

    def restore(self):
        shutil.rmtree(self.path)
        shutil.copytree(self.kept, self.path, symlinks=True)
        self.restore_cache()

    def refuse(self, order):
        """The command with this order: (result, lines of the report)."""
        report = self.path + ".report"
        where, n, mode = order.split(":")
        order = f"{where}:{int(n):020}:{mode}"  # wide: what is left of it is handed on
        if os.path.exists(report):
            os.remove(report)
        done = self.run(self.words, {"PL_REFUSE": order, "PL_REFUSE_REPORT": report})
        if not os.path.exists(report):
            return done, []
        with open(report) as file:
            return done, file.read().splitlines()

    def remove(self):
        for path in (self.path, self.kept, self.cache):
            shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(self.path + ".report"):
            os.remove(self.path + ".report")


def said(done):
    """The result, without what differs from run to run: times, and what other processes and chance decide; all figures of the doctor and
    of storage, who look at a whole machine, and of those who make plan after plan, for the heap of one may be a step of 64 kB larger; the rows
    of a group's account; a plan that counts a sanitizer's pages."""
    words = done.args[1:]
    differs = words[0] == "plan" and b"libasan" in done.stdout
    figures = words[0] in ("doctor", "fit", "storage") or (words[0] == "verify" and "--gradients" not in words)
    return done.returncode, b"" if differs else (FIGURE if figures else DURATION).sub(b"#", ADVICE.sub(b"#", FREE.sub(b"#", ACCOUNT.sub(b"", done.stdout))))


def count(lines, where):
    """Requests of the good run."""
    return sum(int(n) for n in re.findall(rf"^\w+ {where} requests (\d+)", "\n".join(lines), re.MULTILINE))


class Series:
    """One command, one of its processes, once or forever: every number of `numbers`."""

    def __init__(self, sweep, case, where, mode, good, lines, kept):
        self.sweep, self.case, self.where, self.mode, self.good, self.lines, self.kept = sweep, case, where, mode, good, lines, kept
        self.requests = count(lines, where)
        self.lock = threading.Lock()
        self.failed, self.survived, self.left, self.sentences = 0, [], set(), set()

    def judge(self, place, n):
        done, lines = place.refuse(f"{self.where}:{n}:{self.mode}")
        targets = [line for line in lines if line.startswith("target")]
        report = next((line for line in targets if not re.search(r" refused 0\b", line)), targets[-1] if targets else "")
        errors = done.stderr.decode(errors="replace")
        sentences = [line for line in errors.replace("\n  ", "; ").splitlines() if re.match(r"plimsoll( [a-z_]+)?: (?!warning)", line)]
        hit = re.search(r"refused (\d+)", report)
        if self.case in VARIES and not (hit and int(hit[1])):
            return # it asked less often this time
        if done.returncode < 0:
            raise Failure(f"killed by signal {-done.returncode}: {errors[-400:]}")
        if said(done) == said(self.good) and (done.returncode or not sentences):
            with self.lock:
                self.survived.append(n)
            wrong = [w for w in difference(leftovers(place.path), self.kept)
                     if "warning: " not in errors or os.path.basename(w.split(":")[0]) not in errors]
            if wrong:
                raise Failure(f"as if nothing had been, but {', '.join(wrong)}\n{errors[-600:]}")
            place.restore()
        elif done.returncode == 1 and "libgomp: " in errors and not sentences and (" by program+" not in report or self.mode == "forever"):
            pass # libgomp got no thread or no memory: it says so itself and exits
        elif done.returncode != 1 or len(sentences) != 1 or not SENTENCE.search(sentences[0]):
            raise Failure(f"exit code {done.returncode}, {report}\n{done.stdout.decode(errors='replace')[-300:]}\n{errors[-600:]}")
        else:
            with self.lock:
                self.sentences.add(sentences[0])
        if not hit or int(hit.group(1)) == 0:
            if self.requests - n > self.requests // 50 + 3: # the number of requests varies a little: times are printed
                raise Failure(f"request {n} of {self.requests} did not come: {report}")
            return
        if "libgomp: " not in errors and (OWN.search(report) or not re.search(r"descriptors (0|-\d+)$", report)) and "exec" not in report:
            raise Failure(f"not given back: {report}")
        self.look_at_folder(place)

    def look_at_folder(self, place):
        """Unchanged, or at least no hindrance."""
        if place.sign() == place.state:
            return
        with self.lock:
            self.left |= place.names()
        place.restore_cache()
        done = place.run(place.words, {})
        wrong = said(done) != said(self.good)
        if self.case in TELLS_CHANGES:  # what was done before is not said again; what is left is the same
            wrong = done.returncode != self.good.returncode or difference(leftovers(place.path), self.kept)
        if wrong:
            raise Failure(f"the good run after it: exit code {done.returncode}\n{done.stdout.decode(errors='replace')[-300:]}\n"
                          f"{done.stderr.decode(errors='replace')[-600:]}")
        place.restore()

    def work(self, number, numbers):
        place = Place(self.sweep, self.case, number)
        for n in numbers:
            try:
                self.judge(place, n)
            except (Failure, subprocess.TimeoutExpired) as reason:
                place.restore()
                with self.lock:
                    self.failed += 1
                print(f"FAILED {self.case} {self.where}:{n}:{self.mode}: {reason}\n  to repeat: {self.sweep.repeat} {self.case} "
                      f"--only {self.where}:{n}:{self.mode}", flush=True)
                if self.failed >= self.sweep.failures_max:
                    break
        place.remove()

    def run(self, numbers):
        began, jobs = time.monotonic(), min(self.sweep.jobs, max(1, len(numbers) // 20))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for task in [pool.submit(self.work, k, numbers[k::jobs]) for k in range(jobs)]:
                task.result()
        print(f"{self.case:16} {self.where:8} {self.mode:8} {self.requests:6} requests, {len(numbers):6} refused, "
              f"{len(self.survived)} survived, {self.failed} failed, {time.monotonic() - began:.1f} s", flush=True)
        if self.sweep.verbose:
            print("    survived:", *sorted(self.survived), "\n    left:", *sorted(self.left), "\n    " + "\n    ".join(sorted(self.sentences)))
        return self.failed


class Sweep:
    def __init__(self, a):
        self.program, self.folder, self.jobs, self.verbose = os.path.abspath(a.program), os.path.abspath(a.folder), a.jobs, a.verbose
        self.sample, self.only, self.failures_max = a.sample, a.only, 10
        self.seconds = a.seconds
        self.cache = os.path.join(self.folder, "cache")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("PLIMSOLL_", "PL_"))}
        self.environment.update(OMP_WAIT_POLICY="passive", LC_ALL="C", HOME=self.folder)
        self.repeat = f"{sys.executable} {os.path.abspath(__file__)} {self.program} {self.folder}"
        self.random = random.Random(a.seed)
        self.every_path, self.paths = a.paths, {} # by process and mode, those that were tried
        self.idle = subprocess.Popen(["sleep", "86400"]) # for the doctor
        self.little = 0 # bytes: a little more than the smallest plan
        os.makedirs(self.folder, exist_ok=True)

    def numbers(self, requests):
        numbers = range(1, requests + 1)
        sample = self.sample if requests < MANY else min(self.sample, 2) # a search: seconds each, and the same code hundreds of times
        if sample and requests > 3 * sample:
            return sorted(self.random.sample(numbers, sample))
        return list(numbers)

    def find_paths(self, place):
        """{process: {path: its first request}}"""
        file, found = place.path + ".paths", {}
        place.restore()
        place.run(place.words, {"PL_REFUSE": "none:0:once", "PL_REFUSE_PATHS": file})
        with open(file) as lines:
            for where, n, path in map(str.split, lines):
                found.setdefault(where, {}).setdefault(path, int(n))
        os.remove(file)
        return found

    def new_paths(self, first, where, mode):
        seen = self.paths.setdefault((where, mode), set())
        numbers = sorted(n for path, n in first.items() if path not in seen)
        seen |= first.keys()
        return numbers

    def try_case(self, case):
        place = Place(self, case, "good")
        if not place.measures:
            place.run(place.words, {})
            shutil.copytree(place.cache, self.cache, dirs_exist_ok=True)
            place.restore()
        began = time.monotonic()
        good, lines = place.refuse("none:0:once")
        kept = leftovers(place.path)
        if self.seconds and 8 * (time.monotonic() - began) > self.seconds: # and each refusal as long
            print(f"{case}: takes too long for {self.seconds:g} s", flush=True)
            place.remove()
            return 0, 0
        many = self.every_path or (not self.sample and max(count(lines, where) for where in PROCESSES) > MANY)
        paths = self.find_paths(place) if many else None
        place.remove()
        if (good.returncode == 0) == (case.startswith("wrong") or case in DO_NOT_FIT):
            raise Failure(f"{case}: exit code {good.returncode} when nothing is refused: {good.stderr.decode(errors='replace')[-300:]}")
        failed, refused = 0, 0
        for where in PROCESSES:
            for mode in ("once", "forever"):
                series = Series(self, case, where, mode, good, lines, kept)
                wanted = self.only.split(":") if self.only else [where, 0, mode]
                if series.requests == 0 or [where, mode] != [wanted[0], wanted[2]]:
                    continue
                numbers = [int(wanted[1])] if self.only else self.numbers(series.requests)
                if paths is not None and not self.only:
                    numbers = self.new_paths(paths.get(where, {}), where, mode)
                if not self.sample and not self.only:
                    numbers = sorted(self.random.sample(numbers, share_of(len(numbers), min(len(numbers), 3))))
                failed += series.run(numbers)
                refused += len(numbers)
        return failed, refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30))))
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--planner", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_intermixed_args()
    sweep = Sweep(a)
    if a.sample:
        print(f"--seed {a.seed}", flush=True)
    cases = a.cases or [case for case in CASES if not (a.planner and (runs(case) or case == "plan-measure"))]
    if a.seconds:
        random.Random(a.seed).shuffle(cases)
        cases.sort(key=lambda case: case.startswith(SEARCHES)) # the quick ones first, and all of them
    began, results = time.monotonic(), []
    try:
        while len(results) < len(cases) and (not a.seconds or time.monotonic() - began < a.seconds):
            results.append(sweep.try_case(cases[len(results)]))
    finally:
        sweep.idle.kill()
    failed, refused = map(sum, zip(*results))
    print(f"{refused} refusals of {len(results)} commands, {failed} failed; not reached: {' '.join(cases[len(results):]) or 'none'}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
