"""Tests of encode on a trained hybrid model: its capsules against those that infer gives and against the definition, that their bits hang on
nothing but texts and weights, kills, parts, forms, and what is refused. Called as cli_tests.py is."""
import filecmp
import math
import os
import random
import shutil
import struct

from cli_tests import SEED, check, last_checkpoint, main, read, refused, run
from encode_oracle import softmax, times, write_weights
from encode_tests import FORMS, encode, kill_once, numbers_of, page_of, pictures, put, write_encoder
from hybrid_tests import write_hybrid
from rollout_oracle import load_npy, load_weights

DRAW = random.Random(SEED)
SIDE, CAPSULES, WIDTH, CHECKSUM, CHILDREN, PATCHES = 64, 3, 16, 4, 4, 16  # of write_hybrid


def train(out="out", words=(), **sections):
    """A run whose weights are no first values any more."""
    sections["train"] = {"steps": 3, "checkpoint_every": 3, "eval_every": 3, **sections.get("train", {})}
    run("train", write_hybrid(out=out, **sections), "--quiet", *words)
    return out


def write_texts(count, path="texts.txt"):
    words = ["one", "two", "", "a longer text of some words", "äöü عربي", "x" * 90, "1 + 1 = 2", "\tbehind a tab"]
    put(path, "".join(f"{DRAW.choice(words)} {i}\n" for i in range(count)))
    return path


def bits(numbers):
    """In f16, as they are stored."""
    return struct.pack(f"<{len(numbers)}e", *numbers)


def inferred(model, texts, *words):
    """What infer gives of the same lines, an independent way to the same numbers: its own program, pages drawn elsewhere, f32."""
    run("infer", model, texts, "--npy", "inferred", "--quiet", *words)
    shape, numbers = load_npy("inferred.capsules.npy")
    return shape, bits(numbers)


def test_capsules_are_those_of_the_model():
    """Of every kind of model in front of the capsules; the averages of the weights, where there are some."""
    kinds = [{}, {"vision_encoder": {"fusion_type": "attention", "adapter_layers": 0}, "output_head": {"vq_codebook": "straight_through"}},
             {"vision_encoder": {"fusion_type": "learned_avg", "pretrained_precision": "bf16"}, "train": {"ema_rate": 0.5}},
             {"vision_encoder": {"progressive_fusion": True}, "reasoning": {"halt_max_steps": 3}, "words": ["--set", "model.binary=blocks"]},
             {"vision_encoder": {"pretrained_precision": "fp16"}, "train": {"mixed_precision": "bf16"}}]
    texts = write_texts(9)
    for i, kind in enumerate(kinds):
        out = train(f"out{i}", **kind)
        said = encode(out, "--texts", texts)
        check("9 texts: lines of texts.txt" in said, said)
        shape, numbers = numbers_of(f"{out}/results.blocks")
        other, theirs = inferred(out, texts)
        check(shape == other == (9, CAPSULES, WIDTH), shape, other)
        check(bits(numbers) == theirs, "capsules are not those that infer gives", kind)
        check(len(set(struct.unpack(f"<{len(theirs) // 2}e", theirs))) > 9 * CAPSULES, "numbers that are all alike show nothing")
        check(numbers_of(f"{out}/results.blocks", "children")[0] == (9, CAPSULES, CHILDREN, WIDTH), "children")


def test_behind_a_denoiser():
    """Whether its pages are kept in the training or not: encode has no such ports."""
    keys = {"denoiser": {"channels": 2, "depth": 2, "steps": 2, "batch_size": 3}}
    run("train", write_hybrid(out="made", **keys), "--stage", "denoiser", "--quiet")
    texts = write_texts(6)
    for kept in (False, True):
        out = train(f"out{kept}", **keys, dataset={"denoiser_path": "made/denoiser", "cache_images": kept})
        encode(out, "--texts", texts)
        check(bits(numbers_of(f"{out}/results.blocks")[1]) == inferred(out, texts)[1], "capsules are not those that infer gives", kept)


def test_precision():
    """In 16 bits what infer makes in 16 bits, and results know it."""
    out, texts = train(), write_texts(7)
    encode(out, "--texts", texts)
    wide = numbers_of(f"{out}/results.blocks")[1]
    for precision in ("bf16", "fp16"):
        refused(2, "run.precision", "encode", out, "--texts", texts, "--precision", precision)
        encode(out, "--texts", texts, "--precision", precision, "--output", f"{precision}.blocks")
        numbers = numbers_of(f"{precision}.blocks")[1]
        check(bits(numbers) == inferred(out, texts, "--precision", precision)[1], precision)
        check(0 < max(abs(a - b) for a, b in zip(numbers, wide)) < 0.2, precision)


def test_weights_in_8_bits():
    out, texts = train(), write_texts(7)
    run("quantize", out, "--quantized", "q.safetensors", "--samples", "4", "--quiet")
    encode(out, "--texts", texts, "--weights", "q.safetensors")
    check(bits(numbers_of(f"{out}/results.blocks")[1]) == inferred(out, texts, "--weights", "q.safetensors")[1], "other capsules in 8 bits")


def test_damaged_checkpoint():
    """Where there is no best one the newest sound one serves, and that is said; a best one that is damaged is refused."""
    out, texts = train(train={"steps": 4, "checkpoint_every": 2, "eval_every": 2, "keep_last": 2}), write_texts(4)
    last, before = (f"out/checkpoints/step-0000000{n}" for n in (4, 2))
    encode(out, "--texts", texts, "--output", "before.blocks", "--checkpoint", before)
    with open(f"{last}/model.safetensors", "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", 0.125))
    put("out/checkpoints/best", os.path.basename(last) + "\n")
    refused(4, "step-00000004/model.safetensors: does not match its checksum in run.json; it is damaged", "encode", out, "--texts", texts)
    os.remove("out/checkpoints/best")
    said = encode(out, "--texts", texts)
    check("does not match its checksum" in said and "step 2 is used instead" in said, said)
    check(filecmp.cmp("before.blocks", "out/results.blocks", shallow=False), "not the one before")


def test_several_trainings():
    config, texts = write_hybrid(finetune={"enabled": True, "unfreeze_pretrained_layers": 1}, train={"steps": 2, "checkpoint_every": 2, "eval_every": 2}), write_texts(4)
    run("train", config, "--quiet")
    refused(4, "out: holds several trainings, each in a folder of its own; give one of those .*such as out/finetune", "encode", config, "--texts", texts)
    encode("out/finetune", "--texts", texts)
    check(bits(numbers_of("out/finetune/results.blocks")[1]) == inferred("out/finetune", texts)[1], "another training's")


def test_children_and_checksums():
    """With a projection that changes nothing, children are the tokens themselves. If they are all of them, the rest follows by hand: the
    attention of each capsule, its sketch and its checksum, and children come from the most attended on."""
    out = train(vision_encoder={"children_per_capsule": PATCHES})
    weights = load_weights(f"{last_checkpoint(out)}/model.safetensors")
    identity = [float(i == j) for i in range(WIDTH) for j in range(WIDTH)]
    weights["children_projection.weight"] = [WIDTH, WIDTH], identity
    weights["children_projection.bias"] = [WIDTH], [0.0] * WIDTH
    write_weights("w.safetensors", {name: ("F32", *tensor) for name, tensor in weights.items()})
    encode(out, "--texts", write_texts(6), "--weights", "w.safetensors")
    sketches, checksums, children = (numbers_of(f"{out}/results.blocks", name)[1] for name in ("sketches", "checksums", "children"))

    def rows(numbers, width):
        return [list(numbers[i:i + width]) for i in range(0, len(numbers), width)]

    def matrix(name):
        shape, numbers = weights[name]
        return rows(numbers, math.prod(shape[1:])) if len(shape) > 1 else list(numbers)

    asked, bias = matrix("encoder.spatial_pool.attn_conv.weight"), matrix("encoder.spatial_pool.attn_conv.bias")
    tokens, far = rows(children, WIDTH), 0
    for i, sketch in enumerate(rows(sketches, WIDTH)):
        mine, capsule = tokens[i * PATCHES:(i + 1) * PATCHES], i % CAPSULES
        attention = softmax([math.fsum(a * b for a, b in zip(t, asked[capsule])) + bias[capsule] for t in mine])
        check(all(a >= b - 1e-3 for a, b in zip(attention, attention[1:])), "children are not in the order of attention", attention)
        by_hand = [math.fsum(a * t[k] for a, t in zip(attention, mine)) for k in range(WIDTH)]
        far = max(far, *(abs(a - b) for a, b in zip(by_hand, sketch)))
        inner = [max(x, 0) for x in times([sketch], matrix("checksum_head.0.weight"), matrix("checksum_head.0.bias"))[0]]
        checksum = times([inner], matrix("checksum_head.2.weight"), matrix("checksum_head.2.bias"))[0]
        check(all(abs(a - b) < 2e-3 for a, b in zip(checksum, rows(checksums, CHECKSUM)[i])), checksum, rows(checksums, CHECKSUM)[i])
    check(far < 4e-3, "sketches are", far, "away")


def test_bits_hang_on_texts_and_weights():
    out, texts = train(), write_texts(70)
    block = ["--block_texts", "16", "--texts", texts]
    encode(out, *block)
    whole = f"{out}/results.blocks"
    ways = [["--micro_batch", "1"], ["--threads", "2", "--num_workers", "3"], ["--micro_batch", str(DRAW.randint(2, 6)), "--num_workers", "2"],
            ["--cache_dir", "cache"], ["--cache_dir", "cache"], ["--checkpoint", last_checkpoint(out)]]
    for i, words in enumerate(ways):
        encode(out, *block, "--output", f"way{i}.blocks", *words)
        check(filecmp.cmp(whole, f"way{i}.blocks", shallow=False), "other bits by", words)
    parts = DRAW.randint(2, 9)
    for part in range(1, parts + 1):
        encode(out, *block, "--output", "p.blocks", "--part", f"{part}/{parts}")
    run("results", "join", "joined", *(f"p-{part}-of-{parts}.blocks" for part in range(1, parts + 1)))
    check(filecmp.cmp(whole, "joined", shallow=False), f"{parts} parts, joined, have other bytes than the whole")
    for form, name in FORMS.items():
        encode(out, *block, "--storage", form, "--output", f"form-{name}")
        for dataset in ("sketches", "checksums", "children", "remarks"):
            check(numbers_of(f"form-{name}", dataset) == numbers_of(whole, dataset), form, dataset)


def test_killed_and_resumed():
    out, texts = train(), write_texts(3000)
    words = ["--texts", texts, "--block_texts", "7"]
    encode(out, *words, "--output", "whole.blocks")
    kills = sum(kill_once(["encode", out, *words, "--quiet"], DRAW.uniform(0.05, 0.5)) for _ in range(4))
    run("encode", out, *words)
    check(filecmp.cmp("whole.blocks", f"{out}/results.blocks", shallow=False), "what was killed", kills, "times ended otherwise")


def test_results_know_their_weights():
    """Results are of one checkpoint: the run's best, which another training makes another one."""
    out, texts = train(), write_texts(5)
    encode(out, "--texts", texts)
    first = numbers_of(f"{out}/results.blocks")[1]
    check("all is done" in run("encode", out, "--texts", texts)[1], "it was not done")
    run("train", write_hybrid(train={"steps": 9, "checkpoint_every": 3, "eval_every": 3, "keep_last": 3}), "--resume", "--quiet")
    best = read("out/checkpoints/best").decode().strip()
    encode(out, "--texts", texts, "--output", "best.blocks")
    check(bits(numbers_of("best.blocks")[1]) == inferred(out, texts)[1], "not the best checkpoint")
    encode(out, "--texts", texts, "--output", "named.blocks", "--checkpoint", f"out/checkpoints/{best}")
    check(filecmp.cmp("best.blocks", "named.blocks", shallow=False), "the best, named, is another")
    os.remove("out/checkpoints/best")  # without a best one it is the latest, which is another one than before
    refused(2, "holds results of another configuration", "encode", out, "--texts", texts)
    encode(out, "--texts", texts, "--output", "latest.blocks")
    encode(out, "--texts", texts, "--output", "same.blocks", "--checkpoint", last_checkpoint(out))
    check(filecmp.cmp("latest.blocks", "same.blocks", shallow=False), "not the latest")
    check(numbers_of("latest.blocks")[1] != first, "a training changed nothing")
    run("export", out, "--format", "safetensors", "--out", "w.safetensors")
    encode(out, "--texts", texts, "--output", "file.blocks", "--weights", "w.safetensors")
    check(numbers_of("file.blocks")[1] == numbers_of("latest.blocks")[1], "exported weights give others")


def test_witness_and_page():
    out, texts = train(), write_texts(60)
    encode(out, "--texts", texts, "--block_texts", "8")
    page, (shape, numbers) = page_of(out), numbers_of(f"{out}/results.blocks")
    check("Capsules of 60 texts" in page and len(pictures(page)) == 6 and "The weights are random" not in page, "the page")
    number = DRAW.choice(sorted(pictures(page)))
    run("encode", out, "--texts", texts, "--witness", "witness", "--only", str(number))
    size = CAPSULES * WIDTH
    check(list(load_npy("witness/sketches.npy")[1]) == list(numbers[number * size:(number + 1) * size]), "another sketch")
    check(load_npy("witness/page.npy")[0] == (SIDE, SIDE), "the page of the witness")
    names = set(load_weights("witness/weights.safetensors"))
    check(not any(n.startswith(("reasoner.", "planner.", "output_head.", "q_head.")) for n in names), "weights that capsules do not need are held", names)
    encode(out, "--texts", texts, "--block_texts", "8", "--output", "again.blocks", "--weights", "witness/weights.safetensors")
    check(numbers_of("again.blocks")[1] == numbers, "the weights of a witness give others")


def test_plan():
    """A plan needs neither texts nor weights; what is measured is what it says (encode checks it), and what does not fit is refused."""
    config = write_hybrid()
    plan, _ = run("plan", config, "--command", "encode", "--count", "1000000", "--text_format", "grammar")
    check("1,000,000" in plan and "reasoner" not in plan, plan)
    check(not os.path.exists("out"), "a plan made a folder")
    plan, _ = run("plan", config)  # of a training nothing is said of texts
    check("num_workers" not in plan and "pipeline" not in plan, plan)
    out, texts = train(), write_texts(5)
    refused(3, "raise the budget", "encode", out, "--texts", texts, "--budget", "5MB")
    check(not os.path.exists(f"{out}/results.blocks"), "what does not fit left results")


def test_texts_in_the_config_of_a_run():
    """They are no matter of its training: neither are they looked for, nor do they keep it from going on."""
    keys = {"texts": {"path": "later.txt"}, "pipeline": {"block_texts": 5}}
    out = train(**keys)
    check(not os.path.exists("out/texts.index"), "a training looked for texts")
    keys["pipeline"]["block_texts"] = 6
    run("train", write_hybrid(train={"steps": 4}, **keys), "--resume", "--quiet")
    write_texts(12, "later.txt")
    encode("hybrid.yaml")
    check(numbers_of(f"{out}/results.blocks")[0] == (12, CAPSULES, WIDTH), "texts of the config")


# ---- weights for arch capsules ----

ALONE = {"fusion_type": "none", "adapter_layers": 0}
SETS = ("sketches", "checksums", "children", "remarks")


def write_same(weights, path="encode.yaml", out="same", texts="texts.txt", **keys):
    """The encoder of write_hybrid, as arch capsules has it."""
    return write_encoder(path, out=out, **{"texts": texts, "text_format": None, "count": None, "seed": None, "image_size": SIDE, "patch_size": 16,
                                           "hidden_size": WIDTH, "num_heads": 2, "num_layers": 1, "H_cycles": 3, "L_cycles": 2, "target_capsules": CAPSULES,
                                           "capsule_grid_shape": "[1, 3]", "children_per_capsule": CHILDREN, "checksum_dim": CHECKSUM,
                                           "weights": weights, "block_texts": None, **keys})


def test_weights_serve_arch_capsules():
    """An encoder that was trained without towers: the other arch makes the same of its weights, to the bit, from a checkpoint and from an exported
    file, and what it exports and infers is of these weights, too."""
    out, texts = train(vision_encoder=ALONE, train={"steps": 4, "ema_rate": 0.5}), write_texts(20)
    encode(out, "--texts", texts)
    best = f"out/checkpoints/{read('out/checkpoints/best').decode().strip()}"
    names = set(load_weights(f"{best}/model.safetensors"))
    check(not any(n.startswith(("clip.", "vit.", "fusion.", "adapter.")) for n in names) and "encoder.patch_embed.weight" in names, names)
    run("export", out, "--format", "safetensors", "--out", "w.safetensors")
    shutil.copy(f"{best}/model.safetensors", "copy.safetensors")  # nothing says what it is of but its names
    for weights in (f"{best}/model.safetensors", "w.safetensors", "copy.safetensors"):
        encode(write_same(weights))
        for name in SETS:
            check(numbers_of("same/results.blocks", name) == numbers_of("out/results.blocks", name), weights, name)
        shutil.rmtree("same")
    encode(write_same(f"{best}/model.safetensors", precision="bfloat16", out="narrow"))
    check(numbers_of("narrow/results.blocks")[1] != numbers_of("out/results.blocks")[1], "bf16 has the same bits")
    check(inferred(write_same(f"{best}/model.safetensors"), texts)[1] == bits(numbers_of("out/results.blocks")[1]), "infer")
    run("export", write_same(f"{best}/model.safetensors"), "--format", "safetensors", "--out", "again.safetensors")
    taken = load_weights("again.safetensors")
    check(set(taken) < names, "what was exported has weights of its own", set(taken) - names)
    trained = load_weights("w.safetensors")
    check(all(taken[n][1] == trained[n][1] for n in taken), "other weights were exported")


def test_encoder_alone_is_trained():
    """All of it, by the same update whatever the plan; and it gives out what the seed of arch capsules would not."""
    config = write_hybrid(vision_encoder=ALONE, train={"steps": 3, "checkpoint_every": 1, "keep_last": 3, "batch_size": 6})
    run("verify", config)
    run("train", config, "--quiet")
    first, last = (load_weights(f"out/checkpoints/step-0000000{n}/model.safetensors") for n in (1, 3))
    still = [name for name in first if first[name] == last[name] and not name.startswith("reasoner.")]
    check(not still, "what did not change", still)
    check("fusion_gate_mean" not in read("out/metrics.jsonl").decode(), "gates of a fusion that is not there")
    for key, value in (("vision_encoder.pretrained_weights", "x"), ("vision_encoder.unfreeze_pretrained_layers", "1"), ("vision_encoder.features_cache", "1MB"),
                       ("n2n_pretrain.enabled", "true"), ("vision_encoder.progressive_fusion", "true")):
        refused(2, f"fusion_type none leaves both towers out, and {key} is of these", "plan", config, "--set", f"{key}={value}", "--set", "vision_encoder.adapter_layers=1")


def test_weights_that_cannot_serve():
    texts = write_texts(3)
    path = f"{last_checkpoint(train())}/model.safetensors"
    for command in ("encode", "plan"):
        refused(4, r"model.safetensors: its encoder was trained after parts that arch capsules has not got: the frozen tower .clip\.….*, the trained tower .*, "
                   r"the fusion .*, the adapter .*; encode with that run itself .plimsoll encode RUN.", command, write_same(path))
    shutil.rmtree("out")
    path = f"{last_checkpoint(train(vision_encoder={'fusion_type': 'none', 'adapter_layers': 1}))}/model.safetensors"
    refused(4, r"has not got: the adapter .adapter\.….; encode", "encode", write_same(path))
    shutil.rmtree("out")
    path = f"{last_checkpoint(train(vision_encoder=ALONE))}/model.safetensors"
    for key, value, said in (("num_heads", 4, "trained with vision_encoder.heads 2, but .*says encoder.heads 4"), ("L_cycles", 1, "H_cycles times L_cycles 6"),
                             ("hidden_size", 32, "vision_encoder.width 16"), ("expansion", 8, "vision_encoder.expansion 4"), ("recursion", "trm", "recursion flat"),
                             ("pooling_method", "avg", "pooling_method attention"), ("real_children", "false", "real_children true"), ("rms_norm_eps", "1e-5", "1e-06")):
        refused(4, said, "encode", write_same(path, **{key: value}))
    with open(path, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", 0.125))
    refused(4, "does not match its checksum in run.json", "encode", write_same(path))
    check(not os.path.exists("same/results.blocks"), "refused weights left results")


def test_refused():
    config, texts = write_hybrid(), write_texts(3)
    refused(4, "out: nothing was trained there yet; train first: plimsoll train hybrid.yaml", "encode", config, "--texts", texts)
    os.mkdir("empty")
    refused(2, "empty: is not a readable folder of a run", "encode", "empty", "--texts", texts)
    out = train()
    refused(2, "texts.path is empty; name the file", "encode", out)
    refused(4, "no.txt: cannot be opened", "encode", out, "--texts", "no.txt")
    refused(4, "nodir: is not a checkpoint", "encode", out, "--texts", texts, "--checkpoint", "nodir")
    refused(2, "--checkpoint .*run.weights .*both name the weights", "encode", out, "--texts", texts, "--checkpoint", last_checkpoint(out), "--weights", "w")
    refused(2, "--batch_size: this command does not read train.batch_size", "encode", out, "--texts", texts, "--batch_size", "4")
    refused(2, "this command does not read stage", "encode", out, "--texts", texts, "--stage", "task")
    refused(2, "texts.font is not used when model.arch is hybrid", "encode", out, "--texts", texts, "--font", "x.ttf")
    refused(4, "of a model with vision_encoder.H_cycles 2, but .* says 1", "encode", out, "--texts", texts, "--set", "vision_encoder.H_cycles=1")
    refused(2, "reading.noise 3 adds noise to pages", "encode", out, "--texts", texts, "--set", "reading.noise=3")
    refused(2, "n2n_pretrain.only makes the config that of another training", "encode", out, "--texts", texts, "--set", "n2n_pretrain.only=true")
    refused(2, "--texts: this command does not read texts.path .encode does.", "quantize", out, "--texts", texts)
    refused(2, "pipeline.time_limit .soon. is no time", "encode", out, "--texts", texts, "--time_limit", "soon")
    path = f"out/checkpoints/{read('out/checkpoints/best').decode().strip()}/model.safetensors"
    weights = load_weights(path)
    weights.pop("adapter.gate.bias")
    write_weights("few.safetensors", {name: ("F32", *tensor) for name, tensor in weights.items()})
    refused(4, 'few.safetensors: has no tensor "adapter.gate.bias"; the model takes F32 .1.', "encode", out, "--texts", texts, "--weights", "few.safetensors")
    with open(path, "r+b") as file:  # a bit of the last number
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    refused(4, "does not match its checksum in run.json; it is damaged", "encode", out, "--texts", texts)
    check(not os.path.exists("out/results.blocks"), "what was refused left results")


GROUPS = {"hybrid_encode": [test_capsules_are_those_of_the_model, test_behind_a_denoiser, test_precision, test_weights_in_8_bits, test_damaged_checkpoint,
                            test_several_trainings, test_children_and_checksums, test_bits_hang_on_texts_and_weights,
                            test_killed_and_resumed, test_results_know_their_weights, test_witness_and_page, test_plan,
                            test_texts_in_the_config_of_a_run, test_refused],
          "trained_encoder": [test_weights_serve_arch_capsules, test_encoder_alone_is_trained, test_weights_that_cannot_serve]}

if __name__ == "__main__":
    main(GROUPS)
