"""Tests of what is known of a pretrained model before it runs: its name, its identity, its memory and its times on this
machine and on another. Called as cli_tests.py is."""
import json
import os
import random
import shutil
import subprocess

import pretrained_models
from cli_tests import COMMAND, SEED, check, environment, main, refused, run, unfolded

DRAW = random.Random(SEED)


def save(folder, family="llama", **more):
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), **more).save(folder)


def write_source(name):
    with open("config.yaml", "w") as file:
        file.write(f"model: {{arch: decoder, source: {name}}}\n")
    return "config.yaml"


def plan_of(model, *more, env=None):
    """All but how long placing took."""
    told = json.loads(run("plan", model, "--json", *more, env=env)[0])
    told["arena"].pop("place_seconds", None)
    return told


def text_of(model, env=None):
    return run("generate", model, "the cat", "--temperature", "0", "--tokens", "4", env=env)[0]


def download(hub, name, family="llama"):
    """As Hugging Face's libraries keep it: links into a folder of contents."""
    at, commit = os.path.join(hub, "models--" + name.replace("/", "--")), f"{DRAW.randrange(1 << 60):040x}"
    save(os.path.join(at, "blobs"), family)
    for folder in ("refs", "snapshots/" + commit):
        os.makedirs(os.path.join(at, folder))
    with open(os.path.join(at, "refs/main"), "w") as file:
        file.write(commit)
    for file in os.listdir(os.path.join(at, "blobs")):
        os.symlink("../../blobs/" + file, os.path.join(at, "snapshots", commit, file))
    return os.path.join(at, "snapshots", commit)


def test_hub_names():
    """The download of that name, wherever the variables say that downloads are."""
    here, name = os.getcwd(), "org/tiny-1.5B"
    path = download(os.path.join(here, "hf/hub"), name, "qwen2")
    want = text_of(path)
    shutil.copytree("hf/hub", "cache/huggingface/hub", symlinks=True)
    shutil.copytree("hf/hub", "user/.cache/huggingface/hub", symlinks=True)
    plain = {k: v for k, v in environment().items() if not k.startswith(("HF_", "HUGGINGFACE_", "XDG_CACHE"))}
    places = ({"HF_HUB_CACHE": here + "/hf/hub", "HF_HOME": "/none"}, {"HF_HOME": here + "/hf"},
              {"XDG_CACHE_HOME": here + "/cache", "HOME": "/none"}, {"HOME": here + "/user", "HF_HOME": ""})
    for place in places:
        env = dict(plain, **place)
        check(text_of(name, env) == want, place)
        config = write_source(name)
        check(text_of(config, env) == want, place, "in a config")
        check(path.split("/")[-1] in run("config", name, env=env)[0], "the config names the download")
    by_name, by_path = plan_of(name, env=dict(plain, **places[0])), plan_of(path)
    check(by_name["arena"] == by_path["arena"], "another plan under its name:", by_name["arena"], by_path["arena"])


def test_unknown_names():
    """What is nowhere: which files to fetch, unless the name is no model's."""
    env = environment(HF_HUB_CACHE=os.path.abspath("hub"))
    os.makedirs("hub/models--org--part/snapshots/12ab")
    os.makedirs("hub/models--org--part/refs")
    with open("hub/models--org--part/refs/main", "w") as file:
        file.write("12ab")
    fetch = "no download of such a model in .*hub; .* fetch config.json.* from https://huggingface.co/org/other/tree/main into one folder"
    for command in ("plan", "generate", "chat"):
        refused(2, fetch, command, "org/other", env=env)
    refused(2, fetch, "plan", write_source("org/other"), env=env)
    refused(2, "org/part: its download in .*12ab has no config.json", "plan", "org/part", env=env)
    for name in ("a/b/c", "../org/other", "org/other.yaml", "x.gguf", "", "org/", "/org", "a b/c", "org/..", "x" * 5000):
        err = run("plan", name, code=2, env=env)[1]
        check("huggingface.co" not in err, name, err)


def test_contexts():
    """Each row is the plan of that context. Oracle: those plans, and the arithmetic of weights and cache."""
    for family in ("llama", "gemma2", "gpt2"):
        model = pretrained_models.Model(family, DRAW.randrange(1 << 30), context=9000)
        model.save(family)
        env = environment(XDG_CACHE_HOME=os.path.abspath("none"))
        own = DRAW.choice((100, 512, 700, 9000))
        told = plan_of(family, "--sequence", str(own), env=env)["contexts"]
        lengths = [row["length"] for row in told["rows"]]
        check(lengths == sorted({512, 2048, 8192, own}), lengths, own)
        for row in told["rows"]:
            plan = plan_of(family, "--sequence", str(row["length"]))
            check(row["charged_bytes"] == plan["process"]["charged_bytes"], family, row, plan["process"])
            places = sum(min(row["length"], model.window + 127) if model.slides(i) else row["length"] for i in range(model.layers))
            check(row["cache_bytes"] == 2 * 4 * model.key_heads * model.head_width * places, family, row)
            check(row["weight_bytes"] >= 4 * sum(len(r) for rows in model.w.values() for r in rows), family, row)
            check(row["fits"], row)
        rates = [row["items_per_second"] for row in told["rows"]]
        check(rates == sorted(rates, reverse=True) and rates[-1] > 0 and told["first_item_seconds"] > 0, told)
        check("from the instruction set" in told["basis"], told)
        check(not any(f.endswith(".json") for _, _, files in os.walk("none") for f in files), "something was measured")
        budget = told["rows"][1]["charged_bytes"]
        small = plan_of(family, "--sequence", "128", "--budget", str(budget))["contexts"]
        check(small["room_bytes"] == budget and all(r["fits"] == (r["charged_bytes"] <= budget) for r in small["rows"]), small)
        check(not small["rows"][-1]["fits"], small)
        text = run("plan", family)[0]
        check("Other contexts" in text and "this plan" in text, text)


def describe(path="machine.json", env=None, **more):
    run("machine", "--output", path, env=env)
    with open(path) as file:
        told = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(told, **more), file)
    return dict(told, **more)


def bytes_of(plan):
    return plan["threads"], plan["isa"], plan["arena"], plan["process"]


def test_machine():
    """A plan for a machine that a file describes is the plan that is made there. Oracle: this machine, lowered by the means
    that there are: a level of instructions, a core."""
    save("model")
    here = describe()
    check(json.loads(run("machine")[0])["processor"] == here["processor"], here)
    check(bytes_of(plan_of("model", "--machine", "machine.json")) == bytes_of(plan_of("model")), "this machine")
    levels = ["ref", "baseline", "avx2", "avx512", "avx512_bf16", "amx"]
    for level in levels[:levels.index(here["isa_fastest"]) + 1]:
        describe("level.json", isa=level, isa_fastest=level)
        there = plan_of("model", env=environment(PLIMSOLL_ISA=level))
        check(there["isa"] == level, there["isa"])
        check(bytes_of(plan_of("model", "--machine", "level.json")) == bytes_of(there), level)
    describe("cores.json", cores_allowed=7, cores_quota=4.5)
    check(bytes_of(plan_of("model", "--machine", "cores.json")) == bytes_of(plan_of("model", "--threads", "5")), "five threads")
    core = sorted(os.sched_getaffinity(0))[0]
    alone = subprocess.run(["taskset", "-c", str(core), COMMAND, "machine", "--out", "one.json"], env=environment(), check=False)
    check(alone.returncode == 0, "plimsoll machine on one core")
    check(bytes_of(plan_of("model", "--machine", "one.json")) == bytes_of(plan_of("model", "--threads", "1")), "one core")
    for level in levels[levels.index(here["isa"]) + 1:]:  # more than this machine has: planned, never run
        describe("more.json", isa=level, isa_fastest=level)
        check(plan_of("model", "--machine", "more.json")["isa"] == level, level)


def test_machine_limits():
    """What fits there is told, and how fast it would be."""
    save("model", context=4096)
    held = plan_of("model", "--sequence", "2048")["process"]["resident_bytes"]
    describe("small.json", memory_bytes=held, swap_bytes=0)
    told = plan_of("model", "--machine", "small.json", "--sequence", "512")["contexts"]
    check([r["fits"] for r in told["rows"]] == [True, True] and told["room_bytes"] == held, told)
    describe("small.json", memory_bytes=held - 1, swap_bytes=0)
    told = plan_of("model", "--machine", "small.json", "--sequence", "512")["contexts"]
    check([r["fits"] for r in told["rows"]] == [True, False], told)
    err = run("plan", "model", "--machine", "small.json")[1]
    check("it cannot run there" in err and "the memory and swap of that machine" in unfolded(err) and str(held - 1) in err, err)
    said = run("plan", "model", "--machine", "small.json")
    check("this machine" not in unfolded("".join(said)), said)
    refused(3, "smallest plan needs", "plan", "model", "--machine", "small.json", "--budget", "1MB")
    slow, fast = (describe("a.json", f32_operations_per_second=x, bf16_operations_per_second=None, memory_bytes_per_second=y)
                  and plan_of("model", "--machine", "a.json")["contexts"] for x, y in ((1e9, 1e8), (1e11, 1e10)))
    check("were measured on that machine" in fast["basis"], fast)
    check(all(f["items_per_second"] > s["items_per_second"] for f, s in zip(fast["rows"], slow["rows"])), slow, fast)


def test_wrong_machines():
    save("model")
    good = describe()
    for key, value, said in (("isa", "mmx", "isa is not one of"), ("schema", "plimsoll.machine/9", "its schema is plimsoll.machine/9"),
                             ("gpu", 1, "the key gpu is not known"), ("cores_online", 0, "cores_online is not a number from 1")):
        with open("wrong.json", "w") as file:
            json.dump(dict(good, **{key: value}), file)
        refused(4, f"wrong.json: {said}", "plan", "model", "--machine", "wrong.json")
    with open("wrong.json", "w") as file:
        file.write("{" * 100000)
    refused(4, "wrong.json.*", "plan", "model", "--machine", "wrong.json")
    refused(4, "none.json", "plan", "model", "--machine", "none.json")
    refused(2, "takes no operand", "machine", "model")
    refused(2, "machine.json", "plan", "model", "--machine", "machine.json", "--html", "machine.json")
    check(json.load(open("machine.json")) == good, "the file was overwritten")


if __name__ == "__main__":
    main({"own_plan": [test_hub_names, test_unknown_names, test_contexts, test_machine, test_machine_limits, test_wrong_machines]})
