#!/usr/bin/env python3
"""The encoder here and in ONNX Runtime, in f32 and in 8 bits, each time beside the other.

    bench/ort_pairs.py [CONFIG] --python PYTHON [--plimsoll build/plimsoll] [--threads N] [--batch N] [--turns N] [--folder DIR]

CONFIG is of an encoder (default: examples/capsules.yaml); PYTHON has onnxruntime and numpy. Its model is calibrated (quantize), and exported in f32
and in 8 bits. Then, --turns times, one after the other: Plimsoll in f32, ONNX Runtime in f32, Plimsoll in 8 bits, ONNX Runtime in 8 bits, each in a
process of its own, with --threads threads and texts by --batch. Prints for each the median and the range of the seconds of a text: of Plimsoll
what results.times.json has of a batch without waiting for pages and putting results away, of ONNX Runtime the median of its runs, the first one
left out. Ratios are of the turns' own pairs, so that what else the machine does meets both. At last cosines of the capsules, over --texts texts:
8 bits beside f32 in either program, and either program beside the other.

Nothing here is a test: a ratio says what it says on a quiet machine."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("f32", "8 bits")
BESIDE = ("data", "results")


# ---- run by the Python that has onnxruntime ----

def in_runtime(job):
    import time

    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    pages = np.stack([np.load(page).reshape(job["side"], job["side"]) for page in job["pages"]])
    x = np.repeat((pages.astype(np.float32) / np.float32(255))[:, None], 3, 1)
    batch = np.stack([x[i % len(x)] for i in range(job["batch"])])
    seconds = []
    for _ in range(job["runs"] + 1):
        begin = time.perf_counter()
        session.run(["capsules"], {"images": batch})
        seconds.append(time.perf_counter() - begin)
    capsules = [session.run(["capsules"], {"images": one[None]})[0].astype(np.float64).ravel() for one in x] if job["compare"] else []

    def cosines(of, beside):
        return [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(of, beside)]

    ours = [[np.load(path).astype(np.float64).ravel() for path in paths] for paths in job["ours"]]
    if capsules and job["other"]:
        other = np.load(job["other"])
    if capsules:
        np.save(job["keep"], np.stack(capsules))
    told = {"seconds": statistics.median(seconds[1:]) / job["batch"], "version": onnxruntime.__version__, "cosines": {}}
    if capsules:
        told["cosines"][f"ONNX Runtime beside Plimsoll, {job['kind']}"] = cosines(capsules, ours[KINDS.index(job["kind"])])
    if capsules and job["other"]:
        told["cosines"]["8 bits beside f32, ONNX Runtime"] = cosines(capsules, other)
        told["cosines"]["8 bits beside f32, Plimsoll"] = cosines(ours[1], ours[0])
    print(json.dumps(told))


# ---- the rest ----

class Bench:
    def __init__(self, given):
        self.given, self.folder = given, given.folder
        self.files = {"f32": os.path.join(self.folder, "f32.onnx"), "8 bits": os.path.join(self.folder, "int8.onnx")}
        self.int8 = os.path.join(self.folder, "int8.safetensors")
        self.number = 0

    def plimsoll(self, *words):
        done = subprocess.run([self.given.plimsoll, *words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"plimsoll {' '.join(words)}: {(done.stderr or done.stdout).strip()[-1000:]}")
        return done.stdout

    def weights(self, kind):
        return ["--weights", self.int8] if kind == "8 bits" else []

    def new_folder(self):
        self.number += 1
        return os.path.join(self.folder, f"out{self.number}")

    def prepare(self):
        config = self.given.config
        self.plimsoll("quantize", config, "--quantized", self.int8, "--samples", str(self.given.samples), "--out", self.new_folder())
        for kind, path in self.files.items():
            said = self.plimsoll("export", config, "--format", "onnx", "--out", path, *self.weights(kind))
            print(f"{kind}: {said.splitlines()[0]}")
        self.pages, self.ours = [], [[], []]
        for text in range(self.given.texts):
            for k, kind in enumerate(KINDS):
                witness = os.path.join(self.folder, f"text{text}.{k}")
                self.plimsoll("encode", config, "--witness", witness, "--only", str(text), "--out", self.new_folder(), *self.weights(kind))
                self.ours[k].append(os.path.join(witness, "sketches.npy"))
            self.pages.append(os.path.join(witness, "page.npy"))
        self.side = int(re.search(r"(?m)^ +image_size: (\d+)", self.plimsoll("config", config)).group(1))

    def run_plimsoll(self, kind):
        g, out = self.given, self.new_folder()
        self.plimsoll("encode", g.config, "--out", out, "--threads", str(g.threads), "--batch_size", str(g.batch), "--count", str(g.batch * g.runs),
                      "--block_texts", str(g.batch * g.runs), *self.weights(kind))
        with open(os.path.join(out, "results.times.json")) as file:
            times = json.load(file)
        return (times["seconds"] - sum(c["seconds"] for c in times["components"] if c["name"] in BESIDE)) / g.batch

    def run_runtime(self, kind, compare):
        kept = {k: os.path.join(self.folder, f"capsules.{i}.npy") for i, k in enumerate(KINDS)}
        job = {"model": self.files[kind], "kind": kind, "threads": self.given.threads, "batch": self.given.batch, "runs": self.given.runs,
               "side": self.side, "pages": self.pages, "ours": self.ours, "compare": compare, "keep": kept[kind],
               "other": kept["f32"] if kind == "8 bits" else None}
        path = os.path.join(self.folder, "job.json")
        with open(path, "w") as file:
            json.dump(job, file)
        done = subprocess.run([self.given.python, os.path.abspath(__file__), "--job", path], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.given.python}: {done.stderr.strip()[-1000:]}")
        return json.loads(done.stdout)

    def run(self):
        seconds = {(program, kind): [] for kind in KINDS for program in ("Plimsoll", "ONNX Runtime")}
        for turn in range(self.given.turns):
            for kind in KINDS:
                seconds["Plimsoll", kind].append(self.run_plimsoll(kind))
                told = self.run_runtime(kind, turn == 0)
                seconds["ONNX Runtime", kind].append(told["seconds"])
                for what, cosines in told["cosines"].items():
                    print(f"cosine of {what}: least {min(cosines):.6f}, mean {statistics.fmean(cosines):.6f} of {len(cosines)}")
        print(f"\nmilliseconds a text, {self.given.threads} threads, batches of {self.given.batch}, {self.given.turns} turns, "
              f"ONNX Runtime {told['version']}")
        for (program, kind), found in seconds.items():
            print(f"  {program:13} {kind:7} {1e3 * statistics.median(found):9.2f}   {1e3 * min(found):9.2f} to {1e3 * max(found):9.2f}")
        print("\nratios within a turn: median, least and largest")
        for name, over, under in [(f"ONNX Runtime / Plimsoll, {k}", ("ONNX Runtime", k), ("Plimsoll", k)) for k in KINDS] + \
                                 [(f"f32 / 8 bits, {p}", (p, "f32"), (p, "8 bits")) for p in ("Plimsoll", "ONNX Runtime")]:
            ratios = [a / b for a, b in zip(seconds[over], seconds[under])]
            print(f"  {name:32} {statistics.median(ratios):6.3f}   {min(ratios):6.3f} {max(ratios):6.3f}")


def main():
    if sys.argv[1:2] == ["--job"]:
        with open(sys.argv[2]) as file:
            return in_runtime(json.load(file))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", default=os.path.join(ROOT, "examples", "capsules.yaml"))
    parser.add_argument("--python", required=True, help="one that has onnxruntime and numpy")
    parser.add_argument("--plimsoll", default=os.path.join(ROOT, "build", "plimsoll"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=1, help="texts at once")
    parser.add_argument("--runs", type=int, default=5, help="batches in a process")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--texts", type=int, default=8, help="for the cosines")
    parser.add_argument("--samples", type=int, default=64, help="texts of the calibration")
    parser.add_argument("--folder", help="for what is made; default: one that goes at the end")
    given = parser.parse_args()
    if given.folder:
        os.makedirs(given.folder, exist_ok=True)
        return measure(given)
    with tempfile.TemporaryDirectory() as given.folder:
        return measure(given)


def measure(given):
    bench = Bench(given)
    bench.prepare()
    bench.run()


if __name__ == "__main__":
    main()
