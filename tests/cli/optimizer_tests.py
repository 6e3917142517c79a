"""Tests of train.optimizer and train.ema_rate: whole trainings against the definitions, computed here from what every step left on the disk;
who reads the averages; what a kill leaves. Called as cli_tests.py is."""
import json
import math
import os
import random
import struct
import time

from cli_tests import SEED, check, finish, last_checkpoint, main, metrics, read, refused, run, same_run, start, write_config, write_text

SPARE = {"keep_last": 1000, "checkpoint_every": 1, "log_every": 1, "tensorboard": "false", "keep_best": "false"}
# A step of it rounds to nothing: the weights stay as they began.
STILL = {"learning_rate": "1e-30", "weight_decay": 0, "steps": 1}


def tensors(path):
    """The f32 tensors of a file: name → (shape, numbers)."""
    data = read(path)
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    found = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = t["data_offsets"]
            found[name] = (t["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end]))
    return found


def at(out, step, file):
    return tensors(f"{out}/checkpoints/step-{step:08}/{file}.safetensors")


def model(arch):
    return {"arch": arch, "width": 16, "layers": 1, "sequence": 16, **({"heads": 2} if arch == "gpt" else {"heads": None})}


def near(found, wanted, bound, *what):
    check(abs(found - wanted) <= bound, *what, "is", found, "by the definition", wanted)


def test_adam_atan2_by_its_definition():
    """w −= lr·wd·w (matrices), w −= lr·atan2(m/(1−b1ᵗ), √(v/(1−b2ᵗ))), from the moments and the weights before; the gradient that the moments
    tell is AdamW's in the first step."""
    write_text()
    for arch in ("mlp", "gpt"):
        keys = {**SPARE, "steps": 9, "warmup_steps": 3, "weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "grad_clip": 0.5}
        config = write_config(model=model(arch), train={**keys, "optimizer": "adam_atan2"})
        _, err = run("train", config, "--out", arch)
        check("As planned" in err, err)
        run("train", config, "--quiet", "--out", f"{arch}-adamw", "--set", "train.optimizer=adamw", "--steps", "9")
        check(at(arch, 1, "state") == at(f"{arch}-adamw", 1, "state"), "the moments after the first step")
        check(at(arch, 1, "model") != at(f"{arch}-adamw", 1, "model"), "the weights are AdamW's")
        lr = {line["step"]: line["lr"] for line in metrics(arch) if "lr" in line}
        for step in range(2, 10):
            before, old, weights, state = at(arch, step - 1, "model"), at(arch, step - 1, "state"), at(arch, step, "model"), at(arch, step, "state")
            for name, (shape, w) in weights.items():
                m, v, m0, v0 = (s[f"{k}.{name}"][1] for s in (state, old) for k in "mv")
                decay = lr[step] * 0.3 if len(shape) >= 2 else 0
                for i in range(len(w)):
                    g = (m[i] - 0.8 * m0[i]) / 0.2
                    near(v[i], 0.9 * v0[i] + 0.1 * g * g, 1e-4 * v[i] + 1e-5 * (abs(m[i]) + abs(m0[i])) ** 2, arch, step, f"v.{name}", i)
                    angle = math.atan2(m[i] / (1 - 0.8 ** step), math.sqrt(v[i] / (1 - 0.9 ** step)))
                    near(w[i], before[name][1][i] * (1 - decay) - lr[step] * angle, 2e-6 * lr[step] + 1.3e-7 * abs(w[i]), arch, step, name, i)


def test_averages_by_their_definition():
    """From the weights of every step; training itself does not notice them, down to the bit."""
    write_text()
    for arch, rate in (("mlp", 0.9), ("gpt", 0.5)):
        keys = {**SPARE, "steps": 8, "warmup_steps": 1}
        config = write_config(model=model(arch), train=keys)
        run("train", config, "--quiet", "--out", f"{arch}-plain")
        _, err = run("train", config, "--out", arch, "--set", f"train.ema_rate={rate}")
        check("As planned" in err, err)
        run("train", write_config(model=model(arch), train={**keys, **STILL}), "--quiet", "--out", f"{arch}-still")
        average = {name: list(w) for name, (_, w) in at(f"{arch}-still", 1, "model").items()}
        for step in range(1, 9):
            weights, given, state = at(f"{arch}-plain", step, "model"), at(arch, step, "model"), at(arch, step, "state")
            check(weights.keys() == given.keys() == average.keys(), weights.keys(), given.keys())
            for name, (shape, w) in weights.items():
                check(state[name] == (shape, w) and given[name][0] == shape, step, name, "is not the weight of the training without averages")
                for i in range(len(w)):
                    average[name][i] = rate * average[name][i] + (1 - rate) * w[i]
                    near(given[name][1][i], average[name][i], 1e-6 * abs(average[name][i]) + 1e-8, arch, step, f"the average of {name}", i)
            plain = at(f"{arch}-plain", step, "state")
            check(all(state[name] == plain[name] for name in plain), step, "other moments")


def test_who_reads_the_averages():
    """The evaluation in the training, eval, generate: all what model.safetensors holds."""
    write_text()
    keys = {"eval_batches": 1000, "steps": 40, "eval_every": 40, "checkpoint_every": 40, "sample_every": 0}
    config = write_config(train=keys)
    run("train", config, "--quiet", "--out", "plain")
    run("train", config, "--quiet", "--out", "out", "--set", "train.ema_rate=0.95")
    loss = {out: [m["validation_loss"] for m in metrics(out) if "validation_loss" in m][-1] for out in ("plain", "out")}
    evaluated = {out: json.loads(run("eval", out, "--json")[0])["loss"] for out in loss}
    check(abs(loss["plain"] / loss["out"] - 1) > 1e-3, "the averages are evaluated as the weights are", loss)
    check(all(abs(loss[out] / evaluated[out] - 1) < 1e-6 for out in loss), loss, evaluated)
    check([m["loss"] for m in metrics("plain") if "loss" in m] == [m["loss"] for m in metrics("out") if "loss" in m], "training has noticed them")
    check(run("generate", "out")[0] != run("generate", "plain")[0], "the text of the weights")
    # The gradients that verify gives out are those at model.safetensors, too, and so those of a run that stands still there.
    run("train", write_config("held.yaml", train={**keys, **STILL, "steps": 40, "init_from": "out"}), "--quiet", "--out", "held")
    given, held = (tensors(f"{last_checkpoint(out)}/model.safetensors") for out in ("out", "held"))
    check(given == held, "does not stand still")
    for out in ("plain", "out", "held"):
        run("verify", "--gradients", f"{out}.safetensors", "--checkpoint", last_checkpoint(out), out)
    check(read("out.safetensors") == read("held.safetensors") != read("plain.safetensors"), "the gradients are at other weights")
    check("averages, where train.ema_rate keeps some" in " ".join(run("verify", "--help")[0].split()), "help does not say so")
    # Who begins with such a run begins with its averages, and its own averages begin there.
    with_averages = write_config(train={**SPARE, **STILL, "init_from": "out", "ema_rate": 0.9})
    run("train", with_averages, "--quiet", "--out", "next")
    best = tensors(f"out/checkpoints/{read('out/checkpoints/best').decode().strip()}/model.safetensors")
    check(at("next", 1, "model") == best and all(at("next", 1, "state")[name] == best[name] for name in best), "init_from")


def test_averages_have_a_place_in_the_plan():
    write_text()
    config = write_config()
    plan = {rate: json.loads(run("plan", config, "--json", "--set", f"train.ema_rate={rate}")[0]) for rate in (0, 0.9)}
    roles = {rate: {role["role"]: role["bytes"] for role in plan[rate]["arena"]["roles"]} for rate in plan}
    check("average" not in roles[0] or roles[0]["average"] == 0, roles[0])
    check(roles[0.9]["average"] == roles[0.9]["weight"], roles[0.9])
    out, err = run("plan", config, "--set", "train.ema_rate=0.9")
    check("averaged weights" in out + err, out)
    refused(2, r"ema_rate.*1", "plan", config, "--set", "train.ema_rate=1")
    run("train", config, "--quiet", "--steps", "20")
    refused(2, r"train.ema_rate is 0\.9 here and 0 in the saved run", "train", config, "--resume", "--steps", "40", "--set", "train.ema_rate=0.9")


def test_every_plan_is_the_same_training():
    """verify computes the update and the averages apart, and compares plans; the plain one is within its bounds in every precision."""
    write_text()
    config = write_config(train={"optimizer": "adam_atan2", "ema_rate": 0.9, "batch_size": 2, "micro_batch": "auto"}, run={"threads": 1})
    for form in ("f32", "bf16", "8bit"):
        told = json.loads(run("verify", config, "--json", "--set", f"train.optimizer_state={form}")[0])
        check(told["failed"] == 0 and told["plans"] > 10, form, told)


def test_killed_is_never_killed():
    """With averages, whatever the optimizer, its state and the precision: killed at random, the same files."""
    write_text()
    source = random.Random(SEED)
    for optimizer in ("adam_atan2", "adamw"):
        keys = {"steps": 300, "ema_rate": 0.99, "optimizer": optimizer, "optimizer_state": source.choice(("f32", "bf16", "8bit")),
                "mixed_precision": source.choice(("off", "bf16", "fp16")), "layer_major": source.choice(("auto", 1))}
        if keys["mixed_precision"] == "fp16":
            keys["layer_major"] = 0
        print("PLIMSOLL_TEST_SEED", SEED, keys)
        config = write_config(model={"width": 64, "layers": 2}, train=keys)
        _, err = run("train", config, "--out", f"whole-{optimizer}")
        check("As planned" in err, err)
        for _ in range(6):
            process = start("train", config, "--resume=auto", "--out", optimizer)
            time.sleep(source.random() * 1.2)
            process.kill()
            if finish(process) == 0:
                break
        run("train", config, "--resume=auto", "--quiet", "--out", optimizer, "--threads", "2")
        same_run(f"whole-{optimizer}", optimizer)


def test_every_form_learns():
    """The loss falls as far, whatever form the state has."""
    write_text()
    reached = {}
    for form, precision in (("f32", "off"), ("bf16", "off"), ("8bit", "off"), ("f32", "fp16"), ("bf16", "bf16"), ("8bit", "fp16")):
        config = write_config(model={"width": 64}, train={"optimizer": "adam_atan2", "optimizer_state": form, "mixed_precision": precision,
                                                          "log_every": 1, "eval_every": 120})
        out = f"{form}-{precision}"
        run("train", config, "--quiet", "--out", out)
        losses = [line["loss"] for line in metrics(out) if "loss" in line]
        reached[out] = sum(losses[-10:]) / 10
        check(reached[out] < 0.75 * losses[0], out, losses[0], reached[out])
    check(max(reached.values()) < 1.02 * min(reached.values()), reached)


GROUPS = {"optimizer": [test_adam_atan2_by_its_definition, test_averages_by_their_definition, test_who_reads_the_averages,
                        test_averages_have_a_place_in_the_plan, test_every_form_learns, test_every_plan_is_the_same_training, test_killed_is_never_killed]}

if __name__ == "__main__":
    main(GROUPS)
