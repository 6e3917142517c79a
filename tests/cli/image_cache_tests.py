"""Tests of the cache of denoised pages (dataset.cache_images): the same bits without it, cold, warm and after a kill; it keeps its bound; what happens to its
file. Called as cli_tests.py is."""
import json
import os
import random
import re
import shutil
import signal
import sqlite3

import cli_tests
from cli_tests import SEED, Skipped, await_event, check, finish, main, metrics, read, refused, run, start_closely
from hybrid_tests import PAGES, lasting, write_hybrid

DRAW = random.Random(SEED)
KEPT = ("--set", "dataset.cache_images=true")
FILE = "images.cache/plimsoll-pages.sqlite"


def need_cache():
    if not os.path.exists(os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-cache.so")):
        raise Skipped("there is no module for a cache of pages")


def write_denoised(path="task.yaml", **sections):
    """A config whose pages pass a denoiser; the denoiser is trained where it is not there yet."""
    need_cache()
    keys = {**json.loads(json.dumps(PAGES)), "dataset": {"denoiser_path": "unet/denoiser"}, "train": {"steps": 20, "eval_every": 10, "log_every": 1}}
    keys["denoiser"].update({"channels": 4, "steps": 12, "batch_size": 4})
    for name, more in sections.items():
        keys[name] = {**keys.get(name, {}), **more}
    config = write_hybrid(path, **json.loads(json.dumps(keys)))
    if not os.path.exists("unet"):
        run("train", config, "--stage", "denoiser", "--quiet", "--out", "unet")
    return config


def same(one, other):
    return lasting(one) == lasting(other) and metrics(one) == metrics(other)


def look(out):
    """How many pages are kept, and how often one was put or found."""
    with sqlite3.connect(f"file:{out}/{FILE}?mode=ro", uri=True) as file:
        return file.execute("SELECT count(*), max(used) FROM entry").fetchone()


def test_the_same_bits():
    """Each page is denoised once, however the batch is cut, also where pages stay for several steps and where the adapter alone is trained: in the second
    epoch nothing is left to denoise."""
    config = write_denoised()
    for number, keys in enumerate(({}, {"reasoning": {"num_heads": 2, "L_layers": 1, "halt_max_steps": 3}}, {"n2n_pretrain": {"only": True}}, {"train": {"mixed_precision": "bf16"}})):
        config = write_denoised(f"c{number}.yaml", **keys)
        run("train", config, "--quiet", "--out", f"plain{number}")
        for size in (("1", "4") if number == 0 else (str(DRAW.randrange(1, 7)),)):
            out = f"kept{number}-{size}"
            _, err = run("train", config, "--out", out, "--micro_batch", size, *KEPT)
            check("As planned, to the byte." in err and "the cache of pages" not in err, err[-500:])
            check(same(out, f"plain{number}"), out, "other bits")
            pages, uses = look(out)
            check(0 < pages <= 60, pages)
            if size == "1" and number == 0:
                # 20 steps of 6 pages (the last of an epoch has fewer) and all held-out pages twice: each page is put once, and found from then on
                held_out = len(read_held_out(config))
                trained = 60 - held_out
                epoch = [min(6, trained - at) for at in range(0, trained, 6)]
                views = sum(epoch[step % len(epoch)] for step in range(20)) + 2 * held_out
                check(pages == 60 and views <= uses <= views + 8, pages, uses, views)  # some are read ahead


def read_held_out(config):
    plan = json.loads(run("plan", config, "--json")[0])
    return range(int(re.search(r"60 pages of words, (\d+) of them held out", plan["data"])[1]))


def test_its_bound():
    """More pages than there is room for: the file keeps to its bound, the plan says it, and the numbers are those without."""
    config = write_denoised(reading={"words": 8, "pages": 200, "held_out": 0.1}, vision_encoder={"image_size": 96}, train={"steps": 60})
    run("train", config, "--quiet", "--out", "plain")
    _, err = run("train", config, "--out", "kept", "--micro_batch", "1", *KEPT, "--set", "dataset.cache_size=1MiB")
    check("the cache of pages" not in err and same("kept", "plain"), err[-500:])
    pages, uses = look("kept")
    check(0 < pages < 200 and 2 ** 19 < os.path.getsize(f"kept/{FILE}") <= 2 ** 20, pages, os.path.getsize(f"kept/{FILE}"))
    plan = json.loads(run("plan", config, *KEPT, "--set", "dataset.cache_size=1MiB", "--json")[0])
    rows = {row["name"]: row["bytes"] for row in plan["disk"]["rows"]}
    check(rows["cache of denoised pages, at most"] == 2 ** 20 + 2 ** 22 and "denoised pages are kept, in at most 1.05 MB" in plan["data"], rows, plan["data"])
    # of a run with few pages the file cannot grow to its bound, and the plan does not say so
    few = json.loads(run("plan", write_denoised("few.yaml"), *KEPT, "--json")[0])
    rows = {row["name"]: row["bytes"] for row in few["disk"]["rows"]}
    check(2 ** 22 < rows["cache of denoised pages, at most"] < 2 ** 23, rows)


def test_killed():
    config = write_denoised(train={"steps": 120, "checkpoint_every": 5, "eval_every": 40})
    run("train", config, "--quiet", "--out", "plain")
    for step in (DRAW.randrange(2, 9) for _ in range(3)):
        process = start_closely("train", config, "--resume=auto", "--out", "kept", *KEPT)
        await_event(process, "step", step)
        process.send_signal(signal.SIGKILL)
        finish(process)
    _, err = run("train", config, "--resume=auto", "--out", "kept", *KEPT)
    check(same("kept", "plain") and "the cache of pages" not in err, err[-500:])
    run("train", config, "--resume=auto", "--out", "kept", "--steps", "121", "--quiet")  # and without it
    run("train", config, "--resume=auto", "--out", "plain", "--steps", "121", "--quiet")
    check(same("kept", "plain"), "other bits without it")


def test_damaged():
    """Whatever happens to the file, the numbers stay; what is not as it was written is said once."""
    config = write_denoised()
    run("train", config, "--quiet", "--out", "plain")
    run("train", config, "--quiet", "--out", "saved", *KEPT)
    run("train", config, "--quiet", "--resume", "--steps", "40", "--out", "plain")
    whole, told = read(f"saved/{FILE}"), []
    for damage in ("none", "byte", "bytes", "cut", "garbage", "folder"):
        shutil.rmtree("kept", ignore_errors=True)
        shutil.copytree("saved", "kept")
        data = bytearray(whole)
        for _ in range({"byte": 1, "bytes": 3000}.get(damage, 0)):
            data[DRAW.randrange(len(data))] ^= 1 + DRAW.randrange(255)
        data = data[:DRAW.randrange(1, len(data))] if damage == "cut" else DRAW.randbytes(5000) if damage == "garbage" else data
        with open(f"kept/{FILE}", "wb") as file:
            file.write(data)
        if damage == "folder":
            shutil.rmtree("kept/images.cache")
            open("kept/images.cache", "w").close()
        _, err = run("train", config, "--resume", "--steps", "40", "--out", "kept", *KEPT)
        lines = [line for line in err.splitlines() if "the cache of pages in kept/images.cache" in line]
        check(same("kept", "plain") and len(lines) <= 1, damage, lines)
        check(damage not in ("none",) or not lines, damage, lines)
        check(damage not in ("bytes", "garbage", "folder") or lines, damage, "nothing was said")
        told += lines
    check(any("it was made anew" in line for line in told) and any("this run denoises all pages" in line for line in told), told)


def test_another_denoiser():
    """A cache that came from a run with another denoiser gives it nothing."""
    config = write_denoised()
    run("train", config, "--quiet", "--out", "first", *KEPT)
    run("train", config, "--stage", "denoiser", "--quiet", "--out", "other", "--steps", "3")
    words = ("--set", "dataset.denoiser_path=other/denoiser", "--quiet")
    run("train", config, *words, "--out", "plain")
    os.mkdir("kept")
    shutil.copytree("first/images.cache", "kept/images.cache")
    before = look("kept")[0]
    run("train", config, *words, "--out", "kept", *KEPT)
    check(same("kept", "plain") and metrics("kept") != metrics("first"), "other bits")
    check(before < look("kept")[0] <= 2 * before, before, look("kept"))


def test_what_it_cannot_keep():
    config = write_denoised()
    refused(2, "dataset.cache_images keeps what the denoiser makes of a page, and with reading.noise a page is another each time that it is seen; leave one of the two out",
            "plan", config, *KEPT, "--set", "reading.noise=20")
    refused(2, r"dataset.cache_images: a denoised page of 320 pixels may take 346 kB, and the cache keeps at most 262 kB of one; make vision_encoder.image_size smaller", "plan",
            config, *KEPT, "--set", "vision_encoder.image_size=320")
    refused(2, "dataset.cache_size must be a size from 1MiB to 1024TiB", "plan", config, "--set", "dataset.cache_size=1000")


GROUPS = {"hybrid_images": [test_the_same_bits, test_its_bound, test_killed, test_damaged, test_another_denoiser, test_what_it_cannot_keep]}

if __name__ == "__main__":
    main(GROUPS)
