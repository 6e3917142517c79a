"""Tests of trainings of arch hybrid that are named by hand (--stage NAME): every command takes the one that it is told, and what is said of the others does
not stand in its way. Called as cli_tests.py is."""
import json
import math
import os
import re

from cli_tests import check, last_checkpoint, main, metrics, read, refused, run
from hybrid_tests import NOISY, PAGES, header, lasting, write_hybrid


def tensors(path):
    return {name[5:] for name in header(path) if name.startswith("grad.")}


def test_every_command_takes_the_stage():
    """eval and verify with --stage NAME are those of the folder of that training; without a name there are several, and eval says so."""
    keys = {**json.loads(json.dumps(NOISY)), "denoiser": {"channels": 2, "depth": 2, "steps": 3, "batch_size": 3}}
    keys["n2n_pretrain"]["steps"] = 3
    config = write_hybrid(**keys)
    refused(4, "out/n2n: nothing was trained there yet; train first", "eval", config, "--stage", "n2n")
    told = {}
    for words in ([], ["--stage", "denoiser"], ["--resume"]):
        told[" ".join(words)], _ = run("train", config, "--quiet", *words)
        results = json.loads(read("out/results.json"))
        names = [row["training"] for row in results["trainings"]]
        check(names == (["denoiser"] if words else []) + ["n2n", "task"] and results["done"] == results["stages"] == len(names), words, results)
    check(told["--stage denoiser"] == told["--resume"] != told[""] and "2 of 2  trainings are done" in told[""] and "3 of 3  trainings are done" in told["--resume"], told)
    for name in ("n2n", "task", "denoiser"):
        check(run("eval", config, "--stage", name)[0] == run("eval", f"out/{name}")[0], name, "eval is of another training")
        for number, of in enumerate(([config, "--stage", name], [f"out/{name}"])):
            run("verify", "--gradients", f"g{number}.safetensors", *of)
        check(header("g0.safetensors") == header("g1.safetensors"), name, "gradients of another training")
        trained = tensors("g0.safetensors")
        check(trained and trained <= set(header(f"{last_checkpoint('out/' + name)}/model.safetensors")), name, sorted(trained))
    rows = [json.loads(run("verify", *of, "--json")[0])["rows"][0] for of in ([config, "--stage", "denoiser"], ["out/denoiser"])]
    check(rows[0] == rows[1] and rows[0]["update_share"] <= 1, rows)
    refused(4, "out: holds several trainings, each in a folder of its own; give one of those", "eval", config)
    _, err = run("verify", "--gradients", "g.safetensors", config)
    check(re.search(r"this config is 2 trainings, .* --stage NAME plans one of them: n2n, task\n", err), err)
    check(run("eval", config, "--set", "task_training.stage=n2n")[0] == run("eval", "out/n2n")[0], "by its key it is another one")
    for command in ("train", "eval", "verify", "plan", "fit"):
        check("denoiser, policy, which tries" in run(command, "--help")[0], command, "does not say which stages of pages there are")
    refused(2, "--stage: there is no stage dream", "eval", config, "--stage", "dream")


def test_what_is_said_of_a_tower():
    """A training without a tower begins whatever the config says of one; a training with one is held to it."""
    keys = {**json.loads(json.dumps(PAGES)), "dataset": {"denoiser_path": "out/denoiser"}, "page_policy": {"samples": 2, "steps": 2, "batch_size": 3},
            "n2n_pretrain": {"enabled": True, "steps": 2, "batch_size": 3}}
    keys["denoiser"].update({"channels": 2, "steps": 3, "batch_size": 3})
    plain = write_hybrid("plain.yaml", **json.loads(json.dumps(keys)))
    for name in ("denoiser", "policy"):
        run("train", plain, "--stage", name, "--quiet", "--out", "plain", "--set", "dataset.denoiser_path=plain/denoiser")
    for number, (tower, more, words) in enumerate((({"pretrained_precision": "bf16"}, {}, "brings weights in f32, and vision_encoder.pretrained_precision stores"),
                                                   ({}, {"fit": {"allow": ["frozen_bf16"]}}, "fit.allow"),
                                                   ({"features_cache": "1MB"}, {}, "features_cache keeps what the tower makes of pages as they are drawn, and dataset.denoiser_path"),
                                                   ({"pretrained_precision": "fp16", "pretrained_layers": 2},
                                                    {"finetune": {"enabled": True, "unfreeze_pretrained_layers": 1}}, "pretrained_precision"))):
        config = write_hybrid(f"c{number}.yaml", out=f"out{number}", **{**json.loads(json.dumps(keys)), "vision_encoder": {"image_size": 48, **tower},
                                                                       "dataset": {"denoiser_path": f"out{number}/denoiser"}, **more})
        for name in ("denoiser", "policy"):
            run("train", config, "--stage", name, "--quiet")
            check(lasting(f"out{number}/{name}") == lasting(f"plain/{name}"), number, name, "other bits")
        for name in ("n2n", "task"):
            refused(2, words, "plan", config, "--stage", name)
        refused(2, words, "plan", config)
    refused(2, "brings weights in f32, and vision_encoder.pretrained_precision stores", "plan", "c0.yaml", "--stage", "policy", "--set", "vision_encoder.pretrained_precision=bf16")


def test_large_pages_for_the_policy():
    """Its smallest letters are so many in a line of a large page that it cannot have them: the sentence names the key. Other trainings take such pages."""
    config = write_hybrid(**{**json.loads(json.dumps(PAGES)), "dataset": {"denoiser_path": "out/denoiser"}})
    for side, words in ((672, "the font .* would have 130 of them, and it can have 1 to 128"), (896, "a page of 896 pixels .* has no or too many lines of 13 pixels for a font of 9")):
        refused(2, f"vision_encoder.image_size {side}: the policy draws its pages in 7 sizes, and with letters of 9 pixels {words}; make vision_encoder.image_size smaller",
                "plan", config, "--stage", "policy", "--set", f"vision_encoder.image_size={side}")
        run("plan", config, "--stage", "task", "--set", f"vision_encoder.image_size={side}")
    run("plan", config, "--stage", "policy", "--set", "vision_encoder.image_size=656")


def test_tries_that_are_no_numbers():
    """A denoiser whose numbers are too large for fp16 makes no numbers of pages: nothing is learnt from that. In f32 the same one is tried."""
    keys = {**json.loads(json.dumps(PAGES)), "page_policy": {"samples": 2, "steps": 3, "batch_size": 3}, "train": {"eval_every": 3}}
    keys["denoiser"].update({"channels": 2, "steps": 3, "batch_size": 4, "lr": 5})  # what is far too large comes of that rate
    config = write_hybrid(**keys)
    run("train", config, "--stage", "denoiser", "--quiet")
    words = ["--stage", "policy", "--set", "dataset.denoiser_path=out/denoiser"]
    refused(1, "the loss is not finite at step 1, before any update: the weights that it begins with are too large, or too large for 16 bits; give others, or take "
            "train.mixed_precision: off", "train", config, *words, "--out", "narrow", "--set", "train.mixed_precision=fp16", "--quiet")
    check(not os.path.exists("narrow/policy/checkpoints/latest"), "something was kept")
    run("train", config, *words, "--out", "wide", "--quiet")
    check(all(math.isfinite(m["loss"]) for m in metrics("wide/policy") if "loss" in m), metrics("wide/policy"))


GROUPS = {"hybrid_stages": [test_every_command_takes_the_stage, test_what_is_said_of_a_tower, test_large_pages_for_the_policy, test_tries_that_are_no_numbers]}

if __name__ == "__main__":
    main(GROUPS)
