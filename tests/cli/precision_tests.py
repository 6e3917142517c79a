"""Tests of train.mixed_precision: learning, resuming, gradients, going on with another one. Called as cli_tests.py is."""
import json
import random
import struct
import time

from cli_tests import SEED, check, finish, main, metrics, read, refused, run, same_run, start, write_config, write_text
from folder_tests import record, write_record

PRECISIONS = ("bf16", "fp16")


def final_loss(out):
    """The mean of the last ten lines: one batch alone is noise."""
    losses = [line["loss"] for line in metrics(out) if "loss" in line]
    return sum(losses[-10:]) / 10


def test_learns_as_f32_does():
    """Within half a percent after 300 steps, with fewer saved activations."""
    write_text()
    config = write_config(model={"width": 32, "layers": 2, "dropout": 0.1}, train={"steps": 300, "log_every": 1, "tensorboard": "false", "eval_every": 300})
    figures = {}
    for precision in ("off", *PRECISIONS):
        run("train", config, "--quiet", "--out", precision, "--mixed_precision", precision)
        figures[precision] = final_loss(precision)
    for precision in PRECISIONS:
        check(abs(figures[precision] / figures["off"] - 1) < 5e-3, figures)
    saved = {}
    for precision in ("off", *PRECISIONS):
        plan = json.loads(run("plan", config, "--json", "--mixed_precision", precision)[0])
        saved[precision] = sum(role["bytes"] for role in plan["arena"]["roles"] if role["role"] == "saved")
        check(plan["model"]["precision"] == {"off": "f32", "bf16": "bf16", "fp16": "f16"}[precision], plan["model"])
    check(all(saved[p] < 0.65 * saved["off"] for p in PRECISIONS), saved)


def test_killed_is_never_killed():
    """Killed at random and resumed, with another number of threads: the same files, the loss scale among them."""
    write_text()
    source = random.Random(SEED)
    for precision in PRECISIONS:
        config = write_config(train={"mixed_precision": precision, "steps": 200, "grad_clip": 0.5})
        run("train", config, "--quiet", "--out", "whole-" + precision)
        for _ in range(3):
            process = start("train", config, "--resume=auto", "--out", precision)
            time.sleep(source.random() * 0.8)
            process.kill()
            if finish(process) == 0:
                break
        run("train", config, "--resume=auto", "--quiet", "--out", precision, "--threads", "2")
        same_run("whole-" + precision, precision)


def scales(out):
    return [(line["loss_scale"], line["skipped_steps"]) for line in metrics(out) if "loss" in line]


def change_counters(**values):
    changed = record()
    changed["counters"].update(values)
    write_record(changed)


def test_loss_scale():
    """A run whose scale is too large skips steps until it is not, and goes on: the loss itself never overflows."""
    write_text()
    config = write_config(model={"init_std": 0.1},
                          train={"mixed_precision": "fp16", "batch_size": 1, "micro_batch": 1, "log_every": 1, "checkpoint_every": 10, "schedule": "constant"})
    run("train", config, "--quiet", "--steps", "20")
    check(scales("out") == [(65536, 0)] * 20, scales("out"))
    counters = record()["counters"]
    check(counters["loss_scale_good_steps"] == 20 and counters["loss_scale"] == 65536 and counters["skipped_steps"] == 0, counters)
    change_counters(loss_scale=2**24)
    run("train", config, "--quiet", "--steps", "60", "--resume")
    last, skipped = scales("out")[-1]
    check(skipped >= 1 and last == 2**(24 - skipped), scales("out"))
    check(scales("out")[20] == (2**23, 1), scales("out")[20:])
    check(record()["counters"]["skipped_steps"] == skipped, record()["counters"])
    for number, precision in enumerate(("off", "bf16", "fp16")):  # it is the run's, whatever the precision
        run("train", config, "--quiet", "--steps", str(61 + number), "--resume", "--mixed_precision", precision)
        check(record()["counters"]["skipped_steps"] == skipped, precision, record()["counters"])
    change_counters(loss_scale=0)
    refused(4, r'counter "loss_scale" is 0', "train", config, "--quiet", "--steps", "80", "--resume")
    change_counters(loss_scale=1, skipped_steps=64)
    refused(4, r'counter "skipped_steps" is 64, a number from 0 to 63', "train", config, "--quiet", "--steps", "80", "--resume")


def test_another_precision():
    """A checkpoint is f32 whatever the run was: each precision goes on from each, evaluates and writes text."""
    write_text()
    order = ("off", "fp16", "bf16", "fp16", "off")
    config = write_config(train={"log_every": 1, "schedule": "constant"})
    for number, precision in enumerate(order):
        run("train", config, "--quiet", "--steps", str(20 * (number + 1)), *["--resume"][:number], "--mixed_precision", precision)
        last = [line for line in metrics("out") if "loss" in line][-1]
        check(("loss_scale" in last) == (precision == "fp16"), precision, last)
    run("eval", "out")
    run("generate", "out")
    refused(2, "mixed_precision.*bf16", "train", config, "--mixed_precision", "bf17")


def tensors(path):
    data = read(path)
    bytes_of_header = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + bytes_of_header])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in ("F32", "F64"):
            continue
        begin, end = entry["data_offsets"]
        letter, size = ("f", 4) if entry["dtype"] == "F32" else ("d", 8)
        piece = data[8 + bytes_of_header + begin:8 + bytes_of_header + end]
        found[name] = struct.unpack(f"<{len(piece) // size}{letter}", piece)
    return found


def test_gradients():
    """f32 in the file, and near those of f32."""
    write_text()
    config = write_config(model={"width": 32, "layers": 2})
    run("train", config, "--quiet", "--steps", "20")
    for precision in ("off", *PRECISIONS):
        run("verify", "out", "--gradients", precision, "--mixed_precision", precision)
    exact = tensors("off")
    largest = max(sum(x * x for x in values)**0.5 for name, values in exact.items() if name != "loss")
    for precision in PRECISIONS:
        got = tensors(precision)
        check(got.keys() == exact.keys(), sorted(got))
        for name, values in exact.items():
            norm = sum(x * x for x in values)**0.5
            error = sum((x - y)**2 for x, y in zip(got[name], values))**0.5
            check(error < 0.03 * norm + 0.003 * largest, precision, name, error, norm)


GROUPS = {"precision": [test_learns_as_f32_does, test_killed_is_never_killed, test_loss_scale, test_another_precision, test_gradients]}

if __name__ == "__main__":
    main(GROUPS)
