"""Tests of the regression of cloud heights as a person runs it: its trainings one after another and the table at the end, kills and
going on, that what is held out leaves no trace, bad input. Called as cli_tests.py is. Flights come from plimsoll synth clouds, as
small as they can be; where their labels are changed, h5py does it."""
import csv
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import cli_tests
from cli_tests import SEED, Skipped, check, damage, environment, finish, last_checkpoint, main, metrics, read, refused, run, same_run, write_text

DRAW = random.Random(SEED)
FLIGHTS = ["10Feb25", "30Oct24", "04Nov24"] # the first three that synth makes
STAGES = ["pretrain", "final"] + [f"loo-{name}" for name in FLIGHTS]
DEBIAN = "/usr/bin/python3" # where the package python3-h5py is, whichever Python runs this
FOLDER_OF_FLIGHTS = "flights"


def synth(folder=FOLDER_OF_FLIGHTS, *words):
    done = subprocess.run([cli_tests.COMMAND, "synth", "clouds", folder, "--flights", "3", *(words or ("--height", "16", "--width", "16", "--labels", "10"))],
                          capture_output=True, text=True, env=environment(), timeout=60)
    if done.returncode and "libhdf5" in done.stderr:
        raise Skipped("no HDF5 here: " + done.stderr.strip())
    check(done.returncode == 0, done.returncode, done.stderr)
    return folder


def file_of(flight, which, folder=FOLDER_OF_FLIGHTS):
    """IRAI: camera; CPL: lidar; CRS: navigation."""
    return next(f"{folder}/{flight}/{name}" for name in os.listdir(f"{folder}/{flight}") if which in name)


def write_clouds(path="clouds.yaml", folder=FOLDER_OF_FLIGHTS, **keys):
    if not os.path.exists(folder):
        synth(folder)
    merged = {"pretrain_flight": FLIGHTS[0], "validation_flight": FLIGHTS[1], "loo": "true", "loo_epochs": 1, "epochs": 2, "batch_size": 4,
              "temporal_frames": 2, "channels": [2, 3, 4], "dense": [4, 3], "seed": SEED % 1000, **keys}
    with open(path, "w") as file:
        file.write("model: {arch: clouds}\nrun: {out: out, threads: 1}\n" + "".join(f"{k}: {v}\n" for k, v in merged.items())
                   + read(f"{folder}/synthetic_flights.yaml").decode())
    return path


def edit(path, what):
    """Python on the open file f, with h5py and NumPy (np)."""
    program = f"import h5py, numpy as np\nwith h5py.File({path!r}, 'r+') as f:\n    {what}\n"
    done = subprocess.run([DEBIAN, "-B", "-c", program], capture_output=True, text=True) if os.path.exists(DEBIAN) else None
    if not done or "ModuleNotFoundError" in done.stderr:
        raise Skipped("no h5py here (Debian: python3-h5py)")
    check(done.returncode == 0, done.stderr)


def predictions(out, stage):
    with open(f"{out}/{stage}/predictions.csv", newline="") as file:
        return [{k: v if k == "flight" else float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def best(folder):
    return f"{folder}/checkpoints/" + read(f"{folder}/checkpoints/best").decode().strip()


def tensors(checkpoint):
    """Name: bytes; without the statistics that a training step collects whatever its rate."""
    data = read(f"{checkpoint}/model.safetensors")
    size = struct.unpack("<Q", data[:8])[0]
    return {name: data[8 + size:][slice(*at["data_offsets"])] for name, at in json.loads(data[8:8 + size]).items()
            if name != "__metadata__" and "running" not in name}


def record(folder):
    return json.loads(read(f"{last_checkpoint(folder)}/run.json"))


def same_results(a, b, stages=STAGES):
    for stage in stages:
        check(read(f"{a}/{stage}/predictions.csv") == read(f"{b}/{stage}/predictions.csv"), "predictions of", stage, "differ")
        same_run(f"{a}/{stage}", f"{b}/{stage}")


# ---- the trainings and their table ----

def close(found, wanted, what):
    check(abs(found - wanted) <= 1e-9 * max(1, abs(wanted)), what, "is", found, "not", wanted)


def scores(rows):
    """By their definitions, from what the files say."""
    truth, errors = [r["true_km"] for r in rows], [r["predicted_km"] - r["true_km"] for r in rows]
    n, mean = len(rows), math.fsum(truth) / len(rows)
    mse, bias = math.fsum(e * e for e in errors) / n, math.fsum(errors) / n
    mae, mean_mae = math.fsum(map(abs, errors)) / n, math.fsum(abs(r["mean_km"] - r["true_km"]) for r in rows) / n
    return {"samples": n, "mae": mae, "mse": mse, "rmse": math.sqrt(mse), "mape": math.fsum(abs(e) / t for e, t in zip(errors, truth)) / n,
            "r2": 1 - mse * n / math.fsum((t - mean) ** 2 for t in truth), "mean_error": bias, "mean_predictor_mae": mean_mae, "share": mae / mean_mae,
            "std_error": math.sqrt(math.fsum((e - bias) ** 2 for e in errors) / n)}


def check_table(text, found):
    """The printed rows say what the JSON says, to three digits."""
    for row in found["trainings"]:
        line = next(line.split() for line in text.splitlines() if line.startswith(row["training"] + " "))
        numbers = [f"{row[k]:.3f}" for k in ("mae", "rmse", "r2", "mean_predictor_mae", "share")]
        check(line == [row["training"], row["held_out"], str(row["samples"]), *numbers], line, row)
    mean = next(line.split() for line in text.splitlines() if line.startswith("mean of the folds"))
    check(mean[4] == f"{found['folds']['mae']['mean']:.3f}", mean, found["folds"])


def check_results(out, text):
    found = json.loads(read(f"{out}/results.json"))
    check(found["schema"] == "plimsoll.regression/1" and found["done"] == found["stages"] == len(STAGES), found)
    check([row["training"] for row in found["trainings"]] == STAGES, found)
    folds = []
    for row in found["trainings"]:
        rows = predictions(out, row["training"])
        check({r["flight"] for r in rows} == {row["held_out"]} and row["fold"] == row["training"].startswith("loo-"), row)
        for key, wanted in scores(rows).items():
            close(row[key], wanted, f"{key} of {row['training']}")
        folds += [row] if row["fold"] else []
    for key in ("mae", "rmse", "r2", "share"):
        mean = math.fsum(row[key] for row in folds) / len(folds)
        close(found["folds"][key]["mean"], mean, f"mean {key}")
        close(found["folds"][key]["std"], math.sqrt(math.fsum((row[key] - mean) ** 2 for row in folds) / len(folds)), f"deviation of {key}")
    check_table(text, found)


def check_split(out):
    """What the mean predictor says tells what was trained on: of each flight but the one held out the first 85 % in time."""
    of = {name: predictions(out, f"loo-{name}") for name in FLIGHTS}
    check(all(len(rows) == 10 and rows == sorted(rows, key=lambda r: r["seconds"]) for rows in of.values()), "samples are missing, or in disorder")
    for stage, held_out in [("final", FLIGHTS[1])] + [(f"loo-{name}", name) for name in FLIGHTS]:
        trained = [r["true_km"] for name in FLIGHTS if name != held_out for r in of[name][:8]]
        check(abs(predictions(out, stage)[0]["mean_km"] - math.fsum(trained) / len(trained)) < 1e-6, stage, "was scaled with other labels")
    rest = predictions(out, "pretrain")
    check([r["true_km"] for r in rest] == [r["true_km"] for r in of[FLIGHTS[0]][8:]], "pretrain is judged by other samples than its last fifth")
    check(abs(rest[0]["mean_km"] - math.fsum(r["true_km"] for r in of[FLIGHTS[0]][:8]) / 8) < 1e-6, "pretrain was scaled with other labels")


def test_protocol():
    config = write_clouds()
    out, err = run("train", config)
    check(all(json.loads(read(f"out/{s}/report.json"))["difference_bytes"] == 0 for s in STAGES), "memory was not as planned", os.listdir("out"))
    check("\nAs planned, to the byte. Peak " in err, err)
    for number, stage in enumerate(STAGES, 1):
        check(f"\n{stage} ({number} of {len(STAGES)}): training\n" in err, stage, "is not announced:", err)
    check_results("out", out)
    check_split("out")
    page = read("out/results.html").decode()
    check(page.lower().startswith("<!doctype html") and all(stage in page for stage in STAGES) and "<svg" in page, page[:500])
    # Nothing is made twice; the table comes again.
    check(run("train", config, "--resume", "--quiet")[0] == out, "another table")
    refused(5, r"^plimsoll train: out/pretrain: was begun before; continue with --resume, or choose another folder", "train", config)
    refused(4, r"^plimsoll train: new: holds nothing to go on from; leave --resume out", "train", config, "--out", "new", "--resume")
    check(not os.path.exists("new"), "what was refused left a folder")
    judged_again()
    words_about_folders(config)


def judged_again():
    """eval of a stage's folder is the evaluation that it had."""
    run("eval", "out/final", "--predictions", "again.csv")
    check(read("again.csv") == read("out/final/predictions.csv"), "other predictions")
    found, row = json.loads(run("eval", "out/final", "--json")[0]), json.loads(read("out/results.json"))["trainings"][1]
    check(found["schema"] == "plimsoll.eval/1" and found["samples"] == 10 and abs(found["mae_km"] - row["mae"]) < 1e-6, found, row)
    check(re.search(rf"^MAE, km +{found['mae_km']:.4f}$", run("eval", "out/final")[0], re.M), "the text of eval")


def words_about_folders(config):
    refused(4, r"^plimsoll eval: out: holds several trainings, .* in place of clouds.yaml, such as out/final$", "eval", config)
    for command in ("eval", "train", "plan", "fit", "verify"):
        refused(2, rf"^plimsoll {command}: out: holds several trainings, .*give the config file, or one of those folders, such as out/final$", command, "out")
    refused(2, "such as out/final$", "eval", "out/")
    refused(2, r"--lock runs a plan of one training, and this config has 5: say which with --stage", "train", config, "--lock", "out/final/plan.lock", "--out", "new")


def test_one_of_them():
    config = write_clouds()
    run("train", config, "--quiet", "--no-pretrain", "--no-final")
    run("train", config, "--quiet", "--stage", f"loo-{FLIGHTS[2]}", "--out", "alone")
    for name in ("model.safetensors", "state.safetensors"):
        check(read(f"{best('alone')}/{name}") == read(f"{best(f'out/loo-{FLIGHTS[2]}')}/{name}"), name, "of a fold alone differs")
    refused(2, r"alone/checkpoints/step-\d+: was trained with other means .* training flights .*name the flights and the stage", "eval", config, "--out", "alone")
    run("eval", config, "--out", "alone", "--stage", f"loo-{FLIGHTS[2]}", "--predictions", "alone.csv")
    check(read("alone.csv") == read(f"out/loo-{FLIGHTS[2]}/predictions.csv"), "other predictions")
    refused(2, r"^plimsoll train: --stage: stage names the flight \"nix\", which flights has not; it has", "train", config, "--stage", "loo-nix")
    refused(2, r"^plimsoll train: --stage: stage must be pretrain, final, or loo- and the name of a flight", "train", config, "--stage", "fold")
    refused(2, "^plimsoll train: there is nothing to train: name pretrain_flight", "train", config, "--no-pretrain", "--no-final", "--no-loo", "--out", "x")


def test_final_begins_with_pretrained_weights():
    """At a rate that f32 takes for 0 the weights are those of the beginning. A fold begins as if nothing had been before."""
    config, still = write_clouds(), ("--learning_rate", "1e-60", "--quiet")
    run("train", config, "--no-final", "--no-loo", "--quiet")
    run("train", config, "--resume", *still)
    run("train", config, "--no-pretrain", "--out", "alone", *still)
    before = tensors(best("out/pretrain"))
    check(tensors(best("out/final")) == before, "final begins with other weights than those of pretrain")
    check(tensors(best("alone/final")) != before, "without pretrain its weights are there, too")
    for name in FLIGHTS:
        check(tensors(best(f"out/loo-{name}")) == tensors(best(f"alone/loo-{name}")) != before, f"loo-{name} has seen a pre-training")


def test_averages():
    """With averages of the weights the predictions at the end are theirs, those of eval, too; final begins with them."""
    config, still = write_clouds(), ("--learning_rate", "1e-60", "--quiet")
    more = ("--set", "train.ema_rate=0.75", "--set", "train.optimizer=adam_atan2", "--no-loo")
    run("train", config, "--quiet", *more)
    run("train", config, "--quiet", *more[2:], "--out", "plain")
    check(all(json.loads(read(f"out/{s}/report.json"))["difference_bytes"] == 0 for s in STAGES[:2]), "memory was not as planned", os.listdir("out"))
    check(predictions("out", "final") != predictions("plain", "final"), "the averages predict what the weights do")
    for stage in STAGES[:2]:
        run("eval", f"out/{stage}", "--predictions", f"{stage}.csv")
        check(read(f"{stage}.csv") == read(f"out/{stage}/predictions.csv"), stage, "eval predicts otherwise")
    run("train", config, "--no-final", "--out", "next", "--quiet", *more)
    run("train", config, "--resume", "--out", "next", *more, *still)
    check(tensors(best("next/final")) == tensors(best("next/pretrain")), "final begins with other weights than the averages of pretrain")


def test_other_commands():
    config = write_clouds()
    out, _ = run("plan", config)
    check("parameters in" in out and not os.path.exists("out/pretrain"), out[:300])
    check(json.loads(run("plan", config, "--json")[0])["schema"] == "plimsoll.plan/1", "plan --json")
    out, _ = run("fit", config, "--html", "fit.html")
    check(out.startswith("clouds.yaml\nbatch 4 samples; no budget\n"), out[:200])
    found = json.loads(run("fit", config, "--json")[0])
    chosen = found["points"][found["chosen"]["point"]]
    check(found["sample"] == 1, {k: v for k, v in found.items() if not isinstance(v, (list, dict))})
    check(abs(chosen["samples_per_second"] * chosen["seconds"] - 4) < 0.1, chosen)
    # Of 16 bits the bound is not asked for here: norms over four samples magnify what rounding does, by as much as the seed has it.
    done = subprocess.run([cli_tests.COMMAND, "verify", config, "--json"], capture_output=True, text=True, env=environment(), timeout=120)
    found = json.loads(done.stdout)
    made = [row for row in found["rows"] if "refused" not in row]
    whole = [row for row in made if "mixed_precision bf16" not in row["choices"] and "mixed_precision fp16" not in row["choices"]]
    check(done.returncode == (6 if found["failed"] else 0) and len(whole) > 10, done.returncode, found)
    check(all(row["same_bits"] and row["within"] for row in whole) and all(row["repeats"] for row in made), found)
    out, _ = run("verify", config, "--gradients", "g.safetensors")
    check("grad.cnn_layers.0.weight" in out and os.path.getsize("g.safetensors") > 8000, out)
    refused(2, "^plimsoll generate: a config whose model.arch is clouds has no command generate: it has train, eval, verify, quantize and infer$", "generate", config)
    refused(4, "^plimsoll eval: out: nothing was trained there yet; train first: plimsoll train clouds.yaml$", "eval", config)
    check("--predictions FILE" in run("eval", "--help")[0] and "--stage" in run("train", "--help")[0], "help")


# ---- ended and gone on ----

def train_killed(config, times, most, draw):
    """A training that is killed so often, after at most so many seconds each, and then goes on to its end."""
    killed = 0
    for _ in range(times):
        process = subprocess.Popen([cli_tests.COMMAND, "train", config, "--quiet", "--resume=auto"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        try:
            process.wait(draw.uniform(0, most))
        except subprocess.TimeoutExpired:
            process.kill()
        said = process.communicate(timeout=60)[1]
        check(process.returncode in (0, -signal.SIGKILL), process.returncode, said)
        killed += process.returncode != 0
    run("train", config, "--quiet", "--resume=auto")
    print("killed", killed, "times")


def test_killed_and_gone_on():
    config = write_clouds(epochs=8, loo_epochs=8)
    run("train", config, "--quiet", "--no-pretrain", "--no-final", "--no-loo", "--stage", "pretrain", "--out", "kernels") # known from now on
    began = time.monotonic()
    run("train", config, "--quiet", "--out", "whole")
    train_killed(config, 8, 0.5 * (time.monotonic() - began), DRAW)
    same_results("whole", "out")
    check(read("whole/results.json") == read("out/results.json"), "another table")
    # Killed between a training and its evaluation, and after the last one.
    os.remove("out/results.json")
    shutil.rmtree(f"out/loo-{FLIGHTS[2]}")
    for stage in ("final", f"loo-{FLIGHTS[0]}"):
        os.remove(f"out/{stage}/predictions.csv")
    # Killed after its last checkpoint was made the latest, before an older one was removed.
    shutil.copytree(cli_tests.last_checkpoint("out/final"), "out/final/checkpoints/step-00000001")
    shutil.copytree(cli_tests.last_checkpoint("out/final"), "out/final/checkpoints/step-00000002.tmp")
    run("train", config, "--quiet", "--resume")
    same_results("whole", "out")
    check(read("whole/results.json") == read("out/results.json"), "another table")


def begin(config, *words):
    """A training that has made steps."""
    process = subprocess.Popen([cli_tests.COMMAND, "train", config, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    while line := process.stderr.readline():
        if line.startswith(b"validation"):
            return process
    check(False, "it ended early:", finish(process))


def test_stopped_and_gone_on():
    # A rate at which nothing is learnt keeps it at work as long as it is asked to.
    config = write_clouds(epochs=1000000, loo="false", pretrain="false", early_stopping_patience=0)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 75)):
        process = begin(config, *(["--resume"] if os.path.exists("out") else []))
        try:
            refused(5, r"out/final: another run \(process \d+\) is using this folder", "train", config, "--resume=auto")
        finally:
            process.send_signal(number)
            said = process.communicate(timeout=60)[1].decode()
        check(process.returncode == code, number, "gave", process.returncode, said)
        again = said.strip().splitlines()[-1].split()
        check("the state is saved. Resume with:" in said and again[1:4] == ["train", config, "--resume"], said[-300:])
    before = read(f"{last_checkpoint('out/final')}/model.safetensors")
    refused(5, "out/final: was begun before; continue with --resume", "train", config)
    check(read(f"{last_checkpoint('out/final')}/model.safetensors") == before, "a refused run changed the weights")
    # The command that is printed goes on; the steps are all there then.
    done = record("out/final")["step"]
    out, err = run(*again[1:], "--steps", str(done + 3))
    check(f"going on from step {done}" in err and json.loads(read("out/results.json"))["done"] == 1, err)


# ---- no leak ----

def permute(flight):
    """Other heights on the same profiles: those that may be labels change places."""
    edit(file_of(flight, "CPL"), f"d = f['layer_descriptor/Layer_Base_Altitude']; x = d[...]; at = np.nonzero((x[:, 0] >= 0.1) & (x[:, 0] <= 2))[0]; "
         f"x[at, 0] = np.random.default_rng({SEED}).permutation(x[at, 0]); d[...] = x")


def test_held_out_labels_leave_no_trace():
    config = write_clouds(loo_epochs=3)
    run("train", config, "--quiet")
    held_out = DRAW.choice(FLIGHTS)
    permute(held_out)
    run("train", config, "--quiet", "--out", "other")
    blind = [f"loo-{held_out}"] + (["final"] if held_out == FLIGHTS[1] else [])
    for stage in STAGES:
        a, b = best(f"out/{stage}"), best(f"other/{stage}")
        same = [read(f"{a}/{name}") == read(f"{b}/{name}") for name in ("model.safetensors", "state.safetensors")]
        scaled = [json.loads(read(f"{c}/run.json"))["scalers_hash"] for c in (a, b)]
        if stage in blind: # weights, optimizer, scalers, and what is said of each picture
            check(all(same) and scaled[0] == scaled[1] and a.split("/")[-1] == b.split("/")[-1], stage, "knows of what it is judged by")
            check(metrics(f"out/{stage}") == metrics(f"other/{stage}"), stage, "was validated by what it is judged by")
            rows = [[(r["frame"], r["predicted_km"], r["mean_km"]) for r in predictions(o, stage)] for o in ("out", "other")]
            check(rows[0] == rows[1], stage, "predicts something else")
            check(predictions("out", stage) != predictions("other", stage), "the labels of", held_out, "are as they were")
        elif stage.startswith("loo-"):
            check(not any(same) and scaled[0] != scaled[1], stage, "does not learn from", held_out)


# ---- ended early, begun from others ----

def test_early_stopping():
    """With a gain that nothing reaches, the first loss stays the best, and the run ends `patience` evaluations later."""
    write_text()
    config = cli_tests.write_config(train={"steps": 60, "eval_every": 5, "checkpoint_every": 50, "early_stopping_patience": 2, "early_stopping_min_delta": 100})
    _, err = run("train", config)
    check("ended early, at step 15 of 60: the validation loss no longer fell (early_stopping_patience)" in err, err)
    found, losses = record("out"), [m["validation_loss"] for m in metrics("out") if "validation_loss" in m]
    counters = found["counters"]
    check(found["step"] == 15 and counters["complete"] == 1 and counters["early_bad"] == 2 and counters["early_best"] == losses[0], found)
    check(len(losses) == 3 and losses[2] < losses[0] and found["best"]["step"] == 15, "the best checkpoint is not the best", found, losses)
    weights = read(f"{last_checkpoint('out')}/model.safetensors")
    check("nothing was left to do: it ended early, at step 15 of 60" in run("train", config, "--resume")[1], "resume")
    check(read(f"{last_checkpoint('out')}/model.safetensors") == weights, "a run that was done went on")
    run("train", config, "--resume", "--quiet", "--early_stopping_patience", "4")
    check(record("out")["step"] == 25 and record("out")["counters"]["early_bad"] == 4, "more patience takes it no further", record("out"))
    run("train", config, "--quiet", "--early_stopping_patience", "0", "--steps", "30", "--out", "whole")
    check(record("whole")["step"] == 30, "no patience is none")
    refused(2, r"to stop early \(train.early_stopping_patience\) the validation loss is watched, but data.validation_fraction is 0", "train", config, "--out", "x",
            "--set", "data.validation_fraction=0")
    # Weights of another run: its best ones, and those alone.
    run("train", config, "--quiet", "--init_from", "out", "--learning_rate", "1e-60", "--steps", "1", "--out", "from")
    check(tensors(last_checkpoint("from")) == tensors(best("out")), "begins with other weights")
    refused(4, "^plimsoll train: nowhere: has no checkpoint to begin with; name the folder of a run", "train", config, "--out", "x", "--init_from", "nowhere")
    refused(2, r"^plimsoll train: out/checkpoints/step-\d+: is a checkpoint of another model: .*\[256, 16\] there, but .*\[256, 32\] was expected", "train", config, "--out", "x",
            "--init_from", "out", "--width", "32")
    damage(f"{best('out')}/model.safetensors")
    refused(4, rf"{best('out')}/model.safetensors: does not match its checksum .*another run with train.init_from", "train", config, "--out", "x", "--init_from", "out")


# ---- bad input ----

def test_flights_that_are_none():
    config, navigation, camera = write_clouds(), file_of(FLIGHTS[0], "CRS"), file_of(FLIGHTS[2], "IRAI")
    whole = read(navigation)

    def put(path, content):
        with open(path, "wb") as file:
            file.write(content)

    os.remove(navigation)
    refused(4, rf"{navigation}: cannot be opened: No such file or directory; it is the nFileName of flight {FLIGHTS[0]}: correct that, or data_directory$", "train", config)
    os.mkdir(navigation)
    refused(4, rf"{navigation}: is not a regular file", "train", config)
    os.rmdir(navigation)
    for content in (b"", b"no HDF5 at all\n" * 100, whole[:-100], whole[:100]):
        put(navigation, content)
        refused(4, rf"{navigation}: is no HDF5 file, or is truncated or damaged: ", "train", config)
    put(navigation, whole)
    kept = read(camera)
    put(camera, whole)
    refused(4, rf"{camera}: there is no dataset Product/Signal; \[frames, rows, columns\] is expected", "train", config)
    put(camera, kept)
    refused(4, r"nowhere/.*: cannot be opened: .* is the iFileName of", "train", config, "--data_directory", "nowhere")
    check(os.listdir("out") == ["lock"] if os.path.exists("out") else True, "what was refused left", os.listdir("out") if os.path.exists("out") else 0)
    for key in ("pretrain_flight", "validation_flight", "overweight_flight"):
        refused(2, rf"--{key}: {key} names the flight \"nix\", which flights has not; it has \[{', '.join(FLIGHTS)}\]$", "train", config, f"--{key}", "nix")
    refused(2, r"IRAI.*: its frames have 18 rows; the swath \[0, 100\] goes beyond them$", "train", config, "--set", "swath_slice=[0,100]")
    refused(2, r"frames of 4 × 16 pixels are too small for three halvings; take data with at least 8 × 8, or more rows", "train", config, "--set", "swath_slice=[0,4]")
    refused(2, r"train.micro_batch is not used when model.arch is clouds; take it out", "train", config, "--micro_batch", "2")
    refused(3, r"raise the budget to \d+ bytes", "train", config, "--budget", "1MB", "--out", "small")
    refused(5, r"^plimsoll train: /dev/null: is in the way: a folder was expected there", "train", config, "--out", "/dev/null")
    refused(5, r"^plimsoll train: /dev/null: is in the way: a folder was expected there", "train", config, "--cache", "/dev/null")
    os.makedirs("bare/bin")
    shutil.copy(cli_tests.COMMAND, "bare/bin/plimsoll")
    done = subprocess.run(["bare/bin/plimsoll", "train", config, "--out", "bare/out"], capture_output=True, text=True, env=environment())
    check(done.returncode == 1 and "reading flights needs plimsoll-hdf5.so, which is not beside Plimsoll; install libhdf5" in cli_tests.unfolded(done.stderr), done.stderr)
    # With what is a great deal for these flights it works.
    run("train", config, "--quiet", "--no-loo", "--no-final", "--batch_size", "64", "--temporal_frames", "64", "--out", "large")


def test_flights_that_say_nothing():
    config, flight = write_clouds(), FLIGHTS[0]
    base, signal_, nav = "f['layer_descriptor/Layer_Base_Altitude']", "f['Product/Signal']", "f['nav/sunAzGrd']"
    for which, what, sentence in (
            ("CPL", f"{base}[...] = -9999", rf"flight {flight} has 0 labels, and two or more are needed: .* between 0.1 and 2 km.*; leave the flight out, or"),
            ("CPL", f"d = {base}; x = d[...]; x[np.nonzero(x[:, 0] > 0)[0][1:]] = -9999; d[...] = x", rf"flight {flight} has [01] labels?, and two"),
            ("CPL", f"d = {base}; d[...] = np.where(d[...] > 0, 1, -9999)", rf"flight {flight}: its \d+ labels are all 1 km; .*: leave the flight out$"),
            ("CPL", f"del {base}", "_10feb25.hdf5: there is no dataset layer_descriptor/Layer_Base_Altitude; a number for each profile is expected"),
            ("CPL", f"x = {base}[:-3]; del {base}; {base[:-1].replace('[', '.create_dataset(')}, data=x)", r"Layer_Base_Altitude has 48 profiles, but .* has 51"),
            ("IRAI", f"x = {signal_}[0]; del {signal_}; f.create_dataset('Product/Signal', data=x)", r"Signal has 2 dimensions; \[frames, rows, columns\] is expected"),
            ("IRAI", f"x = {signal_}[:0]; del {signal_}; f.create_dataset('Product/Signal', data=x)", "Signal has no frames"),
            ("IRAI", f"x = {signal_}[:, :, :8]; del {signal_}; f.create_dataset('Product/Signal', data=x)", f"16 columns, those of flight {flight} have 8; all must be alike"),
            ("IRAI", "d = f['Time/TimeUTC']; x = d[...]; x[4] = x[2]; d[...] = x", "the time of frame 4, .* is not behind that of the frame before it, .*put the frames in"),
            ("IRAI", f"{signal_}[...] = np.nan", f"IRAI.*: none of the pixels that are used of it is a finite number; .*leave flight {flight} out$"),
            ("CRS", "f['nav/solarZenith'][...] = np.nan", "none of the 17 zenith angles of the sun is a finite number"),
            ("CRS", f"x = {nav}[:-1]; del {nav}; f.create_dataset('nav/sunAzGrd', data=x)", "nav/sunAzGrd has 16 numbers, but there are 17 frames"),
            ("CRS", f"del {nav}; f.create_dataset('nav/sunAzGrd', data=[b'abc'] * 17)", "nav/sunAzGrd does not hold numbers")):
        path = file_of(flight, which)
        kept = read(path)
        edit(path, what)
        refused(4, sentence, "train", config)
        with open(path, "wb") as file:
            file.write(kept)
    check(os.listdir("out") == ["lock"] if os.path.exists("out") else True, "what was refused left a file")
    # Pixels, azimuths and a zenith angle that are not finite are mended as documented.
    edit(file_of(flight, "IRAI"), f"d = {signal_}; x = d[...]; x[3] = np.nan; x[5, 4:9] = np.inf; d[...] = x")
    edit(file_of(flight, "CRS"), f"{nav}[...] = np.nan; f['nav/solarZenith'][2] = np.nan")
    run("train", config, "--quiet")
    check(all(math.isfinite(r["predicted_km"]) for stage in STAGES for r in predictions("out", stage)), "a prediction that is no number")


def test_frames_that_are_others():
    config = write_clouds()
    run("train", config, "--quiet", "--no-loo")
    whole, kept = read("out/frames.bin"), read("out/final/predictions.csv")
    # A picture of the flight that is judged by: found when it is read, and nothing is lost.
    rows, columns = struct.unpack_from("<II", whole, 16)
    pictures = struct.unpack_from("<Q", whole, 40)[0]
    size = -(-rows * columns // 64) * 64
    os.remove("out/final/predictions.csv")
    with open("out/frames.bin", "r+b") as file:
        for picture in range(pictures):
            at = 4096 + picture * size + DRAW.randrange(rows * columns)
            file.seek(at)
            file.write(bytes([whole[at] ^ 1]))
    refused(4, r"out/frames.bin: bytes \d+ to \d+ are damaged \(checksum of picture \d+\); delete it, it is made again from the flights$", "train", config, "--no-loo", "--resume", "--quiet")
    check(not os.path.exists("out/final/predictions.csv"), "predictions of damaged pictures")
    os.remove("out/frames.bin")
    run("train", config, "--no-loo", "--resume", "--quiet")
    check(read("out/frames.bin") == whole and read("out/final/predictions.csv") == kept, "made again it is another")
    # Frames of other flights under that name are made anew; what is not ours is not touched.
    other = write_clouds("other.yaml", synth("others", "--height", "16", "--width", "16", "--labels", "9"))
    run("train", other, "--quiet", "--no-loo", "--no-final", "--out", "elsewhere", "--cache", "out")
    check(read("out/frames.bin") != whole, "other flights, the same frames")
    run("eval", "out/final", "--predictions", "again.csv")
    check(read("again.csv") == kept and read("out/frames.bin") == whole, "other predictions")
    with open("out/frames.bin", "w") as file:
        file.write("something else\n" * 100)
    refused(5, r"out/frames.bin: exists but is no frame file, and this command would overwrite it; move it away", "eval", "out/final")
    check(read("out/frames.bin").startswith(b"something else"), "it was overwritten")
    synth("large", "--height", "64", "--width", "512", "--labels", "30")
    refused(2, r"the frame file would have \d+ bytes for \d+ pictures, more than the 1048576 that it may have; allow more", "train",
            write_clouds("large.yaml", "large"), "--set", "frame_bytes=1MiB", "--out", "too-large")


def change_digit(path):
    """The last digit of the file is another."""
    text = read(path)
    at = max(i for i, c in enumerate(text) if chr(c).isdigit())
    with open(path, "wb") as file:
        file.write(text[:at] + (b"1" if text[at:at + 1] != b"1" else b"2") + text[at + 1:])


def predicted_again(config, stage, out="out", report="results.json"):
    """A digit of what a finished stage predicted is changed, or one behind it: it is made again, and what is told of all stays as it was."""
    whole, kept = read(f"{out}/{report}"), read(f"{out}/{stage}/predictions.csv")
    for name in ("predictions.csv", "predictions.csv.xxh64"):
        path = f"{out}/{stage}/{name}"
        was = read(path)
        change_digit(path)
        check(read(path) != was, path)
        _, err = run("train", config, "--resume")
        check(f"{stage} (" in err and "predictions.csv is not as it was written" in err, err[-1500:])
        check(read(path) == was and read(f"{out}/{stage}/predictions.csv") == kept and read(f"{out}/{report}") == whole, name)
    os.remove(f"{out}/{stage}/predictions.csv.xxh64")  # as an earlier build left it
    _, err = run("train", config, "--resume")
    check("is not as it was written" not in err and read(f"{out}/{report}") == whole, err[-1500:])


def test_changed_predictions():
    config = write_clouds(loo="false", epochs=1)
    run("train", config, "--quiet")
    predicted_again(config, "final")


if __name__ == "__main__":
    main({"clouds": [test_changed_predictions, test_protocol, test_one_of_them, test_final_begins_with_pretrained_weights, test_averages, test_other_commands, test_killed_and_gone_on,
                     test_stopped_and_gone_on, test_held_out_labels_leave_no_trace],
          "early": [test_early_stopping],
          "clouds_refused": [test_flights_that_are_none, test_flights_that_say_nothing, test_frames_that_are_others]})
