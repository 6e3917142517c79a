"""Tests of infer --compare: its numbers are those of the single commands (eval, export, quantize, infer), its inputs those of what is held out,
nothing else is touched, and nothing is left behind. Called as cli_tests.py is."""
import array
import csv
import glob
import hashlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import time

import cli_tests
from chain_tests import make_chains, write_chain
from cli_tests import COMMAND, SEED, check, environment, finish, main, read, refused, run, write_config, write_text
from clouds_tests import synth, write_clouds
from encode_tests import SMALL, write_encoder
from hybrid_tests import write_hybrid
from infer_tests import load, save
from rollout_tests import write_rollout

DRAW = random.Random(SEED)
FORMS = ["f32", "bf16", "int8", "binary"]


def with_tmp():
    os.makedirs("tmp", exist_ok=True)
    return environment(TMPDIR=os.path.abspath("tmp"))


def tree():
    """All files but ours, with what they hold and when they were written."""
    found = {}
    for folder, folders, files in os.walk("."):
        folders[:] = [f for f in folders if f != "tmp"]
        for name in files:
            path = os.path.join(folder, name)
            found[path] = (hashlib.sha256(read(path)).hexdigest(), os.stat(path).st_mtime_ns)
    return found


def compare(model, *words, code=0, **options):
    """The table as JSON; nothing has changed, and nothing is left."""
    before = tree()
    out, err = run("infer", model, *words, "--compare", "--json", "--turns", "2", env=with_tmp(), code=code, **options)
    check(tree() == before, "files were touched:", set(tree().items()) ^ set(before.items()))
    check(os.listdir("tmp") == [], "left behind:", os.listdir("tmp"))
    told = json.loads(out)
    check(told["schema"] == "plimsoll.compare/1" and [v["variant"] for v in told["variants"]] == FORMS, out[:300])
    rows = {v["variant"]: v for v in told["variants"]}
    for row in rows.values():
        sound(row, told["turns"])
    return told, rows


def sound(row, turns):
    """A number, or a sentence that says why there is none."""
    for way in row["runs"]:
        why = row["why_not"] or way["why_not"]
        check((way["seconds"] is None) == bool(why) and len(way["turns"]) == (0 if why else turns), row)
        if not why:
            check(way["seconds"] > 0 and min(way["turns"]) <= way["seconds"] <= max(way["turns"]), way)
            check(way["planned_bytes"] == way["measured_bytes"] > 1e6, way)
    check(bool(row["held_out"]) != bool(row["not_judged"] or row["why_not"]), row)
    check((row["file_bytes"] is None) <= bool(row["why_not"]), row)


def same_as_eval(row, model, *words):
    """What eval prints with those weights, but for where they came from and how many items there were."""
    told = json.loads(run("eval", model, "--json", *words)[0])
    known = {k: v for k, v in told.items() if k in row["held_out"]}
    check(known == row["held_out"] and len(told) - len(known) == 3, told, row["held_out"])


def size(path):
    return os.path.getsize(path)


def about(bytes, path):
    """But for the paths in its metadata: of what it was made from, and of the config."""
    return abs(bytes - size(path)) <= 600


def trained(model, relative=1):
    """Of a model that was trained: f32 and 8 bits, whose outputs differ by less than so much of their size."""
    told, rows = compare(model)
    check(told["inputs"].startswith("16 ") and "of what is held out" in told["inputs"], told["inputs"])
    run("export", model, "--format", "safetensors", "--out", "f32.safetensors")
    run("quantize", model, "--quantized", "int8.safetensors")
    for form in ("f32", "int8"):
        check(about(rows[form]["file_bytes"], form + ".safetensors"), form, rows[form]["file_bytes"], size(form + ".safetensors"))
    same_as_eval(rows["f32"], model)
    same_as_eval(rows["int8"], model, "--weights", "int8.safetensors")
    run("export", model, "--format", "safetensors", "--out", "bf16.safetensors", "--precision", "bfloat16")
    check(about(rows["bf16"]["file_bytes"], "bf16.safetensors"), rows["bf16"]["file_bytes"], size("bf16.safetensors"))
    check(rows["bf16"]["file_bytes"] < rows["f32"]["file_bytes"], rows["bf16"])
    same_as_eval(rows["bf16"], model, "--precision", "bfloat16")
    check(all(0 < o["difference"] < relative for o in rows["bf16"]["outputs"]) and rows["bf16"]["outputs"], rows["bf16"]["outputs"])
    check(rows["f32"]["outputs"] == [] and all(0 < o["difference"] < relative for o in rows["int8"]["outputs"]) and rows["int8"]["outputs"],
          rows["int8"]["outputs"])
    return told, rows


# ---- each system ----

def train_text(model=None):
    write_text(words=3000)
    config = write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4}, **({"model": model} if model else {}))
    run("train", config)
    return config


def test_gpt():
    train_text()
    told, rows = trained("out")
    check("model.binary: blocks" in rows["binary"]["why_not"], rows)
    share = told["binary"]
    check(not share["is"] and 0 < share["share"] < 1 and abs(share["amdahl_limit"] * (1 - share["share"]) - 1) < 1e-9, share)


def test_mlp():
    train_text({"arch": "mlp", "window": 5, "layers": 2, "heads": None, "activation": "tanh"})
    told, rows = trained("out")
    check("no layers of signs" in rows["binary"]["why_not"] and told["binary"]["share"] is None, told["binary"])


def test_chain():
    make_chains()
    run("train", write_chain(train={"steps": 2, "checkpoint_every": 2}))
    trained("out")


def test_clouds():
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    # Heights are given out as distances from their mean: of a net that has hardly learnt they may be as small as the error.
    _, rows = trained("out/final", relative=math.inf)
    f32, int8 = (rows[form]["held_out"]["mae_km"] for form in ("f32", "int8"))
    check(abs(int8 - f32) < 0.5 * f32, f32, int8)


def test_hybrid():
    config = write_hybrid(train={"steps": 3, "checkpoint_every": 3})
    run("train", config)
    _, rows = trained("out")
    _, again = compare(config)  # its config in place of its folder, at its own place
    check(again["int8"]["held_out"] == rows["int8"]["held_out"], "config and folder are not one model")


def test_encoder():
    """Not judged, but held against f32; in bf16, too. Its first values are a model."""
    config = write_encoder()
    told, rows = compare(config)
    run("export", config, "--format", "safetensors", "--out", "f32.safetensors")
    run("export", config, "--format", "safetensors", "--out", "bf16.safetensors", "--precision", "bfloat16")
    run("quantize", config, "--quantized", "int8.safetensors", "--out", "other")
    for form in ("f32", "bf16", "int8"):
        check(about(rows[form]["file_bytes"], form + ".safetensors"), form, rows[form]["file_bytes"], size(form + ".safetensors"))
        check("has no command eval" in rows[form]["not_judged"], rows[form])
    for form in ("bf16", "int8"):
        check([o["name"] for o in rows[form]["outputs"]] == ["capsules", "checksums", "children"], rows[form]["outputs"])
        for o in rows[form]["outputs"]:
            check(0 < o["difference"] < (1 if o["name"] == "children" else 0.2) and -1 <= o["least_cosine"] <= o["mean_cosine"] <= 1, o)
            # which tokens are children may change, and a child then is another one
            check(o["name"] == "children" or o["least_cosine"] > 0.9, o)
    check("16 texts" in told["inputs"], told["inputs"])


def test_rollout():
    """Random numbers, since its samples come of its own steps."""
    config = write_rollout()
    told, rows = compare(config)
    check("random numbers" in told["inputs"] and "has no command quantize" in rows["int8"]["why_not"], told)
    check(0 < rows["bf16"]["outputs"][0]["difference"] < 0.2 and rows["bf16"]["file_bytes"] < rows["f32"]["file_bytes"], rows["bf16"])


def test_binary():
    """Of signs: the form of bits is judged, f32 is the same sizes, and 8 bits has nothing to do in a gpt."""
    config = train_text({**cli_tests.TINY["model"], "binary": "blocks"})
    told, rows = compare(config)
    run("export", config, "--format", "safetensors", "--packed", "--out", "bits.safetensors")
    check(about(rows["binary"]["file_bytes"], "bits.safetensors"), rows["binary"]["file_bytes"], size("bits.safetensors"))
    check(rows["binary"]["file_bytes"] < rows["f32"]["file_bytes"], rows)
    same_as_eval(rows["binary"], config, "--weights", "bits.safetensors")
    check("first values" in rows["f32"]["remark"] and "not trained" in rows["f32"]["not_judged"], rows["f32"])
    check("no layer that can be done in 8 bits" in rows["int8"]["why_not"], rows["int8"])
    check(told["binary"]["is"] and told["binary"]["binary_flops"] > 0, told["binary"])


# ---- the user's files ----

def difference(prefix, wide, name):
    """As docs/infer.md has it."""
    shape, a = load(f"{prefix}.{name}.npy")
    _, b = load(f"{wide}.{name}.npy")
    width = shape[-1]
    cosines = []
    for at in range(0, len(a), width):
        x, y = a[at:at + width], b[at:at + width]
        cosines.append(sum(p * q for p, q in zip(x, y)) / math.sqrt(sum(p * p for p in x) * sum(q * q for q in y)))
    return math.sqrt(sum((p - q) ** 2 for p, q in zip(a, b)) / sum(q * q for q in b)), sum(cosines) / len(cosines), min(cosines)


def test_calibration():
    """Options of quantize are those of its form."""
    config = write_encoder()
    _, rows = compare(config, "--samples", "3", "--method", "entropy")
    save("page.npy", "|u1", (1, SMALL["image_size"], SMALL["image_size"]), list(DRAW.randbytes(SMALL["image_size"] ** 2)))
    run("quantize", config, "--quantized", "int8.safetensors", "--out", "other", "--samples", "3", "--method", "entropy")
    run("infer", config, "page.npy", "--npy", "wide")
    run("infer", config, "page.npy", "--npy", "narrow", "--weights", "int8.safetensors")
    _, own = compare(config, "page.npy", "--samples", "3", "--method", "entropy")
    wanted = difference("narrow", "wide", "capsules")[0]
    check(abs(own["int8"]["outputs"][0]["difference"] - wanted) <= 1e-9 * wanted, own["int8"]["outputs"][0], wanted)
    _, other = compare(config)
    check(other["int8"]["outputs"] != rows["int8"]["outputs"], "another calibration is the same")


def test_own_files():
    """Differences and cosines by arithmetic; fewer items than a batch are said to be; memory is that of a single run."""
    config = write_encoder()
    side = SMALL["image_size"]
    for name, count in (("a.npy", 3), ("b.npy", 2)):
        save(name, "|u1", (count, side, side), list(DRAW.randbytes(count * side * side)))
    told, rows = compare(config, "a.npy", "images=b.npy")
    check(told["inputs"] == "the items of 2 files" and [r["batch"] for r in rows["f32"]["runs"]] == [1, 5], told["inputs"], rows["f32"])
    check(all(r["items"] == 5 for r in rows["f32"]["runs"]), rows["f32"])
    run("quantize", config, "--quantized", "int8.safetensors", "--out", "other")
    run("infer", config, "a.npy", "b.npy", "--npy", "wide")
    single = json.loads(run("infer", config, "a.npy", "b.npy", "--npy", "narrow", "--weights", "int8.safetensors", "--latency", "--json")[0])
    for o in rows["int8"]["outputs"]:
        for got, wanted in zip((o["difference"], o["mean_cosine"], o["least_cosine"]), difference("narrow", "wide", o["name"])):
            check(abs(got - wanted) <= 1e-9 * abs(wanted) + 1e-12, o, wanted)
    check(single["planned_bytes"] == single["measured_bytes"], single)
    check(abs(single["measured_bytes"] - rows["int8"]["runs"][0]["measured_bytes"]) <= 65536, single, rows["int8"]["runs"][0])
    _, rows = compare(config, "a.npy", "--batch", "2")
    check([r["batch"] for r in rows["f32"]["runs"]] == [1, 2], rows["f32"])


def test_standard_input():
    """Every process gets all of it."""
    config, lines = write_encoder(), "a ship\nthe sea\n\nwide water\n"
    with open("lines.txt", "w") as file:
        file.write(lines)
    rows, of_file = (compare(config, name, input=given)[1] for name, given in (("-", lines.encode()), ("lines.txt", b"")))
    check(all(r["items"] == 4 for name in ("f32", "bf16", "int8") for r in rows[name]["runs"]), rows)
    check([row.get("outputs") for row in rows.values()] == [row.get("outputs") for row in of_file.values()], rows, of_file)
    out, err = run("infer", config, "-", "--compare", "--json", "--turns", "1", input=b"", env=with_tmp(), code=4)
    check("standard input (-) is empty; items are needed" in out + err, out, err)


def while_running(model, name):
    """A file that lies between while forms are run."""
    process = subprocess.Popen([COMMAND, "infer", model, "--compare", "--turns", "64"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=with_tmp())
    for _ in range(600):
        found = glob.glob("tmp/*/f32.*.npy")
        if found:
            break
        time.sleep(0.05)
    check(found and process.poll() is None, "no turn is made")
    for path in glob.glob(f"tmp/*/{name}"):
        shutil.copy(path, os.path.basename(path))
    process.send_signal(signal.SIGINT)
    check(finish(process) == 130, "ended with", process.returncode)
    check(os.listdir("tmp") == [], "left behind:", os.listdir("tmp"))


def test_held_out_texts():
    """Its inputs are sequences of what is held out; and what is stopped leaves nothing."""
    train_text()
    while_running("out", "input.tokens.npy")
    data = read("input.tokens.npy")
    begin = 10 + int.from_bytes(data[8:10], "little")
    ids = array.array("i", data[begin:])
    length = cli_tests.TINY["model"]["sequence"]
    check(len(ids) == 16 * length, len(ids))
    text = read("text.txt")
    rows = [bytes(ids[at:at + length].tolist()) for at in range(0, len(ids), length)]
    check(len(set(rows)) > 8 and all(row in text[len(text) * 3 // 4:] for row in rows), rows[:3])


def test_held_out_flights():
    """Of its inputs come the predictions of eval."""
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    while_running("out/final", "input.*.npy")
    heights = [json.loads(line)["height_km"] for line in run("infer", "out/final", "images=input.images.npy", "angles=input.angles.npy")[0].splitlines()]
    predicted = [float(row["predicted_km"]) for row in csv.DictReader(read("out/final/predictions.csv").decode().splitlines())]
    for i, height in enumerate(heights):
        check(abs(height - predicted[i % len(predicted)]) <= 1e-4 * abs(height), i, height, predicted)


# ---- what does not fit, what is refused ----

def test_budget():
    """It is of each run, and not of what makes the files."""
    train_text()
    _, rows = compare("out", "--budget", "5MB", code=3)
    for form in ("f32", "int8"):
        check(all("the budget of 5000000" in way["why_not"] for way in rows[form]["runs"]) and rows[form]["held_out"], rows[form])
    _, rows = compare("out", "--budget", "1GB")
    check(all(way["seconds"] for way in rows["int8"]["runs"]), rows["int8"])


def test_forms_of_output():
    """Text in 80 columns, a page; --html - in place of the text."""
    config = write_encoder()
    out, err = run("infer", config, "--compare", "--turns", "1", "--html", "page.html", env=with_tmp())
    check(all(len(line) <= 80 for line in out.splitlines()) and "Input: 16 texts" in out, out)
    check("int8: a calibration" in err and "turn 1 of 1" in err, err)
    check(read("page.html").startswith(b"<!doctype html>") and b"least cosine" in read("page.html"), "no page")
    check(b"of the same inputs: differences and cosines" in read("page.html") and b"of what is held out" not in read("page.html"), "an encoder is not judged")
    page, err = run("infer", config, "--compare", "--turns", "1", "--html", "-", "--quiet", env=with_tmp())
    check(page.startswith("<!doctype html>") and err == "", page[:100], err)


def test_words():
    config = write_encoder()
    some = ["infer", config, "--compare"]
    for words in (["--out", "x"], ["--npy", "x"], ["--latency"], ["--brief"], ["--verbose"], ["--ledger"]):
        refused(2, f"{words[0]} is of one run, and --compare makes a table", *some, *words)
    refused(2, "--turns is of --compare", "infer", config, "x.npy", "--turns", "3")
    refused(2, "--html is of --compare", "infer", config, "x.npy", "--html", "x.html")
    refused(2, "both go to standard output", *some, "--html", "-", "--json")
    for turns in ("0", "65", "-1", "three", "1x"):
        refused(2, "from 1 to 64", *some, "--turns", turns)
    refused(2, "--batch 1 is what a comparison does anyway", *some, "--batch", "1")
    refused(2, "leave one out", *some, "--seeded", "--checkpoint", "x")
    for word in ("--quantized=x", "--set=infer.to=x", "--set=infer.latency=true", "--set=infer.files=x", "--set=infer.seeded=true"):
        refused(2, "a comparison sets .* by itself", *some, *word.split("=", 1) if word.startswith("--set") else (word,))
    refused(2, "this command does not read", *some, "--set", "pipeline.batch_size=3")
    refused(2, "this command does not read", "infer", config, "x.npy", "--samples", "3")
    run("quantize", config, "--quantized", "int8.safetensors", "--out", "other")
    refused(2, "int8.safetensors: holds weights that are packed already", *some, "--weights", "int8.safetensors", env=with_tmp())
    with open("page.html", "w") as file:
        file.write("mine")
    refused(2, "page.html", *some, "--html", "page.html", env=with_tmp())
    refused(4, "nothing was trained there yet", "infer", write_hybrid(), "--compare", env=with_tmp())
    refused(5, "no folder for the files of a comparison", *some, env=environment(TMPDIR="/nowhere"))
    check(os.listdir("tmp") == [], "left behind:", os.listdir("tmp"))


def test_refused_at_once():
    """What nobody can read is told before anything is calibrated; a run's page stays; sentences name the user's config; who reads may close the pipe."""
    config = train_text()
    for words, code, said in ((["gone.npy"], 4, "gone.npy: cannot be opened"), (["text.txt", "--scratch", "x"], 4, "text.txt:")):
        _, err = run("infer", "out", *words, "--compare", "--turns", "1", env=with_tmp(), code=code)
        check(said in err and "calibration" not in err and "turn" not in err, err)
    with open("out/plan.html", "w") as file:
        file.write("a page")
    shutil.move("out/plan.html", "kept.html")
    refused(2, "is a name that a run keeps in its folder", "infer", "out", "--compare", "--html", "out/plan.html", env=with_tmp())
    out, err = run("infer", "out", "--compare", "--html", "nowhere/x.html", env=with_tmp(), code=5)
    check("nowhere/x.html" in err and "turn" not in err, err)
    for wrong in (["--set", "data.text=gone.txt"], ["--set", "data.text=none"]):
        out, err = run("infer", config, "--compare", "--json", "--turns", "1", "--seeded", *wrong, env=with_tmp())
        check("plimsoll-compare-" not in out + err and "gone.txt" in out or "config.yaml: this command needs data.text" in out, out, err)
    process = subprocess.Popen([COMMAND, "infer", write_encoder(), "--compare", "--turns", "1", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=with_tmp(),
                               preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    process.stdout.close()
    process.stdout = None
    finish(process)
    check(os.listdir("tmp") == [], "left behind:", os.listdir("tmp"))


def test_environment():
    """What a variable says is in the config of all processes."""
    config = write_encoder()
    env = {**with_tmp(), "PLIMSOLL_MEMORY_BUDGET": "5MB"}
    out, _ = run("infer", config, "--compare", "--json", "--turns", "1", env=env, code=3)
    check("the budget of 5000000" in out, out[:500])
    out, _ = run("infer", config, "--compare", "--json", "--turns", "1", "--budget", "1GB", env=env)
    check("the budget of" not in out, out[:500])


def children(pid):
    return [int(c) for c in read(f"/proc/{pid}/task/{pid}/children").split()]


def stopped_between(config):
    """A process that has its folder and no child, stopped there, its signals heard; None: it was past that."""
    process = subprocess.Popen([COMMAND, "infer", config, "--compare", "--turns", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=with_tmp())
    while process.poll() is None and not os.listdir("tmp"):
        pass
    process.send_signal(signal.SIGSTOP)
    blocked = next(int(line.split()[1], 16) for line in read(f"/proc/{process.pid}/status").decode().splitlines() if line.startswith("SigBlk"))
    if not blocked >> signal.SIGINT - 1 & 1 and not children(process.pid):
        return process
    process.kill()
    process.wait()
    shutil.rmtree("tmp")
    return None


def test_stopped_twice():
    """Also where no child is there to be told, and by a second signal: nothing is left, and nothing more is begun."""
    config = write_encoder()
    process = None
    while not process:
        process = stopped_between(config)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    while process.poll() is None and not (begun := children(process.pid)):
        pass
    if process.poll() is None:
        os.kill(begun[0], signal.SIGSTOP)
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        os.kill(begun[0], signal.SIGCONT)
    process.communicate(timeout=60)
    check(process.returncode == 130, process.returncode)
    check(os.listdir("tmp") == [], "left behind:", os.listdir("tmp"))


GROUPS = {"compare": [test_gpt, test_mlp, test_encoder, test_rollout, test_own_files, test_standard_input, test_calibration, test_forms_of_output, test_environment, test_stopped_twice],
          "compare_systems": [test_chain, test_clouds, test_hybrid, test_binary, test_held_out_texts, test_held_out_flights],
          "compare_refused": [test_budget, test_words, test_refused_at_once]}

if __name__ == "__main__":
    main(GROUPS)
