#!/usr/bin/env python3
"""The model of cloud heights against PyTorch: gradients, running statistics, predictions behind them.
Usage: clouds.py PLIMSOLL_CLOUDS [SEED] [full]
full: the documented model, five samples of two frames of full size, and nothing else: 13 GB and a minute or two"""
import os
import subprocess
import sys
import time

try:
    import numpy
    import torch
    from torch import nn
    import torch.nn.functional as F
except ImportError:
    print("skipped: no PyTorch here")
    sys.exit(77)

LOSS = {"huber": lambda e: F.huber_loss(e, torch.zeros_like(e), reduction="none"),
        "mse_mae": lambda e: 0.5 * e ** 2 + 0.5 * e.abs(),
        "huber_mae": lambda e: 0.5 * LOSS["huber"](e) + 0.5 * e.abs() ** 1.5,
        "weighted_huber": lambda e: LOSS["huber"](e) * (1 + (e > 0)),
        "weighted_huber_mae": lambda e: 0.5 * LOSS["weighted_huber"](e) + 0.5 * e.abs() ** 1.5}


class Model(nn.Module):
    """As the project that it comes from has it, without dropout; `mean`: one frame, the mean of all."""

    def __init__(self, channels, dense, pixels=True, frames=True, mean=False):
        super().__init__()
        if pixels:
            self.spatial_attention = nn.ModuleDict({"conv1": nn.Conv2d(1, 1, 3, padding=1), "conv2": nn.Conv2d(1, 1, 1)})
        if frames and not mean:
            half = channels[2] // 2
            self.temporal_attention = nn.ModuleDict({"fc1": nn.Linear(channels[2], half), "fc2": nn.Linear(half, 1)})
        self.cnn_layers, self.dense_layers = nn.ModuleDict(), nn.ModuleDict()
        for i, (into, out) in enumerate(zip((1, *channels), channels)):
            self.cnn_layers[str(5 * i)] = nn.Conv2d(into, out, 3, padding=1)
            self.cnn_layers[str(5 * i + 1)] = nn.BatchNorm2d(out)
        for i, (into, out) in enumerate(zip((channels[2], *dense), dense)):
            self.dense_layers[str(4 * i)] = nn.Linear(into, out)
            self.dense_layers[str(4 * i + 1)] = nn.BatchNorm1d(out)
        film = nn.Sequential(nn.Linear(2, 256), nn.ReLU(), nn.Linear(256, 2 * channels[0]))
        self.film_layers = nn.ModuleList([nn.ModuleDict({"film_mlp": film})])
        self.output = nn.Linear(dense[1], 1)
        self.mean = mean

    def frame(self, x, angles):
        if hasattr(self, "spatial_attention"):
            a = self.spatial_attention
            x = x * torch.sigmoid(a["conv2"](F.relu(a["conv1"](x))))
        for i in range(3):
            x = F.leaky_relu(self.cnn_layers[str(5 * i + 1)](self.cnn_layers[str(5 * i)](x)))
            if i == 0:
                gamma, beta = self.film_layers[0]["film_mlp"](angles)[:, :, None, None].chunk(2, 1)
                x = gamma * x + beta
            x = F.max_pool2d(x, 2)
        return x.mean((2, 3))

    def forward(self, images, angles):
        if self.mean:
            images = images.mean(1, keepdim=True)
        v = torch.stack([self.frame(images[:, t:t + 1], angles) for t in range(images.shape[1])], 1)
        if hasattr(self, "temporal_attention"):
            a = self.temporal_attention
            v = (a["fc2"](F.relu(a["fc1"](v))).softmax(1) * v).sum(1)
        else:
            v = v.mean(1)
        for i in range(2):
            v = F.leaky_relu(self.dense_layers[str(4 * i + 1)](self.dense_layers[str(4 * i)](v)))
        return self.output(v)


def read(raw):
    """name: tensor; a convolution's weight is N,H,W,C with us and N,C,H,W there."""
    tensors, at = {}, 0
    while at < len(raw):
        end = raw.index(b"\n", at)
        name, *shape = raw[at:end].decode().split()
        shape, at = [int(n) for n in shape], end + 1
        x = numpy.frombuffer(raw, "<f4", int(numpy.prod(shape)), at).reshape(shape).astype(numpy.float64)
        at += 4 * x.size
        weight = name.endswith("weight") and len(shape) == 4
        tensors[name] = torch.tensor(x.transpose(0, 3, 1, 2) if weight else x)
    return tensors


def of(tensors, prefix):
    return {name[len(prefix):]: x for name, x in tensors.items() if name.startswith(prefix)}


def distance(ours, theirs):
    return float((ours - theirs).norm() / theirs.norm())


def train(model, data, kind, share):
    """Adds up the gradients of the mean loss, the share of the largest losses 1.5 times."""
    model.train()
    error = data["target"] - model(data["images"], data["angles"])
    loss = LOSS[kind](error)[:, 0]
    weight = torch.ones_like(loss)
    weight[loss.detach().topk(int(share * len(loss))).indices] = 1.5
    (weight * loss).mean().backward()


def compare(program, seed, height, width, batch, kind="huber", share=0.35, words=(), channels=(8, 16, 32), dense=(32, 16),
            frames_of_sample=3, each=1e-4, **switches):
    words = ["loss_type", kind, "hard_mining_k", str(share), "under_weight", "2", *words]
    done = subprocess.run([program, str(height), str(width), str(batch), str(seed), "channels", str(list(channels)), "dense",
                           str(list(dense)), "temporal_frames", str(frames_of_sample), *words], check=True,
                          stdout=subprocess.PIPE)
    tensors = read(done.stdout)
    model = Model(channels, dense, **switches).double()
    missing, unexpected = model.load_state_dict(of(tensors, "first:"), strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
    train(model, of(tensors, "train."), kind, share)
    ours = of(tensors, "grad.")
    theirs = {name: p.grad for name, p in model.named_parameters()}
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    norm = float(torch.cat([g.flatten() for g in theirs.values()]).norm())
    all_off = sum(float((ours[name] - g).norm()) ** 2 for name, g in theirs.items()) ** 0.5 / norm
    print(f"{height} x {width}, channels {channels}: all gradients off by {all_off:.2g}", flush=True)
    for name, g in theirs.items():  # in front of a batch norm a bias has none but rounding
        off = float((ours[name] - g).norm()) / max(float(g.norm()), 1e-2 * norm)
        assert off < each, f"seed {seed}: the gradient of {name} is off by {off:.2g}"
    assert all_off < 1e-4, f"seed {seed}: the gradients are off by {all_off:.2g}"
    states = {n: x for n, x in of(tensors, "then:").items() if "running" in n}
    assert len(states) == 10
    for name, x in states.items():
        assert distance(x, model.state_dict()[name]) < 1e-5, f"seed {seed}: {name}"
    data, model = of(tensors, "evaluate."), model.eval()
    off = distance(tensors["prediction"], model(data["images"], data["angles"]).detach()[:, 0])
    assert off < 1e-4, f"seed {seed}: predictions are off by {off:.2g}"


def main():
    given = [word for word in sys.argv[2:] if word.isdigit()]
    seed = int(given[0] if given else os.environ.get("PLIMSOLL_TEST_SEED", time.time())) % 2 ** 31
    print(f"repeat with: {sys.argv[0]} {sys.argv[1]} {seed}", flush=True)
    if "full" in sys.argv[2:]:
        compare(sys.argv[1], seed, 440, 640, 5, channels=(64, 128, 256), dense=(256, 128), frames_of_sample=2,
                each=1e-3)  # the first convolution's is a sum over 1.4 million pixels that nearly cancel
        return
    torch.set_num_threads(1)
    compare(sys.argv[1], seed, 48, 64, 6)
    compare(sys.argv[1], seed, 17, 30, 5, kind="weighted_huber_mae", share=0.5, words=["use_spatial_attention", "false"],
            pixels=False)
    compare(sys.argv[1], seed, 16, 16, 4, kind="mse_mae", share=0, words=["use_temporal_attention", "false"],
            frames=False)
    compare(sys.argv[1], seed, 25, 19, 4, kind="huber_mae", words=["architecture.name", "cnn"], mean=True)
    print("gradients, running statistics and predictions are those of PyTorch")


main()
