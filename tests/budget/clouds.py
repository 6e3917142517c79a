"""Cloud heights at their charged figure: random models on small synthetic flights, trained and evaluated in groups whose
limit is what the plan is charged, to the page."""

import os
import random
import shutil

import random_config
import suite
from harness import Failure, Skip, judge_ledger_text

REFUSED = 3
PLANNER_BYTES = 4 << 20
MODULE = "plimsoll-hdf5.so"
FLIGHTS = ("10Feb25", "30Oct24", "04Nov24")  # the first of those that `plimsoll synth clouds` makes
LOSSES = ("huber", "mse_mae", "huber_mae", "weighted_huber", "weighted_huber_mae")


def yes(rng, probability=0.5):
    return rng.random() < probability


def draw_model(rng):
    keys = {"architecture.name": rng.choice(("transformer", "transformer", "cnn")), "temporal_frames": rng.randint(1, 6),
            "channels": [rng.randint(1, most) for most in (32, 64, 96)],
            "dense": [rng.randint(1, 128), rng.randint(1, 64)]}
    if yes(rng, 0.1):
        del keys["channels"], keys["dense"]
        keys["memory_optimized"] = True
    for key in ("use_spatial_attention", "use_temporal_attention", "zscore_normalize", "augment", "flat_field_correction"):
        keys[key] = yes(rng, 0.7)
    keys["angles_mode"] = rng.choice(("both", "sza_only", "saa_only", "none"))
    keys["frame_form"] = rng.choice(("u8", "f16"))
    return keys


def draw_train(rng):
    keys = {"train.batch_size": rng.randint(2, 12), "train.steps": rng.randint(2, 4), "train.seed": rng.randrange(10**6),
            "loss_type": rng.choice(LOSSES), "hard_mining_k": rng.choice((0, 0.35, 1)), "train.grad_clip": rng.choice((0, 1)),
            "train.mixed_precision": rng.choice(("off", "off", "bf16")),
            "train.optimizer_state": rng.choice(("f32", "f32", "bf16", "8bit")),
            "train.gradient_checkpointing": rng.choice(("off", "auto", "auto", "full")),
            "train.convolution_limit": rng.choice((0, "auto", 1, 10**rng.randint(2, 6)))}
    keys["train.eval_every"] = rng.choice(("auto", 1, 2))
    keys["train.checkpoint_every"] = rng.choice(("auto", 1, 2))
    return keys


def draw(rng):
    keys = {**draw_model(rng), **draw_train(rng)}
    keys["run.threads"] = rng.choice((1, 1, 2, 2, 3, 4, 8))
    keys["run.isa"] = rng.choice(("auto", "auto", "auto", "avx2", "baseline"))
    keys["memory.huge_pages"] = rng.choice(("auto", "auto", "off"))
    keys["stage"] = rng.choice(("pretrain", "final", "loo-" + rng.choice(FLIGHTS)))
    return keys


def write_config(bench, rng, index, keys):
    """Flights of random sides, and the config that names them."""
    folder, path = bench.path(f"flights-{index}"), bench.path(f"clouds-{index}.yaml")
    line = bench.command("synth", "clouds", folder, "--flights", len(FLIGHTS), "--height", rng.randint(16, 96), "--width",
                         rng.randint(16, 96), "--seed", rng.randint(1, 10**6))
    text = bench.run(line)[0].decode()
    text += f'pretrain_flight: "{FLIGHTS[1]}"\nvalidation_flight: "{FLIGHTS[0]}"\n'
    text += "".join(f"{key}: {list(map(int, keys.pop(key)))}\n" for key in ("channels", "dense") if key in keys)
    with open(path, "w", encoding="utf-8") as f:
        f.write("model: {arch: clouds}\n" + text)
    return folder, path


def draw_budget(rng, bench, keys):
    """Of a third of those that may recompute: between what all of it takes and none of it."""
    if keys["train.gradient_checkpointing"] != "auto" or yes(rng, 2 / 3):
        return
    least, most = (bench.plan(random_config.options_of({**keys, "train.gradient_checkpointing": how}))["process"]["charged_bytes"]
                   for how in ("full", "off"))
    keys["memory.budget"] = max(least, int(least + (most - least) * rng.random())) + (128 << 10)


def check_train(bench, options, out):
    """Planned in a process of its own, which prepares the frames; run by its lock file."""
    process = bench.plan([*options, "--out-lock", out + ".lock"])["process"]
    charged = process["charged_bytes"]
    run = bench.train([*options, "--lock", out + ".lock"], out, prefix=bench.limited(charged))
    if bench.group.kills():
        raise Failure(f"the kernel killed {bench.group.kills()} times at {charged:,} bytes\n{run.repeat}")
    run.judge({"process": process})
    return charged


def check_eval(bench, out, predictions=True):
    """It has no lock file: where what it needs is less than what plans it, that is refused, and it gets more. Did it?"""
    process = bench.plan(command="evaluate", config=out)["process"]
    line = bench.command("eval", out, "--ledger", *(("--predictions", out + ".csv") if predictions else ()))
    for limit in (process["charged_bytes"], process["charged_bytes"] + PLANNER_BYTES):
        _, errors = bench.run(line, prefix=bench.limited(limit), expect=(0, REFUSED))
        if bench.group.kills():
            raise Failure(f"the kernel killed {bench.group.kills()} times at {limit:,} bytes: {' '.join(line)}")
        if "planning take more memory than the cgroup's limit leaves" not in errors:
            break
    judge_ledger_text(errors, process["resident_bytes"], line)
    return limit > process["charged_bytes"]


def run_one(bench, seed, index, found):
    rng = random.Random(f"{seed}/{index}")
    keys = draw(rng)
    folder, bench.config = write_config(bench, rng, index, keys)
    keys["run.out"] = out = bench.out()
    draw_budget(rng, bench, keys)
    charged = check_train(bench, random_config.options_of(keys), out)
    found.append((charged, "memory.budget" in keys, check_eval(bench, out)))
    shutil.rmtree(out)
    shutil.rmtree(folder)


def check_clouds(bench, arguments):
    found = []
    if not bench.has_module(MODULE):
        raise Skip(f"{MODULE} was not built (no libhdf5): there are no flights to train on")
    count = suite.run_random(arguments, lambda index: run_one(bench, arguments.seed, index, found))
    sizes, budgets, more = ([row[i] for row in found] for i in range(3))
    return f"{count} models of cloud heights, {sum(budgets)} with a budget, trained in groups of {min(sizes):,} to {max(sizes):,} " \
           f"bytes, their charged figures, and evaluated likewise ({sum(more)} with room to plan); none killed"
