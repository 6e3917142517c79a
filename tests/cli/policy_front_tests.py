"""Tests of a trained policy in front of the towers (dataset.use_policy): the page that the towers see, against the formulas in plain Python; the same bits
whatever the micro-batch, threads and cache; what it cannot do without. Called as cli_tests.py is."""
import json
import math
import os
import random
import shutil
import signal
import struct

from cli_tests import SEED, await_event, check, finish, last_checkpoint, main, metrics, read, refused, run, start
from hybrid_tests import PAGES, lasting, write_hybrid

DRAW = random.Random(SEED)
SIDE, SIZES, FEATURES = 48, 7, 768
POLICY = ("--set", "dataset.use_policy=true", "--set", "dataset.denoiser_path=unet/policy")


def write_chosen(path="task.yaml", **sections):
    """A config, its denoiser and its policy, which learns so fast that it moves pages. Of one seed: with some it leaves all as they are."""
    keys = {**json.loads(json.dumps(PAGES)), "dataset": {"denoiser_path": "unet/denoiser"}, "train": {"steps": 12, "eval_every": 6, "log_every": 1},
            "page_policy": {"samples": 4, "steps": 20, "batch_size": 6, "lr": 0.03, "dropout": 0}}
    keys["denoiser"].update({"channels": 2, "depth": 1, "steps": 12, "batch_size": 4})
    for name, more in sections.items():
        keys[name] = {**keys.get(name, {}), **more}
    config = write_hybrid(path, **json.loads(json.dumps(keys)))
    for name in ("denoiser", "policy"):
        if not os.path.exists(f"unet/{name}"):
            run("train", config, "--stage", name, "--quiet", "--out", "unet", "--seed", "3", "--set", "train.eval_every=1000")  # the last is the best
    return config


def same(one, other):
    return lasting(one) == lasting(other) and metrics(one) == metrics(other)


def tensors(path, begins=""):
    """Flat lists of numbers by name, of f32 and u8."""
    data = read(path)
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    entries = json.loads(data[8:begin])
    of = {}
    for name, entry in entries.items():
        if name.startswith(begins) and name != "__metadata__" and entry["dtype"] in ("F32", "U8"):
            at, end = (begin + n for n in entry["data_offsets"])
            of[name] = struct.unpack(f"<{(end - at) // 4}f", data[at:end]) if entry["dtype"] == "F32" else data[at:end]
    return of


# ---- the policy and the U-Net, written down once more ----

def linear(w, name, x):
    return [bias + math.fsum(a * b for a, b in zip(w[name + ".weight"][i * len(x):(i + 1) * len(x)], x)) for i, bias in enumerate(w[name + ".bias"])]


def choose(w, feature):
    """Size, across, down and the share of the denoiser; for each choice what changes nothing weighs as much as all others."""
    x = feature
    for name in ("policy.layers.0", "policy.layers.3"):
        x = [max(v, 0) for v in linear(w, name, x)]
    best = []
    for name, as_is in (("size", 3), ("across", 5), ("down", 5)):
        logits = linear(w, "policy." + name, x)
        logits[as_is] += math.log(len(logits) - 1)
        best.append(max(range(len(logits)), key=logits.__getitem__))
    return best, 1 / (1 + math.exp(-max(-50, linear(w, "policy.strength", x)[0])))


def shifted(page, across, down):
    """Rows moved by so many pixels to the right and down, paper where nothing comes from."""
    return [[page[r - down][c - across] if 0 <= r - down < SIDE and 0 <= c - across < SIDE else 255 for c in range(SIDE)] for r in range(SIDE)]


def convolve(w, name, x, kernel):
    """x[r][c] is a list of channels; weights [out,k,k,in], zeros around."""
    weight, bias, side, ins, pad = w[name + ".weight"], w[name + ".bias"], len(x), len(x[0][0]), kernel // 2
    of = [[weight[(o * kernel * kernel + t) * ins:(o * kernel * kernel + t + 1) * ins] for t in range(kernel * kernel)] for o in range(len(bias))]
    def at(r, c):
        near = [(t, x[r + t // kernel - pad][c + t % kernel - pad]) for t in range(kernel * kernel)
                if 0 <= r + t // kernel - pad < side and 0 <= c + t % kernel - pad < side]
        return [b + sum(a * v for t, pixel in near for a, v in zip(k[t], pixel)) for k, b in zip(of, bias)]
    return [[at(r, c) for c in range(side)] for r in range(side)]


def normalised(w, name, x):
    scale = [g / math.sqrt(v + 1e-5) for g, v in zip(w[name + ".weight"], w[name + ".running_var"])]
    shift = [b - m * s for b, m, s in zip(w[name + ".bias"], w[name + ".running_mean"], scale)]
    return [[[max(0, v * s + t) for v, s, t in zip(pixel, scale, shift)] for pixel in row] for row in x]


def block(w, name, x):
    for i in (0, 3):
        x = normalised(w, f"{name}.{i + 1}", convolve(w, f"{name}.{i}", x, 3))
    return x


def doubled(w, name, x):
    """Weights [in,2,2,out]: each pixel makes four."""
    weight, bias, side = w[name + ".weight"], w[name + ".bias"], len(x)
    outs = len(bias)
    return [[[b + sum(v * weight[((i * 2 + r % 2) * 2 + c % 2) * outs + o] for i, v in enumerate(x[r // 2][c // 2])) for o, b in enumerate(bias)]
             for c in range(2 * side)] for r in range(2 * side)]


def denoised(w, x):
    skip = block(w, "denoiser.encoders.0", x)
    half = [[[max(skip[2 * r + i][2 * c + j][k] for i in (0, 1) for j in (0, 1)) for k in range(len(skip[0][0]))] for c in range(SIDE // 2)] for r in range(SIDE // 2)]
    up = doubled(w, "denoiser.upconvs.0", block(w, "denoiser.bottleneck", half))
    both = [[a + b for a, b in zip(*rows)] for rows in zip(up, skip)]
    return convolve(w, "denoiser.final_conv", block(w, "denoiser.decoders.0", both), 1)


def seen(w, pages, feature):
    """The page of three colours that the towers see, as numbers from 0 to 255, not rounded; and what was chosen."""
    (size, across, down), strength = choose(w, feature)
    flat = pages[size * SIDE * SIDE:(size + 1) * SIDE * SIDE]
    page = shifted([flat[r * SIDE:(r + 1) * SIDE] for r in range(SIDE)], across - 5, down - 5)
    x = [[[v / 255] * 3 for v in row] for row in page]
    return [255 * min(1, max(0, strength * a + (1 - strength) * b)) for rows in zip(denoised(w, x), x) for pixels in zip(*rows) for a, b in zip(*pixels)], (size, across, down)


def test_the_page_that_is_seen():
    """Size, place and share are those of the policy's weights, to the byte, but where a number is nearly half way between two."""
    config = write_chosen()
    run("train", config, "--quiet", "--out", "out", "--micro_batch", "6", *POLICY, "--set", "dataset.cache_images=true")
    run("verify", "--gradients", "g.safetensors", "out")
    made, w = tensors("g.safetensors", "train."), tensors(f"{last_checkpoint('out')}/model.safetensors")
    best = read("unet/policy/checkpoints/best").decode().strip()
    for name, tensor in tensors(f"unet/policy/checkpoints/{best}/model.safetensors").items():
        check(w[name] == tensor, name, "is another one than the policy's run has")
    choices = set()
    for i in range(6):
        feature = made["train.feature"][i * (FEATURES + 1):(i + 1) * (FEATURES + 1)]
        check(feature[FEATURES] == 1, feature[FEATURES])
        choices.add(tuple(choose(w, feature[:FEATURES])[0]))
        if i < 4:
            continue
        # what is made of the batch stands in the place of its pages, from the beginning: 6 times 3 of 6 times 7, so the last ones are as they were drawn
        page = made["train.pages"][i * SIZES * SIDE * SIDE:(i + 1) * SIZES * SIDE * SIDE]
        got = made["train.pages"][i * SIDE * SIDE * 3:(i + 1) * SIDE * SIDE * 3]
        want, choice = seen(w, page, feature[:FEATURES])
        apart = [abs(a - b) for a, b in zip(got, want)]
        check(len(want) == len(got) and max(apart) < 0.51, choice, max(apart), apart.index(max(apart)))
    check(choices != {(3, 5, 5)}, "the policy changes nothing, so that nothing is tested")


def test_the_same_bits():
    """However the batch is cut, with a cache and without, with noise, where pages stay and where the adapter alone is trained; it is not the page without it."""
    for number, (keys, more) in enumerate((({}, []), ({"reading": {"words": 8, "pages": 60, "held_out": 0.3, "noise": 30}}, []),
                                           ({"reasoning": {"num_heads": 2, "L_layers": 1, "halt_max_steps": 3}}, ["--set", "dataset.cache_images=true"]),
                                           ({"n2n_pretrain": {"only": True}}, ["--set", "dataset.cache_images=true"]))):
        config = write_chosen(f"c{number}.yaml", **keys)
        _, err = run("train", config, "--out", f"whole{number}", "--micro_batch", "6", *POLICY)
        check("As planned, to the byte." in err, err[-500:])
        run("train", config, "--quiet", "--out", f"cut{number}", "--micro_batch", str(DRAW.randrange(1, 6)), "--threads", "2", *POLICY, *more)
        check(same(f"cut{number}", f"whole{number}"), number, "other bits")
    run("train", "c0.yaml", "--quiet", "--out", "plain")
    check(metrics("plain") != metrics("whole0"), "the policy changes nothing")
    told, _ = run("eval", "whole0", "--json")
    best = min(m["validation_loss"] for m in metrics("whole0") if "validation_loss" in m)
    check(math.isclose(json.loads(told)["loss"], best, rel_tol=1e-7), told, best)


def test_killed_and_gone_on():
    config = write_chosen(train={"steps": 60, "checkpoint_every": 5})
    run("train", config, "--quiet", "--out", "whole", *POLICY)
    process = start("train", config, "--resume=auto", "--out", "out", *POLICY)
    await_event(process, "step", 12)
    process.send_signal(signal.SIGKILL)
    finish(process)
    shutil.rmtree("unet")  # the run has both
    run("train", config if os.listdir("out/checkpoints") else "whole", "--resume=auto", "--out", "out", "--quiet", *POLICY)
    check(same("out", "whole"), "other bits after a kill")


def test_what_it_needs():
    config = write_chosen()
    use = ("--set", "dataset.use_policy=true")
    refused(4, 'has no weights of this model that begin with "policy."; name another run with dataset.denoiser_path', "train", config, "--out", "new", *use)
    refused(2, "dataset.use_policy draws pages as the policy says .*, and that names none; train it with --stage policy, and name its folder", "plan", config, *use, "--set",
            "dataset.denoiser_path=none")
    refused(2, "and dataset.use_denoiser is false", "plan", config, *use, "--set", "dataset.use_denoiser=false")
    refused(2, "the policy draws its pages in 7 sizes", "plan", config, *POLICY, "--set", "vision_encoder.image_size=672")
    run("train", config, "--quiet", "--out", "out", *POLICY)
    refused(2, "dataset.use_policy is false here and true in the saved run, which keeps it from its first step to its last", "train", config, "--out", "out", "--steps", "20", "--resume",
            "--set", "dataset.denoiser_path=unet/policy")
    with open("text.txt", "w") as file:
        file.write("some words\n")
    for words in (("encode", "out", "--texts", "text.txt"), ("infer", "out", "text.txt"), ("export", "out", "--format", "onnx", "--out", "m"),
                  ("plan", "out", "--command", "quantize", "--set", "quantization.files=text.txt")):
        refused(2, "dataset.use_policy lets a policy choose how each page is drawn, from its words, which only the training's own pages have; train with false", *words)
    run("export", "out", "--format", "safetensors", "--out", "weights")


GROUPS = {"hybrid_front": [test_the_page_that_is_seen, test_the_same_bits, test_killed_and_gone_on, test_what_it_needs]}

if __name__ == "__main__":
    main(GROUPS)
