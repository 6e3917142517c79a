"""Tests of what a plan advises, of an encoder and of trainings: the bytes of each change are those of a plan with it, what
bounds follows from the stages' rates, what is said to be safe is so. Called as cli_tests.py is."""
import json
import os
import random
import re
import shutil
import subprocess

import cli_tests
from chain_tests import make_chains, write_chain
from cli_tests import SEED, check, environment, main, read, refused, run, unfolded, write_config, write_text
from encode_tests import SMALL, encode, export, numbers_of, put, weights_for, write_encoder
from work_tests import racing_environment

DRAW = random.Random(SEED)


def advice_of(config, *words):
    plan = json.loads(run("plan", config, *words, "--json")[0])
    return plan["advice"], plan


def of_stage(advice):
    return {s["stage"]: s["per_second"] for s in advice["stages"]}


def rate_together(advice, cores):
    """What a sample takes: computing, the copy of its results, and what filling lacks of the cores that computing leaves; no rate is above that of a
    single stage (tests/unit/api/test_advice.c has the cases)."""
    stages = {s["stage"]: s for s in advice["stages"] if s["per_second"]}
    fill, work = advice["stages"][0], advice["stages"][1]
    busy = {name: s["cores"] / s["per_second"] for name, s in stages.items()}
    took = 1 / work["per_second"] + busy.get("write", 0)
    at_once = min(fill["threads"], cores)
    lacking = busy.get(fill["stage"], 0) - min(max(cores - work["cores"], 0), at_once) * took
    return min(1 / (took + max(lacking, 0) / at_once), *(s["per_second"] for s in stages.values()))


def check_rates(advice):
    """What bounds, and the time at that rate; and that a thread more is said to need a core, where there is none for it."""
    rates = of_stage(advice)
    known = {k: r for k, r in rates.items() if r is not None}
    check(list(rates) == ["draw", "encode", "write"] and all(r > 0 for r in known.values()), rates)
    check(advice["cores"] == len(os.sched_getaffinity(0)), advice["cores"])
    rate, slowest = rate_together(advice, advice["cores"]), min(known, key=known.get)
    check(advice["bound"] == (slowest if rate >= 0.95 * rate_together(advice, 1e9) else "cores"), advice["bound"], rates)
    check(abs(advice["per_second"] / rate - 1) < 1e-6, advice["per_second"], rate)
    check(abs(advice["seconds"] * rate / advice["samples"] - 1) < 1e-6, advice["seconds"], rates, advice["samples"])
    threads = next(s["threads"] for s in advice["stages"] if s["stage"] == "encode") + 1
    more = next(c for c in advice["changes"] if c["options"] == f"--threads {threads}")
    check(more.get("cores", 0) == (threads if threads > advice["cores"] else 0), more)


def numbers_are(effect, config, options):
    """Do the results of these options differ from those without as they are said to?"""
    bits = []
    for name, words in (("plain", []), ("changed", options)):
        shutil.rmtree(name, ignore_errors=True)
        encode(config, "--out", name, *words)
        bits.append(read_all(name))
    near = [numbers_of(f"{name}/results.blocks")[1] for name in ("plain", "changed")]
    distance = sum((a - b) ** 2 for a, b in zip(*near)) / sum(a * a for a in near[0])
    check((bits[0] == bits[1]) == (effect == "same"), effect, options)
    check(effect == "same" or (distance < 1e-3) == (effect == "bits"), effect, options, distance)


def read_all(folder):
    return export(f"{folder}/results.blocks") + export(f"{folder}/results.blocks", "children")


def test_changes_are_planned():
    """Bytes are those of a plan with the option, and the results differ as it is said."""
    config = write_encoder(batch_size=2, H_cycles=2, L_cycles=3, count=40)
    advice, plan = advice_of(config)
    check_rates(advice)
    said = {c["options"]: c for c in advice["changes"]}
    wanted = ["--batch_size 8", "--threads 2", "--precision bfloat16", "--H_cycles 1", "--L_cycles 2"]
    check(set(wanted) <= set(said) and "--batch_size 32" not in said, list(said))  # 32 is more than a block
    for options, change in said.items():
        other = json.loads(run("plan", config, *options.split(), "--json")[0])
        check(change["charged_bytes"] == other["process"]["charged_bytes"], options, change, other["process"]["charged_bytes"])
        check(change["fits"] and change["at_best"] == (options.split()[0] in ("--threads", "--num_workers")), change)
    for options in wanted:
        numbers_are(said[options]["results"], config, options.split())
    report, _ = run("plan", config)
    run("plan", config, "--html", "page.html")
    for words in ("What limits it", "What would change it", "Risks", "--H_cycles 1", "Safe as it is", "another model: other results"):
        check(words in " ".join(report.split()) and words in read("page.html").decode(), words, report)
    # what the config says already is no change
    least = advice_of(write_encoder(batch_size=16, H_cycles=1, L_cycles=1, precision="bfloat16"))[0]
    check(not {c["options"].split()[0] for c in least["changes"]} & {"--batch_size", "--precision", "--H_cycles", "--L_cycles"}, least["changes"])


def test_cores_are_shared():
    """A tiny model: its stages together take more than all cores. A thread more is no gain without a core more. The clock is made up: on a busy machine
    computing alone would bound it."""
    cores = len(os.sched_getaffinity(0))
    config = write_encoder(count=100000, L_cycles=1, patch_size=20, threads=cores, pooling_method="avg")
    racing = {**racing_environment(), "XDG_CACHE_HOME": os.path.abspath("cache")}
    advice = json.loads(run("plan", config, "--json", env=racing)[0])["advice"]
    check_rates(advice)
    check(advice["bound"] == "cores", advice)
    report = " ".join(run("plan", config, env=racing)[0].split())
    check(f"more than this machine's {cores} core" in report and f"on {cores + 1} cores, this machine has {cores}" in report, report)


def test_disk_that_is_too_small():
    """What is safe is so: its plan needs no more than is free, and has nothing to advise."""
    free = shutil.disk_usage(".").free
    documented = {**{k: None for k in SMALL}, "num_layers": 1, "H_cycles": 1, "L_cycles": 1}  # as many bytes of results, less to measure
    config = write_encoder(**documented, out="large")
    parts = DRAW.randrange(2, 9)
    count = str(free * parts // 92929)
    advice, _ = advice_of(config, "--count", count)
    disk = next(r for r in advice["risks"] if r["risk"] == "disk")
    check(disk["bad"] and "short" in disk["text"] and "refused before the first text" in disk["text"], disk)
    at = re.search(r"full after ([\d,]+) of ([\d,]+) texts", disk["text"])
    full, of = (int(n.replace(",", "")) for n in at.groups())
    check(of == int(count) and abs(full * parts / of - 1) < 0.2, full, of, parts)
    safe = advice["safe"]
    check(re.fullmatch(r"--part 1/\d+", safe["options"]) and safe["disk_bytes"] < free and parts < safe["parts"] <= parts + 3, safe, parts)
    part, plan = advice_of(config, "--count", count, *safe["options"].split())
    check(plan["disk"]["bytes"] == safe["disk_bytes"] and part["safe"]["options"] == "", plan["disk"], part["safe"])
    half = advice_of(config, "--count", count, "--part", "2/2")[0]["safe"]
    check(re.fullmatch(r"--part \d+/\d+", half["options"]) and int(half["options"].split("/")[1]) == 2 * half["parts"], half)
    refused(5, "short", "encode", config, "--text_format", "grammar", "--count", count)
    small = advice_of(write_encoder())[0]
    check(not any(r["bad"] for r in small["risks"] if r["risk"] in ("disk", "memory")) and small["safe"]["options"] == "", small)


def test_what_is_there_needs_no_disk():
    config = write_encoder(count=20)
    encode(config)
    disk = next(r for r in advice_of(config)[0]["risks"] if r["risk"] == "disk")
    check(not disk["bad"] and "reserved already; 20 of 20 texts are done" in disk["text"], disk)


def test_what_is_done_takes_no_time():
    """A run that ended by itself after some blocks: the time is that of the others."""
    config = write_encoder(count=4000, block_texts=16, L_cycles=8)
    run("encode", config, "--time_limit", "0.05s", code=75)
    done = int(re.search(r"(\d+) of (\d+) blocks", " ".join(run("results", "ls", "out/results.blocks")[0].replace(",", "").split()))[1])
    check(0 < done < 250, done)
    advice, _ = advice_of(config)
    check(advice["done"] == 16 * done, advice["done"], done)
    said = " ".join(run("plan", config, "--time_limit", "0.001s")[0].split())
    check(re.search(rf"{done} blocks? (is|are) done already; the rest takes", said) and f"of {250 - done} blocks that are left" in said, said)
    check(abs(advice["seconds"] * advice["per_second"] / (4000 - 16 * done) - 1) < 1e-6, advice)


def read_bytes(*words, env):
    """How many a command has asked the system for."""
    child = subprocess.Popen([cli_tests.COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{child.pid}/io") as file:
        count = int(re.search(r"rchar: (\d+)", file.read())[1])
    check(child.wait() == 0, words)
    return count


def test_weights_are_read_once():
    """A plan reads the file once for each precision that it looks at, however many changes it plans."""
    keys = {"hidden_size": 128, "num_layers": 2}
    weights_for("w.safetensors", **keys)
    size = os.path.getsize("w.safetensors")
    config = write_encoder(**keys)
    racing = racing_environment()  # where kernels are measured, the plan is made once more; on a busy machine that is so again and again
    for _ in range(2):  # kernels are known then, as far as they will be
        run("plan", config, env=racing), run("plan", config, "--weights", "w.safetensors", env=racing)
    more = read_bytes("plan", config, "--weights", "w.safetensors", env=racing) - read_bytes("plan", config, env=racing)
    check(1.5 * size < more < 3.5 * size, more, size)


def test_where_nothing_can_be_written():
    put("file", "")
    for words in (["--out", "file/below"], ["--cache_dir", "file/below"], ["--cache_dir", "file"], ["--cache_dir", "cache", "--cache_size", str(shutil.disk_usage(".").free * 2)]):
        advice, _ = advice_of(write_encoder(), *words)
        name = "results" if words[0] == "--out" else "cache"
        risk = next(r for r in advice["risks"] if r["risk"] == name)
        check(risk["bad"] and advice["safe"] is None, risk, advice["safe"])
        check("Not safe as it is" in run("plan", write_encoder(), *words)[0], words)
    encode(write_encoder())
    advice, _ = advice_of(write_encoder(H_cycles=2))
    risk = next(r for r in advice["risks"] if r["risk"] == "results")
    check(risk["bad"] and "another configuration" in risk["text"] and advice["safe"] is None, risk)


def test_budget_that_is_too_small():
    config = write_encoder(batch_size=16, H_cycles=3, image_size=80, hidden_size=64)
    needs = json.loads(run("plan", config, "--json")[0])["process"]["charged_bytes"]
    _, err = run("plan", config, "--budget", str(needs - 4096), code=3)
    options = re.search(r"; it fits with (.*): ", unfolded(err))
    check(options, err)
    check(json.loads(run("plan", config, "--budget", str(needs - 4096), *options[1].split(), "--json")[0])["process"]["charged_bytes"] < needs, err)
    # the largest batch that fits is named; what changes the results says so
    one, four = (json.loads(run("plan", config, "--batch_size", n, "--json")[0])["process"]["charged_bytes"] for n in ("1", "4"))
    check(one < four, one, four)
    _, err = run("plan", config, "--budget", str(four), code=3)
    named = re.search(r"; it fits with --batch_size (\d+): ", unfolded(err))
    check(named and int(named[1]) >= 4 and "rounded" not in err, err)
    run("plan", config, "--budget", str(four), "--batch_size", str(int(named[1]) + 1), code=3)
    _, err = run("plan", config, "--budget", str(one - 4096), code=3)
    check("it fits with" not in err or ("--precision" in err) == ("rounded differently" in err), err)
    _, err = run("plan", config, "--budget", "2MB", code=3)
    check("it fits with" not in err, err)


def test_texts_that_are_tried():
    lines = ["a\n", "b" * 400 + "\n", "\U0001f600\n"]
    put("t.txt", "".join(DRAW.choice(lines) for _ in range(90)))
    of = read("t.txt").decode().splitlines()
    advice, _ = advice_of(write_encoder(texts="t.txt", text_format=None, count=None, batch_size=1, block_texts=10, image_size=224, patch_size=16))
    texts = next(r for r in advice["risks"] if r["risk"] == "texts")["text"]
    tried = [of[10 * block] for block in range(9)]  # the first of each block
    for word, count in ((" are longer", sum(len(t) > 300 for t in tried)), (" have characters", sum(ord(t[0]) > 0xffff for t in tried))):
        check((f" {count}{word}" in texts) if count else (word not in texts), word, count, texts)
    check("of 9 texts" in texts, texts)
    put("t.txt", "fine\n" * 90)
    check("all are as they are meant" in " ".join(run("plan", write_encoder(texts="t.txt", text_format=None, count=None, image_size=224, patch_size=16))[0].split()), "no remark")
    check("for there are none yet" in " ".join(run("plan", write_encoder(text_format=None))[0].split()), "a grammar's texts")


def test_limit_of_the_plan():
    config = write_encoder(count=100000, L_cycles=50, time_limit="1s")
    limit = next(r for r in advice_of(config)[0]["risks"] if r["risk"] == "time limit")
    check(limit["bad"] and "the same command" in limit["text"], limit)
    out, _ = run("plan", config)
    runs = re.search(r"after about ([\d,]+) of ([\d,]+) blocks; the same command goes on, (\d+) runs in all", " ".join(out.split()))
    made, blocks, count = (int(n.replace(",", "")) for n in runs.groups())
    check(count == -(-blocks // made), made, blocks, count)
    enough = next(r for r in advice_of(write_encoder(count=20, time_limit="10h"))[0]["risks"] if r["risk"] == "time limit")
    check(not enough["bad"], enough)


def test_another_model_is_measured_anew():
    """Where measuring one ended because its time was over, another is not taken for it: under a clock that races."""
    racing = {**racing_environment(), "PL_PRELOAD_CLOCK_STEP_NS": "5000000000"}
    config = write_encoder(hidden_size=32, L_cycles=4)
    said = ["measuring kernels" in run("plan", config, *words, env=racing)[1]
            for words in ([], [], ["--hidden_size", "48"], ["--precision", "float16"])]
    check(said == [True, False, True, True], said)


# ---- trainings ----


def write_training(**keys):
    write_text()
    return write_config(model={"width": 32, "heads": 2, "layers": 2}, train={"steps": 40, "eval_every": 16, "eval_batches": 2, "checkpoint_every": 16, **keys})


def step_seconds(plan, program):
    return next(p["seconds"] for p in plan["programs"] if p["name"] == program)


def check_training(advice, plan):
    """The time is that of steps and evaluations, and of what else bounds it; steps are those of the config."""
    work, rates = plan["work"], {s["stage"]: s["per_second"] for s in advice["stages"]}
    check("train" in rates and len(rates) == 2, rates)
    rate = rate_together(advice, advice["cores"])
    check(abs(advice["per_second"] / rate - 1) < 1e-6, advice["per_second"], rate)
    check(abs(advice["seconds"] * rate / advice["samples"] - 1) < 1e-3, advice["seconds"], rate, advice["samples"])


def test_training():
    config = write_training()
    advice, plan = advice_of(config)
    work = plan["work"]
    check(work["items"] == 40 and work["evaluations"] == 3 and work["checkpoints"] == 3 and len(work["trainings"]) == 1, work)
    check(advice["samples"] == 40 * 8 and advice["done"] == 0, advice["samples"])
    check_training(advice, plan)
    steps = 40 * step_seconds(plan, "train") + 3 * 2 * step_seconds(plan, "evaluate")
    check(abs(work["trainings"][0]["seconds"] / steps - 1) < 1e-6, work, steps)
    check(work["seconds"] >= steps, work["seconds"], steps)  # checkpoints and data come on top
    said = {c["options"]: c for c in advice["changes"]}
    check({"--micro_batch 8", "--gradient_checkpointing full", "--mixed_precision bf16", "--optimizer_state bf16", "--threads 2"} <= set(said), list(said))
    for options, change in said.items():
        other = json.loads(run("plan", config, *options.split(), "--json")[0])
        check(change["charged_bytes"] == other["process"]["charged_bytes"], options, change, other["process"]["charged_bytes"])
    check(said["--mixed_precision bf16"]["results"] == "bits" and said["--gradient_checkpointing full"]["results"] == "same", said)
    report, _ = run("plan", config)
    run("plan", config, "--html", "page.html")
    words = " ".join(report.split())
    for text in ("All of the work", "40 steps", "3 evaluations, 3 checkpoints", "What limits it", "What would change it", "--gradient_checkpointing full", "Risks",
                 "nothing is asked for later", "are free on this machine", "Safe as it is"):
        check(text in words and text in " ".join(read("page.html").decode().split()), text, report)
    check(all(len(line) <= 80 for line in report.splitlines()), report)
    # what it says of a change in results is so
    for options, effect in (("--gradient_checkpointing full", "same"), ("--micro_batch 8", "same"), ("--mixed_precision bf16", "bits")):
        weights = []
        for words in ([], options.split()):
            shutil.rmtree("out", ignore_errors=True)
            run("train", config, "--quiet", "--steps", "3", *words)
            weights.append(read("out/checkpoints/step-00000003/model.safetensors"))
        check((weights[0] == weights[1]) == (effect == "same"), options)


def test_training_of_epochs():
    advice, plan = advice_of(write_training(steps=None, epochs=3))
    work = plan["work"]
    check(work["items"] == 3 * work["epoch_steps"] > 0, work)
    report = " ".join(run("plan", "config.yaml")[0].split())
    check(f"3 epochs of {work['epoch_steps']:,}" in report and "ends early" not in report and work["early_stopping_patience"] == 0, report)
    report = " ".join(run("plan", "config.yaml", "--early_stopping_patience", "2")[0].split())
    check("It ends early if 1 evaluation in a row brings no better loss." in " ".join(run("plan", "config.yaml", "--early_stopping_patience", "1")[0].split()), "")
    check("ends early" not in run("plan", "config.yaml", "--early_stopping_patience", "1000")[0], "more than there are evaluations")
    check("checkpoints. It ends early if 2 evaluations in a row bring no better loss." in report, report)


def test_trainings():
    """Several in one config: each with its steps, those that are done taken off; the time is their sum."""
    make_chains()
    config = write_chain(model={"sequence": 30}, chain={"stages": 2})
    put(config, read(config).decode().replace('"replaced": 1, ', ""))  # each stage has its own
    work = json.loads(run("plan", config, "--json")[0])["work"]
    names = [t["training"] for t in work["trainings"]]
    check(len(names) > 1 and work["items"] == 6 * len(names) and all(t["items"] == 6 and t["charged_bytes"] > 0 for t in work["trainings"]), work)
    check(f"{6 * len(names)} steps in {len(names)} trainings" in " ".join(run("plan", config)[0].split()), names)
    early = json.loads(run("plan", config, "--eval_every", "1", "--early_stopping_patience", "3", "--json")[0])["work"]
    check(early["early_stopping_patience"] == 3 and work["early_stopping_patience"] == 0, early, work)
    run("train", config, "--quiet")
    done = " ".join(run("plan", config, "--resume=auto")[0].split())
    check(f"{6 * len(names)} steps are done already" in done, done)


if __name__ == "__main__":
    main({"encode_advice": [test_changes_are_planned, test_cores_are_shared, test_disk_that_is_too_small, test_what_is_there_needs_no_disk, test_what_is_done_takes_no_time,
                            test_weights_are_read_once, test_where_nothing_can_be_written,
                            test_budget_that_is_too_small, test_texts_that_are_tried, test_limit_of_the_plan,
                            test_another_model_is_measured_anew],
          "training_advice": [test_training, test_training_of_epochs, test_trainings]})
