"""Tests of model.binary: blocks of signs learn, the same bits however they are cut and resumed, verified, and as bits in a file, in place of a
checkpoint. Called as cli_tests.py is."""
import collections
import json
import math
import os
import random
import struct

from chain_tests import tensors
from cli_tests import SEED, check, last_checkpoint, main, metrics, read, refused, run, same_run, write_config, write_text
from hybrid_tests import write_hybrid
from quantize_tests import checksum_of, metadata_of, tensors_of, without_checksum
from resume_tests import in_pieces

MODEL = {"width": 32, "layers": 2, "heads": 4, "sequence": 32, "binary": "blocks"}
TRAIN = {"batch_size": 8, "micro_batch": None, "steps": 40, "learning_rate": "3e-3", "checkpoint_every": 10, "eval_every": 20, "seed": SEED % 1000}
BINARY = ("--set", "model.binary=blocks")
LATENT = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def write_gpt(path="config.yaml", out="out", model=None, **train):
    if not os.path.exists("text.txt"):
        write_text()
    return write_config(path, model={**MODEL, **(model or {})}, train={**TRAIN, **train}, run={"out": out})


def write_sentences():
    """All alike: what comes next hangs on more than the letter before."""
    draw = random.Random(5)
    words = (("the", "a"), ("old", "green"), ("cat", "dog"), ("sat", "ran", "slept"), ("on", "under", "by"), ("the mat", "the tree", "the river"))
    with open("text.txt", "w") as file:
        file.write("\n".join(" ".join(draw.choice(choice) for choice in words) + "." for _ in range(4000)))


def entropy(text):
    """Of its bytes, one by one, in nats: what a model knows that sees none of those before."""
    counts = collections.Counter(text)
    return -sum(n / len(text) * math.log(n / len(text)) for n in counts.values())


def test_learns():
    """More than which letters there are, which needs the blocks; memory is as planned; what is latent stays within 1. A large rate drives it there."""
    write_sentences()
    config = write_gpt(steps=300, eval_every=300, seed=5)
    _, err = run("train", config)
    check("As planned, to the byte." in err, err[-800:])
    loss = [m for m in metrics("out") if "validation_loss" in m][-1]["validation_loss"]
    check(loss < 0.8 * entropy(read("text.txt")), loss, entropy(read("text.txt")))
    run("train", config, "--quiet", "--out", "wild", "--set", "train.steps=20", "--set", "train.learning_rate=0.3", "--set", "train.weight_decay=0.5")
    weights = tensors(f"{last_checkpoint('wild')}/model.safetensors")
    sizes = [abs(x) for name, (_, numbers) in weights.items() if name.endswith(LATENT) for x in numbers]
    check(max(sizes) == 1 and sum(size == 1 for size in sizes) > 100, max(sizes), "1 is reached and not passed")
    check(max(abs(x) for x in weights["transformer.wte.weight"][1]) > 1, "what is not latent is free")


def test_same_bits():
    """Whatever the threads, the micro-batch, and how often it was interrupted; with averages too."""
    config = write_gpt(ema_rate=0.9)
    run("train", config, "--quiet", "--out", "whole")
    in_pieces(config, ["--micro_batch", "3"], ["--threads", "3"], ["--micro_batch", "1"])
    run("train", config, "--resume=auto", "--quiet")
    same_run("whole", "out")


def test_verify():
    """Every plan has the same bits, and its update is that of the definition, with the limit and without decay."""
    small = write_gpt(model={"width": 16, "layers": 1, "heads": 2, "sequence": 8}, batch_size=3, weight_decay=0.1)
    out = run("verify", small, "--set", "run.threads=1", timeout=280)[0]
    check(" 0 failed" in out.splitlines()[-1] and "16 bits" in out, out[-2000:])


def sign_bits(packed, rows, width):
    """docs/binary.md: alpha of each row, and its signs."""
    whole, words = -(-rows // 16) * 16, -(-width // 32)
    alpha = struct.unpack(f"<{whole}f", packed[:4 * whole])
    word = struct.unpack(f"<{whole * words}I", packed[4 * whole:])
    at = lambda j, p: word[j // 16 * words * 16 + p * 16 + j % 16]
    return [(alpha[j], [at(j, p // 32) >> p % 32 & 1 for p in range(width)]) for j in range(rows)]


def check_packed(whole, packed, latent):
    """All is as in the checkpoint but for what is latent: that is its signs and the means of its sizes."""
    found, numbers = tensors_of(packed), tensors(whole)
    check({name[:-7] for name in found if name.endswith(".binary")} == {name for name in numbers if latent(name)}, sorted(found))
    for name, (shape, values) in numbers.items():
        if not latent(name):
            check(found[name] == tensors_of(whole)[name], name)
            continue
        check(name not in found, name)
        for (alpha, bits), begin in zip(sign_bits(found[name + ".binary"][2], *shape), range(0, len(values), shape[1])):
            row = values[begin:begin + shape[1]]
            check(bits == [x < 0 for x in row], name, "signs")
            check(abs(alpha - sum(map(abs, row)) / len(row)) <= 1e-6 * alpha, name, alpha)


def test_packed():
    """Of the file come the same bits as of the checkpoint, at every level of this machine, in less memory."""
    config = write_gpt()
    run("train", config, "--quiet")
    out, _ = run("export", config, "--format", "safetensors", "--packed", "--out", "packed.safetensors")
    check("packed.safetensors" in out, out)
    best = json.loads(run("export", config, "--format", "safetensors", "--out", "whole.safetensors", "--json")[0])
    check(best["weights"] == len(tensors_of("packed.safetensors")), best)
    check_packed("whole.safetensors", "packed.safetensors", lambda name: name.endswith(LATENT))
    tried = 0
    for isa in ("ref", "baseline", "avx2", "avx512"):
        try:
            given = json.loads(run("eval", config, "--json", "--weights", "packed.safetensors", "--isa", isa)[0])
        except Failed:
            continue  # this machine has it not
        saved = json.loads(run("eval", config, "--json", "--isa", isa)[0])
        tried += 1
        check({**given, "step": 0} == {**saved, "step": 0}, isa, given, saved)
    check(tried >= 2, tried)
    words = ("--prompt", "the ", "--tokens", "40")
    check(run("generate", config, *words)[0] == run("generate", config, *words, "--weights", "packed.safetensors")[0], "another text")
    _, err = run("generate", config, *words, "--weights", "packed.safetensors", "--ledger")
    check("As planned" in err, err)
    arena = lambda *more: next(int(line.split()[2].replace(",", "")) for line in run("generate", config, *words, "--ledger", *more)[1].splitlines()
                               if line.startswith("arena ram"))
    latent = sum(4 * math.prod(shape) for name, (shape, _) in tensors("whole.safetensors").items() if name.endswith(LATENT))
    check(arena() - arena("--weights", "packed.safetensors") > 0.9 * latent, "the latent weights are still there")


def test_hybrid():
    """The trained tower and both recursions."""
    config = write_hybrid(reading={"words": 8, "pages": 300}, vision_encoder={"dropout": 0, "H_cycles": 1, "L_cycles": 2},
                          train={"batch_size": 16, "steps": 120, "learning_rate": 0.003, "log_every": 1, "warmup_steps": 10, "seed": 5})
    _, err = run("train", config, *BINARY)
    check("As planned, to the byte." in err, err[-800:])
    losses = [m["loss"] for m in metrics("out") if "loss" in m]
    check(sum(losses[-20:]) / 20 < 0.8 * sum(losses[:4]) / 4, losses[:4], losses[-20:])
    run("export", config, *BINARY, "--format", "safetensors", "--packed", "--out", "packed.safetensors")
    run("export", config, *BINARY, "--format", "safetensors", "--out", "whole.safetensors")
    latent = lambda name: name.endswith(".weight") and (name.startswith(("vit.encoder.layer.", "encoder.L_blocks.", "reasoner.L_level.layers."))
                                                        and "layernorm" not in name)
    check_packed("whole.safetensors", "packed.safetensors", latent)
    given = json.loads(run("eval", config, *BINARY, "--json", "--weights", "packed.safetensors")[0])
    saved = json.loads(run("eval", config, *BINARY, "--json")[0])
    check({**given, "step": 0} == {**saved, "step": 0}, given, saved)
    for weights, file in (((), "from_latent.safetensors"), (("--weights", "packed.safetensors"), "from_bits.safetensors")):  # other layers in 8 bits
        run("quantize", config, *BINARY, *weights, "--samples", "4", "--quantized", file)
    both = tensors_of("from_bits.safetensors")
    check(any(name.endswith(".binary") for name in both) and any(name.endswith(".int8") for name in both), sorted(both))
    one, other = (json.loads(run("eval", config, *BINARY, "--json", "--weights", file)[0]) for file in ("from_latent.safetensors", "from_bits.safetensors"))
    check(one == other, one, other)


def damage(path, at, byte):
    """One byte of a tensor in a copy of the file."""
    data = bytearray(without_checksum(read("packed.safetensors")))
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    name = "transformer.h.0.mlp.c_fc.weight.binary"
    offsets = json.loads(data[8:begin])[name]["data_offsets"]
    data[begin + offsets[0] + at] = byte
    with open(path, "wb") as file:
        file.write(data)


def test_refused():
    config = write_gpt(model={"width": 24}, steps=4)
    for word in ("bf16", "fp16"):
        refused(2, f"model.binary makes signs of numbers in f32, and train.mixed_precision", "train", config, "--mixed_precision", word)
    refused(2, "model.binary makes signs of numbers in f32, and fit.allow", "train", config, "--set", "fit.allow=bf16")
    refused(2, "model.binary is not used when model.arch is mlp", "train", write_config("mlp.yaml", model={"arch": "mlp", "heads": None}), *BINARY)
    refused(2, "one of|none or blocks", "train", config, "--set", "model.binary=all")
    run("train", config, "--quiet")
    refused(1, r"its layers are of signs \(model.binary\)", "quantize", config, "--samples", "2")
    refused(2, "--packed is of --format safetensors", "export", config, "--format", "onnx", "--packed", "--out", "x.onnx")
    run("export", config, "--format", "safetensors", "--packed", "--out", "packed.safetensors")
    damage("bits.safetensors", 4 * 96 + 3, 1)  # of a row of 24 numbers the last byte is filling
    damage("alpha.safetensors", 3, 0xff)
    check(metadata_of("packed.safetensors")["plimsoll.checksum"] == checksum_of("packed.safetensors"), metadata_of("packed.safetensors"))
    for path in ("bits.safetensors", "alpha.safetensors"):
        refused(4, "c_fc.weight.binary\", row 0: its scale is no number of at least 0, or bits are set behind its end", "eval", config, "--weights", path)
    plain = ("--set", "model.binary=none")
    refused(4, "are of a model with model.binary blocks, but --set model.binary says none", "eval", config, *plain, "--weights", "packed.safetensors")
    run("train", config, *plain, "--quiet", "--out", "plain")
    refused(2, "with model.binary none there are no such layers", "export", config, *plain, "--out", "x", "--set", "run.out=plain", "--format", "safetensors",
            "--packed")
    check(not os.path.exists("x"), "something was written")
    with open("packed.safetensors", "rb") as file:
        data = file.read().replace(b"plimsoll.binary/2", b"plimsoll.binary/9")
    with open("other.safetensors", "wb") as file:
        file.write(data)
    refused(4, "holds weights of one bit, but its format is \"plimsoll.binary/9\"", "eval", config, "--weights", "other.safetensors")


GROUPS = {"binary": [test_learns, test_same_bits, test_verify, test_packed, test_hybrid, test_refused]}

if __name__ == "__main__":
    main(GROUPS)
