"""Rollouts at their charged figure: random operators in a group whose limit is what the plan is charged, to the page."""

import os
import random
import re
import shutil

import suite
from harness import Failure, tail


def draw(rng, path):
    """Some megabytes for the operator, so that what plans it has room where it runs."""
    arch = rng.choice(("cnn_operator", "cnn_operator", "unet_operator", "fno_operator"))
    precision = rng.choice(("float32", "bfloat16", "float16"))
    store, form = rng.choice(("features", "trajectories", "both")), rng.choice(("native", "npy"))
    realisations, grid = rng.randint(1, 4), rng.choice((48, 64, 80))
    space = {"base_channels": rng.choice((8, 16, 24, 37))}
    if arch != "unet_operator":
        space["num_layers"] = rng.randint(2, 5)
    if arch == "cnn_operator":
        space["kernel_size"] = rng.choice((3, 5))
    text = f"model: {{arch: {arch}}}\nparameter_space:\n  architecture:\n"
    text += "".join(f"    {name}: {{type: choice, choices: [{value}]}}\n" for name, value in space.items())
    text += f"  operator:\n    grid_size: {{type: choice, choices: [{grid}]}}\n"
    text += "sampling: {total_samples: 1, validation: {check_discrepancy: false, check_correlation: false}}\n"
    text += (f"simulation: {{num_realizations: {realisations}, realizations_at_once: {rng.randint(1, realisations)}, num_timesteps: "
             f"{rng.randint(2, 3)}, precision: {precision}, seed: {rng.randrange(1 << 30)}, "
             f"extract_operator_features: {rng.choice(('true', 'false'))}}}\n")
    text += f"dataset: {{store: {store}, storage: {{backend: {form}, state_dtype: {rng.choice(('f16', 'f32'))}}}}}\n"
    text += f"run: {{threads: {rng.randint(1, 4)}}}\n"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def run_one(bench, seed, index, sizes):
    config, out = bench.path(f"rollout-{index}.yaml"), bench.out()
    draw(random.Random(f"{seed}/{index}"), config)
    charged = bench.plan(command="rollout", config=config)["process"]["charged_bytes"]
    line = bench.command("rollout", config, "--out", out)
    _, errors = bench.run(line, prefix=bench.limited(charged))
    if bench.group.kills():
        raise Failure(f"the kernel killed {bench.group.kills()} times at {charged:,} bytes: {config}")
    if not re.search(r"^As planned, to the byte\.", errors, re.MULTILINE):
        raise Failure(f"not as planned: {config}\n{tail(errors, 24)}")
    sizes.append(charged)
    shutil.rmtree(out)
    os.remove(config)


def check_rollouts(bench, arguments):
    sizes = []
    count = suite.run_random(arguments, lambda index: run_one(bench, arguments.seed, index, sizes))
    return f"{count} rollouts as planned, to the byte, in groups of {min(sizes):,} to {max(sizes):,} bytes, their charged figures"
