"""Tests of plimsoll ablate: each variant is the training that train makes with these settings, the table is that of report, a stop is gone on with. Called
as cli_tests.py is."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from cli_tests import COMMAND, SEED, check, environment, finish, main, metrics, read, refused, run, same_run, start
from hybrid_tests import NOISY, lasting, write_hybrid
from report_tests import SETTINGS, TEXT

DRAW = random.Random(SEED)


def write_gpt(**train):
    with open("text.txt", "w") as file:
        file.write(TEXT)
    with open("gpt.yaml", "w") as file:
        json.dump({**SETTINGS, "model": {"arch": "gpt", **SETTINGS["model"]}, "train": {**SETTINGS["train"], "steps": 6, **train},
                   "data": {"text": "text.txt", "validation_fraction": 0.2}, "run": {"threads": 1, "out": "out"}}, file)
    return "gpt.yaml"


def best_of(out):
    return min((m["validation_loss"], m["step"]) for m in metrics(out) if "validation_loss" in m)


def test_each_is_the_training_of_its_settings():
    config = write_gpt()
    changes = {"whole": [], "narrow": ["model.width=16"], "other": ["train.learning_rate=0.01", "train.optimizer=adam_atan2"]}
    words = [name + (":" + ",".join(of) if of else "") for name, of in changes.items()]
    out, err = run("ablate", config, *words, "--html", "page.html")
    check("Results" in out and "planning 3 variants" in err and "other (3 of 3): training with train.learning_rate=0.01,train.optimizer=adam_atan2 …" in err, err)
    for name, of in changes.items():
        run("train", config, "--quiet", "--out", f"by_hand/{name}", *(word for setting in of for word in ("--set", setting)))
        same_run(f"out/{name}", f"by_hand/{name}")
        loss, step = best_of(f"out/{name}")
        check(re.search(rf"^{name} +6 +{loss:.4f} +{step} ", out, re.M), name, loss, step, out)
    check(re.search(r"^model.width +32 +16 +32$", out, re.M), out)
    page = read("page.html").decode()
    check(page.startswith("<!doctype html>") and all(name in page for name in changes), page[:300])
    # again it does nothing but the table; what train wrote beside each is its config, and report shows the same numbers
    told, _ = run("ablate", config, *words, "--resume", "--json", "--quiet")
    rows = json.loads(told)
    check(rows["schema"] == "plimsoll.runs/1" and [row["run"] for row in rows["runs"]] == list(changes), rows)
    for row in rows["runs"]:
        check(abs(row["loss"] - best_of(f"out/{row['run']}")[0]) < 1e-12, row)
    of_report = json.loads(run("report", *(f"out/{name}" for name in changes), "--json")[0])
    check([{**row, "run": 0} for row in of_report["runs"]] == [{**row, "run": 0} for row in rows["runs"]] and of_report["settings"] == rows["settings"], of_report)
    run("train", "out/narrow.yaml", "--quiet", "--steps", "8", "--resume")
    check(metrics("out/narrow")[-1]["step"] == 8, "its config trains another run")


def test_trainings_of_several():
    """Where the config is several trainings, the table shows the last of each; a later variant begins with what an earlier one has trained."""
    keys = {**json.loads(json.dumps(NOISY)), "denoiser": {"channels": 2, "depth": 2, "steps": 3, "batch_size": 3}}
    keys["n2n_pretrain"]["steps"] = 3
    config = write_hybrid(**keys)
    with_unet = "dataset.denoiser_path=out/unet/denoiser"
    words = ["unet:task_training.stage=denoiser", f"full:{with_unet}", f"no-n2n:{with_unet},n2n_pretrain.enabled=false", "no-denoiser",
             f"no-planner:{with_unet},latent_planning.enable_latent_planning=false", f"no-fusion:{with_unet},vision_encoder.fusion_type=average"]
    out, _ = run("ablate", config, *words, timeout=300)
    folders = {"unet": "unet/denoiser", "full": "full/task", "no-n2n": "no-n2n", "no-denoiser": "no-denoiser/task", "no-planner": "no-planner/task", "no-fusion": "no-fusion/task"}
    names = {name: set(lasting(f"out/{folder}")) for name, folder in folders.items()}
    has = {name: {part for part in ("denoiser", "planner", "fusion") if any(tensor.startswith(part) for tensor in names[name])} for name in folders}
    check(has == {"unet": {"denoiser"}, "full": {"denoiser", "planner", "fusion"}, "no-n2n": {"denoiser", "planner", "fusion"}, "no-denoiser": {"planner", "fusion"},
                  "no-planner": {"denoiser", "fusion"}, "no-fusion": {"denoiser", "planner"}}, has)
    check(os.path.isdir("out/full/n2n") and not os.path.exists("out/no-n2n/n2n"), "n2n")
    shown = [line.split()[0] for line in out.splitlines() if line.split() and line.split()[0] in folders]
    check(set(shown) == set(folders), out)


def test_nobody_reads_the_table():
    """train | head: what is kept of several trainings is kept, whatever becomes of standard output."""
    keys = json.loads(json.dumps(NOISY))
    keys["n2n_pretrain"]["steps"] = 3
    run("train", write_hybrid(out="read", **keys), "--quiet")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COMMAND, "train", write_hybrid(out="full", **keys), "--quiet"], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=120)
    check(done.returncode == 5 and b"the standard output cannot be written: No space left on device" in done.stderr, done)
    for words in (["train", write_hybrid(**keys)], ["ablate", write_gpt(), "a", "b", "--out", "two", "--json"]):
        process = subprocess.Popen([COMMAND, *words, "--quiet"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdout.close()
        err = process.stderr.read()
        check(process.wait(120) == 0 and not err, words, process.returncode, err)
    for out in ("out", "full"):
        check(json.loads(read(f"{out}/results.json")).keys() == json.loads(read("read/results.json")).keys() and read(f"{out}/results.html"), out)


def test_the_mean_of_two_towers():
    """fusion_type average is learned_avg with both halves equal, and nothing that is learnt: its gates are one half."""
    run("train", write_hybrid(out="mean", vision_encoder={"fusion_type": "average"}), "--quiet")
    seen = [m for m in metrics("mean") if "fusion_gate_mean" in m]
    check(seen and all(m["fusion_gate_min"] == m["fusion_gate_max"] == 0.5 for m in seen), seen)
    check(not any(name.startswith("fusion") for name in lasting("mean")), "it has weights")
    refused(2, "progressive_fusion moves the fusion.s gates, and vision_encoder.fusion_type average leaves them at one half", "plan",
            write_hybrid(vision_encoder={"fusion_type": "average", "progressive_fusion": True}))


def test_stopped_and_gone_on():
    config = write_gpt(steps=200)
    words = ["whole", "other:train.learning_rate=0.01"]
    run("ablate", config, *words, "--out", "whole", "--quiet")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start("ablate", config, *words, "--resume=auto")
        until = time.monotonic() + 60
        done = len(metrics("out/whole")) if os.path.exists("out/whole/metrics.jsonl") else 0
        while time.monotonic() < until and process.poll() is None and not (os.path.exists("out/whole/metrics.jsonl") and len(read("out/whole/metrics.jsonl").splitlines()) > done):
            time.sleep(0.002)
        process.send_signal(number)
        code = finish(process)
        check(code in (128 + number, 0), code)  # 0: it was through before
    run("ablate", config, *words, "--resume", "--quiet")
    for name in ("whole", "other"):
        same_run(f"out/{name}", f"whole/{name}")
    refused(5, "out/whole: whole was begun before; continue with --resume, or choose another folder with --out", "ablate", config, *words)


def test_a_refusal_changes_nothing():
    """Neither the configs of a run that goes on, nor the folder of one that does not begin."""
    config = write_gpt()
    run("ablate", config, "a", "b:train.learning_rate=0.01", "--quiet")
    kept = {name: read(f"out/{name}.yaml") for name in ("a", "b")}
    refused(2, r"gpt.yaml: model.width is 16 here and 32 in the saved run, which is another model.*\(b\)", "ablate", config, "a:train.learning_rate=0.02",
            "b:model.width=16", "--resume")
    refused(3, r"raise the budget to .* \(b\)", "ablate", config, "a:train.learning_rate=0.02", "b:memory.budget=1MB", "--resume")
    check({name: read(f"out/{name}.yaml") for name in kept} == kept and sorted(os.listdir("out")) == ["a", "a.yaml", "b", "b.yaml"], os.listdir("out"))
    refused(3, r"raise the budget to .* \(b\)", "ablate", config, "a", "b:memory.budget=1MB", "--out", "new")
    check(not os.path.exists("new"), os.listdir("new") if os.path.exists("new") else "")
    run("ablate", config, "a", "b:train.learning_rate=0.02", "--quiet", "--resume")
    check(b"learning_rate: 0.02" in read("out/b.yaml") and read("out/a.yaml") == kept["a"], "a resume that is taken")


def test_standard_input():
    """Read once; each variant is the training that train makes of it, and it goes on with the same text only."""
    config = write_gpt()
    text = TEXT.encode()
    words = ["a", "b:train.learning_rate=0.01", "c:data.text=text.txt"]
    run("ablate", config, "--text", "-", *words, "--quiet", input=text)
    for name, of in (("a", ()), ("b", ("--set", "train.learning_rate=0.01"))):
        run("train", config, "--text", "-", "--quiet", "--out", f"by_hand/{name}", *of, input=text)
        same_run(f"out/{name}", f"by_hand/{name}")
        check(read(f"out/{name}/stdin.txt") == text, name)
    check(not os.path.exists("out/c/stdin.txt"), "a variant with a text of its own")
    kept = read("out/a.yaml")
    refused(2, r"standard input is another text than out/a/stdin.txt.*\(a\)", "ablate", config, "--text", "-", *words, "--resume", input=b"another text " * 900)
    check(read("out/a.yaml") == kept, "out/a.yaml")
    for given in (text, b""):
        run("ablate", config, "--text", "-", *words, "--quiet", "--resume", input=given)
    refused(4, "standard input is empty", "ablate", config, "--text", "-", *words, "--out", "new", input=b"")
    check(not os.path.exists("new"), "left a folder")


def test_bad_words():
    config = write_gpt()
    for words, said in ((["a"], "2 to 8 variants after the config were expected, and there is 1"), ([], "and there are 0"),
                        ([f"v{i}" for i in range(9)], "and there are 9"), (["a", "a:model.width=16"], "two variants are called a; give each a name of its own"),
                        (["a", "../b"], "a variant is NAME or NAME:KEY=VALUE,KEY=VALUE"), (["a", "b="], "a variant is NAME or"), (["a", ""], "a variant is NAME or"),
                        (["a", "b:"], "b:: has no settings after its colon; leave the colon out"), (["a", "b:model.width"], 'b: "model.width" is no KEY=VALUE'),
                        (["a", "b:=3"], 'b: "=3" is no KEY=VALUE'), (["a", "b:no.key=3"], 'b: unknown key "no.key"'), (["a", "b:model.width=x"], "b: model.width must be an integer"),
                        (["a", "b:model.heads=5"], r"model.width 32.*\(b\)|model.heads 5.*\(b\)")):
        refused(2, said, "ablate", config, *words, "--out", "new")
    refused(3, r"the smallest plan needs .* raise the budget to .* \(b\)", "ablate", config, "a", "b:memory.budget=1MB", "--out", "new")
    check(not os.path.exists("new/a"), "a training began before all were planned")
    refused(2, "--html - and --json exclude each other", "ablate", config, "a", "b", "--json", "--html", "-")
    shutil.copy(config, "kept.txt")
    refused(2, "kept.txt", "ablate", config, "a", "b", "--out", "new", "--html", "kept.txt")
    check(not os.path.exists("new/a"), "a training began")


GROUPS = {"ablate": [test_each_is_the_training_of_its_settings, test_trainings_of_several, test_nobody_reads_the_table, test_the_mean_of_two_towers, test_stopped_and_gone_on,
                     test_a_refusal_changes_nothing, test_standard_input, test_bad_words]}

if __name__ == "__main__":
    main(GROUPS)
