"""Tests of train.mixed_precision: learning, resuming, gradients, going on with another one. Called as cli_tests.py is."""
import json
import math
import random
import struct
import time

from cli_tests import SEED, check, finish, last_checkpoint, main, metrics, read, refused, run, same_run, start, write_config, write_text
from checksum import xxh64
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


NUMBERS = {"loss_scale": ("F32", "<f"), "loss_scale.good_steps": ("I32", "<i")}


def change_state(counters, tensors, out="out"):
    """The latest checkpoint with these counters beside its own, and these numbers as the only ones of its state."""
    path = last_checkpoint(out) + "/state.safetensors"
    data, changed = read(path), record(out)
    size = struct.unpack("<Q", data[:8])[0]
    header, pieces, at = {}, [], 0
    was = json.loads(data[8:8 + size])
    for name, entry in sorted(((n, e) for n, e in was.items() if n != "__metadata__"), key=lambda e: e[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if name not in NUMBERS:
            pieces.append((name, entry["dtype"], entry["shape"], data[8 + size + begin:8 + size + end]))
    pieces += [(name, NUMBERS[name][0], [1], struct.pack(NUMBERS[name][1], value)) for name, value in tensors.items()]
    for name, dtype, shape, piece in pieces:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(piece)]}
        at += len(piece)
    text = json.dumps(header).encode()
    whole = struct.pack("<Q", len(text)) + text + b"".join(piece[3] for piece in pieces)
    with open(path, "wb") as file:
        file.write(whole)
    changed["files"]["state.safetensors"].update(bytes=len(whole), xxh64=f"{xxh64(whole):016x}")
    changed["counters"].update(counters)
    write_record(changed, out)


def numbers(out="out"):
    """The state's tensors that are no moments."""
    data = read(last_checkpoint(out) + "/state.safetensors")
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name in NUMBERS:
            check((entry["dtype"], entry["shape"]) == (NUMBERS[name][0], [1]), name, entry)
            found[name] = struct.unpack_from(NUMBERS[name][1], data, 8 + size + entry["data_offsets"][0])[0]
    return found


def test_loss_scale():
    """A run whose scale is too large skips steps until it is not, and goes on: the loss itself never overflows."""
    write_text()
    config = write_config(model={"init_std": 0.1},
                          train={"mixed_precision": "fp16", "batch_size": 1, "micro_batch": 1, "log_every": 1, "checkpoint_every": 10, "schedule": "constant"})
    run("train", config, "--quiet", "--steps", "20")
    check(scales("out") == [(65536, 0)] * 20, scales("out"))
    check(numbers() == {"loss_scale": 65536, "loss_scale.good_steps": 20}, numbers())
    check(sorted(record()["counters"]) == ["complete", "early_bad", "early_best", "plateau_bad", "plateau_best", "plateau_scale",
                                           "skipped_steps", "tokens"], record())
    check(record()["counters"]["skipped_steps"] == 0, record()["counters"])
    change_state({}, {"loss_scale": 2**24, "loss_scale.good_steps": 7})
    run("train", config, "--quiet", "--steps", "60", "--resume")
    last, skipped = scales("out")[-1]
    check(skipped >= 1 and last == 2**(24 - skipped), scales("out"))
    check(scales("out")[20] == (2**23, 1), scales("out")[20:])
    check(record()["counters"]["skipped_steps"] == skipped, record()["counters"])
    for number, precision in enumerate(("off", "bf16", "fp16")):  # it is the run's, whatever the precision
        run("train", config, "--quiet", "--steps", str(61 + number), "--resume", "--mixed_precision", precision)
        check(record()["counters"]["skipped_steps"] == skipped, precision, record()["counters"])
        check(len(numbers()) == (2 if precision == "fp16" else 0), precision, numbers())
    check(numbers() == {"loss_scale": 65536, "loss_scale.good_steps": 1}, "a state that was not kept begins anew", numbers())
    for number in (0, 2**25, math.nan):
        change_state({}, {"loss_scale": number, "loss_scale.good_steps": 0})
        refused(4, r"the loss scale is .* a number from 1 to 16777216", "train", config, "--quiet", "--steps", "80", "--resume")
    change_state({"skipped_steps": 64}, {"loss_scale": 1, "loss_scale.good_steps": 0})
    refused(4, r'counter "skipped_steps" is 64, a number from 0 to 63', "train", config, "--quiet", "--steps", "80", "--resume")


def test_loss_scale_was_a_counter():
    """A checkpoint as older versions wrote it goes on as it did: the numbers of the loss scale are counters there."""
    write_text()
    config = write_config(train={"mixed_precision": "fp16", "batch_size": 1, "micro_batch": 1, "log_every": 1, "checkpoint_every": 10,
                                 "schedule": "constant"})
    for out in ("out", "old"):
        run("train", config, "--quiet", "--steps", "20", "--out", out)
    change_state({}, {"loss_scale": 2**20, "loss_scale.good_steps": 1995})
    change_state({"loss_scale": 2**20, "loss_scale_good_steps": 1995}, {}, "old")
    check(numbers("old") == {} and len(numbers("out")) == 2, numbers("old"), numbers("out"))
    for out in ("out", "old"):
        run("train", config, "--quiet", "--steps", "30", "--resume", "--out", out)
    check(scales("out")[19:] == [(65536, 0)] + [(2**20, 0)] * 4 + [(2**21, 0)] * 6, scales("out")[19:])
    same_run("out", "old")
    change_state({"loss_scale": 0}, {}, "old")
    refused(4, r'counter "loss_scale" is 0', "train", config, "--quiet", "--steps", "80", "--resume", "--out", "old")


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


GROUPS = {"precision": [test_learns_as_f32_does, test_killed_is_never_killed, test_loss_scale, test_loss_scale_was_a_counter, test_another_precision, test_gradients]}

if __name__ == "__main__":
    main(GROUPS)
