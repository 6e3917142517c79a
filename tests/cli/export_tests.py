"""Tests of export: models as ONNX against ONNX's checker and ONNX Runtime (a Python that has them: PL_ONNX_PYTHON, or the one that runs
this), weights as safetensors, bad input. What Plimsoll itself computes comes from export_forward (EXPORT_FORWARD). Called as cli_tests.py is."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import cli_tests
from chain_tests import make_chains, write_chain
from cli_tests import SEED, Skipped, check, environment, last_checkpoint, main, read, refused, run, write_config, write_text
from clouds_tests import FOLDER_OF_FLIGHTS, synth, write_clouds
from encode_tests import SMALL, numbers_of, weights_for, write_encoder
from hybrid_tests import write_hybrid
from quantize_tests import checksum_of, metadata_of, quantize, tensors_of, without_checksum
from rollout_oracle import load_weights
from rollout_tests import write_rollout

DRAW = random.Random(SEED)
PRECISE = 1e-4
HERE = os.path.dirname(os.path.abspath(__file__))


def need_module():
    if not os.path.exists(os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-onnx.so")):
        raise Skipped("no export to ONNX: the module plimsoll-onnx.so was not built")


def config_of(model):
    """The whole config, but where the run lies."""
    return re.sub(r"(?m)^  out: .*$", "  out: auto", run("config", model)[0])


def onnx_python():
    for python in (os.environ.get("PL_ONNX_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import onnx, onnxruntime, numpy"], capture_output=True).returncode == 0:
            return python
    raise Skipped("no Python with onnx and onnxruntime here (name one in PL_ONNX_PYTHON)")


def header(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


def export(model, *words, name="m.onnx", form="onnx"):
    out, _ = run("export", model, "--format", form, "--out", name, "--json", *words)
    told = json.loads(out)
    check(told["schema"] == "plimsoll.export/1" and told["file_bytes"] == os.path.getsize(name), told)
    return told


def has_vnni():
    """Without, ONNX Runtime adds pairs of products of 8 bits in 16, and large ones are cut off there."""
    with open("/proc/cpuinfo") as file:
        return bool(re.search(r"\bavx(512)?_vnni\b", file.read()))


def pieces_agree(found, output):
    """Of a model with layers in 8 bits (export_onnx.py says why by pieces). output: the one that no choice among numbers is before."""
    layers = found["ours"]
    check(layers == found["theirs"] and layers, layers, found["theirs"])
    written, optimized = found["operators"]["written"], found["operators"]["optimized"]
    sites = written["QuantizeLinear"]
    check(written["DequantizeLinear"] == sites + len(set(layers)) and sites <= len(layers), written)
    check(optimized.get("MatMulIntegerToFloat") == len(layers) and "DequantizeLinear" not in optimized, "layers are not in integers", optimized)
    weights = [n for n in found["initializers"] if n.endswith(".int8")]
    check(sorted(weights) == sorted(set(layers)), "a weight is there twice, or not", weights)
    for how in ("fused", "plain") if has_vnni() else ("plain",):
        alone, between = found[how]["layers"], found[how]["between"]
        for piece in (alone, between):
            check(piece["steps"] <= 1 and piece["others"] <= 1e-3 * piece["numbers"] + 3, how, piece)
        check(alone["error"] <= 1e-5, how, alone)
        check(all(e <= PRECISE for e in between["errors"].values()), how, between)
    for how, away in found["whole"].items():
        if how != "fused" or has_vnni():
            check(away[output] <= 5e-2, how, away)


def export_weights(name, config="encode.yaml"):
    export(config, name=name, form="safetensors")
    return name


def agrees(model, config, command, program, inputs, outputs, *words, int8=False):
    """Exports the model twice and compares what ONNX Runtime and Plimsoll make of random inputs, for two batch sizes. inputs: name →
    function of the batch that gives (bytes, how to read them); outputs: name → (what export_forward leaves, matrix or None). int8: layers of
    the model are done in 8 bits."""
    python = onnx_python()
    told = export(model, *words)
    export(model, *(w for w in words if w != "--external-data"), name="m.safetensors", form="safetensors")
    for batch in (1, 3):
        shutil.rmtree("ours", ignore_errors=True)
        os.makedirs("ours")
        job = {"model": "m.onnx", "inputs": {}, "outputs": {}, "int8": "ours" if int8 else None}
        for name, make in inputs.items():
            data, how = make(batch)
            with open(name, "wb") as file:
                file.write(data)
            job["inputs"][name] = {"file": name, **how}
        for name, (left, times) in outputs.items():
            job["outputs"][name] = {"file": f"ours/{left}", "times": times and ["m.safetensors", times]}
        given = [how.pop("value") + "=" + name if "value" in how else name for name, how in job["inputs"].items()]
        done = subprocess.run([os.environ["EXPORT_FORWARD"], config, command, program, str(batch), "m.safetensors", "ours", *given],
                              capture_output=True, text=True, env=environment(), timeout=120)
        check(done.returncode == 0, done.stderr)
        with open("job.json", "w") as file:
            json.dump(job, file)
        done = subprocess.run([python, os.path.join(HERE, "export_onnx.py"), "job.json"], capture_output=True, text=True, timeout=240)
        check(done.returncode == 0, done.stderr[-2000:])
        found = json.loads(done.stdout)
        if int8:
            pieces_agree(found, next(iter(outputs)))
        for name, error in found["errors"].items() if not int8 else ():
            check(error <= PRECISE, f"{name} of {batch}: ONNX Runtime is {error} away, relatively")
        check(found["opset"] == [["", 17]] and found["producer"][0] == "plimsoll", found["opset"], found["producer"])
        check(len(set(found["initializers"])) == len(found["initializers"]), "a weight is there twice")
        check(found["unshaped"] == [], "shapes are not known of", found["unshaped"][:5])
        check(found["nodes"] == told["nodes"], found["nodes"], told)
    weights = header("m.safetensors")
    meta = weights.pop("__metadata__")
    check(meta["plimsoll.config"] == found["metadata"]["plimsoll.config"], "the two have different configs")
    named = {n for n in found["initializers"] if not n.startswith("constant.") and not n.endswith(".int8.scale")}
    check(named <= set(weights), "weights under other names", named - set(weights))
    return {**found, "told": told}


def pages(side):
    def make(batch):
        return DRAW.randbytes(batch * side * side), {"dtype": "uint8", "shape": [batch, side, side], "pages": True}
    return make


def tokens(length, vocabulary):
    def make(batch):
        ids = [DRAW.randrange(vocabulary) for _ in range(batch * length)]
        return b"".join(i.to_bytes(4, "little") for i in ids), {"dtype": "int32", "shape": [batch, length]}
    return make


def normals(*shape, **how):
    def make(batch):
        count = batch
        for size in shape:
            count *= size
        return struct.pack(f"<{count}f", *(DRAW.gauss(0, 1) for _ in range(count))), {"dtype": "float32", "shape": [batch, *shape], **how}
    return make


CAPSULES = {"capsules": ("stored.0", None), "checksums": ("stored.1", None), "children": ("stored.2", None)}
HYBRID = {"logits": ("stored.0", None), "q_halt": ("stored.1", None), "capsules": ("stored.2", None)}


def encoder_agrees(*words, outputs=CAPSULES, int8=False, **keys):
    need_module()
    config = write_encoder(**keys)
    k = {**SMALL, **keys}
    found = agrees(config, config, "encode", "encode", {"images": pages(k["image_size"])}, outputs, *words, int8=int8)
    check(found["inputs"] == {"images": ["batch", 3, k["image_size"], k["image_size"]]}, found["inputs"])
    check(found["outputs"]["capsules"] == ["batch", k["target_capsules"], k["hidden_size"]], found["outputs"])
    return found


def test_encoder():
    found = encoder_agrees()
    check("  arch: capsules" in found["metadata"]["plimsoll.config"], found["metadata"])
    check(found["metadata"]["plimsoll.config"] == config_of("encode.yaml"), "another config than that of plimsoll config")


def test_encoder_of_two_states():
    once, twice = (encoder_agrees(recursion="trm", H_cycles=h, L_cycles=2, num_layers=2) for h in (1, 2))
    blocks = [sorted(n for n in f["initializers"] if not n.startswith("constant.")) for f in (once, twice)]
    check(blocks[0] == blocks[1] and twice["nodes"] > once["nodes"], "an unrolled recursion has other weights")


def test_encoder_of_means():
    encoder_agrees(pooling_method="avg", target_capsules=6, capsule_grid_shape="[2, 3]", image_size=56)
    encoder_agrees(real_children="false")


def test_encoder_with_attention():
    encoder_agrees(attention_entropy="true", outputs={**CAPSULES, "attention": ("stored.4", None)})


def test_encoder_of_16_bits():
    """Weights are stored in 16 bits and widened; what is computed is f32, so that Plimsoll's own bf16 is farther away."""
    need_module()
    told = {}
    for precision in ("float32", "bfloat16", "float16"):
        config = write_encoder(precision=precision, hidden_size=64, patch_size=8)
        told[precision] = export(config)["weight_bytes"]
        done = subprocess.run([onnx_python(), "-c", "import onnx, onnxruntime; onnx.checker.check_model('m.onnx', full_check=True); "
                               "onnxruntime.InferenceSession('m.onnx')"], capture_output=True, text=True, timeout=120)
        check(done.returncode == 0, done.stderr[-1000:])
    check(told["bfloat16"] == told["float16"] < 0.7 * told["float32"], told)


def test_weights_outside():
    found = encoder_agrees("--external-data", hidden_size=64)
    check(os.path.getsize("m.onnx.data") > 60000 > os.path.getsize("m.onnx") / 2, os.path.getsize("m.onnx.data"))
    inside = export("encode.yaml", name="inside.onnx")
    check(inside["data_bytes"] == 0 and inside["nodes"] == found["nodes"], inside)
    os.rename("m.onnx.data", "gone")
    done = subprocess.run([onnx_python(), "-c", "import onnxruntime; onnxruntime.InferenceSession('m.onnx')"], capture_output=True, timeout=120)
    check(done.returncode != 0, "weights were inside, too")


def test_without_texts():
    """A model hangs on no texts and no font: neither are they read, nor need they be there, or be named."""
    need_module()
    export(write_encoder())
    seen = load_weights(export_weights("m.safetensors"))
    for keys in ({"texts": "gone.txt", "text_format": "lines", "count": 0}, {"text_format": None, "count": None}, {"font": "gone.ttf"}):
        write_encoder(**keys)
        export("encode.yaml", name="again.onnx")
        check(load_weights(export_weights("again.safetensors")) == seen, "other weights")
    check(len(read("m.onnx")) > 1000 and os.listdir(".").count("out") == 0, "a folder was made")
    refused(2, "texts.path is empty", "encode", write_encoder(text_format=None, count=None))
    refused(2, "texts.count is 0, all of them, but there are no texts", "plan", "encode.yaml")


def test_given_weights():
    """Those of the file that the config names, in what the model holds, and once in memory."""
    weights_for("w.safetensors", ("F32", "F16"))
    told = export(write_encoder(weights="w.safetensors"), name="m.safetensors", form="safetensors")
    check(load_weights("m.safetensors") == load_weights("w.safetensors") and told["weights_from"] == "the file w.safetensors", told)
    narrow = export(write_encoder(weights="w.safetensors", precision="bfloat16"), name="n.safetensors", form="safetensors")
    check(narrow["weight_bytes"] < 0.7 * told["weight_bytes"], narrow)
    for one in (told, narrow):
        check(one["values_bytes"] <= one["weight_bytes"] + 64 * (one["weights"] + 1), one)
    refused(2, "config names other ones; leave it out", "export", "encode.yaml", "--format", "safetensors", "--out", "m", "--checkpoint", "x")


def test_data_of_an_earlier_export():
    """A model that does not read what lies beside it says so, and leaves it."""
    need_module()
    config = write_encoder(hidden_size=64)
    words = ("export", config, "--format", "onnx", "--out", "m.onnx")
    check("warning" not in "".join(run(*words, "--external-data")), "it warned")
    data = read("m.onnx.data")
    check("m.onnx.data is there, and this model does not read it" in "".join(run(*words)), "no warning")
    check(read("m.onnx.data") == data, "it was changed")
    os.remove("m.onnx.data")
    check("warning" not in "".join(run(*words)), "it warned")


def test_no_place_for_output():
    config = write_encoder()
    for out in ("/dev/stdout", "said"):
        with open("said", "wb") as file:
            done = subprocess.run([cli_tests.COMMAND, "export", config, "--format", "safetensors", "--out", out], stdout=file, stderr=subprocess.PIPE,
                                  text=True, env=environment(), timeout=60)
        check(done.returncode == 5 and "is where the output of this command goes" in done.stderr, done)
        check(read("said") == b"" and not os.path.exists("said.plimsoll.tmp"), os.listdir("."))


def test_the_same_twice():
    need_module()
    config = write_encoder()
    export(config)
    export(config, name="again.onnx")
    check(read("m.onnx") == read("again.onnx"), "the same request gave other bytes")


# ---- layers in 8 bits ----

def in_8_bits(*words, **keys):
    """Random weights, and what quantize makes of them."""
    weights_for("w.safetensors", **keys)
    quantize(write_encoder(weights="w.safetensors", **keys), "--quantized", "q.safetensors", "--samples", "20", *words)


def test_encoder_in_8_bits():
    for keys in ({"hidden_size": 64, "num_heads": 4, "L_cycles": DRAW.randrange(2, 5)}, {"recursion": "trm", "H_cycles": 2, "L_cycles": 1, "num_layers": 2},
                 {"pooling_method": "avg", "target_capsules": 6, "capsule_grid_shape": "[2, 3]", "image_size": 56, "hidden_size": 20},
                 {"attention_entropy": "true", "real_children": "false"}):
        in_8_bits(**keys)
        found = encoder_agrees(int8=True, weights="q.safetensors", **keys)
        print(keys, {how: found[how] for how in ("whole", "fused", "plain")})
        check(found["told"]["weights_from"] == found["metadata"]["plimsoll.weights"] == "the file q.safetensors", found["told"])
        whole = export(write_encoder(weights="w.safetensors", **keys), name="f32.onnx")
        if keys.get("hidden_size") == 64:
            check(found["told"]["weight_bytes"] < 0.32 * whole["weight_bytes"], "not a quarter", found["told"], whole)
    if not has_vnni():
        raise Skipped("what ONNX Runtime makes of integers was not compared: this processor has neither avx512_vnni nor avx_vnni")


def test_some_layers_in_8_bits():
    """The others stay as they are; and all of them may lie outside."""
    in_8_bits("--keep_f32", "3")
    found = encoder_agrees("--external-data", int8=True, weights="q.safetensors")
    check("encoder.pre_pool_norm.weight" in found["initializers"] and len(set(found["ours"])) == 6, found["ours"])
    check(found["told"]["data_bytes"] > found["told"]["file_bytes"] / 4, found["told"])


def test_weights_in_8_bits_alone():
    """Are as they were, to be read again."""
    in_8_bits()
    config = write_encoder(weights="q.safetensors")
    export(config, name="again.safetensors", form="safetensors")
    check(tensors_of("again.safetensors") == tensors_of("q.safetensors"), "other weights")
    meta = header("again.safetensors")["__metadata__"]
    check(meta["format"] == "plimsoll.int8/2" and meta["plimsoll.config"] == config_of(config), meta)
    check(meta["plimsoll.checksum"] == checksum_of("again.safetensors"), meta)
    check(metadata_of("q.safetensors")["plimsoll.checksum"] == checksum_of("q.safetensors"), "the checksum of what was read")
    run("encode", config, "--out", "one")
    run("encode", write_encoder("again.yaml", weights="again.safetensors"), "--out", "two")
    check(numbers_of("one/results.blocks") == numbers_of("two/results.blocks"), "other results")
    told = export(config, "--seeded", name="first.safetensors", form="safetensors")
    check(told["weights_from"] == "first values" and "F32" == header("first.safetensors")["encoder.patch_embed.weight"]["dtype"], told)


def test_damaged_8_bits():
    in_8_bits()
    name = next(n for n in tensors_of("q.safetensors") if n.endswith(".int8"))
    whole = read("q.safetensors")
    at = whole.index(tensors_of("q.safetensors")[name][2])
    with open("q.safetensors", "wb") as file:
        file.write(without_checksum(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4:]))
    for form in ("safetensors", "onnx"):
        if form == "onnx":
            need_module()
        refused(4, re.escape(name), "export", write_encoder(weights="q.safetensors"), "--format", form, "--out", "m")
    check(not os.path.exists("m"), "something was written")


def trained_in_8_bits(model, config, program, inputs, outputs):
    """A run, calibrated; also layers of two dimensions, which ONNX Runtime must not draw into a Gemm."""
    need_module()
    quantize(model, "--quantized", "q.safetensors", "--samples", "8")
    found = agrees(model, with_weights(config), "evaluate", program, inputs, outputs, "--weights", "q.safetensors", int8=True)
    print(model, {how: found[how] for how in ("whole", "fused", "plain")})
    check(found["told"]["weights_from"] == "the file q.safetensors", found["told"])
    whole = export(model, name="f32.safetensors", form="safetensors")
    given = export(model, "--weights", "f32.safetensors", name="again.safetensors", form="safetensors")
    check(load_weights("again.safetensors") == load_weights("f32.safetensors"), "other weights")
    check(given["weights_from"] == "the file f32.safetensors" and whole["weights"] == given["weights"], given)


def with_weights(config):
    """The same, and what export_forward is to begin with."""
    lines = read(config).decode().splitlines(keepends=True)
    text = "".join(lines[1:-1] if lines[-1].startswith("# checksum ") else lines)  # what is edited has no seal
    with open("with.yaml", "w") as file:
        file.write(re.sub(r"(?m)^  weights: .*$", "  weights: q.safetensors", text))
    return "with.yaml"


def test_language_in_8_bits():
    write_text(words=3000)
    for weight, sections in (("transformer.wte.weight", {}), ("lm_head.weight", {"model": {"layers": 2, "norm": "rms_norm", "activation": "silu",
                                                                                              "tie_embeddings": "false", "attention_bias": "true"}})):
        config = write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4}, **sections)
        shutil.rmtree("out", ignore_errors=True)
        run("train", config)
        trained_in_8_bits("out", "out/config.yaml", "evaluate", {"tokens": tokens(cli_tests.TINY["model"]["sequence"], 256)},
                          {"logits": ("judged.0", weight)})


def test_hybrid_in_8_bits():
    run("train", write_hybrid(train={"steps": 3, "checkpoint_every": 3}))
    trained_in_8_bits("out", "out/config.yaml", "infer", {"images": pages(64)}, HYBRID)


def test_chain_in_8_bits():
    make_chains()
    run("train", write_chain(train={"steps": 2, "checkpoint_every": 2}))
    trained_in_8_bits("out", "out/config.yaml", "evaluate", {"tokens": chain_ids}, {"logits": ("judged.0", None)})


def test_clouds_in_8_bits():
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    name = next(n for n in sorted(os.listdir("out")) if os.path.exists(f"out/{n}/checkpoints"))
    trained_in_8_bits(f"out/{name}", f"out/{name}/config.yaml", "evaluate", {"images": normals(2, 16, 16), "angles": normals(2)},
                      {"height": ("stored.0", None)})


def language_agrees(weight, **sections):
    need_module()
    write_text(words=3000)
    config = write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4}, **sections)
    shutil.rmtree("out", ignore_errors=True)
    run("train", config)
    k = {**cli_tests.TINY["model"], **sections.get("model", {})}
    found = agrees("out", "out/config.yaml", "evaluate", "evaluate", {"tokens": tokens(k["sequence"], 256)}, {"logits": ("judged.0", weight)})
    check(found["inputs"] == {"tokens": ["batch", k["sequence"]]} and found["outputs"] == {"logits": ["batch", k["sequence"], 256]}, found)
    check("out/checkpoints/step-" in found["metadata"]["plimsoll.weights"], found["metadata"]["plimsoll.weights"])
    return found


def test_gpt():
    language_agrees("transformer.wte.weight")


def test_gpt_of_all_kinds():
    language_agrees("lm_head.weight", model={"layers": 2, "norm": "rms_norm", "activation": "silu", "tie_embeddings": "false", "attention_bias": "true"})
    language_agrees("transformer.wte.weight", model={"layers": 1, "activation": "gelu", "bias": "false"})


def test_mlp():
    language_agrees("embedding.weight", model={"arch": "mlp", "window": 5, "layers": 2, "heads": None, "activation": "tanh"})


def test_hybrid():
    need_module()
    config = write_hybrid()
    found = agrees(config, config, "evaluate", "infer", {"images": pages(64)}, HYBRID, "--seeded")
    check(found["inputs"] == {"images": ["batch", 3, 64, 64]} and found["outputs"] == {"logits": ["batch", 3, 12], "q_halt": ["batch", 1], "capsules": ["batch", 3, 16]}, found)


def test_hybrid_of_all_kinds():
    """Other fusions and none, a codebook that is looked up, what is added to the fusion's gates."""
    need_module()
    for sections in ({"vision_encoder": {"fusion_type": "attention"}, "output_head": {"vq_codebook": "straight_through"}},
                     {"vision_encoder": {"fusion_type": "learned_avg", "adapter_layers": 0}, "latent_planning": {"enable_latent_planning": False}},
                     {"vision_encoder": {"progressive_fusion": True}}, {"vision_encoder": {"fusion_type": "none", "adapter_layers": 0}}):
        config = write_hybrid(**sections)
        agrees(config, config, "evaluate", "infer", {"images": pages(64)}, HYBRID, "--seeded")


def test_trained_hybrid():
    """Also where what is frozen is stored in 16 bits: it is so in the file, and widened by the model."""
    need_module()
    told = {}
    for precision in ("f32", "bf16"):
        config = write_hybrid(vision_encoder={"pretrained_precision": precision}, train={"steps": 3, "checkpoint_every": 3})
        shutil.rmtree("out", ignore_errors=True)
        run("train", config)
        told[precision] = export("out")
        if precision == "f32":
            agrees("out", "out/config.yaml", "evaluate", "infer", {"images": pages(64)}, HYBRID)
        done = subprocess.run([onnx_python(), "-c", "import onnx, onnxruntime; onnx.checker.check_model('m.onnx', full_check=True); "
                               "onnxruntime.InferenceSession('m.onnx')"], capture_output=True, text=True, timeout=120)
        check(done.returncode == 0, done.stderr[-1000:])
    check(told["bf16"]["weight_bytes"] < told["f32"]["weight_bytes"] and told["bf16"]["nodes"] > told["f32"]["nodes"], told)


def chain_ids(batch):
    rows = [[DRAW.randrange(250) for _ in range(6)] + [0xfe] + [-1] * 3 + [0xff] + [DRAW.randrange(250) for _ in range(8)] for _ in range(batch)]
    return struct.pack(f"<{19 * batch}i", *sum(rows, [])), {"dtype": "int32", "shape": [batch, 19]}


def test_chain():
    need_module()
    make_chains()
    run("train", write_chain(train={"steps": 2, "checkpoint_every": 2}))
    found = agrees("out", "out/config.yaml", "evaluate", "evaluate", {"tokens": chain_ids}, {"logits": ("judged.0", None)})
    check(found["inputs"] == {"tokens": ["batch", 19]} and found["outputs"]["logits"][0] == "batch", found["outputs"])


def test_clouds():
    need_module()
    synth()
    config = write_clouds(loo="false")
    run("train", config, "--pretrain")
    name = next(n for n in sorted(os.listdir("out")) if os.path.exists(f"out/{n}/checkpoints"))
    found = agrees(f"out/{name}", f"out/{name}/config.yaml", "evaluate", "evaluate", {"images": normals(2, 16, 16), "angles": normals(2)},
                   {"height": ("stored.0", None)})
    check(found["outputs"] == {"height": ["batch", 1]}, found["outputs"])


def test_clouds_without_flights():
    """What the model hangs on is in frames.bin: the flights' files need not be there, as for infer."""
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    export("out/pretrain", name="before.safetensors", form="safetensors")
    shutil.rmtree(FOLDER_OF_FLIGHTS)
    export("out/pretrain", name="after.safetensors", form="safetensors")
    check(read("before.safetensors") == read("after.safetensors"), "without the flights it is another file")
    os.mkdir("moved")
    os.rename("out/frames.bin", "moved/frames.bin")
    refused(4, r"^plimsoll export: .*out/frames.bin: is not there: .*--cache names the folder where it lies", "export", "out/pretrain", "--format", "safetensors",
            "--out", "m")
    export("out/pretrain", "--cache", "moved", name="moved.safetensors", form="safetensors")
    check(tensors_of("before.safetensors") == tensors_of("moved.safetensors"), "with the frames elsewhere it is another model")


def operator_agrees(grid=8, **keys):
    config = write_rollout(**keys)
    found = agrees(config, config, "rollout", "features", {"state": normals(grid, grid, 3, value="state")}, {"output": ("stored.0", None)})
    check(found["outputs"] == {"output": ["batch", grid, grid, 3]}, found["outputs"])


def test_operators():
    need_module()
    for norm in ("instance", "group", "batch"):
        operator_agrees(space={"normalization": [norm], "base_channels": [4], "num_layers": [4]})


def test_operators_of_other_archs():
    need_module()
    operator_agrees(arch="fno_operator", space={"kernel_size": None, "base_channels": [3], "grid_size": [24]}, grid=24)
    operator_agrees(arch="unet_operator", space={"kernel_size": None, "num_layers": None, "base_channels": [4], "grid_size": [16]}, grid=16)


def test_weights_alone():
    """Of a trained model the file has the tensors of its best checkpoint, and the config with all its lines."""
    write_text(words=3000)
    run("train", write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4}))
    run("export", "out", "--format", "safetensors", "--out", "m.safetensors", "--checkpoint", last_checkpoint("out"))
    meta = header("m.safetensors")["__metadata__"]
    check(meta["plimsoll.config"] == config_of("out") and meta["format"] == "pt" and "plimsoll.checksum" not in meta, meta)
    ours, theirs = load_weights("m.safetensors"), load_weights(last_checkpoint("out") + "/model.safetensors")
    check(ours == theirs, "other weights than the checkpoint's")
    told = export("out", "--seeded", name="first.safetensors", form="safetensors")
    check(told["weights_from"] == "first values" and load_weights("first.safetensors") != ours, "first values are the trained ones")


def test_averages():
    """What evaluating uses are the averages: under the weights' names."""
    write_text(words=3000)
    run("train", write_config(train={"steps": 8, "checkpoint_every": 8, "eval_every": 8, "ema_rate": 0.1}))
    export("out", name="m.safetensors", form="safetensors")
    checkpoint = last_checkpoint("out")
    check(load_weights("m.safetensors") == load_weights(checkpoint + "/model.safetensors"), "other weights than the averages")
    check("transformer.wte.weight" in header("m.safetensors"), "other names")


# ---- bad input ----

def test_words():
    config = write_config()
    refused(2, "--format is missing: onnx or safetensors", "export", config, "--out", "m")
    refused(2, "--format \"pickle\" is none; onnx or safetensors", "export", config, "--out", "m", "--format", "pickle")
    refused(2, "--out is missing", "export", config, "--format", "onnx")
    refused(2, "--external-data is of --format onnx", "export", config, "--format", "safetensors", "--out", "m", "--external-data")
    refused(2, "leave one out", "export", config, "--format", "safetensors", "--out", "m", "--seeded", "--checkpoint", "x")
    refused(2, "are the same file", "export", config, "--format", "safetensors", "--out", config)
    check(not os.path.exists("m"), "something was written")


def test_no_model():
    write_text(words=3000)
    with open("mine.txt", "w") as file:
        file.write("no model\n")
    refused(2, "mine.txt:1:1", "export", "mine.txt", "--format", "safetensors", "--out", "m")
    os.mkdir("empty")
    refused(2, "empty: is not a readable folder of a run", "export", "empty", "--format", "safetensors", "--out", "m")
    refused(4, r"nothing was trained there yet; train first: .*$", "export", write_config(), "--format", "safetensors", "--out", "m")
    refused(2, "--out takes the name of a file", "export", write_config(), "--format", "safetensors", "--out", "-")
    refused(4, "is not a checkpoint", "export", write_config(), "--format", "safetensors", "--out", "m", "--checkpoint", "empty")
    run("train", write_config(train={"steps": 4, "checkpoint_every": 4}))
    refused(2, "other: nothing was trained there, and out/ is a run itself; leave --out out", "quantize", "out/", "--out", "other")
    os.mkdir("untrained")
    shutil.copy("out/config.yaml", "untrained/config.yaml")
    refused(4, "nothing was trained there yet; train first", "quantize", "untrained/", "--set", "run.out=untrained")
    path = last_checkpoint("out") + "/model.safetensors"
    data = read(path)
    with open(path, "wb") as file:
        file.write(data[:-1] + bytes([data[-1] ^ 1]))
    refused(4, "model.safetensors", "export", "out", "--format", "safetensors", "--out", "m")
    check(not os.path.exists("m") and not os.path.exists("m.plimsoll.tmp"), "something was written")


def test_nowhere_to_write():
    config = write_encoder()
    for form in ("safetensors", "onnx"):
        if form == "onnx":
            need_module()
        refused(5, "gone/m: cannot be created: No such file", "export", config, "--format", form, "--out", "gone/m")
        refused(5, "/dev/full", "export", config, "--format", form, "--out", "/dev/full")
        os.mkdir(form)
        refused(5, form, "export", config, "--format", form, "--out", form)
    refused(5, "gone/m: cannot be created", "export", config, "--format", "onnx", "--out", "gone/m", "--external-data")


def test_not_exported():
    need_module()
    config = write_hybrid(reading={"noise": 40})
    refused(2, "reading.noise 40 adds noise to pages, .*; train with 0; --format safetensors exports its weights", "export", config, "--seeded", "--format", "onnx", "--out", "m")
    export(config, "--seeded", name="m", form="safetensors")
    whole = write_hybrid()
    refused(2, "denoiser.only makes the config that of another training.*take the folder of the training task or finetune; --format safetensors", "export", whole, "--stage", "denoiser", "--seeded", "--format", "onnx", "--out", "part")
    refused(4, "out/denoiser: nothing was trained there yet", "export", whole, "--stage", "denoiser", "--format", "safetensors", "--out", "part")
    refused(2, "there is no stage nothing", "export", whole, "--stage", "nothing", "--format", "safetensors", "--out", "part")
    check(not os.path.exists("part"), "the whole was written in the place of a part")


GROUPS = {"export": [test_encoder, test_encoder_of_two_states, test_encoder_of_means, test_encoder_with_attention, test_encoder_of_16_bits, test_weights_outside, test_without_texts, test_given_weights, test_data_of_an_earlier_export,
                     test_the_same_twice, test_gpt, test_gpt_of_all_kinds, test_mlp, test_weights_alone, test_averages],
          "export_int8": [test_encoder_in_8_bits, test_some_layers_in_8_bits, test_weights_in_8_bits_alone, test_damaged_8_bits],
          "export_int8_systems": [test_language_in_8_bits, test_hybrid_in_8_bits, test_chain_in_8_bits, test_clouds_in_8_bits],
          "export_systems": [test_hybrid, test_hybrid_of_all_kinds, test_trained_hybrid, test_chain, test_clouds, test_clouds_without_flights, test_operators, test_operators_of_other_archs],
          "export_refused": [test_words, test_no_model, test_nowhere_to_write, test_no_place_for_output, test_not_exported]}

if __name__ == "__main__":
    main(GROUPS)
