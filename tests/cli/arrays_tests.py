"""Tests of a regression that learns from a person's own arrays: what a batch holds against a reading of the files that is not the
command's, .npy and HDF5 alike, that a target which the images tell is learnt, kills and going on, bad input. Called as cli_tests.py is."""
import csv
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import time

import cli_tests
from cli_tests import SEED, Skipped, check, main, metrics, read, refused, run, same_run
from clouds_tests import DEBIAN, train_killed
from hybrid_tests import header
from infer_tests import save

DRAW = random.Random(SEED)
COUNT, FRAMES, HEIGHT, WIDTH = 40, 2, 16, 18
PIXELS = HEIGHT * WIDTH
HELD_OUT = 10 # of a share of 0.25


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Samples:
    """Frames of noise with a bright square whose size is the target; two numbers beside them that say nothing."""

    def __init__(self, count=COUNT, frames=FRAMES, draw=DRAW):
        self.draw = draw
        self.count, self.frames = count, frames
        self.images = [[self.frame(i) for _ in range(frames)] for i in range(count)]
        self.angles = [(f32(draw.uniform(20, 60)), f32(draw.uniform(0, 360))) for _ in range(count)]
        self.target = [f32(3 + 0.5 * (i % 8)) for i in range(count)]

    def frame(self, i):
        side, top, left = 2 + i % 8, self.draw.randrange(HEIGHT - 10), self.draw.randrange(WIDTH - 10)
        pixels = [self.draw.randrange(60) for _ in range(PIXELS)]
        for y in range(top, top + side):
            pixels[y * WIDTH + left:y * WIDTH + left + side] = [200 + self.draw.randrange(50) for _ in range(side)]
        return pixels

    def flat(self):
        return [x for sample in self.images for frame in sample for x in frame]

    def write(self, kind="|u1"):
        values = self.flat() if kind == "|u1" else [f32(x / 255) for x in self.flat()]
        save("images.npy", kind, (self.count, self.frames, HEIGHT, WIDTH), values)
        save("angles.npy", "<f4", (self.count, 2), [x for pair in self.angles for x in pair])
        save("target.npy", "<f8", (self.count,), self.target)


def write_arrays(path="arrays.yaml", arrays=None, **keys):
    named = {"images": "images.npy", "angles": "angles.npy", "target": "target.npy", "held_out": 0.25, **(arrays or {})}
    merged = {"samples_from": "arrays", "epochs": 2, "batch_size": 6, "temporal_frames": FRAMES, "channels": [2, 3, 4], "dense": [4, 3],
              "seed": SEED % 1000, **keys}
    with open(path, "w") as file:
        file.write("model: {arch: clouds}\nrun: {out: out, threads: 1}\n" + "".join(f"{k}: {v}\n" for k, v in merged.items())
                   + "arrays:\n" + "".join(f"  {k}: {v}\n" for k, v in named.items() if v is not None))
    return path


def predictions(out="out"):
    run("eval", out, "--predictions", f"{out}.csv")
    with open(f"{out}.csv", newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def inferred(images, angles):
    rows = [json.loads(line) for line in run("infer", "out", f"images={images}", f"angles={angles}", "--json")[0].splitlines()]
    return [row["predicted"] for row in rows if "predicted" in row]


# ---- what a batch holds ----

def scaler(numbers):
    mean = math.fsum(numbers) / len(numbers)
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / len(numbers)) or 1


def near(found, wanted, what):
    check(all(abs(a - b) <= 2e-5 * max(1, abs(b)) for a, b in zip(found, wanted, strict=True)), what, found[:4], list(wanted)[:4])


def batch_of(path):
    numbers = {name.rsplit(".", 1)[-1]: data for name, data in header(path).items() if name != "loss" and not name.startswith("grad.")}
    return {name: struct.unpack(f"<{len(data) // 4}f", data) for name, data in numbers.items()}


def check_batch(samples, held_out, path, has_angles=True):
    """Each row is a sample of the training part, none of them twice, scaled as the documentation says."""
    batch, train = batch_of(path), [i for i in range(samples.count) if i not in held_out]
    mean, deviation = scaler([samples.target[i] for i in train])
    scales, size, seen = [scaler([samples.angles[i][k] for i in train]) for k in range(2)], samples.frames * PIXELS, set()
    check(len(batch["target"]) == 6 and len(batch["images"]) == 6 * size and len(batch["angles"]) == 12, {k: len(v) for k, v in batch.items()})
    for row in range(6):
        images = batch["images"][row * size:(row + 1) * size]
        # Whose images they are: the brightest pixels tell.
        standard = lambda i: [(x - m) / d for frame in samples.images[i] for m, d in [scaler(frame)] for x in frame]
        item = min(range(samples.count), key=lambda i: sum(abs(a - b) for a, b in zip(images[::7], standard(i)[::7])))
        check(item in train and item not in seen, "row", row, "is sample", item, "which is held out, or there twice")
        seen.add(item)
        near(images, standard(item), f"images of sample {item}")
        near([batch["target"][row]], [(samples.target[item] - mean) / deviation], f"target of sample {item}")
        near(batch["angles"][2 * row:2 * row + 2], [(samples.angles[item][k] - scales[k][0]) / scales[k][1] if has_angles else 0 for k in range(2)],
             f"angles of sample {item}")


def test_batches_are_what_the_files_hold():
    samples = Samples()
    samples.write()
    config = write_arrays()
    run("train", config, "--quiet")
    rows = predictions()
    held_out = {int(r["item"]) for r in rows}
    check(len(held_out) == len(rows) == HELD_OUT and [r["item"] for r in rows] == sorted(held_out), rows)
    check(all(r["true"] == samples.target[int(r["item"])] for r in rows), "other targets", rows)
    near([rows[0]["mean"]], [scaler([t for i, t in enumerate(samples.target) if i not in held_out])[0]], "mean")
    run("verify", config, "--gradients", "a.safetensors")
    check_batch(samples, held_out, "a.safetensors")
    # As reals, without angles: they are 0. As they are, where nothing is standardised.
    samples.write("<f4")
    run("verify", write_arrays("b.yaml", {"angles": None}), "--out", "b", "--gradients", "b.safetensors")
    check_batch(samples, held_out, "b.safetensors", has_angles=False)
    run("verify", write_arrays("c.yaml", zscore_normalize="false"), "--out", "c", "--gradients", "c.safetensors")
    known = {struct.pack("<f", x / 255) for x in range(256)}
    check(all(struct.pack("<f", x) in known for x in batch_of("c.safetensors")["images"]), "pixels are not as they are")


def test_one_frame():
    samples = Samples(frames=1)
    for shape in ((COUNT, HEIGHT, WIDTH), (COUNT, 1, HEIGHT, WIDTH)):
        samples.write()
        save("images.npy", "|u1", shape, samples.flat())
        save("target.npy", "<f4", (COUNT, 1), samples.target)
        out = f"out{len(shape)}"
        run("train", write_arrays(temporal_frames=1), "--quiet", "--out", out)
    same_run("out3", "out4")


# ---- a training ----

def test_it_learns_and_is_judged():
    """One seed and one instruction set, so the bits are always these: with other first weights so small a model may begin to learn later."""
    Samples(count=160, draw=random.Random(3)).write()
    config = write_arrays(epochs=120, seed=3, batch_size=16, channels=[8, 8, 16], dense=[16, 8], learning_rate=0.003, use_spatial_attention="false",
                          warmup_steps=10, early_stopping_patience=0)
    run("train", config, "--set", "run.threads=2", "--set", "run.isa=avx2", "--quiet")
    rows = predictions()
    mean_mse = math.fsum((r["mean"] - r["true"]) ** 2 for r in rows) / len(rows)
    mse = math.fsum((r["predicted"] - r["true"]) ** 2 for r in rows) / len(rows)
    check(mse < 0.5 * mean_mse, "it has learnt nothing: error", mse, "and that of the mean", mean_mse)
    check(json.loads(read("out/report.json"))["difference_bytes"] == 0, "memory was not as planned")
    found = json.loads(run("eval", "out", "--json")[0])
    check(found["samples"] == len(rows) and abs(found["mse"] - mse) < 1e-5 and abs(found["rmse"] - math.sqrt(mse)) < 1e-5, found, mse)
    check(not [k for k in found if "km" in k], "a unit that nobody gave", found)


def test_other_commands():
    Samples().write()
    config = write_arrays()
    check("parameters in" in run("plan", config)[0] and not os.path.exists("out/checkpoints"), "plan")
    run("train", config, "--quiet")
    check(run("report", "out")[0], "report says nothing")
    judged = predictions()
    said = inferred("images.npy", "angles.npy")
    check(len(said) == COUNT and all(abs(said[int(r["item"])] - r["predicted"]) < 1e-4 for r in judged), "infer predicts otherwise than eval", said, judged)
    run("quantize", "out", "--quiet")
    check(os.path.getsize("out/int8.safetensors") > 1000, "no weights in 8 bits")
    for path in ("images.npy", "angles.npy", "target.npy"):
        os.rename(path, f"away-{path}")
    # The model alone needs none of them.
    check(inferred("away-images.npy", "away-angles.npy") == said, "other predictions")
    refused(4, r"^plimsoll eval: \S*images.npy: cannot be opened", "eval", "out")


def test_hdf5_is_the_same():
    samples = Samples()
    samples.write()
    program = f"import h5py, numpy as np\nwith h5py.File('all.h5', 'w') as f:\n" + "".join(
        f"    f['in/{name}'] = np.frombuffer(open('{name}.npy', 'rb').read()[128:], '{kind}').reshape({shape})\n"
        for name, kind, shape in (("images", "u1", (COUNT, FRAMES, HEIGHT, WIDTH)), ("angles", "<f4", (COUNT, 2)), ("target", "<f8", (COUNT,))))
    done = subprocess.run([DEBIAN, "-B", "-c", program], capture_output=True, text=True) if os.path.exists(DEBIAN) else None
    if not done or "ModuleNotFoundError" in done.stderr:
        raise Skipped("no h5py here (Debian: python3-h5py)")
    check(done.returncode == 0, done.stderr)
    run("train", write_arrays(), "--quiet")
    of_file = {name: f"all.h5:/in/{name}" for name in ("images", "angles", "target")}
    config = write_arrays("h5.yaml", of_file)
    run("train", config, "--quiet", "--out", "h5")
    same_run("out", "h5")
    check(predictions() == predictions("h5"), "other predictions")
    check(json.loads(read("h5/report.json"))["difference_bytes"] == 0, "memory was not as planned")
    # What was made ready is kept, and is not made again; the file may be copied, and other numbers are refused.
    made = os.stat("h5/arrays.bin").st_ino
    shutil.copy("all.h5", "copy.h5")
    os.replace("copy.h5", "all.h5")
    run("train", config, "--quiet", "--out", "h5", "--resume", "--epochs", "3")
    check(os.stat("h5/arrays.bin").st_ino == made, "the numbers were made ready again")
    # A number that a disk has changed is found where it is read.
    data = bytearray(read("h5/arrays.bin"))
    at = DRAW.randrange(COUNT * FRAMES * PIXELS)
    data[4096 + at] ^= 1 << DRAW.randrange(8)
    with open("h5/arrays.bin", "wb") as file:
        file.write(data)
    refused(4, rf"all.h5:/in/images: sample {at // (FRAMES * PIXELS)} has other images than when \S*h5/arrays.bin was made; bring them back, or delete that file",
            "train", config, "--out", "h5", "--resume", "--epochs", "5")
    os.remove("h5/arrays.bin")
    run("train", config, "--quiet", "--out", "h5", "--resume", "--epochs", "4")
    refused(4, r"^plimsoll train: all.h5:/in/none: the file has no such dataset", "train", write_arrays("n.yaml", {**of_file, "target": "all.h5:/in/none"}), "--out", "n")
    refused(4, r"all.h5: is an HDF5 file; name a dataset of it", "train", write_arrays("n.yaml", {**of_file, "target": "all.h5"}), "--out", "n")
    check(not os.path.exists("n"), "what was refused left a folder")


# ---- ended and gone on ----

def test_killed_and_gone_on():
    Samples().write()
    config = write_arrays(epochs=100, early_stopping_patience=0)
    began = time.monotonic()
    run("train", config, "--quiet", "--out", "whole")
    train_killed(config, 5, 0.6 * (time.monotonic() - began), DRAW)
    same_run("whole", "out")


def test_other_numbers_are_refused():
    samples = Samples()
    samples.write()
    config = write_arrays()
    run("train", config, "--quiet")
    samples.images[3][0][5] ^= 1
    samples.write()
    kept = read("out/arrays.bin")
    for words in (("train", config, "--resume", "--epochs", "3"), ("plan", config), ("eval", "out")):
        refused(2, r"out/arrays.bin: holds the arrays that this run was trained on, and arrays.images, arrays.angles or arrays.target name others", *words)
        check(read("out/arrays.bin") == kept, "a refused command took the arrays of the run away:", words)
    run("infer", "out", "images=images.npy", "angles=angles.npy")
    samples.images[3][0][5] ^= 1
    samples.write()
    run("train", config, "--quiet", "--resume", "--epochs", "3")
    refused(2, r"arrays.held_out is 0.5 here and 0.25 in the saved run", "train", config, "--resume", "--epochs", "4",
            "--set", "arrays.held_out=0.5")


# ---- bad input ----

def test_refused():
    samples = Samples()
    samples.write()

    def fails(code, pattern, arrays=None, **keys):
        refused(code, pattern, "train", write_arrays("bad.yaml", arrays, **keys), "--out", "bad")
        check(not os.path.exists("bad"), "what was refused left a folder")

    fails(4, r"^plimsoll train: images.npy: is u1 \[40, 2, 16, 18\], but arrays.images takes real numbers \[count, 3 \(temporal_frames\), any, any\] \(or u1 from 0 to 255\)$",
          temporal_frames=3)
    fails(4, r"^plimsoll train: no.npy: ", {"images": "no.npy"})
    fails(2, r"arrays.target", {"target": None})
    fails(2, r"arrays.images", {"images": None})
    save("short.npy", "<f4", (COUNT - 1,), samples.target[1:])
    fails(4, rf"^plimsoll train: short.npy: has {COUNT - 1} samples, but images.npy has {COUNT}; both need the same number$", {"target": "short.npy"})
    save("shape.npy", "<f4", (COUNT, 3), [0.0] * 3 * COUNT)
    fails(4, r"^plimsoll train: shape.npy: is f4 \[40, 3\], but arrays.angles takes real numbers \[count, 2\]$", {"angles": "shape.npy"})
    fails(4, r"^plimsoll train: shape.npy: is f4 \[40, 3\], but arrays.target takes real numbers \[count, 1\]$", {"target": "shape.npy"})
    save("nan.npy", "<f4", (COUNT,), [*samples.target[:7], math.nan, *samples.target[8:]])
    fails(4, r"^plimsoll train: nan.npy: item 7 has a number that is infinite or NaN", {"target": "nan.npy"})
    save("inf.npy", "<f4", (COUNT, FRAMES, HEIGHT, WIDTH), [0.5] * (COUNT * FRAMES * PIXELS - 1) + [math.inf])
    fails(4, rf"^plimsoll train: inf.npy: item {COUNT - 1} has a number that is infinite or NaN", {"images": "inf.npy"})
    save("same.npy", "<f4", (COUNT,), [2.5] * COUNT)
    fails(4, r"^plimsoll train: arrays.target: all targets that would be trained on are 2.5, so there is nothing to learn; bring others$", {"target": "same.npy"})
    fails(4, rf"^plimsoll train: arrays.held_out 0.999 leaves one of {COUNT} samples to train on, and two are the least; make it smaller", {"held_out": 0.999})
    with open("cut.npy", "wb") as file:
        file.write(read("images.npy")[:-1])
    fails(4, r"^plimsoll train: cut.npy: its shape needs \d+ bytes behind the header, and there are \d+", {"images": "cut.npy"})
    with open("noise.npy", "wb") as file:
        file.write(DRAW.randbytes(300))
    fails(4, r"^plimsoll train: noise.npy: ", {"images": "noise.npy"})
    fails(2, r"arrays.held_out", {"held_out": 1})
    fails(2, r"early_stopping_patience.*arrays.held_out is 0|plateau.*arrays.held_out is 0", {"held_out": 0})
    fails(2, r"flat_field_correction", flat_field_correction="false")
    save("flat.npy", "|u1", (COUNT, FRAMES, 7, 30), [DRAW.randrange(256) for _ in range(COUNT * FRAMES * 210)])
    refused(2, r"^plimsoll plan: arrays.images: frames of 7 × 30 pixels are too small for three halvings; take images of at least 8 × 8$", "plan",
            write_arrays("flat.yaml", {"images": "flat.npy"}), "--out", "flat")
    Samples(count=2).write()
    fails(4, r"^plimsoll train: arrays.held_out 0.15 leaves one of 2 samples to train on, and two are the least; make it smaller \(0 holds out none\), or bring more", {"held_out": None})
    refused(2, r"arrays.images", "plan", write_arrays("f.yaml", samples_from="flights"))


def test_damaged_file():
    Samples().write()
    config = write_arrays()
    run("train", config, "--quiet")
    data = bytearray(read("out/arrays.bin"))
    data[DRAW.randrange(len(data) - 700, len(data))] ^= 1 << DRAW.randrange(8)
    with open("out/arrays.bin", "wb") as file:
        file.write(data)
    run("train", config, "--quiet", "--resume", "--epochs", "3") # it is made again
    check(metrics("out"), "no metrics")


if __name__ == "__main__":
    main({"arrays": [test_batches_are_what_the_files_hold, test_one_frame, test_it_learns_and_is_judged, test_other_commands],
          "arrays_resumed": [test_hdf5_is_the_same, test_killed_and_gone_on, test_other_numbers_are_refused, test_damaged_file],
          "arrays_refused": [test_refused]})
