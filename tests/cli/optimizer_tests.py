"""Tests of train.optimizer: whole trainings against the definition, computed here from what every step left on the disk; what a kill leaves.
Called as cli_tests.py is."""
import json
import math
import random
import struct
import time

from cli_tests import SEED, check, finish, main, metrics, read, run, same_run, start, write_config, write_text

SPARE = {"keep_last": 1000, "checkpoint_every": 1, "log_every": 1, "tensorboard": "false", "keep_best": "false"}


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


def test_every_plan_is_the_same_training():
    """verify computes the update apart, and compares plans; the plain one is within its bounds in every precision."""
    write_text()
    config = write_config(train={"optimizer": "adam_atan2", "batch_size": 2, "micro_batch": "auto"}, run={"threads": 1})
    for form in ("f32", "bf16", "8bit"):
        told = json.loads(run("verify", config, "--json", "--set", f"train.optimizer_state={form}")[0])
        check(told["failed"] == 0 and told["plans"] > 10, form, told)


def test_killed_is_never_killed():
    """Whatever the optimizer, its state and the precision: killed at random, the same files."""
    write_text()
    source = random.Random(SEED)
    for optimizer in ("adam_atan2", "adamw"):
        keys = {"steps": 300, "optimizer": optimizer, "optimizer_state": source.choice(("f32", "bf16", "8bit")),
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


GROUPS = {"optimizer": [test_adam_atan2_by_its_definition, test_every_form_learns, test_every_plan_is_the_same_training, test_killed_is_never_killed]}

if __name__ == "__main__":
    main(GROUPS)
