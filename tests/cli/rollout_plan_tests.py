"""Tests of what is known of a rollout before it runs: all shapes of its operators with bytes and times, that what does
not fit is refused before the first begins, and what a search may choose. Called as cli_tests.py is."""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import time

from cli_tests import COMMAND, SEED, Skipped, check, environment, main, refused, run
from rollout_oracle import load_npy
from rollout_tests import same_results, write_rollout

DRAW = random.Random(SEED)
SPACE = {"num_layers": [2, 4], "base_channels": "{type: integer, bounds: [2, 9]}", "kernel_size": [3, 5]}
OPERATORS = 24


def write_many(path="many.yaml", **simulation):
    return write_rollout(path, space=SPACE, sampling={"total_samples": OPERATORS, "sobol": f"{{seed: {DRAW.randrange(1 << 30)}}}"},
                         simulation={"num_timesteps": 3, **simulation}, dataset={"storage": "{backend: npy}"})


def plan(config, *words):
    return json.loads(run("plan", config, "--json", *words)[0])


def test_all_shapes_are_looked_over():
    config = write_many()
    plans = plan(config)
    work = plans["work"]
    run("rollout", config, "--quiet")
    (operators, dimensions), params = load_npy("out/results/parameters.params.npy")
    shapes = collections.Counter(tuple(params[i * dimensions:i * dimensions + 3]) for i in range(operators))
    said = {tuple(float(part.split()[1]) for part in g["shape"].split(", ")): g["items"] for g in work["shapes"]}
    check(work["items"] == OPERATORS and said == dict(shapes), said, shapes)
    charged = [g["charged_bytes"] for g in work["shapes"]]
    check(work["largest"] == charged.index(max(charged)), work["largest"], charged)
    check(plans["process"]["charged_bytes"] <= max(charged), plans["process"]["charged_bytes"], max(charged))
    check(abs(work["seconds"] - sum(g["seconds"] for g in work["shapes"])) < 1e-9 * work["seconds"], work["seconds"])
    report, err = run("plan", config)
    check("measuring" not in err, err)  # what it measured serves the next
    for words in ("All of the work", f"{OPERATORS} operators in {len(shapes)} shapes", "Predicted:"):
        check(words in report, words, report)


def test_shapes_in_words():
    norms = ["instance", "group", "batch"]
    config = write_rollout("norms.yaml", space={"normalization": norms, "activation": ["gelu", "tanh"]}, sampling={"total_samples": 12})
    said = {g["shape"] for g in plan(config)["work"]["shapes"]}
    check(said <= {f"activation {a}, normalization {n}" for a in ("gelu", "tanh") for n in norms} and len(said) > 3, said)


def test_refused_before_the_first():
    config = write_many("large.yaml")
    shapes = plan(config)["work"]["shapes"]
    largest = max(shapes, key=lambda g: g["charged_bytes"])
    needed = plan(config)["process"]["charged_bytes"]
    least = min(g["charged_bytes"] for g in shapes)
    budget = (least + needed) // 2
    refused(3, f"of {len(shapes)} shapes that of {largest['shape']}: the smallest plan needs .*{needed:,} bytes",
            "rollout", config, "--out", "refused", "--budget", str(budget))
    check(not os.path.exists("refused"), os.listdir("."))
    run("rollout", config, "--out", "fits", "--budget", str(needed), "--quiet")


def test_advice():
    """The same of any system that keeps results: changes are planned, and the disk and the rates told."""
    config = write_rollout("advice.yaml", simulation={"num_realizations": 8, "num_timesteps": 4, "realizations_at_once": 2})
    advice = plan(config)["advice"]
    check([s["stage"] for s in advice["stages"]] == ["fill", "rollout", "write"], advice["stages"])
    said = {c["options"]: c for c in advice["changes"]}
    check({"--realizations_at_once 4", "--realizations_at_once 8", "--precision bfloat16"} <= set(said), list(said))
    for options, change in said.items():
        charged = plan(config, *options.split())["process"]["charged_bytes"]
        check(change["charged_bytes"] == charged, options, change, charged)
    run("rollout", config, "--quiet", "--out", "plain")
    for options, change in said.items():
        run("rollout", config, "--quiet", "--out", "changed", *options.split())
        same = subprocess.run(["cmp", "-s", "plain/results.blocks", "changed/results.blocks"]).returncode == 0
        check(same == (change["results"] == "same"), options, change)
        shutil.rmtree("changed")
    check([r["risk"] for r in advice["risks"]] == ["disk", "memory"] and advice["safe"]["options"] == "", advice)


def test_left_to_the_search():
    config = write_rollout("auto.yaml", simulation={"num_realizations": 6, "num_timesteps": 4, "realizations_at_once": "auto"})
    run("rollout", config, "--quiet", "--out", "chosen", "--budget", "64MB")
    run("rollout", config, "--quiet", "--out", "three", "--realizations-at-once", "3")
    same_results("chosen/results.blocks", "three/results.blocks")
    found = json.loads(run("fit", config, "--json", "--budget", "64MB")[0])
    tried = {int(p["choice"]["micro-batch"]) for p in found["points"]}
    check(tried == {1, 2, 3, 6} and found["batch"] == 6, tried)
    check("precision" not in found["points"][0]["choice"], found["points"][0])  # an axis of training
    front = [(p["charged_bytes"], p["seconds"]) for p in found["points"] if p["front"]]
    check(all(a[1] > b[1] for a, b in zip(sorted(front), sorted(front)[1:])), front)
    report, _ = run("fit", config, "--budget", "64MB")
    check("batch 6 realisations; budget 64,000,000 bytes" in report and "at once" in report, report)
    out, _ = run("fit", config, "--budget", "6MB", code=3)
    check("Nothing fits" in out, out)


def test_never_two_at_once():
    """Neither while a process of the job is at work nor between two of them: each shape has its own."""
    config = write_many("two.yaml", num_realizations=2, num_timesteps=40)
    first = subprocess.Popen([COMMAND, "rollout", config, "--out", "two", "--quiet"], env=environment(), stderr=subprocess.PIPE)
    while not os.path.exists("two/results") and first.poll() is None:
        time.sleep(0.001)
    met = 0
    while first.poll() is None:
        beside = subprocess.run([COMMAND, "rollout", config, "--out", "two", "--quiet"], env=environment(), capture_output=True)
        whole = beside.returncode == 0 and json.loads(run("results", "ls", "two/results", "--json")[0])
        check(beside.returncode == 5 or (whole and whole["done"] == whole["blocks"]), beside.returncode, beside.stderr)
        met += beside.returncode == 5
    check(first.returncode == 0, first.communicate()[1])
    if met == 0:
        raise Skipped("nobody came while it ran")


def test_stopped_between_operators():
    """Of one state no step comes after the first."""
    config = write_rollout("one.yaml", sampling={"total_samples": 20000}, simulation={"num_timesteps": 1, "extract_operator_features": "false"})
    process = subprocess.Popen([COMMAND, "rollout", config, "--out", "one", "--quiet"], env=environment(), stderr=subprocess.PIPE)
    while not os.path.exists("one/results.blocks") and process.poll() is None:
        time.sleep(0.001)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[1].decode()
    check(process.returncode in (143, 0), process.returncode, said)
    summary = json.loads(run("results", "ls", "one/results.blocks", "--json")[0])
    check(process.returncode == 0 or summary["done"] < summary["blocks"], summary)


if __name__ == "__main__":
    main({"rollout_plan": [test_all_shapes_are_looked_over, test_shapes_in_words, test_refused_before_the_first, test_advice, test_left_to_the_search, test_never_two_at_once,
                           test_stopped_between_operators]},
         own_cache=True)  # others that measure meanwhile and save last would win
