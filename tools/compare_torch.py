#!/usr/bin/env python3
"""Compares loss and every gradient with PyTorch, on the same weights and the same batch.

    plimsoll verify --gradients g.safetensors --checkpoint CHECKPOINT RUN
    tools/compare_torch.py g.safetensors CHECKPOINT

CHECKPOINT is a folder such as runs/gpt/checkpoints/step-00000200. Needs `pip install torch safetensors numpy`; neither
the build nor the tests need it. It knows nothing of Plimsoll but its files: model.safetensors (weights), run.json (the
config) and what verify wrote (tokens, targets, loss, gradients). The models are written out below, in the plainest way.

With `--next CHECKPOINT`, the checkpoint one step later (train with --checkpoint_every 1 --log_every 1 --keep_last 3 for
such a pair), the whole step is compared too: micro-batches, accumulation, clipping and AdamW took the run from the one
checkpoint to the other, PyTorch does the same with its gradients of the one batch, and weights and moments must agree.

The judge is PyTorch in f64. Differences are relative to the largest gradient of the tensor: max|a-b| / max|b|. Beside
Plimsoll's f32 stands PyTorch's own f32, so that one sees what f32 can do. Ends with 1 when a difference is above the
limit.
"""
import argparse
import json
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

ACTIVATIONS = {"gelu": F.gelu, "silu": F.silu, "tanh": torch.tanh, "relu": F.relu}


def read_config(text):
    """The config as Plimsoll prints it: sections, and one `key: value` a line under each."""
    config = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if line[:1] != " ":
            section = config.setdefault(key, {})
        else:
            section[key.strip()] = value.strip()
    return config


def norm(x, w, name, c):
    weight, eps = w[name + ".weight"], float(c["norm_eps"])
    if c["norm"] == "rms_norm":
        return F.rms_norm(x, weight.shape, weight, eps)
    return F.layer_norm(x, weight.shape, weight, w[name + ".bias"], eps)


def linear(x, w, name):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def attention(x, w, name, heads):
    batch, length, width = x.shape
    q, k, v = linear(x, w, name + ".c_attn").view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    score = (q @ k.transpose(-1, -2)) * (width // heads) ** -0.5
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    o = score.masked_fill(future, -torch.inf).softmax(-1) @ v
    return linear(o.transpose(1, 2).reshape(batch, length, width), w, name + ".c_proj")


def gpt(tokens, w, c):
    act = ACTIVATIONS[c["activation"]]
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]
    for i in range(int(c["layers"])):
        h = f"transformer.h.{i}"
        x = x + attention(norm(x, w, h + ".ln_1", c), w, h + ".attn", int(c["heads"]))
        x = x + linear(act(linear(norm(x, w, h + ".ln_2", c), w, h + ".mlp.c_fc")), w, h + ".mlp.c_proj")
    x = norm(x, w, "transformer.ln_f", c)
    return x @ w["transformer.wte.weight" if c["tie_embeddings"] == "true" else "lm_head.weight"].T


def mlp(tokens, w, c):
    """Position t sees tokens t, t-1 … t-window+1 of its sequence, zeros before its begin."""
    x, length = w["embedding.weight"][tokens], tokens.shape[1]
    x = torch.cat([F.pad(x, (0, 0, j, 0))[:, :length] for j in range(int(c["window"]))], -1)
    for i in range(int(c["layers"])):
        x = ACTIVATIONS[c["activation"]](linear(x, w, f"layers.{i}"))
    return x @ w["embedding.weight" if c["tie_embeddings"] == "true" else "head.weight"].T


def torch_gradients(weights, batch, c, dtype):
    w = {name: t.to(dtype).requires_grad_() for name, t in weights.items()}
    logits = {"gpt": gpt, "mlp": mlp}[c["arch"]](batch["train.tokens"].long(), w, c)
    loss = F.cross_entropy(logits.flatten(0, 1), batch["train.targets"].long().flatten(), ignore_index=-1)
    loss.backward()
    return loss.item(), {name: t.grad.double() for name, t in w.items()}


def difference(a, b):
    return ((a.double() - b).abs().max() / b.abs().max().clamp_min(1e-300)).item()


def read_rate(metrics, step):
    """The learning rate of this step, as the run logged it."""
    with open(metrics, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["step"] == step and "lr" in line:
                return line["lr"]
    sys.exit(f"compare_torch: {metrics} has no line of step {step}; train with --log_every 1")


def adamw(w, m, v, g, t, rate, c, clip_scale):
    """Step t of AdamW with decoupled decay, in f64; returns weight and moments."""
    beta1, beta2 = float(c["beta1"]), float(c["beta2"])
    g = g * clip_scale
    m, v = m * beta1 + g * (1 - beta1), v * beta2 + g * g * (1 - beta2)
    w = w * (1 - rate * (float(c["weight_decay"]) if w.dim() >= 2 else 0))
    return w - rate * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + float(c["epsilon"])), m, v


def compare_step(before, after, gradients, step, skipped, c):
    """Returns the largest difference; that of a weight is relative to the largest change of its tensor in this step."""
    if c.get("optimizer_state", "f32") != "f32":
        sys.exit(f"compare_torch: the moments are rounded (train.optimizer_state: {c['optimizer_state']}); --next needs f32")
    w0, w1 = (load_file(folder + "/model.safetensors") for folder in (before, after))
    s0, s1 = (load_file(folder + "/state.safetensors") for folder in (before, after))
    rate, clip = read_rate(after + "/../../metrics.jsonl", step), float(c["grad_clip"])
    norm_of_all = sum((g * g).sum() for g in gradients.values()).sqrt().item()
    clip_scale = min(1.0, clip / norm_of_all) if clip > 0 else 1.0
    print(f"\nstep {step}: learning rate {rate:.6g}, norm of gradient {norm_of_all:.6g}, scaled by {clip_scale:.6g}")
    print(f"{'':44} {'change of w':>13} {'m':>13} {'v':>13}")
    worst = 0
    for name, g in gradients.items():
        old = w0[name].double()
        w, m, v = adamw(old, s0["m." + name].double(), s0["v." + name].double(), g, step - skipped, rate, c, clip_scale)
        moments = difference(s1["m." + name], m), difference(s1["v." + name], v)
        d = (difference(w1[name].double() - old, w - old), *moments)
        worst = max(worst, *d)
        print(f"{name:44} {d[0]:13.2e} {d[1]:13.2e} {d[2]:13.2e}")
    return worst


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("gradients", help="file of plimsoll verify --gradients")
    arguments.add_argument("checkpoint", help="the checkpoint's folder")
    arguments.add_argument("--limit", type=float, default=1e-4, help="largest relative difference (default 1e-4)")
    arguments.add_argument("--next", help="the checkpoint one step later")
    a = arguments.parse_args()

    batch, weights = load_file(a.gradients), load_file(a.checkpoint + "/model.safetensors")
    with open(a.checkpoint + "/run.json", encoding="utf-8") as file:
        record = json.load(file)
    config = read_config(record["config"])
    c = config["model"]
    if float(c["dropout"]) > 0:
        sys.exit("compare_torch: the model has dropout, and PyTorch draws other masks; train one without")
    ours = {name[len("grad."):]: t for name, t in batch.items() if name.startswith("grad.")}
    if ours.keys() != weights.keys():
        sys.exit(f"compare_torch: only one of the files has {sorted(ours.keys() ^ weights.keys())}")

    tokens, targets = batch["train.tokens"], batch["train.targets"]
    known = targets[:, :-1] != -1
    if (targets[:, :-1][known] != tokens[:, 1:][known]).any():
        sys.exit("compare_torch: a target is not the token that follows")

    loss, exact = torch_gradients(weights, batch, c, torch.float64)
    loss32, theirs = torch_gradients(weights, batch, c, torch.float32)
    ours_loss = batch["loss"].item()
    print(f"{'':44} {'plimsoll f32':>13} {'PyTorch f32':>13}   against PyTorch {torch.__version__} in f64")
    print(f"{'loss ' + format(loss, '.9f'):44} {abs(ours_loss - loss) / loss:13.2e} {abs(loss32 - loss) / loss:13.2e}")
    worst = abs(ours_loss - loss) / loss
    for name in exact:
        if ours[name].shape != exact[name].shape:
            sys.exit(f"compare_torch: {name} is {list(ours[name].shape)} here and {list(exact[name].shape)} there")
        d = difference(ours[name], exact[name])
        worst = max(worst, d) if d == d else float("inf")
        print(f"{name:44} {d:13.2e} {difference(theirs[name], exact[name]):13.2e}")
    print(f"{len(exact)} gradients of {tuple(tokens.shape)} tokens; largest relative difference {worst:.2e}")
    if a.next:
        step_worst = compare_step(a.checkpoint, a.next, exact, record["step"] + 1, record.get("counters", {}).get("skipped_steps", 0), config["train"])
        print(f"largest difference of the step {step_worst:.2e}")
        worst = max(worst, step_worst / 10)  # a change is a small difference of rounded weights: ten times the limit
    sys.exit(worst > a.limit)


if __name__ == "__main__":
    main()
