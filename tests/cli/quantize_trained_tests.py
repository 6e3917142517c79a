"""Tests of quantize for models that are trained, and of the commands that take what it wrote: a language model in plain Python (that of chain_tests.py)
whose layers are rounded as docs/quantize.md says, the same bits however it is cut, other systems, and what bad input is answered. Called as cli_tests.py
is."""
import filecmp
import json
import math
import os
import random
import re
import shutil
import signal
import struct

import chain_tests
from chain_tests import add, blocks, linear, make_chains, row_of, tensors, write_chain
from cli_tests import SEED, await_event, check, last_checkpoint, main, read, refused, run, start, write_config, write_text
from clouds_tests import write_clouds
from hybrid_tests import write_hybrid
from quantize_tests import f32, range_of, rounded, tensors_of, unpack

DRAW = random.Random(SEED)
MODEL = {"width": 8, "layers": 2, "heads": 2, "sequence": 8, "init_std": 0.3}
TRAIN = {"batch_size": 8, "micro_batch": None, "steps": 30, "learning_rate": "1e-2", "checkpoint_every": 10, "eval_every": 10, "seed": SEED % 1000}


def train(path="config.yaml", out="out", model=None, **keys):
    if not os.path.exists("text.txt"):
        write_text(words=200)
    config = write_config(path, model={**MODEL, **(model or {})}, train={**TRAIN, **keys}, data={"validation_fraction": 0.2}, run={"out": out})
    run("train", config, "--quiet")
    return config


def quantize(*words, **options):
    """What was said; that memory was as planned, the exit code says."""
    return run("quantize", *words, **options)[1]


def evaluate(*words):
    return json.loads(run("eval", *words, "--json")[0])


def told(said, what):
    """The two numbers of a row of the table."""
    row = next(line for line in said.splitlines() if line.startswith(what))
    return [float(number) for number in row[len(what):].split()[-2:]]


# ---- the language model, in plain Python ----

def windows(sequence):
    """Tokens and targets of what is held out."""
    text = read("text.txt")
    edge = len(text) - int(len(text) * 0.2)
    return [(text[i:min(i + sequence, len(text) - 1)], text[i + 1:i + 1 + sequence]) for i in range(edge, len(text) - 1, sequence)]


def loss_of(tokens, targets, w):
    rows = [add(row_of(w["transformer.wte.weight"], token, 8), row_of(w["transformer.wpe.weight"], t, 8)) for t, token in enumerate(tokens)]
    loss = 0
    for x, target in zip(blocks(rows, w, MODEL["layers"], MODEL["heads"]), targets):
        logits = linear(x, w["transformer.wte.weight"])
        top = max(logits)
        loss += top + math.log(sum(math.exp(z - top) for z in logits)) - logits[target]
    return loss


def mean_loss(w):
    batch = windows(MODEL["sequence"])
    return sum(loss_of(*window, w) for window in batch) / sum(len(targets) for _, targets in batch)


def rounding(file, w):
    """In the place of chain_tests.linear: a layer whose weight is packed does what 8 bits do."""
    found, known = tensors_of(file), {}
    for name, numbers in w.items():
        if name + ".int8" in found:
            width = 4 * 8 if "mlp.c_proj" in name else 8
            rows = unpack(found[name + ".int8"][2], len(numbers) // width, width)
            check(all(abs(q * s - v) <= s / 2 * 1.001 for (row, s), o in zip(rows, range(0, len(numbers), width)) for q, v in zip(row, numbers[o:])), name)
            known[id(numbers)] = [q * s for row, s in rows for q in row], range_of(found, name + ".input.0")

    def instead(x, weight, bias=None):
        if id(weight) not in known:
            return linear(x, weight, bias)
        numbers, span = known[id(weight)]
        return linear([rounded(v, *span) for v in x], numbers, bias)
    return instead, len(known)


def test_layers_are_rounded_as_defined():
    """Of a model that is trained with averages those are the model."""
    method, averaged = DRAW.choice(["minmax", "percentile", "entropy"]), DRAW.choice([0, 0.9])
    config = train(ema_rate=averaged, tensorboard="false")
    said = quantize(config, "--method", method, "--samples", "50")
    best = f"out/checkpoints/" + read("out/checkpoints/best").decode().strip()
    w = {name: numbers for name, (_, numbers) in tensors(best + "/model.safetensors").items()}
    wide = mean_loss(w)
    chain_tests.linear, layers = rounding("out/int8.safetensors", w)
    try:
        narrow = mean_loss(w)
    finally:
        chain_tests.linear = linear
    loss, loss8 = told(said, "loss, nats per token")
    whole, whole8 = evaluate(config)["loss"], evaluate(config, "--weights", "out/int8.safetensors")["loss"]
    print(method, averaged, wide, narrow, whole, whole8)
    check(layers == 8 and "output" not in said, layers, said)
    check(abs(whole - wide) < 2e-5 * wide and abs(loss - whole) < 1e-5 * wide, loss, whole, wide)
    # Where x/scale is next to a half, its f32 and ours round it to different sides.
    check(abs(whole8 - narrow) < 2e-5 * narrow + abs(narrow - wide) / 20 and abs(loss8 - whole8) < 1e-5 * narrow, loss8, whole8, narrow, wide)


# ---- who takes such a file ----

def test_generates():
    """A token at a time, or a window of them, with any threads."""
    for model in ({}, {"tie_embeddings": "false"}, {"arch": "mlp", "window": 4, "heads": None, "tie_embeddings": "false"}):
        config = train(out="out" + model.get("arch", ""), model=model)
        out = "out" + model.get("arch", "")
        quantize(config)
        texts = [run("generate", config, "--weights", f"{out}/int8.safetensors", "--threads", str(threads), "--prompt", "the")[0] for threads in (1, 2, 3)]
        check(texts[0] == texts[1] == texts[2] and len(texts[0].encode()) > 30, texts)
        loss, loss8 = evaluate(config)["loss"], evaluate(config, "--weights", f"{out}/int8.safetensors")["loss"]
        check(0 < abs(loss8 - loss) < 0.01 * loss, model, loss, loss8)
        for name in os.listdir(f"{out}/checkpoints"):
            check(not name.endswith(".tmp"), name)
        os.rename(out, out + str(len(model)))


def test_a_file_in_place_of_a_checkpoint():
    """What export wrote is the checkpoint, and no run is needed beside it; an earlier checkpoint is another model."""
    config = train()
    run("export", "out", "--format", "safetensors", "--out", "whole.safetensors")
    expected = {k: v for k, v in evaluate(config).items() if k != "step"}
    first = sorted(name for name in os.listdir("out/checkpoints") if name.startswith("step"))[0]
    quantize("out", "--quantized", "run.safetensors")
    quantize("out", "--checkpoint", f"out/checkpoints/{first}", "--quantized", "first.safetensors")
    quantize(config, "--weights", "whole.safetensors", "--quantized", "file.safetensors")
    check(filecmp.cmp("run.safetensors", "file.safetensors", shallow=False), "the file and its checkpoint differ")
    check(not filecmp.cmp("run.safetensors", "first.safetensors", shallow=False) or first == read("out/checkpoints/best").decode().strip(), first)
    os.rename("out/checkpoints", "away")
    found = evaluate(config, "--weights", "whole.safetensors")
    check(found.pop("step") == 0 and found == expected, found, expected)
    refused(4, "nothing was trained there yet", "eval", config)
    refused(4, "nothing was trained there yet", "quantize", config)


def test_same_bits_however_it_is_cut():
    config = train()
    for threads in (1, 2, 3):
        quantize(config, "--quantized", f"{threads}.safetensors", "--method", "entropy", "--threads", str(threads))
        check(filecmp.cmp("1.safetensors", f"{threads}.safetensors", shallow=False), threads)
    losses = [evaluate(config, "--weights", "1.safetensors", "--threads", str(threads), "--micro_batch", str(micro))["loss"]
              for threads, micro in ((1, 1), (2, 3), (3, 8))]
    check(losses[0] == losses[1] == losses[2], losses)


def test_some_stay():
    config = train()
    said = quantize(config, "--quantized", "all.safetensors")
    worst = [line.split()[0] + ".weight" for line in said.splitlines() if re.search(r"\d x \d+ .*%$", line)]
    quantize(config, "--quantized", "some.safetensors", "--keep_f32", "3")
    packed = [name[:-5] for name in tensors_of("some.safetensors") if name.endswith(".int8")]
    check(len(worst) == 8 and sorted(packed) == sorted(worst[3:]), packed, worst)


def one(run_folder, words):
    said = quantize(run_folder, "--samples", "20")
    loss, loss8 = told(said, words)
    wide, narrow = evaluate(run_folder), evaluate(run_folder, "--weights", f"{run_folder}/int8.safetensors")
    print(run_folder, wide["loss"], narrow["loss"])
    check(abs(loss - wide["loss"]) < 2e-5 * loss and abs(loss8 - narrow["loss"]) < 2e-5 * loss, said, wide, narrow)
    check(wide["loss"] != narrow["loss"] and abs(narrow["loss"] - wide["loss"]) < 0.1 * wide["loss"], wide, narrow)
    return said


def test_chains():
    make_chains()
    run("train", write_chain(), "--quiet")
    one("out", "loss, nats per token")


def test_pages():
    run("train", write_hybrid(), "--quiet")
    one("out", "loss, nats per word")


def test_cloud_heights():
    run("train", write_clouds(), "--pretrain", "--no_loo", "--quiet")
    said = one("out/pretrain", "loss, of standardised heights")
    check("\ndense_layers.0 " in said and not any(line.startswith("conv") and line.endswith("%") for line in said.splitlines()), said)
    quantize("clouds.yaml", "--stage", "pretrain", "--out", "out/pretrain", "--samples", "20", "--quantized", "stage.safetensors")
    check(filecmp.cmp("stage.safetensors", "out/pretrain/int8.safetensors", shallow=False), "the stage is that folder")


# ---- bad input ----

def spoil(path, to, name, numbers):
    whole = bytearray(read(path))
    begin = 8 + struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:begin])
    at = begin + header[name]["data_offsets"][0]
    whole[at:at + 4 * len(numbers)] = struct.pack(f"<{len(numbers)}f", *numbers)
    with open(to, "wb") as file:
        file.write(whole)


def test_bad_input():
    config = train()
    said = quantize(config, "--samples", "1000", "--quantized", "q.safetensors")
    check(re.search(r"there are \d+ sequences, and the calibration sees no more", said), said)
    refused(4, "holds weights in 8 bits already", "quantize", config, "--weights", "q.safetensors")
    refused(4, "are of a model with model.width 8, but --width says 16", "eval", config, "--weights", "q.safetensors", "--width", "16")
    refused(4, "are of a model with model.layers 2, but --layers says 1", "generate", config, "--weights", "q.safetensors", "--layers", "1")
    refused(2, r"keep_f32 is 8, and the model has 8 layers that can be done in 8 bits", "quantize", config, "--keep_f32", "8", "--quantized", "q.safetensors")
    shutil.copy("q.safetensors", "out/int8.safetensors")
    refused(2, "written over those that they are made of", "quantize", config, "--weights", "out/int8.safetensors")
    os.remove("out/int8.safetensors")
    refused(2, "both name the weights", "eval", config, "--weights", "q.safetensors", "--checkpoint", last_checkpoint("out"))
    refused(2, "--batch_size: this command does not read train.batch_size", "quantize", config, "--batch_size", "3")
    refused(2, "--weights: this command does not read run.weights .eval, generate, encode, quantize, infer and export do.", "train", config, "--weights", "q.safetensors", "--out", "new")
    refused(2, "quantization.samples", "quantize", config, "--samples", "0")
    refused(4, "no/such/file", "eval", config, "--weights", "no/such/file")
    refused(5, "no/such/folder", "quantize", config, "--quantized", "no/such/folder/q.safetensors")
    refused(3, r"make model.width or model.layers smaller$", "quantize", config, "--budget", "16MB", "--sequence", "128", "--feed_forward", "16384")
    run("export", "out", "--format", "safetensors", "--out", "whole.safetensors")
    spoil("whole.safetensors", "nan.safetensors", "transformer.h.1.ln_2.weight", [1, math.nan])
    spoil("whole.safetensors", "large.safetensors", "transformer.h.1.ln_2.weight", 8 * [3.2e38])
    refused(4, "nan.safetensors", "quantize", config, "--weights", "nan.safetensors", "--quantized", "n.safetensors")
    refused(4, "infinite or NaN.*q.safetensors is what was there before", "quantize", config, "--weights", "large.safetensors", "--quantized", "q.safetensors")
    check(not os.path.exists("n.safetensors") and not any(".tmp" in name for name in os.listdir(".")), os.listdir("."))
    write_text("text.txt", words=2)
    refused(4, "fewer than one sequence", "quantize", write_config("short.yaml", model=MODEL, train=TRAIN, run={"out": "short"}), "--weights", "whole.safetensors")


def test_nothing_held_out():
    """Then nothing is judged."""
    write_text(words=200)
    config = write_config(model=MODEL, train={**TRAIN, "eval_every": None, "eval_batches": None}, data={"validation_fraction": 0})
    run("train", config, "--quiet")
    said = quantize(config)
    check("8 layers in 8 bits" in said and "held out" not in said, said)


def test_progress():
    config = train()
    lines = [json.loads(line) for line in run("quantize", config, "--progress", "json")[0].splitlines()]
    notes = [line["text"] for line in lines if line["event"] == "note"]
    check(lines[0]["event"] == "committed" and notes[0] == "how large is what comes to each layer" and lines[-1]["event"] == "ledger", lines)
    check(any(note.startswith("out/int8.safetensors: 8 layers") for note in notes) and not any("%" in note for note in notes), notes)
    said = quantize(config, "--keep_f32", "1")
    rows = [json.loads(line) for line in run("quantize", config, "--keep_f32", "1", "--progress", "json")[0].splitlines()]
    tables = {name: [row for row in rows if row.get("table") == name] for name in ("layers", "ranges", "held_out")}
    file = tensors_of("out/int8.safetensors")
    check(len(tables["layers"]) == 8 and [row["stays_in_f32"] for row in tables["layers"]] == [True] + 7 * [False], tables["layers"])
    check(all((row["layer"] + ".int8" in file) != row["stays_in_f32"] for row in tables["layers"]), tables["layers"])
    errors = [row["error"] for row in tables["layers"]]
    shown = [float(line.split()[4]) for line in said.splitlines() if re.search(r"\d x \d+ .*%", line)]
    check(errors == sorted(errors, reverse=True) and all(abs(100 * e - n) < 6e-4 for e, n in zip(errors, shown, strict=True)), errors, shown)
    check(all(range_of(file, row["range"]) == (f32(row["least"]), f32(row["largest"])) for row in tables["ranges"] if row["range"] in file), tables["ranges"])
    judged = {row["measure"]: (row["in_f32"], row["in_8_bits"]) for row in tables["held_out"]}
    for measure, what in (("loss", "loss, nats per token"), ("perplexity", "perplexity"), ("bits_per_byte", "bits per byte")):
        check(all(abs(a - b) < 6e-3 for a, b in zip(judged[measure], told(said, what), strict=True)), judged, said)
    check(run("quantize", config, "--quiet")[1] == "", "quiet is not")


def test_stopped():
    """Nothing is written; what was there before stays."""
    write_text(words=20000)
    config = train()
    with open("there.safetensors", "wb") as file:
        file.write(b"earlier")
    process = start("quantize", config, "--progress", "json", "--samples", "100000", "--quantized", "there.safetensors")
    await_event(process, "committed")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[0].decode()
    check(process.returncode == 130 and "nothing was written; there.safetensors is what was there before" in said, process.returncode, said)
    check(read("there.safetensors") == b"earlier" and not any("tmp" in name for name in os.listdir(".")), os.listdir("."))


GROUPS = {"quantize_trained": [test_layers_are_rounded_as_defined, test_generates, test_a_file_in_place_of_a_checkpoint, test_same_bits_however_it_is_cut,
                               test_some_stay, test_chains, test_pages, test_cloud_heights, test_bad_input, test_nothing_held_out, test_progress,
                               test_stopped]}

if __name__ == "__main__":
    main(GROUPS)
