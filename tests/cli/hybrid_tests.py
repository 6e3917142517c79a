"""Tests of arch hybrid as a person runs it: pages are learnt and evaluated, kills and going on, the same bits whatever the micro-batch, threads and
recomputation, gradients that are given out, bad input. Called as cli_tests.py is."""
import json
import math
import os
import re
import shutil
import signal
import struct

import cli_tests
from cli_tests import SEED, Skipped, await_event, check, finish, last_checkpoint, main, metrics, needed, read, refused, run, same_run, start_closely
from soak import need_all

SMALL = {"vision_encoder": {"image_size": 64, "hidden_size": 16, "pretrained_layers": 1, "vit_layers": 1, "vit_heads": 2, "adapter_layers": 1, "num_heads": 2,
                            "num_layers": 1, "target_capsules": 3, "checksum_dim": 4},
         "reasoning": {"num_heads": 2, "L_layers": 1}, "latent_planning": {"latent_num_paths": 2, "latent_planning_depth": 1},
         "reading": {"words": 8, "pages": 60, "held_out": 0.3}, "train": {"batch_size": 6, "steps": 6, "learning_rate": 0.003}}


def write_hybrid(path="hybrid.yaml", out="out", **sections):
    merged = {name: {**keys, **sections.pop(name, {})} for name, keys in SMALL.items()}
    merged["train"].setdefault("seed", SEED % 1000)
    merged.update(sections)
    with open(path, "w") as file:
        file.write(f"model: {{arch: hybrid}}\nrun: {{out: {out}, threads: 1}}\n"
                   + "".join(f"{name}: {json.dumps(keys)}\n" for name, keys in merged.items()))
    need_pages()
    return path


def need_pages():
    module = os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-draw.so")
    if not os.path.exists(module):
        raise Skipped("pages cannot be drawn: the module plimsoll-draw.so was not built")


def test_learns_and_is_evaluated():
    """Pages of two words are read by two capsules, also those that were not trained with. Guessing reads one word in 16, and knowing which words
    a page has, but not which comes first, one in two. eval says what the run's own evaluation said. One seed: of some a training so short reads less."""
    config = write_hybrid(vision_encoder={"target_capsules": 2, "dropout": 0, "hidden_size": 32, "adapter_layers": 0, "H_cycles": 1, "L_cycles": 1},
                          reasoning={"H_cycles": 1, "L_cycles": 1}, latent_planning={"path_dropout": 0}, reading={"words": 16, "pages": 2000, "held_out": 0.1},
                          train={"batch_size": 32, "steps": 600, "learning_rate": 0.002, "warmup_steps": 100, "eval_every": 200, "log_every": 10, "seed": 5})
    _, err = run("train", config)
    check("As planned, to the byte." in err, err[-500:])
    losses = [m["loss"] for m in metrics("out") if "loss" in m]
    check(losses[0] > 2 and losses[-1] < 0.5, losses)
    out, _ = run("eval", "out")
    step = int(re.search(r"step +(\d+)", out)[1])  # the best one
    seen = next(m for m in metrics("out") if m["step"] == step and "token_accuracy" in m)
    check(seen["exact_accuracy"] <= seen["token_accuracy"] <= 1 and seen["token_accuracy"] > 0.9, seen)
    for name in ("fusion", "planner"):
        check(0 < seen[name + "_gate_mean"] < 1 and 0 <= seen[name + "_gate_std"] < 0.5, seen)
        check(re.search(r"%s gate +%.4f" % (name, seen[name + "_gate_mean"]), out), out, seen)
    check("adapter_gate_mean" not in seen, "gates of an adapter that is not there")
    check(0 < seen["path_entropy"] <= 0.6932 and 0 <= seen["q_halt_accuracy"] <= 1, seen)
    check(f"{seen['validation_loss']:.5f} nats per word" in out and re.search(r"words read +%.4f" % seen["token_accuracy"], out), out, seen)


# Pages that stay for several steps, codes, and a fusion that is led: everything that lasts from step to step.
WHOLE = {"vision_encoder": {"progressive_fusion": True}, "reasoning": {"halt_max_steps": 4, "halt_exploration": 0.5}, "output_head": {"vq_codebook": "beside"}}


def lasting(folder):
    """What a run's last checkpoint holds, as bytes."""
    return {**header(f"{last_checkpoint(folder)}/model.safetensors"), **header(f"{last_checkpoint(folder)}/state.safetensors")}


def test_what_lasts_has_the_same_bits():
    """However the batch is cut, and with padding; and each part of it does something."""
    for name, words in (("whole", ["--micro_batch", "6"]), ("ones", ["--micro_batch", "1", "--threads", "2"]),
                        ("four", ["--micro_batch", "4", "--gradient_checkpointing", "full"])):
        run("train", write_hybrid(out=name, **json.loads(json.dumps(WHOLE))), "--quiet", *words)
    whole = lasting("whole")
    for name in ("ones", "four"):
        check(metrics(name) == metrics("whole"), name)
        other = lasting(name)
        check(other == whole, name, [key for key in whole if whole[key] != other.get(key)])
    done = struct.unpack("6i", whole["carry.done"])
    check(all(0 <= n < 4 for n in done) and any(done), done)
    check(struct.unpack("f", whole["fusion.progressive_bias"])[0] == struct.unpack("f", struct.pack("f", -0.3))[0], "the bias of the last step")
    sizes = struct.unpack("8f", whole["codes.sizes"])
    # 5 updates of 18 vectors each have been taken in, the sixth waits in the sums
    check(abs(sum(sizes) - (8 * 0.99 ** 5 + 18 * (1 - 0.99 ** 5))) < 1e-3, sizes)
    sums = struct.unpack(f"{8 * 17}f", whole["codes.sums"])
    check(sum(sums[16::17]) == 18, sums[16::17])


def test_pages_stay_and_leave():
    """Where the head says from the first that all is right, no page stays; where it never does, each stays as long as it may."""
    def pages_of(out, **keys):
        run("train", write_hybrid(out=out, reasoning={"halt_max_steps": 3, **keys}, train={"steps": 4, "checkpoint_every": 1, "keep_last": 4, "log_every": 1, "eval_every": 4}), "--quiet")
        states = [header(f"{out}/checkpoints/step-0000000{n}/state.safetensors") for n in (1, 2, 3, 4)]
        return [s["carry.pages"] for s in states], [struct.unpack("6i", s["carry.done"]) for s in states]
    pages, done = pages_of("stays", halt_exploration=0)
    check(done == [(1,) * 6, (2,) * 6, (0,) * 6, (1,) * 6], done)
    check(pages[0] == pages[1] == pages[2] != pages[3], "pages")
    first = [m["loss"] for m in metrics("stays") if "loss" in m]
    run("train", write_hybrid(out="alone", train={"steps": 4, "log_every": 1, "eval_every": 4}), "--quiet")
    apart = [abs(a - b["loss"]) for a, b in zip(first, (m for m in metrics("alone") if "loss" in m))]
    check(apart[0] < 1e-5 < apart[1], "the first step is the same, the next one is not", apart)


def test_other_fusions():
    run("train", write_hybrid(out="average", vision_encoder={"fusion_type": "learned_avg"}), "--quiet")
    last = header(f"{last_checkpoint('average')}/model.safetensors")
    alpha = struct.unpack("f", last["fusion.alpha"])[0]
    check(0 < abs(alpha - 0.5) < 0.1 and "fusion.gate.0.weight" not in last, alpha)
    told = [m for m in metrics("average") if "fusion_gate_mean" in m][-1]
    check(abs(told["fusion_gate_mean"] - 1 / (1 + math.exp(-alpha))) < 1e-6 and told["fusion_gate_std"] < 1e-6, told, alpha)
    for name, words in (("attend", ["--micro_batch", "6"]), ("attend_cut", ["--micro_batch", "1", "--threads", "2", "--gradient_checkpointing", "full"])):
        run("train", write_hybrid(out=name, vision_encoder={"fusion_type": "attention"}), "--quiet", *words)
    check(lasting("attend") == lasting("attend_cut"), "attention, cut")
    names = [name for name in header(f"{last_checkpoint('attend')}/model.safetensors") if name.startswith("fusion.")]
    check(sorted(names) == ["fusion.key.weight", "fusion.query.bias", "fusion.query.weight", "fusion.value.bias", "fusion.value.weight"], names)
    told = [m for m in metrics("attend") if "word_accuracy" in m or "token_accuracy" in m][-1]
    check("fusion_gate_mean" not in told and "adapter_gate_mean" in told, told)
    run("train", write_hybrid(out="attend_narrow", vision_encoder={"fusion_type": "attention"}), "--quiet", "--set", "train.mixed_precision=bf16")
    run("train", write_hybrid(out="straight", output_head={"vq_codebook": "straight_through"}), "--quiet")
    run("eval", "straight")
    keys = json.loads(json.dumps(WHOLE))
    keys["vision_encoder"]["fusion_type"] = "learned_avg"
    for name, micro in (("narrow", 6), ("cut", 4)):  # what is carried stays f32
        run("train", write_hybrid(out=name, **json.loads(json.dumps(keys))), "--quiet", "--micro_batch", str(micro), "--set", "train.mixed_precision=bf16")
    check(lasting("narrow") == lasting("cut") and len(lasting("cut")["carry.z_H"]) == 6 * 3 * 16 * 4, "16 bits")


def test_same_bits_however_it_is_cut():
    for name, words in (("whole", ["--micro_batch", "6"]), ("ones", ["--micro_batch", "1", "--threads", "2"]), ("four", ["--micro_batch", "4"]),
                        ("again", ["--micro_batch", "2", "--gradient_checkpointing", "full"])):
        run("train", write_hybrid(out=name), "--quiet", *words)
    for name in ("ones", "four", "again"):
        check(metrics(name) == metrics("whole"), name)
        check(read(f"{last_checkpoint(name)}/model.safetensors") == read(f"{last_checkpoint('whole')}/model.safetensors"), name)


def test_shared_sums():
    """One sum for a weight that is read again and again: less memory, the same numbers but for rounding; by leave alone."""
    run("train", write_hybrid(out="apart"), "--quiet", "--micro_batch", "2")
    run("train", write_hybrid(out="shared"), "--quiet", "--micro_batch", "2", "--set", "train.shared_sums=on")
    apart, shared = (read(f"{last_checkpoint(out)}/model.safetensors") for out in ("apart", "shared"))
    check(apart != shared, "nothing was shared")
    losses = [[m["loss"] for m in metrics(out) if "loss" in m] for out in ("apart", "shared")]
    check(len(losses[0]) > 2 and all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(*losses)), losses)
    tight = [write_hybrid(), "--micro_batch", "1", "--threads", "1", "--gradient_checkpointing", "full", "--budget"]
    least = needed(run("plan", *tight, "1MB", code=3)[1])
    out, err = run("fit", *tight, str(least - 1), code=3)
    check(re.search(r"^fit\.allow: shared_sums (\* )? *yes ", out, re.M), out, err)
    out, _ = run("fit", *tight, str(least - 1), "--set", "fit.allow=shared_sums")
    check(re.search("gradient sums +one for a weight", out), out)


def test_killed_and_gone_on():
    config = write_hybrid(train={"steps": 60, "checkpoint_every": 5, "log_every": 1, "eval_every": 10}, **json.loads(json.dumps(WHOLE)))
    run("train", config, "--quiet", "--out", "whole")
    for number in (signal.SIGKILL, signal.SIGINT):
        process = start_closely("train", config, "--resume=auto")
        await_event(process, "step", 10)
        process.send_signal(number)
        finish(process)
    run("train", config, "--quiet", "--resume=auto")
    same_run("out", "whole")


def test_frozen_weights_stay():
    """What is not trained is what the seed made it, has no gradient and no state; each trained weight has one, and changes."""
    config = write_hybrid(train={"steps": 3, "checkpoint_every": 1, "keep_last": 3})
    run("train", config, "--quiet")
    first, last = (header(f"out/checkpoints/step-0000000{n}/model.safetensors") for n in (1, 3))
    frozen = {name for name in first if name.startswith(("clip.", "reasoner.H_init", "reasoner.L_init"))}
    check(len(frozen) == 21 + 2 and {name for name in first if first[name] == last[name]} == frozen,
          sorted(frozen ^ {name for name in first if first[name] == last[name]}))
    run("verify", "--gradients", "g.safetensors", "out")
    check({name[5:] for name in header("g.safetensors") if name.startswith("grad.")} == set(first) - frozen, "gradients of other weights")
    state = " ".join(header("out/checkpoints/step-00000003/state.safetensors"))
    check("clip." not in state and "vit.layernorm.weight" in state, state[:300])


def header(path):
    """The bytes of each tensor."""
    data = read(path)
    size = int.from_bytes(data[:8], "little")
    return {name: data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]] for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def test_other_words():
    config = write_hybrid()
    run("train", config, "--quiet")
    refused(2, "was trained to read other words", "eval", "out", "--set", "reading.lexicon_seed=7")
    with open("words.txt", "w") as file:
        file.write("".join(f"{word}\n" for word in ("tea", "oak", "sun", "ice", "ash", "fog", "elm", "bay", "owl")))
    run("train", write_hybrid(out="named", reading={"lexicon": "words.txt"}), "--quiet")
    check(os.path.exists("named/report.json"), "no report")


def test_bad_input():
    for sections, code, words in (({"vision_encoder": {"hidden_size": 15}}, 2, r"vision_encoder.vit_heads 2 does not divide vision_encoder.width 15"),
                                  ({"vision_encoder": {"image_size": 60}}, 2, r"vision_encoder.patch_size 16 does not divide vision_encoder.image_size 60"),
                                  ({"vision_encoder": {"hidden_size": 6}}, 2, r"gives heads 3 numbers wide, which cannot be turned in pairs"),
                                  ({"vision_encoder": {"children_per_capsule": 17}}, 2, r"more than the 16 patches of a page"),
                                  ({"vision_encoder": {"expansion": 0.001}}, 2, r"vision_encoder.expansion 0.001 leaves the feed-forward layers no width"),
                                  ({"reasoning": {"expansion": 0.001}}, 2, r"reasoning.expansion 0.001 leaves the feed-forward layers no width"),
                                  ({"vision_encoder": {"fusion_type": "sum"}}, 2, r"fusion_type"),
                                  ({"vision_encoder": {"fusion_type": "attention", "progressive_fusion": True}}, 2, r"progressive_fusion .* attention has no gate; leave it out"),
                                  ({"vision_encoder": {"progressive_fusion": True}, "train": {"steps": "auto"}}, 2, r"progressive_fusion follows .* train.steps is auto: write .steps: .* under train"),
                                  ({"output_head": {"vq_codebook": "yes"}}, 2, r"vq_codebook"),
                                  ({"vision_encoder": {"features_cache": "10MB"}, "reasoning": {"halt_max_steps": 2}}, 2, r"features_cache keeps .* those that stay, too; leave one"),
                                  ({"reasoning": {"halt_max_steps": 0}}, 2, r"halt_max_steps"),
                                  ({"reading": {"pages": 1}}, 2, r"leaves none to (evaluate|train with)"),
                                  ({"reading": {"lexicon": "none.txt"}}, 4, r"none.txt"), ({"reading": {"lexicon": "few.txt"}}, 4, r"few.txt: has 1 words, and reading.words is 8"),
                                  ({"reading": {"lexicon": "empty.txt"}}, 4, r"empty.txt: has no words"),
                                  ({"reading": {"lexicon": "long.txt", "words": 2}}, 2, r"the word abcdefgh is longer than a line, which has 6 letters"),
                                  ({"reading": {"font": "few.txt"}}, 4, r"few.txt"), ({"reading": {"held_out": 1}}, 2, r"reading.held_out"),
                                  ({"encoder": {"seed": 3}}, 2, r"encoder"), ({"texts": {"font": "x.ttf"}}, 2, r"texts.font")):
        for name, text in (("few.txt", "one\n"), ("empty.txt", "\n"), ("long.txt", "abc\nabcdefgh\n")):
            with open(name, "w") as file:
                file.write(text)
        config = write_hybrid(out="new", **json.loads(json.dumps(sections)))
        for command in ("plan", "train"):
            refused(code, words, command, config)
        check(not os.path.exists("new/checkpoints"), sections, "began a run")
    refused(2, "generate", "generate", write_hybrid())


# ---- the documented config, and its trainings ----

PRETRAINED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/hybrid_pretrained.yaml")


def test_the_documented_file():
    """Its own names mean keys of train and others, each once."""
    out, _ = run("config", PRETRAINED)
    for line in ("batch_size: 192", "gradient_accumulation_steps: 4", "learning_rate: 0.0001", "warmup_steps: 3000", "mixed_precision: bf16", "progressive_fusion: true",
                 "min_lr_ratio: 0.1", "beta2: 0.95", "ema_rate: 0.999", "seed: 0"):
        check(f"  {line}\n" in out, line, out)
    check("  lr:" not in out, out)
    text = read(PRETRAINED).decode()
    for old, new, words in (("lr: 1e-4\n  steps", "lrr: 1e-4\n  steps", 'unknown key "lrr" in task_training; did you mean "lr"?'),
                            ("seed: 0", "train: {batch_size: 4}", 'train.batch_size is here a second time, as "batch_size"; the first, "task_training.batch_size", is on line'),
                            ("arch: hybrid", "arch: gpt", 'task_training.batch_size is not used when model.arch is gpt; write "batch_size" under train'),
                            ("H_layers: 3", "H_layers: x", "reasoning.H_layers must be"),
                            ("mixed_precision: true", "mixed_precision: maybe", "train.mixed_precision must be"),
                            ("  hidden_size: 768\n  num_heads: 12", "  hidden_size: 512\n  num_heads: 12", "reasoning.width 512 is not vision_encoder.width 768"),
                            ("cache_images: true", "denoiser_path: unet\nfit: {allow: [frozen_bf16]}", "dataset.denoiser_path brings weights in f32, and fit.allow stores what is frozen in 16 bits"),
                            ("freeze_pretrained: true", "freeze_pretrained: false", "say with vision_encoder.unfreeze_pretrained_layers how many of the 12 layers"),
                            ("  freeze_pretrained: true", "  freeze_pretrained: true\nvision_encoder:\n  unfreeze_pretrained_layers: 2", "second time"),
                            ("gradient_accumulation_steps: 4", "gradient_accumulation_steps: 100000", "is more than 16777216 samples; take fewer")):
        check(old in text, old)
        with open("wrong.yaml", "w") as file:
            file.write(text.replace(old, new))
        refused(2, words, "plan", "wrong.yaml")
    refused(2, "task_training.freeze_pretrained is true, and vision_encoder.unfreeze_pretrained_layers 2", "plan", PRETRAINED, "--set", "vision_encoder.unfreeze_pretrained_layers=2")


def test_no_effect_is_told():
    config = write_hybrid(task_training={"torch_compile": True, "pin_memory": True, "num_workers": 4}, dataset={"cache_images": True})
    check("dataset.cache_images keeps nothing, since no denoiser makes pages" in " ".join(run("plan", config)[0].split()), "not said")
    out = " ".join(run("train", config, "--steps", "1")[1].split())
    for words in ("task_training.torch_compile (operators are fused always", "task_training.pin_memory (the processor computes)", "task_training.num_workers (one thread draws"):
        check(words in out, words, out[:3000])


def test_batches_of_an_update():
    """So many batches are one of their product, to the last bit."""
    run("train", write_hybrid(out="one", train={"batch_size": 12}), "--quiet")
    run("train", write_hybrid(out="three", train={"batch_size": 4, "gradient_accumulation_steps": 3}), "--quiet")
    check(metrics("one") == metrics("three") and lasting("one") == lasting("three"), "other bits")
    refused(2, "train.micro_batch 13 is more than train.batch_size times gradient_accumulation_steps, 12", "plan", "hybrid.yaml", "--set", "train.gradient_accumulation_steps=3",
            "--set", "train.batch_size=4", "--micro_batch", "13")


def test_the_adapter_stays():
    """Frozen it has neither moments nor gradients, and its weights stay, while what stands before it learns through it."""
    run("train", write_hybrid(task_training={"freeze_n2n_adapter": True}, train={"checkpoint_every": 1, "keep_last": 6}), "--quiet")
    first, last = (header(f"out/checkpoints/step-0000000{n}/model.safetensors") for n in (1, 6))
    moved = [name for name in first if first[name] != last[name]]
    check(not any(name.startswith(("adapter.", "clip.")) for name in moved), moved)
    check(any(name.startswith("vit.") for name in moved) and any(name.startswith("fusion.") for name in moved), moved)
    state = header("out/checkpoints/step-00000006/state.safetensors")
    check(any("vit." in name for name in state) and not any("adapter." in name for name in state), list(state))
    run("verify", "--gradients", "g.safetensors", "out")
    check(not any("adapter." in name for name in header("g.safetensors")), "gradients of the adapter")


def test_task_and_finetune():
    """Two trainings, a folder each: the second begins with the weights of the first and trains the last layers of the tower. One
    after the other by hand they have the same bits."""
    keys = {"vision_encoder": {"pretrained_layers": 2}, "finetune": {"enabled": True, "unfreeze_pretrained_layers": 1, "lr": 0.001}, "train": {"checkpoint_every": 1, "keep_last": 6}}
    config = write_hybrid(**json.loads(json.dumps(keys)))
    run("plan", write_hybrid("thawed.yaml", out="thawed", vision_encoder={"unfreeze_pretrained_layers": 1}))
    run("train", "thawed.yaml", "--quiet", "--steps", "2")
    run("eval", "thawed")  # its config says every key
    refused(4, "holds no training that finetune could begin with", "train", config, "--stage", "finetune")
    out, err = run("train", config)
    for folder in ("out/task", "out/finetune"):
        pages = read(f"{folder}/predictions.csv").decode().splitlines()
        told = [line.split(",") for line in pages[1:]]
        check(pages[0].startswith("page,words,right,all_right,q_halt"), pages[0])
        right = sum(int(line[2]) for line in told) / sum(int(line[1]) for line in told)
        check(f"{os.path.basename(folder)} " in out and f"{right:.3f}" in out, out, right)
        check(len(told) == len({line[0] for line in told}), "pages twice", told)
    rows = json.loads(read("out/results.json"))["trainings"]
    check([row["training"] for row in rows] == ["task", "finetune"], rows)
    check(b"Pages that are read" in read("out/results.html") and err.count("As planned, to the byte.") == 1, err[-2000:])
    task, first, last = (header(f"out/{name}/model.safetensors") for name in ("task/checkpoints/step-00000006", "finetune/checkpoints/step-00000001", "finetune/checkpoints/step-00000006"))
    layer = "clip.vision_model.encoder.layers.%d.mlp.fc1.weight"
    check(task[layer % 0] == first[layer % 0] == last[layer % 0], "the first layer stays")
    check(task[layer % 1] != first[layer % 1] != last[layer % 1], "the last layer learns")
    refused(5, "out/task: was begun before; continue with --resume", "train", config)
    out, _ = run("train", config, "--resume")
    check("finetune" in out, out)
    # what is damaged is said, and made anew, as it was; so it is when it is gone
    whole = read("out/finetune/predictions.csv")
    with open("out/finetune/predictions.csv", "a") as file:
        file.write("7,1,2\n")
    _, told = run("train", config, "--resume")
    check("predictions.csv is not as it was written" in told and read("out/finetune/predictions.csv") == whole, told)
    os.remove("out/finetune/predictions.csv")
    run("train", config, "--resume")
    check(read("out/finetune/predictions.csv") == whole, "other predictions")
    # by hand, and in parts
    other = write_hybrid("other.yaml", out="parts", **json.loads(json.dumps(keys)))
    run("train", other, "--stage", "task", "--quiet")
    check(os.listdir("parts") != [] and not os.path.exists("parts/finetune"), os.listdir("parts"))
    run("train", other, "--stage", "finetune", "--quiet")
    check(lasting("parts/finetune") == lasting("out/finetune"), "other bits")
    # what the whole begins with is what its first training begins with
    run("train", config, "--out", "third", "--set", "train.init_from=out/task", "--quiet")
    check(b"/third/task\n" in read("third/finetune/config.yaml") and b"/out/task\n" in read("third/task/config.yaml"), read("third/finetune/config.yaml"))
    refused(2, "--stage: there is no stage dream; they are denoiser, policy, n2n, task and finetune", "train", other, "--stage", "dream")


NOISY = {"vision_encoder": {"dropout": 0}, "n2n_pretrain": {"enabled": True, "steps": 120, "batch_size": 10, "lr": 0.01, "noise": 0.2}}


def test_the_adapter_alone():
    """Noise2Noise: the adapter sees noisy features and noisy targets alone, and what it makes of them comes nearer to the clean ones. The task begins
    with it. What noise is there to begin with, follows from its share; and of a training that has come near, the loss is about that of the targets."""
    keys = {**NOISY, "task_training": {"freeze_n2n_adapter": True}}
    config = write_hybrid(**json.loads(json.dumps(keys)))
    refused(4, "out/n2n: holds no training that task could begin with; make it first, with the same command and --stage n2n", "train", config, "--stage", "task")
    out, err = run("train", config)
    check(err.count("As planned, to the byte.") == 1, err[-2000:])
    seen = [m for m in metrics("out/n2n") if "noise_left" in m]
    check(seen[-1]["noise_left"] < 0.7 * seen[0]["noise_left"] and 0 < seen[-1]["adapter_gate_mean"] < 1 and "token_accuracy" not in seen[-1], seen[0], seen[-1])
    lines = [[float(x) for x in line.split(",")] for line in read("out/n2n/predictions.csv").decode().splitlines()[1:]]
    best = min(seen, key=lambda m: m["validation_loss"])
    noise, left = (sum(line[k] for line in lines) for k in (1, 2))
    of_page = 16 * 16 * len(lines)  # tokens and features
    check(math.isclose(left / noise, best["noise_left"], rel_tol=1e-4) and math.isclose(left / of_page, best["validation_loss"], rel_tol=1e-4), left, noise, best)
    # what is left out is a quarter of the clean squares: p / (1 - p)
    clean = features_of(config)
    check(abs(noise / of_page / (0.25 * clean) - 1) < 0.2, noise / of_page, clean)
    trained = [m["loss"] for m in metrics("out/n2n") if "loss" in m]
    check(0.8 < trained[-1] / (noise / of_page) < 2 and trained[0] > trained[-1], trained, noise / of_page)
    # its model is the tower and the adapter, with which the task begins
    last = header(f"{last_checkpoint('out/n2n')}/model.safetensors")
    check(all(name.startswith(("clip.", "adapter.")) for name in last) and any(name.startswith("adapter.") for name in last), list(last))
    task = header(f"{last_checkpoint('out/task')}/model.safetensors")
    best = header(f"out/n2n/checkpoints/step-{best['step']:08d}/model.safetensors")
    check(all(task[name] == best[name] for name in best), "the task has another adapter, or tower")
    check(f"begins with {len(best)} of its {len(task)} tensors from out/n2n/checkpoints/step-" in err, err)
    rows = json.loads(read("out/results.json"))["trainings"]
    check([row["training"] for row in rows] == ["n2n", "task"] and math.isclose(rows[0]["noise_left"], left / noise, rel_tol=1e-6), rows)
    check("token_accuracy" not in rows[0] and "noise_left" not in rows[1] and "noise left" in out and b"noise left" in read("out/results.html"), rows, out)
    told, _ = run("eval", "out/n2n")
    check(re.search(r"noise left +%.4f" % (left / noise), told) and "mean squared error of the features" in told, told)
    run("report", "out/n2n", "--html", "page.html")
    check(b"Noise left" in read("page.html"), "no chart")
    # by hand, in parts: the same bits
    other = write_hybrid("other.yaml", out="parts", **json.loads(json.dumps(keys)))
    for stage in ("n2n", "task"):
        run("train", other, "--stage", stage, "--quiet")
        check(lasting("parts/" + stage) == lasting("out/" + stage), stage, "other bits")


def features_of(config):
    """The mean square of what the frozen tower makes of pages: what is left of it where all but nothing is left out, and of the noise."""
    run("train", config, "--stage", "n2n", "--out", "all", "--set", "n2n_pretrain.noise=0.5", "--set", "n2n_pretrain.steps=1", "--quiet")
    lines = [[float(x) for x in line.split(",")] for line in read("all/n2n/predictions.csv").decode().splitlines()[1:]]
    return sum(line[1] for line in lines) / (16 * 16 * len(lines))  # half are left out, half twice as large: the noise is as large as what it is of, whatever falls


def test_noise_however_it_is_cut():
    """The same bits whatever the micro-batch, the threads and what is recomputed; a batch that micro-batches do not divide has rows of no page."""
    keys = {"n2n_pretrain": {"only": True}, "train": {"batch_size": 7, "steps": 4}}
    for k, words in enumerate((["--micro_batch", "7"], ["--micro_batch", "2"], ["--micro_batch", "3", "--threads", "2"], ["--set", "train.gradient_checkpointing=full"])):
        run("train", write_hybrid(out=f"out{k}", **json.loads(json.dumps(keys))), "--quiet", *words)
        check(k == 0 or (lasting(f"out{k}") == lasting("out0") and metrics(f"out{k}") == metrics("out0")), words, "other bits")
    run("train", write_hybrid(out="kept", **{**keys, "vision_encoder": {"features_cache": "10MB"}}), "--quiet")
    check(lasting("kept") == lasting("out0"), "other bits with features that are kept")
    for sections, words in (({"n2n_pretrain": {"only": True, "enabled": True}}, "n2n_pretrain.only makes the config that of one training, and n2n_pretrain.enabled"),
                            ({"n2n_pretrain": {"enabled": True}, "vision_encoder": {"adapter_layers": 0}}, "with vision_encoder.adapter_layers 0 there is no adapter to train"),
                            ({"n2n_pretrain": {"only": True}, "vision_encoder": {"unfreeze_pretrained_layers": 1}}, "trains the adapter alone, and vision_encoder.unfreeze"),
                            ({"n2n_pretrain": {"only": True}, "task_training": {"freeze_n2n_adapter": True}}, "freeze_n2n_adapter says that it stays"),
                            ({"n2n_pretrain": {"noise": 1}}, "n2n_pretrain.noise must be a number above 0 and below 1")):
        refused(2, words, "train", write_hybrid("wrong.yaml", out="new", **sections))


PAGES = {"vision_encoder": {"image_size": 48}, "denoiser": {"channels": 8, "depth": 2, "steps": 250, "batch_size": 8, "lr": 0.01}}


def test_the_denoiser_alone():
    """The U-Net sees noisy pages and noisy targets alone, and takes most of the noise off pages that it never saw; what an evaluation says follows from
    the lines of its pages."""
    config = write_hybrid(**{**json.loads(json.dumps(PAGES)), "reading": {"words": 500, "pages": 300, "held_out": 0.2}})
    out, err = run("train", config, "--stage", "denoiser")
    check(err.count("As planned, to the byte.") == 1, err[-2000:])
    seen = [m for m in metrics("out/denoiser") if "noise_left" in m]
    best = min(seen, key=lambda m: m["validation_loss"])
    check(best["noise_left"] < 0.8 and best["psnr"] > best["psnr_noisy"] + 1 and "adapter_gate_mean" not in best, seen)
    lines = [line.split(",") for line in read("out/denoiser/predictions.csv").decode().splitlines()[1:]]
    noise, left = (sum(float(line[k]) for line in lines) for k in (1, 2))
    numbers = 48 * 48 * 3 * len(lines)
    check(all(line[3] == "" for line in lines) and len(lines) > 20, lines[:3])
    check(math.isclose(left / noise, best["noise_left"], rel_tol=1e-4) and math.isclose(left / numbers, best["validation_loss"], rel_tol=1e-4), left, noise, best)
    check(abs(best["psnr"] + 10 * math.log10(left / numbers)) < 0.01 and abs(best["psnr_noisy"] + 10 * math.log10(noise / numbers)) < 0.01, best)
    # deviations are drawn evenly up to 50 of 255: their mean square is a third of the largest's
    check(0.5 < noise / numbers / ((50 / 255) ** 2 / 3) < 1.6, noise / numbers)
    deviations = sorted((float(line[1]) / (48 * 48 * 3)) ** 0.5 * 255 for line in lines)
    check(deviations[0] < 15 and 35 < deviations[-1] < 52, deviations)
    check(all(name.startswith("denoiser.") for name in header(f"{last_checkpoint('out/denoiser')}/model.safetensors")), "more than the denoiser")
    rows = json.loads(read("out/results.json"))["trainings"]
    check([row["training"] for row in rows] == ["denoiser"] and math.isclose(rows[0]["noise_left"], left / noise, rel_tol=1e-6) and "noise left" in out, rows)
    told, _ = run("eval", "out/denoiser")
    check(re.search(r"PSNR, dB +%.2f" % best["psnr"], told) and "mean squared error of the pixels" in told, told)
    # of a noisy target the noise stays in the loss, of a clean one it does not
    run("train", config, "--stage", "denoiser", "--out", "clean", "--set", "denoiser.target=clean", "--quiet")
    of_noisy, of_clean = ([m["loss"] for m in metrics(out + "/denoiser") if "loss" in m][-20:] for out in ("out", "clean"))
    check(0.6 < sum(of_noisy) / 20 / (noise / numbers) < 2 and sum(of_clean) / 20 < 0.5 * noise / numbers, of_noisy, of_clean, noise / numbers)
    check(max(m["psnr"] for m in metrics("clean/denoiser") if "psnr" in m) > best["psnr_noisy"] + 1, "a clean target teaches nothing")


def test_the_denoiser_however_it_is_cut():
    """The same bits whatever the threads and what is recomputed, and after going on; its norms see a whole batch, so there is one micro-batch."""
    keys = {**json.loads(json.dumps(PAGES)), "train": {"batch_size": 7, "steps": 4, "seed": SEED % 1000}}
    keys["denoiser"].update({"only": True})
    for k, words in enumerate(([], ["--threads", "2"], ["--set", "train.gradient_checkpointing=full"])):
        run("train", write_hybrid(out=f"out{k}", **json.loads(json.dumps(keys))), "--quiet", *words)
        check(k == 0 or (lasting(f"out{k}") == lasting("out0") and metrics(f"out{k}") == metrics("out0")), words, "other bits")
    config = write_hybrid(out="parts", **json.loads(json.dumps(keys)))
    run("train", config, "--quiet", "--steps", "2", "--set", "train.schedule=constant")
    run("train", config, "--quiet", "--steps", "4", "--set", "train.schedule=constant", "--resume")
    run("train", config, "--quiet", "--steps", "4", "--set", "train.schedule=constant", "--out", "whole")
    check(lasting("parts") == lasting("whole"), "other bits after going on")
    for sections, words in (({"denoiser": {"only": True}, "finetune": {"enabled": True}}, "denoiser.only makes the config that of one training, and finetune.enabled"),
                            ({"denoiser": {"only": True, "depth": 5}}, "denoiser.depth 5 halves the grid of a page so often, and vision_encoder.image_size 48"),
                            ({"denoiser": {"only": True}, "n2n_pretrain": {"only": True}}, "trains the denoiser alone, which has no frozen tower .* there is n2n_pretrain.only"),
                            ({"denoiser": {"only": True, "depth": 2}, "vision_encoder": {"features_cache": "1MB"}}, "there is vision_encoder.features_cache; leave one"),
                            ({"denoiser": {"noise": 0}}, "denoiser.noise must be a number above 0")):
        refused(2, words, "train", write_hybrid("wrong.yaml", out="new", **{"vision_encoder": {"image_size": 48}, **sections}))
    refused(2, "batch_norm_update in denoiser.down.0 mixes the samples of a batch of 7, so it must see all at once; set it to auto", "train", config, "--micro_batch", "2", "--out", "new")


def test_an_own_training_is_killed():
    """The adapter alone, and the denoiser, each killed as a stage and gone on with: what is left in the end is what a run in one piece leaves."""
    keys = {**json.loads(json.dumps(PAGES)), "train": {"checkpoint_every": 5, "log_every": 1, "eval_every": 10}}
    keys["denoiser"].update({"channels": 4, "steps": 100})
    config = write_hybrid(**{**keys, "n2n_pretrain": {"steps": 100, "batch_size": 8}})
    for name in ("n2n", "denoiser"):
        run("train", config, "--stage", name, "--quiet", "--out", "whole")
        for number in (signal.SIGKILL, signal.SIGINT):
            process = start_closely("train", config, "--stage", name, "--resume=auto")
            await_event(process, "step", 12)
            process.send_signal(number)
            finish(process)
            check(not os.path.exists(f"out/{name}/predictions.csv"), name, "was through before it was stopped")
        run("train", config, "--stage", name, "--quiet", "--resume=auto")
        same_run(f"out/{name}", f"whole/{name}")
        check(read(f"out/{name}/predictions.csv") == read(f"whole/{name}/predictions.csv"), name, "other pages")


POLICY = {**PAGES, "reading": {"words": 30, "pages": 200, "held_out": 0.2}, "page_policy": {"samples": 4, "steps": 60, "batch_size": 8, "lr": 1e-3}}


# So many texts, of two words, that none is learnt by heart.
LEARNT = {**PAGES, "vision_encoder": {"image_size": 64}, "reading": {"words": 500, "pages": 1000, "held_out": 0.05}, "denoiser": {**PAGES["denoiser"], "steps": 100},
          "page_policy": {"samples": 4, "steps": 64, "batch_size": 8, "lr": 3e-3}, "train": {"eval_every": 32, "seed": 1}}


def test_a_policy_over_pages():
    """It learns to leave pages in their size and place, where they are nearest to the clean ones, and how much the denoiser counts: of hardly any noise it is to
    count for nothing, of much noise for all. It begins in the middle. What an evaluation says follows from the lines of its pages. One seed: of some a training so short learns less."""
    config = write_hybrid(**json.loads(json.dumps(LEARNT)))
    refused(4, "out/denoiser: holds no training that policy could begin with; make it first, with the same command and --stage denoiser, or name another with dataset.denoiser_path",
            "train", config, "--stage", "policy")
    run("train", config, "--stage", "denoiser", "--quiet")
    run("train", config, "--stage", "policy", "--quiet", "--out", "faint", "--set", "dataset.denoiser_path=out/denoiser", "--set", "denoiser.noise=2")
    out, err = run("train", config, "--stage", "policy", "--set", "denoiser.noise=250")
    check(err.count("As planned, to the byte.") == 1 and re.search(r"begins with \d+ of its \d+ tensors from out/denoiser/checkpoints/step-", err), err[-2000:])
    faint, seen = ([m for m in metrics(f"{folder}/policy") if "noise_left" in m] for folder in ("faint", "out"))
    best = min(seen, key=lambda m: m["validation_loss"])
    for told in (faint, seen):  # 5.28 nats before anything is learnt
        check(told[-1]["as_is"] == 1 and told[-1]["choice_entropy"] < 2.6 and "adapter_gate_mean" not in told[-1], told)
    check(faint[-1]["strength"] < 0.25 and faint[-1]["psnr"] > faint[-1]["psnr_denoised"] + 6, faint)
    check(best["strength"] > 0.8 and best["psnr"] > best["psnr_noisy"] + 6 and best["psnr"] > best["psnr_denoised"] - 0.5, seen)
    text = read("out/policy/predictions.csv").decode().splitlines()
    lines = [[float(x) for x in line.split(",")] for line in text[1:]]
    check(text[0] == "page,noise,noise_left,denoised_left,size,across,down,strength" and len(lines) > 20, text[:2])
    noise, left, denoised = (sum(line[k] for line in lines) for k in (1, 2, 3))
    numbers = 64 * 64 * 3 * len(lines)
    check(math.isclose(left / noise, best["noise_left"], rel_tol=1e-4) and math.isclose(left / numbers, best["validation_loss"], rel_tol=1e-4), left, noise, best)
    for key, squares in (("psnr", left), ("psnr_denoised", denoised), ("psnr_noisy", noise)):
        check(abs(best[key] + 10 * math.log10(squares / numbers)) < 0.01, key, best)
    check(all(line[4:7] == [0, 0, 0] for line in lines) and math.isclose(sum(line[7] for line in lines) / len(lines), best["strength"], rel_tol=1e-4), lines[:2])
    saved, began = header(f"{last_checkpoint('out/policy')}/model.safetensors"), header(f"{last_checkpoint('out/denoiser')}/model.safetensors")
    check(all(name.startswith(("denoiser.", "policy.")) for name in saved) and set(began) < set(saved), sorted(saved))
    kept = header(f"out/denoiser/checkpoints/{read('out/denoiser/checkpoints/best').decode().strip()}/model.safetensors")
    check(all(saved[name] == kept[name] for name in kept), "another denoiser")
    check(not any("denoiser." in name for name in header(f"{last_checkpoint('out/policy')}/state.safetensors")), "moments of the denoiser")
    rows = json.loads(read("out/results.json"))["trainings"]
    check([row["training"] for row in rows] == ["denoiser", "policy"] and math.isclose(rows[1]["noise_left"], left / noise, rel_tol=1e-6) and "noise left" in out, rows)
    check(math.isclose(rows[1]["denoised_left"], denoised / noise, rel_tol=1e-6) and re.search(rf"^policy .* {denoised / noise:.3f}$", out, re.M) and "denoiser alone" in out, rows, out)
    check("denoised_left" not in rows[0] and b">denoiser alone</th>" in read("out/results.html"), rows)
    told, _ = run("eval", "out/policy")
    check(re.search(r"PSNR, dB +%.2f" % best["psnr"], told) and re.search(r"drawn as they are +1\.0", told), told)
    run("report", "out/policy", "--html", "page.html")
    page = read("page.html").decode()
    check(all(words in page for words in ("Signal to noise", "behind the denoiser alone", "Choices of the policy", "Choice entropy")) and "Path entropy" not in page, "charts")
    check(">-0<" not in page and not re.search(r">-?[\d.]+e-1\d<", page), "a tick that is 0 but for rounding")
    # where it stands in the place of the denoiser, as a folder of one: it has it
    run("train", write_hybrid("behind.yaml", out="behind", **{**json.loads(json.dumps(LEARNT)), "dataset": {"denoiser_path": "out/policy"}}), "--quiet")
    behind = header(f"{last_checkpoint('behind')}/model.safetensors")
    check(all(behind[name] == kept[name] for name in kept) and not any(name.startswith("policy.") for name in behind), "another denoiser")


def test_the_policy_however_it_is_cut():
    """The same bits whatever the micro-batch, the threads and what is recomputed, after going on, and where it was killed; other actions with another seed."""
    keys = json.loads(json.dumps(POLICY))
    keys["denoiser"]["steps"] = 3
    keys["train"] = {"steps": 4, "batch_size": 7, "seed": SEED % 1000, "schedule": "constant"}
    run("train", write_hybrid(**json.loads(json.dumps(keys))), "--stage", "denoiser", "--quiet")
    keys.update({"dataset": {"denoiser_path": "out/denoiser"}, "page_policy": {"only": True, "samples": 4}})
    for k, words in enumerate((["--micro_batch", "7"], ["--micro_batch", "2"], ["--micro_batch", "3", "--threads", "2"], ["--set", "train.gradient_checkpointing=full"])):
        run("train", write_hybrid(out=f"out{k}", **json.loads(json.dumps(keys))), "--quiet", *words)
        check(k == 0 or (lasting(f"out{k}") == lasting("out0") and metrics(f"out{k}") == metrics("out0")), words, "other bits")
    config = write_hybrid(out="parts", **json.loads(json.dumps(keys)))
    run("train", config, "--quiet", "--steps", "2")
    run("train", config, "--quiet", "--steps", "4", "--resume")
    check(lasting("parts") == lasting("out0"), "other bits after going on")
    run("train", config, "--quiet", "--out", "other", "--set", f"train.seed={SEED % 1000 + 1}")
    check(lasting("other") != lasting("out0"), "the same actions")
    out, _ = run("train", config, "--quiet", "--out", "bf16", "--set", "train.mixed_precision=bf16")
    check(all(math.isfinite(m["loss"]) for m in metrics("bf16") if "loss" in m), "no numbers in bf16")
    for sections, words in (({"page_policy": {"only": True}, "finetune": {"enabled": True}}, "page_policy.only makes the config that of one training, and finetune.enabled"),
                            ({"dataset": {"denoiser_path": "none"}}, "page_policy.only learns how pages pass a denoiser, and dataset.denoiser_path names none; train one with --stage denoiser"),
                            ({"dataset": {"denoiser_path": "out/denoiser", "use_denoiser": False}}, "pass a denoiser, and dataset.use_denoiser is false"),
                            ({"denoiser": {"depth": 5}}, "denoiser.depth 5 halves the grid"),
                            ({"denoiser": {"only": True, "depth": 2}}, "page_policy.only trains the policy alone, which has no frozen tower and no adapter, and there is denoiser.only"),
                            ({"vision_encoder": {"image_size": 48, "features_cache": "1MB"}}, "there is vision_encoder.features_cache; leave one"),
                            ({"vision_encoder": {"image_size": 48, "pretrained_precision": "bf16"}}, "brings weights in f32, and vision_encoder.pretrained_precision stores"),
                            ({"page_policy": {"only": True, "samples": 1}}, "page_policy.samples must be"),
                            ({"page_policy": {"only": True, "exploration": 0}}, "page_policy.exploration must be a number above 0")):
        refused(2, words, "train", write_hybrid("wrong.yaml", out="new", **json.loads(json.dumps({**keys, **sections}))))
    for value, tensor in (("channels=4", "denoiser.encoders.0.0.weight"), ("depth=1", "denoiser.bottleneck.0.weight")):
        refused(4, f'tensor "{tensor}" is .* was expected; denoiser.channels and denoiser.depth must be what they are in that run.s config.yaml', "train", config,
                "--out", "new", "--set", "denoiser." + value)


def test_pages_through_the_denoiser():
    """In front of the towers it stays as its training left it, whatever is trained behind it; the pages that stay for several steps are the same pages.
    The run has it: its folder may go."""
    keys = json.loads(json.dumps(PAGES))
    keys["denoiser"]["steps"] = 20
    run("train", write_hybrid(**json.loads(json.dumps(keys))), "--stage", "denoiser", "--quiet")
    keys.update({"dataset": {"denoiser_path": "out/denoiser"}, "reading": {"words": 8, "pages": 60, "held_out": 0.3, "noise": 30}})
    for k, (more, words) in enumerate((({}, []), ({}, ["--micro_batch", "4"]), ({}, ["--micro_batch", "1", "--threads", "2"]),
                                       ({"reasoning": {"num_heads": 2, "L_layers": 1, "halt_max_steps": 3}}, []),
                                       ({"reasoning": {"num_heads": 2, "L_layers": 1, "halt_max_steps": 3}}, ["--micro_batch", "2"]))):
        _, err = run("train", write_hybrid(f"c{k}.yaml", out=f"out{k}", **json.loads(json.dumps({**keys, **more}))), *words)
        check(re.search(r"begins with \d+ of its \d+ tensors from out/denoiser/checkpoints/step-", err), err)
    for one, other in ((0, 1), (0, 2), (3, 4)):
        check(lasting(f"out{one}") == lasting(f"out{other}") and metrics(f"out{one}") == metrics(f"out{other}"), one, other, "other bits")
    best = read("out/denoiser/checkpoints/best").decode().strip()
    denoiser, behind = header(f"out/denoiser/checkpoints/{best}/model.safetensors"), header(f"{last_checkpoint('out0')}/model.safetensors")
    check(all(behind[name] == denoiser[name] for name in denoiser), "another denoiser")
    check(not any("denoiser." in name for name in header(f"{last_checkpoint('out0')}/state.safetensors")), "moments of the denoiser")
    plain = write_hybrid("plain.yaml", out="plain", **json.loads(json.dumps({**keys, "dataset": {"denoiser_path": "out/denoiser", "use_denoiser": False}})))
    run("train", plain, "--quiet")
    check(metrics("plain") != metrics("out0") and not any("denoiser." in name for name in header(f"{last_checkpoint('plain')}/model.safetensors")), "is not left out")
    os.rename("out/denoiser", "gone")
    for value, key in (("dataset.denoiser_path=none", "dataset.denoiser_path is none here and out/denoiser in the saved run"),
                       ("dataset.use_denoiser=false", "dataset.use_denoiser is false here and true in the saved run")):
        refused(2, key + ", which keeps it from its first step to its last", "train", "c0.yaml", "--steps", "8", "--resume", "--set", value)
    run("train", "c0.yaml", "--steps", "8", "--resume", "--quiet")
    run("train", "out0", "--steps", "9", "--resume", "--quiet")  # by its folder, whose config names the other absolutely
    told, _ = run("eval", "out0")
    check("nats per word" in told, told)
    # what begins with it has the denoiser, too; another one that is named is the one that it has
    run("train", "c0.yaml", "--set", "train.init_from=out0", "--out", "behind", "--quiet")
    began = header(f"{last_checkpoint('behind')}/model.safetensors")
    check(all(began[name] == denoiser[name] for name in denoiser), "another denoiser")
    _, err = run("train", plain, "--set", "train.init_from=out0", "--out", "without")
    check(re.search(r"begins with (\d+) of its \1 tensors from out0/checkpoints/\S+; %d more that are there have no place here" % len(denoiser), err), err)
    run("train", write_hybrid("other.yaml", out="other", **json.loads(json.dumps({**PAGES, "denoiser": {**keys["denoiser"], "steps": 2}}))), "--stage", "denoiser", "--quiet")
    run("train", "c0.yaml", "--set", "train.init_from=out0", "--set", "dataset.denoiser_path=other/denoiser", "--out", "third", "--quiet")
    began = header(f"{last_checkpoint('third')}/model.safetensors")
    check(any(began[name] != denoiser[name] for name in denoiser), "not the denoiser that is named")
    refused(4, 'has no tensor of this model; name another run with train.init_from', "train", "other.yaml", "--stage", "denoiser", "--out", "new3", "--set", "train.init_from=plain")
    refused(4, "out/denoiser: has no checkpoint to begin with; name the folder of a run that was trained, or leave dataset.denoiser_path out", "train", "c0.yaml", "--out", "new")
    refused(4, 'has no weights of this model that begin with "denoiser."; name another run with dataset.denoiser_path', "train", "c0.yaml", "--out", "new2", "--set",
            "dataset.denoiser_path=plain")
    for sections, words in (({"vision_encoder": {"image_size": 48, "features_cache": "1MB"}}, "features_cache keeps what the tower makes of pages as they are drawn, and reading.noise"),
                            ({"vision_encoder": {"image_size": 48, "pretrained_precision": "bf16"}}, "brings weights in f32, and vision_encoder.pretrained_precision stores"),
                            ({"denoiser": {"depth": 5}}, "denoiser.depth 5 halves the grid")):
        refused(2, words, "train", write_hybrid("wrong.yaml", out="new", **json.loads(json.dumps({**keys, **sections}))))


SLACK = 4 * 4096  # the heap holds the words of the command line, too, and is whole pages


def test_what_comes_later_must_fit():
    """A later training that cannot fit is refused before the first begins."""
    config = write_hybrid(**{**json.loads(json.dumps(NOISY)), "finetune": {"enabled": True, "unfreeze_pretrained_layers": 1}})
    least = {name: needed(run("train", config, "--stage", name, "--budget", "1MB", "--set", "train.init_from=x", code=3)[1])
             for name in ("n2n", "task", "finetune")}
    check(least["n2n"] < least["task"] < least["finetune"], least)
    for name, number in (("task", 2), ("finetune", 3)):
        _, err = run("train", config, "--budget", str(least[name] - SLACK), code=3)
        said = " ".join(err.split())
        check(abs(needed(err) - least[name]) < SLACK and f"({name}, {number} of 3 trainings)" in said, err)
        check(not os.path.exists("out"), "began")
    refused(3, r"\(n2n, 1 of 3 trainings\)", "train", config, "--budget", "1MB")  # of what the first has, too, the first is told
    refused(2, "pretrained_precision stores what is frozen in 16 bits, and finetune.unfreeze_pretrained_layers trains layers in a later training", "train", config,
            "--set", "vision_encoder.pretrained_precision=bf16")
    searched = write_hybrid("searched.yaml", **{**json.loads(json.dumps(NOISY)), "fit": {"allow": ["frozen_bf16"]}})
    refused(2, "fit.allow lets each of several trainings choose whether it stores what is frozen in 16 bits, .*; say it for all with vision_encoder.pretrained_precision",
            "train", searched)
    for words in (["--set", "vision_encoder.pretrained_precision=bf16"], ["--stage", "n2n"]):  # said for all, or there is one
        run("train", searched, "--quiet", "--steps", "2", "--out", words[-1], *words)
    for name, earlier in (("task", "n2n"), ("finetune", "task")):
        refused(2, f"fit.allow lets the training {name} choose .*, and it begins with what the training {earlier}, or that of train.init_from, stored; say how that was with "
                "vision_encoder.pretrained_precision", "train", searched, "--stage", name)
    run("plan", searched, "--stage", "task", "--set", "vision_encoder.pretrained_precision=bf16")
    refused(2, "the training n2n is judged by pages that were held out, and reading.held_out is 0", "train", config, "--set", "reading.held_out=0")
    plans = {name: re.search(r"([\d,]+) parameters", run("plan", config, *(["--stage", name] if name else []))[0])[1] for name in ("", "n2n", "task", "denoiser")}
    check(plans[""] == plans["task"] and len(set(plans.values())) == 3, plans)
    fitted = {name: run("fit", config, "--stage", name)[0] for name in ("n2n", "task")}
    check("batch 10 pages" in fitted["n2n"] and "words/s" in fitted["task"] and "words/s" not in fitted["n2n"], fitted)
    told = [run("plan", config, *words)[1] for words in ((), ("--stage", "task"), ("--set", "n2n_pretrain.enabled=false", "--set", "finetune.enabled=false"))]
    check(re.search(r"this config is 3 trainings, .* --stage NAME plans one of them: n2n, task, finetune\n", told[0]) and not any("trainings" in err for err in told[1:]), told)


def test_the_command_line_of_a_stage():
    """What the command line says counts for the training that it names, before what the training's section says; of several it speaks of the task's."""
    config = write_hybrid(**{**json.loads(json.dumps(NOISY)), "denoiser": {"channels": 2, "depth": 2, "steps": 9, "batch_size": 3}})
    words = ("--quiet", "--steps", "2", "--batch_size", "5", "--learning_rate", "0.002", "--set", "train.schedule=constant")
    for name in ("n2n", "denoiser"):
        run("train", config, "--stage", name, *words)
        seen = [m for m in metrics(f"out/{name}") if "loss" in m]
        check([m["step"] for m in seen] == [1, 2] and all(math.isclose(m["lr"], 0.002, rel_tol=1e-6) for m in seen), name, seen)
        said = read(f"out/{name}/config.yaml").decode()
        check(re.search(r"batch_size: 5\b", said), said)
    refused(2, "denoiser.only trains the denoiser alone, .* there is vision_encoder.features_cache; leave one", "train", config, "--stage", "denoiser", "--out", "new",
            "--set", "vision_encoder.features_cache=1MB")
    shutil.rmtree("out")
    run("train", config, "--quiet", "--steps", "3")
    steps = {name: [m["step"] for m in metrics(f"out/{name}") if "loss" in m][-1] for name in ("n2n", "task")}
    check(steps["task"] == 3 and steps["n2n"] != 3, steps)


def words_read(*words):
    """The share that eval tells."""
    out, _ = run("eval", *words, "--json")
    return json.loads(out)["token_accuracy"]


def test_the_examples_read():
    """Both read pages that they never saw, of words that they know (docs/hybrid.md: more than 0.9)."""
    need_all(Skipped)
    need_pages()
    for example in (EXAMPLE, EXAMPLE.replace("tiny", "small")):
        run("train", example, "--out", "out", "--quiet", timeout=LONG)
        read_of = words_read("out")
        check(0.9 < read_of <= 1, example, read_of)
        shutil.rmtree("out")


def test_the_example_learns_by_heart():
    """Trained with 256 pages and no other, it reads more than 0.99 of them (docs/hybrid.md). They are what eval reads when it is told that a
    share of 0.99 is held out."""
    need_all(Skipped)
    need_pages()
    run("train", EXAMPLE, "--out", "out", "--quiet", "--steps", "2000", "--set", "reading.pages=256", "--set", "reading.held_out=0", timeout=LONG)
    by_heart = words_read("out", "--set", "reading.held_out=0.99")
    check(0.99 < by_heart <= 1, by_heart)


LONG = 3000
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/hybrid_tiny.yaml")
GROUPS = {"hybrid": [test_learns_and_is_evaluated, test_same_bits_however_it_is_cut, test_what_lasts_has_the_same_bits, test_pages_stay_and_leave, test_other_fusions, test_shared_sums,
                     test_killed_and_gone_on, test_frozen_weights_stay, test_other_words, test_bad_input],
          "hybrid_trainings": [test_the_documented_file, test_no_effect_is_told, test_batches_of_an_update, test_the_adapter_stays, test_task_and_finetune, test_the_adapter_alone,
                               test_noise_however_it_is_cut, test_the_denoiser_alone, test_the_denoiser_however_it_is_cut, test_an_own_training_is_killed, test_pages_through_the_denoiser,
                               test_the_command_line_of_a_stage, test_what_comes_later_must_fit],
          "hybrid_policy": [test_a_policy_over_pages, test_the_policy_however_it_is_cut],
          "hybrid_reads": [test_the_examples_read, test_the_example_learns_by_heart]}

if __name__ == "__main__":
    main(GROUPS)
