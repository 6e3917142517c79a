"""Texts to capsules at their charged figure: random encoders over random texts, in groups whose limit is what the plan is
charged, to the page."""

import csv
import json
import os
import random
import re
import shutil

import random_config
import suite
from group import PAGE_BYTES
from harness import Failure, Skip, judge_ledger_text, plain, tail

REFUSED = 3
PLANNER_BYTES, GROUP_BYTES = 4 << 20, 64 << 20
DRAW, HDF5 = "plimsoll-draw.so", "plimsoll-hdf5.so"
SIDES = ((40, 8), (40, 10), (48, 16), (64, 8), (80, 10), (112, 16), (224, 16), (224, 32))  # of a page and of a patch
RESULTS = {"native": "results.blocks", "npy": "results", "hdf5": "results.h5"}
ODD = ("", "\t", "عربي وعبري", "שלום world", "e\u0301a\u0308", "東京 🎈", "naïve", "a\u2067b\u2029c", "x" * 300)


def yes(rng, probability=0.5):
    return rng.random() < probability


# ---- texts ----


def draw_text(rng):
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(rng.randint(0, 80))]
    if yes(rng, 0.3):
        words.insert(rng.randint(0, len(words)), rng.choice(ODD))
    return " ".join(words)


def write_lines(path, texts, rng):
    with open(path, "wb") as f:
        f.write(b"".join(text.replace("\u2029", " ").encode() + rng.choice((b"\n", b"\r\n", b" \xff\xfe\n")) for text in texts))


def write_jsonl(path, texts, rng):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"n": i, "text": text}, ensure_ascii=yes(rng)) + "\n" for i, text in enumerate(texts))


def write_csv(path, texts, rng):
    with open(path, "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([("n", "text"), *((i, text + rng.choice(("", '\n"so", he said'))) for i, text in enumerate(texts))])


def write_folder(path, texts, rng):
    os.mkdir(path)
    for i, text in enumerate(texts):
        below = os.path.join(path, rng.choice(("", "below")))
        os.makedirs(below, exist_ok=True)
        with open(os.path.join(below, f"{i}.txt"), "w", encoding="utf-8") as f:
            f.write(text)


WRITERS = {"lines": write_lines, "jsonl": write_jsonl, "csv": write_csv, "folder": write_folder}


def draw_texts(rng, path):
    """The keys that name them; a grammar's are nowhere."""
    kind, count = rng.choice(("grammar", *WRITERS)), rng.randint(1, 120)
    if kind == "grammar":
        return {"texts.format": kind, "texts.count": count}
    WRITERS[kind](path, [draw_text(rng) for _ in range(count)], rng)
    return {"texts.format": kind, "texts.path": path, "texts.count": rng.choice((0, 0, rng.randint(1, count)))}


# ---- the encoder ----


def draw_model(rng):
    image, patch = rng.choice(SIDES)
    side, heads = image // patch, rng.choice((1, 1, 2, 3, 4, 8))
    rows, columns = rng.randint(1, min(3, side)), rng.randint(1, min(4, side))
    keys = {"image_size": image, "patch_size": patch, "num_heads": heads, "hidden_size": heads * rng.choice((4, 8, 12, 16, 24, 32)),
            "num_layers": rng.randint(1, 3), "H_cycles": rng.randint(1, 2), "L_cycles": rng.randint(1, 3),
            "recursion": rng.choice(("flat", "trm")), "expansion": rng.choice((1, 2.5, 4)),
            "pooling_method": rng.choice(("attention", "attention", "avg")), "target_capsules": rows * columns,
            "capsule_grid_shape": f"[{rows}, {columns}]", "real_children": yes(rng, 0.7),
            "children_per_capsule": rng.randint(1, min(6, side * side)), "checksum_dim": rng.choice((1, 3, 16, 32)),
            "precision": rng.choice(("float32", "float32", "bfloat16", "float16")), "seed": rng.randrange(10**6)}
    return {f"encoder.{key}": value for key, value in keys.items()}


def draw_pipeline(rng, has_hdf5):
    block = rng.choice((1, 7, 16, 64, 192))
    return {"pipeline.block_texts": block, "pipeline.batch_size": rng.choice(("auto", rng.randint(1, min(24, block)))),
            "pipeline.num_workers": rng.choice((1, 1, 2, 3, 4, 8)),
            "pipeline.storage": rng.choice(("native", "npy", "hdf5" if has_hdf5 else "native")),
            "run.threads": rng.choice((1, 1, 2, 2, 3, 4, 8, 16)), "run.isa": rng.choice(("auto", "auto", "auto", "avx2", "baseline")),
            "memory.huge_pages": rng.choice(("auto", "auto", "off"))}


def plan_of(bench, keys):
    """In a small group as it will run in one: there kernels are measured otherwise, and the fastest batch may be another."""
    return bench.plan(random_config.options_of(keys), command="encode", prefix=bench.limited(GROUP_BYTES))["process"]


def draw_budget(rng, bench, keys):
    """Of half of those whose batch is to be found: between what a batch of one takes and what the fastest does."""
    if keys["pipeline.batch_size"] != "auto" or yes(rng):
        return
    least, most = (plan_of(bench, {**keys, "pipeline.batch_size": size})["charged_bytes"] for size in (1, "auto"))
    keys["memory.budget"] = int(least + max(0, most - least) * rng.random()) + (128 << 10)


# ---- one run ----


def run_at(bench, line, limit, expect):
    _, errors = bench.run(line, prefix=bench.limited(limit), expect=expect)
    if bench.group.kills():
        raise Failure(f"the kernel killed {bench.group.kills()} times at {limit:,} bytes: {' '.join(line)}")
    return errors


def lacks_room_to_plan(errors):
    return "planning take more memory than the cgroup's limit leaves" in errors


def run_charged(bench, line, charged):
    """(what it said, was there room to plan it). It has no lock file: where what it needs is less than what plans it, that is
    refused, and it gets more."""
    errors = run_at(bench, line, charged, (0, REFUSED))
    if not lacks_room_to_plan(errors):
        return errors, True
    return run_at(bench, line, charged + PLANNER_BYTES, 0), False


def run_one(bench, seed, index, has_hdf5, found):
    rng = random.Random(f"{seed}/{index}")
    texts, out = bench.path(f"texts-{index}"), bench.out()
    keys = {**draw_texts(rng, texts), **draw_model(rng), **draw_pipeline(rng, has_hdf5), "run.out": out}
    draw_budget(rng, bench, keys)
    process = plan_of(bench, keys)
    charged, line = process["charged_bytes"], bench.command("encode", bench.config, "--ledger", *random_config.options_of(keys))
    shutil.rmtree(out, ignore_errors=True)
    errors, roomy = run_charged(bench, line, charged)
    own = judge_ledger_text(errors, process["resident_bytes"], line)
    if not re.search(r"^As planned, to the byte\.", errors, re.MULTILINE):
        raise Failure(f"not as planned: {' '.join(line)}\n{tail(errors, 24)}")
    bench.run(bench.command("results", "check", os.path.join(out, RESULTS[keys["pipeline.storage"]])))
    shutil.rmtree(out)
    refused = run_at(bench, line, charged - PAGE_BYTES, REFUSED)
    if f"charged {charged} bytes, {PAGE_BYTES} bytes more than the cgroup limit" not in plain(refused) and not lacks_room_to_plan(refused):
        raise Failure(f"the sentence does not say what is missing: {' '.join(line)}\n{tail(refused)}")
    found.append({"charged": charged, "budget": "memory.budget" in keys, "roomy": roomy, **own})
    shutil.rmtree(out, ignore_errors=True)
    if "texts.path" in keys:
        (shutil.rmtree if os.path.isdir(texts) else os.remove)(texts)


def check_capsules(bench, arguments):
    found = []
    if not bench.has_module(DRAW):
        raise Skip(f"{DRAW} was not built (no FreeType, HarfBuzz, Raqm): there are no pages to encode")
    has_hdf5 = bench.has_module(HDF5)
    with open(bench.config, "w", encoding="ascii") as f:
        f.write("model: {arch: capsules}\n")
    count = suite.run_random(arguments, lambda index: run_one(bench, arguments.seed, index, has_hdf5, found))
    beside = [max(abs(own["resident"]), abs(own["peak"])) for own in found]
    sizes = [own["charged"] for own in found]
    return f"{count} encoders, {sum(own['budget'] for own in found)} with a budget, in groups of {min(sizes):,} to {max(sizes):,} bytes, " \
           f"their charged figures ({sum(not own['roomy'] for own in found)} with room to plan); none killed; at most {max(beside):,} bytes " \
           f"beside the plan, one page less refused"
