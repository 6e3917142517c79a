"""Tests of the cache of pages: the results are the same with and without, whatever happens to it; it keeps its bound; what it
takes is planned. Called as cli_tests.py is."""
import filecmp
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import cli_tests
from cli_tests import COMMAND, SEED, Skipped, check, environment, main, read, refused, run
from encode_tests import encode, put, write_encoder
from lru_oracle import OK, Cache, Plain, Reference

DRAW = random.Random(SEED)
MODULE = "plimsoll-cache.so"
NAME = "plimsoll-pages.sqlite"


def write_cached(path="cached.yaml", **keys):
    config = write_encoder(path, **{"image_size": 96, "patch_size": 24, "cache_dir": "cache", "cache_size": "16MB", **keys})
    if not os.path.exists(os.path.join(os.path.dirname(cli_tests.COMMAND), MODULE)):
        raise Skipped("there is no module for a cache of pages")
    return config


def texts(count):
    """Some of them the same; long ones, empty ones, scripts, bytes that are no UTF-8."""
    parts = ["a", "text ", "שלום", "مرحبا", "e\u0301", "日本", "\U0001f600", " ", "if (x) {", "long " * 90]
    made = ["".join(DRAW.choices(parts, k=DRAW.randrange(0, 9))) for _ in range(count // 2)]
    with open("t.txt", "wb") as file:
        for _ in range(count):
            file.write(DRAW.choice(made).encode() + DRAW.choice([b"", b"", b"\xff"]) + b"\n")
    return {"texts": "t.txt", "text_format": None, "count": None}


def results_of(config, *words, quiet=True):
    """Made anew with these options, in memory as planned; what was said."""
    shutil.rmtree("made", ignore_errors=True)
    said = encode(config, "--out", "made", *words)
    check(not quiet or "the cache of pages" not in said, said)
    return read("made/results.blocks"), said


def test_same_results():
    config = write_cached(**texts(900))
    plain, _ = results_of(write_encoder("plain.yaml", image_size=96, patch_size=24, texts="t.txt", text_format=None, count=None))
    for words in ([], [], ["--num_workers", "3"], ["--cache_size", "1MiB"], ["--cache_dir", "other", "--num_workers", "4", "--batch_size", "5"]):
        check(results_of(config, *words)[0] == plain, words)
    shutil.rmtree("made")
    encode(config, "--out", "made", env=environment(PLIMSOLL_TEST_SECCOMP="kill"))  # nothing asks the system for memory
    check(read("made/results.blocks") == plain, "under the filter")


def test_bound():
    config = write_cached(count=3000, cache_size="1MiB", image_size=224, patch_size=56)
    process = subprocess.Popen([COMMAND, "encode", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    most = 0
    while process.poll() is None:
        if os.path.exists(f"cache/{NAME}"):
            most = max(most, os.path.getsize(f"cache/{NAME}"))
        time.sleep(0.002)
    check(process.returncode == 0 and 0.5 * (1 << 20) < os.path.getsize(f"cache/{NAME}") <= 1 << 20 and most <= 1 << 20, process.returncode, most)
    rows = {r["name"]: r["bytes"] for r in json.loads(run("plan", config, "--json")[0])["disk"]["rows"]}
    check(rows["cache of pages, at most"] == (1 << 20) + (4 << 20), rows)


def test_pages_that_are_too_large():
    """Dense pages of the largest size are left out and counted; others beside them are kept."""
    with open("t.txt", "w") as file:
        for i in range(12):
            file.write("".join(DRAW.choices("@#MW%&8B" if i % 3 else "i ", k=6500)) + "\n")
    keys = {"texts": "t.txt", "text_format": None, "count": None, "image_size": 896, "patch_size": 224}
    plain, _ = results_of(write_encoder("plain.yaml", **keys))
    for _ in range(2):
        made, said = results_of(write_cached(**keys), quiet=False)
        check(made == plain and "8 of the pages, packed, have more than 256 KiB" in said, said)
        check("cannot be used" not in said and "out of memory" not in said, said)


def test_lowered_bound():
    results_of(write_cached(count=3000, image_size=224, patch_size=56))
    large = os.path.getsize(f"cache/{NAME}")
    _, said = results_of(write_cached(count=3000, image_size=224, patch_size=56, cache_size="2MiB"), quiet=False)
    check(large > 4 << 20 and "was larger than it may be (pipeline.cache_size was lowered); it was made anew" in said, large, said)
    check(os.path.getsize(f"cache/{NAME}") <= 2 << 20, os.path.getsize(f"cache/{NAME}"))


def while_it_runs(config, out, act):
    process = subprocess.Popen([COMMAND, "encode", config, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    while not os.path.exists(f"cache/{NAME}") and process.poll() is None:
        time.sleep(0.001)
    time.sleep(DRAW.uniform(0, 0.3))
    act(process)
    said = process.communicate()[1].decode()
    return process.returncode, said


def test_removed_while_it_runs():
    config = write_cached(count=3000)
    plain, _ = results_of(write_encoder("plain.yaml", image_size=96, patch_size=24, count=3000))
    for i in range(4):
        code, said = while_it_runs(config, f"out{i}", lambda process: shutil.rmtree("cache", ignore_errors=True))
        check(code == 0 and read(f"out{i}/results.blocks") == plain, code, said)
    check(results_of(config)[0] == plain, "afterwards")


def test_killed():
    config = write_cached(count=3000, block_texts=7)
    plain, _ = results_of(write_encoder("plain.yaml", image_size=96, patch_size=24, count=3000, block_texts=7))
    for _ in range(6):
        while_it_runs(config, "out", lambda process: process.send_signal(signal.SIGKILL))
    _, said = run("encode", config, "--out", "out")
    check(read("out/results.blocks") == plain and "the cache of pages" not in said, said)


def test_damaged():
    config = write_cached(count=400)
    plain, _ = results_of(config)
    told = 0
    for i in range(8):
        results_of(config)
        damage = DRAW.choice(["cut", "bytes", "garbage", "journal"])
        bytes_ = bytearray(read(f"cache/{NAME}"))
        if damage == "cut":
            del bytes_[DRAW.randrange(len(bytes_)):]
        elif damage == "garbage":
            bytes_ = bytearray(DRAW.randbytes(5000))
        else:
            for _ in range(DRAW.choice([1, 3000])):
                bytes_[DRAW.randrange(len(bytes_))] ^= 1 + DRAW.randrange(255)
        with open(f"cache/{NAME}", "wb") as file:
            file.write(bytes_)
        if damage == "journal":
            with open(f"cache/{NAME}-journal", "wb") as file:
                file.write(DRAW.randbytes(3000))
        same, said = results_of(config, quiet=False)
        lines = [line for line in said.splitlines() if "the cache of pages" in line]
        check(same == plain and len(lines) <= 1, damage, lines)
        told += len(lines)
    check(told > 0, "nothing was ever said")
    put("file", "")
    same, said = results_of(config, "--cache_dir", "file", quiet=False)
    check(same == plain and "the cache of pages in file" in said, said)


def test_two_runs():
    config = write_cached(count=3000)
    first = subprocess.Popen([COMMAND, "encode", config, "--out", "first"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    second = subprocess.Popen([COMMAND, "encode", config, "--out", "second"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    said = [p.communicate()[1].decode() for p in (first, second)]
    check(first.returncode == 0 and second.returncode == 0, said)
    check(filecmp.cmp("first/results.blocks", "second/results.blocks", shallow=False), "two runs with one cache")
    check(sum("another run has it" in s for s in said) <= 1, said)


def open_module(path="x.sqlite", file_bytes=1 << 20):
    module = os.path.join(os.path.dirname(COMMAND), MODULE)
    if not os.path.exists(module):
        raise Skipped("there is no module for a cache of pages")
    cache = Cache(module, path, file_bytes)
    check(cache.open() == OK, cache.why.value)
    return cache


def test_policy():
    """Use by use, the module keeps what the oracle keeps; values are what was put; the file has its bound; closed, killed or not."""
    sizes = [0, 10, 700, 2500, 4000, 9000, 30000]
    cost = {}
    for bytes_ in sizes:  # what the module says that one takes
        probe = open_module("probe.sqlite")
        probe.put(0, bytes(bytes_))
        cost[bytes_] = probe.facts().bytes
        probe.close()
        os.remove("probe.sqlite")
    cache, value = open_module(), {}
    oracle = Reference(cache.bytes_max())
    for use in range(1500):
        key = int(DRAW.paretovariate(0.6)) % 400 if DRAW.random() < 0.7 else DRAW.randrange(400)
        found = cache.get(key)
        check((found is not None) == oracle.get(key) and found in (None, value.get(key)), use, key, found is not None)
        if found is None:
            value[key] = DRAW.randbytes(DRAW.choice(sizes))
            check(cache.put(key, value[key]) == OK, use, cache.functions.why(cache.store))
            oracle.put(key, cost[len(value[key])])
        facts = cache.facts()
        check((facts.bytes, facts.values, facts.refused) == (oracle.bytes(), len(oracle.keys()), 0), use, facts.bytes, oracle.bytes())
        if DRAW.random() < 0.003:
            cache.close()
            check(os.path.getsize("x.sqlite") <= 1 << 20 and cache.open() == OK, use, cache.why.value)
            oracle.turn = 0  # nobody remembers it
    check(all((cache.get(key) is not None) == (key in oracle.keys()) for key in range(400)), "at the end")
    cache.close()
    check(cache.shrink(1 << 19) == OK and os.path.getsize("x.sqlite") <= 1 << 19, cache.why.value, os.path.getsize("x.sqlite"))


def test_scans():
    """One that comes again and again finds most of what fits, where plain LRU finds nothing; one that comes once washes nothing out;
    what is wanted from now on comes in."""
    cache, page = open_module(), bytes(4000)
    cache.put(0, page)
    fits = cache.bytes_max() // cache.facts().bytes

    def ask(key):
        found = cache.get(key) is not None
        return found or (cache.put(key, page), False)[1]

    plain = Plain(fits)
    scan = range(5 * fits)
    hits = [(sum(ask(key) for key in scan), sum(plain.ask(key) for key in scan)) for _ in range(3)]
    check(all(found >= 0.7 * fits and none == 0 for found, none in hits[1:]), fits, hits)
    hot = [10**6 + i for i in range(fits // 2)]
    found = [sum(ask(key) for key in hot) for _ in range(40)]
    check(found[-1] >= 0.6 * len(hot), "what is wanted now does not come in", found)
    for key in range(2 * 10**6, 2 * 10**6 + 5 * fits):
        ask(key)
    left = sum(cache.get(key) is not None for key in hot)
    check(left >= 0.9 * found[-1], "a scan washed out", found[-1] - left, "of", found[-1])
    cache.close()


def test_refused():
    config = write_cached()
    refused(2, "pipeline.cache_size is of no cache", "plan", write_encoder("none.yaml", cache_size="2MB"))
    refused(2, "pipeline.cache_size", "plan", config, "--cache_size", "1kB")
    out, _ = run("plan", config)
    check(re.search(r"A cache \(pipeline.cache_dir\) could save at most [0-9.e+-]+ % of the time", " ".join(out.split())), out)
    # a Plimsoll that was built without SQLite
    os.mkdir("bare")
    for name in ("plimsoll", "plimsoll-draw.so"):
        shutil.copy(os.path.join(os.path.dirname(COMMAND), name), "bare")
    done = subprocess.run(["bare/plimsoll", "encode", config, "--out", "never"], capture_output=True, env=environment())
    check(done.returncode != 0 and b"libsqlite3-dev" in done.stderr and not os.path.exists("never"), done.returncode, done.stderr)


main({"page_cache": [test_same_results, test_bound, test_pages_that_are_too_large, test_lowered_bound, test_removed_while_it_runs, test_killed, test_damaged, test_two_runs, test_policy, test_scans, test_refused]})
