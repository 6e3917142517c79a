"""Tests of run.precision: trained models used in bf16. Each is held against itself in f32, within what roundings do; its file against its
run's checkpoint, and a cache of keys and values against a pass without one, to the bit. Called as cli_tests.py is."""
import array
import json
import math
import os
import shutil
import struct

import cli_tests
from chain_tests import make_chains, write_chain
from cli_tests import check, last_checkpoint, main, read, refused, run, write_config, write_text
from clouds_tests import synth, write_clouds
from compare_tests import train_text
from encode_tests import write_encoder
from hybrid_tests import write_hybrid
from infer_tests import flat, lines
from quantize_tests import tensors_of

NARROW = ["--precision", "bfloat16"]
HALF = ["--precision", "float16"]
WIDE = {"width": 256, "layers": 3, "heads": 4, "sequence": 16}


def evaluate(model, *words):
    return json.loads(run("eval", model, "--json", *words)[0])


def infer(model, *words):
    return lines(run("infer", model, *words)[0])


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


def is_rounded(numbers):
    """All of them to bf16."""
    return not any(x & 0xFFFF for x in array.array("I", array.array("f", numbers).tobytes()))


def rounded_alike(narrow, wide):
    """Matrices are the others rounded to nearest, of two alike to even; all else is the same. Returns how many are narrow."""
    a, b = tensors_of(narrow), tensors_of(wide)
    check(a.keys() == b.keys(), a.keys() ^ b.keys())
    count = 0
    for name, (dtype, shape, data) in a.items():
        if dtype == "F32":
            check((dtype, shape, data) == b[name], name)
            continue
        count += 1
        bits = array.array("I", b[name][2])
        expected = array.array("H", ((x + 0x7FFF + (x >> 16 & 1)) >> 16 for x in bits))
        check(dtype == "BF16" and shape == b[name][1] and len(shape) >= 2 and data == expected.tobytes(), name)
    return count


def peak(model, *words):
    """Of a command whose memory was as planned, in bytes."""
    err = run(*words[:1], model, *words[1:], "--ledger")[1]
    check("As planned, to the byte." in err, err)
    line = next(line for line in err.splitlines() if line.startswith("peak "))
    return int(line.split()[1].replace(",", ""))


def test_text():
    """Half the bytes of a large model, about the same numbers, from a file or from the run the same."""
    train_text(WIDE)
    with open("lines.txt", "w") as file:
        file.write("tea time\nshe told others\n")
    wide, narrow = evaluate("out"), evaluate("out", *NARROW)
    check(0 < abs(narrow["loss"] - wide["loss"]) < 0.01 * wide["loss"], wide["loss"], narrow["loss"])
    told = infer("out", "lines.txt", *NARROW)
    run("export", "out", "--format", "safetensors", "--out", "w.safetensors")
    run("export", "out", "--format", "safetensors", "--out", "half.safetensors", *NARROW)
    for file in ("w.safetensors", "half.safetensors"):
        check(evaluate("out", *NARROW, "--weights", file)["loss"] == narrow["loss"], file, "is not as its run")
        check(told == infer("out", "lines.txt", *NARROW, "--weights", file), file, "is not as its run")
    check(rounded_alike("half.safetensors", "w.safetensors") > 10, "no matrix is narrow")
    check(told == infer("out", "lines.txt", *NARROW, "--threads", "1"), "threads")
    check(not is_rounded(flat(told[0]["logits"])), "logits are sums in f32")
    for a, b in zip(told, infer("out", "lines.txt")):
        check(0 < distance(flat(a["logits"]), flat(b["logits"])) < 0.03, a["item"], distance(flat(a["logits"]), flat(b["logits"])))
    matrices = 4 * 3 * (4 + 8) * 256 * 256  # in bytes, of blocks alone
    for command in (["eval"], ["infer", "lines.txt"]):
        less = peak("out", *command) - peak("out", *command, *NARROW)
        check(0.4 * matrices < less, command, less, matrices)


def test_budget():
    """What f32 does not fit fits in bf16, and the refusal says so; also where the weights alone are too large."""
    write_text(words=3000)
    with open("lines.txt", "w") as file:
        file.write("tea time\n")
    model = {**WIDE, "width": 512}
    run("train", write_config(model=model, train={"steps": 1, "checkpoint_every": 1, "eval_every": 1}))
    alone = 4 * 3 * 12 * 512 * 512
    for command in (["infer", "out", "lines.txt", "--quiet"], ["generate", "out", "--tokens", "2"]):
        words = "take --precision bf16 or weights in 8 bits .plimsoll quantize."
        refused(3, f"the weights alone are .*; {words}$", *command, "--budget", str(alone))
        refused(3, f"raise the budget to .*, or {words}$", *command, "--budget", str(alone + 3000000))
        run(*command, "--budget", str(alone), *NARROW)
        refused(3, "raise the budget to .*, or take weights in 8 bits", *command, "--budget", str(alone // 2 + 2000000), *NARROW)


def test_generate():
    """Step by step, behind a cache in bf16, as the likeliest behind the same tokens without one."""
    train_text({**WIDE, "width": 64})
    prompt = "the "
    written = run("generate", "out", "--prompt", prompt, "--temperature", "0", "--tokens", "8", *NARROW)[0]
    check(written.startswith(prompt), written)
    for i in range(len(prompt), len(prompt) + 8):
        with open("so_far.txt", "w") as file:
            file.write(written[:i])
        (item,) = infer("out", "so_far.txt", *NARROW)
        likeliest = item["next"]
        near = likeliest[0]["probability"] - likeliest[1]["probability"] < 1e-4
        check(likeliest[0]["token"] == written[i] or (near and likeliest[1]["token"] == written[i]), i, written, likeliest)


def same_but_for_rounding(model, key, within):
    wide = evaluate(model)
    for words, bits in ((NARROW, 0), (HALF, 2)):  # float16 has three bits more; two are asked for
        narrow = evaluate(model, *words)
        check(wide.keys() == narrow.keys(), wide, narrow)
        check(0 < abs(wide[key] - narrow[key]) < within / 2 ** bits * abs(wide[key]), words, wide, narrow)
        check(evaluate(model, *words, "--isa", "ref")[key] != wide[key], "the reference is not narrow")
        peak(model, "eval", *words)


def test_mlp():
    train_text({"arch": "mlp", "window": 5, "layers": 2, "heads": None, "activation": "tanh"})
    same_but_for_rounding("out", "loss", 0.01)


def test_chain():
    make_chains()
    run("train", write_chain(train={"steps": 2, "checkpoint_every": 2}))
    same_but_for_rounding("out", "loss", 0.02)


def test_clouds():
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    same_but_for_rounding("out/final", "mae_km", 0.05)


def test_judged_as_trained():
    """What a training of several judges itself by is nothing that the key is of."""
    synth()
    config = write_clouds(loo="false")
    run("train", config, "--pretrain")
    text = read(config).decode()
    with open(config, "w") as file:
        file.write(text.replace("run: {out: out,", "run: {out: said, precision: bfloat16,"))
    run("train", config, "--pretrain")
    check(read("said/final/predictions.csv") == read("out/final/predictions.csv"), "what is held out is predicted in bf16")
    check(evaluate("said/final")["mae_km"] == evaluate("out/final", *NARROW)["mae_km"], "the folder's config says it")


def test_hybrid():
    """Its frozen tower, kept in fp16, too."""
    run("train", write_hybrid(train={"steps": 3, "checkpoint_every": 3}))
    same_but_for_rounding("out", "loss", 0.02)
    run("train", write_hybrid(train={"steps": 3, "checkpoint_every": 3}, vision_encoder={"pretrained_precision": "fp16"}), "--out", "half")
    same_but_for_rounding("half", "loss", 0.02)


def test_parts():
    """A training of a part of the model alone, which no program of files runs: its file is narrow, too."""
    config = write_hybrid(vision_encoder={"image_size": 48}, denoiser={"channels": 4, "depth": 2, "steps": 3, "batch_size": 3},
                          n2n_pretrain={"enabled": True, "steps": 3, "batch_size": 3})
    for part in ("denoiser", "n2n"):
        run("train", config, "--stage", part)
        folder = f"out/{part}"
        same_but_for_rounding(folder, "loss", 0.02)
        for file, words in (("w.safetensors", []), ("half.safetensors", NARROW)):
            run("export", folder, "--format", "safetensors", "--out", file, *words)
            check(evaluate(folder, *NARROW, "--weights", file)["loss"] == evaluate(folder, *NARROW)["loss"], part, file, "is not as its run")
        rounded_alike("half.safetensors", "w.safetensors")
        trained = [t[0] for name, t in tensors_of("half.safetensors").items() if not name.startswith("clip.")]
        check("BF16" in trained, part, "what was trained is not narrow")
        shutil.rmtree(folder)
        os.remove("w.safetensors"), os.remove("half.safetensors")


def test_refused():
    config = train_text()
    for words in (["train", config], ["quantize", "out"], ["verify", "out"]):
        refused(2, "this command does not read run.precision", *words, *NARROW)
    run("quantize", "out", "--quantized", "q.safetensors")
    refused(2, "run.precision bf16, but .* has weights in 8 bits.*take f32", "eval", "out", *NARROW, "--weights", "q.safetensors")
    refused(2, "run.precision bf16, but .* has weights in 8 bits", "export", "out", "--format", "safetensors", "--out", "w", *NARROW, "--weights",
            "q.safetensors")
    refused(2, "ONNX is in f32.*--format safetensors", "export", "out", "--format", "onnx", "--out", "m.onnx", *NARROW)
    refused(2, "f32, bf16 or fp16", "eval", "out", "--precision", "half")
    shutil.rmtree("out")
    train_text({**cli_tests.TINY["model"], "binary": "blocks"})
    refused(2, "run.precision bf16, but .* has a layer of signs.*take f32", "eval", "out", *NARROW)
    rows = json.loads(run("infer", "out", "--compare", "--json", "--turns", "1", *NARROW)[0])["variants"]
    check([bool(row["why_not"]) for row in rows] == [False, True, True, False], "a comparison sets the key of each form by itself", rows)


def test_too_large():
    """A weight that float16 does not hold is named; bfloat16 holds it."""
    train_text()
    path = last_checkpoint("out") + "/model.safetensors"
    data = read(path)
    name, first = "transformer.h.0.mlp.c_proj.weight", 7
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    at = begin + json.loads(data[8:begin])[name]["data_offsets"][0] + 4 * first
    with open("large.safetensors", "wb") as file:
        file.write(data[:at] + struct.pack("<f", 1e5) + data[at + 4:])
    refused(4, f'tensor "{name}", number {first} is 100000', "eval", "out", *HALF, "--weights", "large.safetensors")
    evaluate("out", *NARROW, "--weights", "large.safetensors")


def test_others():
    """Encoders and operators share the option, and have a key of their own: their weights are in 16 bits once."""
    write_encoder(image_size=64, hidden_size=512, num_heads=8, num_layers=1)
    with open("lines.txt", "w") as file:
        file.write("a text")
    run("export", "encode.yaml", "--format", "safetensors", "--out", "w.safetensors")
    bytes = os.path.getsize("w.safetensors")
    less = peak("encode.yaml", "infer", "lines.txt") - peak("encode.yaml", "infer", "lines.txt", *NARROW)
    check(less > 0.4 * bytes, less, bytes)


def test_files_are_shared():
    """The key may stand in a file: commands that do not use a trained model do not read it."""
    write_text(words=3000)
    sections = {"train": {"steps": 4, "checkpoint_every": 4, "eval_every": 4}}
    run("train", write_config(**sections), "--out", "plain")
    run("train", write_config(**sections, run={"precision": "bfloat16"}), "--out", "said")
    plain, said = (read(f"{out}/checkpoints/step-00000004/model.safetensors") for out in ("plain", "said"))
    check(plain == said, "it changes a training")
    check(evaluate("said")["loss"] == evaluate("plain", *NARROW)["loss"] != evaluate("plain")["loss"], "the run's config says it")
    err = run("train", write_config(**{"train": {**sections["train"], "steps": 6}}, run={"precision": "bfloat16"}), "--out", "plain", "--resume")[1]
    check("run.precision" not in err, err)


GROUPS = {"used_precision": [test_too_large, test_others, test_text, test_budget, test_generate, test_mlp, test_chain, test_clouds, test_judged_as_trained, test_hybrid,
                             test_parts, test_refused, test_files_are_shared]}

if __name__ == "__main__":
    main(GROUPS)
