"""Tests of the optimizer's state in fewer bits: interrupted runs, files that others read, what is refused. Called as
cli_tests.py is."""
import json
import math
import re
import signal
import struct

from cli_tests import (await_event, check, finish, last_checkpoint, main, metrics, read, refused, run, same_run, start, write_config, write_text)
from said import plain


def tensors(path):
    """What a reader that knows only the format finds: name → dtype, shape, bytes."""
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def check_state(path, form):
    state, elements = tensors(path), 0
    for name, (dtype, shape, data) in state.items():
        large = dtype == "U8"
        check(dtype == {"f32": "F32", "bf16": "BF16"}.get(form, "U8" if large else "F32"), name, dtype)
        if large:  # rows of 256 codes and a scale: in a row that was ever touched some code is the largest
            check(shape[1] == 260 and len(data) == shape[0] * 260 and math.prod(shape) >= 4096, name, shape)
            top = 255 if name.startswith("v.") else 127
            for row in range(0, len(data), 260):
                check(struct.unpack("<f", data[row + 256:row + 260])[0] == 0 or
                      max(code & top for code in data[row:row + 256]) >= top - 1, name, row)
        elements += math.prod(shape)
    check(form != "8bit" or any(s[0] == "U8" for s in state.values()), "nothing is kept in 8 bits")
    return elements


def test_small_optimizer_state():
    """Stopped and resumed it ends as undisturbed, with other threads, too; another form of the state is refused."""
    write_text()
    held = {}
    for form in ("bf16", "8bit"):
        config = write_config(model={"width": 40}, train={"optimizer_state": form, "steps": 60})
        run("train", config, "--quiet", "--out", f"whole-{form}")
        process = start("train", config, "--out", form, "--threads", "2")
        await_event(process, "step", 3)
        process.send_signal(signal.SIGTERM)
        finish(process)
        before = tensors(last_checkpoint(form) + "/state.safetensors")
        for other in ("f32", "bf16", "8bit"):
            if other != form:
                refused(2, f"train.optimizer_state is {other} here and {form} in the saved run, which keeps it from its first step",
                        "train", config, "--resume", "--quiet", "--out", form, "--optimizer_state", other)
        check(tensors(last_checkpoint(form) + "/state.safetensors") == before, "a refused resume changed the state")
        run("train", config, "--resume", "--quiet", "--out", form)
        same_run(f"whole-{form}", form)
        held[form] = check_state(last_checkpoint(form) + "/state.safetensors", form)
        run("eval", config, "--out", form, "--json")
        ledger = json.loads(run("plan", config, "--json", "--out", "none")[0])
        rows = {r["role"]: r["bytes"] for r in ledger["arena"]["roles"]}
        check(rows["optimizer"] < rows["weight"] * 2 * (0.51 if form == "bf16" else 0.45), rows)
    check("(f32, signed8," in run("plan", config, "--out", "none")[0], "the plan does not tell of 8 bits")


def test_it_learns_the_same():
    """The loss after a while against f32 moments: rounding at random is noise, far below that of the batches."""
    write_text()
    losses = {}
    for form in ("f32", "bf16", "8bit"):
        config = write_config(model={"width": 72}, train={"optimizer_state": form, "steps": 150, "eval_every": 150, "eval_batches": 8,
                                                          "checkpoint_every": 150})
        run("train", config, "--quiet", "--out", form)
        losses[form] = [line["validation_loss"] for line in metrics(form) if "validation_loss" in line]
    first, last = metrics("f32")[0]["loss"], losses["f32"][-1]
    check(last < 0.7 * first, "f32 learns too little for this test", first, last)
    for form in ("bf16", "8bit"):
        check(abs(losses[form][-1] / last - 1) < 0.01 and losses[form] != losses["f32"], losses)


def test_refused_by_state_alone():
    """What weights, gradients and moments take at least is told before a graph is built, for each form of the moments."""
    write_text()
    config = write_config(model={"width": 4096}, memory={"budget": "1MB"})
    needs = {}
    for form in ("f32", "bf16", "8bit"):
        for early in ("off", "auto"):
            _, err = run("plan", config, "--optimizer_state", form, "--set", f"train.update_in_backward={early}", code=3)
            found = re.search(r"(weights, gradients and|weights and) optimizer state alone are (\d+) bytes", plain(err))
            check(found and (found[1] == "weights and") == (early == "auto"), err)
            needs[form, early] = int(found[2])
    weights = needs["f32", "off"] // 4
    for form, moments in (("f32", 2), ("bf16", 1), ("8bit", 520 / 1024)):
        for early, others in (("off", 2), ("auto", 1)):
            check(abs(needs[form, early] / weights - others - moments) < 1e-6, form, early, needs)
    _, err = run("plan", config, "--set", "train.update_in_backward=off", "--set", "train.layer_major=1", code=3)
    check("plimsoll plan: weights and optimizer state alone are" in err, "layer-major holds few gradients, asked for beside off:", err)


GROUPS = {"state": [test_small_optimizer_state, test_it_learns_the_same, test_refused_by_state_alone]}

if __name__ == "__main__":
    main(GROUPS)
